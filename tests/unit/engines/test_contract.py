"""What every engine promises, on programs built by hand: faults, limits, checks, traces, and plans that stay usable.

An engine that joins ENGINES joins here. `IN_PYTHON` are the engines that fire one node at a time, in Python: these
count frames and bytes exactly, call the kernels of the catalogue, and trace every firing.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.body import BOOL, F64, I64, Body, const, library, main_of
from tests.support.engines import EVERY, forced
from tests.support.graphs import captured, plain
from tests.support.hand_programs import ARGUMENTS, PROGRAMS, dividing, factorial, scaled_map
from tests.support.recursions import count, even, fib, spin

import undertow as ut
from undertow.api.options import ENGINES
from undertow.engines.contract import SCHEDULERS, Engine, Options, Plan, Stats
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
from undertow.ir.trace import Event, Fired, FrameEnded, FrameStarted, RunEnded, RunStarted, Tags, read_trace
from undertow.ops.op import CATALOGUE
from undertow.passes.flatten import flatten
from undertow.types import f64

MANY = f64[None]
IN_PYTHON = ("reference", "demand")


@pytest.fixture(params=EVERY)
def engine(request: pytest.FixtureRequest) -> Engine:
    return EVERY[request.param]


@pytest.fixture(params=IN_PYTHON)
def slow_engine(request: pytest.FixtureRequest) -> Engine:
    return EVERY[request.param]


@pytest.fixture
def named(engine: Engine) -> Iterator[None]:
    """Runs of functions are on this engine."""
    with forced(), ut.options(engine=engine.name):
        yield


def orders(engine: Engine) -> tuple[str | None, ...]:
    """In which the nodes of an engine may fire."""
    return SCHEDULERS if engine.name == "reference" else (None,)


def drain(engine: Engine, plan: Any, *inputs: Any, **options: Any) -> tuple[list[Any], Stats]:
    """A run that computes everything, also where no fetch needs it, and leaves nothing: if the engine can do that."""
    if engine.name != "reference":
        return plan.run(plain(inputs), Options(**options))  # type: ignore[no-any-return]
    results, stats, left = plan.drain(plain(inputs), Options(**options))
    assert left == 0
    return results, stats


def error_of(plan: Plan, *inputs: Any, **options: Any) -> RunError:
    with pytest.raises(RunError) as caught:
        plan.run(plain(inputs), Options(**options))
    return caught.value


def test_it_is_an_engine(engine: Engine) -> None:
    plan: Plan = engine.plan(flatten(factorial()))
    results, stats = plan.run([np.int64(5)])
    assert results == [np.int64(120)] and type(results[0]) is np.int64
    assert (stats.engine, stats.activations, stats.max_depth) == (engine.name.split(":")[0], 5, 5)


def test_results_belong_to_the_user(engine: Engine) -> None:
    main = Body("main", "main")
    kept = main.constant([1.0, 2.0], Port(0), 0)
    plan, given = engine.plan(flatten(library(main.finish([main.param("x", MANY), kept])))), np.zeros(3)
    (same, constant), _ = plan.run([given])
    same[0] = constant[0] = 5  # type: ignore[index]
    assert given[0] == 0
    assert plan.run([given])[0][1][0] == 1  # type: ignore[index]


# --------------------------------------------------------------------------------------------------------------
# Faults


def test_a_fault_shows_the_calls_that_led_to_it(engine: Engine) -> None:
    plan = engine.plan(flatten(dividing()))
    assert plan.run([np.array([6, 17])])[0][0].tolist() == [12 + 6 + 4 + 3 + 2, 1]  # type: ignore[union-attr]
    wanted = error_of(Reference().plan(flatten(dividing())), np.array([6, 6, 2, 6]))
    for scheduler in orders(engine):
        fault = error_of(plan, np.array([6, 6, 2, 6]), scheduler=scheduler)
        assert isinstance(fault, Fault) and "division by zero" in str(fault)
        assert (str(fault), fault.calls, fault.span) == (str(wanted), wanted.calls, wanted.span)
        labels = ["@1 lane 2", "@2 iteration 3", "@3"]
        assert [(call.label, call.function) for call in fault.calls] == [(label, "main") for label in labels]
        assert fault.span is not None and (fault.span.file, fault.span.line) == ("share.py", 5)
        assert [call.span and call.span.file for call in fault.calls] == ["main.py", "lane.py", "loop.py"]


def test_unequal_maps_and_lanes_are_faults(engine: Engine) -> None:
    for scheduler in orders(engine):
        fault = error_of(engine.plan(flatten(scaled_map())), np.ones(2), np.ones(3), 1.0, scheduler=scheduler)
        assert isinstance(fault, Fault) and fault.span is not None
        assert "of 2 and 3" in fault.what or "of 3 and 2" in fault.what

    @ut.function
    def ragged(ns: ut.i64[None]) -> ut.i64[None, None]:
        return ut.map(lambda n: ut.arange(n), ns)

    plan = engine.plan(captured(ragged, np.array([2, 2])))
    assert plan.run([np.array([2, 2])])[0][0].tolist() == [[0, 1], [0, 1]]  # type: ignore[union-attr]
    assert "different shapes" in error_of(plan, np.array([2, 3])).what


@pytest.mark.parametrize(
    "of", [lambda x, y: x + y, lambda x, y: x @ y, lambda x, y: x[y > 0]], ids=["add", "matmul", "mask"]
)
def test_large_arrays_that_do_not_fit_are_faults(engine: Engine, of: Any) -> None:
    """How much memory a result takes is asked before its kernel runs, where the operands are large."""

    @ut.function
    def misfit(x: ut.f64[None], y: ut.f64[None]):
        return of(x, y)

    fault = error_of(engine.plan(captured(misfit, np.ones(3), np.ones(3))), np.ones(5000), np.ones(3))
    assert isinstance(fault, Fault) and "5000" in fault.what and "3" in fault.what


def test_check_finite(engine: Engine) -> None:
    main = Body("main", "main")
    plan = engine.plan(flatten(library(main.finish([main.op("log", main.param("x", F64), type=F64)]))))
    assert plan.run([np.float64(0)])[0] == [-np.inf]
    assert error_of(plan, 0.0, check_finite=True).what == "log returned inf"
    assert error_of(plan, -1.0, check_finite=True).what == "log returned nan"


def test_a_dead_fetch(slow_engine: Engine) -> None:
    main = Body("main", "main")
    flag = main.param("flag", BOOL)
    main.branch(flag)
    yes, _ = main.switch(flag, flag, BOOL)
    plan = slow_engine.plan(flatten(library(main.finish([yes]))))
    assert plan.run([np.True_])[0] == [True]
    assert error_of(plan, False).what == "a fetch is dead"


@pytest.mark.parametrize(
    ("engine_name", "error", "raised", "said"),
    [
        *((name, LookupError("oh"), InternalError, r"multiply .* failed: LookupError: oh") for name in IN_PYTHON),
        ("reference", OSError("no space left"), OSError, "no space left"),  # a disk that is full is nobody's fault
    ],
)
def test_kernels_that_fail(
    monkeypatch: pytest.MonkeyPatch, engine_name: str, error: Exception, raised: type[Exception], said: str
) -> None:
    def broken(values: Any, attrs: Any) -> Any:
        raise error

    monkeypatch.setitem(CATALOGUE, "multiply", replace(CATALOGUE["multiply"], eval=broken))
    with pytest.raises(raised, match=said) as caught:
        EVERY[engine_name].plan(flatten(factorial())).run([np.int64(3)])
    if isinstance(caught.value, InternalError):
        assert caught.value.__cause__ is error and caught.value.span is not None


def test_an_interrupt_leaves_the_plan_as_it_was(
    slow_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    working = CATALOGUE["multiply"].eval
    is_hasty = True

    def interrupted(values: Any, attrs: Any) -> Any:
        if is_hasty:
            raise KeyboardInterrupt
        return working(values, attrs)

    monkeypatch.setitem(CATALOGUE, "multiply", replace(CATALOGUE["multiply"], eval=interrupted))
    plan = slow_engine.plan(flatten(factorial()))
    with pytest.raises(KeyboardInterrupt):
        plan.run([np.int64(4)], Options(trace=tmp_path / "run.jsonl"))
    last = list(read_trace(tmp_path / "run.jsonl"))[-1]
    assert isinstance(last, RunEnded) and last.error == "KeyboardInterrupt: "
    is_hasty = False
    assert plan.run([np.int64(4)])[0] == [24]


# --------------------------------------------------------------------------------------------------------------
# Limits


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("limit", "value", "error"),
    [
        ("max_depth", 10, RecursionLimit),
        ("frames", 10, FrameLimit),
        ("memory", 100_000, FrameLimit),
        ("timeout", 0.05, Timeout),
    ],
)
def test_limits(engine: Engine, limit: str, value: Any, error: type[RunError]) -> None:
    """The error says where the run was, and the function stays usable."""
    for scheduler in orders(engine):
        with pytest.raises(error) as caught:
            count.run(-1, scheduler=scheduler, **{"max_depth": None, limit: value})
        found = caught.value
        assert [call.label for call in found.calls] == ["@1"] + ["@2"] * (len(found.calls) - 1)
        # Time may end where a token starts, which no line of the source says.
        assert found.hint and (found.span is not None or limit == "timeout")
        if limit in ("max_depth", "frames"):
            # A frame is opened by a token of its call, while the caller's is the innermost.
            assert len(found.calls) == (10 if limit == "max_depth" else 9)
        assert count.run(5, scheduler=scheduler, **{limit: value}) == 5


@pytest.mark.parametrize("limits", [{"frames": 0}, {"memory": 0}], ids=str)
def test_limits_that_leave_no_room_for_main(engine: Engine, limits: dict[str, int]) -> None:
    found = error_of(engine.plan(flatten(factorial())), 3, **limits)
    assert type(found) is FrameLimit and found.hint


def test_just_within_the_limits(slow_engine: Engine) -> None:
    plan = slow_engine.plan(flatten(factorial()))
    stats = plan.run([np.int64(10)])[1]
    limits = Options(max_depth=10, frames=stats.peak_frames, memory=stats.peak_bytes, timeout=60)
    assert plan.run([np.int64(10)], limits)[0] == [math.factorial(10)]
    assert type(error_of(plan, 10, memory=stats.peak_bytes - 1)) is FrameLimit


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x[:, None] * x[None, :],
        lambda x: x[:, None] @ x[None, :],
        lambda x: ut.broadcast_to(x, (3000, 3000)),
        lambda x: ut.full((x.shape[0], 3000), 1.0) + x,
        lambda x: ut.arange(x[0] * 9e6) + 0.0,
        lambda x: ut.concat([x] * 3000),
        lambda x: x[:, None][:, :0] @ x[None, :][:0, :],
    ],
)
@pytest.mark.parametrize("length", [3000, None])
@pytest.mark.parametrize("engine", ENGINES)
def test_memory_is_checked_before_it_is_taken(engine: str, length: int | None, program: Any) -> None:
    """Each asks for 72 MB."""

    def whole(x: Any) -> Any:
        return ut.sum(program(x))

    whole.__annotations__["x"] = f64[length]
    f = ut.function(whole)
    f.run(np.ones(3000), engine="waves")
    tracemalloc.start()
    try:
        with pytest.raises(FrameLimit, match="more than memory=30,000,000"):
            f.run(np.ones(3000), engine=engine, memory=30_000_000)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000  # NumPy tells it what it takes
    finally:
        tracemalloc.stop()


def test_memory_counts_an_array_once(engine: Engine) -> None:
    """down(xs, n) hands a big array on through 20 activations."""
    f = Body("down")
    xs, n = f.param("xs", MANY), f.param("n")
    p = f.op("less_equal", n, const(0), type=BOOL, name="p")
    _, other = f.branch(p)
    here, on = f.switch(p, xs, MANY)
    _, m = f.switch(p, n)
    less = f.op("subtract", m, const(1), region=other)
    below = f.call("down", on, less, name="down", types=(MANY,), region=other)
    program = library(main_of("down", (MANY, I64), (MANY,)), f.finish([f.op("merge", here, below, type=MANY)]))
    big, plan = np.zeros(100_000), engine.plan(flatten(program))
    (result,), stats = plan.run([big, np.int64(20)])
    np.testing.assert_array_equal(result, big)
    if engine.name in IN_PYTHON:
        assert big.nbytes <= stats.peak_bytes < 1.1 * big.nbytes
        assert "memory=500,000" in error_of(plan, big, 20, memory=500_000).what


@pytest.mark.slow
def test_depth_is_data(engine: Engine) -> None:
    plan, deep = engine.plan(flatten(factorial())), 100_000 if engine.name in IN_PYTHON else 300_000
    for scheduler in orders(engine)[:2]:
        results, stats = drain(engine, plan, deep, scheduler=scheduler)
        assert results == [np.int64(0)]
        assert stats.max_depth == stats.activations == len(stats.deepest_tag) == deep
    found = error_of(plan, deep, max_depth=90_000)
    assert type(found) is RecursionLimit
    assert len(found.calls) == 90_000 and len(str(found)) < 2_000


@pytest.mark.usefixtures("named")
def test_max_depth_is_exact() -> None:
    for function, n in ((count, 9), (fib, 10)):
        function.run(n, max_depth=10)
        with pytest.raises(RecursionLimit, match="max_depth=9") as caught:
            function.run(n, max_depth=9)
        assert len(caught.value.calls) == 9
        assert caught.value.span is not None and f"{function.__name__}(n - 1)" in caught.value.span.source()
    assert spin.run(50, max_depth=1) == 0  # loops add none


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("endless", [count, spin, even])
def test_timeout(endless: Any) -> None:
    began = time.perf_counter()
    with pytest.raises(Timeout, match=r"0\.05 s") as caught:
        endless.run(-1, timeout=0.05, max_depth=None)
    assert time.perf_counter() - began < 5
    assert caught.value.calls
    assert len(str(caught.value).splitlines()) < 20
    with pytest.raises(Timeout):
        endless.run(5, timeout=0)
    assert endless(0) in (0, True)
    assert endless.run(20, timeout=1e9) == endless.run(20, timeout=float("inf")) == endless(20)


@pytest.mark.usefixtures("named")
def test_the_trace_of_a_failed_run_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with pytest.raises(RecursionLimit):
        count.run(10, max_depth=3, trace=file)
    last = list(read_trace(file))[-1]
    assert isinstance(last, RunEnded) and "calls nest deeper than max_depth=3" in last.error


# --------------------------------------------------------------------------------------------------------------
# What is refused


def test_inputs_are_checked(engine: Engine) -> None:
    plan = engine.plan(flatten(factorial()))
    with pytest.raises(TypeMismatch, match="takes 1 inputs, but 2 are given"):
        plan.run([np.int64(1), np.int64(2)])
    with pytest.raises(TypeMismatch, match="main/x0 must be i64, not f64"):
        plan.run([np.float64(1)])
    with pytest.raises(TypeMismatch, match=r"must be i64, not i64\[2\]"):
        plan.run([np.array([1, 2])])


@pytest.mark.parametrize(
    ("name", "change", "said", "engines"),
    [
        ("fac/multiply8", {"op": "mumble"}, "unknown operator 'mumble'", IN_PYTHON),
        ("fac/identity4", {"controls": ()}, "nothing triggers it", IN_PYTHON),
        ("fac/multiply8", {"inputs": (Port(1), Port(1))}, "from main/x0 to fac/multiply8 crosses frames", IN_PYTHON),
        (
            "fac/multiply8",
            {"inputs": (Port(3), Port(3))},
            "from main/fac.n to fac/multiply8 crosses frames",
            ["demand"],
        ),
        ("fac/multiply8", {"controls": (Port(0),)}, "control edge from main/start to fac/multiply8", IN_PYTHON),
        ("fac/result", {"inputs": (const(1), Port(15))}, "takes only ports", ["reference"]),
        ("fac/n", {"inputs": (const(1), Port(3))}, "takes only ports", IN_PYTHON),
        ("fac/result", {"inputs": (Port(6), Port(15))}, "from the sides of one branch", ["demand"]),
    ],
)
def test_graphs_that_are_refused(name: str, change: dict[str, Any], said: str, engines: list[str]) -> None:
    graph = flatten(factorial())
    nodes = tuple(replace(n, **change) if n.name == name else n for n in graph.nodes)
    for engine in engines:
        with pytest.raises(GraphError, match=said):
            EVERY[engine].plan(replace(graph, nodes=nodes))


# --------------------------------------------------------------------------------------------------------------
# Traces


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_trace_is_complete(slow_engine: Engine, name: str) -> None:
    plan: Any = slow_engine.plan(flatten(PROGRAMS[name]()))
    events: list[Event] = []
    _, stats = drain(slow_engine, plan, *ARGUMENTS[name][0], trace=events)
    assert isinstance(events[0], RunStarted) and isinstance(events[-1], RunEnded)
    assert events[0].engine == slow_engine.name
    fired = [event for event in events if isinstance(event, Fired)]
    assert sum(event.live for event in fired) == stats.firings == events[-1].firings
    assert sum(not event.live for event in fired) == stats.dead_firings
    assert Counter(event.name for event in fired if event.live) == Counter(
        {node: count for node, count in stats.per_node.items() if count}
    )
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
    tags, frames = Tags(events), [event.frame for event in events if isinstance(event, FrameStarted)]
    assert len({tags[frame] for frame in frames}) == len(frames)


@pytest.mark.parametrize(("engine_name", "n", "sides"), [("reference", 1, ("1", "*")), ("demand", 2, ("*", "2"))])
def test_switch_shows_its_dead_side(engine_name: str, n: int, sides: tuple[str, str]) -> None:
    events: list[Event] = []
    EVERY[engine_name].plan(flatten(factorial())).run([np.int64(n)], Options(trace=events))
    shown = {event.name: event.outputs for event in events if isinstance(event, Fired)}
    assert (shown["fac/switch5"], shown["main/fac"]) == (sides, (str(n),))
