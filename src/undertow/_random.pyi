"""Written by `python docs/manual.py random`; do not edit."""

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from undertow._annotations import Array as Array

__all__: list[str]

def normal(shape: Any = (), mean: Any = 0.0, std: Any = 1.0, dtype: Any = ...) -> Array:
    """Normal numbers with this mean and standard deviation."""

def uniform(shape: Any = (), low: Any = 0.0, high: Any = 1.0, dtype: Any = ...) -> Array:
    """Uniform numbers in [low, high)."""
