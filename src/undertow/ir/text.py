"""Graphs as text: `dump` prints a library or a static graph, `parse` reads it back; docs/reference/ir_grammar.md.

One node a line, never indented by nesting, so the text of a graph is linear in its size. What can be derived is
left out: numbers that follow from the order, regions that a node's name tells, the nodes that a signature stands
for. Big arrays are named by their digest only. (Printer and reader share one file because each is the other's proof.)

>>> print(dump(parse('''
... library 1 main=double
... main double(x: f32) -> (y)
...   y: f32 = multiply x, 2.0:f32
... ''')), end="")
library 1 main=double
<BLANKLINE>
main double(x: f32) -> (y)
  y: f32 = multiply x, 2.0:f32
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np

from undertow.errors import GraphError, Span
from undertow.ir.graph import (
    Array,
    Attr,
    Attrs,
    Const,
    FunctionGraph,
    Graph,
    Library,
    Node,
    Operand,
    Phase,
    Port,
    Region,
    Site,
    StaticGraph,
)
from undertow.ir.walk import body_of, phase_attr
from undertow.types import CTL, DTYPES, DType, Type, type_of

VERSION = 1
INLINE = 32  # arrays of more elements are printed as a reference
_DTYPES = frozenset(dtype.numpy for dtype in DTYPES.values())
_BODIES = ("main", "function", "loop", "map")
_DEEPEST = 100  # lists in attributes: hashing nested tuples recurses in C, so the depth must not be the text's choice
_LEFT, _RIGHT = 40, 80  # columns are padded up to these widths and no further, which keeps the text linear

# --------------------------------------------------------------------------------------------------------------
# Constants and attributes


def digest(value: Array) -> str:
    """The name of a big array in text: 16 hex digits over dtype, shape and bytes."""
    return hashlib.sha256(repr(type_of(value)).encode() + value.tobytes()).hexdigest()[:16]


def dump_constants(graph: Library | StaticGraph) -> dict[str, Array]:
    """The arrays that the text of `graph` only refers to, by digest: what `parse` takes as `constants`."""
    parts = graph.functions.values() if isinstance(graph, Library) else (graph,)
    operands = (operand for part in parts for node in part.nodes for operand in node.inputs)
    big = {id(c): c.value for c in operands if isinstance(c, Const) and c.value.size > INLINE}
    return {digest(value): value for value in big.values()}


def show_const(const: Const) -> str:
    """A constant as an operand is written: `1:i64`, `true`, `[1, 2]:i64[2]`, `f32[1000,300]$a1b2c3d4e5f6a7b8`.

    >>> show_const(Const(np.float32(0.1))), show_const(Const(np.array([[True]])))
    ('0.1:f32', '[[true]]:bool[1,1]')
    """
    value, type_ = const.value, const.type
    if value.size > INLINE:
        return f"{type_}${digest(value)}"
    elements = [_show_element(element) for element in value.flat]
    if not type_.shape:
        return elements[0] if type_.dtype.kind == "bool" else f"{elements[0]}:{type_}"
    if not elements:
        return f"[]:{type_}"
    for dim in reversed(value.shape):
        elements = [f"[{', '.join(elements[k : k + dim])}]" for k in range(0, len(elements), dim)]
    return f"{elements[0]}:{type_}"


def _show_element(value: np.generic) -> str:
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        return str(int(value))
    to_numpy, bits = value.dtype.type, value.tobytes()
    if np.isnan(value):
        return "nan" if bits == to_numpy(np.nan).tobytes() else f"nan({bits[::-1].hex()})"
    short = str(value)
    # The shortest f32 is read through f64; should two roundings ever differ from one, the long form is exact.
    return short if to_numpy(float(short)) == value else repr(value.item())


def _element(text: str, dtype: DType) -> np.generic | None:
    """The inverse of `_show_element`; None where `text` is no element of that dtype."""
    to_numpy = dtype.numpy.type
    if dtype.kind == "bool":
        return np.bool_(text == "true") if text in ("true", "false") else None
    try:
        if dtype.kind == "int":
            bound = 1 << (8 * dtype.size - 1)
            return to_numpy(int(text)) if -bound <= int(text) < bound else None
        if text.startswith("nan("):
            bits = np.frombuffer(bytes.fromhex(text[4:-1])[::-1], dtype.numpy)
            return bits[0] if len(bits) == 1 and np.isnan(bits[0]) else None
        with np.errstate(over="ignore"):
            value: np.generic = to_numpy(float(text))
        return None if np.isinf(value) and "inf" not in text else value
    except ValueError:
        return None


def show_attr(value: Attr) -> str:
    """An attribute value as JSON, tuples as lists."""
    pieces: list[str] = []
    stack: list[Iterator[Attr]] = [iter((value,))]  # the lists that are open
    while stack:
        for item in stack[-1]:
            if pieces and pieces[-1] != "[":
                pieces.append(", ")
            if isinstance(item, (tuple, list)):
                if len(stack) > _DEEPEST:
                    raise GraphError(f"an attribute nests lists more than {_DEEPEST} deep")
                pieces.append("[")
                stack.append(iter(item))
                break
            if item is not None and not isinstance(item, (bool, int, float, str)):
                raise GraphError(
                    f"an attribute holds {item!r}, a {type(item).__name__}",
                    hint="attributes are plain data: None, bool, int, float, str and tuples of them",
                )
            pieces.append(_show_string(item) if isinstance(item, str) else _show_plain(item))
        else:
            stack.pop()
            pieces += ["]"] if stack else []
    return "".join(pieces)


def _show_plain(value: bool | int | float | None) -> str:
    # JSON has no word for these three; float() takes ours.
    return repr(float(value)) if isinstance(value, float) and not math.isfinite(value) else json.dumps(value)


_NOT_JSON: dict[str, Attr] = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_WORD = r"[A-Za-z_~][A-Za-z0-9_./~'@-]*"
_PLAIN = re.compile(_WORD)
_RESERVED = frozenset(("true", "false", "nan", "inf", "in", "as"))


def quote(name: str) -> str:
    """A name as it is written: bare where it is a plain word, a JSON string otherwise.

    >>> quote("fib/left'"), quote("in"), quote("a b")
    ("fib/left'", '"in"', '"a b"')
    """
    return name if _PLAIN.fullmatch(name) and name not in _RESERVED else _show_string(name)


def _show_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


# --------------------------------------------------------------------------------------------------------------
# What a signature stands for


def _start_name(phase: int) -> str:
    return "start" if phase == 0 else f"start~{phase}"


def _start(phase: int, name: str, span: Span | None) -> Node:
    return Node("start", (), (CTL,), name, attrs=Attrs(**phase_attr(phase)), span=span)


def _param(phase: int, index: int, name: str, type_: Type, span: Span | None) -> Node:
    return Node("param", (), (type_,), name, attrs=Attrs(index=index, **phase_attr(phase)), span=span)


def _starts(nodes: Sequence[Node]) -> tuple[Port, ...]:
    return tuple(Port(number) for number, node in enumerate(nodes) if node.op == "start")


def _block(graph: FunctionGraph, phase: int) -> range | None:
    """The start and param nodes of a phase where they stand together, so that its signature can stand for them."""
    params = graph.phases[phase].params
    starts = [port.node for port in _starts(graph.nodes) if graph.nodes[port.node].attrs == Attrs(**phase_attr(phase))]
    if len(starts) != 1 or (phase == 0 and starts[0] != 0):
        return None
    block = range(starts[0], starts[0] + 1 + len(params))
    if params != tuple(block[1:]) or block.stop > len(graph.nodes):
        return None
    start, *nodes = graph.nodes[block.start : block.stop]
    same = start == _start(phase, start.name, start.span) and all(
        len(node.types) == 1 and node == _param(phase, index, node.name, node.types[0], node.span)
        for index, node in enumerate(nodes)
    )
    return block if same else None


def _is_pair(regions: Sequence[Region], number: int) -> bool:
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


# --------------------------------------------------------------------------------------------------------------
# Printing


def dump(graph: Library | StaticGraph, spans: bool = True) -> str:
    """The text of a library or static graph; `parse(dump(x), dump_constants(x)) == x` for every valid x.

    Invalid ones print too, for error messages: what is out of range as `?number`.
    """
    files: dict[tuple[str, str], int] | None = {} if spans else None
    if isinstance(graph, Library):
        head = [f"library {VERSION} main={quote(graph.main)}"]
        body = [line for name, function in graph.functions.items() for line in _Printer(function, files).function(name)]
    else:
        head = [f"static {VERSION} {quote(graph.name)}"]
        body = _Printer(graph, files).static()
    for (file, function), number in (files or {}).items():
        head.append(f"file {number} {_show_string(file)}" + (f" in {quote(function)}" if function else ""))
    return "\n".join(head + body) + "\n"


def dump_node(graph: Graph, number: int) -> str:
    """The line of one node, without its span: for messages and pictures."""
    return dump_nodes(graph, [number])[0]


def dump_nodes(graph: Graph, numbers: Iterable[int] | None = None) -> list[str]:
    """The lines of some nodes, or all, as `dump_node` gives them."""
    printer = _Printer(graph, None)
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
    """Prints one graph. `files` numbers the (file, function) pairs of spans; None leaves spans out."""

    def __init__(self, graph: Graph, files: dict[tuple[str, str], int] | None) -> None:
        self.graph = graph
        self.files = files
        self.owner = _owners(graph.regions)
        self.paths = [self.path(region) for region in graph.regions]
        self.homes = _homes([region.name for region in graph.regions], self.paths)
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
        """The name of a region, that of a branch after the body whose lines declare it: `fac/if1.else`."""
        decides = region.pred.node if region.pred is not None else -1
        where = self.graph.nodes[decides].region if 0 <= decides < len(self.graph.nodes) else -1
        is_known = region.kind == "branch" and 0 <= where < len(self.owner)
        return f"{self.graph.regions[self.owner[where]].name}/{region.name}" if is_known else region.name

    def region(self, number: int) -> str:
        """A reference to a region: its name or path, and its number where these do not tell it."""
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
        right = _join(
            f" = {quote(node.op)}",
            ", ".join(map(self.operand, node.inputs)),
            *(f"{quote(key)}={show_attr(value)}" for key, value in node.attrs.items()),
            f"^{self.ports(node.controls)}" if node.controls else "",
            self.within(node.region, self.homes.get(_prefix(node.name), current)),
        )
        return _Row(left, right, self.span(node.span))

    def branch(self, number: int, pair: bool, name: str, current: int) -> str:
        """The line that declares a branch region, or both sides at once."""
        region = self.graph.regions[number]
        known = region.pred is not None and 0 <= region.pred.node < len(self.graph.nodes)
        pred = "?" if region.pred is None else self.operand(region.pred)
        home = _prefix(self.graph.nodes[region.pred.node].name) if known and region.pred is not None else ""
        # Both sides start at a Switch each phase: its name alone stands for its two outputs.
        starts = ", ".join(self.name(port.node) if pair else self.operand(port) for port in region.starts)
        side = "" if pair else f"is {'true' if region.side else 'false'}"
        where = self.within(region.parent, self.homes.get(home, current))
        return _join("  branch", name, pred, side, f"^{starts}" if starts else "", where)

    def body(self, lines: list[str | _Row], hidden: set[int], signatures: Mapping[int, str], current: int) -> list[str]:
        """The nodes, each region declared where it first appears; `current` is the region of nodes that name none."""
        regions = self.graph.regions
        after: dict[int, list[int]] = {}  # deciding node -> branch regions
        for number, region in enumerate(regions):
            if region.kind == "branch" and not (number and _is_pair(regions, number - 1)):
                decides = region.pred.node if region.pred is not None else -1
                after.setdefault(decides if 0 <= decides < len(self.graph.nodes) else -1, []).append(number)
        opened = set() if current < 0 else {current}
        declared = len(opened)  # a region's number is left out where it follows the one before

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
                pair, name = _is_pair(regions, number), regions[number].name
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
        blocks = [_block(graph, phase) for phase in range(len(graph.phases))]
        signatures = [self.signature(graph, phase, block) for phase, block in enumerate(blocks)]
        header = _join(
            graph.kind,
            quote(key) + (signatures[0] if signatures else ""),
            f"carried={graph.carried}" if graph.carried else "",
            f"^{self.ports(body.starts)}" if body.starts != _starts(graph.nodes) else "",
            f"as {quote(body.name)}" if body.name != key else "",
            self.span(graph.span),
        )
        later = {phase: f"  phase {phase}{text}" for phase, text in enumerate(signatures) if phase}
        hidden = {number for block in blocks for number in block or ()}
        inside = {block.start: later.pop(phase) for phase, block in enumerate(blocks) if block and phase}
        return self.body(["", header, *later.values()], hidden, inside, 0)

    def signature(self, graph: FunctionGraph, number: int, block: range | None) -> str:
        """The parameters and results of a phase: `(n: i64)` stands for its start and param nodes, `[n]` names them."""
        phase = graph.phases[number]
        results = f" -> ({self.ports(phase.results)})"
        if block is None:
            return f"[{self.ports(map(Port, phase.params))}]{results}"
        start, *params = graph.nodes[block.start : block.stop]
        shown = start.name != _start_name(number) or self.span(start.span)
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
            lines.append(_join(f"site {number} {quote(site.kind)} {quote(site.label)}:", path, self.span(site.span)))
        return self.body(lines, set(), {}, -1)


def _prefix(name: str) -> str:
    return name.rpartition("/")[0]


def _owners(regions: Sequence[Region]) -> list[int]:
    try:
        return body_of(Graph((), tuple(regions)))
    except IndexError:  # an invalid graph: a branch before its parent
        return list(range(len(regions)))


def _homes(names: Sequence[str], paths: Sequence[str]) -> dict[str, int]:
    """Regions by name or path, where just one has it. A node `name/...` or `path/...` need not say where it is."""
    found: dict[str, int] = {}
    for words in (paths, names):
        count = Counter(words)
        found.update({word: number for number, word in enumerate(words) if count[word] == 1})
    return found


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


# --------------------------------------------------------------------------------------------------------------
# Reading: the words of a line

_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r]+(?:\#.*)?|^\#.*)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<index>\#[0-9]+)
    |(?P<digest>\$[0-9a-f]{{16}})
    |(?P<number>-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?|-inf|nan\([0-9a-f]+\))
    |(?P<word>{_WORD})
    |(?P<mark>->|[:=,;^()\[\]@?])""",
    re.VERBOSE,
)
_Item = TypeVar("_Item")


