"""Activation functions of `tf.nn`, biases and dropout."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.array import random_uniform, reshape
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import apply, as_tensor, is_tensor_like, writing
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions

__all__ = [
    "bias_add", "crelu", "dropout", "elu", "leaky_relu", "log_softmax", "relu", "relu6", "relu_layer", "selu",
    "softmax", "softplus", "softsign", "xw_plus_b",
]  # fmt: skip

# Klambauer et al. 2017, "Self-Normalizing Neural Networks", section 3.
_SELU_SCALE, _SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


def relu(features: Any, name: str | None = None) -> Any:
    """The larger of x and 0."""
    return apply(functions.relu, [features], name)


def relu6(features: Any, name: str | None = None) -> Any:
    """X limited to the range from 0 to 6."""
    return apply(lambda x: functions.subtract(functions.relu(x), functions.relu(x - 6)), [features], name)


def crelu(features: Any, name: str | None = None) -> Any:
    """The positive and the negative part of x, side by side in the last axis."""
    return apply(
        lambda x: functions.concat([functions.relu(x), functions.relu(functions.negative(x))], axis=-1),
        [features],
        name,
    )


def _exponential(x: Any) -> Any:
    """exp(x) - 1 below 0, and 0 above."""
    return functions.expm1(functions.negative(functions.relu(functions.negative(x))))


def elu(features: Any, name: str | None = None) -> Any:
    """X above 0, exp(x) - 1 below."""
    return apply(lambda x: functions.add(functions.relu(x), _exponential(x)), [features], name)


def selu(features: Any, name: str | None = None) -> Any:
    """ELU, scaled so that activations keep mean 0 and variance 1."""
    return apply(lambda x: (functions.relu(x) + _exponential(x) * _SELU_ALPHA) * _SELU_SCALE, [features], name)


def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Any:
    """X above 0, alpha * x below."""
    return apply(lambda x, a: functions.where(functions.greater(x, 0), x, a * x), [features, alpha], name)


def softplus(features: Any, name: str | None = None) -> Any:
    """log(1 + exp(x)), without overflow."""
    return apply(functions.softplus, [features], name)


def softsign(features: Any, name: str | None = None) -> Any:
    """X / (1 + |x|)."""
    return apply(lambda x: functions.divide(x, functions.abs(x) + 1), [features], name)


def softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Any:
    """Exponentials that add up to 1 along an axis, by default the last."""
    return apply(functions.softmax, [logits], name, axis=_axis(axis, dim))


def log_softmax(logits: Any, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Any:
    """The logarithm of softmax, without overflow."""
    return apply(functions.log_softmax, [logits], name, axis=_axis(axis, dim))


def _axis(axis: int | None, dim: int | None) -> int:
    return axis if axis is not None else -1 if dim is None else dim


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    """A vector added along the last axis; with data_format="NCHW" along the second."""
    if data_format not in (None, "NHWC", "NCHW"):
        raise TypeMismatch(f"data_format={brief(data_format)} is unknown", here(), hint='write "NHWC" or "NCHW"')
    if data_format == "NCHW":
        with writing(value, bias):
            bias = reshape(bias, [-1] + [1] * (as_tensor(value).type.rank - 2))
    return apply(functions.add, [value, bias], name)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """matmul(x, weights) + biases."""
    return apply(lambda x, w, b: functions.add(functions.matmul(x, w), b), [x, weights, biases], name)


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Any:
    """relu(matmul(x, weights) + biases)."""
    return relu(xw_plus_b(x, weights, biases), name)


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: Any = None,
    name: str | None = None,
    rate: Any = None,
) -> Any:
    """Each element with the probability `keep_prob`, divided by it, else 0; new choices in every run."""
    if (keep_prob is None) == (rate is None):
        raise TypeMismatch("dropout takes keep_prob= or rate=, one of them", here(), hint="write keep_prob=0.5")
    keep = 1 - rate if keep_prob is None else keep_prob
    if not is_tensor_like(keep):
        if not 0 < float(keep) <= 1:
            raise TypeMismatch(
                f"keep_prob must be above 0 and at most 1, not {brief(keep)}", here(), hint="write keep_prob=0.5"
            )
        if float(keep) == 1:
            return as_tensor(x)
    with writing(x, keep):
        value = as_tensor(x)
        shape = noise_dims(value, noise_shape)
        noise = random_uniform(shape, dtype=value.dtype, seed=seed)
        # floor(keep + u) is 1 with the probability `keep`.
        return apply(lambda v, k, u: functions.floor(k + u) * (v / k), [value, _as(keep, value), noise], name)


def _as(keep: Any, value: Any) -> Any:
    return apply(lambda k: functions.astype(k, value.dtype), [keep])


def noise_dims(value: Any, noise_shape: Any) -> Any:
    """The shape of the random numbers of a dropout: that of the value, or as given, None being a whole axis."""
    sizes = functions.shape(value)
    if noise_shape is None:
        return list(sizes)
    if is_tensor_like(noise_shape):
        return noise_shape
    return [size if wanted is None else wanted for size, wanted in zip(sizes, noise_shape, strict=True)]


boundaries(globals(), __all__)
