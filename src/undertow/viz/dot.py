"""A static graph in Graphviz' language: a cluster per region, the colours and labels of the SVG picture.

>>> from undertow.ir.text import parse
>>> print(dot(parse('''
... static 1 tiny
... inputs x
... main main ^start
...   start: ctl = start
...   x: f32     = input index=0
...   y: f32     = multiply x, 2.0:f32
... ''')), end="")
digraph "tiny" {
graph [...]
node [...]
edge [...]
subgraph cluster_0 {
label="main"; color="#c4d4e8"; fillcolor="#f1f5fa"
n0 [label="start" ...]
n1 [label="x\\ninput" ...]
n2 [label="· × 2.0\\ny" ...]
}
n1 -> n2
}
"""

from __future__ import annotations

from collections.abc import Sequence

from undertow.ir.graph import StaticGraph
from undertow.ir.text import dump_nodes
from undertow.ir.walk import grouped
from undertow.viz.layout import edges_of
from undertow.viz.parts import CUT, Marks
from undertow.viz.svg import box_colours, edge_colour, head, label, plain, style_of
from undertow.viz.variables import with_variables

_SHAPES = {
    "box": 'shape=box style="rounded,filled"',
    "pill": 'shape=box style="rounded,filled"',
    "widening": "shape=trapezium",
    "narrowing": "shape=invtrapezium",
    "down": "shape=invhouse",
    "up": "shape=house",
    "var": "shape=ellipse",
}
_EDGES = {"data": "", "control": "style=dashed arrowsize=0.6", "variable": "style=dashed"}
_EDGES |= dict.fromkeys(("call", "return"), "constraint=false")


def dot(graph: StaticGraph, marks: Marks | None = None) -> str:
    """The graph as text for `dot -Tsvg`; with `marks`, these in colours, and some edges bold and dashed."""
    texts, graph = dump_nodes(graph), with_variables(graph)
    texts += [f"var {node.name}: {node.types[0]}" for node in graph.nodes[len(texts) :]]
    marks = None if marks is None else marks.reaching(len(graph.nodes))
    lines = [
        f"digraph {_quote(graph.name)} {{",
        'graph [bgcolor="#fcfbf9" fontname="monospace" fontsize=11 style="rounded,filled" labeljust=l]',
        'node [fontname="monospace" fontsize=11 style=filled margin="0.08,0.04" height=0.3]',
        'edge [color="#59606a" arrowsize=0.7]',
        *_clusters(graph, texts, marks),
    ]
    for edge in edges_of(graph):
        maker = graph.nodes[edge.port.node]
        look = [_EDGES[edge.kind]] if _EDGES[edge.kind] else []
        if marks is not None and marks.is_bold(edge.port, (edge.target,)):
            look = [*(["constraint=false"] if "constraint=false" in look else []), 'style="bold,dashed" penwidth=2.4']
            look.append(f"color={_quote(CUT)}")
        elif edge.kind != "data":
            look.append(f"color={_quote(edge_colour(graph, edge.kind, edge.port))}")
        if maker.op == "switch":
            look.append(f'taillabel="{"TF"[edge.port.index]}" fontsize=9')
        lines.append(f"n{edge.port.node} -> n{edge.target}" + (f" [{' '.join(look)}]" if look else ""))
    return "\n".join([*lines, "}"]) + "\n"


def _clusters(graph: StaticGraph, texts: Sequence[str], marks: Marks | None) -> list[str]:
    """The regions, each with its nodes and inner regions; with a stack, since branches nest without limit."""

    nodes = grouped((node.region, number) for number, node in enumerate(graph.nodes))
    inside = grouped((r.parent if r.kind == "branch" else None, number) for number, r in enumerate(graph.regions))
    lines: list[str] = []
    stack: list[int | None] = list(reversed(inside.get(None, [])))  # None: a cluster ends here
    while stack:
        at = stack.pop()
        if at is None:
            lines.append("}")
            continue
        fill, line = box_colours(graph.regions[at])
        lines.append(f"subgraph cluster_{at} {{")
        lines.append(f'label={_quote(head(graph.regions[at]))}; color="{line}"; fillcolor="{fill}"')
        lines += [_node(graph, number, texts[number], marks) for number in nodes.get(at, ())]
        stack.append(None)
        stack += reversed(inside.get(at, []))
    return lines


def _node(graph: StaticGraph, number: int, tip: str, marks: Marks | None) -> str:
    node = graph.nodes[number]
    style = style_of(graph, node)
    text, fill = "\n".join(part for part in label(graph, number) if part), style.fill
    if marks is not None:
        text, fill = f"{text}\n[{marks.number(number)}]" if marks.number(number) else text, marks.fill(number) or fill
        tip += f"\n{marks.tip(number)}"
    tip += f"\n{node.span.show()}" if node.span is not None else ""
    look = f'{_SHAPES[style.shape]} fillcolor="{fill}" color="{style.line}"'
    return f"n{number} [label={_quote(text)} {look} tooltip={_quote(tip)}]"


def _quote(text: str) -> str:
    escaped = plain(text).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
