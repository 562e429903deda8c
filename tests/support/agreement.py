"""Runs of programs built by hand on every engine, in every order: they give the same, and leave nothing behind."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from tests.support.graphs import plain

from undertow.engines.contract import SCHEDULERS, Options, Stats
from undertow.engines.demand import Demand
from undertow.engines.demand.run import Run as DemandRun
from undertow.engines.expand import ExpandPlan
from undertow.engines.reference import Reference
from undertow.engines.reference.run import Run
from undertow.engines.waves import WavesPlan
from undertow.ir.graph import Library, StaticGraph
from undertow.passes.flatten import flatten


def run(program: Library, *inputs: Any) -> list[Any]:
    """What the reference gives, after native engines and every scheduler gave the same, with no frame or byte left."""
    plan, values = Reference().plan(flatten(program)), plain(inputs)
    results, _ = plan.run(values)
    for scheduler in SCHEDULERS:
        for seed in range(3 if scheduler == "random" else 1):
            again = Run(plan.rows, values, Options(scheduler=scheduler, schedule_seed=seed), None)
            with np.errstate(all="ignore"):
                again.execute(drain=True)
            assert not again.live
            assert (again.bytes, again.held) == (0, {})
            for one, other in zip(results, again.results, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
    assert_native(plan.graph, values, results)
    return results


def stats_of(program: Library, *inputs: Any) -> Stats:
    """Of a run on the reference engine that computes everything, needed or not."""
    return Reference().plan(flatten(program)).drain(plain(inputs))[1]


def demand(graph: StaticGraph, *inputs: Any) -> tuple[list[Any], Stats]:
    """Results and statistics of a run on the demand engine that left nothing in the store."""
    plan, values = Demand().plan(graph), plain(inputs)
    run = DemandRun(plan.rows, values, Options(), None)
    with np.errstate(all="ignore"):
        run.execute()
    assert (run.live, run.bytes, run.held) == (0, 0, {})
    return plan.run(values)


def agree(graph: StaticGraph, *inputs: Any) -> Stats:
    """The statistics of a run on demand that gives what the other engines give, and fires no node more often."""
    results, stats = demand(graph, *inputs)
    wanted, reference = Reference().plan(graph).run(plain(inputs))
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
        assert type(one) is type(other)
    assert all(count <= reference.per_node[node] for node, count in stats.per_node.items())
    assert stats.firings == sum(stats.per_node.values()) <= reference.firings
    assert stats.activations <= reference.activations
    assert stats.max_depth <= reference.max_depth
    assert_native(graph, plain(inputs), wanted)
    return stats


def assert_native(graph: StaticGraph, inputs: Sequence[Any], wanted: Sequence[Any]) -> None:
    """Waves of any width and expand give what is wanted."""
    for plan in (*(WavesPlan(graph, width) for width in (1, 2, 4096)), ExpandPlan(graph)):
        for one, other in zip(plan.run(inputs)[0], wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, strict=True)


def drained(library: Library, args: Sequence[Any], options: Options) -> tuple[list[Any], str, Stats]:
    """Values, prints and statistics of a run on the reference engine that computes everything and leaves nothing."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        values, stats, left = Reference().plan(flatten(library)).drain(plain(args), options)
    assert left == 0
    return values, printed.getvalue(), stats
