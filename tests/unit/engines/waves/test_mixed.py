"""One run mixes schedules, group by group: whichever groups run by agenda, results and counts are the reference's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.differentiable import power
from tests.support.graphs import optimized, plain
from tests.support.mixed import MixedPlan, subsets

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.reference import ReferencePlan
from undertow.errors import RunError
from undertow.ir.trace import WaveStarted, read_trace

D = 20  # of vectors: more bytes than stand in a frame


@ut.function
def tree(w: ut.f64[D, D], n: ut.i64, k: ut.i64) -> ut.f64[D]:
    """Leaves call another group; where they stand depends on k."""
    if n <= k % 3:
        return ut.full((D,), power(0.9, n + k % 5))
    return ut.tanh(tree(w, n - 1, 2 * k) @ w + tree(w, n - 2, 2 * k + 1))


@ut.function
def chain(w: ut.f64[D, D], x: ut.f64[D], n: ut.i64) -> ut.f64[D]:
    """Calls that wait for each other, at every level one into another group."""
    if n <= 0:
        return x
    first = chain(w, x, n - 1)
    return chain(w, ut.tanh(first @ w) * power(0.5, n), n - 2)


@ut.function
def inner(x: ut.f64, n: ut.i64) -> ut.f64:
    if n <= 0:
        return x
    return inner(x * 0.5, n - 1) + inner(x + 1.0, n - 2)


@ut.function
def middle(x: ut.f64[D], n: ut.i64) -> ut.f64[D]:
    if n <= 0:
        return x * inner(x[0], 2)
    return middle(x * inner(x[1], n), n - 1)


@ut.function
def outer(x: ut.f64[D], n: ut.i64) -> ut.f64[D]:
    if n <= 0:
        return middle(x, 1)
    return outer(x * 0.5, n - 1) + middle(outer(x, n - 2), n)


@ut.function
def one_tree(w: ut.f64[D, D], n: ut.i64) -> ut.f64:
    return ut.sum(tree(w, n, 1))


@ut.function
def forest(w: ut.f64[D, D], roots: ut.i64[None]) -> ut.f64:
    return ut.sum(ut.map(lambda k: ut.sum(tree(w, 4, k)), roots))


@ut.function
def one_chain(w: ut.f64[D, D], x: ut.f64[D], n: ut.i64) -> ut.f64:
    return ut.sum(chain(w, x, n))


@ut.function
def nested(x: ut.f64[D], n: ut.i64) -> ut.f64:
    return ut.sum(outer(x, n))


@ut.function
def in_a_loop(x: ut.f64[D], n: ut.i64) -> ut.f64:
    total = 0.0
    for i in range(n):
        total = total + ut.sum(middle(x, i)) * power(0.5, i)
    return total


@ut.function
def grow(x: ut.f64[None], n: ut.i64) -> ut.f64[None]:
    """Arrays whose lengths only the run knows."""
    if n <= 0:
        return x
    return grow(ut.concat([x, x * 0.5]), n - 1)


@ut.function
def branch_out(x: ut.f64[None], n: ut.i64) -> ut.f64:
    if n <= 1:
        return ut.sum(grow(x, n + 1))
    return branch_out(x, n - 1) + branch_out(grow(x, 1), n - 2) * power(0.5, n)


@ut.function
def pick(w: ut.f64[D], n: ut.i64) -> ut.f64[D]:
    """Gives back what its entry was given."""
    if n <= 0:
        return w
    return pick(w, n - 1)


@ut.function
def picks(x: ut.f64[D], n: ut.i64) -> ut.f64[D]:
    """Its entry's value is gone, as its own frame is, when the result is used."""
    if n <= 0:
        return x
    return pick(picks(x * 0.5, n - 1) + 1.0, 3)


@ut.function
def all_picks(x: ut.f64[D], n: ut.i64) -> ut.f64:
    return ut.sum(picks(x, n) + picks(x * 2.0, n))


