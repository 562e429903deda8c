"""Small recursive functions that many tests run: of numbers and arrays, endless, failing, lazy, with derivatives."""

from __future__ import annotations

import numpy as np

import undertow as ut


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return n
    return fib(n - 1) + fib(n - 2)


@ut.function
def count(n: ut.i64) -> ut.i64:
    """Calls itself n times; for ever if n is negative."""
    if n == 0:
        return 0
    return count(n - 1) + 1


@ut.function
def spin(n: ut.i64) -> ut.i64:
    """Loops until n is 0: for ever if n is negative."""
    while n != 0:
        n = n - 1
    return n


@ut.function
def even(n: ut.i64) -> ut.bool:
    if n == 0:
        return True
    return odd(n - 1)


@ut.function
def odd(n: ut.i64) -> ut.bool:
    if n == 0:
        return False
    return even(n - 1)


@ut.function
def halves(x: ut.f64[100], n: ut.i64) -> ut.f64:
    """A tree of arrays."""
    if n <= 1:
        return ut.sum(x)
    return halves(x * 0.5, n - 1) + halves(x + 1.0, n - 2)


@ut.function
def grows(x: ut.f64[None], n: ut.i64) -> ut.f64:
    """A tree of arrays whose lengths only the run knows."""
    if n <= 1:
        return ut.sum(x)
    return grows(ut.concat([x, x[:1]]), n - 1) + grows(x * 2.0, n - 2)


@ut.function
def invert(n: ut.i64, k: ut.i64) -> ut.i64:
    """Divides by zero in one leaf of many."""
    if n == 0:
        return 100 // (k - 21)
    return invert(n - 1, 2 * k) + invert(n - 1, 2 * k + 1)


@ut.function
def swap_down(x: ut.i64, y: ut.i64) -> ut.i64:
    """The classic: its second argument is never needed, and never ends."""
    return 1 if x <= 1 else swap_down(x - 1, swap_down(x, y))


# --------------------------------------------------------------------------------------------------------------
# With derivatives

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
def climb(w: ut.f64, n: ut.i64) -> ut.f64:
    total = 0.0
    for k in range(n):
        total += climb(w, k) * w + 1.0
    return total


@ut.function
def climbs(a: ut.f64, b: ut.f64, n: ut.i64) -> ut.f64:
    return climb(a, n) - climb(b, n)


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
