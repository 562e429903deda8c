"""Methods of lists whose length is known only at run time (values/growing.py), as Python's lists have them."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.standins import is_run_time
from undertow.frontend.values import tree
from undertow.frontend.values.growing import (
    NOTHING,
    GrowingList,
    Item,
    both,
    depth_of,
    describe_item,
    item_type,
    widened,
)
from undertow.frontend.values.operands import as_operand, as_weak, type_of
from undertow.frontend.values.traced import Traced, effect, emit, is_traced
from undertow.frontend.values.traced import length as extent

# -- stores ----------------------------------------------------------------------------------------------------


def _update(interp: Any, befores: Sequence[Any], afters: Sequence[Any]) -> None:
    for before, after in zip(befores, afters, strict=True):
        if after is not before:
            name = _name(interp, before)
            interp.changes.update(before, after, name, f"{name} = {name}.copy()")


def _name(interp: Any, store: Any) -> str:
    """What the user calls a list that has this column."""
    return next(iter(interp.aliases.holders([store], 1)), "items")


def _check(interp: Any, items: GrowingList, moves: bool) -> None:
    """Before a change: may something else hold what changes? `moves`: items change their places, or are replaced."""
    root = items.root
    if items.is_row:
        root.check_kept()
    for store in root.stores[:1]:  # a `pop` changes no column
        name = _name(interp, store)
        interp.aliases.check_change(store, name, f"{name} = {name}.copy()")
    if moves and not items.holds_numbers and (name := interp.aliases.part_of(root)):
        raise CaptureError(
            f"`{name}` is an item of a list whose items move now: it would be another one",
            hint=f"take a copy of it, {name} = {name}.copy(), or move the items before",
        )


def _store(interp: Any, items: GrowingList, columns: Sequence[Any], length: Any) -> None:
    """Let a list have these columns and this length."""
    _update(interp, items.columns, columns)
    _set_length(interp, items, length)


def _set_length(interp: Any, items: GrowingList, length: Any) -> None:
    if length is items.length_store:
        return
    store = items.length_store
    if items.is_row:
        length = emit(
            "put", [store, functions.astype(length, np.int64), *items.path], axes=tuple(range(len(items.path)))
        )[0]
    _update(interp, [store], [length])


def _with_room(interp: Any, items: GrowingList, needed: Any, leaves: Sequence[Any] = ()) -> Work:
    """The columns of the outermost list, with room for so many items, and for these parts of one."""
    stores = [Traced(column.builder, column.port) for column in items.stores]
    at = len(items.path)
    wanted: list[list[Any]] = []  # the extents of the axes of each column
    tests: list[Any] = []
    room = extent(stores[0], at) if stores else None
    if needed is not None and stores:
        tests.append(functions.greater(needed, room))
    for store, leaf in zip(stores, leaves or [None] * len(stores), strict=True):
        free = 0 if leaf is None else depth_of(type_of(leaf))
        extents = [None] * at + [None] + [extent(leaf, axis) for axis in range(free)]
        tests += [functions.greater(extents[at + 1 + k], extent(store, at + 1 + k)) for k in range(free)]
        wanted.append(extents)
    if not tests:
        return stores
    is_full = tests[0]
    for test in tests[1:]:
        is_full = functions.logical_or(is_full, test)

    def grown() -> list[Any]:
        made = []
        for store, extents in zip(stores, wanted, strict=True):
            if needed is not None:
                twice = functions.add(room, functions.maximum(needed, room))
                extents[at] = functions.where(functions.greater(needed, room), twice, room)
            made.append(widened(store, extents))
        return made

    return (yield interp.choose(is_full, grown, lambda: stores, None))


def _put(interp: Any, items: GrowingList, columns: Sequence[Any], leaves: Sequence[Any], at: Any) -> None:
    """Write an item to a place of the columns of the outermost list."""
    path = (*items.path, at)
    axes = tuple(range(len(path)))
    put = []
    for column, leaf in zip(columns, leaves, strict=True):
        fitted = widened(leaf, [extent(column, len(path) + k) for k in range(depth_of(type_of(leaf)))])
        put.append(emit("put", [column, fitted, *path], axes=axes)[0])
    _update(interp, items.stores, put)


# -- methods ---------------------------------------------------------------------------------------------------


def _append(interp: Any, items: GrowingList, value: Any) -> Work:
    leaves = items.leaves_of(value)
    _check(interp, items, moves=False)
    items.keep(leaves)
    at = items.length
    after = functions.add(at, 1)
    columns = yield _with_room(interp, items, after, leaves)
    _put(interp, items, columns, leaves, at)
    _set_length(interp, items, after)


def fill_next(interp: Any, items: GrowingList, value: Any) -> Work:
    """`items.append(value)`, where there is room for one more item."""
    leaves = items.leaves_of(value)
    items.keep(leaves)
    columns = items.stores if items.holds_numbers else (yield _with_room(interp, items, None, leaves))
    at = items.length
    _put(interp, items, columns, leaves, at)
    _set_length(interp, items, functions.add(at, 1))


def _extend(interp: Any, items: GrowingList, values: Any) -> Work:
    values = yield as_growing(interp, values)
    if isinstance(values, GrowingList) and values.item == NOTHING:
        return
    if not isinstance(values, GrowingList):
        for value in interp.iterate(values, interp.ctx.span):
            yield _append(interp, items, value)
        return
    if not items.holds_numbers or not values.holds_numbers or values.item != items.item:
        count = emit("identity", [values.length])[0]  # of before, where a list is added to itself
        yield interp.repeat(count, lambda index: _append(interp, items, values.get(index)))
        return
    _check(interp, items, moves=False)
    rows, count = values.rows(), values.length
    ends = [items.length, functions.add(items.length, count)]
    columns = yield _with_room(interp, items, ends[1])
    if items.is_row:
        _update(interp, items.stores, columns)
        columns = items.columns
    put = [
        emit("put_between", [c, functions.astype(part, c.dtype), *ends], axis=0, step=1)[0]
        for c, part in zip(columns, rows, strict=True)
    ]
    _store(interp, items, put, ends[1])


def _extendleft(interp: Any, items: GrowingList, values: Any) -> Work:
    for value in interp.iterate(values, interp.ctx.span):
        yield _insert(interp, items, 0, value)


_ONE = np.ones(1, np.int64)


def _one_less(length: Any, is_there: Any) -> Any:
    """The length without an item; an IndexError, if there is no such item."""
    (one,) = emit("index", [_ONE, functions.where(is_there, 0, 1)], axes=(0,))
    return functions.subtract(length, one)


def detached(value: Any) -> Any:
    """An item that is in its list no longer."""
    leaves, structure = tree.flatten(value, lambda part: isinstance(part, (Traced, GrowingList)))
    alone: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, GrowingList):
            columns = [emit("identity", [column])[0] for column in leaf.columns]
            alone.append(GrowingList(leaf.item, columns, emit("identity", [leaf.length])[0], None, leaf.kind))
        else:
            alone.append(emit("identity", [leaf])[0] if getattr(leaf, "view", None) is not None else leaf)
    return tree.unflatten(structure, alone)


def _pop(interp: Any, items: GrowingList, index: Any = -1) -> Any:
    _check(interp, items, moves=True)
    value = detached(items.get(index))
    if isinstance(index, int) and index == -1:
        is_there = functions.greater(items.length, 0)
        _set_length(interp, items, _one_less(items.length, is_there))
    else:
        _take_out(interp, items, items.at(index))
    return value


def _take_out(interp: Any, items: GrowingList, at: Any) -> None:
    """Remove the item at a place."""
    before = items.length
    after = _one_less(before, functions.less(at, before))
    put = [
        emit("put_between", [c, emit("slice_between", [c, functions.add(at, 1), before], axis=0, step=1)[0], at, after],
             axis=0, step=1)[0]
        for c in items.columns
    ]  # fmt: skip
    _store(interp, items, put, after)


def _insert(interp: Any, items: GrowingList, index: Any, value: Any) -> Work:
    leaves = items.leaves_of(value)
    _check(interp, items, moves=True)
    items.keep(leaves)
    at, before = items.bound(index), items.length
    after = functions.add(before, 1)
    behind = [emit("slice_between", [c, at, before], axis=0, step=1)[0] for c in items.columns]
    columns = yield _with_room(interp, items, after, leaves)
    _update(interp, items.stores, columns)
    moved = [
        emit("put_between", [c, widened(part, [None, *(extent(c, k + 1) for k in range(depth_of(c.type) - 1))]),
                             functions.add(at, 1), after], axis=0, step=1)[0]
        for c, part in zip(items.columns, behind, strict=True)
    ]  # fmt: skip
    _update(interp, items.columns, moved)
    _put(interp, items, items.stores, leaves, at)
    _set_length(interp, items, after)


def _clear(interp: Any, items: GrowingList) -> None:
    _check(interp, items, moves=True)
    _set_length(interp, items, functions.multiply(items.length, 0))


def _reverse(interp: Any, items: GrowingList) -> None:
    _check(interp, items, moves=True)
    _store(interp, items, [functions.flip(part, axis=0) for part in items.rows()], items.length)


def _remove(interp: Any, items: GrowingList, value: Any) -> None:
    at = _index(interp, items, value, name="remove")
    _check(interp, items, moves=True)
    _take_out(interp, items, at)


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
    _check(interp, items, moves=True)
    ordered = yield in_order(interp, items, key, reverse)
    _store(interp, items, ordered, items.length)


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
    "append": _append,
    "extend": _extend,
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


# -- operators and syntax --------------------------------------------------------------------------------------


def as_growing(interp: Any, values: Any) -> Work:
    """Something to iterate over as such a list, if its length is known only at run time."""
    if isinstance(values, Traced) and is_run_time(values) and values.type.with_shape(values.type.shape[1:]).is_static:
        item = item_type([values[0]])
        assert item is not None
        return GrowingList(item, [emit("identity", [values])[0]], extent(values, 0))
    if is_run_time(values) and not isinstance(values, GrowingList):
        return (yield interp.collected(values))
    return values


def cut(items: GrowingList, key: slice) -> GrowingList:
    """`items[a:b:c]`."""
    if isinstance(key.step, Traced):
        raise CaptureError(
            "the step of a slice must be known at capture time", hint="write a number, or loop over the indices"
        )
    if key.step in (None, 1):
        columns = items.rows(0 if key.start is None else key.start, key.stop)
    else:
        columns = [rows[key] for rows in items.rows()]
    length = extent(columns[0], 0) if columns else items.length
    return items.with_columns(columns, length)


def unpacked(items: GrowingList, target: ast.Tuple | ast.List) -> list[Any]:
    """The items that some variables get; a list for the starred one."""
    stars = [n for n, part in enumerate(target.elts) if isinstance(part, ast.Starred)]
    named = len(target.elts) - len(stars)
    fits = functions.greater_equal if stars else functions.equal
    least = "at least " if stars else ""
    effect(
        "raise", [fits(items.length, named), items.length], error="ValueError",
        template=f"values to unpack: expected {least}{named}, got {{}}",
    )  # fmt: skip
    if not stars:
        return [items.get(k) for k in range(named)]
    behind = named - stars[0]
    before = [items.get(k) for k in range(stars[0])]
    rest = cut(items, slice(stars[0], -behind if behind else None))
    return [*before, rest, *(items.get(k) for k in range(-behind, 0))]


def as_array(items: GrowingList) -> Any:
    """The items of a list of numbers or arrays, or of tuples or lists of numbers, as an array."""
    structure, types = items.item
    rows = items.rows()
    if structure == (tree.LEAF,):
        return rows[0]
    if len(types) and structure == (("tuple", len(types)), *(tree.LEAF for _ in types)) and items.holds_numbers:
        return functions.stack(rows, axis=1)
    if len(types) == 2 and len(structure) == 3 and depth_of(types[0]):  # rows of numbers
        widths = rows[1]
        width = functions.max(widths)
        effect(
            "raise", [functions.all(functions.equal(widths, width))], error="ValueError",
            template="the rows of a list have different lengths: they are no array",
        )  # fmt: skip
        return emit("slice_between", [rows[0], np.int64(0), width], axis=1, step=1)[0]
    raise CaptureError(
        "a list of containers whose length is known only at run time is no array", hint="use a list for each part"
    )


def assign_item(interp: Any, items: GrowingList, index: Any, value: Any) -> Work:
    """`items[i] = value`."""
    if isinstance(index, slice):
        yield _assign_part(interp, items, index, value)
        return
    leaves = items.leaves_of(value)
    _check(interp, items, moves=not items.holds_numbers)
    items.keep(leaves)
    at = items.at(index)
    columns = items.stores if items.holds_numbers else (yield _with_room(interp, items, None, leaves))
    _put(interp, items, columns, leaves, at)


def _assign_part(interp: Any, items: GrowingList, key: slice, value: Any) -> Work:
    if key.step not in (None, 1):
        raise CaptureError(
            "a part of a list whose length is known only at run time is assigned with step 1 alone",
            hint="assign item by item, in a loop",
        )
    start = items.bound(0 if key.start is None else key.start)
    stop = items.length if key.stop is None else functions.maximum(items.bound(key.stop), start)
    _check(interp, items, moves=True)
    total = items.with_columns(items.rows(0, start), start)
    yield _extend(interp, total, value)
    after = items.rows(stop, None)
    yield _extend(interp, total, items.with_columns(after, extent(after[0], 0)))
    _store(interp, items, total.columns, total.length)


def delete_item(interp: Any, items: GrowingList, index: Any) -> Work:
    """`del items[i]`, `del items[a:b]`."""
    if isinstance(index, slice):
        yield _assign_part(interp, items, index, [])
        return
    _check(interp, items, moves=True)
    _take_out(interp, items, items.at(index))


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


def contains(items: GrowingList, value: Any) -> Any:
    """`value in items`."""
    return functions.any(matches(items, value))


def equal_lists(interp: Any, left: Any, right: Any) -> Work:
    """`left == right`, where one of them is such a list."""
    if not all(isinstance(side, (list, deque, GrowingList)) for side in (left, right)):
        return False
    kinds = [side.kind if isinstance(side, GrowingList) else type(side) for side in (left, right)]
    if kinds[0] is not kinds[1]:
        return False
    items = [side if isinstance(side, GrowingList) else as_list(side) for side in (left, right)]
    if not all(side.holds_numbers for side in items):
        raise CaptureError(
            "lists of lists or arrays whose length is known only at run time cannot be compared",
            hint="compare them item by item, in a loop",
        )
    same = functions.equal(items[0].length, items[1].length)
    if items[0].item[0] != items[1].item[0]:
        return functions.logical_and(same, functions.equal(items[0].length, 0))
    for a, b in zip(items[0].rows(), items[1].rows(), strict=True):
        same = yield interp.choose(
            same, lambda a=a, b=b: functions.all(functions.equal(a, b)), lambda: functions.astype(0, np.bool_), None
        )
    return same


def as_list(items: Any) -> GrowingList:
    """A list of Python's as one of these."""
    item = item_type(list(items))
    if item is None:
        raise CaptureError(
            "a list beside one whose length is known only at run time has items of one type",
            hint="keep values of different types in lists of their own",
        )
    return GrowingList.of(list(items), item)


