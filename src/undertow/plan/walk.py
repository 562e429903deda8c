"""Queries on a plan: what an item reads, writes and enters. A new kind of item is added here first.

`core/src/plan/items.h` is the same for C++.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

from undertow.ir.budget import paced
from undertow.plan import plan as data
from undertow.plan.plan import NO_SLOT, Item, Operand, Plan, Program, Region, Stage

Place = tuple[int, int]  # a region, and which of its programs


_ENTERED = frozenset((data.Branch, data.Call, data.Loop, data.Map, data.Recv))


def is_straight(item: Item) -> bool:
    return item.__class__ not in _ENTERED


def items_of(program: Program) -> Iterator[Item]:
    """All items of a program, ordered yet or not."""
    yield from paced(program.unordered)
    for stage in program.stages:
        yield from paced(run_of(stage))
        yield from stage.entered


def entered_of(program: Program) -> Iterator[Item]:
    """The items of a program that enter regions."""
    for item in program.unordered:
        if not is_straight(item):
            yield item
    for stage in program.stages:
        yield from stage.entered


def run_of(stage: Stage) -> tuple[data.Straight, ...]:
    """The straight run of a stage, with the deferred steps at its end."""
    return stage.straight + stage.deferred


def singly(items: Iterable[Item]) -> Iterator[Item]:
    """The items, with each fused pass replaced by its operators."""
    for item in items:
        if isinstance(item, data.Fused):
            yield from item.ops
        else:
            yield item


def items_in(region: Region) -> Iterator[Item]:
    """All items of all programs of a region."""
    return chain.from_iterable(map(items_of, region.programs))


def places(plan: Plan) -> Iterator[tuple[int, int, Program]]:
    """Every program, with its region's number and its own."""
    for number, region in enumerate(plan.regions):
        for k, program in enumerate(region.programs):
            yield number, k, program


def reads(item: Item) -> tuple[Operand, ...]:
    """The operands that an item reads in its own region. (`inner_reads`: in the regions that it enters.)"""
    if isinstance(item, data.Op):
        return item.inputs
    if isinstance(item, data.Branch):
        return (item.pred, *_sources(item.transfers[0]), *_sources(item.transfers[1]))
    if isinstance(item, data.Call):
        own = item.arguments + item.hoists
        return own if item.selector == NO_SLOT else (*own, item.selector)
    if isinstance(item, data.Loop):
        return (*_sources(item.variables), *_sources(item.outers))
    if isinstance(item, data.Map):
        counted = (item.counted,) if item.phase == 0 else ()
        return (*counted, *_sources(item.mapped), *_sources(item.outers))
    if isinstance(item, data.Collect):
        return item.values
    if isinstance(item, data.Collected):
        return (item.like,)
    if isinstance(item, data.Fused):
        return tuple(x for op in item.ops for x in op.inputs)
    if isinstance(item, data.Send) and item.source != NO_SLOT:
        return (item.source,)
    return ()


def writes(item: Item) -> tuple[int, ...]:
    """The slots of its own region that an item writes."""
    if isinstance(item, data.Op):
        return item.outputs
    if isinstance(item, data.Branch):
        return tuple([merge.to for merge in item.merges])
    if isinstance(item, data.Call):
        return item.results
    if isinstance(item, data.Loop):
        return tuple([exit_.to for exit_ in item.exits])
    if isinstance(item, data.Map):
        return tuple([result.to for result in item.results])
    if isinstance(item, (data.Read, data.Recv, data.Replica)):
        return (item.to,)
    if isinstance(item, data.Collected):
        return item.to
    if isinstance(item, data.Fused):
        return tuple(x for op in item.ops for x in op.outputs)
    return ()


def enters(item: Item) -> tuple[Place, ...]:
    """The inner regions that an item enters, and which program of each; none for a call, which enters another body."""
    if isinstance(item, data.Op):
        return ()  # most items
    if isinstance(item, data.Branch):
        return tuple([(side, item.visit) for side in item.regions])
    if isinstance(item, data.Loop):
        return ((item.body, 0),)
    if isinstance(item, data.Map):
        return ((item.body, item.phase),)
    return ()


