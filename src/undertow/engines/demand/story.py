"""A run on demand as a line-by-line log: what each EVAL demands, and its result.

Lines are about *equations*: results of functions, parameters, loop variables, and expressions that are used more than
once or are too long to be written inside another. Call, Return and Switch have no lines: the tags show what they do. An
EVAL whose value is known at once has one line; any other has two, with its demands in between.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from undertow.engines.checks import Value
from undertow.engines.demand.index import FAR, DemandIndex
from undertow.engines.demand.store import Frame
from undertow.ir.graph import Const, Node, Operand, Port
from undertow.ir.structure import BACK, INWARD
from undertow.ir.text import INFIX
from undertow.ir.trace import show_label, show_tag, show_value
from undertow.ir.walk import in_order, phase_of
from undertow.ops.op import CATALOGUE
from undertow.types import CTL

_LONGEST = 60  # characters of an expression that is written inside another
_DEEPEST = 20  # levels of indentation


class Leaf(NamedTuple):
    """An equation that an expression refers to: under the same tag, or in the body that a site enters."""

    name: str
    site: int | None = None


Expression = tuple[str | Leaf, ...]


class Story:
    """The log of a run, which reports to it step by step; `text` gives the whole."""

    def __init__(self, index: DemandIndex, longest: int) -> None:
        self.index = index
        self.nodes = index.graph.nodes
        self.longest = longest
        self.lines: list[str] = []
        self.left_out = 0
        self.waiting: list[tuple[str, int]] = []  # demands under way: left hand side, line
        self._results = {
            (index.site(node).callee, phase_of(node)): node.attrs.integer("index") + 1
            for node in sorted(self.nodes, key=lambda node: node.attrs.get("index") or 0)
            if node.op == "return"
        }
        self._uses = self._count_uses()
        self._expressions: dict[int, Expression] = {}  # what each node computes, in terms of equations
        self._equations: set[int] = set()
        self._loose: set[int] = set()  # nodes whose expressions need parentheses inside others
        for number in self._in_order():
            self._expressions[number] = expression = self._make(number)
            if self._is_equation(number, expression):
                self._equations.add(number)

    def text(self) -> str:
        more = [f"... {self.left_out} lines more"] if self.left_out else []
        return "\n".join([*self.lines, *more])

    # -- reports of the run --------------------------------------------------------------------------------

    def fetch(self, number: int) -> None:
        port = self.index.graph.fetches[number]
        if port.node not in self._equations:  # equations have lines of their own
            self._ask(f"EVAL({_short(self.nodes[port.node])}, [])", _show(self._operand(port), "[]"))

    def fetched(self, number: int, value: Value) -> None:
        port = self.index.graph.fetches[number]
        if port.node not in self._equations:
            self._tell(port, value)

    def demanded(self, number: int, frame: Frame) -> None:
        if self._has_line(number, frame):
            is_full = len(self.lines) >= self.longest  # a tag may be long: build none that is not shown
            self._ask(*(("", "") if is_full else self._line(number, frame)))

    def known(self, number: int, frame: Frame, value: Value) -> None:
        if self._has_line(number, frame):
            self._tell(Port(number), value)

    def _has_line(self, number: int, frame: Frame) -> bool:
        if self.nodes[number].op == "fan":  # in the lanes, not where the whole array is
            return frame.layout.region != self.index.bodies[number]
        return self.nodes[number].op == "return" or number in self._equations

    def _ask(self, left: str, right: str) -> None:
        left = "  " * min(len(self.waiting), _DEEPEST) + left
        self.waiting.append((left, len(self.lines)))
        self._write(f"{left} = {right}" if right else left)

    def _tell(self, port: Port, value: Value) -> None:
        shown = "done" if self.nodes[port.node].types[port.index] == CTL else show_value(value)
        left, line = self.waiting.pop()
        if line == len(self.lines) - 1 and not self.left_out:
            self.lines[line] += f" = {shown}"
        else:
            self._write(f"{left} = {shown}")

    def _write(self, line: str) -> None:
        if len(self.lines) < self.longest:
            self.lines.append(line)
        else:
            self.left_out += 1

    # -- lines ---------------------------------------------------------------------------------------------

    def _line(self, number: int, frame: Frame) -> tuple[str, str]:
        """Both sides of the equation of a node under the tag of a frame."""
        node, tag = self.nodes[number], frame.tag()
        here, above = show_tag(tag), show_tag(tag[1:])
        left = f"EVAL({_short(node)}, {here})"
        if node.op in BACK:
            site = node.attrs.integer("site")
            below = _push(str(site) if node.op == "return" else f"{site}.k", here)
            right = _show(self._operand(node.inputs[0]), below)
            if node.op == "return":
                return f"EVAL({self._result(node)}, {below})", right
            if node.op == "gather":
                return left, f"[{right} for each k]"
            pred = _show(self._operand(self.index.deciders[number]), below)
            return left, f"{right} for the first k with {pred} = False"
        if node.op == "fan" and node.types[0] != CTL:
            return left, f"{_show(self._operand(node.inputs[0]), above)}[{frame.index}]"
        if node.op in ("outer", "fan"):
            return left, _show(self._operand(node.inputs[0]), above)
        if node.op == "merge" and number not in self.index.deciders:
            if frame.index > 0:
                above = _push(show_label((frame.site, frame.index - 1)), above)
            argument = self._operand(self._sender(node, frame).inputs[0])
            if isinstance(argument[0], Leaf) and len(argument) == 1:
                return left, _show(argument, above)
            whole = f"EVAL({_plain(argument)}, {above})"
            return left, whole if len(argument) == 1 else f"{whole} = {_show(argument, above)}"
        if node.op == "input":
            return left, ""
        return left, _show(self._expressions[number], here)

    def _sender(self, node: Node, frame: Frame) -> Node:
        """The node that sends a parameter or variable into a frame."""
        senders = [self.nodes[port.node] for port in node.inputs if isinstance(port, Port)]
        if frame.index < 0:
            return next(sender for sender in senders if sender.attrs["site"] == frame.site)
        return next(sender for sender in senders if (sender.op == "next") == (frame.index > 0))

    def _result(self, node: Node) -> str:
        """The name of the result that a node returns: the function's, with a number if there are several."""
        callee, phase = self.index.site(node).callee, phase_of(node)
        name = self.index.graph.regions[callee].name.rsplit(".", 1)[-1] + (f"~{phase}" if phase else "")
        return name if self._results[callee, phase] == 1 else f"{name}#{node.attrs['index']}"

    # -- expressions ---------------------------------------------------------------------------------------

    def _count_uses(self) -> Counter[int]:
        """How often each node is used. Switches do not count, and a function's result counts once for all sites."""
        used = {
            (self._origin(port).node, "return" if self.nodes[number].op == "return" else number)
            for number, is_wanted in enumerate(self.index.wanted)
            if is_wanted and self.nodes[number].op != "switch"
            for port in self.index.asks(number)
        }
        return Counter(number for number, _ in used)

    def _origin(self, port: Port) -> Port:
        """The source of a value that switches forward."""
        node = self.nodes[port.node]
        while node.op == "switch" and isinstance(node.inputs[1], Port):
            port = node.inputs[1]
            node = self.nodes[port.node]
        return port

    def _in_order(self) -> list[int]:
        """The wanted nodes in topological order: each after the parts of its expression."""
        wanted = (number for number, is_wanted in enumerate(self.index.wanted) if is_wanted)
        parts = {n: () if self._is_from_elsewhere(n) else [port.node for port in self.index.asks(n)] for n in wanted}
        return in_order(parts)

    def _is_from_elsewhere(self, number: int) -> bool:
        op = self.nodes[number].op
        is_tagged = op == "merge" and number not in self.index.deciders
        return is_tagged or op in FAR or op in ("input", "fan")

    def _is_equation(self, number: int, expression: Expression) -> bool:
        node = self.nodes[number]
        if node.op in ("return", "switch"):
            return False
        row = CATALOGUE.get(node.op)
        is_effect = row is not None and (row.effect or len(node.types) > 1)
        is_shared = self._uses[number] > 1 and not (len(expression) == 1 and isinstance(expression[0], str))
        return self._is_from_elsewhere(number) or is_effect or is_shared or len(_plain(expression)) > _LONGEST

    def _make(self, number: int) -> Expression:
        """The expression that a node computes."""
        node = self.nodes[number]
        if self._is_from_elsewhere(number):
            return (Leaf(_short(node)),)
        if number in self.index.deciders:
            pred, then, other = (self._operand(p) for p in (self.index.deciders[number], *node.inputs))
            self._loose.add(number)
            return ("if ", *pred, " then ", *then, " else ", *other)
        if node.op in ("identity", "switch") or node.op in INWARD:
            forwarded = node.inputs[-1]
            if isinstance(forwarded, Port) and self._origin(forwarded).node in self._loose:
                self._loose.add(number)
            return self._operand(forwarded)
        if node.op not in CATALOGUE:
            return ("start",)
        parts: list[str | Leaf] = []
        if node.op in INFIX:
            self._loose.add(number)
            left, right = (self._inner(operand) for operand in node.inputs)
            parts = [*left, f" {INFIX[node.op]} ", *right]
        else:
            parts.append(f"{node.op}(")
            for index, operand in enumerate(node.inputs):
                parts += [", "] * (index > 0) + list(self._operand(operand))
            parts.append(")")
        for port in node.controls:
            if not self.index.is_plain(port):
                parts += [" after ", *self._operand(port)]
        return tuple(parts)

    def _operand(self, operand: Operand) -> Expression:
        """An operand as part of an expression: the name of its equation, or its own expression."""
        if isinstance(operand, Const):
            return (show_value(operand.value),)
        operand = self._origin(operand)
        node = self.nodes[operand.node]
        if self.index.is_plain(operand):
            return ("start",)
        if node.op == "return":
            return (Leaf(self._result(node), node.attrs.integer("site")),)
        if operand.node not in self._equations:
            return self._expressions[operand.node]
        return (Leaf(_short(node) + (f"#{operand.index}" if len(node.types) > 1 else "")),)

    def _inner(self, operand: Operand) -> Expression:
        """The same, in parentheses where it needs them."""
        inner = self._operand(operand)
        is_loose = isinstance(operand, Port) and self._origin(operand).node in self._loose
        return ("(", *inner, ")") if is_loose and len(inner) > 1 else inner


def _short(node: Node) -> str:
    """The name of a node within its body; an element has the name of its parameter."""
    name = node.name.split("/", 1)[-1]
    return name.rsplit(".", 1)[-1] if node.op == "fan" else name


def _push(label: str, tag: str) -> str:
    return f"[{label}]" if tag == "[]" else f"[{label}, {tag[1:]}"


def _plain(expression: Expression) -> str:
    return "".join(part if isinstance(part, str) else part.name for part in expression)


def _show(expression: Expression, tag: str) -> str:
    """The text of an expression under a tag, with an EVAL for each equation in it."""
    parts: list[str] = []
    for part in expression:
        if isinstance(part, Leaf):
            parts.append(f"EVAL({part.name}, {tag if part.site is None else _push(str(part.site), tag)})")
        else:
            parts.append(part)
    return "".join(parts)
