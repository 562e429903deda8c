"""A plan as bytes, for workers: what `encode` makes, and nothing that runs when it is read. Likewise other arrays.

A head in JSON says how long everything is; arrays follow as they are in memory, little-endian.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.engines.native import Encoded
from undertow.ir.graph import Array
from undertow.types import DTYPES

_KNOWN = {t.numpy.str: t.numpy for t in DTYPES.values() if t.numpy is not None}


def pack(encoded: Encoded) -> bytes:
    """The bytes of a plan."""
    return pack_arrays({"words": encoded.words}, [np.asarray(encoded.rows, "<i8"), *encoded.constants])


def unpack(data: bytes) -> Encoded:
    """The plan again. Raises ValueError if that is not one; the core checks the rows."""
    head, arrays = unpack_arrays(data, "a plan")
    words = head.get("words")
    if not arrays or not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError("this is not a plan: its parts do not fit together")
    rows, *constants = arrays
    if rows.dtype != np.int64 or rows.ndim != 1:
        raise ValueError("this is not a plan: its rows are no integers")
    return Encoded(np.asarray(rows, np.int64), words, constants)


def pack_arrays(head: dict[str, Any], arrays: Sequence[Array]) -> bytes:
    """What JSON can say, and arrays, as bytes."""
    arrays = [np.asarray(array, order="C") for array in arrays]
    text = json.dumps({**head, "arrays": [[array.dtype.str, list(array.shape)] for array in arrays]}).encode()
    text += b" " * (-len(text) % 8)
    return b"".join((len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in arrays)))


def unpack_arrays(data: bytes, name: str = "a message") -> tuple[dict[str, Any], list[Array]]:
    """The same again: arrays of our dtypes, with memory of their own. Raises ValueError if it is something else."""
    try:
        head, at = _head(data)
        arrays = []
        for dtype, shape in head.pop("arrays"):
            arrays.append(_array(data, at, dtype, shape))
            at += arrays[-1].nbytes
        if at != len(data):
            raise ValueError("its parts do not fit together")
        return head, arrays
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError, OverflowError, MemoryError) as error:
        raise ValueError(f"this is not {name}: {error}") from error


def unpack_head(data: bytes) -> dict[str, Any]:
    """What JSON could say of bytes that `pack_arrays` has made here or on a worker, without the arrays."""
    return _head(data)[0]


def _head(data: bytes) -> tuple[dict[str, Any], int]:
    """What JSON could say, and where the arrays begin."""
    at = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:at]), at


def array_of(data: npt.NDArray[np.uint8] | memoryview, dtype: str, shape: Sequence[int]) -> Array:
    """The array that these bytes are, which are not copied. Raises ValueError if they are none."""
    if dtype not in _KNOWN or math.prod(shape) * _KNOWN[dtype].itemsize != data.nbytes:
        raise ValueError("this is not a large value: its type and its bytes do not fit together")
    return np.frombuffer(data, _KNOWN[dtype]).reshape(shape)


def _array(data: bytes, at: int, dtype: str, shape: list[int]) -> Array:
    if dtype not in _KNOWN or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError("an array is of an unknown type")
    count = math.prod(shape)
    if count * _KNOWN[dtype].itemsize > len(data) - at:
        raise ValueError("it is too short")
    return np.frombuffer(data, _KNOWN[dtype], count, at).reshape(shape).copy()
