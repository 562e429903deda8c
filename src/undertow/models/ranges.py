"""Valid ranges of the options of models, recipes and sources: one table, and its checks.

>>> check_ranges(width=0)
Traceback (most recent call last):
undertow.errors.UndertowError: width is 0
<BLANKLINE>
hint: it must be a whole number, 1 or more
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

from undertow.errors import UndertowError, brief


class Range(NamedTuple):
    """Which numbers are allowed, in words and as a test. None is allowed where it means that there is no limit."""

    told: str
    holds: Callable[[Any], bool]
    is_whole: bool = False
    may_be_none: bool = False


_COUNT = Range("a whole number, 1 or more", lambda x: x >= 1, is_whole=True)
_ABOVE_0 = Range("a number above 0", lambda x: x > 0)
_FROM_0 = Range("a number, 0 or more", lambda x: x >= 0)

RANGES: dict[str, Range] = {
    # of models
    "words": _COUNT,
    "symbols": _COUNT,
    "layers": _COUNT,
    "classes": _COUNT,
    "width": _COUNT,
    "embedding": _COUNT,
    "max_nodes": _COUNT,
    "max_depth": Range("a whole number, 0 or more", lambda x: x >= 0, is_whole=True),
    "dropout": Range("a share from 0 to less than 1", lambda x: 0 <= x < 1),
    # of recipes
    "epochs": _COUNT,
    "batch": _COUNT,
    "shards": _COUNT,
    "rate": _ABOVE_0,
    "embed_rate": _ABOVE_0,
    "warmup": _FROM_0,
    "l2": _FROM_0,
    "clip": Range("a number above 0, or None (0 on the command line) for no limit", lambda x: x > 0, may_be_none=True),
    "patience": Range("a whole number, 1 or more", lambda x: x >= 1, is_whole=True, may_be_none=True),
    "seed": Range("a whole number from 0 to 2**32 - 1", lambda x: 0 <= x < 2**32, is_whole=True),
    # of sources
    "trees": _COUNT,
    "min_count": _COUNT,
}


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float is near
        return False


def check_ranges(**options: Any) -> None:
    """Reject values out of range; names without a range are not checked."""
    for name, value in options.items():
        allowed = RANGES.get(name)
        if allowed is None or (value is None and allowed.may_be_none):
            continue
        kind = numbers.Integral if allowed.is_whole else numbers.Real
        is_number = isinstance(value, kind) and not isinstance(value, bool)
        if not (is_number and _is_finite(value) and allowed.holds(value)):
            raise UndertowError(f"{name} is {brief(value)}", hint=f"it must be {allowed.told}")
