"""The reference engine, on programs built by hand: results, frames, faults, limits and traces."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.ir.test_spec import THREE_PHASES, parse_library
from tests.unit.passes.test_flatten import (
    BOOL,
    F64,
    I64,
    PROGRAMS,
    Body,
    const,
    deep_branches,
    even_odd,
    factorial,
    fibonacci,
    library,
    main_of,
    map_of_calls,
    map_of_tokens,
    nested_loop,
    scaled_map,
    sum_loop,
    tokens_all_over,
    two_phases,
)

from undertow.engines.contract import SCHEDULERS, Engine, Options, Plan
from undertow.engines.expand import ExpandPlan
from undertow.engines.reference import Reference, ReferencePlan
from undertow.engines.reference.run import Run
from undertow.engines.waves import WavesPlan
from undertow.errors import (
    Fault,
    FrameLimit,
    GraphError,
    InternalError,
    RecursionLimit,
    RunError,
    Timeout,
    TypeMismatch,
    UndertowError,
)
from undertow.ir.graph import Const, Library, Node, Port
from undertow.ir.spec import check
from undertow.ir.trace import Event, Fired, FrameEnded, FrameStarted, RunEnded, RunStarted, Tags, read_trace, show_tag
from undertow.ops.op import CATALOGUE
from undertow.passes.flatten import flatten
from undertow.types import f64, i64

MANY = f64[None]


def plan_of(program: Library) -> ReferencePlan:
    return Reference().plan(flatten(program))


def run(program: Library, *inputs: Any, **options: Any) -> list[Any]:
    """Results of a run, after other engines and every scheduler gave the same, and left no frame and no byte behind."""
    plan = plan_of(program)
    values = [np.asarray(value) for value in inputs]
    results, _ = plan.run(values, Options(**options))
    for scheduler in SCHEDULERS:
        for seed in range(3 if scheduler == "random" else 1):
            again = Run(plan.rows, [v[()] for v in values], Options(scheduler=scheduler, schedule_seed=seed), None)
            with np.errstate(all="ignore"):
                again.execute(drain=True)
            assert not again.live
            assert (again.bytes, again.held) == (0, {})
            for one, other in zip(results, again.results, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
    for other_plan in (*(WavesPlan(plan.graph, width) for width in (1, 2, 4096)), ExpandPlan(plan.graph)):
        found, _ = other_plan.run(values)
        for one, other in zip(results, found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, strict=True)
    return results


def stats_of(program: Library, *inputs: Any) -> Any:
    return plan_of(program).drain([np.asarray(value) for value in inputs])[1]


def test_it_is_an_engine() -> None:
    engine: Engine = Reference()
    plan: Plan = engine.plan(flatten(factorial()))
    results, stats = plan.run([np.int64(5)])
    assert results == [np.int64(120)]
    assert stats.engine == "reference"


# --------------------------------------------------------------------------------------------------------------
# Programs


@pytest.mark.parametrize("n", [-3, 0, 1, 2, 5, 20])
def test_factorial(n: int) -> None:
    (result,) = run(factorial(), n)
    assert result == math.factorial(max(n, 1))
    assert type(result) is np.int64


def test_integers_wrap() -> None:
    assert run(factorial(), 25) == [np.int64(math.factorial(25) % 2**64 - 2**64 * (math.factorial(25) >> 63 & 1))]


def test_fibonacci_counts() -> None:
    assert run(fibonacci(), 10) == [89]
    stats = stats_of(fibonacci(), 10)
    assert stats.activations == 177
    assert stats.per_node["fib/n"] == 177
    assert stats.per_node["fib/total"] == 88
    assert stats.max_depth == 10
    assert stats.deepest_tag == (2,) * 9 + (1,)
    assert stats.firings == sum(stats.per_node.values())
    nodes = sum(node.name.startswith("fib/") for node in flatten(fibonacci()).nodes)
    assert stats.firings + stats.dead_firings == 177 * nodes + 5
    assert 0 < stats.peak_frames <= 178


@pytest.mark.parametrize("n", [0, 1, 7, 12])
def test_mutual_recursion(n: int) -> None:
    assert run(even_odd(), n) == [n % 2 == 0]


@pytest.mark.parametrize(("n", "step"), [(0, 1), (1, 1), (10, 1), (10, 3), (-5, 1)])
def test_loop(n: int, step: int) -> None:
    left, total = n, 0
    while left >= step:
        total, left = total + left, left - step
    assert run(sum_loop(), n, step) == [left, total]


def test_a_loop_keeps_no_old_iterations() -> None:
    stats = stats_of(sum_loop(), 1000, 1)
    assert stats.peak_frames < 5
    assert (stats.activations, stats.max_depth) == (0, 0)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_nested_loop(n: int) -> None:
    assert run(nested_loop(), n, 10) == [10 * sum(j for i in range(n + 1) for j in range(i + 1))]


@pytest.mark.parametrize("n", [0, 1, 5])
def test_map(n: int) -> None:
    xs, ys = np.arange(n) * 1.0, np.ones(n)
    mapped, same = run(scaled_map(), xs, ys, 3.0)
    np.testing.assert_array_equal(mapped, xs * 9 + ys + 0.5, strict=True)
    np.testing.assert_array_equal(same, xs, strict=True)
    assert run(map_of_tokens(), xs) == [True]


@pytest.mark.parametrize("xs", [[], [0], [2, 0, 3]])
def test_order_tokens_go_wherever_values_go(xs: list[int]) -> None:
    go, left = run(tokens_all_over(), np.array(xs, np.int64))
    assert go
    assert left.tolist() == [0] * len(xs)
    assert stats_of(tokens_all_over(), np.array(xs, np.int64)).activations == 1 + sum(xs)


def test_an_empty_map_of_rows() -> None:
    """Dimensions that are known only at run time are 0 where there is no lane to tell."""
    lane = Body("lane", "map", carried=1)
    x = lane.param("x", f64[3, None])
    main = Body("main", "main")
    made = main.add("map", main.param("xs", f64[None, 3, None]), types=(f64[None, 3, None],), name="map", body="lane")
    program = library(main.finish([made]), lane.finish([x]))
    assert run(program, np.zeros((0, 3, 7)))[0].shape == (0, 3, 0)
    assert run(program, np.zeros((2, 3, 7)))[0].shape == (2, 3, 7)


@pytest.mark.parametrize("flag", [True, False])
def test_a_map_of_calls_in_a_branch(flag: bool) -> None:
    xs = np.array([5, 0, 3])
    (result,) = run(map_of_calls(), flag, xs)
    assert result.tolist() == ([120, 1, 6] if flag else [-5, 0, -3])
    stats = stats_of(map_of_calls(), flag, xs)
    assert stats.activations == (5 + 1 + 3 if flag else 0)
    assert stats.peak_frames > 3 or not flag


@pytest.mark.parametrize(("x", "y"), [(0, 0), (4, 3), (1, 6)])
def test_two_phases(x: int, y: int) -> None:
    """The second visit finds the values of the first in the same frames; the call that is not resumed ends too."""
    dn = 1 if x == 0 else math.factorial(x)
    assert run(two_phases(), x, y) == [x, y, dn * 1]
    stats = stats_of(two_phases(), x, y)
    assert stats.activations == x + 1 + y + 1
    assert stats.per_node["f/dy"] == x + 1


def test_a_phase_that_one_caller_visits_and_its_callees_therefore_too() -> None:
    """Main calls g without a gradient and h with one; both call f, whose site in g has two phases."""
    f = two_phases().functions["f"]
    g = Body("g", phases=2)
    made = g.call("f", g.param("n"), name="f")
    back = g.add("resume", made, g.param("dy", phase=1), types=(I64,), name="back", phase=1)
    main = Body("main", "main")
    n = main.param("n")
    once = main.call("g", n, name="once")
    twice = main.call("g", n, name="twice")
    grad = main.add("resume", twice, const(2), types=(I64,), name="grad", phase=1)
    program = library(main.finish([once, twice, grad]), g.finish([made], [back]), f)
    assert run(program, 3) == [3, 3, 12]
    assert stats_of(program, 3).per_node["g/dy"] == 1


def test_three_phases_through_a_caller_in_between() -> None:
    assert run(parse_library(THREE_PHASES), 3.0) == [9, 3, 6, 9]


def late_visitors() -> Library:
    """In its second phase f(x, xs) calls, loops and maps over values of the first. Main resumes one call of two."""
    g = Body("g")
    product = g.op("multiply", g.param("a"), g.param("b"))

    loop = sum_loop().functions["sum"]
    lane = Body("lane", "map", carried=1)
    scaled = lane.op("multiply", lane.param("x"), lane.param("by"))

    f = Body("f", phases=2)
    x, xs = f.param("x"), f.param("xs", i64[None])
    dy = f.param("dy", phase=1)
    called = f.call("g", x, dy, name="g")
    looped = f.add("loop", x, const(0), dy, types=(I64, I64), name="sum", body="sum")
    held = f.add("loop", dy, const(0), x, types=(I64, I64), name="held", body="sum")
    mapped = f.add("map", xs, dy, types=(i64[None],), name="map", body="lane")
    results = [called, Port(looped.node, 1), Port(held.node, 1), mapped]

    main = Body("main", "main")
    n, ns, d = main.param("n"), main.param("ns", i64[None]), main.param("d")
    made = main.call("f", n, ns, name="made")
    other = main.call("f", n, ns, name="other")
    back = main.add("resume", made, d, types=(I64, I64, I64, i64[None]), name="back", phase=1).node
    fetches = [made, other, *(Port(back, index) for index in range(4))]
    return library(main.finish(fetches), f.finish([x], results), g.finish([product]), loop, lane.finish([scaled]))


def test_values_of_an_earlier_phase_enter_only_where_the_later_one_is_visited() -> None:
    program = late_visitors()
    check(program)
    check(flatten(program))
    made, other, called, looped, held, mapped = run(program, 7, np.array([1, 2]), 2)
    assert (made, other, called, looped, held) == (7, 7, 14, 7 + 5 + 3, 0)
    assert mapped.tolist() == [2, 4]
    assert stats_of(program, 7, np.array([1, 2]), 2).activations == 3


def test_a_result_of_a_phase_that_is_not_visited_may_come_when_its_caller_has_ended() -> None:
    """The second phase of f gives what the first computes, but main comes back to only one of its calls of g."""
    text = """
        main main(x: f64) -> (y, z, dz)
          y: f64 = call x callee="g"
          z: f64 = call x callee="g"
          dz: f64 = resume z, x phase=1
        function g(x: f64) -> (y)
          y: f64 = call x callee="f"
          phase 1(dy: f64) -> (dx)
          dx: f64 = resume y, dy phase=1
        function f(x: f64) -> (x)
          a: f64 = multiply x, x
          b: f64 = multiply a, a
          phase 1(dy: f64) -> (b)
    """
    assert run(parse_library("library 1 main=main\n" + text), 2.0) == [2, 2, 16]


def test_an_element_that_is_only_lent_may_come_last() -> None:
    """The outer lanes hand y on to inner ones, where no result needs it."""
    text = """
        main main(xs: f64[?,?], ys: f64[?]) -> (r)
          a: f64[?] = negative ys
          b: f64[?] = negative a
          r: f64[?,?] = map xs, b body="outer"
        map outer(x: f64[?], y: f64) -> (r) carried=2
          r: f64[?] = map x, y body="inner"
        map inner(x: f64, y: f64) -> (x) carried=1
          unused: f64 = multiply y, y
    """
    xs = np.ones((2, 3))
    np.testing.assert_array_equal(run(parse_library("library 1 main=main\n" + text), xs, np.ones(2))[0], xs)


def test_a_dead_call_starts_nothing() -> None:
    stats = stats_of(factorial(), 1)
    assert stats.activations == 1
    assert stats.per_node["fac/fac.start"] == stats.per_node["fac/fac.n"] == stats.per_node["fac/fac"] == 0


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_way_back_with_two_dead_controls_fires_once(scheduler: str) -> None:
    graph = flatten(factorial())
    pivot = next(number for number, node in enumerate(graph.nodes) if node.name == "fac/switch3")
    nodes = (replace(n, controls=(*n.controls, Port(pivot, 1))) if n.name == "fac/fac" else n for n in graph.nodes)
    changed = replace(graph, nodes=tuple(nodes))
    check(changed)
    results, stats, left = Reference().plan(changed).drain([np.int64(3)], Options(scheduler=scheduler))
    assert (results, left) == ([6], 0)
    assert stats.dead_firings == stats_of(factorial(), 3).dead_firings


def loop_in_branch() -> Library:
    """sum of 1..n if flag else n"""
    whole = sum_loop()
    main = Body("main", "main")
    flag, n, by = main.param("flag", BOOL), main.param("n"), main.param("by")
    then, _ = main.branch(flag)
    yes, no = main.switch(flag, n)
    step, _ = main.switch(flag, by)
    made = main.add("loop", yes, const(0), step, types=(I64, I64), name="sum", region=then, body="sum")
    return library(main.finish([main.op("merge", Port(made.node, 1), no)]), whole.functions["sum"])


def test_a_dead_loop_starts_nothing() -> None:
    assert run(loop_in_branch(), False, 4, 1) == [4]
    assert run(loop_in_branch(), True, 4, 1) == [10]
    stats = stats_of(loop_in_branch(), False, 4, 1)
    assert stats.peak_frames == 1
    assert stats.per_node["main/sum.i"] == stats.per_node["main/sum.0"] == stats.per_node["main/sum.start"] == 0


def test_deep_branches() -> None:
    assert run(deep_branches(500), True) == [False]
    assert run(deep_branches(500), False) == [False]


def test_what_no_fetch_needs_is_abandoned() -> None:
    """first(x, y) = x, with a y that never comes."""
    loop = Body("loop", "loop", carried=1)
    flag = loop.param("flag", BOOL)
    first = Body("first")
    x = first.param("x")
    first.param("y", BOOL)
    main = Body("main", "main")
    n = main.param("n")
    forever = main.add("loop", const(True), types=(BOOL,), name="loop", controls=(Port(0),), body="loop")
    program = library(
        main.finish([main.call("first", n, forever, name="first")]), loop.finish([flag, flag]), first.finish([x])
    )
    assert plan_of(program).run([np.int64(7)])[0] == [7]


def test_results_belong_to_the_user() -> None:
    main = Body("main", "main")
    x = main.param("x", MANY)
    kept = main.constant([1.0, 2.0], Port(0), 0)
    given = np.zeros(3)
    same, constant = run(library(main.finish([x, kept])), given)
    same[0] = constant[0] = 5
    assert given[0] == 0
    assert run(library(main.finish([x, kept])), given)[1][0] == 1


def test_a_kernel_s_result_takes_the_declared_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOGUE, "negative", replace(CATALOGUE["negative"], eval=lambda v, _: (-float(v[0]),)))
    main = Body("main", "main")
    assert type(run(library(main.finish([main.op("negative", main.param("x"))])), 3)[0]) is np.int64


@pytest.mark.slow
def test_a_hundred_thousand_nested_calls() -> None:
    plan = plan_of(factorial())
    for scheduler in ("fifo", "lifo"):
        results, stats, left = plan.drain([np.int64(100_000)], Options(scheduler=scheduler))
        assert results == [np.int64(0)]
        assert left == 0
        assert stats.max_depth == stats.activations == 100_000
        assert len(stats.deepest_tag) == 100_000
    with pytest.raises(RecursionLimit) as caught:
        plan.run([np.int64(100_000)], Options(max_depth=90_000))
    assert len(caught.value.calls) == 90_000
    assert len(str(caught.value)) < 2_000


# --------------------------------------------------------------------------------------------------------------
# Faults and limits


def dividing() -> Library:
    """A map over a loop over calls: while i > 0: total += share(x, i); i -= 1. share(x, i) = 12 // (x - i)."""
    share = Body("share")
    x, i = share.param("x"), share.param("i")
    gap = share.op("subtract", x, i)
    quotient = share.op("floor_divide", const(12), gap, name="quotient")

    loop = Body("loop", "loop", carried=2)
    at, total, by = loop.param("i"), loop.param("total"), loop.param("x")
    p = loop.op("less_equal", const(1), at, type=BOOL, name="p")
    then, _ = loop.branch(p)
    at_on, total_on, by_on = (loop.switch(p, port)[0] for port in (at, total, by))
    more = loop.call("share", by_on, at_on, name="share", region=then)
    sum_ = loop.op("add", total_on, more, region=then)
    after = loop.op("subtract", at_on, const(1), region=then)

    lane = Body("lane", "map", carried=1)
    element = lane.param("x")
    made = lane.add("loop", const(5), const(0), element, types=(I64, I64), name="loop", body="loop")
    main = Body("main", "main")
    result = main.add("map", main.param("xs", i64[None]), types=(i64[None],), name="map", body="lane")
    return library(
        main.finish([result]),
        lane.finish([Port(made.node, 1)]),
        loop.finish([p, after, sum_]),
        share.finish([quotient]),
    )


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_fault_shows_the_calls_that_led_to_it(scheduler: str) -> None:
    plan = plan_of(dividing())
    assert plan.run([np.array([6, 17])])[0][0].tolist() == [12 + 6 + 4 + 3 + 2, 1]
    with pytest.raises(Fault) as caught:
        plan.run([np.array([6, 6, 2, 6])], Options(scheduler=scheduler))
    fault = caught.value
    assert [(call.label, call.function) for call in fault.calls] == [
        ("@1 lane 2", "main"),
        ("@2 iteration 3", "main"),
        ("@3", "main"),
    ]
    assert fault.span is not None and (fault.span.file, fault.span.line) == ("share.py", 5)
    assert [call.span and call.span.file for call in fault.calls] == ["main.py", "lane.py", "loop.py"]
    assert "division by zero" in str(fault)


