"""Selecting trees of a forest: batches, shuffles, splits; renumbered words; parents and depths. Vectorized throughout.

A forest stores its trees one after the other, so each tree is a range of nodes, and a batch is a few gathers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from undertow.data.checks import is_part
from undertow.errors import DataError, brief

if TYPE_CHECKING:
    from undertow.data.forest import Forest
    from undertow.data.vocabulary import Vocabulary

Array = npt.NDArray[Any]
Alone = tuple[list[tuple[int, int]], Array, Array, tuple[Array, Array] | None]


def batch(forest: Forest, indices: Any) -> Forest:
    """A forest of the trees with these numbers, in this order."""
    if type(indices) is list and _are_neighbours(indices, len(forest)):
        return _neighbours(forest, indices[0], indices[-1])
    chosen = _numbers(indices, len(forest))
    if len(chosen) and (len(chosen) == 1 or (chosen[1:] == chosen[:-1] + 1).all()):
        return _neighbours(forest, int(chosen[0]), int(chosen[-1]))
    starts = forest.roots[chosen]
    sizes = forest.ends[chosen] - starts
    ends = sizes.cumsum()
    total = int(ends[-1]) if len(ends) else 0
    roots = (ends - sizes).astype(np.int32)
    shifts = starts - roots
    shift = shifts.repeat(sizes)  # for each node, how far it moves towards the front
    nodes = np.arange(total, dtype=np.int32)
    nodes += shift
    # A tree has one edge fewer than nodes, so tree t begins at edge starts[t] - t.
    places = np.arange(len(chosen), dtype=np.int32)
    edge_shifts = shifts - chosen + places
    edge_sizes = sizes - 1
    edges = np.arange(total - len(chosen), dtype=np.int32)
    edges += edge_shifts.repeat(edge_sizes)
    child = forest.child[edges]
    child -= shifts.repeat(edge_sizes)
    offsets = np.empty(total + 1, np.int32)
    offsets[:-1] = forest.offsets[nodes]
    offsets[:-1] -= edge_shifts.repeat(sizes)
    offsets[-1] = total - len(chosen)
    sides = None
    if forest.sides is not None:
        left, right = forest.sides[0][nodes], forest.sides[1][nodes]
        shift[left < 0] = 0
        left -= shift
        right -= shift
        sides = left, right
    return _with_edges(forest, lambda values: values[nodes], offsets, child, roots, sides)


def _with_edges(
    forest: Forest, pick: Callable[[Array], Array], offsets: Array, child: Array, roots: Array, sides: Any
) -> Forest:
    """A forest of these edges, its nodes picked from another."""
    fields = {name: pick(values) for name, values in forest.fields.items()}
    columns = pick(forest.word), pick(forest.label), offsets, child, roots, sides, fields
    return type(forest)(*columns, forest.vocabulary, forest.labels)


def _are_neighbours(indices: list[Any], count: int) -> bool:
    """Are these consecutive numbers? Allocates no array, since small batches are made often."""
    if not indices or set(map(type, indices)) != {int} or not 0 <= indices[0] <= indices[-1] < count:
        return False
    return indices == list(range(indices[0], indices[-1] + 1))


def _neighbours(forest: Forest, first: int, last: int) -> Forest:
    """A range of consecutive trees, as slices shifted by a constant: several times faster than gathers."""
    if first == last:
        return _one(forest, first)
    start, stop = int(forest.roots[first]), int(forest.ends[last])
    edge = start - first
    sides = None
    if forest.sides is not None:
        left, right = forest.sides[0][start:stop], forest.sides[1][start:stop]
        shift = (left >= 0) * np.int32(start)
        sides = left - shift, right - shift
    offsets = forest.offsets[start : stop + 1] - np.int32(edge)
    child = forest.child[edge : stop - last - 1] - np.int32(start)
    roots = forest.roots[first : last + 1] - np.int32(start)
    return _with_edges(forest, lambda values: values[start:stop].copy(), offsets, child, roots, sides)


def _one(forest: Forest, number: int) -> Forest:
    """One tree, as slices of arrays in which every tree is numbered from 0: fast, for training tree by tree."""
    spans, offsets, child, sides = forest.__undertow_alone__
    start, stop = spans[number]
    return type(forest)(
        forest.word[start:stop].copy(),
        forest.label[start:stop].copy(),
        offsets[start + number : stop + number + 1].copy(),
        child[start - number : stop - number - 1].copy(),
        np.zeros(1, np.int32),
        None if sides is None else (sides[0][start:stop].copy(), sides[1][start:stop].copy()),
        {name: values[start:stop].copy() for name, values in forest.fields.items()},
        forest.vocabulary,
        forest.labels,
    )


def alone(forest: Forest) -> Alone:
    """Where each tree begins and ends, and offsets, children and sides numbered from 0 in each tree."""
    starts, ends = forest.roots, forest.ends
    sizes = ends - starts
    shift = starts.repeat(sizes)
    trees = np.arange(len(forest), dtype=np.int32)
    offsets = np.insert(forest.offsets, ends[:-1], forest.offsets[ends[:-1]])  # the end of one tree is not the next's 0
    offsets = offsets - (starts - trees).repeat(sizes + 1) if len(forest) else offsets
    child = forest.child - starts.repeat(sizes - 1)
    sides = None
    if forest.sides is not None:
        shift[forest.sides[0] < 0] = 0
        sides = forest.sides[0] - shift, forest.sides[1] - shift
    return list(zip(starts.tolist(), ends.tolist(), strict=True)), offsets, child, sides


def batches(forest: Forest, size: int, seed: int | None, drop_last: bool) -> Iterator[Forest]:
    """All trees, `size` at a time."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise DataError(f"invalid batch size {brief(size)}", hint="use an integer from 1 on")
    order = _order(forest, seed)
    stop = len(order) - len(order) % size if drop_last else len(order)
    return (batch(forest, order[at : at + size]) for at in range(0, stop, size))


