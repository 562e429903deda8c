"""Orders items into stages, so that as many calls as possible are made together.

An item is *blocking* if it is a call or contains one. Items that need no call's result come before the first point
where calls are made, those that need only results of these calls before the second, and so on. Branches, loops and maps
without calls begin and end within one stage, and only delay the items that need them. A change of an array also waits
for those that read it before, unless they make calls: then nobody needs the array any more, and it need not be copied.
Operators that only order others are removed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace

from undertow.errors import GraphError
from undertow.plan import plan as data
from undertow.plan import walk
from undertow.plan.lower import ORDERS_ONLY
from undertow.plan.plan import NO_SLOT, Plan
from undertow.plan.shapes import CHANGES
from undertow.plan.walk import Place, enters, places, with_programs

Level = tuple[int, int]  # (rounds of calls before it, then rounds of branches, loops and maps without calls)


def order(plan: Plan) -> Plan:
    """The plan with stages in place of unordered items."""
    blocks = blocking(plan)
    return with_stages(plan, lambda region, _, program: _stages(plan, region, program, blocks))


def with_stages(plan: Plan, stages: Callable[[int, int, data.Program], tuple[data.Stage, ...]]) -> Plan:
    """The plan with the stages that are found for each program: `stages(region, number, program)`."""
    changed = {
        (region, number): data.Program(program.phase, stages(region, number, program))
        for region, number, program in places(plan)
        if program.unordered
    }
    return _number_resume_groups(with_programs(plan, changed))


def blocking(plan: Plan) -> set[Place]:
    """The programs that make calls, directly or in a region that they enter."""
    blocks: set[Place] = set()
    for region in reversed(range(len(plan.regions))):  # inner regions have larger numbers
        for number, program in enumerate(plan.regions[region].programs):
            for item in walk.entered_of(program):
                if is_blocking(item, region, blocks):
                    blocks.add((region, number))
                    break
    return blocks


def is_blocking(item: data.Item, region: int, blocks: set[Place]) -> bool:
    """Is an item a call, or does it contain one? (An entered region with a smaller number encloses this one.)"""
    if isinstance(item, data.Call):
        return True
    return any(inner in blocks or inner[0] < region for inner in enters(item))


def _stages(plan: Plan, region: int, program: data.Program, blocks: set[Place]) -> tuple[data.Stage, ...]:
    items = program.unordered
    stages: dict[Level, tuple[list[data.Straight], list[data.Entered]]] = {}
    for n, level in levels(plan, region, program, blocks):
        straight, entered = stages.setdefault(level, ([], []))
        item = items[n]
        if not walk.is_straight(item):
            entered.append(item)  # type: ignore[arg-type]
        elif not only_orders(item):
            straight.append(item)  # type: ignore[arg-type]
    return tuple([data.Stage(tuple(stages[key][0]), entered=tuple(stages[key][1])) for key in sorted(stages)])


def levels(plan: Plan, region: int, program: data.Program, blocks: set[Place]) -> list[tuple[int, Level]]:
    """The items of a program in an order in which they can run, each by its number and with its level: its stage."""
    items = program.unordered
    before = needs(program)
    blocks_here = [is_blocking(item, region, blocks) for item in items]
    runs_straight = [walk.is_straight(item) for item in items]
    level_of: list[Level] = [(0, 0)] * len(items)
    last: dict[int, int] = {}  # round of calls -> the last stage before it
    changed = {n: x for n, item in enumerate(items) if (x := _changed(plan, item)) is not None}
    readers: dict[int, list[int]] = {}  # of what changes
    done = in_order(before)
    if len(done) != len(items):
        raise GraphError(f"region {plan.regions[region].name} depends on itself")
    for n in done:
        level = (0, 0)
        for m in before[n]:
            calls, steps = level_of[m]
            after = (calls + 1, 0) if blocks_here[m] else (calls, steps) if runs_straight[m] else (calls, steps + 1)
            level = max(level, after)
        if changed:
            for m in readers.get(changed[n], ()) if n in changed else ():
                calls, steps = level_of[m]
                if calls == level[0] and not blocks_here[m]:
                    level = max(level, (calls, steps if runs_straight[m] else steps + 1))
            for x in {*walk.reads(items[n])}.intersection(changed.values()):
                readers.setdefault(x, []).append(n)
        level_of[n] = level
        if not blocks_here[n]:
            last[level[0]] = max(last.get(level[0], 0), level[1])
    found: list[tuple[int, Level]] = []
    for n in done:
        calls, steps = level_of[n]
        if blocks_here[n]:
            steps = max(steps, last.get(calls, 0))
        found.append((n, (calls, steps)))
    return found


def in_order(before: list[set[int]]) -> Sequence[int]:
    """Numbers in topological order, the smallest first where there is a choice, without those in or after a cycle."""
    if all(not needed or max(needed) < n for n, needed in enumerate(before)):
        return range(len(before))  # most programs are in order already
    after: list[list[int]] = [[] for _ in before]
    for n, needed in enumerate(before):
        for m in needed:
            after[m].append(n)
    missing = [len(needed) for needed in before]
    ready = [n for n, count in enumerate(missing) if count == 0]
    heapq.heapify(ready)
    done: list[int] = []
    while ready:
        n = heapq.heappop(ready)
        done.append(n)
        for m in after[n]:
            missing[m] -= 1
            if missing[m] == 0:
                heapq.heappush(ready, m)
    return done


def _changed(plan: Plan, item: data.Item) -> data.Operand | None:
    """The array that an item changes."""
    if isinstance(item, data.Op) and item.kernel != ORDERS_ONLY and plan.kernels[item.kernel].op in CHANGES:
        return item.inputs[0]
    return None


def only_orders(item: data.Item) -> bool:
    """Does an item only order others?"""
    return (isinstance(item, data.Op) and item.kernel == ORDERS_ONLY) or (
        isinstance(item, data.Read) and item.to == NO_SLOT
    )


def needs(program: data.Program) -> list[set[int]]:
    """The items that each item must follow."""
    items = program.unordered
    maker = {slot: n for n, item in enumerate(items) for slot in walk.writes(item) if slot != NO_SLOT}
    visits: dict[tuple[str, int, int], int] = {}  # (kind, number, phase or visit) -> item
    for n, item in enumerate(items):
        if not walk.is_straight(item):
            visits[visit_of(item)] = n
    needed = []
    for n, item in enumerate(items):
        own = {maker[x] for x in walk.reads(item) if x in maker}
        if isinstance(item, (data.Call, data.Map, data.Branch)):
            kind, number, visit = visit_of(item)
            if (kind, number, visit - 1) in visits:
                own.add(visits[kind, number, visit - 1])
        elif isinstance(item, data.Collected):  # complete after every phase of its call
            own |= {m for (kind, number, _), m in visits.items() if kind == "call" and number == item.call}
        own.discard(n)
        needed.append(own)
    for earlier, later in program.after:
        needed[later].add(earlier)
    return needed


def visit_of(item: data.Item) -> tuple[str, int, int]:
    """What tells an item that is entered from the others of its region: kind, number, phase or visit."""
    if isinstance(item, data.Call):
        return "call", item.call, item.phase
    if isinstance(item, data.Map):
        return "map", item.map, item.phase
    if isinstance(item, data.Branch):
        return "branch", item.branch, item.visit
    if isinstance(item, data.Recv):
        return "recv", item.edge, 0
    assert isinstance(item, data.Loop)
    return "loop", item.loop, 0


# --------------------------------------------------------------------------------------------------------------
# Resume groups


def _number_resume_groups(plan: Plan) -> Plan:
    """Number the resume groups: calls whose later phases are requested at the same points of their caller.

    Lanes of such calls can share chunks: a chunk is resumed when all its lanes have requested that. There is no
    deadlock: points increase along every path through a phase, so of the chunks that wait for each other's lanes, the
    one with the smallest point waits for none.
    """
    if not any(len(region.params) > 1 for region in plan.regions):
        return plan  # nothing has later phases
    points = _points(plan)
    numbers: dict[tuple[tuple[int, int], ...], int] = {}

    def in_group(item: data.Entered) -> data.Entered:
        if not isinstance(item, data.Call):
            return item
        requests = tuple(at for _, at in sorted(points.get(item.site, {}).items()))
        return replace(item, resume_group=numbers.setdefault(requests, len(numbers)))

    changed: dict[Place, data.Program] = {}
    for region, number, program in places(plan):
        if not any(isinstance(item, data.Call) for stage in program.stages for item in stage.entered):
            continue
        changed[region, number] = walk.with_entered(program, in_group)
    return with_programs(plan, changed)


def _points(plan: Plan) -> dict[int, dict[int, tuple[int, int]]]:
    """By site and later phase: the caller's phase that requests it, and the number of the point.

    Points are where a phase waits for calls, numbered in order; those of inner regions lie between those around them.
    """
    order = [(region, number) for region, number, _ in places(plan)]
    length: dict[Place, int] = {}
    for region, number in reversed(order):  # inner regions have larger numbers
        stages = plan.regions[region].programs[number].stages
        length[region, number] = sum(_length(stage.entered, length) for stage in stages)
    begin: dict[Place, int] = {}
    phases: dict[Place, int] = {}  # nested program -> the function's phase
    points: dict[int, dict[int, tuple[int, int]]] = {}
    for at in order:
        program = plan.regions[at[0]].programs[at[1]]
        time, phase = begin.get(at, 0), phases.get(at, program.phase)
        for stage in program.stages:
            for item in stage.entered:
                if isinstance(item, data.Call) and item.phase > 0:
                    points.setdefault(item.site, {})[item.phase] = phase, time
                for inner in enters(item):
                    begin[inner], phases[inner] = time, phase
            time += _length(stage.entered, length)
    return points


def _length(entered: Sequence[data.Entered], length: dict[Place, int]) -> int:
    inside = [length.get(inner, 0) for item in entered for inner in enters(item)]
    return max([*inside, int(any(isinstance(item, data.Call) for item in entered))])
