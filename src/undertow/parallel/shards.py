"""Shards: a batch in parts of about equal work, whose gradients are computed apart and added up in their order.

How a batch is cut, and the seed of each shard, depend on the batch and the number of shards alone: so do the bits of
their sum, whoever computes them.

>>> [shard.args[0].tolist() for shard in cut((np.arange(5),), 2)]
[[0, 1], [2, 3, 4]]
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.data.forest import Forest
from undertow.errors import TypeMismatch, brief
from undertow.frontend.control.body import Shared
from undertow.frontend.values import tree

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a batch."""

    number: int
    items: int  # trees, or rows of arrays
    nodes: int  # of its trees; of arrays, their rows
    args: tuple[Any, ...]


def cut(batch: Sequence[Any], count: int) -> list[Shard]:
    """So many shards of a batch, or as many as it has items. The items of a shard are in the order of the batch.

    Forests are cut between trees, so that shards have about equally many nodes; arrays along their first axis. What is
    wrapped in `ut.shared` is of every shard.
    """
    cuts, structures = [], []
    sizes: Array | None = None
    for number, arg in enumerate(batch):
        is_shared = isinstance(arg, Shared)
        leaves, structure = tree.flatten(arg.value if is_shared else arg, _is_forest)
        structures.append(structure)
        cuts += [(leaf, is_shared) for leaf in leaves]
        if not is_shared:
            for leaf in leaves:
                sizes = _joined(sizes, leaf, number)
    if sizes is None:
        raise TypeMismatch("the batch has nothing that could be cut into shards", hint="pass a forest, or arrays")
    if not len(sizes):
        raise TypeMismatch("the batch is empty", hint="leave it out")
    count = min(count, len(sizes))
    shards = []
    for number, items in enumerate(_chosen(sizes, count)):
        leaves = [leaf if is_shared or count == 1 else leaf[items] for leaf, is_shared in cuts]
        nodes = sizes[items]
        args = tuple(tree.unflatten_each(structures, leaves))
        shards.append(Shard(number, len(nodes), int(nodes.sum()) or len(nodes), args))
    return shards


def _is_forest(value: object) -> bool:
    return isinstance(value, Forest)


def _joined(sizes: Array | None, leaf: Any, number: int) -> Array:
    """The nodes of each item, those of one more leaf included."""
    if isinstance(leaf, Forest):
        more = np.asarray(leaf.ends - leaf.roots, np.int64)
    elif np.ndim(leaf):
        more = np.zeros(len(leaf), np.int64)
    else:
        raise TypeMismatch(
            f"argument {number} of the batch holds {brief(leaf)}, which cannot be cut into shards",
            hint="wrap what all shards get in ut.shared(...)",
        )
    if sizes is not None and len(sizes) != len(more):
        raise TypeMismatch(
            f"argument {number} of the batch has {len(more)} items, and what is before it has {len(sizes)}",
            hint="wrap what all shards get in ut.shared(...)",
        )
    return more if sizes is None else sizes + more


def _chosen(sizes: Array, count: int) -> list[Any]:
    """The items of each shard: neighbours, where all are of one size; else the largest first, to whom has least."""
    if count == 1 or sizes.min() == sizes.max():
        edges = [k * len(sizes) // count for k in range(count + 1)]
        return [slice(edges[k], edges[k + 1]) for k in range(count)]
    loads = [(0, 0, number) for number in range(count)]
    chosen: list[list[int]] = [[] for _ in range(count)]
    for item in np.argsort(-sizes, kind="stable").tolist():
        load, items, number = loads[0]
        chosen[number].append(item)
        heapq.heapreplace(loads, (load + int(sizes[item]), items + 1, number))
    return [np.sort(np.array(items)) for items in chosen]


def seed_of(*numbers: int) -> int:
    """A seed derived from all of these numbers, the same on every machine."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


def mean_of(losses: list[Any], weights: list[float]) -> Any:
    """The loss of a batch, from those of its shards, in their order."""
    kind = np.asarray(losses[0]).dtype.type
    if len(losses) == 1:
        return kind(losses[0])
    total = 0.0
    for loss, weight in zip(losses, weights, strict=True):
        total += float(loss) * weight
    return kind(total)
