"""Rival: DyNet. Recursive Python builds one graph for a batch, and DyNet batches what is alike in it.

The variant `single` does without that batching, which is often faster for one tree. DyNet is the wheel `dynet38`.
"""

from __future__ import annotations

import sys
from typing import Any

import dynet_config
import numpy as np

from .forests import Tree
from .networks import EPSILON, RATE, WIDTHS, Params

dynet_config.set(mem=2000, autobatch=0 if sys.argv[-1] == "single" else 1, random_seed=1)

import dynet as dy  # noqa: E402  it reads its settings when it is imported

VERSION = "wheel dynet38"


class Rival:
    """The cells as DyNet expressions. DyNet's vectors are columns, so weights are transposed."""

    def __init__(self, model: str, params: Params) -> None:
        self.width = width = WIDTHS[model][0]
        self.is_lstm = model == "treelstm"
        self.cells = {"treernn": (self.rnn, self.look_up), "rntn": (self.rntn, self.look_up),
                      "treelstm": (self.lstm, self.lstm_leaf)}[model]  # fmt: skip
        self.all = dy.ParameterCollection()
        self.embedding = self.all.add_lookup_parameters(params["E"].shape)
        self.embedding.init_from_array(params["E"])
        values = {name: value.T for name, value in params.items() if name not in ("E", "V")}
        if model == "rntn":
            # Rows are (j, k), k fastest: as columns are what DyNet stores, a reshape gives a matrix [k, j].
            values["V"] = params["V"].transpose(1, 2, 0).reshape(2 * width * width, 2 * width)
        for name, value in values.items():
            made = self.all.add_parameters(value.shape, init=dy.NumpyInitializer(np.ascontiguousarray(value)))
            setattr(self, name, made)
        self.optimizer = dy.AdagradTrainer(self.all, learning_rate=RATE, eps=EPSILON)
        self.optimizer.set_clip_threshold(-1)

    def look_up(self, word: int) -> Any:
        return self.embedding[word]

    def rnn(self, left: Any, right: Any) -> Any:
        return dy.tanh(dy.affine_transform([self.b, self.W, dy.concatenate([left, right])]))

    def rntn(self, left: Any, right: Any) -> Any:
        x = dy.concatenate([left, right])
        matrix = dy.reshape(self.V * x, (self.width, 2 * self.width))
        return dy.tanh(dy.affine_transform([self.b, self.W, x, matrix, x]))

    def lstm_leaf(self, word: int) -> tuple[Any, Any]:
        d = self.width
        gates = dy.affine_transform([self.bx, self.Wx, self.embedding[word]])
        c = dy.cmult(dy.logistic(dy.pick_range(gates, 0, d)), dy.tanh(dy.pick_range(gates, 2 * d, 3 * d)))
        return dy.cmult(dy.logistic(dy.pick_range(gates, d, 2 * d)), dy.tanh(c)), c

    def lstm(self, left: tuple[Any, Any], right: tuple[Any, Any]) -> tuple[Any, Any]:
        d = self.width
        gates = dy.affine_transform([self.bh, self.Wh, dy.concatenate([left[0], right[0]])])
        update = dy.cmult(dy.logistic(dy.pick_range(gates, 0, d)), dy.tanh(dy.pick_range(gates, 2 * d, 3 * d)))
        from_left = dy.cmult(dy.logistic(dy.pick_range(gates, 3 * d, 4 * d)), left[1])
        from_right = dy.cmult(dy.logistic(dy.pick_range(gates, 4 * d, 5 * d)), right[1])
        c = update + from_left + from_right
        return dy.cmult(dy.logistic(dy.pick_range(gates, d, 2 * d)), dy.tanh(c)), c

    def walk(self, tree: tuple[list[int], ...], node: int, losses: list[Any] | None) -> Any:
        word, left, right, label = tree
        inner, leaf = self.cells
        if left[node] < 0:
            state = leaf(word[node])
        else:
            state = inner(self.walk(tree, left[node], losses), self.walk(tree, right[node], losses))
        if losses is not None:
            losses.append(dy.pickneglogsoftmax(self.logits(state), label[node]))
        return state

    def logits(self, state: Any) -> Any:
        return dy.affine_transform([self.bu, self.U, state[0] if self.is_lstm else state])

    def lists(self, tree: Tree) -> tuple[list[int], ...]:
        if "dynet" not in tree.kept:
            tree.kept["dynet"] = tuple(c.tolist() for c in (tree.word, tree.left, tree.right, tree.label))
        return tree.kept["dynet"]

    def total(self, trees: list[Tree]) -> Any:
        dy.renew_cg()
        losses: list[Any] = []
        for tree in trees:
            self.walk(self.lists(tree), len(tree.word) - 1, losses)
        return dy.esum(losses)

    def loss(self, trees: list[Tree]) -> float:
        return self.total(trees).value()

    def train(self, trees: list[Tree]) -> float:
        loss = self.total(trees)
        value = loss.value()
        loss.backward()
        self.optimizer.update()
        return value

    def infer(self, trees: list[Tree]) -> list[int]:
        dy.renew_cg()
        roots = [self.logits(self.walk(self.lists(tree), len(tree.word) - 1, None)) for tree in trees]
        dy.forward(roots)
        return [int(np.argmax(root.npvalue())) for root in roots]


def make(model: str, params: Params, variant: str = "") -> Rival:
    return Rival(model, params)
