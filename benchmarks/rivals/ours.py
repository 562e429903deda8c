"""Undertow in the race: the models of `undertow.models` as users get them, batches of a forest, gradients by rows."""

import time
from collections.abc import Callable
from typing import Any

import undertow as ut

from .forests import CLASSES, Tree
from .networks import EPSILON, RATE, WIDTHS, Params

VERSION = ut.__version__


# What the race calls the parameters of a model, and what the library does.
NAMES = {"E": "embed", "W": "weights", "b": "bias", "U": "out", "bu": "out_bias", "V": "tensor",
         "Wx": "leaf", "bx": "leaf_bias", "Wh": "weights", "bh": "bias"}  # fmt: skip


def network(model: str, params: Params) -> tuple[ut.models.TreeClassifier, Params]:
    """The library's model of the sizes of the race, and its parameters."""
    width, embedding = WIDTHS[model]
    # The networks of the race take words as they are; a TreeLSTM has gates for that.
    more = {"embedding": embedding} if model == "treelstm" else {"squash": False}
    made = ut.models.CLASSIFIERS[model](len(params["E"]), CLASSES, width=width, **more)
    named = {NAMES[name]: value for name, value in params.items()}
    return made, {name: named[name].reshape(shape).copy() for name, shape in made.shapes().items()}


def pack(trees: list[Tree]) -> tuple[ut.data.Forest]:
    """A batch as users make it: some trees of a forest that is made once."""
    among = trees[0].among
    if "ours" not in among[0].kept:
        among[0].kept["ours"] = forest(among)
    return (among[0].kept["ours"].batch([tree.number for tree in trees]),)


def forest(trees: list[Tree]) -> ut.data.Forest:
    """Trees of the race in the order of the library: a node before its children."""
    depths, word, label = [], [], []
    for tree in trees:
        waiting = [(len(tree.word) - 1, 0)]
        while waiting:
            node, depth = waiting.pop()
            depths.append(depth)
            word.append(tree.word[node])
            label.append(tree.label[node])
            if tree.left[node] >= 0:
                waiting += [(tree.right[node], depth + 1), (tree.left[node], depth + 1)]
    return ut.data.Forest.from_depths(depths, word, label, binary=True)


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

    def kinds(self, work: str, trees: list[Tree]) -> dict[str, float]:
        """Seconds by kind of step, as the engine tells them, and what is around it."""
        function = self.gradient if work == "train" else self.classes
        began = time.perf_counter()
        packed = self.pack(trees)
        started = time.perf_counter()
        result, stats = function.run(self.params, *packed, stats=True, **self.options)
        ended = time.perf_counter()
        inside = {f"engine: {kind}": seconds for kind, seconds in stats.step_seconds.items()}
        found = {"batches of trees": started - began, **inside}
        found["calling, Python"] = max(ended - started - sum(inside.values()), 0.0)
        if work == "train":
            self.params, self.state = self.optimizer.update(result[1], self.state, self.params, donate=True)
            found["optimizer"] = time.perf_counter() - ended
        return found

    def peak(self, trees: list[Tree]) -> int:
        """Bytes of frames and arrays in a training step, at most."""
        _, stats = self.gradient.run(self.params, *self.pack(trees), stats=True, **self.options)
        return stats.peak_bytes


def make(model: str, params: Params, variant: str = "") -> Rival:
    made, named = network(model, params)
    return Rival(named, (made.total_loss(), made.root_labels()), pack, engine=variant or "waves", threads=1)
