"""Flatten: what becomes of calls, loops and maps. The programs here are built by hand and shared with other tests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from undertow.errors import GraphError, Span
from undertow.ir.graph import (
    Attr,
    Attrs,
    Const,
    FunctionGraph,
    Library,
    Node,
    Operand,
    Phase,
    Port,
    Region,
    StaticGraph,
)
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.ir.walk import phase_attr
from undertow.passes.flatten import flatten
from undertow.types import CTL, Type, bool_, f64, i64

I64, F64, BOOL = Type(i64), Type(f64), Type(bool_)
FLOATS = f64[None]


def const(value: object) -> Const:
    return Const(np.asarray(value))


class Body:
    """Writes one function graph in library form, without any help: every switch is asked for."""

    def __init__(self, name: str, kind: str = "function", carried: int = 0, phases: int = 1) -> None:
        self.name, self.kind, self.carried = name, kind, carried
        self.nodes: list[Node] = []
        self.regions = [Region(kind, name)]
        self.params: list[list[int]] = [[] for _ in range(phases)]
        starts = tuple(self.add("start", name=f"start{p or ''}", **phase_attr(p)) for p in range(phases))
        self.regions[0] = Region(kind, name, starts=starts)

    def add(
        self,
        op: str,
        *inputs: Operand,
        types: Sequence[Type] = (CTL,),
        name: str = "",
        region: int = 0,
        controls: tuple[Port, ...] = (),
        **attrs: Attr,
    ) -> Port:
        number = len(self.nodes)
        span = Span(f"{self.name}.py", number + 1, function=self.name)
        fresh = name or f"{op}{number}"
        self.nodes.append(Node(op, inputs, tuple(types), fresh, region, Attrs(**attrs), controls, span))
        return Port(number)

    def op(self, op: str, *inputs: Operand, type: Type = I64, name: str = "", region: int = 0) -> Port:
        return self.add(op, *inputs, types=(type,), name=name, region=region)

    def param(self, name: str, type: Type = I64, phase: int = 0) -> Port:
        port = self.add("param", types=(type,), name=name, index=len(self.params[phase]), **phase_attr(phase))
        self.params[phase].append(port.node)
        return port

    def branch(self, pred: Port, parent: int = 0) -> tuple[int, int]:
        for side in (True, False):
            self.regions.append(Region("branch", "then" if side else "else", parent, pred, side))
        return len(self.regions) - 2, len(self.regions) - 1

    def switch(self, pred: Port, value: Operand, type: Type = I64, region: int = 0) -> tuple[Port, Port]:
        number = self.add("switch", pred, value, types=(type, type), region=region).node
        return Port(number, 0), Port(number, 1)

    def constant(self, value: object, pivot: Port, region: int) -> Port:
        """A constant as a token of a region."""
        operand = const(value)
        return self.add("identity", operand, types=(operand.type,), region=region, controls=(pivot,))

    def pivots(self, pred: Port, then: int, otherwise: int, parent: int = 0) -> tuple[Port, Port]:
        """Pivots for both sides of a branch, from that of its parent."""
        sides = self.switch(pred, self.regions[parent].starts[0], CTL, parent)
        for number, port in zip((then, otherwise), sides, strict=True):
            old = self.regions[number]
            self.regions[number] = Region("branch", old.name, old.parent, old.pred, old.side, (port,))
        return sides

    def call(self, callee: str, *args: Operand, name: str, types: Sequence[Type] = (I64,), region: int = 0) -> Port:
        return self.add("call", *args, types=types, name=name, region=region, callee=callee)

    def finish(self, *results: Sequence[Port]) -> FunctionGraph:
        phases = tuple(Phase(tuple(p), tuple(r)) for p, r in zip(self.params, results, strict=True))
        return FunctionGraph(tuple(self.nodes), tuple(self.regions), self.name, self.kind, phases, self.carried)


def library(*graphs: FunctionGraph) -> Library:
    return Library({graph.name: graph for graph in graphs}, graphs[0].name)


def main_of(callee: str, types: Sequence[Type] = (I64,), results: Sequence[Type] = (I64,)) -> FunctionGraph:
    """A main graph that makes one call: results = callee(inputs)."""
    main = Body("main", "main")
    inputs = [main.param(f"x{index}", type) for index, type in enumerate(types)]
    made = main.call(callee, *inputs, name=callee, types=results)
    return main.finish([Port(made.node, index) for index in range(len(results))])


# --------------------------------------------------------------------------------------------------------------
# Programs


def factorial() -> Library:
    """n <= 1 ? 1 : n * fac(n - 1)"""
    f = Body("fac")
    n = f.param("n")
    p = f.op("less_equal", n, const(1), type=BOOL, name="p")
    then, other = f.branch(p)
    go, _ = f.pivots(p, then, other)
    one = f.constant(1, go, then)
    _, m = f.switch(p, n)
    less = f.op("subtract", m, const(1), region=other)
    below = f.call("fac", less, name="fac", region=other)
    product = f.op("multiply", m, below, region=other)
    return library(main_of("fac"), f.finish([f.op("merge", one, product, name="result")]))


def fibonacci() -> Library:
    """n <= 1 ? 1 : fib(n - 1) + fib(n - 2); the else branch has no pivot yet."""
    f = Body("fib")
    n = f.param("n")
    p = f.op("less_equal", n, const(1), type=BOOL, name="p")
    then, other = f.branch(p)
    one, m = f.switch(p, n)
    zero = f.op("subtract", one, one, region=then)
    base = f.op("add", zero, const(1), region=then)
    left = f.call("fib", f.op("subtract", m, const(1), region=other), name="left", region=other)
    right = f.call("fib", f.op("subtract", m, const(2), region=other), name="right", region=other)
    total = f.op("add", left, right, region=other, name="total")
    return library(main_of("fib"), f.finish([f.op("merge", base, total, name="result")]))


def even_odd() -> Library:
    """even(n) = n == 0 or odd(n - 1); odd(n) = n != 0 and even(n - 1)."""
    graphs = []
    for name, other_name, base in (("even", "odd", True), ("odd", "even", False)):
        f = Body(name)
        n = f.param("n")
        p = f.op("equal", n, const(0), type=BOOL, name="p")
        then, other = f.branch(p)
        go, _ = f.pivots(p, then, other)
        _, m = f.switch(p, n)
        less = f.op("subtract", m, const(1), region=other)
        below = f.call(other_name, less, name=other_name, types=(BOOL,), region=other)
        graphs.append(f.finish([f.op("merge", f.constant(base, go, then), below, type=BOOL)]))
    return library(main_of("even", results=(BOOL,)), *graphs)


def sum_loop() -> Library:
    """i, total = n, 0; while i >= step: total += i; i -= step. Gives (i, total); `step` is an invariant."""
    loop = Body("sum", "loop", carried=2)
    i, total, step = loop.param("i"), loop.param("total"), loop.param("step")
    p = loop.op("less_equal", step, i, type=BOOL, name="p")
    then, _ = loop.branch(p)
    i_on, _ = loop.switch(p, i)
    total_on, _ = loop.switch(p, total)
    step_on, _ = loop.switch(p, step)
    next_total = loop.op("add", total_on, i_on, region=then)
    next_i = loop.op("subtract", i_on, step_on, region=then)
    main = Body("main", "main")
    n, by = main.param("n"), main.param("by")
    made = main.add("loop", n, const(0), by, types=(I64, I64), name="sum", body="sum").node
    return library(main.finish([Port(made, 0), Port(made, 1)]), loop.finish([p, next_i, next_total]))


def nested_loop() -> Library:
    """for i in n, n-1 .. 1: for j in i, i-1 .. 1: total += scale * j. The inner loop and its result stand in the
    outer loop's true branch; `scale` is an invariant of both, `unit` a constant handed to both."""
    inner = Body("inner", "loop", carried=2)
    j, total, scale, unit = (inner.param(name) for name in ("j", "total", "scale", "unit"))
    p = inner.op("less_equal", unit, j, type=BOOL, name="p")
    then, _ = inner.branch(p)
    j_on, total_on, scale_on = (inner.switch(p, port)[0] for port in (j, total, scale))
    more = inner.op("multiply", scale_on, j_on, region=then)
    next_total = inner.op("add", total_on, more, region=then)
    next_j = inner.op("subtract", j_on, const(1), region=then)

    outer = Body("outer", "loop", carried=2)
    i, sum_, by, one = (outer.param(name) for name in ("i", "total", "scale", "unit"))
    q = outer.op("less_equal", one, i, type=BOOL, name="q")
    again, _ = outer.branch(q)
    i_on, sum_on, by_on, one_on = (outer.switch(q, port)[0] for port in (i, sum_, by, one))
    made = outer.add("loop", i_on, sum_on, by_on, one_on, types=(I64, I64), name="inner", region=again, body="inner")
    next_i = outer.op("subtract", i_on, const(1), region=again)

    main = Body("main", "main")
    n, times = main.param("n"), main.param("times")
    result = main.add("loop", n, const(0), times, const(1), types=(I64, I64), name="outer", body="outer")
    return library(
        main.finish([Port(result.node, 1)]),
        outer.finish([q, next_i, Port(made.node, 1)]),
        inner.finish([p, next_j, next_total]),
    )


