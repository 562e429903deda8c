"""NumPy's functions about order and sets: searching, counting in bins, quantiles, interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, plain, selecting
from undertow.frontend.functions import reduction as along_axes
from undertow.frontend.functions.debug import assert_
from undertow.frontend.values.operands import (
    as_operand,
    convert,
    dim,
    dims,
    integers,
    is_static_int,
    is_weak,
    numbers,
    same_dtype,
    some_axes,
    static_int,
    type_of,
)
from undertow.frontend.values.traced import Traced, effect
from undertow.types import f64, i64, said


def flattened(x: Any) -> Any:
    return arrays.reshape(x, (-1,))


def _kind(x: Any) -> str:
    return type_of(as_operand(x)).dtype.kind


def _require(condition: Any, message: str) -> None:
    """A ValueError, at capture or at run time, unless it is true."""
    effect("raise", [plain.all(condition)], template=message, error="ValueError")


def _require_sorted(row: Any, name: str) -> None:
    """NumPy searches what is not sorted, too, and finds anything."""
    before, after = arrays.slice_between(row, None, -1), arrays.slice_between(row, 1, None)
    good = plain.less_equal(before, after)
    if _kind(row) == "float":
        good = plain.logical_or(good, plain.isnan(after))
    text = f"{name} takes a vector in ascending order"
    if isinstance(good, Traced):
        assert_(good, f"{text}\nhint: sort it first: np.sort(x)")
    elif not np.all(good):
        raise TypeMismatch(text, hint="sort it first: np.sort(x)")


# -- searching and counting --------------------------------------------------------------------------------


def search(a: Any, v: Any, side: Any, sorter: Any) -> Any:
    """np.searchsorted: how many elements of a sorted vector come before each value."""
    row, keys = same_dtype(a, v)
    if type_of(row).rank != 1 or side not in ("left", "right"):
        raise TypeMismatch("np.searchsorted takes a sorted vector, and side='left' or 'right'", hint="sort it first")
    if sorter is not None:
        row = arrays.take(row, sorter, axis=0)
    _require_sorted(row, "np.searchsorted")
    return _search(row, keys, side)


def _search(row: Any, keys: Any, side: str) -> Any:
    if not type_of(keys).rank:
        before = (plain.less if side == "left" else plain.less_equal)(row, keys)
        if _kind(row) == "float":  # nan comes last
            is_last = plain.isnan(keys)
            known = plain.logical_not(plain.isnan(row)) if side == "left" else plain.equal(1, 1)
            before = plain.logical_or(before, plain.logical_and(is_last, known))
        return along_axes.sum(before)
    # The places of the values in the order of all, less those of other values before them. Sorting is stable.
    flat = flattened(keys)
    both = [flat, row] if side == "left" else [row, flat]
    ranks = plain.argsort(plain.argsort(arrays.concat(both), axis=0), axis=0)
    count = dim(flat, 0)
    own = arrays.slice_between(ranks, None, count) if side == "left" else arrays.slice_between(ranks, dim(row, 0), None)
    among = plain.argsort(plain.argsort(flat, axis=0), axis=0)
    return arrays.reshape(plain.subtract(own, among), dims(keys))


def digitized(x: Any, bins: Any, right: bool) -> Any:
    """np.digitize: the number of the bin that each value is in."""
    edges = as_operand(bins)
    side = "left" if right else "right"
    if isinstance(edges, Traced):
        _require_sorted(edges, "np.digitize")
    elif np.any(np.diff(edges) < 0):
        if np.any(np.diff(edges) > 0):
            raise TypeMismatch("the bins of np.digitize must be monotonic", hint="sort them first")
        return plain.subtract(len(edges), search(edges[::-1], x, side, None))
    return search(edges, x, side, None)


def bin_counts(x: Any, weights: Any, minlength: Any) -> Any:
    """np.bincount: how often each number from 0 on occurs."""
    which = convert(integers(x, "what np.bincount counts"), i64)
    if type_of(which).rank != 1:
        raise TypeMismatch(f"np.bincount takes a vector, not {said(type_of(which))}", hint="flatten it")
    _require(plain.greater_equal(which, 0), "np.bincount takes no negative numbers")
    largest = plain.max(arrays.concat([which, np.array([-1])]))
    count = plain.maximum(plain.add(largest, 1), minlength)
    if weights is None:
        return arrays.scatter_add(creation.full((count,), np.int64(0)), which, 1)
    return arrays.scatter_add(creation.full((count,), np.float64(0)), which, elementwise.astype(weights, f64))


def histogram(a: Any, bins: Any, limits: Any, density: Any) -> tuple[Any, Any]:
    """np.histogram: the counts, and the edges of the bins."""
    if _kind(a) == "bool":
        raise TypeMismatch("np.histogram of booleans cannot be captured", hint="convert them: x.astype(np.int64)")
    row = plain.sort(flattened(a), axis=0)
    if isinstance(bins, str):
        raise CaptureError(f"np.histogram with bins={brief(bins)} cannot be captured", hint="give a number of bins")
    if is_static_int(bins):
        edges = edges_between(row, static_int(bins, "the number of bins"), limits)
    else:
        edges = as_operand(bins)
        _require(
            plain.less_equal(arrays.slice_between(edges, None, -1), arrays.slice_between(edges, 1, None)),
            "`bins` must increase monotonically, when an array",
        )
    before = search(row, arrays.slice_between(edges, None, -1), "left", None)
    last = search(row, arrays.slice_between(edges, -1, None), "right", None)
    counts = _steps(arrays.concat([before, last]))
    if density:
        return plain.divide(plain.divide(counts, _steps(edges)), along_axes.sum(counts)), edges
    return counts, edges


def _steps(x: Any) -> Any:
    return plain.subtract(arrays.slice_between(x, 1, None), arrays.slice_between(x, None, -1))


def edges_between(row: Any, count: int, limits: Any) -> Any:
    if count < 1:
        raise TypeMismatch("np.histogram needs a bin", hint="the number of bins must be positive")
    if limits is None and not is_static_int(dim(row, 0)):
        raise CaptureError("np.histogram of an array of run-time length needs a range", hint="pass range=(low, high)")
    if limits is not None:
        low, high = limits
        _require(plain.less_equal(low, high), "max must be larger than min in range parameter.")
    elif dim(row, 0) == 0:
        low, high = 0.0, 1.0
    else:
        low, high = (_end(row, k) for k in (0, -1))
    same = plain.equal(low, high)
    low, high = (plain.where(same, plain.add(x, by), x) for x, by in ((low, -0.5), (high, 0.5)))
    _require(plain.isfinite(plain.add(low, high)), "the range of np.histogram is not finite")
    dtype = type_of(row).dtype if _kind(row) == "float" else f64
    return creation.linspace(low, high, count + 1, dtype=dtype)


def _end(row: Any, k: int) -> Any:
    return arrays.reshape(arrays.slice_between(row, *((None, 1) if k == 0 else (-1, None))), ())


# -- quantiles ---------------------------------------------------------------------------------------------


def _merged(a: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """An array sorted along its last axis, into which all the given ones are joined; and these."""
    value = numbers(a)[0]
    rank = type_of(value).rank
    axes = some_axes(axis, rank, "a quantile")
    kept = [k for k in range(rank) if k not in axes]
    moved = arrays.permute_dims(value, (*kept, *axes))
    lengths = dims(moved)
    joined = arrays.reshape(moved, (*lengths[: len(kept)], along_axes.product(lengths[len(kept) :])))
    return plain.sort(joined, axis=len(kept)), axes


def _at(row: Any, place: Any) -> Any:
    return arrays.take(row, place, axis=type_of(row).rank - 1)


def median(a: Any, axis: Any, keepdims: bool) -> Any:
    """np.median: the middle one, or the mean of the two in the middle; nan if any is."""
    row, axes = _merged(a, axis)
    row = elementwise.astype(row, f64) if _kind(row) != "float" else row
    count = dim(row, type_of(row).rank - 1)
    upper = _at(row, plain.floor_divide(count, 2))
    lower = _at(row, plain.floor_divide(plain.subtract(count, 1), 2))
    is_odd = plain.equal(plain.remainder(count, 2), 1)
    middle = plain.where(is_odd, upper, plain.divide(plain.add(lower, upper), 2))
    return _kept(_or_nan(row, middle), axes, keepdims)


def nan_median(a: Any, axis: Any, keepdims: bool) -> Any:
    """np.nanmedian: the same of the numbers, which sorting puts first; nan if there are none."""
    row, axes = _merged(a, axis)
    row = elementwise.astype(row, f64) if _kind(row) != "float" else row
    last = type_of(row).rank - 1
    count = along_axes.sum(plain.logical_not(plain.isnan(row)), axis=last, keepdims=True)
    places = (plain.floor_divide(plain.subtract(count, 1), 2), plain.floor_divide(count, 2))
    most = plain.maximum(plain.subtract(count, 1), 0)
    lower, upper = (
        arrays.take_along_axis(row, plain.minimum(plain.maximum(place, 0), most), axis=last) for place in places
    )
    is_odd = plain.equal(plain.remainder(count, 2), 1)
    middle = plain.where(is_odd, upper, plain.divide(plain.add(lower, upper), 2))
    middle = plain.where(plain.equal(count, 0), np.nan, middle)
    return _kept(arrays.squeeze(middle, last), axes, keepdims)


def _or_nan(row: Any, result: Any) -> Any:
    last = _at(row, plain.subtract(dim(row, type_of(row).rank - 1), 1))
    return plain.where(plain.isnan(last), last, result)


def _kept(result: Any, axes: tuple[int, ...], keepdims: bool, after: int = 0) -> Any:
    return arrays.expand_dims(result, tuple(axis + after for axis in axes)) if keepdims and axes else result


def quantiles(scale: float, name: str) -> Callable[..., Any]:
    """np.quantile or np.percentile, by linear interpolation."""

    def quantile(a: Any, q: Any, axis: Any, method: Any, keepdims: bool) -> Any:
        if method != "linear":
            raise CaptureError(f"{name} with method={brief(method)} cannot be captured", hint="use 'linear'")
        if _kind(a) == "bool" or (scale == 1 and _kind(q) != "float"):
            raise TypeMismatch(f"{name} takes numbers, and floats from 0 to 1", hint="write np.quantile(x, 1.0)")
        row, axes = _merged(a, axis)
        is_float = _kind(row) == "float"
        dtype = type_of(row).dtype if is_float and is_weak(q) else f64
        wanted = convert(elementwise.astype(q, dtype), dtype)
        wanted = plain.divide(wanted, scale) if scale != 1 else wanted
        inside = plain.logical_and(plain.greater_equal(wanted, 0), plain.less_equal(wanted, 1))
        _require(inside, f"{name.split('.')[1].capitalize()}s must be in the range [0, {int(scale)}]")
        rank = type_of(wanted).rank
        if rank > 1:
            raise CaptureError(f"{name} of several axes of q cannot be captured", hint="flatten q")
        count = dim(row, type_of(row).rank - 1)
        place = plain.multiply(elementwise.astype(plain.subtract(count, 1), dtype), wanted)
        below = plain.floor(place)
        part = plain.subtract(place, below)
        first = elementwise.astype(below, i64)
        second = plain.minimum(plain.add(first, 1), plain.subtract(count, 1))
        low, high = _at(row, first), _at(row, second)
        apart = plain.subtract(high, low)
        from_low = plain.add(low, plain.multiply(apart, part))
        from_high = plain.subtract(high, plain.multiply(apart, plain.subtract(1, part)))
        result = plain.where(plain.greater_equal(part, 0.5), from_high, from_low)
        if is_float:
            last = _at(row, plain.subtract(count, 1))
            last = arrays.expand_dims(last, type_of(last).rank) if rank else last
            result = plain.where(plain.isnan(last), plain.add(last, result), result)
        result = arrays.moveaxis(result, -1, 0) if rank and type_of(result).rank > 1 else result
        return _kept(result, axes, keepdims, rank)

    return quantile


def interpolated(x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    """np.interp: along the lines between points, whose first coordinates increase."""
    at, xs, ys = (elementwise.astype(v, f64) for v in (x, xp, fp))
    if type_of(xs).rank != 1 or type_of(ys).rank != 1:
        raise TypeMismatch("np.interp takes vectors of points", hint="flatten them")
    last = plain.subtract(dim(xs, 0), 1)
    after = search(xs, at, "right", None)
    first = plain.minimum(plain.maximum(plain.subtract(after, 1), 0), last)
    second = plain.minimum(plain.add(first, 1), last)
    x0, x1, y0, y1 = (arrays.take(v, k, axis=0) for v in (xs, ys) for k in (first, second))
    away = plain.subtract(x1, x0)
    slope = plain.divide(plain.subtract(y1, y0), plain.where(plain.equal(away, 0), 1.0, away))
    line = plain.add(plain.multiply(slope, plain.subtract(at, x0)), y0)
    line = plain.where(plain.equal(at, x0), y0, line)
    ends = [arrays.take(v, k, axis=0) for v in (xs, ys) for k in (0, last)]
    low = ends[2] if left is None else elementwise.astype(left, f64)
    high = ends[3] if right is None else elementwise.astype(right, f64)
    line = plain.where(plain.less(at, ends[0]), low, plain.where(plain.greater(at, ends[1]), high, line))
    return plain.where(plain.isnan(at), at, line)


# -- sets --------------------------------------------------------------------------------------------------


def is_in(element: Any, test: Any, invert: bool) -> Any:
    """np.isin."""
    found = plain.any(plain.equal(arrays.expand_dims(as_operand(element), -1), flattened(test)), axis=-1)
    return plain.logical_not(found) if invert else found


def unique(x: Any) -> Any:
    return selecting.unique(x, False, False, False, None, True)


def union(ar1: Any, ar2: Any) -> Any:
    """np.union1d."""
    return unique(arrays.concat([flattened(ar1), flattened(ar2)]))


def common(ar1: Any, ar2: Any) -> Any:
    """np.intersect1d."""
    first, second = (unique(v) for v in same_dtype(ar1, ar2))
    return selecting.picked(first, is_in(first, second, False), 0)


def difference(ar1: Any, ar2: Any) -> Any:
    """np.setdiff1d."""
    first = unique(ar1)
    return selecting.picked(first, is_in(first, ar2, True), 0)


# -- pieces ------------------------------------------------------------------------------------------------


def unravel(indices: Any, shape: Any) -> tuple[Any, ...]:
    """np.unravel_index: numbers of elements as indices, one for each axis."""
    lengths = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    which = convert(integers(indices, "the indices of np.unravel_index"), i64)
    size = along_axes.product(lengths)
    inside = plain.logical_and(plain.greater_equal(which, 0), plain.less(which, size))
    _require(inside, "an index of np.unravel_index is out of bounds")
    return tuple(selecting.unraveled(which, lengths))


def select(conditions: Any, choices: Any, default: Any) -> Any:
    """np.select: the first choice whose condition is true."""
    if len(conditions) != len(choices) or not len(conditions):
        raise TypeMismatch("np.select takes as many choices as conditions", hint="list one for each")
    *made, rest = same_dtype(*choices, default)
    for condition, choice in zip(reversed(list(conditions)), reversed(made), strict=True):
        if _kind(condition) != "bool":
            raise TypeMismatch("the conditions of np.select are booleans", hint="compare: x != 0")
        rest = plain.where(condition, choice, rest)
    return rest


def polynomial(p: Any, x: Any) -> Any:
    """np.polyval: coefficients of the highest power first."""
    coefficients = p if isinstance(p, (list, tuple)) else arrays.unstack(as_operand(p))
    value: Any = elementwise.positive(plain.multiply(x, 0)) if len(coefficients) == 0 else None
    for c in coefficients:
        value = plain.add(plain.multiply(creation.zeros_like(x) if value is None else value, x), c)
    return value


def area(y: Any, x: Any, dx: Any, axis: Any) -> Any:
    """np.trapezoid."""
    value = as_operand(y)
    at = some_axes(axis, type_of(value).rank, "np.trapezoid")[0]
    later, earlier = arrays.slice_between(value, 1, None, axis=at), arrays.slice_between(value, None, -1, axis=at)
    if x is not None:
        points = as_operand(x)
        if type_of(points).rank != 1:
            raise CaptureError("np.trapezoid takes a vector of points", hint="call it for each row")
        dx = _steps(points)
        after = type_of(value).rank - 1 - at
        dx = arrays.expand_dims(dx, tuple(range(1, 1 + after))) if after else dx
    return along_axes.sum(plain.divide(plain.multiply(dx, plain.add(later, earlier)), 2.0), axis=at)


def without_nan(function: Callable[..., Any], instead: float) -> Callable[..., Any]:
    """np.nansum and its kin: nan counts as the neutral element."""

    def reduce(a: Any, axis: Any, keepdims: bool) -> Any:
        if _kind(a) == "bool" and instead not in (0, 1):
            return (plain.any if instead < 0 else plain.all)(a, axis=axis, keepdims=keepdims)
        value = plain.where(plain.isnan(a), instead, a) if _kind(a) == "float" else as_operand(a)
        result = function(value, axis=axis, keepdims=keepdims)
        if instead in (0, 1) or _kind(a) != "float":
            return result
        none = plain.all(plain.isnan(a), axis=axis, keepdims=keepdims)
        return plain.where(none, np.nan, result)

    return reduce


def nan_mean(a: Any, axis: Any, keepdims: bool) -> Any:
    """np.nanmean."""
    if _kind(a) != "float":
        return along_axes.mean(a, axis=axis, keepdims=keepdims)
    known = plain.logical_not(plain.isnan(a))
    total = along_axes.sum(plain.where(known, a, 0), axis=axis, keepdims=keepdims)
    count = along_axes.sum(known, axis=axis, keepdims=keepdims)
    return plain.divide(total, elementwise.astype(count, type_of(total).dtype))


def nan_to_number(x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    """np.nan_to_num."""
    value = as_operand(x)
    if type_of(value).dtype.kind != "float":
        return value
    limits: Any = np.finfo(type_of(value).dtype.name.replace("f", "float"))
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    value = plain.where(plain.isnan(value), nan, value)
    value = plain.where(plain.equal(value, np.inf), high, value)
    return plain.where(plain.equal(value, -np.inf), low, value)
