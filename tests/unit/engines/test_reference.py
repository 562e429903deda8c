"""Programs built by hand, on the reference engine and every other: results, frames, deadlocks and traces."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support.agreement import run, stats_of
from tests.support.body import BOOL, I64, Body, const, library, main_of
from tests.support.hand_programs import (
    deep_branches,
    dividing,
    even_odd,
    factorial,
    fibonacci,
    loop_in_branch,
    map_of_calls,
    map_of_tokens,
    nested_loop,
    scaled_map,
    sum_loop,
    tokens_all_over,
    two_phases,
)
from tests.support.ir_texts import THREE_PHASES
from tests.support.validity import parse_library, read

import undertow as ut
from undertow.engines.contract import SCHEDULERS, Options
from undertow.engines.reference import Reference, ReferencePlan
from undertow.engines.reference.run import Run
from undertow.errors import Fault, RunError
from undertow.ir.graph import Const, Library, Node, Port
from undertow.ir.spec import check
from undertow.ir.trace import Event, FrameStarted, RunEnded, Tags, read_trace, show_tag
from undertow.ops.op import CATALOGUE
from undertow.passes.flatten import flatten
from undertow.types import f64, i64


def plan_of(program: Library) -> ReferencePlan:
    return Reference().plan(flatten(program))


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
    assert run(read(text), 2.0) == [2, 2, 16]


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
    np.testing.assert_array_equal(run(read(text), xs, np.ones(2))[0], xs)


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


def test_a_dead_loop_starts_nothing() -> None:
    assert run(loop_in_branch(), False, 4, 1) == [4]
    assert run(loop_in_branch(), True, 4, 1) == [10]
    stats = stats_of(loop_in_branch(), False, 4, 1)
    assert stats.peak_frames == 1
    assert stats.per_node["main/sum.i"] == stats.per_node["main/sum.0"] == stats.per_node["main/sum.start"] == 0


@pytest.mark.parametrize("flag", [True, False])
def test_deep_branches(flag: bool) -> None:
    assert run(deep_branches(500), flag) == [False]


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


def test_a_kernel_s_result_takes_the_declared_dtype(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CATALOGUE, "negative", replace(CATALOGUE["negative"], eval=lambda v, _: (-float(v[0]),)))
    main = Body("main", "main")
    assert type(run(library(main.finish([main.op("negative", main.param("x"))])), 3)[0]) is np.int64


# --------------------------------------------------------------------------------------------------------------
# Graphs that are not valid


def without(program: Library, name: str, index: int) -> ReferencePlan:
    """A plan in which that argument of a call is dead, though its call is not."""
    graph = flatten(program)
    never = Node("switch", (Const(np.False_), Port(graph.inputs[index])), (I64, I64), "never")
    nodes = [replace(n, inputs=(Port(len(graph.nodes)),)) if n.name == name else n for n in graph.nodes]
    return Reference().plan(replace(graph, nodes=(*nodes, never)))


def test_a_deadlock_says_what_waits() -> None:
    with pytest.raises(RunError, match="deadlock") as caught:
        without(factorial(), "main/fac.n", 0).run([np.int64(3)])
    assert "main/fac has not arrived" in str(caught.value)
    assert "main/fac under []: 1 of 2 tokens" in str(caught.value)
    assert "fac/n under [1]: 0 of 1 tokens" in str(caught.value)


def test_a_deadlock_lists_only_what_could_have_fired() -> None:
    """Of a function with a second phase that nobody visits here."""
    with pytest.raises(RunError, match="main/second has not arrived") as caught:
        without(two_phases(), "main/second.n", 1).run([np.int64(2), np.int64(2)])
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
    program = library(main_of("f", (I64, I64)), f.finish([f.op("merge", base, made)]))
    with pytest.raises(RunError, match="and 24995 more") as caught:
        without(program, "main/f.y", 1).run([np.int64(5_000), np.int64(0)])
    assert len(str(caught.value)) < 2_000


# --------------------------------------------------------------------------------------------------------------
# Traces


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


def test_a_seed_fixes_the_order() -> None:
    def order(seed: int) -> list[Event]:
        events: list[Event] = []
        plan_of(fibonacci()).run([np.int64(6)], Options(scheduler="random", schedule_seed=seed, trace=events))
        return events[:-1]

    assert order(1) == order(1) != order(2)


def test_a_run_has_few_attributes(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython finds the methods of an object quickly only if it has fewer than 30 attributes."""
    counts: list[int] = []
    loop = Run.loop

    def counted(self: Run, drain: bool) -> None:
        counts.append(len(vars(self)))
        loop(self, drain)

    monkeypatch.setattr(Run, "loop", counted)
    assert ut.function(lambda x: x + 1).run(1, engine="reference") == 2
    assert counts and max(counts) < 30
