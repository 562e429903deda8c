"""A library as Yaghi's zero-order intensional program, in the notation of Kostopoulou's thesis, section 4.2.

Calls of each function are numbered from 0 on. `call_i(f)` is f's value in its call number i, and a formal parameter is
`actuals(...)` of what the calls give for it, in the order of their numbers. What else the thesis writes with formal
parameters is as it is there; a value that is used more than once has a definition of its own.

>>> from undertow.ir.text import parse
>>> print(intensional(parse('''
... library 1 main=main
...
... main main() -> (add)
...   f: i64   = call 4:i64 callee="f" ^start
...   f_2: i64 = call 5:i64 callee="f" ^start
...   add: i64 = add f, f_2
...
... function f(x: i64) -> (g)
...   add: i64 = add x, 1:i64
...   g: i64   = call add callee="g"
...
... function g(y: i64) -> (y)
... ''')), end="")
result = call_0(f) + call_1(f)
f = call_0(g)
g = y
x = actuals(4, 5)
y = actuals(x + 1)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from undertow.errors import GraphError
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.literal import INFIX
from undertow.ir.names import Names
from undertow.ir.structure import is_primitive
from undertow.ir.walk import origin, port_regions, reachable, target_of
from undertow.types import CTL

_TAKEN = ("result", "if", "then", "else", "and", "or", "not", "true", "false", "inf", "nan", "actuals")
_LONGEST = 60  # characters of an expression inside another one
_DEEPEST = 8  # levels of parentheses

# How tightly operators bind, as in Python.
_IF, _OR, _AND, _NOT, _COMPARE, _BIT_OR, _BIT_AND, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(12)
_BINDING = {
    "logical_or": _OR, "logical_and": _AND, "bitwise_or": _BIT_OR, "bitwise_and": _BIT_AND, "add": _SUM,
    "subtract": _SUM, "multiply": _PRODUCT, "divide": _PRODUCT, "floor_divide": _PRODUCT, "remainder": _PRODUCT,
    "power": _POWER,
}  # fmt: skip
_PREFIX = {"negative": ("-", _SIGN), "logical_not": ("not ", _NOT)}
# Functions of numbers, by their names here. The attributes of others would have to be said, too.
_NAMED = frozenset((
    "abs", "minimum", "maximum", "sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "floor", "ceil", "trunc", "sign",
    "square", "gcd", "where", "isnan", "isinf", "isfinite",
))  # fmt: skip
_NOT_SAID = {
    "loop": ("a loop", "write the loop as a recursive function"),
    "map": ("a map", "call the function for each element"),
    "resume": ("a gradient", "print the function itself, not its derivative"),
    "gradient": ("a gradient", "print the function itself, not its derivative"),
    "tangent": ("a derivative", "print the function itself, not its derivative"),
}


class _Text(NamedTuple):
    """An expression: its text, how tightly its outermost operator binds, how deeply it nests."""

    text: str
    binding: int = _ATOM
    depth: int = 0


def intensional(library: Library) -> str:
    """The program. What the notation cannot say is a GraphError: loops, maps, arrays, effects, derivatives."""
    library = _without_wrapper(library)
    _check(library.functions)
    return _Program(library.functions, library.main).text()


def _without_wrapper(library: Library) -> Library:
    """Where main is only a call without arguments, the function that it calls, unless others call it, too."""
    main = library.functions[library.main]
    calls = [node for node in main.nodes if node.op != "start"]
    if len(calls) != 1 or calls[0].op != "call" or any(type_ == CTL for type_ in calls[0].types) or main.params:
        return library
    name = target_of(main, calls[0])
    others = [node for graph in library.functions.values() for node in graph.nodes if node is not calls[0]]
    if calls[0].inputs or main.results != tuple(Port(port.node, k) for k, port in enumerate(main.results)):
        return library
    if len(main.results) != len(calls[0].types) or any(node.attrs.get("callee") == name for node in others):
        return library
    return replace(library, functions={n: g for n, g in library.functions.items() if n != library.main}, main=name)


def _word(name: str, before: str = "") -> str:
    """A name that is one word."""
    word = before + re.sub(r"\W", "_", name.rsplit(".", 1)[-1], flags=re.ASCII)
    return word if re.match(r"[A-Za-z_]", word) and not re.fullmatch(r"call_\d+", word) else f"v_{word}"


# --------------------------------------------------------------------------------------------------------------
# What the notation cannot say

_Reason = tuple[str, str] | None  # what a function has, and what to write instead


def _structure(graph: FunctionGraph, node: Node) -> _Reason:
    return _NOT_SAID.get(node.op)


def _effect(graph: FunctionGraph, node: Node) -> _Reason:
    is_effect = node.op not in ("start", "switch", "merge", "call", "param") and CTL in node.types
    return (f"an effect, `{node.op}`", "leave out prints, asserts and variables") if is_effect else None


def _value(graph: FunctionGraph, node: Node) -> _Reason:
    for type_ in (*node.types, *(graph.type_of(operand) for operand in node.inputs)):
        if type_.shape:
            return f"an array, {type_}", "its values are numbers: pass elements one by one"
        if type_.dtype.kind == "complex":
            return f"a complex number, {type_}", "compute with its parts"
    return None


def _operator(graph: FunctionGraph, node: Node) -> _Reason:
    known = node.op in INFIX or node.op in _PREFIX or node.op in _NAMED or node.op in ("cast", "identity")
    is_known = known or not is_primitive(node.op)
    return None if is_known else (f"the operator `{node.op}`", "use arithmetic, comparisons and calls")


def _check(graphs: Mapping[str, FunctionGraph]) -> None:
    """Raise what matters most, with its line."""
    for reason_of in (_structure, _effect, _value, _operator):
        for graph in graphs.values():
            for node in graph.nodes:
                reason = reason_of(graph, node)
                if reason is not None:
                    what = f"`{graph.name}` has {reason[0]}, which an intensional program cannot say"
                    raise GraphError(what, node.span or graph.span, hint=reason[1])


# --------------------------------------------------------------------------------------------------------------
# The program


class _Program:
    """The definitions of a program, made function by function."""

    def __init__(self, graphs: Mapping[str, FunctionGraph], main: str) -> None:
        self.graphs = graphs
        self.main = main
        self.names = Names(_TAKEN)
        self.results: dict[str, list[str]] = {}  # of each function
        for name, graph in graphs.items():
            if name != main:
                self.results[name] = self._numbered(_word(name), len(graph.results))
        self.results[main] = self._numbered("result", len(graphs[main].results), is_new=False)
        self.params: dict[str, list[str]] = {
            name: [self.names.fresh(_word(graph.nodes[n].name)) for n in graph.params]
            for name, graph in graphs.items()
            if name != main
        }
        inputs = graphs[main]
        self.params[main] = [self.names.fresh(_word(inputs.nodes[n].name, "input_")) for n in inputs.params]
        # The arguments of each function's calls, in the order of their numbers.
        self.actuals: dict[str, list[list[str]]] = {name: [] for name in graphs}

    def _numbered(self, name: str, count: int, is_new: bool = True) -> list[str]:
        if count == 1:
            return [self.names.fresh(name) if is_new else name]
        return [self.names.fresh(f"{name}_{k}") for k in range(count)]

    def text(self) -> str:
        """All definitions: results and functions, then formal parameters."""
        lines: list[str] = []
        called = [self.main]
        for name in called:  # grows meanwhile
            body = _Body(self, name, self.graphs[name])
            lines += body.definitions()
            called += [callee for callee in body.calls if callee not in called]
        for name in called[1:]:
            columns = zip(*self.actuals[name], strict=True)
            lines += [f"{p} = actuals({', '.join(c)})" for p, c in zip(self.params[name], columns, strict=True)]
        return "".join(f"{line}\n" for line in lines)


class _Body:
    """The definitions of one function."""

    def __init__(self, program: _Program, name: str, graph: FunctionGraph) -> None:
        self.program = program
        self.name = name
        self.graph = graph
        self.region_of = port_regions(graph)
        self.params = {Port(number): text for number, text in zip(graph.params, program.params[name], strict=True)}
        self.texts: dict[Port, _Text] = {}
        self.own: list[str] = []  # definitions of values that are used more than once
        self.calls: dict[str, None] = {}  # the functions that it calls
        self.needed = self._needed()
        self.uses: Counter[Port] = Counter(port for n in self.needed for port in self._asked(graph.nodes[n]))
        self.given = [port for port in map(self._source, graph.results) if isinstance(port, Port)]
        self.uses.update(self.given)

    def definitions(self) -> list[str]:
        """Its results, then what they share."""
        for number, node in enumerate(self.graph.nodes):
            if number in self.needed:
                self._define(number, node)
        results = [self._operand(port).text for port in self.graph.results]
        named = self.program.results[self.name]
        return [*(f"{name} = {text}" for name, text in zip(named, results, strict=True)), *self.own]

    # -- expressions -----------------------------------------------------------------------------------------

    def _source(self, operand: Operand) -> Operand:
        """A value as it was before switches and identities."""
        found = origin(self.graph, operand)
        while isinstance(found, Port) and self.graph.nodes[found.node].op == "identity":
            found = origin(self.graph, self.graph.nodes[found.node].inputs[0])
        return found

    def _asked(self, node: Node) -> list[Port]:
        """The values that a node's expression names."""
        operands: list[Operand] = [*node.inputs]
        if node.op == "merge":
            operands.append(self._sides(node)[0])
        return [port for port in map(self._source, operands) if isinstance(port, Port)]

    def _needed(self) -> dict[int, None]:
        """The nodes that the results need."""
        starts = [port.node for port in map(self._source, self.graph.results) if isinstance(port, Port)]
        return reachable(starts, lambda number: [port.node for port in self._asked(self.graph.nodes[number])])

    def _sides(self, node: Node) -> tuple[Port, Operand, Operand]:
        """The predicate of a Merge, what it is where that is true, and where it is false."""
        sides: dict[bool, Operand] = {}
        pred: Port | None = None
        for operand in node.inputs:
            assert isinstance(operand, Port)
            region = self.graph.regions[self.region_of(operand)]
            assert region.pred is not None
            pred, sides[region.side] = region.pred, operand
        assert pred is not None
        return pred, sides[True], sides[False]

    def _define(self, number: int, node: Node) -> None:
        """The expression of each output of a node. Inputs come before."""
        if node.op == "call":
            self._call(number, node)
            return
        port = Port(number)
        if port in self.params:
            self.texts[port] = _Text(self.params[port])
            return
        made = self._made(node)
        is_shared = self.uses[port] > 1 and made.binding < _ATOM
        is_large = len(made.text) > _LONGEST or made.depth > _DEEPEST
        if is_shared or (is_large and port not in self.given):
            name = self.program.names.fresh(self._name(node))
            self.own.append(f"{name} = {made.text}")
            made = _Text(name)
        self.texts[port] = made

    def _name(self, node: Node) -> str:
        return f"{'result' if self.name == self.program.main else _word(self.name)}_{_word(node.short_name)}"

    def _call(self, number: int, node: Node) -> None:
        callee = target_of(self.graph, node)
        calls = self.program.actuals[callee]
        self.calls[callee] = None
        for index, result in enumerate(self.program.results[callee]):
            self.texts[Port(number, index)] = _Text(f"call_{len(calls)}({result})")
        calls.append([self._operand(operand).text for operand in node.inputs])

    def _made(self, node: Node) -> _Text:
        if node.op == "merge":
            pred, then, other = (self._operand(operand) for operand in self._sides(node))
            text = f"if ({pred.text}) then {self._inner(then, _OR)} else {other.text}"
            return _Text(text, _IF, 1 + max(pred.depth, then.depth, other.depth))
        parts = [self._operand(operand) for operand in node.inputs]
        depth = 1 + max((part.depth for part in parts), default=0)
        if node.op in INFIX:
            at = _BINDING.get(node.op, _COMPARE)
            # Comparisons do not chain, powers group to the right, all others to the left.
            left, right = (at + (at in (_COMPARE, _POWER)), at + (at != _POWER))
            return _Text(f"{self._inner(parts[0], left)} {INFIX[node.op]} {self._inner(parts[1], right)}", at, depth)
        if node.op in _PREFIX:
            sign, at = _PREFIX[node.op]
            return _Text(f"{sign}{self._inner(parts[0], at)}", at, depth)
        if node.op == "cast":
            return _Text(f"{node.types[0].dtype}({parts[0].text})", depth=depth)
        return _Text(f"{node.op}({', '.join(part.text for part in parts)})", depth=depth)

    def _inner(self, part: _Text, least: int) -> str:
        return f"({part.text})" if part.binding < least else part.text

    def _operand(self, operand: Operand) -> _Text:
        source = self._source(operand)
        if isinstance(source, Port):
            return self.texts[source]
        return _number(source)


def _number(const: Const) -> _Text:
    value = const.value[()]
    if isinstance(value, np.bool_):
        return _Text("true" if value else "false")
    text = str(int(value)) if isinstance(value, np.integer) else str(value)
    return _Text(text, _SIGN if text.startswith("-") else _ATOM)
