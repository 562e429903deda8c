"""Calls that can only fault need not wait for each other.

Capture hands an order token from each effect to the next, in and out of every call, so that lines are printed in
program order. If nothing in a library prints, assigns or sows, and effects are asserts and raises alone, order decides
no more than which fault is met first; and the one that is reported is found by a search (`engines/reference/first.py`).
So a call then waits for the asserts before it, which may be there to end a recursion, and no longer for the calls
before it. All of them are still made: what waited for the last token waits for all.

Recursion with an assert forms waves then, as it does without. A loop keeps its iterations in order.

Devices: nothing moves; order tokens that are written have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from undertow.ir.draft import Copy
from undertow.ir.graph import FunctionGraph, Library, Node, Phase, Port
from undertow.ir.names import in_scope
from undertow.ir.structure import ENTERING
from undertow.ir.walk import awaited
from undertow.ops.effects import CHECKS, acts, is_stateful
from undertow.types import CTL


def unorder_faults(library: Library) -> tuple[Library, Counter[str]]:
    """The library with calls that wait for asserts alone, and how many these are."""
    nodes = [node for graph in library.functions.values() for node in graph.nodes]
    found = {node.op for node in nodes if acts(node.op) or is_stateful(node.op)}
    if not found or not found <= {*CHECKS}:
        return library, Counter()
    count = sum(map(_waits, nodes))
    if count == 0:
        return library, Counter()
    try:
        functions = {name: _Unordered(graph).make() for name, graph in library.functions.items()}
    except _OtherOrderError:
        return library, Counter()
    return Library(functions, library.main), Counter({"calls": count})


def _waits(node: Node) -> bool:
    """Is it entered with an order token, and gives one?"""
    return node.op in ENTERING and CTL in node.types


class _OtherOrderError(Exception):
    """Order tokens of another shape than capture gives them: they stay as they are."""


class _Unordered:
    """One graph. `copy.ports` has, for each order token of the old graph, what a call after it waits for."""

    def __init__(self, graph: FunctionGraph) -> None:
        self.graph = graph
        self.copy = Copy(graph)
        # By order token of the old graph: all that has to be done when it is there, of its region;
        self.done: dict[Port, tuple[Port, ...]] = {}
        # and the token that was led into that region.
        self.outside: dict[Port, Port | None] = {}

    def make(self) -> FunctionGraph:
        for number, node in enumerate(self.graph.nodes):
            self.add(number, node)
        phases = [
            Phase(
                tuple(self.copy.port(Port(param)).node for param in phase.params),
                tuple(map(self.result, phase.results)),
            )
            for phase in self.graph.phases
        ]
        return self.copy.freeze(phases)

    def add(self, number: int, node: Node) -> None:
        tokens = [port for port in dict.fromkeys(awaited(node)) if port in self.done]
        gives = [Port(number, index) for index, type_ in enumerate(node.types) if type_ == CTL]
        if node.op in CHECKS or (node.op in ENTERING and gives):
            tokens = tokens or [self.begun(port) for port in awaited(node) if self.graph.type_of(port) == CTL]
        if node.op == "param" and gives:
            new = self.copy.add(number)
            self.done[gives[0]], self.outside[gives[0]] = (Port(new),), None
        elif not tokens:
            if gives and node.op not in ("start", "switch"):
                raise _OtherOrderError
            self.copy.add(number)
        elif len({self.outside[port] for port in tokens}) > 1 and node.op != "merge":
            raise _OtherOrderError
        elif node.op in ENTERING and gives:
            self.enter(number, tokens, gives)
        elif node.op == "switch":
            new = self.copy.add(number)
            for side in gives:
                self.done[side], self.outside[side] = (Port(new, side.index),), tokens[0]
        elif node.op == "merge":
            self.merge(number, node, tokens)
        elif node.op in CHECKS or node.op == "identity":
            new = self.copy.add(number)
            for port in gives:
                self.done[port] = self.and_then(tokens, Port(new))
                self.outside[port] = self.outside[tokens[0]]
        else:
            self.copy.add(number)

    def begun(self, port: Port) -> Port:
        """The start of main, as the first order token."""
        if self.graph.nodes[port.node].op != "start":
            raise _OtherOrderError
        self.done[port], self.outside[port] = (self.copy.port(port),), None
        return port

    def and_then(self, tokens: Iterable[Port], new: Port) -> tuple[Port, ...]:
        """What is done after these tokens, and then something that waits for them."""
        before = (port for token in tokens for port in self.done[token] if port != self.copy.ports[token])
        return (*dict.fromkeys(before), new)

    def enter(self, number: int, tokens: list[Port], gives: list[Port]) -> None:
        """What comes after a call waits for what the call waits for."""
        if len(tokens) != 1 or len(gives) != 1:
            raise _OtherOrderError
        new = self.copy.add(number)
        self.copy.ports[gives[0]] = self.copy.ports[tokens[0]]
        self.done[gives[0]] = self.and_then(tokens, Port(new, gives[0].index))
        self.outside[gives[0]] = self.outside[tokens[0]]

    def merge(self, number: int, node: Node, tokens: list[Port]) -> None:
        """After a branch: a token for its asserts, and one for all that was done in it."""
        before = {self.outside[port] for port in tokens}
        around = before.pop() if len(tokens) == 2 and len(before) == 1 else None
        if around is None:
            raise _OtherOrderError
        new = self.copy.add(number)
        sides = [self.together(port) for port in tokens]
        done = Port(new)
        if sides != [self.copy.ports[port] for port in tokens]:
            draft = self.copy.draft
            region = self.copy.place(node.region)
            done = Port(draft.add(Node("merge", tuple(sides), node.types, node.name, region, span=node.span)))
        self.done[Port(number)] = self.and_then([around], done)
        self.outside[Port(number)] = self.outside[around]

    def together(self, token: Port) -> Port:
        """One token for all that has to be done when this one is there."""
        first, *others = self.done[token]
        if not others:
            return first
        draft, node = self.copy.draft, self.graph.nodes[token.node]
        region = draft.home(first)
        name = in_scope("done", draft.regions, region)
        return Port(draft.add(Node("identity", (first,), (CTL,), name, region, controls=tuple(others), span=node.span)))

    def result(self, port: Port) -> Port:
        return self.together(port) if port in self.done else self.copy.port(port)
