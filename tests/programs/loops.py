"""Loops: with calls inside, inside calls, nested, left early."""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def sum_to(n: ut.i64) -> ut.i64:
    total, k = 0, 1
    while k <= n:
        total += k
        k += 1
    return total


@ut.function
def catalan(n: ut.i64) -> ut.i64:
    """Calls inside a loop."""
    if n <= 1:
        return 1
    total = 0
    for k in range(n):
        total += catalan(k) * catalan(n - 1 - k)
    return total


@ut.function
def countdown(n: ut.i64, x: ut.f64) -> ut.f64:
    """A loop inside a call, before and after the recursive one."""
    if n == 0:
        return x
    k = 0
    while k < n:
        x = x * 1.5 - k
        k += 1
    y = countdown(n - 1, x / 4.0)
    for j in range(1, n + 1):
        y = y + 1.0 / j
    return y


@ut.function
def partitions(n: ut.i64, most: ut.i64) -> ut.i64:
    """A loop with calls, in a function with a base case that returns out of the middle."""
    if n == 0:
        return 1
    total = 0
    part = 1
    while part <= most:
        if part > n:
            break
        total += partitions(n - part, part)
        part += 1
    return total


@ut.function
def triangle(n: ut.i64) -> ut.i64:
    """Nested loops; the inner one depends on the outer one's variable."""
    total = 0
    for i in range(n):
        for j in range(i + 1):
            if (i + j) % 3 == 0:
                continue
            total += i * j + 1
    return total


@ut.function
def find_pair(n: ut.i64, target: ut.i64) -> tuple[ut.i64, ut.i64]:
    """`return` out of two loops."""
    for a in range(1, n):
        b = a
        while b < n:
            if a * b == target:
                return a, b
            b += 1
    return -1, -1


@ut.function
def left_in_every_way(n: ut.i64) -> ut.i64:
    total = 0
    k = 0
    while True:
        k += 1
        if k > n:
            break
        if k % 4 == 1:
            continue
        if total > 40:
            if k % 2 == 0:
                return total * 1000 + k
            total -= 9
            continue
        total += k
    return -total


@ut.function
def steps(start: ut.i64, stop: ut.i64, step: ut.i64) -> ut.i64:
    """range with traced bounds and a traced step, up or down."""
    found = 0
    for k in range(start, stop, step):
        found = found * 10 + k
    return found


@ut.function
def every_third(n: ut.i64) -> ut.i64:
    total = 0
    for k in range(n, 0, -3):
        total = total * 7 % 1009 + k
    return total


@ut.function
def call_in_condition(n: ut.i64) -> ut.i64:
    """The test of a loop may call, too."""
    k = 0
    while k < 5 and half(k + n) < n:
        k += 1
    return k


@ut.function
def half(n: ut.i64) -> ut.i64:
    return 0 if n <= 1 else 1 + half(n - 2)


@ut.function
def loop_in_branch(n: ut.i64) -> ut.i64:
    """A loop that runs on one side only, and a branch that depends on what it made."""
    total = n
    if n % 2 == 0:
        k = n
        while k > 0:
            total += k
            k -= 2
    else:
        for k in range(n):
            total -= k
    if total > 10:
        return loop_in_branch(n - 3) + total
    return total


@ut.function
def calls_in_nested_loops(n: ut.i64) -> ut.i64:
    if n <= 0:
        return 1
    total = 0
    for i in range(n):
        k = i
        while k > 0:
            total += calls_in_nested_loops(k - 2) + i
            k -= 1
        if total > 30:
            return total
    return total + 1


@ut.function
def shapes_of_variables(n: ut.i64) -> tuple[ut.f64, ut.i64, ut.bool]:
    """Variables of several dtypes and a tuple; a Python number that becomes a float in the loop."""
    x, flag = 0, False
    pair = (1, 2)
    for k in range(n):
        x = x + k / 2.0
        flag = not flag
        pair = (pair[1], pair[0] + k)
    return x, pair[0] * 100 + pair[1], flag


