"""What waves enter when: branches in several turns, and calls whose later phases are asked for at different points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.agreement import run
from tests.support.validity import read

import undertow as ut
from undertow.engines.reference import ReferencePlan
from undertow.engines.waves import WavesPlan
from undertow.ir.graph import StaticGraph
from undertow.ir.index import StaticIndex
from undertow.passes.flatten import flatten
from undertow.plan.defer import recursive_groups
from undertow.plan.items import BRANCH, Items
from undertow.plan.lower import lower
from undertow.plan.order import order
from undertow.plan.plan import Call
from undertow.plan.walk import items_of

# --------------------------------------------------------------------------------------------------------------
# Turns


@ut.function
def in_again(p: ut.bool, x: ut.i64) -> ut.i64:
    """A value leaves the branch, and comes in again."""
    y = x + 1 if p else x - 1
    z = y * 10
    return z + y if p else z - y


@ut.function
def crossing(p: ut.bool, q: ut.bool, x: ut.i64) -> tuple[ut.i64, ut.i64]:
    """Each of two branches waits for a part of the other."""
    a = x + 1 if p else x + 2
    b = a * 3 if q else a * 5
    c = x - 1 if q else x - 2
    d = c * 7 if p else c * 11
    return b, d


@ut.function
def nested(p: ut.bool, q: ut.bool, x: ut.i64) -> ut.i64:
    """Turns of a branch inside a branch that has turns."""
    y = x
    if p:
        y = y * 2 if q else y * 3
    z = y + 100
    if p:
        z = z - y if q else z + y
        w = z * 5
        z = w - z if q else w + z
    return z


@ut.function
def recursive(n: ut.i64, x: ut.i64) -> ut.i64:
    """Calls in every turn."""
    if n == 0:
        return x
    p = x % 2 == 0
    y = recursive(n - 1, x + 1) if p else recursive(n - 1, 3 * x)
    z = y + n
    return recursive(n - 1, z) + 1 if p else recursive(n - 1, z // 2) - 1


@ut.function
def in_a_loop(n: ut.i64, p: ut.bool) -> ut.i64:
    x = 0
    for k in range(n):
        y = x + k if p else x - k
        z = y * 2
        x = z - 3 if p else z + 3
    return x


TURNING: list[tuple[Any, list[tuple[Any, ...]], int]] = [
    (in_again, [(p, 5) for p in (True, False)], 2),
    (crossing, [(p, q, 4) for p in (True, False) for q in (True, False)], 2),
    (nested, [(p, q, 7) for p in (True, False) for q in (True, False)], 2),
    (recursive, [(n, x) for n in (0, 1, 4) for x in (0, 1, 6)], 2),
    (in_a_loop, [(n, p) for n in (0, 3) for p in (True, False)], 2),
]


def static(function: Any, *args: Any) -> StaticGraph:
    return flatten(function.library(*args))


@pytest.mark.parametrize(("function", "cases", "turns"), TURNING, ids=lambda value: getattr(value, "__name__", ""))
def test_branches_have_turns(function: Any, cases: list[tuple[Any, ...]], turns: int) -> None:
    """Values, lane by lane and in lanes of a map, are those that Python gives."""
    graph = static(function, *cases[0])
    items = Items(StaticIndex(graph))
    assert max(key[-1] for key in items.items if key[0] == BRANCH) + 1 >= turns
    for args in cases:
        inputs = [np.asarray(value)[()] for value in args]
        expected, _ = ReferencePlan(graph).run(inputs)
        for width in (1, 4096):
            for schedule in ("lockstep", "agenda"):
                assert WavesPlan(graph, width, schedule).run(inputs)[0] == expected
    columns = [np.array(column) for column in zip(*cases, strict=True)]
    with ut.options(simplify=False):
        found = function.map(*columns)
        with ut.options(engine="waves"):
            np.testing.assert_array_equal(function.map(*columns), found)


def test_most_branches_have_one_turn() -> None:
    @ut.function
    def plain(p: ut.bool, q: ut.bool, x: ut.i64) -> ut.i64:
        y = x + 1 if p else x - 1
        return y * 2 if q else y

    assert {key[-1] for key in Items(StaticIndex(static(plain, True, True, 1))).items if key[0] == BRANCH} == {0}


# --------------------------------------------------------------------------------------------------------------
# Asking for later phases

SQUARE = """
    function f(x: f64) -> (y)
      y: f64 = multiply x, x
      phase 1(dy: f64) -> (dx)
      two: f64 = multiply x, 2.0:f64
      dx: f64 = multiply dy, two
