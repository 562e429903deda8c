"""Lists whose length is known only at run time: arrays with room for more items, and a length.

A list of Python's is one of these if it changes its length where a graph cannot follow: in a loop of the graph, in one
branch of two, in a recursive call. All items have one structure; each of its parts is an array (a column) that changes
in place (`control/changes.py`) and is replaced by one of twice the size when it is full.

An item may be such a list itself. Its columns are parts of those of the list around it, which are as wide as its
longest item. `items[i]` is then a row: it knows where it is, and reads and changes the columns there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.values import tree
from undertow.frontend.values.indexing import bound_from_front
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.operands import as_operand, is_weak
from undertow.frontend.values.option import joined_token
from undertow.frontend.values.traced import Traced, context, emit
from undertow.frontend.values.traced import length as extent
from undertow.frontend.values.views import View, make_view
from undertow.ir.graph import Const
from undertow.types import DType, Type, i64, promote, weak_dtype

_ROOM = 4  # items of an empty list

# The structure of an item, and the types of its leaves.
Item = tuple[tree.Structure, tuple[Type, ...]]
NOTHING: Item = ((), ())  # of a list that has had no items so far


# -- types -----------------------------------------------------------------------------------------------------


def item_type(items: Sequence[Any]) -> Item | None:
    """What the items of a list have in common; None if they cannot be in one array."""
    common: Item | None = NOTHING
    for item in items:
        found = _described(*tree.flatten(item, _is_part))
        if found is None or not found[1] or common is None:
            return None
        common = both(common, found)
    return None if common is None else _with_numbers(items, common)


def _is_part(value: Any) -> bool:
    return isinstance(value, (Traced, GrowingList)) or type(value) is list


def _described(leaves: Sequence[Any], structure: tree.Structure) -> Item | None:
    """The structure and types of an item, whose lists are leaves."""
    tokens: list[tree.Token] = []
    types: list[Type] = []
    rest = iter(leaves)
    for token in structure:
        leaf = next(rest) if token == tree.LEAF else None
        if isinstance(leaf, GrowingList) or type(leaf) is list:
            inner = leaf.item if isinstance(leaf, GrowingList) else item_type(leaf)
            if inner is None:
                return None
            tokens += whole(inner)[0]
            types += whole(inner)[1]
            continue
        tokens.append(token)
        if token == tree.LEAF:
            type_ = leaf_type(leaf)
            if not type_.is_static:
                return None
            types.append(type_)
    return tuple(tokens), tuple(types)


def whole(item: Item, kind: type = list) -> Item:
    """A list of such items, as an item."""
    types = (*(type_.with_shape((None, *type_.shape)) for type_ in item[1]), Type(i64))
    return (token_of(item, kind), *(tree.LEAF for _ in types)), types


def token_of(item: Item, kind: type = list) -> tree.Token:
    """The token of a list of such items in a structure."""
    names = (*(f"items.{k}" for k in range(len(item[1]))), "length")
    return ("object", len(names), GrowingList, names, (item, kind))


def _with_numbers(items: Sequence[Any], common: Item) -> Item:
    """The type of items where Python's numbers take the dtype of what is beside them."""
    if not items:
        return common
    columns = list(zip(*(tree.flatten(item, _is_part)[0] for item in items), strict=True))
    if any(_is_part(leaf) and not isinstance(leaf, Traced) for column in columns for leaf in column):
        return common
    types = (type_.with_dtype(_common(c)) for type_, c in zip(common[1], columns, strict=True))
    return common[0], tuple(types)


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
    if NOTHING in (a, b) or a == b:
        return b if a == NOTHING else a
    tokens: list[tree.Token] = []
    types: list[Type] = []
    rest = iter(a[0]), iter(b[0])
    leaves = iter(a[1]), iter(b[1])
    for x in rest[0]:
        y = next(rest[1], None)
        if y is not None and is_list(x) and is_list(y) and x[4][1] is y[4][1]:
            inner = both(x[4][0], y[4][0])
            if inner is None:
                return None
            for side, token in zip((0, 1), (x, y), strict=True):  # the columns and the length
                for _ in range(token[1]):
                    next(rest[side])
                    next(leaves[side])
            tokens += whole(inner, x[4][1])[0]
            types += whole(inner)[1]
            continue
        joined = x if x == y or y is None else joined_token(x, y)
        if y is None or joined is None:
            return None
        tokens.append(joined)
        if x == tree.LEAF:
            one, other = next(leaves[0]), next(leaves[1])
            if one.shape != other.shape:
                return None
            types.append(Type(promote(one.dtype, other.dtype), one.shape))
    return None if next(rest[1], None) is not None else (tuple(tokens), tuple(types))


