"""The protocol behind `Context.session`: what each API provides while graphs are written.

`@ut.function` implements it by capturing Python's source (capture.py), `ut.SubGraph` by running a block once
(block.py), `compat.v1` by writing nodes as the user calls functions (compat/v1/graph.py). Traced values, variables,
random numbers and the interpreter use their session through this protocol alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

from undertow.frontend.interpret.drive import Work
from undertow.frontend.trace.builder import Builder
from undertow.ir.graph import FunctionGraph, Port
from undertow.types import Type

if TYPE_CHECKING:  # these import sessions
    from undertow.frontend.interpret.branches import StatementInterpreter
    from undertow.frontend.syntax.annotations import Annotation
    from undertow.frontend.syntax.source import Closure, Env
    from undertow.frontend.trace.definition import Arguments, Binding, Definition, Specialization
    from undertow.frontend.values.traced import Context, Traced


class Session(Protocol):
    """One program under construction: its graphs, and what is visible where a node is written."""

    interpreter: StatementInterpreter
    graphs: dict[str, FunctionGraph]  # finished ones, by name
    objects: Any  # columns of objects of run-time shape among the arguments; None: there are none
    binding: Binding | None  # substitutes of a gradient for variables and captured arrays
    differentiated: dict[tuple[int, int], Any]  # definitions for `ut.jvp` of plain Python
    failed_captures: int  # functions whose capture was given up half-way

    @property
    def is_called(self) -> bool:
        """Is what is captured now a function with an annotated result that another captured one calls?"""

    @property
    def ctx(self) -> Context:
        """Where nodes are written now."""

    @property
    def changing(self) -> frozenset[Any]:
        """The places in the source that make arrays which change in place: these are values of the graph."""

    def let_change(self, place: Any) -> None:
        """Start over: the array that this place makes changes in place."""

    @property
    def is_nested(self) -> bool:
        """Is a function captured because captured code calls it?"""

    @property
    def growing(self) -> Mapping[Any, Any]:
        """The places in the source that make lists whose length is known only at run time, and the type of items."""

    def let_grow(self, place: Any, item: Any) -> None:
        """Start over: the list that this place makes has a length that is known only at run time."""

    def change_outside(self, array: Traced, builder: Builder) -> None:
        """A function changes an array of one around it: start over, with the array as a hidden parameter."""

    def fresh_name(self, name: str) -> str:
        """A unique name for a graph."""

    # -- values of enclosing graphs, and other hidden parameters -----------------------------------------------

    def resolve(self, value: Traced) -> Port:
        """The port of a traced value where nodes are written now; one of an enclosing graph becomes a parameter."""

    def effect_token(self) -> Port:
        """The order token after which the next effect may happen."""

    def last_effect(self, builder: Builder) -> Port:
        """The order token after the last effect of a graph."""

    def draw(self) -> Traced:
        """A random key of its own for one place in the program."""

    def draw_for_body(self) -> Traced:
        """A random key for a loop or map, from which its iterations or lanes have theirs."""

    def forget_hidden(self, builder: Builder) -> None:
        """After a rollback of the builder, forget the hidden parameters that are gone."""

    # -- what is outside of the program ------------------------------------------------------------------------

    def read_cell(self, cell: Any, name: str) -> Any:
        """What the program gets for a variable of a function around it; ValueError if it has no value."""

    def read_global(self, table: dict[str, Any], name: str, is_library: bool) -> Any:
        """What the program gets for a global variable; those of libraries are taken as they are."""

    def miss_global(self, table: dict[str, Any], name: str, is_library: bool) -> None:
        """Note that a name is not a global variable: it is one of Python's."""

    def attribute(self, value: Any, name: str) -> Any:
        """An attribute, or a `Getter` of it (places.py); AttributeError if there is none."""

    def taken(self, value: Any) -> Any:
        """What the program got for an object or container outside."""

    def default(self, closure: Closure, name: str, value: Any) -> Any:
        """What the program gets for the default of a parameter."""

    def hold(self, values: Iterable[Any]) -> None:
        """Code that is not captured gets to see these objects: what they hold must be the same in later calls."""

    def hold_code(self, function: Any) -> None:
        """Code of the user's runs as it is, during capture: what it reads must be the same in later calls."""

    def hidden_array(self, array: Any) -> Any:
        """An array that is known by its identity, as its contents are at each call."""

    def floats_of(self, value: Any) -> Any:
        """The floats that an object outside holds, in namespaces like it; None if it is no such object."""

    def place_of(self, value: Traced) -> Any:
        """What a gradient knows a hidden argument by."""

    def needs_now(self, value: Traced) -> None:
        """Python needs a traced value now: start over, if it comes from outside alone."""

    # -- variables, and their substitutes ----------------------------------------------------------------

    def variable_name(self, variable: Any) -> str:
        """The name of a `ut.Variable` in the graphs."""

    def uses_variable(self, variable: Any, writes: bool) -> bool:
        """Must this use of a `ut.Variable` be in program order?"""

    def bound(self, value: Any) -> Any:
        """The substitute for a variable or captured array here: the value itself, or an argument of a gradient."""

    def seen(self, value: Any) -> Any:
        """The value that a name, an attribute or an item has for the program."""

    def seen_inside(self, value: Any) -> Any:
        """An argument of code that is not the user's, with substitutes for the arrays in it."""

    def note_reading(self, env: Env, name: str, value: Any) -> None:
        """Note that a variable of an enclosing Python function is read."""

    # -- functions ---------------------------------------------------------------------------------------------

    def closure(self, function: FunctionType) -> Closure:
        """The syntax of a plain Python function."""

    def call_closure(self, closure: Closure, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Capture inline a function that native code calls, such as `functools.reduce`."""

    def outlined(self, closure: Closure, args: Sequence[Any], kwargs: dict[str, Any]) -> Definition | None:
        """A helper as a function of its own, if it may have to decide whether a call among its arguments is made."""

    def outline_recursion(self, closure: Closure) -> None:
        """Start over with a helper as a function of its own: it calls itself where the run decides."""

    @property
    def is_guessing(self) -> bool:
        """Is a function being captured only to learn what it returns?"""
        return False

    @property
    def takes_nothing(self) -> bool:
        """Are lists empty whose items such a function would compute?"""
        return False

    def until_known(self, attempt: Callable[[], Work]) -> Work:
        """The value of a `ut.cond` that plain Python calls: in a SubGraph's block, it may say what that one returns."""

    def call(self, definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        """Write a call node; capture the callee first if it has no graph yet."""

    def specialize(self, definition: Definition, arguments: Arguments) -> Work:
        """The specialization for these arguments; it is captured if it has no graph yet."""

    def write_call(
        self, callee: Specialization, arguments: Arguments, tangents: Mapping[int, Any] | None = None
    ) -> tuple[Any, list[Traced]]:
        """Write a call node; with `tangents` of some arguments, a tangent node, which adds those of float results."""

    def know_results(self, results: Annotation) -> None:
        """Say what the function being captured gives: then it may be called before its graph is finished."""

    def argument_types(self, name: str) -> tuple[Type, ...]:
        """The argument types of a function that has a graph."""