def added(interp: Any, left: Any, right: Any) -> Work:
    """`left + right`, where one of them is such a list."""
    if not all(isinstance(side, (list, GrowingList)) for side in (left, right)):
        raise CaptureError("a list can only be added to a list", hint="write `items + [x]`")
    both_sides = [side if isinstance(side, GrowingList) else as_list(side) for side in (left, right)]
    item = both(both_sides[0].item, both_sides[1].item)
    if item is None:
        raise TypeMismatch(
            " and ".join(f"a list of {describe_item(side.item)}" for side in both_sides) + " cannot be added",
            hint="a list whose length is known only at run time has items of one type",
        )
    total = yield _converted(interp, both_sides[0], item)
    yield _extend(interp, total, both_sides[1])
    return total


def _converted(interp: Any, items: GrowingList, item: Item) -> Work:
    """A copy of a list, for items of a wider type."""
    if items.item == item:
        made = items.copy()
        made.place = None
        return made
    made = GrowingList.of([], item, kind=items.kind)
    if items.item != NOTHING:
        yield _extend(interp, made, items)
    return made


def repeated(interp: Any, items: Any, times: Any) -> Any:
    """`items * n`."""
    if not isinstance(items, GrowingList):
        items = as_list(items)
    if not items.holds_numbers:
        raise CaptureError(
            "in Python all items of a repeated list are the same object, which changes everywhere",
            hint="make a new one for each: [[0] * m for _ in range(n)], or np.zeros((n, m))",
        )
    count = functions.maximum(functions.astype(times, np.int64), 0)
    total = functions.multiply(items.length, count)
    rows = items.rows()
    which = functions.remainder(functions.arange(total), functions.maximum(items.length, 1))
    made = items.with_columns([functions.take(column, which, axis=0) for column in rows], total)
    made.place = interp.ctx.span.place
    return made
