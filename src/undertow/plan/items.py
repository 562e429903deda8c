"""The items of a region of a static graph: operators, and what is entered (branches, calls, loops, maps).

A call item stands for all operators between tags of one site and phase, a branch item for the switches and merges of
one visit. `lower` writes items as those of a plan; `order` puts them in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from undertow.errors import GraphError
from undertow.ir.budget import paced
from undertow.ir.graph import Node, Port
from undertow.ir.index import StaticIndex
from undertow.ir.structure import BACK, COLLECTS, READS, SITED, STARTS
from undertow.ir.structure import COLLECTED as TAKES_COLLECTED
from undertow.ir.walk import ports_of
from undertow.ops.op import CATALOGUE
from undertow.plan.turns import Element, Pair, Turns

# The key of an item.
OP, BRANCH, CALL, LOOP, MAP, READ, COLLECT, COLLECTED, SEND, RECV = range(10)
# (kind, node) or (kind, site, phase) or (BRANCH, node and index of predicate, parent, phase, turn)
Key = tuple[int, ...]

_KINDS = {"call": CALL, "loop": LOOP, "map": MAP}
_ENTERED = frozenset(_KINDS.values())
_SINGLE = {
    **dict.fromkeys(READS, READ),
    **dict.fromkeys(COLLECTS, COLLECT),
    **dict.fromkeys(TAKES_COLLECTED, COLLECTED),
    "send": SEND,
    "recv": RECV,
}


class GraphItem:
    """An item of the static graph: it happens in one region, in one phase."""

    __slots__ = ("key", "needs", "nodes", "orders", "phase", "region", "turn")

    def __init__(self, key: Key, region: int, phase: int) -> None:
        self.key = key
        self.region = region
        self.phase = phase
        self.turn = 0  # of the enclosing branch
        self.nodes: list[int] = []  # of a branch: its switches and merges
        self.needs: list[Port] = []  # ports of its region that come before it
        self.orders: list[Port] = []  # those of `needs` that are control edges

    @property
    def kind(self) -> int:
        return self.key[0]


class GivenTurns(Protocol):
    """The turns of branches, where they are those of another graph: all parts of a placed graph have the whole's."""

    def turn(self, key: Key) -> int:
        """The turn of the branch around an item."""

    def end_turn(self, number: int) -> int:
        """The turn that a switch begins, or a merge ends."""

    def outer(self, pair: Pair, phase: int, turn: int) -> int:
        """The turn of the region around a branch in which a turn of the branch happens."""


