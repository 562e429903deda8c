"""The longest path from each node to the end of its body: a priority for schedulers.

What most nodes wait for, one after the other, should not wait itself. A call counts as the nodes that pass its
arguments and results on, since nobody knows how deep it goes: the path of an activation is what follows in it, and in
all that wait for it, which schedulers add up as calls are made.
"""

from __future__ import annotations

from undertow.ir.budget import paced
from undertow.ir.index import StaticIndex
from undertow.ir.walk import awaited, in_order, is_inward


def nodes_ahead(index: StaticIndex) -> list[int]:
    """For each node, how many nodes the longest path has that begins after it."""
    nodes, bodies = index.nodes, index.bodies
    before: dict[int, list[int]] = {}
    for number, node in enumerate(paced(nodes)):
        ports = (port for port in awaited(node) if bodies[port.node] == bodies[number])
        before[number] = [port.node for port in ports if not is_inward(nodes[port.node], port.index)]
    for visit in index.visits.values():
        for back in visit.backs:
            before[back] += [*visit.starts, *visit.arguments]
    ahead = [0] * len(nodes)
    for number in reversed(in_order(before)):
        for other in before[number]:
            ahead[other] = max(ahead[other], ahead[number] + 1)
    return ahead
