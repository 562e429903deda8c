"""Lists where an annotation says `list[...]`: of any length, so arrays with a length (growing.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.frontend.functions import public as functions
from undertow.frontend.values import tree
from undertow.frontend.values.growing import NOTHING, GrowingList, Item, both, depth_of, is_list, item_type
from undertow.frontend.values.traced import Context, context
from undertow.types import DType, Type

# Makes an array of a dtype of a list of numbers.
AsArray = Callable[[Any, DType], Any]


def has_lists(structure: tree.Structure) -> bool:
    return any(map(is_list, structure))


def is_storable(item: Item) -> bool:
    """Can a list hold such items? Arrays among them must have a known shape."""
    types = iter(item[1])
    tokens = iter(item[0])
    for token in tokens:
        if is_list(token):
            for _ in range(token[1]):
                next(tokens)
                next(types)
        elif token == tree.LEAF and not next(types).is_static:
            return False
    return bool(item[1])


def with_lists(value: Any, structure: tree.Structure, as_array: AsArray) -> Any:
    """A value with lists of Python's as lists of run-time length, where this structure has such; else as it is."""
    if not has_lists(structure):
        return value
    token = structure[0]
    if is_list(token):
        item, kind = token[4]
        return _listed(value, item, kind, as_array)
    held = tree.children(value)
    if held is None or held[0] != token:
        return value
    parts: list[Any] = []
    at = 1
    for part in held[1]:
        end = _end(structure, at)
        parts.append(with_lists(part, structure[at:end], as_array))
        at = end
    return tree.build(token, parts)


def _end(structure: tree.Structure, start: int) -> int:
    """Where the part of a structure that begins here ends."""
    missing, at = 1, start
    while missing:
        token = structure[at]
        missing += (0 if token[0] in ("leaf", "static") else token[1]) - 1
        at += 1
    return at


def _listed(value: Any, item: Item, kind: type, as_array: AsArray) -> Any:
    if isinstance(value, GrowingList):
        return _converted(value, item, kind)
    if not isinstance(value, (list, tuple, range, np.ndarray)) or (isinstance(value, np.ndarray) and not value.ndim):
        return value
    current = context()
    if current is not None and current.builder is not None:
        if not isinstance(value, list):
            return value
        current.session.interpreter.owned.let_grow(value, item=item)
        made = GrowingList.of([with_lists(part, item[0], as_array) for part in value], item, kind=kind)
        for column in made.columns:
            column.base = (_OUTSIDE,)  # what changes it would change a copy
        return made
    columns = _packed(value, item, as_array)
    return value if columns is None else GrowingList(item, columns, np.int64(len(value)), kind=kind)


_OUTSIDE = np.zeros(1)


def _converted(items: GrowingList, item: Item, kind: type) -> Any:
    if items.item == item or both(items.item, item) != item:
        return items
    items.must_hold(item)
    if items.item == NOTHING:
        return GrowingList.of([], item, kind=kind)
    if tuple(map(_plain, items.item[0])) != tuple(map(_plain, item[0])):
        return items
    columns = [functions.astype(column, type_.dtype) for column, type_ in zip(items.columns, item[1], strict=True)]
    return GrowingList(item, columns, items.length, kind=kind)


def _plain(token: tree.Token) -> tree.Token:
    return token[:4]


def _packed(values: Any, item: Item, as_array: AsArray) -> list[Any] | None:
    """The columns of a list from outside; None if its items are of another structure."""
    structure, types = item
    if structure == (tree.LEAF,) and not types[0].rank:
        return [as_array(list(values), types[0].dtype)]
    rows: list[Sequence[Any]] = []
    for value in values:
        leaves, found = tree.flatten(with_lists(value, structure, as_array))
        if found != structure:
            return None
        rows.append(leaves)
    return [_column([row[k] for row in rows], type_, as_array) for k, type_ in enumerate(types)]


def _column(parts: Sequence[Any], type_: Type, as_array: AsArray) -> Any:
    free = depth_of(type_)
    if not type_.rank:
        return as_array(list(parts), type_.dtype)
    arrays = [np.asarray(as_array(part, type_.dtype)) for part in parts]
    widths = [max((array.shape[k] for array in arrays), default=0) for k in range(free)]
    shape: Any = (len(arrays), *widths, *type_.shape[free:])
    column = np.zeros(shape, type_.dtype.numpy)
    for row, array in zip(column, arrays, strict=True):
        key: Any = tuple(slice(d) for d in array.shape)
        row[key] = array
    return column


# -- two results of a function ---------------------------------------------------------------------------------


def alike(a: Any, b: Any, regions: tuple[int, int], ctx: Context) -> tuple[Any, Any]:
    """What a function returns on two paths, with lists of different lengths as lists of any length."""
    if a is b:
        return a, b
    if type(a) is tuple and type(b) is tuple and len(a) == len(b):
        pairs = [alike(x, y, regions, ctx) for x, y in zip(a, b, strict=True)]
        return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)
    are_lists = all(type(side) is list or isinstance(side, GrowingList) for side in (a, b))
    if not are_lists or (type(a) is list and type(b) is list and len(a) == len(b)):
        return a, b
    items = [side.item if isinstance(side, GrowingList) else item_type(side) for side in (a, b)]
    item = None if None in items else both(*items)  # type: ignore[arg-type]
    if item is None:
        return a, b
    sides: list[Any] = []
    builder = ctx.open_builder
    for side, region in zip((a, b), regions, strict=True):
        before, builder.region = builder.region, region
        try:
            sides.append(_converted(side, item, list) if isinstance(side, GrowingList) else GrowingList.of(side, item))
        finally:
            builder.region = before
    return sides[0], sides[1]
