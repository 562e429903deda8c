"""Forests: many trees in a few arrays, passed to a recursive function as one ordinary argument.

Nodes are numbered in preorder: a node before its descendants, siblings from left to right, tree after tree.
So every tree and subtree is a range of numbers, and a root is the first node of its tree.

>>> forest = Forest.from_depths([0, 1, 1, 2, 2], word=[-1, 5, -1, 6, 7])
>>> forest
<Forest: 1 tree, 5 nodes, binary>
>>> int(forest.left[0]), int(forest.right[0]), forest.children(2)
(1, 2, array([3, 4], dtype=int32))
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from undertow.data import select
from undertow.errors import DataError, TypeMismatch, brief
from undertow.frontend.trace.declared import OPEN_ROWS
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.traced import Traced, has_traced
from undertow.frontend.values.tree import Token
from undertow.tracebacks import boundary, guarded

if TYPE_CHECKING:
    from undertow.data.vocabulary import Vocabulary

Array = npt.NDArray[Any]


@guarded
@dataclass(frozen=True, eq=False, repr=False)
class Forest:
    """Trees as arrays: for each node its word, label, children and other fields; for each tree its root.

    The functions of this module make forests; so does `Forest.from_depths`, from arrays. In a captured function the
    arrays are traced, and their lengths are known only at run time: batches of any size share one capture.
    """

    word: Any  # i32 [nodes]: -1 where a node has no word of its own
    label: Any  # i32 [nodes]: -1 where a node has none
    offsets: Any  # i32 [nodes + 1]: the children of node i are child[offsets[i] : offsets[i + 1]]
    child: Any  # i32 [nodes - trees]
    roots: Any  # i32 [trees]
    sides: tuple[Any, Any] | None  # `left` and `right`, if every node has two children or none
    fields: Mapping[str, Any] = field(default_factory=dict)  # further values of nodes: [nodes, ...]
    vocabulary: Vocabulary | Any = None  # the words, for display; None if they have no names
    labels: Vocabulary | Any = None  # the names of the labels, if they have names

    @classmethod
    def from_depths(
        cls,
        depths: Any,
        word: Any = None,
        label: Any = None,
        fields: Mapping[str, Any] | None = None,
        binary: bool | None = None,
        vocabulary: Vocabulary | None = None,
        labels: Vocabulary | None = None,
    ) -> Forest:
        """A forest from the depth of every node, in preorder: 0 starts a tree, and the depths determine the rest.

        `binary=True` requires 0 or 2 children, `binary=False` treats even a binary forest as n-ary;
        None decides by the data. Words and labels count from 0; -1 means none.
        """
        level = _integers(depths, "depths")
        count = len(level)
        if count and (level[0] != 0 or (level < 0).any() or (level[1:] > level[:-1] + 1).any()):
            raise DataError(
                "the depths do not describe trees in preorder",
                hint="a tree begins with depth 0, and a node is at most one deeper than the one before it",
            )
        parent = select.parents(level)
        counts = np.bincount(parent[parent >= 0], minlength=count)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        order = np.argsort(parent, kind="stable").astype(np.int32)  # roots first, then siblings side by side
        roots = np.flatnonzero(level == 0).astype(np.int32)
        child = order[len(roots) :]
        is_binary = bool(((counts == 0) | (counts == 2)).all())
        if binary and not is_binary:
            raise DataError(
                f"{select.first_odd(counts, roots)}, but binary=True requires 0 or 2",
                hint="leave out binary=True, and use forest.children(node) instead of left and right",
            )
        sides = None
        if is_binary if binary is None else binary:
            sides = (np.full(count, -1, np.int32), np.full(count, -1, np.int32))
            inner = np.flatnonzero(counts)
            sides[0][inner], sides[1][inner] = child[offsets[inner]], child[offsets[inner] + 1]
        return cls(
            word=_column(word, "word", count),
            label=_column(label, "label", count),
            offsets=offsets,
            child=child,
            roots=roots,
            sides=sides,
            fields={name: _field(values, name, count) for name, values in (fields or {}).items()},
            vocabulary=vocabulary,
            labels=labels,
        )

    # -- for recursive functions ----------------------------------------------------------------------------

    @property
    def left(self) -> Any:
        """The left child of every node, -1 for leaves; only of binary forests."""
        return self._sides()[0]

    @property
    def right(self) -> Any:
        """The right child of every node, -1 for leaves; only of binary forests."""
        return self._sides()[1]

    @property
    def is_binary(self) -> bool:
        """Does every node have 0 or 2 children?"""
        return self.sides is not None

    def is_leaf(self, node: Any) -> Any:
        """Is the node a leaf?"""
        self._check(node)
        if self.sides is not None:
            return _at(self.sides[0], node) < 0
        return self.child_count(node) == 0

    def child_count(self, node: Any) -> Any:
        """The number of children of the node."""
        self._check(node)
        return _at(self.offsets, node + 1) - _at(self.offsets, node)

    def children(self, node: Any) -> Any:
        """The children of a node, from left to right: an i32 array whose length is known only at run time."""
        self._check(node)
        return _at(self.child, slice(_at(self.offsets, node), _at(self.offsets, node + 1)))

    def field(self, name: str) -> Any:
        """The values of this field, one per node."""
        if name not in self.fields:
            known = ", ".join(map(repr, self.fields)) or "none"
            raise DataError(f"this forest has no field {brief(name)}", hint=f"its fields are: {known}")
        return self.fields[name]

    def _check(self, node: Any) -> None:
        """Reject a node number that is out of range, if it is known before the run."""
        if isinstance(node, (Traced, np.ndarray)) or isinstance(self.offsets, Traced):
            return
        if not isinstance(node, (int, np.integer)) or not 0 <= node < self.size:
            raise DataError(
                f"node {brief(node)} is out of range: the forest has {self.size} nodes", hint="nodes count from 0"
            )

    def _sides(self) -> tuple[Any, Any]:
        if self.sides is None:
            raise DataError(
                "this forest is not binary, so its nodes have no left and right",
                hint="ut.map(f, forest.children(node)) handles any number of children",
            )
        return self.sides

    # -- trees -----------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """The number of nodes in all trees."""
        return len(self.word)

    def __len__(self) -> int:
        if isinstance(self.roots, Traced):
            raise TypeMismatch("the number of trees is known only at run time", hint="use ut.shape(forest.roots)[0]")
        return len(self.roots)

    def __iter__(self) -> Iterator[Forest]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, key: Any) -> Forest:
        """One tree, or some: `forest[3]`, `forest[10:20]`, `forest[[3, 1]]`, `forest[mask]`."""
        if isinstance(key, slice):
            return self.batch(np.arange(*key.indices(len(self))))
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            return self.batch([key])
        return self.batch(key)

    def batch(self, indices: Any) -> Forest:
        """A forest of these trees only, in this order; an index may repeat."""
        return select.batch(self, indices)

    def batches(self, size: int, seed: int | None = None, drop_last: bool = False) -> Iterator[Forest]:
        """All trees, `size` at a time; shuffled if a seed is given. The last batch may be smaller, or is dropped."""
        return select.batches(self, size, seed, drop_last)

    def split(self, *parts: float, seed: int | None = None) -> tuple[Forest, ...]:
        """Disjoint forests with these fractions of the trees, the last with the rest: `train, test = f.split(0.9)`."""
        return select.split(self, parts, seed)

    def with_vocabulary(self, vocabulary: Vocabulary) -> Forest:
        """The same trees with words numbered by this vocabulary; missing words become its unknown word."""
        return select.with_vocabulary(self, vocabulary)

    @functools.cached_property
    def ends(self) -> Array:
        """For each tree, the number after its last node."""
        return np.append(self.roots, np.int32(self.size))[1:]

    __undertow_alone__ = functools.cached_property(select.alone)
    depths = functools.cached_property(select.depths)

    # -- display ----------------------------------------------------------------------------------------------

    def text(self, most: int = 10) -> str:
        """The first trees drawn as text, for terminals."""
        from undertow.data.picture import text  # imported only to draw

        return text(self, most)

    def svg(self, most: int = 6) -> str:
        """The first trees as an SVG picture: words and labels, coloured by label."""
        from undertow.data.picture import svg

        return svg(self, most)

    def _repr_svg_(self) -> str | None:
        return self.svg() if isinstance(self.word, np.ndarray) and len(self) else None

    # -- as a value ------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Are the trees equal? Names of words and labels are not compared."""
        if not isinstance(other, Forest):
            return NotImplemented
        pairs = [(getattr(self, name), getattr(other, name)) for name in _ARRAYS]
        pairs += [(values, other.fields.get(name)) for name, values in self.fields.items()]
        return self.fields.keys() == other.fields.keys() and all(np.array_equal(a, b) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        kind = "binary" if self.is_binary else "n-ary"
        fields = f", fields {', '.join(self.fields)}" if self.fields else ""
        if isinstance(self.word, Traced):
            return f"<Forest: traced, {kind}{fields}>"
        trees, nodes = len(self), self.size
        return f"<Forest: {trees} tree{'s' * (trees != 1)}, {nodes} node{'s' * (nodes != 1)}, {kind}{fields}>"

    # -- as a container (see undertow.frontend.values.tree) -----------------------------------------------------------

    # Attributes that a forest among the arguments of a captured function has not got.
    __undertow_unseen__ = dict.fromkeys(("vocabulary", "labels"), "forest")

    def __undertow_parts__(self) -> tuple[Token, list[Any]]:
        # Names for display are no part of the structure: with another vocabulary, nothing is captured again.
        arrays = [
            self.word,
            self.label,
            self.offsets,
            self.child,
            self.roots,
            *(self.sides or ()),
            *self.fields.values(),
        ]
        return _token(self.is_binary, tuple(self.fields)), arrays

    @staticmethod
    def __undertow_token__(known: Sequence[Any]) -> Token:
        """The token that a saved file describes; a ValueError if it is malformed."""
        is_binary, names = known
        if type(is_binary) is not bool or type(names) is not list or len(set(names)) != len(names):
            raise ValueError(known)
        if not all(type(name) is str for name in names):
            raise ValueError(known)
        return _token(is_binary, tuple(names))

    @classmethod
    def __undertow_whole__(cls, known: Any, held: Sequence[Any]) -> Forest:
        is_binary, names = known
        rest = len(_ARRAYS) + 2 * is_binary
        sides = (held[rest - 2], held[rest - 1]) if is_binary else None
        arrays = dict(zip(_ARRAYS, held, strict=False))
        return cls(**arrays, sides=sides, fields=dict(zip(names, held[rest:], strict=True)))

    @classmethod
    def __undertow_types__(cls, known: Any) -> list[Any]:
        """Numbers of nodes and trees are not part of the signature (see `frontend/trace/declared.py`)."""
        is_binary, names = known
        return [OPEN_ROWS] * (len(_ARRAYS) + 2 * is_binary + len(names))


@boundary
def join(forests: Iterable[Forest]) -> Forest:
    """Concatenate forests. Their words, labels and fields must agree."""
    if not isinstance(forests, Iterable) or isinstance(forests, (str, bytes)):
        raise DataError(f"{brief(forests)} is not a list of forests", hint="write join([one, other])")
    parts = list(forests)
    if not parts:
        raise DataError("there are no forests to join", hint="pass at least one")
    for part in parts:
        if not isinstance(part, Forest):
            raise DataError(f"{brief(part)} is not a forest", hint="ut.data.from_nested converts nested values")
    return select.join(parts)


_ARRAYS = ("word", "label", "offsets", "child", "roots")


@functools.lru_cache(256)
def _token(is_binary: bool, fields: tuple[str, ...]) -> Token:
    names = (*_ARRAYS, *(("left", "right") if is_binary else ()), *fields)
    return "object", len(names), Forest, names, (is_binary, fields)


def _at(array: Any, key: Any) -> Any:
    """`array[key]`, where either may be traced."""
    if isinstance(array, Traced) or not has_traced(key):
        return array[key]
    return getitem(array, key)


def _integers(values: Any, what: str) -> Array:
    array = np.asarray(values)
    if array.size == 0:
        array = array.astype(np.int32)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise DataError(f"the {what} of a forest must be one row of integers, not {brief(values)}")
    if array.dtype != np.int32 and array.size and not -(2**31) <= array.min() <= array.max() < 2**31:
        wrong = array[(array < -(2**31)) | (array >= 2**31)][0]
        raise DataError(f"the `{what}` of a forest cannot contain {wrong}", hint="use 32-bit integers")
    return array.astype(np.int32)


def _column(values: Any, what: str, count: int) -> Array:
    """One integer per node; -1 by default."""
    if values is None:
        return np.full(count, -1, np.int32)
    numbers = _integers(values, what)
    if numbers.size and numbers.min() < -1:
        hint = f"{what}s count from 0; -1 means no {what}"
        raise DataError(f"the `{what}` of a forest cannot contain {numbers.min()}", hint=hint)
    return _field(numbers, what, count)


def _field(values: Any, what: str, count: int) -> Array:
    array = np.asarray(values)
    if array.ndim == 0 or len(array) != count:
        raise DataError(f"the forest has {count} nodes, but `{what}` has the shape {list(array.shape)}")
    return array
