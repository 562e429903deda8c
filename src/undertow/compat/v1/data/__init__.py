"""`tf.data`: datasets of NumPy values, which the host reads, and iterators that feed them to runs."""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.data.dataset import Dataset
from undertow.compat.v1.data.iterator import Iterator
from undertow.compat.v1.missing import explain

__all__ = ["Dataset", "Iterator"]


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"data.{name}", [f"data.{known}" for known in __all__]))
