"""The markers, and reachability in a graph: ancestors and descendants, over data and control edges.

Nodes are in topological order, so one pass finds descendants; no walk recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from undertow.errors import GraphError
from undertow.ir.graph import Node, Operand, Port, Region

# The operator of a derivative: it takes `ys`, a cotangent for each, and `xs`, and gives the cotangent of each x.
DERIVATIVE = "derivative"
# The attribute of an assignment that an optimizer wrote.
UPDATE = "update"


def parts_of(node: Node) -> tuple[tuple[Port, ...], tuple[Operand, ...], tuple[Port, ...]]:
    """The ys of a derivative, their cotangents, and the xs."""
    count = node.attrs.integer("ys")
    ys = tuple(port for port in node.inputs[:count] if isinstance(port, Port))
    xs = tuple(port for port in node.inputs[2 * count :] if isinstance(port, Port))
    return ys, node.inputs[count : 2 * count], xs


def leaves_its_branch(derivative: Node) -> GraphError:
    """The error of a derivative in a branch whose path leaves the branch."""
    return GraphError(
        "a gradient inside a tf.cond depends on operations outside it",
        derivative.span,
        hint="call tf.gradients outside the tf.cond, and use its result inside",
    )


def sources(node: Node) -> Iterator[Port]:
    """The ports that a node waits for."""
    return (port for port in (*node.inputs, *node.controls) if isinstance(port, Port))


def ancestors(nodes: Sequence[Node], ports: Iterable[Port]) -> set[int]:
    """The nodes that these values need, including those that compute them."""
    needed: set[int] = set()
    todo = [port.node for port in ports]
    while todo:
        number = todo.pop()
        if number not in needed:
            needed.add(number)
            todo += [port.node for port in sources(nodes[number])]
    return needed


def descendants(nodes: Sequence[Node], ports: Collection[Port], roots: Collection[int] = ()) -> set[int]:
    """The nodes that need one of these values, or one of the roots; the roots are not included."""
    below: set[int] = set()
    for number, node in enumerate(nodes):
        if any(port in ports or port.node in below or port.node in roots for port in sources(node)):
            below.add(number)
    return below


def is_inside(regions: Sequence[Region], inner: int, outer: int) -> bool:
    """Is `inner` the region `outer`, or nested in it?"""
    at: int | None = inner
    while at is not None and at != outer:
        at = regions[at].parent
    return at is not None


def in_order(numbers: Iterable[int], needs: Callable[[int], Iterable[int]]) -> Iterator[int]:
    """These nodes, and what they need, in topological order."""
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