def test_unequal_maps_are_a_fault() -> None:
    for scheduler in SCHEDULERS:
        with pytest.raises(Fault, match=r"of 2 and of 3|of 3 and of 2") as caught:
            plan_of(scaled_map()).run([np.ones(2), np.ones(3), np.float64(1)], Options(scheduler=scheduler))
        assert caught.value.span is not None


def test_unequal_lanes_are_a_fault() -> None:
    lane = Body("lane", "map", carried=1)
    made = lane.add("identity", lane.param("x"), types=(MANY,), name="ragged")
    main = Body("main", "main")
    result = main.add("map", main.param("xs"), types=(f64[None, None],), name="map", body="lane")
    main.nodes[1] = replace(main.nodes[1], types=(i64[None],))
    graph = flatten(library(main.finish([result]), lane.finish([made])))
    row = replace(CATALOGUE["identity"], eval=lambda values, _: (np.zeros(int(values[0])),))
    CATALOGUE["ragged"] = row
    try:
        nodes = tuple(replace(n, op="ragged") if n.name == "lane/ragged" else n for n in graph.nodes)
        plan = Reference().plan(replace(graph, nodes=nodes))
        assert plan.run([np.array([2, 2])])[0][0].shape == (2, 2)
        with pytest.raises(Fault, match="unequal shapes"):
            plan.run([np.array([2, 3])])
    finally:
        del CATALOGUE["ragged"]


