"""Array manipulation: shapes, joining, splitting, taking elements.

Shapes and indices may be traced integers; then the lengths that depend on them are known only at run time.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import plain
from undertow.frontend.functions.creation import arange
from undertow.frontend.values.operands import (
    along,
    as_operand,
    convert,
    dim,
    dims,
    integers,
    is_static_int,
    numbers,
    one_axis,
    same_dtype,
    some_axes,
    split_shape,
    static_int,
    type_of,
)
from undertow.frontend.values.traced import Traced, emit
from undertow.tracebacks import boundaries
from undertow.types import i64

__all__ = [
    "broadcast_to", "concat", "expand_dims", "flip", "gather", "length", "matrix_transpose", "moveaxis",
    "permute_dims", "reshape", "roll", "scatter_add", "shape", "slice_at", "slice_between", "split", "squeeze",
    "stack", "take", "take_along_axis", "transpose", "tril", "triu", "unstack",
]  # fmt: skip

# Bounds that every slice is clamped to: what a missing bound means.
_FIRST, _LAST = np.int64(np.iinfo(np.int64).min), np.int64(np.iinfo(np.int64).max)


# -- shapes ------------------------------------------------------------------------------------------------


def shape(x: Any, /) -> tuple[Any, ...]:
    """The lengths of the axes: Python integers, and traced i64 scalars where known only at run time.

    >>> shape([[1, 2, 3]])
    (1, 3)
    """
    return dims(as_operand(x))


def length(x: Any, /, axis: int = 0) -> Any:
    """The length of an axis: a Python integer, or a traced i64 scalar if known only at run time."""
    return dim(*along(x, axis, "length"))


def reshape(x: Any, /, shape: Any) -> Any:
    """The same elements, in row-major order, in another shape; one size may be -1, which is inferred.

    >>> reshape([1, 2, 3, 4], (2, -1))
    array([[1, 2],
           [3, 4]])
    """
    attr, sizes = split_shape(shape, "reshape")
    return emit("reshape", [as_operand(x), *sizes], shape=attr)[0]


def broadcast_to(x: Any, /, shape: Any) -> Any:
    """Repeated to fill a shape: axes of length 1 stretch, new ones come in front.

    >>> broadcast_to([1, 2], (2, 2))
    array([[1, 2],
           [1, 2]])
    """
    attr, sizes = split_shape(shape, "broadcast_to")
    return emit("broadcast_to", [as_operand(x), *sizes], shape=attr)[0]


def permute_dims(x: Any, /, axes: Any) -> Any:
    """The axes in another order: axis k of the result is axis axes[k] of x."""
    value = as_operand(x)
    rank = type_of(value).rank
    if not isinstance(axes, (tuple, list, np.ndarray, range)) or np.ndim(axes) != 1:
        raise TypeMismatch(
            f"{brief(axes)} is not an order of axes", hint="list every axis once: ut.permute_dims(x, (1, 0))"
        )
    order = tuple(one_axis(a, rank, "permute_dims") for a in axes)
    return value if order == tuple(range(rank)) else emit("transpose", [value], axes=order)[0]


def transpose(x: Any, /, axes: Any = None) -> Any:
    """The axes in reverse order, or in the given order.

    >>> transpose([[1, 2], [3, 4]])
    array([[1, 3],
           [2, 4]])
    """
    value = as_operand(x)
    return permute_dims(value, tuple(reversed(range(type_of(value).rank))) if axes is None else axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped."""
    value = as_operand(x)
    rank = type_of(value).rank
    if rank < 2:
        raise TypeMismatch(
            f"matrix_transpose takes a matrix, not {type_of(value)}", hint="a matrix has at least two axes"
        )
    return permute_dims(value, (*range(rank - 2), rank - 1, rank - 2))


