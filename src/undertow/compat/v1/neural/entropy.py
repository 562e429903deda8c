"""Losses of logits: softmax and sigmoid cross entropies, and those that sample classes.

The sampled ones draw classes as TensorFlow's log-uniform sampler does, but with replacement, so the expected count of a
class is its probability times the number of samples.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from undertow.compat.v1.array import cast, gather, random_uniform, reshape
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import apply, as_tensor, named, wrap, writing
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.types import said

__all__ = [
    "log_poisson_loss", "log_uniform_candidate_sampler", "nce_loss", "sampled_softmax_loss",
    "sigmoid_cross_entropy_with_logits", "softmax_cross_entropy_with_logits", "softmax_cross_entropy_with_logits_v2",
    "sparse_softmax_cross_entropy_with_logits", "weighted_cross_entropy_with_logits",
]  # fmt: skip


def _pair(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    """TensorFlow asks for keywords, since the order of labels and logits has changed between its versions."""
    if sentinel is not None or labels is None or logits is None:
        raise TypeMismatch(f"tf.nn.{function} takes its arguments by name", here(), hint="write labels=..., logits=...")


def softmax_cross_entropy_with_logits_v2(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, dim: int = -1, name: str | None = None,
    axis: int | None = None,
) -> Any:  # fmt: skip
    """-sum(labels * log_softmax(logits)) along an axis; labels get gradients, too."""
    _pair("softmax_cross_entropy_with_logits_v2", _sentinel, labels, logits)
    along = dim if axis is None else axis
    return apply(
        lambda scores, chances: functions.negative(
            functions.sum(chances * functions.log_softmax(scores, axis=along), axis=along)
        ),
        [logits, labels],
        name,
    )


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, dim: int = -1, name: str | None = None
) -> Any:
    """-sum(labels * log_softmax(logits)) along an axis; labels get no gradient."""
    _pair("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    constant = apply(functions.stop_gradient, [_fitted(labels, logits)])
    return softmax_cross_entropy_with_logits_v2(labels=constant, logits=logits, dim=dim, name=name)


def _fitted(labels: Any, logits: Any) -> Any:
    """Labels in the dtype of the logits."""
    with writing(labels, logits):
        return cast(labels, as_tensor(logits).dtype)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Any:
    """-log_softmax(logits) at the class that each label names, along the last axis."""
    _pair("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    with writing(labels, logits):
        scores, classes = as_tensor(logits), as_tensor(labels)
        if classes.type.rank != scores.type.rank - 1 or classes.dtype.kind != "int":
            raise TypeMismatch(
                f"the labels are {said(classes.type)} for logits {said(scores.type)}",
                here(),
                hint="labels are numbers of classes, with one axis less than the logits; for probabilities there is "
                "tf.nn.softmax_cross_entropy_with_logits",
            )
        each = functions.log_softmax(scores, axis=-1)
        picked = functions.take_along_axis(each, functions.expand_dims(classes, axis=-1), axis=-1)
        return named(wrap(functions.negative(functions.squeeze(picked, axis=-1))), name)


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Any:
    """-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits)), without overflow."""
    _pair("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    return apply(lambda x, z: functions.softplus(x) - x * z, [logits, _fitted(labels, logits)], name)


def weighted_cross_entropy_with_logits(targets: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Any:
    """The sigmoid cross entropy, with the first term times `pos_weight`."""

    def weighted(x: Any, z: Any, weight: Any) -> Any:
        return (1 - z) * x + (1 + (weight - 1) * z) * functions.softplus(functions.negative(x))

    return apply(weighted, [logits, _fitted(targets, logits), pos_weight], name)


def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None) -> Any:
    """exp(log_input) - log_input * targets; in full, with Stirling's approximation of log(targets!) above 1."""

    def loss(c: Any, z: Any) -> Any:
        short = functions.exp(c) - c * z
        if not compute_full_loss:
            return short
        safe = functions.where(functions.greater(z, 1), z, 1)
        stirling = safe * functions.log(safe) - safe + 0.5 * functions.log(safe * (2 * math.pi))
        return short + functions.where(functions.greater(z, 1), stirling, 0)

    return apply(loss, [log_input, targets], name)


