"""Writes function graphs in library form by hand, node by node, and finds nodes of a graph by their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from undertow.errors import Span
from undertow.ir.graph import (
    Attr,
    Attrs,
    Const,
    FunctionGraph,
    Library,
    Node,
    Operand,
    Phase,
    Port,
    Region,
    StaticGraph,
)
from undertow.ir.walk import phase_attr
from undertow.types import CTL, Type, bool_, f64, i64

I64, F64, BOOL = Type(i64), Type(f64), Type(bool_)
FLOATS = f64[None]


def const(value: object) -> Const:
    return Const(np.asarray(value))


class Body:
    """Writes one function graph in library form, without any help: every switch is asked for."""

    def __init__(self, name: str, kind: str = "function", carried: int = 0, phases: int = 1) -> None:
        self.name, self.kind, self.carried = name, kind, carried
        self.nodes: list[Node] = []
        self.regions = [Region(kind, name)]
        self.params: list[list[int]] = [[] for _ in range(phases)]
        starts = tuple(self.add("start", name=f"start{p or ''}", **phase_attr(p)) for p in range(phases))
        self.regions[0] = Region(kind, name, starts=starts)

    def add(
        self,
        op: str,
        *inputs: Operand,
        types: Sequence[Type] = (CTL,),
        name: str = "",
        region: int = 0,
        controls: tuple[Port, ...] = (),
        **attrs: Attr,
    ) -> Port:
        number = len(self.nodes)
        span = Span(f"{self.name}.py", number + 1, function=self.name)
        fresh = name or f"{op}{number}"
        self.nodes.append(Node(op, inputs, tuple(types), fresh, region, Attrs(**attrs), controls, span))
        return Port(number)

    def op(self, op: str, *inputs: Operand, type: Type = I64, name: str = "", region: int = 0) -> Port:
        return self.add(op, *inputs, types=(type,), name=name, region=region)

    def param(self, name: str, type: Type = I64, phase: int = 0) -> Port:
        port = self.add("param", types=(type,), name=name, index=len(self.params[phase]), **phase_attr(phase))
        self.params[phase].append(port.node)
        return port

    def branch(self, pred: Port, parent: int = 0) -> tuple[int, int]:
        for side in (True, False):
            self.regions.append(Region("branch", "then" if side else "else", parent, pred, side))
        return len(self.regions) - 2, len(self.regions) - 1

    def switch(self, pred: Port, value: Operand, type: Type = I64, region: int = 0) -> tuple[Port, Port]:
        number = self.add("switch", pred, value, types=(type, type), region=region).node
        return Port(number, 0), Port(number, 1)

    def constant(self, value: object, pivot: Port, region: int) -> Port:
        """A constant as a token of a region."""
        operand = const(value)
        return self.add("identity", operand, types=(operand.type,), region=region, controls=(pivot,))

    def pivots(self, pred: Port, then: int, otherwise: int, parent: int = 0) -> tuple[Port, Port]:
        """Pivots for both sides of a branch, from that of its parent."""
        sides = self.switch(pred, self.regions[parent].starts[0], CTL, parent)
        for number, port in zip((then, otherwise), sides, strict=True):
            old = self.regions[number]
            self.regions[number] = Region("branch", old.name, old.parent, old.pred, old.side, (port,))
        return sides

    def call(self, callee: str, *args: Operand, name: str, types: Sequence[Type] = (I64,), region: int = 0) -> Port:
        return self.add("call", *args, types=types, name=name, region=region, callee=callee)

    def finish(self, *results: Sequence[Port]) -> FunctionGraph:
        phases = tuple(Phase(tuple(p), tuple(r)) for p, r in zip(self.params, results, strict=True))
        return FunctionGraph(tuple(self.nodes), tuple(self.regions), self.name, self.kind, phases, self.carried)


def library(*graphs: FunctionGraph) -> Library:
    return Library({graph.name: graph for graph in graphs}, graphs[0].name)


def main_of(callee: str, types: Sequence[Type] = (I64,), results: Sequence[Type] = (I64,)) -> FunctionGraph:
    """A main graph that makes one call: results = callee(inputs)."""
    main = Body("main", "main")
    inputs = [main.param(f"x{index}", type) for index, type in enumerate(types)]
    made = main.call(callee, *inputs, name=callee, types=results)
    return main.finish([Port(made.node, index) for index in range(len(results))])


def by_name(graph: StaticGraph) -> dict[str, Node]:
    return {node.name: node for node in graph.nodes}


def names_of(graph: StaticGraph, ports: Sequence[Operand]) -> list[str]:
    shown = []
    for port in ports:
        if isinstance(port, Port):
            shown.append(graph.nodes[port.node].name + (f"#{port.index}" if port.index else ""))
        else:
            shown.append(str(port.value))
    return shown