def test_check_finite() -> None:
    main = Body("main", "main")
    x = main.param("x", F64)
    plan = plan_of(library(main.finish([main.op("log", x, type=F64)])))
    assert plan.run([np.float64(0)])[0] == [-np.inf]
    with pytest.raises(Fault, match="log gave inf"):
        plan.run([np.float64(0)], Options(check_finite=True))
    with pytest.raises(Fault, match="log gave nan"):
        plan.run([np.float64(-1)], Options(check_finite=True))


def test_a_broken_kernel_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(values: Any, attrs: Any) -> Any:
        raise LookupError("oh")

    monkeypatch.setitem(CATALOGUE, "multiply", replace(CATALOGUE["multiply"], eval=broken))
    with pytest.raises(InternalError, match=r"multiply .* failed: LookupError: oh") as caught:
        plan_of(factorial()).run([np.int64(3)])
    assert isinstance(caught.value.__cause__, LookupError)
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


def test_a_disk_that_is_full_is_nobody_s_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(values: Any, attrs: Any) -> Any:
        raise OSError("no space left")

    monkeypatch.setitem(CATALOGUE, "multiply", replace(CATALOGUE["multiply"], eval=full))
    with pytest.raises(OSError, match="no space left"):
        plan_of(factorial()).run([np.int64(3)])


