"""Behaviors as data: states, the firings between them, and schedules with the user's lines.

The definitions are those of Abadi, Isard and Murray, "A Computational Model for TensorFlow" (MAPL 2017), section 3.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from undertow.engines.reference.frame import NONE
from undertow.engines.reference.replay import WORLD, Step
from undertow.engines.reference.state_graph import Path, StateGraph
from undertow.engines.reference.watched import Transit
from undertow.errors import Span
from undertow.ir.graph import Port, StaticGraph
from undertow.ir.trace import show_tag
from undertow.types import CTL


@dataclass(frozen=True)
class Token:
    """A token in transit: it has left one node, and the next has not fired."""

    edge: str  # "source -> target"; what is fed comes from `feed`, what is fetched goes to `fetch`
    tag: str  # of the activation, as in a schedule
    value: Any  # None if it bears none
    kind: str  # "data", "order" (a control edge's GO), or "dead" (of a branch that is not taken)

    def __str__(self) -> str:
        shown = {"order": "GO", "dead": "dead"}.get(self.kind) or _text(self.value)
        return f"{self.edge} {self.tag} = {shown}"


@dataclass(frozen=True)
class State:
    """What a program is in between two firings."""

    variables: dict[str, Any]
    in_transit: tuple[Token, ...]
    printed: str  # so far

    def __str__(self) -> str:
        return ", ".join(f"{name} = {_text(value)}" for name, value in self.variables.items())


@dataclass(frozen=True)
class Firing:
    """One firing that variables, output or the end of the run can show."""

    node: str
    tag: str
    did: str  # "reads x: 1", "x becomes 2", "prints 'a'"
    span: Span | None  # the user's line

    @property
    def line(self) -> str:
        """The text of the user's line, with its number; empty if it is not known."""
        if self.span is None:
            return ""
        return f"line {self.span.line}: {self.span.source().strip()}".removesuffix(": ")

    def __str__(self) -> str:
        return "  ".join(part for part in (f"{self.node} {self.tag}", self.did, self.line) if part)


@dataclass(frozen=True)
class Outcome:
    """One way in which a program can end, and one schedule that leads there."""

    result: Any  # of the program; None if it fails
    variables: dict[str, Any]  # their values afterwards
    printed: str  # the program's output
    error: str  # the error of the run, or ""
    schedule: tuple[str, ...]  # the firings on variables and on the world, in order: node and tag

    def describe(self) -> str:
        """The result and the variables, in one line."""
        parts = [f"error: {self.error}" if self.error else f"result: {self.result}"]
        parts += [f"{name}: {value}" for name, value in self.variables.items()]
        parts += [f"printed: {self.printed!r}"] * bool(self.printed)
        return ", ".join(parts)

    def __str__(self) -> str:
        return f"{self.describe()}\n  by {' -> '.join(self.schedule) or 'any schedule'}"


@dataclass(frozen=True)
class Schedule(Sequence[Firing]):
    """Firings in an order that leads to an outcome. Prints as a numbered list with the user's lines."""

    firings: tuple[Firing, ...]
    outcome: Outcome

    def __getitem__(self, index: Any) -> Any:
        return self.firings[index]

    def __len__(self) -> int:
        return len(self.firings)

    def __str__(self) -> str:
        return "\n".join([*_numbered(self.firings), self.outcome.describe()])


@dataclass(frozen=True)
class Behavior:
    """A sequence of states, each made from the one before by one firing: `firings[n]` leads to `states[n + 1]`."""

    states: tuple[State, ...]
    firings: tuple[Firing, ...]
    outcome: Outcome

    @property
    def history(self) -> tuple[dict[str, Any], ...]:
        """The values that the variables have, one after the other, without repetitions (up to stuttering)."""
        values = [state.variables for state in self.states]
        return (values[0], *(b for a, b in pairwise(values) if not _are_same(a, b)))

    def __str__(self) -> str:
        lines = _numbered(self.firings)
        shown = [f"{0:{len(str(len(lines)))}}. the start", *lines]
        text: list[str] = []
        for line, state in zip(shown, self.states, strict=True):
            text.append(line)
            tokens = [str(token) for token in state.in_transit if token.kind == "data"]
            text += [f"     {line}" for line in (str(state), *(f"in transit: {token}" for token in tokens)) if line]
        return "\n".join([*text, self.outcome.describe()])


