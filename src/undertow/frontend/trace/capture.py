"""Python functions become a library: one graph per function and signature, captured once.

A session captures everything that one outer call needs. A function that is called while it is still being
captured is recursive; its result annotation says what the call gives. What turns out during a capture
(values of an enclosing function that it uses, effects, random draws, a dimension that changes at a recursive
call) is remembered, and the function is captured again with that knowledge.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, TypeVar

import numpy as np

from undertow.errors import CaptureError, InternalError, Span, TypeMismatch, UndertowError, brief
from undertow.frontend.control.flow import describe, force, is_static_equal, leaf_type, port_in
from undertow.frontend.control.loops import NeedFeature
from undertow.frontend.control.termination import refuse_endless
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.interpret.statements import StatementInterpreter
from undertow.frontend.syntax.annotations import Annotation, Dims, as_array, convert, read
from undertow.frontend.syntax.calling import bind_arguments, library_closure
from undertow.frontend.syntax.source import Closure, Env, births, closure_of
from undertow.frontend.trace.builder import START, Builder
from undertow.frontend.trace.declared import opened
from undertow.frontend.trace.graft import Ready, with_variables
from undertow.frontend.values import tree
from undertow.frontend.values.traced import Context, Traced, capturing, context, emit, operand
from undertow.ir.graph import Attrs, FunctionGraph, Library, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.types import CTL, Type, i64, join

_Result = TypeVar("_Result")

# What stands for variables and captured arrays, by identity: those that a gradient is taken with respect to.
Binding = dict[int, tuple[Any, Any]]

# How many signatures one function may have, and how many of them one inside the other if none is smaller than the
# one around it: a recursion that makes its arguments larger would go on for ever, and may double them each time.
_MOST_SPECIALISATIONS = 64
_MOST_GROWING = 12
# What Python calls our classes in its own messages, in the user's words.
_WORDS = {
    "Traced": "a traced value",
    "TracedRange": "a range of traced length",
    "TracedText": "a text with traced values",
    "Closure": "a function",
}


def raised_by_python(fault: BaseException, span: Span | None) -> CaptureError:
    """The error of a line that raised something while it was captured."""
    said = re.sub(r"'?\b(Traced|TracedRange|TracedText|Closure)\b'?", lambda m: _WORDS[m[1]], str(fault))
    return CaptureError(
        f"Python raised {type(fault).__name__}{': ' + ' '.join(said.split()) if said else ''}",
        span,
        hint="the line runs as plain Python while the graph is captured",
    )


def _is_traced(value: Any) -> bool:
    return isinstance(value, Traced)


def _is_same(a: Any, b: Any) -> bool:
    """Are two leaves one value?"""
    if isinstance(a, Traced) and isinstance(b, Traced):
        return a.builder is b.builder and a.port == b.port
    return a is b or is_static_equal(a, b)


def _not_a_function(given: Any) -> CaptureError:
    kind = type(given).__name__
    what, hint = brief(given), "decorate a `def` or a lambda"
    if isinstance(given, type):
        what, hint = f"the class `{given.__name__}`", "decorate its methods one by one"
    elif isinstance(given, (staticmethod, classmethod, property)):
        what, hint = f"a {kind}", f"put @{kind} first, and @ut.function below it"
    elif isinstance(given, functools.partial):
        what, hint = "a functools.partial", "decorate the function itself, or a lambda that calls it"
    elif isinstance(given, MethodType):
        what, hint = f"the bound method `{given.__name__}`", "decorate the method where the class defines it"
    elif isinstance(given, BuiltinFunctionType):
        what, hint = f"`{given.__name__}`, which has no Python source", "call it inside a `def` that is decorated"
    elif callable(given):
        what, hint = f"an object of class `{kind}`", "decorate its method `__call__`, or a `def` that calls it"
    return CaptureError(f"@ut.function works on Python functions, not on {what}", hint=hint)


class Definition:
    """A function that the user decorated: its Python, and what its annotations say. Captured when first called."""

    is_checkpoint = False  # is it to be called again for its gradient, instead of keeping what it computed?
    hands_key_on = False  # does it stand for the one function that it calls, which draws the same random numbers then?

    def __init__(self, function: Callable[..., Any] | Closure) -> None:
        if not isinstance(function, (FunctionType, Closure)):
            raise _not_a_function(function)
        self.function = function
        self._closure = function if isinstance(function, Closure) else None
        self._notes: dict[str, Annotation | None] | None = None
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
        if self._notes is None:
            self._notes = {}
        if name not in self._notes:
            closure = self.closure
            has = name in closure.annotations
            self._notes[name] = read(closure.annotations[name]) if has else None
        return self._notes[name]

    def children(self, value: object) -> tuple[tree.Token, list[Any]] | None:
        """What a container among its arguments holds."""
        return tree.children(value)

    def ready(self, given: Arguments) -> Ready | None:
        """Graphs for these arguments that need no capture; None where Python is to be captured."""
        return None

    def body(
        self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Callable[[Any], Any] | None
    ) -> Work:
        """Write what a call of it does; `check` is for what it returns."""
        return session.interpreter.invoke(self.closure, args, kwargs, check)

    def standing(self, session: Session) -> Unit | None:
        """The unit that every call in this session calls; None where that depends on the arguments."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """Arguments of a call: their leaves, and what the leaves were taken from."""

    leaves: list[Any]  # traced or NumPy values
    types: tuple[Type, ...]  # as the graph shall see them
    structures: tuple[tree.Structure, ...]  # one per parameter
    names: list[str]  # one per leaf
    parameters: tuple[str, ...]
    is_fixed: tuple[bool, ...]  # was the leaf's type annotated?


def arguments(definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
    """Bind and check the arguments of a call."""
    current = context()
    # A call from outside is told where the function is defined: Python's traceback shows where it was called.
    span = current.span if current is not None else definition.closure.span
    values = bind_arguments(definition.closure, args, kwargs, span)
    leaves: list[Any] = []
    types: list[Type] = []
    structures: list[tree.Structure] = []
    names: list[str] = []
    fixed: list[bool] = []
    dims: Dims = {}
    for name, value in values.items():
        note = _spread(definition.note(name), value, definition.closure.signature.parameters[name])
        called = f"argument `{name}` of `{definition.name}`"
        if note is not None and note.structure == (tree.LEAF,) and isinstance(value, (list, tuple)):
            value = as_array(value, note.types[0].dtype, called, span)
        found, structure = tree.flatten(value, _is_traced, definition.children)
        if note is not None and note.structure != structure:
            raise TypeMismatch(
                f"{called} is {describe(value)}, but {tree.show(note.structure, note.types)} is annotated",
                span,
                hint=_how_to_structure(value, note),
            )
        wanted = note.types if note is not None else (None,) * len(found)
        if current is not None and current.session is not None and current.builder is not None:
            found = [current.session.bound(leaf) for leaf in found]
        for leaf, type, path in zip(found, wanted, tree.paths(value, name, _is_traced), strict=True):
            converted, seen = convert(leaf, type, called if path == name else f"`{path}` of {called}", dims, span)
            leaves.append(converted)
            types.append(seen)
            names.append(path)
            fixed.append(type is not None)
        if note is None and found:
            types[-len(found) :] = opened(types[-len(found) :], structure)
        structures.append(structure)
    return Arguments(leaves, tuple(types), tuple(structures), names, tuple(values), tuple(fixed))


def _spread(note: Annotation | None, value: Any, parameter: inspect.Parameter) -> Annotation | None:
    """The annotation of `*args` and `**kwargs` is that of each of them."""
    held = tree.children(value)
    if note is None or held is None or parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return note
    return Annotation(note.types * len(value), (held[0], *note.structure * len(value)))


def _is_list_for_array(value: Any, note: Annotation) -> bool:
    return isinstance(value, (list, tuple)) and note.structure == (tree.LEAF,) and note.types[0].rank > 0


def _how_to_return(value: Any, note: Annotation) -> str:
    if _is_list_for_array(value, note):
        return "make an array of it with ut.stack, or change the annotation"
    return "return what is annotated, or change the annotation"


def _how_to_structure(value: Any, note: Annotation) -> str:
    """What to do about an argument of the wrong structure."""
    if _is_list_for_array(value, note):
        return "make an array of it with ut.stack, or change the annotation"
    if value is None or isinstance(value, (str, bytes)):
        return "give a number or an array" if note.structure == (tree.LEAF,) else "give values of that structure"
    if isinstance(value, np.ndarray) or (note.structure == (tree.LEAF,) and not isinstance(value, (tuple, list, dict))):
        return "use numbers and arrays of bool, i32, i64, f32 or f64"
    return "give the same structure, or change the annotation"


@dataclass(slots=True, eq=False)
class Unit:
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


def _size(given: Arguments) -> tuple[int, int]:
    return sum(map(len, given.structures)), sum(t.rank for t in given.types)


class _Generalise(Exception):
    """A recursive call has other dimensions: capture the unit again with run-time dimensions there."""

    def __init__(self, unit: Unit, types: tuple[Type, ...]) -> None:
        self.unit = unit
        self.types = types


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """A library and how to feed it: `types` of the leaves, the structure of the result."""

    library: Library
    types: tuple[Type, ...]
    structures: tuple[tree.Structure, ...]
    result: tree.Structure
    result_count: int
    needs_seed: bool
    variables: dict[str, Any] = field(default_factory=dict)  # name in the graphs -> the variable
    written: frozenset[str] = frozenset()


class _Writes(Exception):
    """A variable is assigned that was taken to be only read: capture everything again, its reads in order."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable


class Session:
    """One capture, from the outer call to the finished library."""

    def __init__(self, written: frozenset[Any] = frozenset(), context: type[Context] = Context) -> None:
        self.ctx = context(self)
        self.variables: dict[Any, str] = {}  # those that are used, with the names that the graphs know them by
        self.written = written
        self.interpreter = StatementInterpreter(self.ctx)
        self.units: list[Unit] = []
        self.graphs: dict[str, FunctionGraph] = {}  # loops and maps, and units when done
        self._names: dict[str, int] = {}
        self._closures: dict[Any, Closure | None] = {}
        self._open: dict[Builder, Unit] = {}
        self._grafts: dict[Ready, Unit] = {}
        self.wrapped: dict[tuple[int, int], Any] = {}  # what is differentiated here: see tangents.py
        self.binding: Binding | None = None

    # -- what traced values and the interpreter ask for ----------------------------------------------------

    def fresh_name(self, name: str) -> str:
        fresh = name
        while fresh in self._names:  # grafted graphs may bring names that end in ~2
            self._names[name] += 1
            fresh = f"{name}~{self._names[name]}"
        self._names[fresh] = 1
        return fresh

    def closure(self, function: FunctionType) -> Closure | None:
        """The syntax of a plain Python function, or None where it has no source."""
        if function not in self._closures:
            self._closures[function] = library_closure(function)
        return self._closures[function]

    def call_closure(self, closure: Closure, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """A captured function called by native Python, such as `functools.reduce`."""
        return drive(self.interpreter.invoke(closure, args, kwargs))

    def resolve(self, value: Traced) -> Operand:
        """A traced value as seen in the graph and region that are being written."""
        builder = self.ctx.open_builder
        if value.builder is builder:
            return builder.use(value.port)
        if value.builder.context is not builder.context:
            raise CaptureError(f"{value!r} belongs to another graph", hint="hand it over as an argument")
        outer = (value.builder, value.port)
        if outer not in builder.lifted:
            name = value.builder.nodes[value.port.node].name.rsplit("/", 1)[-1]
            builder.lifted[outer] = builder.param(value.type, name)
            self._hide(builder, outer)
        return builder.use(builder.lifted[outer])

    def effect_token(self) -> Port:
        """The order token after which the next effect may happen."""
        builder = self.ctx.open_builder
        if builder.effect is None and builder.entry_effect is None:
            if builder.kind in ("loop", "map"):
                raise NeedFeature(builder, "effect")
            builder.entry_effect = START if builder.kind == "main" else builder.param(CTL, "effect")
            self._hide(builder, "effect")
        return self.last_effect(builder)

    def last_effect(self, builder: Builder) -> Port:
        last = builder.effect or builder.entry_effect
        assert last is not None
        return builder.use(last)

    def draw(self) -> Traced:
        """A random key of its own for one place in the program."""
        key = self.key()
        builder = self.ctx.open_builder
        builder.draws += 1
        made: Traced = emit("fold_in", [key, np.int64(builder.draws)])[0]
        return made

    def key(self) -> Traced:
        """The random key of this activation."""
        builder = self.ctx.open_builder
        if builder.key is None:
            if builder.kind in ("loop", "map"):
                raise NeedFeature(builder, "key")
            builder.key = builder.param(Type(i64), "key" if builder.kind == "function" else "seed")
            self._hide(builder, "key")
        return Traced(builder, builder.key)

    def note_reading(self, env: Env, name: str, value: Any) -> None:
        """A variable of an enclosing function is read."""
        self._note_seen(env, name, tree.flatten(value, _is_traced))

    def _note_seen(self, env: Env, name: str, seen: tuple[list[Any], tree.Structure]) -> None:
        for unit in self._open.values():
            if env.born < unit.began:
                unit.readings.setdefault((env, name), seen)

    def _sees_the_same(self, unit: Unit) -> bool:
        """Would the body read now what it read when it was captured?"""
        for (env, name), (leaves, structure) in unit.readings.items():
            now, structure_now = tree.flatten(force(env.vars.get(name), self.ctx), _is_traced)
            if structure_now != structure or not all(map(_is_same, leaves, now)):
                return False
        return True

    def bound(self, value: Any) -> Any:
        """What stands for a variable or captured array here: the value itself, or an argument of a gradient."""
        found = self.binding.get(id(value)) if self.binding else None
        return value if found is None else found[1]

    def seen(self, value: Any) -> Any:
        """What a name, an attribute or an item gives. A variable is itself, and asks what it is bound to when read."""
        return value if hasattr(type(value), "__undertow_read__") else self.bound(value)

    def seen_inside(self, value: Any) -> Any:
        """An argument of what is not the user's own Python: a container with what stands for the arrays in it."""
        if not self.binding or not isinstance(value, (list, tuple, dict)):
            return self.seen(value)
        leaves, structure = tree.flatten(value, _is_traced)
        if not any(id(leaf) in self.binding for leaf in leaves):
            return value
        return tree.unflatten(structure, [self.seen(leaf) for leaf in leaves])

    def takes(self, name: str) -> tuple[Type, ...]:
        """The types of the arguments of a function whose graph is there."""
        units = (*reversed(self.units), *self._grafts.values())
        return next(unit.types for unit in units if unit.name == name)

    def variable_name(self, variable: Any) -> str:
        """The name of a variable in the graphs of this session."""
        if variable not in self.variables:
            taken = set(self.variables.values())
            names = (variable.name if k == 1 else f"{variable.name}~{k}" for k in itertools.count(1))
            self.variables[variable] = next(name for name in names if name not in taken)
        return self.variables[variable]

    def uses_variable(self, variable: Any, writes: bool) -> bool:
        """Must this use stand in program order? Reads of a variable that nothing assigns need no order."""
        if writes and variable not in self.written:
            raise _Writes(variable)
        return variable in self.written

    def _hide(self, builder: Builder, what: Any) -> None:
        unit = self._open.get(builder)
        if unit is not None:
            unit.hidden[what] = None

    def forget_hidden(self, builder: Builder) -> None:
        """After a rollback: the hidden parameters are those that are still there."""
        unit = self._open.get(builder)
        if unit is not None:
            there = {"effect": builder.entry_effect is not None, "key": builder.key is not None}
            unit.hidden = {
                what: None for what in unit.hidden if (there[what] if isinstance(what, str) else what in builder.lifted)
            }

    # -- calls ---------------------------------------------------------------------------------------------

    def call(self, definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
        """Write a call node; capture the callee first where its graph is not there yet."""
        given = arguments(definition, args, kwargs)
        unit = yield self.find_unit(definition, given)
        return self.write_call(unit, given)[0]

    def find_unit(self, definition: Definition, given: Arguments) -> Work:
        """The function for these arguments, captured where its graph is not there yet."""
        span = self.ctx.span
        ready = definition.ready(given)
        unit = definition.standing(self)
        if unit is None:
            unit = self._find(definition, given) if ready is None else self._graft(definition, ready, given)
        if unit is None:
            unit = self._new(definition, given)
            yield self._capture(unit)
            self.ctx.span = span
        elif unit.is_open:
            unit.was_called_open = True
            if unit.results is None:
                raise self._no_result(unit, span)
        for (env, name), seen in list(unit.readings.items()):
            self._note_seen(env, name, seen)
        assert unit.results is not None
        return unit

    def write_call(
        self, unit: Unit, given: Arguments, tangents: Mapping[int, Any] | None = None
    ) -> tuple[Any, list[Traced]]:
        """Write a call node; with `tangents` of some arguments a tangent node, which gives those of float results."""
        builder = self.ctx.open_builder
        assert unit.results is not None
        effectful = "effect" in unit.hidden or "order" in unit.hidden
        if not unit.results.types and not effectful:
            return tree.unflatten(unit.results.structure, []), []
        inputs = [operand(leaf) for leaf in given.leaves]
        controls: tuple[Port, ...] = ()
        for what in list(unit.hidden):
            if what == "effect":
                inputs.append(self.effect_token())
            elif what == "order":
                controls = (self.effect_token(),)
            elif what == "key":
                caller = self._open.get(builder)
                hands_on = caller is not None and caller.definition.hands_key_on
                inputs.append(operand(self.key() if hands_on else self.draw()))
            else:
                inputs.append(operand(Traced(*what)))
        types = tuple(t.erased() for t in unit.results.types) + ((CTL,) if effectful else ())
        op, attrs = "call", Attrs(callee=unit.name)
        wanted: tuple[int, ...] = ()
        if tangents is not None:
            wanted = tuple(k for k, type in enumerate(types) if type.dtype.kind == "float")
            op, attrs = "tangent", Attrs(callee=unit.name, given=tuple(tangents), wanted=wanted)
            inputs += map(operand, tangents.values())
        outputs = (*types, *(types[k] for k in wanted))
        short = unit.definition.short_name
        if unit.definition.is_checkpoint and tangents is None:
            if effectful:
                raise CaptureError(
                    f"`{unit.definition.name}` acts on the world (print, assert or assign): it cannot be called again",
                    hint="leave ut.checkpoint out, or take what acts out of the function",
                )
            attrs = Attrs(callee=unit.name, checkpoint=True)
        number = builder.add(op, inputs, outputs, attrs, self.ctx.span, short, controls)
        values = [Traced(builder, Port(number, k)) for k in range(len(outputs))]
        if effectful:
            builder.effect = Port(number, len(types) - 1)
        value = tree.unflatten(unit.results.structure, values[: len(unit.results.types)])
        return value, values[len(types) :]

    def _graft(self, definition: Definition, ready: Ready, given: Arguments) -> Unit:
        """A function that needs no capture: its graphs, under names that are free here."""
        if ready not in self._grafts:
            name, graphs = ready.grafted(self.fresh_name)
            if ready.variables:
                for variable, is_written in ready.variables.values():
                    if self.bound(variable) is not variable:
                        raise CaptureError(
                            f"`{definition.name}` is a graph already: the gradient does not see its variable "
                            f"`{variable.name}`",
                            hint="hand the value over as an argument",
                        )
                    self.uses_variable(variable, is_written)
                names = {known: self.variable_name(variable) for known, (variable, _) in ready.variables.items()}
                graphs = {key: with_variables(graph, names) for key, graph in graphs.items()}
            self.graphs.update(graphs)
            hidden = dict.fromkeys(ready.hidden)
            self._grafts[ready] = Unit(definition, name, ready.types, given, hidden, ready.results, graphs[name])
        return self._grafts[ready]

    def _find(self, definition: Definition, given: Arguments) -> Unit | None:
        """The unit that takes these arguments, if there is one."""
        nearly: Unit | None = None
        specialisations = 0
        for unit in reversed(self.units):
            if unit.definition is not definition or unit.binding is not self.binding or not self._sees_the_same(unit):
                continue
            specialisations += 1
            if unit.arguments.structures != given.structures:
                continue
            if unit.types == given.types:
                return unit
            both = [join(a, b) for a, b in zip(unit.types, given.types, strict=True)]
            if None in both:
                continue
            if tuple(both) == unit.types:
                nearly = nearly or unit
            elif unit.is_open:
                raise _Generalise(unit, tuple(both))  # type: ignore[arg-type]
        if nearly is None and (specialisations >= _MOST_SPECIALISATIONS or self._grows(definition, given)):
            raise self._too_many_types(definition)
        return nearly

    def _grows(self, definition: Definition, given: Arguments) -> bool:
        """Is this one of a long row of calls inside calls, each with larger arguments than the one before?"""
        sizes = [_size(u.arguments) for u in self._open.values() if u.definition is definition][-_MOST_GROWING:]
        return len(sizes) == _MOST_GROWING and [*sizes, _size(given)] == sorted([*sizes, _size(given)])

    def _no_result(self, unit: Unit, span: Span | None) -> CaptureError:
        """A function is called while it is being captured, and nobody knows yet what it gives."""
        closure = unit.definition.closure
        inside = [u.definition.name for u in self._open.values()]
        names = inside[inside.index(closure.name) :] if closure.name in inside else []
        through = "" if len(names) < 2 else f" ({' -> '.join(f'`{n}`' for n in [*names, closure.name])})"
        if isinstance(closure.node, ast.Lambda):
            return CaptureError(
                "a lambda that calls itself cannot say what it returns",
                span,
                hint="use a `def` with an annotated result: `def f(n: ut.i64) -> ut.i64:`",
            )
        taken = ", ".join(closure.signature.parameters)
        said = ""
        if "return" in closure.annotations:
            said = ", and its annotation names no type"
        return CaptureError(
            f"`{closure.name}` calls itself{through}, so its result must be annotated{said}",
            span,
            hint=f"write what it returns: `def {closure.node.name}({taken}) -> ut.i64:`, or ut.f32[3], or a tuple",
        )

    def _too_many_types(self, definition: Definition) -> CaptureError:
        """Every call has arguments of yet another type: say which argument, and how it goes on."""
        given = [unit.arguments for unit in self.units if unit.definition is definition][:4]
        shown: list[list[str]] = []
        for arguments in given:
            at, row = 0, []
            for structure in arguments.structures:
                count = sum(token == tree.LEAF for token in structure)
                row.append(tree.show(structure, arguments.types[at : at + count]))
                at += count
            shown.append(row)
        columns = list(zip(given[0].parameters, zip(*shown, strict=False), strict=False))
        name, types = next(((n, c) for n, c in columns if len(set(c)) == len(c)), columns[0])
        while len(types) > 2 and sum(map(len, types)) > 80:
            types = types[:-1]
        return CaptureError(
            f"argument `{name}` of `{definition.name}` has another type at each call: {', '.join(types)}, ...",
            hint="a recursive call must keep the dtypes, ranks and structures of its arguments",
        )

    def _new(self, definition: Definition, given: Arguments) -> Unit:
        unit = Unit(definition, self.fresh_name(definition.name), given.types, given, binding=self.binding)
        unit.results = definition.note("return")
        self.units.append(unit)
        return unit

    def _capture(self, unit: Unit) -> Work:
        """Write the graph of a unit, again where it turns out that more must be known."""
        outer, closure = self.ctx.builder, unit.definition.closure
        while True:
            known = len(unit.hidden)
            before = len(self.units)
            unit.was_called_open = False
            unit.began, unit.readings = next(births), {}
            context = None if outer is None else outer.context
            builder = Builder(unit.name, "function", closure.span, context=context)
            leaves = [
                Traced(builder, builder.param(t, n)) for t, n in zip(unit.types, unit.arguments.names, strict=True)
            ]
            for what in unit.hidden:
                self._hidden_param(builder, what)
            self._open[builder] = unit
            unit.is_open = True
            self.ctx.builder = builder
            try:
                value = yield unit.definition.body(self, *self._actual(unit, leaves), self._check_of(unit))
                # A branch that was left before the order token was asked for does not hand it on.
                is_disordered = "effect" in list(unit.hidden)[known:]
                if len(unit.hidden) != known and (unit.was_called_open or is_disordered):
                    del self.units[before:]
                    continue
                unit.graph = self._finish(unit, builder, value)
                self.graphs[unit.name] = unit.graph
                return
            except _Generalise as wider:
                if wider.unit is not unit:
                    raise
                unit.types = wider.types
                del self.units[before:]
            finally:
                builder.is_open = False
                unit.is_open = False
                del self._open[builder]
                self.ctx.builder = outer

    def _hidden_param(self, builder: Builder, what: Any) -> None:
        if what == "effect":
            builder.entry_effect = builder.param(CTL, "effect")
        elif what == "key":
            builder.key = builder.param(Type(i64), "key")
        else:
            owner, port = what
            name = owner.nodes[port.node].name.rsplit("/", 1)[-1]
            builder.lifted[what] = builder.param(owner.type_of(port), name)

    def _actual(self, unit: Unit, leaves: list[Traced]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments as the body sees them."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        at = 0
        for name, structure in zip(unit.arguments.parameters, unit.arguments.structures, strict=True):
            count = sum(token == tree.LEAF for token in structure)
            value = tree.unflatten(structure, leaves[at : at + count])
            at += count
            kind = unit.definition.closure.signature.parameters[name].kind
            if kind == kind.VAR_POSITIONAL:
                args.extend(value)
            elif kind == kind.VAR_KEYWORD:
                kwargs.update(value)
            elif kind == kind.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return args, kwargs

    def _check_of(self, unit: Unit) -> Callable[[Any], Any] | None:
        """Checks what a `return` gives against the annotation, and converts it; None where there is none."""
        note = unit.definition.note("return")
        if note is None:
            return None
        called = f"the result of `{unit.definition.name}`"

        def check(value: Any) -> Any:
            leaves, structure = tree.flatten(value, _is_traced)
            if note.structure != structure:
                raise TypeMismatch(
                    f"{called} is {describe(value)}, but {tree.show(note.structure, note.types)} is annotated",
                    self.ctx.span,
                    hint="end every path with `return` and a value" if value is None else _how_to_return(value, note),
                )
            dims: Dims = {}
            places = tree.paths(value, "result", _is_traced)
            converted = [
                convert(leaf, wanted, called if place == "result" else f"`{place}` of `{unit.definition.name}`", dims)
                for leaf, wanted, place in zip(leaves, note.types, places, strict=True)
            ]
            return tree.unflatten(structure, [leaf for leaf, _ in converted])

        return check

    def _finish(self, unit: Unit, builder: Builder, value: Any) -> FunctionGraph:
        """Check the result against the annotation, and close the graph."""
        ports = self.result_ports(unit, value)
        if "effect" in unit.hidden:
            ports.append(self.last_effect(builder))
        return builder.finish(ports)

    def result_ports(self, unit: Unit, value: Any) -> list[Port]:
        """The result as tokens of the graph, checked against the annotation; the unit learns what it gives."""
        note = unit.definition.note("return")
        check = self._check_of(unit)
        if check is not None:
            if value is None:
                self.ctx.span = unit.definition.closure.span
            value = check(value)  # of a lambda, or the None of a body that has no `return`
        leaves, structure = tree.flatten(value, _is_traced)
        ports: list[Port] = []
        types: list[Type] = []
        for leaf, wanted in zip(leaves, note.types if note is not None else (None,) * len(leaves), strict=True):
            converted, type = convert(leaf, wanted, f"the result of `{unit.definition.name}`", {})
            ports.append(port_in(converted, 0, self.ctx))
            types.append(type if wanted is not None else leaf_type(converted))
        unit.results = Annotation(tuple(types), structure)
        return ports

    # -- the outer call ------------------------------------------------------------------------------------

    def capture(self, given: Arguments, work: Callable[[list[Traced]], Work]) -> Captured:
        """The library of a main graph whose parameters are the given leaves and whose body is `work`."""
        builder = Builder("main", "main")
        self.fresh_name("main")
        leaves = [Traced(builder, builder.param(t, n)) for t, n in zip(given.types, given.names, strict=True)]
        self.ctx.builder = builder
        with capturing(self.ctx):
            try:
                value = drive(work(leaves))
                results, structure = tree.flatten(value, _is_traced)
                ports = [port_in(leaf, 0, self.ctx) for leaf in results]
            except UndertowError as fault:
                if fault.span is None:
                    fault.span = self.ctx.span
                raise
            except _Writes:
                raise
            except (_Generalise, NeedFeature) as fault:
                raise InternalError(f"an unhandled {type(fault).__name__}", self.ctx.span) from fault
            except (Exception, SystemExit) as fault:
                raise raised_by_python(fault, self.ctx.span) from fault
        if builder.effect is not None:
            ports.append(builder.use(builder.effect))
        main = builder.finish(ports)
        library = self.library(main)
        refuse_endless(library)
        types = tuple(t for t in given.types)
        variables = {name: variable for variable, name in self.variables.items()}
        written = frozenset(name for variable, name in self.variables.items() if variable in self.written)
        return Captured(
            library, types, given.structures, structure, len(results), builder.key is not None, variables, written
        )

    def library(self, main: FunctionGraph) -> Library:
        """The graphs that main needs, callers before callees, numbered anew: some were captured more than once."""
        found = [main]
        names = {"main": "main"}
        uses = {"main": 1}
        for graph in found:  # which grows
            for node in graph.nodes:
                name = node.attrs.get("callee", node.attrs.get("body"))
                if isinstance(name, str) and name not in names:
                    is_body = node.op in ("loop", "map")
                    stem = f"{names[graph.name]}.{node.op}" if is_body else name.rsplit("~", 1)[0]
                    uses[stem] = uses.get(stem, 0) + 1
                    names[name] = stem if uses[stem] == 1 else f"{stem}~{uses[stem]}"
                    found.append(self.graphs[name])
        return Library({names[graph.name]: _renamed(graph, names) for graph in found}, "main")


def _renamed(graph: FunctionGraph, names: dict[str, str]) -> FunctionGraph:
    nodes = tuple(
        replace(
            node, attrs=Attrs(**{k: names[str(v)] if k in ("callee", "body") else v for k, v in node.attrs.items()})
        )
        if node.op in ENTERS
        else node
        for node in graph.nodes
    )
    body, *branches = graph.regions
    name = names[graph.name]
    return replace(graph, name=name, nodes=nodes, regions=(replace(body, name=name), *branches))


def capture_call(definition: Definition, given: Arguments) -> Captured:
    """The library for calling a function with arguments of these types."""
    captured, types = until_order_is_known(lambda written: _capture_call(definition, given, written))
    if types != given.types:
        # The function turned out to work for more sizes: let the main graph take them all.
        wider = replace(given, types=types)
        captured, _ = until_order_is_known(lambda written: _capture_call(definition, wider, written))
    return captured


def until_order_is_known(attempt: Callable[[frozenset[Any]], _Result]) -> _Result:
    """Capture, again whenever a variable turns out to be written."""
    written: frozenset[Any] = frozenset()
    while True:
        try:
            return attempt(written)
        except _Writes as found:
            written |= {found.variable}


def _capture_call(
    definition: Definition, given: Arguments, written: frozenset[Any]
) -> tuple[Captured, tuple[Type, ...]]:
    session = Session(written)
    callee = Unit(definition, "", given.types, given)

    def work(leaves: list[Traced]) -> Work:
        session.ctx.span = definition.closure.span
        args, kwargs = session._actual(callee, leaves)
        value = yield session.call(definition, args, kwargs)
        callee.types = session.units[0].types if session.units else given.types
        return value

    return session.capture(given, work), callee.types


def capture_map(definition: Definition, given: Arguments, mapped: tuple[bool, ...]) -> Captured:
    """The library for many calls in one run, over the leading axis of the mapped arguments."""
    return until_order_is_known(lambda written: _capture_map(definition, given, mapped, written))


def _capture_map(
    definition: Definition, given: Arguments, mapped: tuple[bool, ...], written: frozenset[Any]
) -> Captured:
    from undertow.frontend.control import forms

    session = Session(written)

    def work(leaves: list[Traced]) -> Work:
        session.ctx.span = definition.closure.span
        values: list[Any] = []
        at = 0
        for structure, is_mapped in zip(given.structures, mapped, strict=True):
            count = sum(token == tree.LEAF for token in structure)
            value = tree.unflatten(structure, leaves[at : at + count])
            at += count
            values.append(value if is_mapped else forms.Shared(value))
        return (yield forms.graph_map(session.interpreter, values, lambda args: session.call(definition, args, {})))

    # The length is not part of the signature: one graph serves any number of calls.
    types: list[Type] = []
    at = 0
    for structure, is_mapped in zip(given.structures, mapped, strict=True):
        for _ in range(sum(token == tree.LEAF for token in structure)):
            type = given.types[at]
            types.append(type.with_shape((None, *type.shape[1:])) if is_mapped and type.rank else type)
            at += 1
    widened = Arguments(given.leaves, tuple(types), given.structures, given.names, given.parameters, given.is_fixed)
    return session.capture(widened, work)
