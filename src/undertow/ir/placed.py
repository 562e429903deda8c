"""A static graph in parts, one for each worker; `passes/cut.py` makes them."""

from __future__ import annotations

from dataclasses import dataclass

from undertow.ir.graph import StaticGraph


@dataclass(frozen=True, slots=True)
class Part:
    """What one worker runs. Edges have numbers, which Send and Recv name; `sites` are those of the whole graph."""

    graph: StaticGraph
    sites: tuple[int, ...]  # of the whole graph, by site of this one: labels in tags that cross
    inputs: tuple[int, ...]  # of the whole graph, by input
    fetches: tuple[int, ...]


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
