"""What the text of a graph omits because it is implied: nodes of a signature, regions that a name determines.

The printer leaves out exactly what the reader adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from undertow.errors import Span
from undertow.ir.graph import Attrs, FunctionGraph, Node, Port, Region
from undertow.ir.walk import phase_attr
from undertow.types import CTL, Type

VERSION = 1


def start_name(phase: int) -> str:
    return "start" if phase == 0 else f"start~{phase}"


def start_node(phase: int, name: str, span: Span | None) -> Node:
    return Node("start", (), (CTL,), name, attrs=Attrs(**phase_attr(phase)), span=span)


def param_node(phase: int, index: int, name: str, type_: Type, span: Span | None) -> Node:
    return Node("param", (), (type_,), name, attrs=Attrs(index=index, **phase_attr(phase)), span=span)


def starts_of(nodes: Sequence[Node]) -> tuple[Port, ...]:
    return tuple(Port(number) for number, node in enumerate(nodes) if node.op == "start")


def signature_block(graph: FunctionGraph, phase: int) -> range | None:
    """The start and param nodes of a phase if they are consecutive, so that its signature implies them."""
    params = graph.phases[phase].params
    starts = [
        port.node for port in starts_of(graph.nodes) if graph.nodes[port.node].attrs == Attrs(**phase_attr(phase))
    ]
    if len(starts) != 1 or (phase == 0 and starts[0] != 0):
        return None
    block = range(starts[0], starts[0] + 1 + len(params))
    if params != tuple(block[1:]) or block.stop > len(graph.nodes):
        return None
    start, *nodes = graph.nodes[block.start : block.stop]
    same = start == start_node(phase, start.name, start.span) and all(
        len(node.types) == 1 and node == param_node(phase, index, node.name, node.types[0], node.span)
        for index, node in enumerate(nodes)
    )
    return block if same else None


def is_pair(regions: Sequence[Region], number: int) -> bool:
    """Do a region and the next one print as one `branch` line?"""
    if number + 1 >= len(regions):
        return False
    yes, no = regions[number], regions[number + 1]
    stem = yes.name.removesuffix(".then")
    sides = [
        Region("branch", stem + end, yes.parent, yes.pred, side, tuple(Port(p.node, k) for p in yes.starts))
        for k, (end, side) in enumerate(((".then", True), (".else", False)))
    ]
    return [yes, no] == sides


def prefix(name: str) -> str:
    return name.rpartition("/")[0]


def homes_of(names: Sequence[str], paths: Sequence[str]) -> dict[str, int]:
    """Regions by unique name or path. A node called `name/...` or `path/...` need not state its region."""
    found: dict[str, int] = {}
    for words in (paths, names):
        count = Counter(words)
        found.update({word: number for number, word in enumerate(words) if count[word] == 1})
    return found
