"""Graphs in parts: which part runs what, for as many workers as there are."""

from __future__ import annotations

from collections.abc import Sequence

from undertow.engines.waves.placed import PlacedPlan, hosted_nodes
from undertow.errors import UndertowError, brief
from undertow.ir.graph import Library, StaticGraph
from undertow.passes.cut import cut
from undertow.passes.partition import partition
from undertow.passes.place import device_names, places_of

PLACEMENTS = ("devices", "auto", "none")


def check_placement(placement: object) -> str:
    """One of the placements."""
    if not isinstance(placement, str) or placement not in PLACEMENTS:
        raise UndertowError(f"unknown placement {brief(placement)}", hint=f"one of {', '.join(PLACEMENTS)}")
    return placement


def names_devices(library: Library) -> bool:
    """Does a program say anywhere what runs on workers?"""
    return any(node.attrs.get("device") for graph in library.functions.values() for node in graph.nodes)


def parts_of_nodes(graph: StaticGraph, workers: int, placement: str) -> list[int]:
    """The part of each node: where the program says or, if it is found ("auto"), where it pays. Part 0 is here."""
    hosted = hosted_nodes(graph)
    places: Sequence[int] = places_of(graph, device_names(workers))
    if placement == "auto":
        kept = {n: place for n, place in enumerate(places) if "device" in graph.nodes[n].attrs}
        kept.update(dict.fromkeys(hosted, 0))
        places = partition(graph, workers + 1, kept)
    return [0 if number in hosted else place for number, place in enumerate(places)]


def placed_plan(graph: StaticGraph, workers: int, placement: str) -> PlacedPlan | None:
    """Its plan, for as many parts as are used; None if all of it runs here."""
    places = parts_of_nodes(graph, workers, placement)
    last = max(places, default=0)
    return PlacedPlan(graph, cut(graph, places, last + 1)) if last else None
