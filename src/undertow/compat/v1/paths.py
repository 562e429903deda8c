"""What leads where in one graph: ancestors and descendants of values, over data and control edges.

Nodes stand in an order in which each comes after what it uses, so one pass finds what comes below; no walk recurses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from undertow.ir.graph import Node, Port, Region

# A node that stands for a derivative until a program is made: it takes `ys`, a cotangent for each, and `xs`, and gives
# the cotangent of each x. No other file of the library knows it.
DERIVATIVE = "derivative"
# An attribute of an assignment that an optimizer wrote, gone when a program is made.
UPDATE = "update"


def sources(node: Node) -> Iterator[Port]:
    """What a node waits for."""
    return (port for port in (*node.inputs, *node.controls) if isinstance(port, Port))


def ancestors(nodes: Sequence[Node], ports: Iterable[Port]) -> set[int]:
    """The nodes that these values need, those that give them included."""
    found: set[int] = set()
    todo = [port.node for port in ports]
    while todo:
        number = todo.pop()
        if number not in found:
            found.add(number)
            todo += [port.node for port in sources(nodes[number])]
    return found


def descendants(nodes: Sequence[Node], ports: Collection[Port], roots: Collection[int] = ()) -> set[int]:
    """The nodes that need one of these values, or one of these nodes; the roots are not included."""
    found: set[int] = set()
    for number, node in enumerate(nodes):
        if any(port in ports or port.node in found or port.node in roots for port in sources(node)):
            found.add(number)
    return found


def is_inside(regions: Sequence[Region], inner: int, outer: int) -> bool:
    """Is a region another one, or below it?"""
    at: int | None = inner
    while at is not None and at != outer:
        at = regions[at].parent
    return at is not None
