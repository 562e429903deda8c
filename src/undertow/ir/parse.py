"""Read the text of a library or static graph: the inverse of `dump`; docs/reference/ir_grammar.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from undertow.errors import Span
from undertow.ir.graph import (
    Array,
    Attr,
    Attrs,
    Const,
    FunctionGraph,
    Library,
    Node,
    Operand,
    Phase,
    Port,
    Region,
    Site,
    StaticGraph,
)
from undertow.ir.implied import VERSION, homes_of, param_node, prefix, start_name, start_node, starts_of
from undertow.ir.line import Line, fail
from undertow.ir.literal import RESERVED, digest, quote
from undertow.ir.structure import BODY_KINDS
from undertow.ir.variables import named
from undertow.types import DTYPES, Type

_DTYPES = frozenset(dtype.numpy for dtype in DTYPES.values())


class _Shared(NamedTuple):
    """State that all graphs of one text share."""

    files: list[tuple[str, str]]
    constants: Mapping[str, Array]
    checked: dict[str, Const]  # big arrays may have many users and are checked and copied once
    variables: dict[str, Type]


class _Reader:
    """Reads the lines of one graph, twice: names may be used before their line, so a first pass collects them."""

    def __init__(self, shared: _Shared, known: _Reader | None = None) -> None:
        self.shared = shared
        self.known = known
        self.nodes: list[Node] = []
        self.regions: dict[int, Region] = {}
        self.numbers: dict[str, int] = {}  # of nodes
        self.current = 0  # the region of lines that name none
        self.next_region = 0
        self.section = ""  # the name of the body whose lines are being read
        self.paths: dict[int, str] = {}
        self.homes: dict[str, int] = {}
        if known is not None:
            numbers = range(len(known.regions))
            self.homes = homes_of([known.regions[n].name for n in numbers], [known.paths[n] for n in numbers])

    # Names

    def port(self, line: Line) -> Port:
        at, name, index = line.at, line.name(), line.index()
        if self.known is None:
            return Port(0, index or 0)
        if name not in self.known.numbers:
            line.at = at
            line.fail("the name of a node")
        return Port(self.known.numbers[name], index or 0)

    def ports(self, line: Line) -> tuple[Port, ...]:
        return tuple(line.items(lambda: self.port(line)))

    def region(self, line: Line) -> int:
        at, name, index = line.at, line.name(), line.index()
        if self.known is None:
            return 0
        number = self.homes.get(name, -1) if index is None else index
        if number not in self.known.regions or (index is not None and self.known.regions[number].name != name):
            line.at = at
            line.fail("the name of a region (with #number where several have it)")
        return number

    def span(self, line: Line) -> Span | None:
        if not line.take("@"):
            return None
        number = line.integer("the number of a file")
        if not 0 <= number < len(self.shared.files):
            fail(line.number, f"there is no line `file {number}`", line.text)
        line.expect(":")
        row = line.integer("a line number")
        line.expect(":")
        file, function = self.shared.files[number]
        return Span(file, row, line.integer("a column"), function)

    # Lines

    def add(self, node: Node, line: Line) -> int:
        if node.name in self.numbers:
            fail(line.number, f"duplicate node name {quote(node.name)}", line.text)
        self.numbers[node.name] = len(self.nodes)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def node(self, line: Line) -> None:
        name = line.name("a node")
        types = line.items(line.type) if line.take(":") else []
        line.expect("=")
        op = line.name("an operator")
        inputs: list[Operand] = []
        attrs = self.variables(line)
        has_operands = line.peek() not in ("", "^", "@", "in") and line.peek(1) != "="
        if line.take(",") if attrs else has_operands:
            inputs = line.items(lambda: self.operand(line))
        while line.peek(1) == "=":
            key = line.name("the name of an attribute")
            line.expect("=")
            if key in attrs or key == "self":  # `Attrs(**attrs)` has a `self` already
                fail(line.number, f"attribute {quote(key)} is not allowed here, or repeated", line.text)
            attrs[key] = line.attr()
        controls = self.ports(line) if line.take("^") else ()
        region = self.region(line) if line.take("in") else self.homes.get(prefix(name), self.current)
        node = Node(op, tuple(inputs), tuple(types), name, region, Attrs(**attrs), controls, self.span(line))
        self.add(node, line)

    def variables(self, line: Line) -> dict[str, Attr]:
        """The attributes that variable edges stand for: `&x`, or `&(x, y)`."""
        if not line.take("&"):
            return {}
        is_several = bool(line.take("("))
        names = line.items(lambda: self.variable(line), ")") if is_several else [self.variable(line)]
        return dict(named(tuple(names), is_several, self.shared.variables))

    def variable(self, line: Line) -> str:
        at, name = line.at, line.name("a variable")
        if name not in self.shared.variables:
            line.at = at
            line.fail(f"a variable that a line `var {quote(name)}: ...` declares")
        return name

    def operand(self, line: Line) -> Operand:
        if line.peek() in DTYPES and line.peek(1) == "[":
            return big_constant(line, self.shared.constants, self.shared.checked)
        is_name = line.kind() == "string" or (line.kind() == "word" and line.peek() not in RESERVED)
        return self.port(line) if is_name else line.const()

    def declare(self, line: Line, region: Region, number: int | None) -> int:
        """A new region, numbered in order unless the text says otherwise."""
        number = self.next_region if number is None else number
        if number in self.regions:
            fail(line.number, f"duplicate region number {number}", line.text)
        if region.kind != "branch":
            self.section = region.name
        self.regions[number] = region
        self.paths[number] = f"{self.section}/{region.name}" if region.kind == "branch" else region.name
        self.next_region = number + 1
        return number

    def branch(self, line: Line) -> None:
        name, number = line.name("the name of a branch"), line.index()
        at, decides = line.at, line.name("the predicate")
        line.at = at
        pred = self.port(line)
        side = line.expect("true", "false") if line.take("is") else ""
        starts = self.ports(line) if line.take("^") else ()
        parent = self.region(line) if line.take("in") else self.homes.get(prefix(decides), self.current)
        line.end()
        if side:
            self.declare(line, Region("branch", name, parent, pred, side == "true", starts), number)
            return
        yes, no = (tuple(Port(start.node, k) for start in starts) for k in (0, 1))
        self.declare(line, Region("branch", f"{name}.then", parent, pred, True, yes), number)
        self.declare(line, Region("branch", f"{name}.else", parent, pred, False, no), None)

    def body(self, line: Line) -> None:
        """A main, function, loop or map region of a static graph."""
        kind = line.expect(*BODY_KINDS)
        name, number = line.name("the name of a region"), line.index()
        parent = self.region(line) if line.take("in") else None
        starts = self.ports(line) if line.take("^") else ()
        line.end()
        self.current = self.declare(line, Region(kind, name, parent, starts=starts), number)

    def signature(self, line: Line, number: int) -> Phase:
        if line.take("["):
            params = [port.node for port in line.items(lambda: self.port(line), "]")]
        else:
            line.expect("(")
            name, span = start_name(number), None
            if line.kind() in ("word", "string") and line.peek(1) in ("@", ";"):
                name, span = line.name(), self.span(line)
                line.expect(";")
            first = self.add(start_node(number, name, span), line) + 1
            params = line.items(lambda: self.param(line, number, len(self.nodes) - first), ")")
        line.expect("->")
        line.expect("(")
        return Phase(tuple(params), tuple(line.items(lambda: self.port(line), ")")))

    def param(self, line: Line, phase: int, index: int) -> int:
        name = line.name("a parameter")
        line.expect(":")
        return self.add(param_node(phase, index, name, line.type(), self.span(line)), line)

    def finished_regions(self, line: Line) -> tuple[Region, ...]:
        if sorted(self.regions) != list(range(len(self.regions))):
            fail(
                line.number,
                f"{len(self.regions)} regions must have the numbers from 0, but one has #{max(self.regions)}",
            )
        return tuple(self.regions[number] for number in range(len(self.regions)))


def big_constant(line: Line, arrays: Mapping[str, Array], known: dict[str, Const]) -> Const:
    """An array from outside, by its digest. `known` has those that were checked before."""
    type_ = line.type()
    name = line.read("`$` and the 16 digits that name an array", "digest", lambda text: text[1:])
    if name not in known:
        value = arrays.get(name)
        if value is None:
            hint = "write parse(text, dump_constants(graph)): the text does not contain large arrays"
            fail(line.number, f"array ${name} is not among the constants", line.text, hint)
        if value.dtype not in _DTYPES or digest(value) != name:
            fail(line.number, f"the constant ${name} does not match its digest", line.text)
        known[name] = Const(value)
    if known[name].type != type_:
        fail(line.number, f"array ${name} is {known[name].type}, not {type_}", line.text)
    return known[name]


def _is_node(line: Line) -> bool:
    return line.peek(1) in (":", "=")


def _is_header(line: Line) -> bool:
    return line.peek() in BODY_KINDS and not _is_node(line)


def parse(text: str, constants: Mapping[str, Array] | None = None) -> Library | StaticGraph:
    """Read the text of a library or static graph. `constants` holds the arrays that it refers to."""
    lines = [line for number, row in enumerate(text.split("\n"), 1) if (line := Line(number, row)).tokens]
    if not lines:
        fail(1, "expected `library` or `static`, but there is no text")
    first, shared = lines[0], _Shared([], constants or {}, {}, {})
    kind = first.expect("library", "static")
    if first.integer("the version of the format") != VERSION:
        fail(first.number, f"only format {VERSION} is supported", first.text)
    at = 1
    while at < len(lines) and not _is_node(lines[at]) and (word := lines[at].take("file", "var")):
        line = lines[at]
        at += 1
        if word == "var":
            _declare(line, shared)
            continue
        if line.integer("the number of the file") != len(shared.files):
            fail(line.number, f"expected file number {len(shared.files)}", line.text)
        shared.files.append((line.string(), line.name("a function") if line.take("in") else ""))
        line.end()
    return _library(first, lines[at:], shared) if kind == "library" else _static(first, lines[at:], shared)


def _declare(line: Line, shared: _Shared) -> None:
    name = line.name("a variable")
    if name in shared.variables:
        fail(line.number, f"variable {quote(name)} is declared twice", line.text)
    line.expect(":")
    shared.variables[name] = line.type()
    line.end()


def _library(first: Line, lines: Sequence[Line], shared: _Shared) -> Library:
    first.expect("main")
    first.expect("=")
    main = first.name()
    first.end()
    functions: dict[str, FunctionGraph] = {}
    headers = [at for at, line in enumerate(lines) if at == 0 or _is_header(line)]
    for begin, end in pairwise([*headers, len(lines)]):
        learn = _Reader(shared)
        _function(lines[begin:end], learn)
        function = _function(lines[begin:end], _Reader(shared, learn))
        if function.name in functions:
            fail(lines[begin].number, f"duplicate function name {quote(function.name)}", lines[begin].text)
        functions[function.name] = function
    return Library(functions, main)


def _function(lines: Sequence[Line], reader: _Reader) -> FunctionGraph:
    for line in lines:
        line.at = 0
    header = lines[0]
    kind, name = header.expect(*BODY_KINDS), header.name()
    phases: dict[int, Phase] = {}
    if header.peek() in ("(", "["):
        phases[0] = reader.signature(header, 0)
    carried = header.integer() if _is_key(header, "carried") else 0
    group = header.name() if _is_key(header, "group") else ""
    hoisted = header.integer() if _is_key(header, "hoisted") else 0
    shared: tuple[Port, ...] = ()
    if _is_key(header, "shared"):
        header.expect("(")
        shared = tuple(header.items(lambda: reader.port(header), ")"))
    starts: tuple[Port, ...] | None = None
    if header.take("^"):
        starts = () if header.peek() in ("", "as", "@") else reader.ports(header)
    body = Region(kind, header.name() if header.take("as") else name)
    span = reader.span(header)
    header.end()
    reader.declare(header, body, 0)
    for line in lines[1:]:
        if _is_node(line):
            reader.node(line)
        elif line.take("branch"):
            reader.branch(line)
        elif line.take("phase"):
            number = line.integer("the number of a phase")
            if number in phases:
                fail(line.number, f"duplicate phase {number}", line.text)
            phases[number] = reader.signature(line, number)
        else:
            line.fail("a node, `branch` or `phase`")
        line.end()
    if sorted(phases) != list(range(len(phases))):
        fail(header.number, f"phases {sorted(phases)} are given, not all from 0", header.text)
    regions = reader.finished_regions(header)
    body = Region(kind, body.name, starts=starts_of(reader.nodes) if starts is None else starts)
    ordered = tuple(phases[number] for number in range(len(phases)))
    return FunctionGraph(
        tuple(reader.nodes), (body, *regions[1:]), name, kind, ordered, carried, span, group, hoisted, shared
    )


def _is_key(header: Line, key: str) -> bool:
    """Take `key=`, if it comes next."""
    return bool(header.take(key) and header.expect("="))


def _static(first: Line, lines: Sequence[Line], shared: _Shared) -> StaticGraph:
    name = first.name()
    first.end()
    learn = _Reader(shared)
    _static_lines(lines, learn, name)
    return _static_lines(lines, _Reader(shared, learn), name)


def _static_lines(lines: Sequence[Line], reader: _Reader, name: str) -> StaticGraph:
    inputs: tuple[Port, ...] = ()
    fetches: tuple[Port, ...] = ()
    sites: list[Site] = []
    for line in lines:
        line.at = 0
        if _is_node(line):
            if not reader.regions:
                fail(line.number, "expected a region for the node to be in, such as `main main`", line.text)
            reader.node(line)
        elif line.take("inputs"):
            inputs += reader.ports(line)
        elif line.take("fetches"):
            fetches += reader.ports(line)
        elif line.take("site"):
            if line.integer("the number of the site") != len(sites) + 1:
                fail(line.number, f"expected site number {len(sites) + 1}", line.text)
            kind, label = line.name("call, loop or map"), line.name("a label")
            line.expect(":")
            caller = reader.region(line)
            line.expect("->")
            callee, late = reader.region(line), 0
            if line.take("late"):
                line.expect("=")
                late = line.integer("a number of arguments")
            sites.append(Site(kind, label, caller, callee, reader.span(line), late))
        elif line.take("branch"):
            reader.branch(line)
        elif line.take("in"):
            reader.section = line.name()
            line.at -= 1
            reader.current = reader.region(line)
        elif _is_header(line):
            reader.body(line)
        else:
            line.fail("a node, a region, `branch`, `site`, `inputs` or `fetches`")
        line.end()
    regions = reader.finished_regions(lines[-1]) if lines else ()
    numbers = tuple(port.node for port in inputs)
    return StaticGraph(tuple(reader.nodes), regions, name, tuple(sites), numbers, fetches)
