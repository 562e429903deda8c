"""The partial calls of Vasilakopoulos' thesis: calls some of whose arguments come later, or never.

Section 3.4: a result comes back as soon as the arguments that it depends on are there. Chapter 4: a function and its
gradient are one extended function, and a call of the function alone is a call that gets no `dy`, or gets it when the
result is known, under the same tag.
"""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def never(n: ut.i64) -> ut.i64:
    """Has a base case that is never met."""
    return 0 if n < 0 else never(n + 1) + 1


# --------------------------------------------------------------------------------------------------------------
# 3.3: the transformation of one function with four call sites


@ut.function
def fib(n: ut.i64) -> ut.i64:
    return 1 if n <= 1 else fib(n - 1) + fib(n - 2)


@ut.function
def fib_twice() -> ut.i64:
    return fib(4) + fib(7)


# --------------------------------------------------------------------------------------------------------------
# 3.4: a function with three arguments and four results


@ut.function
def three_to_four(a: ut.i64, b: ut.i64, c: ut.i64) -> tuple[ut.i64, ut.i64, ut.i64, ut.i64]:
    """One result for each of a, both of a and b, c, and none."""
    return a + 1, a * b, c - 1, 7


@ut.function
def without_the_third(n: ut.i64) -> ut.i64:
    one, two, _, four = three_to_four(n, n + 1, never(n))
    return one + two + four


@ut.function
def without_any(n: ut.i64) -> ut.i64:
    return three_to_four(never(n), never(n + 1), never(n + 2))[3]


@ut.function
def only_the_third(n: ut.i64) -> ut.i64:
    return three_to_four(never(n), never(n), n)[2]


@ut.function
def all_in_one_program(n: ut.i64) -> ut.i64:
    """The same function, called with all of its arguments, with two, with one and with none."""
    return sum(three_to_four(n, n, n)) + without_the_third(n) + without_any(n) + only_the_third(n)


@ut.function
def walk(n: ut.i64, near: ut.i64, far: ut.i64) -> tuple[ut.i64, ut.i64]:
    """Recursive partial calls: what never comes is handed on through all of them."""
    if n == 0:
        return near, far
    below, beyond = walk(n - 1, near + n, far + 1)
    return below * 2, beyond


@ut.function
def near_end_of_walk(n: ut.i64) -> ut.i64:
    return walk(n, 1, never(n))[0]


# --------------------------------------------------------------------------------------------------------------
# 4.3: the exponent function


@ut.function
def exp(x: ut.f64, n: ut.i32) -> ut.f64:
    return 1.0 if n == 0 else x * exp(x, n - 1)


@ut.function
def exp_and_slope(x: ut.f64, n: ut.i32):
    """Each call and its gradient are one activation: the forward part is a partial call, dy comes when y is known."""
    return ut.value_and_grad(exp)(x, n)


@ut.function
def unpaired(x: ut.f64, n: ut.i32) -> ut.f64:
    """4.2: a call without a gradient is a call of the extended function that never gets its dy."""
    return exp(x, n) * ut.grad(exp)(x, n + 1)


@ut.function
def late_cotangent(x: ut.f64, n: ut.i32) -> ut.f64:
    """The argument dy depends on a result of the very call that it is for."""
    y, back = ut.vjp(lambda x: exp(x, n), x)
    (dx,) = back(y * y)
    return dx


@ut.function
def tree(x: ut.f64, n: ut.i32) -> ut.f64:
    """Overlapping calls: the dy of each call is made of the result of the other."""
    return x if n <= 1 else tree(x, n - 1) * ut.sin(tree(x, n - 2))


@ut.function
def tree_slope(x: ut.f64, n: ut.i32) -> ut.f64:
    return ut.grad(tree)(x, n)


def _tree(x: complex, n: int) -> complex:
    return x if n <= 1 else _tree(x, n - 1) * np.sin(_tree(x, n - 2))


@ut.function
def unmet(x: ut.f64, n: ut.i32) -> ut.f64:
    """The gradient of one result of a call whose other argument never comes."""
    return ut.grad(lambda x: pair(x, ut.astype(never(1), ut.f64))[0])(x) + exp(x, n)


@ut.function
def pair(x: ut.f64, y: ut.f64) -> tuple[ut.f64, ut.f64]:
    return x * x, y * x


PROGRAMS = [
    program(fib_twice, (), stated=[5 + 21]),
    program(without_the_third, (3,), stated=[4 + 12 + 7]),
    program(without_any, (3,), stated=[7]),
    program(only_the_third, (3,), stated=[2]),
    program(all_in_one_program, (3,), stated=[4 + 9 + 2 + 7 + 23 + 7 + 2]),
    program(near_end_of_walk, (3,), stated=[8 * (1 + 3 + 2 + 1)]),
    program(exp_and_slope, (3.0, 1), (2.0, 5), (3.0, 0), tags="gradient recursive",
            stated=[(3.0, 1.0), (32.0, 80.0), (1.0, 0.0)]),
    program(unpaired, (2.0, 3), tags="gradient recursive", stated=[8.0 * 32.0]),
    program(late_cotangent, (2.0, 3), tags="gradient recursive", stated=[64.0 * 12.0]),
    program(tree_slope, (0.9, 6), (0.9, 1), tags="gradient recursive",
            stated=[_tree(0.9 + 1e-30j, 6).imag / 1e-30, 1.0]),
    program(unmet, (2.0, 3), tags="gradient recursive", stated=[4.0 + 8.0]),
]  # fmt: skip
