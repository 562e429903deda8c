"""A graph in parts, and the plan of each part, as text.

Each file tells a Python function (for the reader), what is placed where, the whole graph, and the plans. `pytest
tests/golden --update` writes the plans anew.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from undertow.engines.native import traits_of
from undertow.ir.text import parse
from undertow.passes.cut import cut
from undertow.passes.place import device_names, places_of, workers_named
from undertow.plan.dump import dump
from undertow.plan.parse import parse as parse_plan
from undertow.plan.pipeline import make_part_plan
from undertow.plan.project import Whole, project

FOLDER = Path(__file__).parent
FILES = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_text(path: Path, golden: Callable[..., None]) -> None:
    head, _, _ = path.read_text().partition("# plans\n")
    graph = parse(head.partition("# graph\n")[2])
    devices = device_names(workers_named(graph))
    placed = cut(graph, places_of(graph, devices), len(devices))
    whole = Whole(graph)
    texts = []
    for part in placed.parts:
        text = dump(make_part_plan(project(whole, part), traits_of), legend=False)
        assert dump(parse_plan(text), legend=False) == text
        texts.append(text)
    golden(path, "\n" + "\n".join(texts), f"{head}# plans\n")


def test_there_are_texts() -> None:
    assert len(FILES) >= 4