"""

# Both calls are made together, but the second waits with its phase for the first one's.
ONE_AFTER_THE_OTHER = (
    """
    main main(x: f64, w: f64) -> (da, db)
      a: f64 = call x callee="f"
      b: f64 = call w callee="f"
      da: f64 = resume a, 1.0:f64 phase=1
      db: f64 = resume b, da phase=1
"""
    + SQUARE
)

# a and b are called together, and so are c and d; then a goes before c, and d before b.
CROSSED = (
    """
    main main(x: f64, w: f64) -> (da, db, dc, dd)
      a: f64 = call x callee="f"
      b: f64 = call w callee="f"
      c: f64 = call a callee="f"
      d: f64 = call b callee="f"
      da: f64 = resume a, 1.0:f64 phase=1
      dc: f64 = resume c, da phase=1
      dd: f64 = resume d, 1.0:f64 phase=1
      db: f64 = resume b, dd phase=1
"""
    + SQUARE
)

# One call is resumed by g's first phase, the other by its second.
IN_DIFFERENT_PHASES = (
    """
    main main(x: f64) -> (y, dx)
      y: f64 = call x callee="g"
      dx: f64 = resume y, 5.0:f64 phase=1
    function g(x: f64) -> (r)
      a: f64 = call x callee="f"
      b: f64 = call x callee="f"
      da: f64 = resume a, b phase=1
      r: f64 = add a, da
      phase 1(dy: f64) -> (dx)
      dx: f64 = resume b, dy phase=1
"""
    + SQUARE
)

# A call outside, and one in each iteration of a loop, which is resumed before the loop goes on.
IN_A_LOOP = (
    """
    main main(x: f64, n: i64) -> (da, last#1)
      a: f64 = call x callee="f"
      last: i64, f64 = loop 0:i64, x, n body="while"
      da: f64 = resume a, last#1 phase=1
    loop while(i: i64, v: f64, n: i64) -> (p, if1.then/i, if1.then/v) carried=2
      p: bool = less i, n
      branch if1 p
      i.if: i64, i64 = switch p, i
      v.if: f64, f64 = switch p, v
      if1.then/i: i64 = add i.if#0, 1:i64
      if1.then/y: f64 = call v.if#0 callee="f"
      if1.then/v: f64 = resume if1.then/y, 0.5:f64 phase=1
"""
    + SQUARE
)

ASKING: list[tuple[str, tuple[Any, ...], list[float]]] = [
    (ONE_AFTER_THE_OTHER, (2.0, 3.0), [4.0, 24.0]),
    (CROSSED, (2.0, 3.0), [4.0, 108.0, 32.0, 18.0]),
    (IN_DIFFERENT_PHASES, (2.0,), [20.0, 20.0]),
    (IN_A_LOOP, (2.0, 3), [8.0, 2.0]),
]


@pytest.mark.parametrize(("text", "inputs", "expected"), ASKING, ids=["after", "crossed", "phases", "loop"])
def test_lanes_of_a_chunk_ask_together(text: str, inputs: tuple[Any, ...], expected: list[float]) -> None:
    """`run` compares the schedulers of the reference engine, and waves of several widths."""
    found = run(read(text), *inputs)
    assert [float(value) for value in found] == expected


def test_calls_that_ask_at_the_same_points_are_one() -> None:
    """The two calls of a tree recursion are resumed together, so they share waves: their number is the depth, twice."""

    @ut.function
    def tree(x: ut.f64[3], n: ut.i64) -> ut.f64:
        if n == 0:
            return ut.sum(x * x)
        return tree(x * 0.5, n - 1) + tree(x + 1.0, n - 1)

    graph = ut.grad(tree).graph(np.ones(3), 6).static
    plan = order(lower(graph))
    group = recursive_groups(plan)
    calls = [
        item
        for region in plan.regions
        for program in region.programs
        for item in items_of(program)
        if isinstance(item, Call) and {region.group} == group
    ]
    assert len({call.resume_group for call in calls}) == 1 and len(calls) == 4
