"""Settle later phases: an argument of a resume that is one constant wherever the phase is asked for becomes that.

The cotangent of a loss is 1 where it is asked for, and additions hand it on as it is: so in all activations that only
add to the loss it is 1, and what the way back makes of it and of forward values alone can be computed on the way there.

The lattice is optimistic, since recursive calls hand on what they were given: an argument is unknown until somebody
gives it something, a constant while all give that one, and otherwise nothing. Lanes of a map are given rows: an array
of equal rows is one constant for them.

>>> from undertow.ir.text import dump, parse
>>> library, count = settle(parse('''
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
from collections.abc import Iterator

import numpy as np

from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.structure import ENTERS
from undertow.ir.walk import node_phases, phase_of
from undertow.types import CTL, Type

Param = tuple[str, int, int]  # graph, phase, index


class _Nothing:
    """What is no constant."""


NOTHING = _Nothing()
Value = Const | _Nothing


def settle(library: Library) -> tuple[Library, Counter[str]]:
    """The library with constants where arguments of later phases are always the same, and how many these are."""
    given = _arguments(library)
    known: dict[Param, Value] = {}
    has_changed = True
    while has_changed:
        has_changed = False
        for param, sources in given.items():
            found = _meet(known.get(source) if isinstance(source, tuple) else source for source in sources)
            if found is not None and known.get(param) != found:
                known[param], has_changed = found, True
    constants = {param: value for param, value in known.items() if isinstance(value, Const)}
    if not constants:
        return library, Counter()
    functions = {name: _with_constants(graph, constants) for name, graph in library.functions.items()}
    return Library(functions, library.main), Counter({"constant argument": len(constants)})


def _meet(values: Iterator[Value | None]) -> Value | None:
    """What all of them are; None while nothing is known."""
    found: Value | None = None
    for value in values:
        if value is None or value == found:
            continue
        if found is not None or isinstance(value, _Nothing):
            return NOTHING
        found = value
    return found


def _arguments(library: Library) -> dict[Param, list[Value | Param]]:
    """What every parameter of a later phase is given: a constant, another such parameter, or something else."""
    given: dict[Param, list[Value | Param]] = {}
    for name, graph in library.functions.items():
        used = {x for node in graph.nodes for x in node.inputs}
        for phase, visit in enumerate(graph.phases[1:], 1):
            for index, param in enumerate(visit.params):
                if graph.nodes[param].types[0] != CTL and Port(param) in used:
                    given[name, phase, index] = []
    for name, graph in library.functions.items():
        for node in graph.nodes:
            if node.op != "resume":
                continue
            link = node.inputs[0]
            assert isinstance(link, Port)
            entered = graph.nodes[link.node]
            target = entered.attrs.text(ENTERS[entered.op])
            phase = phase_of(node)
            for index, operand in enumerate(node.inputs[1:]):
                if (target, phase, index) in given:
                    param = library.functions[target].phases[phase].params[index]
                    type_ = library.functions[target].nodes[param].types[0]
                    source = _source(name, graph, _row(graph, operand) if entered.op == "map" else operand, type_)
                    given[target, phase, index].append(source)
    return given


def _row(graph: FunctionGraph, operand: Operand) -> Operand | None:
    """What every lane of a map is given of an array, if that is the same for all."""
    operand = _origin(graph, operand)
    if isinstance(operand, Const):
        rows = operand.value
        return Const(rows[0]) if len(rows) > 0 and bool((rows == rows[:1]).all()) else None
    node = graph.nodes[operand.node]
    if node.op != "broadcast_to":
        return None
    value = _origin(graph, node.inputs[0])
    if isinstance(value, Const):
        is_row = value.value.ndim == node.types[0].rank and len(value.value) == 1
        return Const(value.value[0]) if is_row else None
    maker = graph.nodes[value.node]
    if maker.op != "expand_dims" or maker.attrs["axes"] != (0,):
        return None
    return maker.inputs[0] if graph.type_of(maker.inputs[0]).rank + 1 == node.types[0].rank else None


def _source(name: str, graph: FunctionGraph, operand: Operand | None, type_: Type) -> Value | Param:
    if operand is None:
        return NOTHING
    origin = _origin(graph, operand)
    if isinstance(origin, Const):
        return origin if origin.type == type_ and np.isfinite(origin.value).all() else NOTHING
    node = graph.nodes[origin.node]
    if node.op == "param" and phase_of(node) > 0 and node.types[0] == type_:
        return name, phase_of(node), node.attrs.integer("index")
    return NOTHING


def _origin(graph: FunctionGraph, operand: Operand) -> Operand:
    """What a value was before it was handed into branches."""
    while isinstance(operand, Port) and graph.nodes[operand.node].op == "switch":
        operand = graph.nodes[operand.node].inputs[1]
    return operand


def _with_constants(graph: FunctionGraph, constants: dict[Param, Const]) -> FunctionGraph:
    """The graph with constants in place of parameters, which nobody needs any more."""
    found = {
        param: constants[graph.name, phase, index]
        for phase, visit in enumerate(graph.phases)
        for index, param in enumerate(visit.params)
        if (graph.name, phase, index) in constants
    }
    if not found:
        return graph
    copy = Copy(graph, Draft(graph.kind, graph.regions[0].name))
    phases = node_phases(graph)
    params: dict[int, int] = {}
    for number, node in enumerate(graph.nodes):
        copy.add(number, node, phase=phases[number])
        if node.op == "param":
            params[number] = copy.ports[Port(number)].node
        if number in found:
            stand_in = Node("identity", (found[number],), node.types, node.name, span=node.span)
            made = copy.draft.add(copy.draft.triggered(stand_in, phase_of(node)))
            copy.ports[Port(number)] = Port(made)
    made_phases = [
        Phase(tuple(params[param] for param in visit.params), tuple(copy.ports[port] for port in visit.results))
        for visit in graph.phases
    ]
    return copy.draft.freeze(graph, made_phases, graph.carried, (copy.ports[port] for port in graph.shared))
