"""The store of a run on demand: what is known, frame by frame, and when it can go.

A frame is the part of the store that belongs to one tag. It is dropped, with all frames below it, as soon as nobody can
ask it for anything:

- of a call or a lane: when every result that its site may be asked for has been taken;
- of an iteration: when every variable that the next one may use is known and there is one after that, or when every
  exit of the loop is known.

A frame is entered through these alone, and each of them asks once. What is being evaluated inside of it was asked for
by one of them, which then is not known yet. So no frame goes too early. One goes later than it could where a result is
never asked for: then it goes with the frame of its caller.
"""

from __future__ import annotations

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import Value
from undertow.engines.contract import Options
from undertow.engines.demand.plan import Layout, Plan, SitePlan
from undertow.ir import trace


class Frame:
    """What is known under one tag."""

    __slots__ = ("before", "depth", "index", "is_past", "layout", "number", "owed", "parent", "rows", "site", "slots")

    def __init__(self, layout: Layout, parent: Frame | None, site: int, index: int, owed: int, number: int) -> None:
        self.layout = layout
        self.rows = layout.rows
        self.slots = layout.slots[:]
        self.parent = parent
        self.site = site  # 0 in main
        self.index = index  # of the iteration or lane; -1 in functions
        self.owed = owed  # results that have not been taken, or variables that are not known
        self.number = number
        self.before: Frame | None = None  # the iteration before this one
        self.is_past = False  # is there an iteration after this one?
        self.depth: int = 0 if parent is None else parent.depth + layout.is_call  # of nested calls

    @property
    def label(self) -> trace.Label | None:
        if self.site == 0:
            return None
        return self.site if self.index < 0 else (self.site, self.index)

    def tag(self) -> trace.Tag:
        labels: list[trace.Label] = []
        frame = self
        while frame.parent is not None:
            label = frame.label
            assert label is not None
            labels.append(label)
            frame = frame.parent
        return tuple(labels)


class Store:
    """The live frames, and what they and the arrays in them take."""

    def __init__(self, plan: Plan, options: Options, record: trace.Record | None) -> None:
        self.plan = plan
        self.options = options
        self.record = record
        self.live = 0
        self.made = 0
        self.activations = 0
        self.peak_frames = 0
        self.held: dict[int, int] = {}  # slots that hold an array, by the identity of what owns its memory
        self.bytes = 0
        self.peak_bytes = 0
        self.most_frames = float("inf") if options.frames is None else options.frames
        self.most_bytes = float("inf") if options.memory is None else options.memory
        self.most_depth = float("inf") if options.max_depth is None else options.max_depth
        self.main = self.deepest = Frame(plan.main, None, 0, -1, 0, 0)

    def open(self, frame: Frame) -> Frame:
        """Let a frame begin, if the limits allow it."""
        layout = frame.layout
        self.made += 1
        self.live += 1
        if self.live > self.peak_frames:
            self.peak_frames = self.live
            if self.live > self.most_frames:
                raise checks.too_many_frames(self.options)
        if layout.is_call:
            self.activations += 1
            if frame.depth > self.deepest.depth:
                self.deepest = frame
                if frame.depth > self.most_depth:
                    raise checks.too_deep(self.options)
        if self.record is not None:
            parent = None if frame.parent is None else frame.parent.number
            self.record(trace.FrameStarted(frame.number, parent, frame.label, layout.region))
        self.grow(layout.cost)
        return frame

    def enter(self, frame: Frame, site: SitePlan, index: int = -1) -> Frame:
        """A frame below this one."""
        return self.open(Frame(site.layout, frame, site.number, index, site.owed or site.layout.variables, self.made))

    def drop(self, frame: Frame) -> None:
        """Forget a frame, those below it, and the iterations before it."""
        todo = [frame]
        while todo:
            gone = todo.pop()
            layout, slots = gone.layout, gone.slots
            for slot in layout.arrays:
                if type(slots[slot]) is np.ndarray:
                    self.let_go(slots[slot])
            for cell in layout.parts:
                for value in slots[cell] or ():
                    if type(value) is np.ndarray:
                        self.let_go(value)
            for cell in layout.cells:
                below = slots[cell]
                if below is not None:
                    todo += [below] if type(below) is Frame else (lane for lane in below if lane is not None)
            if gone.before is not None:
                todo.append(gone.before)
                gone.before = None
            gone.slots = []
            self.live -= 1
            self.bytes -= layout.cost
            if self.record is not None:
                self.record(trace.FrameEnded(gone.number))

    def hold(self, value: Value) -> None:
        """Count the memory of an array that is kept: once, in however many slots and views."""
        owner = value.base if isinstance(value.base, np.ndarray) else value
        before = self.held.get(id(owner), 0)
        self.held[id(owner)] = before + 1
        if before == 0:
            self.grow(owner.nbytes)

    def let_go(self, value: Value) -> None:
        owner = value.base if isinstance(value.base, np.ndarray) else value
        left = self.held[id(owner)] - 1
        if left:
            self.held[id(owner)] = left
        else:
            del self.held[id(owner)]
            self.bytes -= owner.nbytes

    def grow(self, more: int) -> None:
        self.bytes += more
        if self.bytes > self.peak_bytes:
            self.peak_bytes = self.bytes
            if self.bytes > self.most_bytes:
                raise checks.too_much_memory(self.bytes, self.options)
