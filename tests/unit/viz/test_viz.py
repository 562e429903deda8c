"""Pictures: everything is there, nothing overlaps, every box holds what is in it."""

from __future__ import annotations

import re
import time
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from tests.support.ir_texts import STATIC, STATIC_HOISTED, STATIC_LOOPS, STATIC_MAP_PHASES, STATIC_PHASES, nested
from tests.support.validity import parse_static

from undertow.errors import Span
from undertow.ir.graph import Attrs, Const, Node, Port, Region, StaticGraph
from undertow.ir.text import parse
from undertow.types import CTL, Type, bool_, i64
from undertow.viz.dot import dot
from undertow.viz.layout import LARGEST, Layout, Rect, edges_of, layout
from undertow.viz.svg import label, svg
from undertow.viz.variables import with_variables

GRAPHS = {
    "factorial": STATIC,
    "loops": STATIC_LOOPS,
    "phases": STATIC_PHASES,
    "map phases": STATIC_MAP_PHASES,
    "hoisted": STATIC_HOISTED,
}


def graph_of(name: str) -> StaticGraph:
    return parse_static(GRAPHS[name])


def placed(graph: StaticGraph) -> Layout:
    return layout(graph, [(60.0, 36.0)] * len(graph.nodes))


def holds(outer: Rect, inner: Rect) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.x + inner.width <= outer.x + outer.width
        and inner.y + inner.height <= outer.y + outer.height
    )


def apart(a: Rect, b: Rect) -> bool:
    return a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y


def chain(count: int) -> StaticGraph:
    """start; x ─► x + x ─► ... in one body."""
    nodes = [
        Node("start", (), (CTL,), "start"),
        Node("input", (), (Type(i64),), "x", attrs=Attrs(index=0)),
        *(Node("add", (Port(k + 1), Port(k + 1)), (Type(i64),), f"x{k}") for k in range(count - 2)),
    ]
    return StaticGraph(tuple(nodes), (Region("main", "main", starts=(Port(0),)),), "chain", (), (1,))


# --------------------------------------------------------------------------------------------------------------
# Layout


@pytest.mark.parametrize("name", GRAPHS)
def test_nodes_do_not_overlap(name: str) -> None:
    assert all(apart(a, b) for a, b in combinations(placed(graph_of(name)).nodes, 2))


@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_hold_what_is_in_them(name: str) -> None:
    graph = graph_of(name)
    found = placed(graph)
    page = Rect(0, 0, found.width, found.height)
    for number, node in enumerate(graph.nodes):
        assert holds(found.regions[node.region], found.nodes[number])
    for number, rect in found.regions.items():
        region = graph.regions[number]
        around = found.regions[region.parent] if region.kind == "branch" and region.parent is not None else page
        assert holds(around, rect)
    bodies = [rect for number, rect in found.regions.items() if graph.regions[number].kind != "branch"]
    assert all(apart(a, b) for a, b in combinations(bodies, 2))
    assert all(0 <= p.x <= found.width and 0 <= p.y <= found.height for r in found.routes for p in r.points)


@pytest.mark.parametrize("name", GRAPHS)
def test_every_edge_reaches_its_target_and_leaves_its_source(name: str) -> None:
    graph = graph_of(name)
    found = placed(graph)
    arrows = [route for route in found.routes if route.has_arrow]
    for edge in edges_of(graph):
        source, target = found.nodes[edge.port.node], found.nodes[edge.target]
        ends = [r.points[-1] for r in arrows if r.port == edge.port]
        assert any(target.x <= p.x <= target.x + target.width and abs(p.y - target.y) < 0.01 for p in ends)
        begins = [r.points[0] for r in found.routes if r.port == edge.port]
        bottom = source.y + source.height
        assert any(source.x <= p.x <= source.x + source.width and abs(p.y - bottom) < 0.01 for p in begins)


def test_data_flows_downwards_within_a_body() -> None:
    graph = graph_of("factorial")
    found = placed(graph)
    for edge in edges_of(graph):
        if edge.kind in ("data", "control"):
            assert found.nodes[edge.port.node].y < found.nodes[edge.target].y


def test_edges_that_change_tags_are_told_apart() -> None:
    kinds = {
        (edge.kind, graph.nodes[edge.port.node].op, graph.nodes[edge.target].op)
        for graph in map(graph_of, GRAPHS)
        for edge in edges_of(graph)
        if edge.kind in ("call", "return")
    }
    assert ("call", "call", "merge") in kinds and ("call", "call_start", "merge") in kinds
    assert ("return", "merge", "return") in kinds and ("return", "switch", "exit") in kinds
    assert ("call", "next", "merge") in kinds and ("call", "fan", "multiply") in kinds
    assert ("call", "hoist", "hoist_read") in kinds and ("call", "input", "hoist_read") in kinds
    assert ("call", "input", "outer") in kinds and ("return", "multiply", "gather") in kinds


@pytest.mark.parametrize("count", [LARGEST + 1, 1_500])
def test_big_graphs_are_drawn_too(count: int) -> None:
    graph = chain(count)
    began = time.process_time()
    found = placed(graph)
    assert time.process_time() - began < 30
    assert all(holds(found.regions[0], rect) for rect in found.nodes)
    assert all(apart(a, b) for a, b in zip(found.nodes, found.nodes[1:], strict=False))


