"""`x[key]` as in NumPy, where the key may hold traced values.

Integers and bounds of slices may be static or traced; there may be one array of integers (which takes rows) or mask,
None (a new axis) and an Ellipsis. Single indices are applied before slices, and new axes are added last.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions.array import check_static_indices, expand_dims, slice_between
from undertow.frontend.functions.creation import arange
from undertow.frontend.functions.selecting import joined, picked
from undertow.frontend.values.operands import as_operand, dims, is_static_int, static_int, type_of
from undertow.frontend.values.traced import FUNCTIONS, Traced, emit
from undertow.types import bool_


@dataclass(frozen=True, slots=True)
class Item:
    """One part of a key: what it does to the next axis of the array."""

    kind: str  # "index" (removes the axis), "slice", "take", "mask" or "new" (adds an axis)
    value: Any = None


def getitem(x: Any, key: Any) -> Any:
    """x[key].

    >>> getitem(np.arange(12).reshape(3, 4), (1, slice(None, None, 2)))
    array([4, 6])
    """
    value, flat = without_wide_masks(as_operand(x), key)
    items = items_of(flat, type_of(value).rank, str(type_of(value)))
    value, rest = read_elements(value, items)
    value = cut_static(value, rest)
    axis = 0
    new_axes: list[int] = []
    for item in rest:
        if item.kind == "new":
            new_axes.append(axis)
            axis += 1
            continue
        # New axes in front do not exist yet, so they do not count.
        at = axis - len(new_axes)
        if item.kind == "take":
            check_static_indices(item.value, type_of(value).shape[at], at)
            (value,) = emit("take", [value, item.value], axis=at)
            axis += type_of(item.value).rank
        elif item.kind == "mask":
            value = picked(value, item.value, at)
            axis += 1
        else:
            if not is_static_slice(item.value):
                step = 1 if item.value.step is None else item.value.step
                value = slice_between(value, item.value.start, item.value.stop, axis=at, step=step)
            axis += 1
    return expand_dims(value, tuple(new_axes)) if new_axes else value


def items_of(key: Any, rank: int, shown: str) -> list[Item]:
    """The parts of a key, one for each axis, with the Ellipsis expanded."""
    parts = list(key) if isinstance(key, tuple) else [key]
    dots = [k for k, part in enumerate(parts) if part is Ellipsis]
    used = sum(1 for part in parts if part is not None and part is not Ellipsis)
    if len(dots) > 1:
        raise TypeMismatch("an index can contain only one `...`", hint="write out the other slices as `:`")
    if used > rank:
        axes = "no axes" if rank == 0 else f"{rank} ax{'i' if rank == 1 else 'e'}s"
        raise TypeMismatch(
            f"{used} ind{'ex' if used == 1 else 'ices'} cannot index {shown}, which has {axes}",
            hint="a scalar cannot be indexed" if rank == 0 else "use at most one index per axis",
        )
    at = dots[0] if dots else len(parts)
    parts[at : at + 1] = [slice(None)] * (rank - used)
    items = [_item(part) for part in parts]
    takes = [k for k, item in enumerate(items) if item.kind in ("take", "mask")]
    if len(takes) > 1:
        raise TypeMismatch(
            "an index cannot contain more than one array of integers or mask",
            hint="index one axis at a time: x[rows][:, columns], or use ut.take_along_axis",
        )
    if takes and not _together([item.kind in ("take", "mask", "index") for item in items]):
        raise TypeMismatch(
            "an index cannot combine an array and a number with a slice between them",
            hint="index twice: first with the number, then with the array",
        )
    return items


def is_mask(part: Any) -> bool:
    """Is a part of a key an array of booleans?"""
    if isinstance(part, list):
        part = as_operand(part) if part else part
    return isinstance(part, (Traced, np.ndarray)) and type_of(part).dtype == bool_ and type_of(part).rank > 0


def without_wide_masks(value: Any, key: Any) -> tuple[Any, Any]:
    """The same with masks of one axis: the axes that a mask of several covers are joined."""
    parts = list(key) if isinstance(key, tuple) else [key]
    wide = [k for k, part in enumerate(parts) if is_mask(part) and type_of(as_operand(part)).rank > 1]
    if len(wide) != 1:
        return value, key
    (at,) = wide
    mask = as_operand(parts[at])
    used = [type_of(as_operand(p)).rank if is_mask(p) else int(p is not None and p is not Ellipsis) for p in parts]
    before = sum(used[:at]) + (type_of(value).rank - sum(used) if any(p is Ellipsis for p in parts[:at]) else 0)
    value, parts[at] = joined(value, mask, before)
    return value, tuple(parts)


def _together(marked: list[bool]) -> bool:
    places = [k for k, mark in enumerate(marked) if mark]
    return not places or places[-1] - places[0] == len(places) - 1


def _item(part: Any) -> Item:
    if part is None:
        return Item("new")
    if isinstance(part, slice):
        return Item("slice", part)
    if is_static_int(part):
        return Item("index", int(part))
    if isinstance(part, (Traced, np.ndarray, list, np.generic)):
        value = np.zeros(0, np.int64) if isinstance(part, list) and not part else as_operand(part)
        dtype, rank = type_of(value).dtype, type_of(value).rank
        if dtype.kind == "int":
            return Item("take" if rank else "index", value)
        if dtype.kind == "bool" and rank:
            return Item("mask", value)
        if dtype.kind == "bool":
            raise TypeMismatch(
                "a single bool cannot be an index of an array",
                hint="write x[int(p)] for x[0] or x[1]; `x if p else 0` and ut.where choose by a bool",
            )
        raise TypeMismatch(
            f"an index must be an integer, not {type_of(value)}", hint="convert it with ut.astype(i, ut.i64)"
        )
    if hasattr(part, "__index__") and not isinstance(part, bool):
        return Item("index", operator.index(part))
    raise TypeMismatch(
        f"{brief(part)} cannot be an index", hint="use integers, slices, None, `...` or an array of integers"
    )


def read_elements(value: Any, items: list[Item]) -> tuple[Any, list[Item]]:
    """Apply the single indices, which remove their axes; also the rest of the key."""
    axes: list[int] = []
    indices: list[Any] = []
    axis = 0
    for item in items:
        if item.kind == "index":
            check_static_indices(item.value, type_of(value).shape[axis], axis)
            axes.append(axis)
            indices.append(np.int64(item.value) if isinstance(item.value, int) else item.value)
        axis += item.kind != "new"
    if axes:
        (value,) = emit("index", [value, *indices], axes=tuple(axes))
    rest = [item for item in items if item.kind != "index"]
    lengths = iter(dims(value)) if any(_has_traced_step(item) for item in rest) else None
    if lengths is not None:
        sizes = {n: next(lengths) for n, item in enumerate(rest) if item.kind != "new"}
        rest = [_places(item.value, sizes[n]) if _has_traced_step(item) else item for n, item in enumerate(rest)]
    return value, rest


def _has_traced_step(item: Item) -> bool:
    return item.kind == "slice" and isinstance(item.value.step, Traced)


def bound_from_front(at: Any, length: Any, least: Any, most: Any) -> Any:
    """A bound of a slice, counted from the front, as Python clips it."""
    from_front = FUNCTIONS["where"](FUNCTIONS["less"](at, 0), FUNCTIONS["add"](at, length), at)
    return FUNCTIONS["minimum"](FUNCTIONS["maximum"](from_front, least), most)


def _places(part: slice, length: Any) -> Item:
    """The elements of a slice whose step is known only at run time."""
    less, add, where = FUNCTIONS["less"], FUNCTIONS["add"], FUNCTIONS["where"]
    is_up = less(0, part.step)

    def bound(at: Any, up: Any, down: Any) -> Any:
        if at is None:
            return where(is_up, up, down)
        return bound_from_front(at, length, where(is_up, 0, -1), where(is_up, length, add(length, -1)))

    first, last = bound(part.start, 0, add(length, -1)), bound(part.stop, length, -1)
    return Item("take", arange(first, last, part.step))


def is_static_slice(part: slice) -> bool:
    return not isinstance(part.start, Traced) and not isinstance(part.stop, Traced)


def cut_static(value: Any, items: list[Item]) -> Any:
    """Apply all slices with static bounds, in one node."""
    bounds = bounds_of(items)
    if all(b is None for each in bounds.values() for b in each):
        return value
    return emit("slice", [value], **bounds)[0]


def bounds_of(items: list[Item]) -> dict[str, tuple[int | None, ...]]:
    """The attributes of a `slice` with all slices whose bounds are static."""
    parts = [item.value for item in items if item.kind != "new"]
    cuts = [part if isinstance(part, slice) and is_static_slice(part) else slice(None) for part in parts]
    bounds = [
        [None if b is None else static_int(b, "a bound of a slice") for b in (cut.start, cut.stop, cut.step)]
        for cut in cuts
    ]
    return {name: tuple(cut[k] for cut in bounds) for k, name in enumerate(("starts", "stops", "steps"))}
