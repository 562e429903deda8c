"""The order of events in a copy of a body: the events of one phase, what each waits for, and what that implies.

A *step* is something that fires: an operator, the decision of a branch, an invocation. Most nodes of a static graph
are no steps here. A switch forwards a value that is already there; a merge is whatever arrives at it; order tokens only
order. They become waits between steps, and waits that others imply are left out, so that a copy moves as few tokens as
its data need.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, reduce
from heapq import heappop, heappush
from operator import and_

from undertow.errors import GraphError
from undertow.ir.budget import NODE_BYTES, paced, pay
from undertow.ir.graph import Node, Operand, Port
from undertow.ir.index import StaticIndex, Visit
from undertow.ir.longest_path import nodes_ahead
from undertow.ir.structure import BACK, COLLECTED, COLLECTS, READS, SOURCES, STARTS
from undertow.ir.walk import awaited, grouped, in_order, is_inward, origin, phase_of, reachable
from undertow.ops.op import CATALOGUE
from undertow.types import CTL

# Kinds of events: a node has fired, a result has come back, a site has been entered or has completely ended, a branch
# is decided, a side of it is alive, a value has arrived at a merge, a loop continues, several events have happened.
NODE, RESULT, ENTERED, DONE, DECIDED, ALIVE, MERGED, AGAIN, PASSED = range(9)
Event = tuple[int, ...]
Events = frozenset[Event]
NOW: Events = frozenset()  # nothing to wait for: there when a copy begins


class ExpandIndex(StaticIndex):
    """Analyses of a graph that all templates need."""

    @cached_property
    def nodes_of(self) -> dict[int, list[int]]:
        """The nodes of each body in topological order."""

        def before(number: int, node: Node) -> list[int]:
            ports = (port for port in awaited(node) if self.bodies[port.node] == self.bodies[number])
            return [port.node for port in ports if not is_inward(self.nodes[port.node], port.index)]

        order = in_order({number: before(number, node) for number, node in enumerate(self.nodes)})
        if len(order) < len(self.nodes):
            stuck = self.nodes[min({*range(len(self.nodes))}.difference(order))]
            raise GraphError(f"{stuck.name} depends on itself", stuck.span)
        return grouped((self.bodies[number], number) for number in order)

    @cached_property
    def entered_in(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """The (site, phase) that each phase of each body visits."""
        visits = self.visits.items()
        return grouped(((self.bodies[visit.start], self.phase_entered(*key)), key) for key, visit in visits)

    @cached_property
    def loops_of(self) -> dict[int, list[int]]:
        """The sites that go on from an iteration of each body to the next."""
        return grouped((self.sites[site - 1].callee, site) for site in self.nexts)

    @cached_property
    def ahead(self) -> list[int]:
        """How many nodes of its body follow each node, on the longest path."""
        return nodes_ahead(self)

    def node_of(self, event: Event) -> int:
        """A node by which an event is placed among those of its body: in the order of the program."""
        if event[0] == ENTERED:
            return self.visits[event[1], event[2]].start
        if event[0] == AGAIN:
            return self.nexts[event[1]][0]
        return event[1] if event[0] in (NODE, RESULT, MERGED, DECIDED) else -1

    def is_order_only(self, node: Node) -> bool:
        """Does an operator only wait: pure, with order tokens as its only results?"""
        row = CATALOGUE.get(node.op)
        return row is not None and not row.effect and row.state is None and all(type_ == CTL for type_ in node.types)

    def value_of(self, operand: Operand) -> Operand:
        """The value that an operand is, seen through switches."""
        return origin(self.graph, operand)

    def phase_entered(self, site: int, phase: int) -> int:
        """The phase of the caller that visits a phase of a site."""
        return self.phases[self.visits[site, phase].start]


class Timing:
    """The events of one phase of one body."""

    def __init__(self, index: ExpandIndex, body: int, phase: int, shared: dict[int, set[Port]]) -> None:
        self.index, self.body, self.phase = index, body, phase
        self.graph = index.graph
        self.when: dict[Port, Events] = {}  # port of this phase -> events after which it is there
        self.waits: dict[Event, Events] = {}  # event -> events that it waits for
        self.arrivals: dict[Event, list[Events]] = {}  # merge -> the same, for each side
        self.numbers: dict[Event, int] = {}
        self.implied: list[int] = []  # by number of an event: a mask of all events before it
        nodes = [n for n in index.nodes_of.get(body, ()) if index.phases[n] == phase]
        for number in paced(nodes):
            self._note_ports(number, self.graph.nodes[number])
        for number in paced(nodes):
            self._note_waits(number, self.graph.nodes[number])
        for site, part in index.entered_in.get((body, phase), ()):
            self._note_entering(site, part, index.visits[site, part], shared)
        for site in index.loops_of.get(body, ()):
            members = index.nexts[site]
            taken = [port for n in members for port in awaited(self.graph.nodes[n])]
            self.waits[AGAIN, site] = self._all(taken, self.graph.nodes[members[0]].region)
        self._imply()

    # -- ports ---------------------------------------------------------------------------------------------

    def look(self, port: Operand) -> Events:
        """The events after which an operand is there."""
        if not isinstance(port, Port) or is_inward(self.graph.nodes[port.node], port.index):
            return NOW
        if self.index.phases[port.node] < self.phase:
            return NOW  # the copy of that phase has ended
        return self.when[port]

    def alive(self, region: int) -> Events:
        """The events after which a region is alive."""
        if region == self.body:
            return NOW
        self._note_branch(region)
        return frozenset([(ALIVE, region)])

    def _all(self, operands: Iterable[Operand], region: int) -> Events:
        return frozenset().union(self.alive(region), *(self.look(x) for x in operands))

    def _note_branch(self, region: int) -> None:
        index, graph = self.index, self.graph
        while region != self.body and (ALIVE, region) not in self.waits:
            side = graph.regions[region]
            assert side.pred is not None and side.parent is not None
            decided = (DECIDED, *side.pred, side.parent)
            for both in index.branches[side.pred, side.parent]:
                self.waits[ALIVE, both] = frozenset([decided])
            above: Events = NOW if side.parent == self.body else frozenset([(ALIVE, side.parent)])
            self.waits[decided] = self.look(side.pred) | above
            region = side.parent

    def _note_ports(self, number: int, node: Node) -> None:
        index = self.index
        for output in range(len(node.types)):
            port = Port(number, output)
            events: Events = frozenset([(NODE, number)])
            if is_inward(node, output):
                continue
            if node.op in STARTS:
                events = frozenset([(ENTERED, node.attrs.integer("site"), phase_of(node))])
            elif node.op in BACK:
                events = frozenset([(RESULT, number)])
            elif node.op in SOURCES or node.op in READS or index.is_parameter(node):
                events = NOW
            elif node.op == "merge":
                events = frozenset([(MERGED, number)])
            elif node.op == "switch":
                events = self.look(node.inputs[1]) | self.alive(index.region_of(port))
            elif index.is_order_only(node):
                events = self._all((*node.inputs, *node.controls), node.region)
            self.when[port] = events

    def _note_waits(self, number: int, node: Node) -> None:
        index = self.index
        if node.op in BACK:
            site = node.attrs.integer("site")
            self.waits[RESULT, number] = frozenset([(ENTERED, site, phase_of(node))])
        elif node.op == "merge" and not index.is_parameter(node):
            sides = [self._all([x], index.region_of(x)) for x in node.inputs if isinstance(x, Port)]
            self.arrivals[MERGED, number] = sides
        elif node.op in COLLECTS or node.op in COLLECTED or (node.op in CATALOGUE and not index.is_order_only(node)):
            self.waits[NODE, number] = self._all((*node.inputs, *node.controls), node.region)
            if node.op in COLLECTED:
                self.waits[NODE, number] |= self._ended(node)

    def _ended(self, node: Node) -> Events:
        """What a collected waits for: copies hand up what they have collected when they end, not when they return."""
        index, site = self.index, node.attrs.integer("site")
        todo = [port.node for port in awaited(node)]
        for number in reachable(todo, self._before_order):
            back = self.graph.nodes[number]
            if back.op not in BACK or back.attrs.integer("site") != site:
                continue
            part = phase_of(back)
            if index.phase_entered(site, part) == self.phase:
                self.waits[DONE, site, part] = frozenset([(ENTERED, site, part)])
                return frozenset([(DONE, site, part)])
        return NOW

    def _before_order(self, number: int) -> list[int]:
        """The nodes that an order token comes from, seen through operators that only join order tokens."""
        node = self.graph.nodes[number]
        is_joint = self.index.is_order_only(node) or (node.op == "merge" and node.types[0] == CTL)
        return [port.node for port in awaited(node)] if is_joint and not self.index.is_parameter(node) else []

    def _note_entering(self, site: int, part: int, visit: Visit, shared: dict[int, set[Port]]) -> None:
        index, graph = self.index, self.graph
        members = [graph.nodes[n] for n in (visit.start, *visit.arguments)]
        taken: list[Operand] = [x for node in members for x in (*node.inputs, *node.controls)]
        if part == 0:
            taken += [x for n in index.outers.get(site, ()) for x in graph.nodes[n].inputs]
        if self.body == 0:
            taken += sorted(shared.get(graph.sites[site - 1].callee, ()))
        waits = self._all(taken, members[0].region)
        if part > 0 and (site, part - 1) in index.visits and index.phase_entered(site, part - 1) == self.phase:
            waits |= {(DONE, site, part - 1)}
            self.waits[DONE, site, part - 1] = frozenset([(ENTERED, site, part - 1)])
        self.waits[ENTERED, site, part] = waits

    # -- what an event implies -----------------------------------------------------------------------------

    def _imply(self) -> None:
        """Find all events that each event implies, in topological order."""
        needs = self.waits | {event: frozenset().union(*sides) for event, sides in self.arrivals.items()}
        order = self._in_program_order(needs)
        if len(order) != len(needs):
            raise GraphError(f"region {self.graph.regions[self.body].name} depends on itself")
        for number, event in enumerate(order):
            self.numbers[event] = number
            sides = self.arrivals[event] if event in self.arrivals else [self.waits[event]]
            pay(1 + number // (8 * NODE_BYTES))  # a bit for each event before it
            self.implied.append(1 << number | reduce(and_, map(self._bits, sides), -1))

    def _in_program_order(self, needs: dict[Event, Events]) -> list[Event]:
        """Events in topological order, otherwise as the program has them."""
        after = grouped((other, event) for event, others in needs.items() for other in others)
        missing = {event: len(others) for event, others in needs.items()}
        ready: list[tuple[int, Event]] = []
        for event, count in missing.items():
            if not count:
                heappush(ready, (self.index.node_of(event), event))
        order: list[Event] = []
        while ready:
            event = heappop(ready)[1]
            order.append(event)
            for other in after.get(event, ()):
                missing[other] -= 1
                if not missing[other]:
                    heappush(ready, (self.index.node_of(other), other))
        return order

    def _bits(self, events: Events) -> int:
        bits = 0
        for event in events:
            bits |= self.implied[self.numbers[event]]
        return bits

    def fewest(self, events: Events) -> list[Event]:
        """The events that no other of them implies (transitive reduction)."""
        if len(events) < 2:
            return list(events)
        others = 0
        for event in events:
            number = self.numbers[event]
            others |= self.implied[number] & ~(1 << number)
        return sorted(event for event in events if not others >> self.numbers[event] & 1)
