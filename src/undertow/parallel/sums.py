"""Sums of the gradients of shards, in the order of shards.

Gradients are lists of leaves, each an array, `IndexedRows`, or None. Rows are never made dense: those of one shard are
added up where a row occurs several times, and those of all shards stand one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.frontend.values.rows import IndexedRows

Array = npt.NDArray[Any]


def weighted(leaves: Sequence[Any], weight: float, is_alone: bool) -> list[Any]:
    """The gradients of a shard times its weight, in their own memory if it can be. One that is alone stays as it is."""
    if is_alone:
        return list(leaves)
    owned: list[Any] = []
    addresses = set[int]()
    for leaf in leaves:
        if leaf is None:
            owned.append(None)
        elif isinstance(leaf, IndexedRows):
            owned.append(_coalesced(leaf, weight))
        else:
            value = np.asarray(leaf)
            address = value.__array_interface__["data"][0]
            if not (value.flags.writeable and value.flags.c_contiguous) or address in addresses or value.ndim == 0:
                value = np.array(value, order="C")  # results may be one array, or nobody's to write to
            addresses.add(address)
            owned.append(value)
    for value in owned:
        if isinstance(value, np.ndarray) and weight != 1:
            np.multiply(value, value.dtype.type(weight), out=value)
    return owned


def _coalesced(gradient: IndexedRows, weight: float) -> IndexedRows:
    """Each row once, in the order of their numbers."""
    length, *row = gradient.shape
    indices = np.asarray(gradient.indices).reshape(-1).astype(np.int64)
    rows = np.asarray(gradient.rows).reshape(indices.size, *row)
    indices = np.where(indices < 0, indices + length, indices)
    if indices.size:
        order = np.argsort(indices, kind="stable")
        ordered = indices[order]
        first = np.flatnonzero(np.diff(ordered, prepend=-1) != 0)
        indices = ordered[first]
        rows = rows[order] if first.size == order.size else np.add.reduceat(rows[order], first, axis=0)
    if weight != 1:
        rows = rows * rows.dtype.type(weight)
    return IndexedRows(indices, rows, shape=gradient.shape)


def add_up(shards: Sequence[list[Any]]) -> list[Any]:
    """The sum of the gradients of all shards; it takes the memory of the first."""
    total: list[Any] = []
    for leaves in zip(*shards, strict=True):
        if isinstance(leaves[0], IndexedRows):
            total.append(one_after_the_other(leaves))
            continue
        for leaf in leaves[1:]:
            if leaf is not None:
                np.add(leaves[0], leaf, out=leaves[0])
        total.append(leaves[0])
    return total


def one_after_the_other(parts: Sequence[IndexedRows]) -> IndexedRows:
    """The sum of sparse rows, as their rows in this order."""
    if len(parts) == 1:
        return parts[0]
    indices = np.concatenate([part.indices for part in parts])
    return IndexedRows(indices, np.concatenate([part.rows for part in parts]), shape=parts[0].shape)
