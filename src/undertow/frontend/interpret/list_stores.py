"""How lists whose length is known only at run time change: their columns, their length, and the room in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.values import tree
from undertow.frontend.values.growing import (
    GrowingList,
    depth_of,
    widened,
)
from undertow.frontend.values.operands import type_of
from undertow.frontend.values.traced import Traced, emit
from undertow.frontend.values.traced import length as extent


def update(interp: Any, befores: Sequence[Any], afters: Sequence[Any]) -> None:
    for before, after in zip(befores, afters, strict=True):
        if after is not before:
            name = _name(interp, before)
            interp.changes.update(before, after, name, f"{name} = {name}.copy()")


def _name(interp: Any, store: Any) -> str:
    """What the user calls a list that has this column."""
    return next(iter(interp.aliases.holders([store], 1)), "items")


def check_change(interp: Any, items: GrowingList, moves: bool) -> None:
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


def set_columns(interp: Any, items: GrowingList, columns: Sequence[Any], length: Any) -> None:
    """Let a list have these columns and this length."""
    update(interp, items.columns, columns)
    set_length(interp, items, length)


def set_length(interp: Any, items: GrowingList, length: Any) -> None:
    if length is items.length_store:
        return
    store = items.length_store
    if items.is_row:
        length = emit(
            "put", [store, functions.astype(length, np.int64), *items.path], axes=tuple(range(len(items.path)))
        )[0]
    update(interp, [store], [length])


def with_room(interp: Any, items: GrowingList, needed: Any, leaves: Sequence[Any] = ()) -> Work:
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


def put_item(interp: Any, items: GrowingList, columns: Sequence[Any], leaves: Sequence[Any], at: Any) -> None:
    """Write an item to a place of the columns of the outermost list."""
    path = (*items.path, at)
    axes = tuple(range(len(path)))
    put = []
    for column, leaf in zip(columns, leaves, strict=True):
        fitted = widened(leaf, [extent(column, len(path) + k) for k in range(depth_of(type_of(leaf)))])
        put.append(emit("put", [column, fitted, *path], axes=axes)[0])
    update(interp, items.stores, put)


_ONE = np.ones(1, np.int64)


def one_less(length: Any, is_there: Any) -> Any:
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


def take_out(interp: Any, items: GrowingList, at: Any) -> None:
    """Remove the item at a place."""
    before = items.length
    after = one_less(before, functions.less(at, before))
    put = [
        emit("put_between", [c, emit("slice_between", [c, functions.add(at, 1), before], axis=0, step=1)[0], at, after],
             axis=0, step=1)[0]
        for c in items.columns
    ]  # fmt: skip
    set_columns(interp, items, put, after)
