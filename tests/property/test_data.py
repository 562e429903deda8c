"""Random trees through every form and back; batches are the trees that they are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow import data
from undertow.data import Forest, from_nested, to_nested
from undertow.data.select import parents

WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="() \t\n\r\f\v", categories=["L", "N", "P", "S"]), min_size=1
)
ATOMS = WORDS.filter(lambda word: word not in ("_", "-1", "<unk>"))


@st.composite
def depth_lists(draw: Any) -> list[int]:
    """The depths of the nodes of some trees, in preorder."""
    depths: list[int] = []
    for choice in draw(st.lists(st.floats(0, 1), max_size=40)):
        depths.append(round(choice * (depths[-1] + 1)) if depths else 0)
    return depths


@st.composite
def labelled(draw: Any) -> Forest:
    """Forests with words at leaves, and labels."""
    depths = draw(depth_lists())
    count = len(depths)
    is_leaf = [at + 1 == count or depths[at + 1] <= depths[at] for at in range(count)]
    names = draw(st.lists(ATOMS, min_size=1, max_size=5, unique=True))
    vocabulary = data.Vocabulary(tuple(names))
    word = [draw(st.integers(1, len(names))) if leaf else -1 for leaf in is_leaf]
    label = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    return Forest.from_depths(depths, word, label, vocabulary=vocabulary)


@given(depth_lists())
def test_parents(depths: list[int]) -> None:
    expected = []
    path: list[int] = []
    for node, depth in enumerate(depths):
        del path[depth:]
        expected.append(path[-1] if path else -1)
        path.append(node)
    assert parents(np.array(depths, np.int64)).tolist() == expected
    forest = Forest.from_depths(depths)
    assert forest.depths.tolist() == depths
    for node in range(forest.size):
        assert [expected[child] for child in forest.children(node)] == [node] * forest.child_count(node)


@given(labelled(), st.data())
def test_batches_are_their_trees(forest: Forest, source: st.DataObject) -> None:
    if not len(forest):
        return
    chosen = source.draw(st.lists(st.integers(0, len(forest) - 1), max_size=6))
    found = forest.batch(chosen)
    trees = to_nested(forest, "dicts")
    assert to_nested(found, "dicts") == [trees[number] for number in chosen]
    assert found.depths.tolist() == [d for n in chosen for d in forest[n].depths.tolist()]
    assert found == Forest.from_depths(found.depths, found.word, found.label)
    if forest.is_binary:
        inner = np.flatnonzero(found.left >= 0)
        assert all(found.children(n).tolist() == [found.left[n], found.right[n]] for n in inner)


@given(labelled())
def test_text_and_back(forest: Forest) -> None:
    options = {"vocabulary": forest.vocabulary, "per_line": True}
    assert data.parse_brackets(data.to_brackets(forest), labels=int, **options) == forest
    plain = Forest.from_depths(forest.depths, forest.word)
    assert data.parse_sexpressions(data.to_sexpressions(forest), **options) == plain
    assert data.parse_jsonl(data.to_jsonl(forest), vocabulary=forest.vocabulary) == forest
    assert from_nested(to_nested(forest, "dicts"), vocabulary=forest.vocabulary) == forest
    assert len(forest.text(most=100).splitlines()) == forest.size


@settings(max_examples=20)
@given(labelled())
def test_files_and_back(tmp_path_factory: pytest.TempPathFactory, forest: Forest) -> None:
    path: Path = tmp_path_factory.mktemp("trees") / "forest.npz"
    data.save(forest, path)
    found = data.load(path)
    assert found == forest and found.vocabulary == forest.vocabulary


@given(st.text("() \n12ab[]\t", max_size=60))
def test_any_text_is_trees_or_a_data_error(text: str) -> None:
    for parse in (data.parse_brackets, data.parse_sexpressions, data.parse_listops, data.parse_jsonl):
        try:
            forest = parse(text)
        except ut.DataError as fault:
            lines = fault.lines
        else:
            lines = ()
            assert forest.size >= len(forest)
        assert all(1 <= number <= text.count("\n") + 1 for number, _ in lines)
