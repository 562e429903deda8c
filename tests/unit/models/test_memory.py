"""The memory of a training step goes with the nodes of the batch, not with nodes times parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

WORDS = 13
TREES = 16
# Sizes, and by how much a node may grow when they are doubled. A matrix of weights becomes four times as large then
# (the tensor of an RNTN eight times), and what a node holds twice as large: vectors. It is four times in two models
# whose nodes hold matrices by their equations.
SIZES: dict[str, tuple[dict[str, int], float]] = {
    "treernn": ({"width": 32}, 2),
    "rntn": ({"width": 8}, 4),
    "treelstm": ({"width": 32, "embedding": 16}, 2),
    "childsum": ({"width": 32, "embedding": 16}, 2),
    "mvrnn": ({"width": 8}, 4),
    "topdown": ({"width": 32, "embedding": 16}, 2),
    "drnn": ({"width": 32, "embedding": 16}, 2),
}


def model_of(name: str, words: int = WORDS, factor: int = 1) -> Any:
    sizes = {key: factor * value for key, value in SIZES[name][0].items()}
    if name in ut.models.CLASSIFIERS:
        return ut.models.CLASSIFIERS[name](words, 5, **sizes)
    return ut.models.GENERATORS[name](words, **sizes)


def growth(model: Any) -> list[float]:
    """Bytes for each node more, from one batch to another of twice the nodes, and from that to the next."""
    step = ut.value_and_grad(model.loss(), has_aux=isinstance(model, ut.models.TreeClassifier), sparse_rows=True)
    params, forest = model.init(seed=0), ut.data.arithmetic(TREES, seed=0, max_depth=5, modulus=5)
    nodes, peaks = [], []
    for copies in (4, 8, 16):
        batch = forest.batch(np.tile(np.arange(TREES), copies))
        # So few frames that lanes are not cut into tasks, whose number does not go with the nodes.
        _, stats = step.run(params, batch, stats=True, engine="waves", threads=1, frames=1_000_000)
        nodes.append(batch.size)
        peaks.append(stats.peak_bytes)
    return [(b - a) / (m - n) for a, b, n, m in zip(peaks, peaks[1:], nodes, nodes[1:], strict=False)]


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_memory_goes_with_the_nodes(name: str) -> None:
    first, second = growth(model_of(name))
    assert second == pytest.approx(first, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_weights_are_not_held_by_nodes(name: str) -> None:
    small, large = model_of(name), model_of(name, factor=2)
    heaviest = max(small.init(0), key=lambda key: small.init(0)[key].size)
    assert large.init(0)[heaviest].size >= 4 * small.init(0)[heaviest].size or heaviest.startswith("embed")
    assert growth(large)[1] <= 1.05 * SIZES[name][1] * growth(small)[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ut.models.CLASSIFIERS)
def test_tables_of_words_are_not_held_by_nodes(name: str) -> None:
    assert growth(model_of(name, words=100 * WORDS)) == pytest.approx(growth(model_of(name)), rel=0.01)


def chain(levels: int) -> ut.data.Forest:
    """A tree that goes down on its right side only."""
    depths = np.concatenate([[0], np.arange(1, levels + 1).repeat(2)])
    return ut.data.Forest.from_depths(depths, word=np.arange(len(depths)) % WORDS)


@pytest.mark.parametrize("name", ["treernn", pytest.param("childsum", marks=pytest.mark.slow)])
def test_labels_of_nodes_take_memory_by_nodes(name: str) -> None:
    model = model_of(name)
    params, peaks = model.init(seed=0), []
    for levels in (200, 800):
        forest = chain(levels)
        _, stats = model._node_labels().run(params, forest, stats=True)
        peaks.append(stats.peak_bytes / forest.size)
    assert peaks[1] == pytest.approx(peaks[0], rel=0.1)


@pytest.mark.slow
def test_labels_of_nodes_of_a_hundred_thousand_levels() -> None:
    model, forest = ut.models.TreeRNN(WORDS, 5, width=2), chain(100_000)
    params = model.init(seed=0)
    labels = model.node_labels(params, forest)
    assert labels.shape == (forest.size,) and labels.dtype == np.int32
    assert labels[0] == model.predict(params, forest)[0]
    assert model.node_labels(params, forest[:0]).tolist() == []
