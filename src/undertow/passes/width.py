"""Which graphs make calls that gain from sharing waves.

Calls into a recursion do, unless it is *narrow*: it works on numbers, and no activation makes two calls at once. Then
its waves never widen, and each lane runs alone, which is faster than a map (`plan/schedule.py`).
"""

from __future__ import annotations

from collections.abc import Container

from undertow.ir.graph import FunctionGraph, Library, Node, Port
from undertow.ir.structure import ENTERS, is_primitive
from undertow.ir.walk import callees_first, entered_by, origin
from undertow.ops.op import CATALOGUE
from undertow.ops.random import ROWS as RANDOM

_MOST_OPERANDS = 3
_DRAWS = frozenset(row.name for row in RANDOM if row.name != "fold_in")


def wide_graphs(library: Library) -> set[str]:
    """The graphs in recursions that are not narrow, and those that enter them."""
    wide: set[str] = set()
    blocking: set[str] = set()  # what is recursive, or enters it
    for component in callees_first(library):
        graphs = [library.functions[name] for name in component]
        entered = {name for graph in graphs for name in entered_by(graph)}
        is_recursive = not entered.isdisjoint(component)
        if is_recursive or entered & blocking:
            blocking.update(component)
        if entered & wide or (is_recursive and not all(_is_narrow(graph, blocking) for graph in graphs)):
            wide.update(component)
    return wide


def _is_narrow(graph: FunctionGraph, blocking: Container[str]) -> bool:
    return graph.kind != "map" and all(_is_number(graph, node) for node in graph.nodes) and _is_linear(graph, blocking)


def _is_number(graph: FunctionGraph, node: Node) -> bool:
    """Does a node work on numbers? An array may come as a parameter, be handed on, and be indexed."""
    if not is_primitive(node.op):
        arrays = [x for x in node.inputs if graph.type_of(x).rank]
        is_handed_on = all(_is_param(graph, x) for x in arrays if isinstance(x, Port))
        return is_handed_on and (node.op in ("param", "switch") or not any(type_.rank for type_ in node.types))
    row = CATALOGUE[node.op]
    if row.effect or row.state is not None or node.op in _DRAWS or len(node.inputs) > _MOST_OPERANDS:
        return False
    read = node.inputs[1:] if node.op == "index" else node.inputs
    return len(node.types) == 1 and not node.types[0].rank and not any(graph.type_of(x).rank for x in read)


def _is_param(graph: FunctionGraph, port: Port) -> bool:
    source = origin(graph, port)
    return isinstance(source, Port) and graph.nodes[source.node].op == "param"


def _is_linear(graph: FunctionGraph, blocking: Container[str]) -> bool:
    """Does each call wait for the one before, or stand on another side of a branch?"""
    rounds: list[int] = []  # by node: how many calls come before it
    seen: dict[tuple[int, int], object] = {}  # (region, round) -> the call, or the branch that makes it
    for number, node in enumerate(graph.nodes):
        ports = [x for x in (*node.inputs, *node.controls) if isinstance(x, Port)]
        before = max((rounds[port.node] for port in ports), default=0)
        blocks = node.op in ENTERS and node.attrs.text(ENTERS[node.op]) in blocking
        rounds.append(before + blocks)
        if not blocks:
            continue
        region, item = node.region, ("call", number)
        while True:
            if seen.setdefault((region, before), item) != item:
                return False
            row = graph.regions[region]
            if row.parent is None or row.pred is None:
                break
            region, item = row.parent, ("branch", *row.pred)  # type: ignore[assignment]
    return True
