"""How many bytes a run holds: its frames, and the arrays that wait in their slots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import Value
from undertow.engines.contract import Options


class Memory:
    """Counts, and refuses what is over the limit. An array counts once, in however many slots and views it waits."""

    __slots__ = ("bytes", "held", "most", "options", "peak")

    def __init__(self, options: Options) -> None:
        self.options = options
        self.most = options.memory
        self.bytes = 0
        self.peak = 0
        self.held: dict[int, int] = {}  # slots that hold an array, by the identity of what owns its memory

    def hold(self, value: Value, times: int) -> None:
        """An array has been put into so many slots."""
        owner = value.base if isinstance(value.base, np.ndarray) else value
        before = self.held.get(id(owner), 0)
        self.held[id(owner)] = before + times
        if before == 0:
            self.grow(owner.nbytes)

    def let_go(self, value: Value) -> None:
        """An array has been taken out of one slot."""
        owner = value.base if isinstance(value.base, np.ndarray) else value
        left = self.held[id(owner)] - 1
        if left:
            self.held[id(owner)] = left
        else:
            del self.held[id(owner)]
            self.bytes -= owner.nbytes

    def release(self, slots: list[Value], held: Sequence[int]) -> None:
        """Empty those slots that hold arrays."""
        for slot in held:
            value = slots[slot]
            if type(value) is np.ndarray:
                self.let_go(value)
                slots[slot] = None

    def grow(self, more: int) -> None:
        self.bytes += more
        if self.bytes > self.peak:
            self.peak = self.bytes
            if self.most is not None and self.bytes > self.most:
                raise checks.too_much_memory(self.bytes, self.options)

    def shrink(self, less: int) -> None:
        self.bytes -= less
