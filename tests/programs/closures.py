"""Helpers, closures over traced values, methods, arguments by name and with defaults."""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def inline_closure(n: ut.i64, x: ut.f64) -> ut.f64:
    """A helper that is no ut.function is captured where it is called, and sees the variables around it."""
    scale = x * 2.0

    def shift(y, by=1.0):
        return y * scale + by

    x = shift(x)
    scale = scale + 1.0
    if n > 0:
        return inline_closure(n - 1, shift(x, by=0.5) / 10.0)
    return shift(x)


@ut.function
def lifted_closure(n: ut.i64, bonus: ut.i64) -> ut.i64:
    """A recursive function inside another: what it uses of the outer one becomes a hidden argument."""
    limit = n // 2

    @ut.function
    def climb(k: ut.i64) -> ut.i64:
        if k >= limit:
            return bonus
        return climb(k + 1) + k * n

    return climb(0) + (climb(limit - 1) if n > 2 else 0)


@ut.function
def closure_rebound(n: ut.i64) -> ut.i64:
    """A closure sees the value that its variable has when it is called."""
    x = n

    @ut.function
    def add(k: ut.i64) -> ut.i64:
        return k + x

    first = add(1)
    x = x * 100
    return first * 1_000_000 + add(1)


@ut.function
def closure_in_loop(n: ut.i64) -> ut.i64:
    """A function that is made once and called in each iteration, with a variable of the loop."""
    factor = n + 1
    total = 0
    k = 0

    @ut.function
    def weigh(depth: ut.i64) -> ut.i64:
        return 1 if depth <= 0 else weigh(depth - 1) * factor + k

    while k < n:
        total += weigh(k)
        k += 1
    return total


@ut.function
def two_levels(n: ut.i64, x: ut.f64) -> ut.f64:
    """Functions in functions in functions, all of which use what is furthest out."""

    @ut.function
    def middle(m: ut.i64) -> ut.f64:
        y = x + m

        @ut.function
        def inner(k: ut.i64) -> ut.f64:
            return y * x if k <= 0 else inner(k - 1) + y

        return inner(2) if m <= 0 else middle(m - 1) + inner(m)

    return middle(n)


class Polynomial:
    """An ordinary object whose method is a recursive function."""

    def __init__(self, coefficients, shift):
        self.coefficients = np.asarray(coefficients)
        self.shift = shift

    @ut.function
    def at(self, x: ut.f64, k: ut.i64 = 0) -> ut.f64:
        if k == len(self.coefficients):
            return 0.0
        return self.coefficients[k] + (x + self.shift) * self.at(x, k + 1)

    def twice(self, x):
        return self.at(self.at(x))


POLYNOMIAL = Polynomial([1.0, -0.5, 0.25], 0.125)


@ut.function
def calls_method(x: ut.f64) -> ut.f64:
    return POLYNOMIAL.twice(x) + POLYNOMIAL.at(x, k=1)


@ut.function
def keywords(n: ut.i64, *more: ut.i64, step: ut.i64 = 2, **named: ut.i64) -> ut.i64:
    """Every kind of argument."""
    total = n + sum(more) + named.get("extra", 0)
    if n <= 0:
        return total
    return total + keywords(n - step, total, step=step + 1, extra=n)


@ut.function
def higher_order(n: ut.i64) -> ut.i64:
    """Functions as values: decided at capture."""
    add_n = partial(lambda a, b: a + b, n)
    powers = [compose(add_n, lambda v, k=k: v * k) for k in range(3)]
    return reduce(lambda a, f: a * 2 + f(n), powers, 0)


def compose(f, g):
    return lambda v: f(g(v))


@ut.function
def deep_helpers(n: ut.i64) -> ut.i64:
    """Python recursion that does not depend on traced values unrolls."""
    return tower(n, 5) if n > 0 else tower(-n, 3)


def tower(x, height):
    return x if height == 0 else x + tower(x * 2, height - 1)


@ut.function
def recursive_result_of_helper(n: ut.i64) -> ut.i64:
    """Helpers with early returns and loops of their own, that call back."""
    return clamp(walk(n), 3, 1000)


def clamp(x, low, high):
    if x < low:
        return low
    if x > high:
        return high
    return x


def walk(n):
    total = n
    while total < 20:
        total = total * 2 + 1
        if total % 5 == 0:
            return recursive_result_of_helper(total // 5 + 6) + total
    return total


PROGRAMS = [
    program(inline_closure, (0, 1.0), (3, 2.0), tags="closure recursive"),
    program(lifted_closure, (0, 3), (9, 2), tags="closure recursive"),
    program(closure_rebound, (3,), tags="closure"),
    program(closure_in_loop, (0,), (4,), tags="closure loop recursive"),
    program(two_levels, (0, 1.5), (3, 0.5), tags="closure recursive"),
    program(POLYNOMIAL.at, (2.0,), (2.0, 2), name="method", tags="closure recursive arrays"),
    program(calls_method, (0.5,), tags="closure recursive arrays"),
    program(keywords, (0,), (5,), (6, 1, 2), tags="closure recursive"),
    program(higher_order, (3,), tags="closure"),
    program(deep_helpers, (4,), (-4,), tags="closure branch"),
    program(recursive_result_of_helper, *((n,) for n in range(1, 12)), tags="closure loop recursive"),
]
