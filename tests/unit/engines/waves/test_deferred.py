"""Steps that wait: leaves of all levels run together, and so does what is only collected; nobody can tell otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.support.graphs import inputs_of

import undertow as ut
from undertow.engines.contract import Options, Stats
from undertow.engines.waves import WavesPlan
from undertow.errors import RunError
from undertow.ir.graph import StaticGraph
from undertow.plan import defer as passes
from undertow.plan.lower import lower
from undertow.plan.order import order
from undertow.plan.plan import Collect, DeferredKind, Op
from undertow.plan.products import find_products

LEAVES = 40
SIZE = 60_000
TABLE = np.random.default_rng(7).normal(size=(5, 3))
WS = np.random.default_rng(3).normal(size=(4, 3, 3)) * 0.7


@ut.function
def encode(params, node: ut.i64) -> ut.f64[3]:
    """A tree in which every level has a leaf: a long right spine, with a bush at its end."""
    if node % 2 == 1:
        x = params["table"][node % 5]
        return ut.tanh(x @ params["w"] + 0.5) * 2.0
    left = encode(params, node // 2 * 2 + 1)
    right = encode(params, ut.where(node > 0, node - 2, 1))
    return ut.tanh((left - right) @ params["w"])


@ut.function
def loss(params, node: ut.i64) -> ut.f64:
    return ut.sum(encode(params, node) ** 2)


def params() -> dict[str, Any]:
    return {"table": TABLE, "w": WS[0]}


class Counting:
    """The core's plan, and what it counted last."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def run(self, *args: Any) -> Any:
        found = self.core.run(*args)
        self.counted = found[1]
        return found


def plan_of(graph: StaticGraph, defers: bool = True, width: int = 4096) -> tuple[WavesPlan, Counting]:
    plan = WavesPlan(graph, width, defers=defers)
    counting = Counting(plan.core)
    plan.core = counting  # type: ignore[assignment]
    return plan, counting


def graph_of(function: Any, *args: Any) -> StaticGraph:
    found: StaticGraph = function.graph(*args).static
    return found


def flat(*args: Any) -> list[Any]:
    return [x for arg in args for x in (arg.values() if isinstance(arg, dict) else (arg,))]


def counters(stats: Stats) -> tuple[Any, ...]:
    return stats.activations, stats.firings, stats.per_node, stats.max_depth, stats.deepest_tag, stats.waves


def deferred_ops(graph: StaticGraph) -> dict[tuple[str, DeferredKind], list[str]]:
    """The operators that may wait, by region, and how."""
    plan = passes.defer(order(find_products(lower(graph))))
    found: dict[tuple[str, DeferredKind], list[str]] = {}
    for region in plan.regions:
        for program in region.programs:
            for stage in program.stages:
                names = [
                    plan.kernels[step.kernel].op if isinstance(step, Op) else f"collect_{step.kind}"
                    for step in stage.deferred
                    if isinstance(step, (Op, Collect))
                ]
                if names:
                    found.setdefault((region.name, stage.deferred_kind), []).extend(names)
    return found


