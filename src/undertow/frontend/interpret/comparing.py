"""Comparisons of containers that hold traced values: tuples, lists, dicts, and dataclasses that compare as tuples do.

Python compares item by item, and asks for the truth of each comparison; here the answers are combined instead.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from undertow.errors import CaptureError
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.purity import is_generated
from undertow.frontend.values.traced import Traced

Compare = Callable[[ast.cmpop, Any, Any], Any]


def compare_containers(op: ast.cmpop, left: Any, right: Any, compare: Compare) -> Any:
    """The comparison of two containers with traced values; NotImplemented if they are anything else."""
    if not holds_traced(left, right):
        return NotImplemented
    if isinstance(op, (ast.Eq, ast.NotEq)):
        same = _are_equal(left, right, compare)
        if isinstance(op, ast.Eq):
            return same
        return functions.logical_not(same) if isinstance(same, Traced) else not same
    first, second = _as_items(left, op), _as_items(right, op)
    if first is None or second is None or _kind(left) is not _kind(right):
        return NotImplemented
    return _in_order(op, first, second, compare)


def contains_container(holder: Any, item: Any, compare: Compare) -> Any:
    """`item in holder` for a tuple, list or dataclass among the items of a tuple or list."""
    if isinstance(holder, (dict, set, frozenset)) and isinstance(item, (list, dict)):
        raise TypeError(f"unhashable type: {type(item).__name__!r}")
    result: Any = False
    for other in holder:
        holds = _are_equal(item, other, compare)
        if holds is True:
            return True
        if holds is not False:
            result = holds if result is False else functions.logical_or(result, holds)
    return result


def holds_traced(*values: Any) -> bool:
    """Are all of them containers, and is there a traced value in one?"""
    if any(_contents(value) is None for value in values):
        return False
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, Traced):
            return True
        stack.extend(_contents(value) or ())
    return False


def _contents(value: Any) -> Sequence[Any] | None:
    """The items of a container; None of anything else."""
    return list(value.values()) if type(value) is dict else _as_items(value, ast.Eq())


def _as_items(value: Any, op: ast.cmpop) -> Sequence[Any] | None:
    """What a tuple, a list, or a dataclass whose methods are generated compares; None of anything else."""
    if type(value) in (list, tuple):
        return value  # type: ignore[no-any-return]
    for base in (tuple, list):
        if isinstance(value, base) and _is_inherited(type(value), base, op):
            iterate: Any = base.__iter__  # not one of the subclass
            return list(iterate(value))
    cls: Any = type(value)
    if dataclasses.is_dataclass(cls):
        method = getattr(cls, "__eq__" if isinstance(op, (ast.Eq, ast.NotEq)) else "__lt__", None)
        if method is not None and is_generated(method):
            return [getattr(value, field.name) for field in dataclasses.fields(value) if field.compare]
    return None


def _is_inherited(cls: type, base: type, op: ast.cmpop) -> bool:
    """Does a subclass of list or tuple, such as a named tuple, compare as its base does?"""
    names = ("__eq__", "__ne__") if isinstance(op, (ast.Eq, ast.NotEq)) else ("__lt__", "__le__", "__gt__", "__ge__")
    return all(getattr(cls, name) is getattr(base, name) for name in (*names, "__eq__"))


def _kind(value: Any) -> type:
    """What two containers must have in common to compare item by item."""
    return next((base for base in (tuple, list) if isinstance(value, base)), type(value))


def _are_equal(left: Any, right: Any, compare: Compare) -> Any:
    same: Any = True
    stack = [(left, right)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue  # Python asks this first
        pair = [a, b]
        if not holds_traced(*pair) and not any(isinstance(x, Traced) for x in pair):
            holds = a == b
        elif any(isinstance(x, Traced) for x in pair):
            holds = _single(compare(ast.Eq(), a, b))
        elif _kind(a) is not _kind(b):
            return False
        elif isinstance(a, dict):
            if a.keys() != b.keys():
                return False
            stack.extend((a[key], b[key]) for key in a)
            continue
        else:
            items, others = _contents(a), _contents(b)
            assert items is not None and others is not None
            if len(items) != len(others):
                return False
            stack.extend(zip(items, others, strict=True))
            continue
        if isinstance(holds, Traced):
            same = holds if same is True else functions.logical_and(same, holds)
        elif not holds:
            return False
    return same


def _in_order(op: ast.cmpop, left: Sequence[Any], right: Sequence[Any], compare: Compare) -> Any:
    """`<` and its like: the first items that differ decide; if there are none, the lengths do."""
    asked: list[tuple[Any, Any]] = []  # are these items equal, and otherwise: the comparison of these items
    result = compare(op, len(left), len(right))
    for a, b in zip(left, right, strict=False):
        if any(_contents(x) is not None for x in (a, b)):
            raise CaptureError(
                "containers inside of containers cannot be put in order if they hold traced values",
                hint="compare their items one by one, with `if`",
            )
        is_same = a is b or _single(compare(ast.Eq(), a, b))
        if not isinstance(is_same, Traced):
            if is_same:
                continue
            result = _single(compare(op, a, b))
            break
        asked.append((is_same, _single(compare(op, a, b))))
    for is_same, decided in reversed(asked):
        result = functions.where(is_same, result, decided)
    return result


def _single(holds: Any) -> Any:
    """The result of a comparison of items, which has a truth value."""
    if isinstance(holds, Traced) and holds.type.rank:
        raise CaptureError(
            "containers of arrays cannot be compared: the truth of an array is not known",
            hint="compare the arrays one by one: ut.all(a == b)",
        )
    return holds
