"""Ways to look around a graph: where a port's tokens live, which phase a node waits for.

Every walk is a loop over a list; nothing here recurses, whatever the depth of the program.
"""

from __future__ import annotations

from collections.abc import Callable

from undertow.ir.graph import Graph, Node, Port, StaticGraph

# The operators between tags in a static graph, each with the kind of its site.
STARTS = {"call_start": "call", "enter_start": "loop", "fan_start": "map"}
INWARD = {"call": "call", "enter": "loop", "next": "loop", "fan": "map"}  # what they emit is for the body entered
BACK = {"return": "call", "exit": "loop", "gather": "map"}  # what they take comes from that body


def is_inward(node: Node, index: int) -> bool:
    """Does this output of a static node go into another frame? (Output 1 of a start token orders the way back.)"""
    return node.op in INWARD or (node.op in STARTS and index == 0)


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


def body_of(graph: Graph) -> list[int]:
    """For each region, the region whose frames it lives in: branches share the frames of what they stand in."""
    owner: list[int] = []
    for number, region in enumerate(graph.regions):
        # A branch comes after its parent, so one pass in order is enough.
        owner.append(owner[region.parent] if region.kind == "branch" and region.parent is not None else number)
    return owner


# --------------------------------------------------------------------------------------------------------------
# Phases


def phase_of(node: Node) -> int:
    """The phase that a start, param, call, return or resume says it belongs to; the first is not written out."""
    return node.attrs.integer("phase") if "phase" in node.attrs else 0


def phase_attr(phase: int) -> dict[str, int]:
    """The inverse of `phase_of`: what to give to Attrs."""
    return {"phase": phase} if phase else {}


def node_phases(graph: Graph) -> list[int]:
    """For each node, the last phase of its own frame that it waits for.

    Every site visits phases in order, so a frame that has been visited in the first v phases fires just the nodes
    below v. What comes from other frames does not count: a Return waits for what its start token waits for.
    """
    is_static = isinstance(graph, StaticGraph)
    phases = [0] * len(graph.nodes)
    users: list[list[int]] = [[] for _ in graph.nodes]  # in the same frame
    for number, node in enumerate(graph.nodes):
        if node.op in ("start", "param"):
            phases[number] = phase_of(node)
        is_from_elsewhere = node.op in BACK or node.op == "outer"
        for port in node.controls if is_from_elsewhere else (*node.inputs, *node.controls):
            if not isinstance(port, Port):
                continue
            maker = graph.nodes[port.node]
            if is_static and is_inward(maker, port.index):
                phases[number] = phase_of(maker)
            else:
                users[port.node].append(number)
    # The latest first, so that every node is reached once.
    for source in sorted((n for n, phase in enumerate(phases) if phase), key=lambda n: -phases[n]):
        todo = [source]
        while todo:
            at = todo.pop()
            for user in users[at]:
                if phases[user] < phases[at]:
                    phases[user] = phases[at]
                    todo.append(user)
    return phases
