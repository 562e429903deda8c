"""Which arguments of a program's calls are computed at once, and which by need: what `delay` does, for people to read.

>>> from undertow.ir.text import parse
>>> (call,) = calls_by_need(parse('''
... library 1 main=main
... main main(n: i64) -> (r)
...   r: i64 = call n callee="fac"
... function fac(n: i64) -> (r)
...   c: bool = less n, 2:i64
...   k: i64 = subtract n, 1:i64
...   f: i64 = call k callee="fac"
...   m: i64 = multiply n, f
...   r: i64 = call c, 1:i64, m callee="ite"
... function ite(c: bool, a: i64, b: i64) -> (r)
...   branch if1 c
...   a.if: i64, i64 = switch c, a
...   b.if: i64, i64 = switch c, b
...   r: i64 = merge a.if#0, b.if#1
... '''))
>>> print(call)
fac calls ite(c, 1, m)
  c  at once  every path needs it
  a  at once  neither a call nor a loop computes it
  b  by need  in if1.else, by 3 nodes: k, f, m
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from undertow.errors import Span
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.text import show_const
from undertow.ir.walk import origin
from undertow.ops.cones import Uses
from undertow.ops.late import LateCall
from undertow.passes.delay import Delayed, delay

_MOST_NAMES = 6  # of nodes, in a line


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: when it is computed, and why then."""

    name: str  # of the parameter
    operand: str
    is_late: bool
    why: str
    nodes: tuple[str, ...] = ()  # what computes it, if it is late


@dataclass(frozen=True, slots=True)
class NonStrictCall:
    """A call with arguments that its callee does not need on every path, one of which may take long to compute."""

    function: str
    name: str  # of its node
    callee: str
    arguments: tuple[Argument, ...]
    unused: int  # results that nobody uses, and that are not computed
    span: Span | None

    def __str__(self) -> str:
        where = "" if self.span is None else f", {self.span.file}:{self.span.line}"
        lines = [f"{self.function} calls {self.callee}({', '.join(a.operand for a in self.arguments)}){where}"]
        width = max((len(argument.name) for argument in self.arguments), default=0)
        for argument in self.arguments:
            when = "by need" if argument.is_late else "at once"
            lines.append(f"  {argument.name:{width}}  {when}  {argument.why}")
        if self.unused:
            lines.append(f"  {self.unused} of its results {'is' if self.unused == 1 else 'are'} not computed")
        return "\n".join(lines)

    @property
    def late(self) -> tuple[Argument, ...]:
        return tuple(argument for argument in self.arguments if argument.is_late)


def calls_by_need(library: Library) -> list[NonStrictCall]:
    """The calls of a library that are not strict where that matters, function by function."""
    delayed = delay(library)
    late = {(name, call.number): call for name, call in delayed.calls}
    found: list[NonStrictCall] = []
    for name, graph in library.functions.items():
        uses = Uses(graph)
        slow, fed = delayed.strictness.slow(graph.nodes)
        for number in sorted((uses.live & set(fed)) | {at for of, at in late if of == name}):
            call = late.get((name, number))
            unneeded = _unneeded(delayed, uses, graph.nodes[number], number)
            if call is not None or any(_is_of(slow, operand) for operand in unneeded.values()):
                found.append(_described(delayed, library, uses, number, call, slow))
    return found


def _is_of(nodes: set[int], operand: Operand) -> bool:
    return isinstance(operand, Port) and operand.node in nodes


def _unneeded(delayed: Delayed, uses: Uses, node: Node, number: int) -> dict[int, Operand]:
    results = uses.results(number)
    return {
        at: operand
        for at, operand in enumerate(node.inputs)
        if not delayed.strictness.is_needed(node, results, at)
        or (node.attrs.text("callee"), at) in delayed.growing  # which count as needed
    }


def _described(
    delayed: Delayed, library: Library, uses: Uses, number: int, call: LateCall | None, slow: set[int]
) -> NonStrictCall:
    graph = uses.graph
    node, callee = graph.nodes[number], library.functions[graph.nodes[number].attrs.text("callee")]
    unneeded = _unneeded(delayed, uses, node, number)

    def arguments() -> Iterator[Argument]:
        for at, operand in enumerate(node.inputs):
            param, shown = callee.nodes[callee.params[at]].name, _shown(graph, operand)
            if call is not None and at in call.roots:
                yield Argument(param, shown, True, *_cone(call, at))
                continue
            why = "every path needs it"
            if (callee.name, at) in delayed.growing:
                why = f"{callee.name} hands on more than it was given"
            elif at in unneeded:
                why = "neither a call nor a loop computes it"
                if _is_of(slow, operand):
                    why = "though not every path needs it: what computes it serves something else, acts, or comes first"
            yield Argument(param, shown, False, why)

    unused = 0 if call is None else len(callee.results) - len(call.results)
    return NonStrictCall(graph.name, node.name, callee.name, tuple(arguments()), unused, node.span)


def _cone(call: LateCall, argument: int) -> tuple[str, tuple[str, ...]]:
    """Where in the callee a late argument is computed, and by which nodes of the caller."""
    leading, todo = {call.roots[argument].node}, [call.roots[argument].node]
    while todo:
        node = call.host.nodes[todo.pop()]
        ports = (*node.inputs, *node.controls)
        fresh = {port.node for port in ports if isinstance(port, Port) and port.node in call.cone} - leading
        leading |= fresh
        todo += fresh
    order = [number for unit in call.units for number in unit if number in leading]
    root = next(k for k, unit in enumerate(call.units) if call.roots[argument].node in unit)
    where = [call.callee.regions[at].name for at in call.places[root]]
    names = tuple(call.host.nodes[number].name for number in order)
    shown = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    onwards = call.handed_to[root]
    counted = f"{len(names)} node{'s' * (len(names) != 1)}: {shown}"
    if onwards is not None:
        return f"where {call.callee.nodes[onwards].attrs.text('callee')} needs it, by {counted}", names
    return (f"in {' and '.join(where)}, by {counted}" if where else f"nowhere, as no path needs it: {counted}"), names


def _shown(graph: FunctionGraph, operand: Operand) -> str:
    if isinstance(operand, Const):
        return show_const(operand).rsplit(":", 1)[0]
    source = origin(graph, operand)
    assert isinstance(source, Port)
    node = graph.nodes[source.node]
    return node.name if len(node.types) == 1 else f"{node.name}#{source.index}"
