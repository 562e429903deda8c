"""Dicts, objects and lists of them that a loop changes, though they were made before it."""

from dataclasses import dataclass

import numpy as np
from tests.programs.program import program

import undertow as ut


@dataclass
class Ball:
    x: ut.f64
    v: ut.f64


class Generator:
    """A linear congruential generator: its state is an attribute."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 1103515245 + 12345) % 2147483648
        return self.state / 2147483648


class Bank:
    def __init__(self):
        self.balance = [0, 0, 0]
        self.log = []
        self.count = 0

    def move(self, a, b, x):
        self.balance[a] -= x
        self.balance[b] += x
        self.log.append((a, b))
        self.count += 1


@ut.function
def dicts(n: ut.i64):
    d = {"x": 1, "y": 2.5, "held": [1, 2], "inside": {"a": 0}, "name": "d", "pair": (0, 0)}
    same = d
    for i in range(n):
        d["x"] += i
        if i % 2:
            same["y"] *= 2
        d["held"][0] += 1
        for j in range(i):
            d["inside"]["a"] += j
            if j == 2:
                break
        x, y = d["pair"]
        d["pair"] = (x + 1, y - i)
    return d, same


@ut.function
def left_with_state(n: ut.i64):
    d = {"a": 0}
    for i in range(n):
        if i == 3:
            return d, i
        d["a"] += i
    else:
        d["a"] = -1
    return d, -1


def noted(d, i):
    d["a"] += i
    if i == 3:
        return d
    d["b"] = d["a"]
    return d


@ut.function
def by_helpers(n: ut.i64):
    d, stats = {"a": 0, "b": 1}, {"calls": 0}

    def square(k):
        stats["calls"] += 1
        return k * k

    for i in range(n):
        noted(d, i)["a"] += 1
    return d, stats, sum(square(k) for k in range(n)), [square(k) for k in range(n)]


@ut.function
def under_conditions(n: ut.i64):
    d = {"x": 0, "is_done": False}
    if n > 2:
        for i in range(n):
            d["x"] += i
        if n > 4:
            return d
    while not d["is_done"]:
        d["x"] += 100
        d["is_done"] = d["x"] > n
    return d


@ut.function
def objects_in_loops(n: ut.i64):
    balls = [Ball(0.0, 1.0), Ball(5.0, -2.0)]
    numbers, bank, hits = Generator(42), Bank(), 0
    for k in range(n):
        for ball in balls:
            ball.x += ball.v * 0.1
            if ball.x < 0 or ball.x > 5:
                ball.v = -ball.v
        if numbers.next() ** 2 + numbers.next() ** 2 < 1:
            hits += 1
        bank.move(k % 3, (k + 1) % 3, k)
    return balls, hits, numbers.state, bank.balance, bank.log, bank.count


@ut.function
def arrays_in_dicts(n: ut.i64):
    d = {"a": np.zeros(2), "b": np.ones(2), "k": 0}
    a = d["a"]
    for i in range(n):
        d["a"][0] += i
        d["b"] = d["b"] + i
        d["b"][1] = 7
        d["k"] += 1
    return d, a


@ut.function
def momentum(x: ut.f64, n: ut.i64) -> ut.f64:
    state = {"w": x, "m": 0.0}
    for _ in range(n):
        state["m"] = 0.9 * state["m"] + 2 * state["w"]
        state["w"] = state["w"] - 0.1 * state["m"]
    return state["w"]


@ut.function
def in_recursion(n: ut.i64) -> ut.i64:
    if n <= 0:
        return 1
    d = {"total": 0}
    for k in range(n):
        d["total"] += in_recursion(k)
    return d["total"]


@ut.function
def rows_at_run_time(n: ut.i64):
    """A row of a list that was written out, chosen at run time, changes."""
    board = [[0, 0], [0, 0]]

    def visit(i, j):
        if board[i][j] > 1:
            return False
        board[i][j] += 1
        return True

    visited = 0
    for i in range(n):
        if visit(i % 2, 0):
            visited += 1
    return board, visited


def merge(a, lo, mid, hi):
    left, right = a[lo:mid], a[mid:hi]
    i = j = 0
    for k in range(lo, hi):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            a[k] = left[i]
            i += 1
        else:
            a[k] = right[j]
            j += 1


@ut.function
def sort_part(a, lo: ut.i64, hi: ut.i64):
    if hi - lo > 1:
        mid = (lo + hi) // 2
        sort_part(a, lo, mid)
        sort_part(a, mid, hi)
        merge(a, lo, mid, hi)


@ut.function
def merge_sort_by_slices(a):
    """Slices at run time of a list that was no list of run-time length."""
    sort_part(a, 0, len(a))
    return a


@ut.function
def filtered(x):
    """Which of the items stay is known only at run time."""
    return list(filter(lambda v: v > 1, x)), sum(filter(None, x)), sorted(filter(lambda v: v < 3, x))


@ut.function
def first_in_a_loop(x: ut.f64, n: ut.i64):
    """Variables that a loop assigns first, and that are read after it."""
    for i in range(n):
        value = x * i
        pair = i, value
    residual = value
    while n > 1:
        rest = n % 2
        n //= 2
        if rest == 1:
            break
    return value, pair, residual + rest


@ut.function
def assigned_by_no_round(n: ut.i64) -> ut.f64:
    for i in range(n):
        if i == 3:
            break
        half = i * 0.5
    return half


PROGRAMS = [
    program(first_in_a_loop, (1.5, 4), tags="loop gradient"),
    program(assigned_by_no_round, (3,), (9,), tags="loop"),
    program(assigned_by_no_round, (0,), tags="loop fault", name="assigned_by_no_round_at_all"),
    program(dicts, (0,), (6,), tags="containers loop"),
    program(left_with_state, (2,), (6,), tags="containers loop"),
    program(by_helpers, (1,), (6,), tags="containers loop"),
    program(under_conditions, (1,), (4,), (6,), tags="containers loop"),
    program(objects_in_loops, (0,), (9,), tags="containers loop"),
    program(arrays_in_dicts, (0,), (3,), tags="containers loop arrays"),
    program(momentum, (2.0, 3), tags="containers loop gradient"),
    program(in_recursion, (5,), tags="containers loop recursive"),
    program(rows_at_run_time, (1,), (7,), tags="containers loop"),
    program(merge_sort_by_slices, ([3, 1, 2, 5, 4],), tags="containers recursive"),
    program(filtered, ([3, 1, 2, 0],), tags="containers"),
]
