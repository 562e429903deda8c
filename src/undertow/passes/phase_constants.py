"""Constant propagation across phases: an argument that every resume passes as the same constant becomes that constant.

The cotangent of a loss is 1, and additions pass it on unchanged: so it is 1 in all activations that only add to the
loss, and what the backward phase computes from it and forward values alone can be computed in the forward phase.

Devices: a constant has none; what uses it keeps its own.

The lanes of a map are given the rows of an array: if all rows are equal, that row is the constant.

>>> from undertow.ir.text import dump, parse
>>> library, count = propagate_constants(parse('''
... library 1 main=main
... main main(x: f64) -> (f, d.f)
...   f: f64 = call x callee="f.grad"
...   d.f: f64 = resume f, 1.0:f64 phase=1
... function f.grad(x: f64) -> (y)
...   y: f64 = multiply x, 2.0:f64
...   phase 1(d.y: f64) -> (d.x)
...   d.x: f64 = multiply d.y, 2.0:f64
... '''))
>>> print(dump(library).partition("\\n\\n")[2].partition("\\n\\n")[2], end="")
function f.grad(x: f64) -> (y)
  y: f64     = multiply x, 2.0:f64
  phase 1(d.y: f64) -> (d.x)
  d.y_2: f64 = identity 1.0:f64 ^start~1
  d.x: f64   = multiply d.y_2, 2.0:f64
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from undertow.ir.draft import Copy
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.walk import link_of, origin, phase_of, target_of
from undertow.passes.lattice import VARIES, Varies, propagate
from undertow.types import CTL, Type

Param = tuple[str, int, int]  # graph, phase, index


def propagate_constants(library: Library) -> tuple[Library, Counter[str]]:
    """The library with constants for the arguments of later phases that are always the same, and their number."""
    known = propagate(_arguments(library))
    constants = {param: value for param, value in known.items() if isinstance(value, Const)}
    if not constants:
        return library, Counter()
    functions = {name: _with_constants(graph, constants) for name, graph in library.functions.items()}
    return Library(functions, library.main), Counter({"constant argument": len(constants)})


def _arguments(library: Library) -> dict[Param, list[Const | Varies | Param]]:
    """The arguments of every parameter of a later phase: a constant, another such parameter, or VARIES."""
    sources: dict[Param, list[Const | Varies | Param]] = {}
    for name, graph in library.functions.items():
        used = {x for node in graph.nodes for x in node.inputs}
        for phase, visit in enumerate(graph.phases[1:], 1):
            for index, param in enumerate(visit.params):
                if graph.nodes[param].types[0] != CTL and Port(param) in used:
                    sources[name, phase, index] = []
    for name, graph in library.functions.items():
        for node in graph.nodes:
            if node.op != "resume":
                continue
            target, phase, is_map = target_of(graph, node), phase_of(node), graph.nodes[link_of(node)].op == "map"
            for index, operand in enumerate(node.inputs[1:]):
                if (target, phase, index) in sources:
                    param = library.functions[target].phases[phase].params[index]
                    type_ = library.functions[target].nodes[param].types[0]
                    source = _source(name, graph, _row(graph, operand) if is_map else operand, type_)
                    sources[target, phase, index].append(source)
    return sources


def _row(graph: FunctionGraph, operand: Operand) -> Operand | None:
    """The row of an array that every lane of a map is given, if all rows are known to be the same."""
    operand = origin(graph, operand)
    if isinstance(operand, Const):
        rows = operand.value
        return Const(rows[0]) if len(rows) > 0 and rows.tobytes() == rows[0].tobytes() * len(rows) else None
    node = graph.nodes[operand.node]
    if node.op != "broadcast_to":
        return None
    value = origin(graph, node.inputs[0])
    if isinstance(value, Const):
        is_row = value.value.ndim == node.types[0].rank and len(value.value) == 1
        return Const(value.value[0]) if is_row else None
    maker = graph.nodes[value.node]
    if maker.op != "expand_dims" or maker.attrs["axes"] != (0,):
        return None
    return maker.inputs[0] if graph.type_of(maker.inputs[0]).rank + 1 == node.types[0].rank else None


def _source(name: str, graph: FunctionGraph, operand: Operand | None, type_: Type) -> Const | Varies | Param:
    if operand is None:
        return VARIES
    value = origin(graph, operand)
    if isinstance(value, Const):
        return value if value.type == type_ and np.isfinite(value.value).all() else VARIES
    node = graph.nodes[value.node]
    if node.op == "param" and phase_of(node) > 0 and node.types[0] == type_:
        return name, phase_of(node), node.attrs.integer("index")
    return VARIES


def _with_constants(graph: FunctionGraph, constants: dict[Param, Const]) -> FunctionGraph:
    """The graph with constants in place of parameters, which stay, unused."""
    replaced = {
        param: constants[graph.name, phase, index]
        for phase, visit in enumerate(graph.phases)
        for index, param in enumerate(visit.params)
        if (graph.name, phase, index) in constants
    }
    if not replaced:
        return graph
    copy = Copy(graph)
    params: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        new = copy.add(number)
        if node.op == "param":
            params[number] = new
        if number in replaced:
            stand_in = Node("identity", (replaced[number],), node.types, node.name, span=node.span)
            copy.ports[Port(number)] = Port(copy.draft.add(copy.draft.triggered(stand_in, phase_of(node))))
    phases = [
        replace(copy.phase(number), params=tuple(params[param] for param in visit.params))
        for number, visit in enumerate(graph.phases)
    ]
    return copy.freeze(phases)
