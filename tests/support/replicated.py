"""Libraries some of whose functions have several devices."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace

from undertow.ir.graph import FunctionGraph, Library, StaticGraph
from undertow.ir.walk import reachable
from undertow.ops.effects import is_stateful


def on_devices(library: Library, functions: Collection[str], devices: Sequence[str]) -> Library:
    """The library with these devices for whole functions, their loops and maps: as `@ut.device([...])` says it."""

    def bodies(name: str) -> list[str]:
        nodes = library.functions[name].nodes
        return [node.attrs.text("body") for node in nodes if node.op in ("loop", "map")]

    chosen = reachable(functions, bodies)

    def placed(graph: FunctionGraph) -> FunctionGraph:
        nodes = tuple(
            node
            if node.op in ("start", "param", "switch", "merge")
            else replace(node, attrs=node.attrs | {"device": ",".join(devices)})
            for node in graph.nodes
        )
        return replace(graph, nodes=nodes)

    graphs = library.functions.items()
    return Library({name: placed(graph) if name in chosen else graph for name, graph in graphs}, library.main)


def some_functions(library: Library, chance: random.Random) -> list[str]:
    """Functions that may have replicas, at least one."""
    names = [name for name, graph in library.functions.items() if graph.kind == "function"]
    return chance.sample(names, chance.randrange(1, len(names) + 1))


def parts_of(graph: StaticGraph, others: int = 0) -> list[int]:
    """The part of each node: that of worker k is k + 1, and `others` have no device."""
    parts = []
    for node in graph.nodes:
        device = str(node.attrs.get("device", ""))
        parts.append(0 if is_stateful(node.op) else int(device.partition(":")[2]) + 1 if device else others)
    return parts
