"""Are two values the same, bit by bit?"""

from __future__ import annotations

from typing import Any

import numpy as np


def same(a: Any, b: Any) -> bool:
    """Equal types, shapes and bits; one nan is as good as another."""
    x, y = np.atleast_1d(a), np.atleast_1d(b)
    if x.dtype != y.dtype or np.shape(a) != np.shape(b):
        return False
    if x.dtype.kind == "c":
        x, y = (np.ascontiguousarray(v).view(v.real.dtype) for v in (x, y))
    equal = x.view(f"u{x.itemsize}") == y.view(f"u{y.itemsize}")
    return bool(np.all(equal | (np.isnan(x) & np.isnan(y) if x.dtype.kind == "f" else False)))
