"""When things happen in a copy of a body: the events of one phase, what each waits for, and what that implies.

A *step* is something that fires: an operator, a branch that is decided, an invocation. Most nodes of a static graph
fire nothing of their own here. A switch hands on a value that is already there; a merge is whatever arrives at it;
order tokens only say what waits for what. Their rules become waits between steps, and waits that others imply are left
out, so that a copy moves as few tokens as its data need.
"""

from __future__ import annotations

from collections.abc import Iterable

from undertow.errors import GraphError
from undertow.ir.graph import Node, Operand, Port, StaticGraph
from undertow.ir.structure import BACK, STARTS
from undertow.ir.walk import body_of, is_inward, node_phases, phase_of, port_regions
from undertow.ops.op import CATALOGUE
from undertow.types import CTL

# Kinds of events: a node has fired, a result has come back, a site has been entered or all of it has ended, a branch is
# decided, a side of it is alive, a value has come to a merge, a loop goes on, several events have happened.
NODE, RESULT, ENTERED, DONE, DECIDED, ALIVE, MERGED, AGAIN, PASSED = range(9)
Event = tuple[int, ...]
Events = frozenset[Event]
NOW: Events = frozenset()  # there when a copy begins

ARGUMENTS = ("call", "hoist", "enter", "fan")
_THERE = ("start", "input", "outer", "hoist_read")
_SINGLE = ("collect", "collect_rows", "collected", "collected_rows")


