"""Builds libraries: a main graph that makes one outer call, and all graphs that it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import numpy as np

from undertow.errors import CaptureError, InternalError, RunError, Span, UndertowError
from undertow.frontend.control.body import Shared, graph_map
from undertow.frontend.control.restart import StartOver, until_fixpoint
from undertow.frontend.control.termination import refuse_endless
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.objects.handle import Objects
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.capture import CaptureSession
from undertow.frontend.trace.definition import Arguments, Definition, Specialization
from undertow.frontend.trace.graft import renamed
from undertow.frontend.trace.guards import Guards, Read
from undertow.frontend.trace.places import Places
from undertow.frontend.trace.returned import refuse_closures
from undertow.frontend.trace.scope import MainGraph
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import port_in
from undertow.frontend.values.operands import flags_of, is_number
from undertow.frontend.values.traced import Traced, capturing, is_traced
from undertow.ir.graph import FunctionGraph, Library
from undertow.ops.debug import ERRORS
from undertow.tracebacks import callers_of, user_frames
from undertow.types import Type

# The names of our classes in Python's own messages, and the user's words for them.
_WORDS = {
    "Traced": "a traced value",
    "TracedRange": "a range of run-time length",
    "TracedText": "a text with traced values",
    "GrowingList": "a list of run-time length",
    "CapturedGenerator": "a generator",
    "Closure": "a function",
}


@dataclass(frozen=True, slots=True, eq=False)
class Captured:
    """A library and how to feed it: the `types` of the leaves, the structure of the result."""

    library: Library
    types: tuple[Type, ...]
    structures: tuple[tree.Structure, ...]
    result: tree.Structure
    result_count: int
    needs_seed: bool
    variables: dict[str, Any] = field(default_factory=dict)  # name in the graphs -> the variable
    written: frozenset[str] = frozenset()
    has_effect: bool = False  # does it print, assert or assign?
    most_nodes: int | None = None  # that a pass may make of it, where it comes from a file
    guards: Guards | None = None  # what it reads outside; its hidden arguments come after the leaves
    first: list[Any] = field(default_factory=list)  # what these were at capture; emptied by who runs it first
    weak: tuple[bool, ...] | None = None  # which leaves are Python numbers; None: whichever
    weak_results: tuple[bool, ...] = ()  # which of those of the result are; (): none
    changed: tuple[int, ...] = ()  # the leaves that change in place, in its copies of them
    changes_containers: bool = False  # do lists, dicts or objects among its arguments?


def capture_main(
    definition: Definition, arguments: Arguments, write: Callable[[CaptureSession, list[Traced]], Work]
) -> Captured:
    """The library of a main graph with these parameters, whose body `write` writes."""
    paths = definition.paths
    main = MainGraph(arguments.types, paths=paths, guarded=paths.static, level=paths.level)
    captured: Captured = drive(until_fixpoint(main, lambda: _attempt(main, definition, arguments, write)))
    paths.static, paths.level = paths.static | main.guarded, max(paths.level, main.level)
    return captured


def _attempt(
    main: MainGraph, definition: Definition, arguments: Arguments, write: Callable[[CaptureSession, list[Traced]], Work]
) -> Captured:
    session, builder = CaptureSession(main), Builder("main", "main")
    ctx = session.ctx
    session.fresh_name("main")
    params = zip(main.types, arguments.names, flags_of(arguments.weak, main.types), strict=True)
    leaves = [Traced(builder, builder.param(type, name), is_weak) for type, name, is_weak in params]
    ctx.builder, ctx.span = builder, definition.closure.span
    if arguments.converted is not None:
        layout = arguments.converted.layout
        session.objects = Objects(layout, leaves[-len(layout.columns) :])
    places = session.places = Places(builder, main.paths, main.guarded, main.level)
    for number, value in enumerate(arguments.objects):
        places.take(None, None, Read.ARGUMENT, number, value, type(value).__name__)
    # What NumPy computes with constants is part of the program: IEEE floats, and no warnings.
    with capturing(ctx), np.errstate(all="ignore"):
        try:
            value = drive(write(session, leaves))
            results, structure = tree.flatten(value, is_traced)
            refuse_closures(structure)
            # An object from outside is returned itself: another one will not do.
            session.hold(token[1].value for token in structure if token[0] == "static")
            ports = [port_in(leaf, 0, ctx) for leaf in results]
        except UndertowError as fault:
            _with_more_guards(main, places)
            if main.endless is not None:
                raise main.endless from None
            fault.span = fault.span or ctx.span
            _with_helpers_inline(main, fault)
            raise
        except StartOver as restart:
            if restart.owner is main:
                raise
            raise InternalError(f"nobody was told the {restart}", ctx.span) from restart
        except (Exception, SystemExit) as fault:
            _with_more_guards(main, places)
            if main.endless is not None:
                raise main.endless from None
            raise raised_by_python(fault, ctx.span) from None
    if builder.effect is not None:
        ports.append(builder.use(builder.effect))
    guards, hidden, first = places.finish(builder.used(ports))
    seed = [] if builder.key is None else [builder.key.node]
    builder.params = [*builder.params[: len(leaves)], *hidden, *seed]
    library = library_of(builder.finish(ports, dropped=frozenset(places.params.difference(hidden))), session.graphs)
    try:
        refuse_endless(library)
    except CaptureError as fault:
        if main.endless is None:
            raise StartOver(main, endless=fault) from None
        raise main.endless from None
    variables = {name: variable for variable, name in session.variables.items()}
    assigned = frozenset(name for name, variable in variables.items() if variable in main.assigned)
    needs_seed = builder.key is not None
    weak = tuple(map(is_number, results))
    return Captured(
        library, main.types, arguments.key, structure, len(results), needs_seed, variables, assigned,
        has_effect=builder.effect is not None, guards=guards, first=first, weak=arguments.weak,
        weak_results=weak if True in weak else (), changed=main.changed, changes_containers=main.changes_containers,
    )  # fmt: skip


def _with_more_guards(main: MainGraph, places: Places) -> None:
    """After a failure: perhaps something outside must be known now. Start over with fewer hidden arguments, if any."""
    for level in (1, 2):
        if places.has_hidden(level):
            raise StartOver(main, level=level)


def _with_helpers_inline(main: MainGraph, fault: UndertowError) -> None:
    """After a failure: perhaps a recursive helper can only be captured inline, as its recursion ends at capture."""
    if main.not_as_functions is not None:
        raise main.not_as_functions from None
    if main.recursive and not isinstance(fault, RunError):
        raise StartOver(main, recursive=frozenset(), not_as_functions=fault)


def raised_by_python(fault: BaseException, span: Span | None) -> CaptureError:
    """The error of a line that raised an exception while it was captured, or of the user's Python that it ran."""
    inside = user_frames(fault.__traceback__)
    lines = [*inside[::-1], *([] if span is None else [span])]
    said = re.sub(rf"'?\b({'|'.join(_WORDS)})\b'?", lambda m: _WORDS[m[1]], str(fault))
    error = CaptureError(
        f"Python raised {type(fault).__name__}{': ' + ' '.join(said.split()) if said else ''}",
        lines[0] if lines else None,
        hint="the line runs as plain Python during capture",
        kind=_caught_as(type(fault)),
    )
    error.callers = [*lines[1:], *callers_of(fault)]
    return error


