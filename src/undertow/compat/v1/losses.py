"""`tf.losses`: losses of predictions, weighted and reduced to one number, and the sum of all that a graph has."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.array import cast
from undertow.compat.v1.graph import get_default_graph
from undertow.compat.v1.graphs.collection import GraphKeys
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.math import add_n
from undertow.compat.v1.missing import explain
from undertow.compat.v1.neural.entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import as_tensor, wrap, write_constant, writing
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.types import said

__all__ = [
    "Reduction", "absolute_difference", "add_loss", "compute_weighted_loss", "cosine_distance", "get_losses",
    "get_regularization_loss", "get_regularization_losses", "get_total_loss", "hinge_loss", "huber_loss", "log_loss",
    "mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy", "sparse_softmax_cross_entropy",
]  # fmt: skip


class Reduction:
    """How losses become one number."""

    NONE = "none"
    SUM = "weighted_sum"
    MEAN = "weighted_mean"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    SUM_OVER_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"
    SUM_BY_NONZERO_WEIGHTS = "weighted_sum_by_nonzero_weights"

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Every way."""
        return cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, cls.SUM_BY_NONZERO_WEIGHTS


_USUAL = Reduction.SUM_BY_NONZERO_WEIGHTS


def compute_weighted_loss(
    losses: Any, weights: Any = 1.0, scope: str | None = None, loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = _USUAL,
) -> Any:  # fmt: skip
    """The losses times their weights, reduced; by default the sum over the number of weights that are not 0."""
    if reduction not in Reduction.all():
        raise TypeMismatch(f"reduction={brief(reduction)} is unknown", here(), hint="use one of tf.losses.Reduction")
    with writing(losses, weights) as graph:
        each: Any = as_tensor(losses)
        by = wrap(functions.astype(_spread(as_tensor(weights), each), each.dtype))
        weighted = each * by
        result = weighted
        if reduction != Reduction.NONE:
            result = functions.sum(weighted, dtype=each.dtype)
        if reduction == Reduction.MEAN:
            result = _over(result, functions.sum(_filling(by, each)))
        elif reduction == Reduction.SUM_BY_NONZERO_WEIGHTS:
            present = functions.astype(functions.not_equal(by, 0), each.dtype)
            result = _over(result, functions.sum(_filling(present, each)))
        elif reduction == Reduction.SUM_OVER_BATCH_SIZE:
            result = _over(result, functions.astype(functions.size(each), each.dtype))
        loss = wrap(result)
        if loss_collection and graph.late.images is None:  # not when the call is repeated for a shape
            graph.add_to_collection(loss_collection, loss)
        return loss


def _spread(weights: Any, losses: Any) -> Any:
    """Weights of as many axes as the losses: of none, of the same, or one for each example."""
    missing = losses.type.rank - weights.type.rank
    if missing == 0 or not weights.type.rank:
        return weights
    if missing < 0 and weights.type.shape[losses.type.rank :] == (1,) * -missing:
        return functions.squeeze(weights, axis=tuple(range(losses.type.rank, weights.type.rank)))
    raise TypeMismatch(
        f"the weights are {said(weights.type)}, the losses {said(losses.type)}",
        here(),
        hint="weights are a number, or have the axes of the losses, some of length 1: tf.expand_dims(weights, 1)",
    )


def _filling(value: Any, losses: Any) -> Any:
    return functions.broadcast_to(value, functions.shape(losses))


def _over(total: Any, count: Any) -> Any:
    """A quotient; 0 where the count is 0."""
    none = functions.equal(count, 0)
    return functions.where(none, 0, functions.divide(total, functions.where(none, 1, count)))


def _pair(labels: Any, predictions: Any) -> tuple[Any, Any]:
    """Labels in the dtype of the predictions, and these; of the same shape."""
    if labels is None or predictions is None:
        raise TypeMismatch("a loss needs labels and predictions", here(), hint="write labels=..., predictions=...")
    guess = as_tensor(predictions)
    truth = cast(labels, guess.dtype)
    if truth.type.rank != guess.type.rank or any(
        isinstance(a, int) and isinstance(b, int) and a != b
        for a, b in zip(truth.type.shape, guess.type.shape, strict=True)
    ):
        raise TypeMismatch(
            f"the labels are {said(truth.type)}, the predictions {said(guess.type)}",
            here(),
            hint="they must have the same shape: tf.reshape one of them",
        )
    return truth, guess


def _of_pairs(meaning: str, formula: Any) -> Any:
    def loss(
        labels: Any, predictions: Any, weights: Any = 1.0, scope: str | None = None,
        loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL,
    ) -> Any:  # fmt: skip
        with writing(labels, predictions, weights):
            truth, guess = _pair(labels, predictions)
            return compute_weighted_loss(wrap(formula(truth, guess)), weights, scope, loss_collection, reduction)

    loss.__doc__ = meaning
    return loss