class Items:
    """The items of a static graph, by region and program."""

    def __init__(self, index: StaticIndex, given: GivenTurns | None = None) -> None:
        self.index = index
        self.given = given
        self.graph = index.graph
        self.phases = index.phases
        self.items: dict[Key, GraphItem] = {}
        self.of_region: dict[tuple[int, int], list[GraphItem]] = {}  # by region and number of the program
        self._gather()
        self._find_ends()
        self.turns: Turns | None = None
        self._find_turns()
        self._find_branches()
        # The programs of a region: one for each phase of a body; of a branch, one for each turn of each phase.
        self.programs = [
            sorted(self.visits.get((region.pred, region.parent), ()))
            if region.pred is not None and region.parent is not None
            else [(phase, 0) for phase in range(index.phase_count[number])]
            for number, region in enumerate(index.regions)
        ]
        self.program_of = [{visit: n for n, visit in enumerate(visits)} for visits in self.programs]
        for item in paced(self.items.values()):
            at = item.region, self.program_of[item.region][item.phase, item.turn]
            self.of_region.setdefault(at, []).append(item)

    # -- items ---------------------------------------------------------------------------------------------

    def _item(self, key: Key, region: int, phase: int) -> GraphItem:
        if key not in self.items:
            self.items[key] = GraphItem(key, region, phase)
        return self.items[key]

    def _gather(self) -> None:
        """Find all items but branches."""
        index, phases, items = self.index, self.phases, self.items
        for number, node in enumerate(paced(index.nodes)):
            op = node.op
            if op in CATALOGUE:
                item = items[OP, number] = GraphItem((OP, number), node.region, phases[number])
            elif op == "outer":  # a body reads it from its caller: a need of the loop or map itself
                site = index.site(node)
                item = self._item((_KINDS[site.kind], node.attrs.integer("site"), 0), site.caller, 0)
                item.needs += ports_of(node.inputs)
                continue
            elif op in _SINGLE:
                key = _SINGLE[op], number
                item = items[key] = GraphItem(key, node.region, phases[number])
                if op in TAKES_COLLECTED:  # after every phase of the call
                    visits = index.visits_of(node.attrs.integer("site"))
                    item.needs += (Port(n) for _, visit in visits for n in visit.backs)
            elif op in SITED and op != "next":
                item = self._item(self._site_key(node), node.region, phases[number])
                if op in BACK:
                    continue  # a result of the item, not a need
                if op in STARTS:
                    item.phase = phases[number]
            else:
                continue
            if op != "hoist_read":
                item.needs += ports_of(node.inputs)
            if node.controls:
                item.needs += node.controls
                item.orders += node.controls

    def _site_key(self, node: Node) -> Key:
        return _KINDS[SITED[node.op]], *self.index.visit_key(node)

    def _find_ends(self) -> None:
        """Find the switches and merges of each branch."""
        self.ends: dict[Pair, list[int]] = {}
        for number, node in enumerate(paced(self.index.nodes)):
            if node.op == "switch":
                pred = node.inputs[0]
                assert isinstance(pred, Port)
                self.ends.setdefault((pred, node.region), []).append(number)
            elif node.op == "merge" and self.is_branch_merge(node):
                self.ends.setdefault(self.pair_of(node), []).append(number)

    def _find_turns(self) -> None:
        """Find the turns of branches: one per phase, unless a value leaves a branch and something waits for it."""
        given = self.given
        if given is not None:
            for key, item in self.items.items():
                item.turn = given.turn(key)
            self.end_turns = {n: given.end_turn(n) for numbers in self.ends.values() for n in numbers}
            return
        self.end_turns = {number: 0 for numbers in self.ends.values() for number in numbers}
        if self._is_left_and_waited_for():
            self._divide()

    def _is_left_and_waited_for(self) -> bool:
        nodes, phases = self.graph.nodes, self.phases
        left = {
            number: (pair[1], phases[number])
            for pair, numbers in self.ends.items()
            for number in numbers
            if nodes[number].op == "merge"
        }
        if not left:
            return False
        for item in self.items.values():
            for port in item.needs:
                if port.node in left and left[port.node] == (item.region, item.phase):
                    return True
        for pair, numbers in self.ends.items():
            for number in numbers:
                for x in nodes[number].inputs if nodes[number].op == "switch" else ():
                    if isinstance(x, Port) and left.get(x.node) == (pair[1], phases[number]):
                        return True
        return False

    def _divide(self) -> None:
        blocking = self._blocking()
        elements = {
            key: Element(item.region, item.phase, blocks=key[0] in _ENTERED and key[1] in blocking)
            for key, item in self.items.items()
        }
        ends: dict[int, Element] = {}
        for pair, numbers in self.ends.items():
            for number in numbers:
                leaves = self.graph.nodes[number].op == "merge"
                ends[number] = Element(pair[1], self.phases[number], pair, leaves)

        def needed(ports: Iterable[Port]) -> Iterator[Element]:
            for port in ports:
                if port.node in ends:
                    yield ends[port.node]
                elif (key := self.producer(port)) is not None and key in elements:
                    yield elements[key]

        for key, element in elements.items():
            element.needs += (other for other in needed(self.items[key].needs) if other is not element)
            if key[0] in (CALL, MAP) and (earlier := (*key[:2], key[2] - 1)) in elements:
                element.needs.append(elements[earlier])
        for number, element in ends.items():
            node = self.graph.nodes[number]
            element.needs += needed((*ports_of(node.inputs), *node.controls))
        self.turns = Turns(self.graph, [*elements.values(), *ends.values()])
        for key, element in elements.items():
            self.items[key].turn = element.turn
        self.end_turns = {number: element.turn for number, element in ends.items()}

    def _blocking(self) -> set[int]:
        """The sites of calls, and of loops and maps that make calls."""
        sites, owner = self.graph.sites, self.index.owner
        callers = {owner[site.caller] for site in sites if site.kind == "call"}
        found = -1
        while found < len(callers):
            found = len(callers)
            callers |= {owner[site.caller] for site in sites if site.callee in callers}
        return {n for n, site in enumerate(sites, 1) if site.kind == "call" or site.callee in callers}

    def _find_branches(self) -> None:
        """Make an item for each turn of a branch in which something happens, on either side or at its ends."""
        happens: dict[int, set[tuple[int, int]]] = {}
        for item in self.items.values():
            happens.setdefault(item.region, set()).add((item.phase, item.turn))
        self.visits: dict[Pair, set[tuple[int, int]]] = {}  # (phase, turn)
        turns = self.given or self.turns
        for pair, sides in sorted(self.index.branches.items(), key=lambda entry: -entry[0][1]):
            pred, parent = pair
            ends = self.ends.get(pair, ())
            visits = {visit for side in sides for visit in happens.get(side, ())}
            visits |= {(self.phases[number], self.end_turns[number]) for number in ends}
            self.visits[pair] = visits
            for phase, turn in visits:
                item = self._item(self.branch_key(pair, phase, turn), parent, phase)
                item.turn = turns.outer(pair, phase, turn) if turns is not None else 0
                item.needs.append(pred)
                happens.setdefault(parent, set()).add((phase, item.turn))
            for number in ends:
                item = self.items[self.branch_key(pair, self.phases[number], self.end_turns[number])]
                item.nodes.append(number)
                if self.graph.nodes[number].op == "switch":
                    item.needs += ports_of(self.graph.nodes[number].inputs)

    def branch_key(self, pair: Pair, phase: int, turn: int) -> Key:
        pred, parent = pair
        return BRANCH, pred.node, pred.index, parent, phase, turn

    def is_branch_merge(self, node: Node) -> bool:
        """Does a merge end a branch? Other merges are parameters and loop variables."""
        return node.op == "merge" and not self.index.is_parameter(node)

    def pair_of(self, merge: Node) -> tuple[Port, int]:
        """The predicate of the branch that a merge ends, and its enclosing region."""
        first = merge.inputs[0]
        assert isinstance(first, Port)
        region = self.graph.regions[self.index.region_of(first)]
        if region.pred is None or region.parent is None:
            raise GraphError(f"{merge.name} does not take its values from the sides of one branch", merge.span)
        return region.pred, region.parent

    def producer(self, port: Port) -> Key | None:
        """The item that computes a port; None if the value is there when its region begins."""
        number, node = port.node, self.graph.nodes[port.node]
        if node.op in CATALOGUE:
            return OP, number
        if node.op in _SINGLE:
            return _SINGLE[node.op], number
        if node.op in BACK:
            return self._site_key(node)
        if self.is_branch_merge(node):
            return self.branch_key(self.pair_of(node), self.phases[number], self.end_turns[number])
        return None
