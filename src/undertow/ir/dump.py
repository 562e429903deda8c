"""Print a library or a static graph as text: one node a line, never indented by nesting.

So the text of a graph is linear in its size. What is implied is left out: see `implied`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from undertow.errors import Span
from undertow.ir.graph import EMPTY, Attrs, Const, FunctionGraph, Graph, Library, Operand, Port, Region, StaticGraph
from undertow.ir.implied import VERSION, homes_of, is_pair, prefix, signature_block, start_name, starts_of
from undertow.ir.literal import quote, show_attr, show_const, show_string
from undertow.ir.variables import implied, variables_in
from undertow.ir.walk import body_of
from undertow.types import Type

_LEFT, _RIGHT = 40, 80  # columns are padded up to these widths and no further, which keeps the text linear


def dump(graph: Library | StaticGraph, spans: bool = True) -> str:
    """The text of a library or static graph; `parse(dump(x), dump_constants(x)) == x` for every valid x.

    Invalid graphs print, too, for error messages: references out of range as `?number`.
    """
    files: dict[tuple[str, str], int] | None = {} if spans else None
    if isinstance(graph, Library):
        head = [f"library {VERSION} main={quote(graph.main)}"]
        known = variables_in(node for function in graph.functions.values() for node in function.nodes)
        parts = graph.functions.items()
        body = [line for name, function in parts for line in _Printer(function, files, known).function(name)]
    else:
        head = [f"static {VERSION} {quote(graph.name)}"]
        known = variables_in(graph.nodes)
        body = _Printer(graph, files, known).static()
    head += [f"var {quote(name)}: {held}" for name, held in known.items()]
    for (file, function), number in (files or {}).items():
        head.append(f"file {number} {show_string(file)}" + (f" in {quote(function)}" if function else ""))
    return "\n".join(head + body) + "\n"


def dump_node(graph: Graph, number: int) -> str:
    """The line of one node, without its span: for messages and pictures."""
    return dump_nodes(graph, [number])[0]


def dump_nodes(graph: Graph, numbers: Iterable[int] | None = None) -> list[str]:
    """The lines of some nodes, or all, as `dump_node` gives them."""
    printer = _Printer(graph, None, variables_in(graph.nodes))
    chosen = range(len(graph.nodes)) if numbers is None else numbers
    return ["".join(printer.node(number, -1)[:2]) for number in chosen]


class _Row(NamedTuple):
    """A node line in columns."""

    left: str  # name and types
    right: str  # operator, operands, ...
    span: str


def _join(*parts: str) -> str:
    return " ".join(part for part in parts if part)


class _Printer:
    """Prints one graph. `files` numbers the (file, function) pairs of spans; None leaves spans out.

    `variables` are those that the text declares.
    """

    def __init__(self, graph: Graph, files: dict[tuple[str, str], int] | None, variables: Mapping[str, Type]) -> None:
        self.graph = graph
        self.files = files
        self.variables = variables
        self.owner = _owners(graph.regions)
        self.paths = [self.path(region) for region in graph.regions]
        self.homes = homes_of([region.name for region in graph.regions], self.paths)
        self.consts: dict[int, str] = {}

    def span(self, span: Span | None) -> str:
        if span is None or self.files is None:
            return ""
        number = self.files.setdefault((span.file, span.function), len(self.files))
        return f"@ {number}:{span.line}:{span.column}"

    def ports(self, ports: Iterable[Port]) -> str:
        return ", ".join(map(self.operand, ports))

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Const):
            if id(operand) not in self.consts:
                self.consts[id(operand)] = show_const(operand)
            return self.consts[id(operand)]
        known = 0 <= operand.node < len(self.graph.nodes)
        is_only = known and operand.index == 0 and len(self.graph.nodes[operand.node].types) == 1
        return self.name(operand.node) + ("" if is_only else f"#{operand.index}")

    def name(self, number: int) -> str:
        known = 0 <= number < len(self.graph.nodes)
        return quote(self.graph.nodes[number].name) if known else f"?{number}"

    def path(self, region: Region) -> str:
        """The name of a region; a branch is prefixed by the body whose lines declare it: `fac/if1.else`."""
        decides = region.pred.node if region.pred is not None else -1
        where = self.graph.nodes[decides].region if 0 <= decides < len(self.graph.nodes) else -1
        is_known = region.kind == "branch" and 0 <= where < len(self.owner)
        return f"{self.graph.regions[self.owner[where]].name}/{region.name}" if is_known else region.name

    def region(self, number: int) -> str:
        """A reference to a region: its name or path, and its number if these are ambiguous."""
        if not 0 <= number < len(self.graph.regions):
            return f"?{number}"
        name = self.graph.regions[number].name
        known = [quote(text) for text in (name, self.paths[number]) if self.homes.get(text) == number]
        return known[0] if known else f"{quote(name)}#{number}"

    def within(self, number: int | None, default: int) -> str:
        return "" if number is None or number == default else f"in {self.region(number)}"

    def node(self, number: int, current: int) -> _Row:
        node = self.graph.nodes[number]
        left = quote(node.name) + (": " + ", ".join(map(repr, node.types)) if node.types else "")
        said = implied(node, self.variables) if "variable" in node.attrs or "targets" in node.attrs else EMPTY
        right = _join(
            f" = {quote(node.op)}",
            ", ".join((*_variable_edges(said), *map(self.operand, node.inputs))),
            *(f"{quote(key)}={show_attr(value)}" for key, value in node.attrs.items() if key not in said),
            f"^{self.ports(node.controls)}" if node.controls else "",
            self.within(node.region, self.homes.get(prefix(node.name), current)),
        )
        return _Row(left, right, self.span(node.span))

    def branch(self, number: int, pair: bool, name: str, current: int) -> str:
        """The line that declares a branch region, or both sides at once."""
        region = self.graph.regions[number]
        known = region.pred is not None and 0 <= region.pred.node < len(self.graph.nodes)
        pred = "?" if region.pred is None else self.operand(region.pred)
        home = prefix(self.graph.nodes[region.pred.node].name) if known and region.pred is not None else ""
        # Both sides start at a Switch each phase: its name alone denotes its two outputs.
        starts = ", ".join(self.name(port.node) if pair else self.operand(port) for port in region.starts)
        side = "" if pair else f"is {'true' if region.side else 'false'}"
        where = self.within(region.parent, self.homes.get(home, current))
        return _join("  branch", name, pred, side, f"^{starts}" if starts else "", where)

    def body(self, lines: list[str | _Row], hidden: set[int], signatures: Mapping[int, str], current: int) -> list[str]:
        """The nodes; each region is declared where it first appears. `current`: the region of lines that name none."""
        regions = self.graph.regions
        after: dict[int, list[int]] = {}  # deciding node -> branch regions
        for number, region in enumerate(regions):
            if region.kind == "branch" and not (number and is_pair(regions, number - 1)):
                decides = region.pred.node if region.pred is not None else -1
                after.setdefault(decides if 0 <= decides < len(self.graph.nodes) else -1, []).append(number)
        opened = set() if current < 0 else {current}
        declared = len(opened)  # a region's number is left out if it follows the one before

        def declare(number: int, name: str, count: int = 1) -> str:
            nonlocal declared
            explicit = "" if number == declared else f"#{number}"
            declared = number + count
            return quote(name) + explicit

        def open_body(number: int) -> None:
            nonlocal current
            current = number
            if number in opened:
                lines.extend(("", f"in {self.region(number)}"))
                return
            opened.add(number)
            region = regions[number]
            starts = f"^{self.ports(region.starts)}" if region.starts else ""
            name = declare(number, region.name)
            lines.extend(("", _join(region.kind, name, self.within(region.parent, -1), starts)))

        def branches(decides: int) -> None:
            for number in after.get(decides, ()):
                pair, name = is_pair(regions, number), regions[number].name
                shown = declare(number, name.removesuffix(".then") if pair else name, 1 + pair)
                lines.append(self.branch(number, pair, shown, current))

        for number, node in enumerate(self.graph.nodes):
            if 0 <= node.region < len(self.owner) and self.owner[node.region] != current:
                open_body(self.owner[node.region])
            if number in signatures:
                lines.append(signatures[number])
            if number not in hidden:
                lines.append(self.node(number, current))
            branches(number)
        for number, region in enumerate(regions):
            if region.kind != "branch" and number not in opened:
                open_body(number)
        branches(-1)
        return _align(lines)

    def function(self, key: str) -> list[str]:
        graph = self.graph
        assert isinstance(graph, FunctionGraph)
        body = graph.regions[0] if graph.regions else Region(graph.kind, key)
        blocks = [signature_block(graph, phase) for phase in range(len(graph.phases))]
        signatures = [self.signature(graph, phase, block) for phase, block in enumerate(blocks)]
        header = _join(
            graph.kind,
            quote(key) + (signatures[0] if signatures else ""),
            f"carried={graph.carried}" if graph.carried else "",
            f"group={quote(graph.group)}" if graph.group else "",
            f"hoisted={graph.hoisted}" if graph.hoisted else "",
            f"shared=({self.ports(graph.shared)})" if graph.shared else "",
            f"^{self.ports(body.starts)}" if body.starts != starts_of(graph.nodes) else "",
            f"as {quote(body.name)}" if body.name != key else "",
            self.span(graph.span),
        )
        later = {phase: f"  phase {phase}{text}" for phase, text in enumerate(signatures) if phase}
        hidden = {number for block in blocks for number in block or ()}
        inside = {block.start: later.pop(phase) for phase, block in enumerate(blocks) if block and phase}
        return self.body(["", header, *later.values()], hidden, inside, 0)

    def signature(self, graph: FunctionGraph, number: int, block: range | None) -> str:
        """The parameters and results of a phase: `(n: i64)` implies its start and param nodes, `[n]` names them."""
        phase = graph.phases[number]
        results = f" -> ({self.ports(phase.results)})"
        if block is None:
            return f"[{self.ports(map(Port, phase.params))}]{results}"
        start, *params = graph.nodes[block.start : block.stop]
        shown = start.name != start_name(number) or self.span(start.span)
        head = _join(quote(start.name), self.span(start.span)) + "; " if shown else ""
        entries = (_join(f"{quote(param.name)}: {param.types[0]}", self.span(param.span)) for param in params)
        return f"({head}{', '.join(entries)}){results}"

    def static(self) -> list[str]:
        graph = self.graph
        assert isinstance(graph, StaticGraph)
        lines: list[str | _Row] = [f"inputs {self.ports(map(Port, graph.inputs))}"] if graph.inputs else []
        lines += [f"fetches {self.ports(graph.fetches)}"] if graph.fetches else []
        for number, site in enumerate(graph.sites, 1):
            path = f"{self.region(site.caller)} -> {self.region(site.callee)}"
            late = f"late={site.late}" if site.late else ""
            head = f"site {number} {quote(site.kind)} {quote(site.label)}:"
            lines.append(_join(head, path, late, self.span(site.span)))
        return self.body(lines, set(), {}, -1)


def _variable_edges(said: Attrs) -> list[str]:
    """The operands that stand for these attributes: `&x`, or `&(x, y)`."""
    several = said.get("targets")
    if isinstance(several, tuple):
        return [f"&({', '.join(quote(str(name)) for name in several)})"]
    return [f"&{quote(said.text('variable'))}"] if said else []


def _owners(regions: Sequence[Region]) -> list[int]:
    try:
        return body_of(Graph((), tuple(regions)))
    except IndexError:  # an invalid graph: a branch before its parent
        return list(range(len(regions)))


def _align(lines: Iterable[str | _Row]) -> list[str]:
    """Pad the columns of the node lines between two blank lines."""
    out: list[str] = []
    section: list[str | _Row] = []

    def close() -> None:
        rows = [line for line in section if isinstance(line, _Row)]
        left = max((len(row.left) for row in rows if len(row.left) <= _LEFT), default=0)
        right = max((len(row.right) for row in rows if len(row.right) <= _RIGHT), default=0)
        for line in section:
            if isinstance(line, str):
                out.append(line)
            elif line.span:
                out.append(f"  {line.left:{left}}{line.right:{right}}  {line.span}")
            else:
                out.append(f"  {line.left:{left}}{line.right}")
        section.clear()

    for line in lines:
        if line == "":
            close()
        section.append(line)
    close()
    return out
