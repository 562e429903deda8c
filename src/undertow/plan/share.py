"""Finds values that all lanes below an entry share: weights, and what is computed from them alone.

Values read from the entry or from main are shared, and so is what is computed from shared values alone. (If each lane
makes an entry of its own, their values may differ: the run counts entries.)
"""

from __future__ import annotations

from dataclasses import replace

from undertow.plan.plan import NO_SLOT, Branch, Item, Loop, Map, Op, Plan, Read
from undertow.plan.walk import items_in


def share(plan: Plan) -> Plan:
    """The plan with shared slots marked."""
    shared: list[set[int]] = [set() for _ in plan.regions]
    todo = [(number, list(items_in(region))) for number, region in enumerate(plan.regions)]
    before = -1
    while before != (now := sum(map(len, shared))):
        before = now
        for number, items in todo:
            for item in items:
                _look(plan, number, item, shared)
    regions = list(plan.regions)
    for number, own in enumerate(shared):
        if own:
            slots = list(regions[number].slots)
            for k in own:
                slots[k] = replace(slots[k], is_shared=True)
            regions[number] = regions[number].with_slots(tuple(slots))
    return replace(plan, regions=tuple(regions))


def _look(plan: Plan, region: int, item: Item, shared: list[set[int]]) -> None:
    own = shared[region]
    if isinstance(item, Op):
        if not plan.kernels[item.kernel].is_effect and all(x < 0 or x in own for x in item.inputs):
            own.update(to for to in item.outputs if to != NO_SLOT)
    elif isinstance(item, Read):
        own.add(item.to)
    elif isinstance(item, Branch):
        for side, transfers in zip(item.regions, item.transfers, strict=True):
            shared[side].update(t.to for t in transfers if t.source < 0 or t.source in own)
    elif isinstance(item, (Loop, Map)):
        shared[item.body].update(t.to for t in item.outers if t.source < 0 or t.source in own)
