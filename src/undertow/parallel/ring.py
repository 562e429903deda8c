"""The ring: all workers get the sum of the gradients of all shards, in the order of shards.

Workers stand in a ring, and each sends to the next alone. The first adds up its shards and sends the sum on, piece by
piece; each adds its own shards, one after the other; what the last has is the sum, which goes round once more. All of
this overlaps, so every connection carries the gradients about twice, however many workers there are.

So an element is ((s0 + s1) + s2) + ..., whoever has which shards: the bits depend on the number of shards alone. A ring
in which every worker begins with another part would add each part up in another order, which changes with the number of
workers.

Sparse rows go round as they are, those of every worker once.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from undertow.cluster.frames import Buffer
from undertow.errors import InternalError
from undertow.frontend.values.rows import IndexedRows
from undertow.parallel.packing import array_of, bytes_of
from undertow.parallel.sums import add_up, one_after_the_other

Array = npt.NDArray[Any]
Peer = tuple[int, int]

PATIENCE = 900.0  # seconds: a worker that reaches us, but not its neighbour, must not hold up training for ever
PARTS = 1000  # of a message
PIECE, LEAST = 1 << 19, 1 << 15  # bytes: of the largest pieces, and of the smallest
MESSAGE = 1 << 16  # bytes that could be sent in the time that a message takes of itself
_HEAD = struct.Struct("!BI")
_PARTIAL, _TOTAL, _ROWS = 1, 2, 3  # a sum so far; the sum; the sparse rows of one worker


class Messages(Protocol):
    """What a ring needs of a stream (`cluster/stream.py`)."""

    def send(self, peer: Peer, parts: Sequence[Buffer]) -> None:
        """Send; the parts are left as they are."""

    def receive(self, peer: Peer, seconds: float | None = None) -> list[Buffer]:
        """The next message of that peer; TimeoutError if there is none in time."""


def all_reduce(stream: Messages, ring: Sequence[Peer], place: int, shards: Sequence[list[Any]]) -> list[Any]:
    """The sum of all shards' gradients. `ring` has the workers in the order of their shards, this one at `place`.

    `shards` are those of this worker, one at least. The arrays of the first take the sum.
    """
    if len(ring) == 1:
        return add_up(shards)
    return _Ring(stream, ring, place, shards).run()


class _Ring:
    """One sum."""

    def __init__(self, stream: Messages, ring: Sequence[Peer], place: int, shards: Sequence[list[Any]]) -> None:
        self.stream = stream
        self.count, self.place = len(ring), place
        self.before, self.after = ring[place - 1], ring[(place + 1) % len(ring)]
        leaves = shards[0]
        self.dense = [k for k, leaf in enumerate(leaves) if leaf is not None and not isinstance(leaf, IndexedRows)]
        self.sparse = [k for k, leaf in enumerate(leaves) if isinstance(leaf, IndexedRows)]
        self.shards = shards
        self.flat = [[shard[k].reshape(-1) for k in self.dense] for shard in shards]
        self.pieces = pieces_of(self.flat[0], piece_of(self.count, sum(leaf.nbytes for leaf in self.flat[0])))
        self.rows: dict[int, list[Buffer]] = {}

    @property
    def is_last(self) -> bool:
        return self.place == self.count - 1

    def run(self) -> list[Any]:
        """Send what there is, and then add to what comes, and send it on."""
        if self.sparse:
            self._send_rows(self.place, self._own_rows())
        if self.place == 0:
            for number in range(len(self.pieces)):
                self._add(number, None)
        rounds = (self.place > 0) + (not self.is_last)  # the sum so far, and the sum
        for _ in range(rounds * len(self.pieces) + (self.count - 1) * bool(self.sparse)):
            head, *parts = self.stream.receive(self.before, PATIENCE)
            kind, number = _HEAD.unpack(head)
            if kind == _ROWS and number not in self.rows and self.sparse:
                self._send_rows(number, parts)
            elif kind == _PARTIAL and number < len(self.pieces):
                self._add(number, parts)
            elif kind == _TOTAL and number < len(self.pieces):
                self._take(number, parts)
            else:
                raise InternalError(f"a message of kind {kind}, number {number}, in a ring of {self.count}")
        return self._sum()

    def _add(self, number: int, parts: Sequence[Buffer] | None) -> None:
        """Add the own shards to a piece of the sum so far (the first has none), and send it on."""
        slices = self.pieces[number]
        for place, (leaf, start, stop) in enumerate(slices):
            total = self.flat[0][leaf][start:stop]
            if parts is not None:
                np.add(array_of(parts[place], total.dtype, total.shape), total, out=total)
            for shard in self.flat[1:]:
                np.add(total, shard[leaf][start:stop], out=total)
        self._send(_TOTAL if self.is_last else _PARTIAL, number)

    def _take(self, number: int, parts: Sequence[Buffer]) -> None:
        """Keep a piece of the sum, and send it on, but not to the last, who made it.

        The sum so far, which stood in its place, has been received, or there would be no sum.
        """
        for part, (leaf, start, stop) in zip(parts, self.pieces[number], strict=True):
            total = self.flat[0][leaf][start:stop]
            total[:] = array_of(part, total.dtype, total.shape)
        if self.place != self.count - 2:
            self._send(_TOTAL, number)

    def _send(self, kind: int, number: int) -> None:
        slices = self.pieces[number]
        parts = [bytes_of(self.flat[0][leaf][start:stop]) for leaf, start, stop in slices]
        self.stream.send(self.after, [_HEAD.pack(kind, number), *parts])

    # ----------------------------------------------------------------------------------------------------------
    # Sparse rows

    def _own_rows(self) -> list[Buffer]:
        """Numbers and rows of each shard."""
        leaves = [shard[k] for shard in self.shards for k in self.sparse]
        return [part for leaf in leaves for part in (bytes_of(leaf.indices), bytes_of(leaf.rows))]

    def _send_rows(self, number: int, parts: list[Buffer]) -> None:
        """Keep what one worker has, and send it on, but not to itself."""
        self.rows[number] = parts
        if (self.place + 1) % self.count != number:
            self.stream.send(self.after, [_HEAD.pack(_ROWS, number), *parts])

    def _sum(self) -> list[Any]:
        total = list(self.shards[0])
        for place, k in enumerate(self.sparse):
            shape, dtype = total[k].shape, total[k].rows.dtype
            found = []
            for number in range(self.count):
                parts = self.rows[number][2 * place :]
                for at in range(0, len(parts), 2 * len(self.sparse)):
                    indices = array_of(parts[at], np.dtype(np.int64), (len(parts[at]) // 8,))
                    rows = array_of(parts[at + 1], dtype, (len(indices), *shape[1:]))
                    found.append(IndexedRows(indices, rows, shape=shape))
            total[k] = one_after_the_other(found)
        return total


def piece_of(workers: int, size: int) -> int:
    """Bytes of a piece, such that a sum of this size has gone round soonest. Bits do not depend on it.

    The first piece waits at each worker until all of it is there, so in a long ring pieces are small; but each of them
    costs a message, so if there is much to send, they are large.

    >>> [piece_of(workers, 1_500_000) for workers in (2, 4, 16, 256)]
    [443405, 198296, 82338, 32768]
    >>> piece_of(2, 100_000_000) == PIECE
    True
    """
    return min(PIECE, max(LEAST, math.isqrt(2 * size * MESSAGE // (2 * workers - 3))))


def pieces_of(leaves: Sequence[Array], most: int = PIECE) -> list[list[tuple[int, int, int]]]:
    """Flat arrays in pieces of so many bytes: each is some (array, from, to).

    >>> pieces_of([np.zeros(3), np.zeros(0), np.zeros(2)], most=32)
    [[(0, 0, 3), (2, 0, 1)], [(2, 1, 2)]]
    """
    pieces: list[list[tuple[int, int, int]]] = []
    room = 0
    for number, leaf in enumerate(leaves):
        at = 0
        while at < leaf.size:
            if room < leaf.itemsize or len(pieces[-1]) == PARTS:
                pieces.append([])
                room = most
            end = min(leaf.size, at + max(room // leaf.itemsize, 1))
            pieces[-1].append((number, at, end))
            room -= (end - at) * leaf.itemsize
            at = end
    return pieces