def scaled_map() -> Library:
    """[x * by * by + y + 0.5 for x, y in zip(xs, ys)], and xs again."""
    lane = Body("lane", "map", carried=2)
    x, y, scale, offset = lane.param("x", F64), lane.param("y", F64), lane.param("scale", F64), lane.param("off", F64)
    product = lane.op("multiply", x, scale, type=F64)
    total = lane.op("add", lane.op("add", product, y, type=F64), offset, type=F64)
    main = Body("main", "main")
    xs, ys, by = main.param("xs", FLOATS), main.param("ys", FLOATS), main.param("by", F64)
    squared = main.op("multiply", by, by, type=F64)
    args = (xs, ys, squared, const(0.5))
    made = main.add("map", *args, types=(FLOATS, FLOATS), name="map", body="lane").node
    return library(main.finish([Port(made, 0), Port(made, 1)]), lane.finish([total, x]))


def map_of_tokens() -> Library:
    """A map whose lanes give nothing but the news that they have run."""
    lane = Body("lane", "map", carried=1)
    lane.param("x", F64)
    main = Body("main", "main")
    made = main.add("map", main.param("xs", FLOATS), types=(CTL,), name="map", body="lane")
    return library(main.finish([made]), lane.finish([Port(0)]))


def tokens_all_over() -> Library:
    """An order token as argument, result, loop variable and invariant, and of a map: f(t) twice, n times, per lane."""
    f = Body("f")
    f_done = f.op("identity", f.param("t", CTL), type=CTL, name="done")

    loop = Body("loop", "loop", carried=2)
    i, token = loop.param("i"), loop.param("t", CTL)
    p = loop.op("less_equal", const(1), i, type=BOOL, name="p")
    then, _ = loop.branch(p)
    (i_on, _), (token_on, _) = loop.switch(p, i), loop.switch(p, token, CTL)
    after = loop.call("f", token_on, name="f", types=(CTL,), region=then)
    less = loop.op("subtract", i_on, const(1), region=then)

    lane = Body("lane", "map", carried=1)
    x, before = lane.param("x"), lane.param("t", CTL)
    lane_done = lane.add("loop", x, before, types=(I64, CTL), name="loop", body="loop").node

    main = Body("main", "main")
    xs = main.param("xs", i64[None])
    ready = main.call("f", Port(0), name="ready", types=(CTL,))
    made = main.add("map", xs, ready, types=(CTL, i64[None]), name="map", body="lane").node
    return library(
        main.finish([Port(made, 0), Port(made, 1)]),
        lane.finish([Port(lane_done, 1), Port(lane_done, 0)]),
        loop.finish([p, less, after]),
        f.finish([f_done]),
    )


