"""The parts of a cut graph: what crosses, and what does not."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.support.placed import homes_by_chance, type_rule

import undertow as ut
from undertow.engines.reference.placed import PlacedPlan
from undertow.ir import spec
from undertow.ir.graph import StaticGraph
from undertow.ir.placed import Placed
from undertow.passes.cut import cut
from undertow.passes.place import places_of


@ut.function
def fac(n: ut.i64) -> ut.i64:
    return 1 if n <= 1 else n * fac(n - 1)


@ut.function
def grow(w: ut.f64[3], n: ut.i64) -> ut.f64:
    if n <= 0:
        return ut.sum(w)
    return ut.tanh(grow(w, n - 1) + grow(w, n - 2)) * w[0]


def placed_by_op(graph: StaticGraph, parts: dict[str, int]) -> Placed:
    found = cut(graph, [parts.get(node.op, 0) for node in graph.nodes], 2)
    for part in found.parts:
        spec.check(part.graph, type_rule)
    return found


MULTIPLIES = """\
static 1 fac.1
inputs main/n
site 1 call main/fac: main -> fac
site 2 call fac/if1.else/fac: if1.else -> fac

main main ^main/start
  main/start: ctl          = start
  main/n: i64              = input index=0
  main/fac.start: ctl, ctl = call_start site=1 ^main/start
  main/fac.n: i64          = call main/n index=0 site=1

function fac ^fac/start
  fac/start: ctl                   = merge main/fac.start#0, fac/if1.else/fac.start#0
  fac/n: i64                       = merge main/fac.n, fac/if1.else/fac.n
  fac/less_equal.from0: bool       = recv edge=1 part=0 ^fac/start
  branch if1 fac/less_equal.from0 ^fac/start.if
  fac/n.if: i64, i64               = switch fac/less_equal.from0, fac/n
  fac/if1.else/subtract.from0: i64 = recv edge=3 part=0 ^fac/start.if#1
  fac/if1.else/fac.start: ctl, ctl = call_start site=2 ^fac/start.if#1
  fac/if1.else/fac.n: i64          = call fac/if1.else/subtract.from0 index=0 site=2
  fac/if1.else/fac.from0: i64      = recv edge=2 part=0 ^fac/start.if#1
  fac/if1.else/multiply: i64       = multiply fac/n.if#1, fac/if1.else/fac.from0
  fac/if1.else/multiply.to0: ctl   = send fac/if1.else/multiply edge=0 part=0
  fac/start.if: ctl, ctl           = switch fac/less_equal.from0, fac/start
"""


def test_factorial() -> None:
    """The part that multiplies makes every call, too: it is told the predicate and n - 1, and the result below."""
    placed = placed_by_op(fac.graph(5).static, {"multiply": 1})
    assert str(placed.parts[1].graph) == MULTIPLIES
    assert sorted((edge.name, edge.source) for edge in placed.edges) == [
        ("fac/if1.else/fac", 0),
        ("fac/if1.else/multiply", 1),
        ("fac/if1.else/subtract", 0),
        ("fac/less_equal", 0),
    ]
    plan = PlacedPlan(placed, lambda _: 0)
    assert plan.run([np.int64(6)])[0] == [720]
    assert all(plan.fired)


def test_what_is_in_one_part_crosses_nowhere() -> None:
    graph = ut.grad(grow).graph(np.ones(3), 3).static
    placed = cut(graph, [1] * len(graph.nodes), 3)
    assert not placed.edges
    assert [len(placed.parts[number].graph.nodes) for number in (0, 2)] == [1, 1]  # the start of main


def test_sums_cross_once() -> None:
    """Contributions to a gradient are added up in each part, and order tokens of it do not cross."""
    graph = ut.grad(grow).graph(np.ones(3), 3).static
    backward = [number for number, node in enumerate(graph.nodes) if node.op.startswith("collect")]
    homes = [1 if number in backward[::2] and node.op != "collected" else 0 for number, node in enumerate(graph.nodes)]
    assert sum(homes) > 0
    placed = cut(graph, homes, 2)
    assert not any(graph.nodes[number].name == edge.name for number in backward for edge in placed.edges)
    assert sum("collected" in edge.name for edge in placed.edges) == 1


def test_any_order_of_arrival() -> None:
    graph = ut.grad(grow).graph(np.ones(3), 4).static
    inputs = [np.array([0.5, 0.25, 0.125]), np.int64(4)]
    wanted = ut.grad(grow)(*inputs)
    for seed in range(20):
        chance = random.Random(seed)
        plan = PlacedPlan(cut(graph, homes_by_chance(graph, 4, chance), 4), chance.randrange)
        np.testing.assert_allclose(plan.run(inputs)[0][0], wanted, rtol=1e-12)


def test_variables_are_those_of_part_0() -> None:
    """Assignments happen in part 0; the other parts have no variables, and must not take them back."""
    total = ut.Variable(1, name="total")

    @ut.function
    def f(n):
        return total.assign_add(n * n)

    placed = placed_by_op(f.graph(5).static, {"multiply": 1})
    assert placed.edges
    state = {"total": np.int64(1)}
    assert PlacedPlan(placed, lambda _: 0).run([np.int64(5)], None, state)[0][0] == 26
    assert state == {"total": 26}


@ut.function
def on_two(w: ut.f64[3], n: ut.i64) -> ut.f64:
    if n <= 0:
        return ut.sum(w)
    with ut.device("worker:1"):
        s = ut.sum(ut.tanh(w * 2.0))
        for k in range(n):
            s += k
    return on_two(w, n - 1) + s


def test_devices() -> None:
    """Operators and their gradients run where the program says."""
    w = np.array([0.5, -0.25, 1.0])
    for function in (on_two, ut.grad(on_two)):
        graph = function.graph(w, 4).static
        placed = cut(graph, places_of(graph, ("worker:0", "worker:1")), 2)
        ops = [{node.op for node in part.graph.nodes} for part in placed.parts]
        assert "tanh" in ops[1] and "tanh" not in ops[0]
        plan = PlacedPlan(placed, lambda _: 0)
        np.testing.assert_allclose(plan.run([w, np.int64(4)])[0][0], function(w, 4), rtol=1e-12)
        assert all(plan.fired)


def test_a_device_that_there_is_not() -> None:
    graph = on_two.graph(np.ones(3), 4).static
    with pytest.raises(ut.GraphError, match="'worker:1', and there is no such worker"):
        places_of(graph, ("worker:0",))


@ut.function
def repeated(x: ut.f64, n: ut.i64) -> ut.f64:
    with ut.device("worker:0"):
        for _ in range(n):
            x = ut.tanh(x) + 0.1
    return x


@ut.device("worker:0")
@ut.function
def divisor(a: ut.i64, b: ut.i64) -> ut.i64:
    return a if b == 0 else divisor(b, a % b)


@pytest.mark.parametrize(("function", "arguments"), [(repeated, (0.5, 7)), (divisor, (12, 18))])
def test_whole_loops_and_recursions(function: ut.Function, arguments: tuple[float, ...]) -> None:
    """What a loop or a recursion has in the end is where it runs: nothing of it crosses before that."""
    graph = function.graph(*arguments).static
    placed = cut(graph, places_of(graph, ["", "worker:0"]), 2)
    assert not placed.edges
    assert not placed.parts[0].graph.fetches and not placed.parts[0].graph.sites
    ((found,), _) = PlacedPlan(placed, lambda _: 0).run([np.asarray(value)[()] for value in arguments])
    assert found == function(*arguments)
