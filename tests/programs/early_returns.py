"""What has changed when a function returns on one of its paths: lists, dicts, sets and objects, the caller's too."""

from dataclasses import dataclass

import numpy as np
from tests.programs.program import program

import undertow as ut


@dataclass
class Box:
    x: float
    held: list


class Stack:
    """A plain class, whose method may do nothing."""

    def __init__(self):
        self.items = []
        self.size = 0

    def push(self, x):
        if x < 0:
            return False
        self.items.append(x)
        self.size += 1
        return True


@ut.function
def grown_after(n: ut.i64):
    log = [0]
    if n > 3:
        return log
    log.append(n)
    log[0] = 50
    return log


@ut.function
def changed_after(n: ut.i64):
    state = {"a": 1, "b": [1, 2]}
    box = Box(1.0, [1])
    held = (box, state)
    if n > 3:
        return held
    state["a"] = n
    box.x = 2.0
    if n > 2:
        return held
    state["b"][0] = 9
    box.held[0] = 7
    return held


@ut.function
def nested_ways_out(n: ut.i64):
    a = [1, 2]
    if n > 1:
        if n > 3:
            return a
        a[0] = 5
        if n > 2:
            return a
    a[1] = 7
    return a


@ut.function
def kept_by_finally(n: ut.i64):
    log = []
    try:
        if n > 3:
            return n, log
        log.append(1)
    finally:
        log.append(2)
    return -n, log


def set_first(items, n):
    """A helper that changes the list of its caller, or returns before."""
    if n > 3:
        return items
    items[0] = 9
    return items


def add(table, n):
    if n < 0:
        raise ValueError("negative")
    if n == 0:
        return
    table["x"] += n
    if n == 1:
        return
    table["y"] = table["x"]


def fill(board, n):
    if n == 0:
        return True
    board[0][1] = n
    if n > 3:
        board[1][0] = 7
        return False
    return True


@ut.function
def of_the_caller(n: ut.i64):
    items, table, board, stack = [1, 2], {"x": 1, "y": 2}, [[0, 1], [2, 3]], Stack()
    same = set_first(items, n)
    same[1] = 5
    add(table, n)
    add(table, 1)
    is_done = fill(board, n)
    pushed = stack.push(n - 2), stack.push(n)

    def inner():
        if n > 2:
            return items[0]
        items[0] += 1
        return -1

    return inner(), items, table, board, is_done, pushed, stack.items, stack.size


@ut.function
def in_a_loop(n: ut.i64):
    table = {"x": 1}
    for i in range(3):
        if n == i + 3:
            return table, i
        table["x"] += n
    return table, -1


def first_of(items, n):
    for i in range(n):
        if i == 2:
            return items
        items[0] += i
    items[1] = -1
    return items


@ut.function
def from_a_loop_of_the_run(n: ut.i64):
    items = [1, 2]
    return first_of(items, n), items


@ut.function
def by_match(n: ut.i64):
    a, x = [1, 2], np.zeros(2)
    match n:
        case 1:
            return a, x
        case 2:
            a[0] = 4
            x[1] = 3
            return a, x
    a[1] = 5
    x += 1
    return a, x


def put(items, value):
    items[0] = value
    return items


@ut.function
def in_an_expression(n: ut.i64):
    a = [1, 2]
    chosen = (put(a, 7), 1) if n > 3 else (put(a, 8), 2)
    return chosen, a


_CASES = ((5,), (3,), (2,), (1,), (0,))
PROGRAMS = [
    program(grown_after, *_CASES, tags="containers branch"),
    program(changed_after, *_CASES, tags="containers branch"),
    program(nested_ways_out, *_CASES, tags="containers branch"),
    program(kept_by_finally, *_CASES, tags="containers branch"),
    program(of_the_caller, *_CASES, tags="containers branch"),
    program(in_a_loop, *_CASES, tags="containers branch"),
    program(from_a_loop_of_the_run, *_CASES, tags="containers loop"),
    program(by_match, *_CASES, tags="containers branch arrays"),
    program(in_an_expression, *_CASES, tags="containers branch"),
]