class Facts:
    """What all templates need to know of a graph."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.owner = body_of(graph)
        self.home = [self.owner[node.region] for node in graph.nodes]
        self.phases = node_phases(graph)
        self.region_of = port_regions(graph)
        self.pairs = graph.branches()
        self.phase_count = [1] * len(graph.regions)
        self.entered: dict[tuple[int, int], list[int]] = {}  # (site, phase) -> its start and arguments
        self.outers: dict[int, list[int]] = {}  # site -> what its body reads of the caller
        self.nexts: dict[int, list[int]] = {}  # site of a loop -> what goes into the next iteration
        self.nodes_of: dict[int, list[int]] = {}  # body -> nodes, each after what it takes
        for number, node in enumerate(graph.nodes):
            body = self.home[number]
            self.phase_count[body] = max(self.phase_count[body], self.phases[number] + 1)
            if node.op in STARTS or node.op in ARGUMENTS:
                self.entered.setdefault((node.attrs.integer("site"), phase_of(node)), []).append(number)
            elif node.op == "outer":
                self.outers.setdefault(node.attrs.integer("site"), []).append(number)
            elif node.op == "next":
                self.nexts.setdefault(node.attrs.integer("site"), []).append(number)
        for (site, phase), _ in self.entered.items():
            callee = graph.sites[site - 1].callee
            self.phase_count[callee] = max(self.phase_count[callee], phase + 1)
        self._sort()

    def _sort(self) -> None:
        """The nodes of each body in an order in which every node comes after those that it takes tokens of."""
        graph = self.graph
        users: list[list[int]] = [[] for _ in graph.nodes]
        missing = [0] * len(graph.nodes)
        for number, node in enumerate(graph.nodes):
            for port in self.taken(node):
                if self.home[port.node] == self.home[number] and not is_inward(graph.nodes[port.node], port.index):
                    users[port.node].append(number)
                    missing[number] += 1
        ready = [number for number in reversed(range(len(graph.nodes))) if missing[number] == 0]
        count = 0
        while ready:
            number = ready.pop()
            count += 1
            self.nodes_of.setdefault(self.home[number], []).append(number)
            for user in users[number]:
                missing[user] -= 1
                if missing[user] == 0:
                    ready.append(user)
        if count != len(graph.nodes):
            late = next(node for node, m in zip(graph.nodes, missing, strict=True) if m)
            raise GraphError(f"{late.name} waits for itself", late.span)

    def taken(self, node: Node) -> list[Port]:
        """The ports of its own frame that a node waits for."""
        is_elsewhere = node.op in BACK or node.op in ("outer", "hoist_read")
        operands = node.controls if is_elsewhere else (*node.inputs, *node.controls)
        return [port for port in operands if isinstance(port, Port)]

    def is_tag_merge(self, node: Node) -> bool:
        """Does a merge join what sites send? Others join the sides of a branch."""
        first = node.inputs[0]
        return isinstance(first, Port) and is_inward(self.graph.nodes[first.node], first.index)

    def is_order_only(self, node: Node) -> bool:
        """Does an operator do nothing but wait?"""
        row = CATALOGUE.get(node.op)
        return row is not None and not row.effect and row.state is None and all(type_ == CTL for type_ in node.types)

    def value_of(self, operand: Operand) -> Operand:
        """The value that an operand is, switches being looked through."""
        while isinstance(operand, Port) and self.graph.nodes[operand.node].op == "switch":
            operand = self.graph.nodes[operand.node].inputs[1]
        return operand

    def phase_entered(self, site: int, phase: int) -> int:
        """The phase of the caller in which it visits a phase of a site."""
        return max(self.phases[number] for number in self.entered[site, phase])


class Timing:
    """The events of one phase of one body."""

    def __init__(self, facts: Facts, body: int, phase: int, awaited: dict[int, set[Port]]) -> None:
        self.facts, self.body, self.phase = facts, body, phase
        self.graph = facts.graph
        self.when: dict[Port, Events] = {}  # of ports of this phase
        self.waits: dict[Event, Events] = {}  # of what fires
        self.arrivals: dict[Event, list[Events]] = {}  # of merges: one for each side
        self.numbers: dict[Event, int] = {}
        self.implied: list[int] = []  # bits, by number
        nodes = [n for n in facts.nodes_of.get(body, ()) if facts.phases[n] == phase]
        for number in nodes:
            self._note_ports(number, self.graph.nodes[number])
        for number in nodes:
            self._note_waits(number, self.graph.nodes[number])
        for (site, part), members in facts.entered.items():
            if facts.home[members[0]] == body and facts.phase_entered(site, part) == phase:
                self._note_entering(site, part, members, awaited)
        for site, members in facts.nexts.items():
            if self.graph.sites[site - 1].callee == body:
                taken = [port for n in members for port in facts.taken(self.graph.nodes[n])]
                self.waits[AGAIN, site] = self._all(taken, self.graph.nodes[members[0]].region)
        self._imply()

    # -- ports ---------------------------------------------------------------------------------------------

    def look(self, port: Operand) -> Events:
        """What must have happened before an operand is there."""
        if not isinstance(port, Port) or is_inward(self.graph.nodes[port.node], port.index):
            return NOW
        if self.facts.phases[port.node] < self.phase:
            return NOW  # the copy of that phase has ended
        return self.when[port]

    def alive(self, region: int) -> Events:
        """What must have happened before anything happens in a region."""
        if region == self.body:
            return NOW
        self._note_branch(region)
        return frozenset([(ALIVE, region)])

    def _all(self, operands: Iterable[Operand], region: int) -> Events:
        return frozenset().union(self.alive(region), *(self.look(x) for x in operands))

    def _note_branch(self, region: int) -> None:
        facts, graph = self.facts, self.graph
        while region != self.body and (ALIVE, region) not in self.waits:
            side = graph.regions[region]
            assert side.pred is not None and side.parent is not None
            decided = (DECIDED, *side.pred, side.parent)
            for both in facts.pairs[side.pred, side.parent]:
                self.waits[ALIVE, both] = frozenset([decided])
            above: Events = NOW if side.parent == self.body else frozenset([(ALIVE, side.parent)])
            self.waits[decided] = self.look(side.pred) | above
            region = side.parent

    def _note_ports(self, number: int, node: Node) -> None:
        facts = self.facts
        for index in range(len(node.types)):
            port = Port(number, index)
            found: Events = frozenset([(NODE, number)])
            if is_inward(node, index):
                continue
            if node.op in STARTS:
                found = frozenset([(ENTERED, node.attrs.integer("site"), phase_of(node))])
            elif node.op in BACK:
                found = frozenset([(RESULT, number)])
            elif node.op in _THERE or (node.op == "merge" and facts.is_tag_merge(node)):
                found = NOW
            elif node.op == "merge":
                found = frozenset([(MERGED, number)])
            elif node.op == "switch":
                found = self.look(node.inputs[1]) | self.alive(facts.region_of(port))
            elif facts.is_order_only(node):
                found = self._all((*node.inputs, *node.controls), node.region)
            self.when[port] = found

    def _note_waits(self, number: int, node: Node) -> None:
        facts = self.facts
        if node.op in BACK:
            site = node.attrs.integer("site")
            self.waits[RESULT, number] = frozenset([(ENTERED, site, phase_of(node))])
        elif node.op == "merge" and not facts.is_tag_merge(node):
            sides = [self._all([x], facts.region_of(x)) for x in node.inputs if isinstance(x, Port)]
            self.arrivals[MERGED, number] = sides
        elif node.op in _SINGLE or (node.op in CATALOGUE and not facts.is_order_only(node)):
            self.waits[NODE, number] = self._all((*node.inputs, *node.controls), node.region)

    def _note_entering(self, site: int, part: int, members: list[int], awaited: dict[int, set[Port]]) -> None:
        facts, graph = self.facts, self.graph
        taken: list[Operand] = [x for n in members for x in (*graph.nodes[n].inputs, *graph.nodes[n].controls)]
        if part == 0:
            taken += [x for n in facts.outers.get(site, ()) for x in graph.nodes[n].inputs]
        if self.body == 0:
            taken += sorted(awaited.get(graph.sites[site - 1].callee, ()))
        start = next(n for n in members if graph.nodes[n].op in STARTS)
        waits = self._all(taken, graph.nodes[start].region)
        if part > 0 and (site, part - 1) in facts.entered and facts.phase_entered(site, part - 1) == self.phase:
            waits |= {(DONE, site, part - 1)}
            self.waits[DONE, site, part - 1] = frozenset([(ENTERED, site, part - 1)])
        self.waits[ENTERED, site, part] = waits

    # -- what an event implies -----------------------------------------------------------------------------

    def _imply(self) -> None:
        """For each event all that must have happened before it; each is looked at after those that it waits for."""
        needs: dict[Event, Events] = dict(self.waits)
        for event, sides in self.arrivals.items():
            needs[event] = frozenset().union(*sides)
        users: dict[Event, list[Event]] = {}
        missing: dict[Event, int] = {}
        for event, waits in needs.items():
            missing[event] = len(waits)
            for other in waits:
                users.setdefault(other, []).append(event)
        ready = [event for event, count in missing.items() if count == 0]
        while ready:
            event = ready.pop()
            self.numbers[event] = len(self.numbers)
            bits = 1 << self.numbers[event]
            if event in self.arrivals:
                common = -1  # all bits
                for side in self.arrivals[event]:
                    common &= self._bits(side)
                self.implied.append(bits | common)
            else:
                self.implied.append(bits | self._bits(self.waits[event]))
            for user in users.get(event, ()):
                missing[user] -= 1
                if missing[user] == 0:
                    ready.append(user)
        if len(self.numbers) != len(needs):
            raise GraphError(f"region {self.graph.regions[self.body].name} waits for itself")

    def _bits(self, events: Events) -> int:
        bits = 0
        for event in events:
            bits |= self.implied[self.numbers[event]]
        return bits

    def fewest(self, events: Events) -> list[Event]:
        """Those events that no other of them implies."""
        if len(events) < 2:
            return list(events)
        others = 0
        for event in events:
            number = self.numbers[event]
            others |= self.implied[number] & ~(1 << number)
        return sorted(event for event in events if not others >> self.numbers[event] & 1)
