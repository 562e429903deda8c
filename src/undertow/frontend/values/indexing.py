"""`x[key]` as in NumPy, where the key may hold traced values.

Integers and bounds of slices may be static or traced; there may be masks, None (a new axis), an Ellipsis, and arrays
of integers: one takes rows, several are a `gathering`. Single indices come before slices, and new axes are added last.
"""

from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch, brief
from undertow.frontend.functions.array import check_static_indices, expand_dims, slice_between
from undertow.frontend.functions.creation import arange
from undertow.frontend.functions.selecting import agree, joined, nonzero, picked
from undertow.frontend.values.gathering import Gather, gather, read
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
    value, flat = without_masks(as_operand(x), key)
    items = items_of(flat, type_of(value).rank, str(type_of(value)))
    if is_gathered(items):
        return _gathered(value, items)
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
    return [_item(part) for part in parts]


def is_mask(part: Any) -> bool:
    """Is a part of a key an array of booleans?"""
    if isinstance(part, list):
        part = as_operand(part) if part else part
    return isinstance(part, (Traced, np.ndarray)) and type_of(part).dtype == bool_ and type_of(part).rank > 0


def without_masks(value: Any, key: Any, are_joined: bool = True) -> tuple[Any, Any]:
    """The same with masks of one axis: the axes that a mask of several covers are joined.

    Beside an array of integers, or another mask, a mask is the indices of what it chooses; where axes must stay, too.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    masks = [k for k, part in enumerate(parts) if is_mask(part)]
    used = [type_of(as_operand(p)).rank if is_mask(p) else int(p is not None and p is not Ellipsis) for p in parts]
    others = [p for p in parts if is_mask(p) or isinstance(p, (list, np.ndarray, np.generic, int, Traced))]
    if masks and (len(others) > 1 or not are_joined):
        for at in reversed(masks):
            before = _before(value, parts, used, at)
            agree(value, as_operand(parts[at]), before)
            parts[at : at + 1] = nonzero(parts[at])
        return value, tuple(parts)
    if not masks or used[masks[0]] == 1:
        return value, key
    (at,) = masks
    value, parts[at] = joined(value, as_operand(parts[at]), _before(value, parts, used, at))
    return value, tuple(parts)


def _before(value: Any, parts: list[Any], used: list[int], at: int) -> int:
    """How many axes of the array stand before a part of its key."""
    return sum(used[:at]) + (type_of(value).rank - sum(used) if any(p is Ellipsis for p in parts[:at]) else 0)


def is_gathered(items: list[Item]) -> bool:
    """Do arrays of integers name elements together? A single one, or one beside a single index, takes rows."""
    marks = [item.kind in ("take", "mask", "index") for item in items]
    takes = [item for item in items if item.kind in ("take", "mask")]
    places = [k for k, mark in enumerate(marks) if mark]
    return len(takes) > 1 or (bool(takes) and places[-1] - places[0] != len(places) - 1)


def gather_of(value: Any, items: list[Item]) -> Gather:
    """The elements that the arrays and single indices of a key name, of an array that is cut already."""
    kinds = [item.kind for item in items]
    marks = [k for k, kind in enumerate(kinds) if kind in ("take", "index")]
    together = marks[-1] - marks[0] == len(marks) - 1
    axes = list(itertools.accumulate((kind != "new" for kind in kinds), initial=0))
    indices = [
        (axes[k], np.int64(items[k].value) if isinstance(items[k].value, int) else items[k].value) for k in marks
    ]
    return gather(value, indices, kinds[: marks[0]].count("slice") if together else 0)


def new_axes_of(items: list[Item], at: Gather) -> tuple[int, ...]:
    """Where new axes stand, in the result of a key that gathers."""
    block, result = type_of(at.numbers).rank, 0
    kinds = [item.kind for item in items]
    marks = [k for k, kind in enumerate(kinds) if kind in ("take", "index")]
    together = marks[-1] - marks[0] == len(marks) - 1
    found: list[int] = []
    result = 0 if together else block
    for k, kind in enumerate(kinds):
        if kind == "new":
            found.append(result)
        result += block * (together and k == marks[0]) if k in marks else 1
    return tuple(found)


def sliced(items: list[Item]) -> list[Item]:
    """A key with whole slices in place of its arrays and single indices, and without new axes."""
    parts = [item for item in items if item.kind != "new"]
    return [item if item.kind == "slice" else Item("slice", slice(None)) for item in parts]


def _gathered(value: Any, items: list[Item]) -> Any:
    value = getitem(value, tuple(item.value for item in sliced(items)))
    at = gather_of(value, items)
    new_axes = new_axes_of(items, at)
    result = read(value, at)
    return expand_dims(result, new_axes) if new_axes else result


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