def _caught_as(kind: type[BaseException]) -> type[Exception] | None:
    """The class whose `except` catches the error: the user's own one, unless making an instance is up to its code."""
    for number, base in enumerate(kind.__mro__):
        if ERRORS.get(base.__name__) is base:
            is_plain = not any({"__init__", "__new__", "__str__"} & vars(c).keys() for c in kind.__mro__[:number])
            return kind if is_plain and issubclass(kind, Exception) else ERRORS[base.__name__]
    return None


def library_of(main: FunctionGraph, graphs: Mapping[str, FunctionGraph]) -> Library:
    """The graphs that main needs, callers before callees, renamed: some were captured more than once."""
    needed = [main]
    names = {"main": "main"}
    uses = {"main": 1}
    for graph in needed:  # it grows meanwhile
        for node in graph.nodes:
            name = node.attrs.get("callee", node.attrs.get("body"))
            if isinstance(name, str) and name not in names:
                is_body = node.op in ("loop", "map")
                stem = f"{names[graph.name]}.{node.op}" if is_body else name.rsplit("~", 1)[0]
                uses[stem] = uses.get(stem, 0) + 1
                names[name] = stem if uses[stem] == 1 else f"{stem}~{uses[stem]}"
                needed.append(graphs[name])
    return Library({names[graph.name]: renamed(graph, names) for graph in needed}, "main")


def learn_types(session: CaptureSession, types: tuple[Type, ...]) -> None:
    """Widen the types of the main graph to those of a function that turned out to take more sizes.

    A Python number keeps its own dtype: it is converted where it is passed.
    """
    known = session.main.types
    types = tuple(type.with_dtype(own.dtype) for type, own in zip(types, known, strict=False))
    types += known[len(types) :]  # columns of objects
    if types != session.main.types:
        raise StartOver(session.main, types=types)


def _types_of(arguments: Arguments, function: Specialization, known: tuple[Type, ...]) -> tuple[Type, ...]:
    """The types of the leaves of arguments in a function that may have taken some lists as lists of any length."""
    types: list[Type] = []
    taken = iter(function.types)
    for own, other in zip(arguments.structures, function.arguments.structures, strict=True):
        there = tuple(islice(taken, other.count(tree.LEAF)))
        types += there if own == other else known[len(types) : len(types) + own.count(tree.LEAF)]
    return tuple(types)


def capture_call(definition: Definition, arguments: Arguments) -> Captured:
    """The library for calling a function with arguments of these types."""

    def write(session: CaptureSession, leaves: list[Traced]) -> Work:
        args, kwargs = arguments.passed(definition.closure.signature, leaves, session.taken)
        value = yield session.call(definition, args, kwargs)
        if session.specializations:
            learn_types(session, _types_of(arguments, session.specializations[0], session.main.types))
        return value

    return capture_main(definition, arguments, write)


def capture_map(definition: Definition, arguments: Arguments, mapped: tuple[bool, ...]) -> Captured:
    """The library for many calls in one run, over the leading axis of the mapped arguments."""

    def write(session: CaptureSession, leaves: list[Traced]) -> Work:
        values = tree.unflatten_each(arguments.structures, leaves, session.taken)
        arrays = [value if is_mapped else Shared(value) for value, is_mapped in zip(values, mapped, strict=True)]
        return graph_map(session.ctx, arrays, lambda args: session.call(definition, args, {}))

    # The length is not part of the signature: one graph serves any number of calls.
    counts = [structure.count(tree.LEAF) for structure in arguments.structures]
    is_open = [flag for flag, count in zip(mapped, counts, strict=True) for _ in range(count)]
    is_open += [False] * (len(arguments.types) - len(is_open))  # columns of objects
    types = tuple(
        type.with_shape((None, *type.shape[1:])) if opens and type.rank else type
        for type, opens in zip(arguments.types, is_open, strict=True)
    )
    return capture_main(definition, replace(arguments, types=types), write)