def split(forest: Forest, parts: Sequence[float], seed: int | None) -> tuple[Forest, ...]:
    """Disjoint forests with these fractions of the trees; the rest is one more."""
    if not parts or not all(map(is_part, parts)) or sum(parts) > 1 + 1e-9:
        raise DataError(
            f"a forest cannot be split into the parts {brief(parts)}", hint="write split(0.8, 0.1): the rest is 0.1"
        )
    order = _order(forest, seed)
    cuts = np.minimum(np.round(np.cumsum(parts) * len(forest)).astype(int), len(forest))
    return tuple(batch(forest, numbers) for numbers in np.split(order, cuts))


def join(parts: Sequence[Forest]) -> Forest:
    """The trees of several forests that have the same words, labels and fields."""
    for number, part in enumerate(parts):
        if part.vocabulary != parts[0].vocabulary:
            raise DataError(
                f"forest {number} has a different vocabulary", hint="create it with vocabulary=first.vocabulary"
            )
        if part.labels != parts[0].labels:
            raise DataError(f"forest {number} has different labels", hint="create it with labels=first.labels")
        if part.fields.keys() != parts[0].fields.keys():
            raise DataError(f"forest {number} has different fields", hint="all forests need the same fields")
        for name, values in part.fields.items():
            if values.shape[1:] != parts[0].fields[name].shape[1:]:
                raise DataError(f"the field {name!r} has a different shape in forest {number}", hint="use one shape")
    depths, word, label = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("depths", "word", "label")
    )
    fields = {name: np.concatenate([part.fields[name] for part in parts]) for name in parts[0].fields}
    is_binary = all(part.is_binary for part in parts)
    return type(parts[0]).from_depths(depths, word, label, fields, is_binary, parts[0].vocabulary, parts[0].labels)


