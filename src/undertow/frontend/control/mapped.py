"""What `map` runs over: the leading axis of arrays, the items of lists, each leaf of other containers.

Items of a list that have one structure and one shape are stacked. Others are ragged: `f.map` runs the items of each
shape together, inside a captured function they are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import Span, TypeMismatch, brief
from undertow.frontend.control.body import Shared, common_length
from undertow.frontend.functions import public as functions
from undertow.frontend.objects.handle import Handle
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.rows import all_dense
from undertow.frontend.values.traced import Traced, constant, is_traced


def with_axes(args: Sequence[Any], in_axes: Any) -> tuple[Any, ...]:
    """The arguments of a map with those marked that every call gets whole; mapped axes come first.

    >>> with_axes([np.zeros((2, 3)), 5], (1, None))[0].shape
    (3, 2)
    """
    axes = in_axes if isinstance(in_axes, (tuple, list)) else [in_axes] * len(args)
    if len(axes) != len(args) or not all(axis is None or type(axis) is int for axis in axes):
        raise TypeMismatch(
            f"in_axes is {brief(in_axes)}, for {len(args)} arguments",
            hint="write the axis that is mapped for each argument, or None: in_axes=(0, None)",
        )
    return tuple(_with_axis(arg, axis) for arg, axis in zip(args, axes, strict=True))


def _with_axis(arg: Any, axis: int | None) -> Any:
    if axis == 0 or isinstance(arg, Shared):
        return arg
    if axis is None:
        return Shared(arg)
    leaves, structure = tree.flatten(arg, is_traced)
    return tree.unflatten(structure, [functions.moveaxis(leaf, axis, 0) for leaf in leaves])


@dataclass(frozen=True)
class Columns:
    """Items that are lists, all of one structure, as one such list of arrays: what `as_mapped` would give."""

    value: list[Any]


def as_mapped(value: Any) -> Any:
    """An argument to map over as a container of arrays, all of which are mapped along their leading axis."""
    if isinstance(value, Columns):
        return value.value
    if isinstance(value, Handle) and isinstance(value.number, Traced) and not value.number.type.rank:
        return value.all_items()
    if isinstance(value, range):
        return np.arange(value.start, value.stop, value.step, dtype=np.int64)
    if isinstance(value, tuple) and value and all(isinstance(x, (bool, int, float, np.generic)) for x in value):
        raise TypeMismatch(
            f"ut.map cannot run over the tuple {brief(value)}",
            hint="pass a list instead: a tuple counts as several arguments",
        )
    first = value[0] if isinstance(value, list) and value else value
    if isinstance(first, (str, bytes)) or isinstance(value, (Iterator, set, frozenset)):
        raise TypeMismatch(
            f"ut.map runs over arrays of numbers, not over {brief(value)}",
            hint="pass an array, a list of numbers or a range",
        )
    if not isinstance(value, list):
        return value
    if _is_of_numbers(value):
        try:
            return np.asarray(value)
        except ValueError:
            raise _ragged(value) from None
    return _stacked([item_of(item) for item in value], value)


def _is_of_numbers(value: Any) -> bool:
    """Is it a list of numbers, or of such lists?"""
    leaves, structure = tree.flatten(value, is_traced)
    is_known = all(isinstance(x, (bool, int, float, np.generic)) for x in leaves)
    return is_known and all(token[0] in ("leaf", "list") for token in structure)


def item_of(value: Any) -> Any:
    """An item of a list that is mapped over: a list of numbers is an array."""
    if isinstance(value, list) and _is_of_numbers(value):
        try:
            return np.asarray(value)
        except ValueError:
            return value
    return value


def is_ragged(fault: TypeMismatch) -> bool:
    """Do items of a list differ in shape or structure: is that what is wrong?"""
    return getattr(fault, "is_ragged", False)


def _ragged(value: Any) -> TypeMismatch:
    fault = TypeMismatch(
        f"ut.map cannot run over {describe(value)}: its items differ in shape or structure",
        hint="pad them to one shape, or map over them outside of captured functions, with f.map",
    )
    fault.is_ragged = True  # type: ignore[attr-defined]
    return fault


def _no_arrays(value: Any) -> TypeMismatch:
    fault = TypeMismatch(
        f"ut.map cannot run over {describe(value)}: its items are objects, without arrays to stack",
        hint="call the function for each: [f(item) for item in items]; or use f.map, outside of captured functions",
    )
    fault.is_ragged = True  # type: ignore[attr-defined]
    return fault


def signature_of(item: Any) -> tuple[Any, ...]:
    """The structure of an item, and the types of its leaves: items stack if these are the same."""
    leaves, structure = tree.flatten(item, is_traced)
    return structure, *(leaf_type(leaf) for leaf in leaves)


def _stacked(items: Sequence[Any], value: Any) -> Any:
    if len({signature_of(item) for item in items}) > 1:
        raise _ragged(value)
    if items and not tree.flatten(items[0], is_traced)[0]:
        raise _no_arrays(value)
    columns = zip(*(tree.flatten(item, is_traced)[0] for item in items), strict=True)
    return tree.unflatten(tree.flatten(items[0], is_traced)[1], [_stack(column) for column in columns])


def _stack(leaves: Sequence[Any]) -> Any:
    if any(isinstance(leaf, Traced) for leaf in leaves):
        return functions.stack(list(leaves))
    return np.stack([np.asarray(constant(leaf)) for leaf in leaves])


# -- one call after the other ------------------------------------------------------------------------------------


def calls_of(args: Sequence[Any], span: Span | None = None) -> list[list[Any]]:
    """The arguments of each call of a map. Items of lists may differ in shape and structure.

    >>> calls_of([[1, 2], Shared("all")])
    [[np.int64(1), 'all'], [np.int64(2), 'all']]
    """
    columns = [None if isinstance(arg, Shared) else _items_of(arg) for arg in args]
    lengths = sorted({len(column) for column in columns if column is not None})
    if len(lengths) != 1:
        what = f"a map over {lengths[0]} and {lengths[-1]} items" if lengths else "a map over nothing"
        raise TypeMismatch(what, span, hint="pass as many of each; ut.shared(x) passes all of x to every call")
    return [
        [arg.value if column is None else column[k] for arg, column in zip(args, columns, strict=True)]
        for k in range(lengths[0])
    ]


def _items_of(arg: Any) -> list[Any]:
    if isinstance(arg, list) and not (_is_of_numbers(arg) and not any(isinstance(item, list) for item in arg)):
        return [item_of(item) for item in arg]
    leaves, structure = tree.flatten(as_mapped(arg))
    arrays = [np.asarray(constant(leaf)) for leaf in leaves]
    count = common_length("a map", [leaf_type(array) for array in arrays])
    return [tree.unflatten(structure, [array[k] for array in arrays]) for k in range(count)]


def groups_of(args: Sequence[Any], span: Span | None) -> list[tuple[list[int], list[Any], bool]]:
    """The calls of a map by signature: the numbers of each group, the arguments of a map over it, and True.

    Where nothing can be stacked, as in a list of objects: the number of a call, its arguments, and False.
    """
    calls = calls_of(args, span)
    is_shared = [isinstance(arg, Shared) for arg in args]
    groups: dict[Any, list[int]] = {}
    for index, call in enumerate(calls):
        key = tuple(signature_of(value) for value, skip in zip(call, is_shared, strict=True) if not skip)
        has_arrays = any(len(signature) > 1 for signature in key)
        groups.setdefault(key if has_arrays else index, []).append(index)
    found: list[tuple[list[int], list[Any], bool]] = []
    for key, indices in groups.items():
        if isinstance(key, int):
            found.append((indices, calls[key], False))
            continue
        group = [
            arg if isinstance(arg, Shared) else _together([calls[index][number] for index in indices], arg)
            for number, arg in enumerate(args)
        ]
        found.append((indices, group, True))
    return found


def _together(items: Sequence[Any], value: Any) -> Any:
    """The items of a group: stacked, or the object that they all are."""
    if not tree.flatten(items[0], is_traced)[0]:
        return Shared(items[0])
    stacked = _stacked(items, value)
    return Columns(stacked) if isinstance(stacked, list) else stacked


def stacked_results(results: Sequence[Any]) -> Any:
    """The results of calls as one container of arrays; a list of them, if they do not stack."""
    results = [all_dense(result) for result in results]
    if len({signature_of(result) for result in results}) != 1:
        return results
    return _stacked(results, results)
