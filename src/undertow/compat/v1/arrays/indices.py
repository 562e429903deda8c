"""Picking and placing by indices: `tf.gather_nd`, `tf.scatter_nd`, `tf.dynamic_partition`, `tf.unique`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from undertow.compat.v1.graphs.dtypes import dtype_of
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable
from undertow.compat.v1.tensor import Tensor, apply, as_tensor, is_tensor_like, named, wrap, writing
from undertow.compat.v1.values.static import constant_value, known_sizes
from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.functions import selecting
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.traced import emit
from undertow.types import i32, i64, said

__all__ = [
    "boolean_mask", "dynamic_partition", "dynamic_stitch", "gather_nd", "invert_permutation", "scatter_add",
    "scatter_div", "scatter_mul", "scatter_nd", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update",
    "scatter_sub", "scatter_update", "sequence_mask", "setdiff1d", "unique", "unique_with_counts",
]  # fmt: skip


# -- n indices at once -------------------------------------------------------------------------------------


def _flat_places(indices: Any, sizes: Sequence[Any]) -> Any:
    """Rows of n indices into the first n axes as indices into those axes as one; of rows that are outside, none."""
    places: Any = 0
    inside: Any = True
    for k, size in enumerate(sizes):
        index = functions.astype(getitem(indices, (Ellipsis, k)), i64)
        places = index if k == 0 else places * size + index
        fits = functions.logical_and(functions.greater_equal(index, 0), functions.less(index, size))
        inside = fits if k == 0 else functions.logical_and(inside, fits)
    # An index that is too large in its own axis would be one of another row: it becomes one beyond all rows.
    return functions.where(inside, places, _product(sizes)) if len(sizes) else functions.zeros((), dtype=i64)


def _depth(indices: Tensor, what: str) -> int:
    """How many indices each row has."""
    depth = indices.type.shape[-1] if indices.type.rank else None
    if not isinstance(depth, int) or indices.dtype.kind != "int":
        raise TypeMismatch(
            f"the indices of {what} are {said(indices.type)}", here(), hint="the last axis holds rows of n integers"
        )
    return depth


def _product(sizes: Sequence[Any]) -> Any:
    total: Any = 1
    for size in sizes:
        total = total * size
    return total


def gather_nd(params: Any, indices: Any, name: str | None = None) -> Any:
    """The elements or slices at rows of indices: `gather_nd(x, [[1, 2]])[0]` is `x[1, 2]`."""
    with writing(params, indices):
        source, places = as_tensor(params), as_tensor(indices)
        depth = _depth(places, "tf.gather_nd")
        if depth > source.type.rank:
            raise TypeMismatch(
                f"{depth} indices are too many for {said(source.type)}", here(), hint="give at most one for each axis"
            )
        sizes = functions.shape(source)
        rows = functions.reshape(source, (_product(sizes[:depth]), *sizes[depth:]))
        return named(wrap(_taken(rows, _flat_places(places, sizes[:depth]))), name)


def _taken(rows: Any, places: Any) -> Any:
    return functions.take(rows, places, axis=0) if places.type.rank else getitem(rows, places)


def _as_rows(places: Any, updates: Any, sizes: Sequence[Any]) -> tuple[Any, Any]:
    """Places as a vector, and updates with one leading axis."""
    return functions.reshape(places, (-1,)), functions.reshape(updates, (-1, *sizes))


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Any:
    """Zeros of this shape, with updates added at rows of indices."""
    with writing(indices, updates, shape):
        places, values = as_tensor(indices), as_tensor(updates)
        depth = _depth(places, "tf.scatter_nd")
        sizes: list[Any] = known_sizes(shape)
        if None in sizes:
            sizes = [getitem(as_tensor(shape), k) if size is None else size for k, size in enumerate(sizes)]
        zeros = functions.full((_product(sizes[:depth]), *sizes[depth:]), values.dtype.numpy.type(0))
        where, rows = _as_rows(_flat_places(places, sizes[:depth]), values, sizes[depth:])
        added = functions.scatter_add(zeros, where, rows)
        return named(wrap(functions.reshape(added, tuple(sizes))), name)


# -- variables ---------------------------------------------------------------------------------------------


def _variable(ref: Any, what: str) -> Variable:
    if not isinstance(ref, Variable):
        raise TypeMismatch(f"{what} changes a variable, not {brief(ref)}", here(), hint="use tf.Variable")
    return ref


def _replaced(old: Any, places: Any, rows: Any) -> Any:
    """Rows of a table replaced; of places named twice, the last."""
    return emit("put_rows", [old, rows, places], axis=0)[0]


def _scattered(what: str, compute: Any) -> Any:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None) -> Any:
        variable = _variable(ref, f"tf.scatter_{what}")
        with writing(variable, indices, updates):
            old, places = as_tensor(variable), as_tensor(indices)
            rows = as_tensor(updates, None if is_tensor_like(updates) else variable.dtype)
            sizes = functions.shape(old)[1:]
            rows = functions.broadcast_to(rows, (*functions.shape(places), *sizes))
            where, values = _as_rows(places, rows, sizes)
            return variable.assign(wrap(compute(old, where, values)), name=name)

    scatter.__doc__ = f"{_MEANINGS[what]} Returns the new value."
    return scatter


_MEANINGS = {
    "add": "Adds to the rows of a variable at these indices; rows that are named twice get both.",
    "sub": "Subtracts from the rows of a variable at these indices.",
    "mul": "Multiplies the rows of a variable at these indices.",
    "div": "Divides the rows of a variable at these indices.",
    "update": "Replaces the rows of a variable at these indices.",
}


def _multiplied(old: Any, places: Any, rows: Any) -> Any:
    """Each row times the product of what is given for it: one update after the other would need a loop."""
    return _replaced(old, places, functions.take(old, places, axis=0) * rows)


scatter_add = _scattered("add", functions.scatter_add)
scatter_sub = _scattered("sub", lambda old, places, rows: functions.scatter_add(old, places, -rows))
scatter_mul = _scattered("mul", _multiplied)
scatter_div = _scattered("div", lambda old, places, rows: _multiplied(old, places, 1 / rows))
scatter_update = _scattered("update", _replaced)


def _nd(what: str, compute: Any) -> Any:
    def scatter(ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None) -> Any:
        variable = _variable(ref, f"tf.scatter_nd_{what}")
        with writing(variable, indices, updates):
            old, places = as_tensor(variable), as_tensor(indices)
            values = as_tensor(updates, None if is_tensor_like(updates) else variable.dtype)
            depth, sizes = _depth(places, f"tf.scatter_nd_{what}"), functions.shape(old)
            table = functions.reshape(old, (_product(sizes[:depth]), *sizes[depth:]))
            where, rows = _as_rows(_flat_places(places, sizes[:depth]), values, sizes[depth:])
            return variable.assign(wrap(functions.reshape(compute(table, where, rows), sizes)), name=name)

    scatter.__doc__ = f"{_MEANINGS[what].replace('these indices', 'these rows of indices')} Returns the new value."
    return scatter


scatter_nd_add = _nd("add", functions.scatter_add)
scatter_nd_sub = _nd("sub", lambda old, places, rows: functions.scatter_add(old, places, -rows))
scatter_nd_update = _nd("update", _replaced)


# -- masks -------------------------------------------------------------------------------------------------


def boolean_mask(tensor: Any, mask: Any, name: str | None = None, axis: int = 0) -> Any:
    """The elements where a mask is true, which covers the first axes, or those from `axis` on."""
    with writing(tensor, mask):
        value, chosen = as_tensor(tensor), as_tensor(mask)
        if chosen.dtype.kind != "bool" or not chosen.type.rank:
            raise TypeMismatch(f"{said(chosen.type)} is not a mask", here(), hint="compare: tf.boolean_mask(x, x > 0)")
        selecting.fits(value, chosen, axis)
        sizes, rank = functions.shape(value), chosen.type.rank
        if rank > 1:
            value = functions.reshape(
                value, (*sizes[:axis], _product(sizes[axis : axis + rank]), *sizes[axis + rank :])
            )
            chosen = functions.reshape(chosen, (-1,))
        return named(wrap(selecting.picked(value, chosen, axis)), name)


def sequence_mask(lengths: Any, maxlen: Any = None, dtype: Any = "bool", name: str | None = None) -> Any:
    """A row for each length, true at the places below it."""
    with writing(lengths, maxlen):
        counts: Any = as_tensor(lengths)
        width: Any = functions.max(counts) if maxlen is None else maxlen
        width = as_tensor(width) if is_tensor_like(width) else width
        places = functions.arange(0, width, 1, dtype=counts.dtype)
        mask = functions.less(places, functions.expand_dims(counts, axis=-1))
        return named(wrap(functions.astype(mask, dtype_of(dtype))), name)


# -- parts and sets ----------------------------------------------------------------------------------------


def dynamic_partition(data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> list[Any]:
    """The rows of each part, where `partitions` says to which part a row belongs."""
    with writing(data, partitions):
        parts = as_tensor(partitions)
        return [boolean_mask(data, wrap(functions.equal(parts, k))) for k in np.arange(num_partitions).tolist()]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Any:
    """Rows at their indices: the inverse of dynamic_partition. Of rows with equal indices, the last one is taken."""
    with writing(*indices, *data):
        places = [as_tensor(index) for index in indices]
        values = [as_tensor(value) for value in data]
        sizes = functions.shape(values[0])[places[0].type.rank :]
        where = functions.concat([functions.reshape(index, (-1,)) for index in places], axis=0)
        rows = functions.concat([functions.reshape(value, (-1, *sizes)) for value in values], axis=0)
        known = [constant_value(index) for index in places]
        if any(value is None for value in known):
            count = functions.max(where) + 1
        else:
            count = 1 + max((int(value.max()) for value in known if value.size), default=-1)
        zeros = functions.full((count, *sizes), values[0].dtype.numpy.type(0))
        return named(wrap(_replaced(zeros, where, rows)), name)


def invert_permutation(x: Any, name: str | None = None) -> Any:
    """Y with y[x[i]] = i."""
    return apply(lambda order: functions.astype(functions.argsort(order), order.dtype), [x], name)


class Unique(NamedTuple):
    """What `tf.unique` returns: the values in the order of their first places, and the number of each element's."""

    y: Any
    idx: Any


