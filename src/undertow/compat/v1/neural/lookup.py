"""Rows of tables and best classes: `tf.nn.embedding_lookup`, `top_k`, `in_top_k`."""

from __future__ import annotations

from typing import Any, NamedTuple

from undertow.compat.v1.array import concat, gather
from undertow.compat.v1.graphs.late import boundaries
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import apply, as_tensor, named, wrap, writing
from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions

__all__ = ["embedding_lookup", "in_top_k", "top_k"]


class TopK(NamedTuple):
    """What `tf.nn.top_k` returns."""

    values: Any
    indices: Any


def embedding_lookup(
    params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None, validate_indices: bool = True,
    max_norm: float | None = None,
) -> Any:  # fmt: skip
    """The rows of a table at these indices; of several tables, one row of each after the other, or by "div"."""
    tables = list(params) if isinstance(params, (list, tuple)) else [params]
    with writing(*tables, ids):
        places: Any = as_tensor(ids)
        if len(tables) > 1:
            count = len(tables)
            sizes: list[Any] = [as_tensor(table).type.shape[0] for table in tables]
            if any(size is None for size in sizes):
                raise TypeMismatch("the lengths of the tables must be known", here(), hint="give the variables shapes")
            if partition_strategy == "mod":  # row i is row i // count of table i % count
                starts, total = [], 0
                for size in sizes:
                    starts.append(total)
                    total += size
                first = gather(wrap(functions.astype(starts, places.dtype)), places % count)
                places = wrap(first + places // count)
            params = concat(tables, 0)
        rows = gather(params if len(tables) > 1 else tables[0], places)
        if max_norm is not None:
            length = functions.sqrt(functions.sum(functions.square(rows), axis=-1, keepdims=True))
            rows = wrap(rows * (max_norm / functions.maximum(length, max_norm)))
        return named(wrap(rows), name)


def top_k(input: Any, k: int = 1, sorted: bool = True, name: str | None = None) -> TopK:
    """The k largest elements of the last axis, in order, and their places. Of equal ones the first come first."""

    def largest(x: Any) -> Any:
        places = functions.slice_between(functions.argsort(x, axis=-1, descending=True), None, k, axis=-1)
        return [functions.take_along_axis(x, places, axis=-1), functions.astype(places, "i32")]

    return TopK(*apply(largest, [input], name))


def in_top_k(predictions: Any, targets: Any, k: int, name: str | None = None) -> Any:
    """Is the prediction of each row's target among the k largest of the row?"""
    with writing(predictions, targets):
        scores, classes = as_tensor(predictions), as_tensor(targets)
        own = functions.take_along_axis(scores, functions.expand_dims(classes, axis=-1), axis=-1)
        better = functions.sum(functions.astype(functions.greater(scores, own), "i32"), axis=-1)
        is_finite = functions.isfinite(functions.squeeze(own, axis=-1))
        return named(wrap(functions.logical_and(functions.less(better, k), is_finite)), name)


boundaries(globals(), __all__)
