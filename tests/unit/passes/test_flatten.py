"""Flatten: what becomes of calls, loops and maps."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from tests.support.body import BOOL, I64, Body, by_name, const, library, main_of, names_of
from tests.support.hand_programs import (
    PROGRAMS,
    deep_branches,
    factorial,
    fibonacci,
    map_of_tokens,
    nested_loop,
    scaled_map,
    sum_loop,
    two_phases,
)

from undertow.errors import GraphError
from undertow.ir.graph import Attrs, Library, Port
from undertow.ir.spec import check
from undertow.ir.text import dump, parse
from undertow.passes.flatten import flatten
from undertow.types import CTL, Type, i64


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
        (Library({}, "main"), "no main graph 'main'"),
        (_loop_in_itself(), "contains itself"),
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


@pytest.mark.slow
def test_deep_nesting_is_linear_and_does_not_recurse() -> None:
    began = time.process_time()
    graph = flatten(deep_branches(5_000))
    assert time.process_time() - began < 30
    assert sum(node.op == "switch" for node in graph.nodes) == 10_000
    assert all(region.starts for region in graph.regions)