@pytest.mark.parametrize("limits", [{"frames": 0}, {"memory": 0}])
def test_limits_that_leave_no_room_for_main(limits: dict[str, int]) -> None:
    with pytest.raises(FrameLimit) as caught:
        plan_of(factorial()).run([np.int64(3)], Options(**limits))
    assert caught.value.hint


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize(
    ("limit", "value", "error"),
    [
        ("max_depth", 10, RecursionLimit),
        ("frames", 10, FrameLimit),
        ("memory", 10_000, FrameLimit),
        ("timeout", 0.05, Timeout),
    ],
)
def test_limits(limit: str, value: Any, error: type[RunError], scheduler: str) -> None:
    """fac(n) = fac(n + 1), more or less."""
    f = Body("f")
    made = f.call("f", f.op("add", f.param("n"), const(1)), name="f")
    plan = plan_of(library(main_of("f"), f.finish([made])))
    with pytest.raises(error) as caught:
        plan.run([np.int64(0)], Options(scheduler=scheduler, **{limit: value}))
    assert caught.value.calls[0].label == "@1"
    assert all(call.label == "@2" for call in caught.value.calls[1:])
    assert caught.value.hint and caught.value.span is not None
    if limit in ("max_depth", "frames"):
        # A frame is opened by a token of its call, while the caller's is the innermost.
        assert len(caught.value.calls) == (10 if limit == "max_depth" else 9)


