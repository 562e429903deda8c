"""Dicts and dataclasses that are handed to captured functions, which change or return them, as their caller sees."""

from dataclasses import dataclass

import numpy as np
from tests.programs.program import program

import undertow as ut


@dataclass
class Tally:
    count: int
    best: int


@dataclass(slots=True)
class Slotted:
    width: float
    items: list


@ut.function
def count_down(d, i: ut.i64):
    d["sum"] = d["sum"] + i
    d["inside"]["last"] = i
    if i > 0:
        count_down(d, i - 1)


@ut.function
def a_dict(n: ut.i64):
    d = {"sum": 0, "inside": {"last": -1}, "name": "d"}
    inside = d["inside"]
    for k in range(n):
        count_down(d, k)
    if n > 2:
        count_down(d, n)
        return d, inside
    inside["last"] = 50
    return d, inside


@ut.function
def walk(n: ut.i64, tally: Tally):
    tally.count += 1
    if n * 7 % 11 > tally.best:
        tally.best = n * 7 % 11
    if n > 0:
        walk(n - 1, tally)
        walk(n // 2, tally)


@ut.function
def a_dataclass(n: ut.i64):
    tally = Tally(0, -1)
    walk(n, tally)
    return tally


@ut.function
def even(n: ut.i64, d):
    d["even"] += 1
    if n > 0:
        odd(n - 1, d)


@ut.function
def odd(n: ut.i64, d):
    d["odd"] += 1
    if n > 0:
        even(n - 1, d)


@ut.function
def mutual(n: ut.i64):
    d = {"even": 0, "odd": 0}
    even(n, d)
    return d


@ut.function
def fib(n: ut.i64, stats) -> ut.i64:
    stats["calls"] += 1
    return n if n < 2 else fib(n - 1, stats) + fib(n - 2, stats)


@ut.function
def counted(n: ut.i64):
    stats = {"calls": 0}
    return fib(n, stats), stats


@ut.function
def swap(a, b):
    a["x"], b["x"] = b["x"] + 1, a["x"]


@ut.function
def two_dicts(n: ut.i64):
    d, e = {"x": n}, {"x": 2}
    swap(d, e)
    swap(e, d)
    return d, e


@ut.function
def arrays(d, n: ut.i64):
    d["a"][0] += n
    d["b"] = d["b"] * 2
    d["k"] += 1


@ut.function
def arrays_in_a_dict(n: ut.i64):
    d = {"a": np.zeros(2), "b": np.ones(3), "k": 0}
    arrays(d, n)
    arrays(d, n)
    return d


@ut.function
def step(state, k):
    state["x"] += k
    return state


@ut.function
def pair(state, k):
    return state, k


@ut.function
def returned(n: ut.i64):
    """What a function returns is the caller's own container."""
    state = {"x": 0.5}
    for k in range(n):
        state = step(state, k)
        state["x"] += 1
    same, k = pair(state, n)
    same["x"] *= 2
    items = [1, 2]
    others, _ = pair(items, n)
    others[0] = n
    return state, same, items, others


@ut.function
def outermost(d, n: ut.i64):
    count_down(d, n)
    return d


@ut.function
def descend(p, x: ut.f64, n: ut.i64):
    p["w"] = p["w"] * x + p["b"]
    if n > 0:
        descend(p, x, n - 1)


@ut.function
def through_a_dict(x: ut.f64, n: ut.i64) -> ut.f64:
    p = {"w": x, "b": 1.0}
    descend(p, x, n)
    return p["w"]


@ut.function
def area(box):
    box.items[0] += 1
    return box.width * box.items[0]


@ut.function
def without_dict(n: ut.i64):
    """A dataclass with slots has no `__dict__`."""
    box = Slotted(0.5, [n])
    area(box)
    return area(box), box


PROGRAMS = [
    program(a_dict, (1,), (4,), tags="recursive containers loop"),
    program(a_dataclass, (5,), tags="recursive containers"),
    program(mutual, (5,), tags="mutual containers"),
    program(counted, (7,), tags="recursive containers"),
    program(two_dicts, (7,), tags="containers"),
    program(arrays_in_a_dict, (7,), tags="containers arrays"),
    program(returned, (3,), tags="containers loop abandons"),
    program(without_dict, (3,), tags="containers"),
    program(outermost, ({"sum": 1, "inside": {"last": 0}}, 3), tags="recursive containers"),
    program(through_a_dict, (1.5, 3), tags="recursive containers gradient"),
]
