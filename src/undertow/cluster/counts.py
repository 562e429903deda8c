"""Numbers of things, as users give them: checked before anything is started."""

from __future__ import annotations

import operator
from typing import Any

from undertow.errors import UndertowError, brief


def count_of(name: str, value: Any, least: int = 1) -> int:
    """An integer, and no truth value.

    >>> count_of("workers", "two")
    Traceback (most recent call last):
    undertow.errors.UndertowError: workers is 'two'
    <BLANKLINE>
    hint: it must be an integer, and at least 1
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least:
        raise UndertowError(f"{name} is {brief(value)}", hint=f"it must be an integer, and at least {least}")
    return number


def amount_of(name: str, value: Any, least: float = 0.0) -> float:
    """A number that may have a fraction.

    >>> amount_of("seconds", float("nan"))
    Traceback (most recent call last):
    undertow.errors.UndertowError: seconds is nan
    <BLANKLINE>
    hint: it must be a number, and at least 0
    """
    try:
        number = float("nan") if isinstance(value, (bool, str, bytes)) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not number >= least:
        raise UndertowError(f"{name} is {brief(value)}", hint=f"it must be a number, and at least {least:g}")
    return number
