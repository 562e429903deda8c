"""Closure conversion: hidden parameters for the outer values and variables that a graph uses.

Hidden parameters (docs/design/0003-hidden-parameters.md) are those that a graph takes besides its arguments: values of
enclosing graphs, an order token if it acts on the world, a key if it draws random numbers. They are found while the
graph is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.errors import CaptureError, UndertowError
from undertow.frontend.control.helpers import Place
from undertow.frontend.control.merge import force
from undertow.frontend.control.restart import StartOver
from undertow.frontend.syntax.calling import is_library_module
from undertow.frontend.syntax.source import Env
from undertow.frontend.trace.builder import START, Builder
from undertow.frontend.trace.by_class import is_guarded_by_class
from undertow.frontend.trace.definition import Binding, Changed, Specialization
from undertow.frontend.trace.guards import Read
from undertow.frontend.trace.places import Paths, Places, needs_now
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import is_static_equal
from undertow.frontend.values.traced import Context, Traced, emit, is_traced
from undertow.ir.graph import Port
from undertow.ir.names import Names
from undertow.types import CTL, Type, i64

if TYPE_CHECKING:
    from undertow.frontend.interpret.branches import StatementInterpreter

Outer = tuple[Builder, Port]  # a value of an enclosing graph


def name_of(outer: Outer) -> str:
    """What a value is called in its graph."""
    return outer[0].nodes[outer[1].node].short_name


@dataclass(slots=True, eq=False)
class MainGraph:
    """What must be known of a program before it is captured."""

    types: tuple[Type, ...] = ()  # of the arguments
    assigned: frozenset[Any] = frozenset()  # variables that it assigns: their reads must be in program order
    paths: Paths = field(default_factory=Paths)
    guarded: frozenset[int] = frozenset()  # hidden arguments that must be guards, by path
    changing: frozenset[Any] = frozenset()  # places in the source that make arrays which change in place
    growing: Mapping[Any, Any] = field(default_factory=dict)  # places that make lists of run-time length -> their items
    level: int = 0  # of guards: 1 makes guards of all numbers that would be hidden arguments, 2 of arrays too
    # It has no base case if helpers are captured inline. As functions, they may not need all their arguments.
    endless: CaptureError | None = None
    recursive: frozenset[Place] = frozenset()  # helpers that call themselves where the run decides: functions
    not_as_functions: UndertowError | None = None  # why that failed: they are captured inline after all
    changed: tuple[int, ...] = ()  # the leaves of arguments that change in place
    changes_containers: bool = False


def _is_same(a: Any, b: Any) -> bool:
    """Are two leaves the same value?"""
    if isinstance(a, Traced) and isinstance(b, Traced):
        return a.builder is b.builder and a.port == b.port
    return a is b or is_static_equal(a, b)


class Scope:
    """The part of a `Session` that decides what is visible where a node is written."""

    interpreter: StatementInterpreter

    def __init__(self, ctx: Context, main: MainGraph) -> None:
        self.ctx = ctx
        self.main = main
        self.variables: dict[Any, str] = {}  # variable in use -> its name in the graphs
        self.binding: Binding | None = None
        self.failed_captures = 0
        self.objects: Any = None
        self.places: Places | None = None  # what is read outside; None where Python runs once, as in a SubGraph
        self._open: dict[Builder, Specialization] = {}  # captures under way, outermost first

    @property
    def is_called(self) -> bool:
        return len(self._open) > 1 and next(reversed(self._open.values())).definition.note("return") is not None

    # -- hidden parameters ---------------------------------------------------------------------------------

    def resolve(self, value: Traced) -> Port:
        builder = self.ctx.open_builder
        if value.builder is not builder:
            value = self.bound(value)
        if value.builder is builder:
            return builder.use(value.port)
        if value.builder.context is not builder.context:
            raise CaptureError(f"{value!r} belongs to another graph", hint="pass it as an argument")
        outer = (value.builder, value.port)
        if outer not in builder.lifted:
            self.hide(builder, outer)
        return builder.use(builder.lifted[outer])

    def effect_token(self) -> Port:
        builder = self.ctx.open_builder
        if builder.effect is None and builder.entry_effect is None:
            if builder.body is not None:
                raise StartOver(builder.body, needs_order=True)
            self.hide(builder, "effect")
        return self.last_effect(builder)

    def last_effect(self, builder: Builder) -> Port:
        last = builder.effect or builder.entry_effect
        assert last is not None
        return builder.use(last)

    def draw(self) -> Traced:
        key = self.key()
        builder = self.ctx.open_builder
        builder.draws += 1
        drawn: Traced = emit("fold_in", [key, np.int64(builder.draws)])[0]
        return drawn

    def draw_for_body(self) -> Traced:
        return self.draw()

    def key(self) -> Traced:
        """The random key of this activation."""
        builder = self.ctx.open_builder
        if builder.key is None:
            if builder.body is not None:
                raise StartOver(builder.body, needs_key=True)
            self.hide(builder, "key")
        assert builder.key is not None
        return Traced(builder, builder.key)

    def hide(self, builder: Builder, what: Any) -> None:
        """Add a hidden parameter: an order token ("effect"), a random key ("key"), or a value of an enclosing graph."""
        if what == "effect":
            builder.entry_effect = START if builder.kind == "main" else builder.param(CTL, "effect")
        elif what == "key":
            builder.key = builder.param(Type(i64), "seed" if builder.kind == "main" else "key")
        elif isinstance(what, Changed):
            array = what.array
            inside = builder.param(array.type, name_of((array.builder, array.port)))
            self.interpreter.changes.put(array, Traced(builder, inside))
        else:
            builder.lifted[what] = builder.param(what[0].type_of(what[1]), name_of(what))
        if builder in self._open:
            self._open[builder].hidden[what] = None

    def forget_hidden(self, builder: Builder) -> None:
        function = self._open.get(builder)
        if function is not None:
            there = {"effect": builder.entry_effect is not None, "key": builder.key is not None}
            function.hidden = {
                what: None
                for what in function.hidden
                if (there[what] if isinstance(what, str) else isinstance(what, Changed) or what in builder.lifted)
            }

    @property
    def changing(self) -> frozenset[Any]:
        return self.main.changing

    def let_change(self, place: Any) -> None:
        raise StartOver(self.main, changing=self.main.changing | {place})

    @property
    def is_nested(self) -> bool:
        return len(self._open) > 1

    @property
    def growing(self) -> Mapping[Any, Any]:
        return self.main.growing

    def let_grow(self, place: Any, item: Any) -> None:
        raise StartOver(self.main, growing={**self.main.growing, place: item})

    def change_outside(self, array: Traced, builder: Builder) -> None:
        function = self._open.get(builder)
        if function is not None:
            raise StartOver(function, hidden={**function.hidden, Changed(array): None})

    # -- outside -------------------------------------------------------------------------------------------

    def read_cell(self, cell: Any, name: str) -> Any:
        value = cell.cell_contents
        return value if self.places is None else self.places.take(None, cell, Read.CELL, None, value, name)

    def read_global(self, table: dict[str, Any], name: str, is_library: bool) -> Any:
        value = table[name]
        if self.places is None or is_library:
            return value
        if isinstance(value, ModuleType) and is_library_module(value.__name__):
            return value
        return self.places.take(None, table, Read.GLOBAL, name, value, name)

    def miss_global(self, table: dict[str, Any], name: str, is_library: bool) -> None:
        if self.places is not None and not is_library:
            self.places.miss(None, table, Read.GLOBAL, name)

    def attribute(self, value: Any, name: str) -> Any:
        if self.places is None or isinstance(value, Traced):
            return getattr(value, name)
        return self.places.attribute(value, name)

    def taken(self, value: Any) -> Any:
        return value if self.places is None else self.places.taken(value)

    def default(self, closure: Any, name: str, value: Any) -> Any:
        is_theirs = self.places is not None and isinstance(closure.python, FunctionType)
        return self.places.default(closure.python, name, value) if is_theirs else value  # type: ignore[union-attr]

    def hold(self, values: Iterable[Any]) -> None:
        if self.places is not None:
            for value in values:
                self.places.hold(value)

    def hold_code(self, function: Any) -> None:
        if self.places is not None:
            self.places.hold_code(function)

    def hidden_array(self, array: Any) -> Any:
        return array if self.places is None else self.places.hidden_array(array)

    def floats_of(self, value: Any) -> Any:
        is_read = self.places is not None and is_guarded_by_class(value)
        return self.places.floats_of(value) if is_read else None  # type: ignore[union-attr]

    def place_of(self, value: Traced) -> Any:
        origin = None if self.places is None else self.places.origin(value)
        return value if origin is None else origin[0]  # of columns of objects, the column

    def needs_now(self, value: Traced) -> None:
        if self.places is not None:
            needs_now(self.places, self.main, value)

    # -- names and variables -------------------------------------------------------------------------------

    def note_reading(self, env: Env, name: str, value: Any) -> None:
        leaves, structure = tree.flatten(value, is_traced)
        # An array may hold something else by the time of the next call.
        held = [Traced(leaf.builder, leaf.port) if isinstance(leaf, Traced) else leaf for leaf in leaves]
        self._note_seen(env, name, (held, structure))

    def _note_seen(self, env: Env, name: str, seen: tuple[list[Any], tree.Structure]) -> None:
        for function in self._open.values():
            if env.born < function.began:
                function.readings.setdefault((env, name), seen)

    def _sees_the_same(self, function: Specialization) -> bool:
        """Would the body read the same values now as when it was captured?"""
        for (env, name), (leaves, structure) in function.readings.items():
            now, structure_now = tree.flatten(force(env.vars.get(name), self.ctx), is_traced)
            changed = {id(array) for array in function.outer_arrays}
            if structure_now != structure or not all(
                id(b) in changed or _is_same(a, b) for a, b in zip(leaves, now, strict=True)
            ):
                return False
        return True

    def bound(self, value: Any) -> Any:
        if not self.binding:
            return value
        if self.places is not None and isinstance(value, Traced):
            # A hidden argument: the gradient knows an array by its identity, others by their places.
            origin = self.places.origin(value)
            known = [value] if origin is None else origin  # a column of objects, or a place and what was there
            bound = next((self.binding[id(by)] for by in known if id(by) in self.binding), None)
        else:
            bound = self.binding.get(id(value))
        return value if bound is None else bound[1]

    def seen(self, value: Any) -> Any:
        """The value itself: a variable looks up its substitute when it is read."""
        return value if not self.binding or hasattr(type(value), "__undertow_read__") else self.bound(value)

    def seen_inside(self, value: Any) -> Any:
        if not self.binding or not isinstance(value, (list, tuple, dict)):
            return self.seen(value)
        leaves, structure = tree.flatten(value, is_traced)
        if all(self.seen(leaf) is leaf for leaf in leaves):
            return value
        return tree.unflatten(structure, [self.seen(leaf) for leaf in leaves])

    def variable_name(self, variable: Any) -> str:
        if variable not in self.variables:
            self.variables[variable] = Names(self.variables.values(), "~").fresh(variable.name)
        return self.variables[variable]

    def uses_variable(self, variable: Any, writes: bool) -> bool:
        """Reads of a variable that nothing assigns need no order."""
        if writes and variable not in self.main.assigned:
            raise StartOver(self.main, assigned=self.main.assigned | {variable})
        return variable in self.main.assigned