class TestPlan:
    def test_leaves_are_held(self):
        found = deferred_ops(graph_of(loss, params(), 6))
        assert list(found) == [("encode/if1.then", "held")]
        (ops,) = found.values()
        assert "matmul" in ops and "tanh" in ops

    def test_what_is_only_collected_is_kept(self):
        found = deferred_ops(graph_of(ut.grad(loss), params(), 6))
        kept = {name: ops for (name, kind), ops in found.items() if kind == "kept"}
        assert kept and all(set(ops) <= {"collect_product"} for ops in kept.values())
        assert any("collect_rows" in ops for (_, kind), ops in found.items() if kind == "held")

    def test_numbers_do_not_wait(self):
        @ut.function
        def collatz(n: ut.i64) -> ut.i64:
            if n < 2:
                return (n * 3 + 1) * n - n * n
            return collatz(n // 2) + collatz(n - 1)

        assert deferred_ops(graph_of(collatz, 5)) == {}

    def test_what_acts_on_the_world_does_not_wait(self):
        @ut.function
        def speaks(x: ut.f64[3], n: ut.i64) -> ut.f64[3]:
            if n < 2:
                print("leaf", n)
                return ut.tanh(x * 2.0 + 1.0) * x
            return speaks(x, n - 1) + speaks(x, n - 2)

        assert deferred_ops(graph_of(speaks, np.ones(3), 3)) == {}


@pytest.mark.parametrize("width", [1, 7, 4096])
@pytest.mark.parametrize("make", [lambda f: f, ut.grad, lambda f: ut.grad(f, sparse_rows=True)])
def test_nothing_changes(make: Callable[[Any], Any], width: int):
    graph = graph_of(make(loss), params(), LEAVES)
    args = flat(params(), LEAVES)
    plan, counting = plan_of(graph, True, width)
    results, stats = plan.run(args)
    expected, before = plan_of(graph, False, width)[0].run(args)
    for result, other in zip(map(np.asarray, results), map(np.asarray, expected), strict=True):
        if result.ndim > 0 and len(result) > 5:  # rows may come in another order
            result, other = np.sort(result, axis=0), np.sort(other, axis=0)
        np.testing.assert_allclose(result, other, rtol=1e-11)
    assert counters(stats) == counters(before)
    if width == 4096:
        assert counting.counted.joint_runs < 6
        assert counting.counted.joint_tables > LEAVES / 2 - 2


def test_maps_have_an_entry_for_each_lane():
    """Held lanes below different entries run together, and each reads and collects its own."""
    function = ut.grad(lambda ws, n: ut.sum(ut.map(lambda w: loss({"table": TABLE, "w": w}, n), ws)))
    graph, inputs = graph_of(function, WS, 20), inputs_of(function, [WS, 20])
    expected, before = plan_of(graph, False)[0].run(inputs)
    plan, counting = plan_of(graph)
    results, stats = plan.run(inputs)
    np.testing.assert_allclose(results[0], expected[0], rtol=1e-12)
    assert counters(stats) == counters(before)
    assert counting.counted.joint_runs > 0


def test_who_fails_is_known():
    """A fault in a row that has waited says which activation that was."""

    @ut.function
    def f(x: ut.f64[3], n: ut.i64, k: ut.i64) -> ut.f64[3]:
        if n % 2 == 1:
            return ut.tanh(x @ x * x[k]) * (x + 1.0)
        return f(x, n + 1, k) + f(x, ut.where(n > 0, n - 2, 1), ut.where(n == 4, 7, k))

    graph = graph_of(f, np.ones(3), 8, 0)
    found = []
    for defers in (True, False):
        plan, _ = plan_of(graph, defers)
        with pytest.raises(RunError) as caught:
            plan.run([np.ones(3), 8, 0])
        found.append(str(caught.value))
    assert found[0] == found[1]


def test_values_that_are_not_finite_are_found():
    graph = graph_of(ut.grad(loss), {**params(), "w": np.full((3, 3), np.inf)}, 6)
    for defers in (True, False):
        with pytest.raises(RunError, match="finite"):
            plan_of(graph, defers)[0].run(
                flat({**params(), "w": np.full((3, 3), np.inf)}, 6), Options(check_finite=True)
            )


def test_rows_that_wait_are_not_too_many():
    """They run when they take some megabytes, however deep it goes."""

    @ut.function
    def f(x: ut.f64[SIZE], n: ut.i64) -> ut.f64[SIZE]:
        if n % 2 == 1:
            return ut.tanh(x * 2.0 + 1.0) * x + x * 0.25
        return f(x, n + 1) + f(x, ut.where(n > 0, n - 2, 1))

    x = np.linspace(-1, 1, SIZE)
    graph = graph_of(f, x, 60)
    results, stats = plan_of(graph)[0].run([x, 60])
    expected, before = plan_of(graph, False)[0].run([x, 60])
    np.testing.assert_array_equal(results[0], expected[0])
    assert counters(stats) == counters(before)
    assert stats.peak_bytes <= before.peak_bytes * 1.2


@ut.function
def classify(params, node: ut.i64) -> (ut.f64[3], ut.f64):
    """A loss at every node."""
    if node % 2 == 1:
        state = ut.tanh(params["table"][node % 5])
        return state, cost(params, state, node)
    left, a = classify(params, node // 2 * 2 + 1)
    right, b = classify(params, ut.where(node > 0, node - 2, 1))
    state = ut.tanh((left - right) @ params["w"])
    return state, cost(params, state, node) + a + b


def cost(params, state, node):
    logits = state @ params["w"]
    return ut.log(ut.sum(ut.exp(logits))) - logits[node % 3]


@ut.function
def total(params, node: ut.i64) -> ut.f64:
    return classify(params, node)[1]


class TestAhead:
    def test_the_gradient_of_a_nodes_own_loss_does_not_wait_for_others(self):
        found = deferred_ops(graph_of(ut.grad(total), params(), 6))
        ahead = [ops for (name, kind), ops in found.items() if kind == "ahead"]
        assert ahead and all("scatter_add" in ops and "matmul" in ops for ops in ahead)
        assert not any("tanh" in ops for ops in ahead)

    @pytest.mark.parametrize("width", [1, 7, 4096])
    def test_nothing_changes(self, width: int):
        graph = graph_of(ut.value_and_grad(total), params(), LEAVES)
        plan, counting = plan_of(graph, True, width)
        results, stats = plan.run(flat(params(), LEAVES))
        expected, before = plan_of(graph, False, width)[0].run(flat(params(), LEAVES))
        for result, other in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-11)
        assert counters(stats) == counters(before)
        if width == 4096:
            assert counting.counted.joint_runs < 8

    def test_where_there_is_no_next_phase_nothing_is_done_for_it(self):
        """A value of the extended function is asked for twice, its gradient once."""

        def both(params, node):
            value, back = ut.vjp(total, params, node)
            return ut.where(value > 0.0, value, -value), back(1.0)[0]["w"] if node > 2 else params["w"]

        graph = graph_of(ut.function(both), params(), LEAVES)
        for node in (2, LEAVES):
            results, stats = plan_of(graph)[0].run(flat(params(), node))
            expected, before = plan_of(graph, False)[0].run(flat(params(), node))
            np.testing.assert_allclose(results[1], expected[1], rtol=1e-11)
            assert counters(stats) == counters(before)

    def test_second_derivatives(self):
        graph = graph_of(ut.grad(lambda p, n: ut.sum(ut.grad(total)(p, n)["w"] ** 2)), params(), 12)
        results, stats = plan_of(graph)[0].run(flat(params(), 12))
        expected, before = plan_of(graph, False)[0].run(flat(params(), 12))
        np.testing.assert_allclose(results[1], expected[1], rtol=1e-9)
        assert counters(stats) == counters(before)
