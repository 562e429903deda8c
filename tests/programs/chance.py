"""Random numbers: every place and every activation draws its own, and a seed says which."""

from __future__ import annotations

from tests.programs.program import program

import undertow as ut


@ut.function
def walk(n: ut.i64) -> ut.f64:
    """One draw in each activation."""
    if n == 0:
        return 0.0
    return walk(n - 1) + ut.random.uniform(low=-1.0, high=1.0)


@ut.function
def gamble(n: ut.i64) -> ut.i64:
    """What is drawn decides how the recursion goes on."""
    if n == 0:
        return 1
    if ut.random.uniform() < 0.5:
        return gamble(n - 1)
    return gamble(n - 1) + 2 * gamble(n // 2)


@ut.function
def noisy_loop(n: ut.i64) -> tuple[ut.f64, ut.f64]:
    """A draw in each iteration, and one in a function that the loop calls."""
    total = 0.0
    for _ in range(n):
        total += ut.random.uniform() + walk(2)
    return total, ut.random.normal()


@ut.function
def noisy_map(n: ut.i64) -> ut.f64[None, 2]:
    return ut.map(lambda k: ut.random.normal(size=(2,)) + k, ut.arange(n))


PROGRAMS = [
    program(walk, (0,), (5,), tags="random recursive", seed=3),
    program(gamble, (6,), tags="random recursive", seed=11),
    program(noisy_loop, (4,), tags="random loop recursive", seed=5),
    program(noisy_map, (3,), tags="random map", seed=8),
]
