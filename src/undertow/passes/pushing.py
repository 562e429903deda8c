"""Pushing: one tangent copy of one graph. The tangent of each node is written right beside it.

The tangent of a value has its dtype, and a type that its type accepts. Switch, Merge, calls, loops and maps have
themselves as tangents, on tangents. A value that is not in the table of tangents has the tangent zero; where a token of
that is needed (the other side of a Merge is not zero, a result, a loop variable) it is made, live where the value is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from undertow.errors import CaptureError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, Const, FunctionGraph, Node, Operand, Phase, Port
from undertow.ir.structure import ENTERS, SOURCES
from undertow.ir.walk import node_phases, phase_of
from undertow.ops.gradient import Applied, NoGradient
from undertow.ops.op import find
from undertow.ops.term import Term, broadcast_like, zeros_like
from undertow.passes.dependence import Dependence, Key, link_of
from undertow.types import Type


class Writer:
    """Appends nodes to a draft: in the region, of the phase and from the line of the node that they stand beside."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.node = Node("start", (), (), "start")
        self.region = 0
        self.phase = 0

    def beside(self, node: Node, region: int, phase: int) -> None:
        """What is written from now on belongs to this node."""
        self.node, self.region, self.phase = node, region, phase

    def add(self, op: str, inputs: Sequence[Operand], types: tuple[Type, ...], attrs: Attrs, region: int) -> int:
        if "device" in self.node.attrs:
            attrs = Attrs(**attrs, device=self.node.attrs["device"])
        node = Node(op, tuple(inputs), types, f"{self.node.name}.t", region, attrs, span=self.node.span)
        return self.draft.add(self.draft.triggered(node, self.phase))

    def write(self, op: str, operands: Sequence[Operand], attrs: Attrs) -> tuple[Operand, ...]:
        types = find(op).type([self.type_of(operand) for operand in operands], attrs)
        number = self.add(op, operands, types, attrs, self.region)
        return tuple(Port(number, index) for index in range(len(types)))

    def type_of(self, operand: Operand) -> Type:
        return self.draft.type_of(operand)

    def port(self, operand: Operand) -> Port:
        """An operand as a token."""
        if isinstance(operand, Port):
            return operand
        return Port(self.add("identity", (operand,), (operand.type,), Attrs(), self.region))

    def fitted(self, term: Term, like: Operand) -> Port:
        """A tangent whose type is accepted where that of its value is: run-time sizes that are known are said."""
        if not self.type_of(like).accepts(term.type):
            term = broadcast_like(term, Term(self, like))
        return self.port(term.operand)

    def zero(self, like: Port) -> Port:
        """Zero, live where the value is."""
        before = self.region
        self.region = self.draft.home(like)
        type_ = self.type_of(like)
        if type_.rank == 0:
            made = self.port(Const(np.zeros((), type_.dtype.numpy)))
        else:
            made = self.port(zeros_like(Term(self, like)).operand)
        self.region = before
        return made


def push(
    graph: FunctionGraph, key: Key, name: str, dependence: Dependence, copy_of: Callable[[Key], str]
) -> FunctionGraph:
    """The tangent copy of a graph, under a name; `copy_of` names the copies that it enters."""
    return _Push(graph, key, name, dependence, copy_of).run()


