"""Activity analysis: which values a derivative goes through, forwards or in reverse.

A value is *varied* if it depends on the parameters that a derivative is taken with respect to, *useful* if the results
that are differentiated depend on it, and *active* if it is both. Only floats and operators that have a derivative carry
a dependence. Which parameters each result of a graph depends on is the same for every call, so one fixpoint over the
library finds it; what one `Request` makes active in a graph, and what it requests of the graphs that are entered, is
found by a walk back from the results.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from undertow.errors import CaptureError
from undertow.ir.custom import custom_parts, has_rule, unruled
from undertow.ir.graph import FunctionGraph, Node, Operand, Port
from undertow.ir.structure import ENTERING, ENTERS
from undertow.ir.walk import arguments, entered_by, fixpoint, link_of, phase_of, reachable
from undertow.ops.effects import assigns, is_stateful, variables_of
from undertow.ops.gradient import NO_GRADIENT, zero_gradient
from undertow.ops.op import CATALOGUE
from undertow.types import Type

Indices = tuple[tuple[int, ...], ...]  # of parameters or results, for each phase


class Request(NamedTuple):
    """A derivative of the first phases of a graph: of which results, with respect to which parameters."""

    graph: str
    params: Indices
    results: Indices

    @property
    def visits(self) -> int:
        return len(self.params)


class Activity(NamedTuple):
    """The ports of a graph that a request makes active, and what it requests of each call, loop and map."""

    ports: frozenset[Port]
    requests: dict[int, Request]


def is_float(type_: Type) -> bool:
    return type_.dtype.is_inexact


def is_smooth(op: str) -> bool:
    """May a derivative go through it? (Also if its row is missing: that is an error later, not a zero.)"""
    row = CATALOGUE[op].grad
    return row != NO_GRADIENT and row is not zero_gradient


def custom_sources(node: Node) -> list[list[Operand | None]]:
    """What each output of a `custom` node depends on: in its rule, whatever the function itself does."""
    parts = custom_parts(node)
    if parts.is_reverse:
        return [list(parts.arguments)] * len(node.types)
    slopes = iter(parts.slopes)
    return [[next(slopes)] if is_float(type_) else [] for type_ in node.types]


def bits(mask: int) -> Iterator[int]:
    """The positions of the bits that are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def differentiable(functions: Mapping[str, FunctionGraph], name: str) -> list[str]:
    """The graphs that a graph enters, and derivatives with it. Groups are done: collectors have a rule instead."""
    return [entered for entered in entered_by(functions[name]) if not functions[entered].group]


@dataclass(slots=True, eq=False)
class Body:
    """One graph and its dependences. A set of its parameters is a mask: a bit for each, phase by phase."""

    graph: FunctionGraph
    firsts: list[int]  # of each phase: the bit of its first parameter
    visits: dict[int, list[int]] = field(default_factory=dict)  # call, loop or map -> itself and its resumes, in order
    targets: dict[int, str] = field(default_factory=dict)  # call, loop or map -> what it enters
    masks: dict[Operand | None, int] = field(default_factory=dict)  # port -> the parameters it depends on, if any
    results: dict[tuple[int, int], int] = field(default_factory=dict)  # the same of results, by (phase, index)
    # Parameter -> an assignment, of a value that depends on it, to a variable that is read.
    assigned: dict[int, Node] = field(default_factory=dict)

    def slot(self, bit: int) -> tuple[int, int]:
        """The phase and the index of a parameter."""
        phase = bisect_right(self.firsts, bit) - 1
        return phase, bit - self.firsts[phase]

    def assign(self, operand: Operand | None, node: Node) -> None:
        """Note that `node` assigns a value."""
        for bit in bits(self.masks.get(operand, 0) if isinstance(operand, Port) else 0):
            self.assigned.setdefault(bit, node)