class UniqueWithCounts(NamedTuple):
    """What `tf.unique_with_counts` returns."""

    y: Any
    idx: Any
    count: Any


def _unique(x: Any, out_idx: Any, name: str | None) -> list[Any]:
    with writing(x):
        row = as_tensor(x)
        if row.type.rank != 1:
            raise TypeMismatch(f"tf.unique takes a vector, not {said(row.type)}", here(), hint="tf.reshape(x, [-1])")
        kind = dtype_of(out_idx)
        values, first, inverse, counts = selecting.unique(row, True, True, True, None, True)
        order = functions.argsort(first)  # the library sorts values, TensorFlow keeps the order of their first places
        rank = functions.argsort(order)
        return [
            named(wrap(functions.take(values, order, axis=0)), name),
            wrap(functions.astype(functions.take(rank, inverse, axis=0), kind)),
            wrap(functions.astype(functions.take(counts, order, axis=0), kind)),
        ]


def unique(x: Any, out_idx: Any = i32, name: str | None = None) -> Unique:
    """The different values of a vector, in the order of their first places; and for each element which it is."""
    return Unique(*_unique(x, out_idx, name)[:2])


def unique_with_counts(x: Any, out_idx: Any = i32, name: str | None = None) -> UniqueWithCounts:
    """The same, and how often each value occurs."""
    return UniqueWithCounts(*_unique(x, out_idx, name))


class ListDiff(NamedTuple):
    """What `tf.setdiff1d` returns."""

    out: Any
    idx: Any


def setdiff1d(x: Any, y: Any, index_dtype: Any = i32, name: str | None = None) -> ListDiff:
    """The elements of x that are not in y, and their places."""
    with writing(x, y):
        own, other = as_tensor(x), as_tensor(y)
        equal = functions.equal(functions.expand_dims(own, axis=1), functions.expand_dims(other, axis=0))
        kept = functions.logical_not(functions.any(equal, axis=1))
        places = functions.arange(0, functions.shape(own)[0], 1, dtype=dtype_of(index_dtype))
        return ListDiff(*(named(wrap(selecting.picked(v, kept, 0)), name) for v in (own, places)))


boundaries(globals(), __all__)
