"""Functions as the user defines them: their signatures, the arguments of calls, and a specialization for each of these.

Arguments are bound to parameters, checked against annotations and taken apart into leaves.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch, brief, kind_of
from undertow.frontend.control.handing_back import HandedBack, Handover, Path
from undertow.frontend.control.helpers import place_of
from undertow.frontend.control.restart import Halted
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.options import needed
from undertow.frontend.objects.arguments import Given, alike, has_handles, in_graph
from undertow.frontend.objects.convert import Converted
from undertow.frontend.objects.kinds import kinds_of
from undertow.frontend.syntax.annotations import Annotation, Dims, as_array, convert, read
from undertow.frontend.syntax.calling import bind_arguments, is_user_class
from undertow.frontend.syntax.locate import Located, is_in_memory, locate
from undertow.frontend.syntax.queries import is_procedure
from undertow.frontend.syntax.source import Closure, Env, NoSource, closure_of
from undertow.frontend.trace.by_class import by_class, static_objects
from undertow.frontend.trace.declared import opened
from undertow.frontend.trace.graft import Ready
from undertow.frontend.trace.own_classes import refuse_own_classes
from undertow.frontend.trace.places import Paths
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe
from undertow.frontend.values.listed import has_lists, with_lists
from undertow.frontend.values.operands import is_number
from undertow.frontend.values.traced import Traced, context, is_traced
from undertow.ir.graph import FunctionGraph
from undertow.types import DType, Type

# Substitutes, by identity, for the variables and captured arrays that a gradient is taken with respect to.
Binding = dict[int, tuple[Any, Any]]
# Checks and converts what a function returns; None if nothing is annotated.
Check = Callable[[Any], Any] | None


class Definition:
    """A function that the user decorated: its Python and its annotations. Captured when first called."""

    is_checkpoint = False  # its gradient calls it again, instead of keeping its forward values
    hands_key_on = False  # it only wraps one function, which draws from the same random key
    is_python = True  # it is what the user wrote, not made of another definition

    def __init__(self, function: Callable[..., Any] | Closure) -> None:
        if not isinstance(function, (FunctionType, Closure)):
            raise _not_a_function(function)
        self.function = function
        self._closure = function if isinstance(function, Closure) else None
        self._located = _kept(function)
        self._notes: dict[str, Annotation | None] = {}
        # Functions derived from this one, such as its gradient, by its options: `ut.grad(f)` is made once.
        self.derived: dict[Any, Any] = {}
        self.paths = Paths()  # what its captures have read outside

    @property
    def closure(self) -> Closure:
        if self._closure is None:
            assert isinstance(self.function, FunctionType)
            self._closure = closure_of(self.function, self._located)
        return self._closure

    @property
    def name(self) -> str:
        name: str = self.closure.name
        return name

    @property
    def origin(self) -> Any:
        """What is the same in each attempt to capture it: of a function in a captured one, where it is written."""
        if not isinstance(self.function, Closure) or isinstance(self.function, NoSource):
            return self
        return place_of(self.function)

    @property
    def short_name(self) -> str:
        """Its name without the enclosing scopes: the name of its calls."""
        return self.name.rsplit(".", 1)[-1]

    def become(self, other: Definition) -> None:
        """Take the place of what another definition is; so do those that are made from this one."""
        self.function, self._closure, self._located = other.function, other._closure, other._located
        stack = [self]
        while stack:
            definition = stack.pop()
            definition.forget()
            stack += [function.__undertow_definition__ for function in definition.derived.values()]

    def forget(self) -> None:
        """Read the function again when it is next needed."""
        self._closure = self.function if isinstance(self.function, Closure) else None
        self._notes.clear()

    def note(self, name: str) -> Annotation | None:
        """The annotation of a parameter, or of "return"."""
        if name not in self._notes:
            closure = self.closure
            written = closure.annotations
            if name in written:
                self._notes[name] = read(written[name], closure.names)
            else:
                self._notes[name] = read(None) if name == "return" and is_procedure(closure.node) else None
        return self._notes[name]

    def children(self, value: object) -> tuple[tree.Token, list[Any]] | None:
        """The token and contents of a container among its arguments."""
        held = tree.children(value)
        if held is not None and held[0][0] == "subclass":
            _refuse_attributes(value)
        return held

    def ready(self, arguments: Arguments) -> Ready | None:
        """The graphs for these arguments if they need no capture; None if Python must be captured."""
        return None

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        """Write the body of a call; `check` converts what it returns."""
        try:
            return (yield session.interpreter.invoke(self.closure, args, kwargs, check, is_inline=False))
        except Halted:
            if session.is_guessing:
                raise
            note = self.note("return")
            if note is not None:  # a value that no run gets to
                shapes = [tuple(d if isinstance(d, int) else 0 for d in type.shape) for type in note.types]
                leaves = [np.zeros(s, t.dtype.numpy) for s, t in zip(shapes, note.types, strict=True)]
                return tree.unflatten(note.structure, leaves)
            said, kind, span = session.ctx.open_builder.raised or ("", None, self.closure.span)
            raise CaptureError(
                f"`{self.name}` raises an exception on every path{said and ': '}{said}",
                span,
                hint="return a value on some path, or annotate the result: then it is raised where the run gets there",
                kind=kind,
            ) from None

    def sole_specialization(self, session: Session) -> Specialization | None:
        """The one specialization that every call in this session uses; None if that depends on the arguments."""
        return None


def _kept(function: FunctionType | Closure) -> Located | None:
    """Where a function is defined whose text is in memory alone, and may be forgotten before the first call."""
    if isinstance(function, FunctionType) and is_in_memory(function):
        with contextlib.suppress(CaptureError):  # raised by the first call
            return locate(function)
    return None


def _not_a_function(decorated: Any) -> CaptureError:
    kind = type(decorated).__name__
    what, hint = brief(decorated), "decorate a `def` or a lambda"
    if isinstance(decorated, type):
        what, hint = f"the class `{decorated.__name__}`", "decorate its methods individually"
    elif isinstance(decorated, functools.partial):
        what, hint = "a functools.partial", "decorate the function itself, or a lambda that calls it"
    elif isinstance(decorated, MethodType):
        what, hint = f"the bound method `{decorated.__name__}`", "decorate the method where the class defines it"
    elif isinstance(decorated, BuiltinFunctionType):
        what, hint = f"`{decorated.__name__}`, which has no Python source", "call it inside a decorated `def`"
    elif isinstance(decorated, type(functools.cache(abs))):
        what, hint = "what functools.cache gives", "write @functools.cache above @ut.function, or leave it out"
    elif callable(decorated):
        what, hint = f"an object of class `{kind}`", "decorate its method `__call__`, or a `def` that calls it"
    return CaptureError(f"@ut.function works on Python functions, not on {what}", hint=hint)


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """Arguments of a call: their leaves, and the structures around them."""

    leaves: list[Any]  # traced or NumPy values
    types: tuple[Type, ...]  # in the graph
    structures: tuple[tree.Structure, ...]  # one per parameter
    names: list[str]  # one per leaf
    parameters: tuple[str, ...]
    given: Sequence[Any] = ()  # the leaves as the caller has them, before they were converted
    weak: tuple[bool, ...] = ()  # which leaves are Python numbers; (): none
    converted: Converted | None = None  # objects of run-time shape: their columns are the last leaves

    @property
    def key(self) -> tuple[tree.Structure, ...]:
        """The structures as they select a program: of objects, the class alone."""
        return by_class(self.structures)

    @property
    def objects(self) -> list[Any]:
        """The objects that count by their class."""
        return static_objects(self.structures)

    def refuse_objects(self, what: str, hint: str) -> None:
        """Refuse objects of run-time shape among them."""
        if self.converted is not None:
            raise TypeMismatch(f"{what} does not take objects whose annotation names itself", hint=hint)

    def passed(
        self, signature: inspect.Signature, leaves: Sequence[Any], static: Callable[[Any], Any] | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        """The positional and keyword arguments that pass these leaves; `static` may replace the objects around them."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, value in zip(self.parameters, tree.unflatten_each(self.structures, leaves, static), strict=True):
            kind = signature.parameters[name].kind
            if kind == kind.VAR_POSITIONAL:
                args.extend(value)
            elif kind == kind.VAR_KEYWORD:
                kwargs.update(value)
            elif kind == kind.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return args, kwargs