class Flows:
    """The dependences in all graphs that can be reached from the named ones."""

    def __init__(
        self, functions: Mapping[str, FunctionGraph], names: Iterable[str], reading: Iterable[str] = ()
    ) -> None:
        """`reading`: further graphs whose reads of variables count."""
        self.functions = functions
        self.bodies: dict[str, Body] = {}
        for name in reachable(names, lambda name: differentiable(functions, name)):
            counts = [len(visit.params) for visit in functions[name].phases]
            self.bodies[name] = Body(functions[name], [sum(counts[:phase]) for phase in range(len(counts))])
        callers: dict[str, list[str]] = {name: [] for name in self.bodies}
        for name, body in self.bodies.items():
            for number, node in enumerate(body.graph.nodes):
                if node.op in ENTERS and node.attrs.text(ENTERS[node.op]) in self.bodies:
                    body.visits[number] = [number]
                    body.targets[number] = target = node.attrs.text(ENTERS[node.op])
                    callers[target].append(name)
                elif node.op == "resume" and link_of(node) in body.visits:
                    body.visits[link_of(node)].append(number)
        nodes = (node for name in {*reading, *self.bodies} for node in functions[name].nodes)
        readers = (node for node in nodes if is_stateful(node.op) and not assigns(node.op))
        self._read = {name for node in readers for name in variables_of(node.attrs)}
        fixpoint(reversed(self.bodies), self._update, callers.__getitem__)  # callees stand behind their callers

    def _update(self, name: str) -> bool:
        """Find what a graph's values depend on, given what is known of the graphs it enters. Has that changed?"""
        body = self.bodies[name]
        graph, masks = body.graph, body.masks
        for number, node in enumerate(graph.nodes):
            if not any(map(is_float, node.types)):
                continue
            if node.op in ENTERING:
                if (link_of(node) if node.op == "resume" else number) not in body.visits:
                    continue
                sources = [list(self._sources(body, number, node, index)) for index in range(len(node.types))]
            elif node.op == "custom":
                around = unruled(graph).values()
                sources = [[*operands, *around] for operands in custom_sources(node)]
            elif node.op in ("switch", "merge", "direction") or (node.op in CATALOGUE and is_smooth(node.op)):
                sources = [[x for x in node.inputs if isinstance(x, Port)]] * len(node.types)
            else:
                if node.op == "param":
                    masks[Port(number)] = 1 << body.firsts[phase_of(node)] + node.attrs.integer("index")
                continue
            for index, type_ in enumerate(node.types):
                mask = 0
                for operand in sources[index]:
                    mask |= masks.get(operand, 0)
                if mask and is_float(type_):
                    masks[Port(number, index)] = mask
        results = {
            (phase, index): masks.get(port, 0)
            for phase, visit in enumerate(graph.phases)
            for index, port in enumerate(visit.results)
        }
        known = len(body.assigned)
        self._find_assigned(body)
        if graph.kind == "loop":
            results = _closed(graph, results)
            for bit, node in list(body.assigned.items()):
                for other in bits(results.get((0, bit), 0)):
                    body.assigned.setdefault(other, node)
        has_changed = results != body.results or len(body.assigned) > known
        body.results = results
        return has_changed

    def _find_assigned(self, body: Body) -> None:
        for call, target in body.targets.items():
            for bit, node in self.bodies[target].assigned.items():
                body.assign(self._argument(body, call, bit), node)
        for node in body.graph.nodes:
            if assigns(node.op) and not self._read.isdisjoint(variables_of(node.attrs)):
                for operand in node.inputs:
                    body.assign(operand, node)

    def _argument(self, body: Body, call: int, bit: int) -> Operand | None:
        """What a call, loop or map hands over for a parameter; None if it never visits the parameter's phase."""
        phase, index = self.bodies[body.targets[call]].slot(bit)
        visits = body.visits[call]
        return arguments(body.graph.nodes[visits[phase]])[index] if phase < len(visits) else None

    def _sources(self, body: Body, number: int, node: Node, index: int) -> Iterator[Operand | None]:
        """The arguments, of this visit and earlier ones, that an output of a call, loop, map or resume depends on."""
        call = link_of(node) if node.op == "resume" else number
        results = self.bodies[body.targets[call]].results
        return (self._argument(body, call, bit) for bit in bits(results.get((phase_of(node), index), 0)))

    # -- one request ---------------------------------------------------------------------------------------

    def request(self, name: str, params: Iterable[int], results: Iterable[int]) -> Request | None:
        """The derivative of some results with respect to some parameters, without those that no path connects."""
        depends = self.bodies[name].results
        varied = sum(1 << index for index in params)
        useful = tuple(index for index in results if depends[0, index] & varied)
        mask = 0
        for index in useful:
            mask |= depends[0, index]
        return Request(name, (tuple(i for i in params if mask >> i & 1),), (useful,)) if useful else None

    def activity(self, request: Request) -> Activity:
        """What a request makes active."""
        body = self.bodies[request.graph]
        graph, masks = body.graph, body.masks
        if has_rule(graph):
            _refuse_unruled(graph, request)
        slots = ((phase, index) for phase, indices in enumerate(request.params) for index in indices)
        varied = sum(1 << body.firsts[phase] + index for phase, index in slots)
        active: set[Port] = set()
        todo: list[Operand | None] = [
            graph.phases[phase].results[index] for phase, indices in enumerate(request.results) for index in indices
        ]
        while todo:
            port = todo.pop()
            if not isinstance(port, Port) or port in active or not masks.get(port, 0) & varied:
                continue
            active.add(port)
            node = graph.nodes[port.node]
            if node.op in ENTERING:
                todo += self._sources(body, port.node, node, port.index)
            elif node.op == "custom":
                todo += custom_sources(node)[port.index]
            else:
                todo += node.inputs
        requests = {call: self._request_of(body, call, active, varied) for call in body.visits}
        useful = {call: requested for call, requested in requests.items() if any(requested.results)}
        return Activity(frozenset(active), useful)

    def _request_of(self, body: Body, call: int, active: set[Port], varied: int) -> Request:
        """What is requested of a call, loop or map: its active results with respect to its active arguments."""
        entered = self.bodies[body.targets[call]]
        results: list[tuple[int, ...]] = []
        depends = 0
        for phase, number in enumerate(body.visits[call]):
            outputs = range(len(body.graph.nodes[number].types))
            results.append(tuple(k for k in outputs if Port(number, k) in active))
            for index in results[-1]:
                depends |= entered.results[phase, index]
        params: list[list[int]] = [[] for _ in results]
        carried = entered.graph.carried if entered.graph.kind == "loop" else 0
        for bit in bits(depends):
            if bit < carried:  # a loop variable that is inactive at first may become active in an iteration
                is_active = bool(body.masks.get(Port(call, bit), 0) & varied)
            else:
                is_active = self._argument(body, call, bit) in active
            if is_active:
                phase, index = entered.slot(bit)
                params[phase].append(index)
        if any(results) and entered.graph.kind == "loop":
            results = [tuple(1 + index for index in params[0] if index < carried)]
        return Request(body.targets[call], tuple(map(tuple, params)), tuple(results))


def _refuse_unruled(graph: FunctionGraph, request: Request) -> None:
    """Refuse a derivative by a value that a function with its own derivative takes from around it."""
    for index, port in unruled(graph).items():
        if index in request.params[0]:
            name = graph.name.split("~")[0]
            raise CaptureError(
                f"a derivative by `{graph.nodes[port.node].short_name}` goes through `{name}`, whose rule says nothing "
                "about values from around it",
                graph.span,
                hint="pass the value as an argument, or ut.stop_gradient of it",
            )


def _closed(loop: FunctionGraph, results: dict[tuple[int, int], int]) -> dict[tuple[int, int], int]:
    """What the last values of loop variables depend on: also on the first values, and on each other (transitively)."""
    closure: dict[tuple[int, int], int] = {}
    for index, param in enumerate(loop.params[: loop.carried]):
        first = 1 << index if is_float(loop.nodes[param].types[0]) else 0
        closure[0, index] = first | results[0, 1 + index]

    def update(variable: tuple[int, int]) -> bool:
        before = closure[variable]
        for other in bits(before & ((1 << loop.carried) - 1)):
            closure[variable] |= closure[0, other]
        return closure[variable] != before

    fixpoint(list(closure), update, lambda variable: closure)
    return closure
