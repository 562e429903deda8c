"""Large parts between processes of one machine: written to memory that both see, instead of encrypted and sent.

A worker has one such memory. Others open it by its process, descriptor and name, which go over the encrypted
connection; the system lets in processes of the same user alone, and only to read. It has no name in any folder, so
nothing of it is left when its process and its readers are no more.

What was put there in one step is overwritten in the next. By then everybody has read it: a step is begun when all have
ended the one before, with a report or an error (`fleet.py`).
"""

from __future__ import annotations

import mmap
import os
import secrets
import struct
import weakref
from collections.abc import Sequence
from typing import Any

from undertow.cluster.frames import Buffer
from undertow.errors import RunError
from undertow.parallel.ring import Messages, Peer

Where = Any  # process, descriptor and name of a memory, as JSON

_ALIGNED = 64  # bytes
_LEAST = 1 << 20


class Memory:
    """Written by this process, and read by others."""

    def __init__(self) -> None:
        self._name = f"undertow-{secrets.token_hex(8)}"
        self._file = os.memfd_create(self._name, os.MFD_CLOEXEC)
        self._end = self._size = 0
        self._map: mmap.mmap | None = None
        weakref.finalize(self, os.close, self._file)

    def where(self) -> Where:
        """How others find it."""
        return [os.getpid(), self._file, self._name]

    def clear(self) -> None:
        """Begin anew: what was put here is needed no more."""
        self._end = 0

    def put(self, parts: Sequence[Buffer]) -> list[tuple[int, int]]:
        """Copy parts: where each begins, and how long it is."""
        places = []
        for part in parts:
            places.append((self._end, len(part)))
            self._end += -(-len(part) // _ALIGNED) * _ALIGNED
        if self._end > self._size:
            self._size = max(2 * self._size, self._end, _LEAST)
            os.ftruncate(self._file, self._size)
            self._map = mmap.mmap(self._file, self._size)
        for part, (start, length) in zip(parts, places, strict=True):
            if self._map is not None and length:
                self._map[start : start + length] = part
        return places


class View:
    """The memory of another process. OSError if it cannot be seen from here."""

    def __init__(self, where: Where) -> None:
        process, descriptor, name = where
        path = f"/proc/{int(process)}/fd/{int(descriptor)}"
        if os.readlink(path) != f"/memfd:{name} (deleted)":  # the process may be another one by now
            raise FileNotFoundError(f"{path} is no memory of that name: No such file")
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._map: memoryview | None = None
        weakref.finalize(self, os.close, self._file)

    def at(self, places: Sequence[Sequence[int]]) -> list[Buffer]:
        """Parts that were put there, not copied."""
        end = max((start + length for start, length in places), default=0)
        if self._map is None or end > len(self._map):
            if end > (size := os.fstat(self._file).st_size):
                raise RunError(f"{size} bytes of shared memory, and {end} are needed")
            self._map = memoryview(mmap.mmap(self._file, size, prot=mmap.PROT_READ)) if size else memoryview(b"")
        return [self._map[start : start + length] for start, length in places]


_PLACE = struct.Struct("!QQ")


class Passage:
    """Messages of a stream to a neighbour on this machine: the first part is sent, the others are put into memory."""

    def __init__(self, stream: Messages, memory: Memory, before: View) -> None:
        self._stream, self._memory, self._before = stream, memory, before

    def send(self, peer: Peer, parts: Sequence[Buffer]) -> None:
        """A message."""
        places = self._memory.put(parts[1:])
        self._stream.send(peer, [parts[0], b"".join(_PLACE.pack(*place) for place in places)])

    def receive(self, peer: Peer, seconds: float | None = None) -> list[Buffer]:
        """The next message."""
        head, places = self._stream.receive(peer, seconds)
        return [head, *self._before.at(list(_PLACE.iter_unpack(places)))]


def is_possible() -> bool:
    """Whether this system has what it takes."""
    return hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")
