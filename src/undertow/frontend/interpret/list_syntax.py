"""Syntax on lists whose length is known only at run time: slices, assignment, `del`, `in`, `==`, `+`, unpacking."""

from __future__ import annotations

import ast
from collections import deque
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.growing import extend, matches
from undertow.frontend.interpret.list_stores import (
    check_change,
    put_item,
    set_columns,
    take_out,
    with_room,
)
from undertow.frontend.values import tree
from undertow.frontend.values.growing import (
    NOTHING,
    GrowingList,
    Item,
    both,
    depth_of,
    describe_item,
    item_type,
)
from undertow.frontend.values.traced import Traced, effect, emit
from undertow.frontend.values.traced import length as extent


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
    check_change(interp, items, moves=not items.holds_numbers)
    items.keep(leaves)
    at = items.at(index)
    columns = items.stores if items.holds_numbers else (yield with_room(interp, items, None, leaves))
    put_item(interp, items, columns, leaves, at)


def _assign_part(interp: Any, items: GrowingList, key: slice, value: Any) -> Work:
    if key.step not in (None, 1):
        raise CaptureError(
            "a part of a list whose length is known only at run time is assigned with step 1 alone",
            hint="assign item by item, in a loop",
        )
    start = items.bound(0 if key.start is None else key.start)
    stop = items.length if key.stop is None else functions.maximum(items.bound(key.stop), start)
    check_change(interp, items, moves=True)
    total = items.with_columns(items.rows(0, start), start)
    yield extend(interp, total, value)
    after = items.rows(stop, None)
    yield extend(interp, total, items.with_columns(after, extent(after[0], 0)))
    set_columns(interp, items, total.columns, total.length)


def delete_item(interp: Any, items: GrowingList, index: Any) -> Work:
    """`del items[i]`, `del items[a:b]`."""
    if isinstance(index, slice):
        yield _assign_part(interp, items, index, [])
        return
    check_change(interp, items, moves=True)
    take_out(interp, items, items.at(index))


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
    yield extend(interp, total, both_sides[1])
    return total


def _converted(interp: Any, items: GrowingList, item: Item) -> Work:
    """A copy of a list, for items of a wider type."""
    if items.item == item:
        made = items.copy()
        made.place = None
        return made
    made = GrowingList.of([], item, kind=items.kind)
    if items.item != NOTHING:
        yield extend(interp, made, items)
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
