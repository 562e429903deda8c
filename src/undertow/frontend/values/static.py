"""`ut.static`: what runs once, when a function is captured, as plain Python."""

from __future__ import annotations

from typing import TypeVar

_Value = TypeVar("_Value")


def static(value: _Value, /) -> _Value:
    """The value itself. In a captured function, what is in the parentheses runs once, at capture: it is a constant.

    >>> static(2 + 3)
    5
    """
    return value
