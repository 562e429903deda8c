"""The demand engine: what it keeps, its limits and faults, its traces; graphs that are not valid."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.engines.test_demand import (
    agree,
    captured,
    catalan,
    collatz,
    fib,
    fib_loop,
    lanes,
    last_square,
    many_results,
    plan_of,
    quiet,
    triangle,
    turning,
)
from tests.unit.engines.test_reference import dividing
from tests.unit.passes.test_flatten import (
    BOOL,
    F64,
    I64,
    PROGRAMS,
    Body,
    const,
    factorial,
    library,
    main_of,
    scaled_map,
    sum_loop,
)

import undertow as ut
from undertow.api.function import Function
from undertow.engines.contract import Options, Plan
from undertow.engines.demand import Demand, explain
from undertow.engines.reference import Reference
from undertow.errors import (
    Fault,
    FrameLimit,
    GraphError,
    InternalError,
    RecursionLimit,
    RunError,
    Timeout,
    TypeMismatch,
)
from undertow.ir.graph import Port
from undertow.ir.trace import Event, Fired, FrameEnded, FrameStarted, RunEnded, RunStarted, read_trace
from undertow.ops.op import CATALOGUE
from undertow.passes.flatten import flatten
from undertow.types import f64

MANY = f64[None]


# --------------------------------------------------------------------------------------------------------------
# The store


def test_frames_of_calls_go() -> None:
    assert agree(captured(fib, 12), 12).peak_frames == 12 + 1
    assert agree(captured(catalan, 6), 6).peak_frames < 25


@pytest.mark.slow
def test_a_large_call_tree_needs_little() -> None:
    result, stats = fib.run(20, engine="demand", stats=True)
    assert result == 10946
    assert stats.peak_frames <= 22


@pytest.mark.parametrize(("function", "most"), [(fib_loop, 6), (triangle, 7), (last_square, 4), (collatz, 5)])
def test_old_iterations_go(function: Function, most: int) -> None:
    assert agree(captured(function, 27), 27).peak_frames <= most


def test_an_order_token_keeps_no_old_iterations(capsys: pytest.CaptureFixture[str]) -> None:
    assert agree(captured(quiet, 50), 50).peak_frames < 6


def test_iterations_stay_while_a_variable_may_be_asked_for() -> None:
    """Nothing says that `turning` needs any of its variables in every iteration, or that a second result is needed."""
    assert agree(captured(turning, 40), 40).peak_frames > 40
    graph = flatten(sum_loop())
    assert agree(graph, 200, 1).peak_frames > 200
    assert agree(replace(graph, fetches=graph.fetches[1:]), 200, 1).peak_frames < 5


def test_lanes_go_one_by_one() -> None:
    xs = np.arange(40) % 5
    assert agree(captured(lanes, xs, 2), xs, 2).peak_frames < 10


def test_a_frame_stays_for_its_other_results() -> None:
    @ut.function
    def later(n: ut.i64) -> tuple[ut.i64, ut.i64]:
        return many_results(n)

    stats = agree(captured(later, 9), 9)
    assert stats.activations == 11


def test_memory_counts_an_array_once() -> None:
    f = Body("down")
    xs, n = f.param("xs", MANY), f.param("n")
    p = f.op("less_equal", n, const(0), type=BOOL, name="p")
    _, other = f.branch(p)
    here, on = f.switch(p, xs, MANY)
    _, m = f.switch(p, n)
    less = f.op("subtract", m, const(1), region=other)
    below = f.call("down", on, less, name="down", types=(MANY,), region=other)
    program = library(main_of("down", (MANY, I64), (MANY,)), f.finish([f.op("merge", here, below, type=MANY)]))
    big = np.zeros(100_000)
    stats = agree(flatten(program), big, 20)
    assert big.nbytes <= stats.peak_bytes < 1.1 * big.nbytes
    with pytest.raises(FrameLimit, match="memory=500,000"):
        plan_of(program).run([big, np.int64(20)], Options(memory=500_000))


def test_results_belong_to_the_user() -> None:
    main = Body("main", "main")
    x = main.param("x", MANY)
    kept = main.constant([1.0, 2.0], Port(0), 0)
    plan, given = plan_of(library(main.finish([x, kept]))), np.zeros(3)
    (same, constant), _ = plan.run([given])
    same[0] = constant[0] = 5  # type: ignore[index]
    assert given[0] == 0
    assert plan.run([given])[0][1][0] == 1  # type: ignore[index]


# --------------------------------------------------------------------------------------------------------------
# Faults and limits


def error_of(plan: Plan, inputs: list[Any], **options: Any) -> RunError:
    with pytest.raises(RunError) as caught:
        plan.run(inputs, Options(**options))
    return caught.value


def test_faults_are_those_of_the_reference() -> None:
    graph = flatten(dividing())
    agree(graph, np.array([6, 17]))
    inputs = [np.array([6, 6, 2, 6])]
    one, other = error_of(Demand().plan(graph), inputs), error_of(Reference().plan(graph), inputs)
    assert type(one) is type(other) is Fault
    assert (str(one), one.calls, one.span) == (str(other), other.calls, other.span)
    assert [call.label for call in one.calls] == ["@1 lane 2", "@2 iteration 3", "@3"]


def test_unequal_maps_and_lanes_are_faults() -> None:
    with pytest.raises(Fault, match="of 2 and of 3") as caught:
        plan_of(scaled_map()).run([np.ones(2), np.ones(3), np.float64(1)])
    assert caught.value.span is not None

    @ut.function
    def ragged(ns: ut.i64[None]) -> ut.i64[None, None]:
        return ut.map(lambda n: ut.arange(n), ns)

    assert ragged.run(np.array([2, 2]), engine="demand").tolist() == [[0, 1], [0, 1]]
    with pytest.raises(Fault, match="unequal shapes"):
        ragged.run(np.array([2, 3]), engine="demand")


@pytest.mark.parametrize(
    ("limit", "value", "error"),
    [
        ("max_depth", 10, RecursionLimit),
        ("frames", 10, FrameLimit),
        ("memory", 10_000, FrameLimit),
        ("timeout", 0.05, Timeout),
    ],
)
def test_limits(limit: str, value: Any, error: type[RunError]) -> None:
    f = Body("f")
    made = f.call("f", f.op("add", f.param("n"), const(1)), name="f")
    found = error_of(plan_of(library(main_of("f"), f.finish([made]))), [np.int64(0)], **{limit: value})
    assert type(found) is error
    assert found.calls[0].label == "@1"
    assert all(call.label == "@2" for call in found.calls[1:])
    assert found.hint and found.span is not None
    if limit in ("max_depth", "frames"):
        assert len(found.calls) == (10 if limit == "max_depth" else 9)


def test_a_loop_without_end_is_stopped() -> None:
    @ut.function
    def spin(n: ut.i64) -> ut.i64:
        while n > 0:
            n += 1
        return n

    with pytest.raises(Timeout):
        spin.run(1, engine="demand", timeout=0.05)


def test_just_within_the_limits() -> None:
    plan = plan_of(factorial())
    stats = plan.run([np.int64(10)])[1]
    limits = Options(max_depth=10, frames=stats.peak_frames, memory=stats.peak_bytes, timeout=60)
    assert plan.run([np.int64(10)], limits)[0] == [math.factorial(10)]
    assert type(error_of(plan, [np.int64(10)], memory=stats.peak_bytes - 1)) is FrameLimit


def test_check_finite() -> None:
    main = Body("main", "main")
    x = main.param("x", F64)
    plan = plan_of(library(main.finish([main.op("log", x, type=F64)])))
    assert plan.run([np.float64(0)])[0] == [-np.inf]
    assert error_of(plan, [np.float64(0)], check_finite=True).what == "log gave inf"
    assert error_of(plan, [np.float64(-1)], check_finite=True).what == "log gave nan"


def test_an_operator_with_several_results(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(CATALOGUE["identity"], name="both", eval=lambda values, _: (values[0], values[0] * 2.5))
    monkeypatch.setitem(CATALOGUE, "both", row)
    main = Body("main", "main")
    made = main.add("both", main.param("x", MANY), types=(MANY, MANY), name="both").node
    graph = flatten(library(main.finish([Port(made, 1), Port(made, 0)])))
    stats = agree(graph, np.arange(3.0))
    assert stats.per_node["main/both"] == 1
    assert error_of(Demand().plan(graph), [np.array([np.inf])], check_finite=True).what == "both gave inf"
    assert "EVAL(both, []) = both(EVAL(x, []))" in explain(graph, [np.ones(2)])


def test_a_broken_kernel_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(values: Any, attrs: Any) -> Any:
        raise LookupError("oh")

    monkeypatch.setitem(CATALOGUE, "multiply", replace(CATALOGUE["multiply"], eval=broken))
    with pytest.raises(InternalError, match=r"multiply .* failed: LookupError: oh") as caught:
        plan_of(factorial()).run([np.int64(3)])
    assert caught.value.span is not None


def test_an_interrupt_leaves_the_plan_as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    working = CATALOGUE["multiply"].eval
    is_hasty = True

    def interrupted(values: Any, attrs: Any) -> Any:
        if is_hasty:
            raise KeyboardInterrupt
        return working(values, attrs)

    monkeypatch.setitem(CATALOGUE, "multiply", replace(CATALOGUE["multiply"], eval=interrupted))
    plan = plan_of(factorial())
    with pytest.raises(KeyboardInterrupt):
        plan.run([np.int64(4)], Options(trace=tmp_path / "run.jsonl"))
    last = list(read_trace(tmp_path / "run.jsonl"))[-1]
    assert isinstance(last, RunEnded) and last.error == "KeyboardInterrupt: "
    is_hasty = False
    assert plan.run([np.int64(4)])[0] == [24]


def test_inputs_are_checked() -> None:
    with pytest.raises(TypeMismatch, match="takes 1 inputs, not 2"):
        plan_of(factorial()).run([np.int64(1), np.int64(2)])
    with pytest.raises(TypeMismatch, match="main/x0 must be i64, not f64"):
        plan_of(factorial()).run([np.float64(1)])


# --------------------------------------------------------------------------------------------------------------
# Graphs that are not valid


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("fac/multiply8", {"op": "mumble"}, "no operator named 'mumble'"),
        ("fac/identity4", {"controls": ()}, "nothing triggers it"),
        ("fac/multiply8", {"inputs": (Port(1), Port(1))}, "from main/x0 to fac/multiply8 crosses frames"),
        ("fac/multiply8", {"inputs": (Port(3), Port(3))}, "from main/fac.n to fac/multiply8 crosses frames"),
        ("fac/multiply8", {"controls": (Port(0),)}, "control edge from main/start to fac/multiply8 crosses frames"),
        ("fac/n", {"inputs": (const(1), Port(3))}, "takes ports only"),
        ("fac/result", {"inputs": (Port(6), Port(15))}, "from the sides of one branch"),
    ],
)
def test_what_is_refused(name: str, change: dict[str, Any], said: str) -> None:
    graph = flatten(factorial())
    nodes = tuple(replace(n, **change) if n.name == name else n for n in graph.nodes)
    with pytest.raises(GraphError, match=said):
        Demand().plan(replace(graph, nodes=nodes))


def test_a_value_that_depends_on_itself() -> None:
    graph = flatten(factorial())
    at = next(number for number, node in enumerate(graph.nodes) if node.name == "fac/p")
    nodes = tuple(replace(n, inputs=(n.inputs[0], Port(at))) if n.name == "fac/p" else n for n in graph.nodes)
    error = error_of(Demand().plan(replace(graph, nodes=nodes)), [np.int64(3)])
    assert "deadlock: fac/p under [1] depends on itself" in str(error)
    assert [call.label for call in error.calls] == ["@1"]


def test_a_dead_fetch() -> None:
    main = Body("main", "main")
    flag = main.param("flag", BOOL)
    main.branch(flag)
    yes, _ = main.switch(flag, flag, BOOL)
    plan = plan_of(library(main.finish([yes])))
    assert plan.run([np.True_])[0] == [True]
    assert error_of(plan, [np.False_]).what == "a fetch is dead"


# --------------------------------------------------------------------------------------------------------------
# Traces


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trace_is_complete(name: str) -> None:
    given: dict[str, list[Any]] = {
        "scaled_map": [np.ones(2), np.ones(2), np.float64(2)],
        "map_of_calls": [np.True_, np.array([3, 2])],
        "map_of_tokens": [np.ones(2)],
        "tokens_all_over": [np.array([3, 2])],
    }
    plan = plan_of(PROGRAMS[name]())
    events: list[Event] = []
    inputs = given.get(name, [np.int64(3), np.int64(2)])
    _, stats = plan.run(inputs[: len(plan.graph.inputs)], Options(trace=events))
    assert isinstance(events[0], RunStarted) and isinstance(events[-1], RunEnded)
    assert events[0].engine == "demand"
    fired = [event for event in events if isinstance(event, Fired)]
    assert all(event.live for event in fired)
    assert len(fired) == stats.firings == events[-1].firings
    assert Counter(event.name for event in fired) == Counter({n: c for n, c in stats.per_node.items() if c})
    open_frames: set[int] = set()
    for event in events:
        if isinstance(event, FrameStarted):
            assert event.parent is None or event.parent in open_frames
            open_frames.add(event.frame)
        elif isinstance(event, FrameEnded):
            open_frames.remove(event.frame)
        elif isinstance(event, Fired):
            assert event.frame in open_frames
            assert len(event.outputs) == len(plan.graph.nodes[event.node].types)
    assert not open_frames


def test_switch_shows_the_side_that_was_taken() -> None:
    events: list[Event] = []
    plan_of(factorial()).run([np.int64(2)], Options(trace=events))
    shown = {event.name: event.outputs for event in events if isinstance(event, Fired)}
    assert shown["fac/switch5"] == ("*", "2")
    assert shown["main/fac"] == ("2",)
