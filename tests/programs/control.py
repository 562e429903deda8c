"""Control flow as Python has it: `else` of loops, `match`, reductions over as many items as the run has."""

# ruff: noqa: B905 - zip() of different lengths

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def smallest_factor(n: ut.i64) -> ut.i64:
    """The variable of a loop that was left early, after it."""
    for k in range(2, n):
        if n % k == 0:
            break
    else:
        return -n
    return k


@ut.function
def primes_below(n: ut.i64) -> ut.i64:
    """`else`, `break` and `continue` of both loops, each in the other."""
    total = 0
    for a in range(2, n):
        for b in range(2, a):
            if a % b == 0:
                break
        else:
            total += a
            if a > 50:
                break
            continue
        total += 1000
    else:
        total = -total
    return total


@ut.function
def while_else(n: ut.i64) -> ut.i64:
    k = 0
    while k < n:
        k += 1
        if k * k == n:
            k += 100
            break
        if k == 13:
            return 7
    else:
        k -= 1000
    return k


@ut.function
def told_one_less(n: ut.i64) -> ut.i64:
    print("from", n)
    return n - 1


@ut.function
def while_else_that_acts(n: ut.i64) -> ut.i64:
    """The test prints and assigns."""
    m, r = n, 0
    while (m := told_one_less(m)) > 0:
        if m == 3 and n > 6:
            r = 5
            break
    else:
        r = -1
    return r * 100 + m


@ut.function
def else_without_break(n: ut.i64) -> ut.i64:
    t = 0
    for k in range(n):
        t += k
    else:
        t += 1000
    while t > 1000:
        t -= 7
    else:
        t += 3
    return t if n < 3 else t + else_without_break(n - 2)


@ut.function
def else_of_an_array(xs: ut.f64[None]) -> ut.f64:
    best = -1.0
    for x in xs:
        if x < 0:
            best = x
            break
        best = max(best, x)
    else:
        best += 100
    return best


@ut.function
def last_of_both(xs: ut.f64[None], n: ut.i64) -> ut.f64:
    """Variables of loops are read after them: a fault where the loop has not run."""
    for k in range(n, 20, 3):  # noqa: B007
        pass
    for x in xs:
        if x > 5:
            break
    return x + k


@dataclass
class Point:
    x: ut.f64
    y: ut.f64


@dataclass
class Circle:
    center: Point
    radius: ut.f64