def test_just_within_the_limits() -> None:
    plan = plan_of(factorial())
    stats = plan.run([np.int64(10)])[1]
    limits = Options(max_depth=10, frames=stats.peak_frames, memory=stats.peak_bytes, timeout=60)
    assert plan.run([np.int64(10)], limits)[0] == [math.factorial(10)]


def test_memory_counts_an_array_once() -> None:
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
    big = np.zeros(100_000)
    run(program, big, 20)
    assert big.nbytes <= stats_of(program, big, 20).peak_bytes < 1.1 * big.nbytes
    with pytest.raises(FrameLimit, match="memory=500,000"):
        plan_of(program).run([big, np.int64(20)], Options(memory=500_000))


def test_inputs_are_checked() -> None:
    plan = plan_of(factorial())
    with pytest.raises(TypeMismatch, match="takes 1 inputs, not 2"):
        plan.run([np.int64(1), np.int64(2)])
    with pytest.raises(TypeMismatch, match="main/x0 must be i64, not f64"):
        plan.run([np.float64(1)])
    with pytest.raises(TypeMismatch, match=r"must be i64, not i64\[2\]"):
        plan.run([np.array([1, 2])])


def test_options_are_checked() -> None:
    with pytest.raises(UndertowError, match="no scheduler 'lilo'"):
        Options(scheduler="lilo")
    with pytest.raises(UndertowError, match="frames=-1"):
        Options(frames=-1)