def with_vocabulary(forest: Forest, vocabulary: Vocabulary) -> Forest:
    """The same trees with the numbers that another vocabulary has for their words."""
    if forest.vocabulary == vocabulary:
        return forest
    if forest.vocabulary is None:
        raise DataError("the forest has no vocabulary", hint="create the forest with vocabulary=")
    return replace(forest, word=renumbered(forest.word, forest.vocabulary, vocabulary), vocabulary=vocabulary)


def renumbered(numbers: Array, old: Vocabulary, new: Vocabulary) -> Array:
    """The same names, numbered by another vocabulary; -1 stays. Only names that occur must be in it."""
    used = np.unique(numbers[numbers >= 0])
    table = np.full(len(old) + 1, -1, np.int32)  # index -1, no word, gives -1
    table[used] = new.ids(old.word(number) for number in used.tolist())
    return table[numbers]


def _order(forest: Forest, seed: int | None) -> Array:
    """The numbers of all trees; shuffled if there is a seed."""
    if seed is None:
        return np.arange(len(forest))
    try:
        return np.random.default_rng(seed).permutation(len(forest))
    except (TypeError, ValueError):
        raise DataError(f"seed is {brief(seed)}", hint="it must be an integer from 0 on, or None") from None


def parents(level: Array) -> Array:
    """The parent of each node, -1 for roots, from the depths in preorder.

    It is the last earlier node that is one level higher.

    >>> parents(np.array([0, 1, 1, 2, 2, 0]))
    array([-1,  0,  0,  2,  2, -1])
    """
    count = len(level)
    if count == 0:
        return np.zeros(0, np.int64)
    keys = level.astype(np.int64) * count + np.arange(count)  # level by level, each in preorder
    order = np.argsort(keys, kind="stable")
    before = np.searchsorted(keys[order], keys - count) - 1
    return np.where(level == 0, -1, order[before])


def first_odd(counts: Array, roots: Array) -> str:
    """The first node that has neither two children nor none, in words."""
    node = int(np.flatnonzero((counts != 0) & (counts != 2))[0])
    tree = int(np.searchsorted(roots, node, "right")) - 1
    return f"node {node - roots[tree]} of tree {tree} has {counts[node]} child{'' if counts[node] == 1 else 'ren'}"


def depths(forest: Forest) -> Array:
    """The depth of every node below its root, by pointer jumping: each round looks twice as far up."""
    above = np.full(forest.size, -1, np.int64)
    above[forest.child] = np.arange(forest.size).repeat(np.diff(forest.offsets))
    depth = (above >= 0).astype(np.int32)
    open_nodes = np.flatnonzero(above >= 0)
    while len(open_nodes):
        further = above[open_nodes]
        depth[open_nodes] += depth[further]
        above[open_nodes] = above[further]
        open_nodes = open_nodes[above[open_nodes] >= 0]
    return depth


def _numbers(indices: Any, count: int) -> Array:
    chosen = np.asarray(indices)
    if chosen.size == 0:
        chosen = chosen.astype(np.int32)
    if chosen.ndim == 1 and chosen.dtype.kind == "b":
        if len(chosen) != count:
            raise DataError(
                f"the mask has {len(chosen)} elements, but the forest has {count} trees",
                hint="a mask needs one element per tree",
            )
        return np.flatnonzero(chosen).astype(np.int32)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise DataError(f"{brief(indices)} does not select trees", hint="pass their numbers: forest.batch([0, 3, 5])")
    least = chosen.min(initial=0)
    if least == 0 and chosen.max(initial=-1) < count:
        return chosen.astype(np.int32)
    if len(chosen) and (least < -count or chosen.max() >= count):
        wrong = chosen[(chosen < -count) | (chosen >= count)][0]
        raise DataError(f"tree {wrong} is out of range: the forest has {count} trees", hint="trees count from 0")
    return np.where(chosen < 0, chosen + count, chosen).astype(np.int32)
