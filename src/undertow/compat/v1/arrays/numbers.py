"""More arithmetic by its TensorFlow 1.4 names: `tf.truncatediv`, `tf.cumprod`, `tf.confusion_matrix`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.compat.v1.array import cast
from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.math import Op, add_n
from undertow.compat.v1.tensor import apply, as_tensor, is_tensor_like, named, operands, wrap, writing
from undertow.frontend.functions import public as functions
from undertow.types import i32, i64

__all__ = [
    "accumulate_n", "acosh", "asinh", "atanh", "bincount", "clip_by_average_norm", "confusion_matrix",
    "count_nonzero", "cumprod", "digamma", "erfc", "floor_mod", "histogram_fixed_width", "lbeta", "lin_space",
    "log_sigmoid", "polygamma", "realdiv", "rint", "saturate_cast", "scalar_mul", "truncatediv", "truncatemod",
]  # fmt: skip


def _one(ours: Op, meaning: str) -> Op:
    function = lambda x, name=None: apply(ours, [x], name)  # noqa: E731
    function.__doc__ = meaning
    return function


def _two(ours: Op, meaning: str) -> Op:
    function = lambda x, y, name=None: apply(ours, [x, y], name)  # noqa: E731
    function.__doc__ = meaning
    return function


def _truncated(x: Any, y: Any) -> Any:
    """The quotient, rounded towards zero."""
    if as_tensor(x).dtype.kind == "float":
        return functions.trunc(x / y)
    floor = functions.floor_divide(x, y)
    is_above = functions.logical_and(functions.less(floor, 0), functions.not_equal(floor * y, x))
    return floor + functions.astype(is_above, as_tensor(x).dtype)


acosh = _one(functions.acosh, "The inverse hyperbolic cosine.")
asinh = _one(functions.asinh, "The inverse hyperbolic sine.")
atanh = _one(functions.atanh, "The inverse hyperbolic tangent.")
erfc = _one(functions.erfc, "1 - erf(x).")
rint = _one(functions.round, "The nearest integer, the even one of two.")
log_sigmoid = _one(lambda x: -functions.softplus(-x), "The logarithm of the sigmoid, without overflow.")
floor_mod = _two(functions.remainder, "The remainder, with the sign of the divisor.")
realdiv = _two(functions.divide, "The quotient.")
truncatediv = _two(_truncated, "The quotient, rounded towards zero.")
truncatemod = _two(lambda x, y: x - _truncated(x, y) * y, "The remainder, with the sign of the dividend.")


def polygamma(a: int, x: Any, name: str | None = None) -> Any:
    """The derivative of order a of the digamma function, for a whole number a."""
    from undertow.frontend.values.traced import emit

    with writing(x):
        value = as_tensor(x)
        order = functions.full(functions.shape(value), value.dtype.numpy.type(a))
        return named(wrap(emit("polygamma", [order, value])[0]), name)


def digamma(x: Any, name: str | None = None) -> Any:
    """The derivative of the logarithm of the gamma function."""
    return polygamma(0, x, name)


def lbeta(x: Any, name: str | None = None) -> Any:
    """The logarithm of the beta function of the last axis."""
    return apply(
        lambda v: functions.sum(functions.lgamma(v), axis=-1) - functions.lgamma(functions.sum(v, axis=-1)), [x], name
    )


def scalar_mul(scalar: Any, x: Any) -> Any:
    """A number times a tensor."""
    return apply(lambda v, s: s * v, [x, scalar])


def accumulate_n(inputs: Sequence[Any], shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Any:
    """The sum of all these tensors."""
    return add_n(inputs, name)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Any:
    """Another dtype; what does not fit becomes the nearest number that does."""
    kind = dtype_of(dtype)
    if kind.kind != "int":
        return cast(value, kind, name)
    bounds = np.iinfo(kind.numpy)  # type: ignore[type-var]

    def limited(x: Any) -> Any:
        low, high = (x.dtype.numpy.type(bound) for bound in (bounds.min, bounds.max))
        if x.dtype.kind == "float":  # the largest float that is below the bound
            high = np.nextafter(high, x.dtype.numpy.type(0))
        return functions.astype(functions.clip(x, low, high), kind)

    return apply(limited, [value], name) if as_tensor(value).dtype != i32 else cast(value, kind, name)


def count_nonzero(
    input_tensor: Any, axis: Any = None, keep_dims: bool = False, dtype: Any = i64, name: str | None = None,
    reduction_indices: Any = None, keepdims: Any = None,
) -> Any:  # fmt: skip
    """How many elements are not 0, over some axes."""
    chosen = reduction_indices if axis is None else axis
    along = tuple(chosen) if isinstance(chosen, list) else chosen
    keep = bool(keep_dims or keepdims)
    return apply(
        lambda x: functions.sum(
            functions.astype(functions.not_equal(x, 0), dtype_of(dtype)),
            axis=along,
            keepdims=keep,
            dtype=dtype_of(dtype),
        ),
        [input_tensor],
        name,
    )


def cumprod(x: Any, axis: int = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Any:
    """Running products along an axis; `exclusive` leaves out the element itself, `reverse` begins at the end."""

    def products(v: Any) -> Any:
        turned = functions.flip(v, axis=axis) if reverse else v
        result = functions.cumulative_prod(turned, axis=axis, dtype=v.dtype)
        if exclusive:
            sizes = functions.shape(v)
            at = axis % v.type.rank
            ones = functions.full((*sizes[:at], 1, *sizes[at + 1 :]), v.dtype.numpy.type(1))
            result = functions.concat([ones, functions.slice_between(result, None, -1, axis=axis)], axis=axis)
        return functions.flip(result, axis=axis) if reverse else result

    return apply(products, [x], name)


def lin_space(start: Any, stop: Any, num: int, name: str | None = None) -> Any:
    """`num` evenly spaced numbers, both ends included."""
    from undertow.compat.v1.array import linspace

    return linspace(start, stop, num, name)


def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Any:
    """Scaled down to the norm `clip_norm` for each element on average."""

    def clipped(x: Any, most: Any) -> Any:
        count = functions.astype(functions.size(x), x.dtype)
        length = functions.sqrt(functions.sum(functions.square(x))) / count
        return x * (most / functions.maximum(length, most))

    return apply(clipped, [t, clip_norm], name)


# -- counts ------------------------------------------------------------------------------------------------


def bincount(arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = i32) -> Any:
    """How often each of the numbers 0, 1, ... occurs; or the sum of their weights."""
    with writing(arr, weights):
        numbers: Any = functions.reshape(as_tensor(arr), (-1,))
        count: Any = functions.max(functions.concat([numbers, functions.full((1,), numbers.dtype.numpy.type(-1))])) + 1
        count = count if minlength is None else functions.maximum(count, minlength)
        count = count if maxlength is None else functions.minimum(count, maxlength)
        if weights is None:
            rows: Any = wrap(functions.full(functions.shape(numbers), dtype_of(dtype).numpy.type(1)))
        else:
            rows = functions.reshape(as_tensor(weights), (-1,))
        if maxlength is not None:  # what is beyond goes to one more place, which is cut off
            numbers = functions.minimum(numbers, functions.astype(count, numbers.dtype))
        total = functions.full((count + 1,), rows.dtype.numpy.type(0))
        return wrap(functions.slice_between(functions.scatter_add(total, numbers, rows), None, -1))


def confusion_matrix(
    labels: Any, predictions: Any, num_classes: Any = None, dtype: Any = i32, name: str | None = None,
    weights: Any = None,
) -> Any:  # fmt: skip
    """How often each label (row) was predicted as each class (column)."""
    with writing(labels, predictions, num_classes, weights):
        truth, guess = (functions.astype(as_tensor(v), i64) for v in (labels, predictions))
        if num_classes is None:
            count: Any = functions.maximum(functions.max(truth), functions.max(guess)) + 1
        else:
            count = functions.astype(as_tensor(num_classes), i64) if is_tensor_like(num_classes) else int(num_classes)
        kind = dtype_of(dtype)
        if weights is None:
            rows: Any = wrap(functions.full(functions.shape(truth), kind.numpy.type(1)))
        else:
            rows = functions.astype(as_tensor(weights), kind)
        cells = functions.full((count * count,), kind.numpy.type(0))
        added = functions.scatter_add(cells, truth * count + guess, rows)
        return named(wrap(functions.reshape(added, (count, count))), name)


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: int = 100, dtype: Any = i32, name: str | None = None
) -> Any:
    """How many values are in each of `nbins` equal parts of a range; those outside count in the first and the last."""
    with writing(values, value_range):
        x, low, high = operands([values, *value_range] if isinstance(value_range, (list, tuple)) else [values, 0, 1])
        if not isinstance(value_range, (list, tuple)):
            low, high = (functions.take(as_tensor(value_range), k) for k in (0, 1))
        scaled = functions.floor((functions.reshape(as_tensor(x), (-1,)) - low) * nbins / (high - low))
        places = functions.astype(functions.clip(scaled, 0, nbins - 1), i64)
        ones = functions.full(functions.shape(places), dtype_of(dtype).numpy.type(1))
        counts = functions.full((nbins,), dtype_of(dtype).numpy.type(0))
        return named(wrap(functions.scatter_add(counts, places, ones)), name)


boundaries(globals(), __all__)