@ut.function
def match_numbers(n: ut.i64) -> ut.i64:
    match n:
        case 0 | 1:
            return 1
        case 2:
            found = 20
        case k if k % 3 == 0:
            found = k * 100
        case k if k > 50:
            return -k
        case "text" | None:
            found = -1
        case int(m) if m % 2 == 0:
            found = m + 7
        case _:
            found = 5
    return found + match_numbers(n // 2)


@ut.function
def match_pairs(a: ut.i64, b: ut.f64):
    match (a, b):
        case (0, y) | (1, y):
            where = y
        case (x, 0.0):
            where = x * 1.0
        case (x, y) if x > y:
            where = x - y
        case [x, *rest]:
            where = rest[0] + len(rest)
    match [a, a + 1, a + 2]:
        case [first, *_, 5]:
            where += first
        case [_, _]:
            where += 1000
    match {"a": a, "b": b, "c": 3}:
        case {"a": 4, **others}:
            where += len(others) + others["b"]
        case {"missing": _}:
            where = -1.0
        case {"b": value, "c": 3}:
            where += value * 10
    return where


@ut.function
def area(shape):
    match shape:
        case Point(x=0.0, y=y):
            return y
        case Point(x, y):
            return x * y
        case Circle(Point(0.0, 0.0) as center, r) if r < 2:
            return 100 + r + center.x
        case Circle(radius=r):
            return 3.0 * r * r
        case _:
            return -1.0


@ut.function
def areas(x: ut.f64, r: ut.f64):
    return area(Point(x, r)), area(Circle(Point(x, 0.0), r)), area(x)


@ut.function
def match_in_a_loop(n: ut.i64) -> ut.i64:
    """A machine with three states."""
    state, steps = 0, 0
    while True:
        steps += 1
        match state, n % 3:
            case 0, 0:
                state = 1
            case 0, _:
                n -= 1
                continue
            case 1, r:
                n, state = n // 2 + r, 2
            case 2, _ if n > 4:
                state = 0
            case _:
                break
    return n * 100 + steps


@ut.function
def catalan_by_sum(n: ut.i64) -> ut.i64:
    return 1 if n <= 1 else sum(catalan_by_sum(k) * catalan_by_sum(n - 1 - k) for k in range(n))


@ut.function
def sums_of_pairs(n: ut.i64, a: ut.i64):
    below = sum(i * j for i in range(n) for j in range(i) if (i + j) % 3 if i > 1)
    last = 0
    squares = sum((last := k * k) for k in range(n, 0, -2))
    return below, squares, last, sum(x for x in (n, a, 3) if x > 2), sum(i * k for i in (1, 2) for k in range(a))


@ut.function
def best_of_many(n: ut.i64):
    first = max((k * 7 % 11 for k in range(n)), default=-5), min((k * 7 % 11 - 2.5 for k in range(1, n)), default=9.0)
    pairs = max((k * 7 % 11, -k) for k in range(n + 1)), min(range(n + 1), key=lambda k: -k * 5 % 7)
    return first, pairs, math.prod(k for k in range(1, n, 2)), max((x for x in [n, 4] if x > 5), default=0)


@ut.function
def best_of_none(n: ut.i64) -> ut.i64:
    return max(k for k in range(n) if k > 5)


@ut.function
def told_sevens(n: ut.i64) -> ut.bool:
    print("is", n)
    return n % 7 == 0


@ut.function
def any_and_all(n: ut.i64):
    """Both stop as soon as they know."""
    some = any(told_sevens(k) for k in range(3, n)), all(not told_sevens(k) for k in range(1, n))
    return (
        some,
        any(i * j == n for i in range(2, n) for j in range(2, n)),
        all(k < 4 for i in range(2) for k in range(n)),
    )


@ut.function
def along_arrays(xs: ut.f64[None], ys: ut.f64[None]):
    total = 0.0
    for i, (x, y) in enumerate(zip(xs, reversed(ys)), 1):
        if y > 7:
            break
        total += i * x * y
    for k, factor in zip(range(len(xs)), [5.0, 6.0, 7.0]):
        total = total * 2 + k * factor
    dots = (
        sum(x * y for x, y in zip(xs, ys)),
        sum(map(lambda x, y: x - y * y, xs, ys)),
        sum(filter(lambda x: x > 2, xs)),
    )
    kept = max((x for x in xs if x > 1), default=0.0), any(x > y for x, y in zip(xs, ys))
    return total, dots, kept, sum(i * x for i, x in enumerate(xs)), sum((x for x in xs), start=10.0)


@ut.function
def sums_of_rows(rows: ut.f64[None, 2]):
    total = sum((row for row in rows), np.zeros(2))
    for a, b in rows:
        total = total + a * b
    return total, sum(a * b for a, b in rows)


@ut.function
def countdown_of_reversed(n: ut.i64) -> ut.i64:
    t = 0
    for k in reversed(range(n, 20, 3)):
        t = t * 31 + k
    return t + (countdown_of_reversed(n + 5) if n < 20 else 0)


PROGRAMS = [
    program(smallest_factor, (2,), (3,), (15,), (49,), (53,), tags="loop branch"),
    program(primes_below, (0,), (3,), (30,), (70,), tags="loop branch"),
    program(while_else, (0,), (2,), (9,), (60,), tags="loop branch"),
    program(while_else_that_acts, (2,), (9,), tags="loop branch effects"),
    program(else_without_break, (0,), (6,), tags="loop recursive"),
    program(else_of_an_array, (np.array([1.0, 3.0]),), (np.array([1.0, -3.0, 9.0]),), tags="loop arrays"),
    program(last_of_both, (np.array([1.0, 7.0, 3.0]), 4), (np.array([1.0]), 5), tags="loop arrays"),
    program(last_of_both, (np.array([1.0]), 30), tags="loop arrays fault", name="last_of_none"),
    program(match_numbers, *((n,) for n in (0, 2, 9, 40, 55)), tags="branch recursive"),
    program(match_pairs, (0, 2.5), (1, 0.5), (3, 0.0), (4, 1.0), (4, 9.0), (7, 8.0), tags="branch containers"),
    program(areas, (0.0, 1.5), (0.0, 3.0), (2.0, 1.0), tags="branch containers"),
    program(catalan_by_sum, (0,), (6,), tags="loop recursive"),
    program(sums_of_pairs, (0, 4), (9, 2), tags="loop branch"),
    program(best_of_many, (0,), (9,), tags="loop branch"),
    program(best_of_none, (3,), tags="loop fault"),
    program(any_and_all, (3,), (9,), (15,), tags="loop effects"),
    program(
        along_arrays,
        (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0, 7.0])),
        (np.array([1.5, 9.0]), np.array([4.0, 8.0])),
        (np.zeros(0), np.zeros(2)),
        tags="loop arrays",
    ),
    program(sums_of_rows, (np.array([[1.0, 2.0], [3.0, 5.0]]),), (np.zeros((0, 2)),), tags="loop arrays"),
    program(countdown_of_reversed, (3,), (25,), tags="loop recursive"),
    program(match_in_a_loop, (0,), (7,), (40,), tags="loop branch"),
]