class _Push:
    """One copy in the making."""

    def __init__(
        self, graph: FunctionGraph, key: Key, name: str, dependence: Dependence, copy_of: Callable[[Key], str]
    ) -> None:
        self.graph = graph
        self.key = key
        self.name = name
        self.activity = dependence.activity(key)
        self.functions = dependence.functions
        self.copy_of = copy_of
        self.copy = Copy(graph, Draft(graph.kind, name))
        self.draft = self.copy.draft
        self.writer = Writer(self.draft)
        self.tangents: dict[Port, Port] = {}  # by old port
        self.phases = node_phases(graph) if len(graph.phases) > 1 else [0] * len(graph.nodes)

    def run(self) -> FunctionGraph:
        params = [self.params(phase) for phase in range(len(self.graph.phases))]
        for number, node in enumerate(self.graph.nodes):
            if node.op in SOURCES:
                continue
            call = link_of(node, number)
            if call in self.activity.entered:
                self.enter(number, node, self.activity.entered[call])
                continue
            self.copy.add(number, node, phase=self.phases[number])
            if any(Port(number, index) in self.activity.ports for index in range(len(node.types))):
                self.writer.beside(node, self.copy.place(node.region), self.phases[number])
                self.push(number, node)
        phases = []
        for phase, visit in enumerate(self.graph.phases):
            wanted = [self.token(visit.results[index]) for at, index in self.key.wanted if at == phase]
            phases.append(Phase(params[phase], (*(self.copy.ports[port] for port in visit.results), *wanted)))
        carried = self.graph.carried
        if self.graph.kind in ("loop", "map"):
            carried += sum(phase == 0 and index < self.graph.carried for phase, index in self.key.given)
        made = self.draft.freeze(self.graph, phases, carried)
        return replace(made, name=self.name)

    def params(self, phase: int) -> tuple[int, ...]:
        """The start and the parameters of a phase; a loop or map has what is carried first, the tangents included."""
        graph, carried = self.graph, 0 if phase else self.graph.carried
        start = next(n for n, node in enumerate(graph.nodes) if node.op == "start" and phase_of(node) == phase)
        self.copy.add(start, graph.nodes[start])
        given = [index for at, index in self.key.given if at == phase]
        own = range(len(graph.phases[phase].params))
        order = [
            *((index, False) for index in own if index < carried),
            *((index, True) for index in given if index < carried),
            *((index, False) for index in own if index >= carried),
            *((index, True) for index in given if index >= carried),
        ]
        numbers: list[int] = []
        for new, (index, is_tangent) in enumerate(order):
            old = graph.phases[phase].params[index]
            node = replace(graph.nodes[old], attrs=Attrs(**{**graph.nodes[old].attrs, "index": new}))
            if is_tangent:
                numbers.append(self.draft.add(replace(node, name=f"{node.name}.t")))
                self.tangents[Port(old)] = Port(numbers[-1])
            else:
                self.copy.add(old, node)
                numbers.append(self.copy.ports[Port(old)].node)
        return tuple(numbers)

    def token(self, old: Port) -> Port:
        """The tangent of a port, zero included."""
        if old not in self.tangents:
            node = self.graph.nodes[old.node]
            self.writer.beside(node, self.copy.place(node.region), self.phases[old.node])
            return self.writer.zero(self.copy.ports[old])
        return self.tangents[old]

    def argument(self, old: Operand) -> Operand:
        """The tangent of an operand, zero included."""
        return self.token(old) if isinstance(old, Port) else Const(np.zeros_like(old.value))

    # -- nodes ---------------------------------------------------------------------------------------------

    def push(self, number: int, node: Node) -> None:
        """Write the tangents of a node that is there."""
        if node.op == "switch":
            value = node.inputs[1]
            if isinstance(value, Port) and value in self.tangents:
                pred = self.copy.operand(node.inputs[0])
                new = self.writer.add("switch", (pred, self.tangents[value]), node.types, Attrs(), self.writer.region)
                self.tangents |= {Port(number, side): Port(new, side) for side in (0, 1)}
        elif node.op == "merge":
            sides = [port for port in node.inputs if isinstance(port, Port)]
            if any(port in self.tangents for port in sides):
                tokens = [self.token(port) for port in sides]
                self.writer.beside(node, self.copy.place(node.region), self.phases[number])
                new = self.writer.add("merge", tokens, node.types, Attrs(), self.writer.region)
                self.tangents[Port(number)] = Port(new)
        else:
            self.apply_row(number, node)

    def apply_row(self, number: int, node: Node) -> None:
        """The tangents of a primitive, by its row."""
        given = [self.tangents.get(x) if isinstance(x, Port) else None for x in node.inputs]
        if not any(port is not None for port in given):
            return
        row = find(node.op).tangent
        if row is None or isinstance(row, NoGradient):
            raise _no_tangent(node, "" if row is None else row.reason)
        outputs = [self.copy.ports[Port(number, index)] for index in range(len(node.types))]
        applied = Applied(
            node.op,
            tuple(Term(self.writer, self.copy.operand(x)) for x in node.inputs),
            tuple(Term(self.writer, port) for port in outputs),
            Attrs(**{name: value for name, value in node.attrs.items() if name != "device"}),
            (False,) * len(node.inputs),
        )
        parts = row(applied, tuple(None if port is None else Term(self.writer, port) for port in given))
        for index, part in enumerate(parts):
            if part is not None and Port(number, index) in self.activity.ports:
                self.tangents[Port(number, index)] = self.writer.fitted(part, outputs[index])

    # -- calls, loops and maps -----------------------------------------------------------------------------

    def enter(self, number: int, node: Node, key: Key) -> None:
        """A call, resume, loop or map of the tangent copy in place of that of the original."""
        phase = phase_of(node)
        given = [index for at, index in key.given if at == phase]
        wanted = [index for at, index in key.wanted if at == phase]
        is_loop = node.op == "loop"
        if is_loop:  # the first result of its graph is the predicate, which the node does not give
            wanted = [index - 1 for index in wanted]
        link = 1 if node.op == "resume" else 0
        arguments = node.inputs[link:]
        carried = 0 if node.op in ("call", "resume") else self.functions[key.name].carried
        tangents = {index: self.argument(arguments[index]) for index in given}
        own = [self.copy.operand(operand) for operand in arguments]
        inputs = [
            *map(self.copy.operand, node.inputs[:link]),
            *own[:carried],
            *(tangents[index] for index in given if index < carried),
            *own[carried:],
            *(tangents[index] for index in given if index >= carried),
        ]
        attrs = node.attrs
        if node.op != "resume":
            attrs = Attrs(**{**attrs, ENTERS[node.op]: self.copy_of(key)})
        moved = replace(
            node,
            inputs=tuple(inputs),
            types=(*node.types, *(node.types[index] for index in wanted)),
            attrs=attrs,
            controls=tuple(self.copy.ports[port] for port in node.controls),
            region=self.copy.place(node.region),
        )
        new = self.draft.add(self.draft.triggered(moved, self.phases[number]))
        for index in range(len(node.types)):
            self.copy.ports[Port(number, index)] = Port(new, index)
        for at, index in enumerate(wanted):
            self.tangents[Port(number, index)] = Port(new, len(node.types) + at)


def _no_tangent(node: Node, reason: str) -> CaptureError:
    return CaptureError(
        f"`{node.op}` has no derivative{': ' + reason if reason else ''}",
        node.span,
        hint="give None as the tangent of what it works on, or compute the value in another way",
    )
