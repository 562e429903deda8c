"""Depth is user data: chains of a hundred thousand calls. Python's own stack is not that deep: results are stated."""

from __future__ import annotations

from tests.programs.program import program

import undertow as ut

DEPTH = 100_000


@ut.function
def chain(n: ut.i64) -> ut.i64:
    """Something is left to do after each call returns."""
    return 0 if n == 0 else chain(n - 1) + 1


@ut.function
def tail_chain(n: ut.i64, total: ut.i64) -> ut.i64:
    """Nothing is left to do."""
    if n == 0:
        return total
    return tail_chain(n - 1, total + n)


@ut.function
def ping(n: ut.i64) -> ut.i64:
    return 0 if n == 0 else pong(n - 1)


@ut.function
def pong(n: ut.i64) -> ut.i64:
    return 1 if n == 0 else ping(n - 1)


@ut.function
def long_loop(n: ut.i64) -> ut.i64:
    total = 0
    for k in range(n):
        total = (total * 3 + k) % 1_000_003
    return total


def _long_loop(n: int) -> int:
    total = 0
    for k in range(n):
        total = (total * 3 + k) % 1_000_003
    return total


PROGRAMS = [
    program(chain, (DEPTH,), tags="recursive deep", stated=[DEPTH]),
    program(tail_chain, (DEPTH, 0), tags="recursive deep", stated=[DEPTH * (DEPTH + 1) // 2]),
    program(ping, (DEPTH,), tags="recursive mutual deep", stated=[0]),
    program(long_loop, (DEPTH // 4,), tags="loop deep", stated=[_long_loop(DEPTH // 4)]),
]
