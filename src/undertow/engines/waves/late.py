"""Which steps may wait, so that those of many waves run as one.

*Held* steps: a side of a branch that makes no calls, where the other side does. Nobody needs its results before those
calls come back, so it waits until the deepest wave has nobody left to call: the leaves of all levels of a tree run
together. *Kept* steps: what leads to nothing but collects. Sums are complete when their entry is over, and until then
these steps may come at any time; their operands are kept meanwhile. Steps *ahead* of their phase: what the next phase
makes of values of this one alone, and what this one makes for the next. In the gradient of losses at every node that is
all that each loss does to its own node. They too may come at any time before the next phase.

Only steps on arrays are worth it: numbers run in wide waves anyway. What acts on the world never waits; what can fail
waits only where its tables do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from undertow.engines.waves.items import BRANCH, COLLECT, OP, READ, Item, Items, Key, LateKind, Stage
from undertow.ir.graph import Node, Port
from undertow.ir.walk import BACK, READS
from undertow.ops.op import CATALOGUE

OTHER = -1  # kind of what is no step
_FEW = 4  # operators: to wait costs as much as two or three
# Operators whose results are worth more than the memory that they take until the next phase.
_WORTH_KEEPING = {"matmul", "sum", "max", "min", "exp", "log", "tanh", "scatter_add", "index"}
Place = tuple[int, int]  # a region, and which of its programs


def put_off(items: Items, recursive: Set[int]) -> dict[Place, list[Stage]]:
    """The stages of all programs, with the steps that may wait at the ends of straight runs.

    `recursive` says which bodies call themselves, alone or through others: elsewhere there is nobody to wait for.
    """
    return _Late(items).find(recursive)


class _Late:
    def __init__(self, items: Items) -> None:
        self.items = items
        self.graph = items.graph
        self.users = self._users()
        self.pivots = {port for region in self.graph.regions for port in region.starts}

    def find(self, recursive: Set[int]) -> dict[Place, list[Stage]]:
        held = set(self._held())
        found = dict(self.items.stages)
        for at in sorted(found):
            if self.items.owner[at[0]] in recursive and at not in held:
                self._go_ahead(found, at)
        for at, stages in found.items():
            if self.items.owner[at[0]] not in recursive:
                continue
            if at in held:
                found[at] = [self._hold(stage) for stage in stages]
            elif not any(stage.late for stage in stages):
                found[at] = self._keep(stages)
        return found

    # -- held ----------------------------------------------------------------------------------------------

    def _held(self) -> Iterator[Place]:
        """Sides of branches without calls, the other side having some; and what stands inside of them."""
        items = self.items
        for item in items.items.values():
            if item.kind != BRANCH or not item.is_blocking:
                continue
            todo = items.inner(item)
            while todo:
                at = todo.pop()
                inside = items.of_region.get(at, [])
                if any(other.is_blocking for other in inside):
                    continue
                yield at
                todo += [place for other in inside if other.kind == BRANCH for place in items.inner(other)]

    def _hold(self, stage: Stage) -> Stage:
        steps = stage.straight
        if not all(self._is_pure(step) for step in steps) or not self._is_worth_it(steps):
            return stage
        return Stage([], stage.entered, steps, late_kind=LateKind.HELD)

    def _is_worth_it(self, steps: Iterable[Item]) -> bool:
        """A product, or several operators of which some make arrays."""
        nodes = [self._node(step) for step in steps if step.kind == OP]
        makes_arrays = any(type_.rank > 0 for node in nodes for type_ in node.types)
        return makes_arrays and (len(nodes) >= _FEW or any(node.op == "matmul" for node in nodes))

    # -- kept ----------------------------------------------------------------------------------------------

    def _keep(self, stages: list[Stage]) -> list[Stage]:
        """Move what only collects need to the end of the last stage that has some of it."""
        late: set[Key] = set()
        for stage in reversed(stages):
            for step in reversed(stage.straight):
                is_needed = step.kind != COLLECT and not self.users.get(step.key[1], set()) <= late
                if not is_needed and step.kind in (OP, COLLECT) and self._is_static(step) and not self._faults(step):
                    late.add(step.key)
        if not any(key[0] == COLLECT and self._takes_array(self.items.items[key]) for key in late):
            return stages
        kept = [step for stage in stages for step in stage.straight if step.key in late]
        last = max(n for n, stage in enumerate(stages) for step in stage.straight if step.key in late)
        left = _without(stages, late)
        left[last].late, left[last].late_kind = kept, LateKind.KEPT
        return left

    # -- ahead ---------------------------------------------------------------------------------------------

    def _go_ahead(self, found: dict[Place, list[Stage]], at: Place) -> None:
        """Move what the next phase makes of values of this one alone to the end of this one, to wait there."""
        region, number = at
        visits = self.items.programs[region]
        if number + 1 >= len(visits) or visits[number + 1][0] != visits[number][0] + 1:
            return  # this is not the last visit in its phase, or there is no next phase
        after = (region, number + 1)
        phase = visits[number][0]
        ready: set[Key] = set()
        for stage in found[after]:
            for step in stage.straight:
                if self._is_ready(step, phase, ready):
                    ready.add(step.key)
        # What this phase makes for nobody but these, or for the next, can wait with them.
        for stage in reversed(found[at]):
            for step in reversed(stage.straight):
                is_free = step.kind == COLLECT or (step.kind == OP and self._is_for_later(step, phase, ready))
                if is_free and self._is_static(step):
                    ready.add(step.key)
        steps = [step for place in (at, after) for stage in found[place] for step in stage.straight]
        self._trim([step for step in steps if step.key in ready], phase, ready)
        if not self._is_worth_it(step for step in steps if step.key in ready):
            return
        now = [step for stage in found[at] for step in stage.straight if step.key in ready]
        then = [step for stage in found[after] for step in stage.straight if step.key in ready]
        last = Stage(late=[*now, *then], late_kind=LateKind.AHEAD, ahead=len(then))
        found[at] = [*_without(found[at], ready), last]
        found[after] = _without(found[after], ready)

    def _is_for_later(self, step: Item, phase: int, ready: Set[Key]) -> bool:
        users = self.users.get(step.key[1], {None})
        return all(key is not None and (key in ready or self.items.phases[key[1]] > phase) for key in users)

    def _is_ready(self, step: Item, phase: int, ready: Set[Key]) -> bool:
        """Can it be done in that phase? Its pivot only says that there is a next one."""
        if step.kind not in (OP, COLLECT) or not self._is_static(step):
            return False
        node = self._node(step)
        if not self.pivots.issuperset(node.controls):
            return False
        for x in node.inputs:
            if not isinstance(x, Port) or (OP, x.node) in ready:
                continue
            if self.items.region_of(x) != step.region or self.items.phases[x.node] > phase:
                return False
        return True

    def _trim(self, steps: list[Item], phase: int, ready: set[Key]) -> None:
        """Leave what costs little where it is, beside what takes it: it would only take memory; and what that needs."""
        for step in reversed(steps):
            is_worth = step.kind == COLLECT or self._node(step).op in _WORTH_KEEPING
            is_last = not self.users.get(step.key[1], set()) & ready
            is_needed = step.kind == OP and step.phase == phase and not self._is_for_later(step, phase, ready)
            if is_needed or (is_last and not is_worth):
                ready.discard(step.key)

    # -- steps ---------------------------------------------------------------------------------------------

    def _users(self) -> dict[int, set[Key | None]]:
        """Who reads what a node gives, or waits for it; None where that is no node of the same frame."""
        found: dict[int, set[Key | None]] = {}
        for number, node in enumerate(self.graph.nodes):
            kind = OP if node.op in CATALOGUE else COLLECT if node.op.startswith("collect") else OTHER
            is_elsewhere = node.op in BACK or node.op in READS
            for x in node.inputs:
                if isinstance(x, Port):
                    found.setdefault(x.node, set()).add(None if is_elsewhere else (kind, number))
            for x in node.controls:
                found.setdefault(x.node, set()).add((kind, number))
        for port in self.graph.fetches:
            found.setdefault(port.node, set()).add(None)
        for region in self.graph.regions:
            if region.pred is not None:
                found.setdefault(region.pred.node, set()).add(None)
        return found

    def _node(self, step: Item) -> Node:
        return self.graph.nodes[step.key[1]]

    def _is_pure(self, step: Item) -> bool:
        if step.kind != OP:
            return step.kind in (READ, COLLECT)
        op = CATALOGUE[self._node(step).op]
        return not op.effect and op.state is None

    def _faults(self, step: Item) -> bool:
        return step.kind == OP and CATALOGUE[self._node(step).op].faults

    def _is_static(self, step: Item) -> bool:
        """It does nothing but compute, on values of known size."""
        node = self._node(step)
        types = (*map(self.graph.type_of, node.inputs), *node.types)
        return self._is_pure(step) and all(type_.is_static for type_ in types)

    def _takes_array(self, step: Item) -> bool:
        return any(self.graph.type_of(x).rank > 0 for x in self._node(step).inputs)


def _without(stages: list[Stage], gone: Set[Key]) -> list[Stage]:
    return [
        Stage([s for s in stage.straight if s.key not in gone], stage.entered, stage.late, stage.late_kind, stage.ahead)
        for stage in stages
    ]
