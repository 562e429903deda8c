"""Homes of values: host memory, for what schedules read, or lane memory, which could be on a device.

The host reads predicates, indices, numbers that become part of a shape, the operands of operators that it runs itself,
and the integers and booleans that all these are computed from. It does not read a float that is compared, only the
result of the comparison. All other values live with the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from undertow.plan.kernels import TraitsOf
from undertow.plan.plan import Branch, Call, Collect, Item, Loop, Map, Op, Plan, Read
from undertow.plan.walk import going_on, items_in, singly, transfers_of

_Value = tuple[int, int]  # region, slot


def find_homes(plan: Plan, traits_of: TraitsOf) -> Plan:
    """The plan with the home of each slot."""
    traits = [traits_of(kernel) for kernel in plan.kernels]
    slots = [region.slots for region in plan.regions]
    sources: dict[_Value, list[_Value]] = {}  # value -> the integers and booleans it is computed from
    host: set[_Value] = set()
    hoists = _hoists(plan)
    for number, region in enumerate(plan.regions):
        for item in singly(items_in(region)):
            if isinstance(item, Op):
                row, kernel = traits[item.kernel], plan.kernels[item.kernel]
                whole = [x for x in item.inputs if x >= 0 and not slots[number][x].type.dtype.is_inexact]
                for output in item.outputs:
                    sources[number, output] = [(number, x) for x in whole]
                if not row.is_native:
                    host.update((number, x) for x in (*item.inputs, *item.outputs) if x >= 0)
                elif row.deciding or not row.is_each:
                    for k, x in enumerate(item.inputs):
                        is_index = k > 0 and not row.is_each and kernel.inputs[k][0] in ("i32", "i64")
                        if x >= 0 and (is_index or row.deciding >> k & 1):
                            host.add((number, x))
                continue
            if isinstance(item, Branch):
                host.add((number, item.pred))
            elif isinstance(item, Collect) and item.kind == "rows":
                host.add((number, item.values[0]))
            for to, source in _flows(plan, number, item, hoists):
                if to[1] >= 0 <= source[1] and not slots[source[0]][source[1]].type.dtype.is_inexact:
                    sources.setdefault(to, []).append(source)
    todo = list(host)
    while todo:
        for source in sources.get(todo.pop(), ()):
            if source not in host:
                host.add(source)
                todo.append(source)
    regions = []
    for number, region in enumerate(plan.regions):
        placed = [slot if (number, k) in host else slot.with_home("lanes") for k, slot in enumerate(region.slots)]
        regions.append(region.with_slots(tuple(placed)))
    return replace(plan, regions=tuple(regions))


def _hoists(plan: Plan) -> dict[int, list[_Value]]:
    """Entry arguments by index: a reader of one may read any of them."""
    values: dict[int, list[_Value]] = {}
    for number, region in enumerate(plan.regions):
        for item in items_in(region):
            if isinstance(item, Call):
                for index, x in enumerate(item.hoists):
                    values.setdefault(index, []).append((number, x))
    return values


def _flows(plan: Plan, region: int, item: Item, hoists: dict[int, list[_Value]]) -> Iterator[tuple[_Value, _Value]]:
    """The (target, source) pairs by which items that are not operators copy values."""
    if isinstance(item, Read):
        for source in [(0, item.index)] if item.is_shared else hoists.get(item.index, []):
            yield (region, item.to), source
    elif isinstance(item, Call):
        for callee in item.callees:
            body = plan.regions[callee]
            for to, x in zip(body.params[item.phase], item.arguments, strict=True):
                yield (callee, to), (region, x)
            for to, x in zip(item.results, body.results[item.phase], strict=True):
                yield (region, to), (callee, x)
    for inner, transfer in transfers_of(item):
        yield (inner, transfer.to), (region, transfer.source)
    if isinstance(item, Branch):
        for merge in item.merges:
            for inner, x in zip(item.regions, merge.sides, strict=True):
                yield (region, merge.to), (inner, x)
    elif isinstance(item, Loop):
        going = going_on(plan, item)
        for variable, x in zip(item.variables, item.next, strict=True):
            yield (item.body, variable.to), (going, x)
        for exit_ in item.exits:
            yield (region, exit_.to), (item.body, exit_.source)
    elif isinstance(item, Map):
        for result in item.results:
            yield (region, result.to), (item.body, result.source)
