"""Parts of any size, over sockets that refuse large ones: large parts are cut into pieces, and put together again.

What a socket takes is bounded, so that a stranger cannot make it reserve memory. Pieces also flow: one is on its way
while the next is encrypted.

>>> [len(piece) for piece in cut([b"head", b"abcdefg"], most=4)]
[13, 4, 4, 3]
>>> [bytes(part) for part in join(cut([b"head", b"abcdefg", b""], most=5))]
[b'head', b'abcdefg', b'']
>>> cut([b"head", b"body"])
[b'head', b'body']
>>> join([b"UTcut" + bytes([0, 0, 0, 2]), b"piece"])
Traceback (most recent call last):
undertow.cluster.frames.BadFrame: 1 pieces, not 2
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from undertow.cluster.frames import BadFrame, Buffer

PIECE = 4 << 20  # bytes
_MARK = b"UTcut"  # how a message begins that was cut; frames begin otherwise


def cut(parts: Sequence[Buffer], most: int = PIECE) -> Sequence[Buffer]:
    """The same, in pieces: if there are any, what comes first says how many each part has."""
    if all(len(part) <= most for part in parts):
        return parts
    counts: list[int] = []
    pieces: list[Buffer] = []
    for part in parts:
        view = memoryview(part)
        starts = range(0, max(len(view), 1), most)
        counts.append(len(starts))
        pieces += [view[at : at + most] for at in starts]
    return [_MARK + struct.pack(f"!{len(counts)}I", *counts), *pieces]


def join(pieces: Sequence[Buffer]) -> Sequence[Buffer]:
    """What was cut. Raises BadFrame if it cannot have been."""
    if not pieces or bytes(pieces[0][: len(_MARK)]) != _MARK:
        return pieces
    table = bytes(pieces[0][len(_MARK) :])
    if len(table) % 4:
        raise BadFrame(f"a table of pieces of {len(table)} bytes")
    counts = struct.unpack(f"!{len(table) // 4}I", table)
    if sum(counts) != len(pieces) - 1:
        raise BadFrame(f"{len(pieces) - 1} pieces, not {sum(counts)}")
    parts: list[Buffer] = []
    at = 1
    for count in counts:
        parts.append(pieces[at] if count == 1 else b"".join(pieces[at : at + count]))
        at += count
    return parts
