"""A plan as bytes, for workers: what `encode` makes, and nothing that runs when it is read.

A head in JSON says how long everything is; rows and constants follow as they are in memory, little-endian.
"""

from __future__ import annotations

import json
import math

import numpy as np

from undertow.engines.native import Encoded
from undertow.ir.graph import Array
from undertow.types import DTYPES

_KNOWN = {t.numpy.str: t.numpy for t in DTYPES.values() if t.numpy is not None}


def pack(encoded: Encoded) -> bytes:
    """The bytes of a plan."""
    constants = [np.ascontiguousarray(constant) for constant in encoded.constants]
    head = {
        "rows": len(encoded.rows),
        "words": encoded.words,
        "constants": [[array.dtype.str, list(np.shape(encoded.constants[k]))] for k, array in enumerate(constants)],
    }
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    arrays = [encoded.rows.tobytes(), *(array.tobytes() for array in constants)]
    return b"".join((len(text).to_bytes(8, "little"), text, *arrays))


def unpack(data: bytes) -> Encoded:
    """The plan again. Raises ValueError if that is not one; the core checks the rows."""
    try:
        length = int.from_bytes(data[:8], "little")
        head = json.loads(data[8 : 8 + length])
        at = 8 + length
        rows = np.asarray(_array(data, at, "<i8", [head["rows"]]), np.int64)
        at += rows.nbytes
        constants = []
        for dtype, shape in head["constants"]:
            constants.append(_array(data, at, dtype, shape))
            at += constants[-1].nbytes
        words = head["words"]
        if at != len(data) or not all(isinstance(word, str) for word in words):
            raise ValueError("its parts do not fit together")
        return Encoded(rows, list(words), constants)
    except (KeyError, TypeError, ValueError, RecursionError, OverflowError, MemoryError) as error:
        raise ValueError(f"this is not a plan: {error}") from error


def _array(data: bytes, at: int, dtype: str, shape: list[int]) -> Array:
    if dtype not in _KNOWN or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ValueError("an array is of an unknown type")
    count = math.prod(shape)
    if count * _KNOWN[dtype].itemsize > len(data) - at:
        raise ValueError("it is too short")
    return np.frombuffer(data, _KNOWN[dtype], count, at).reshape(shape).copy()
