"""Finds parameters that are only looked up by rows, in a function and everything it enters.

Their gradients can be IndexedRows. The structure of a result must be known at capture, so this analysis runs on graphs
as they are captured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from undertow.frontend.trace.graft import with_callees
from undertow.ir.graph import FunctionGraph, Node, Operand, Port
from undertow.ir.structure import ENTERS, LINKED

_Place = tuple[str, int]  # a graph, and which parameter of it


def only_rows(graphs: Mapping[str, FunctionGraph], root: str) -> frozenset[int]:
    """The parameters of the graph `root` that are only looked up by rows; none while it is unfinished."""
    if root not in graphs:
        return frozenset()
    known = with_callees(graphs, root)
    comes_from: dict[_Place, list[_Place]] = {}
    todo: list[_Place] = []  # those with another use
    for name, graph in known.items():
        todo += [(name, index) for index, param in enumerate(graph.params) if not graph.nodes[param].types[0].shape]
        for index, node, at in _uses(graph):
            inner = known.get(node.attrs.text(ENTERS[node.op])) if node is not None and node.op in ENTERS else None
            if inner is not None and at >= inner.carried:  # carried and mapped values are other values inside
                comes_from.setdefault((inner.name, at), []).append((name, index))
            elif node is None or not _is_look_up(node, at):
                todo.append((name, index))
    others: set[_Place] = set()
    while todo:
        place = todo.pop()
        if place not in others:
            others.add(place)
            todo += comes_from.get(place, ())
    return frozenset(k for k in range(len(known[root].params)) if (root, k) not in others)


def _uses(graph: FunctionGraph) -> Iterator[tuple[int, Node | None, int]]:
    """The uses of parameters: (parameter, node, operand index); the node is None for a use as a result."""
    origins: dict[Operand, int] = {Port(param): index for index, param in enumerate(graph.params)}
    for number, node in enumerate(graph.nodes):
        for at, operand in enumerate(node.inputs):
            if operand in origins and node.op == "switch":
                origins[Port(number, 0)] = origins[Port(number, 1)] = origins[operand]
            elif operand in origins:
                yield origins[operand], node, at
        if node.op in LINKED:
            # A call with a gradient counts as another use: cotangents of its arguments come back here.
            link = node.inputs[0]
            assert isinstance(link, Port)
            yield from ((origins[x], node, 0) for x in graph.nodes[link.node].inputs if x in origins)
    for phase in graph.phases:
        yield from ((origins[port], None, at) for at, port in enumerate(phase.results) if port in origins)


def _is_look_up(node: Node, at: int) -> bool:
    if node.op == "index":
        return at == 0 and 0 in node.attrs.integers("axes")
    return node.op == "dim" or (node.op == "take" and at == 0 and node.attrs.integer("axis") == 0)
