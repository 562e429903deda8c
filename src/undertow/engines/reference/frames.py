"""The frames of a run: opened within the limits, fed with tokens, closed when every node has fired."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import Value
from undertow.engines.contract import Options, State
from undertow.engines.frames import PythonRun
from undertow.engines.reference.frame import NONE, Context, Entry, Frame
from undertow.engines.reference.rows import COUNT, NumberedGraph, SitePlan
from undertow.ir import trace
from undertow.ir.path import ROOT, child

Ready = tuple[Frame, int]  # a node that can fire, by its number within the body


class Pool(Protocol):
    """The nodes that can fire."""

    def append(self, ready: Ready, /) -> None: ...
    def __len__(self) -> int: ...


class Frames(PythonRun[Frame]):
    """The live frames, the pool of nodes that can fire in them, and their memory."""

    def __init__(
        self, rows: NumberedGraph, options: Options, record: trace.Record | None, state: State | None, pool: Pool
    ) -> None:
        super().__init__(rows.graph, Frame(rows.main, None, 0, -1, None, 0), options, record, state)
        self.rows = rows
        self.pool = pool
        self.push = pool.append
        self.live: set[Frame] = set()
        self.shared = Entry(rows.shared)  # what main shares with all frames

    def open(self, frame: Frame) -> Frame:
        """Start a frame, if the limits allow it."""
        kind = frame.kind
        if self.rows.has_paths:
            parent = frame.parent
            frame.path = ROOT if parent is None else child(parent.path, self.label(frame.site), frame.index)
        self.live.add(frame)
        if frame.entry is not None:
            frame.entry.users += 1
        self.begin(frame, len(self.live), kind.is_call, kind.region, kind.layout.cost)
        for at, slot, index in kind.layout.reads:
            self.read(frame, at, slot, frame.entry, index)
        for at, slot, index in kind.layout.shared_reads:
            self.read(frame, at, slot, self.shared, index)
        return frame

    def label(self, site: int) -> int:
        """The number of a site in tags."""
        return site

    def close(self, frame: Frame) -> None:
        """Free the storage of a frame whose nodes have all fired."""
        for cell in frame.kind.layout.contexts:
            context = frame.slots[cell]
            if context is not None:
                self.let_go_all(context.values)
        if frame.kind.unread:
            self.release(frame.slots, frame.kind.unread)
        self.live.discard(frame)
        self.bytes -= frame.kind.layout.cost
        frame.slots, frame.pend = [], []
        entry = frame.entry
        if entry is not None:
            entry.users -= 1
            if entry.users == 0:
                self.forget(entry)
        if not self.live:
            self.forget(self.shared)
        if self.record is not None:
            self.record(trace.FrameEnded(frame.number))

    def call(self, frame: Frame, site: SitePlan) -> Frame:
        """The frame of a call when its first token arrives: the start token or any argument."""
        entry = Entry(site.hoisted) if site.hoisted else frame.entry
        callee = self.open(Frame(frame.kind.below[site.number], frame, site.number, -1, None, self.started, entry))
        frame.slots[site.cell] = callee
        return callee

    def context(self, frame: Frame, site: SitePlan) -> Context:
        """The shared state of a loop's or map's frames."""
        context: Context | None = frame.slots[site.cell]
        if context is None:
            context = frame.slots[site.cell] = Context(frame, site)
        return context

    def enter(self, frame: Frame, site: SitePlan) -> Frame:
        """The frame of a loop's first iteration."""
        context = self.context(frame, site)
        if context.first is None:
            context.first = self.inside(context, 0)
        return context.first

    def iterate(self, frame: Frame, site: SitePlan) -> Frame:
        """The frame of the iteration after this one."""
        assert frame.context is not None
        after = frame.slots[site.after] = self.inside(frame.context, frame.index + 1)
        return after

    def spread(self, frame: Frame, site: SitePlan, count: int) -> list[Frame]:
        """The frames of the lanes of a map."""
        context = self.context(frame, site)
        if context.lanes is None:
            context.cells = [[None] * count for _ in site.gathers]
            context.lacking = [count] * len(site.gathers)
            context.lanes = [self.inside(context, index) for index in range(count)]
            if count == 0:
                visits = frame.kind.below[site.number].visits
                for number, (_, _, phase) in enumerate(site.gathers):
                    if phase < visits:
                        self.collect(context, number)
        if len(context.lanes) != count:
            raise checks.stopped("unequal_lanes", self.options, len(context.lanes), count)
        return context.lanes

    def revisit(self, frame: Frame, site: SitePlan, count: int | None) -> list[Frame]:
        """The same lanes in a later phase, for an array of `count` elements, or an order token (None)."""
        lanes = self.context(frame, site).lanes
        assert lanes is not None, "a later phase of a map waits for the first"
        if count is not None and len(lanes) != count:
            raise checks.stopped("unequal_visits", self.options, len(lanes), count)
        return lanes

    def inside(self, context: Context, index: int) -> Frame:
        """A frame of a loop or map, with the invariants that have arrived."""
        parent, number = context.parent, context.site.number
        frame = self.open(Frame(parent.kind.below[number], parent, number, index, context, self.started, parent.entry))
        for (at, slot), value in zip(context.site.outers, context.values, strict=True):
            if value is not NONE:
                self.put(frame, at, slot, value)
        if context.missing:
            context.waiting.append(frame)
        return frame

    def collect(self, context: Context, number: int) -> None:
        """Hand the results of all lanes to their Gather."""
        at, slot, _ = context.site.gathers[number]
        self.put(context.parent, at, slot, context.cells[number])

    # -- arguments of entries ------------------------------------------------------------------------------

    def read(self, frame: Frame, at: int, slot: int, entry: Entry | None, index: int) -> None:
        """Give a node an argument of an entry, now or when it arrives."""
        assert entry is not None, "a hoist_read that is below no entry"
        value = entry.values[index]
        if value is NONE:
            entry.waiting[index].append((frame, at, slot))
        else:
            self.put(frame, at, slot, value)

    def give(self, entry: Entry, index: int, value: Value) -> None:
        """Give a value to an entry: nodes that wait for it get it now, later ones when their frames start."""
        entry.values[index] = value
        if type(value) is np.ndarray:
            self.hold(value, 1)
        waiting, entry.waiting[index] = entry.waiting[index], []
        for frame, at, slot in waiting:
            if frame.slots:  # a node of a phase that is never visited may wait in a frame that has ended
                self.put(frame, at, slot, value)

    def forget(self, entry: Entry) -> None:
        """Free the values of an entry that nothing can read any more."""
        self.let_go_all(entry.values)
        entry.values = [NONE] * len(entry.values)

    def put(self, frame: Frame, at: int, slot: int, value: Value) -> None:
        """Put one token into one slot."""
        frame.slots[slot] = value
        if type(value) is np.ndarray:
            self.hold(value, 1)
        frame.pend[at] -= 1
        if not frame.pend[at] & COUNT:
            self.push((frame, at))
