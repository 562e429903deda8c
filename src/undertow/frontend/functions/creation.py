"""Array creation: from lists, constants and random numbers.

Sizes may be traced integers; then they are known only at run time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.frontend.functions import plain
from undertow.frontend.values.operands import (
    as_operand,
    convert,
    dims,
    integers,
    numbers,
    result_dtype,
    split_shape,
    static_int,
    type_of,
)
from undertow.frontend.values.traced import IndexedArray, context, emit
from undertow.tracebacks import boundaries
from undertow.types import DType, dtype_of, f64, i64

__all__ = [
    "arange", "asarray", "eye", "full", "full_like", "linspace", "one_hot", "ones", "ones_like", "zeros", "zeros_like",
]  # fmt: skip


def asarray(x: Any, /, dtype: Any = None) -> Any:
    """A list, number or array (that may contain traced values) as an array that traced values can index.

    >>> asarray([1, 2], dtype="f32")
    array([1., 2.], dtype=float32)
    """
    value = as_operand(x, None if dtype is None else dtype_of(dtype))
    current = context()
    if current is not None and current.is_plain_python and isinstance(value, np.ndarray):
        return value.view(IndexedArray)
    return value


def full(shape: Any, /, fill_value: Any, dtype: Any = None) -> Any:
    """An array of that shape with the same scalar everywhere.

    >>> full((2, 2), 7)
    array([[7, 7],
           [7, 7]])
    """
    value = as_operand(fill_value, None if dtype is None else dtype_of(dtype))
    attr, sizes = split_shape(shape, "full")
    return emit("fill", [value, *sizes], shape=attr)[0]


def zeros(shape: Any, /, dtype: Any = None) -> Any:
    """An array of zeros, of f64 if no dtype is given."""
    return full(shape, 0, dtype=result_dtype(dtype, f64))


def ones(shape: Any, /, dtype: Any = None) -> Any:
    """An array of ones, of f64 if no dtype is given."""
    return full(shape, 1, dtype=result_dtype(dtype, f64))


def full_like(x: Any, /, fill_value: Any, dtype: Any = None) -> Any:
    """An array with the shape (and dtype) of x and the same scalar everywhere."""
    like = as_operand(x)
    return full(dims(like), fill_value, dtype=result_dtype(dtype, type_of(like).dtype))


def zeros_like(x: Any, /, dtype: Any = None) -> Any:
    """An array of zeros with the shape (and dtype) of x."""
    return full_like(x, 0, dtype=dtype)


def ones_like(x: Any, /, dtype: Any = None) -> Any:
    """An array of ones with the shape (and dtype) of x."""
    return full_like(x, 1, dtype=dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """The numbers from start (or 0) up to but not including stop.

    >>> arange(2, 10, 3)
    array([2, 5, 8])
    """
    first, last = (0, start) if stop is None else (start, stop)
    bounds = numbers(first, last, step)
    if dtype is not None:
        bounds = [convert(b, dtype_of(dtype)) for b in bounds]
    return emit("arange", bounds)[0]


def linspace(start: Any, stop: Any, /, num: int = 50, dtype: Any = None, endpoint: bool = True) -> Any:
    """`num` numbers from start to stop, evenly spaced; between arrays, `num` arrays.

    >>> linspace(0, 1, 5)
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """
    count = static_int(num, "the number of points")
    first, last = numbers(start, stop)
    wanted = result_dtype(dtype, type_of(first).dtype)
    wanted = wanted if wanted.is_inexact else f64
    first, last = convert(first, wanted), convert(last, wanted)
    apart = plain.subtract(last, first)
    step = plain.divide(apart, max(count - bool(endpoint), 1))
    places = np.arange(count).reshape(count, *(1,) * type_of(apart).rank)
    between = plain.add(plain.multiply(places.astype(wanted.numpy), step), first)  # as NumPy, to the bit
    return plain.where(places == count - 1, last, between) if endpoint and count > 1 else between


def eye(n_rows: Any, n_cols: Any = None, /, k: int = 0, dtype: Any = None) -> Any:
    """Ones on the diagonal (the k-th above the main one), zeros elsewhere.

    >>> eye(2, dtype="i32")
    array([[1, 0],
           [0, 1]], dtype=int32)
    """
    sizes = (n_rows, n_rows if n_cols is None else n_cols)
    rows, columns = map(arange, sizes)
    (below,) = emit("expand_dims", [rows], axes=(1,))
    ones = full(sizes, 1, dtype=result_dtype(dtype, f64))  # so that negative sizes are a fault
    return plain.where(plain.equal(plain.add(below, k), columns), ones, type_of(ones).dtype.numpy.type(0))


def one_hot(indices: Any, n: Any, /, dtype: Any = None) -> Any:
    """A new last axis of length n, with 1 at the index and 0 elsewhere; all 0 for an index not in range.

    >>> one_hot([0, 2], 3)
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    index = integers(indices, "the indices of one_hot")
    (apart,) = emit("expand_dims", [index], axes=(type_of(index).rank,))
    return convert(plain.equal(apart, arange(n)), result_dtype(dtype, f64))


# -- random numbers ----------------------------------------------------------------------------------------


def _key(key: Any) -> Any:
    found = integers(key, "a random key")
    return convert(found, i64)


def fold_in(key: Any, data: Any, /) -> Any:
    """A new random key from a key and a number: different numbers give unrelated keys.

    >>> fold_in(0, 1) == fold_in(0, 2)
    np.False_
    """
    return emit("fold_in", [_key(key), convert(integers(data, "what is folded into a key"), i64)])[0]


def _draw(op: str, key: Any, shape: Any, dtype: DType) -> Any:
    attr, sizes = split_shape(shape, op)
    return emit(op, [_key(key), *sizes], shape=attr, dtype=dtype.name)[0]


def random_bits(key: Any, /, shape: Any = (), dtype: Any = None) -> Any:
    """Random integers in which every bit is fair, i64 or i32: a pure function of the key."""
    return _draw("random_bits", key, shape, result_dtype(dtype, i64))


def random_uniform(key: Any, /, shape: Any = (), dtype: Any = None) -> Any:
    """Random floats from 0 to below 1: a pure function of the key.

    >>> random_uniform(7, (2,)).round(3)
    array([0.701, 0.129])
    """
    return _draw("random_uniform", key, shape, result_dtype(dtype, f64))


def random_normal(key: Any, /, shape: Any = (), dtype: Any = None) -> Any:
    """Random floats, normally distributed with mean 0 and deviation 1: a pure function of the key."""
    return _draw("random_normal", key, shape, result_dtype(dtype, f64))


boundaries(globals(), __all__)