# -- sampled classes ---------------------------------------------------------------------------------------


def _log_uniform(classes: Any, range_max: int) -> Any:
    """The probability of each class: log(1 + 1/(k + 1)) / log(range_max + 1)."""
    k = functions.astype(classes, "f32")
    return functions.divide(functions.log1p(functions.reciprocal(k + 1)), np.float32(math.log(range_max + 1)))


def log_uniform_candidate_sampler(
    true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: Any = None,
    name: str | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Classes drawn by Zipf's law, with replacement; the expected counts of the true and of the drawn classes."""
    with writing(true_classes):
        uniform = random_uniform([num_sampled], seed=seed)
        drawn = functions.floor(functions.exp(uniform * np.float32(math.log(range_max + 1)))) - 1
        sampled = functions.minimum(functions.astype(drawn, "i64"), range_max - 1)
        counts = [_log_uniform(c, range_max) * np.float32(num_sampled) for c in (as_tensor(true_classes), sampled)]
        return named(wrap(sampled), name), wrap(counts[0]), wrap(counts[1])


def _sampled_logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int,
    sampled_values: Any, subtract_log_q: bool, remove_accidental_hits: bool,
) -> tuple[Any, Any]:  # fmt: skip
    """Logits of the true and the sampled classes, and their labels: 1 / num_true, and 0."""
    with writing(weights, biases, labels, inputs):
        flat = reshape(cast(labels, "i64"), [-1])
        if sampled_values is None:
            sampled_values = log_uniform_candidate_sampler(flat, num_true, num_sampled, True, num_classes)
        sampled, true_count, sampled_count = sampled_values
        x = as_tensor(inputs)
        width = x.type.shape[-1]
        true_w = reshape(gather(weights, flat), [-1, num_true, width])
        true_b = reshape(gather(biases, flat), [-1, num_true])
        true = functions.sum(functions.expand_dims(x, axis=1) * true_w, axis=-1) + true_b
        other = functions.matmul(x, functions.matrix_transpose(gather(weights, sampled))) + gather(biases, sampled)
        if remove_accidental_hits:
            hits = functions.equal(
                functions.expand_dims(reshape(flat, [-1, num_true]), axis=2), functions.reshape(sampled, (1, 1, -1))
            )
            other = functions.where(functions.any(hits, axis=1), functions.full((), -3.4e38, dtype="f32"), other)
        if subtract_log_q:
            true = true - functions.log(functions.reshape(true_count, (-1, num_true)))
            other = other - functions.log(sampled_count)
        logits = functions.concat([true, other], axis=1)
        targets = functions.concat([functions.ones_like(true) / num_true, functions.zeros_like(other)], axis=1)
        return wrap(logits), wrap(targets)


def nce_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int = 1,
    sampled_values: Any = None, remove_accidental_hits: bool = False, partition_strategy: str = "mod",
    name: str | None = None,
) -> Any:  # fmt: skip
    """Noise-contrastive estimation: the true class against sampled ones, a number for each example."""
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True,
        remove_accidental_hits,
    )  # fmt: skip
    losses = sigmoid_cross_entropy_with_logits(labels=targets, logits=logits)
    return apply(lambda x: functions.sum(x, axis=1), [losses], name)


def sampled_softmax_loss(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int = 1,
    sampled_values: Any = None, remove_accidental_hits: bool = True, partition_strategy: str = "mod",
    name: str | None = None,
) -> Any:  # fmt: skip
    """The softmax cross entropy over the true class and sampled ones, a number for each example; for training only."""
    logits, targets = _sampled_logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, True,
        remove_accidental_hits,
    )  # fmt: skip
    return softmax_cross_entropy_with_logits(labels=targets, logits=logits, name=name)


boundaries(globals(), __all__)
