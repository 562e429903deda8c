"""Pictures of late arguments: what computes one has its colour and number; the edge on which it would come is bold.

main ─► factorial: n <= 1 ─────────────────► ite
                   n - 1 ─► call ─► n * · ━━━━━►      (1: by need)
"""

from __future__ import annotations

from xml.etree import ElementTree

import undertow as ut
from undertow.viz.parts import CUT


@ut.function
def ite(condition, a, b):
    return a if condition else b


@ut.function
def factorial(n: ut.i64) -> ut.i64:
    return ite(n <= 1, 1, n * factorial(n - 1))


@ut.function
def up(n: ut.i64) -> ut.i64:
    return n if n % 7 == 0 else up(n + 1)


@ut.function
def two_ways(n: ut.i64) -> ut.i64:
    return ite(n < 7, up(n), up(n + 1))


SVG = {"s": "http://www.w3.org/2000/svg"}


def marked(function: ut.Function) -> dict[str, str]:
    """Of each node that is computed by need: its name, and for what."""
    tree = ElementTree.fromstring(function.graph(5).late().svg())
    tips = [(title.text or "").splitlines() for title in tree.findall(".//s:g/s:title", SVG)]
    return {lines[0].split(":")[0]: lines[1] for lines in tips if lines[1] != "at once"}


def test_what_is_marked() -> None:
    names = ["subtract", "factorial.start", "factorial.n", "factorial", "multiply", "ite.b"]
    assert marked(factorial) == {f"factorial/{name}": "by need, for b of ite" for name in names}


def test_each_late_argument_has_its_own_colour() -> None:
    found = marked(two_ways)
    assert found["two_ways/up"] == found["two_ways/ite.a"] == "by need, for a of ite"
    assert found["two_ways/up_2"] == found["two_ways/ite.b"] == "by need, for b of ite"
    tree = ElementTree.fromstring(two_ways.graph(5).late().svg())
    legend = [item.text for item in tree.findall("s:text[@class='h']", SVG)]
    assert legend[-3:] == ["1 a of ite", "2 b of ite", "by need"]
    badges = {item.text for item in tree.findall("s:text[@class='p']", SVG)}
    assert badges == {None, "1", "2"}


def test_bold_edges() -> None:
    tree = ElementTree.fromstring(factorial.graph(5).late().svg())
    bold = [path for path in tree.findall(".//s:path", SVG) if path.get("class") == "e cut"]
    assert len(bold) >= 2 and all(path.get("stroke") == CUT for path in bold), "the edge, and the legend"
    assert 'class="e cut"' not in factorial.graph(5).svg()


def test_in_graphviz() -> None:
    text = factorial.graph(5).late().dot()
    assert text.count("by need, for b of ite") == 6 and text.count('style="bold,dashed" penwidth=2.4') == 1
    assert "· × ·\\nmultiply\\n[1]" in text


def test_in_a_notebook() -> None:
    view = factorial.graph(5).late()
    assert view._repr_svg_() == view.svg() and "b of ite" in view.svg()
