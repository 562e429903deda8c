"""A static graph in parts, one for each worker; `passes/cut.py` makes them."""

from __future__ import annotations

from dataclasses import dataclass

from undertow.ir.graph import StaticGraph


@dataclass(frozen=True, slots=True)
class Part:
    """What one worker runs. Edges have numbers, which Send and Recv name; all other numbers are the whole graph's."""

    graph: StaticGraph
    origins: tuple[int, ...]  # by node of this graph: the node that it is a copy of, sends, receives, or adds up
    regions: tuple[int, ...]  # by region
    sites: tuple[int, ...]  # by site: labels in tags that cross
    inputs: tuple[int, ...]  # by input
    fetches: tuple[int, ...]  # by fetch


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge that crosses."""

    name: str
    source: int  # parts
    target: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A graph in parts."""

    parts: tuple[Part, ...]
    edges: tuple[Edge, ...]

    def __str__(self) -> str:
        from undertow.ir.placed_text import dump_placed  # it imports this file

        return dump_placed(self, spans=False)
