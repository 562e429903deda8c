"""Pictures as PNG files, without a library: eight bits a channel, no filters.

>>> png(np.zeros((2, 3, 1), np.uint8))[:8]
b'\\x89PNG\\r\\n\\x1a\\n'
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

_COLOURS = {1: 0, 3: 2, 4: 6}  # channels -> PNG's number for grey, RGB, RGBA


def png(picture: npt.NDArray[np.uint8]) -> bytes:
    """A picture [height, width, channels] as the bytes of a file; of channels there are 1, 3 or 4."""
    height, width, channels = picture.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOURS[channels], 0, 0, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each begins with the number of its filter: none
    rows[:, 1:] = picture.reshape(height, width * channels)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
