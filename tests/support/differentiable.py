"""Recursive functions with derivatives, which reverse and forward mode must agree on."""

from __future__ import annotations

import numpy as np

import undertow as ut

# A tree of five nodes.
#      0
#     / \
#    1   2
#   / \
#  3   4
LEFT = np.array([1, 3, -1, -1, -1])
RIGHT = np.array([2, 4, -1, -1, -1])


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    """x to the n."""
    return 1.0 if n <= 0 else x * power(x, n - 1)


@ut.function
def fibonacci(x: ut.f64, n: ut.i64) -> ut.f64:
    """Two recursive calls."""
    return 1.0 if n <= 1 else x * fibonacci(x, n - 1) + fibonacci(x, n - 2)


@ut.function
def loop_in_recursion(x: ut.f64, n: ut.i64) -> ut.f64:
    total, t = x, 1.0
    for i in range(n):
        t = t * x
        for j in range(i):
            total = total + loop_in_recursion(x * 0.5, j) * t
    return total


@ut.function
def tree(w: ut.f64[5, 2], i: ut.i64) -> ut.f64[2]:
    if LEFT[i] < 0:
        return w[i]
    return ut.tanh(tree(w, LEFT[i]) * tree(w, RIGHT[i]) + w[i])


@ut.function
def tree_sum(w: ut.f64[5, 2], i: ut.i64) -> ut.f64:
    return ut.sum(tree(w, i))


@ut.function
def mapped(x: ut.f64, n: ut.i64) -> ut.f64:
    """A function that maps itself over a number of lanes known only at run time; none at the leaves."""
    return x + ut.sum(ut.map(lambda k: mapped(x * 0.5 + k * 0.1, k), ut.arange(n))) * x


@ut.function
def even(x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else odd(x * x, n - 1) + x


@ut.function
def odd(x: ut.f64, n: ut.i64) -> ut.f64:
    return ut.sin(x) if n <= 0 else even(ut.cos(x), n - 1) * x


@ut.function
def ackermann(m: ut.i64, x: ut.f64) -> ut.f64:
    """A call whose argument is a call: shaped like ack(m - 1, ack(m, n - 1))."""
    if m <= 0:
        return x * x + 0.25
    if x < 0.5:
        return ackermann(m - 1, x * 1.5 + 0.1)
    return ackermann(m - 1, ackermann(m, x - 0.4) * 0.5)


@ut.function
def halves(a: ut.f64[None]) -> ut.f64:
    """Recursion that halves an array: sizes known only at run time."""
    if a.shape[0] == 0:
        return 0.0
    if a.shape[0] == 1:
        return a[0] * a[0]
    h = a.shape[0] // 2
    return halves(a[:h]) * 0.5 + halves(a[h:]) * ut.sum(a)


@ut.function
def while_newton(a: ut.f64) -> ut.f64:
    """A loop whose length depends on the values."""
    x = a
    while ut.abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x
