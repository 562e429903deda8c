"""Chooses steps to defer, so that the rows of many waves run as one table.

*Held* steps: a side of a branch that makes no calls, where the other side does. Nothing needs its results before those
calls come back, so it waits until the deepest wave makes no more calls: the leaves of all levels of a tree run
together. *Kept* steps: those that only collects depend on. Sums are complete when their entry ends, and until then
these steps may run at any time; their operands are kept meanwhile. Steps *ahead* of their phase: what the next phase
computes from values of this one alone, and what this one computes for the next. With a loss at every node, that is
everything the gradient of each loss does to its own node. These, too, may run at any time before the next phase.

Only steps on arrays are worth deferring: numbers run in wide waves anyway. Steps that act on the world are never
deferred; steps that can fail are never kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace
from typing import NamedTuple

from undertow.ops.op import CATALOGUE
from undertow.plan import walk
from undertow.plan.order import blocking, is_blocking
from undertow.plan.plan import Branch, Collect, Item, Loop, Map, Op, Plan, Program, Read, Stage, Straight
from undertow.plan.shapes import count_of
from undertow.plan.walk import Place, items_of, places, reads, with_programs, writes

_FEW = 4  # operators: deferring costs as much as two or three
_MOST = 128  # lanes: a table with so many does not wait
_FEWEST = 8


class _User(NamedTuple):
    """A reader of a slot: a node of the same frame, or something else ("")."""

    node: str
    phase: int


_ELSEWHERE = _User("", -1)  # another frame, at an unknown time
_NOBODY: frozenset[_User] = frozenset()


def defer(plan: Plan) -> Plan:
    """The plan with steps that may wait moved to the ends of straight runs."""
    recursive = recursive_groups(plan)
    if not any(slot.type.shape for region in plan.regions if region.group in recursive for slot in region.slots):
        return plan
    return with_programs(plan, _PutOff(plan, recursive).run())


def recursive_groups(plan: Plan) -> set[int]:
    """The groups that call themselves: in others there is nothing to wait for."""
    return {group for group, entered in walk.entered_groups(plan).items() if group in entered}


class _PutOff:
    def __init__(self, plan: Plan, recursive: Set[int]) -> None:
        self.plan = plan
        self.places = [
            (region, number) for region, number, _ in places(plan) if plan.regions[region].group in recursive
        ]
        self.programs = {(region, number): program for region, number, program in places(plan)}
        self.is_static = [[slot.type.is_static for slot in region.slots] for region in plan.regions]
        self.written: list[dict[int, int]] = []  # by region: slot -> phase that writes it
        self.users: list[dict[int, set[_User]]] = []  # by region: slot -> its readers
        self._find_users()

    def run(self) -> dict[Place, Program]:
        before = dict(self.programs)
        held = set(self._held())
        for at in self.places:
            if at not in held:
                self._go_ahead(at)
        for at in self.places:
            program = self.programs[at]
            if at in held:
                stages = tuple(self._hold(at[0], stage) for stage in program.stages)
                self.programs[at] = replace(program, stages=stages)
            elif not any(stage.deferred for stage in program.stages):
                self.programs[at] = replace(program, stages=self._keep(at[0], program.stages))
        return {at: program for at, program in self.programs.items() if program is not before[at]}

    # -- held ----------------------------------------------------------------------------------------------

    def _held(self) -> Iterator[Place]:
        """Sides of branches without calls whose other side makes calls, and all programs inside them."""
        blocks = blocking(self.plan)
        for region, _, program in places(self.plan):
            for stage in program.stages:
                for item in stage.entered:
                    if not isinstance(item, Branch) or not is_blocking(item, region, blocks):
                        continue
                    todo = list(walk.enters(item))
                    while todo:
                        at = todo.pop()
                        if at in blocks:
                            continue
                        yield at
                        inside = items_of(self.programs[at])
                        todo += [inner for other in inside if isinstance(other, Branch) for inner in walk.enters(other)]

    def _hold(self, region: int, stage: Stage) -> Stage:
        steps = stage.straight
        if not all(self._is_pure(step) for step in steps) or not self._is_worth_it(region, steps):
            return stage
        return replace(stage, straight=(), deferred=steps, deferred_kind="held", wide=_MOST)

    def _is_worth_it(self, region: int, steps: Iterable[Straight]) -> bool:
        """Is there a product, or are there several operators, some of which make arrays?"""
        ops = [step for step in steps if isinstance(step, Op)]
        products = [step for step in steps if isinstance(step, Collect) and step.kind == "product"]
        slots = self.plan.regions[region].slots
        makes_arrays = any(to >= 0 and slots[to].type.shape for op in ops for to in op.outputs)
        has_product = products or any(self._name(op) == "matmul" for op in ops)
        return bool((makes_arrays or products) and (len(ops) >= _FEW or has_product))

    # -- kept ----------------------------------------------------------------------------------------------

    def _keep(self, region: int, stages: tuple[Stage, ...]) -> tuple[Stage, ...]:
        """Move the steps that only collects need to the end of the last stage that has one."""
        deferred: set[str] = set()
        for stage in reversed(stages):
            for step in reversed(stage.straight):
                if not isinstance(step, (Op, Collect)):
                    continue
                users = {user.node for user in self._users_of(region, step)} if isinstance(step, Op) else set()
                is_needed = not users <= deferred
                if not is_needed and self._is_static(region, step) and not self._faults(step):
                    deferred.add(step.node)
        kept = [step for stage in stages for step in stage.straight if _name(step) in deferred]
        if not any(isinstance(step, Collect) and self._takes_array(region, step) for step in kept):
            return stages
        last = max(n for n, stage in enumerate(stages) for step in stage.straight if _name(step) in deferred)
        left = list(_without(stages, deferred))
        left[last] = replace(left[last], deferred=tuple(kept), deferred_kind="kept", wide=self._wide(region, kept))
        return tuple(left)

    def _wide(self, region: int, steps: Iterable[Straight]) -> int:
        """Number of lanes from which deferring does not pay: it saves reading and writing a sum of products once per
        wave, and costs copying the factors once per row.
        """
        wide = _FEWEST
        for step in steps:
            if isinstance(step, Collect) and step.kind == "product":
                x, g = (self._count(region, value) for value in step.values)
                if 0 < x < 1 << 24 and 0 < g < 1 << 24:
                    wide = max(wide, x * g // (4 * (x + g)))
        return min(wide, _MOST)

    def _count(self, region: int, value: int) -> int:
        return count_of(self.plan.type_of(region, value)) if value >= 0 else 1

    # -- ahead ---------------------------------------------------------------------------------------------

    def _go_ahead(self, at: Place) -> None:
        """Defer, at the end of this phase, the steps of the next that need only values of this one."""
        region, number = at
        after = (region, number + 1)
        phase = self.programs[at].phase
        if after not in self.programs or self.programs[after].phase != phase + 1:
            return  # not the last visit in its phase, or no next phase
        computed: set[int] = set()  # slots that steps moved ahead compute
        ready: set[str] = set()
        for stage in self.programs[after].stages:
            for step in stage.straight:
                if self._is_ready(region, step, phase, computed):
                    ready.add(_name(step))
                    computed.update(writes(step))
        # Steps of this phase whose results only these steps or the next phase use can wait with them.
        for stage in reversed(self.programs[at].stages):
            for step in reversed(stage.straight):
                if (
                    isinstance(step, Op)
                    and self._is_static(region, step)
                    and self._is_for_later(region, step, phase, ready)
                ):
                    ready.add(step.node)
        steps = [
            (step, place == at)
            for place in (at, after)
            for stage in self.programs[place].stages
            for step in stage.straight
        ]
        self._trim(region, [(step, is_now) for step, is_now in steps if _name(step) in ready], phase, ready)
        chosen = [(step, is_now) for step, is_now in steps if _name(step) in ready]
        if not self._is_worth_it(region, [step for step, _ in chosen]):
            return
        now = tuple(step for step, is_now in chosen if is_now)
        then = tuple(step for step, is_now in chosen if not is_now)
        ahead = tuple(range(len(now), len(now) + len(then)))
        last = Stage(deferred=now + then, ahead=ahead, deferred_kind="ahead", wide=self._wide(region, now + then))
        here, there = self.programs[at], self.programs[after]
        self.programs[at] = replace(here, stages=(*_without(here.stages, ready), last))
        self.programs[after] = replace(there, stages=_without(there.stages, ready))

    def _is_for_later(self, region: int, step: Op, phase: int, ready: Set[str]) -> bool:
        users = self._users_of(region, step) or {_ELSEWHERE}
        return all(user is not _ELSEWHERE and (user.node in ready or user.phase > phase) for user in users)

    def _is_ready(self, region: int, step: Straight, phase: int, computed: Set[int]) -> bool:
        """Are all operands of a step there at the end of `phase`?"""
        if not isinstance(step, (Op, Collect)) or not self._is_static(region, step):
            return False
        written = self.written[region]
        return all(x < 0 or x in computed or written.get(x, phase + 1) <= phase for x in reads(step))

    def _trim(self, region: int, steps: list[tuple[Straight, bool]], phase: int, ready: set[str]) -> None:
        """Take cheap final steps out of `ready`: deferring them only costs memory. Also the steps of this phase that
        those need.
        """
        for step, is_now in reversed(steps):
            is_worth = isinstance(step, Collect) or (isinstance(step, Op) and CATALOGUE[self._name(step)].is_costly)
            is_last = not any(user.node in ready for user in self._users_of(region, step))
            is_needed = isinstance(step, Op) and is_now and not self._is_for_later(region, step, phase, ready)
            if is_needed or (is_last and not is_worth):
                ready.discard(_name(step))

    # -- steps ---------------------------------------------------------------------------------------------

    def _find_users(self) -> None:
        """Find who reads each slot, and in which phase it is written."""
        plan = self.plan
        self.written = [{} for _ in plan.regions]
        self.users = [{} for _ in plan.regions]
        for region, _, program in places(plan):
            own, written, phase = self.users[region], self.written[region], program.phase
            for item in items_of(program):
                user = _User(item.node if isinstance(item, (Op, Collect)) else "", phase)
                for x in reads(item):
                    own.setdefault(x, set()).add(user)
                for to in writes(item):
                    written[to] = phase
                for inner, transfer in walk.transfers_of(item):
                    self.written[inner][transfer.to] = phase
                for inner, x in walk.inner_reads(plan, item):
                    self.users[inner].setdefault(x, set()).add(user if isinstance(item, Branch) else _ELSEWHERE)
                if isinstance(item, Branch):
                    own[item.pred].add(_ELSEWHERE)
                elif isinstance(item, (Loop, Map)):
                    for transfer in item.outers:
                        own.setdefault(transfer.source, set()).add(_ELSEWHERE)
        for number, region_ in enumerate(plan.regions):
            for phase, (params, results) in enumerate(zip(region_.params, region_.results, strict=True)):
                for x in params:
                    self.written[number][x] = phase
                for x in results:
                    self.users[number].setdefault(x, set()).add(_ELSEWHERE)

    def _users_of(self, region: int, step: Straight) -> Set[_User]:
        slots = writes(step)
        if len(slots) == 1:
            return self.users[region].get(slots[0], _NOBODY)
        return {user for to in slots for user in self.users[region].get(to, _NOBODY)}

    def _name(self, step: Straight) -> str:
        return self.plan.kernels[step.kernel].op if isinstance(step, Op) else ""

    def _is_pure(self, step: Item) -> bool:
        if isinstance(step, Op):
            return not self.plan.kernels[step.kernel].is_effect
        return isinstance(step, (Read, Collect))

    def _faults(self, step: Straight) -> bool:
        return isinstance(step, Op) and bool(CATALOGUE[self._name(step)].faults)

    def _is_static(self, region: int, step: Straight) -> bool:
        """Does it only compute, on values of static size?"""
        if not self._is_pure(step):
            return False
        is_static = self.is_static[region]
        return all(x < 0 or is_static[x] for x in reads(step)) and all(is_static[x] for x in writes(step))

    def _takes_array(self, region: int, step: Collect) -> bool:
        return any(self.plan.type_of(region, x).shape for x in step.values)


def _name(step: Straight) -> str:
    """The node of an operator or collect; for others "~", which is no node's name."""
    return step.node if isinstance(step, (Op, Collect)) else "~"


def _without(stages: Iterable[Stage], gone: Set[str]) -> tuple[Stage, ...]:
    return tuple(
        replace(stage, straight=tuple(step for step in stage.straight if _name(step) not in gone)) for stage in stages
    )
