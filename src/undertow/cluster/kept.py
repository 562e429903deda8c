"""Large values that workers have from the last run of the same plans: only the blocks that have changed are sent.

Weights are most of what a run is told, and between two runs they change little, or not at all. `Teller` is the
program's end, which keeps a copy of what was sent; one copy, if several workers were told the same value. `Told` is a
worker's. Both are of one circle: when that has failed, nobody knows what was told, and all is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

import numpy as np
import numpy.typing as npt

from undertow.cluster.frames import Buffer
from undertow.errors import RunError

BLOCK = 4096  # bytes that are compared, and sent, together
MOST = 4  # runs of different plans whose values are kept

Bytes = npt.NDArray[np.uint8]
_Where = tuple[int, int]  # address and bytes of a value


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """How a value comes to be what it is: all of it, or blocks and what follows the last whole one."""

    kept: Bytes
    is_whole: bool
    buffers: list[Buffer]


class Teller:
    """What the workers of a circle were told."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, ...], tuple[int, list[list[Bytes]]]] = {}  # by plans; the last run is the last
        self._count = 0

    def tell(
        self, plans: tuple[bytes, ...], values: Sequence[Sequence[Buffer]]
    ) -> tuple[dict[str, object], list[tuple[list[bool], list[Buffer]]]]:
        """What all must know, and for each worker, whether each of its values comes whole, and the buffers to send."""
        number, before = self._kept.pop(plans, (0, [[] for _ in values]))
        if not number:
            self._count += 1
            number = self._count
        pairs = [
            [(old, np.frombuffer(new, np.uint8)) for old, new in zip_longest(old_values[: len(news)], news)]
            for old_values, news in zip(before, values, strict=True)
        ]
        follow: dict[int, set[_Where]] = {}  # what comes after an old value that several may share
        for old, new in chain(*pairs):
            follow.setdefault(id(old), set()).add(_where(new))
        changes: dict[tuple[int, _Where], Change] = {}
        after: list[list[Bytes]] = []
        said: list[tuple[list[bool], list[Buffer]]] = []
        for each in pairs:
            own = []
            for old, new in each:
                key = id(old), _where(new)
                if key not in changes:
                    changes[key] = change(old if len(follow[id(old)]) == 1 else None, new)
                own.append(changes[key])
            after.append([one.kept for one in own])
            said.append(([one.is_whole for one in own], [buffer for one in own for buffer in one.buffers]))
        self._kept[plans] = number, after
        dropped = [self._kept.pop(next(iter(self._kept)))[0]] if len(self._kept) > MOST else []
        return {"kept": number, "dropped": dropped}, said


def _where(value: Bytes) -> _Where:
    return value.ctypes.data, value.size


def change(old: Bytes | None, new: Bytes) -> Change:
    """From what is kept, which changes, to a new value."""
    if old is None or old.size != new.size:
        kept = new.copy()
        return Change(kept, True, [kept.data])
    end = new.size // BLOCK * BLOCK
    have, want = (value[:end].reshape(-1, BLOCK) for value in (old, new))
    blocks = np.flatnonzero((have.view(np.uint64) != want.view(np.uint64)).any(axis=1))
    if 2 * len(blocks) > len(have):
        np.copyto(old, new)
        return Change(old, True, [old.data])
    rows = want[blocks]
    have[blocks] = rows
    rest = b"" if np.array_equal(old[end:], new[end:]) else new[end:].tobytes()
    old[end:] = new[end:]
    return Change(old, False, [blocks.astype("<i8").tobytes(), rows.tobytes(), rest])


class Told:
    """What a worker was told."""

    def __init__(self) -> None:
        self._kept: dict[int, list[Bytes]] = {}

    def take(
        self, number: int, dropped: Sequence[int], whole: Sequence[bool], buffers: Sequence[Buffer]
    ) -> list[Bytes]:
        """The values of a run. They change in the next one."""
        for one in dropped:
            self._kept.pop(one, None)
        kept = self._kept.setdefault(number, [])
        del kept[len(whole) :]
        left = list(buffers)
        for place, is_whole in enumerate(whole):
            if is_whole:
                kept[place : place + 1] = [np.frombuffer(left.pop(0), np.uint8).copy()]
                continue
            if place >= len(kept):
                raise RunError("a value has changed that a worker was never told")
            blocks, rows, rest = (left.pop(0) for _ in range(3))
            end = kept[place].size // BLOCK * BLOCK
            kept[place][:end].reshape(-1, BLOCK)[np.frombuffer(blocks, "<i8")] = np.frombuffer(rows, np.uint8).reshape(
                -1, BLOCK
            )
            if len(rest):
                kept[place][end:] = np.frombuffer(rest, np.uint8)
        return kept
