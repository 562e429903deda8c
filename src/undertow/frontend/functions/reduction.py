"""Functions along axes: sums and other reductions, scans, sorting.

`axis` is a number, a tuple or None (all axes); negative ones count from the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.functions import plain
from undertow.frontend.values.operands import (
    as_bool,
    as_operand,
    convert,
    dim,
    dims,
    floats,
    is_static_int,
    numbers,
    one_axis,
    result_dtype,
    some_axes,
    split_shape,
    type_of,
)
from undertow.frontend.values.traced import emit
from undertow.tracebacks import boundaries
from undertow.types import DType, i32, i64

__all__ = ["count_nonzero", "cumsum", "cumulative_prod", "cumulative_sum", "mean", "prod", "size", "std", "sum", "var"]


def _reduce(op: str, x: Any, axis: Any, keepdims: bool) -> Any:
    axes = some_axes(axis, type_of(x).rank, op)
    return emit(op, [x], axes=axes, keepdims=bool(keepdims))[0]


def _summable(x: Any, dtype: Any) -> Any:
    """As NumPy does it: sums of booleans and i32 are i64."""
    found: DType = type_of(x).dtype
    return convert(x, result_dtype(dtype, i64 if found == i32 else found))


def sum(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The sum along an axis, several, or all; of i32 and booleans, an i64.

    >>> sum([[1, 2], [3, 4]], axis=0)
    array([4, 6])
    """
    return _reduce("sum", _summable(numbers(x)[0], dtype), axis, keepdims)


def prod(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product along an axis, several, or all."""
    return _reduce("prod", _summable(numbers(x)[0], dtype), axis, keepdims)


def count_nonzero(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """The number of nonzero elements."""
    return sum(as_bool(x), axis=axis, keepdims=keepdims)


def size(x: Any, /) -> Any:
    """The number of elements: a Python integer, or a traced i64 if known only at run time.

    >>> size([[1, 2], [3, 4]])
    4
    """
    return product(dims(as_operand(x)))


def product(lengths: tuple[Any, ...]) -> Any:
    """The product of static and traced lengths: static if all are."""
    total: Any = 1
    for length in lengths:
        both = is_static_int(total) and is_static_int(length)
        total = total * length if both else plain.multiply(total, length)
    return total


def _count(x: Any, axes: tuple[int, ...]) -> Any:
    """The number of elements that each result of a reduction is made of, as a scalar of the dtype of x."""
    return as_operand(product(tuple(dim(x, a) for a in axes)), type_of(x).dtype)


def mean(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean along an axis, several, or all; of integers, a f64; of no elements, nan.

    >>> mean([[1, 2], [3, 5]], axis=1)
    array([1.5, 4. ])
    """
    value = floats(x)[0]
    axes = some_axes(axis, type_of(value).rank, "mean")
    return plain.divide(sum(value, axis=axes, keepdims=keepdims), _count(value, axes))


def var(x: Any, /, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The variance along an axis, several, or all; `correction=1` is that of a sample."""
    value = floats(x)[0]
    axes = some_axes(axis, type_of(value).rank, "var")
    apart = plain.subtract(value, mean(value, axis=axes, keepdims=True))
    if type_of(value).dtype.kind == "complex":
        value = apart = plain.abs(apart)
    apart = plain.square(apart)
    return plain.divide(sum(apart, axis=axes, keepdims=keepdims), plain.subtract(_count(value, axes), correction))


def std(x: Any, /, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The standard deviation along an axis, several, or all."""
    return plain.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _scanned(x: Any, axis: Any, dtype: Any, name: str) -> tuple[Any, int]:
    value = _summable(numbers(x)[0], dtype)
    rank = type_of(value).rank
    if axis is None and rank != 1:
        raise TypeMismatch(f"{name} needs an axis for {type_of(value)}", hint="name it, as in axis=0")
    return value, one_axis(0 if axis is None else axis, rank, name)


def _with_first(found: Any, axis: int, first: int) -> Any:
    sizes = [1 if k == axis else n for k, n in enumerate(dims(found))]
    attr, traced = split_shape(sizes, "a scan")
    start = emit("fill", [type_of(found).dtype.numpy.type(first), *traced], shape=attr)[0]
    return emit("concat", [start, found], axis=axis)[0]


def cumulative_sum(x: Any, /, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running sum along an axis; only vectors may omit the axis. `include_initial` puts a 0 in front.

    >>> cumulative_sum([1, 2, 3])
    array([1, 3, 6])
    """
    value, at = _scanned(x, axis, dtype, "cumulative_sum")
    found = emit("cumsum", [value], axis=at)[0]
    return _with_first(found, at, 0) if include_initial else found


def cumulative_prod(x: Any, /, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """The running product along an axis; only vectors may omit the axis. `include_initial` puts a 1 in front.

    >>> cumulative_prod([2, 3, 4])
    array([ 2,  6, 24])
    """
    value, at = _scanned(x, axis, dtype, "cumulative_prod")
    places = emit("arange", [np.int64(0), as_operand(dim(value, at), i64), np.int64(1)])[0]
    after = type_of(value).rank - 1 - at
    places = emit("expand_dims", [places], axes=tuple(range(1, 1 + after)))[0] if after else places
    # Only the first element is there to begin with; adding -0.0 keeps the sign of zeros.
    none = type_of(value).dtype.numpy.type(-0.0 if type_of(value).dtype.kind == "float" else 0)
    found = emit("recurrence", [value, plain.where(plain.equal(places, 0), value, none)], axis=at)[0]
    return _with_first(found, at, 1) if include_initial else found


cumsum = cumulative_sum


boundaries(globals(), __all__)
