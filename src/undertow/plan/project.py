"""One order for all parts of a placed graph: that of the whole, of which each part has the projection.

A frame runs its stages one after the other, and a stage begins when all that the one before it entered has come back.
So parts that chose orders of their own could wait for each other for ever: one for a value that the other would make in
a later stage, and the other way round. Here the whole graph is ordered once. A part keeps the turns of branches and the
order of items; what it sends stands where the value is made, and it waits for what it receives where that is first
used, or where it waits anyway. Then of all items that are not done, the first in the order of the whole waits for
nothing that is not done: docs/design/0028 has the argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from undertow.errors import InternalError
from undertow.ir.graph import Port, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.placed import Part
from undertow.plan import plan as data
from undertow.plan import walk
from undertow.plan.items import BRANCH, CALL, LOOP, MAP, RECV, SEND, Key
from undertow.plan.lower import Lowering
from undertow.plan.order import (
    Level,
    blocking,
    in_order,
    is_blocking,
    levels,
    needs,
    only_orders,
    visit_of,
    with_stages,
)
from undertow.plan.plan import NO_SLOT, Plan
from undertow.plan.turns import Pair
from undertow.plan.walk import Place, places

# Where an item stands in its program: its stage; 0 for operators and what comes right after them, 1 for what the stage
# enters, 2 for what is sent of that when all has come back, 3 for what is received of it, since both ends may have to
# send before either receives; the item's place there; and, right after an operator, 1 for a Recv, more for what adds up
# sums, most for a Send.
Rank = tuple[Level, int, int, int]
_SENT = 1 << 30
_FIRST: Rank = ((-1, 0), 0, 0, 0)  # of what is there when the program begins
Name = tuple[object, ...]  # of an item, in its program


class Whole:
    """The order of a static graph: the turn and rank of each of its items."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        lowering = Lowering(graph, has_tags=True)
        plan = lowering.run()
        self.items = lowering.items
        self.ranks: dict[Key, Rank] = {}
        blocks = blocking(plan)
        for region, number, program in places(plan):
            if not program.unordered:
                continue
            keys = [item.key for item in self.items.of_region[region, number]]
            for place, (n, level) in enumerate(levels(plan, region, program, blocks)):
                self.ranks[keys[n]] = level, int(not walk.is_straight(program.unordered[n])), place, 0


class _View:
    """The items of a part, as items of the whole: their turns and ranks."""

    def __init__(self, whole: Whole, part: Part) -> None:
        self.whole = whole
        self.part = part
        self.index = StaticIndex(part.graph)

    # -- turns ---------------------------------------------------------------------------------------------

    def turn(self, key: Key) -> int:
        known = self._known(key)
        if known is not None:
            return self.whole.items.items[known].turn
        return self.end_turn(key[1])

    def end_turn(self, number: int) -> int:
        return self.whole.items.end_turns.get(self.part.origins[number], 0)

    def outer(self, pair: Pair, phase: int, turn: int) -> int:
        turns = self.whole.items.turns
        return 0 if turns is None else turns.outer(self._pair(pair), phase, turn)

    # -- ranks ---------------------------------------------------------------------------------------------

    def rank(self, key: Key, number_of_added: Mapping[int, int]) -> Rank:
        """Where an item of the part stands in the order of the whole."""
        known = self._known(key)
        if known is None or known not in self.whole.ranks:
            level, kind, place, after = _FIRST
        else:
            level, kind, place, after = self.whole.ranks[known]
        if key[0] == SEND:
            return level, 2 if kind else 0, place, _SENT
        if key[0] == RECV:
            return level, 3 if kind else 0, place, 1
        if key[1] in number_of_added:
            return level, kind, place, 2 + number_of_added[key[1]]
        return level, kind, place, after

    def _known(self, key: Key) -> Key | None:
        """The item of the whole that makes what one of the part makes, sends or receives; None: it is there before."""
        part, items = self.part, self.whole.items
        if key[0] in (CALL, MAP, LOOP):
            return key[0], part.sites[key[1] - 1], key[2]
        if key[0] == BRANCH:
            _, node, index, parent, phase, turn = key
            pred, around = self._pair((Port(node, index), parent))
            return BRANCH, pred.node, pred.index, around, phase, turn
        return items.producer(Port(part.origins[key[1]]))

    def _pair(self, pair: Pair) -> Pair:
        """The branch of the whole that one of the part is."""
        side = self.whole.graph.regions[self.part.regions[self.index.branches[pair][0]]]
        assert side.pred is not None and side.parent is not None
        return side.pred, side.parent


@dataclass(frozen=True, slots=True)
class Projection:
    """A part whose items have a place in the order of the whole."""

    plan: Plan  # unordered
    ranks: Mapping[Place, Mapping[Name, Rank]]


