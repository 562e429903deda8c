"""Dtypes as TensorFlow 1 reads them: "float" and Python's `float` are float32, `int` is int32."""

from __future__ import annotations

from undertow.types import DType, f32, f64, i32
from undertow.types import dtype_of as dtype_in_numpy

_WORDS: dict[object, DType] = {"float": f32, float: f32, "double": f64, "int": i32, int: i32}


def dtype_of(spec: object) -> DType:
    """The dtype for a user's spec."""
    spec = getattr(spec, "base_dtype", spec)
    try:
        known = _WORDS.get(spec)
    except TypeError:  # not hashable
        known = None
    return dtype_in_numpy(spec) if known is None else known
