"""Undertow without recursion: the iterative form of the papers, through `ut.while_loop`.

Step n computes the n-th inner node of every tree of the batch and adds it to a table of states, whose last row is for
the steps of trees that are done.
"""

from typing import Any

import numpy as np

import undertow as ut

from . import ours
from .forests import Tree
from .networks import WIDTHS, Params

VERSION = ut.__version__


def programs(model: str) -> tuple[ut.Function, ut.Function]:
    d = WIDTHS[model][0]
    leaves, steps, nodes = ut.i32["leaves"], ut.i32["steps", "trees"], ut.i32["nodes"]
    rest, roots = ut.f32["rest", d], ut.i32["trees"]

    def first(params: Any, word: Any) -> Any:
        x = ut.take(params["E"], word, axis=0)
        if model != "treelstm":
            return (x,)
        gates = x @ params["Wx"] + params["bx"]
        c = ut.sigmoid(gates[:, :d]) * ut.tanh(gates[:, 2 * d :])
        return ut.sigmoid(gates[:, d : 2 * d]) * ut.tanh(c), c

    def cell(params: Any, left: Any, right: Any) -> Any:
        x = ut.concat([left[0], right[0]], axis=1)
        if model != "treelstm":
            layer = x @ params["W"] + params["b"]
            if model == "rntn":
                matrices = ut.reshape(x @ ut.reshape(params["V"], (2 * d, 2 * d * d)), (-1, 2 * d, d))
                layer = layer + ut.squeeze(ut.expand_dims(x, axis=1) @ matrices, axis=1)
            return (ut.tanh(layer),)
        gates = x @ params["Wh"] + params["bh"]
        c = ut.sigmoid(gates[:, :d]) * ut.tanh(gates[:, 2 * d : 3 * d])
        c = c + ut.sigmoid(gates[:, 3 * d : 4 * d]) * left[1] + ut.sigmoid(gates[:, 4 * d :]) * right[1]
        return ut.sigmoid(gates[:, d : 2 * d]) * ut.tanh(c), c

    def states(params: Any, word: Any, left: Any, right: Any, slot: Any, rest: Any) -> Any:
        """The table of states. `rest` is the part of it that inner nodes will fill, as zeros."""
        count = ut.shape(left)[0]

        def step(now: Any) -> Any:
            number, tables = now
            made = cell(
                params,
                tuple(ut.take(table, left[number], axis=0) for table in tables),
                tuple(ut.take(table, right[number], axis=0) for table in tables),
            )
            written = (ut.scatter_add(table, slot[number], new) for table, new in zip(tables, made, strict=True))
            return number + 1, tuple(written)

        start = tuple(ut.concat([made, rest]) for made in first(params, word))
        _, tables = ut.while_loop(lambda now: now[0] < count, step, (0, start))
        return tables[0]

    @ut.function
    def loss(
        params, word: leaves, left: steps, right: steps, slot: steps, rest: rest, label: nodes, roots: roots
    ) -> ut.f32:
        found = states(params, word, left, right, slot, rest)[:-1]
        logs = ut.log_softmax(found @ params["U"] + params["bu"], axis=1)
        return -ut.sum(ut.take_along_axis(logs, ut.expand_dims(label, axis=1), axis=1))

    @ut.function
    def infer(params, word: leaves, left: steps, right: steps, slot: steps, rest: rest, label: nodes, roots: roots):
        found = states(params, word, left, right, slot, rest)
        return ut.argmax(ut.take(found, roots, axis=0) @ params["U"] + params["bu"], axis=1)

    return loss, infer


def pack(width: int, trees: list[Tree]) -> tuple[np.ndarray, ...]:
    """Places in the table: leaves of all trees, inner nodes of all trees, and one that nobody reads."""
    leaves = sum(tree.words for tree in trees)
    nodes = sum(len(tree.word) for tree in trees)
    most = max(tree.words for tree in trees) - 1
    left, right = (np.zeros((most, len(trees)), np.int32) for _ in range(2))
    slot = np.full((most, len(trees)), nodes, np.int32)
    words, label, roots = [], np.empty(nodes, np.int32), []
    leaf, inner = 0, leaves
    for number, tree in enumerate(trees):
        is_leaf = tree.left < 0
        place = np.where(is_leaf, leaf + np.cumsum(is_leaf) - 1, inner + np.cumsum(~is_leaf) - 1)
        above = np.flatnonzero(~is_leaf)
        left[: len(above), number] = place[tree.left[above]]
        right[: len(above), number] = place[tree.right[above]]
        slot[: len(above), number] = place[above]
        label[place] = tree.label
        words.append(tree.word[is_leaf])
        roots.append(place[-1])
        leaf, inner = leaf + tree.words, inner + len(above)
    rest = np.zeros((nodes + 1 - leaves, width), np.float32)
    return np.concatenate(words), left, right, slot, rest, label, np.array(roots, np.int32)


def make(model: str, params: Params, variant: str = "") -> ours.Rival:
    width = WIDTHS[model][0]
    return ours.Rival(params, programs(model), lambda trees: pack(width, trees), engine=variant or "waves", threads=1)
