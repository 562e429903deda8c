"""Control flow during capture: statements still to run, and how a list of them is left.

The statements to run are a linked list of cells, so that two sides of a branch can stand at places in one list.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from undertow.errors import Span
from undertow.frontend.control.state import State
from undertow.frontend.values.leaves import ABSENT
from undertow.frontend.values.traced import Traced


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """A statement to run, and what comes after it."""

    statement: Any  # ast.stmt, Mark or End
    next: Cell | None


@dataclass(slots=True, eq=False)
class Mark:
    """The place in the list where a loop that Python unrolls starts its next iteration, or ends."""

    node: ast.For | ast.While
    items: Iterator[Any] | None  # of a `for`
    nodes: int = 0  # number of nodes when it began
    rounds: int = 0
    is_traced: bool = False  # a traced condition ends it, so it is a loop of the graph
    is_shared: bool = False  # may others take items of its iterator?


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """The end of the body of a loop of the graph: where `continue` leads."""


@dataclass(frozen=True, slots=True, eq=False)
class Return:
    """The function is left with a value."""

    value: Any
    span: Span | None = None  # of the `return`; after a join, of one of them


@dataclass(frozen=True, slots=True)
class Leave:
    """`break` or `continue` of the innermost loop: that of the next Mark in the list."""

    is_break: bool


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """Where control goes is computed at run time: `flow` is 0 to fall through, else the number of an exit."""

    flow: Traced
    exits: tuple[Any, ...]  # exit number n is exits[n - 1]: RETURN or a Leave
    value: Any  # of the `return`, if RETURN is an exit
    falls: bool
    span: Span | None = None  # of the `return`
    only: dict[str, Any] = field(default_factory=dict)  # variables that have a value only where it falls through


RETURN = "return"
BREAK, CONTINUE = Leave(True), Leave(False)
Outcome = Return | Leave | Mixed | None  # None: fell through to the end


@dataclass(slots=True, eq=False)
class Side:
    """One side of a branch on its way to the join."""

    region: int
    state: State
    place: Cell | None  # where control continues after it; None is the end of the current statements
    outcome: Outcome


def cells(statements: list[ast.stmt], after: Cell | None = None) -> Cell | None:
    """The statements as a list that continues with `after`."""
    for statement in reversed(statements):
        after = Cell(statement, after)
    return after


def falls(outcome: Outcome) -> bool:
    """May control fall through with this outcome?"""
    return outcome is None or (isinstance(outcome, Mixed) and outcome.falls)


def keeps_state(outcome: Outcome) -> bool:
    """Does control continue in this function? (After `return` the variables are not needed.)"""
    return falls(outcome) or any(isinstance(exit, Leave) for exit in exits_of(outcome))


def exits_of(outcome: Outcome) -> tuple[Any, ...]:
    """The ways, other than falling through, that control may go."""
    if isinstance(outcome, Mixed):
        return outcome.exits
    if isinstance(outcome, Return):
        return (RETURN,)
    return () if outcome is None else (outcome,)


def returns(outcome: Outcome) -> bool:
    """May the function be left with a value? (A path that raises has none.)"""
    return RETURN in exits_of(outcome) and value_of(outcome) is not ABSENT


def value_of(outcome: Outcome) -> Any:
    """The returned value, or ABSENT if nothing is returned."""
    if isinstance(outcome, Return):
        return outcome.value
    return outcome.value if isinstance(outcome, Mixed) and RETURN in outcome.exits else ABSENT


def raised_as(leave: Leave, outcome: Outcome) -> Outcome:
    """The outcome of a loop's body, where paths that raise leave the iteration in another way: there is no value."""
    if RETURN not in exits_of(outcome) or value_of(outcome) is not ABSENT:
        return outcome
    if isinstance(outcome, Mixed):
        return replace(outcome, exits=tuple(leave if exit == RETURN else exit for exit in outcome.exits), value=None)
    return leave


def span_of(outcome: Outcome) -> Span | None:
    return outcome.span if isinstance(outcome, (Return, Mixed)) else None
