# mypy: ignore-errors
# (To a type checker, `ut.f32` in an annotation is a variable, not a type.)
"""The base of all models that label the nodes of a tree: softmax, losses, accuracy and predictions.

A model is a frozen record of its sizes. Its `encoder` is a recursive function for these sizes; it returns the
state of a node and the sum of a note over the node and all its descendants. A `Note` says what is summed: the
loss, the labels, or nothing.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import undertow as ut
from undertow.errors import DataError
from undertow.models.ranges import check_ranges

Params = dict[str, Any]


class Note(NamedTuple):
    """What an encoder computes at each node and sums: `of(params, forest, node, h)`, a value of this type."""

    type: Any
    of: Any


def scores(params, h):
    """The logits of all classes for a node with the vector `h`."""
    return h @ params["out"] + params["out_bias"]


def surprisal(logits, index):
    """The cross-entropy loss of these logits if class (or word) `index` is the true one."""
    top = ut.max(logits)
    return ut.log(ut.sum(ut.exp(logits - top))) + top - logits[index]


def judge(params, forest, node, h):
    """The loss of a node, and 1 if its best class is right, else 0; both are zero if it has no label."""
    logits, label = scores(params, h), forest.label[node]
    missed = surprisal(logits, ut.maximum(label, 0))
    hit = ut.astype(ut.argmax(logits), ut.i32) == label
    return ut.where(label >= 0, missed, ut.zeros_like(missed)), ut.astype(hit, ut.i32)


def _labelled(params, forest, node, h):
    """Sow the best class of a node; the note is nothing."""
    ut.sow(ut.astype(ut.argmax(scores(params, h)), ut.i32), at=node)
    return ut.asarray(0, dtype=ut.i32)


NOTHING = Note(ut.i32, lambda params, forest, node, h: ut.asarray(0, dtype=ut.i32))
JUDGED = Note((ut.f32, ut.i32), judge)
LOSSES = Note(ut.f32, lambda params, forest, node, h: judge(params, forest, node, h)[0])
LABELLED = Note(ut.i32, _labelled)


def plus(*noted):
    """The sum of notes; tuples are added element by element."""
    if isinstance(noted[0], tuple):
        return tuple(plus(*parts) for parts in zip(*noted, strict=True))
    return functools.reduce(lambda a, b: a + b, noted)


def per_tree(losses, forest):
    """The mean loss of all trees; 0 if there are none."""
    return ut.sum(losses) / ut.astype(ut.maximum(ut.shape(forest.roots)[0], 1), ut.f32)


def drop(x, width, rate):
    """Inverted dropout. Which elements are dropped depends on the tag and the run's seed."""
    if rate == 0:
        return x
    is_kept = ut.random.uniform(size=(width,), dtype=ut.f32) >= rate
    return ut.where(is_kept, x / (1 - rate), ut.zeros_like(x))


def averaging(weights):
    """Weights [2 d, d] that start near the mean of two parts, so that deep trees neither vanish nor explode."""
    size = weights.shape[1]
    return (weights + np.tile(np.eye(size, dtype=weights.dtype), (2, 1))) / 2


