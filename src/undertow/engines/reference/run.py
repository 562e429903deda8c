"""One run: tokens, results, and the loop that fires whatever the scheduler picks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import repeat

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import GO, Value, conform
from undertow.engines.contract import Options, State
from undertow.engines.frames import KERNEL
from undertow.engines.reference import rows
from undertow.engines.reference.frame import NONE, Frame, Sum
from undertow.engines.reference.frames import Frames
from undertow.engines.reference.report import deadlock
from undertow.engines.reference.rows import (
    CALL,
    COUNT,
    DEAD,
    FORWARD,
    NEXT,
    NOWHERE,
    SEND,
    SWITCH,
    NumberedGraph,
    Out,
    Quiet,
    SitePlan,
)
from undertow.engines.reference.schedulers import Scheduler, scheduler_of
from undertow.errors import RunError
from undertow.ir import trace
from undertow.ops.lanes import stack_lanes
from undertow.types import Type

ZERO = Sum()  # nothing was collected
_BURST = 32  # firings between two checks of the clock


class Run(Frames):
    """One run: its frames, its tokens and its results."""

    def __init__(
        self,
        rows: NumberedGraph,
        values: list[Value],
        options: Options,
        record: trace.Record | None,
        state: State | None = None,
        scheduler: Scheduler | None = None,
    ) -> None:
        pool, self.pop = scheduler or scheduler_of(options, rows.graph)
        super().__init__(rows, options, record, state, pool)
        self.values = [GO, *values]
        self.results: list[Value] = [None] * len(rows.graph.fetches)
        self.missing = len(self.results)

    # -- the loop ------------------------------------------------------------------------------------------

    def execute(self, drain: bool = False) -> None:
        self.open(self.main)
        for at in self.rows.first_ready:
            self.push((self.main, at))
        if drain or self.missing:
            self.loop(drain)
        if self.missing:
            raise deadlock(self.rows, self.live, (n for n, value in enumerate(self.results) if value is None))

    def loop(self, drain: bool) -> None:
        pool, pop, fired, record = self.pool, self.pop, self.fired, self.record
        nodes = self.graph.nodes
        deliver, release, is_strict = self.deliver, self.release, self.options.check_finite
        frame, number, dead, alarm = self.main, 0, 0, self.clock.first_alarm()
        try:
            while pool:
                if time.perf_counter() > alarm:
                    alarm = self.look()
                for _ in repeat(None, _BURST):
                    if not pool:
                        break
                    frame, at = pop()
                    slots = frame.slots
                    code, number, first, last, held, outs, quiet, extra = frame.rows[at]
                    if frame.pend[at] > 0:
                        dead += 1
                        if held:
                            release(slots, held)
                        for token in quiet:
                            self.kill(frame, token)
                        if code == SEND:
                            self.send(frame, extra, NONE)
                        if record is not None:
                            record(self.event(frame, number, False, [NONE] * len(outs)))
                    else:
                        fired[number] += 1
                        target = frame
                        if code == KERNEL:
                            kernel, attrs, want, type_, rank = extra
                            values = slots[first:last]
                            if rank:
                                self.foresee(number, want, values)
                            value = kernel(values, attrs)[0]
                            if type(value) is not want:
                                value = conform(value, type_, rank)
                            if is_strict:
                                checks.check_finite(value, nodes[number].op)
                            out = outs[0]
                        elif code == FORWARD:
                            value = slots[first]
                            out = outs[0]
                        elif code == SWITCH:
                            value = slots[first + 1]
                            side = 0 if slots[first] else 1
                            out = outs[side]
                            self.kill(frame, quiet[1 - side])
                        elif code == CALL:
                            value = slots[first]
                            target = slots[extra.cell] or self.call(frame, extra)
                            out = outs[0]
                        elif code == NEXT:
                            value = slots[first]
                            target = slots[extra.after] or self.iterate(frame, extra)
                            out = outs[0]
                        else:
                            target, value, out = self.fire(frame, at)
                        if held:
                            release(slots, held)
                        if record is not None:
                            shown = value if type(value) is list else [value] * len(outs)
                            if code == SWITCH:
                                shown = [value if o is out else NONE for o in outs]
                            record(self.event(frame, number, True, shown))
                        deliver(target, value, out)
                        if out.is_far and self.missing == 0 and not drain:
                            return
                    frame.left -= 1
                    if frame.left == 0:
                        self.close(frame)
        except Exception as error:
            self.fail(error, number, frame)
        finally:
            self.dead = dead

    def fire(self, frame: Frame, at: int) -> tuple[Frame, Value, Out]:
        """Fire one of the rarer operators: its target frame, its value and targets; NOWHERE if it has delivered."""
        code, number, first, last, _, outs, _, extra = frame.rows[at]
        slots, deliver = frame.slots, self.deliver
        if code == rows.CALL_START:
            deliver(slots[extra.cell] or self.call(frame, extra), GO, outs[0])
            return frame, GO, outs[1]
        if code == rows.ENTER:
            return self.enter(frame, extra), slots[first], outs[0]
        if code == rows.ENTER_START:
            deliver(self.enter(frame, extra), GO, outs[0])
            return frame, GO, outs[1]
        if code == rows.INPUT:
            return frame, self.values[extra], outs[0]
        if code == SEND:
            self.send(frame, extra, slots[first])
            return frame, GO, outs[0]
        if code == rows.FAN_START:
            return frame, self.fan_start(frame, slots[first], outs[0], *extra), outs[1]
        if code == rows.FAN:
            self.fan(frame, slots[first], outs[0], *extra)
            return frame, slots[first], NOWHERE
        if code == rows.GATHER:
            value = self.gather(slots[first], extra)
            slots[first] = None
            return frame, value, outs[0]
        if code == rows.HOIST:
            self.hoist(slots[extra[0].cell] or self.call(frame, extra[0]), extra[1], slots[first])
            return frame, slots[first], NOWHERE
        if code == rows.COLLECT:
            assert frame.entry is not None
            frame.entry.sums.setdefault(extra, Sum()).add(slots[first:last])
            return frame, GO, outs[0]
        if code == rows.TAGGED:
            evaluate, attrs = extra
            return frame, evaluate(frame.path, attrs)[0], outs[0]
        if code in (rows.COLLECTED, rows.COLLECTED_ROWS):
            collected = slots[extra[0].cell].entry.sums.get(extra[1], ZERO)
            if code == rows.COLLECTED:
                return frame, collected.total(slots[first]), outs[0]
            values = collected.sparse(slots[first])
        else:
            values = self.results_of(code, number, extra, slots[first:last])
        for value, out in zip(values, outs, strict=True):
            deliver(frame, value, out)
        return frame, values, NOWHERE

    # -- tokens --------------------------------------------------------------------------------------------

    def deliver(self, target: Frame, value: Value, out: Out) -> None:
        """Deliver a live token to all nodes that wait for it."""
        plain, merges, up, _, _, _, _, weight, is_far = out
        push, pend, slots = self.push, target.pend, target.slots
        if weight > 0:
            self.hold(value, weight)
        for at, slot in plain:
            slots[slot] = value
            count = pend[at] - 1
            pend[at] = count
            if not count & COUNT:
                push((target, at))
        for at, slot in merges:
            if pend[at] > 0:
                slots[slot] = value
                pend[at] = 0
                push((target, at))
        if up is not None:
            parent = target.parent
            assert parent is not None
            # Return: of all sites that call this body, only the one that opened the frame (its label) takes the token.
            # A parent that has ended does not visit the phase that gives this result.
            for at, slot in up.get(target.site, ()) if parent.slots else ():
                self.put(parent, at, slot, value)
        if is_far:
            self.deliver_far(target, value, out)

    def deliver_far(self, target: Frame, value: Value, out: Out) -> None:
        """Deliver to rarer targets: invariants of loops and maps, gathers, fetches, shared values."""
        for site, number in out.down:
            context = self.context(target, site)
            context.values[number] = value
            context.missing -= 1
            if type(value) is np.ndarray:
                self.hold(value, 1)
            at, slot = site.outers[number]
            for frame in context.waiting:
                self.put(frame, at, slot, value)
            if context.missing == 0:
                context.waiting = []
        for number, phase in out.lanes:
            lane = target.context
            assert lane is not None
            if phase >= target.kind.visits:
                continue  # the results of that phase are not used
            lane.cells[number][target.index] = value
            lane.lacking[number] -= 1
            if type(value) is np.ndarray:
                self.hold(value, 1)
            if lane.lacking[number] == 0:
                self.collect(lane, number)
        for number in out.fetches:
            self.results[number] = value
            self.missing -= 1
        for number in out.shared:
            self.give(self.shared, number, value)

    def send(self, frame: Frame, edge: int, value: Value) -> None:
        """Have a token cross to another part; NONE is a dead one."""
        raise NotImplementedError

    def fan_start(self, frame: Frame, array: Value, out: Out, site: SitePlan, phase: int) -> Value:
        """Start the lanes, one per element; in a later phase, the same lanes. Returns their number."""
        lanes = self.revisit(frame, site, None) if phase else self.spread(frame, site, len(array))
        for lane in lanes:
            self.feed(lane, GO, out)
        return np.int64(len(lanes))

    def fan(self, frame: Frame, array: Value, out: Out, site: SitePlan, phase: int) -> None:
        """Give each lane its element; or all of them the same order token."""
        count = None if array is GO else len(array)
        lanes = self.revisit(frame, site, count) if phase else self.spread(frame, site, len(array))
        for lane, element in zip(lanes, repeat(GO) if array is GO else array, strict=False):
            self.feed(lane, element, out)

    def feed(self, lane: Frame, value: Value, out: Out) -> None:
        """Deliver a token into a lane, and close the lane if that was all it waited for."""
        self.deliver(lane, value, out)
        lane.left -= 1
        if lane.left == 0:
            self.close(lane)

    def hoist(self, target: Frame, index: int, value: Value) -> None:
        """Give a value to the entry that a frame is, unless all frames that could read it have ended."""
        entry = target.entry
        assert entry is not None
        if entry.users:
            self.give(entry, index, value)

    def kill(self, target: Frame, token: Quiet) -> None:
        """Deliver a dead token to all nodes that wait for it."""
        plain, gates, merges, up, is_fetch = token
        push, pend = self.push, target.pend
        for at in plain:
            count = pend[at] + (DEAD - 1)
            pend[at] = count
            if not count & COUNT:
                push((target, at))
        for at in gates:
            if pend[at] < DEAD:
                pend[at] = DEAD
                push((target, at))
        for at in merges:
            pend[at] -= 1
            if pend[at] == 0:
                pend[at] = DEAD
                push((target, at))
        if up is not None and target.site in up:
            parent = target.parent
            assert parent is not None
            for at in up[target.site]:
                parent.pend[at] += DEAD - 1
                if not parent.pend[at] & COUNT:
                    push((parent, at))
        if is_fetch:
            raise RunError("a fetch is dead", hint="a fetch must not be inside a branch")

    def gather(self, values: list[Value], type_: Type) -> Value:
        """The results of all lanes as one value."""
        self.let_go_all(values)
        return stack_lanes(values, type_)

    # -- events and errors ---------------------------------------------------------------------------------

    def event(self, frame: Frame, number: int, is_live: bool, values: Sequence[Value]) -> trace.Fired:
        shown = tuple(trace.DEAD if value is NONE else trace.show_value(value) for value in values)
        return trace.Fired(frame.number, number, self.graph.nodes[number].name, is_live, shown)
