"""Functions as the user defines them, and their specializations: one graph for each signature that is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

from undertow.frontend.interpret.drive import Work
from undertow.frontend.syntax.annotations import Annotation, read
from undertow.frontend.syntax.source import Closure, Env, closure_of
from undertow.frontend.trace.arguments import Arguments
from undertow.frontend.trace.graft import Ready
from undertow.frontend.trace.refusals import not_a_function
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.ir.graph import FunctionGraph
from undertow.types import Type

# What stands for variables and captured arrays, by identity: those that a gradient is taken with respect to.
Binding = dict[int, tuple[Any, Any]]
# Checks and converts what a function returns; None where nothing is annotated.
Check = Callable[[Any], Any] | None


class Definition:
    """A function that the user decorated: its Python, and what its annotations say. Captured when first called."""

    is_checkpoint = False  # is it to be called again for its gradient, instead of keeping what it computed?
    hands_key_on = False  # does it stand for the one function that it calls, which draws the same random numbers then?

    def __init__(self, function: Callable[..., Any] | Closure) -> None:
        if not isinstance(function, (FunctionType, Closure)):
            raise not_a_function(function)
        self.function = function
        self._closure = function if isinstance(function, Closure) else None
        self._notes: dict[str, Annotation | None] = {}
        # What was made of it, such as its gradient, by what that is: so a second `ut.grad(f)` finds the first.
        self.made: dict[Any, Any] = {}

    @property
    def closure(self) -> Closure:
        if self._closure is None:
            assert isinstance(self.function, FunctionType)
            self._closure = closure_of(self.function)
        return self._closure

    @property
    def name(self) -> str:
        name: str = self.closure.name
        return name

    @property
    def short_name(self) -> str:
        """Its name without what it stands in: what calls of it are called."""
        return self.name.rsplit(".", 1)[-1]

    def note(self, name: str) -> Annotation | None:
        """What the annotation of a parameter, or of "return", says."""
        if name not in self._notes:
            written = self.closure.annotations
            self._notes[name] = read(written[name]) if name in written else None
        return self._notes[name]

    def children(self, value: object) -> tuple[tree.Token, list[Any]] | None:
        """What a container among its arguments holds."""
        return tree.children(value)

    def ready(self, arguments: Arguments) -> Ready | None:
        """Graphs for these arguments that need no capture; None where Python is to be captured."""
        return None

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        """Write what a call of it does; `check` is for what it returns."""
        return session.interpreter.invoke(self.closure, args, kwargs, check)

    def sole_specialization(self, session: Session) -> Specialization | None:
        """The specialization that every call in this session calls; None where that depends on the arguments."""
        return None


@dataclass(slots=True, eq=False)
class Specialization:
    """A function at one signature, on its way to a graph."""

    definition: Definition
    name: str
    types: tuple[Type, ...]
    arguments: Arguments
    # "effect", "key", (builder, port) of an enclosing graph, or "order": an effect whose graph takes no order token
    hidden: dict[Any, None] = field(default_factory=dict)
    results: Annotation | None = None
    graph: FunctionGraph | None = None
    is_open: bool = False
    was_called_open: bool = False
    began: int = 0
    # What it saw in variables that are older than itself: with other values there it is another function.
    readings: dict[tuple[Env, str], tuple[list[Any], tree.Structure]] = field(default_factory=dict)
    binding: Binding | None = None  # what stood for variables and arrays when it was captured