RANDOM = np.random.default_rng(3)
W = RANDOM.normal(0, 0.3, (D, D))
X = RANDOM.normal(0, 1, D)
PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "one_tree": (one_tree, (W, 6)),
    "forest": (forest, (W, np.arange(23))),
    "one_chain": (one_chain, (W, X, 5)),
    "nested": (nested, (X, 4)),
    "in_a_loop": (in_a_loop, (X, 4)),
    "branch_out": (branch_out, (X[:3], 5)),
    "all_picks": (all_picks, (X, 4)),
}
GRADIENTS = ["one_tree", "forest", "one_chain", "nested", "branch_out", "all_picks"]


def agree(f: Any, arguments: tuple[Any, ...], width: int = 4096, check_finite: bool = False) -> int:
    """Every assignment of schedules to groups gives what the reference gives. Gives the number of groups."""
    graph, inputs = optimized(f, *arguments), plain(arguments)
    expected, wanted = ReferencePlan(graph).drain(inputs, Options())[:2]
    plan = MixedPlan(graph, ())
    groups, per_node = plan.groups, plan.run(inputs)[1].per_node
    for agenda in subsets(groups):
        found, stats = MixedPlan(graph, agenda, width).run(inputs, Options(check_finite=check_finite))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=str(agenda))
        assert (stats.activations, stats.max_depth) == (wanted.activations, wanted.max_depth), agenda
        assert len([label for label in stats.deepest_tag if isinstance(label, int)]) == stats.max_depth, agenda
        assert stats.per_node == per_node, agenda
    return groups


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 3, 4096])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str, width: int) -> None:
    f, arguments = PROGRAMS[name]
    assert agree(f, arguments, width) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_lane_runs_narrow(name: str) -> None:
    """Where all numbers are checked, few lanes are run by the schedule of their group too."""
    agree(*PROGRAMS[name], check_finite=True)


@pytest.mark.slow
@pytest.mark.parametrize("width", [2, 4096])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str, width: int) -> None:
    """Later phases go through the door to whoever ran the first."""
    f, arguments = PROGRAMS[name]
    agree(ut.value_and_grad(f), arguments, width)


# --------------------------------------------------------------------------------------------------------------
# Where runs stop, and how deep they were


@ut.function
def share(n: ut.i64, k: ut.i64) -> ut.i64:
    """Faults at one call of all."""
    if n <= 0:
        return 1000 // k
    return share(n - 1, k) + 1


@ut.function
def fault(n: ut.i64, k: ut.i64, spot: ut.i64) -> ut.i64:
    """A binary tree, numbered by levels; in a loop, in a map, and in the calls of another group."""
    total = 0
    for i in range(2):
        total = total + ut.sum(ut.map(lambda j: share(2, 4 * k + 2 * i + j - spot), ut.arange(2)))  # noqa: B023
    if n <= 0:
        return total
    return total + fault(n - 1, 2 * k, spot) + fault(n - 1, 2 * k + 1, spot)


@pytest.mark.slow
@pytest.mark.parametrize("spot", [4, 17, 29, 61])
@pytest.mark.parametrize("check_finite", [False, True])
def test_faults(spot: int, check_finite: bool) -> None:
    """The tag of a fault leads through the doors to main."""
    graph = optimized(fault, 3, 1, spot)
    with pytest.raises(RunError) as expected:
        ReferencePlan(graph).drain([3, 1, spot], Options())
    for agenda in subsets(MixedPlan(graph, ()).groups):
        with pytest.raises(type(expected.value)) as found:
            MixedPlan(graph, agenda).run([3, 1, spot], Options(check_finite=check_finite))
        assert str(found.value) == str(expected.value), agenda
        assert found.value.calls == expected.value.calls, agenda


@ut.function
def descend(n: ut.i64) -> ut.i64:
    """Every level is deeper than the one before, and its helper deeper still."""
    if n <= 0:
        return 0
    return descend(n - 1) + helper(n % 3)


@ut.function
def helper(n: ut.i64) -> ut.i64:
    if n <= 0:
        return 1
    return helper(n - 1) + 1


