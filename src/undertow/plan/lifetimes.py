"""Liveness of columns: one that is not read again is dropped, and its memory is reused while it is still in the cache.

In a deep recursion every level is still on the stack; without this pass, the columns of all levels would be alive at
the leaves. The last reader of a slot drops it: a stage after its straight run, or a call, branch or loop that is the
only one to take it. What is read through an entry, from main, or again in the next iteration of a loop stays. What a
loop exits with is dropped by the branch that decides, if no lane leaves: so the side that goes on holds it alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from undertow.plan.plan import Branch, Call, Entered, Fused, Loop, Plan, Program, Read, Recv, Slot, Stage
from undertow.plan.shapes import is_large
from undertow.plan.walk import (
    Place,
    going_on,
    inner_reads,
    items_of,
    places,
    reads,
    run_of,
    singly,
    with_programs,
    writes,
)

_Time = tuple[int, int]  # programs of a region run one after the other, and so do their stages
_END = 1 << 30  # after all stages


@dataclass(slots=True, eq=False)
class Last:
    """The last readers of a slot."""

    time: _Time = (-1, -1)
    is_pinned: bool = False
    entered: list[Entered] = field(default_factory=list)  # those that are entered
    exit_by: int = -1  # the branch that decides, if lanes exit a loop with it

    def is_at(self, time: _Time) -> bool:
        """Is it read in a stage for the last time?"""
        return self.time == time and not self.is_pinned and self.exit_by < 0


def find_lifetimes(plan: Plan) -> Plan:
    """The plan with drops."""
    if not any(_has_memory(slot) for region in plan.regions for slot in region.slots if slot.type.shape):
        return plan
    lasts = last_reads(plan)
    changed: dict[Place, Program] = {}
    for number, region in enumerate(plan.regions):
        inner = inner_slots(region.programs)
        stages: dict[_Time, list[int]] = {}
        entered: dict[int, list[int]] = {}  # by id of the item
        for k, slot in enumerate(region.slots):
            last = lasts[number][k]
            if last.is_pinned or last.time[0] < 0 or last.time[1] == _END or k in inner or not _has_memory(slot):
                continue
            if last.exit_by >= 0 and not any(
                isinstance(item, Branch) and item.branch == last.exit_by for item in last.entered
            ):
                continue
            if not last.entered:
                stages.setdefault(last.time, []).append(k)
            elif len(last.entered) == 1 and isinstance(last.entered[0], (Call, Branch, Loop)):
                entered.setdefault(id(last.entered[0]), []).append(k)
        if not stages and not entered:
            continue
        for p, program in enumerate(region.programs):
            dropping = [_dropping(stage, stages.get((p, s), ()), entered) for s, stage in enumerate(program.stages)]
            changed[number, p] = Program(program.phase, tuple(dropping))
    return with_programs(plan, changed)


def inner_slots(programs: Iterable[Program]) -> set[int]:
    """Slots that only their own pass reads: they have no column, unless operators run one by one."""
    passes = (item for program in programs for item in items_of(program) if isinstance(item, Fused))
    return {to for item in passes for to in {*writes(item)} - {output.to for output in item.outputs}}


def _has_memory(slot: Slot) -> bool:
    """Does a slot have memory of its own? Small values share the memory of their table, and go with it."""
    return is_large(slot) or not slot.type.is_static


def _dropping(stage: Stage, drops: Iterable[int], entered: dict[int, list[int]]) -> Stage:
    if not drops and not any(id(item) in entered for item in stage.entered):
        return stage
    items = [
        replace(item, drops=tuple(entered[id(item)]))
        if isinstance(item, (Call, Branch, Loop)) and id(item) in entered
        else item
        for item in stage.entered
    ]
    return replace(stage, drops=tuple(drops), entered=tuple(items))


def last_reads(plan: Plan) -> list[list[Last]]:
    """The last reader of each slot of each region."""
    lasts = [[Last() for _ in region.slots] for region in plan.regions]

    def read(region: int, x: int, time: _Time, item: Entered | None = None) -> None:
        if x < 0:
            return
        last = lasts[region][x]
        if time < last.time:
            return
        if time > last.time:
            last.time, last.entered = time, []
        if item is not None and not any(item is other for other in last.entered):
            last.entered.append(item)

    def pin(region: int, operands: Iterable[int]) -> None:
        for x in operands:
            if x >= 0:
                lasts[region][x].is_pinned = True

    def enter(region: int, time: _Time, item: Entered) -> None:
        for x in reads(item):
            read(region, x, time, item)
        if isinstance(item, Recv):
            return
        if isinstance(item, Loop):
            pin(item.body, [transfer.to for transfer in item.outers])  # read by the next iteration
            for exit_ in item.exits:
                if exit_.source >= 0:
                    lasts[item.body][exit_.source].exit_by = item.branch
            going = going_on(plan, item)
            for x in item.next:
                read(going, x, (_END, _END))
            return
        if isinstance(item, Call):
            pin(region, item.hoists)  # every activation below the entry may read them
        elif isinstance(item, Branch):
            pin(region, (item.pred,))  # read again when the sides are merged
        for inner, x in inner_reads(plan, item):
            read(inner, x, (item.visit if isinstance(item, Branch) else item.phase, _END))

    for number, region in enumerate(plan.regions):
        for phase, results in enumerate(region.results):
            for x in results:
                read(number, x, (phase, _END))
    for number, p, program in places(plan):
        for s, stage in enumerate(program.stages):
            for step in singly(run_of(stage)):
                if isinstance(step, Read):
                    if step.is_shared:
                        pin(0, (step.index,))  # any region may read what main shares
                else:
                    for x in reads(step):
                        read(number, x, (p, s))
            for item in stage.entered:
                enter(number, (p, s), item)
    return lasts
