"""Calls whose lanes are interleaved, and values that only calls read.

A row of concat([f(left), f(right)]) is a result of the left call, then one of the right. So if lane 2k of the wave is
the left call of lane k, and lane 2k + 1 the right one, the column of results, seen as rows of twice the length, is the
concatenation; and in the backward phase, its cotangent is the column that both calls are given. Nothing is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from undertow.plan.plan import Call, Entered, Op, Plan, Region
from undertow.plan.shapes import is_large, is_row, size_of
from undertow.plan.walk import items_in, singly, use_counts, with_entered


def find_siblings(plan: Plan) -> Plan:
    """The plan with sibling calls, and slots that only calls read, marked."""
    if not any(is_large(slot) for region in plan.regions for slot in region.slots if slot.type.shape):
        return plan
    uses = use_counts(plan)
    return replace(plan, regions=tuple(_Families(plan, r, uses[n]).run() for n, r in enumerate(plan.regions)))


@dataclass(slots=True, eq=False)
class _Source:
    """The call result that a slot holds."""

    call: Call
    result: int
    stage: tuple[int, int]


class _Families:
    def __init__(self, plan: Plan, region: Region, uses: list[int]) -> None:
        self.plan = plan
        self.region = region
        self.uses = uses
        self.sources: dict[int, _Source] = {}
        self.members: dict[int, tuple[int, int, int]] = {}  # call number -> (family, place, how many)

    def run(self) -> Region:
        arguments: Counter[int] = Counter()  # slot -> how many calls take it
        for at, call in self._calls():
            arguments.update(call.arguments)
            if call.phase == 0:
                for k, to in enumerate(call.results):
                    if to >= 0:
                        self.sources[to] = _Source(call, k, at)
        if not self.sources and not arguments:
            return self.region
        for item in singly(items_in(self.region)):
            if isinstance(item, Op) and len(item.inputs) > 1:
                self._join(item)
        slots = tuple(
            replace(slot, is_passed=True) if is_large(slot) and 0 < self.uses[k] == arguments[k] else slot
            for k, slot in enumerate(self.region.slots)
        )
        region = self.region if slots == self.region.slots else self.region.with_slots(slots)
        if not self.members:
            return region
        return region.with_programs(tuple(with_entered(program, self._with_family) for program in region.programs))

    def _with_family(self, item: Entered) -> Entered:
        """A sibling call marked as such; any other item as it is."""
        if not isinstance(item, Call) or item.phase or item.call not in self.members:
            return item
        family, place, count = self.members[item.call]
        return replace(item, family=family, sibling=place, siblings=count)

    def _calls(self) -> Iterator[tuple[tuple[int, int], Call]]:
        for p, program in enumerate(self.region.programs):
            for s, stage in enumerate(program.stages):
                for item in stage.entered:
                    if isinstance(item, Call):
                        yield (p, s), item

    def _join(self, item: Op) -> None:
        """Make siblings of calls of one stage if this operator concatenates the same result of each."""
        if not all(x in self.sources for x in item.inputs) or len(set(item.inputs)) < len(item.inputs):
            return
        if not is_row(self.plan.kernels[item.kernel], self.region.slots[item.outputs[0]].type):
            return
        sources = [self.sources[x] for x in item.inputs]
        slots = [self.region.slots[x] for x in item.inputs]
        first = sources[0]
        for source, slot in zip(sources, slots, strict=True):
            # A call has one family at most; small values are copied anyway.
            is_alike = (
                source.stage == first.stage
                and source.result == first.result
                and source.call.callees == first.call.callees
                and source.call.resume_group == first.call.resume_group
                and source.call.visits == first.call.visits
            )
            is_same_size = size_of(slot.type) == size_of(slots[0].type)
            is_fit = is_large(slot) and is_same_size and source.call.call not in self.members
            if not is_alike or not is_fit:
                return
        for place, source in enumerate(sources):
            self.members[source.call.call] = first.call.site, place, len(sources)
