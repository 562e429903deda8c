"""Pictures of trees: well-formed SVG with every word in it, and text for terminals."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

import undertow as ut
from undertow import data
from undertow.data import Forest, from_nested

SPACE = "{http://www.w3.org/2000/svg}"


def test_text() -> None:
    forest = from_nested([{"label": "S", "children": ["a", {"label": "X", "children": ["b"]}, "c"]}, "d"])
    assert forest.text() == "S\n├─ a\n├─ X\n│  └─ b\n└─ c\nd"
    assert data.sentiment(12).text(most=2).endswith("... and 10 more trees")
    assert Forest.from_depths([]).text() == ""


@pytest.mark.parametrize(
    "forest",
    [
        data.sentiment(4),
        data.listops(3, max_depth=3),
        from_nested([("<b>", ('"&"', "a" * 90))]),
        data.parse_brackets("(S (NP it) (VP (V is)))"),
        Forest.from_depths([0, 1, 2, 0]),
    ],
    ids=["scale", "many", "letters", "names", "bare"],
)
def test_svg(forest: Forest) -> None:
    picture = forest.svg()
    root = ElementTree.fromstring(picture)
    boxes = root.findall(f".//{SPACE}g")
    assert len(boxes) == forest.size
    assert len(root.findall(f".//{SPACE}line")) == forest.size - len(forest)
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    spans = []
    for box in boxes:
        rect = box.find(f"{SPACE}rect")
        assert rect is not None
        x, y, wide = (float(rect.attrib[name]) for name in ("x", "y", "width"))
        assert x >= 0 and x + wide <= width and 0 <= y <= height
        spans.append((y, x, x + wide))
    for (y, _, end), (other, start, _) in zip(sorted(spans), sorted(spans)[1:], strict=False):
        assert y != other or end <= start, "boxes overlap"
    assert "<script" not in picture
    assert forest._repr_svg_() == picture


def test_large_forests_are_cut() -> None:
    assert "and 94 more trees" in data.booleans(100).svg()
    assert "and 2 more trees" in data.parse_brackets("(1 (1 x) " * 1500 + "(1 x)" + ")" * 1500 + "\n(1 a)\n(1 b)").svg()
    assert Forest.from_depths([])._repr_svg_() is None


def test_deep_branches_are_cut_in_text():
    depths = [0, *(level for at in range(1, 20_001) for level in (at, at))]
    drawn = ut.data.Forest.from_depths(depths).text()
    assert len(drawn) < 100_000
    assert drawn.split("\n")[-1].endswith("└─ ... and 39880 more nodes below")


def test_a_negative_number_of_trees_is_refused():
    with pytest.raises(ut.DataError, match="must not be -1"):
        ut.data.booleans(2).text(-1)


def test_letters_that_no_xml_may_hold() -> None:
    forest = ut.data.from_nested([{"word": "a\x00b\x1f\ufffe\ud800<é\U0001f600", "label": "x\x08"}])
    root = ElementTree.fromstring(forest.svg().encode("utf-8"))
    assert "a\ufffdb\ufffd\ufffd\ufffd<é\U0001f600" in "".join(root.itertext())
