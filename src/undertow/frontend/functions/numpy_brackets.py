"""`np.r_[x, 0, 1:4]` and `np.c_[x, y]`: arrays, numbers and ranges that brackets join."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.functions import array as arrays
from undertow.frontend.functions import creation
from undertow.frontend.functions.numpy_arranging import at_least, rank_of
from undertow.frontend.functions.numpy_meanings import columns


def joins(value: Any) -> bool:
    """Is it one of NumPy's objects whose brackets join?"""
    return value is np.r_ or value is np.c_


def in_brackets(value: Any, key: Any) -> Any:
    """np.r_[key], np.c_[key]."""
    parts = [_part(part) for part in (key if isinstance(key, tuple) else (key,))]
    if value is np.c_:
        return columns(parts)
    return arrays.concat([at_least(part, max(map(rank_of, parts))) for part in parts], axis=0)


def _part(part: Any) -> Any:
    if isinstance(part, str) or (isinstance(part, slice) and isinstance(part.step, complex)):
        raise CaptureError(f"np.r_ with {part!r} cannot be captured", hint="use np.concatenate and np.linspace")
    if isinstance(part, slice):
        return creation.arange(0 if part.start is None else part.start, part.stop, part.step or 1)
    return at_least(part, 1)
