"""Forward mode: one tangent copy of one graph. The tangent of each node is written right beside it.

The copy `f.jvp` of a function also takes the tangents of some arguments, and also gives those of some results; there is
one copy for each choice of these. Nothing is computed twice, and effects happen once. Calls that need no tangent stay
calls of the function itself.

The tangent of a value has a type that the value's type accepts. The tangent of a Switch, Merge, call, loop or map is
the same node, on tangents. A value that is not in the table of tangents has the tangent zero; where that needs a token
(opposite a nonzero side of a Merge, as a result, as a loop variable) a zero is written, live where the value is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from undertow.errors import CaptureError
from undertow.ir.custom import custom_parts
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Const, FunctionGraph, Node, Operand, Phase, Port
from undertow.ir.structure import ENTERS, RULES, SOURCES
from undertow.ir.walk import arguments, link_of, phase_of
from undertow.ops.gradient import NoGradient
from undertow.ops.op import find
from undertow.passes.derive.activity import Activity, Request
from undertow.passes.derive.writer import DerivativeWriter, no_row


@dataclass(eq=False)
class Forward:
    """One tangent copy in the making."""

    functions: Mapping[str, FunctionGraph]
    request: Request
    name: str
    activity: Activity
    copy_of: Callable[[Request], str]  # the name of the tangent copy for a request

    def __post_init__(self) -> None:
        self.graph = self.functions[self.request.graph]
        self.copy = Copy(self.graph, Draft(self.graph.kind, self.name))
        self.draft = self.copy.draft
        self.writer = DerivativeWriter(self.draft, waits=False)
        self.tangents: dict[Operand, Port] = {}  # by old port

    def make(self) -> FunctionGraph:
        params = [self.params(phase) for phase in range(len(self.graph.phases))]
        for number, node in enumerate(self.graph.nodes):
            if node.op in SOURCES:
                continue
            call = link_of(node) if node.op == "resume" else number
            if call in self.activity.requests:
                self.enter(number, node, self.activity.requests[call])
                continue
            if node.op in RULES:
                self.take_rule(number, node)
                continue
            self.copy.add(number)
            if any(Port(number, index) in self.activity.ports for index in range(len(node.types))):
                self.beside(number)
                self.push(number, node)
        phases = []
        for phase, visit in enumerate(self.graph.phases):
            tangents = [self.token(visit.results[index]) for index in self.request.results[phase]]
            phases.append(Phase(params[phase], (*(self.copy.ports[port] for port in visit.results), *tangents)))
        carried = self.graph.carried + sum(index < self.graph.carried for index in self.request.params[0])
        return replace(self.copy.freeze(phases), name=self.name, carried=carried)

    def beside(self, number: int) -> None:
        """Write the tangents of a node from now on."""
        node = self.graph.nodes[number]
        self.writer.beside(node, self.copy.place(node.region), self.copy.phases[number], f"{node.name}.t")

    def params(self, phase: int) -> tuple[int, ...]:
        """Write the start and the parameters of a phase; in a loop or map, carried values and their tangents first."""
        graph = self.graph
        start = next(n for n, node in enumerate(graph.nodes) if node.op == "start" and phase_of(node) == phase)
        self.copy.add(start)
        params, indices = graph.phases[phase].params, self.request.params[phase]
        own, tangents = [(param, False) for param in params], [(params[index], True) for index in indices]
        numbers: list[int] = []
        for old, is_tangent in interleaved(own, tangents, indices, 0 if phase else graph.carried):
            node = replace(graph.nodes[old], attrs=graph.nodes[old].attrs | {"index": len(numbers)})
            if is_tangent:
                numbers.append(self.draft.add(replace(node, name=f"{node.name}.t")))
                self.tangents[Port(old)] = Port(numbers[-1])
            else:
                numbers.append(self.copy.add(old, node))
        return tuple(numbers)

    def token(self, old: Port) -> Port:
        """The tangent of a port, zero included."""
        if old not in self.tangents:
            self.beside(old.node)
            return self.writer.zero(self.copy.ports[old])
        return self.tangents[old]

    def argument(self, old: Operand) -> Operand:
        """The tangent of an operand, zero included."""
        return self.token(old) if isinstance(old, Port) else Const(np.zeros_like(old.value))

    # -- nodes ---------------------------------------------------------------------------------------------

    def take_rule(self, number: int, node: Node) -> None:
        """The user's own derivative: the results of the rule, and its tangents."""
        if node.op == "custom":
            parts = custom_parts(node)
            if parts.is_reverse:
                raise CaptureError(
                    f"`{self.graph.name.split('~')[0]}` has a rule for reverse mode alone, and this derivative goes "
                    "forward through it",
                    node.span,
                    hint="use ut.grad or ut.vjp; or write the rule with ut.custom_jvp, which serves both modes",
                )
            slopes = iter(parts.slopes)
            for k, (type_, ruled) in enumerate(zip(node.types, parts.ruled, strict=True)):
                assert isinstance(ruled, Port)
                self.copy.ports[Port(number, k)] = self.copy.ports[ruled]
                slope = next(slopes) if type_.dtype.is_inexact else None
                if slope is not None and Port(number, k) in self.activity.ports:
                    self.beside(number)
                    self.tangents[Port(number, k)] = self.writer.port(self.copy.operand(slope))
            return
        (x,) = node.inputs
        self.beside(number)
        port = self.writer.port(self.argument(x) if node.op == "direction" else self.copy.operand(x))
        self.copy.ports[Port(number)] = port

    def push(self, number: int, node: Node) -> None:
        """Write the tangents of a node that has been copied."""
        if node.op == "switch":
            if node.inputs[1] in self.tangents:
                inputs = (self.copy.operand(node.inputs[0]), self.tangents[node.inputs[1]])
                new = self.writer.add("switch", inputs, node.types)
                self.tangents |= {Port(number, side): Port(new, side) for side in (0, 1)}
        elif node.op == "merge":
            sides = [port for port in node.inputs if isinstance(port, Port)]
            if any(port in self.tangents for port in sides):
                tokens = [self.token(port) for port in sides]
                self.beside(number)
                self.tangents[Port(number)] = Port(self.writer.add("merge", tokens, node.types))
        else:
            self.apply_row(number, node)

    def apply_row(self, number: int, node: Node) -> None:
        """Write the tangents of a primitive, by its row."""
        tangents = [self.tangents.get(x) if isinstance(x, Port) else None for x in node.inputs]
        if not any(port is not None for port in tangents):
            return
        row = find(node.op).tangent
        if isinstance(row, NoGradient):
            hint = "pass None as the tangent of its operand, or compute the value differently"
            raise no_row("derivative", node, row, hint)
        applied = self.writer.applied(self.copy, number, (False,) * len(node.inputs))
        parts = row(applied, tuple(None if port is None else self.writer.term(port) for port in tangents))
        for index, part in enumerate(parts):
            old = Port(number, index)
            if part is not None and old in self.activity.ports:
                self.tangents[old] = self.writer.fitted(part, self.copy.ports[old])

    # -- calls, loops and maps -----------------------------------------------------------------------------

    def enter(self, number: int, node: Node, request: Request) -> None:
        """Enter the tangent copy instead of the original, by call, resume, loop or map."""
        phase = phase_of(node)
        params, results = request.params[phase], request.results[phase]
        if node.op == "loop":  # the first result of its graph is the predicate, which is no output of the node
            results = tuple(index - 1 for index in results)
        carried = 0 if phase else self.functions[request.graph].carried
        tangents = [self.argument(arguments(node)[index]) for index in params]
        link = node.inputs[: len(node.inputs) - len(arguments(node))]
        own = [self.copy.operand(operand) for operand in arguments(node)]
        inputs = (*map(self.copy.operand, link), *interleaved(own, tangents, params, carried))
        types = (*node.types, *(node.types[index] for index in results))
        attrs = node.attrs if node.op == "resume" else node.attrs | {ENTERS[node.op]: self.copy_of(request)}
        made = replace(node, types=types, attrs=attrs)
        new = self.copy.add_moved(number, made, inputs, range(len(node.types)))
        for at, index in enumerate(results, len(node.types)):
            self.tangents[Port(number, index)] = Port(new, at)


T = TypeVar("T")


def interleaved(own: Sequence[T], tangents: Sequence[T], indices: Sequence[int], carried: int) -> list[T]:
    """The operands of a copy: carried values, their tangents, other values, their tangents (`indices` have one)."""
    first = sum(index < carried for index in indices)
    return [*own[:carried], *tangents[:first], *own[carried:], *tangents[first:]]