def _fail(line: int, what: str, text: str = "", hint: str = "") -> NoReturn:
    shown = text.strip()
    shown = shown if len(shown) <= 160 else shown[:157] + "..."
    raise GraphError(f"line {line}: {what}" + (f"\n  {shown}" if shown else ""), hint=hint)


class _Line:
    """The words and marks of one line, taken from left to right."""

    def __init__(self, number: int, text: str) -> None:
        self.number = number
        self.text = text
        self.at = 0
        self.tokens: list[re.Match[str]] = []
        column = 0
        while column < len(text):
            match = _TOKEN.match(text, column)
            if match is None:
                _fail(number, f"{text[column]!r} at column {column + 1} begins no name, number or mark", text)
            if match.lastgroup != "space":
                self.tokens.append(match)
            column = match.end()

    def peek(self, ahead: int = 0) -> str:
        """What comes next; nothing at the end."""
        return self.tokens[self.at + ahead].group() if self.at + ahead < len(self.tokens) else ""

    def kind(self) -> str | None:
        return self.tokens[self.at].lastgroup if self.at < len(self.tokens) else "end"

    def fail(self, expected: str) -> NoReturn:
        if self.at >= len(self.tokens):
            _fail(self.number, f"expected {expected}, but the line ends", self.text)
        column = self.tokens[self.at].start() + 1
        _fail(self.number, f"expected {expected}, but found {self.peek()!r:.60} at column {column}", self.text)

    def take(self, *texts: str) -> str:
        """Step over one of the given words or marks, if it comes next."""
        found = self.peek()
        if found not in texts:
            return ""
        self.at += 1
        return found

    def expect(self, *texts: str) -> str:
        return self.take(*texts) or self.fail(" or ".join(f"`{text}`" for text in texts))

    def end(self) -> None:
        if self.at < len(self.tokens):
            self.fail("the end of the line")

    def read(self, what: str, kind: str, convert: Callable[[str], _Item]) -> _Item:
        """Step over a word of some kind that means something."""
        try:
            value = convert(self.peek()) if self.kind() == kind else self.fail(what)
        except ValueError:
            self.fail(what)
        self.at += 1
        return value

    def string(self, what: str = "a string in double quotes") -> str:
        return self.read(what, "string", lambda text: str(json.loads(text)))

    def integer(self, what: str = "a whole number") -> int:
        return self.read(what, "number", int)

    def index(self) -> int | None:
        """The `#k` that may follow a name."""
        return self.read("a shorter number", "index", lambda text: int(text[1:])) if self.kind() == "index" else None

    def name(self, what: str = "a name") -> str:
        if self.kind() == "string":
            return self.string()
        return self.read(what, "word", str) if self.peek() not in _RESERVED else self.fail(what)

    def some(self, item: Callable[[], _Item], close: str = "") -> list[_Item]:
        """Items with commas between them; none only if `close` comes at once."""
        if close and self.take(close):
            return []
        items = [item()]
        while self.take(","):
            items.append(item())
        if close:
            self.expect(close)
        return items

    def type(self) -> Type:
        dtype = DTYPES[self.take(*DTYPES) or self.fail("a type such as i64 or f32[3,?]")]
        return Type(dtype, tuple(self.some(self.dim, "]")) if self.take("[") else ())

    def dim(self) -> int | None:
        number = None if self.take("?") else self.integer("a dimension")
        return number if number is None or number >= 0 else _fail(self.number, "a dimension is negative", self.text)

    def attr(self) -> Attr:
        """A JSON value without objects, lists as tuples; an explicit stack, for lists in lists."""
        stack: list[list[Attr]] = [[]]
        while not stack[0]:
            if self.take("["):
                stack.append([])
                if len(stack) > _DEEPEST + 1:
                    self.fail(f"lists at most {_DEEPEST} deep")
                if self.peek() != "]":
                    continue
            else:
                stack[-1].append(self.scalar())
            while len(stack) > 1 and not self.take(","):
                self.expect("]")
                done = tuple(stack.pop())
                stack[-1].append(done)
        return stack[0][0]

    def scalar(self) -> Attr:
        what = "an attribute: a number, string, list, true, false or null"
        return self.read(what, str(self.kind()), lambda text: _NOT_JSON[text] if text in _NOT_JSON else _plain(text))

    def const(self) -> Const:
        """A constant that is written out."""
        if self.peek() in ("true", "false"):
            return Const(np.bool_(self.expect("true", "false") == "true"))
        first = self.at
        flat: list[str] = []
        depth = 0
        while True:
            if mark := self.take("[", "]", ","):
                depth += {"[": 1, "]": -1, ",": 0}[mark]
            elif self.kind() == "number" or self.peek() in ("nan", "inf", "true", "false"):
                flat.append(self.peek())
                self.at += 1
            else:
                self.fail("a name or a constant such as 1:i64")
            if depth <= 0:
                break
        self.expect(":")
        type_ = self.type()
        written = "".join(token.group() for token in self.tokens[first : self.at])
        values = [_element(text, type_.dtype) for text in flat]
        const = _assemble([value for value in values if value is not None], type_)
        if const is None or _SKELETON.sub(".", written) != _SKELETON.sub(".", show_const(const).replace(" ", "")):
            self.at = first
            self.fail(f"brackets and elements that fit {type_}, at most {INLINE}")
        return const


