"""Methods of lists whose length is known only at run time (values/growing.py), as Python's lists have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.values import tree
from undertow.frontend.values.growing import GrowingList, item_type
from undertow.frontend.values.traced import Traced, emit


def _store(interp: Any, items: GrowingList, columns: Sequence[Any], length: Any) -> None:
    for before, after in zip((*items.columns, items.length), (*columns, length), strict=True):
        if after is not before:
            interp.changes.update(before, after, "a list", "items = items.copy()")


def _with_room(interp: Any, items: GrowingList, more: Any) -> Work:
    """The columns, with room for so many more items."""
    needed = functions.add(items.length, more)
    room = functions.length(items.columns[0])

    def grown() -> list[Any]:
        extra = functions.maximum(needed, room)
        return [
            functions.concat([column, functions.zeros((extra, *column.shape[1:]), dtype=column.dtype)])
            for column in items.columns
        ]

    columns = [Traced(column.builder, column.port) for column in items.columns]
    return (yield interp.choose(functions.greater(needed, room), grown, lambda: columns, None))


def _append(interp: Any, items: GrowingList, value: Any) -> Work:
    leaves = items.leaves_of(value)
    columns = yield _with_room(interp, items, 1)
    at = items.length
    put = [emit("put", [c, leaf, at], axes=(0,))[0] for c, leaf in zip(columns, leaves, strict=True)]
    _store(interp, items, put, functions.add(at, 1))


def _extend(interp: Any, items: GrowingList, values: Any) -> Work:
    if not isinstance(values, GrowingList):
        if isinstance(values, Traced):
            values = GrowingList(item_type([values[0]]) or items.item, [values], functions.length(values))
        else:
            for value in interp.iterate(values, interp.ctx.span):
                yield _append(interp, items, value)
            return
    rows, count = values.rows(), values.length
    columns = yield _with_room(interp, items, count)
    ends = [items.length, functions.add(items.length, count)]
    put = [
        emit("put_between", [c, functions.astype(part, c.dtype), *ends], axis=0, step=1)[0]
        for c, part in zip(columns, rows, strict=True)
    ]
    _store(interp, items, put, ends[1])


def _pop(interp: Any, items: GrowingList, index: Any = -1) -> Any:
    value = items.get(index)
    fewer = functions.maximum(functions.subtract(items.length, 1), 0)
    columns: Sequence[Any] = items.columns
    if not (isinstance(index, int) and index == -1):
        columns = _moved(items, items.at(index), -1)
    _store(interp, items, columns, fewer)
    return value


def _moved(items: GrowingList, first: Any, by: int) -> list[Any]:
    """The columns with the items from `first` on moved to the front or the back by one place."""
    numbers = functions.arange(functions.length(items.columns[0]))
    last = functions.subtract(functions.length(items.columns[0]), 1)
    source = functions.where(functions.less(numbers, first), numbers, functions.subtract(numbers, by))
    source = functions.minimum(functions.maximum(source, 0), last)
    return [functions.take(column, source, axis=0) for column in items.columns]


def _insert(interp: Any, items: GrowingList, index: Any, value: Any) -> Work:
    leaves = items.leaves_of(value)
    at = items.bound(index)
    columns = yield _with_room(interp, items, 1)
    room = GrowingList(items.item, columns, items.length, items.place)
    put = [emit("put", [c, leaf, at], axes=(0,))[0] for c, leaf in zip(_moved(room, at, 1), leaves, strict=True)]
    _store(interp, items, put, functions.add(items.length, 1))


def _clear(interp: Any, items: GrowingList) -> None:
    _store(interp, items, items.columns, functions.multiply(items.length, 0))


METHODS: dict[str, Callable[..., Any]] = {
    "append": _append,
    "extend": _extend,
    "pop": _pop,
    "popleft": lambda interp, items: _pop(interp, items, 0),
    "insert": _insert,
    "clear": _clear,
    "copy": lambda interp, items: items.copy(),
}


@dataclass(frozen=True, slots=True, eq=False)
class ListMethod:
    """A method of such a list, before it is called."""

    items: GrowingList
    name: str


def call_method(interp: Any, items: GrowingList, name: str, args: Sequence[Any]) -> Work:
    """`items.name(*args)`."""
    if name not in METHODS:
        raise CaptureError(
            f"`{name}` of a list whose length is known only at run time cannot be captured",
            hint=f"such a list has {', '.join(METHODS)}; np.array(items) is an array with all that arrays have",
        )
    return (yield METHODS[name](interp, items, *args))


def as_array(items: GrowingList) -> Any:
    """The items of a list of numbers or arrays, as an array."""
    if items.item[0] != (tree.LEAF,):
        raise CaptureError(
            "a list of containers whose length is known only at run time is no array", hint="use a list for each part"
        )
    return items.rows()[0]


def assign_item(interp: Any, items: GrowingList, index: Any, value: Any) -> None:
    """`items[i] = value`."""
    if isinstance(index, slice):
        raise CaptureError(
            "a part of a list whose length is known only at run time cannot be assigned", hint="assign item by item"
        )
    leaves, at = items.leaves_of(value), items.at(index)
    put = [emit("put", [c, leaf, at], axes=(0,))[0] for c, leaf in zip(items.columns, leaves, strict=True)]
    _store(interp, items, put, items.length)


def contains(items: GrowingList, value: Any) -> Any:
    """`value in items`, of a list of numbers."""
    column = as_array(items)
    return functions.any(functions.equal(column, np.asarray(value) if not isinstance(value, Traced) else value))


def with_lists(interp: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
    """A call of code that is not the user's with such a list among its arguments."""
    if function is len:
        return emit("identity", [args[0].length])[0]
    if function is list:
        return args[0].copy()
    return (yield interp.call(function, [as_array(a) if isinstance(a, GrowingList) else a for a in args], kwargs))


def added(interp: Any, left: Any, right: Any) -> Work:
    """`left + right`, where one of them is such a list."""
    item = (left if isinstance(left, GrowingList) else right).item
    if not all(isinstance(side, (list, GrowingList)) for side in (left, right)):
        raise CaptureError("a list can only be added to a list", hint="write `items + [x]`")
    total = left.copy() if isinstance(left, GrowingList) else GrowingList.of(left, item)
    yield _extend(interp, total, right)
    return total