def is_list(token: tree.Token) -> bool:
    return token[0] == "object" and token[2] is GrowingList


def known(number: Any) -> Traced:
    """A number as a value of the graph."""
    current = context()
    assert current is not None
    builder = current.open_builder
    return (
        number if isinstance(number, Traced) else Traced(builder, builder.gate(Const(np.int64(number)), current.span))
    )


def leaves_of_lists(structures: Sequence[tree.Structure]) -> dict[int, range]:
    """Of each leaf of these structures that is a part of such a list: the leaves of that list."""
    found: dict[int, range] = {}
    number = 0
    for structure in structures:
        tokens = iter(structure)
        for token in tokens:
            if is_list(token):
                leaves = range(number, number + token[1])
                found.update(dict.fromkeys(leaves, leaves))
            number += token == tree.LEAF
    return found


def depth_of(type_: Type) -> int:
    """Of how many lists within each other a part of an item is an item: these axes have run-time lengths."""
    return sum(d is None for d in type_.shape)


# -- values ----------------------------------------------------------------------------------------------------


class GrowingList:
    """A list that a graph can make longer and shorter, or a row of one."""

    __slots__ = (
        "__weakref__", "_columns", "_length", "copied", "first", "item", "kept", "kind", "path", "place", "root",
    )  # fmt: skip

    __undertow_said__ = "a list of run-time length"  # in messages

    def __init__(self, item: Item, columns: list[Any], length: Any, place: Any = None, kind: type = list) -> None:
        self.item, self.place, self.kind = item, place, kind
        self._columns, self._length = columns, length
        self.root, self.path, self.first = self, (), 0  # a row: where it is in which list, and in which columns
        self.kept: list[Any] = []  # arrays that were put into it, and that something else may hold
        self.copied: list[Any] = []  # columns of lists that have the same items

    @classmethod
    def row(cls, item: Item, root: GrowingList, path: tuple[Any, ...], first: int) -> GrowingList:
        """The list that is the item of another list at these indices, from that column on."""
        made = cls(item, [], None, None)
        made.root, made.path, made.first = root, path, first
        return made

    @property
    def is_row(self) -> bool:
        return self.root is not self

    @property
    def stores(self) -> list[Any]:
        """The columns of the outermost list that hold the items."""
        return self.root._columns[self.first : self.first + len(self.item[1])]

    @property
    def columns(self) -> list[Any]:
        return [self._part(column) for column in self.stores] if self.is_row else self._columns

    @property
    def length(self) -> Any:
        return self._part(self.length_store) if self.is_row else self._length

    @property
    def length_store(self) -> Any:
        return self.root._columns[self.first + len(self.item[1])] if self.is_row else self._length

    def _part(self, store: Traced) -> Any:
        """What a row has in a column of the outermost list: a view."""
        axes = tuple(range(len(self.path)))

        def write(array: Any, part: Any) -> Any:
            self.root.check_kept()
            array = widened(array, [None] * len(axes) + [extent(part, k) for k in range(_free(part))])
            part = widened(part, [extent(array, len(axes) + k) for k in range(_free(part))])
            return emit("put", [array, part, *self.path], axes=axes)[0]

        view = View(store, lambda array: emit("index", [array, *self.path], axes=axes)[0], write)
        value: Traced = view.read(store)
        if not value.type.rank:
            value.view = view
            return value
        return make_view(value, view)

    # -- as a container of values ------------------------------------------------------------------------------

    def __undertow_parts__(self) -> tuple[tree.Token, list[Any]]:
        return token_of(self.item, self.kind), [*self.columns, self.length]

    @staticmethod
    def __undertow_whole__(what: tuple[Item, type], contents: list[Any]) -> Any:
        *columns, length = contents
        item, kind = what
        if isinstance(length, Traced) or any(isinstance(column, Traced) for column in columns):
            return GrowingList(item, columns, length, kind=kind)
        count = len(columns[0]) if length is None else int(length)  # a length has no gradient
        return kind(tree.unflatten(item[0], [column[k] for column in columns]) for k in range(count))

    # -- made --------------------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls, items: Sequence[Any], item: Item, place: Any = None, kind: type = list, room: Any = None
    ) -> GrowingList:
        """A list of these items, with room for more."""
        made = cls(item, [], known(len(items)), place, kind)
        room = known(max(_ROOM, len(items)) if room is None else room)
        parts = [made.leaves_of(value) for value in items]
        for leaves in parts:
            made.keep(leaves)
        for k, type_ in enumerate(item[1]):
            rows = [leaves[k] for leaves in parts]
            free = depth_of(type_)
            widths = [_longest([extent(row, axis) for row in rows]) for axis in range(free)]
            widths = [known(0)] * free if not rows else widths
            column = functions.zeros((room, *widths, *type_.shape[free:]), dtype=type_.dtype)
            if rows:
                stacked = functions.stack([widened(row, widths) for row in rows])
                ends = [np.int64(0), np.int64(len(items))]
                (column,) = emit("put_between", [column, stacked, *ends], axis=0, step=1)
            made._columns.append(column)
        return made

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
            self.must_hold(wider)
            raise TypeMismatch(
                f"{describe(value)} does not fit into a list of {describe_item(self.item)}",
                hint="convert it: float(x), int(x)",
            )
        return _stored(value, self.item)

    def keep(self, leaves: Sequence[Any]) -> None:
        """Note which arrays among the parts of a new item something else holds: these must not change from now on."""
        current = context()
        arrays = [leaf for leaf in leaves if isinstance(leaf, (Traced, np.ndarray)) and leaf.ndim]
        if arrays and current is not None:
            aliases = current.session.interpreter.aliases
            self.root.kept += [array for array in arrays if aliases.is_held([array])]

    def must_hold(self, item: Item) -> None:
        """Start over, with a list that can hold other items, if it is known where it comes from."""
        current = context()
        if current is None or self.root.place is None:
            return
        if self.is_row:
            item = _replaced(self.root.item, self.first, item)
        current.session.let_grow(self.root.place, item)

    # -- read --------------------------------------------------------------------------------------------------

    def at(self, index: Any) -> Any:
        """The place of an item in the columns; one outside of them, if the list has no such item."""
        index = functions.astype(index, np.int64)
        from_front = functions.where(functions.less(index, 0), functions.add(index, self.length), index)
        is_there = functions.logical_and(functions.less_equal(0, from_front), functions.less(from_front, self.length))
        stores = self.stores
        outside = extent(stores[0], len(self.path)) if stores else self.length
        return functions.where(is_there, from_front, outside)

    def get(self, index: Any) -> Any:
        """`items[index]`: lists and arrays in it can be changed."""
        if self.item == NOTHING:
            raise IndexError("list index out of range")  # it is empty, until a path that is yet to come appends to it
        return self.item_at(self.at(index))

    def item_at(self, at: Any) -> Any:
        """The item at a place of the columns."""
        path = (*self.path, at)
        axes = tuple(range(len(path)))
        leaves: list[Any] = []
        stores = iter(enumerate(self.stores, self.first))
        tokens = iter(self.item[0])
        structure: list[tree.Token] = []
        for token in tokens:
            structure.append(token)
            if is_list(token):
                first, _ = next(stores)
                for _ in range(token[1]):
                    next(tokens)
                for _ in range(token[1] - 1):
                    next(stores)
                structure[-1] = tree.LEAF
                leaves.append(GrowingList.row(token[4][0], self.root, path, first))
            elif token == tree.LEAF:
                _, store = next(stores)
                (value,) = emit("index", [store, *path], axes=axes)
                leaves.append(self._item_view(value, store, path) if value.type.rank else value)
        return tree.unflatten(tuple(structure), leaves)

    def _item_view(self, value: Traced, store: Traced, path: tuple[Any, ...]) -> Any:
        """An array that is an item, or a part of one."""
        axes = tuple(range(len(path)))

        def write(array: Any, part: Any) -> Any:
            self.root.check_kept()
            return emit("put", [array, part, *path], axes=axes)[0]

        return make_view(value, View(store, lambda array: emit("index", [array, *path], axes=axes)[0], write))

    def check_kept(self) -> None:
        """Before an item changes: may something else hold it?"""
        current = context()
        assert current is not None
        if current.session.interpreter.aliases.is_held([*self.kept, *self.copied]):
            raise CaptureError(
                "an item of a list changes in place, and a variable may still hold it",
                hint="append a copy: items.append(x.copy())",
            )

    def rows(self, start: Any = 0, stop: Any = None) -> list[Any]:
        """A part of the list, as arrays."""
        bounds = [self.bound(start), self.length if stop is None else self.bound(stop)]
        return [emit("slice_between", [c, *bounds], axis=0, step=1)[0] for c in self.columns]

    def bound(self, at: Any) -> Any:
        if isinstance(at, int) and at == 0:
            return np.int64(0)
        return bound_from_front(at, self.length, 0, self.length)

    def with_columns(self, columns: list[Any], length: Any) -> GrowingList:
        """Another list of such items."""
        made = GrowingList(self.item, columns, known(length), self.root.place, self.kind)
        if not self.holds_numbers:
            made.kept, made.copied = list(self.root.kept), [*self.root.copied, *self.stores]
            self.root.copied += columns
        return made

    @property
    def holds_numbers(self) -> bool:
        """Are all parts of its items single numbers? Otherwise two lists may hold the same array or list."""
        return not any(type_.shape for type_ in self.item[1])

    def copy(self) -> GrowingList:
        columns = [emit("identity", [column])[0] for column in self.columns]
        return self.with_columns(columns, emit("identity", [self.length])[0])

    def __iter__(self) -> Any:
        raise CaptureError(
            "the length of this list is known only at run time", hint="loop over it with a plain `for item in items:`"
        )

    __len__ = __iter__
    __bool__ = __iter__

    def __repr__(self) -> str:
        raise CaptureError(
            "the text of a list whose length is known only at run time cannot be captured",
            hint="print an array of it: print(np.array(items)); or print each item, in a loop",
        )

    __str__ = __repr__

    def __format__(self, _: str) -> str:
        return repr(self)

    def __undertow_repr__(self) -> str:
        """For our own messages."""
        return self.__undertow_said__


