"""Chooses the schedule of each group of functions.

*Lockstep*, unless recursive calls on arrays wait for each other: then lockstep would make a wave for every path, while
an *agenda* takes all lanes that have reached a stage, whatever else they wait for. (Where arrays change in place, it is
lockstep all the same.) Groups that send to other parts of a placed graph or receive from them, or lead to such, run by
an agenda, too: nothing may wait there for a whole wave.

A group is *narrow* if it works on numbers (it may index arrays of its entry), and no activation makes two calls at
once, so its waves never widen: where lanes are few, each runs alone. Threads may share the lanes of a call if nothing
that it leads to runs on the host. The *grain* says how many lanes are worth a task of their own: it is in the plan,
because the bits of sums and products depend on how lanes are cut, and so that must not depend on the number of threads.
Waves of numbers (*scalar*) may be cut anywhere, and so may lanes of *free* groups, in which nothing is summed over
lanes: whoever runs them may give some of them away at any time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import prod

from undertow.ops.effects import CHECKS
from undertow.plan import plan as data
from undertow.plan.kernels import Traits, TraitsOf
from undertow.plan.order import blocking, is_blocking
from undertow.plan.plan import NO_SLOT, Group, Plan, Schedule
from undertow.plan.shapes import CHANGES
from undertow.plan.walk import Place, entered_groups, enters, inner_reads, items_in, singly, writes
from undertow.types import Shape

_TASK = 5 << 18  # operations that are worth a task, if each of its lanes is one activation: there may be many more
_FEWEST, _MOST = 32, 4096  # lanes of a task: with fewer, its waves are too narrow for matrix products
_MOST_SHOWN = 16  # operands of a check: the condition and what its message shows
_UNKNOWN = 16  # elements along an axis whose length only the run knows

_JOINT = ("matmul", "fft")  # the last bits of a lane's result depend on the lanes beside it
_COPIES = ("identity", "stop_gradient", "fill")


def choose_schedules(plan: Plan, traits_of: TraitsOf, forced: Schedule | None = None) -> Plan:
    """The plan with a schedule for each group; `forced` is the schedule of all."""
    traits = [traits_of(kernel) for kernel in plan.kernels]
    enter_groups = entered_groups(plan)
    agenda = _waiting_groups(plan) - _closed(enter_groups, _changing_groups(plan)) if forced is None else set()
    hosted = _closed(enter_groups, {r.group for r in plan.regions if _is_hosted(plan, r, traits)})
    work = _work(plan, enter_groups)
    scalar = _closed(enter_groups, {r.group for r in plan.regions if any(s.type.shape for s in r.slots)})
    bound = _closed(enter_groups, {region.group for region in plan.regions if _is_bound(plan, region)})
    narrow = _narrow_groups(plan, traits, enter_groups)
    crossing = _closed(enter_groups, {r.group for r in plan.regions if any(map(_crosses, items_in(r)))})
    groups = []
    for number in range(len(plan.groups)):
        schedule = forced or ("agenda" if number in agenda | crossing else "lockstep")
        grain = 0 if number in hosted | crossing else min(max(_TASK // work[number], _FEWEST), _MOST)
        groups.append(Group(schedule, number in narrow, grain, number not in scalar, number not in bound))
    return replace(plan, groups=tuple(groups))


def _closed(entered: dict[int, set[int]], without: set[int]) -> set[int]:
    """Groups that lack a property, or enter a group that lacks it, directly or not."""
    closed = set(without)
    while more := {group for group, inner in entered.items() if group not in closed and inner & closed}:
        closed |= more
    return closed


def _crosses(item: data.Item) -> bool:
    """Does it send a value to another part, receive one, or need a tag as such values have?"""
    return isinstance(item, (data.Send, data.Recv, data.Replica))


def _is_hosted(plan: Plan, region: data.Region, traits: list[Traits]) -> bool:
    """Does the host run some of it? (It makes the message of a check that fails; the core sees that it does.)"""
    used = {x.kernel for x in singly(items_in(region)) if isinstance(x, data.Op)}
    return any(not traits[kernel].is_native and plan.kernels[kernel].op not in CHECKS for kernel in used)


def _is_bound(plan: Plan, region: data.Region) -> bool:
    """Do bits depend on which lanes run together?"""
    for item in singly(items_in(region)):
        if isinstance(item, data.Collect) or (isinstance(item, data.Op) and plan.kernels[item.kernel].op in _JOINT):
            return True
    return False


def _work(plan: Plan, entered: dict[int, set[int]]) -> list[int]:
    """The operations of one activation of each group, and of one of each group that it leads to."""
    own = [1] * len(plan.groups)
    for number, region in enumerate(plan.regions):
        own[region.group] += sum(_operations(plan, number, item) for item in singly(items_in(region)))
    work = []
    for group in range(len(plan.groups)):
        reached, todo = {group}, [group]
        while todo:
            more = entered.get(todo.pop(), set()) - reached
            reached |= more
            todo += more
        work.append(sum(own[k] for k in reached))
    return work


def _operations(plan: Plan, region: int, item: data.Item) -> int:
    if not isinstance(item, data.Op):
        return 0
    made = sum(_elements(plan.type_of(region, x).shape) for x in item.outputs if x != NO_SLOT)
    if plan.kernels[item.kernel].op == "matmul":
        made *= 2 * _elements(plan.type_of(region, item.inputs[0]).shape[-1:])
    return made


def _elements(shape: Shape) -> int:
    return prod(n if isinstance(n, int) else _UNKNOWN for n in shape)


# --------------------------------------------------------------------------------------------------------------
# Calls that wait for each other


def _waiting_groups(plan: Plan) -> set[int]:
    """Groups with arrays, in whose first phase a call of the group waits for another."""
    has_arrays = {region.group for region in plan.regions if any(slot.type.shape for slot in region.slots)}
    waiting: set[int] = set()
    calls: dict[Place, set[int]] = {}  # the groups that a program of the first phase calls
    for number in reversed(range(len(plan.regions))):
        region = plan.regions[number]
        for visit, program in enumerate(region.programs):
            if program.phase:
                break
            own = calls.setdefault((number, visit), set())
            for stage in program.stages:
                here: set[int] = set()
                for item in stage.entered:
                    if isinstance(item, data.Call):
                        here |= {plan.regions[callee].group for callee in item.callees}
                    for inner in enters(item):
                        here |= calls.get(inner, set())
                if region.group in here and region.group in has_arrays and region.group in own:
                    waiting.add(region.group)
                own |= here
    return waiting


def _changing_groups(plan: Plan) -> set[int]:
    """Groups that change arrays where they are. An agenda would copy them, since its frames hold all that they had."""
    if not any(kernel.op in CHANGES for kernel in plan.kernels):
        return set()
    return {region.group for region in plan.regions if any(_is_change(plan, x) for x in singly(items_in(region)))}


def _is_change(plan: Plan, item: data.Item) -> bool:
    return isinstance(item, data.Op) and 0 in item.last and plan.kernels[item.kernel].op in CHANGES


# --------------------------------------------------------------------------------------------------------------
# Numbers, one call at a time


def _narrow_groups(plan: Plan, traits: list[Traits], entered: dict[int, set[int]]) -> set[int]:
    """Groups of functions that run narrow: they, and all that they enter, are scalar and linear."""
    blocks = blocking(plan)
    wide = {region.group for n, region in enumerate(plan.regions) if not _is_narrow(plan, n, region, traits, blocks)}
    wide = _closed(entered, wide)
    return {region.group for region in plan.regions if region.kind == "function"} - wide


def _is_narrow(plan: Plan, number: int, region: data.Region, traits: list[Traits], blocks: set[Place]) -> bool:
    if region.kind in ("main", "map"):
        return False
    ends = [x for slots in (*region.params, *region.results) for x in slots]
    if not _are_numbers(plan, number, ends):
        return False
    for program in region.programs:
        for stage in program.stages:
            if len(stage.entered) > 1 and sum(is_blocking(item, number, blocks) for item in stage.entered) > 1:
                return False  # it makes two calls at once
    return all(_fits(plan, number, item, traits) for item in singly(items_in(region)))


def _are_numbers(plan: Plan, region: int, operands: Iterable[int]) -> bool:
    for x in operands:  # of every operator, and `all` takes twice as long
        if x != NO_SLOT and ((type_ := plan.type_of(region, x)).shape or type_.dtype.kind == "complex"):
            return False
    return True


def _fits(plan: Plan, region: int, item: data.Item, traits: list[Traits]) -> bool:
    """Is an item on numbers alone? An array may come from the entry, pass into branches and loops, and be indexed."""
    if isinstance(item, data.Op):
        kernel = plan.kernels[item.kernel]
        if kernel.op in CHECKS:
            return len(item.inputs) <= _MOST_SHOWN and _are_numbers(plan, region, item.inputs)
        if not traits[item.kernel].is_native or len(item.outputs) != 1 or not _are_numbers(plan, region, item.outputs):
            return False
        if kernel.op == "index":
            return _are_numbers(plan, region, item.inputs[1:])
        if len(item.inputs) > 3 or not _are_numbers(plan, region, item.inputs):
            return False
        return len(item.inputs) == 1 if kernel.op in _COPIES else traits[item.kernel].is_each
    if isinstance(item, data.Branch):
        inside = all(_are_numbers(plan, inner, (x,)) for inner, x in inner_reads(plan, item))
        return inside and _are_numbers(plan, region, writes(item))
    if isinstance(item, data.Call):
        return _are_numbers(plan, region, (*item.arguments, *item.hoists, *item.results)) and len(item.callees) == 1
    if isinstance(item, data.Loop):
        own = [*(transfer.source for transfer in item.variables), *(exit_.to for exit_ in item.exits)]
        return _are_numbers(plan, region, own)
    if isinstance(item, data.Collect):
        return item.kind != "product" and _are_numbers(plan, region, item.values)
    if isinstance(item, data.Collected):
        return len(item.to) == 1 and item.to[0] != NO_SLOT and _are_numbers(plan, region, item.to)
    return not isinstance(item, (data.Map, data.Send, data.Recv, data.Replica))