absolute_difference = _of_pairs("The absolute value of predictions - labels.", lambda y, x: functions.abs(x - y))
mean_squared_error = _of_pairs("The square of predictions - labels.", lambda y, x: functions.square(x - y))


def huber_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, delta: float = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL,
) -> Any:  # fmt: skip
    """Half the square of the error up to `delta`, and linear beyond."""
    with writing(labels, predictions, weights):
        truth, guess = _pair(labels, predictions)
        error = functions.abs(guess - truth)
        near = functions.minimum(error, delta)
        losses = functions.square(near) / 2 + (error - near) * delta
        return compute_weighted_loss(wrap(losses), weights, scope, loss_collection, reduction)


def log_loss(
    labels: Any, predictions: Any, weights: Any = 1.0, epsilon: float = 1e-7, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL,
) -> Any:  # fmt: skip
    """The cross entropy of probabilities, `epsilon` added to them."""
    with writing(labels, predictions, weights):
        truth, guess = _pair(labels, predictions)
        losses = -truth * functions.log(guess + epsilon) - (1 - truth) * functions.log(1 - guess + epsilon)
        return compute_weighted_loss(wrap(losses), weights, scope, loss_collection, reduction)


def hinge_loss(
    labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL,
) -> Any:  # fmt: skip
    """max(0, 1 - y * logits), where y is -1 for a label 0, and 1 for a label 1."""
    with writing(labels, logits, weights):
        truth, scores = _pair(labels, logits)
        losses = functions.relu(1 - (2 * truth - 1) * scores)
        return compute_weighted_loss(wrap(losses), weights, scope, loss_collection, reduction)


def cosine_distance(
    labels: Any, predictions: Any, axis: int | None = None, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL, dim: int | None = None,
) -> Any:  # fmt: skip
    """1 - the inner product along an axis, of vectors that have length 1 already."""
    along = dim if axis is None else axis
    if along is None:
        raise TypeMismatch("cosine_distance needs an axis", here(), hint="write axis=1")
    with writing(labels, predictions, weights):
        truth, guess = _pair(labels, predictions)
        losses = 1 - functions.sum(truth * guess, axis=along, keepdims=True)
        return compute_weighted_loss(wrap(losses), weights, scope, loss_collection, reduction)


def sigmoid_cross_entropy(
    multi_class_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL,
) -> Any:  # fmt: skip
    """The sigmoid cross entropy; labels may be drawn towards 1/2."""
    with writing(multi_class_labels, logits, weights):
        truth, scores = _pair(multi_class_labels, logits)
        truth = truth * (1 - label_smoothing) + label_smoothing / 2 if label_smoothing else truth
        losses = sigmoid_cross_entropy_with_logits(labels=truth, logits=scores)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any, logits: Any, weights: Any = 1.0, label_smoothing: float = 0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL,
) -> Any:  # fmt: skip
    """The softmax cross entropy with probabilities of classes; they may be drawn towards equality."""
    with writing(onehot_labels, logits, weights):
        truth, scores = _pair(onehot_labels, logits)
        if label_smoothing:
            truth = truth * (1 - label_smoothing) + label_smoothing / functions.shape(truth)[-1]
        losses = softmax_cross_entropy_with_logits(labels=truth, logits=scores)
        return compute_weighted_loss(losses, weights, scope, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any, logits: Any, weights: Any = 1.0, scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES, reduction: str = _USUAL,
) -> Any:  # fmt: skip
    """The softmax cross entropy with numbers of classes. Labels and weights may have a last axis of length 1."""
    with writing(labels, logits, weights):
        scores, classes, by = as_tensor(logits), as_tensor(labels), as_tensor(weights)
        if classes.type.rank == scores.type.rank and classes.type.shape[-1] == 1:
            classes = wrap(functions.squeeze(classes, axis=-1))
        losses = sparse_softmax_cross_entropy_with_logits(labels=classes, logits=scores)
        return compute_weighted_loss(losses, by, scope, loss_collection, reduction)


# -- all losses of a graph ---------------------------------------------------------------------------------


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add a loss to those of the graph."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses of the graph."""
    return list(get_default_graph().get_collection(loss_collection, scope))


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """What the regularizers of the graph's variables gave."""
    return get_losses(scope, GraphKeys.REGULARIZATION_LOSSES)


def get_regularization_loss(scope: str | None = None, name: str = "total_regularization_loss") -> Any:
    """The sum of these."""
    losses = get_regularization_losses(scope)
    with writing():
        return add_n(losses, name) if losses else write_constant(0.0, name=name)


def get_total_loss(add_regularization_losses: bool = True, name: str = "total_loss") -> Any:
    """The sum of all losses of the graph."""
    losses = get_losses() + (get_regularization_losses() if add_regularization_losses else [])
    if not losses:
        raise TypeMismatch("the graph has no losses", here(), hint="use a function of tf.losses, or tf.losses.add_loss")
    return add_n(losses, name)


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"losses.{name}", [f"losses.{known}" for known in __all__]))


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), __all__, besides=("add_loss", "get_losses", "get_regularization_losses"))
