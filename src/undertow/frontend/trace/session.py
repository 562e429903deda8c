"""The protocol behind `Context.session`: what each API provides while graphs are written.

`@ut.function` implements it by capturing Python's source (capture.py), `ut.SubGraph` by running a block once
(block.py), `compat.v1` by writing whenever the user does (compat/v1/graph.py). Traced values, variables, random numbers
and the interpreter know their session by this protocol alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from undertow.frontend.interpret.drive import Work
from undertow.frontend.trace.builder import Builder
from undertow.ir.graph import FunctionGraph, Port
from undertow.types import Type

if TYPE_CHECKING:  # they are written in terms of sessions
    from undertow.frontend.interpret.branches import StatementInterpreter
    from undertow.frontend.syntax.source import Closure, Env
    from undertow.frontend.trace.definition import Arguments, Binding, Definition, Specialization
    from undertow.frontend.values.traced import Context, Traced


class Session(Protocol):
    """One program in the making: its graphs, and what is visible where a node is written."""

    interpreter: StatementInterpreter
    graphs: dict[str, FunctionGraph]  # those that are finished, by name
    binding: Binding | None  # what a gradient puts in the place of variables and captured arrays
    differentiated: dict[tuple[int, int], Any]  # what stands behind `ut.jvp` of plain Python

    @property
    def ctx(self) -> Context:
        """Where nodes are written now."""

    def fresh_name(self, name: str) -> str:
        """A name for a graph that no other graph has."""

    # -- values that belong to an enclosing graph, and what a graph takes besides its arguments ----------------

    def resolve(self, value: Traced) -> Port:
        """A traced value as seen where nodes are written now; one of an enclosing graph becomes a parameter."""

    def effect_token(self) -> Port:
        """The order token after which the next effect may happen."""

    def last_effect(self, builder: Builder) -> Port:
        """The order token that a graph has come to."""

    def draw(self) -> Traced:
        """A random key of its own for one place in the program."""

    def forget_hidden(self, builder: Builder) -> None:
        """After a rollback of the builder: hidden parameters are those that are still there."""

    # -- variables, and their substitutes ----------------------------------------------------------------

    def variable_name(self, variable: Any) -> str:
        """The name of a `ut.Variable` in the graphs."""

    def uses_variable(self, variable: Any, writes: bool) -> bool:
        """Must this use of a `ut.Variable` stand in program order?"""

    def bound(self, value: Any) -> Any:
        """The substitute for a variable or captured array here: the value itself, or an argument of a gradient."""

    def seen(self, value: Any) -> Any:
        """What a name, an attribute or an item gives."""

    def seen_inside(self, value: Any) -> Any:
        """An argument of code that is not the user's: a container with substitutes for the arrays in it."""

    def note_reading(self, env: Env, name: str, value: Any) -> None:
        """A variable of an enclosing Python function is read."""

    # -- functions ---------------------------------------------------------------------------------------------

    def closure(self, function: FunctionType) -> Closure | None:
        """The syntax of a plain Python function, or None where it has no source."""

    def call_closure(self, closure: Closure, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Capture a function inline that native Python calls, such as `functools.reduce`."""

    def call(self, definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        """Write a call node; capture the callee first where its graph is not there yet."""

    def specialize(self, definition: Definition, arguments: Arguments) -> Work:
        """The function for these arguments, captured where its graph is not there yet."""

    def write_call(
        self, callee: Specialization, arguments: Arguments, tangents: Mapping[int, Any] | None = None
    ) -> tuple[Any, list[Traced]]:
        """Write a call node; with `tangents` of some arguments a tangent node, which gives those of float results."""

    def argument_types(self, name: str) -> tuple[Type, ...]:
        """The types of the arguments of a function whose graph is there."""
