"""Var nodes of a picture: one in each region for each variable that operators there use, with an edge to each of them.

Graphs name variables in attributes. As in Abadi, Isard and Murray, "A Computational Model for TensorFlow" (MAPL 2017),
several Var nodes may be of one variable, so that no edge has to leave its region.
"""

from __future__ import annotations

from dataclasses import replace

from undertow.ir.graph import Attrs, Node, Port, StaticGraph
from undertow.ir.variables import held_by, variables_in

VAR = "var"  # the operator of these nodes, which are in no graph that runs


def with_variables(graph: StaticGraph) -> StaticGraph:
    """The graph with Var nodes after all others, each the first inputs of the operators that use it."""
    known = variables_in(graph.nodes)
    if not known:
        return graph
    nodes = list(graph.nodes)
    made: dict[tuple[int, str], Port] = {}
    for number, node in enumerate(graph.nodes):
        ports = []
        for name in held_by(node):
            if (node.region, name) not in made:
                made[node.region, name] = Port(len(nodes))
                nodes.append(Node(VAR, (), (known[name],), name, node.region, Attrs(variable=name)))
            ports.append(made[node.region, name])
        if ports:
            nodes[number] = replace(node, inputs=(*ports, *node.inputs))
    return replace(graph, nodes=tuple(nodes))
