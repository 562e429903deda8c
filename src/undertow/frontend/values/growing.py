"""Lists whose length is known only at run time: arrays with room for more items, and a length.

A list of Python's is one of these if it changes its length where a graph cannot follow: in a loop of the graph, in one
branch of two, in a recursive call. All items have one structure; each of its parts is an array (a column) that changes
in place (`control/changes.py`) and is replaced by one of twice the size when it is full.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.operands import as_operand, is_weak
from undertow.frontend.values.traced import Traced, context, emit, is_traced
from undertow.ir.graph import Const
from undertow.types import DType, Type, promote, weak_dtype

_ROOM = 4  # items of an empty list

# The structure of an item, and the types of its leaves.
Item = tuple[tree.Structure, tuple[Type, ...]]


def item_type(items: Sequence[Any]) -> Item | None:
    """What the items of a list have in common; None if they cannot be in one array."""
    parts = [tree.flatten(item, is_traced) for item in items]
    if not parts or any(structure != parts[0][1] for _, structure in parts) or not parts[0][0]:
        return None
    types: list[Type] = []
    for leaves in zip(*(leaves for leaves, _ in parts), strict=True):
        shapes = {leaf_type(leaf).shape for leaf in leaves}
        if len(shapes) != 1 or not leaf_type(leaves[0]).is_static:
            return None
        types.append(Type(_common(leaves), shapes.pop()))
    return parts[0][1], tuple(types)


def _common(leaves: Sequence[Any]) -> DType:
    strong = [leaf_type(leaf).dtype for leaf in leaves if not is_weak(leaf)]
    dtype = strong[0] if strong else weak_dtype(leaves[0])
    for other in strong:
        dtype = promote(dtype, other)
    for leaf in leaves:
        if is_weak(leaf):
            dtype = promote(dtype, weak_dtype(leaf, dtype))
    return dtype


def both(a: Item, b: Item) -> Item | None:
    """The type of items of either kind."""
    if a[0] != b[0] or any(x.shape != y.shape for x, y in zip(a[1], b[1], strict=True)):
        return None
    return a[0], tuple(Type(promote(x.dtype, y.dtype), x.shape) for x, y in zip(a[1], b[1], strict=True))


def token_of(item: Item) -> tree.Token:
    """The token of a list of such items in a structure."""
    names = (*(f"items.{k}" for k in range(len(item[1]))), "length")
    return ("object", len(names), GrowingList, names, item)


class GrowingList:
    """A list that a graph can make longer and shorter."""

    __slots__ = ("columns", "item", "length", "place")

    __undertow_said__ = "a list of run-time length"  # in messages

    def __init__(self, item: Item, columns: list[Any], length: Any, place: Any = None) -> None:
        self.item, self.columns, self.length, self.place = item, columns, length, place

    # -- as a container of values ------------------------------------------------------------------------------

    def __undertow_parts__(self) -> tuple[tree.Token, list[Any]]:
        return token_of(self.item), [*self.columns, self.length]

    @staticmethod
    def __undertow_whole__(item: Item, contents: list[Any]) -> Any:
        *columns, length = contents
        if isinstance(length, Traced):
            return GrowingList(item, columns, length)
        return [tree.unflatten(item[0], [column[k] for column in columns]) for k in range(int(length))]

    # -- made, read, changed -----------------------------------------------------------------------------------

    @classmethod
    def of(cls, items: Sequence[Any], item: Item, place: Any = None) -> GrowingList:
        """A list of these items."""
        current = context()
        assert current is not None
        builder = current.open_builder

        def known(number: int) -> Traced:
            return Traced(builder, builder.gate(Const(np.int64(number)), current.span))

        room, count = known(max(_ROOM, len(items))), len(items)
        columns: list[Any] = []
        for k, type_ in enumerate(item[1]):
            column = functions.zeros((room, *type_.shape), dtype=type_.dtype)
            if items:
                rows = [as_operand(tree.flatten(value, is_traced)[0][k], type_.dtype) for value in items]
                ends = [np.int64(0), np.int64(count)]
                (column,) = emit("put_between", [column, functions.stack(rows), *ends], axis=0, step=1)
            columns.append(column)
        return cls(item, columns, known(count), place)

    def leaves_of(self, value: Any) -> list[Any]:
        """The parts of an item, as they are stored."""
        found = item_type([value])
        wider = None if found is None else both(self.item, found)
        if wider is None:
            raise TypeMismatch(
                f"a list whose length is known only at run time has items of one type: {describe(value)} does not fit",
                hint="keep values of different types in lists of their own",
            )
        if wider != self.item:
            current = context()
            if current is not None and self.place is not None:
                current.session.let_grow(self.place, wider)
            raise TypeMismatch(
                f"{describe(value)} does not fit into a list of {self.item[1][0]}", hint="convert it: float(x), int(x)"
            )
        return [
            as_operand(leaf, type_.dtype)
            for leaf, type_ in zip(tree.flatten(value, is_traced)[0], self.item[1], strict=True)
        ]

    def at(self, index: Any) -> Any:
        """The place of an item in the columns; one outside of them, if the list has no such item."""
        index = functions.astype(index, np.int64)
        from_front = functions.where(functions.less(index, 0), functions.add(index, self.length), index)
        is_there = functions.logical_and(functions.less_equal(0, from_front), functions.less(from_front, self.length))
        return functions.where(is_there, from_front, functions.length(self.columns[0]))

    def get(self, index: Any) -> Any:
        at = self.at(index)
        return tree.unflatten(self.item[0], [emit("index", [c, at], axes=(0,))[0] for c in self.columns])

    def rows(self, start: Any = 0, stop: Any = None) -> list[Any]:
        """A part of the list, as arrays."""
        bounds = [self.bound(start), self.length if stop is None else self.bound(stop)]
        return [emit("slice_between", [c, *bounds], axis=0, step=1)[0] for c in self.columns]

    def bound(self, at: Any) -> Any:
        from_front = functions.where(functions.less(at, 0), functions.add(at, self.length), at)
        return functions.minimum(functions.maximum(from_front, 0), self.length)

    def part(self, key: slice) -> GrowingList:
        """`items[a:b]`."""
        if key.step not in (None, 1):
            raise CaptureError(
                "a list whose length is known only at run time is cut with step 1 alone", hint="loop over the indices"
            )
        columns = self.rows(0 if key.start is None else key.start, key.stop)
        return GrowingList(self.item, columns, functions.length(columns[0]), self.place)

    def copy(self) -> GrowingList:
        columns = [emit("identity", [column])[0] for column in self.columns]
        return GrowingList(self.item, columns, emit("identity", [self.length])[0], self.place)

    def __iter__(self) -> Any:
        raise CaptureError(
            "the length of this list is known only at run time", hint="loop over it with a plain `for item in items:`"
        )

    __len__ = __iter__
    __bool__ = __iter__