@pytest.mark.slow
def test_nesting_is_not_host_recursion() -> None:
    for depth in (500, 5_000):
        function = nested(depth).functions["main"]
        inputs = (Node("start", (), (CTL,), "start"), Node("input", (), (Type(bool_),), "p", attrs=Attrs(index=0)))
        graph = StaticGraph((*inputs, *function.nodes[2:]), function.regions, "deep", (), (1,))
        ElementTree.fromstring(svg(graph))
        assert dot(graph).count("subgraph") == 2 * depth + 1


def test_layout_is_deterministic() -> None:
    assert svg(graph_of("factorial")) == svg(graph_of("factorial"))


def test_an_empty_graph_has_a_picture() -> None:
    empty = StaticGraph((), (Region("main", "main"),), "empty")
    ElementTree.fromstring(svg(empty))
    assert dot(empty).startswith('digraph "empty"')


# --------------------------------------------------------------------------------------------------------------
# SVG and DOT


@pytest.mark.parametrize("name", GRAPHS)
def test_svg_shows_every_node(name: str) -> None:
    graph = graph_of(name)
    root = ElementTree.fromstring(svg(graph))
    space = "{http://www.w3.org/2000/svg}"
    titles = [title.text or "" for title in root.iter(f"{space}title")]
    for node in graph.nodes:
        assert any(title.startswith(f"{node.name}: ") for title in titles)
    texts = [text.text for text in root.iter(f"{space}text")]
    for region in graph.regions:
        if any(node.region == graph.regions.index(region) for node in graph.nodes):
            assert any(text and text.endswith(region.name.rsplit("/", 1)[-1]) for text in texts)


def test_svg_tells_kinds_apart() -> None:
    graph = graph_of("factorial")
    text = svg(graph)
    assert 'class="e control"' in text and 'class="e call"' in text and 'class="e return"' in text
    assert len(re.findall(">T</text>", text)) == sum(node.op == "switch" for node in graph.nodes)
    assert 'rx="10" fill="#fcfbf9"/>' in text  # its own background


def test_labels() -> None:
    graph = graph_of("factorial")
    labels = {node.name: label(graph, number) for number, node in enumerate(graph.nodes)}
    assert labels["fac/less_equal"] == ("· ≤ 1", "less_equal")
    assert labels["fac/n"] == ("n", "merge")
    assert labels["fac/if1.then/value"] == ("1", "value")
    assert labels["fac.start"] == ("call @1", "start")
    assert labels["fac/if1.else/fac.n"] == ("call @2", "n")
    assert labels["fac"] == ("return @1", "fac")
    assert labels["fac/n.if"] == ("switch", "n")


def test_any_name_can_be_drawn() -> None:
    weird = "<&\"'\\N\n\x00\ud800]]>"
    nodes = (
        Node("start", (), (CTL,), weird, span=Span(weird, 3, 4, weird)),
        Node(weird, (Const(np.zeros(9)),), (Type(i64),), weird + "2", controls=(Port(0),)),
    )
    graph = StaticGraph(nodes, (Region("main", weird, starts=(Port(0),)),), weird)
    ElementTree.fromstring(svg(graph).encode())
    assert r"\\N\n" in dot(graph)
    dot(graph).encode()


@pytest.mark.parametrize("name", GRAPHS)
def test_dot_holds_every_edge_and_balances(name: str) -> None:
    graph = graph_of(name)
    text = dot(graph)
    assert len(re.findall(r"^n\d+ -> n\d+", text, re.MULTILINE)) == len(edges_of(graph))
    assert len(re.findall(r"^n\d+ \[label", text, re.MULTILINE)) == len(graph.nodes)
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert bare.count("{") == bare.count("}") == 1 + len(graph.regions)


# --------------------------------------------------------------------------------------------------------------
# Variables

STATEFUL = """static 1 stateful
var x: f64
var "y & z": i64
inputs main/n
fetches main/x#0

main main ^main/start
  main/start: ctl                   = start
  main/n: f64                       = input index=0
  main/x.add: f64, ctl              = assign &x, main/n how="add"
  main/greater: bool                = greater main/n, 2.0:f64
  branch if1 main/greater
  main/x.add.if: ctl, ctl           = switch main/greater, main/x.add#1
  main/n.if: f64, f64               = switch main/greater, main/n
  main/if1.then/u: f64, i64, ctl    = update &(x, "y & z"), main/n.if#0 f="" ^main/x.add.if#0
  main/done: ctl                    = merge main/if1.then/u#2, main/x.add.if#1
  main/x: f64, ctl                  = read &x ^main/done
"""


def test_variables_are_drawn_in_each_region_that_uses_them() -> None:
    graph = parse(STATEFUL)
    assert isinstance(graph, StaticGraph)
    drawn = with_variables(graph)
    assert drawn.nodes[: len(graph.nodes)] != graph.nodes and len(drawn.nodes) == len(graph.nodes) + 3
    edges = [edge for edge in edges_of(drawn) if edge.kind == "variable"]
    assert len(edges) == 4  # x to assign, read and update, and `y & z` to update
    assert all(drawn.nodes[edge.port.node].region == drawn.nodes[edge.target].region for edge in edges)
    rects = placed(drawn).nodes
    assert all(apart(a, b) for a, b in combinations(rects, 2))
    text = svg(graph)
    ElementTree.fromstring(text)
    assert text.count("<ellipse") == 3 and text.count('class="e variable"') == 4
    assert f"{len(graph.nodes)} nodes" in text and "<title>var x: f64</title>" in text
    assert dot(graph).count("shape=ellipse") == 3


def test_without_variables_nothing_is_added() -> None:
    graph = graph_of("factorial")
    assert with_variables(graph) is graph and ".variable" not in svg(graph)
