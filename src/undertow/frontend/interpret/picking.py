"""`items[i]` of a list or tuple at an index known at run time: one of its items, put together from its parts.

The items have one structure, and each part of the result is taken from an array of that part of all items. So a row of
a nested list is a list, and an item that is an array is one of those arrays: who changes one changes the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.control.aliasing import is_array
from undertow.frontend.functions import public as functions
from undertow.frontend.values.indexing import getitem
from undertow.frontend.values.leaves import leaf_type
from undertow.frontend.values.traced import Traced, is_traced, roots_of
from undertow.frontend.values.tree import LEAF, flatten, unflatten
from undertow.types import bool_, i64


class Picking:
    """What one capture has taken from lists at traced indices."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[Any, Any]] = {}  # by identity: a list of numbers, and the same as an array

    def pick(self, items: Sequence[Any], key: Any) -> Any:
        """`items[key]`."""
        key = _index(key, items)
        known = self._rows.get(id(items))
        if known is not None and known[0] is items:
            return getitem(known[1], key)
        parts = [flatten(item, is_traced) for item in items]
        if len({structure for _, structure in parts}) > 1 or (parts and not parts[0][0]):
            raise _refused(items)
        structure = parts[0][1] if parts else (LEAF,)
        columns = list(zip(*(leaves for leaves, _ in parts), strict=True)) or [()]
        whole = _array(items) if len({type(leaf) for column in columns for leaf in column}) == 1 else None
        if structure == (LEAF,):
            return self._element(_array(items) if whole is None else whole, columns[0], key)
        picked = unflatten(structure, [self._element(_array(column), column, key) for column in columns])
        if whole is not None and isinstance(picked, (list, tuple)):
            self._rows[id(picked)] = picked, getitem(whole, key)
        return picked

    def _element(self, array: Any, column: Sequence[Any], key: Any) -> Any:
        value = getitem(array, key)
        if isinstance(value, Traced) and value.type.rank:
            value.base = tuple(
                {id(root): root for item in column if is_array(item) for root in roots_of(item)}.values()
            )
        return value


def _index(key: Any, items: Sequence[Any]) -> Any:
    """What an index of Python's lists may be: an integer, or a bool that stands for one."""
    if not isinstance(key, Traced) or key.type.rank or key.dtype.kind == "float":
        raise CaptureError(
            f"a {type(items).__name__} is indexed by one integer, not by {brief(key)}",
            hint="make an array first: ut.asarray(items)[k]",
            kind=TypeError,
        )
    return functions.astype(key, i64) if key.dtype == bool_ else key


def _array(items: Sequence[Any]) -> Any:
    kinds = {item.dtype if isinstance(item, Traced) else type(item) for item in items}
    if len(kinds) > 1 and {_is_bool(item) for item in items} == {True, False}:
        raise CaptureError(
            "some of these items are booleans, and others are numbers: which it is, is known only at run time",
            hint="make them of one kind: int(x), or ut.asarray(items)[i]",
        )
    try:
        return functions.asarray(list(items))
    except TypeMismatch:
        raise _refused(items) from None


def _is_bool(item: Any) -> bool:
    return bool(leaf_type(item).dtype == bool_)


def _refused(items: Sequence[Any]) -> CaptureError:
    return CaptureError(
        f"this {type(items).__name__} cannot be indexed by a traced value: "
        "it does not hold numbers, or arrays of one shape",
        hint="choose with `if`/`elif`, or keep the values in one array",
    )
