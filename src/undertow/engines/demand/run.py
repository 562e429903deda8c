"""EVAL: computes a value when it is demanded.

EVAL(slot, frame) demands what the row of the slot needs: values of the same frame, and then perhaps one more: the side
that the predicate of a branch chooses, the argument in the caller's frame, or the result in the callee's. A side is
demanded only if it was taken, so there are no dead tokens here; and an argument that no result needs is never computed.

Recursion is an explicit stack of (frame, slot). On the first visit an element pushes what it lacks and marks its slot
BUSY; when it is on top again, all of that is known. Demanding a BUSY slot means that a value depends on itself.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import repeat
from typing import Any, Protocol

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import GO, Value, conform
from undertow.engines.contract import Options, State
from undertow.engines.demand import plan as rows
from undertow.engines.demand.plan import BUSY, NONE, Fetch, Plan, Row, SitePlan
from undertow.engines.demand.store import Frame, Store
from undertow.engines.demand.story import Story
from undertow.engines.frames import KERNEL, PythonPlan
from undertow.errors import RunError
from undertow.ir import trace
from undertow.ir.graph import StaticGraph

_BURST = 256  # visits between two checks of the clock


class Demand:
    """The engine."""

    name = "demand"
    is_lazy = True
    takes_hoisted = False  # an argument is demanded where it is needed, through the calls that pass it on
    forms_waves = False

    def plan(self, graph: StaticGraph) -> DemandPlan:
        return DemandPlan(graph)


class DemandPlan(PythonPlan):
    """A static graph made ready: a run evaluates what is fetched, and nothing that it does not need."""

    def __init__(self, graph: StaticGraph) -> None:
        super().__init__(graph, Demand.name, Plan(graph), Run)


class Captured(Protocol):
    """What `f.graph(...)` gives: it has the graph as it was captured, which has no hoisted values."""

    @property
    def captured_graph(self) -> StaticGraph: ...


def explain(
    graph: StaticGraph | Captured, inputs: Sequence[Any] = (), lines: int = 400, options: Options | None = None
) -> str:
    """The log of a run: what each EVAL demands, and its result, in at most `lines` lines.

    `graph` is what `f.graph(...)` gives, or a static graph; `inputs` are the values of its inputs.
    """
    graph = graph if isinstance(graph, StaticGraph) else graph.captured_graph
    values = list(inputs)
    for k, number in enumerate(graph.inputs[: len(values)]):
        if isinstance(values[k], (bool, int, float)):
            values[k] = graph.nodes[number].types[0].dtype.numpy.type(values[k])
    plan = Plan(graph)
    story = Story(plan.index, lines)
    with np.errstate(all="ignore"):
        Run(plan, checks.check_inputs(graph, values), options or Options(), None, None, story).execute()
    return story.text()


class Run(Store):
    """One run: the store, and the counts."""

    def __init__(
        self,
        plan: Plan,
        values: list[Value],
        options: Options,
        record: trace.Record | None,
        state: State | None = None,
        story: Story | None = None,
    ) -> None:
        super().__init__(plan, options, record, state)
        self.values = values
        self.story = story

    def execute(self, drain: bool = False) -> None:
        # Order tokens first: a program prints before its results may fail.
        fetches, story = self.plan.fetches, self.story
        self.open(self.main)
        for number in sorted(range(len(fetches)), key=lambda number: not fetches[number].is_order):
            if story is not None:
                story.fetch(number)
            value = self.fetch(fetches[number])
            if story is not None:
                story.fetched(number, value)
        self.results = [self.main.slots[fetch.slot] for fetch in fetches]
        self.drop(self.main)

    def fetch(self, fetch: Fetch) -> Value:
        for slot, side in fetch.guards:
            if bool(self.eval(slot)) is not side:
                raise RunError("a fetch is dead", hint="a fetch must not be inside a branch")
        return self.eval(fetch.slot)

    # -- the loop ------------------------------------------------------------------------------------------

    def eval(self, wanted: int) -> Value:
        """The value of a slot of the main frame."""
        frame = self.main
        stack: list[tuple[Frame, int]] = [(frame, wanted)]
        push, pop, fired, record, story = stack.append, stack.pop, self.fired, self.record, self.story
        is_strict, alarm = self.options.check_finite, self.clock.first_alarm()
        ONE, FORWARD, BRANCH, PARAM = KERNEL, rows.FORWARD, rows.BRANCH, rows.PARAM  # locals are faster
        number = frame.rows[wanted].number
        there: Any  # a frame
        try:
            while stack:
                if time.perf_counter() > alarm:
                    alarm = self.look()
                for _ in repeat(None, _BURST):
                    if not stack:
                        break
                    frame, at = stack[-1]
                    slots = frame.slots
                    state = slots[at]
                    row = frame.rows[at]
                    code, number, tally, needs, source, extra, _ = row
                    if state is NONE:
                        if story is not None:
                            story.demanded(number, frame)
                        slots[at] = BUSY
                        height = len(stack)
                        for need in needs:
                            found = slots[need]
                            if found is NONE:
                                push((frame, need))
                            elif found is BUSY:
                                raise self.circle(frame, need)
                        if len(stack) > height:
                            continue
                    elif state is not BUSY:
                        pop()  # it was evaluated meanwhile, for another demand
                        continue
                    if code == ONE:
                        inputs, kernel, attrs, want, dtype, rank = extra
                        values = [slots[i] for i in inputs]
                        if rank:
                            self.foresee(number, want, values)
                        value = kernel(values, attrs)[0]
                        if type(value) is not want:
                            value = conform(value, dtype, rank)
                        if is_strict:
                            checks.check_finite(value, self.graph.nodes[number].op)
                    elif code == FORWARD:
                        value = slots[source]
                    elif code < BRANCH:
                        value = self.near(frame, at, row)
                    else:
                        if code == BRANCH:
                            there, source = frame, extra[0] if slots[source] else extra[1]
                        elif code == PARAM:
                            there, source = frame.parent, extra[frame.site]
                        else:
                            there, source = self.elsewhere(frame, row)
                        value = there.slots[source]
                        if value is NONE:
                            push((there, source))
                            continue
                        if value is BUSY:
                            raise self.circle(there, source)
                        if code > PARAM:
                            value = self.taken(frame, there, row, value)
                    pop()
                    slots[at] = value
                    if type(value) is np.ndarray:
                        self.hold(value)
                    fired[tally] += 1
                    if record is not None and tally >= 0:
                        record(self.event(frame, at, row))
                    if story is not None:
                        story.known(number, frame, value)
        except Exception as error:
            self.fail(error, number, frame)
        return self.main.slots[wanted]

    def near(self, frame: Frame, at: int, row: Row) -> Value:
        """The value of one of the rarer operators that need only their own frame."""
        slots, values = frame.slots, list[Value]()
        if row.code == rows.INPUT:
            return self.values[row.source]
        if row.code == rows.FAN:
            lanes, count = slots[row.extra[0]], len(slots[row.source])
            if lanes != count:
                raise checks.stopped(row.extra[1], self.options, int(lanes), count)
            return slots[row.source]
        if row.code == rows.SIGNAL:
            values = [GO, GO]
        elif row.code == rows.COUNT:
            # A later phase takes the number itself from the first.
            values = [GO, slots[row.source] if row.extra else np.int64(len(slots[row.source]))]
        else:
            inputs, *parts = row.extra
            values = self.results_of(row.code, row.number, parts, [slots[i] for i in inputs])
        for slot, value in enumerate(values, row.first):
            slots[slot] = value
            if slot != at and type(value) is np.ndarray:
                self.hold(value)
        return slots[at]

    # -- other frames --------------------------------------------------------------------------------------

    def elsewhere(self, frame: Frame, row: Row) -> tuple[Frame | None, int]:
        """The frame and slot of the value that a row demands of another frame."""
        if row.code == rows.RETURN:
            site: SitePlan = row.extra
            callee: Frame = frame.slots[site.cell]
            if callee is None:
                callee = frame.slots[site.cell] = self.enter(frame, site)
            return callee, row.source
        if row.code == rows.VARIABLE:
            return (frame.before, row.extra[0]) if frame.index else (frame.parent, row.source)
        if row.code == rows.EXIT:
            return self.last(frame, row)
        if row.code == rows.GATHER:
            return self.lane(frame, row)
        return frame.parent, row.source

    def last(self, frame: Frame, row: Row) -> tuple[Frame, int]:
        """What an exit demands next: eager variables and the predicate of each iteration; at the end, its variable."""
        site: SitePlan
        site, eager = row.extra
        at: Frame = frame.slots[site.cell]
        if at is None:
            at = frame.slots[site.cell] = self.enter(frame, site, 0)
            frame.slots[site.left] = site.exits
        while True:
            for slot, lag in eager:
                behind: Frame | None = at
                for _ in range(lag):
                    behind = behind and behind.before
                if behind is not None and _is_unknown(behind.slots[slot]):
                    return behind, slot
            more = at.slots[site.layout.pred]
            if _is_unknown(more):
                return at, site.layout.pred
            if not more:
                return at, row.source
            at.is_past = True
            self.forget(at)
            after = self.enter(frame, site, at.index + 1)
            after.before = at
            at = frame.slots[site.cell] = after

    def lane(self, frame: Frame, row: Row) -> tuple[Frame, int]:
        """What a gather demands next: the first lane's result that it lacks; at the end, its list of results."""
        site: SitePlan
        site, count, parts, _ = row.extra
        slots = frame.slots
        if slots[site.cell] is None:
            slots[site.cell] = [None] * int(slots[count])
        lanes: list[Frame | None] = slots[site.cell]
        if slots[parts] is None:
            slots[parts] = []
        taken: list[Value] = slots[parts]
        for index in range(len(taken), len(lanes)):
            lane = lanes[index]
            if lane is None:
                lane = lanes[index] = self.enter(frame, site, index)
            value = lane.slots[row.source]
            if _is_unknown(value):
                return lane, row.source
            taken.append(value)
            if type(value) is np.ndarray:
                self.hold(value)
            lane.owed -= 1
            if lane.owed == 0:
                self.drop(lane)
                lanes[index] = None
        return frame, parts

    def forget(self, frame: Frame) -> None:
        """Drop the iteration before one that is not the last, if nothing can be demanded of it any more."""
        if frame.owed == 0 and frame.is_past and frame.before is not None:
            self.drop(frame.before)
            frame.before = None

    def taken(self, frame: Frame, there: Frame, row: Row, value: Value) -> Value:
        """Take a value from another frame, and drop that frame if nothing can be demanded of it any more."""
        slots = frame.slots
        if row.code == rows.RETURN:
            there.owed -= 1
            if there.owed == 0:
                self.drop(there)
                slots[row.extra.cell] = None
        elif row.code == rows.VARIABLE:
            frame.owed -= row.extra[1]
            self.forget(frame)
        elif row.code == rows.ELEMENT:
            return value[frame.index]
        elif row.code == rows.EXIT:
            site: SitePlan = row.extra[0]
            slots[site.left] -= 1
            if slots[site.left] == 0:
                self.drop(slots[site.cell])
                slots[site.cell] = None
        elif row.code == rows.GATHER:
            self.let_go_all(value)
            slots[row.extra[2]] = None
            return checks.stack_lanes(value, row.extra[3])
        return value

    # -- events and errors ---------------------------------------------------------------------------------

    def event(self, frame: Frame, at: int, row: Row) -> trace.Fired:
        node = self.graph.nodes[row.number]
        values = frame.slots[row.first : row.first + len(node.types)]
        shown = tuple(trace.DEAD if _is_unknown(value) else trace.show_value(value) for value in values)
        return trace.Fired(frame.number, row.number, node.name, True, shown)

    def circle(self, frame: Frame, slot: int) -> RunError:
        name = self.graph.nodes[frame.rows[slot].number].name
        return RunError(
            f"deadlock: {name} under {trace.show_tag(frame.tag())} depends on itself", hint="the graph is not valid"
        )


def _is_unknown(value: Value) -> bool:
    return value is NONE or value is BUSY