@dataclass(frozen=True, slots=True, eq=False)
class Changed:
    """An array of an enclosing function that a function changes in place: a hidden parameter, and a further result."""

    array: Traced


@dataclass(slots=True, eq=False)
class Specialization:
    """A function at one signature: its graph, or what is known of it so far."""

    definition: Definition
    name: str
    types: tuple[Type, ...]
    arguments: Arguments
    # "effect", "key", (builder, port) or Changed of an enclosing graph, or "order": an effect without an order token
    hidden: dict[Any, None] = field(default_factory=dict)
    results: Annotation | None = None  # `weak` says which are Python numbers
    graph: FunctionGraph | None = None
    is_open: bool = False
    was_called_open: bool = False
    # It has called itself before its result was known: where, and inside which functions. Then it is captured again,
    # with what its other paths return; so many times.
    guessed_at: tuple[Span | None, list[str]] | None = None
    guesses: int = 0
    takes_nothing: bool = False  # a list of what it returns, at such calls, is empty: else no path returns
    began: int = 0
    # The values that it read from variables of enclosing functions: with other values it is another function.
    readings: dict[tuple[Env, str], tuple[list[Any], tree.Structure]] = field(default_factory=dict)
    binding: Binding | None = None  # substitutes for variables and arrays when it was captured
    # Containers among its arguments that it changes: id -> (container, its name, the line).
    changed: dict[int, tuple[Any, str, Any]] = field(default_factory=dict)
    # Arrays among its arguments that it changes in place: leaf -> (its name, what to write instead, the line).
    changed_arrays: dict[int, tuple[str, str, Any]] = field(default_factory=dict)
    # Arrays among its arguments that it changes in place: each is a further result of its graph.
    written: tuple[int, ...] = ()
    # Other containers among its arguments that it changes: what they hold are further results.
    handed_back: tuple[HandedBack, ...] = ()
    handover: Handover | None = None
    # Where its result is a container among its arguments; and whether it may hold others of them.
    returns_arguments: tuple[tuple[Path, Path], ...] = ()
    may_hold_arguments: bool = False
    # For each result, the leaves among its arguments that it may be, or be a view of; and such arrays from outside.
    shares: tuple[frozenset[int], ...] = ()
    shares_outside: tuple[tuple[Any, ...], ...] = ()
    unreturned: tuple[int, ...] = ()  # of `written`: those that are no part of its result
    weak: tuple[bool, ...] = ()  # which leaves of the arguments are Python numbers; (): none

    @property
    def outer_arrays(self) -> list[Traced]:
        """The arrays of enclosing functions that it changes."""
        return [what.array for what in self.hidden if isinstance(what, Changed)]


