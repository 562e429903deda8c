"""Pictures of placed graphs: every node has the number of its parts, and what crosses is bold.

main          fac: less ─► switch ─► n - 1 (worker:0) ─► call fac ─► n * fac
"""

from __future__ import annotations

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from tests.programs import devices, find

import undertow as ut
from undertow.api.placed import PlacedView
from undertow.viz.parts import CUT, Parts, parts_of

NAMES = [program.name for program in devices.PROGRAMS]


@ut.function
def fac(n: ut.i64) -> ut.i64:
    if n <= 0:
        return 1
    with ut.device("worker:0"):
        less = n - 1
    return n * fac(less)


def seen(name: str = "") -> tuple[PlacedView, Parts]:
    function, args = (find(name).function, find(name).cases[-1]) if name else (fac, (5,))
    view = function.graph(*args).placed()
    return view, parts_of(view.static, view.placed, [device or "main" for device in view.devices])


def test_what_is_where() -> None:
    view, parts = seen()
    names = {node.name: number for number, node in enumerate(view.static.nodes)}
    assert parts.number(names["fac/if1.else/less"]) == "1→0"
    assert parts.number(names["fac/if1.else/multiply"]) == "0"
    assert parts.number(names["fac/n"]) == "0+1"
    assert parts.fill(names["fac/if1.else/less"]) != parts.fill(names["fac/if1.else/multiply"])


def test_what_crosses() -> None:
    """The predicate goes out, and the smaller number comes back."""
    view, parts = seen()
    nodes = view.static.nodes
    found = {(nodes[port.node].name, nodes[target].name) for port, target in parts.crossing}
    assert found == {
        ("fac/less_equal", "fac/n.if"), ("fac/less_equal", "fac/start.if"), ("fac/if1.else/less", "fac/if1.else/fac.n"),
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_node_is_somewhere(name: str) -> None:
    view, parts = seen(name)
    assert len(parts.names) == len(view.parts)
    assert {number for copies in parts.of for number in copies} <= set(range(len(view.parts)))
    numbers = {node.name: number for number, node in enumerate(view.static.nodes)}
    for edge in view.edges:
        if edge.name in numbers:
            assert edge.target in parts.sent[numbers[edge.name]]
            assert parts.of[numbers[edge.name]][:1] == (edge.source,)
    assert all(parts.sent[port.node] for port, _ in parts.crossing)


@pytest.mark.parametrize("name", NAMES)
def test_pictures(name: str) -> None:
    view, parts = seen(name)
    text = view.svg()
    tree = ElementTree.fromstring(text)
    spaces = {"s": "http://www.w3.org/2000/svg"}
    paths = tree.findall(".//s:path", spaces)
    bold = [path for path in paths if path.get("class") == "e cut"]
    assert (len(bold) > 1) == bool(parts.crossing) and all(
        path.get("stroke") == CUT for path in bold
    )  # one is in the legend
    badges = [item.text or "" for item in tree.findall(".//s:text[@class='p']", spaces)]
    assert sorted(badges) == sorted(parts.number(number) for number in range(len(parts.of)))
    for part in range(len(parts.names)):
        assert parts.said(part) in text
    assert float(tree.get("width", "0")) > 0


def test_in_graphviz() -> None:
    view, _ = seen()
    text = view.dot()
    assert text.count('style="bold,dashed" penwidth=2.4') == 3
    assert "less\\n[1→0]" in text and "n\\nmerge\\n[0+1]" in text and "1 worker:0" in text


def test_without_parts_nothing_changes() -> None:
    graph = fac.graph(5)
    assert 'class="e cut"' not in graph.svg() and "bold,dashed" not in graph.dot()


def test_colours_differ_without_their_hue() -> None:
    """Parts next to each other have another brightness, or at least another number."""
    parts = Parts(tuple("abcdefgh"), (), (), frozenset())
    colours = [parts.colour(part) for part in range(8)]
    assert len(set(colours)) == 8 and all(re.fullmatch("#[0-9a-f]{6}", colour) for colour in colours)
    assert all(a != b for a, b in pairwise(colours))
