"""A placed graph as text: its parts one after the other, each as a static graph, then the edges that cross.

>>> placed = parse_placed('''
... placed 1 parts=2 edges=1
...
... part 0 sites=[] inputs=[0] fetches=[] regions=[0] origins=[0, 1, 1]
... static 1 "f.0"
... inputs x
... main main ^start
...   start: ctl = start
...   x: f64     = input index=0
...   x.to1: ctl = send x edge=0 part=1
...
... part 1 sites=[] inputs=[] fetches=[0] regions=[0] origins=[0, 1, 2]
... static 1 "f.1"
... fetches y
... main main ^start
...   start: ctl   = start
...   x.from0: f64 = recv edge=0 part=0 ^start
...   y: f64       = multiply x.from0, 2.0:f64
...
... edges
... edge 0 x: 0 -> 1
... ''')
>>> placed.edges
(Edge(name='x', source=0, target=1),)
>>> parse_placed(dump_placed(placed)) == placed
True
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NoReturn

from undertow.ir.dump import dump
from undertow.ir.graph import Array, StaticGraph
from undertow.ir.implied import VERSION
from undertow.ir.line import Line, fail
from undertow.ir.literal import dump_constants, quote, show_attr
from undertow.ir.parse import parse
from undertow.ir.placed import Edge, Part, Placed

_NUMBERS = ("sites", "inputs", "fetches", "regions", "origins")


def dump_placed(placed: Placed, spans: bool = True) -> str:
    """The text of a placed graph; `parse_placed(dump_placed(x), placed_constants(x)) == x`."""
    lines = [f"placed {VERSION} parts={len(placed.parts)} edges={len(placed.edges)}", ""]
    for number, part in enumerate(placed.parts):
        numbers = " ".join(f"{key}={show_attr(getattr(part, key))}" for key in _NUMBERS)
        lines += [f"part {number} {numbers}", dump(part.graph, spans)]
    lines.append("edges")
    lines += [
        f"edge {number} {quote(edge.name)}: {edge.source} -> {edge.target}" for number, edge in enumerate(placed.edges)
    ]
    return "\n".join(lines) + "\n"


def placed_constants(placed: Placed) -> dict[str, Array]:
    """The arrays that the text only refers to, by digest."""
    return {name: array for part in placed.parts for name, array in dump_constants(part.graph).items()}


def parse_placed(text: str, constants: Mapping[str, Array] | None = None) -> Placed:
    """Read the text of a placed graph. `constants` holds the arrays that it refers to."""
    rows = text.split("\n")
    heads = [number for number, row in enumerate(rows) if _is_head(row)]
    first = next((Line(number, row) for number, row in enumerate(rows, 1) if row.strip()), Line(1, ""))
    first.expect("placed")
    if first.integer("the version of the format") != VERSION:
        fail(first.number, f"only format {VERSION} is supported", first.text)
    counts = [_counted(first, key) for key in ("parts", "edges")]
    first.end()
    if not heads or rows[heads[-1]].split() != ["edges"]:
        fail(len(rows), "expected the table of `edges` after the parts")
    parts = [_part(rows, begin, end, constants) for begin, end in pairwise(heads)]
    for number, at in enumerate(heads[:-1]):
        if rows[at].split()[1] != str(number):
            fail(at + 1, f"expected part number {number}", rows[at])
    edges = _edges(rows, heads[-1] + 1, len(parts))
    if [len(parts), len(edges)] != counts:
        fail(first.number, f"there are {len(parts)} parts and {len(edges)} edges", first.text)
    return Placed(tuple(parts), tuple(edges))


def _is_head(row: str) -> bool:
    """Does a part begin here, or the table of edges? (A node may have such a name, but not at the left.)"""
    return row.startswith("part ") or row.split() == ["edges"]


def _counted(line: Line, key: str) -> int:
    line.expect(key)
    line.expect("=")
    return line.integer("a number")


def _part(rows: Sequence[str], begin: int, end: int, constants: Mapping[str, Array] | None) -> Part:
    head = Line(begin + 1, rows[begin])
    head.expect("part")
    head.integer("the number of the part")
    numbers = {key: _numbers(head, key) for key in _NUMBERS}
    head.end()
    # Empty lines before it, so that errors tell the line of the whole text.
    graph = parse("\n" * (begin + 1) + "\n".join(rows[begin + 1 : end]), constants)
    if not isinstance(graph, StaticGraph):
        fail(begin + 2, "a part is a static graph, not a library", rows[begin])
    counted = (graph.sites, graph.inputs, graph.fetches, graph.regions, graph.nodes)
    for (key, listed), of in zip(numbers.items(), counted, strict=True):
        if len(listed) != len(of):
            fail(begin + 1, f"`{key}` has {len(listed)} numbers, and the part has {len(of)}", rows[begin])
    return Part(graph, **numbers)


def _numbers(line: Line, key: str) -> tuple[int, ...]:
    line.expect(key)
    line.expect("=")
    value = line.attr()
    if not isinstance(value, tuple) or not all(type(number) is int for number in value):
        fail(line.number, f"`{key}` must be numbers, as in [0, 1]", line.text)
    return tuple(number for number in value if isinstance(number, int))


def _edges(rows: Sequence[str], begin: int, parts: int) -> list[Edge]:
    edges: list[Edge] = []
    for line in (Line(number, row) for number, row in enumerate(rows[begin:], begin + 1) if row.strip()):
        line.expect("edge")
        if line.integer("the number of the edge") != len(edges):
            _refuse(line, f"expected edge number {len(edges)}")
        name = line.name("the name of what crosses")
        line.expect(":")
        source = line.integer("a part")
        line.expect("->")
        target = line.integer("a part")
        line.end()
        if not (0 <= source < parts and 0 <= target < parts):
            _refuse(line, f"there are parts 0 to {parts - 1}")
        edges.append(Edge(name, source, target))
    return edges


def _refuse(line: Line, what: str) -> NoReturn:
    fail(line.number, what, line.text)
