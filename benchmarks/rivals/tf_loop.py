"""TensorFlow without recursion: one graph, a `tf.while_loop` over the inner nodes, their states in a TensorArray.

This is how the papers write trees for comparison. Step n computes the n-th inner node of every tree that has so many:
trees are sorted by length, so these are the first ones, and nothing is padded. The states of leaves are computed
before, those of inner nodes follow in the order of the steps, and all classes are computed after the loop.

The variant "v1" runs the same graph with the control flow of TensorFlow 1 in a session, as the papers did.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf  # it reads these variables

from .forests import Tree
from .networks import EPSILON, RATE, WIDTHS, Params

VERSION = tf.__version__
v1 = tf.compat.v1


def pack(trees: Sequence[Tree]) -> tuple[np.ndarray, ...]:
    """Words; places of left and right children by step; where each step begins; labels by place; places of roots."""
    for tree in trees:
        if "loop" not in tree.kept:
            is_leaf = tree.left < 0
            tree.kept["loop"] = is_leaf.nonzero()[0], (~is_leaf).nonzero()[0]
    order = sorted(range(len(trees)), key=lambda k: -trees[k].words)
    leaves = sum(tree.words for tree in trees)
    inner = np.array([trees[k].words - 1 for k in order])
    at_step = (inner[:, None] > np.arange(inner[0])).sum(0)  # how many trees have a node for it
    begins = np.concatenate([[0], np.cumsum(at_step)]).astype(np.int32)
    words, label = np.empty(leaves, np.int32), np.empty(leaves + begins[-1], np.int32)
    left, right = np.empty((2, begins[-1]), np.int32)
    roots = np.empty(len(trees), np.int32)
    first = 0
    for rank, number in enumerate(order):
        tree = trees[number]
        below, above = tree.kept["loop"]
        place = np.empty(len(tree.word), np.int32)
        place[below] = np.arange(first, first + len(below))
        steps = begins[: len(above)] + rank
        place[above] = leaves + steps
        words[first : first + len(below)] = tree.word[below]
        left[steps], right[steps] = place[tree.left[above]], place[tree.right[above]]
        label[place] = tree.label
        roots[number] = place[-1]
        first += len(below)
    return words, left, right, begins, label, roots


class Network:
    """The graph of a model: loss, a step of training, and classes, each of packed trees."""

    def __init__(self, model: str, params: Params) -> None:
        self.model, self.width = model, WIDTHS[model][0]
        self.params = {name: tf.Variable(self.laid_out(name, value), name=name) for name, value in params.items()}
        self.sums = {name: tf.Variable(np.zeros(p.shape, np.float32)) for name, p in self.params.items()}

    def laid_out(self, name: str, value: np.ndarray) -> np.ndarray:
        """The layout in which a parameter is kept: the tensor of an RNTN as one matrix."""
        return value.reshape(2 * self.width, -1) if name == "V" else value

    def leaves(self, words: Any) -> tuple[Any, ...]:
        x = tf.gather(self.params["E"], words)
        if self.model != "treelstm":
            return (x,)
        i, o, u = tf.split(tf.matmul(x, self.params["Wx"]) + self.params["bx"], 3, 1)
        c = tf.sigmoid(i) * tf.tanh(u)
        return tf.sigmoid(o) * tf.tanh(c), c

    def cell(self, weights: Params, left: Sequence[Any], right: Sequence[Any]) -> tuple[Any, ...]:
        d, x = self.width, tf.concat([left[0], right[0]], 1)
        if self.model != "treelstm":
            layer = tf.matmul(x, weights["W"]) + weights["b"]
            if self.model == "rntn":
                matrices = tf.reshape(tf.matmul(x, weights["V"]), [-1, 2 * d, d])
                layer += tf.squeeze(tf.matmul(x[:, None, :], matrices), 1)
            return (tf.tanh(layer),)
        i, o, u, f, g = tf.split(tf.matmul(x, weights["Wh"]) + weights["bh"], 5, 1)
        c = tf.sigmoid(i) * tf.tanh(u) + tf.sigmoid(f) * left[1] + tf.sigmoid(g) * right[1]
        return tf.sigmoid(o) * tf.tanh(c), c

    def states(self, words: Any, left: Any, right: Any, begins: Any) -> Any:
        """A TensorArray with the state of every node, by place."""
        first = self.leaves(words)
        count, steps = tf.shape(words)[0], tf.shape(begins)[0] - 1
        weights = {
            name: tf.convert_to_tensor(p) for name, p in self.params.items() if name in ("W", "b", "V", "Wh", "bh")
        }

        def table(rows: Any) -> Any:
            made = tf.TensorArray(tf.float32, count + begins[-1], element_shape=[self.width], clear_after_read=False)
            return made.scatter(tf.range(count), rows)

        def step(number: Any, *tables: Any) -> tuple[Any, ...]:
            here = tf.range(begins[number], begins[number + 1])
            sides = [
                [rows.gather(places[begins[number] : begins[number + 1]]) for rows in tables]
                for places in (left, right)
            ]
            made = self.cell(weights, *sides)
            return (number + 1, *(rows.scatter(count + here, new) for rows, new in zip(tables, made, strict=True)))

        start = (tf.constant(0), *(table(rows) for rows in first))
        return tf.while_loop(lambda number, *_: number < steps, step, start)[1]

    def classes(self, states: Any) -> Any:
        return tf.matmul(states, self.params["U"]) + self.params["bu"]

    def loss(self, words: Any, left: Any, right: Any, begins: Any, label: Any, roots: Any) -> Any:
        logits = self.classes(self.states(words, left, right, begins).stack())
        return tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(label, logits))

    def infer(self, words: Any, left: Any, right: Any, begins: Any, label: Any, roots: Any) -> Any:
        return tf.argmax(self.classes(self.states(words, left, right, begins).gather(roots)), 1)

    def updates(self, gradients: Sequence[Any]) -> list[Any]:
        """Adagrad; of the embedding, on the rows that occur."""
        made = []
        for name, gradient in zip(self.params, gradients, strict=True):
            held = {"var": self.params[name].handle, "accum": self.sums[name].handle, "lr": RATE, "epsilon": EPSILON}
            if isinstance(gradient, tf.IndexedSlices):
                rows, place = tf.unique(gradient.indices)
                total = tf.math.unsorted_segment_sum(gradient.values, place, tf.size(rows))
                made.append(tf.raw_ops.ResourceSparseApplyAdagradV2(**held, grad=total, indices=rows))
            else:
                made.append(tf.raw_ops.ResourceApplyAdagradV2(**held, grad=gradient))
        return made


Work = Callable[[Sequence[Tree]], Any]


class Rival:
    """What the race asks for."""

    def __init__(self, loss: Work, train: Work, infer: Work) -> None:
        self._loss, self._train, self._infer = loss, train, infer

    def loss(self, trees: list[Tree]) -> float:
        return float(self._loss(trees))

    def train(self, trees: list[Tree]) -> float:
        return float(self._train(trees))

    def infer(self, trees: list[Tree]) -> list[int]:
        return self._infer(trees).tolist()


def compiled(model: str, params: Params) -> Rival:
    network = Network(model, params)
    row = tf.TensorSpec([None], tf.int32)

    def train(*packed: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = network.loss(*packed)
        network.updates(tape.gradient(loss, list(network.params.values())))
        return loss

    def work(function: Callable[..., Any]) -> Work:
        made = tf.function(function, input_signature=[row] * 6)
        return lambda trees: made(*map(tf.constant, pack(trees))).numpy()

    return Rival(work(network.loss), work(train), work(network.infer))


def in_session(model: str, params: Params) -> Rival:
    v1.disable_v2_behavior()
    v1.disable_control_flow_v2()
    with tf.Graph().as_default():
        network = Network(model, params)
        inputs = [v1.placeholder(tf.int32, [None]) for _ in range(6)]
        loss, infer = network.loss(*inputs), network.infer(*inputs)
        gradients = tf.gradients(loss, list(network.params.values()))
        with tf.control_dependencies(network.updates(gradients)):
            train = tf.identity(loss)
        threads = {"intra_op_parallelism_threads": 1, "inter_op_parallelism_threads": 1}
        session = v1.Session(config=v1.ConfigProto(**threads))
        session.run(v1.global_variables_initializer())

    def work(fetch: Any) -> Work:
        run = session.make_callable(fetch, inputs)
        return lambda trees: run(*pack(trees))

    return Rival(work(loss), work(train), work(infer))


def make(model: str, params: Params, variant: str = "") -> Rival:
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return in_session(model, params) if variant == "v1" else compiled(model, params)