@dataclass(frozen=True)
class TreeClassifier:
    """The sizes of a model, and everything derived from its `shapes` and `encoder`."""

    words: int
    classes: int
    width: int = 100
    dropout: float = 0.0  # of embeddings, and of states before the softmax

    any_children = False  # False: forests must be binary

    def __post_init__(self) -> None:
        check_ranges(**vars(self))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter. The first dimension of a matrix is its input."""
        raise NotImplementedError

    def encoder(self, note: Note) -> ut.Function:
        """The recursive function `encode(params, forest, node)`, which gives (vector, ..., notes)."""
        raise NotImplementedError

    def init(self, seed: int = 0) -> Params:
        """Initial parameters: Glorot uniform matrices, small normal embeddings, zero biases."""
        check_ranges(seed=seed)
        random = np.random.default_rng(seed)
        return {name: self._first(name, shape, random) for name, shape in self.shapes().items()}

    def _first(self, name: str, shape: tuple[int, ...], random: np.random.Generator) -> Any:
        if name.startswith("embed"):
            initial = random.normal(size=shape, scale=0.1)
        elif len(shape) == 1:
            initial = np.zeros(shape)
        else:
            edge = np.sqrt(6 / (shape[-2] + shape[-1]))
            initial = random.uniform(-edge, edge, shape)
        return initial.astype(np.float32)

    def check(self, forest: Any) -> None:
        """Reject trees that do not fit the model."""
        check_shape_and_words(self, forest, "ChildSumTreeLSTM")
        if forest.label.max(initial=-1) >= self.classes:
            raise DataError(f"the model has {self.classes} classes, but the forest has label {forest.label.max()}")
        if not self.any_children and ((forest.left < 0) & (forest.word < 0)).any():
            raise DataError("a leaf has no word", hint="ChildSumTreeLSTM accepts nodes without words")

    # -- functions of the model ----------------------------------------------------------------------------------

    @functools.cache  # noqa: B019  # equal models share their functions, which are captured once
    def loss(self, at: str = "nodes") -> ut.Function:
        """The function loss(params, forest) -> (loss, counts); `at` is "nodes" or "root": where losses are taken.

        The loss of a tree is the sum over its nodes; the result is the mean over trees, 0 if there are none. Counts are
        [roots right, nodes right]; nodes are only counted with at="nodes". Use it with
        `ut.value_and_grad(..., has_aux=True)`.
        """
        _check_at(at)
        encode = self.encoder(JUDGED if at == "nodes" else NOTHING)

        @ut.function
        def loss(params, forest) -> (ut.f32, ut.i32[2]):
            def of_tree(root):
                h, *_, noted = encode(params, forest, root)
                missed, hit = judge(params, forest, root, h)
                if at == "nodes":
                    return noted[0], hit, noted[1]
                return missed, hit, hit

            missed, at_roots, at_nodes = ut.map(of_tree, forest.roots)
            hits = ut.astype(ut.stack([ut.sum(at_roots), ut.sum(at_nodes)]), ut.i32)
            return per_tree(missed, forest), hits

        return loss

    @functools.cache  # noqa: B019
    def total_loss(self, at: str = "nodes") -> ut.Function:
        """The function (params, forest) -> the sum of the losses of all trees, and nothing else."""
        _check_at(at)
        encode = self.encoder(LOSSES if at == "nodes" else NOTHING)

        @ut.function
        def total_loss(params, forest) -> ut.f32:
            def of_tree(root):
                h, *_, noted = encode(params, forest, root)
                return noted if at == "nodes" else judge(params, forest, root, h)[0]

            return ut.sum(ut.map(of_tree, forest.roots))

        return total_loss

    @functools.cache  # noqa: B019
    def root_labels(self) -> ut.Function:
        """The function (params, forest) -> the best class of each tree."""
        encode = replace(self, dropout=0.0).encoder(NOTHING)

        @ut.function
        def root_labels(params, forest) -> ut.i32["trees"]:
            def of_tree(root):
                return ut.astype(ut.argmax(scores(params, encode(params, forest, root)[0])), ut.i32)

            return ut.map(of_tree, forest.roots)

        return root_labels

    @functools.cache  # noqa: B019
    def _node_labels(self) -> ut.Function:
        """The function (params, forest) -> the best class of every node."""
        encode = replace(self, dropout=0.0).encoder(LABELLED)

        @ut.function
        def visit(params, forest):
            return ut.map(lambda root: encode(params, forest, root)[-1], forest.roots)

        @ut.function
        def node_labels(params, forest) -> ut.i32["nodes"]:
            # Nodes are visited once: `add` saves the check of that.
            return ut.reap(visit, ut.shape(forest.label)[0], add=True)(params, forest)[1]

        return node_labels

    def node_labels(self, params: Params, forest: Any) -> Any:
        """The best class of every node."""
        return self._node_labels()(params, forest)

    def predict(self, params: Params, forest: Any) -> Any:
        """The best class of each tree."""
        return self.root_labels()(params, forest)


def _check_at(at: str) -> None:
    if at not in ("nodes", "root"):
        raise DataError(f"unknown place of losses {at!r}", hint='write at="nodes" or at="root"')


def check_shape_and_words(model: Any, forest: Any, other: str) -> None:
    """Reject trees that are not binary if the model needs that, and unknown words; `other` is a model for any trees."""
    if not (model.any_children or forest.is_binary):
        raise DataError(f"{type(model).__name__} needs binary trees", hint=f"{other} accepts any trees")
    if forest.word.max(initial=-1) >= model.words:
        raise DataError(
            f"the model has {model.words} words, but the forest has word {forest.word.max()}",
            hint="read the trees with the vocabulary of the model, or create a model for len(vocabulary) words",
        )