def map_of_calls() -> Library:
    """[fac(x) for x in xs] if flag else -xs: the map stands in a branch."""
    lane = Body("lane", "map", carried=1)
    made = lane.call("fac", lane.param("x"), name="fac")
    many = i64[None]
    main = Body("main", "main")
    flag, xs = main.param("flag", BOOL), main.param("xs", many)
    then, other = main.branch(flag)
    yes, no = main.switch(flag, xs, many)
    result = main.add("map", yes, types=(many,), name="map", region=then, body="lane")
    minus = main.op("negative", no, type=many, region=other)
    return library(
        main.finish([main.op("merge", result, minus, type=many)]),
        lane.finish([made]),
        factorial().functions["fac"],
    )


def two_phases() -> Library:
    """depth(n) visits n + 1 activations; the second phase comes back with dy and gives dy * n! on the way up.

    Main calls it twice and resumes only the first call. Phase 2 is never visited.
    """
    f = Body("f", phases=3)
    n, dy, ddy = f.param("n"), f.param("dy", phase=1), f.param("ddy", phase=2)
    p = f.op("less_equal", n, const(0), type=BOOL, name="p")
    _, other = f.branch(p)
    base, m = f.switch(p, n)
    less = f.op("subtract", m, const(1), region=other)
    below = f.call("f", less, name="f", region=other)
    deeper = f.op("add", below, const(1), region=other)
    depth = f.op("merge", base, deeper, name="depth")
    dy_base, dy_on = f.switch(p, dy)
    dy_below = f.op("multiply", dy_on, m, region=other)
    back = f.add("resume", below, dy_below, types=(I64,), name="f_back", region=other, phase=1)
    dn = f.op("merge", dy_base, back, name="dn")
    never = f.add("call", ddy, types=(I64,), name="never", callee="f")
    main = Body("main", "main")
    x, y = main.param("x"), main.param("y")
    first = main.call("f", x, name="first")
    second = main.call("f", y, name="second")
    again = main.add("resume", first, const(1), types=(I64,), name="again", phase=1)
    return library(main.finish([first, second, again]), f.finish([depth], [dn], [never]))


