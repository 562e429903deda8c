"""The store of a run on demand: computed values, frame by frame, and when they can be freed.

A frame is the part of the store that belongs to one tag. It is dropped, with all frames below it, as soon as nothing
can be demanded of it:

- of a call or a lane: when every result that its site may demand has been taken;
- of an iteration: when every variable that the next one may use is known and there is one after that, or when every
  exit of the loop is known.

A frame is entered through these demands alone, and each is made once. What is being evaluated inside it serves one of
them, which is then not known yet. So no frame is dropped too early. If a result is never demanded, the frame lives
longer than it must: it is dropped with its caller's.
"""

from __future__ import annotations

from undertow.engines.contract import Options, State
from undertow.engines.demand.plan import Layout, Plan, SitePlan
from undertow.engines.frames import PythonRun, TaggedFrame
from undertow.ir import trace


class Frame(TaggedFrame):
    """The values under one tag."""

    __slots__ = ("before", "depth", "index", "is_past", "layout", "number", "owed", "parent", "rows", "site", "slots")

    def __init__(self, layout: Layout, parent: Frame | None, site: int, index: int, owed: int, number: int) -> None:
        self.layout = layout
        self.rows = layout.rows
        self.slots = layout.slots[:]
        self.parent = parent
        self.site = site
        self.index = index
        self.owed = owed  # results that have not been taken, or variables that are not known
        self.number = number
        self.before: Frame | None = None  # the iteration before this one
        self.is_past = False  # is there an iteration after this one?
        self.depth = 0 if parent is None else parent.depth + layout.is_call


class Store(PythonRun[Frame]):
    """The live frames, and the memory of these and their arrays."""

    def __init__(self, plan: Plan, options: Options, record: trace.Record | None, state: State | None) -> None:
        super().__init__(plan.graph, Frame(plan.main, None, 0, -1, 0, 0), options, record, state)
        self.plan = plan
        self.live = 0

    def open(self, frame: Frame) -> Frame:
        """Start a frame, if the limits allow it."""
        layout = frame.layout
        self.live += 1
        self.begin(frame, self.live, layout.is_call, layout.region, layout.cost)
        return frame

    def enter(self, frame: Frame, site: SitePlan, index: int = -1) -> Frame:
        """Start a frame below this one."""
        return self.open(
            Frame(site.layout, frame, site.number, index, site.owed or site.layout.variables, self.started)
        )

    def drop(self, frame: Frame) -> None:
        """Drop a frame, those below it, and the iterations before it."""
        todo = [frame]
        while todo:
            gone = todo.pop()
            layout, slots = gone.layout, gone.slots
            self.release(slots, layout.arrays)
            for cell in layout.parts:
                self.let_go_all(slots[cell] or ())
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
