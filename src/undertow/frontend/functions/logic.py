"""Functions of each element: comparison, truth, choice, bits."""

from __future__ import annotations

from typing import Any

from undertow.frontend.values.operands import bools, floats, numbers, same_dtype
from undertow.frontend.values.traced import emit

__all__ = [
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
    "equal", "greater", "greater_equal", "isfinite", "isinf", "isnan", "less", "less_equal", "logical_and",
    "logical_not", "logical_or", "logical_xor", "not_equal", "where",
]  # fmt: skip


def _one(op: str, operands: list[Any]) -> Any:
    return emit(op, operands)[0]


def equal(x: Any, y: Any, /) -> Any:
    """`x == y`, for each element."""
    return _one("equal", same_dtype(x, y))


def not_equal(x: Any, y: Any, /) -> Any:
    """`x != y`, for each element."""
    return _one("not_equal", same_dtype(x, y))


def less(x: Any, y: Any, /) -> Any:
    """`x < y`, for each element.

    >>> less([1, 2, 3], 2)
    array([ True, False, False])
    """
    return _one("less", same_dtype(x, y))


def less_equal(x: Any, y: Any, /) -> Any:
    """`x <= y`, for each element."""
    return _one("less_equal", same_dtype(x, y))


def greater(x: Any, y: Any, /) -> Any:
    """`x > y`, for each element."""
    return _one("greater", same_dtype(x, y))


def greater_equal(x: Any, y: Any, /) -> Any:
    """`x >= y`, for each element."""
    return _one("greater_equal", same_dtype(x, y))


def isnan(x: Any, /) -> Any:
    """Is it not a number?"""
    return _one("isnan", floats(x))


def isinf(x: Any, /) -> Any:
    """Is it infinite?"""
    return _one("isinf", floats(x))


def isfinite(x: Any, /) -> Any:
    """Is it neither nan nor infinite?"""
    return _one("isfinite", floats(x))


def logical_and(x: Any, y: Any, /) -> Any:
    """Are both true? What is not 0 is."""
    return _one("logical_and", bools(x, y))


def logical_or(x: Any, y: Any, /) -> Any:
    """Is either true?"""
    return _one("logical_or", bools(x, y))


def logical_xor(x: Any, y: Any, /) -> Any:
    """Is one of them true, and not both?"""
    return _one("logical_xor", bools(x, y))


def logical_not(x: Any, /) -> Any:
    """Is it false?"""
    return _one("logical_not", bools(x))


def bitwise_and(x: Any, y: Any, /) -> Any:
    """`x & y`, of integers or booleans."""
    return _one("bitwise_and", same_dtype(x, y))


def bitwise_or(x: Any, y: Any, /) -> Any:
    """`x | y`, of integers or booleans."""
    return _one("bitwise_or", same_dtype(x, y))


def bitwise_xor(x: Any, y: Any, /) -> Any:
    """`x ^ y`, of integers or booleans."""
    return _one("bitwise_xor", same_dtype(x, y))


def bitwise_invert(x: Any, /) -> Any:
    """~x, of integers or booleans."""
    return _one("bitwise_invert", same_dtype(x))


def bitwise_left_shift(x: Any, y: Any, /) -> Any:
    """`x << y`; a negative y is a fault.

    >>> bitwise_left_shift(1, [0, 4])
    array([ 1, 16])
    """
    return _one("bitwise_left_shift", numbers(x, y))


def bitwise_right_shift(x: Any, y: Any, /) -> Any:
    """`x >> y`, keeping the sign; a negative y is a fault."""
    return _one("bitwise_right_shift", numbers(x, y))


def where(condition: Any, x: Any, y: Any, /) -> Any:
    """Elements of x where the condition is true, else of y. Both are computed.

    >>> where([True, False], [1, 2], -1.0)
    array([ 1., -1.])
    """
    return emit("where", [*bools(condition), *same_dtype(x, y)])[0]