def project(whole: Whole, part: Part) -> Projection:
    """The plan of a part, unordered, and the rank of each of its items."""
    view = _View(whole, part)
    lowering = Lowering(part.graph, view, part.sites, has_tags=True)
    plan = lowering.run()
    added = {n: place for place, n in enumerate(_added(part, whole))}
    ranks: dict[Place, dict[Name, Rank]] = {}
    for region, number, program in places(plan):
        if program.unordered:
            items = lowering.items.of_region[region, number]
            ranks[region, number] = {
                name_of(item): view.rank(made.key, added) for item, made in zip(program.unordered, items, strict=True)
            }
    return Projection(plan, ranks)


def _added(part: Part, whole: Whole) -> list[int]:
    """The operators of a part that add up sums: those that are no copies."""
    nodes = part.graph.nodes
    return [n for n, origin in enumerate(part.origins) if nodes[n].op in ("add", "concat") and _is_sum(whole, origin)]


def _is_sum(whole: Whole, origin: int) -> bool:
    return whole.graph.nodes[origin].op in ("collected", "collected_rows")


def name_of(item: data.Item) -> Name:
    """What tells an item from the others of its program, whatever passes have done to it."""
    if isinstance(item, (data.Op, data.Collect)):
        return "op", item.node
    if isinstance(item, (data.Read, data.Replica)):
        return "slot", item.to
    if isinstance(item, data.Collected):
        return "collected", item.to
    if isinstance(item, data.Send):
        return "send", item.edge
    return visit_of(item)


# --------------------------------------------------------------------------------------------------------------
# Stages


def order_part(plan: Plan, projection: Projection) -> Plan:
    """The plan of a part with stages in place of unordered items, in the order of the whole."""
    blocks = blocking(plan)
    shared = {item.index for _, _, p in places(plan) for item in p.unordered if _is_shared_read(item)}  # type: ignore[union-attr]

    def stages(region: int, number: int, program: data.Program) -> tuple[data.Stage, ...]:
        blocking_here = [is_blocking(item, region, blocks) for item in program.unordered]
        found = _Stages(program, projection.ranks[region, number], shared if region == 0 else set(), blocking_here)
        return found.run()

    return with_stages(plan, stages)


def _is_shared_read(item: data.Item) -> bool:
    return isinstance(item, data.Read) and item.is_shared


class _Stages:
    """The stages of one program of a part."""

    def __init__(
        self, program: data.Program, ranks: Mapping[Name, Rank], shared: set[int], blocks: Sequence[bool]
    ) -> None:
        self.items = program.unordered
        self.needs = needs(program)
        self.ranks = [ranks[name_of(item)] for item in self.items]
        self.shared = shared  # slots that are read in other bodies: there before these begin
        self.blocks = blocks
        self.done: list[data.Stage] = []
        self.straight: list[data.Straight] = []
        self.entered: list[data.Entered] = []
        self.level: Level | None = None  # of what the stage enters
        self.awaited: list[int] = []  # Recvs that no stage waits for yet

    def run(self) -> tuple[data.Stage, ...]:
        for n in self._sorted():
            item = self.items[n]
            if isinstance(item, data.Recv):
                self.awaited.append(n)
                continue
            if self._must_wait(n):
                self.end_stage()
            if not walk.is_straight(item):
                self.entered.append(item)  # type: ignore[arg-type]
                self.level = self.ranks[n][0]
            elif not only_orders(item):
                self.straight.append(item)  # type: ignore[arg-type]
        self.end_stage()
        return tuple(self.done)

    def _sorted(self) -> list[int]:
        by_rank = sorted(range(len(self.items)), key=lambda n: (self.ranks[n], n))
        place = {n: k for k, n in enumerate(by_rank)}
        found = [by_rank[k] for k in in_order([{place[m] for m in self.needs[n]} for n in by_rank])]
        if found != by_rank:
            raise InternalError("the order of a part is not that of the whole")
        return found

    def _must_wait(self, n: int) -> bool:
        """Does an item need what the current stage enters, or what has not been waited for?"""
        item = self.items[n]
        if any(m in self.needs[n] for m in self.awaited):
            return True
        if not walk.is_straight(item) and self.blocks[n] and any(self._is_shared(m) for m in self.awaited):
            return True
        if not self.entered:
            return False
        return walk.is_straight(item) or self.ranks[n][0] != self.level

    def _is_shared(self, n: int) -> bool:
        item = self.items[n]
        return isinstance(item, data.Recv) and item.to != NO_SLOT and item.to in self.shared

    def end_stage(self) -> None:
        """The stage waits for all that was entered or is on its way: whatever comes first in the whole."""
        self.entered += [self.items[n] for n in self.awaited]  # type: ignore[misc]
        if self.straight or self.entered:
            self.done.append(data.Stage(tuple(self.straight), entered=tuple(self.entered)))
        self.straight, self.entered, self.awaited, self.level = [], [], [], None