def _plain(text: str) -> Attr:
    value: Attr = json.loads(text)
    return value


_SKELETON = re.compile(r"[^\[\],]+")


def _assemble(values: Sequence[np.generic], type_: Type) -> Const | None:
    # Through bytes, which keeps the bits of every NaN.
    flat = np.frombuffer(b"".join(value.tobytes() for value in values), type_.dtype.numpy)
    if type_.dtype.kind == "ctl" or not type_.is_static:
        return None
    try:
        return Const(flat.reshape([int(dim) for dim in type_.shape if dim is not None]))
    except (ValueError, OverflowError):
        return None


# --------------------------------------------------------------------------------------------------------------
# Reading: graphs


class _Shared(NamedTuple):
    """What all graphs of one text share."""

    files: list[tuple[str, str]]
    constants: Mapping[str, Array]
    found: dict[str, Const]  # big arrays may have many users and are checked and copied once


class _Reader:
    """Reads the lines of one graph, twice: names may be used before their line, so a first reading learns them."""

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
            self.homes = _homes([known.regions[n].name for n in numbers], [known.paths[n] for n in numbers])

    # Names

    def port(self, line: _Line) -> Port:
        at, name, index = line.at, line.name(), line.index()
        if self.known is None:
            return Port(0, index or 0)
        if name not in self.known.numbers:
            line.at = at
            line.fail("the name of a node")
        return Port(self.known.numbers[name], index or 0)

    def ports(self, line: _Line) -> tuple[Port, ...]:
        return tuple(line.some(lambda: self.port(line)))

    def region(self, line: _Line) -> int:
        at, name, index = line.at, line.name(), line.index()
        if self.known is None:
            return 0
        number = self.homes.get(name, -1) if index is None else index
        if number not in self.known.regions or (index is not None and self.known.regions[number].name != name):
            line.at = at
            line.fail("the name of a region (with #number where several have it)")
        return number

    def span(self, line: _Line) -> Span | None:
        if not line.take("@"):
            return None
        number = line.integer("the number of a file")
        if not 0 <= number < len(self.shared.files):
            _fail(line.number, f"there is no line `file {number}`", line.text)
        line.expect(":")
        row = line.integer("a line number")
        line.expect(":")
        file, function = self.shared.files[number]
        return Span(file, row, line.integer("a column"), function)

    # Lines

    def add(self, node: Node, line: _Line) -> int:
        if node.name in self.numbers:
            _fail(line.number, f"there are two nodes named {quote(node.name)}", line.text)
        self.numbers[node.name] = len(self.nodes)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def node(self, line: _Line) -> None:
        name = line.name("a node")
        types = line.some(line.type) if line.take(":") else []
        line.expect("=")
        op = line.name("an operator")
        inputs: list[Operand] = []
        if line.peek() not in ("", "^", "@", "in") and line.peek(1) != "=":
            inputs = line.some(lambda: self.operand(line))
        attrs: dict[str, Attr] = {}
        while line.peek(1) == "=":
            key = line.name("the name of an attribute")
            line.expect("=")
            if key in attrs or key == "self":  # which would be an argument of Attrs twice
                _fail(line.number, f"attribute {quote(key)} cannot be given (again)", line.text)
            attrs[key] = line.attr()
        controls = self.ports(line) if line.take("^") else ()
        region = self.region(line) if line.take("in") else self.homes.get(_prefix(name), self.current)
        node = Node(op, tuple(inputs), tuple(types), name, region, Attrs(**attrs), controls, self.span(line))
        self.add(node, line)

    def operand(self, line: _Line) -> Operand:
        if line.peek() in DTYPES and line.peek(1) == "[":
            return self.big(line)
        is_name = line.kind() == "string" or (line.kind() == "word" and line.peek() not in _RESERVED)
        return self.port(line) if is_name else line.const()

    def big(self, line: _Line) -> Const:
        type_ = line.type()
        name = line.read("`$` and the 16 digits that name an array", "digest", lambda text: text[1:])
        if name not in self.shared.found:
            value = self.shared.constants.get(name)
            if value is None:
                hint = "pass parse(text, dump_constants(graph)): text does not hold big arrays"
                _fail(line.number, f"array ${name} is not among the constants", line.text, hint)
            if value.dtype not in _DTYPES or digest(value) != name:
                _fail(line.number, f"the constant given for ${name} is another array", line.text)
            self.shared.found[name] = Const(value)
        if self.shared.found[name].type != type_:
            _fail(line.number, f"array ${name} is {self.shared.found[name].type}, not {type_}", line.text)
        return self.shared.found[name]

    def declare(self, line: _Line, region: Region, number: int | None) -> int:
        """A new region, numbered in order unless the text says otherwise."""
        number = self.next_region if number is None else number
        if number in self.regions:
            _fail(line.number, f"there are two regions number {number}", line.text)
        if region.kind != "branch":
            self.section = region.name
        self.regions[number] = region
        self.paths[number] = f"{self.section}/{region.name}" if region.kind == "branch" else region.name
        self.next_region = number + 1
        return number

    def branch(self, line: _Line) -> None:
        name, number = line.name("the name of a branch"), line.index()
        at, decides = line.at, line.name("the predicate")
        line.at = at
        pred = self.port(line)
        side = line.expect("true", "false") if line.take("is") else ""
        starts = self.ports(line) if line.take("^") else ()
        parent = self.region(line) if line.take("in") else self.homes.get(_prefix(decides), self.current)
        line.end()
        if side:
            self.declare(line, Region("branch", name, parent, pred, side == "true", starts), number)
            return
        yes, no = (tuple(Port(start.node, k) for start in starts) for k in (0, 1))
        self.declare(line, Region("branch", f"{name}.then", parent, pred, True, yes), number)
        self.declare(line, Region("branch", f"{name}.else", parent, pred, False, no), None)

    def body(self, line: _Line) -> None:
        """A main, function, loop or map region of a static graph."""
        kind = line.expect(*_BODIES)
        name, number = line.name("the name of a region"), line.index()
        parent = self.region(line) if line.take("in") else None
        starts = self.ports(line) if line.take("^") else ()
        line.end()
        self.current = self.declare(line, Region(kind, name, parent, starts=starts), number)

    def signature(self, line: _Line, number: int) -> Phase:
        if line.take("["):
            params = [port.node for port in line.some(lambda: self.port(line), "]")]
        else:
            line.expect("(")
            name, span = _start_name(number), None
            if line.kind() in ("word", "string") and line.peek(1) in ("@", ";"):
                name, span = line.name(), self.span(line)
                line.expect(";")
            first = self.add(_start(number, name, span), line) + 1
            params = line.some(lambda: self.param(line, number, len(self.nodes) - first), ")")
        line.expect("->")
        line.expect("(")
        return Phase(tuple(params), tuple(line.some(lambda: self.port(line), ")")))

    def param(self, line: _Line, phase: int, index: int) -> int:
        name = line.name("a parameter")
        line.expect(":")
        return self.add(_param(phase, index, name, line.type(), self.span(line)), line)

    def finished_regions(self, line: _Line) -> tuple[Region, ...]:
        if sorted(self.regions) != list(range(len(self.regions))):
            _fail(
                line.number,
                f"{len(self.regions)} regions must have the numbers from 0, but one has #{max(self.regions)}",
            )
        return tuple(self.regions[number] for number in range(len(self.regions)))


