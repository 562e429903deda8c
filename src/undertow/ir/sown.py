"""What is sown below a collector: `sow` nodes of a call that has a `reap` beside it, and of all that it enters.

A call inside that has a `reap` of its own is another collector, and keeps what is sown below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from undertow.ir.graph import FunctionGraph, Node
from undertow.ir.structure import ENTERS, SOWS
from undertow.ir.walk import link_of, reachable


def reaps(graph: FunctionGraph) -> dict[int, int]:
    """The calls that are collectors, each with its `reap`."""
    return {link_of(node): number for number, node in enumerate(graph.nodes) if node.op == "reap"}


def entered_within(graph: FunctionGraph) -> list[str]:
    """The names of the graphs that a graph enters, except by calls that are collectors."""
    collectors = reaps(graph)
    return [
        node.attrs.text(ENTERS[node.op])
        for number, node in enumerate(graph.nodes)
        if node.op in ENTERS and number not in collectors
    ]


def sown_below(functions: Mapping[str, FunctionGraph], name: str) -> Iterator[tuple[FunctionGraph, Node]]:
    """The `sow` nodes whose values belong to a collector around a graph, each with its own graph."""
    # (A library that was read from a file may name graphs that it has not.)
    for below in reachable([name], lambda name: [x for x in entered_within(functions[name]) if x in functions]):
        for node in functions[below].nodes:
            if node.op in SOWS:
                yield functions[below], node
