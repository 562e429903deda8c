"""Every model against the same written out by hand: values, labels, and gradients by differences and by PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.support import model_references as by_hand

import undertow as ut
from undertow.api.options import ENGINES
from undertow.train.score import judged

WORDS = 13
SIZES = {"treernn": {}, "rntn": {}, "treelstm": {"embedding": 3}, "childsum": {"embedding": 3}, "mvrnn": {}}
NAMES = list(ut.models.CLASSIFIERS)


def classifier(name: str, **more: Any) -> Any:
    return ut.models.CLASSIFIERS[name](WORDS, 5, width=2, **SIZES[name], **more)


def parameters(model: Any) -> dict[str, Any]:
    """First ones, and larger: at zero too much is symmetric. Biases are nonzero too."""
    random = np.random.default_rng(7)
    return {k: np.asarray(v + 0.3 * random.normal(size=np.shape(v)), np.float32) for k, v in model.init(seed=1).items()}


def some_trees(name: str) -> Any:
    forest = ut.data.arithmetic(3, seed=3, max_depth=3, modulus=5)
    if name == "childsum":  # any number of children, and some nodes without a word or a label
        depths = [0, 1, 2, 2, 2, 1, 1, 2, 0, 0, 1]
        label = [0, 1, 2, 3, 4, -1, 1, 2, 3, 4, 0]
        forest = ut.data.Forest.from_depths(depths, [3, 1, 2, 3, -1, 5, -1, 7, 8, 9, 12], label)
    return forest


def doubled(params: Any) -> Any:
    return {name: np.float64(values) for name, values in params.items()}


def differences(loss: Callable[[Any], Any], params: Any) -> dict[str, Any]:
    """The gradient by central differences, in f64: places that no tree reads give zero."""
    made = {}
    for name, values in params.items():
        slope = np.zeros(np.shape(values))
        for place in np.ndindex(slope.shape):
            ends = []
            for sign in (1, -1):
                moved = np.array(values)
                moved[place] += sign * 1e-5
                ends.append(loss({**params, name: moved}))
            slope[place] = (ends[0] - ends[1]) / 2e-5
        made[name] = slope
    return made


def torch_gradient(loss: Callable[[Any, Any], Any], params: Any) -> dict[str, Any]:
    torch = pytest.importorskip("torch")
    leaves = {name: torch.tensor(values, requires_grad=True) for name, values in params.items()}
    loss(by_hand.torch_functions(), leaves).backward()
    return {name: np.zeros(x.shape) if x.grad is None else x.grad.numpy() for name, x in leaves.items()}


def assert_same(given: Any, wanted: Any) -> None:
    assert given.keys() == wanted.keys()
    for name, slope in wanted.items():
        np.testing.assert_allclose(np.asarray(given[name]), slope, rtol=2e-4, atol=2e-5, err_msg=name)


GRADIENTS = ["differences", pytest.param("torch", marks=pytest.mark.torch)]


def gradient(way: str, loss: Callable[[Any, Any], Any], params: Any) -> dict[str, Any]:
    if way == "torch":
        return torch_gradient(loss, doubled(params))
    return differences(lambda p: loss(by_hand.NUMPY, p), doubled(params))


# --------------------------------------------------------------------------------------------------------------
# Those that label trees


@pytest.mark.slow
@pytest.mark.parametrize("at", ["nodes", "root"])
@pytest.mark.parametrize("name", NAMES)
def test_loss_and_labels(name: str, at: str) -> None:
    model, forest = classifier(name), some_trees(name)
    params = parameters(model)
    loss, hits = model.loss(at)(params, forest)
    wanted, scores = by_hand.judged(name, by_hand.NUMPY, doubled(params), forest, at)
    np.testing.assert_allclose(loss, wanted, rtol=1e-5)
    np.testing.assert_allclose(model.total_loss(at)(params, forest), len(forest) * wanted, rtol=1e-5)
    best = np.argmax(scores, axis=1)
    at_roots = (best == forest.label)[forest.roots].sum()
    assert hits.tolist() == [at_roots, (best == forest.label).sum() if at == "nodes" else at_roots]
    assert model.predict(params, forest).tolist() == best[forest.roots].tolist()
    if at == "nodes":
        assert model.node_labels(params, forest).tolist() == best.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, *ut.models.GENERATORS])
def test_no_trees_have_no_loss(name: str) -> None:
    """0.0, as in `ut.train.score`; and nothing is to be learnt of them."""
    model = classifier(name) if name in NAMES else ut.models.GENERATORS[name](3, width=2, embedding=2)
    none = (some_trees(name) if name in NAMES else ut.data.from_nested([("a", "b")]))[:0]
    for at in ("nodes", "root") if name in NAMES else ("nodes",):
        loss = judged(model, at)
        (found, hits), slopes = ut.value_and_grad(loss, has_aux=True)(parameters(model), none)
        assert found == 0.0 == ut.train.score(model, parameters(model), none, at).loss
        assert hits.tolist() == [0, 0] and not any(np.any(slope) for slope in slopes.values())


@pytest.mark.slow
@pytest.mark.parametrize("way", GRADIENTS)
@pytest.mark.parametrize("at", ["nodes", "root"])
@pytest.mark.parametrize("name", NAMES)
def test_gradients(name: str, at: str, way: str) -> None:
    model, forest = classifier(name), some_trees(name)
    params = parameters(model)
    _, slopes = ut.value_and_grad(model.loss(at), has_aux=True)(params, forest)
    assert_same(slopes, gradient(way, lambda xp, p: by_hand.judged(name, xp, p, forest, at)[0], params))


def test_models_are_values() -> None:
    model = classifier("treernn")
    assert model.loss() is classifier("treernn").loss()  # so that it is captured once
    assert model.loss() is not replace(model, width=3).loss()
    first, same, other = model.init(1), model.init(1), model.init(2)
    assert all(np.array_equal(first[name], same[name]) for name in first)
    assert not np.array_equal(first["embed"], other["embed"])
    assert {values.dtype.name for values in first.values()} == {"float32"}


@pytest.mark.parametrize("name", ["treernn", "rntn"])
def test_words_may_be_taken_as_they_are(name: str) -> None:
    model, forest = classifier(name, squash=False), some_trees(name)
    params = parameters(model)
    squashed = params | {"embed": np.tanh(params["embed"])}
    found, wanted = model.loss()(squashed, forest), classifier(name).loss()(params, forest)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-5)


def test_losses_elsewhere_are_refused() -> None:
    with pytest.raises(ut.DataError, match="unknown place of losses 'leaves'"):
        classifier("treernn").loss("leaves")
    with pytest.raises(ut.DataError, match="unknown place of losses 'leaves'"):
        classifier("treernn").total_loss("leaves")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_dropout_depends_on_the_seed_alone(name: str) -> None:
    model, forest = classifier(name, dropout=0.5), some_trees(name)
    params = parameters(model)
    first, again, other = (model.loss().run(params, forest, seed=seed)[0] for seed in (1, 1, 2))
    assert first == again != other
    assert model.predict(params, forest).tolist() == model.predict(params, forest).tolist()


# --------------------------------------------------------------------------------------------------------------
# Generators and the experts


@pytest.mark.slow
@pytest.mark.parametrize("way", GRADIENTS)
def test_top_down(way: str) -> None:
    model = ut.models.TopDownTreeLSTM(WORDS, width=2, embedding=3)
    params, forest = parameters(model), some_trees("treernn")
    value, slopes = ut.value_and_grad(model.loss())(params, forest)
    np.testing.assert_allclose(value, by_hand.top_down(by_hand.NUMPY, doubled(params), forest), rtol=1e-5)
    assert_same(slopes, gradient(way, lambda xp, p: by_hand.top_down(xp, p, forest), params))


@pytest.mark.slow
def test_trees_grow_from_computed_values() -> None:
    model = ut.models.TopDownTreeLSTM(WORDS, width=4, embedding=3, max_depth=6)
    params = parameters(model) | {"grow_bias": np.float32(0)}
    starts = np.random.default_rng(0).normal(size=(8, 3), scale=2.0).astype(np.float32)
    nodes, deepest = model.generate()(params, starts)
    assert len(set(nodes.tolist())) > 1  # else this says little
    for start, size, depth in zip(starts, nodes, deepest, strict=True):
        words, depths = model.words_of()(params, start)
        tree = ut.data.Forest.from_depths(depths, words, binary=True)
        assert (len(tree), tree.size, tree.depths.max()) == (1, size, depth)


def bushes() -> Any:
    """Trees with none to four children, all with words."""
    depths = [0, 1, 2, 2, 2, 1, 1, 2, 3, 2, 0, 0, 1, 1, 1, 1]
    return ut.data.Forest.from_depths(depths, [3, 1, 2, 3, 0, 5, 4, 7, 8, 9, 12, 1, 2, 3, 4, 11], binary=False)


@pytest.mark.slow
@pytest.mark.parametrize("way", GRADIENTS)
def test_doubly_recurrent(way: str) -> None:
    model, forest = ut.models.DoublyRecurrent(WORDS, width=2, embedding=3), bushes()
    params = parameters(model)
    value, slopes = ut.value_and_grad(model.loss())(params, forest)
    np.testing.assert_allclose(value, by_hand.doubly_recurrent(by_hand.NUMPY, doubled(params), forest), rtol=1e-5)
    assert_same(slopes, gradient(way, lambda xp, p: by_hand.doubly_recurrent(xp, p, forest), params))


@pytest.mark.slow
def test_trees_of_any_shape_grow_from_computed_values() -> None:
    model = ut.models.DoublyRecurrent(WORDS, width=4, embedding=3, max_depth=4, max_nodes=100_000)
    params = parameters(model) | {"children_bias": np.float32(-0.1), "sibling_bias": np.float32(-0.3)}
    sizes = set()
    for seed in range(8):
        start = np.random.default_rng(seed).normal(size=4, scale=2.0).astype(np.float32)
        words, depths = model.words_of()(params, start)
        assert (words.tolist(), depths.tolist()) == by_hand.doubly_recurrent_tree(params, start, 4)
        sizes.add(len(words))
    assert len(sizes) > 1  # else this says little


@pytest.mark.slow
@pytest.mark.parametrize("sampled", [False, True])
def test_there_is_room_for_so_many_nodes(sampled: bool) -> None:
    model = ut.models.DoublyRecurrent(WORDS, width=2, embedding=3, max_depth=1000, max_nodes=77)
    params = model.init(0) | {"children_bias": np.float32(9), "sibling_bias": np.float32(9)}  # always more
    words, depths = model.words_of(sampled)(params, params["start"])
    assert 20 < len(words) <= 77 and depths.max() > 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ut.models.GENERATORS)
def test_samples_depend_on_the_seed_alone(name: str) -> None:
    model = ut.models.GENERATORS[name](WORDS, width=3, embedding=3, max_depth=5)
    params = model.init(0)
    first, again = (model.sample(params, seed=1) for _ in range(2))
    assert first == again
    others = [model.sample(params, seed=seed) for seed in range(20)]
    assert len({tree.size for tree in others}) > 2
    assert all(len(tree) == 1 and tree.depths.max() <= 5 for tree in others)
    # As likely as the model has it: a root without children has about the share that its score says.
    grown = np.mean([model.sample(params, seed=seed).size > 1 for seed in range(200)])
    assert 0.35 < grown < 0.65  # the first scores are near zero


@pytest.mark.slow
@pytest.mark.parametrize("way", GRADIENTS)
def test_experts(way: str) -> None:
    model = ut.models.Experts(inputs=3, classes=4, levels=2)
    params = parameters(model)
    x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    label = np.array([0, 1, 2, 3, 1], np.int32)
    value, slopes = ut.value_and_grad(model.loss())(params, x, label)
    np.testing.assert_allclose(value, by_hand.experts(by_hand.NUMPY, doubled(params), x, label), rtol=1e-5)
    if way == "torch":
        x = pytest.importorskip("torch").tensor(x, dtype=pytest.importorskip("torch").float64)
    assert_same(slopes, gradient(way, lambda xp, p: by_hand.experts(xp, p, x, label), params))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_experts_on_every_engine(engine: str) -> None:
    """Also where the gates leave branches out."""
    model = ut.models.Experts(inputs=3, classes=4, levels=3, floor=0.15)
    params, random = parameters(model), np.random.default_rng(1)
    x, label = random.normal(size=(6, 3)).astype(np.float32), np.array([0, 1, 2, 3, 1, 0], np.int32)
    with ut.options(engine=engine):
        value, slopes = ut.value_and_grad(model.loss())(params, x, label)
    wanted, expected = ut.value_and_grad(model.loss()).run(params, x, label, engine="reference")
    np.testing.assert_allclose(value, wanted, rtol=1e-5)
    assert_same(slopes, expected)
    assert value == pytest.approx(float(model.loss().run(params, x, label, engine="python")), rel=1e-5)


@pytest.mark.slow
def test_experts_go_only_where_gates_send_them() -> None:
    model = ut.models.Experts(inputs=3, classes=4, levels=4)
    params = model.init(0)
    x = np.random.default_rng(1).normal(size=(5, 3)).astype(np.float32)
    _, full = model.predict().run(params, x, stats=True)
    _, less = replace(model, floor=0.2).predict().run(params, x, stats=True)
    assert less.activations < full.activations / 2


@pytest.mark.parametrize("name", ["treernn", "rntn"])
def test_phrases_begin_as_means_of_their_parts(name: str) -> None:
    weights = ut.models.CLASSIFIERS[name](WORDS, 5, width=200).init(seed=1)["weights"]
    one, other = np.random.default_rng(1).normal(size=(2, 200))
    made = np.concatenate([one, other]) @ weights
    assert np.corrcoef(made, (one + other) / 2)[0, 1] > 0.6
    assert 0.5 < np.linalg.norm(made) / np.linalg.norm(one) < 1.2
