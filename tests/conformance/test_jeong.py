"""Programs of Jeong et al., "Improving the Expressiveness of Deep Learning Frameworks with Recursion" (EuroSys 2018).

As `ut.SubGraph`, on every engine: values against the iterative program of Figure 1, gradients against finite
differences. The weights are variables that the SubGraphs read, as in the paper, and an optimizer assigns them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.support.differences import WAYS, assert_close, libraries
from tests.support.engines import EVERY, forced

import undertow as ut
from undertow.ir.spec import check
from undertow.passes.flatten import flatten

H = 2
# Inner nodes 0 to 3 and leaves 4 to 8: ((4 5) ((6 7) 8)), with a number for each word.
CHILDREN = np.array([[1, 2], [4, 5], [3, 8], [6, 7], *[[-1, -1]] * 5], np.int32)
LEAVES = np.array([-1, -1, -1, -1, 2, 0, 3, 0, 1], np.int32)
IS_LEAF = LEAVES >= 0
ROOT = 0


def weights() -> dict[str, ut.Variable]:
    rng = np.random.default_rng(7)
    shapes = {"embedding": (4, H), "leaf": (H, 3 * H), "inner": (2 * H, 5 * H), "bias": (5 * H,), "out": (H,)}
    return {name: ut.Variable(rng.normal(0, 0.7, shape), name=name) for name, shape in shapes.items()}


def gates(z: Any, xp: Any, count: int) -> list[Any]:
    return [1 / (1 + xp.exp(-z[k * H : k * H + H])) for k in range(count)]


@dataclass
class Model:
    tree_lstm: ut.SubGraph
    loss: ut.SubGraph
    weights: dict[str, ut.Variable]


def make_model() -> Model:
    """Figure 2, with the LSTM cells that it leaves out, and a loss on what the root gives."""
    w = weights()

    # TreeLSTM: index(int32) -> hidden_state(Tensor)
    with ut.SubGraph() as tree_lstm:
        idx = tree_lstm.input(ut.i32)

        def compute_leaf_node():
            z = w["embedding"].take(LEAVES[idx]) @ w["leaf"] + w["bias"].read()[: 3 * H]
            i, o = gates(z, ut, 2)
            c = i * ut.tanh(z[2 * H :])
            return o * ut.tanh(c), c

        def compute_internal_node():
            left_idx, right_idx = CHILDREN[idx]
            left_h, left_c = tree_lstm(left_idx)
            right_h, right_c = tree_lstm(right_idx)
            z = ut.concat([left_h, right_h]) @ w["inner"] + w["bias"]
            i, o, f_left, f_right = gates(z, ut, 4)
            c = i * ut.tanh(z[4 * H :]) + f_left * left_c + f_right * right_c
            return o * ut.tanh(c), c

        tree_lstm.output(*ut.cond(ut.asarray(IS_LEAF)[idx], compute_leaf_node, compute_internal_node))

    with ut.SubGraph() as loss:
        root_idx, label = loss.input(ut.i32), loss.input(ut.f64)
        hidden, _ = tree_lstm(root_idx)
        loss.output((ut.tanh(hidden @ w["out"]) - label) ** 2)

    return Model(tree_lstm, loss, w)


@pytest.fixture(scope="module")
def model() -> Model:
    return make_model()


def iterative(w: dict[str, Any]) -> tuple[Any, Any]:
    """Figure 1: the states of all leaves, then of the inner nodes, each after its children."""
    states: dict[int, tuple[Any, Any]] = {}
    for idx in np.flatnonzero(IS_LEAF):
        z = w["embedding"][LEAVES[idx]] @ w["leaf"] + w["bias"][: 3 * H]
        i, o = gates(z, np, 2)
        c = i * np.tanh(z[2 * H :])
        states[idx] = o * np.tanh(c), c
    for idx in (3, 2, 1, 0):
        (left_h, left_c), (right_h, right_c) = (states[child] for child in CHILDREN[idx])
        z = np.concatenate([left_h, right_h]) @ w["inner"] + w["bias"]
        i, o, f_left, f_right = gates(z, np, 4)
        c = i * np.tanh(z[4 * H :]) + f_left * left_c + f_right * right_c
        states[idx] = o * np.tanh(c), c
    return states[ROOT]


def iterative_loss(w: dict[str, Any], label: float) -> float:
    return float((np.tanh(iterative(w)[0] @ w["out"]) - label) ** 2)


def numeric_gradient(w: dict[str, Any], label: float) -> dict[str, Any]:
    slopes = {name: np.zeros(value.shape) for name, value in w.items()}
    for name, value in w.items():
        for at in np.ndindex(value.shape):
            ends = []
            for by in (1e-6, -1e-6):
                moved = value.copy()
                moved[at] += by
                ends.append(iterative_loss({**w, name: moved}, label))
            slopes[name][at] = (ends[0] - ends[1]) / 2e-6
    return slopes


def values_of(model: Model) -> dict[str, Any]:
    return {name: np.asarray(variable.value) for name, variable in model.weights.items()}


# -- Figures 1 to 3 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", EVERY)
def test_the_recursive_program_is_the_iterative_one(engine: str, model: Model) -> None:
    with forced():
        found, stats = model.tree_lstm.run(ROOT, engine=engine, stats=True)
    assert_close(found, iterative(values_of(model)), 1e-12)
    assert (stats.activations, stats.max_depth) == (9, 4)


def test_one_graph_serves_all_trees(model: Model) -> None:
    """Figure 3: the nodes of the graph are those of one SubGraph, whatever the tree; all trees may be one run."""
    assert list(model.tree_lstm.library(0).functions) == ["main", "tree_lstm"]
    every = model.tree_lstm.map(np.arange(9, dtype=np.int32))[0]
    assert_close(every[ROOT], model.tree_lstm(ROOT)[0])


def test_children_do_not_wait_for_each_other(model: Model) -> None:
    """Section 6.3: a tree takes as many waves as it is deep, though all its nodes read variables."""
    assert "ctl" not in str(model.tree_lstm.library(0)).split("function tree_lstm")[1].split("\n")[0]
    _, stats = model.tree_lstm.run(ROOT, engine="waves", stats=True)
    assert stats.waves == 4 and stats.peak_width == 4


# -- section 4.2: gradients, and training --------------------------------------------------------------------


def test_gradients_of_the_weights(model: Model) -> None:
    expected = numeric_gradient(values_of(model), 0.5)
    slopes = ut.grad(model.loss, variables=model.weights)
    assert_close(slopes(ROOT, 0.5), expected)
    for way in WAYS:
        assert_close(slopes.run(ROOT, 0.5, **way), expected)
    for library in libraries(slopes.library(ROOT, 0.5)):
        check(library)
        check(flatten(library))


@pytest.mark.parametrize("engine", EVERY)
def test_a_value_and_its_gradient_are_one_run(engine: str, model: Model) -> None:
    """Figure 5: an InvokeOp and its gradient are the same activation in two phases: nothing is computed twice."""
    both = ut.value_and_grad(model.loss, variables=model.weights)
    with forced():
        (value, slopes), stats = both.run(ROOT, 0.5, engine=engine, stats=True)
        _, forward = model.loss.run(ROOT, 0.5, engine=engine, stats=True)
    assert_close(value, iterative_loss(values_of(model), 0.5))
    assert_close(slopes, numeric_gradient(values_of(model), 0.5))
    assert stats.activations == forward.activations + 2  # the gradient, and the function that takes the weights


def test_gradients_of_words_are_rows(model: Model) -> None:
    by_word = ut.grad(model.loss, variables=model.weights["embedding"], sparse_rows=True)(ROOT, 0.5)
    assert isinstance(by_word, ut.IndexedRows) and sorted(by_word.indices) == [0, 0, 1, 2, 3]
    assert_close(by_word.dense(), numeric_gradient(values_of(model), 0.5)["embedding"])


@pytest.mark.parametrize("engine", EVERY)
def test_training_by_a_subgraph(engine: str) -> None:
    """A step of an optimizer is a SubGraph, too: it calls the loss and its gradient, and assigns the variables."""
    made = make_model()
    updater = ut.optim.Updater(ut.optim.SGD(0.5), made.weights)
    with ut.SubGraph() as step:
        root_idx, label = step.input(ut.i32), step.input(ut.f64)
        value, slopes = ut.value_and_grad(made.loss, variables=made.weights)(root_idx, label)
        updater.apply(slopes)
        step.output(value)

    before = values_of(made)
    expected = {name: x - 0.5 * numeric_gradient(before, 0.5)[name] for name, x in before.items()}
    with forced():
        first = step.run(ROOT, 0.5, engine=engine)
        assert_close(values_of(made), expected)
        losses = [first, *(step.run(ROOT, 0.5, engine=engine) for _ in range(9))]
    assert_close(first, iterative_loss(before, 0.5))
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0] / 20


# -- section 5 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", EVERY)
def test_forward_declarations(engine: str) -> None:
    """Two SubGraphs that call each other, declared by their inputs and results before either is filled."""
    rate = ut.Variable(0.9, name="rate")
    up, down = ut.SubGraph(returns=ut.f64), ut.SubGraph(returns=ut.f64)
    x, n = up.input(ut.f64), up.input(ut.i32)
    y, m = down.input(ut.f64), down.input(ut.i32)

    with up:
        up.output(ut.cond(n == 0, lambda: x, lambda: down(x * rate, n - 1) + x))
    with down:
        down.output(ut.cond(m == 0, lambda: y * rate, lambda: up(ut.sin(y), m - 1) * rate))

    def plain(x: float, n: int, rate: float, goes_up: bool = True) -> Any:
        if goes_up:
            return x if n == 0 else plain(x * rate, n - 1, rate, False) + x
        return x * rate if n == 0 else plain(np.sin(x), n - 1, rate) * rate

    slopes = ut.grad(up, argnums=0, variables=rate)
    with forced():
        for n_ in (0, 1, 4, 5):
            assert_close(up.run(0.8, n_, engine=engine), plain(0.8, n_, 0.9))
            by_x = (plain(0.8 + 1e-6, n_, 0.9) - plain(0.8 - 1e-6, n_, 0.9)) / 2e-6
            by_rate = (plain(0.8, n_, 0.9 + 1e-6) - plain(0.8, n_, 0.9 - 1e-6)) / 2e-6
            assert_close(slopes.run(0.8, n_, engine=engine), (by_x, by_rate))


@pytest.mark.parametrize("engine", EVERY)
def test_outer_references(engine: str) -> None:
    """A value from around a SubGraph, the same at all levels, is no input that the user declares; nor is a variable."""
    scale = ut.Variable(1.5, name="scale")
    with ut.SubGraph() as outer:
        x, depth = outer.input(ut.f64), outer.input(ut.i32)
        slope = ut.tanh(x) * scale
        with ut.SubGraph() as inner:
            k = inner.input(ut.i32)
            inner.output(ut.cond(k == 0, lambda: x, lambda: slope * inner(k - 1) + scale))
        outer.output(inner(depth))

    def plain(x: float, depth: int, scale: float) -> Any:
        return x if depth == 0 else np.tanh(OUTER) * scale * plain(x, depth - 1, scale) + scale

    OUTER = 0.3
    by_scale = (plain(0.3, 3, 1.5 + 1e-6) - plain(0.3, 3, 1.5 - 1e-6)) / 2e-6
    with forced():
        assert_close(outer.run(0.3, 3, engine=engine), plain(0.3, 3, 1.5))
        assert_close(ut.grad(outer, variables=scale).run(0.3, 3, engine=engine), by_scale)
