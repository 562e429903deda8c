"""The markers, and reachability in a graph: ancestors and descendants, over data and control edges.

Nodes stand in an order in which each comes after what it uses, so one pass finds what comes below; no walk recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from undertow.errors import GraphError
from undertow.ir.graph import Node, Operand, Port, Region

# A node that stands for a derivative: it takes `ys`, a cotangent for each, and `xs`, and gives the cotangent of each x.
DERIVATIVE = "derivative"
# An attribute of an assignment that an optimizer wrote.
UPDATE = "update"


def parts_of(node: Node) -> tuple[tuple[Port, ...], tuple[Operand, ...], tuple[Port, ...]]:
    """The ys of a derivative, their cotangents, and the xs."""
    count = node.attrs.integer("ys")
    ys = tuple(port for port in node.inputs[:count] if isinstance(port, Port))
    xs = tuple(port for port in node.inputs[2 * count :] if isinstance(port, Port))
    return ys, node.inputs[count : 2 * count], xs


def leaves_its_branch(derivative: Node) -> GraphError:
    """The error of a derivative in a branch whose path is not all in there."""
    return GraphError(
        "a gradient inside a tf.cond depends on operations outside it",
        derivative.span,
        hint="call tf.gradients outside the tf.cond, and use its result inside",
    )


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


def in_order(numbers: Iterable[int], needs: Callable[[int], Iterable[int]]) -> Iterator[int]:
    """These, and what they need, each after what it needs itself."""
    done: set[int] = set()
    for number in numbers:
        stack = [number]
        while stack:
            missing = [item for item in needs(stack[-1]) if item not in done] if stack[-1] not in done else []
            if missing:
                stack.extend(reversed(missing))
            elif (item := stack.pop()) not in done:
                done.add(item)
                yield item
