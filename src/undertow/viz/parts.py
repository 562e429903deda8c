"""How a placed graph looks: a colour and a number for each part, and which edges cross.

The colours are pale ones of Okabe and Ito's palette, which most people tell apart; the number on each node says the
same without colour, and where its value goes. What has copies in several parts is white, and has the numbers of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from undertow.ir.graph import Port, StaticGraph
from undertow.ir.placed import Placed
from undertow.viz.layout import edges_of

CUT = "#111111"  # the colour of edges that cross
_SHARED = "#ffffff"
_FILLS = ("#ececec", "#fbd79b", "#b9e0f7", "#a3dcc8", "#f7f0a4", "#f3bd97", "#ecc9dc", "#a8cde8")


class Marks(Protocol):
    """What a picture shows of a graph's nodes and edges beyond what they are: parts, or late arguments."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def bold(self) -> str: ...
    @property
    def width(self) -> float: ...
    def reaching(self, count: int) -> Marks: ...
    def fill(self, node: int) -> str | None: ...
    def colour(self, mark: int) -> str: ...
    def number(self, node: int) -> str: ...
    def said(self, mark: int) -> str: ...
    def tip(self, node: int) -> str: ...
    def is_bold(self, port: Port, targets: Sequence[int]) -> bool: ...


def fill_of(number: int) -> str:
    """One of the pale colours."""
    return _FILLS[number % len(_FILLS)]


@dataclass(frozen=True, slots=True)
class Parts:
    """What is to be seen of the parts of a graph."""

    names: tuple[str, ...]  # of parts
    of: tuple[tuple[int, ...], ...]  # by node: the parts that have a copy of it
    sent: tuple[tuple[int, ...], ...]  # by node: the parts that get what it makes
    crossing: frozenset[tuple[Port, int]]  # edges that cross: the port, and the node that it goes to

    bold = "crosses"  # what the legend says of bold edges
    width = 110.0  # of an entry of the legend

    def reaching(self, count: int) -> Parts:
        """The same for a graph that goes on with Var nodes up to so many nodes: variables are in part 0."""
        more = count - len(self.of)
        return replace(self, of=(*self.of, *[(0,)] * more), sent=(*self.sent, *[()] * more))

    def fill(self, node: int) -> str:
        """The colour of a node."""
        return self.colour(self.of[node][0]) if len(self.of[node]) == 1 else _SHARED

    def colour(self, part: int) -> str:
        return fill_of(part)

    def number(self, node: int) -> str:
        """The numbers of its parts, and of those that it sends to, as they are written on a node: "1→0"."""
        sent = "→" + ",".join(map(str, self.sent[node])) if self.sent[node] else ""
        return "+".join(map(str, self.of[node])) + sent

    def said(self, part: int) -> str:
        """What the legend says of a part."""
        return f"{part} {self.names[part]}"

    def tip(self, node: int) -> str:
        """What the tooltip of a node says."""
        return ", ".join(map(self.said, self.of[node])) or "in no part"

    def is_bold(self, port: Port, targets: Sequence[int]) -> bool:
        """Does an edge to one of these nodes cross?"""
        return any((port, target) in self.crossing for target in targets)


def parts_of(graph: StaticGraph, placed: Placed, names: Sequence[str]) -> Parts:
    """The parts of the nodes of a graph that was cut: copies have the names of what they are copies of."""
    numbers = {node.name: number for number, node in enumerate(graph.nodes)}
    copies: list[list[int]] = [[] for _ in graph.nodes]
    for number, part in enumerate(placed.parts):
        for node in part.graph.nodes:
            if node.op not in ("send", "recv") and node.name in numbers:
                copies[numbers[node.name]].append(number)
    arriving: dict[str, set[int]] = {}  # by the name of what crosses: the parts that get it
    for edge in placed.edges:
        arriving.setdefault(edge.name, set()).add(edge.target)

    def receivers(port: Port) -> set[int]:
        maker = graph.nodes[port.node]
        return arriving.get(maker.name if len(maker.types) == 1 else f"{maker.name}.{port.index}", set())

    crossing = frozenset(
        (edge.port, edge.target) for edge in edges_of(graph) if not receivers(edge.port).isdisjoint(copies[edge.target])
    )
    # Not every Recv is at the end of an edge of the whole graph: a predicate may be wanted for a branch's start alone.
    sent = tuple(
        tuple(sorted({part for index in range(len(node.types)) for part in receivers(Port(number, index))}))
        for number, node in enumerate(graph.nodes)
    )
    return Parts(tuple(names), tuple(map(tuple, copies)), sent, crossing)