PROGRAMS = {
    program.__name__: program
    for program in (
        factorial,
        fibonacci,
        even_odd,
        sum_loop,
        nested_loop,
        scaled_map,
        map_of_calls,
        map_of_tokens,
        tokens_all_over,
        two_phases,
    )
}


# --------------------------------------------------------------------------------------------------------------
# Tests


def by_name(graph: StaticGraph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes}


def names_of(graph: StaticGraph, ports: Sequence[Operand]) -> list[str]:
    shown = []
    for port in ports:
        if isinstance(port, Port):
            shown.append(graph.nodes[port.node].name + (f"#{port.index}" if port.index else ""))
        else:
            shown.append(str(port.value))
    return shown


def test_factorial_is_the_paper_s_graph() -> None:
    graph = flatten(factorial(), "demo")
    nodes = by_name(graph)
    assert graph.name == "demo"
    assert [node.name for node in graph.nodes] == [
        "main/start", "main/x0", "main/fac.start", "main/fac.n", "main/fac",
        "fac/start", "fac/n", "fac/p", "fac/switch3", "fac/identity4", "fac/switch5", "fac/subtract6",
        "fac/fac.start", "fac/fac.n", "fac/fac", "fac/multiply8", "fac/result",
    ]  # fmt: skip
    assert names_of(graph, nodes["fac/n"].inputs) == ["main/fac.n", "fac/fac.n"]
    assert names_of(graph, nodes["fac/start"].inputs) == ["main/fac.start", "fac/fac.start"]
    assert names_of(graph, nodes["fac/fac"].inputs) == ["fac/result"]
    assert names_of(graph, nodes["main/fac"].inputs) == ["fac/result"]
    assert names_of(graph, nodes["main/fac"].controls) == ["main/fac.start#1"]
    assert names_of(graph, nodes["fac/fac.start"].controls) == ["fac/switch3#1"]  # the pivot that was there
    assert nodes["fac/fac.n"].attrs == Attrs(site=2, index=0)
    assert [(s.kind, s.label, s.caller, s.callee) for s in graph.sites] == [
        ("call", "main/fac", 0, 1),
        ("call", "fac/fac", 3, 1),
    ]
    assert [region.parent for region in graph.regions] == [None, None, 1, 1]
    assert names_of(graph, graph.regions[1].starts) == ["fac/start"]
    assert names_of(graph, graph.fetches) == ["main/fac"]
    assert names_of(graph, [Port(number) for number in graph.inputs]) == ["main/x0"]
    assert all(node.span is not None for node in graph.nodes)


def test_a_missing_pivot_is_made_once() -> None:
    graph = flatten(fibonacci())
    nodes = by_name(graph)
    pivot = nodes["fib/start.if"]
    assert (pivot.op, names_of(graph, pivot.inputs)) == ("switch", ["fib/p", "fib/start"])
    assert names_of(graph, nodes["fib/left.start"].controls) == ["fib/start.if#1"]
    assert names_of(graph, nodes["fib/right.start"].controls) == ["fib/start.if#1"]
    assert [names_of(graph, graph.regions[r].starts) for r in (2, 3)] == [["fib/start.if"], ["fib/start.if#1"]]


