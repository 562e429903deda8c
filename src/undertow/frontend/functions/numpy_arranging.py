"""NumPy's functions that arrange: joining, splitting, padding, repeating, diagonals, grids."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation, elementwise, plain, selecting
from undertow.frontend.functions import reduction as along_axes
from undertow.frontend.functions.reduction import product
from undertow.frontend.values.operands import (
    along,
    as_operand,
    dim,
    dims,
    integers,
    is_static_int,
    one_axis,
    static_int,
    type_of,
)
from undertow.frontend.values.traced import NUMPY, Traced, effect
from undertow.types import said


def flattened(x: Any) -> Any:
    return arrays.reshape(x, (-1,))


def rank_of(x: Any) -> int:
    return type_of(as_operand(x)).rank


def at_least(x: Any, rank: int) -> Any:
    value = as_operand(x)
    for _ in range(rank - rank_of(value)):
        value = arrays.expand_dims(value, 0)
    return value


def listed(values: Any) -> list[Any]:
    return list(values if isinstance(values, (list, tuple)) else arrays.unstack(as_operand(values)))


# -- joining and splitting ---------------------------------------------------------------------------------


def deep(x: Any) -> Any:
    """np.atleast_3d: a vector is the middle axis."""
    value = at_least(x, 2)
    return arrays.expand_dims(value, 2) if rank_of(value) == 2 else value


def in_depth(arrays_given: Any) -> Any:
    """np.dstack."""
    return arrays.concat([deep(v) for v in listed(arrays_given)], axis=2)


def block(given: Any) -> Any:
    """np.block: nested lists are joined along the last axes. (Recursion is as deep as an array has axes.)"""
    depth, inner = 0, given
    while isinstance(inner, list):
        if not inner:
            raise TypeMismatch("np.block takes no empty lists", hint="leave it out")
        depth, inner = depth + 1, inner[0]
    leaves, lists = [], [given]
    while lists:
        item = lists.pop()
        lists += item if isinstance(item, list) else []
        leaves += [] if isinstance(item, list) else [item]
    rank = max(depth, *map(rank_of, leaves))

    def join(part: Any, level: int) -> Any:
        if isinstance(part, list) != (level < depth):
            raise TypeMismatch("the lists of np.block have different depths", hint="nest all of them alike")
        if level == depth:
            return at_least(part, rank)
        return arrays.concat([join(p, level + 1) for p in part], axis=level - depth)

    return join(given, 0)


def array_split(ary: Any, parts: Any, axis: Any) -> list[Any]:
    """np.array_split: parts may differ in length by one."""
    value, at = along(ary, axis, "np.array_split")
    length = dim(value, at)
    if isinstance(parts, (list, tuple, np.ndarray)):
        return arrays.split(value, list(parts), axis=at)
    count = static_int(parts, "the number of parts")
    if count < 1:
        raise TypeMismatch(f"an array cannot be split into {count} parts", hint="the number must be positive")
    least, more = plain.floor_divide(length, count), plain.remainder(length, count)
    cuts = [plain.add(plain.multiply(least, k), plain.minimum(more, k)) for k in range(count + 1)]
    if is_static_int(length):
        cuts = [int(cut) for cut in cuts]
    return [arrays.slice_between(value, a, b, axis=at) for a, b in pairwise(cuts)]


def split_along(axis: int, name: str) -> Any:
    """np.hsplit, np.vsplit, np.dsplit."""

    def split(ary: Any, parts: Any) -> list[Any]:
        rank = rank_of(ary)
        if rank < axis + 1 and not (axis == 1 and rank == 1):
            raise TypeMismatch(f"{name} does not split {said(type_of(as_operand(ary)))}", hint="it has too few axes")
        cuts = list(parts) if isinstance(parts, np.ndarray) else parts
        return arrays.split(ary, cuts, axis=min(axis, rank - 1))

    return split


# -- padding and repeating ---------------------------------------------------------------------------------


def _reflected(places: Any, length: Any) -> Any:
    period = plain.maximum(plain.multiply(plain.subtract(length, 1), 2), 1)
    inside = plain.remainder(places, period)
    return plain.where(plain.less(inside, length), inside, plain.subtract(period, inside))


def _mirrored(places: Any, length: Any) -> Any:
    period = plain.maximum(plain.multiply(length, 2), 1)
    inside = plain.remainder(places, period)
    return plain.where(plain.less(inside, length), inside, plain.subtract(plain.subtract(period, 1), inside))


# Where the elements beside an array come from: (places before, in and after it, its length) -> places in it.
_BESIDE: dict[str, Any] = {
    "edge": lambda places, length: plain.minimum(plain.maximum(places, 0), plain.subtract(length, 1)),
    "wrap": lambda places, length: plain.remainder(places, plain.maximum(length, 1)),
    "reflect": _reflected,
    "symmetric": _mirrored,
}


def padded(array: Any, pad_width: Any, mode: Any, constant_values: Any) -> Any:
    """np.pad, by widths that are known at capture."""
    value = as_operand(array)
    rank = type_of(value).rank
    try:
        widths = np.broadcast_to(np.asarray(pad_width), (rank, 2))
    except (ValueError, TypeError, CaptureError):
        widths = np.zeros(0)
    if widths.dtype.kind not in "iu" or np.any(widths < 0):
        raise CaptureError(
            "np.pad by these widths cannot be captured", hint="use integers of 0 or more, known at capture"
        )
    if mode != "constant" and (not isinstance(mode, str) or mode not in _BESIDE):
        raise CaptureError(f"np.pad with mode={brief(mode)} cannot be captured", hint=f"there are {', '.join(_BESIDE)}")
    if mode == "constant" and rank_of(constant_values):
        raise CaptureError("np.pad with different values cannot be captured", hint="pad one axis after the other")
    for axis, (before, after) in enumerate(widths.tolist()):
        length = dim(value, axis)
        if not before and not after:
            continue
        if mode == "constant":
            fill = elementwise.astype(constant_values, type_of(value).dtype)
            sizes = dims(value)
            sides = [creation.full((*sizes[:axis], n, *sizes[axis + 1 :]), fill) for n in (before, after)]
            value = arrays.concat([sides[0], value, sides[1]], axis=axis)
        else:
            places = creation.arange(-before, plain.add(length, after))
            value = arrays.take(value, _BESIDE[mode](places, length), axis=axis)
    return value


def tiled(a: Any, reps: Any) -> Any:
    """np.tile: how often may be traced."""
    given = reps if isinstance(reps, (tuple, list, range)) else [reps]
    if isinstance(reps, np.ndarray) and reps.ndim:
        given = reps.tolist()
    times = [int(r) if is_static_int(r) else integers(r, "how often np.tile repeats") for r in given]
    if any(type_of(as_operand(r)).rank for r in times) or any(isinstance(r, int) and r < 0 for r in times):
        raise TypeMismatch("np.tile repeats a number of times for each axis", hint="use integers of 0 or more")
    value = at_least(a, len(times))
    for axis, count in enumerate(times, rank_of(value) - len(times)):
        if is_static_int(count) and count == 1:
            continue
        if isinstance(count, Traced):
            text = "negative dimensions are not allowed"
            effect("raise", [plain.greater_equal(count, 0)], template=text, error="ValueError")
        length = dim(value, axis)
        places = creation.arange(plain.multiply(length, count))
        value = arrays.take(value, plain.remainder(places, plain.maximum(length, 1)), axis=axis)
    return value


def resized(a: Any, shape: Any) -> Any:
    """np.resize: the elements again and again."""
    flat = flattened(a)
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    places = plain.remainder(creation.arange(product(tuple(sizes))), plain.maximum(dim(flat, 0), 1))
    return arrays.reshape(arrays.take(flat, places, axis=0), tuple(sizes))


def turned(m: Any, k: Any, axes: Any) -> Any:
    """np.rot90."""
    value, times = as_operand(m), static_int(k, "how often np.rot90 turns") % 4
    first, second = (one_axis(a, type_of(value).rank, "np.rot90") for a in axes)
    if first == second:
        raise TypeMismatch("np.rot90 turns in a plane of two axes", hint="name two different axes")
    if times == 2:
        return arrays.flip(value, (first, second))
    order = list(range(type_of(value).rank))
    order[first], order[second] = order[second], order[first]
    if times == 1:
        return arrays.permute_dims(arrays.flip(value, second), order)
    return arrays.flip(arrays.permute_dims(value, order), second) if times else value


def deleted(arr: Any, obj: Any, axis: Any) -> Any:
    """np.delete: by a number, a slice, numbers or a mask."""
    value = flattened(arr) if axis is None else as_operand(arr)
    value, at = along(value, 0 if axis is None else axis, "np.delete")
    length = dim(value, at)
    if not isinstance(obj, (slice, Traced)) and is_static_int(length):
        try:
            return arrays.take(value, np.delete(np.arange(length), obj), axis=at)
        except (IndexError, ValueError) as fault:
            raise TypeMismatch(f"np.delete: {fault}", hint="check the index") from None
    numbers = creation.arange(length)
    if isinstance(obj, slice):
        gone = plain.logical_not(plain.equal(numbers, numbers))
        from_front = arrays.slice_between(numbers, obj.start, obj.stop, step=1 if obj.step is None else obj.step)
    else:
        which = as_operand(obj)
        if type_of(which).dtype.kind == "bool":
            return selecting.picked(value, plain.logical_not(which), at)
        from_front = integers(which, "what np.delete deletes")
        if not type_of(from_front).rank:
            one = arrays.take(numbers, from_front, axis=0)  # from the front, and in range
            rest = creation.arange(plain.subtract(length, 1))
            return arrays.take(value, plain.where(plain.less(rest, one), rest, plain.add(rest, 1)), axis=at)
    counts = arrays.scatter_add(creation.full((length,), np.int64(0)), flattened(from_front), 1)
    gone = plain.not_equal(counts, 0)
    return selecting.picked(value, plain.logical_not(gone), at)


def inserted(arr: Any, obj: Any, values: Any, axis: Any) -> Any:
    """np.insert: before a number, or before several that are known at capture."""
    value = flattened(arr) if axis is None else as_operand(arr)
    value, at = along(value, 0 if axis is None else axis, "np.insert")
    rank, length = type_of(value).rank, dim(value, at)
    added = at_least(elementwise.astype(values, type_of(value).dtype), rank)
    if rank_of(added) > rank:
        raise TypeMismatch(f"{said(type_of(added))} cannot be inserted into {said(type_of(value))}", hint="flatten it")
    if isinstance(obj, slice) or (not isinstance(obj, Traced) and not is_static_int(obj)) or rank_of(obj):
        if isinstance(obj, Traced) or not is_static_int(length):
            raise CaptureError("np.insert at several run-time places cannot be captured", hint="insert one by one")
        # Where each element of the result comes from: new ones are numbered after the old.
        count = np.insert(np.zeros(length), obj, 0).size - length
        places = np.insert(np.arange(length), obj, length + np.arange(count))
    else:
        added = arrays.moveaxis(added, 0, at) if rank > 1 else added
        count, places = dim(added, at), None
    sizes = dims(value)
    added = arrays.broadcast_to(added, (*sizes[:at], count, *sizes[at + 1 :]))
    if places is not None:
        return arrays.take(arrays.concat([value, added], axis=at), places, axis=at)
    cut = plain.where(plain.less(obj, 0), plain.add(obj, length), obj)
    inside = plain.logical_and(plain.greater_equal(cut, 0), plain.less_equal(cut, length))
    if not isinstance(inside, Traced):
        if not inside:
            raise TypeMismatch(f"index {obj} is out of range for axis {at} of length {length}", kind=IndexError)
        cut = int(cut)
    else:
        text = f"index {{}} is out of bounds for axis {at} with size {{}}"
        effect("raise", [inside, *map(as_operand, (obj, length))], template=text, error="IndexError")
    before, after = (arrays.slice_between(value, a, b, axis=at) for a, b in ((None, cut), (cut, None)))
    return arrays.concat([before, added, after], axis=at)


# -- grids and diagonals -----------------------------------------------------------------------------------


def grids(*given: Any) -> tuple[Any, ...]:
    """np.meshgrid."""
    *xi, sparse, indexing = given
    if indexing not in ("xy", "ij"):
        raise TypeMismatch("np.meshgrid takes indexing='xy' or 'ij'", hint="leave it out for 'xy'")
    vectors = [flattened(x) for x in xi]
    count = len(vectors)
    order = [1, 0, *range(2, count)] if indexing == "xy" and count > 1 else list(range(count))
    lengths: list[Any] = [None] * count
    for axis, vector in zip(order, vectors, strict=True):
        lengths[axis] = dim(vector, 0)
    shaped = [
        arrays.reshape(v, tuple(lengths[axis] if k == axis else 1 for k in range(count)))
        for axis, v in zip(order, vectors, strict=True)
    ]
    return tuple(shaped if sparse else (arrays.broadcast_to(v, tuple(lengths)) for v in shaped))


def broadcast_arrays(*given: Any) -> tuple[Any, ...]:
    """np.broadcast_arrays."""
    values = [as_operand(v) for v in given]
    together: Any = True
    for value in values:
        together = plain.logical_and(together, plain.equal(value, value))
    return tuple(arrays.broadcast_to(value, dims(as_operand(together))) for value in values)


def triangle(n: Any, m: Any, k: Any, dtype: Any) -> Any:
    """np.tri: ones up to the k-th diagonal."""
    sizes = [integers(size, "a size of np.tri") for size in (n, n if m is None else m)]
    rows, columns = (creation.arange(size) for size in sizes)
    below = plain.less_equal(columns, plain.add(arrays.expand_dims(rows, 1), integers(k, "a diagonal")))
    return elementwise.astype(below, np.float64 if dtype is None else dtype)


def triangle_indices(is_upper: bool) -> Any:
    """np.tril_indices, np.triu_indices."""

    def indices(n: Any, k: Any, m: Any) -> tuple[Any, ...]:
        below = triangle(n, m, plain.subtract(k, 1) if is_upper else k, bool)
        return selecting.nonzero(plain.logical_not(below) if is_upper else below)

    return indices


def diagonal(a: Any, offset: Any, axis1: Any, axis2: Any) -> Any:
    """np.diagonal: the last axis goes along it."""
    value = as_operand(a)
    rank = type_of(value).rank
    if rank < 2:
        raise TypeMismatch(f"{said(type_of(value))} has no diagonal", hint="a matrix has at least two axes")
    first, second = one_axis(axis1, rank, "np.diagonal"), one_axis(axis2, rank, "np.diagonal")
    if first == second:
        raise TypeMismatch("a diagonal goes along two different axes", hint="name two of them")
    k = static_int(offset, "the offset of a diagonal")
    value = arrays.permute_dims(value, (*(x for x in range(rank) if x not in (first, second)), first, second))
    *before, rows, columns = dims(value)
    down, right = max(-k, 0), max(k, 0)
    count = plain.maximum(plain.minimum(plain.subtract(rows, down), plain.subtract(columns, right)), 0)
    steps = creation.arange(count)
    places = plain.add(plain.multiply(plain.add(steps, down), columns), plain.add(steps, right))
    return arrays.take(arrays.reshape(value, (*before, product((rows, columns)))), places, axis=rank - 2)


def diag(v: Any, k: Any) -> Any:
    """np.diag: the diagonal of a matrix, or the matrix of a diagonal."""
    rank = rank_of(v)
    if rank == 2:
        return diagonal(v, k, 0, 1)
    if rank != 1:
        raise TypeMismatch(f"np.diag takes a vector or a matrix, not {said(type_of(as_operand(v)))}", hint="reshape it")
    offset = static_int(k, "the offset of np.diag")
    value = as_operand(v)
    numbers = creation.arange(plain.add(dim(value, 0), abs(offset)))
    rows = arrays.expand_dims(numbers, 1)
    element = plain.add(plain.minimum(rows, numbers), 1)  # after a zero, for all that is not on the diagonal
    places = plain.where(plain.equal(plain.add(rows, offset), numbers), element, 0)
    zero = creation.zeros(1, dtype=type_of(value).dtype)
    return arrays.take(arrays.concat([zero, value]), places, axis=0)


# -- products ----------------------------------------------------------------------------------------------


def kron(a: Any, b: Any) -> Any:
    """np.kron: every element of a times all of b."""
    rank = max(rank_of(a), rank_of(b))
    left, right = at_least(a, rank), at_least(b, rank)
    pairs = list(zip(dims(left), dims(right), strict=True))
    x = arrays.reshape(left, tuple(n for p in pairs for n in (p[0], 1)))
    y = arrays.reshape(right, tuple(n for p in pairs for n in (1, p[1])))
    return arrays.reshape(NUMPY[np.multiply](x, y), tuple(product(p) for p in pairs))


def cross(a: Any, b: Any, axisa: Any, axisb: Any, axisc: Any, axis: Any) -> Any:
    """np.cross, of vectors of three."""
    at = [axisa, axisb, axisc] if axis is None else [axis] * 3
    parts = []
    for value, where in ((a, at[0]), (b, at[1])):
        whole, k = along(value, where, "np.cross")
        length = dim(whole, k)
        if isinstance(length, Traced):
            text = "np.cross takes vectors of 3 elements, not {}"
            effect("raise", [plain.equal(length, 3), length], template=text, error="ValueError")
        elif length != 3:
            raise CaptureError(f"np.cross of {said(type_of(whole))} cannot be captured", hint="vectors have 3 elements")
        parts.append([arrays.take(whole, j, axis=k) for j in range(3)])
    (x, y, z), (u, v, w) = parts
    multiply, subtract = plain.multiply, plain.subtract
    made = [(y, w, z, v), (z, u, x, w), (x, v, y, u)]
    rows = arrays.stack([subtract(multiply(p, q), multiply(r, s)) for p, q, r, s in made], axis=-1)
    return arrays.moveaxis(rows, -1, at[2])


def convolved(a: Any, v: Any, mode: Any) -> Any:
    """np.convolve: each place is the sum of a window times the shorter one, backwards."""
    left, right = as_operand(a), as_operand(v)
    if "bool" in (type_of(left).dtype.kind, type_of(right).dtype.kind):
        raise TypeMismatch("np.convolve of booleans cannot be captured", hint="convert them: x.astype(np.int64)")
    if type_of(left).rank > 1 or type_of(right).rank > 1 or mode not in ("full", "same", "valid"):
        raise CaptureError("np.convolve takes two vectors, and mode='full', 'same' or 'valid'", hint="flatten them")
    left, right = flattened(left), flattened(right)
    n, m = dim(left, 0), dim(right, 0)
    known = [size for size in (n, m) if is_static_int(size)]
    if not known or 0 in known:
        raise CaptureError(
            "np.convolve needs elements, and one vector whose length is known at capture", hint="annotate it: ut.f64[3]"
        )
    if not is_static_int(m) or (is_static_int(n) and n < m):
        left, right, n, m = right, left, m, n
    padded_left = padded(left, m - 1, "constant", 0)
    places = plain.add(arrays.expand_dims(creation.arange(plain.add(n, m - 1)), 1), np.arange(m)[::-1])
    inside = plain.logical_and(plain.greater_equal(places, m - 1), plain.less(places, plain.add(n, m - 1)))
    terms = NUMPY[np.multiply](arrays.take(padded_left, places, axis=0), right)
    whole = along_axes.sum(
        plain.where(inside, terms, type_of(terms).dtype.numpy.type(0)), axis=1, dtype=type_of(terms).dtype
    )
    short, long = plain.minimum(n, m), plain.maximum(n, m)
    if mode == "full":
        return whole
    if mode == "same":
        start = plain.floor_divide(plain.subtract(short, 1), 2)
        return arrays.slice_between(whole, *_bounds(start, plain.add(start, long)))
    return arrays.slice_between(whole, *_bounds(plain.subtract(short, 1), long))


def _bounds(*cuts: Any) -> tuple[Any, ...]:
    return tuple(cut if isinstance(cut, Traced) else int(cut) for cut in cuts)
