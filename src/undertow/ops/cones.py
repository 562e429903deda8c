"""Cones: what computes the arguments of a call and serves nothing else.

A cone may leave its place without being missed: it is pure, and all that uses it is in it, or is the call.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from undertow.ir.graph import FunctionGraph, Node, Operand, Port
from undertow.ir.structure import ENTERS, LINKED
from undertow.ir.walk import grouped, link_of, port_regions, ports_of, target_of
from undertow.ops.effects import acts, is_pure
from undertow.ops.strictness import Strictness
from undertow.types import CTL, Type


class Uses:
    """Who uses what in a graph. Calls may be replaced, one after the other; nodes keep their numbers meanwhile."""

    def __init__(self, graph: FunctionGraph) -> None:
        self.graph = graph
        self.home = port_regions(graph)
        self.branches = graph.branches()
        self.decided = grouped((pred.node, side) for (pred, _), sides in self.branches.items() for side in sides)
        self.pivots = _pivots(graph)
        self._listed = {*graph.shared, *(port for phase in graph.phases for port in phase.results)}
        self.fixed = {port.node for port in self._listed}  # results of the graph
        self.live = live_nodes(graph, self.fixed | {n for n, node in enumerate(graph.nodes) if not _is_idle(node)})
        self.of: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]  # (user, operand; -1: a control edge)
        for number in sorted(self.live):
            self._add_user(number)
        self.linked = frozenset(link_of(node) for node in graph.nodes if node.op in LINKED)
        standing = grouped((graph.nodes[number].region, number) for number in self.live)
        self.standing = {region: set(numbers) for region, numbers in standing.items()}
        self.kept: dict[int, tuple[int, ...]] = {}  # call that was replaced -> the results that it still has

    def _add_user(self, number: int) -> None:
        node = self.graph.nodes[number]
        for position, operand in enumerate(node.inputs):
            if isinstance(operand, Port):
                self.of[operand.node].append((number, position))
        for port in node.controls:
            self.of[port.node].append((number, -1))

    def replace_call(self, number: int, node: Node, cone: Collection[int], kept: tuple[int, ...]) -> None:
        """Put another call in the place of a call and its cone. It still has types for all its results."""
        gone = {number, *cone}
        for port in ports_of(operand for at in gone for operand in self._operands(at)):
            self.of[port.node] = [use for use in self.of[port.node] if use[0] not in gone]
        nodes = list(self.graph.nodes)
        nodes[number] = node
        self.graph = replace(self.graph, nodes=tuple(nodes))
        self._add_user(number)
        self.live -= set(cone)
        for at in cone:
            self.standing[nodes[at].region].discard(at)
        self.kept[number] = kept

    def _operands(self, number: int) -> tuple[Operand, ...]:
        node = self.graph.nodes[number]
        return (*node.inputs, *node.controls)

    def types(self, number: int) -> tuple[Type, ...]:
        """The types of the results that a node still has."""
        types = self.graph.nodes[number].types
        return tuple(types[index] for index in self.kept[number]) if number in self.kept else types

    def results(self, number: int) -> tuple[int, ...]:
        """The outputs of a node that anything uses."""
        used = {port.index for port in self._listed if port.node == number}
        for user in {user for user, _ in self.of[number]}:
            used.update(port.index for port in ports_of(self._operands(user)) if port.node == number)
        return tuple(sorted(used))

    def path(self, region: int, within: int) -> list[int]:
        """The regions from a region up to one around it; that one is left out."""
        path: list[int] = []
        at: int | None = region
        while at != within:
            assert at is not None
            path.append(at)
            at = self.graph.regions[at].parent
        return path

    def is_within(self, region: int, around: int) -> bool:
        at: int | None = region
        while at is not None and at != around:
            at = self.graph.regions[at].parent
        return at is not None

    def inner(self, number: int) -> int:
        """The region that a node stands in, or one of those that a Merge joins."""
        node = self.graph.nodes[number]
        return self.home(ports_of(node.inputs)[0]) if node.op == "merge" else node.region

    def preds(self, number: int, within: int) -> list[Port]:
        """The predicates that decide whether a node of a region runs, the outermost first."""
        path = self.path(self.inner(number), within)
        return [pred for region in reversed(path) if (pred := self.graph.regions[region].pred) is not None]


def _is_idle(node: Node) -> bool:
    """Does nothing happen if nobody uses it?"""
    return node.op in ("switch", "merge") or is_pure(node.op)


def _pivots(graph: FunctionGraph) -> set[Port]:
    """The start tokens, and what Switches make of them."""
    pivots: set[Port] = set()
    for number, node in enumerate(graph.nodes):
        if node.op == "start":
            pivots.add(Port(number))
        elif node.op == "switch" and node.inputs[1] in pivots:
            pivots |= {Port(number, 0), Port(number, 1)}
    return pivots


def live_nodes(graph: FunctionGraph, roots: Iterable[int]) -> set[int]:
    """These nodes and all that they need."""
    live = set(roots)
    regions = {0}
    for number in reversed(range(len(graph.nodes))):  # users come first
        if number not in live:
            continue
        node = graph.nodes[number]
        live.update(port.node for port in ports_of((*node.inputs, *node.controls)))
        at: int | None = node.region
        while at is not None and at not in regions:
            regions.add(at)
            pred = graph.regions[at].pred
            assert pred is not None
            live.add(pred.node)
            at = graph.regions[at].parent
    return live


def needed_nodes(strictness: Strictness, graph: FunctionGraph, results: Iterable[int]) -> set[int]:
    """What some results of a function need, and what it does to the world."""
    acting = (
        number
        for number, node in enumerate(graph.nodes)
        if acts(node.op) or (node.op in ENTERS and target_of(graph, node) in strictness.acting)
    )
    return live_nodes(graph, (*acting, *(graph.results[index].node for index in results)))


# Indices of arguments that a value is, regions of the callee where else it is used -> where it would stand there.
Place = Callable[[Collection[int], Collection[int]], list[int]]


class Cone:
    """What computes some arguments of a call and serves nothing else: `nodes`, by number.

    They stand in the region of the call, or in branches of it, and take from outside only what lives in that region.
    """

    def __init__(self, strictness: Strictness, uses: Uses, call: int, arguments: Collection[int], place: Place) -> None:
        self.strictness, self.uses, self.call, self.arguments = strictness, uses, call, frozenset(arguments)
        self.graph, self.region = uses.graph, uses.graph.nodes[call].region
        self.nodes: set[int] = set()
        excluded: set[int] = set()
        while True:
            self._grow(excluded, place)
            wrong = {number for number in self.nodes if not self._is_whole(number)}
            if not wrong:
                return
            excluded |= wrong

    def _grow(self, excluded: Collection[int], place: Place) -> None:
        """Find the nodes, users first."""
        nodes = self.graph.nodes
        self.nodes = set()
        roots = [operand for index in self.arguments if isinstance(operand := nodes[self.call].inputs[index], Port)]
        waiting = [-port.node for port in dict.fromkeys(roots)]
        heapq.heapify(waiting)
        seen = {-number for number in waiting}
        places: dict[int, list[int] | None] = {}  # where a node would stand in the callee; None: not known yet
        while waiting:
            number = -heapq.heappop(waiting)
            node = nodes[number]
            if number in excluded or not self.uses.is_within(node.region, self.region) or not self._is_movable(node):
                continue
            if not self._serves_nothing_else(number):
                continue
            places[number] = self._place(number, places, place)
            if places[number] == [0]:
                continue  # its callee would compute it first of all, and what it is computed from
            self.nodes.add(number)
            for port in ports_of((*node.inputs, *node.controls)):
                if port.node not in seen:
                    seen.add(port.node)
                    heapq.heappush(waiting, -port.node)

    def _place(self, number: int, places: dict[int, list[int] | None], place: Place) -> list[int] | None:
        """Where a node would stand. A branch stands as a whole, so that is not known of its parts."""
        if self.graph.nodes[number].region != self.region or self.graph.nodes[number].op in ("switch", "merge"):
            return None
        others: set[int] = set()
        arguments: list[int] = []
        for user, position in self.uses.of[number]:
            if user == self.call:
                arguments.append(position)
            elif (found := places[user]) is None:
                return None
            else:
                others.update(found)
        return place(arguments, others)

    def _is_movable(self, node: Node) -> bool:
        """May it run elsewhere, or not at all?"""
        if not all(port in self.uses.pivots for port in node.controls):
            return False
        if node.op in ("switch", "merge"):
            return True
        if any(self.graph.type_of(operand) == CTL for operand in node.inputs):
            return False
        if node.op in ENTERS or node.op == "gradient":
            return target_of(self.graph, node) not in self.strictness.impure
        return is_pure(node.op)

    def _serves_nothing_else(self, number: int) -> bool:
        if number in self.uses.fixed:
            return False
        for user, position in self.uses.of[number]:
            if user not in self.nodes and not (user == self.call and position in self.arguments):
                return False
        regions = self.uses.decided.get(number, ())
        return all(self.uses.standing.get(region, set()) <= self.nodes for region in regions)

    def _is_whole(self, number: int) -> bool:
        """Does a node take from outside only what lives in the region of the call?"""
        node = self.graph.nodes[number]
        if node.op == "gradient" and link_of(node) not in self.nodes:
            return False
        taken = [port for port in ports_of((*node.inputs, *node.controls)) if port not in self.uses.pivots]
        ports = (*taken, *self.uses.preds(number, self.region))
        return all(port.node in self.nodes or self.uses.home(port) == self.region for port in ports)
