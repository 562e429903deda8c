"""Methods of lists whose length is known only at run time (values/growing.py), as Python's lists have them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.list_stores import (
    check_change,
    detached,
    one_less,
    put_item,
    set_columns,
    set_length,
    take_out,
    update,
    with_room,
)
from undertow.frontend.interpret.standins import is_run_time
from undertow.frontend.values import tree
from undertow.frontend.values.growing import NOTHING, GrowingList, depth_of, item_type, widened
from undertow.frontend.values.operands import as_operand, as_weak
from undertow.frontend.values.traced import Traced, effect, emit, is_traced
from undertow.frontend.values.traced import length as extent

# -- methods ---------------------------------------------------------------------------------------------------


def append(interp: Any, items: GrowingList, value: Any) -> Work:
    leaves = items.leaves_of(value)
    check_change(interp, items, moves=False)
    items.keep(leaves)
    at = items.length
    after = functions.add(at, 1)
    columns = yield with_room(interp, items, after, leaves)
    put_item(interp, items, columns, leaves, at)
    set_length(interp, items, after)


def fill_next(interp: Any, items: GrowingList, value: Any) -> Work:
    """`items.append(value)`, where there is room for one more item."""
    leaves = items.leaves_of(value)
    items.keep(leaves)
    columns = items.stores if items.holds_numbers else (yield with_room(interp, items, None, leaves))
    at = items.length
    put_item(interp, items, columns, leaves, at)
    set_length(interp, items, functions.add(at, 1))


def extend(interp: Any, items: GrowingList, values: Any) -> Work:
    values = yield as_growing(interp, values)
    if isinstance(values, GrowingList) and values.item == NOTHING:
        return
    if not isinstance(values, GrowingList):
        for value in interp.iterate(values, interp.ctx.span):
            yield append(interp, items, value)
        return
    if not items.holds_numbers or not values.holds_numbers or values.item != items.item:
        count = emit("identity", [values.length])[0]  # of before, where a list is added to itself
        yield interp.repeat(count, lambda index: append(interp, items, values.get(index)))
        return
    check_change(interp, items, moves=False)
    rows, count = values.rows(), values.length
    ends = [items.length, functions.add(items.length, count)]
    columns = yield with_room(interp, items, ends[1])
    if items.is_row:
        update(interp, items.stores, columns)
        columns = items.columns
    put = [
        emit("put_between", [c, functions.astype(part, c.dtype), *ends], axis=0, step=1)[0]
        for c, part in zip(columns, rows, strict=True)
    ]
    set_columns(interp, items, put, ends[1])


def _extendleft(interp: Any, items: GrowingList, values: Any) -> Work:
    for value in interp.iterate(values, interp.ctx.span):
        yield _insert(interp, items, 0, value)


def _pop(interp: Any, items: GrowingList, index: Any = -1) -> Any:
    check_change(interp, items, moves=True)
    value = detached(items.get(index))
    if isinstance(index, int) and index == -1:
        is_there = functions.greater(items.length, 0)
        set_length(interp, items, one_less(items.length, is_there))
    else:
        take_out(interp, items, items.at(index))
    return value


def _insert(interp: Any, items: GrowingList, index: Any, value: Any) -> Work:
    leaves = items.leaves_of(value)
    check_change(interp, items, moves=True)
    items.keep(leaves)
    at, before = items.bound(index), items.length
    after = functions.add(before, 1)
    behind = [emit("slice_between", [c, at, before], axis=0, step=1)[0] for c in items.columns]
    columns = yield with_room(interp, items, after, leaves)
    update(interp, items.stores, columns)
    moved = [
        emit("put_between", [c, widened(part, [None, *(extent(c, k + 1) for k in range(depth_of(c.type) - 1))]),
                             functions.add(at, 1), after], axis=0, step=1)[0]
        for c, part in zip(items.columns, behind, strict=True)
    ]  # fmt: skip
    update(interp, items.columns, moved)
    put_item(interp, items, items.stores, leaves, at)
    set_length(interp, items, after)


def _clear(interp: Any, items: GrowingList) -> None:
    check_change(interp, items, moves=True)
    set_length(interp, items, functions.multiply(items.length, 0))


def _reverse(interp: Any, items: GrowingList) -> None:
    check_change(interp, items, moves=True)
    set_columns(interp, items, [functions.flip(part, axis=0) for part in items.rows()], items.length)


def _remove(interp: Any, items: GrowingList, value: Any) -> None:
    at = _index(interp, items, value, name="remove")
    check_change(interp, items, moves=True)
    take_out(interp, items, at)


def _index(
    interp: Any, items: GrowingList, value: Any, start: Any = 0, stop: Any = None, *, name: str = "index"
) -> Any:
    found = matches(items, value)
    low = items.bound(start)
    numbers = functions.arange(items.length)
    found = functions.logical_and(found, functions.greater_equal(numbers, low))
    if stop is not None:
        found = functions.logical_and(found, functions.less(numbers, items.bound(stop)))
    effect("raise", [functions.any(found)], template=f"list.{name}(x): x not in list", error="ValueError")
    (places,) = functions.nonzero(found)
    return as_weak(emit("index", [places, np.int64(0)], axes=(0,))[0])


def _count(interp: Any, items: GrowingList, value: Any) -> Any:
    return as_weak(functions.sum(functions.astype(matches(items, value), np.int64)))


def _sort(interp: Any, items: GrowingList, *, key: Any = None, reverse: Any = False) -> Work:
    check_change(interp, items, moves=True)
    ordered = yield in_order(interp, items, key, reverse)
    set_columns(interp, items, ordered, items.length)


def in_order(interp: Any, items: GrowingList, key: Any, reverse: Any) -> Work:
    """The columns of a list, sorted as Python sorts it: equal items stay in their order."""
    if isinstance(reverse, Traced):
        raise CaptureError("`reverse` must be known at capture time", hint="write reverse=True or reverse=False")
    rows = items.rows()
    keys = items if key is None else (yield interp.collected(items, key))
    by = rows if keys is items else keys.rows()
    if any(depth_of(type_) or type_.rank for type_ in keys.item[1]):
        raise CaptureError(
            "a list of lists or arrays whose length is known only at run time cannot be sorted by them",
            hint="sort by a number or a tuple of numbers: items.sort(key=len)",
        )
    if keys is items and len(rows) == 1 and rows[0].dtype.kind == "int":
        return [functions.astype(functions.sort(rows[0], descending=bool(reverse)), rows[0].dtype)]
    order = functions.arange(items.length)
    for column in reversed(by):
        values = functions.take(column, order, axis=0)
        if values.dtype.kind == "bool":
            values = functions.astype(values, np.int64)
        order = functions.take(order, functions.argsort(values, descending=bool(reverse)), axis=0)
    return [functions.take(part, order, axis=0) for part in rows]


METHODS: dict[str, Callable[..., Any]] = {
    "append": append,
    "extend": extend,
    "pop": _pop,
    "insert": _insert,
    "remove": _remove,
    "index": _index,
    "count": _count,
    "clear": _clear,
    "copy": lambda interp, items: items.copy(),
    "reverse": _reverse,
}
_OF_KIND: dict[type, dict[str, Callable[..., Any]]] = {
    list: {**METHODS, "sort": _sort},
    deque: {
        **METHODS,
        "popleft": lambda interp, items: _pop(interp, items, 0),
        "appendleft": lambda interp, items, value: _insert(interp, items, 0, value),
        "extendleft": _extendleft,
    },
}


@dataclass(frozen=True, slots=True, eq=False)
class ListMethod:
    """A method of such a list, before it is called."""

    items: GrowingList
    name: str


def call_method(interp: Any, items: GrowingList, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
    """`items.name(*args)`."""
    methods = _OF_KIND[items.kind]
    kind = items.kind.__name__
    if name not in methods:
        if not hasattr(items.kind, name):
            raise AttributeError(f"'{kind}' object has no attribute '{name}'")
        raise CaptureError(
            f"`{name}` of a {kind} whose length is known only at run time cannot be captured",
            hint=f"such a {kind} has {', '.join(methods)}; np.array(items) is an array with all that arrays have",
        )
    return (yield methods[name](interp, items, *args, **kwargs))


def as_growing(interp: Any, values: Any) -> Work:
    """Something to iterate over as such a list, if its length is known only at run time."""
    if isinstance(values, Traced) and is_run_time(values):
        row = values.type.with_shape(values.type.shape[1:])
        if row.is_static:
            return GrowingList(((tree.LEAF,), (row,)), [emit("identity", [values])[0]], extent(values, 0))
    if is_run_time(values) and not isinstance(values, GrowingList):
        return (yield interp.collected(values))
    return values


def matches(items: GrowingList, value: Any) -> Any:
    """For each item, whether it is equal to a value."""
    found = item_type([value])
    count = items.length
    if found is None or found[0] != items.item[0] or not items.holds_numbers:
        if found is not None and (not items.holds_numbers or any(type_.rank for type_ in found[1])):
            raise CaptureError(
                "a list of lists or arrays whose length is known only at run time cannot be searched",
                hint="loop over it, and compare each item with np.array_equal",
            )
        return functions.full((count,), False)
    same: Any = None
    for column, leaf in zip(items.rows(), tree.flatten(value, is_traced)[0], strict=True):
        equal = functions.equal(column, as_operand(leaf))
        same = equal if same is None else functions.logical_and(same, equal)
    return same
