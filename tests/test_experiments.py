"""The experiments of the papers: what is learned from, what curves and tables say, and the page that is written."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def experiments() -> Iterator[Any]:
    """Modules of benchmarks/experiments, by name."""
    sys.path.insert(0, str(BENCHMARKS))
    yield lambda name: importlib.import_module(f"experiments.{name}")
    sys.path.remove(str(BENCHMARKS))


def test_reviews_are_the_trees_of_the_forest(experiments: Any) -> None:
    forest = ut.data.sentiment(5, seed=0)
    for mine, theirs in zip(experiments("accuracy").reviews(5, 0), forest, strict=True):
        inner = np.flatnonzero(mine.left >= 0)
        assert (mine.left[inner] < inner).all() and (mine.right[inner] < inner).all()
        assert mine.label[-1] == theirs.label[theirs.roots[0]]
        waiting = [(len(mine.word) - 1, int(theirs.roots[0]))]
        while waiting:
            node, other = waiting.pop()
            assert mine.word[node] == theirs.word[other] and mine.label[node] == theirs.label[other]
            if mine.left[node] >= 0:
                waiting += [(mine.left[node], theirs.left[other]), (mine.right[node], theirs.right[other])]


def test_when_a_curve_reaches_a_level(experiments: Any) -> None:
    curve = experiments("accuracy").Curve([0.0, 2.0, 4.0], [0.2, 0.4, 0.8])
    assert curve.reached(0.1) == 0.0
    assert curve.reached(0.3) == pytest.approx(1.0)
    assert curve.reached(0.7) == pytest.approx(3.5)
    assert curve.reached(0.9) is None


class Learner:
    """A rival that is right about one more tree after each epoch, and fails in the third if it `stops`."""

    def __init__(self, key: str, stops: bool) -> None:
        self.key = self.name = key
        self.failed, self.stops, self.epochs = "", stops, 0

    def ask(self, do: str, **more: Any) -> dict[str, Any]:
        if self.failed:
            return {}
        if do == "learn":
            self.epochs += 1
            self.failed = "out of memory" if self.stops and self.epochs == 3 else ""
            return {"processor": 0.5}
        return {"answers": [1] * self.epochs + [0] * (4 - self.epochs)}


def test_learning_in_turns(experiments: Any) -> None:
    learners = [Learner("one", False), Learner("other", True)]
    curves = experiments("accuracy").learn(learners, np.array([1, 1, 1, 1]), 4)
    assert curves.keys() == {"one"}
    assert curves["one"].seconds == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert curves["one"].accuracy == [0.0, 0.25, 0.5, 0.75, 1.0]


@pytest.mark.slow
def test_the_page(experiments: Any, tmp_path: Path) -> None:
    """Sections that were measured are on it, with machine, table and pictures; the same numbers give the same bytes."""
    book, page = experiments("book"), experiments("page")
    lines = {"static": [(1, 2.0), (10, 3.0)], "iteration": [(1, 1.0), (10, None)]}
    plots = [
        book.Plot("lines", "batch", "speed", {"here": lines}),
        book.Plot("bars", "n", "s", {"a": lines}, is_bar=True),
    ]
    exhibit = book.Exhibit("Trees", "Table 3", ["batch", "x|y"], [["1", "2"]], ["A note."], plots)
    made = book.Book(None, tmp_path, {}, 0, {})
    made.show("batch", exhibit)
    page.record(
        tmp_path / "records", made.figures(), {"command": "benchmarks/papers.py --quick", "trees": "Trees: few"}
    )
    assert json.loads((tmp_path / "records" / "batch.json").read_text())["machine"]["cores"] > 0
    texts = []
    for _ in range(2):
        page.write(
            tmp_path / "records", {"batch": "In batches", "shape": "Not measured"}, tmp_path / "page.md", tmp_path
        )
        texts.append([(tmp_path / name).read_text() for name in ("page.md", "papers-lines.svg", "papers-bars.svg")])
    assert texts[0] == texts[1]
    text = texts[0][0]
    assert "## In batches" in text and "Not measured" not in text
    assert "| batch | x/y |\n| --- | --- |\n| 1 | 2 |" in text and "A note." in text
    assert re.search(r"Measured \d{4}-\d\d-\d\d at commit `.+?`\. .+ cores, load", text)
    assert "![Trees](papers-lines.svg)" in text and "<svg" in texts[0][1]