def _stored(value: Any, item: Item) -> list[Any]:
    """The leaves of an item of this type, in the dtypes of the columns."""
    leaves: list[Any] = []
    tokens = iter(item[0])
    types = iter(item[1])
    for leaf in tree.flatten(value, _is_part)[0]:
        token = next(t for t in tokens if is_list(t) or t == tree.LEAF)
        if not is_list(token):
            leaves.append(as_operand(leaf, next(types).dtype))
            continue
        inner, kind = token[4]
        for _ in range(token[1]):
            next(tokens)
            next(types)
        if isinstance(leaf, GrowingList) and leaf.item == NOTHING != inner:
            leaf = GrowingList.of([], inner, kind=kind)
        if not isinstance(leaf, GrowingList):
            leaf = GrowingList.of(list(leaf), inner, kind=kind)
        columns = zip(leaf.columns, inner[1], strict=True)
        leaves += [c if c.dtype == type_.dtype else functions.astype(c, type_.dtype) for c, type_ in columns]
        leaves.append(leaf.length)
    return leaves


def _replaced(item: Item, first: int, inner: Item) -> Item:
    """The type of an item whose list from that column on has other items."""
    tokens: list[tree.Token] = []
    types: list[Type] = []
    rest, leaves = iter(item[0]), iter(item[1])
    number = 0
    for token in rest:
        if is_list(token):
            old, kind = token[4]
            size = token[1]
            for _ in range(size):
                next(rest)
                next(leaves)
            is_here = number == first
            new = inner if is_here else _replaced(old, first - number, inner) if number < first < number + size else old
            tokens += whole(new, kind)[0]
            types += whole(new)[1]
            number += size
            continue
        tokens.append(token)
        if token == tree.LEAF:
            types.append(next(leaves))
            number += 1
    return tuple(tokens), tuple(types)


def _free(part: Traced) -> int:
    return depth_of(part.type)


def _longest(lengths: Sequence[Any]) -> Any:
    longest = lengths[0] if lengths else np.int64(0)
    for other in lengths[1:]:
        longest = functions.maximum(longest, other)
    return longest


def widened(array: Any, extents: Sequence[Any]) -> Any:
    """An array with zeros behind it, so that its first axes have at least these lengths; None: as it is."""
    for axis, wanted in enumerate(extents):
        if wanted is None or (isinstance(array.type.shape[axis], int) and wanted is array.type.shape[axis]):
            continue
        own = [extent(array, k) if d is None else d for k, d in enumerate(array.type.shape)]
        missing = functions.maximum(functions.subtract(wanted, own[axis]), 0)
        own[axis] = missing
        array = functions.concat([array, functions.zeros(tuple(own), dtype=array.dtype)], axis=axis)
    return array


def describe_item(item: Item) -> str:
    return "nothing" if item == NOTHING else tree.show(item[0], [str(type_) for type_ in item[1]])