def test_loop() -> None:
    graph = flatten(sum_loop())
    nodes = by_name(graph)
    assert names_of(graph, nodes["sum/i"].inputs) == ["main/sum.i", "sum/then/i.next"]
    assert names_of(graph, nodes["sum/start"].inputs) == ["main/sum.start", "sum/then/start.next"]
    assert names_of(graph, nodes["sum/step"].inputs) == ["main/by"]
    assert names_of(graph, nodes["sum/step"].controls) == ["sum/start"]
    assert nodes["sum/step"].op == "outer"
    assert names_of(graph, nodes["main/sum.total"].inputs) == ["0"]
    assert names_of(graph, nodes["main/sum.total"].controls) == ["main/start"]
    assert names_of(graph, nodes["main/sum.1"].inputs) == ["sum/switch6#1"]  # the switch that was there
    assert names_of(graph, nodes["main/sum.1"].controls) == ["main/sum.start#1"]
    assert names_of(graph, nodes["sum/then/total.next"].inputs) == ["sum/add8"]
    assert graph.regions[nodes["sum/then/i.next"].region].side
    assert graph.regions[1].parent == 0
    assert Counter(node.op for node in graph.nodes)["switch"] == 4  # i, total, step, and the pivot


def test_constant_invariants_are_substituted() -> None:
    graph = flatten(nested_loop())
    nodes = by_name(graph)
    assert "outer/unit" not in nodes
    assert names_of(graph, nodes["outer/q"].inputs) == ["1", "outer/i"]
    assert nodes["inner/unit"].op == "outer"  # it came through a switch, so it is no constant any more
    assert graph.regions[graph.sites[1].callee].parent == graph.sites[1].caller


def test_a_constant_predicate_gets_a_node() -> None:
    loop = Body("loop", "loop", carried=1)
    i, flag = loop.param("i"), loop.param("flag", BOOL)
    loop.branch(flag)
    i_on, _ = loop.switch(flag, i)
    main = Body("main", "main")
    made = main.add("loop", main.param("n"), const(False), types=(I64,), name="loop", body="loop")
    graph = flatten(library(main.finish([made]), loop.finish([flag, i_on])))
    assert by_name(graph)["loop/flag"].op == "outer"
    assert {graph.nodes[region.pred.node].name for region in graph.regions if region.pred} == {"loop/flag"}


def test_a_loop_without_branches_gets_them() -> None:
    """while p: i = i, where no switch is written at all."""
    loop = Body("loop", "loop", carried=2)
    i, p = loop.param("i"), loop.param("p", BOOL)
    main = Body("main", "main")
    made = main.add("loop", main.param("n"), main.param("p", BOOL), types=(I64, BOOL), name="loop", body="loop")
    graph = flatten(library(main.finish([made]), loop.finish([p, i, p])))
    nodes = by_name(graph)
    assert [region.kind for region in graph.regions] == ["main", "loop", "branch", "branch"]
    assert names_of(graph, nodes["loop/while.then/i.next"].inputs) == ["loop/i.while"]
    assert names_of(graph, nodes["main/loop.0"].inputs) == ["loop/i.while#1"]


def test_map() -> None:
    graph = flatten(scaled_map())
    nodes = by_name(graph)
    assert names_of(graph, nodes["main/map.start"].inputs) == ["main/xs"]
    assert nodes["main/map.start"].types == (CTL, Type(i64))
    assert names_of(graph, nodes["lane/multiply5"].inputs) == ["main/map.x", "lane/scale"]
    assert names_of(graph, nodes["lane/add7"].inputs) == ["lane/add6", "0.5"]
    assert names_of(graph, nodes["main/map.0"].inputs) == ["lane/add7"]
    assert names_of(graph, nodes["main/map.1"].inputs) == ["main/map.x"]
    assert names_of(graph, graph.regions[1].starts) == ["main/map.start"]
    tokens = flatten(map_of_tokens())
    assert names_of(tokens, by_name(tokens)["main/map"].inputs) == ["main/map.start"]