@ut.function
def go_down(n: ut.i64) -> ut.i64:
    return descend(n)


@ut.function
def dig(n: ut.i64, k: ut.i64) -> ut.i64:
    """Two groups take turns: only one path is the deepest."""
    if n <= 0:
        return helper(k)
    return dig(n - 1, k + 1) + helper(n)


@pytest.mark.parametrize("n", [0, 3, 12])
def test_the_deepest_tag(n: int) -> None:
    graph = optimized(dig, n, 1)
    wanted = ReferencePlan(graph).drain([n, 1], Options())[1]
    for agenda in subsets(MixedPlan(graph, ()).groups):
        for check_finite in (False, True):
            stats = MixedPlan(graph, agenda).run([n, 1], Options(check_finite=check_finite))[1]
            assert (stats.activations, stats.max_depth) == (wanted.activations, wanted.max_depth)
            assert stats.deepest_tag == wanted.deepest_tag, agenda


def test_the_deepest_tag_is_not_made_again_at_each_level() -> None:
    """Each level of ten thousand is deeper than all before: were its tag made, this would take minutes."""
    n = 10_000
    graph = optimized(go_down, n)
    for agenda in subsets(MixedPlan(graph, ()).groups):
        stats = MixedPlan(graph, agenda).run([n], Options(check_finite=True, timeout=30.0))[1]
        assert stats.max_depth == n + 3


def test_limits() -> None:
    """Depth, frames and time are counted across doors."""
    f, arguments = PROGRAMS["nested"]
    graph, inputs = optimized(f, *arguments), plain(arguments)
    depth = ReferencePlan(graph).drain(inputs, Options())[1].max_depth
    for agenda in subsets(MixedPlan(graph, ()).groups):
        plan = MixedPlan(graph, agenda)
        assert plan.run(inputs, Options(max_depth=depth))[1].max_depth == depth
        with pytest.raises(ut.RecursionLimit) as stopped:
            plan.run(inputs, Options(max_depth=depth - 1))
        assert len(stopped.value.calls) >= depth - 1, agenda
        with pytest.raises(ut.FrameLimit):
            plan.run(inputs, Options(frames=4))
        with pytest.raises(ut.FrameLimit):
            plan.run(inputs, Options(memory=3000))
        with pytest.raises(ut.Timeout):
            plan.run(inputs, Options(timeout=0.0))


def test_both_schedules_run(tmp_path: Path) -> None:
    """Waves of the agenda begin at stages, those in lockstep at the first one only."""
    f, arguments = PROGRAMS["one_chain"]
    graph, inputs = optimized(f, *arguments), plain(arguments)
    stages = {}
    for agenda in subsets(MixedPlan(graph, ()).groups):
        path = tmp_path / "trace.jsonl"
        MixedPlan(graph, agenda).run(inputs, Options(trace=path))
        waves = [event for event in read_trace(path) if isinstance(event, WaveStarted)]
        stages[agenda] = {event.region for event in waves if event.stage > 0}
    assert not stages[()]
    assert len(set(map(frozenset, stages.values()))) > 3


def test_threads() -> None:
    """Lanes of a group on several threads call groups that run by agenda: the same bits."""

    @ut.function
    def wide(x: ut.i64, n: ut.i64) -> ut.i64:
        if n <= 0:
            return helper(x % 4)
        return wide(2 * x, n - 1) + wide(2 * x + 1, n - 1)

    @ut.function
    def whole(xs: ut.i64[None]) -> ut.i64[None]:
        return ut.map(lambda x: wide(x, 5), xs)

    xs = np.arange(300)
    graph = optimized(whole, xs)
    expected = None
    for agenda in subsets(MixedPlan(graph, ()).groups):
        for threads in (1, 3):
            found, stats = MixedPlan(graph, agenda, width=64).run([xs], Options(threads=threads))
            expected = (found[0], stats.activations, stats.max_depth) if expected is None else expected
            np.testing.assert_array_equal(found[0], expected[0])
            assert (stats.activations, stats.max_depth) == expected[1:]
