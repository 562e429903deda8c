"""Later phases of maps: every lane is visited again, and finds the values of its first visit in its frame."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.support.agreement import agree, run, stats_of
from tests.support.body import by_name, names_of
from tests.support.ir_texts import MAP_PHASES
from tests.support.validity import parse_library, read, valid

from undertow.engines.contract import SCHEDULERS, Engine, Options
from undertow.engines.demand import Demand
from undertow.engines.demand.run import explain
from undertow.engines.expand import Expand
from undertow.engines.reference import Reference
from undertow.engines.waves import Waves
from undertow.errors import Fault, FrameLimit, GraphError
from undertow.ir.graph import Attrs, Library
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.ops.vet import vet
from undertow.passes.flatten import flatten
from undertow.passes.hoist import hoist
from undertow.passes.simplify import simplify

# [w * x * x for x in xs]; the second phase gives both gradients.
SQUARES = """
    main main(xs: f64[?], w: f64, ds: f64[?]) -> (y, back#0, back#1)
      y: f64[?] = map xs, w body="lane"
      back: f64[?], f64[?] = resume y, ds phase=1
    map lane(x: f64, w: f64) -> (r) carried=1
      s: f64 = multiply x, x
      r: f64 = multiply s, w
      phase 1(dy: f64) -> (dx, dw)
      a: f64 = multiply dy, w
      b: f64 = multiply a, x
      dx: f64 = multiply b, 2.0:f64
      dw: f64 = multiply dy, s
"""

# The same, where nobody comes back.
ONCE = re.sub(".*resume.*", "", SQUARES).replace("-> (y, back#0, back#1)", "-> (y)")

# f(x, n) = x if n <= 0 else sum(f(x, k) ** 2 for k < n), with its gradient; a second call is not resumed.
RECURSIVE = """
    main main(x: f64, n: i64, d: f64) -> (y, dx, z)
      y: f64 = call x, n callee="f"
      dx: f64 = resume y, d phase=1
      z: f64 = call x, n callee="f"
    function f(x: f64, n: i64) -> (r)
      p: bool = less_equal n, 0:i64
      branch if1 p
      x.if: f64, f64 = switch p, x
      n.if: i64, i64 = switch p, n
      if1.else/ks: i64[?] = arange 0:i64, n.if#1, 1:i64
      if1.else/ys: f64[?] = map if1.else/ks, x.if#1 body="lane"
      if1.else/sum: f64 = sum if1.else/ys axes=[0] keepdims=false
      r: f64 = merge x.if#0, if1.else/sum
      phase 1(dy: f64) -> (dx)
      dy.if: f64, f64 = switch p, dy
      if1.else/zeros: f64[?] = multiply if1.else/ys, 0.0:f64
      if1.else/dys: f64[?] = add if1.else/zeros, dy.if#1
      if1.else/dxs: f64[?] = resume if1.else/ys, if1.else/dys phase=1
      if1.else/total: f64 = sum if1.else/dxs axes=[0] keepdims=false
      dx: f64 = merge dy.if#0, if1.else/total
    map lane(k: i64, x: f64) -> (v) carried=1
      b: f64 = call x, k callee="f"
      v: f64 = multiply b, b
      phase 1(dy: f64) -> (dx)
      e: f64 = multiply dy, b
      twice: f64 = multiply e, 2.0:f64
      dx: f64 = resume b, twice phase=1
"""

# A map in a map; both are visited three times, and in the third without any argument.
NESTED = """
    main main(xs: f64[?,?], ds: f64[?,?], w: f64) -> (y, dx, again)
      y: f64[?,?] = map xs, w body="outer"
      dx: f64[?,?] = resume y, ds phase=1
      again: f64[?,?] = resume y phase=2
    map outer(row: f64[?], w: f64) -> (r) carried=1
      r: f64[?] = map row, w body="inner"
      phase 1(dr: f64[?]) -> (dx)
      dx: f64[?] = resume r, dr phase=1
      phase 2() -> (again)
      again: f64[?] = resume r phase=2 ^start~2
    map inner(x: f64, w: f64) -> (r) carried=1
      s: f64 = multiply x, x
      r: f64 = multiply s, w
      phase 1(dy: f64) -> (dx)
      a: f64 = multiply dy, w
      dx: f64 = multiply a, x
      phase 2() -> (d)
      d: f64 = multiply dx, s
"""

# Each lane calls down(x, n) = x ** (2 ** n), which is recursive, and comes back to it with its element of ds.
CALLS = """
    main main(xs: f64[?], n: i64, ds: f64[?]) -> (y, dx)
      y: f64[?] = map xs, n body="lane"
      dx: f64[?] = resume y, ds phase=1
    map lane(x: f64, n: i64) -> (y) carried=1
      y: f64 = call x, n callee="down"
      phase 1(dy: f64) -> (dx)
      dx: f64 = resume y, dy phase=1
    function down(x: f64, n: i64) -> (r)
      p: bool = less_equal n, 0:i64
      branch if1 p
      x.if: f64, f64 = switch p, x
      n.if: i64, i64 = switch p, n
      if1.else/m: i64 = subtract n.if#1, 1:i64
      if1.else/s: f64 = multiply x.if#1, x.if#1
      if1.else/f: f64 = call if1.else/s, if1.else/m callee="down"
      r: f64 = merge x.if#0, if1.else/f
      phase 1(dy: f64) -> (dx)
      dy.if: f64, f64 = switch p, dy
      if1.else/d: f64 = resume if1.else/f, dy.if#1 phase=1
      if1.else/e: f64 = multiply if1.else/d, x.if#1
      if1.else/g: f64 = multiply if1.else/e, 2.0:f64
      dx: f64 = merge dy.if#0, if1.else/g
"""

# What the passes can take out: parameters that nobody needs, results that nobody asks for. The first result of the
# second phase is its parameter; the second waits for the first phase only, and so does all of the third.
WASTEFUL = """
    main main(xs: f64[?,2], ds: f64[?], flag: bool) -> (back#0, back#1, z)
      y: f64[?,2], f64[?,2] = map xs, 2.0:f64, flag body="lane"
      back: f64[?], f64[?,2], f64[?,2], f64[?] = resume y#1, ds, ds, xs phase=1
      z: f64[?,2] = resume y#1 phase=2
    map lane(x: f64[2], w: f64, flag: bool) -> (r, x) carried=1
      r: f64[2] = multiply x, w
      phase 1(a: f64, b: f64, c: f64[2]) -> (b, d, e, constant)
      d: f64[2] = multiply r, x
      e: f64[2] = multiply c, x
      constant: f64 = multiply 3.0:f64, 1.0:f64 ^start~1
      phase 2() -> (d)
"""

# Maps in g are resumed where g is; main resumes one call of two. The argument `xs` is one of the first phase, and
# `late` is a map that the second phase makes, and the third comes back to.
THROUGH = """
    main main(xs: f64[?,2], w: f64) -> (y, z, d, dd)
      y: f64[?,2] = call xs, w callee="g"
      z: f64[?,2] = call xs, w callee="g"
      d: f64[?,2], f64[?,2] = resume z, w phase=1
      dd: f64[?,2] = resume z, w phase=2
    function g(xs: f64[?,2], w: f64) -> (y)
      y: f64[?,2] = map xs, w body="lane"
      phase 1(dw: f64) -> (d#1, late)
      d: f64[?,2], f64[?,2] = resume y, xs phase=1 ^start~1
      late: f64[?,2] = map xs, dw body="lane"
      phase 2(ddw: f64) -> (dd#1)
      dd: f64[?,2], f64[?,2] = resume late, xs phase=1 ^start~2
    map lane(x: f64[2], w: f64) -> (x) carried=1
      r: f64[2] = multiply x, w
      q: f64[2] = multiply r, r
      phase 1(dy: f64[2]) -> (dx, q)
      dx: f64[2] = multiply dy, r
"""

# A map and its second phase in each iteration of a loop.
LOOP = """
    main main(xs: f64[?], n: i64) -> (last#1)
      last: i64, f64[?] = loop 0:i64, xs, n body="while"
    loop while(i: i64, v: f64[?], n: i64) -> (p, if1.then/i, if1.then/v) carried=2
      p: bool = less i, n
      branch if1 p
      i.if: i64, i64 = switch p, i
      v.if: f64[?], f64[?] = switch p, v
      if1.then/i: i64 = add i.if#0, 1:i64
      if1.then/y: f64[?] = map v.if#0 body="lane"
      if1.then/v: f64[?] = resume if1.then/y, if1.then/y phase=1
    map lane(x: f64) -> (y) carried=1
      y: f64 = add x, 1.0:f64
      phase 1(dy: f64) -> (dx)
      dx: f64 = multiply dy, x
"""

PROGRAMS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "squares": (SQUARES, [(np.arange(n) + 1.0, 3.0, np.ones(n) * 2) for n in (0, 1, 4)]),
    "recursive": (RECURSIVE, [(1.1, n, 1.0) for n in (0, 1, 2, 4)]),
    "nested": (NESTED, [(np.ones(shape) * 2, np.ones(shape), 3.0) for shape in ((2, 3), (0, 3), (2, 0), (1, 1))]),
    "calls": (CALLS, [(np.arange(k) + 1.0, n, np.ones(k)) for k in (0, 1, 3) for n in (0, 3)]),
    "wasteful": (WASTEFUL, [(np.ones((n, 2)), np.arange(n) * 1.0, True) for n in (0, 1, 3)]),
    "through": (THROUGH, [(np.arange(2 * n).reshape(n, 2) * 1.0, 2.0) for n in (0, 1, 3)]),
    "loop": (LOOP, [(np.arange(k) * 1.0, n) for k in (0, 2) for n in (0, 1, 3)]),
}


def program(name: str) -> Library:
    return read(PROGRAMS[name][0])


# --------------------------------------------------------------------------------------------------------------
# What they give


@pytest.mark.parametrize("n", [0, 1, 4])
def test_the_second_phase_uses_values_of_the_first(n: int) -> None:
    xs, ds = np.arange(n) + 1.0, np.linspace(1, 2, n)
    y, dx, dw = run(program("squares"), xs, 3.0, ds)
    np.testing.assert_array_equal(y, 3 * xs * xs, strict=True)
    np.testing.assert_allclose(dx, 6 * xs * ds, strict=True)
    np.testing.assert_allclose(dw, xs * xs * ds, strict=True)
    assert stats_of(program("squares"), xs, 3.0, ds).per_node["lane/s"] == n  # computed once


def f(x: float, n: int) -> float:
    return x if n <= 0 else sum(f(x, k) ** 2 for k in range(n))


def df(x: float, n: int) -> float:
    return 1.0 if n <= 0 else sum(2 * f(x, k) * df(x, k) for k in range(n))


@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_a_map_in_a_recursive_function(n: int) -> None:
    y, dx, z = run(program("recursive"), 1.1, n, 1.0)
    np.testing.assert_allclose([y, dx, z], [f(1.1, n), df(1.1, n), f(1.1, n)])
    stats = stats_of(program("recursive"), 1.1, n, 1.0)
    assert stats.activations == 2 * 2**n
    assert stats.per_node["f/dy"] == 2**n  # of one of the two calls


@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (2, 0)])
def test_a_map_inside_of_a_map(shape: tuple[int, int]) -> None:
    xs, ds = np.arange(shape[0] * shape[1]).reshape(shape) + 1.0, np.ones(shape) / 2
    y, dx, again = run(program("nested"), xs, ds, 3.0)
    np.testing.assert_array_equal(y, 3 * xs**2 if shape[0] else np.zeros((0, 0)))
    np.testing.assert_array_equal(dx, 3 * xs * ds if shape[0] else np.zeros((0, 0)))
    np.testing.assert_array_equal(again, 3 * xs**3 * ds if shape[0] else np.zeros((0, 0)))


@pytest.mark.parametrize("n", [0, 3])
def test_lanes_that_resume_the_calls_they_made(n: int) -> None:
    xs, ds = np.array([1.0, 1.5, 0.5]), np.array([1.0, -1.0, 2.0])
    y, dx = run(program("calls"), xs, n, ds)
    np.testing.assert_allclose(y, xs ** (2**n))
    np.testing.assert_allclose(dx, ds * 2**n * xs ** (2**n - 1))
    stats = stats_of(program("calls"), xs, n, ds)
    assert (stats.activations, stats.max_depth) == (3 * (n + 1), n + 1)


def test_only_lanes_whose_map_is_resumed_are_visited_again() -> None:
    """What the second phase gives may be known after the first: nobody waits for it where that is all there is."""
    xs = np.array([[1.0, 2.0], [3.0, 4.0]])
    y, z, d, dd = run(program("through"), xs, 2.0)
    for found, wanted in ((y, xs), (z, xs), (d, 4 * xs * xs), (dd, 4 * xs * xs)):
        np.testing.assert_array_equal(found, wanted)
    assert stats_of(program("through"), xs, 2.0).per_node["lane/dx"] == 2  # of one of the two calls


@pytest.mark.parametrize("n", [0, 1, 3])
def test_in_each_iteration_of_a_loop(n: int) -> None:
    v = np.array([1.0, 2.0])
    (last,) = run(program("loop"), v, n)
    for _ in range(n):
        v = (v + 1) * v
    np.testing.assert_array_equal(last, v)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_every_lane_gets_an_order_token_and_all_give_one(n: int) -> None:
    text = MAP_PHASES.replace("-> (y, back#0)", "-> (y, back#0, back#1)")
    y, dx, done = run(parse_library(text), np.ones(n), 2.0)
    assert (y.tolist(), dx.tolist(), bool(done)) == ([2.0] * n, [2.0] * n, True)


NOISY = """
    main main(xs: i64[?]) -> (y, after)
      y: i64[?] = map xs body="lane"
      said: ctl = print 0:i64 template="before {}" ^y
      back: ctl = resume y, said phase=1
      after: ctl = print 0:i64 template="after {}" ^back
    map lane(x: i64) -> (y) carried=1
      y: i64 = add x, 1:i64
      phase 1(go: ctl) -> (done)
      done: ctl = print y template="lane {}" ^go
"""


@pytest.mark.parametrize("engine", [Reference(), Demand(), Waves(), Expand()], ids=lambda engine: str(engine.name))
@pytest.mark.parametrize("is_simple", [False, True])
@pytest.mark.parametrize("n", [0, 2])
def test_order_goes_through_later_phases(
    engine: Engine, is_simple: bool, n: int, capsys: pytest.CaptureFixture[str]
) -> None:
    library = simplify(read(NOISY))[0] if is_simple else read(NOISY)
    engine.plan(flatten(library)).run([np.arange(n)])
    said = capsys.readouterr().out.splitlines()
    assert (said[0], said[-1]) == ("before 0", "after 0")
    assert sorted(said[1:-1]) == ["lane 1", "lane 2"][:n]


# --------------------------------------------------------------------------------------------------------------
# Everywhere


@pytest.mark.parametrize("name", PROGRAMS)
def test_passes_and_engines_agree(name: str) -> None:
    """Whatever the passes make of it gives the same: under every scheduler, with no frame left, and on demand."""
    library = program(name)
    simple, inlined = simplify(library)[0], simplify(library, inline=True)[0]
    versions = [library, simple, inlined, hoist(library)[0], hoist(simple)[0]]
    for version in versions:
        valid(version)
        check(flatten(version))
    vet(library)
    for inputs in PROGRAMS[name][1]:
        wanted = run(library, *inputs)
        for version in versions[1:]:
            for one, other in zip(run(version, *inputs), wanted, strict=True):
                np.testing.assert_array_equal(one, other, strict=True)
        for version in versions[:3]:
            graph = flatten(version)
            agree(graph, *inputs)
            assert explain(graph, [np.asarray(value) for value in inputs])


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_print_and_parse(name: str) -> None:
    library = program(name)
    check(library)
    assert parse(dump(library)) == library
    graph = flatten(library)
    check(graph)
    assert parse(dump(graph)) == graph


def test_dead_parameters_and_results_of_later_phases_go() -> None:
    simple, report = simplify(program("wasteful"))
    lane = simple.functions["lane"]
    assert [[lane.nodes[param].name for param in phase.params] for phase in lane.phases] == [["x", "w"], ["b"], []]
    assert [len(phase.results) for phase in lane.phases] == [1, 2, 1]
    assert report.counts["dead argument"] == 3
    assert report.counts["dead result"] == 3


def test_arguments_of_a_recursion_through_lanes_are_hoisted() -> None:
    after, _ = hoist(program("recursive"))
    assert {name: graph.hoisted for name, graph in after.functions.items()} == {"main": 0, "f": 0, "lane": 0}
    assert len(after.functions["main"].shared) == 1
    two = read(RECURSIVE.replace("z: f64 = call x, n", "z: f64 = call d, n"))
    after, _ = hoist(two)
    assert {name: graph.hoisted for name, graph in after.functions.items()} == {"main": 0, "f": 1, "lane": 1}
    for one, other in zip(run(after, 1.1, 3, 1.0), run(two, 1.1, 3, 1.0), strict=True):
        np.testing.assert_array_equal(one, other, strict=True)


def test_the_static_graph() -> None:
    graph = flatten(program("squares"))
    nodes = by_name(graph)
    assert nodes["main/back.start"].attrs == Attrs(site=1, phase=1)
    assert nodes["main/back.dy"].attrs == Attrs(site=1, phase=1, index=0)
    assert nodes["main/back.1"].attrs == Attrs(site=1, phase=1, index=1)
    assert names_of(graph, nodes["main/back.start"].inputs) == ["main/y.start#1"]
    assert names_of(graph, nodes["main/back.dy"].controls) == ["main/y.start#1"]
    assert names_of(graph, nodes["main/back.1"].controls) == ["main/back.start#1"]
    assert names_of(graph, nodes["lane/dw"].inputs) == ["main/back.dy", "lane/s"]
    assert names_of(graph, graph.regions[1].starts) == ["main/y.start", "main/back.start"]
    assert len(graph.sites) == 1


def test_phases_that_nobody_visits_are_left_out() -> None:
    graph = flatten(read(ONCE))
    assert not any(node.attrs.get("phase") for node in graph.nodes)
    assert {"lane/r", "lane/s"} <= by_name(graph).keys()
    assert "lane/dw" not in by_name(graph)


def test_only_calls_and_maps_are_resumed() -> None:
    text = "library 1 main=main\n" + SQUARES.replace("resume y, ds", "resume xs, ds")
    with pytest.raises(GraphError, match="the first input of `resume` must be a `call` or `map`"):
        flatten(parse_library(text))


# --------------------------------------------------------------------------------------------------------------
# Faults and limits


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("count", [0, 2, 4])
def test_another_number_of_elements_is_a_fault(scheduler: str, count: int) -> None:
    plan = Reference().plan(flatten(program("squares")))
    said = f"a map of 3 lanes is resumed with an array of {count} elements"
    with pytest.raises(Fault, match=said) as error:
        plan.run([np.ones(3), np.float64(1), np.ones(count)], Options(scheduler=scheduler))
    assert "one element for each lane" in error.value.hint
    for engine in (Demand(), Waves(), Expand()):
        with pytest.raises(Fault, match=said):
            engine.plan(plan.graph).run([np.ones(3), np.float64(1), np.ones(count)])


def test_a_fault_in_a_later_phase_shows_its_lane() -> None:
    library = read(SQUARES.replace("dx: f64 = multiply b, 2.0:f64", "dx: f64 = log b"))
    for engine in (Reference(), Waves(), Expand()):
        plan = engine.plan(flatten(library))
        with pytest.raises(Fault, match="log returned nan") as error:
            plan.run([np.array([1.0, -1.0]), np.float64(1), np.ones(2)], Options(check_finite=True))
        assert [call.label for call in error.value.calls] == ["@1 lane 1"]


def test_lanes_live_until_their_last_phase() -> None:
    """Those that are not resumed end as before; the others wait, and count as frames."""
    inputs = [np.ones(50), np.float64(1), np.ones(50)]
    lifo = Options(scheduler="lifo")
    both = Reference().plan(flatten(program("squares"))).drain(inputs, lifo)[1]
    assert Reference().plan(flatten(read(ONCE))).drain(inputs, lifo)[1].peak_frames <= both.peak_frames == 51
    with pytest.raises(FrameLimit):
        Reference().plan(flatten(program("squares"))).run(inputs, Options(frames=50))
    for engine in (Demand(), Waves(), Expand()):
        with pytest.raises(FrameLimit):
            engine.plan(flatten(program("squares"))).run(inputs, Options(frames=50))
