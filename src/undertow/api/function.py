"""`@ut.function`: captures an ordinary Python function once per signature, and runs it on an engine."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.api import plain
from undertow.api.one_for_two import may_be_one, refuse_one_for_two
from undertow.api.options import ENGINES, OPTIONS, PYTHON, Settings, quick_options, settings
from undertow.api.pickling import reduced, restore
from undertow.api.planned import PlanView
from undertow.api.program import GraphView, Program, Programs, apart, begin, is_outermost
from undertow.api.quick import MISSED, NEVER, remember
from undertow.api.reload import follow_autoreload
from undertow.elsewhere import METHODS, unknown_name
from undertow.engines.contract import Plan, Stats, sum_stats
from undertow.engines.waves import Waves
from undertow.engines.waves.direct import Stopped
from undertow.errors import CaptureError, Fault, TypeMismatch, UndertowError, brief
from undertow.frontend.control import forms
from undertow.frontend.control import mapped as mapped_over
from undertow.frontend.control.body import Shared, common_length
from undertow.frontend.interpret.drive import drive
from undertow.frontend.objects.arguments import Given, has_handles, restored
from undertow.frontend.objects.convert import Converted
from undertow.frontend.objects.handle import fault_of_objects
from undertow.frontend.syntax.annotations import Annotation, as_array
from undertow.frontend.trace.declared import opened
from undertow.frontend.trace.definition import Arguments, Definition, take_arguments
from undertow.frontend.trace.library import Captured, capture_call, capture_map
from undertow.frontend.trace.places import Paths
from undertow.frontend.trace.positional import Positional
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import leaf_type
from undertow.frontend.values.operands import is_number
from undertow.frontend.values.traced import Traced, capturing, constant, context, used_too_late
from undertow.ir.graph import Library
from undertow.tracebacks import ANEW, boundary, shorten
from undertow.types import Type


class Function:
    """A recursive Python function as one static graph. Call it like the original function."""

    # Slots: functools.wraps copies the __dict__ to the wrapper, which is another function.
    __slots__ = (
        "__dict__", "__undertow_bound__", "__undertow_definition__", "__undertow_origin__", "__undertow_programs__",
        "__weakref__",
    )  # fmt: skip

    def __init__(
        self,
        definition: Definition,
        bound: tuple[Any, ...] = (),
        programs: Programs | None = None,
        origin: tuple[Callable[..., Function], tuple[Any, ...]] | None = None,
    ) -> None:
        self.__undertow_definition__ = definition
        self.__undertow_bound__ = bound
        self.__undertow_programs__ = Programs() if programs is None else programs
        self.__undertow_origin__ = origin  # the call that makes it again, in another process
        functools.update_wrapper(self, definition.function, updated=())

    def __get__(self, instance: Any, owner: Any = None) -> Function:
        """Bind as a method: the object becomes the first argument."""
        if instance is None:
            return self
        bound = Function.__new__(Function)  # without __init__: methods are bound at each call
        bound.__dict__.update(self.__dict__)
        bound.__undertow_definition__ = self.__undertow_definition__
        bound.__undertow_bound__ = (instance, *self.__undertow_bound__)
        bound.__undertow_programs__ = self.__undertow_programs__
        bound.__undertow_origin__ = None
        return bound

    def __repr__(self) -> str:
        return f"<undertow function {getattr(self, '__qualname__', '?')}>"

    def __reduce_ex__(self, protocol: Any) -> str | tuple[Any, ...]:
        return reduced(self, redecorated)

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state, function)

    def __copy__(self) -> Function:
        return self  # as a plain function does

    def __deepcopy__(self, memo: dict[int, Any]) -> Function:
        if not self.__undertow_bound__:
            return self
        if self.__undertow_origin__ is not None:
            make, args = self.__undertow_origin__
            return make(*copy.deepcopy(args, memo))
        bound = copy.deepcopy(self.__undertow_bound__, memo)
        return Function(self.__undertow_definition__, bound, self.__undertow_programs__)

    if not TYPE_CHECKING:  # for a checker, a class with `__getattr__` would have every name

        @boundary
        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise unknown_name(getattr(self, "__name__", "f"), name, dir(self), METHODS)

    # -- calling -------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run with the current options. Inside a capture, write a call node instead."""
        try:
            limits = quick_options()
            if limits is not None and not kwargs and is_outermost():
                bound = self.__undertow_bound__
                try:
                    result = self.__undertow_programs__.quick.call(bound + args if bound else args, limits)
                except Stopped as stopped:
                    error = stopped.plan.error_of(stopped, settings().limits)
                    if not isinstance(error, Fault):
                        raise error from None
                    result = MISSED  # the slow path finds the fault that comes first
                if result is not MISSED:
                    return result
            current = context([*args, *kwargs.values()])
            if current is not None and current.builder is not None:
                every = [*self.__undertow_bound__, *args]
                with capturing(current):
                    return current.give(drive(current.session.call(self.__undertow_definition__, every, kwargs)))
            if limits is None and settings().engine == PYTHON:
                return plain.call(self.__undertow_definition__, [*self.__undertow_bound__, *args], kwargs)
            return apart(self._execute, args, kwargs, settings())[0]
        except BaseException as fault:  # here, not by @boundary: a call may be short
            shorten(fault)
            if ANEW:
                raise fault
            raise

    @boundary
    def run(self, *args: Any, stats: bool = False, **changes: Any) -> Any:
        """Run with these options; other keywords are the function's. `stats=True` returns (result, stats)."""
        named = self._named(changes)
        result, counted = apart(self._execute, args, named, self._settings(changes, stats))
        return (result, counted) if stats else result

    @boundary
    def map(self, *args: Any, in_axes: Any = 0, stats: bool = False, **changes: Any) -> Any:
        """Many calls in one run: over the leading axis of arrays, over the items of lists.

        An argument that is wrapped in `ut.shared`, or whose entry of `in_axes` is None, is passed to every call whole.
        Items of a list may differ in shape and structure; results that do not stack come back as a list.
        Keywords that are no options are arguments of the function.
        """
        args = mapped_over.with_axes(args, in_axes)
        if named := self._named(changes):
            return self._with_positional(len(args), tuple(named)).map(*args, *named.values(), stats=stats, **changes)
        chosen = self._settings(changes, stats)
        current = context()
        if current is not None and current.builder is not None:
            return forms.map(self, *args)
        result, counted = apart(self._execute_map, args, chosen)
        return (result, counted) if stats else result

    def clear(self) -> None:
        """Forget all captures, of its derivatives too: the next call captures the function again."""
        definition = self.__undertow_definition__
        definition.paths = Paths()
        self.__undertow_programs__.clear()
        for derived in list(definition.derived.values()):
            if isinstance(derived, Function) and derived.__undertow_definition__ is not definition:
                derived.clear()

    @boundary
    def graph(self, *args: Any, simplify: bool | None = None, **kwargs: Any) -> GraphView:
        """The static graph for arguments like these; with `simplify=False`, as it was captured."""
        return self._program_for(args, kwargs).view(simplify)

    @boundary
    def plan(self, *args: Any, simplify: bool | None = None, **kwargs: Any) -> PlanView:
        """The plan that the waves engine executes for arguments like these: it prints, parses and runs."""
        return apart(self._plan, args, simplify, kwargs)

    def _plan(self, args: Sequence[Any], simplify: bool | None, kwargs: dict[str, Any]) -> PlanView:
        program, engine = self._find_program(args, kwargs), ENGINES["waves"]
        assert isinstance(engine, Waves)
        is_simple = settings().simplify if simplify is None else simplify
        graph = program.static(program.library(engine, is_simple, settings().is_checked, settings().reorder))
        return PlanView(graph, engine.plan_data(graph), functools.partial(self._run_edited, program))

    def _run_edited(self, program: Program, plan: Plan, args: Sequence[Any], options: dict[str, Any]) -> Any:
        stats = options.pop("stats", False)
        chosen = self._settings(options, stats)
        arguments = self.__undertow_arguments__(args, {})
        leaves = program.leaves(arguments.leaves, arguments.objects) if program.takes(arguments) else None
        if leaves is None:
            raise UndertowError(
                "the plan was made for arguments of other types",
                self.__undertow_definition__.closure.span,
                hint="make a plan for these arguments: f.plan(...)",
            )
        result, counted = apart(program.run, leaves, chosen, plan)
        if arguments.converted is not None:
            result = restored(result, arguments.converted)
        return (result, counted) if stats else result

    @boundary
    def library(self, *args: Any, **kwargs: Any) -> Library:
        """The function graphs as captured, before they are simplified."""
        return self._program_for(args, kwargs).captured.library

    def _program_for(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Program:
        return apart(self._find_program, args, kwargs)

    def _find_program(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Program:
        begin(settings())
        return self.__undertow_program__(self.__undertow_arguments__(args, kwargs))[0]

    # -- internals -----------------------------------------------------------------------------------------

    def _execute(self, args: tuple[Any, ...], kwargs: dict[str, Any], chosen: Settings) -> tuple[Any, Stats]:
        every = (*self.__undertow_bound__, *args)
        if chosen.engine == PYTHON:
            return plain.run(self.__undertow_definition__, list(every), kwargs, chosen)
        if not kwargs and (known := self.__undertow_programs__.quick.find(every)) is not None:
            program: Program = known[0]
            return program.run(known[1], chosen)
        begin(chosen)
        arguments = self.__undertow_arguments__(args, kwargs)
        program, leaves = self.__undertow_program__(arguments)
        if arguments.converted is not None:
            return self._with_objects(program, leaves, chosen, arguments.converted)
        if may_be_one(program.captured):
            refuse_one_for_two(
                program.captured, arguments, [*every, *kwargs.values()], self.__undertow_definition__.closure
            )
        elif not kwargs and program.is_kept:
            remember(self.__undertow_programs__.quick, every, arguments, program)
        return program.run(leaves, chosen)

    def _with_objects(
        self, program: Program, leaves: list[Any], chosen: Settings, converted: Converted
    ) -> tuple[Any, Stats]:
        """Run with objects of run-time shape: results that are some of these are the caller's own."""
        self.__undertow_programs__.quick = NEVER  # it would look into all of them
        try:
            result, stats = program.run(leaves, chosen)
        except Fault as fault:
            raise fault_of_objects(fault) from None
        return restored(result, converted), stats

    def _execute_map(self, args: Sequence[Any], chosen: Settings) -> tuple[Any, Stats]:
        if chosen.engine == PYTHON:
            whole = [Shared(value) for value in self.__undertow_bound__]
            return plain.run_map(self.__undertow_definition__, [*whole, *args], chosen)
        begin(chosen)
        try:
            arguments, mapped = self._map_arguments(args)
        except UndertowError as fault:
            if isinstance(fault, TypeMismatch) and mapped_over.is_ragged(fault):
                return self._map_groups(args, fault, chosen)
            fault.span = fault.span or self.__undertow_definition__.closure.span
            raise
        program, leaves = self.__undertow_program__(arguments, mapped)
        if arguments.converted is not None:
            return self._with_objects(program, leaves, chosen, arguments.converted)
        if may_be_one(program.captured):
            refuse_one_for_two(program.captured, arguments, args, self.__undertow_definition__.closure)
        return program.run(leaves, chosen)

    def _map_groups(self, args: Sequence[Any], ragged: TypeMismatch, chosen: Settings) -> tuple[Any, Stats]:
        """A map over items of several shapes or structures: one run for the items of each."""
        span = self.__undertow_definition__.closure.span
        results: dict[int, Any] = {}
        stats: list[Stats] = []
        for number, (indices, group, is_map) in enumerate(mapped_over.groups_of(args, span)):
            if is_map:
                program, values = self.__undertow_program__(*self._map_arguments(group))
            else:
                program, values = self.__undertow_program__(self.__undertow_arguments__(group, {}))
            if program.captured.written or program.captured.has_effect:
                ragged.span = span
                ragged.hint = "a function that prints, asserts or assigns needs one shape: call it for each item"
                raise ragged
            found, counted = program.run(values, chosen.for_part(number))
            stats.append(counted)
            if not is_map:
                results[indices[0]] = found
                continue
            leaves, structure = tree.flatten(found)
            for k, index in enumerate(indices):
                results[index] = tree.unflatten(structure, [leaf[k] for leaf in leaves])
        return mapped_over.stacked_results([results[index] for index in sorted(results)]), sum_stats(stats)

    def _settings(self, changes: dict[str, Any], stats: bool) -> Settings:
        return settings().with_(**({"timed": True} | changes if stats else changes))

    def _named(self, changes: dict[str, Any]) -> dict[str, Any]:
        """The keywords that are arguments of the function, taken from those of `run` or `map`."""
        closure = self.__undertow_definition__.closure
        parameters = closure.signature.parameters
        takes_any = any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values())
        for name in changes.keys() & parameters.keys():
            if name in OPTIONS:
                raise UndertowError(
                    f"`{name}` is an argument of `{closure.name}`, and an option",
                    closure.span,
                    hint="pass the argument by position; with ut.options(...) sets the option",
                )
        named = [name for name in changes if name in parameters or (takes_any and name not in OPTIONS)]
        return {name: changes.pop(name) for name in named}

    def _with_positional(self, count: int, keywords: tuple[str, ...]) -> Function:
        """The same function, of so many arguments and these keywords, all by position."""
        definition, bound = self.__undertow_definition__, self.__undertow_bound__
        key = ("positional", len(bound) + count, keywords)
        if key not in definition.derived:
            definition.derived[key] = Function(Positional(definition, len(bound) + count, keywords))
        made = definition.derived[key]
        return Function(made.__undertow_definition__, bound, made.__undertow_programs__)

    def __undertow_arguments__(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
        definition = self.__undertow_definition__
        try:
            arguments = take_arguments(definition, [*self.__undertow_bound__, *args], kwargs)
        except UndertowError as fault:
            fault.span = fault.span or definition.closure.span
            raise
        except Exception as fault:  # raised by a user's class
            raise CaptureError(
                f"cannot flatten the arguments of `{definition.name}`: {type(fault).__name__}: {fault}",
                definition.closure.span,
                hint="arguments must be numbers, arrays, or tuples, lists, dicts and dataclasses of them",
            ) from fault
        for leaf in arguments.leaves:
            if isinstance(leaf, Traced) and leaf.builder.is_open:
                raise CaptureError(
                    f"`{definition.name}` is run inside a captured function, with values known only at run time",
                    hint="call it like a function, without `.run` or `.graph`",
                )
            if isinstance(leaf, Traced):
                raise used_too_late(leaf)
        return arguments

    def _map_arguments(self, args: Sequence[Any]) -> tuple[Arguments, tuple[Any, ...]]:
        """Arguments of `map`, and for each of them its structure if it is mapped, else None."""
        definition = self.__undertow_definition__
        known = list(definition.closure.signature.parameters)
        bound = [Shared(value) for value in self.__undertow_bound__]
        leaves: list[Any] = []
        types: list[Type] = []
        names: list[str] = []
        structures: list[tree.Structure] = []
        mapped: list[bool] = []
        weak: list[bool] = []
        lengths: list[Type] = []  # of the leaves that are mapped
        notes = [definition.note(known[n]) if n < len(known) else None for n in range(len(bound) + len(args))]
        arguments, converted = _handles_of([*bound, *args], notes, definition)
        for number, arg in enumerate(arguments):
            is_shared, note = isinstance(arg, Shared), notes[number]
            value = arg.value if is_shared else mapped_over.as_mapped(arg)
            if value is not arg and not is_shared and note is not None and note.structure == (tree.LEAF,):
                # A list of Python numbers takes the dtype annotated for one of them.
                value = as_array(arg, note.types[0].dtype, f"argument `{known[number]}`", definition.closure.span)
            found, structure = tree.flatten(value)
            values = [np.asarray(constant(x)) for x in found]
            leaves += values
            weak += map(is_number, found) if is_shared else (False,) * len(found)  # a list is an array
            types += opened([leaf_type(x) for x in values], structure)
            lengths += [] if is_shared else map(leaf_type, values)
            names += tree.paths(value, f"x{number}")
            structures.append(structure)
            mapped.append(not is_shared)
        common_length(f"`{definition.name}.map`", lengths, definition.closure.span)
        parameters = tuple(f"x{n}" for n in range(len(mapped)))
        if converted is not None:
            leaves += converted.columns
            types += [column.type for column in converted.layout.columns]
            names += [column.name for column in converted.layout.columns]
            weak += [False] * len(converted.columns)
        are_weak = tuple(weak) if True in weak else ()
        given = Arguments(
            leaves, tuple(types), tuple(structures), names, parameters, weak=are_weak, converted=converted
        )
        return given, tuple(mapped)

    def __undertow_program__(
        self, arguments: Arguments, mapped: tuple[bool, ...] | None = None
    ) -> tuple[Program, list[Any]]:
        """The program for these types, captured on first use, and its inputs."""
        definition = self.__undertow_definition__

        def capture(types: tuple[Type, ...]) -> Captured:
            given = replace(arguments, types=types)
            return capture_call(definition, given) if mapped is None else capture_map(definition, given, mapped)

        return self.__undertow_programs__.find((arguments.key, mapped), arguments, definition, capture)


def _handles_of(
    args: Sequence[Any], notes: Sequence[Annotation | None], definition: Definition
) -> tuple[list[Any], Converted | None]:
    """The arguments of `map`, with handles in place of objects whose annotation names itself; and these objects."""
    given, found = Given(), list(args)
    for number, (arg, note) in enumerate(zip(args, notes, strict=True)):
        if note is None or not has_handles(note.structure):
            continue
        called, path = f"argument {number} of `{definition.name}.map`", f"x{number}"
        if isinstance(arg, Shared):
            found[number] = Shared(given.take(note.structure, arg.value, called, path))
        elif len(note.structure) == 2 and isinstance(arg, (list, tuple)):
            found[number] = given.take_each(note.structure, arg, called, path)
        elif isinstance(arg, list):
            found[number] = [
                given.take(note.structure, item, f"item {k} of {called}", f"{path}[{k}]") for k, item in enumerate(arg)
            ]
        else:
            raise TypeMismatch(
                f"{called} is {brief(arg)}, not a list of objects",
                definition.closure.span,
                hint="pass a list of objects, or one for all calls: ut.shared(x)",
            )
    return found, given.convert(definition.closure.span)


@boundary
def function(python: Callable[..., Any] | None = None, /, **options: Any) -> Function:
    """Decorate a Python function: its first call captures it as one static graph.

    >>> @function
    ... def power(x: float, n: int) -> float:
    ...     return 1.0 if n == 0 else x * power(x, n - 1)
    >>> power(2.0, 10)
    np.float64(1024.0)

    Call it like the original. Annotations are types: int, float, bool, ut.f32, an array ut.f32["n", 3]. A recursive
    function annotates its result; arguments that are not annotated may be of any type, and are captured once for each.
    Besides a call there are f.run(*args, **options), f.map(*arrays), f.graph(*args) and f.plan(*args); `ut.options`
    explains the options, and ut.grad(f) differentiates.
    """
    if python is None or options:
        raise CaptureError(
            "@ut.function takes no options",
            hint="write @ut.function alone; options go to f.run(..., engine=...) and to `with ut.options(...)`",
        )
    if isinstance(python, (staticmethod, classmethod)):  # in the other order, as the class body would have it
        return type(python)(function(python.__func__))  # type: ignore[return-value]
    if isinstance(python, property):
        getter = None if python.fget is None else function(python.fget)
        return property(getter, python.fset, python.fdel, python.__doc__)
    if isinstance(python, Function):
        raise CaptureError(
            f"`{python.__undertow_definition__.name}` is already decorated", hint="use @ut.function once"
        )
    follow_autoreload(Function, Programs)
    return Function(Definition(python))


@functools.lru_cache(maxsize=1024)
def redecorated(python: FunctionType) -> Function:
    """What a pickled `ut.function(f)` becomes: the same function each time, so that it is captured once."""
    return function(python)
