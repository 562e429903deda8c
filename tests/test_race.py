"""The race on trees is fair: trees have the stated shape, our entries compute what NumPy computes, rivals answer."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
MODELS = ["treernn", "rntn", "treelstm"]


@pytest.fixture(scope="module")
def rivals() -> Iterator[Any]:
    """Modules of benchmarks/rivals, by name."""
    sys.path.insert(0, str(BENCHMARKS))
    yield lambda name: importlib.import_module(f"rivals.{name}")
    sys.path.remove(str(BENCHMARKS))


def test_made_up_trees_have_the_shape_of_the_treebank(rivals: Any) -> None:
    forests = rivals("forests")
    trees = forests.generate(400)
    assert np.mean([tree.words for tree in trees]) == pytest.approx(18.9, abs=1)
    assert np.mean([tree.height[-1] for tree in trees]) == pytest.approx(9.8, abs=0.6)
    heights = {shape: forests.generate(50, shape=shape, words=16)[0].height[-1] for shape in ("balanced", "linear")}
    assert heights == {"balanced": 4, "linear": 15}
    for tree in trees[:20]:
        inner = np.flatnonzero(tree.left >= 0)
        assert (tree.left[inner] < inner).all() and (tree.right[inner] < inner).all()
        assert ((tree.word >= 0) == (tree.left < 0)).all()


def test_treebank_lines(rivals: Any) -> None:
    forests = rivals("forests")
    numbers: dict[str, int] = {}
    found = forests.tree(
        forests.parse("(3 (2 A) (4 (1 good) (0 film)))", lambda word: numbers.setdefault(word, len(numbers)))
    )
    assert numbers == {"a": 0, "good": 1, "film": 2}
    assert found.word.tolist() == [0, 1, 2, -1, -1]
    assert found.left.tolist() == [-1, -1, -1, 1, 0] and found.right.tolist() == [-1, -1, -1, 2, 3]
    assert found.label.tolist() == [2, 1, 0, 4, 3] and found.height.tolist() == [0, 0, 0, 1, 2]


def test_a_word_may_have_a_blank_that_does_not_break(rivals: Any) -> None:
    """The treebank has `8\u00a01/2`: one leaf, one word."""
    words: list[str] = []
    columns = rivals("forests").parse("(2 (2 8\u00a01/2) (2 women))", lambda word: words.append(word) or len(words) - 1)
    assert words == ["8\u00a01/2", "women"]
    assert [len(column) for column in columns] == [3, 3, 3, 3]


def test_trees_survive_their_file(rivals: Any, tmp_path: Path) -> None:
    forests = rivals("forests")
    trees = forests.generate(5)
    forests.save(tmp_path / "trees.npz", {"train": trees, "test": trees[:2]})
    again = forests.restore(tmp_path / "trees.npz")
    assert {name: len(found) for name, found in again.items()} == {"train": 5, "test": 2}
    assert all((a.left == b.left).all() and a.words == b.words for a, b in zip(trees, again["train"], strict=True))


def test_levels_keep_every_node_and_parent(rivals: Any) -> None:
    forests, levels = rivals("forests"), rivals("levels")
    trees = forests.generate(6)
    found = levels.levels(trees)
    assert sum(found.sizes) == found.nodes == sum(len(tree.word) for tree in trees)
    starts = np.cumsum([0, *found.sizes])
    level = np.searchsorted(starts, np.arange(found.nodes), side="right") - 1
    above = level[found.leaves :].repeat(2)
    assert (level[found.children] < above).all()
    assert (found.parents[found.children] == np.arange(len(found.children))).all()
    assert (found.parents[found.roots] == len(found.children)).all()
    assert sorted(found.words) == sorted(word for tree in trees for word in tree.word if word >= 0)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["ours", "ours_iterative"])
@pytest.mark.parametrize("model", MODELS)
def test_our_entries_compute_what_numpy_computes(rivals: Any, module: str, model: str) -> None:
    forests, networks = rivals("forests"), rivals("networks")
    trees = forests.generate(4)
    params = networks.init(model, forests.VOCABULARY)
    entry = rivals(module).make(model, params)
    assert entry.loss(trees) == pytest.approx(networks.loss(model, params, trees), rel=1e-5)
    assert entry.train(trees) == pytest.approx(networks.loss(model, params, trees), rel=1e-5)
    # Adagrad's first step goes down; parameters of the caller stay as they were.
    assert entry.loss(trees) < networks.loss(model, params, trees)
    names = rivals("ours").NAMES if module == "ours" else {name: name for name in params}  # what models call them
    trained = {name: entry.params[names[name]].reshape(value.shape) for name, value in params.items()}
    assert entry.infer(trees) == [int(np.argmax(logits)) for logits in roots(networks, model, trained, trees)]


def roots(networks: Any, model: str, params: dict[str, np.ndarray], trees: list[Any]) -> list[np.ndarray]:
    return [networks.states(model, params, tree)[-1] @ params["U"] + params["bu"] for tree in trees]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "variant"), [("ours_top_down", ""), ("ours_top_down_loops", ""), ("ours_top_down_loops", "levels")]
)
def test_trees_that_grow(rivals: Any, module: str, variant: str) -> None:
    """By recursion, by a queue of nodes, by levels."""
    top_down = rivals("top_down")
    params = top_down.init()
    wanted = top_down.grown(params)
    assert wanted.mean() == pytest.approx(37.7, abs=0.5)
    found = rivals(module).make("topdown", params, variant).infer(top_down.numbered())
    assert np.mean(np.array(found) == wanted) > 0.99


@pytest.mark.slow
def test_who_is_not_there_is_a_row_that_says_so(rivals: Any, tmp_path: Path) -> None:
    forests, turns = rivals("forests"), rivals("turns")
    forests.save(tmp_path / "trees.npz", {"train": forests.generate(2)})
    runners = [turns.Rival("a", "A", "dynet_autobatch", "a"), turns.Rival("b", "B", "ours", "b")]
    with turns.started(runners, {"b": "/no/such/python"}, str(tmp_path)) as present:
        assert present == []
    assert runners[0].missing == "dynet_config is not installed"
    assert runners[1].missing == "/no/such/python: No such file or directory"
