"""Checks of common arguments of tree functions: a wrong kind or range is a `DataError`."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from undertow.errors import DataError, brief


def check_whole(name: str, value: Any, least: int | None = None) -> None:
    """Check that a value is an integer, and at least `least`."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or (least is not None and value < least):
        wanted = "an integer" if least is None else f"an integer from {least} on"
        raise DataError(f"{name} is {brief(value)}", hint=f"it must be {wanted}")


def is_part(value: Any) -> bool:
    """Is this a number from 0 to 1?"""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return is_number and bool(0 <= value <= 1)


def check_text(text: Any) -> None:
    """Check that a value is a string, not bytes, a path or a list of lines."""
    if isinstance(text, str):
        return
    if isinstance(text, (bytes, bytearray)):
        hint = "decode it first: text.decode()"
    elif isinstance(text, os.PathLike):
        hint = "ut.data.read(path) reads a file"
    elif isinstance(text, (list, tuple)):
        hint = 'join the lines first: "\\n".join(lines); ut.data.from_nested takes lists of trees'
    else:
        hint = "pass a string; ut.data.read(path) reads a file"
    raise DataError(f"{brief(text)} is not text", hint=hint)
