"""Small recursive functions that many tests run: of numbers and arrays, endless, failing, lazy."""

from __future__ import annotations

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


@ut.function
def climb(w: ut.f64, n: ut.i64) -> ut.f64:
    total = 0.0
    for k in range(n):
        total += climb(w, k) * w + 1.0
    return total


@ut.function
def climbs(a: ut.f64, b: ut.f64, n: ut.i64) -> ut.f64:
    return climb(a, n) - climb(b, n)
