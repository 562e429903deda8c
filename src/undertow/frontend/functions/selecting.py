"""Elements chosen by masks: how many there are is known only at run time, unless the mask is known at capture."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import plain
from undertow.frontend.functions.creation import arange, full
from undertow.frontend.functions.reduction import product, size
from undertow.frontend.values.operands import (
    along,
    as_bool,
    as_operand,
    convert,
    dim,
    dims,
    integers,
    is_static_int,
    numbers,
    type_of,
)
from undertow.frontend.values.traced import Traced, effect, emit
from undertow.tracebacks import boundaries
from undertow.types import bool_, i64, said

__all__ = ["nonzero"]


def nonzero(x: Any, /) -> tuple[Any, ...]:
    """The indices of the elements that are not 0: an array for each axis.

    >>> nonzero([0, 5, 0, 7])
    (array([1, 3]),)
    """
    value = as_bool(x)
    if not type_of(value).rank:
        raise TypeMismatch("a scalar has no indices", hint="test it instead: x != 0")
    return tuple(unraveled(places(value), dims(value)))


def places(mask: Any) -> Any:
    """Where a mask is true, in row-major order: numbers of elements."""
    flat = arrays.reshape(mask, (-1,))
    return emit("compress", [arange(dim(flat, 0)), flat], axis=0)[0]


def unraveled(numbers: Any, lengths: tuple[Any, ...]) -> list[Any]:
    """The numbers of elements as indices, one array for each axis."""
    indices: list[Any] = []
    for length in reversed(lengths[1:]):
        some = plain.maximum(length, 1)
        indices.insert(0, plain.remainder(numbers, some))
        numbers = plain.floor_divide(numbers, some)
    return [numbers, *indices]


def picked(x: Any, mask: Any, axis: int) -> Any:
    """The elements of an axis where a vector of booleans is true."""
    fits(x, mask, axis)
    if isinstance(mask, Traced):
        return emit("compress", [x, mask], axis=axis)[0]
    return emit("take", [x, np.flatnonzero(mask)], axis=axis)[0]


def fits(x: Any, mask: Any, axis: int) -> None:
    """Lengths that are known must be equal, those of a mask and of the axes that it covers."""
    covered = type_of(x).shape[axis : axis + type_of(mask).rank]
    if len(covered) < type_of(mask).rank or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(type_of(mask).shape, covered, strict=False)
    ):
        raise TypeMismatch(
            f"{said(type_of(mask))} cannot be a mask of {said(type_of(x))}",
            hint="a mask has the lengths of the axes that it covers",
            kind=IndexError,
        )


def agree(x: Any, mask: Any, axis: int) -> None:
    """The same at run time: a fault where lengths differ."""
    fits(x, mask, axis)
    for k, length in enumerate(dims(mask)):
        other = dim(x, axis + k)
        if not (is_static_int(length) and is_static_int(other)):
            text = f"a mask does not fit axis {axis + k}: their lengths are {{}} and {{}}"
            same = plain.equal(length, other)
            effect("raise", [same, *map(as_operand, (length, other))], template=text, error="IndexError")


def joined(x: Any, mask: Any, axis: int) -> tuple[Any, Any]:
    """The axes that a mask covers as one, and the mask as a vector."""
    rank = type_of(mask).rank
    if rank == 1:
        return x, mask
    agree(x, mask, axis)
    lengths = dims(x)
    together = product(lengths[axis : axis + rank])
    return arrays.reshape(x, (*lengths[:axis], together, *lengths[axis + rank :])), arrays.reshape(mask, (-1,))


# -- NumPy's functions -------------------------------------------------------------------------------------


def flat_nonzero(a: Any) -> Any:
    """np.flatnonzero."""
    return places(as_bool(a))


def arg_where(a: Any) -> Any:
    """np.argwhere: a row of indices for each element that is not 0."""
    if not type_of(as_operand(a)).rank:
        raise TypeMismatch("np.argwhere of a scalar has rows without columns", hint="test it instead: x != 0")
    return arrays.stack(nonzero(a), axis=1)


def compress(condition: Any, a: Any, axis: Any) -> Any:
    """np.compress: the mask may be shorter than the axis."""
    mask = as_bool(condition)
    value = arrays.reshape(a, (-1,)) if axis is None else as_operand(a)
    value, at = along(value, 0 if axis is None else axis, "np.compress")
    if type_of(mask).rank != 1:
        raise TypeMismatch(f"the condition of np.compress is a vector, not {said(type_of(mask))}", hint="flatten it")
    length, whole = dim(mask, 0), dim(value, at)
    if is_static_int(length) and is_static_int(whole) and length == whole:
        return picked(value, mask, at)
    return arrays.take(value, places(mask), axis=at)


def extract(condition: Any, arr: Any) -> Any:
    """np.extract."""
    return compress(arrays.reshape(condition, (-1,)), arr, None)


def repeated(a: Any, repeats: Any, axis: Any) -> Any:
    """np.repeat: each element so often, or as often as its count says."""
    value = arrays.reshape(a, (-1,)) if axis is None else as_operand(a)
    value, at = along(value, 0 if axis is None else axis, "np.repeat")
    times = integers(repeats, "how often np.repeat repeats")
    length = dim(value, at)
    if not isinstance(times, Traced) and is_static_int(length):
        if np.any(np.asarray(times) < 0) or np.size(times) not in (1, length):
            raise TypeMismatch(
                "np.repeat takes a count of 0 or more for each element, or one for all", hint="check the counts"
            )
        return arrays.take(value, np.repeat(np.arange(length), times), axis=at)
    if type_of(times).rank == 0 or type_of(times).shape == (1,):
        count = convert(arrays.reshape(times, ()), i64)
        _refuse_negative(count)
        spread = arrays.expand_dims(value, at + 1)
        lengths = dims(value)
        spread = arrays.broadcast_to(spread, (*lengths[: at + 1], count, *lengths[at + 1 :]))
        return arrays.reshape(spread, (*lengths[:at], plain.multiply(length, count), *lengths[at + 1 :]))
    counts = convert(times, i64)
    if type_of(counts).rank != 1:
        raise TypeMismatch(f"the counts of np.repeat are a vector, not {said(type_of(counts))}", hint="flatten them")
    _refuse_negative(counts)
    counts = arrays.broadcast_to(counts, (length,))
    return arrays.take(value, owners(counts), axis=at)


def _refuse_negative(counts: Any) -> None:
    good = plain.greater_equal(counts, 0)
    effect("raise", [plain.all(good)], template="repeats may not contain negative values.", error="ValueError")


def owners(counts: Any) -> Any:
    """For counts [2, 0, 1]: [0, 0, 2], the number of each element, as often as its count says."""
    (ends,) = emit("cumsum", [counts], axis=0)
    total = emit("sum", [counts], axes=(0,), keepdims=False)[0]
    # One mark where each element ends; those before a place say whose it is.
    marks = full(plain.add(total, 1), np.int64(0))
    ones = full(arrays.shape(ends), np.int64(1))
    marks = arrays.scatter_add(marks, ends, ones)
    return arrays.slice_between(emit("cumsum", [marks], axis=0)[0], None, total)


def unique(ar: Any, index: bool, inverse: bool, counts: bool, axis: Any, equal_nan: bool) -> Any:
    """np.unique: the values in order, each once; first places, inverse and counts where asked for."""
    value = as_operand(ar)
    if axis is not None and not (is_static_int(axis) and type_of(value).rank == 1):
        raise TypeMismatch("np.unique along an axis cannot be captured", hint="flatten the array, or leave out axis")
    is_boolean = type_of(value).dtype == bool_
    flat = arrays.reshape(numbers(value)[0], (-1,))
    order = plain.argsort(flat, axis=0)
    row = arrays.take(flat, order, axis=0)
    before, after = arrays.slice_between(row, None, -1), arrays.slice_between(row, 1, None)
    differ = plain.not_equal(before, after)
    if type_of(row).dtype.kind == "float" and equal_nan:
        differ = plain.logical_and(differ, plain.logical_not(plain.isnan(before)))
    some = plain.equal(arange(plain.minimum(size(flat), 1)), 0)  # the first is new, where there is one
    fresh = arrays.concat([some, differ])
    values = emit("compress", [row, fresh], axis=0)[0]
    results = [convert(values, bool_) if is_boolean else values]
    starts = places(fresh)
    if index:
        results.append(arrays.take(order, starts, axis=0))
    if inverse:
        rank = plain.subtract(emit("cumsum", [convert(fresh, i64)], axis=0)[0], 1)
        back = arrays.take(rank, plain.argsort(order, axis=0), axis=0)
        results.append(arrays.reshape(back, dims(value)))
    if counts:
        ends = arrays.concat([arrays.slice_between(starts, 1, None), arrays.reshape(as_operand(size(flat)), (1,))])
        ends = arrays.slice_between(ends, None, dim(starts, 0))  # of nothing, nothing
        results.append(plain.subtract(ends, starts))
    return results[0] if len(results) == 1 else tuple(results)


boundaries(globals(), __all__)
