"""Undertow in the race: the three networks as recursive functions over one forest, and gradients by rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

import undertow as ut

from .forests import Tree
from .networks import EPSILON, RATE, WIDTHS, Params

VERSION = ut.__version__
NONE = -(2**30)  # the left child of a leaf: below zero, whatever number a tree begins with


def cells(model: str) -> tuple[Callable[..., Any], Callable[..., Any], Any]:
    """A leaf, an inner node, and the type of a state: its first part is what classes are computed from."""
    d = WIDTHS[model][0]

    def leaf(params: Any, word: Any) -> Any:
        return (params["E"][word],)

    def rnn(params: Any, left: Any, right: Any) -> Any:
        return (ut.tanh(ut.concat([left[0], right[0]]) @ params["W"] + params["b"]),)

    def rntn(params: Any, left: Any, right: Any) -> Any:
        x = ut.concat([left[0], right[0]])
        matrix = ut.reshape(x @ ut.reshape(params["V"], (2 * d, 2 * d * d)), (2 * d, d))
        return (ut.tanh(x @ matrix + x @ params["W"] + params["b"]),)

    def lstm_leaf(params: Any, word: Any) -> Any:
        gates = params["E"][word] @ params["Wx"] + params["bx"]
        c = ut.sigmoid(gates[:d]) * ut.tanh(gates[2 * d :])
        return ut.sigmoid(gates[d : 2 * d]) * ut.tanh(c), c

    def lstm(params: Any, left: Any, right: Any) -> Any:
        gates = ut.concat([left[0], right[0]]) @ params["Wh"] + params["bh"]
        c = ut.sigmoid(gates[:d]) * ut.tanh(gates[2 * d : 3 * d])
        c = c + ut.sigmoid(gates[3 * d : 4 * d]) * left[1] + ut.sigmoid(gates[4 * d :]) * right[1]
        return ut.sigmoid(gates[d : 2 * d]) * ut.tanh(c), c

    state = ut.f32[d]
    if model == "treelstm":
        return lstm_leaf, lstm, (state, state)
    return leaf, rnn if model == "treernn" else rntn, (state,)


def programs(model: str) -> tuple[ut.Function, ut.Function]:
    """The loss at all nodes of a forest, and the classes of its roots."""
    leaf, inner, state = cells(model)
    nodes, roots = ut.i32["nodes"], ut.i32["trees"]

    def classes(params: Any, made: Any) -> Any:
        return made[0] @ params["U"] + params["bu"]

    def surprise(params: Any, made: Any, label: Any) -> Any:
        logits = classes(params, made)
        top = ut.max(logits)
        return ut.log(ut.sum(ut.exp(logits - top))) + top - logits[label]

    @ut.function
    def total(params, forest, node: ut.i32) -> (state, ut.f32):
        if forest["left"][node] < 0:
            made = leaf(params, forest["word"][node])
            return made, surprise(params, made, forest["label"][node])
        left, from_left = total(params, forest, forest["left"][node])
        right, from_right = total(params, forest, forest["right"][node])
        made = inner(params, left, right)
        return made, surprise(params, made, forest["label"][node]) + from_left + from_right

    @ut.function
    def encode(params, forest, node: ut.i32) -> state:
        if forest["left"][node] < 0:
            return leaf(params, forest["word"][node])
        left, right = forest["left"][node], forest["right"][node]
        return inner(params, encode(params, forest, left), encode(params, forest, right))

    @ut.function
    def loss(params, word: nodes, left: nodes, right: nodes, label: nodes, roots: roots) -> ut.f32:
        forest = {"word": word, "left": left, "right": right, "label": label}
        return ut.sum(ut.map(lambda root: total(params, forest, root)[1], roots))

    @ut.function
    def infer(params, word: nodes, left: nodes, right: nodes, label: nodes, roots: roots) -> ut.i64["trees"]:  # noqa: F821
        forest = {"word": word, "left": left, "right": right, "label": label}
        return ut.map(lambda root: ut.argmax(classes(params, encode(params, forest, root))), roots)

    return loss, infer


def columns(tree: Tree) -> np.ndarray:
    """Words, left and right children, and labels of a tree, as the rows of one array."""
    if "ours" not in tree.kept:
        left = np.where(tree.left < 0, NONE, tree.left)
        tree.kept["ours"] = np.stack([tree.word, left, tree.right, tree.label])
    return tree.kept["ours"]


def forest(trees: list[Tree]) -> tuple[np.ndarray, ...]:
    """Trees side by side."""
    parts = [columns(tree) for tree in trees]
    if len(parts) == 1:
        return *parts[0], np.array([parts[0].shape[1] - 1], np.int32)
    sizes = np.array([part.shape[1] for part in parts], np.int32)
    ends = sizes.cumsum(dtype=np.int32)
    all_nodes = np.concatenate(parts, 1)
    all_nodes[1:3] += np.repeat(ends - sizes, sizes)
    return *all_nodes, ends - 1


class Rival:
    """Programs, parameters, and Adagrad. `pack` makes arguments of trees; `options` go to every run."""

    def __init__(
        self, params: Params, programs: tuple[ut.Function, ut.Function], pack: Callable[..., Any], **options: Any
    ) -> None:
        self.measure, self.classes = programs
        self.pack = pack
        self.gradient = ut.value_and_grad(self.measure, sparse_rows=True)
        self.params = {name: value.copy() for name, value in params.items()}
        self.optimizer = ut.optim.Adagrad(RATE, epsilon=EPSILON)
        self.state = self.optimizer.init(self.params)
        self.options = options

    def loss(self, trees: list[Tree]) -> float:
        return float(self.measure.run(self.params, *self.pack(trees), **self.options))

    def train(self, trees: list[Tree]) -> float:
        loss, gradients = self.gradient.run(self.params, *self.pack(trees), **self.options)
        self.params, self.state = self.optimizer.update(gradients, self.state, self.params, donate=True)
        return float(loss)

    def infer(self, trees: list[Tree]) -> list[int]:
        return self.classes.run(self.params, *self.pack(trees), **self.options).tolist()

    def peak(self, trees: list[Tree]) -> int:
        """Bytes of frames and arrays in a training step, at most."""
        _, stats = self.gradient.run(self.params, *self.pack(trees), stats=True, **self.options)
        return stats.peak_bytes


def make(model: str, params: Params, variant: str = "") -> Rival:
    return Rival(params, programs(model), forest, engine=variant or "waves", threads=1)
