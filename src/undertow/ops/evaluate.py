"""Evaluates a library of pure graphs with the reference kernels: the f of an Assign-f, which runs inside one firing.

No token is scheduled here. Nodes are computed in their order in the text; what stands in the branch not taken is dead.
Calls, loops and maps are on a stack of our own.

>>> from undertow.ir.text import parse
>>> library = parse('''
... library 1 main=main
... main main(old: f64, x: f64) -> (y)
...   p: bool = less old, x
...   branch if1 p
...   to.if: f64, f64 = switch p, x
...   to: f64 = add to.if#0, 0.5:f64 in if1.then
...   keep.if: f64, f64 = switch p, old
...   y: f64 = merge to, keep.if#1
... ''')
>>> [value.item() for old in (1.0, 9.0) for value in evaluate_library(library, [np.float64(old), np.float64(3)])]
[3.5, 9.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from undertow.errors import InternalError, RecursionLimit, RunError
from undertow.ir.budget import check, start_step
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Operand
from undertow.ir.structure import ENTERS, is_primitive
from undertow.ops.effects import is_pure
from undertow.ops.lanes import stack_lanes
from undertow.ops.op import CATALOGUE, Value

DEEPEST = 20_000  # nested calls: a second or two
_DEAD = object()
_UNDERSTOOD = ("start", "param", "switch", "merge", *(op for op in ENTERS if op != "tangent"))


def may_evaluate(node: Node) -> bool:
    """Is it an operator that is evaluated here: a pure one, or one that moves values?"""
    return is_pure(node.op) if is_primitive(node.op) else node.op in _UNDERSTOOD


def evaluate_library(library: Library, arguments: Sequence[Value]) -> list[Value]:
    """The results of main for these arguments; raises what an operator raises."""
    start_step("an update")
    top = _Activation(library.functions[library.main], list(arguments), None)
    current: _Activation | None = top
    while current is not None:
        if current.at == len(current.graph.nodes):
            current = _leave(library, current)
        else:
            current = _step(library, current)
    return top.results


@dataclass(slots=True, eq=False)
class _Activation:
    """A visit to a graph: the outputs of its nodes so far."""

    graph: FunctionGraph
    arguments: list[Value]
    caller: _Activation | None
    depth: int = 0  # of activations around it
    at: int = 0
    values: list[Sequence[Value]] = field(default_factory=list)
    lanes: list[list[Value]] = field(default_factory=list)  # of the map that it is at: the results so far
    results: list[Value] = field(default_factory=list)

    def value(self, operand: Operand) -> Value:
        return operand.value[()] if isinstance(operand, Const) else self.values[operand.node][operand.index]

    def put(self, values: Sequence[Value]) -> None:
        """The outputs of the node that it is at."""
        self.values.append(values)
        self.at += 1


def _step(library: Library, here: _Activation) -> _Activation:
    """Compute a node; or enter a graph, and stay at the node. Returns what goes on."""
    node = here.graph.nodes[here.at]
    inputs = [here.value(operand) for operand in node.inputs]
    if node.op == "merge":
        here.put([next((value for value in inputs if value is not _DEAD), _DEAD)])
    elif any(value is _DEAD for value in (*inputs, *map(here.value, node.controls))):
        here.put([_DEAD] * len(node.types))
    elif node.op == "start":
        here.put([np.True_])
    elif node.op == "param":
        here.put([here.arguments[node.attrs.integer("index")]])
    elif node.op == "switch":
        here.put([inputs[1], _DEAD] if inputs[0] else [_DEAD, inputs[1]])
    elif node.op == "map":
        return _next_lane(library, here, inputs)
    elif node.op in ENTERS:
        return _enter(library.functions[node.attrs.text(ENTERS[node.op])], inputs, here)
    else:
        try:
            made = CATALOGUE[node.op].eval(inputs, node.attrs)
        except RunError as fault:
            fault.span = fault.span or node.span
            raise
        here.put([np.asarray(v, t.dtype.numpy)[()] for v, t in zip(made, node.types, strict=True)])
    return here


def _enter(graph: FunctionGraph, arguments: list[Value], caller: _Activation) -> _Activation:
    check()
    if caller.depth == DEEPEST:
        span = caller.graph.nodes[caller.at].span
        raise RecursionLimit(
            f"the function of an update makes more than {DEEPEST:,} nested calls", span, hint="is a base case reached?"
        )
    return _Activation(graph, arguments, caller, caller.depth + 1)


def _next_lane(library: Library, here: _Activation, inputs: list[Value]) -> _Activation:
    node = here.graph.nodes[here.at]
    body = library.functions[node.attrs.text("body")]
    count, done = len(inputs[0]), len(here.lanes)
    if any(len(array) != count for array in inputs[: body.carried]):
        raise RunError("a map over arrays of different lengths", node.span, hint="make them equally long")
    if done < count:
        return _enter(body, [*(x[done] for x in inputs[: body.carried]), *inputs[body.carried :]], here)
    columns = zip(*here.lanes, strict=True) if count else [()] * len(node.types)
    here.lanes = []
    here.put([stack_lanes(list(column), t) for column, t in zip(columns, node.types, strict=True)])
    return here


def _leave(library: Library, here: _Activation) -> _Activation | None:
    """Hand the results of a finished activation to the node that entered it."""
    here.results = [here.value(port) for port in here.graph.results]
    caller = here.caller
    if caller is None:
        return None
    if here.graph.kind == "map":
        caller.lanes.append(here.results)
    elif here.graph.kind == "function":
        caller.put(here.results)
    elif here.graph.kind == "loop":
        goes_on, *variables = here.results
        carried = here.graph.carried
        if goes_on:
            return _enter(here.graph, [*variables, *here.arguments[carried:]], caller)
        caller.put(here.arguments[:carried])
    else:
        raise InternalError(f"a graph of kind {here.graph.kind} was entered")
    return caller
