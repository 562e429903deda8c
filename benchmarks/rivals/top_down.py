"""A network that grows its tree from what it computes, as the Top-down TreeLSTM does; its numbers, and NumPy's answer.

A node has a state (h, c). It has children as long as `grow · h + bias` exceeds a bar that rises with the depth. Its
word is the likeliest of h @ words; each child gets the embedding of that word through an LSTM cell of its own side.
Gates stand side by side: input, output, forget, update. The answer is the number of nodes.
"""

from __future__ import annotations

import numpy as np

from . import forests
from .networks import Params, sigmoid

MODEL = "topdown"
STATE, EMBEDDING, WORDS = 150, 300, 1000
DEEPEST = 16
RISE = 0.35  # of the bar, from level to level
ROOTS = 200
BIAS = 1.0935  # 37 nodes a tree on average: as many as sentences of the Stanford Sentiment Treebank have
SIDES = ("left", "right")


def init() -> Params:
    random = np.random.default_rng(5)

    def normal(scale: float, *shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    params = {"words": normal(1, STATE, WORDS), "E": normal(1, WORDS, EMBEDDING), "grow": normal(1, STATE)}
    for side in SIDES:
        params[f"W{side}"] = normal(1.6 * (EMBEDDING + STATE) ** -0.5, EMBEDDING + STATE, 4 * STATE)
        params[f"b{side}"] = normal(0.1, 4 * STATE)
    return params | {"roots": normal(1, ROOTS, EMBEDDING), "bias": np.float32(BIAS)}


def cell(params: Params, side: str, x: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, o, f, u = np.split(x @ params[f"W{side}"] + params[f"b{side}"], 4, 1)
    c = sigmoid(i) * np.tanh(u) + sigmoid(f) * c
    return sigmoid(o) * np.tanh(c), c


def grown(params: Params) -> np.ndarray:
    """How many nodes each tree gets; level by level, all trees together."""
    tree, nothing = np.arange(ROOTS), np.zeros((ROOTS, STATE), np.float32)
    h, c = cell(params, "left", np.concatenate([params["roots"], nothing], 1), nothing)
    count = np.ones(ROOTS, np.int64)
    for depth in range(DEEPEST):
        grows = np.flatnonzero(h @ params["grow"] + params["bias"] > RISE * depth)
        h, c, tree = h[grows], c[grows], tree[grows]
        if len(tree) == 0:
            break
        np.add.at(count, tree, 2)
        x = np.concatenate([params["E"][np.argmax(h @ params["words"], 1)], h], 1)
        made = [cell(params, side, x, c) for side in SIDES]
        h, c = (np.concatenate(part) for part in zip(*made, strict=True))
        tree = np.concatenate([tree, tree])
    return count


def numbered() -> list[forests.Tree]:
    """What the race hands to rivals: trees of one node, whose word is the number of a root."""
    return [forests.tree(([number], [-1], [-1], [0])) for number in range(ROOTS)]
