"""Guards: what a captured program has read outside, and how each call reads it again.

A row says where a value is (of which object, by which name) and what it must be. The rows come in the order in which
capture read them, so the object that a row asks is the value of an earlier one, an argument of the call, or an object
that never changes: a module's dict, a cell, a class. Values that the program computes with are its hidden arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from undertow import _core
from undertow.frontend.trace.opaque import is_same
from undertow.ir.exact import exact
from undertow.types import bool_, c64, c128, f32, f64, i32, i64


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
    ARRAY = 10  # an array of this dtype (by number) and shape: a hidden argument


DTYPE_NUMBERS = {dtype.numpy: number for number, dtype in enumerate((bool_, i32, i64, f32, f64, c64, c128))}
# The number of the row whose value is asked (below zero, the root is); the root; how it is read, and the key; what it
# is compared with; the number of the place in all captures of the function; is it an input of the main graph?
Row = tuple[int, Any, int, Any, int, Any, int, bool]
Guards = _core.Guards


def make_guards(rows: Sequence[Row]) -> Guards:
    """The guards of a program."""
    return Guards(list(rows), is_equal)


def is_equal(a: Any, b: Any) -> bool:
    """Are these the same constant? (The core compares what is common: Python's numbers, strings and containers.)"""
    if type(a) is not type(b):
        return False
    if (held := is_same(a, b)) is not None:
        return held
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()
    return bool(exact(a) == exact(b))