def take_arguments(definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
    """Bind and check the arguments of a call."""
    current = context()
    # Errors of a call from outside point to the definition: Python's traceback shows the call.
    span = current.span if current is not None else definition.closure.span
    default = current.session.default if current is not None and current.builder is not None else None
    values = bind_arguments(definition.closure, args, kwargs, span, default)
    leaves: list[Any] = []
    given: list[Any] = []
    types: list[Type] = []
    structures: list[tree.Structure] = []
    names: list[str] = []
    dims: Dims = {}
    weak: list[bool] = []
    notes = {
        name: _spread(_note(definition, name, value), value, definition.closure.signature.parameters[name])
        for name, value in values.items()
    }
    values, objects = _with_handles(definition, notes, values, current is not None and current.builder is not None)
    for name, value in values.items():
        note = notes[name]
        called = f"argument `{name}` of `{definition.name}`"
        if note is not None and not note.is_option and current is not None:
            value = needed(value, current, f"{called} is None, but annotated as {note}")
        note = None if note is None else note.of(value)
        if note is not None and note.structure == (tree.LEAF,) and isinstance(value, (list, tuple)):
            value = as_array(value, note.types[0].dtype, called, span)
        if note is not None and has_lists(note.structure):
            value = with_lists(value, note.structure, functools.partial(_as_array, called, span))
        held, structure = tree.flatten(value, is_traced, definition.children)
        if note is not None and alike(note.structure) != alike(structure):
            held, structure = tree.flatten(value, is_traced, tree.without_cached)
            structure = tree.as_plain_dicts(structure)
        refuse_own_classes(value, called, span)
        note = None if note is None else note.at(structure)
        if note is not None and alike(note.structure) != alike(structure):
            raise TypeMismatch(
                f"{called} is {describe(value)}, but annotated as {note}",
                span,
                hint=_how_to_structure(value, note),
            )
        if current is None:
            _refuse_hidden_arrays(structure, called, span)
        wanted = note.types if note is not None else (None,) * len(held)
        if current is not None and current.builder is not None:
            held = [current.session.bound(leaf) for leaf in held]
        given += held
        for leaf, type, path in zip(held, wanted, tree.paths(value, name, is_traced), strict=True):
            converted, seen = convert(leaf, type, called if path == name else f"`{path}` of {called}", dims, span)
            leaves.append(converted)
            types.append(seen)
            names.append(path)
        if note is None:
            weak += map(is_number, held)
        elif note.weak:
            weak += map(operator.and_, map(is_number, held), note.weak)
        else:
            weak += (False,) * len(held)
        if note is None and held:
            types[-len(held) :] = opened(types[-len(held) :], structure)
        structures.append(structure)
    parameters = tuple(values)
    if objects is not None:
        leaves += objects.columns
        types += [column.type for column in objects.layout.columns]
        names += [column.name for column in objects.layout.columns]
        weak += [False] * len(objects.columns)
    are_weak = tuple(weak) if True in weak else ()
    return Arguments(leaves, tuple(types), tuple(structures), names, parameters, given, are_weak, objects)


def _note(definition: Definition, name: str, value: Any) -> Annotation | None:
    """The annotation of a parameter; of the object of a method, its class."""
    note = definition.note(name)
    if note is None and name == "self" and is_user_class(type(value)):
        kinds = kinds_of(type(value), definition.closure.names)
        return None if kinds is None else read(type(value), definition.closure.names)
    return note


def _with_handles(
    definition: Definition, notes: dict[str, Annotation | None], values: dict[str, Any], is_inside: bool
) -> tuple[dict[str, Any], Converted | None]:
    """The arguments with handles in place of objects whose annotation names itself; and these objects."""
    given, found = Given(), dict(values)
    for name, value in values.items():
        note, called = notes[name], f"argument `{name}` of `{definition.name}`"
        if note is not None and is_inside:
            found[name] = in_graph(note.structure, value, called, widens=True)
        elif note is not None and has_handles(note.structure):
            found[name] = given.take(note.structure, value, called, name)
    return found, given.convert(definition.closure.span)


def _as_array(called: str, span: Span | None, value: Any, dtype: DType) -> Any:
    return as_array(value, dtype, called, span)


def _refuse_attributes(value: object) -> None:
    """Refuse a list, tuple or dict with attributes: a graph would see its items alone."""
    for name in getattr(value, "__dict__", ()):
        plain = "dict" if isinstance(value, dict) else "list" if isinstance(value, list) else "tuple"
        kind = kind_of(value)
        raise TypeMismatch(
            f"{kind} is a {plain} with the attribute `{name}`, which a graph does not see",
            hint=f"write a dataclass with a field for the {plain}, or pass `{name}` beside it",
        )


def _spread(note: Annotation | None, value: Any, parameter: inspect.Parameter) -> Annotation | None:
    """The annotation of `*args` or `**kwargs`, repeated for each argument."""
    held = tree.children(value)
    if note is None or held is None or parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return note
    return Annotation(note.types * len(value), (held[0], *note.structure * len(value)), note.weak * len(value))


def _is_list_for_array(value: Any, note: Annotation) -> bool:
    return isinstance(value, (list, tuple)) and note.structure == (tree.LEAF,) and note.types[0].rank > 0


def how_to_return(value: Any, note: Annotation) -> str:
    if _is_list_for_array(value, note):
        return "convert it to an array with ut.stack, or change the annotation"
    return "return the annotated type, or change the annotation"


def _is_array_like(value: Any) -> bool:
    """Does it hold numbers that may change, in a class of another library or of Python's?"""
    return not isinstance(value, (type, bytes)) and (
        isinstance(value, (np.ndarray, bytearray, memoryview))
        or any(hasattr(type(value), name) for name in ("__array__", "__array_interface__", "__dlpack__"))
        or type(value).__module__ == "array"
    )


def _refuse_hidden_arrays(structure: tree.Structure, called: str, span: Span | None) -> None:
    """Refuse arrays that would be constants of the program: they have contents, which may change between calls."""
    for token in structure:
        value = token[1].value if token[0] == "static" else None
        if isinstance(value, np.ndarray):
            held = tree.NOT_NUMBERS.get(value.dtype.kind, "strings")
            raise TypeMismatch(
                f"{called} is an array of {held}, which graphs cannot hold",
                span,
                hint="pass an array of bool, i32, i64, f32 or f64; constants, such as names, may come in a tuple",
            )
        if _is_array_like(value) and not hasattr(type(value), "__undertow_read__"):
            raise TypeMismatch(
                f"{called} is {kind_of(value)}, not an array of NumPy's",
                span,
                hint="pass an array: np.asarray(x)",
            )


def _how_to_structure(value: Any, note: Annotation) -> str:
    """The hint for an argument of the wrong structure."""
    if _is_list_for_array(value, note):
        return "convert it to an array with ut.stack, or change the annotation"
    if value is None or isinstance(value, (str, bytes)):
        return "pass a number or an array" if note.structure == (tree.LEAF,) else "pass values of that structure"
    if _is_array_like(value) and not isinstance(value, np.ndarray):
        return "pass an array: np.asarray(x)"
    if isinstance(value, np.ndarray) or (note.structure == (tree.LEAF,) and not isinstance(value, (tuple, list, dict))):
        return "use numbers and arrays of bool, i32, i64, f32 or f64"
    return "pass the same structure, or change the annotation"
