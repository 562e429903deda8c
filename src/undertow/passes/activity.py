"""Which values a derivative goes through: those that depend on what is varied and lead to what has a cotangent.

One fixpoint over the graphs finds, for every result of every phase, the parameters that it depends on by way of
floats and operators that have a derivative. With that, what one *ask* makes active in a graph is found by a walk
forwards and one backwards, and so is what it asks of the graphs that are entered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from undertow.ir.graph import FunctionGraph, Library, Node, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.ir.walk import node_phases, phase_of
from undertow.ops.gradient import NO_GRADIENT, zero_gradient
from undertow.ops.op import CATALOGUE
from undertow.types import Type

Place = tuple[int, int]  # (phase, index): a parameter or a result
_NOTHING: frozenset[Place] = frozenset()


@dataclass(frozen=True, slots=True)
class Ask:
    """A derivative of a graph as visited in its first phases: for each of them, the results that have a cotangent and
    the parameters that want one.
    """

    graph: str
    given: tuple[tuple[int, ...], ...]
    wanted: tuple[tuple[int, ...], ...]

    @property
    def visits(self) -> int:
        return len(self.given)


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """What an ask makes of a graph: the ports that a cotangent reaches, and what is asked of each call and map."""

    active: frozenset[Port]
    asks: dict[int, Ask]


def is_float(type_: Type) -> bool:
    return type_.dtype.kind == "float"


def is_smooth(op: str) -> bool:
    """May a cotangent go through it? (Where there is no row it may, so that the lack of it is told.)"""
    row = CATALOGUE[op]
    return row.grad != NO_GRADIENT and row.grad is not zero_gradient


def arguments(node: Node) -> tuple[Operand, ...]:
    """What a call, map or resume hands over."""
    return node.inputs[1:] if node.op == "resume" else node.inputs


def link_of(node: Node) -> int:
    """The call or map that a resume, or a gradient, goes on with."""
    port = node.inputs[0]
    assert isinstance(port, Port)
    return port.node


@dataclass(slots=True, eq=False)
class Body:
    """One graph, and what is known of it."""

    graph: FunctionGraph
    phases: list[int] = field(default_factory=list)  # for each node, the last phase that it waits for
    visits: dict[int, list[int]] = field(default_factory=dict)  # call or map -> itself and its resumes, in order
    targets: dict[int, str] = field(default_factory=dict)  # call or map -> what it enters
    depends: dict[Port, frozenset[Place]] = field(default_factory=dict)  # of float ports: on which parameters
    flows: dict[Place, frozenset[Place]] = field(default_factory=dict)  # of results
    # Parameters that something depends on which is assigned to a variable that is read, and where that is.
    assigned: dict[Place, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.phases = node_phases(self.graph)
        for number, node in enumerate(self.graph.nodes):
            if node.op in ENTERS:
                self.visits[number] = [number]
                self.targets[number] = node.attrs.text(ENTERS[node.op])
            elif node.op == "resume":
                self.visits[link_of(node)].append(number)

    def assign(self, operand: Operand, node: Node) -> None:
        """Note that a value is assigned."""
        if isinstance(operand, Port):
            for place in self.depends.get(operand, _NOTHING):
                self.assigned.setdefault(place, node)


class Activity:
    """The graphs that can be reached from some, without loops: what depends on what in them."""

    def __init__(self, library: Library, names: Iterable[str]) -> None:
        self.bodies = {name: Body(library.functions[name]) for name in names}
        nodes = [node for body in self.bodies.values() for node in body.graph.nodes]
        self._read = {node.attrs.get("variable") for node in nodes if _is_state(node) and not _is_assign(node)}
        callers: dict[str, set[str]] = {name: set() for name in self.bodies}
        for name, body in self.bodies.items():
            for target in body.targets.values():
                callers[target].add(name)
        todo = deque(reversed(self.bodies))
        waiting = set(todo)
        while todo:
            name = todo.popleft()
            waiting.discard(name)
            if self._propagate(self.bodies[name]):
                for caller in callers[name] - waiting:
                    waiting.add(caller)
                    todo.append(caller)

    def _propagate(self, body: Body) -> bool:
        """Find what a graph's values depend on, as far as that is known of what it enters. Has it changed?"""
        graph, depends = body.graph, body.depends
        for number, node in enumerate(graph.nodes):
            if node.op == "param":
                found = [frozenset({(phase_of(node), node.attrs.integer("index"))})]
            elif node.op in ENTERS or node.op == "resume":
                found = [self._through(body, number, node, index) for index in range(len(node.types))]
            elif node.op == "start" or not any(map(is_float, node.types)):
                continue
            else:
                sources = [depends.get(x, _NOTHING) for x in _smooth_operands(node) if isinstance(x, Port)]
                found = [_NOTHING.union(*sources)] * len(node.types)
            for index, (type_, places) in enumerate(zip(node.types, found, strict=True)):
                if places and is_float(type_):
                    depends[Port(number, index)] = places
        flows = {
            (phase, index): depends.get(port, _NOTHING)
            for phase, visit in enumerate(graph.phases)
            for index, port in enumerate(visit.results)
        }
        known = len(body.assigned)
        self._propagate_assigned(body)
        has_changed = flows != body.flows or len(body.assigned) > known
        body.flows = flows
        return has_changed

    def _propagate_assigned(self, body: Body) -> None:
        for call, visits in body.visits.items():
            for (phase, index), node in self.bodies[body.targets[call]].assigned.items():
                if phase < len(visits):
                    operand = arguments(body.graph.nodes[visits[phase]])[index]
                    body.assign(operand, node)
        for node in body.graph.nodes:
            if _is_assign(node) and node.attrs.get("variable") in self._read:
                for operand in node.inputs:
                    body.assign(operand, node)

    def _through(self, body: Body, number: int, node: Node, index: int) -> frozenset[Place]:
        """What an output of a call, map or resume depends on."""
        places: set[Place] = set()
        for operand in self._leading(body, number, node, index):
            places |= body.depends.get(operand, _NOTHING)
        return frozenset(places)

    def _leading(self, body: Body, number: int, node: Node, index: int) -> Iterator[Port]:
        """The operands, of a visit and of those before it, that lead to an output of it."""
        call = link_of(node) if node.op == "resume" else number
        visits = body.visits[call]
        for phase, at in self.bodies[body.targets[call]].flows.get((phase_of(node), index), ()):
            if phase < len(visits):
                operand = arguments(body.graph.nodes[visits[phase]])[at]
                if isinstance(operand, Port):
                    yield operand

    # -- one ask -------------------------------------------------------------------------------------------

    def slice(self, ask: Ask) -> Slice:
        """What an ask makes active."""
        body = self.bodies[ask.graph]
        graph = body.graph
        wanted = {(phase, index) for phase, indices in enumerate(ask.wanted) for index in indices}
        varied = {port for port, places in body.depends.items() if not wanted.isdisjoint(places)}
        active: set[Port] = set()

        def mark(operands: Iterable[Operand]) -> None:
            active.update(x for x in operands if isinstance(x, Port) and x in varied)

        for phase, indices in enumerate(ask.given):
            mark(graph.phases[phase].results[index] for index in indices)
        for number in reversed(range(len(graph.nodes))):
            node = graph.nodes[number]
            outputs = [index for index in range(len(node.types)) if Port(number, index) in active]
            if node.op in ENTERS or node.op == "resume":
                for index in outputs:
                    mark(self._leading(body, number, node, index))
            elif outputs and node.op not in ("start", "param"):
                mark(_smooth_operands(node))
        return Slice(frozenset(active), self._asks(body, active))

    def _asks(self, body: Body, active: set[Port]) -> dict[int, Ask]:
        asks: dict[int, Ask] = {}
        for call, visits in body.visits.items():
            nodes = [(number, body.graph.nodes[number]) for number in visits]
            given = tuple(
                tuple(k for k in range(len(node.types)) if Port(number, k) in active) for number, node in nodes
            )
            wanted = tuple(tuple(k for k, x in enumerate(arguments(node)) if x in active) for _, node in nodes)
            if any(given) and any(wanted):
                asks[call] = Ask(body.targets[call], given, wanted)
        return asks


def _is_state(node: Node) -> bool:
    return node.op in CATALOGUE and CATALOGUE[node.op].state is not None


def _is_assign(node: Node) -> bool:
    return _is_state(node) and "how" in node.attrs


def _smooth_operands(node: Node) -> tuple[Operand, ...]:
    if node.op == "switch":
        return node.inputs[1:]
    return node.inputs if node.op == "merge" or (node.op in CATALOGUE and is_smooth(node.op)) else ()
