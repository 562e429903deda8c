"""Calls whose lanes are interleaved, and values that only calls read.

concat([f(left), f(right)]) is rows of the results of both calls, in turn. So if lane 2k of the wave is the left call of
lane k, and lane 2k + 1 the right one, that is the column of the results itself, in rows of twice the length; and on the
way back, the parts of its cotangent are the column that both calls are given. Nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from undertow.plan.plan import Call, Op, Plan, Program, Region, Slot
from undertow.plan.shapes import is_large, is_row, size_of
from undertow.plan.walk import run_of, singly, use_counts


def find_siblings(plan: Plan) -> Plan:
    """The plan with families of calls, and slots that only calls read, marked."""
    if not any(is_large(slot) for region in plan.regions for slot in region.slots if slot.type.shape):
        return plan
    uses = use_counts(plan)
    return replace(plan, regions=tuple(_Families(plan, r, uses[n]).run() for n, r in enumerate(plan.regions)))


@dataclass(slots=True, eq=False)
class _Source:
    """Which call gives a slot."""

    call: Call
    result: int
    stage: tuple[int, int]


class _Families:
    def __init__(self, plan: Plan, region: Region, uses: list[int]) -> None:
        self.plan = plan
        self.region = region
        self.uses = uses
        self.sources: dict[int, _Source] = {}
        self.members: dict[int, tuple[int, int, int]] = {}  # of a call's number: family, place, how many

    def run(self) -> Region:
        arguments: dict[int, int] = {}  # of slots: how many calls take them
        for at, call in self._calls():
            for x in call.arguments:
                arguments[x] = arguments.get(x, 0) + 1
            if call.phase == 0:
                for k, to in enumerate(call.results):
                    if to >= 0:
                        self.sources[to] = _Source(call, k, at)
        if not self.sources and not arguments:
            return self.region
        for program in self.region.programs:
            for stage in program.stages:
                for item in singly(run_of(stage)):
                    if isinstance(item, Op) and len(item.inputs) > 1:
                        self._join(item)
        slots = tuple(
            replace(slot, is_passed=True) if is_large(slot) and 0 < self.uses[k] == arguments.get(k, 0) else slot
            for k, slot in enumerate(self.region.slots)
        )
        made = self.region if slots == self.region.slots else self.region.with_slots(slots)
        return _with_members(made, self.members) if self.members else made

    def _calls(self) -> Iterator[tuple[tuple[int, int], Call]]:
        for p, program in enumerate(self.region.programs):
            for s, stage in enumerate(program.stages):
                for item in stage.entered:
                    if isinstance(item, Call):
                        yield (p, s), item

    def _join(self, item: Op) -> None:
        """Does this put one result of several calls, made together, side by side?"""
        if not all(x in self.sources for x in item.inputs) or len(set(item.inputs)) < len(item.inputs):
            return
        if not is_row(self.plan.kernels[item.kernel], self.region.slots[item.outputs[0]].type):
            return
        sources = [self.sources[x] for x in item.inputs]
        slots = [self.region.slots[x] for x in item.inputs]
        first = sources[0]
        for source, slot in zip(sources, slots, strict=True):
            # A call is a sibling once; small values are copied anyway.
            is_alike = (
                source.stage == first.stage
                and source.result == first.result
                and source.call.callees == first.call.callees
                and source.call.resume_group == first.call.resume_group
                and source.call.visits == first.call.visits
            )
            is_fit = is_large(slot) and _bytes(slot) == _bytes(slots[0]) and source.call.call not in self.members
            if not is_alike or not is_fit:
                return
        for place, source in enumerate(sources):
            self.members[source.call.call] = first.call.site, place, len(sources)


def _bytes(slot: Slot) -> int:
    return size_of(slot.type)


def _with_members(region: Region, members: dict[int, tuple[int, int, int]]) -> Region:
    """The region with its calls told their families."""
    programs = []
    for program in region.programs:
        stages = []
        for stage in program.stages:
            entered = []
            for item in stage.entered:
                if isinstance(item, Call) and item.phase == 0 and item.call in members:
                    family, place, count = members[item.call]
                    item = replace(item, family=family, sibling=place, siblings=count)
                entered.append(item)
            stages.append(replace(stage, entered=tuple(entered)))
        programs.append(Program(program.phase, tuple(stages)))
    return region.with_programs(tuple(programs))
