"""Python's own functions, and what it asks of values, where these are known only at run time."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def kinds(x):
    found = 0
    for number, kind in enumerate((int, float, bool, np.ndarray, numbers.Integral, numbers.Real, Iterable, list | str)):
        if isinstance(x, kind):
            found += 2**number
    if isinstance(x, (int, float, np.floating)) and not isinstance(x, bool):
        found += 1000
    if type(x) is float or callable(x) or hasattr(x, "__len__"):
        found += 2000
    if x.__class__ is int or x.__class__.__name__ == "ndarray":
        found += 8000
    return found + getattr(x, "nothing", 4000)


@ut.function
def members(n: ut.i64) -> ut.i64:
    if n in (0, 1, "two", None):
        return 1
    score = 0
    if n in range(0, 100, 3):
        score += 10
    if n not in {4, 5, 6} and n in np.array([2, 7, 9]):
        score += 100
    if n in {8: "eight", 11: "eleven"} or n in range(n - 1, n):
        score += 1000
    if n == "text" or n is None or n == None:  # noqa: E711
        score += 10000
    return score + members(n // 2)


@ut.function
def rounded(x: ut.f64, n: ut.i64):
    whole = round(n, -1) + round(n, 3) + round(x) + math.floor(x) + int(x)
    return round(x, 2), round(x, -1), round(x, 0), whole


@ut.function
def extremes(xs: ut.f64[4], n: ut.i64):
    best = max(xs, key=lambda x: -((x - 2) ** 2))
    first = min(range(4), key=lambda i: xs[i])
    return best, first, max([n, 3], default=0), max([], default=n), min(x * x for x in xs), sum(xs, 10.0)


@ut.function
def ordered(xs: ut.f64[4], n: ut.i64):
    return sorted(xs), sorted([n, 3, n - 1], reverse=True), any(x > 2 for x in xs), all([n, 1, xs[0]])


class Version(NamedTuple):
    major: int
    minor: int


@ut.function
def newest(n: ut.i64, xs: ut.f64[3]):
    this, that = Version(n, 2), Version(3, n)
    if this == that:
        return math.prod(xs), 0
    order = 10 * (this < that) + (this >= (3, 2)) + 100 * (that == (3, 4)) + 1000 * (this != that)
    return math.prod([n, *xs], start=2) + math.prod(x for x in xs if x > 0), order


@ut.function
def told(n: ut.i64, x: ut.f64) -> ut.i64:
    print("n is " + str(n), [n, x], (x,), {"n": n}, "{:>6.2f}|{}".format(x, n), sep=" / ")  # noqa: UP032
    print(", ".join(str(k * n) for k in range(3)), format(x, ".1f"), repr(n))
    return 0 if n == 0 else told(n - 1, x / 2)


@ut.function
def labelled(n: ut.i64, x: ut.f64):
    label = f"{x:.3f} of {n}"
    return {"label": label, "value": x, "more": [str(n), "-"]}


@ut.function
def positive_only(n: ut.i64) -> ut.i64:
    if n < 0:
        raise ValueError(f"{n} is negative")
    if n > 3:
        return positive_only(n - 3) + 1
    return (n if n != 2 else wrong(n)) + positive_only(n - 3)


def wrong(n):
    raise KeyError(n)


@ut.function
def searched(n: ut.i64) -> ut.i64:
    for i in range(n):
        if i * i == n:
            return i
        if i * i > n:
            raise LookupError("no square")
    return -1


@ut.function
def parts_of(n: ut.i64) -> ut.i64:
    return 12 // (n - 3) + (0 if n == 0 else parts_of(n - 1))


@ut.function
def converted(x: ut.f64) -> ut.i64:
    return int(x * math.inf) if x > 100 else converted(x * x)


@ut.function
def reduced_within(x: ut.f64[None], best: float, total: int):
    """What stands in a generator may be called as whatever goes over it."""
    sums = sum(sum(x) * y for y in x) + sum(math.prod(y + z for z in x) for y in x)
    extremes = max(best * y + total for y in x), min((best - y for y in x), default=0.5)
    return sums, extremes, max(any(y > z for z in x) for y in x), math.prod(math.prod(x) + y for y in x), math.prod(x)


@ut.function
def sum_of_rows(rows: list[list[float]]) -> float:
    return sum(sum(row) for row in rows) + max((max(row, default=0.0) for row in rows), default=-1.0)


PROGRAMS = [
    program(kinds, (3,), (2.5,), (True,), (np.ones(2),), (np.ones((2, 2), np.float32),), tags="branch"),
    program(members, (100,), (77,), (0,), tags="recursive branch"),
    program(rounded, (2.675, 25), (-1234.565, -15), (0.5, 7), tags="branch"),
    program(extremes, (np.array([3.0, 1.5, -0.5, 2.5]), 7), (np.array([1.0, 1.0, 5.0, 0.0]), -7), tags="arrays"),
    program(ordered, (np.array([3.0, 1.5, -0.5, 2.5]), 7), (np.zeros(4), 0), tags="arrays"),
    program(newest, (2, np.array([3.0, 1.5, -0.5])), (4, np.ones(3)), (3, np.zeros(3)), tags="branch"),
    program(reduced_within, (np.array([3.0, 1.5, -0.5]), 2.5, 7), (np.array([1.0]), -0.5, 2), tags="arrays"),
    program(sum_of_rows, ([[1.0], [2.0, 3.0], []],), ([],), tags="containers"),
    program(told, (3, 10.0), tags="recursive effects"),
    program(labelled, (3, 0.5), tags="containers"),
    program(positive_only, (9,), (11,), (0,), tags="recursive fault effects"),
    program(searched, (16,), (1,), tags="loop effects"),
    program(searched, (17,), name="searched_in_vain", tags="loop fault effects"),
    program(parts_of, (5,), tags="recursive fault"),
    program(converted, (2.0,), tags="recursive fault"),
]
