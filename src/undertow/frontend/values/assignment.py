"""`x[key] = value` as in NumPy, where the key may hold traced values; views that can be written back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.array import bounds_between, check_static_indices, expand_dims
from undertow.frontend.functions.selecting import agree, joined
from undertow.frontend.functions.selecting import places as places_in
from undertow.frontend.values import gathering
from undertow.frontend.values.indexing import (
    Item,
    bounds_of,
    cut_static,
    gather_of,
    getitem,
    is_gathered,
    is_mask,
    is_static_slice,
    items_of,
    new_axes_of,
    read_elements,
    sliced,
    without_masks,
)
from undertow.frontend.values.operands import as_operand, dims, static_int, type_of
from undertow.frontend.values.traced import FUNCTIONS, Traced, emit, is_basic, roots_of
from undertow.frontend.values.views import View, make_view
from undertow.types import said


def replaced(x: Any, key: Any, value: Any) -> Any:
    """A copy of x after `x[key] = value`: the value is broadcast, and converted to the dtype of x, as in NumPy.

    >>> replaced(np.arange(4), slice(1, 3), 9)
    array([0, 9, 9, 3])
    """
    array = as_operand(x)
    fresh = as_operand(value)
    if type_of(fresh).dtype != type_of(array).dtype:
        fresh = functions.astype(fresh, type_of(array).dtype)
    masks = [part for part in (key if isinstance(key, tuple) else (key,)) if is_mask(part)]
    if masks and key is masks[0]:
        return _masked(array, key, fresh)
    return _changed(array, key, fresh, gathering.written)


def summed(x: Any, key: Any, value: Any) -> Any:
    """A copy of x with a value added at a key: unlike after `x[key] += v`, an element that is named twice gets both."""
    array = as_operand(x)
    if is_basic(key):
        return replaced(array, key, functions.add(getitem(array, key), value))
    fresh = as_operand(value)
    if not np.can_cast(type_of(fresh).dtype.numpy, type_of(array).dtype.numpy, "same_kind"):
        raise TypeMismatch(
            f"{said(type_of(fresh))} cannot be added to elements of {said(type_of(array))}",
            hint="convert the array first: x.astype(np.float64)",
        )
    fresh = functions.astype(fresh, type_of(array).dtype)
    return _changed(array, key, fresh, gathering.added)


def _changed(array: Any, key: Any, fresh: Any, change: Callable[[Any, gathering.Gather, Any], Any]) -> Any:
    """A copy of an array after a change at a key that is more than a mask."""
    items = items_of(without_masks(array, key, are_joined=False)[1], type_of(array).rank, str(type_of(array)))
    takes = [item for item in items if item.kind == "take"]
    if is_gathered(items) or (takes and (change is gathering.added or type_of(takes[0].value).rank > 1)):
        return _write_back(array, sliced(items), fresh, (items, change))
    return _write_back(array, items, fresh)


def _write_back(array: Any, items: list[Item], fresh: Any, last: tuple[list[Item], Any] | None = None) -> Any:
    """Read what the key names, part by part, and write the new value back in the opposite order."""
    parts = [array]  # what is read, one after the other
    writes: list[tuple[str, list[Any], dict[str, Any]]] = []  # and the operator that writes each back

    def read(part: Any, op: str, places: list[Any], **attrs: Any) -> None:
        parts.append(part)
        writes.append((op, places, attrs))

    picked, rest = read_elements(array, items)
    if len(rest) != len(items):
        axes = [axis for axis, item in enumerate(i for i in items if i.kind != "new") if item.kind == "index"]
        indices = [np.int64(i.value) if isinstance(i.value, int) else i.value for i in items if i.kind == "index"]
        read(picked, "put", indices, axes=tuple(axes))
    if (cut := cut_static(picked, rest)) is not picked:
        read(cut, "put_slice", [], **bounds_of(rest))
    axis = 0
    for item in rest:
        if item.kind == "take":
            check_static_indices(item.value, type_of(parts[-1]).shape[axis], axis)
            read(emit("take", [parts[-1], item.value], axis=axis)[0], "put_rows", [item.value], axis=axis)
        elif item.kind == "slice" and not is_static_slice(item.value):
            step = 1 if item.value.step is None else static_int(item.value.step, "the step of a slice")
            bounds = bounds_between(item.value.start, item.value.stop, step)
            part = emit("slice_between", [parts[-1], *bounds], axis=axis, step=step)[0]
            read(part, "put_between", bounds, axis=axis, step=step)
        axis += item.kind != "new"
    new_axes = [number for number, item in enumerate(rest) if item.kind == "new"]
    part = parts.pop()
    if last is not None:
        named, change = last
        at = gather_of(part, named)
        value = change(part, at, _fitted(fresh, gathering.read(part, at), array, list(new_axes_of(named, at))))
    else:
        value = _fitted(fresh, part, array, new_axes)
    for op, places, attrs in reversed(writes):
        (value,) = emit(op, [parts.pop(), value, *places], **attrs)
    return value


def _fitted(fresh: Any, place: Any, array: Any, new_axes: list[int]) -> Any:
    """A value of the shape of the place that it replaces."""
    type_, wanted = type_of(fresh), type_of(place)
    for axis in reversed(new_axes):
        if type_.rank > axis and type_.rank > wanted.rank:
            fresh = functions.squeeze(fresh, axis)
    type_ = type_of(fresh)
    while type_.rank > wanted.rank and type_.shape[0] == 1:
        fresh = functions.squeeze(fresh, 0)
        type_ = type_of(fresh)
    if type_.rank > wanted.rank or any(
        a not in (1, b) and a is not None and b is not None
        for a, b in zip(reversed(type_.shape), reversed(wanted.shape), strict=False)
    ):
        raise TypeMismatch(
            f"{said(type_)} does not fit into {said(wanted)}, the part of {said(type_of(array))} that is assigned",
            hint="the shapes must be equal, or broadcast",
        )
    return fresh if type_.shape == wanted.shape and type_.is_static else functions.broadcast_to(fresh, dims(place))


def _masked(array: Any, mask: Any, fresh: Any) -> Any:
    """X with a value where a mask of its leading axes is true."""
    chosen, whole = as_operand(mask), type_of(array)
    inside = whole.rank - type_of(chosen).rank
    if inside < 0:
        raise TypeMismatch(f"{said(type_of(chosen))} cannot be a mask of {said(whole)}", hint="it has too many axes")
    if type_of(fresh).rank > inside:
        return _placed(array, chosen, fresh)
    if inside:
        chosen = expand_dims(chosen, tuple(range(whole.rank - inside, whole.rank)))
    return functions.where(functions.broadcast_to(chosen, dims(array)), fresh, array)


def _placed(array: Any, mask: Any, fresh: Any) -> Any:
    """A row of the value for each true element of the mask, in order."""
    agree(array, mask, 0)
    rows, flat = joined(array, mask, 0)
    numbers = places_in(flat)
    (old,) = emit("take", [rows, numbers], axis=0)
    (rows,) = emit("put_rows", [rows, _fitted(fresh, old, array, []), numbers], axis=0)
    return functions.reshape(rows, dims(array))


def getitem_or_view(x: Any, key: Any) -> Any:
    """x[key]; of a traced array, a view, where NumPy gives one."""
    item = getitem(x, key)
    if not isinstance(x, Traced) or not is_basic(key):
        return item
    return make_view(item, View(x, lambda array: getitem(array, key), lambda array, part: replaced(array, key, part)))


_MOVES_AXES = frozenset(("matrix_transpose", "moveaxis", "permute_dims", "rollaxis", "swapaxes", "transpose"))
_REVERSES = frozenset(("flip", "fliplr", "flipud"))  # to do it again undoes it
_RESHAPES = frozenset(("expand_dims", "ravel", "reshape", "squeeze"))


def shaped_view(value: Traced, array: Traced, name: str, read: Callable[[Any], Any]) -> Any:
    """What the function `name` has made of an array, as a view: the same elements in another shape.

    Of other views, such as a diagonal, only the array behind them is known: they cannot be written back.
    """
    if name in _RESHAPES:
        return make_view(value, View(array, read, lambda whole, part: functions.reshape(part, dims(whole))))
    if name in _MOVES_AXES:
        lengths = range(array.type.rank)  # different ones, by which axes are known
        back = tuple(int(axis) for axis in np.argsort(read(np.empty([n + 1 for n in lengths])).shape))
        return make_view(value, View(array, read, lambda _, part: functions.permute_dims(part, back)))
    if name in _REVERSES:
        return make_view(value, View(array, read, lambda _, part: read(part)))
    if value is not array and value.type.rank:
        value.base = roots_of(array)
    return value


class At:
    """`x.at[key]`, whose methods give a copy of x that differs at that key, as in JAX."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __getitem__(self, key: Any) -> Place:
        return Place(self._array, key)


class Place:
    """A part of an array, to be replaced in a copy."""

    __undertow_capture__ = True  # its methods write nodes

    def __init__(self, array: Any, key: Any) -> None:
        self._array, self._key = array, key

    def get(self) -> Any:
        return getitem(self._array, self._key)

    def set(self, value: Any) -> Any:
        return replaced(self._array, self._key, value)

    def add(self, value: Any) -> Any:
        """Unlike `x[i] += v`, an index that occurs twice counts twice."""
        return summed(self._array, self._key, value)

    def multiply(self, value: Any) -> Any:
        return self.set(functions.multiply(self.get(), value))

    mul = multiply

    def max(self, value: Any) -> Any:
        return self.set(functions.maximum(self.get(), value))

    def min(self, value: Any) -> Any:
        return self.set(functions.minimum(self.get(), value))


FUNCTIONS["at"] = At
FUNCTIONS["__getitem__"] = getitem_or_view