def _is_node(line: _Line) -> bool:
    return line.peek(1) in (":", "=")


def _is_header(line: _Line) -> bool:
    return line.peek() in _BODIES and not _is_node(line)


def parse(text: str, constants: Mapping[str, Array] | None = None) -> Library | StaticGraph:
    """Read the text of a library or static graph. `constants` holds the arrays that it refers to."""
    lines = [line for number, row in enumerate(text.split("\n"), 1) if (line := _Line(number, row)).tokens]
    if not lines:
        _fail(1, "expected `library` or `static`, but there is no text")
    first, shared = lines[0], _Shared([], constants or {}, {})
    kind = first.expect("library", "static")
    if first.integer("the version of the format") != VERSION:
        _fail(first.number, f"only format {VERSION} is known", first.text)
    at = 1
    while at < len(lines) and not _is_node(lines[at]) and lines[at].take("file"):
        line = lines[at]
        if line.integer("the number of the file") != len(shared.files):
            _fail(line.number, f"expected file number {len(shared.files)}", line.text)
        shared.files.append((line.string(), line.name("a function") if line.take("in") else ""))
        line.end()
        at += 1
    return _library(first, lines[at:], shared) if kind == "library" else _static(first, lines[at:], shared)


def _library(first: _Line, lines: Sequence[_Line], shared: _Shared) -> Library:
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
            _fail(lines[begin].number, f"there are two functions named {quote(function.name)}", lines[begin].text)
        functions[function.name] = function
    return Library(functions, main)