# --------------------------------------------------------------------------------------------------------------
# Graphs that are not valid


def test_a_deadlock_says_what_waits() -> None:
    """Main's argument is dead though its call is not."""
    graph = flatten(factorial())
    number = len(graph.nodes)
    switch = Node("switch", (Const(np.False_), Port(graph.inputs[0])), (I64, I64), "never")
    nodes = [replace(n, inputs=(Port(number),)) if n.name == "main/fac.n" else n for n in graph.nodes]
    plan = Reference().plan(replace(graph, nodes=(*nodes, switch)))
    with pytest.raises(RunError, match="deadlock") as caught:
        plan.run([np.int64(3)])
    assert "main/fac has not arrived" in str(caught.value)
    assert "main/fac under []: 1 of 2 tokens" in str(caught.value)
    assert "fac/n under [1]: 0 of 1 tokens" in str(caught.value)


def test_a_deadlock_lists_only_what_could_have_fired() -> None:
    """A call that never sees its argument, of a function with a second phase that nobody visits here."""
    graph = flatten(two_phases())
    number = len(graph.nodes)
    never = Node("switch", (Const(np.False_), Port(graph.inputs[1])), (I64, I64), "never")
    nodes = [replace(n, inputs=(Port(number),)) if n.name == "main/second.n" else n for n in graph.nodes]
    with pytest.raises(RunError, match="main/second has not arrived") as caught:
        Reference().plan(replace(graph, nodes=(*nodes, never))).run([np.int64(2), np.int64(2)])
    assert "f/n under [2]: 0 of 1 tokens" in str(caught.value)
    assert "f/dy under [2]" not in str(caught.value)


def test_a_deep_deadlock_is_reported_at_once() -> None:
    """5,000 nested calls, none of which gets its second argument."""
    f = Body("f")
    n, y = f.param("n"), f.param("y")
    p = f.op("less_equal", n, const(0), type=BOOL, name="p")
    _, other = f.branch(p)
    (_, m), (base, y_on) = f.switch(p, n), f.switch(p, y)
    made = f.call("f", f.op("subtract", m, const(1), region=other), y_on, name="f", region=other)
    whole = flatten(library(main_of("f", (I64, I64)), f.finish([f.op("merge", base, made)])))
    number = len(whole.nodes)
    never = Node("switch", (Const(np.False_), Port(whole.inputs[1])), (I64, I64), "never")
    nodes = [replace(n, inputs=(Port(number),)) if n.name == "main/f.y" else n for n in whole.nodes]
    with pytest.raises(RunError, match="and 24995 more") as caught:
        Reference().plan(replace(whole, nodes=(*nodes, never))).run([np.int64(5_000), np.int64(0)])
    assert len(str(caught.value)) < 2_000


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("fac/multiply8", {"op": "mumble"}, "no operator named 'mumble'"),
        ("fac/identity4", {"controls": ()}, "nothing triggers it"),
        ("fac/multiply8", {"inputs": (Port(1), Port(1))}, "from main/x0 to fac/multiply8 crosses frames"),
        ("fac/multiply8", {"controls": (Port(0),)}, "control edge from main/start to fac/multiply8 crosses frames"),
        ("fac/result", {"inputs": (const(1), Port(15))}, "takes ports only"),
    ],
)
def test_what_is_refused(name: str, change: dict[str, Any], said: str) -> None:
    graph = flatten(factorial())
    nodes = tuple(replace(n, **change) if n.name == name else n for n in graph.nodes)
    with pytest.raises(GraphError, match=said):
        Reference().plan(replace(graph, nodes=nodes))


