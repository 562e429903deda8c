"""What happens in a region of a static graph, as items: operators, and what is entered (branches, calls, loops, maps).

A call item stands for all operators between tags of one site and phase, a branch item for the switches and merges of
one visit. `lower` writes items as those of a plan; `order` puts them in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from undertow.errors import GraphError
from undertow.ir.graph import Node, Port, StaticGraph
from undertow.ir.walk import body_of, is_inward, node_phases, phase_of, port_regions
from undertow.ops.op import CATALOGUE
from undertow.plan.turns import Element, Pair, Turns

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


class GraphItem:
    """One thing that happens in a region, in one phase."""

    __slots__ = ("key", "needs", "nodes", "orders", "phase", "region", "turn")

    def __init__(self, key: Key, region: int, phase: int) -> None:
        self.key = key
        self.region = region
        self.phase = phase
        self.turn = 0  # of the branch that it stands in
        self.nodes: list[int] = []  # all that it stands for
        self.needs: list[Port] = []  # ports of its region that come before it
        self.orders: list[Port] = []  # those of these that it only waits for

    @property
    def kind(self) -> int:
        return self.key[0]


class Items:
    """The items of a static graph, by region and program."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.owner = body_of(graph)
        self.region_of = port_regions(graph)
        self.phases = node_phases(graph)
        self.pairs = graph.branches()
        self.items: dict[Key, GraphItem] = {}
        self.of_region: dict[tuple[int, int], list[GraphItem]] = {}  # by region and number of the program
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
        self.turns: Turns | None = None
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

    # -- items ---------------------------------------------------------------------------------------------

    def _item(self, key: Key, region: int, phase: int) -> GraphItem:
        if key not in self.items:
            self.items[key] = GraphItem(key, region, phase)
        return self.items[key]

    def _gather(self) -> None:
        """All items but branches."""
        nodes, phases, items = self.graph.nodes, self.phases, self.items
        returns: dict[int, list[Port]] = {}  # of each call site, in all phases: they say that it has come back
        for number, node in enumerate(nodes):
            if node.op == "return":
                returns.setdefault(node.attrs.integer("site"), []).append(Port(number))
        for number, node in enumerate(nodes):
            op, phase = node.op, phases[number]
            if op in CATALOGUE:
                item = items[OP, number] = GraphItem((OP, number), node.region, phase)
            elif op in _SINGLE:
                item = items[_SINGLE[op], number] = GraphItem((_SINGLE[op], number), node.region, phase)
                if _SINGLE[op] == COLLECTED:
                    item.needs += returns.get(node.attrs.integer("site"), ())
            elif op in _STARTS:
                item = self._item((_STARTS[op], node.attrs.integer("site"), phase_of(node)), node.region, phase)
                item.phase = phase
            elif op in _ARGUMENTS:
                item = self._item((_ARGUMENTS[op], node.attrs.integer("site"), phase_of(node)), node.region, phase)
            elif op in _SITED:
                key = (_SITED[op], node.attrs.integer("site"), phase_of(node))
                self._item(key, node.region, phase).nodes.append(number)
                continue  # it waits for the item
            elif op == "outer":
                site = self.graph.sites[node.attrs.integer("site") - 1]
                key = (LOOP if site.kind == "loop" else MAP, node.attrs.integer("site"), 0)
                item = self._item(key, site.caller, 0)
                item.nodes.append(number)
                item.needs += _ports(node.inputs)
                continue
            else:
                continue
            item.nodes.append(number)
            if op != "hoist_read":
                item.needs += _ports(node.inputs)
            if node.controls:
                item.needs += node.controls
                item.orders += node.controls

    def _find_ends(self) -> None:
        """The switches and merges of each branch."""
        self.ends: dict[Pair, list[int]] = {}
        for number, node in enumerate(self.graph.nodes):
            if node.op == "switch":
                pred = node.inputs[0]
                assert isinstance(pred, Port)
                self.ends.setdefault((pred, node.region), []).append(number)
            elif node.op == "merge" and self.is_branch_merge(node):
                self.ends.setdefault(self.pair_of(node), []).append(number)

    def _find_turns(self) -> None:
        """How often branches are entered in each phase: once, unless a value leaves one and something waits for it."""
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
                item.turn = self.turns.outer(pair, phase, turn) if self.turns is not None else 0
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


def _ports(operands: Iterable[object]) -> list[Port]:
    return [operand for operand in operands if operand.__class__ is Port]