@ut.function
def explicit_while(n: ut.i64) -> tuple[ut.i64, ut.f64]:
    def go_on(state):
        return state[0] > 0

    def step(state):
        k, x = state
        return k - 1, x + ut.sqrt(x + 1.0)

    return ut.while_loop(go_on, step, (n, 0.5))


@ut.function
def recursive_while_loop(n: ut.i64) -> ut.i64:
    """`ut.while_loop` whose body calls the function that it stands in."""
    if n < 2:
        return 1
    state = ut.while_loop(
        lambda s: s["k"] < n, lambda s: {"k": s["k"] * 2, "sum": s["sum"] + recursive_while_loop(n // 3)},
        {"k": 1, "sum": 0},
    )  # fmt: skip
    return state["sum"] + state["k"]


@ut.function
def unrolled(n: ut.i64) -> ut.i64:
    """Loops that Python runs, left on a traced condition."""
    total = 0
    for k in range(4):
        if n > k * 2:
            total += k
        else:
            total -= 1
            break
        total += 10
    for step in (1, 2, 3):
        if (n + step) % 3 == 0:
            return total * 10 + step
    return total


@ut.function
def while_true_traced(n: ut.i64) -> ut.i64:
    """`while True` left by a traced `break` behind statements that Python could run."""
    count, limit = 0, 1
    while True:
        limit = limit * 2
        if n < limit:
            break
        count += 1
    return count


@ut.function
def dot(x: ut.f64[None], y: ut.f64[None]) -> ut.f64:
    """`zip` with `strict` raises where one ends before the other: not if a `break` comes first."""
    total = 0.0
    for a, b in zip(x, y, strict=True):
        if a > 9.0:
            break
        total += a * b
    return total


@ut.function
def dots(x: list[float], y: ut.f64[None], n: ut.i64) -> ut.f64:
    if n == 0:
        return dot(y, y)
    return sum(a * b * dots(x, y, n - 1) for a, b, _ in zip(x, y, reversed(x), strict=True))


@ut.function
def unequal(x: list[float], y: ut.f64[None]):
    return dots(x, y, 2)


PROGRAMS = [
    program(sum_to, (0,), (1,), (10,), tags="loop"),
    program(catalan, (0,), (3,), (5,), tags="loop recursive"),
    program(countdown, (0, 1.0), (5, 2.0), tags="loop recursive"),
    program(partitions, (0, 0), (6, 6), (7, 3), tags="loop recursive"),
    program(triangle, (0,), (1,), (7,), tags="loop"),
    program(find_pair, (1, 1), (9, 35), (7, 11), tags="loop branch"),
    program(left_in_every_way, (0,), (6,), (30,), tags="loop branch"),
    program(steps, (0, 5, 1), (0, 9, 4), (5, 0, -2), (3, 3, 1), tags="loop"),
    program(every_third, (0,), (10,), tags="loop"),
    program(call_in_condition, (0,), (3,), (20,), tags="loop recursive"),
    program(loop_in_branch, (0,), (7,), (8,), (12,), tags="loop branch recursive"),
    program(calls_in_nested_loops, (0,), (3,), (6,), tags="loop recursive"),
    program(shapes_of_variables, (0,), (5,), tags="loop containers"),
    program(explicit_while, (0,), (4,), tags="loop containers"),
    program(recursive_while_loop, (1,), (13,), tags="loop recursive closure containers"),
    program(unrolled, *((n,) for n in range(9)), tags="loop branch"),
    program(while_true_traced, (0,), (1,), (1000,), tags="loop branch"),
    program(dot, (np.ones(3), np.arange(3.0)), (np.array([1.0, 10.0]), np.ones(5)), tags="loop arrays"),
    program(dots, ([1.0, 2.0], np.array([3.0, 4.0]), 2), ([], np.ones(0), 1), tags="loop arrays recursive containers"),
    program(unequal, ([1.0, 2.0], np.ones(3)), ([1.0], np.ones(0)), tags="loop arrays fault recursive containers"),
]