def test_a_dead_fetch() -> None:
    main = Body("main", "main")
    flag = main.param("flag", BOOL)
    main.branch(flag)
    yes, _ = main.switch(flag, flag, BOOL)
    plan = plan_of(library(main.finish([yes])))
    assert plan.run([np.True_])[0] == [True]
    with pytest.raises(RunError, match="a fetch is dead"):
        plan.run([np.False_])


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
    inputs = given.get(name, [np.int64(3), np.int64(2)])
    plan = plan_of(PROGRAMS[name]())
    events: list[Event] = []
    _, stats, _ = plan.drain(inputs[: len(plan.graph.inputs)], Options(trace=events))
    assert isinstance(events[0], RunStarted) and isinstance(events[-1], RunEnded)
    counts = Counter(type(event) for event in events)
    assert counts[FrameStarted] == counts[FrameEnded]
    fired = [event for event in events if isinstance(event, Fired)]
    assert sum(event.live for event in fired) == stats.firings == events[-1].firings
    assert sum(not event.live for event in fired) == stats.dead_firings
    assert Counter(event.name for event in fired if event.live) == Counter(
        {node: count for node, count in stats.per_node.items() if count}
    )
    open_frames: set[int] = set()
    for event in events:
        if isinstance(event, FrameStarted):
            open_frames.add(event.frame)
        elif isinstance(event, FrameEnded):
            open_frames.remove(event.frame)
        elif isinstance(event, Fired):
            assert event.frame in open_frames
            assert len(event.outputs) == len(plan.graph.nodes[event.node].types)
    tags = Tags(events)
    assert len({tags[frame] for frame in range(counts[FrameStarted])}) == counts[FrameStarted]


def test_a_trace_can_be_written_and_read(tmp_path: Path) -> None:
    plan = plan_of(dividing())
    events: list[Event] = []
    plan.run([np.array([6])], Options(trace=events))
    plan.run([np.array([6])], Options(trace=str(tmp_path / "run.jsonl")))
    read = list(read_trace(tmp_path / "run.jsonl"))
    assert read[:-1] == events[:-1]
    tags = Tags(read)
    deepest = max((tags[e.frame] for e in read if isinstance(e, FrameStarted)), key=len)
    assert deepest == (3, (2, 0), (1, 0))
    assert show_tag(deepest) == "[3, 2.0, 1.0]"
    assert show_tag((7,) * 100) == "[7, 7, 7, 7, 7, 7, ... 88 more ..., 7, 7, 7, 7, 7, 7]"
    with pytest.raises(Fault):
        plan.run([np.array([1])], Options(trace=tmp_path / "bad.jsonl"))
    last = list(read_trace(tmp_path / "bad.jsonl"))[-1]
    assert isinstance(last, RunEnded) and last.error == "Fault: integer division by zero"


def test_switch_shows_its_dead_side() -> None:
    events: list[Event] = []
    plan_of(factorial()).run([np.int64(1)], Options(trace=events))
    shown = {event.name: event.outputs for event in events if isinstance(event, Fired)}
    assert shown["fac/switch5"] == ("1", "*")
    assert shown["main/fac"] == ("1",)


def test_a_seed_fixes_the_order() -> None:
    def order(seed: int) -> list[Event]:
        events: list[Event] = []
        plan_of(fibonacci()).run([np.int64(6)], Options(scheduler="random", schedule_seed=seed, trace=events))
        return events[:-1]

    assert order(1) == order(1) != order(2)
