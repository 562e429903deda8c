"""What happens in a region, as items: operators, and what is entered (branches, calls, loops, maps), in stages.

An item is *blocking* if a call stands behind it. Items that need no call's result come before the first point where
calls are made, those that need only results of these calls before the second, and so on: so as many calls as possible
are made together. Branches, loops and maps without calls end where they stand, and only order what needs them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from undertow.engines.waves.turns import Element, Pair, Turns
from undertow.errors import GraphError
from undertow.ir.graph import Node, Port, StaticGraph
from undertow.ir.walk import body_of, is_inward, node_phases, phase_of, port_regions
from undertow.ops.op import CATALOGUE

# What an item is, and what tells it apart from others of its kind.
OP, BRANCH, CALL, LOOP, MAP, READ, COLLECT, COLLECTED = range(8)
# (kind, node) or (kind, site, phase) or (BRANCH, node and index of predicate, parent, phase, turn)
Key = tuple[int, ...]

_SITED = {"return": CALL, "gather": MAP, "exit": LOOP}
_STARTS = {"call_start": CALL, "fan_start": MAP, "enter_start": LOOP}
_ARGUMENTS = {"call": CALL, "hoist": CALL, "fan": MAP, "enter": LOOP}
_SINGLE = {
    "hoist_read": READ,
    "collect": COLLECT,
    "collect_rows": COLLECT,
    "collected": COLLECTED,
    "collected_rows": COLLECTED,
}


@dataclass(slots=True, eq=False)
class Item:
    """One thing that happens in a region, in one phase."""

    key: Key
    region: int
    phase: int
    turn: int = 0  # of the branch that it stands in
    nodes: list[int] = field(default_factory=list)  # all that it stands for
    needs: list[Port] = field(default_factory=list)  # ports of its region that come before it
    is_blocking: bool = False

    @property
    def kind(self) -> int:
        return self.key[0]


class LateKind(IntEnum):
    """How steps wait. `late` says which may."""

    NONE = 0
    HELD = 1  # what comes behind them waits too
    KEPT = 2  # nobody waits for them
    AHEAD = 3  # nobody in this phase; they run only if there is a next one


@dataclass(slots=True, eq=False)
class Stage:
    """A straight run of operators, then what is entered together."""

    straight: list[Item] = field(default_factory=list)
    entered: list[Item] = field(default_factory=list)
    late: list[Item] = field(default_factory=list)  # the end of the straight run, if it may wait for other tables
    late_kind: LateKind = LateKind.NONE
    ahead: int = 0  # so many of the late ones, at their end, belong to the next phase


class Items:
    """The items of a static graph, and in which stages they happen."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.owner = body_of(graph)
        self.region_of = port_regions(graph)
        self.phases = node_phases(graph)
        self.pairs = graph.branches()
        self.items: dict[Key, Item] = {}
        self.of_region: dict[tuple[int, int], list[Item]] = {}  # by region and number of the program
        self.phase_count = [1] * len(graph.regions)  # of each body
        for number, node in enumerate(graph.nodes):
            body = self.owner[node.region]
            self.phase_count[body] = max(self.phase_count[body], self.phases[number] + 1)
        self._gather()
        for kind, number, *later in self.items:
            if kind in (CALL, MAP):  # there may be nothing to do in a phase that is asked for
                callee = graph.sites[number - 1].callee
                self.phase_count[callee] = max(self.phase_count[callee], later[0] + 1)
        self._find_ends()
        self._find_turns()
        self._find_branches()
        # The programs of a region: one for each phase of a body; of a branch, one for each turn of each phase.
        self.programs = [
            sorted(self.visits.get((region.pred, region.parent), ()))
            if region.pred is not None and region.parent is not None
            else [(phase, 0) for phase in range(self.phase_count[number])]
            for number, region in enumerate(graph.regions)
        ]
        self.program_of = [{visit: n for n, visit in enumerate(visits)} for visits in self.programs]
        for item in self.items.values():
            at = item.region, self.program_of[item.region][item.phase, item.turn]
            self.of_region.setdefault(at, []).append(item)
        self._find_blocking()
        self.stages = {
            (region, number): self._stages(region, number)
            for region, programs in enumerate(self.programs)
            for number in range(len(programs))
        }
        self._find_times()

    # -- items ---------------------------------------------------------------------------------------------

    def _item(self, key: Key, region: int, phase: int) -> Item:
        if key not in self.items:
            self.items[key] = Item(key, region, phase)
        return self.items[key]

    def _gather(self) -> None:
        """All items but branches."""
        for number, node in enumerate(self.graph.nodes):
            phase = self.phases[number]
            if node.op in CATALOGUE:
                item = self._item((OP, number), node.region, phase)
            elif node.op in _SINGLE:
                item = self._item((_SINGLE[node.op], number), node.region, phase)
                if _SINGLE[node.op] == COLLECTED:
                    item.needs += self._all_of(CALL, node)
            elif node.op in _STARTS:
                key = (_STARTS[node.op], node.attrs.integer("site"), phase_of(node))
                item = self._item(key, node.region, phase)
                item.phase = phase
            elif node.op in _ARGUMENTS:
                key = (_ARGUMENTS[node.op], node.attrs.integer("site"), phase_of(node))
                item = self._item(key, node.region, phase)
            elif node.op in _SITED:
                key = (_SITED[node.op], node.attrs.integer("site"), phase_of(node))
                self._item(key, node.region, phase).nodes.append(number)
                continue  # it waits for the item
            elif node.op == "outer":
                site = self.graph.sites[node.attrs.integer("site") - 1]
                key = (LOOP if site.kind == "loop" else MAP, node.attrs.integer("site"), 0)
                item = self._item(key, site.caller, 0)
                item.nodes.append(number)
                item.needs += _ports(node.inputs)
                continue
            else:
                continue
            item.nodes.append(number)
            if node.op != "hoist_read":
                item.needs += _ports(node.inputs)
            item.needs += node.controls

    def _all_of(self, kind: int, node: Node) -> Iterator[Port]:
        """The results of a site, up to the phase that a node waits for: ports that say that it has come back."""
        waits = [self.graph.nodes[port.node] for port in node.controls]
        last = max((phase_of(other) for other in waits if _SITED.get(other.op) == kind), default=None)
        for number, other in enumerate(self.graph.nodes):
            is_of_site = _SITED.get(other.op) == kind and other.attrs["site"] == node.attrs["site"]
            if is_of_site and (last is None or phase_of(other) <= last):
                yield Port(number)

    def _find_ends(self) -> None:
        """The switches and merges of each branch."""
        self.ends: dict[Pair, list[int]] = {}
        for number, node in enumerate(self.graph.nodes):
            if node.op == "switch":
                pred = node.inputs[0]
                assert isinstance(pred, Port)
                self.ends.setdefault((pred, node.region), []).append(number)
            elif self.is_branch_merge(node):
                self.ends.setdefault(self.pair_of(node), []).append(number)

    def _find_turns(self) -> None:
        """How often branches are entered in each phase."""
        made = {key: Element(item.region, item.phase) for key, item in self.items.items()}
        ends: dict[int, Element] = {}
        for pair, numbers in self.ends.items():
            for number in numbers:
                leaves = self.graph.nodes[number].op == "merge"
                ends[number] = Element(pair[1], self.phases[number], pair, leaves)

        def needed(ports: Iterable[Port]) -> Iterator[Element]:
            for port in ports:
                if port.node in ends:
                    yield ends[port.node]
                elif (key := self.producer(port)) is not None and key in made:
                    yield made[key]

        for key, element in made.items():
            element.needs += (other for other in needed(self.items[key].needs) if other is not element)
            if key[0] in (CALL, MAP) and (earlier := (*key[:2], key[2] - 1)) in made:
                element.needs.append(made[earlier])
        for number, element in ends.items():
            node = self.graph.nodes[number]
            element.needs += needed((*_ports(node.inputs), *node.controls))
        self.turns = Turns(self.graph, [*made.values(), *ends.values()])
        for key, element in made.items():
            self.items[key].turn = element.turn
        self.end_turns = {number: element.turn for number, element in ends.items()}

    def _find_branches(self) -> None:
        """An item for each turn of a branch: something happens in it, on either side, or at its ends."""
        happens: dict[int, set[tuple[int, int]]] = {}
        for item in self.items.values():
            happens.setdefault(item.region, set()).add((item.phase, item.turn))
        self.visits: dict[Pair, set[tuple[int, int]]] = {}  # (phase, turn)
        for pair, sides in sorted(self.pairs.items(), key=lambda entry: -entry[0][1]):
            pred, parent = pair
            ends = self.ends.get(pair, ())
            visits = {visit for side in sides for visit in happens.get(side, ())}
            visits |= {(self.phases[number], self.end_turns[number]) for number in ends}
            self.visits[pair] = visits
            for phase, turn in visits:
                item = self._item(self.branch_key(pair, phase, turn), parent, phase)
                item.turn = self.turns.outer(pair, phase, turn)
                item.needs.append(pred)
                happens.setdefault(parent, set()).add((phase, item.turn))
            for number in ends:
                item = self.items[self.branch_key(pair, self.phases[number], self.end_turns[number])]
                item.nodes.append(number)
                if self.graph.nodes[number].op == "switch":
                    item.needs += _ports(self.graph.nodes[number].inputs)

    def branch_key(self, pair: Pair, phase: int, turn: int) -> Key:
        pred, parent = pair
        return BRANCH, pred.node, pred.index, parent, phase, turn

    def is_branch_merge(self, node: Node) -> bool:
        """Does a merge end a branch? Others are parameters and loop variables."""
        if node.op != "merge":
            return False
        first = node.inputs[0]
        assert isinstance(first, Port)
        return not is_inward(self.graph.nodes[first.node], first.index)

    def pair_of(self, merge: Node) -> tuple[Port, int]:
        """The predicate of the branch that a merge ends, and the region that it stands in."""
        first = merge.inputs[0]
        assert isinstance(first, Port)
        region = self.graph.regions[self.region_of(first)]
        if region.pred is None or region.parent is None:
            raise GraphError(f"{merge.name} does not take its values from the sides of one branch", merge.span)
        return region.pred, region.parent

    # -- order ---------------------------------------------------------------------------------------------

    def _find_blocking(self) -> None:
        """A call blocks, and so does what a call stands in. Inner regions come after outer ones, so go backwards."""
        blocks: set[tuple[int, int]] = set()  # (region, number of the program)
        order = sorted(self.of_region, key=lambda key: -key[0])
        for region, number in order:
            for item in self.of_region[region, number]:
                if item.kind == CALL:
                    item.is_blocking = True
                elif item.kind == BRANCH:
                    item.is_blocking = any(inner in blocks for inner in self.inner(item))
                elif item.kind in (LOOP, MAP):
                    body = self.graph.sites[item.key[1] - 1].callee
                    item.is_blocking = body < region or any(inner in blocks for inner in self.inner(item))
                if item.is_blocking:
                    blocks.add((region, number))

    def producer(self, port: Port) -> Key | None:
        """The item that a port waits for; None where it is there when its region begins."""
        number, node = port.node, self.graph.nodes[port.node]
        if node.op in CATALOGUE:
            return OP, number
        if node.op in _SINGLE:
            return _SINGLE[node.op], number
        if node.op in _SITED:
            return _SITED[node.op], node.attrs.integer("site"), phase_of(node)
        if self.is_branch_merge(node):
            return self.branch_key(self.pair_of(node), self.phases[number], self.end_turns[number])
        return None

    def _stages(self, region: int, number: int) -> list[Stage]:
        """What happens in a program of a region."""
        items = self.of_region.get((region, number), [])
        place = {item.key: n for n, item in enumerate(items)}
        before: list[set[int]] = []
        after: list[list[int]] = [[] for _ in items]
        for n, item in enumerate(items):
            needed = {place[key] for port in item.needs if (key := self.producer(port)) in place}
            if item.kind in (CALL, MAP, BRANCH) and (earlier := (*item.key[:-1], item.key[-1] - 1)) in place:
                needed.add(place[earlier])
            needed.discard(n)
            before.append(needed)
            for m in needed:
                after[m].append(n)
        levels: list[tuple[int, int]] = [(0, 0)] * len(items)
        missing = [len(needed) for needed in before]
        ready = [n for n, count in enumerate(missing) if count == 0]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            n = heapq.heappop(ready)
            order.append(n)
            levels[n] = max((self._after(items[m], levels[m]) for m in before[n]), default=(0, 0))
            for m in after[n]:
                missing[m] -= 1
                if missing[m] == 0:
                    heapq.heappush(ready, m)
        if len(order) != len(items):
            raise GraphError(f"region {self.graph.regions[region].name} waits for itself")
        last: dict[int, int] = {}  # of each level of calls: the last stage before them
        for n, item in enumerate(items):
            if not item.is_blocking:
                last[levels[n][0]] = max(last.get(levels[n][0], 0), levels[n][1])
        stages: dict[tuple[int, int], Stage] = {}
        for n in order:
            item, (level, step) = items[n], levels[n]
            if item.is_blocking:
                stages.setdefault((level, max(step, last.get(level, 0))), Stage()).entered.append(item)
            elif item.kind in (BRANCH, LOOP, MAP):
                stages.setdefault((level, step), Stage()).entered.append(item)
            else:
                stages.setdefault((level, step), Stage()).straight.append(item)
        return [stages[key] for key in sorted(stages)]

    # -- when later phases are asked for ---------------------------------------------------------------------

    def asks(self, site: int) -> tuple[tuple[int, int], ...]:
        """For each later phase of a call, in which phase of its caller it is asked for, and at which point of that.

        Lanes of calls for which all this is equal can share chunks, since a chunk is resumed when all its lanes have
        asked. Along every path through a phase these points grow: so of chunks that wait for each other's lanes there
        is always one with a smallest point, and that one waits for nobody.
        """
        found = []
        for phase in range(1, self.phase_count[self.graph.sites[site - 1].callee]):
            item = self.items.get((CALL, site, phase))
            if item is not None:
                at = item.region, self.program_of[item.region][item.phase, item.turn]
                found.append((self.outer_phases[at], self.times[item.key]))
        return tuple(found)

    def inner(self, item: Item) -> list[tuple[int, int]]:
        """The regions that an item enters, and which program of each; of a call none, since it is another body."""
        if item.kind == BRANCH:
            pair, visit = (Port(item.key[1], item.key[2]), item.region), item.key[-2:]
            return [(side, self.program_of[side][visit[0], visit[1]]) for side in self.pairs[pair] if side >= 0]
        if item.kind in (LOOP, MAP):
            return [(self.graph.sites[item.key[1] - 1].callee, 0 if item.kind == LOOP else item.key[2])]
        return []

    def _find_times(self) -> None:
        """Number the points where a phase waits for calls, regions inside of others between those around them."""
        self.times: dict[Key, int] = {}
        self.outer_phases: dict[tuple[int, int], int] = {}  # of what stands inside: the phase of the function
        length: dict[tuple[int, int], int] = {}
        for at in sorted(self.stages, key=lambda at: -at[0]):  # inner regions come after outer ones
            length[at] = sum(self._length(stage, length) for stage in self.stages[at])
        begin: dict[tuple[int, int], int] = {}
        for at in sorted(self.stages):
            time = begin.get(at, 0)
            outer = self.outer_phases.setdefault(at, self.programs[at[0]][at[1]][0])
            for stage in self.stages[at]:
                for item in stage.entered:
                    self.times[item.key] = time
                    for inner in self.inner(item):
                        begin[inner], self.outer_phases[inner] = time, outer
                time += self._length(stage, length)

    def _length(self, stage: Stage, length: dict[tuple[int, int], int]) -> int:
        inside = [length.get(inner, 0) for item in stage.entered for inner in self.inner(item)]
        return max([*inside, int(any(item.kind == CALL for item in stage.entered))])

    def _after(self, item: Item, level: tuple[int, int]) -> tuple[int, int]:
        """The earliest place for what waits for an item."""
        if item.is_blocking:
            return level[0] + 1, 0
        return (level[0], level[1] + 1) if item.kind in (BRANCH, LOOP, MAP) else level


def _ports(operands: Iterable[object]) -> list[Port]:
    return [operand for operand in operands if isinstance(operand, Port)]