def _function(lines: Sequence[_Line], reader: _Reader) -> FunctionGraph:
    for line in lines:
        line.at = 0
    header = lines[0]
    kind, name = header.expect(*_BODIES), header.name()
    phases: dict[int, Phase] = {}
    if header.peek() in ("(", "["):
        phases[0] = reader.signature(header, 0)
    carried = 0
    if header.take("carried"):
        header.expect("=")
        carried = header.integer()
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
                _fail(line.number, f"phase {number} is given twice", line.text)
            phases[number] = reader.signature(line, number)
        else:
            line.fail("a node, `branch` or `phase`")
        line.end()
    if sorted(phases) != list(range(len(phases))):
        _fail(header.number, f"phases {sorted(phases)} are given, not all from 0", header.text)
    regions = reader.finished_regions(header)
    body = Region(kind, body.name, starts=_starts(reader.nodes) if starts is None else starts)
    ordered = tuple(phases[number] for number in range(len(phases)))
    return FunctionGraph(tuple(reader.nodes), (body, *regions[1:]), name, kind, ordered, carried, span)


def _static(first: _Line, lines: Sequence[_Line], shared: _Shared) -> StaticGraph:
    name = first.name()
    first.end()
    learn = _Reader(shared)
    _static_lines(lines, learn, name)
    return _static_lines(lines, _Reader(shared, learn), name)


def _static_lines(lines: Sequence[_Line], reader: _Reader, name: str) -> StaticGraph:
    inputs: tuple[Port, ...] = ()
    fetches: tuple[Port, ...] = ()
    sites: list[Site] = []
    for line in lines:
        line.at = 0
        if _is_node(line):
            if not reader.regions:
                _fail(line.number, "expected a region for the node to be in, such as `main main`", line.text)
            reader.node(line)
        elif line.take("inputs"):
            inputs += reader.ports(line)
        elif line.take("fetches"):
            fetches += reader.ports(line)
        elif line.take("site"):
            if line.integer("the number of the site") != len(sites) + 1:
                _fail(line.number, f"expected site number {len(sites) + 1}", line.text)
            kind, label = line.name("call, loop or map"), line.name("a label")
            line.expect(":")
            caller = reader.region(line)
            line.expect("->")
            sites.append(Site(kind, label, caller, reader.region(line), reader.span(line)))
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
