"""A static graph as an SVG picture: a box per body and branch, a shape per kind of operator, tooltips with the source.

The picture has its own light background, so it reads the same on light and dark pages. No scripts, no outside fonts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from xml.sax.saxutils import escape

from undertow.ir.graph import Const, Node, Operand, Port, Region, StaticGraph
from undertow.ir.structure import BACK, BODIES, INWARD, READS, SOURCES, STATIC, Role
from undertow.ir.text import INFIX, dump_nodes, show_const
from undertow.ir.walk import is_parameter
from undertow.types import CTL
from undertow.viz.layout import Layout, Point, Rect, layout
from undertow.viz.parts import CUT, Marks
from undertow.viz.variables import VAR, with_variables

_MAIN, _SUB, _HEAD = 12, 10, 11  # font sizes: on a node, below that, over a box
_ADVANCE = 0.602  # width of a letter of a monospaced font, in font sizes
_LONGEST = 26  # letters of a label
_CORNER = 7.0

# --------------------------------------------------------------------------------------------------------------
# Looks

_TYPESET = {"-": "−", "*": "×", "/": "÷", "==": "=", "!=": "≠", "<=": "≤", ">=": "≥"}


@dataclass(frozen=True, slots=True)
class Style:
    """How a kind of operator looks."""

    shape: str
    fill: str
    line: str


_PRIMITIVE = Style("box", "#ffffff", "#8d949e")
_ORDER = Style("pill", "#ececea", "#b3b5b8")  # order tokens are drawn pale
_BRANCH = ("#ffedbd", "#c08400")
_SITES = {"call": ("#e6dcfb", "#7648cf"), "loop": ("#d2efea", "#168577"), "map": ("#fde3d3", "#c2570c")}
_PALE = {"hoist": ("#f1ecfc", "#7648cf"), "hoist_read": ("#f1ecfc", "#7648cf"), "outer": ("#eef7f5", "#168577")}
_SHAPES = {
    Role.SOURCE: "pill",
    Role.SWITCH: "widening",
    Role.MERGE: "narrowing",
    **dict.fromkeys((Role.START, Role.ARGUMENT, Role.NEXT, Role.HOIST), "down"),
    **dict.fromkeys((Role.BACK, Role.READ), "up"),
}
STYLES = {
    op: Style(_SHAPES[row.role], *_PALE.get(op, _SITES.get(row.site, _BRANCH)))
    for op, row in STATIC.items()
    if row.role in _SHAPES
}
_VARIABLE = Style("var", "#d8f1f0", "#0b7285")
STYLES |= {
    VAR: _VARIABLE,
    "start": _ORDER,
    "input": Style("pill", "#d9e9fb", "#2f74c0"),
    "return": Style("up", "#f8dcf0", "#b3368c"),
}
_BODY_FILL = {"main": "#f1f5fa", "function": "#f5f2fb", "loop": "#edf7f5", "map": "#fdf4ee"}
_BODY_LINE = {"main": "#c4d4e8", "function": "#cfc3ea", "loop": "#b4dbd4", "map": "#f0cdb6"}
_SIDE_FILL = {True: "#e9f5e6", False: "#fbeae6"}
_SIDE_LINE = {True: "#b5d6ad", False: "#e6bfb5"}

_CSS = f"""
text{{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328}}
.m{{font-size:{_MAIN}px;font-weight:600;text-anchor:middle}}
.s{{font-size:{_SUB}px;fill:#5a616b;text-anchor:middle}}
.h{{font-size:{_HEAD}px;font-weight:600;fill:#4b525c;stroke-width:4px;stroke-linejoin:round;paint-order:stroke}}
.t{{font-size:9px;font-weight:700;text-anchor:middle}}
.e{{fill:none;stroke-width:1.4}}
.control{{stroke-width:1.1;stroke-dasharray:4 3}}
.call,.return{{stroke-width:1.7}}
.faint{{stroke-width:1.1;stroke-dasharray:4 3;opacity:.75}}
"""

_VARIABLE_CSS = ".variable{stroke-dasharray:7 3}\n"
_MARKS_CSS = """\
.cut{stroke-width:2.8;stroke-dasharray:9 4}
.p{font-size:9px;font-weight:700;fill:#1f2328}
"""


def style_of(graph: StaticGraph, node: Node) -> Style:
    """The look of a node."""
    if is_parameter(graph, node):
        style = Style("narrowing", *_SITES["loop" if graph.regions[node.region].kind == "loop" else "call"])
    else:
        style = STYLES.get(node.op, _PRIMITIVE)
    if node.types and node.types[0] == CTL and style is not _PRIMITIVE:
        return Style(style.shape, _ORDER.fill, _ORDER.line if style is _ORDER else style.line)
    return style


# --------------------------------------------------------------------------------------------------------------
# Labels


def label(graph: StaticGraph, number: int) -> tuple[str, str]:
    """The text of a node: the operator with its constants, and its name below."""
    node = graph.nodes[number]
    short = node.short_name
    if "site" in node.attrs:
        main, sub = f"{node.op.removesuffix('_start')} @{node.attrs['site']}", short
        if node.op.endswith("_start"):
            sub = "start"
        elif node.op in INWARD:
            sub = short.rsplit(".", 1)[-1] if node.op != "next" else short.removesuffix(".next")
    elif node.op == VAR:
        main, sub = short, f"var {node.types[0]}"
    elif node.op in SOURCES or node.op in READS or is_parameter(graph, node):
        main, sub = short, node.op
    elif node.op == "switch":
        main, sub = "switch", "start" if node.types[0] == CTL else short.rsplit(".if", 1)[0]
    else:
        main, sub = _primitive(node, short)
    main, sub = _clip(main), _clip(sub)
    return main, sub if sub != main else ""


def _primitive(node: Node, short: str) -> tuple[str, str]:
    operands = [_operand(operand) for operand in node.inputs]
    named = short if not short.startswith(node.op) else node.op
    if node.op in INFIX and len(operands) == 2:
        sign = INFIX[node.op]
        return f"{operands[0]} {_TYPESET.get(sign, sign)} {operands[1]}", named
    if node.op == "identity" and len(operands) == 1 and isinstance(node.inputs[0], Const):
        return operands[0], named
    if any(isinstance(operand, Const) for operand in node.inputs):
        return node.op, ", ".join(operands)
    return node.op, named


def _operand(operand: Operand) -> str:
    if not isinstance(operand, Const):
        return "·"
    text = show_const(operand) if operand.value.size <= 4 else repr(operand.type)
    return text.rsplit(":", 1)[0]


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _size(main: str, sub: str, style: Style) -> tuple[float, float]:
    room = {"widening": 26.0, "narrowing": 26.0, "var": 34.0}.get(style.shape, 18.0)  # for slanted sides
    letters = 24.0 if style.shape == "widening" else 0.0  # T and F stand beside the name
    width = room + _ADVANCE * max(len(main) * _MAIN, len(sub) * _SUB + letters)
    return max(40.0, width), (36.0 if sub else 26.0) + (6.0 if style.shape in ("down", "up") else 0.0)


# --------------------------------------------------------------------------------------------------------------
# Drawing


def svg(graph: StaticGraph, marks: Marks | None = None) -> str:
    """The picture of a static graph as SVG text; with `marks`, these in colours, with numbers, and a legend."""
    tips, count = dump_nodes(graph), len(graph.nodes)
    graph = with_variables(graph)
    tips += [f"var {node.name}: {node.types[0]}" for node in graph.nodes[count:]]
    marks = None if marks is None else marks.reaching(len(graph.nodes))
    labels = [label(graph, number) for number in range(len(graph.nodes))]
    styles = [style_of(graph, node) for node in graph.nodes]
    if marks is not None:
        fills = (marks.fill(number) or style.fill for number, style in enumerate(styles))
        styles = [replace(style, fill=fill) for style, fill in zip(styles, fills, strict=True)]
    sizes = [_size(*text, style) for text, style in zip(labels, styles, strict=True)]
    heads = [head(region) for region in graph.regions]
    placed = layout(graph, sizes, [len(head) * _HEAD * _ADVANCE + 18.0 for head in heads])
    legend = [] if marks is None else _legend(marks, placed.height)
    width = round(placed.width if marks is None else max(placed.width, marks.width * (len(marks.names) + 1)))
    height = round(placed.height + (0 if marks is None else 30))
    pieces = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img"><title>{_text(graph.name)}: {count} nodes, {len(graph.sites)} sites</title>',
        f"<style>{_CSS}{_VARIABLE_CSS * (len(graph.nodes) > count)}{'' if marks is None else _MARKS_CSS}</style>",
        f'<rect width="{width}" height="{height}" rx="10" fill="#fcfbf9"/>',
        *(_box(graph.regions[number], rect) for number, rect in placed.regions.items()),
        *_routes(graph, placed, marks),
    ]
    for number, rect in placed.regions.items():
        fill, _ = box_colours(graph.regions[number])
        at = f'x="{rect.x + 9:.1f}" y="{rect.y + 14:.1f}"'
        pieces.append(f'<text class="h" {at} stroke="{fill}">{_text(heads[number])}</text>')
    badges: list[str] = []
    fetched = {port.node for port in graph.fetches}
    for number, tip in enumerate(tips):
        look = styles[number], 2.4 if number in fetched else 1.3
        if marks is not None:
            tip += f"\n{marks.tip(number)}"
            corner = placed.nodes[number]
            badges.append(
                f'<text class="p" x="{corner.x - 2:.1f}" y="{corner.y - 2:.1f}">{marks.number(number)}</text>'
            )
        pieces.append(_node(graph.nodes[number], tip, placed.nodes[number], labels[number], *look))
    return "\n".join([*pieces, *badges, *legend, "</svg>"]) + "\n"


def head(region: Region) -> str:
    """The heading of a region's box."""
    if region.kind == "branch":
        return _clip(region.name.rsplit("/", 1)[-1])
    return _clip(region.name if region.kind == "main" else f"{region.kind} {region.name}")


def box_colours(region: Region) -> tuple[str, str]:
    """The fill and line colours of a region's box."""
    if region.kind == "branch":
        return _SIDE_FILL[region.side], _SIDE_LINE[region.side]
    return _BODY_FILL.get(region.kind, "#f4f4f4"), _BODY_LINE.get(region.kind, "#cccccc")


def _box(region: Region, rect: Rect) -> str:
    fill, line = box_colours(region)
    place = f'x="{rect.x:.1f}" y="{rect.y:.1f}" width="{rect.width:.1f}" height="{rect.height:.1f}"'
    return f'<rect {place} rx="8" fill="{fill}" stroke="{line}"/>'


_WAY_BACK = {BODIES[site]: op for op, site in BACK.items()}


def edge_colour(graph: StaticGraph, kind: str, port: Port) -> str:
    """The colour of an edge of this kind from a port."""
    maker = graph.nodes[port.node]
    if kind == "variable":
        return _VARIABLE.line
    if kind == "call":
        style = STYLES.get(maker.op, _PRIMITIVE)
        return (style if style.shape == "down" else STYLES["outer"]).line
    if kind == "return":
        body = graph.regions[maker.region]
        while body.kind == "branch" and body.parent is not None:
            body = graph.regions[body.parent]
        return STYLES[_WAY_BACK.get(body.kind, "return")].line
    return "#a0a5ab" if kind == "control" else "#59606a"


def _legend(marks: Marks, top: float) -> list[str]:
    """The marks below the picture, each with its colour, and what a bold edge means."""
    lines: list[str] = []
    for mark in range(len(marks.names)):
        x, fill = 12 + marks.width * mark, marks.colour(mark)
        lines.append(f'<rect x="{x:.1f}" y="{top + 4:.1f}" width="16" height="16" fill="{fill}" stroke="#59606a"/>')
        lines.append(f'<text class="h" x="{x + 22:.1f}" y="{top + 16:.1f}">{_text(_clip(marks.said(mark)))}</text>')
    x = 12 + marks.width * len(marks.names)
    lines.append(f'<path class="e cut" stroke="{CUT}" d="M{x:.1f} {top + 12:.1f}h28"/>')
    return [*lines, f'<text class="h" x="{x + 34:.1f}" y="{top + 16:.1f}">{marks.bold}</text>']


def _routes(graph: StaticGraph, placed: Layout, marks: Marks | None) -> Iterator[str]:
    # Control edges first, so that data edges lie above them.
    for route in sorted(placed.routes, key=lambda route: route.kind != "control"):
        colour = edge_colour(graph, route.kind, route.port)
        if marks is not None and marks.is_bold(route.port, route.targets):
            path = _square(route.points) if route.is_square else _curve(route.points)
            yield f'<path class="e cut" stroke="{CUT}" d="{path}"/>'
            if route.has_arrow:
                yield _arrow(route.points[-1], CUT)
            continue
        is_faint = route.kind != "control" and graph.type_of(route.port) == CTL
        path = _square(route.points) if route.is_square else _curve(route.points)
        yield f'<path class="e {route.kind}{" faint" if is_faint else ""}" stroke="{colour}" d="{path}"/>'
        if route.has_arrow:
            yield _arrow(route.points[-1], colour)


def _arrow(tip: Point, colour: str) -> str:
    return f'<path fill="{colour}" d="M{tip.x:.1f} {tip.y:.1f}l-3.6 -7h7.2z"/>'


def _curve(points: Sequence[Point]) -> str:
    """A curve that leaves and reaches every point vertically."""
    pieces = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
    for a, b in pairwise(points):
        if abs(a.x - b.x) < 0.05:
            pieces.append(f"V{b.y:.1f}")
        else:
            bend = (b.y - a.y) / 2
            pieces.append(f"C{a.x:.1f} {a.y + bend:.1f} {b.x:.1f} {b.y - bend:.1f} {b.x:.1f} {b.y:.1f}")
    return "".join(pieces)


def _square(points: Sequence[Point]) -> str:
    """Straight lines with round corners."""
    pieces = [f"M{points[0].x:.1f} {points[0].y:.1f}"]
    for a, b, c in zip(points, points[1:], points[2:], strict=False):
        into, out = _towards(b, a), _towards(b, c)
        pieces.append(f"L{into.x:.1f} {into.y:.1f}Q{b.x:.1f} {b.y:.1f} {out.x:.1f} {out.y:.1f}")
    pieces.append(f"L{points[-1].x:.1f} {points[-1].y:.1f}")
    return "".join(pieces)


def _towards(corner: Point, other: Point) -> Point:
    dx, dy = other.x - corner.x, other.y - corner.y
    length = max(abs(dx), abs(dy), 1e-9)
    step = min(_CORNER, length / 2) / length
    return Point(corner.x + dx * step, corner.y + dy * step)


def _node(node: Node, tip: str, rect: Rect, text: tuple[str, str], style: Style, line: float) -> str:
    x, y, w, h = rect.x, rect.y, rect.width, rect.height
    middle, main = x + w / 2, y + h / 2 + (-1.5 if text[1] else 4.2)
    if style.shape in ("down", "up"):
        main += -2.0 if style.shape == "down" else 3.0
    tip += f"\n{node.span.show()}" if node.span is not None else ""
    parts = [f"<g><title>{_text(tip)}</title>", _shape(style, x, y, w, h, line)]
    parts.append(f'<text class="m" x="{middle:.1f}" y="{main:.1f}">{_text(text[0])}</text>')
    if text[1]:
        parts.append(f'<text class="s" x="{middle:.1f}" y="{main + 12.5:.1f}">{_text(text[1])}</text>')
    if node.op == "switch":
        for at, letter, colour in ((0.5 / 3, "T", "#2c7a1f"), (2.5 / 3, "F", "#b3391f")):
            parts.append(
                f'<text class="t" x="{x + w * at:.1f}" y="{y + h - 4:.1f}" style="fill:{colour}">{letter}</text>'
            )
    return "".join([*parts, "</g>"])


def _shape(style: Style, x: float, y: float, w: float, h: float, line: float) -> str:
    look = f'fill="{style.fill}" stroke="{style.line}" stroke-width="{line}"'
    if style.shape in ("box", "pill"):
        radius = 5.0 if style.shape == "box" else h / 2
        return f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="{radius:.1f}" {look}/>'
    if style.shape == "var":
        place = f'cx="{x + w / 2:.1f}" cy="{y + h / 2:.1f}" rx="{w / 2:.1f}" ry="{h / 2:.1f}"'
        return f"<ellipse {place} {look}/>"
    corners = {
        "widening": ((8, 0), (w - 8, 0), (w, h), (0, h)),
        "narrowing": ((0, 0), (w, 0), (w - 8, h), (8, h)),
        "down": ((0, 0), (w, 0), (w, h - 7), (w / 2, h), (0, h - 7)),
        "up": ((0, 0), (w / 2, 7), (w, 0), (w, h), (0, h)),
    }[style.shape]
    path = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{path}" stroke-linejoin="round" {look}/>'


# Characters that XML 1.0 does not allow, even escaped, and lone surrogates, which cannot be encoded.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def plain(text: str) -> str:
    """Text with only characters that pictures can hold."""
    return _NOT_XML.sub("\ufffd", text)


def _text(text: str) -> str:
    return escape(plain(text))