def test_phases_that_nobody_visits_are_left_out() -> None:
    graph = flatten(two_phases())
    nodes = by_name(graph)
    assert not {"f/start2", "f/ddy", "f/never"} & set(nodes)
    assert names_of(graph, graph.regions[1].starts) == ["f/start", "f/start1"]
    assert names_of(graph, nodes["f/start1"].inputs) == ["main/again.start", "f/f_back.start"]
    assert names_of(graph, nodes["f/dy"].inputs) == ["main/again.dy", "f/f_back.dy"]
    assert nodes["main/again"].attrs == Attrs(site=1, phase=1, index=0)
    assert names_of(graph, nodes["main/again"].inputs) == ["f/dn"]
    # The call in the else branch belongs to phase 0 and its resume to phase 1: two pivots.
    first, second = nodes["f/f.start"].controls + nodes["f/f_back.start"].controls
    assert names_of(graph, graph.nodes[first.node].inputs) == ["f/p", "f/start"]
    assert names_of(graph, graph.nodes[second.node].inputs) == ["f/p", "f/start1"]
    assert graph.regions[3].starts == (first, second)


def test_only_the_first_phase() -> None:
    whole = two_phases()
    body = whole.functions["f"]
    graph = flatten(library(main_of("f"), body))
    assert not any(node.attrs.get("phase") for node in graph.nodes)
    assert len(graph.regions) == 4


def test_a_loop_body_used_twice_is_copied() -> None:
    whole = sum_loop()
    main = Body("main", "main")
    n = main.param("n")
    once = main.add("loop", n, const(0), const(1), types=(I64, I64), name="once", body="sum").node
    twice = main.add("loop", n, const(0), const(2), types=(I64, I64), name="twice", body="sum").node
    graph = flatten(library(main.finish([Port(once, 1), Port(twice, 1)]), whole.functions["sum"]))
    assert {"sum/i", "sum_2/i"} <= set(by_name(graph))
    assert [site.callee for site in graph.sites] == [1, 4]


def test_control_edges_of_a_call_gate_all_of_it() -> None:
    main = Body("main", "main")
    n = main.param("n")
    before = main.op("add", n, const(1))
    made = main.add("call", n, types=(I64,), name="fac", controls=(before,), callee="fac")
    graph = flatten(library(main.finish([made]), factorial().functions["fac"]))
    nodes = by_name(graph)
    assert names_of(graph, nodes["main/fac.start"].controls) == ["main/start", "main/add2"]
    assert names_of(graph, nodes["main/fac.n"].controls) == ["main/add2"]


def _loop_in_itself() -> Library:
    loop = Body("loop", "loop", carried=1)
    i = loop.param("i", BOOL)
    again = loop.add("loop", i, types=(BOOL,), name="again", body="loop")
    main = Body("main", "main")
    made = main.add("loop", main.param("n", BOOL), types=(BOOL,), name="loop", body="loop")
    return library(main.finish([made]), loop.finish([i, again]))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (library(main_of("gone")), "main/gone enters 'gone', which is not in the library"),
        (library(main_of("main")), "cannot enter main, which is a main graph"),
        (library(main_of("fac", (I64, I64)), factorial().functions["fac"]), "takes 1 and gives 1, but this `call`"),
        (Library({}, "main"), "no 'main'"),
        (_loop_in_itself(), "stands inside itself"),
    ],
)
def test_what_is_refused(broken: Library, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        flatten(broken)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_comes_out_is_valid_and_prints(name: str) -> None:
    program = PROGRAMS[name]()
    check(program)
    graph = flatten(program)
    check(graph)
    assert parse(dump(graph)) == graph


def deep_branches(depth: int) -> Library:
    """A call with a constant argument inside `depth` nested branches, none of which has a pivot but the last."""
    f = Body("main", "main")
    p = f.param("p", BOOL)
    region, pred, merges = 0, p, []
    for _ in range(depth):
        then, _ = f.branch(pred, region)
        inside, outside = f.switch(pred, pred, BOOL, region)
        merges.append((region, outside))
        region, pred = then, inside
    made = f.call("not", pred, name="not", types=(BOOL,), region=region)
    for at, outside in reversed(merges):
        made = f.op("merge", made, outside, type=BOOL, region=at)
    g = Body("not")
    return library(f.finish([made]), g.finish([g.op("logical_not", g.param("x", BOOL), type=BOOL)]))


@pytest.mark.slow
def test_deep_nesting_is_linear_and_does_not_recurse() -> None:
    began = time.process_time()
    graph = flatten(deep_branches(5_000))
    assert time.process_time() - began < 30
    assert sum(node.op == "switch" for node in graph.nodes) == 10_000
    assert all(region.starts for region in graph.regions)
