"""The three networks of the race: their sizes, the numbers that every rival starts from, and the loss by NumPy alone.

The loss is softmax cross entropy, summed over all nodes; training is Adagrad, on the rows of the embedding that occur.
"""

from __future__ import annotations

import numpy as np

from .forests import CLASSES, Tree

WIDTHS = {"treernn": (100, 100), "rntn": (25, 25), "treelstm": (150, 300)}  # of a state and of an embedding
RATE = 0.01  # of Adagrad
EPSILON = 1e-10
SEED = 7
Params = dict[str, np.ndarray]


def init(model: str, vocabulary: int) -> Params:
    """Vectors are rows, so a layer is x @ W + b.

    The gates of a TreeLSTM stand side by side: input, output, update, and in Wh also forget left, forget right.
    V[i, j, k] is what the product of inputs i and j adds to output k.
    """
    state, embedding = WIDTHS[model]
    random = np.random.default_rng(SEED)

    def normal(scale: float, *shape: int) -> np.ndarray:
        return (random.standard_normal(shape) * scale).astype(np.float32)

    def zeros(width: int) -> np.ndarray:
        return np.zeros(width, np.float32)

    params = {"E": normal(0.3, vocabulary, embedding), "U": normal(0.1, state, CLASSES), "bu": zeros(CLASSES)}
    if model == "treelstm":
        params["Wx"] = normal(embedding**-0.5, embedding, 3 * state)
        params["bx"] = zeros(3 * state)
        params["Wh"] = normal((2 * state) ** -0.5, 2 * state, 5 * state)
        params["bh"] = zeros(5 * state)
        params["bh"][3 * state :] = 1
        return params
    params["W"] = normal((2 * state) ** -0.5, 2 * state, state)
    params["b"] = zeros(state)
    if model == "rntn":
        params["V"] = normal(0.02, 2 * state, 2 * state, state)
    return params


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def states(model: str, params: Params, tree: Tree) -> np.ndarray:
    """The state of every node, in float64, node by node: the yardstick, not a rival."""
    width = WIDTHS[model][0]
    made = np.zeros((len(tree.word), width))
    memory = np.zeros_like(made)
    for node, word in enumerate(tree.word):
        children = [tree.left[node], tree.right[node]]
        below = params["E"][word] if word >= 0 else made[children].reshape(-1)
        if model == "treelstm":
            gates = below @ params["Wx"] + params["bx"] if word >= 0 else below @ params["Wh"] + params["bh"]
            i, o, u, *forget = np.split(gates, len(gates) // width)
            memory[node] = sigmoid(i) * np.tanh(u)
            for gate, child in zip(forget, children, strict=False):
                memory[node] += sigmoid(gate) * memory[child]
            made[node] = sigmoid(o) * np.tanh(memory[node])
        elif word >= 0:
            made[node] = below
        else:
            layer = below @ params["W"] + params["b"]
            if model == "rntn":
                layer += np.einsum("i,j,ijk->k", below, below, params["V"], optimize=True)
            made[node] = np.tanh(layer)
    return made


def loss(model: str, params: Params, trees: list[Tree]) -> float:
    wide = {name: value.astype(np.float64) for name, value in params.items()}
    total = 0.0
    for tree in trees:
        logits = states(model, wide, tree) @ wide["U"] + wide["bu"]
        logits -= logits.max(1, keepdims=True)
        chosen = logits[np.arange(len(logits)), tree.label]
        total += float((np.log(np.exp(logits).sum(1)) - chosen).sum())
    return total


def flops(model: str, trees: list[Tree], is_training: bool) -> float:
    """Of the matrix products that trees need."""
    state, embedding = WIDTHS[model]
    leaves = sum(tree.words for tree in trees)
    inner = leaves - len(trees)
    node = {"treernn": 2, "rntn": 2 + 4 * state + 2, "treelstm": 10}[model] * state * state
    leaf = embedding * 3 * state if model == "treelstm" else 0
    layers = 2.0 * (inner * node + leaves * leaf)
    classes = 2.0 * state * CLASSES
    return 3 * (layers + (leaves + inner) * classes) if is_training else layers + len(trees) * classes
