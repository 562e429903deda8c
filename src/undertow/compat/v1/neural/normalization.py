"""Means, variances and norms of `tf.nn`: moments, batch normalization, unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.tensor import apply, as_tensor, wrap, writing
from undertow.frontend.functions import public as functions

__all__ = [
    "batch_normalization", "fused_batch_norm", "l2_loss", "l2_normalize", "local_response_normalization", "lrn",
    "moments", "weighted_moments", "zero_fraction",
]  # fmt: skip


def _axes(axes: Any) -> Any:
    return tuple(axes) if isinstance(axes, (list, tuple, range)) else axes


def moments(
    x: Any, axes: Any, shift: Any = None, name: str | None = None, keep_dims: bool = False, keepdims: Any = None
) -> tuple[Any, Any]:
    """The mean and the variance over some axes."""

    def both(value: Any) -> Any:
        mean = functions.mean(value, axis=_axes(axes), keepdims=True)
        # The mean that is taken off gets no gradient: that of the variance with respect to it is 0.
        off = value - functions.stop_gradient(mean)
        variance = functions.mean(functions.square(off), axis=_axes(axes), keepdims=True)
        if not (keep_dims or keepdims):
            mean, variance = (functions.squeeze(v, axis=_all(value, axes)) for v in (mean, variance))
        return [mean, variance]

    mean, variance = apply(both, [x], name)
    return mean, variance


def _all(value: Any, axes: Any) -> Any:
    return tuple(range(value.type.rank)) if axes is None else _axes(axes)


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, name: str | None = None, keep_dims: bool = False
) -> tuple[Any, Any]:
    """The weighted mean and variance over some axes."""

    def both(value: Any, weights: Any) -> Any:
        spread = functions.broadcast_to(weights, functions.shape(value))
        total = functions.sum(spread, axis=_axes(axes), keepdims=True)
        mean = functions.sum(spread * value, axis=_axes(axes), keepdims=True) / total
        variance = functions.sum(spread * functions.square(value - mean), axis=_axes(axes), keepdims=True) / total
        return [v if keep_dims else functions.squeeze(v, axis=_all(value, axes)) for v in (mean, variance)]

    mean, variance = apply(both, [x, frequency_weights], name)
    return mean, variance


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Any:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset; scale and offset may be None."""
    with writing(x, mean, variance):
        value: Any = as_tensor(x)
        factor = functions.reciprocal(functions.sqrt(as_tensor(variance) + variance_epsilon))
        factor = factor if scale is None else factor * as_tensor(scale)
        result = (value - as_tensor(mean)) * factor
        return apply(lambda r: r if offset is None else r + as_tensor(offset), [wrap(result)], name)


def fused_batch_norm(
    x: Any, scale: Any, offset: Any, mean: Any = None, variance: Any = None, epsilon: float = 0.001,
    data_format: str = "NHWC", is_training: bool = True, name: str | None = None,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Batch normalization of images; in training by the batch's own moments. Also the mean, and n/(n-1) variances."""
    with writing(x):
        value = as_tensor(x)
        axes = (0, 2, 3) if data_format == "NCHW" else (0, 1, 2)
        off, by = as_tensor(offset), as_tensor(scale)
        if is_training:
            mean, variance = moments(value, axes)
        mean, variance = as_tensor(mean), as_tensor(variance)
        along = (-1, 1, 1) if data_format == "NCHW" else (-1,)
        m, v, b, f = (wrap(functions.reshape(each, along)) for each in (mean, variance, off, by))
        result = batch_normalization(value, m, v, b, f, epsilon, name)
        if is_training:
            count = functions.astype(functions.size(value), value.dtype) / functions.astype(
                functions.size(mean), value.dtype
            )
            variance = wrap(variance * (count / functions.maximum(count - 1, 1)))
        return result, mean, variance


def l2_loss(t: Any, name: str | None = None) -> Any:
    """Half of the sum of squares."""
    return apply(lambda x: functions.sum(functions.square(x), dtype=x.dtype) / 2, [t], name)


def l2_normalize(x: Any, dim: Any = None, epsilon: float = 1e-12, name: str | None = None, axis: Any = None) -> Any:
    """X / sqrt(max(sum(x**2), epsilon)) along an axis."""
    along = _axes(dim if axis is None else axis)

    def unit(value: Any) -> Any:
        squares = functions.sum(functions.square(value), axis=along, keepdims=True)
        return value / functions.sqrt(functions.maximum(squares, epsilon))

    return apply(unit, [x], name)


def zero_fraction(value: Any, name: str | None = None) -> Any:
    """The fraction of elements that are 0."""
    return apply(lambda x: functions.mean(functions.astype(functions.equal(x, 0), "f32")), [value], name)


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1.0, alpha: float = 1.0, beta: float = 0.5,
    name: str | None = None,
) -> Any:  # fmt: skip
    """X / (bias + alpha * (the sum of squares of the channels around it)) ** beta."""

    def normalized(x: Any) -> Any:
        channels = np.arange(x.type.shape[-1])
        band = (abs(channels[:, None] - channels) <= depth_radius).astype(x.dtype.numpy)
        near = functions.matmul(functions.square(x), band)
        return x / functions.pow(near * alpha + bias, beta)

    return apply(normalized, [input], name)


lrn = local_response_normalization

boundaries(globals(), __all__)
