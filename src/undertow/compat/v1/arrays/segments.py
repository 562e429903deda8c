"""Sums, means and extremes of segments: rows that have the same number. `tf.segment_sum`, `tf.unsorted_segment_sum`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Tensor, apply, as_tensor, is_tensor_like, named, wrap, writing
from undertow.compat.v1.values.static import constant_value
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.types import said

__all__ = [
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum", "sparse_segment_mean",
    "sparse_segment_sum", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_sum",
]  # fmt: skip


def _segments(data: Any, segment_ids: Any, count: Any, what: str) -> tuple[Tensor, Tensor, Any]:
    """Rows, their segments as one vector, and how many segments there are."""
    rows, numbers = as_tensor(data), as_tensor(segment_ids)
    rank = numbers.type.rank
    if numbers.dtype.kind != "int" or rank > rows.type.rank or not rank or (count is None and rank != 1):
        raise TypeMismatch(
            f"{what} takes a number of its segment for each row, not {said(numbers.type)} for {said(rows.type)}",
            here(),
            hint="segment_ids are integers, as many as data has rows",
        )
    if count is None:
        known = constant_value(numbers)
        if known is not None:
            count = int(known.max()) + 1 if known.size else 0
        else:
            count = functions.max(numbers) + 1
    elif is_tensor_like(count):
        known = constant_value(as_tensor(count))
        count = as_tensor(count) if known is None else int(known)
    sizes = functions.shape(rows)[rank:]
    return wrap(functions.reshape(rows, (-1, *sizes))), wrap(functions.reshape(numbers, (-1,))), count


def _sums(rows: Any, numbers: Any, count: Any) -> Any:
    start = functions.full((count, *functions.shape(rows)[1:]), rows.dtype.numpy.type(0))
    return functions.scatter_add(start, numbers, rows)


def _mean(rows: Any, numbers: Any, count: Any) -> Any:
    ones = wrap(functions.full((functions.shape(rows)[0],), rows.dtype.numpy.type(1)))
    sizes = functions.maximum(_sums(ones, numbers, count), 1)
    return _sums(rows, numbers, count) / functions.reshape(sizes, (-1, *(1,) * (rows.type.rank - 1)))


def _alone(reduce: Callable[..., Any], empty: Callable[[Any], Any]) -> Callable[..., Any]:
    """A reduction of each segment where all other rows are replaced by what changes nothing."""

    def computed(rows: Any, numbers: Any, count: Any) -> Any:
        each = functions.arange(0, count, 1, dtype=numbers.dtype)
        own = functions.equal(functions.expand_dims(each, axis=1), functions.expand_dims(numbers, axis=0))
        own = functions.reshape(own, (*functions.shape(own), *(1,) * (rows.type.rank - 1)))
        spread = functions.where(own, functions.expand_dims(rows, axis=0), empty(rows.dtype.numpy))
        return reduce(spread, axis=1)

    return computed


def _lowest(dtype: Any) -> Any:
    return np.asarray(np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min, dtype)[()]


def _highest(dtype: Any) -> Any:
    return np.asarray(np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max, dtype)[()]


_max = _alone(functions.max, _lowest)
_min = _alone(functions.min, _highest)
_prod = _alone(lambda x, axis: functions.prod(x, axis=axis), lambda dtype: dtype.type(1))


def _empty_is_zero(compute: Callable[..., Any]) -> Callable[..., Any]:
    """In sorted segments, one without rows is 0."""

    def computed(rows: Any, numbers: Any, count: Any) -> Any:
        ones = wrap(functions.full((functions.shape(rows)[0],), np.int64(1)))
        has = functions.reshape(functions.greater(_sums(ones, numbers, count), 0), (-1, *(1,) * (rows.type.rank - 1)))
        return functions.where(has, compute(rows, numbers, count), 0)

    return computed


def _sorted(what: str, compute: Callable[..., Any], meaning: str) -> Any:
    def segments(data: Any, segment_ids: Any, name: str | None = None) -> Any:
        with writing(data, segment_ids):
            return named(wrap(compute(*_segments(data, segment_ids, None, f"tf.segment_{what}"))), name)

    segments.__doc__ = f"{meaning} of the rows of each segment; the segments are numbered from 0 on."
    return segments


segment_sum = _sorted("sum", _sums, "The sum")
segment_mean = _sorted("mean", _mean, "The mean")
segment_max = _sorted("max", _empty_is_zero(_max), "The largest")
segment_min = _sorted("min", _empty_is_zero(_min), "The smallest")
segment_prod = _sorted("prod", _empty_is_zero(_prod), "The product")


def _unsorted(what: str, compute: Callable[..., Any], meaning: str) -> Any:
    def segments(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Any:
        with writing(data, segment_ids, num_segments):
            return named(
                wrap(compute(*_segments(data, segment_ids, num_segments, f"tf.unsorted_segment_{what}"))), name
            )

    segments.__doc__ = f"{meaning} of the rows of each of num_segments segments, in any order."
    return segments


unsorted_segment_sum = _unsorted("sum", _sums, "The sum")
unsorted_segment_max = _unsorted("max", _max, "The largest")
unsorted_segment_min = _unsorted("min", _min, "The smallest")


def _picked(data: Any, indices: Any) -> Any:
    return apply(lambda x, i: functions.take(x, i, axis=0), [as_tensor(data), as_tensor(indices)])


def sparse_segment_sum(data: Any, indices: Any, segment_ids: Any, name: str | None = None) -> Any:
    """The segment sums of some rows of data."""
    return segment_sum(_picked(data, indices), segment_ids, name)


def sparse_segment_mean(data: Any, indices: Any, segment_ids: Any, name: str | None = None) -> Any:
    """The segment means of some rows of data."""
    return segment_mean(_picked(data, indices), segment_ids, name)


boundaries(globals(), __all__)
