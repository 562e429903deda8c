"""Finds parameters that every call of a recursion passes on unchanged, and values that are constant during a run.

A *cycle* is a strongly connected component of the graph of bodies: functions, and the loops and maps on the way from
one to another. A *class* of a cycle is one parameter of each of its graphs, such that every call within the cycle hands
on the caller's member as the callee's: all activations below one entry have the same value there. (So a class has a
member in every graph: one without a member would have nothing to hand on.)

A value is *run-wide* if it is a constant, or stands in the body of main, or comes from there through invariants of
loops and maps and through parameters that every caller gives the same run-wide value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from undertow.ir.graph import Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.ir.walk import callees_first, components, entered_by, node_phases, phase_of, reachable

Param = tuple[str, int]  # a graph and the index of one of its parameters in the first phase


@dataclass(frozen=True, slots=True, eq=False)
class Cycle:
    """Graphs that are recursive together, and their classes, each with the index of its parameter in every graph."""

    graphs: tuple[str, ...]  # in the order of the library
    inside: frozenset[str]  # the same, as a set
    classes: tuple[Mapping[str, int], ...]


@dataclass(slots=True, eq=False)
class Body:
    """One graph, and where the values of its ports come from."""

    graph: FunctionGraph
    entering: list[tuple[Node, str]] = field(default_factory=list)  # calls, loops and maps, and what they enter
    origins: dict[Port, Operand] = field(default_factory=dict)  # only of ports that are not their own origin

    def __post_init__(self) -> None:
        pivots = {port for region in self.graph.regions for port in region.starts}
        for number, node in enumerate(self.graph.nodes):
            if node.op == "switch":
                value = self.origin(node.inputs[1])
                self.origins[Port(number, 0)] = self.origins[Port(number, 1)] = value
            elif node.op == "identity" and pivots.issuperset(node.controls):
                self.origins[Port(number)] = self.origin(node.inputs[0])
            elif node.op in ENTERS:
                self.entering.append((node, node.attrs.text(ENTERS[node.op])))

    def origin(self, operand: Operand) -> Operand:
        """What a value was before Switches led it into branches."""
        return self.origins.get(operand, operand) if isinstance(operand, Port) else operand

    def param(self, operand: Operand) -> int | None:
        """The index of the first-phase parameter that a value originates from; None if it is something else."""
        source = self.origin(operand)
        if isinstance(source, Const):
            return None
        node = self.graph.nodes[source.node]
        return node.attrs.integer("index") if node.op == "param" and phase_of(node) == 0 else None


class Invariants:
    """The cycles of a library, callees first, and the parameters that have run-wide values."""

    def __init__(self, library: Library) -> None:
        self.library = library
        found = reachable([library.main], lambda name: entered_by(library.functions[name]))
        self.bodies = {name: Body(graph) for name, graph in library.functions.items() if name in found}
        self._order = {name: number for number, name in enumerate(library.functions)}
        self.main = self.bodies[library.main]
        self.main_phases = node_phases(self.main.graph)
        self.visits: dict[str, list[tuple[str, Node]]] = {name: [] for name in self.bodies}
        for name, body in self.bodies.items():
            for node, target in body.entering:
                self.visits[target].append((name, node))
        self.components = [component for component in callees_first(library) if component[0] in found]
        self.cycles = [cycle for component in self.components if (cycle := self._cycle(component)) is not None]
        self._values: dict[Param, Operand] = {}
        self._find_run_wide()

    # -- cycles --------------------------------------------------------------------------------------------

    def entries(self, cycle: Cycle) -> Iterator[tuple[str, Node, str]]:
        """The calls that enter a cycle from outside: (caller, call, callee)."""
        for target in cycle.graphs:
            for name, node in self.visits[target]:
                if name not in cycle.inside:
                    yield name, node, target

    def _cycle(self, component: list[str]) -> Cycle | None:
        inside = frozenset(component)
        calls = [
            (name, node, target)
            for target in component
            for name, node in self.visits[target]
            if name in inside or node.op != "call"
        ]
        if not calls or not all(name in inside for name, _, _ in calls):
            return None  # not recursive, or entered from outside through a loop or map instead of a call
        names = sorted(component, key=self._order.__getitem__)
        return Cycle(tuple(names), inside, tuple(self._classes(names, calls)))

    def _classes(self, names: list[str], calls: list[tuple[str, Node, str]]) -> Iterator[Mapping[str, int]]:
        good = {(name, index) for name in names for index in self._candidates(name)}
        feeds: dict[Param, list[Param]] = {}
        bad: list[Param] = []
        for name, node, target in calls:
            for index in self._candidates(target):
                source_index = self.bodies[name].param(node.inputs[index])
                if source_index is not None and (name, source_index) in good:
                    feeds.setdefault((name, source_index), []).append((target, index))
                else:
                    bad.append((target, index))
        while bad:
            param = bad.pop()
            if param in good:
                good.remove(param)
                bad += feeds.get(param, ())
        # Good parameters are now fed only by good ones. Two of one graph in one class would be two values in one place.
        linked: dict[Param, list[Param]] = {param: [] for param in good}
        for source, targets in feeds.items():
            for target_param in targets:
                if source in good and target_param in good:
                    linked[source].append(target_param)
                    linked[target_param].append(source)
        for members in components(
            sorted(good, key=lambda param: (self._order[param[0]], param[1])), linked.__getitem__
        ):
            if len(members) == len(names):
                yield dict(members)

    def _candidates(self, name: str) -> range:
        graph = self.bodies[name].graph
        return range(graph.carried, len(graph.params))

    # -- the run -------------------------------------------------------------------------------------------

    def value(self, name: str, operand: Operand) -> Operand | None:
        """The run-wide value that a value in a graph has: a constant, or a port in the body of main."""
        body = self.bodies[name]
        source = body.origin(operand)
        if isinstance(source, Const):
            return source
        if body is self.main:
            is_body = self.main.graph.nodes[source.node].region == 0 and self.main_phases[source.node] == 0
            return source if is_body else None
        index = body.param(source)
        return None if index is None else self._values.get((name, index))

    def _find_run_wide(self) -> None:
        """Find the run-wide values of parameters, callers first: what a caller hands on is then known."""
        cycles = {name: cycle for cycle in self.cycles for name in cycle.graphs}
        for component in reversed(self.components):
            cycle = cycles.get(component[0])
            if cycle is not None:
                entries = list(self.entries(cycle))
                for members in cycle.classes:
                    value = self._common((name, node.inputs[members[target]]) for name, node, target in entries)
                    if value is not None:
                        self._values.update(dict.fromkeys(members.items(), value))
            elif len(component) == 1 and component[0] not in entered_by(self.bodies[component[0]].graph):
                name = component[0]
                for index in self._candidates(name):
                    value = self._common((caller, node.inputs[index]) for caller, node in self.visits[name])
                    if value is not None:
                        self._values[name, index] = value

    def _common(self, arguments: Iterator[tuple[str, Operand]]) -> Operand | None:
        """The run-wide value that all of these (graph, operand) have in common."""
        values = {self.value(name, operand) for name, operand in arguments}
        return values.pop() if len(values) == 1 else None
