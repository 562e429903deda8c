"""Functions along axes: sums and other reductions, scans, sorting, softmax.

`axis` is a number, a tuple or None (all axes); negative ones count from the end.
"""

from __future__ import annotations

from typing import Any

from undertow.errors import TypeMismatch
from undertow.frontend.functions import elementwise as each
from undertow.frontend.values.operands import (
    as_bool,
    as_float,
    as_number,
    as_operand,
    convert,
    dim,
    dims,
    is_static_int,
    one_axis,
    result_dtype,
    some_axes,
    type_of,
)
from undertow.frontend.values.traced import emit
from undertow.types import DType, i32, i64

__all__ = [
    "all", "any", "argmax", "argmin", "argsort", "count_nonzero", "cumsum", "cumulative_sum", "log_softmax",
    "logsumexp", "max", "mean", "min", "prod", "size", "softmax", "sort", "std", "sum", "var",
]  # fmt: skip


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
    return _reduce("sum", _summable(as_number(x), dtype), axis, keepdims)


def prod(x: Any, /, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The product along an axis, several, or all."""
    return _reduce("prod", _summable(as_number(x), dtype), axis, keepdims)


def max(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """The largest along an axis, several, or all; of no elements, a fault.

    >>> max([[1, 5], [3, 4]], axis=1)
    array([5, 4])
    """
    return _reduce("max", as_number(x), axis, keepdims)


def min(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """The smallest along an axis, several, or all; of no elements, a fault."""
    return _reduce("min", as_number(x), axis, keepdims)


def any(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """Is any of them true?"""
    return _reduce("any", as_bool(x), axis, keepdims)


def all(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """Are all of them true?"""
    return _reduce("all", as_bool(x), axis, keepdims)


def count_nonzero(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """How many are not 0."""
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
        total = total * length if both else each.multiply(total, length)
    return total


def _count(x: Any, axes: tuple[int, ...]) -> Any:
    """The number of elements that each result of a reduction is made of, as a scalar of the dtype of x."""
    return as_operand(product(tuple(dim(x, a) for a in axes)), type_of(x).dtype)


def mean(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """The mean along an axis, several, or all; of integers, a f64; of no elements, nan.

    >>> mean([[1, 2], [3, 5]], axis=1)
    array([1.5, 4. ])
    """
    value = as_float(x)
    axes = some_axes(axis, type_of(value).rank, "mean")
    return each.divide(sum(value, axis=axes, keepdims=keepdims), _count(value, axes))


def var(x: Any, /, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The variance along an axis, several, or all; `correction=1` is that of a sample."""
    value = as_float(x)
    axes = some_axes(axis, type_of(value).rank, "var")
    apart = each.square(each.subtract(value, mean(value, axis=axes, keepdims=True)))
    return each.divide(sum(apart, axis=axes, keepdims=keepdims), each.subtract(_count(value, axes), correction))


def std(x: Any, /, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    """The standard deviation along an axis, several, or all."""
    return each.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _position(op: str, x: Any, axis: Any, keepdims: bool) -> Any:
    value = as_number(x)
    rank = type_of(value).rank
    if axis is not None:
        return emit(op, [value], axis=one_axis(axis, rank, op), keepdims=bool(keepdims))[0]
    (flat,) = emit("reshape", [value], shape=(-1,))
    (found,) = emit(op, [flat], axis=0, keepdims=False)
    return emit("reshape", [found], shape=(1,) * rank)[0] if keepdims else found


def argmax(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """Where the (first) largest stands along an axis, or in all elements row by row: an i64.

    >>> argmax([[1, 5], [3, 4]], axis=1)
    array([1, 1])
    """
    return _position("argmax", x, axis, keepdims)


def argmin(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """Where the (first) smallest stands along an axis, or in all elements row by row: an i64."""
    return _position("argmin", x, axis, keepdims)


def cumulative_sum(x: Any, /, axis: Any = None, dtype: Any = None) -> Any:
    """The running sum along an axis, which only a vector may leave out.

    >>> cumulative_sum([1, 2, 3])
    array([1, 3, 6])
    """
    value = _summable(as_number(x), dtype)
    rank = type_of(value).rank
    if axis is None and rank != 1:
        raise TypeMismatch(f"the running sum of {type_of(value)} without an axis", hint="say along which: axis=0")
    return emit("cumsum", [value], axis=one_axis(0 if axis is None else axis, rank, "cumulative_sum"))[0]


cumsum = cumulative_sum


def sort(x: Any, /, axis: int = -1, descending: bool = False) -> Any:
    """Sorted along an axis; nan counts as the largest.

    >>> sort([3, 1, 2], descending=True)
    array([3, 2, 1])
    """
    value = as_number(x)
    return emit("sort", [value], axis=one_axis(axis, type_of(value).rank, "sort"), descending=bool(descending))[0]


def argsort(x: Any, /, axis: int = -1, descending: bool = False) -> Any:
    """The order that sorts: take_along_axis(x, argsort(x), -1) is sorted. Equal elements keep theirs."""
    value = as_number(x)
    return emit("argsort", [value], axis=one_axis(axis, type_of(value).rank, "argsort"), descending=bool(descending))[0]


def logsumexp(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along an axis, several, or all, without overflow."""
    return _reduce("logsumexp", as_float(x), axis, keepdims)


def softmax(x: Any, /, axis: Any = -1) -> Any:
    """exp(x), scaled so that it sums to 1 along an axis.

    >>> softmax([0.0, 0.0])
    array([0.5, 0.5])
    """
    value = as_float(x)
    return emit("softmax", [value], axes=some_axes(axis, type_of(value).rank, "softmax"))[0]


def log_softmax(x: Any, /, axis: Any = -1) -> Any:
    """The logarithm of softmax along an axis, without overflow."""
    value = as_float(x)
    return emit("log_softmax", [value], axes=some_axes(axis, type_of(value).rank, "log_softmax"))[0]
