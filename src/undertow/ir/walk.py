"""Ways to look around a graph: where a port's tokens live, who consumes them.

Every walk is a loop over a list; nothing here recurses, whatever the depth of the program.
"""

from __future__ import annotations

from collections.abc import Callable

from undertow.ir.graph import Graph, Node, Port


def port_regions(graph: Graph) -> Callable[[Port], int]:
    """A function from a port to the region that its tokens are live in.

    That is the region of its node, except that an output of Switch belongs to the branch of that side.
    """
    branches = graph.branches()

    def region_of(port: Port) -> int:
        node = graph.nodes[port.node]
        if node.op != "switch":
            return node.region
        pred = node.inputs[0]
        assert isinstance(pred, Port)
        return branches[pred, node.region][port.index]

    return region_of


def phase_of(node: Node) -> int:
    """The phase that a start, param, call, return or resume belongs to; the first is not written out."""
    return node.attrs.integer("phase") if "phase" in node.attrs else 0


def phase_attr(phase: int) -> dict[str, int]:
    """The inverse of `phase_of`: what to give to Attrs."""
    return {"phase": phase} if phase else {}


def body_of(graph: Graph) -> list[int]:
    """For each region, the region whose frames it lives in: branches share the frames of what they stand in."""
    owner: list[int] = []
    for number, region in enumerate(graph.regions):
        # A branch comes after its parent, so one pass in order is enough.
        owner.append(owner[region.parent] if region.kind == "branch" and region.parent is not None else number)
    return owner