def moveaxis(x: Any, source: int, destination: int, /) -> Any:
    """One axis moved to another place; the others keep their order."""
    value = as_operand(x)
    rank = type_of(value).rank
    moved = one_axis(source, rank, "moveaxis")
    order = [a for a in range(rank) if a != moved]
    order.insert(one_axis(destination, rank, "moveaxis"), moved)
    return permute_dims(value, order)


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    """A new axis of length 1 (or several), where the result has `axis`."""
    value = as_operand(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    return emit("expand_dims", [value], axes=some_axes(axis, type_of(value).rank + count, "expand_dims"))[0]


def squeeze(x: Any, /, axis: Any = None) -> Any:
    """Without axes of length 1: the given ones, or all that are known to have length 1."""
    value = as_operand(x)
    sizes = type_of(value).shape
    if axis is None:
        axes = tuple(a for a, d in enumerate(sizes) if d == 1)
    else:
        axes = some_axes(axis, len(sizes), "squeeze")
    return emit("squeeze", [value], axes=axes)[0] if axes else value


def flip(x: Any, /, axis: Any = None) -> Any:
    """Reversed along an axis, several, or all."""
    value = as_operand(x)
    return emit("flip", [value], axes=some_axes(axis, type_of(value).rank, "flip"))[0]


# -- joining and splitting ---------------------------------------------------------------------------------


def _arrays(arrays: Any, what: str) -> list[Any]:
    if isinstance(arrays, (list, tuple)):
        if not arrays:
            raise TypeMismatch(f"{what} needs at least one array", hint="pass a list of arrays")
        return same_dtype(*arrays)
    value = as_operand(arrays)
    if not type_of(value).shape:
        raise TypeMismatch(f"{what} takes a list of arrays, not a scalar", hint=f"write ut.{what}([x, y])")
    return list(unstack(value)) or _arrays([], what)


def concat(arrays: Any, /, axis: Any = 0) -> Any:
    """Arrays joined along an axis; with axis=None, all their elements.

    >>> concat([[1, 2], [3]])
    array([1, 2, 3])
    """
    values = _arrays(arrays, "concat")
    if axis is None:
        return emit("concat", [reshape(v, (-1,)) for v in values], axis=0)[0]
    rank = type_of(values[0]).rank
    if rank == 0 and not is_static_int(axis):
        raise TypeMismatch("concat takes its arrays in one list", hint="write ut.concat([x, y])")
    if rank == 0:
        raise TypeMismatch("concat takes arrays, not scalars", hint="ut.stack makes a vector of scalars")
    return emit("concat", values, axis=one_axis(axis, rank, "concat"))[0]


def stack(arrays: Any, /, axis: int = 0) -> Any:
    """Arrays of one shape joined along a new axis.

    >>> stack([[1, 2], [3, 4]], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    values = _arrays(arrays, "stack")
    return emit("stack", values, axis=one_axis(axis, type_of(values[0]).rank + 1, "stack"))[0]


def unstack(x: Any, /, axis: int = 0) -> tuple[Any, ...]:
    """The parts along an axis, which must have a known length."""
    value, at = along(x, axis, "unstack")
    count = dim(value, at)
    if isinstance(count, Traced):
        raise TypeMismatch(
            f"axis {at} of {type_of(value)} cannot be split: its length is known only at run time",
            hint="use ut.map to work on each part",
        )
    return tuple(emit("index", [value, np.int64(k)], axes=(at,))[0] for k in range(count))


def split(x: Any, parts: Any, /, axis: int = 0) -> list[Any]:
    """`parts` equal parts along an axis, or the parts between those indices (static or traced).

    >>> split([1, 2, 3, 4], 2), split([1, 2, 3, 4], [1])
    ([array([1, 2]), array([3, 4])], [array([1]), array([2, 3, 4])])
    """
    value, at = along(x, axis, "split")
    if isinstance(parts, (list, tuple)):
        cuts = [None, *parts, None]
    else:
        count, total = static_int(parts, "the number of parts"), dim(value, at)
        if isinstance(total, Traced) or count < 1 or total % count:
            raise TypeMismatch(
                f"axis {at} of {type_of(value)} cannot be split into {count} equal parts",
                hint="name the indices to cut at: ut.split(x, [i, j])",
            )
        step = total // count
        cuts = [k * step for k in range(count)] + [total]
    return [slice_between(value, a, b, axis=at) for a, b in pairwise(cuts)]


# -- picking -----------------------------------------------------------------------------------------------


def slice_between(x: Any, start: Any, stop: Any, /, axis: int = 0, step: int = 1) -> Any:
    """x[start:stop:step] along an axis. Bounds may be None or traced: then the length is known at run time.

    >>> slice_between([1, 2, 3, 4], 1, None)
    array([2, 3, 4])
    """
    value, at = along(x, axis, "a slice")
    stride = static_int(step, "the step of a slice")
    if stride == 0:
        raise TypeMismatch("the step of a slice must not be 0")
    if all(b is None or is_static_int(b) for b in (start, stop)):
        fixed = [None if b is None else int(b) for b in (start, stop)]
        whole = (None,) * type_of(value).rank
        starts, stops, steps = (
            (*whole[:at], part, *whole[at + 1 :]) for part in (*fixed, None if stride == 1 else stride)
        )
        return emit("slice", [value], starts=starts, stops=stops, steps=steps)[0]
    return emit("slice_between", [value, *bounds_between(start, stop, stride)], axis=at, step=stride)[0]


def bounds_between(start: Any, stop: Any, step: int) -> list[Any]:
    """The bounds of a slice as operands of `slice_between`."""
    missing = (_FIRST, _LAST) if step > 0 else (_LAST, _FIRST)
    return [
        default if b is None else convert(integers(b, "the bounds of a slice"), i64)
        for b, default in zip((start, stop), missing, strict=True)
    ]


def slice_at(x: Any, start: Any, size: int, /, axis: int = 0) -> Any:
    """`size` elements of an axis, from `start`, which may be traced; a fault if they are out of range.

    >>> slice_at([1, 2, 3, 4], 1, 2)
    array([2, 3])
    """
    value, at = along(x, axis, "slice_at")
    first = convert(integers(start, "the start of slice_at"), i64)
    return emit("slice_at", [value, first], axis=at, size=static_int(size, "the size of slice_at"))[0]


def take(x: Any, indices: Any, /, axis: Any = None) -> Any:
    """The elements of an axis at these indices; only vectors may omit the axis.

    >>> take([10, 20, 30], [2, 0, 2])
    array([30, 10, 30])
    """
    value = as_operand(x)
    rank = type_of(value).rank
    if axis is None and rank != 1:
        raise TypeMismatch(f"take needs an axis for {type_of(value)}", hint="name it, as in axis=0")
    at = one_axis(0 if axis is None else axis, rank, "take")
    which = integers(indices, "the indices of take")
    check_static_indices(which, type_of(value).shape[at], at)
    return emit("take", [value, which], axis=at)[0]


def check_static_indices(indices: Any, size: Any, axis: int) -> None:
    """Indices known at capture, into an axis of known length, must be in range; into one without elements none is."""
    if not isinstance(size, int):
        return
    if isinstance(indices, Traced):
        if not size and 0 not in indices.type.shape:
            raise TypeMismatch(
                f"axis {axis} has no elements to index",
                hint="test len(x) first, or pass an array with elements",
                kind=IndexError,
            )
        return
    wrong = np.asarray(indices)[(np.asarray(indices) < -size) | (np.asarray(indices) >= size)]
    if wrong.size:
        raise TypeMismatch(
            f"index {int(wrong.flat[0])} is out of range for axis {axis} of length {size}",
            hint=f"indices go from {-size} to {size - 1}" if size else "the axis has no elements",
            kind=IndexError,
        )


def take_along_axis(x: Any, indices: Any, /, axis: int = -1) -> Any:
    """For each index in `indices`, the element of x at the same position, but at that index along the axis.

    >>> take_along_axis([[1, 2], [3, 4]], [[1], [0]])
    array([[2],
           [3]])
    """
    value, at = along(x, axis, "take_along_axis")
    which = integers(indices, "the indices of take_along_axis")
    return emit("take_along_axis", [value, which], axis=at)[0]


gather = take_along_axis


def scatter_add(x: Any, indices: Any, updates: Any, /, axis: int = 0) -> Any:
    """Updates added to x at the elements that `take` reads; repeated indices add up.

    >>> scatter_add([0, 0, 0], [0, 2, 2], [1, 10, 100])
    array([  1,   0, 110])
    """
    value, added = numbers(x, updates)
    at = one_axis(axis, type_of(value).rank, "scatter_add")
    which = integers(indices, "the indices of scatter_add")
    check_static_indices(which, type_of(value).shape[at], at)
    into = type_of(value).shape
    wanted = (*into[:at], *type_of(which).shape, *into[at + 1 :])
    if type_of(added).rank < len(wanted):
        sizes = [dim(value, a) for a in range(len(into))]
        added = broadcast_to(added, (*sizes[:at], *dims(which), *sizes[at + 1 :]))
    return emit("scatter_add", [value, which, added], axis=at)[0]


def roll(x: Any, shift: Any, /, axis: Any = None) -> Any:
    """Shifted along an axis, or through all elements; elements that leave at the end re-enter at the start.

    >>> roll([1, 2, 3], 1)
    array([3, 1, 2])
    """
    value = as_operand(x)
    if axis is None:
        return reshape(roll(reshape(value, (-1,)), shift, axis=0), dims(value))
    _, at = along(value, axis, "roll")
    count = dim(value, at)
    if is_static_int(shift) and is_static_int(count):
        cut: Any = -int(shift) % count if count else 0
    else:
        cut = plain.remainder(plain.negative(shift), plain.maximum(count, 1))
    return concat([slice_between(value, cut, None, axis=at), slice_between(value, None, cut, axis=at)], axis=at)


def _triangle(x: Any, k: int, keep: Any) -> Any:
    value = as_operand(x)
    if type_of(value).rank < 2:
        raise TypeMismatch(
            f"a triangle is taken of a matrix, not of {type_of(value)}", hint="a matrix has at least two axes"
        )
    rows, columns = (arange(n) for n in dims(value)[-2:])
    zero = type_of(value).dtype.numpy.type(0)
    return plain.where(keep(columns, plain.add(expand_dims(rows, 1), k)), value, zero)


def tril(x: Any, /, k: int = 0) -> Any:
    """The elements up to the diagonal (the k-th above the main one); 0 above it."""
    return _triangle(x, k, plain.less_equal)


def triu(x: Any, /, k: int = 0) -> Any:
    """The elements from the diagonal (the k-th above the main one) on; 0 below it."""
    return _triangle(x, k, plain.greater_equal)


boundaries(globals(), __all__)