def transfers_of(item: Item) -> Iterator[tuple[int, data.Transfer]]:
    """The transfers into the regions that an item enters, each with its region."""
    if isinstance(item, data.Branch):
        for side, transfers in zip(item.regions, item.transfers, strict=True):
            for transfer in transfers:
                yield side, transfer
    elif isinstance(item, data.Loop):
        for transfer in item.variables + item.outers:
            yield item.body, transfer
    elif isinstance(item, data.Map):
        for transfer in item.mapped + item.outers:
            yield item.body, transfer


def inner_reads(plan: Plan, item: Item) -> Iterator[tuple[int, Operand]]:
    """The values that an item reads in other regions: those that it entered, after they end, and main."""
    if isinstance(item, data.Op):
        return  # most items
    if isinstance(item, data.Branch):
        for merge in item.merges:
            yield item.regions[0], merge.sides[0]
            yield item.regions[1], merge.sides[1]
    elif isinstance(item, data.Loop):
        for transfer in item.variables + item.outers:
            yield item.body, transfer.to  # by the next iteration
        for exit_ in item.exits:
            yield item.body, exit_.source
        going = going_on(plan, item)
        for x in item.next:
            yield going, x
    elif isinstance(item, data.Map):
        for result in item.results:
            yield item.body, result.source
    elif isinstance(item, data.Read) and item.is_shared:
        yield 0, item.index


def going_on(plan: Plan, loop: data.Loop) -> int:
    """The region of the branch that continues a loop."""
    for item in items_of(plan.regions[loop.body].programs[0]):
        if isinstance(item, data.Branch) and item.branch == loop.branch:
            return item.regions[0]
    raise AssertionError("a loop without a way round")


def entered_groups(plan: Plan) -> dict[int, set[int]]:
    """The groups that each group enters, by calls, loops and maps."""
    entered: dict[int, set[int]] = {}
    for region, _, program in places(plan):
        for item in entered_of(program):
            if not isinstance(item, (data.Branch, data.Recv)):
                bodies = item.callees if isinstance(item, data.Call) else (item.body,)  # type: ignore[union-attr]
                groups = entered.setdefault(plan.regions[region].group, set())
                groups.update(plan.regions[body].group for body in bodies)
    return entered


def use_counts(plan: Plan) -> list[list[int]]:
    """How often each slot of each region is read, anywhere in the plan."""
    counts = [[0] * len(region.slots) for region in plan.regions]
    for number, region in enumerate(plan.regions):
        own = counts[number]
        for x in chain.from_iterable(region.results):
            if x >= 0:
                own[x] += 1
        for item in items_in(region):
            for x in reads(item):
                if x >= 0:
                    own[x] += 1
            for inner, x in inner_reads(plan, item):
                if x >= 0:
                    counts[inner][x] += 1
    return counts


def with_entered(program: Program, change: Callable[[data.Entered], data.Entered]) -> Program:
    """An ordered program, with `change` applied to each item that enters regions."""
    stages = [replace(stage, entered=tuple(map(change, stage.entered))) for stage in program.stages]
    return Program(program.phase, tuple(stages))


def with_programs(plan: Plan, changed: dict[Place, Program]) -> Plan:
    """The plan with some programs replaced."""
    if not changed:
        return plan
    regions: list[Region] = list(plan.regions)
    for number in {region for region, _ in changed}:
        own = regions[number]
        programs = [changed.get((number, k), program) for k, program in enumerate(own.programs)]
        regions[number] = own.with_programs(tuple(programs))
    return replace(plan, regions=tuple(regions))


def _sources(pairs: Iterable[data.Transfer | data.Exit]) -> list[Operand]:
    return [pair.source for pair in pairs]
