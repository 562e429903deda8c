# mypy: ignore-errors
# (To a type checker, `ut.i64` in an annotation is a variable, not a type.)
"""The programs that `undertow demo` shows: its steps print the source of these, and run them."""

import numpy as np

import undertow as ut


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


# A tree as arrays: the leaves 0..3 are words, 4 = (0, 1), 5 = (2, 3), 6 = (4, 5).
LEFT = np.array([-1, -1, -1, -1, 0, 2, 4])
RIGHT = np.array([-1, -1, -1, -1, 1, 3, 5])


@ut.function
def encode(params, node: ut.i64) -> ut.f64[3]:
    if LEFT[node] < 0:
        return params["embed"][node]
    children = ut.concat([encode(params, LEFT[node]), encode(params, RIGHT[node])])
    return ut.tanh(children @ params["weights"] + params["bias"])


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    if n == 0:
        return 1.0
    return x * power(x, n - 1)


@ut.function
def is_even(n: ut.i64) -> ut.bool:
    if n == 0:
        return True
    return is_odd(n - 1)


@ut.function
def is_odd(n: ut.i64) -> ut.bool:
    if n == 0:
        return False
    return is_even(n - 1)


@ut.function
def harmonic(n: ut.i64) -> ut.i64:
    if n == -1:
        return 0
    return 1000 // n + harmonic(n - 1)


@ut.function
def depth(n: ut.i64) -> ut.i64:
    if n == 0:
        return 0
    return 1 + depth(n - 1)
