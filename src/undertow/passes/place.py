"""Where operators run: the part of each node of a static graph, as `ut.device` says.

Library passes keep the device of a node: what replaces it, its derivative too, is where it was. A node without one runs
where main does, in part 0; so does what reads and assigns variables, since the committed copy of these is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from undertow.errors import GraphError
from undertow.ir.graph import StaticGraph
from undertow.ops.effects import is_stateful


def places_of(graph: StaticGraph, devices: Sequence[str]) -> list[int]:
    """The part of each node; part k is `devices[k]`."""
    parts = {name: number for number, name in enumerate(devices)}
    places = []
    for node in graph.nodes:
        device = node.attrs.get("device")
        if not device or is_stateful(node.op):
            places.append(0)
            continue
        if device not in parts:
            raise GraphError(
                f"{node.name} is placed on {device!r}, and there is no such worker",
                node.span,
                hint=f"there are {', '.join(devices)}",
            )
        places.append(parts[str(device)])
    return places
