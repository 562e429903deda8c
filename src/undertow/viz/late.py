"""How late arguments look: a colour and a number for each, on all that computes it.

What is computed at once looks as ever. An edge into the callee over which a late argument would come is bold: nothing
moves there, since the callee computes the argument itself, where it needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from undertow.ir.graph import Port, StaticGraph
from undertow.viz.layout import edges_of
from undertow.viz.parts import fill_of


@dataclass(frozen=True, slots=True)
class Needs:
    """What is to be seen of the late arguments of a graph."""

    names: tuple[str, ...]  # of late arguments
    of: tuple[tuple[int, ...], ...]  # by node: the late argument that it is computed for, if any
    handing: frozenset[Port]  # what hands late arguments over

    bold = "by need"  # what the legend says of bold edges
    width = 190.0  # of an entry of the legend

    def reaching(self, count: int) -> Needs:
        """The same for a graph that goes on with Var nodes up to so many nodes."""
        return replace(self, of=(*self.of, *[()] * (count - len(self.of))))

    def fill(self, node: int) -> str | None:
        """The colour of a node; None: its own."""
        return self.colour(self.of[node][0]) if self.of[node] else None

    def colour(self, argument: int) -> str:
        return fill_of(argument + 1)

    def number(self, node: int) -> str:
        """What is written on a node."""
        return "+".join(str(argument + 1) for argument in self.of[node])

    def said(self, argument: int) -> str:
        """What the legend says of a late argument."""
        return f"{argument + 1} {self.names[argument]}"

    def tip(self, node: int) -> str:
        """What the tooltip of a node says."""
        return ", ".join(f"by need, for {self.names[argument]}" for argument in self.of[node]) or "at once"

    def is_bold(self, port: Port, targets: Sequence[int]) -> bool:
        return port in self.handing


def needs_of(graph: StaticGraph, cones: Sequence[tuple[str, str, Sequence[str]]]) -> Needs:
    """The late arguments of a graph: for each its name, the node that hands it over, and those that compute it.

    A call or loop is several nodes, whose names begin with its own.
    """
    of: list[list[int]] = [[] for _ in graph.nodes]
    handing: set[Port] = set()
    names = [cone[0] for cone in cones]
    for argument, (_, over, inside) in enumerate(cones):
        cone = {*inside, over}
        for number, node in enumerate(graph.nodes):
            is_of_site = "site" in node.attrs and any(node.name.startswith(f"{name}.") for name in inside)
            if node.name in cone or is_of_site:
                of[number].append(argument)
            if node.name == over:
                handing |= {edge.port for edge in edges_of(graph) if edge.port.node == number}
    return Needs(tuple(names), tuple(map(tuple, of)), frozenset(handing))
