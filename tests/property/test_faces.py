"""Random bodies: as an @ut.function and as a SubGraph they are valid, give the same values and print the same.

What differs between the two is how hidden arguments come about: a function is captured again when they turn out, a
block is linked. So the bodies call themselves, print, draw and use outer values in any order, in loops, maps, branches.
"""

from __future__ import annotations

import contextlib
import io
import random
from typing import Any

import pytest

import undertow as ut
from undertow.ir import spec

_LEAVES = ("call", "constant", "print", "draw", "outer")
_NESTS = ("loop", "map", "cond")


def make_body(rng: random.Random, depth: int = 0) -> list[tuple[str, Any]]:
    """Steps by name, with the steps inside them."""
    found: list[tuple[str, Any]] = []
    for _ in range(rng.randint(1, 3)):
        if depth < 2 and rng.random() < 0.4:
            found.append((rng.choice(_NESTS), make_body(rng, depth + 1)))
        else:
            found.append((rng.choice(_LEAVES), None))
    return found


def run_body(steps: list[tuple[str, Any]], again: Any, n: Any, x: Any, value: Any) -> Any:
    for name, inner in steps:
        if name == "call":
            value = value + again(n - 1)
        elif name == "constant":
            value = value + again(0)
        elif name == "print":
            ut.print("{}: {:.4f}", n, value)
        elif name == "draw":
            value = value + ut.random.uniform()
        elif name == "outer":
            value = value + x
        else:
            value = nest(name, inner, again, n, x, value)
    return value


def nest(name: str, inner: list[tuple[str, Any]], again: Any, n: Any, x: Any, value: Any) -> Any:
    if name == "loop":

        def step(carried: Any) -> Any:
            return carried[0] + 1, run_body(inner, again, n, x, carried[1])

        return ut.while_loop(lambda carried: carried[0] < 2, step, (0, value))[1]
    if name == "map":

        def each(i: Any) -> Any:
            return run_body(inner, again, n, x, value * 0.5) + i

        return ut.sum(ut.map(each, ut.arange(2)))

    def then() -> Any:
        return run_body(inner, again, n, x, value)

    return ut.cond(value < 2.0, then, lambda: value)


def as_function(steps: list[tuple[str, Any]]) -> Any:
    @ut.function
    def outer(n: ut.i64, x: ut.f64) -> ut.f64:
        @ut.function
        def walk(k: ut.i64) -> ut.f64:
            return ut.cond(k <= 0, lambda: 1.0, lambda: run_body(steps, walk, k, x, 0.25))

        return walk(n)

    return outer


def as_subgraph(steps: list[tuple[str, Any]]) -> Any:
    with ut.SubGraph(returns=ut.f64) as outer:
        n, x = outer.input(ut.i64), outer.input(ut.f64)
        with ut.SubGraph(returns=ut.f64) as walk:
            k = walk.input(ut.i64)
            walk.output(ut.cond(k <= 0, lambda: 1.0, lambda: run_body(steps, walk, k, x, 0.25)))
        outer.output(walk(n))
    return outer


def as_pair(steps: list[tuple[str, Any]]) -> Any:
    """The recursion goes through a second SubGraph, which was only declared when the first was written."""
    with ut.SubGraph(returns=ut.f64) as outer:
        n, x = outer.input(ut.i64), outer.input(ut.f64)
        walk, again = ut.SubGraph(returns=ut.f64), ut.SubGraph(returns=ut.f64)
        k, j = walk.input(ut.i64), again.input(ut.i64)
        with walk:
            walk.output(ut.cond(k <= 0, lambda: 1.0, lambda: run_body(steps, again, k, x, 0.25)))
        with again:
            again.output(walk(j))
        outer.output(walk(n))
    return outer


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_faces_agree(seed: int) -> None:
    steps = make_body(random.Random(seed))
    has_draws = "draw" in str(steps)
    is_nested = any(inner is not None for _, inner in steps)
    results = []
    for make in (as_function, as_subgraph, as_pair):
        program = make(steps)
        spec.check(program.library(2, 0.5))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            value = program.run(2, 0.5, seed=7)
        results.append((value, printed.getvalue()))
    # A function makes one of `run_body` where it calls itself; in a SubGraph, whose body Python runs, it is not seen.
    assert results[1] == results[0] or (has_draws and is_nested), steps
    # Keys are folded once more on the way through the second function.
    assert results[2] == results[0] or has_draws, steps
    assert ("effect: ctl" in str(program.library(2, 0.5))) == ("print" in str(steps))
