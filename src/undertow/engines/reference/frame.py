"""Frames: the storage of one tag, and the state shared by the frames of one loop or map."""

from __future__ import annotations

import numpy as np

from undertow.engines.checks import Value
from undertow.engines.frames import TaggedFrame
from undertow.engines.reference.rows import Kind, SitePlan
from undertow.ir.path import Path

NONE = object()  # no value yet


class Frame(TaggedFrame):
    """The storage of one tag, until every node of its body has fired."""

    __slots__ = (
        "ahead", "context", "depth", "entry", "index", "kind", "left", "number", "parent", "path", "pend", "rows",
        "site", "slots",
    )  # fmt: skip

    path: Path  # where a graph needs it: in parts of a placed one, and for replicas

    def __init__(
        self,
        kind: Kind,
        parent: Frame | None,
        site: int,
        index: int,
        context: Context | None,
        number: int,
        entry: Entry | None = None,
    ) -> None:
        layout = kind.layout
        self.kind = kind
        self.rows = layout.rows
        self.pend = layout.pend[:]
        self.slots = layout.slots[:]
        self.left = kind.left  # nodes that have not fired
        self.parent = parent
        self.site = site
        self.index = index
        self.context = context
        self.number = number
        self.entry = entry  # of the entry that it is, or is below
        self.ahead = -1  # not known; see schedulers.py
        self.depth = 0 if parent is None else parent.depth + kind.is_call


class Entry:
    """The values that the activations below one entry share; or all activations, for what main shares.

    It outlives the entry's frame: since results may return early, activations below may end later, and arguments that
    the entry itself does not use may arrive later.
    """

    __slots__ = ("sums", "users", "values", "waiting")

    def __init__(self, count: int) -> None:
        self.values: list[Value] = [NONE] * count  # those that have arrived
        self.waiting: list[list[tuple[Frame, int, int]]] = [[] for _ in range(count)]  # (frame, node, slot)
        self.users = 0  # live frames at or below the entry
        self.sums: dict[int, Sum] = {}  # collected so far


class Sum:
    """What is collected for one value: a sum of whole arrays, and rows to be added to it."""

    __slots__ = ("rows", "whole")

    def __init__(self) -> None:
        self.whole: Value = None
        self.rows: list[tuple[Value, Value]] = []  # (indices, rows)

    def add(self, parts: list[Value]) -> None:
        if len(parts) == 2:
            self.rows.append((parts[0], parts[1]))
        else:
            self.whole = parts[0] if self.whole is None else self.whole + parts[0]

    def total(self, like: Value) -> Value:
        """The sum, of the shape of `like`; zero if nothing was collected."""
        if not self.rows:
            return np.zeros_like(like)[()] if self.whole is None else self.whole
        total = np.zeros_like(like) if self.whole is None else self.whole.copy()
        for indices, rows in self.rows:
            np.add.at(total, indices, rows)
        return total

    def sparse(self, like: Value) -> list[Value]:
        """The indices and rows that were collected; for a sum of whole arrays, all rows."""
        parts = [*self.rows, *([] if self.whole is None else [(np.arange(len(like)), self.whole)])]
        indices = [np.ravel(index).astype(np.int64) for index, _ in parts]
        rows = [np.reshape(row, (len(n), *like.shape[1:])) for n, (_, row) in zip(indices, parts, strict=True)]
        return [np.concatenate([np.zeros(0, np.int64), *indices]), np.concatenate([like[:0], *rows])]


class Context:
    """The state that the frames of one loop or map, entered from one frame, share."""

    __slots__ = ("cells", "first", "lacking", "lanes", "missing", "parent", "site", "values", "waiting")

    def __init__(self, parent: Frame, site: SitePlan) -> None:
        self.parent = parent
        self.site = site
        self.values: list[Value] = [NONE] * len(site.outers)  # the invariants that have arrived
        self.missing = len(site.outers)
        self.waiting: list[Frame] = []  # frames that began before all invariants were there
        self.first: Frame | None = None  # of a loop
        self.lanes: list[Frame] | None = None  # of a map
        self.cells: list[list[Value]] = []  # of a map: the results so far, for each gather and lane
        self.lacking: list[int] = []  # of a map: number of results that each gather still waits for