class Teller:
    """Tells what a path through the states of a graph means, in the names of the program."""

    def __init__(self, graph: StaticGraph, states: StateGraph) -> None:
        self.graph = graph
        self.states = states
        self._known: dict[int, State] = {}

    def behavior(self, path: Path, outcome: Outcome) -> Behavior:
        """The states and firings of a path."""
        return Behavior(tuple(self._state(number) for _, number in path), self.firings(path), outcome)

    def firings(self, path: Path) -> tuple[Firing, ...]:
        """The firings of a path."""
        return tuple(self._firing(step, a, b) for (_, a), (step, b) in pairwise(path) if step is not None)

    def _firing(self, step: Step, before: int, after: int) -> Firing:
        node, end = self.graph.nodes[step.node], self.states.vertices[after].outcome
        if end is not None and end.error:  # variables are what they were before the run
            did = f"{'assigns' if step.writes else 'reads'} {', '.join(step.touches)}" if step.touches else "fires"
            did = f"{f'{node.op}s' if WORLD in step.touches else did}; the run fails"
        else:
            did = self._did(step, node.op, before, after)
        return Firing(step.name, show_tag(step.tag), did, node.span)

    def _did(self, step: Step, op: str, before: int, after: int) -> str:
        earlier, later = self.states.vertices[before].snapshot, self.states.vertices[after].snapshot
        if WORLD in step.touches:
            said = later.printed[len(earlier.printed) :]
            return f"prints {said!r}" if said else f"{op}s"
        values = [(name, _text(later.variables.get(name))) for name in step.touches]
        return ", ".join(f"{n} becomes {v}" if step.writes else f"reads {n}: {v}" for n, v in values)

    def _state(self, number: int) -> State:
        if number not in self._known:
            snapshot = self.states.vertices[number].snapshot
            tokens = sorted(map(self._token, snapshot.in_transit), key=_place)
            self._known[number] = State(dict(snapshot.variables), tuple(tokens), snapshot.printed)
        return self._known[number]

    def _token(self, token: Transit) -> Token:
        source = "feed" if token.source is None else self._port(token.source)
        target = "fetch" if token.target is None else self.graph.nodes[token.target].name
        maker = token.source if token.source is not None else Port(token.target or 0)
        is_order = self.graph.type_of(maker) == CTL
        kind = "dead" if token.value is NONE else "order" if is_order else "data"
        return Token(f"{source} -> {target}", show_tag(token.tag), token.value if kind == "data" else None, kind)

    def _port(self, port: Port) -> str:
        node = self.graph.nodes[port.node]
        return node.name if len(node.types) == 1 else f"{node.name}#{port.index}"


def _place(token: Token) -> tuple[str, str, str]:
    return token.kind, token.edge, token.tag


def _numbered(firings: Sequence[Firing]) -> list[str]:
    """The firings as a numbered list in columns."""
    rows = [(f"{firing.node} {firing.tag}", firing.did, firing.line) for firing in firings]
    first, second = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
    digits = len(str(len(rows)))
    return [f"{n:{digits}}. {a:{first}}  {b:{second}}  {c}".rstrip() for n, (a, b, c) in enumerate(rows, 1)]


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return " ".join(str(value).split())


def _are_same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Are the values the same, to the last bit where they are arrays? A nan is itself."""
    return all(
        np.asarray(a[name]).shape == np.asarray(b[name]).shape
        and np.asarray(a[name]).tobytes() == np.asarray(b[name]).tobytes()
        for name in a
    )
