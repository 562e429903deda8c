"""Guards: what a captured program has read outside, and how each call reads it again.

A row says where a value is (of which object, by which name) and what it must be. The rows come in the order in which
capture read them, so the object that a row asks is the value of an earlier one, an argument of the call, or an object
that never changes: a module's dict, a cell, a class. Values that the program computes with are its hidden arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MethodType
from typing import Any

import numpy as np

from undertow.frontend.values import tree
from undertow.ir.exact import exact, keys_of


class Read(IntEnum):
    """How a row reads its value from its object."""

    ITSELF = 0  # the object
    ARGUMENT = 1  # a static object among the arguments of the call
    GLOBAL = 2  # an item of a dict, by a string
    CELL = 3
    ATTRIBUTE = 4
    ITEM = 5  # of a list or tuple, or of a dict by any key
    OWN = 6  # an attribute that the object itself has, not its class


class Check(IntEnum):
    """What a row demands of its value."""

    SAME = 0  # the object itself
    FUNCTION = 1  # the function itself, with the same code and defaults (`%autoreload` replaces them)
    METHOD = 2  # a method of this function
    KIND = 3  # an object of this class, and not that of another such row
    ALIAS = 4  # the value of an earlier row
    EQUAL = 5  # the same constant, or the same plain containers of constants
    MISSING = 6  # nothing
    LENGTH = 7  # a list or tuple of this class and length
    KEYS = 8  # a dict of this class, with these keys in this order
    NUMBER = 9  # a number of this class: a hidden argument
    ARRAY = 10  # an array of this dtype and shape: a hidden argument


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One place outside that a program has read."""

    source: int  # the row whose value is asked; below zero, `root` is
    root: Any
    read: Read
    key: Any
    check: Check
    expected: Any
    path: int  # identifies the place in other captures of the function
    is_input: bool = False  # is the value an input of the main graph?


_MISSING = object()


class Guards:
    """The rows of one program."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)
        self.changed = -1  # the path of the row that failed last

    def read(self, roots: Sequence[Any] = ()) -> list[Any] | None:
        """The hidden arguments of a call with these static objects; None if something else has changed."""
        values: list[Any] = []
        hidden: list[Any] = []
        kinds: set[int] = set()
        for row in self.rows:
            source = row.root if row.source < 0 else values[row.source]
            value = _look(row, source, roots)
            if not _holds(row, value, values, kinds):
                self.changed = row.path
                return None
            values.append(value)
            if row.is_input:
                if row.check == Check.NUMBER:
                    value = _NUMPY.get(row.expected, row.expected)(value)
                hidden.append(value)
        return hidden


_NUMPY: dict[type, Any] = {float: np.float64, int: np.int64}


def _look(row: Row, source: Any, roots: Sequence[Any]) -> Any:
    try:
        if row.read == Read.ATTRIBUTE:
            return getattr(source, row.key)
        if row.read == Read.GLOBAL:
            return source.get(row.key, _MISSING)
        if row.read == Read.ITEM:
            return source[row.key]
        if row.read == Read.OWN:
            return source.__dict__[row.key]
        if row.read == Read.CELL:
            return source.cell_contents
        return source if row.read == Read.ITSELF else roots[row.key]
    except Exception:
        return _MISSING


def _holds(row: Row, value: Any, values: list[Any], kinds: set[int]) -> bool:
    check, expected = row.check, row.expected
    if value is _MISSING or check == Check.MISSING:
        return value is _MISSING and check == Check.MISSING
    if check == Check.SAME:
        return value is expected
    if check == Check.FUNCTION:
        return value is expected[0] and value.__code__ is expected[1] and value.__defaults__ is expected[2]
    if check == Check.METHOD:
        return type(value) is MethodType and value.__func__ is expected
    if check == Check.KIND:
        is_new = id(value) not in kinds
        kinds.add(id(value))
        return type(value) is expected and is_new
    if check == Check.ALIAS:
        return value is values[expected]
    if check == Check.EQUAL:
        return is_equal(value, expected)
    if check == Check.LENGTH:
        return type(value) is expected[0] and len(value) == expected[1]
    if check == Check.KEYS:
        return type(value) is expected[0] and keys_of(value) == keys_of(expected[1])
    if check == Check.NUMBER:
        return type(value) is expected and (expected is not int or -(2**63) <= value < 2**63)
    return type(value) is np.ndarray and (value.dtype, value.shape) == expected


def is_equal(a: Any, b: Any) -> bool:
    """Are these the same constants, or plain containers of them?"""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple, dict)):
        leaves, structure = tree.flatten(a)
        other, other_structure = tree.flatten(b)
        return structure == other_structure and all(map(is_equal, leaves, other))
    return exact(a) == exact(b)
