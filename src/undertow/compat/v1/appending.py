"""Assign-Concat: the update by which Abadi, Isard and Murray show that the order of atomic updates may matter.

"A Computational Model for TensorFlow" (MAPL 2017), section 3.2.2. TensorFlow 1 has no such operation;
`tf.assign_concat` is the name that `tf.assign_add` suggests.
"""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.state import variable_of
from undertow.compat.v1.tensor import named
from undertow.tracebacks import boundaries

__all__ = ["assign_concat"]


def assign_concat(ref: Any, value: Any, name: str | None = None) -> Any:
    """Append to a variable along its first axis, atomically; returns the new value. `shape=[None]` lets it grow."""
    return named(variable_of(ref).assigned("concat", value), name)


boundaries(globals(), __all__)
