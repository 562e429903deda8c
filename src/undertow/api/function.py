"""`@ut.function`: captures an ordinary Python function once per signature, and runs it on an engine."""

from __future__ import annotations

import contextlib
import copy
import functools
import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, TypeVar

import numpy as np

from undertow.api import plain
from undertow.api.collection import collection_paused
from undertow.api.open_lengths import Axes, are_long, means_the_same, open_axes, with_open_lengths
from undertow.api.options import DEFAULT_ENGINE, ENGINES, PYTHON, Settings, quick_options, settings
from undertow.api.pickling import reduced, restore
from undertow.api.planned import PlanView
from undertow.api.quick import MISSED, direct, quick, remember
from undertow.api.reload import follow_autoreload
from undertow.engines.contract import Begun, Engine, Options, Plan, Stats, sum_stats
from undertow.engines.reference import ReferencePlan
from undertow.engines.reference.first import first_fault
from undertow.engines.waves import Waves
from undertow.engines.waves.direct import Direct, Stopped
from undertow.errors import CaptureError, Fault, RunError, TypeMismatch, UndertowError
from undertow.frontend.control import forms
from undertow.frontend.control import mapped as mapped_over
from undertow.frontend.control.body import Shared, common_length
from undertow.frontend.interpret.drive import drive
from undertow.frontend.syntax.annotations import as_array
from undertow.frontend.trace.declared import opened
from undertow.frontend.trace.definition import Arguments, Definition, take_arguments
from undertow.frontend.trace.library import Captured, capture_call, capture_map
from undertow.frontend.trace.places import Paths
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import leaf_type
from undertow.frontend.values.state import transaction
from undertow.frontend.values.traced import Traced, capturing, constant, context, used_too_late
from undertow.ir import budget, text
from undertow.ir.graph import Library, StaticGraph
from undertow.ops.debug import printing
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library
from undertow.tracebacks import boundary, shorten
from undertow.types import Type

_Result = TypeVar("_Result")
_SILENT = contextlib.nullcontext()
MOST_CAPTURED = 256  # signatures of one function: sizes are part of them, unless they are declared open
_DISTRUST = "a file that grows so much may have been made to do harm; capture the function from its source instead"


def apart(work: Callable[..., _Result], *args: Any) -> _Result:
    """Call in a copied context: even if Ctrl-C interrupts, no context variable stays changed."""
    return copy_context().run(work, *args)


def begin(chosen: Settings) -> None:
    """A call begins, in a context of its own: its limits hold from now on."""
    budget.begin(chosen.limits.timeout, chosen.limits.memory)


def is_outermost() -> bool:
    """Is this call made by no other: neither inside a capture, nor in the time of another call?"""
    return context() is None and not budget.has_begun()


def limits_left(chosen: Settings) -> Options:
    """The limits that hold for the run: capture and planning have taken their part of the time."""
    clock = budget.clock()
    return chosen.limits if clock is None else Begun.at(clock[1], clock[0], chosen.limits)


def check_written(fault: OSError, chosen: Settings) -> None:
    """The error of a failed write: of the trace file, or else of the program's own output."""
    path = chosen.limits.trace
    if path is None or isinstance(fault, BrokenPipeError):
        return
    raise UndertowError(
        f"the output of the run cannot be written: {fault}"
        if isinstance(path, list)
        else f"the trace cannot be written to {os.fspath(path)!r}: {fault.strerror}",
        hint="choose a file in an existing folder with enough space",
    ) from fault


@dataclass(slots=True, eq=False)
class Program:
    """A captured signature: its library after each pass, and the plans that engines have made so far."""

    captured: Captured
    name: str
    libraries: dict[tuple[bool, bool, bool], Library] = field(default_factory=dict)  # by the arguments of `library`
    graphs: dict[int, StaticGraph] = field(default_factory=dict)  # by the identity of the library
    plans: dict[tuple[str, bool, bool], Plan] = field(default_factory=dict)  # by the arguments of `plan`
    opened: Axes | None = None  # axes of the arguments whose lengths were known, and are open now
    direct: Direct | None = None  # the plan that is run by default, if the core needs nothing else to run it
    is_kept: bool = True  # for other calls

    def takes(self, arguments: Arguments) -> bool:
        """Are these arguments of the types that it was captured for?"""
        wanted = self.captured
        return wanted.structures == arguments.key and self.accepts(arguments.types)

    def accepts(self, types: Sequence[Type]) -> bool:
        is_fitting = all(a.accepts(b) for a, b in zip(self.captured.types, types, strict=True))
        return is_fitting and (self.opened is None or are_long(types, self.opened))

    def leaves(self, leaves: list[Any], objects: Sequence[Any]) -> list[Any] | None:
        """The leaves of the arguments and the hidden arguments; None if something outside has changed."""
        guards = self.captured.guards
        if guards is None:
            return leaves
        hidden = guards.read(objects)
        return None if hidden is None else leaves + hidden

    def library(self, engine: Engine, simplify: bool, checked: bool = False) -> Library:
        """The library that an engine runs: simplified, and with checks for integers that overflow, or not."""
        key = engine.takes_hoisted and simplify, simplify, checked
        if key not in self.libraries:
            # Of threads that make one at once, the first one's stays: `graphs` knows libraries by their identity.
            self.libraries.setdefault(key, apart(self._within_bounds, make_library, self.captured.library, *key))
        return self.libraries[key]

    def static(self, library: Library) -> StaticGraph:
        """The static graph of one of the libraries, built on first use."""
        if id(library) not in self.graphs:
            self.graphs.setdefault(id(library), apart(self._within_bounds, flatten, library, self.name))
        return self.graphs[id(library)]

    def plan(self, engine: Engine, simplify: bool = True, checked: bool = False) -> Plan:
        key = engine.name, simplify, checked
        if key not in self.plans:
            with collection_paused():
                graph = self.static(self.library(engine, simplify, checked))
                plan = self.plans.setdefault(key, apart(self._within_bounds, engine.plan, graph))
                if engine is ENGINES[DEFAULT_ENGINE] and simplify and not checked:
                    self.direct = direct(self.captured, plan)
        return self.plans[key]

    def _within_bounds(self, make: Callable[..., _Result], *args: Any) -> _Result:
        """Call what makes a library, graph or plan: the passes may not make too much of a file."""
        if self.captured.most_nodes is not None:
            budget.bound(self.captured.most_nodes, "a file of its size may become", _DISTRUST)
        budget.start_step("planning")
        return make(*args)

    def inputs(self, leaves: Sequence[Any], chosen: Settings) -> list[Any]:
        """The inputs of a run: the leaves of the arguments, and a seed if random numbers are drawn."""
        return [*leaves, chosen.draw_seed()] if self.captured.needs_seed else list(leaves)

    def run(self, leaves: Sequence[Any], chosen: Settings, plan: Plan | None = None) -> tuple[Any, Stats]:
        """Run with the leaves of the arguments, on the program's own plan by default."""
        captured = self.captured
        inputs = self.inputs(leaves, chosen)
        try:
            plan = plan or self.ready(chosen)
            limits = chosen.limits if budget.clock() is None else limits_left(chosen)
            if not captured.variables:
                values, stats = self._run_plan(plan, inputs, chosen, limits, None)
                return tree.unflatten(captured.result, values[: captured.result_count]), stats
            return self._run_on_variables(plan, inputs, chosen, limits)
        except RunError:  # some are OSErrors too
            raise
        except OSError as fault:
            check_written(fault, chosen)
            raise

    def _run_plan(
        self, plan: Plan, inputs: list[Any], chosen: Settings, limits: Options, state: dict[str, Any] | None
    ) -> tuple[list[Any], Stats]:
        """Run a plan. Of several faults, the one is raised that Python would have reached first."""
        before = None if state is None else dict(state)
        with printing() if self.captured.has_effect else _SILENT as output:
            try:
                return plan.run(inputs, limits, state)
            except Fault as fault:
                ordered = self.plan(ENGINES["reference"], chosen.simplify, chosen.is_checked)
                assert isinstance(ordered, ReferencePlan)
                printed = 0 if output is None else output.count
                raise first_fault(ordered, inputs, limits, before, fault, printed) from None

    def _run_on_variables(self, plan: Plan, inputs: list[Any], chosen: Settings, limits: Options) -> tuple[Any, Stats]:
        captured = self.captured

        def work(state: dict[str, Any]) -> tuple[Any, Stats]:
            values, stats = self._run_plan(plan, inputs, chosen, limits, state)
            return tree.unflatten(captured.result, values[: captured.result_count]), stats

        return transaction(captured.variables, captured.written, work)  # which commits last: then nothing can fail

    def ready(self, chosen: Settings) -> Plan:
        """The plan of the chosen engine, which is made within the limits."""
        engine = chosen.find_engine()
        plan = self.plans.get((engine.name, chosen.simplify, chosen.is_checked))
        if plan is None:
            begin(chosen)
            plan = self.plan(engine, chosen.simplify, chosen.is_checked)
        return plan

    def view(self, simplify: bool | None = None) -> GraphView:
        """The static graph for display; by default the one that the current options run."""
        return apart(self._view, simplify)

    def _view(self, simplify: bool | None) -> GraphView:
        chosen = settings()
        begin(chosen)
        with collection_paused():
            is_simple = chosen.simplify if simplify is None else simplify
            library = self.library(chosen.find_engine(), is_simple, chosen.is_checked)
            return GraphView(self.static(library), library)


class Programs:
    """The signatures of a function captured so far; shared by all threads and by its bound methods."""

    def __init__(self) -> None:
        # Every change is one operation of a dict or list: no lock, for which a signal handler could wait for ever.
        self._captured: dict[Any, list[Program]] = {}
        self._by_age: list[tuple[Any, Program]] = []  # those that can be captured again
        self._refused: dict[Any, None] = {}  # (key, types with open lengths) that no program was made for
        self.quick = quick()

    def find(
        self, key: Any, arguments: Arguments, definition: Definition, capture: Callable[[tuple[Type, ...]], Captured]
    ) -> tuple[Program, list[Any]]:
        """The program that takes arguments of these types, captured on first use, and its inputs."""
        objects = arguments.objects
        for program in self._captured.get(key, ()):
            if program.accepts(arguments.types):
                if (leaves := program.leaves(arguments.leaves, objects)) is not None:
                    return program, leaves
                assert program.captured.guards is not None
                definition.paths.note_change(program.captured.guards.changed)
        with capturing(None), collection_paused():
            program = self._opened(key, arguments, definition, capture) or self._known(arguments, definition, capture)
        first = program.captured.first.copy()
        program.captured.first.clear()
        if (leaves := program.leaves(arguments.leaves, objects)) is None:
            # Something outside is another object each time that it is asked for: this program is for this call alone.
            program.is_kept = False
            return program, arguments.leaves + first
        self.add(key, program)
        self._by_age.append((key, program))
        if len(self._by_age) > MOST_CAPTURED:
            self._forget(*self._by_age.pop(0))
        return program, leaves

    def _known(
        self, arguments: Arguments, definition: Definition, capture: Callable[[tuple[Type, ...]], Captured]
    ) -> Program:
        budget.start_step("capture")
        return Program(capture(arguments.types), definition.name)

    def _opened(
        self, key: Any, arguments: Arguments, definition: Definition, capture: Callable[[tuple[Type, ...]], Captured]
    ) -> Program | None:
        """A program for arrays of many lengths, where several have been captured; None if it would not be the same."""
        types = with_open_lengths([program.captured.types for program in self._captured.get(key, ())], arguments.types)
        if types is None or (key, types) in self._refused:
            return None
        captured: Captured | None = None
        with contextlib.suppress(Exception):  # what is wrong is said by a capture for these lengths alone, if at all
            captured = capture(types)
        # Of those captured before, the ones that still hold: others may have read other things outside.
        known = [p.captured for p in self._captured.get(key, ()) if p.leaves([], arguments.objects) is not None]
        if captured is None or not any(means_the_same(captured, other) for other in known):
            self._refused[key, types] = None
            return None
        return Program(captured, definition.name, opened=open_axes(captured.types, arguments.types))

    def _forget(self, key: Any, program: Program) -> None:
        left = [other for other in self._captured.get(key, ()) if other is not program]
        if left:
            self._captured[key] = left
        else:
            self._captured.pop(key, None)
        self.quick = quick()  # it knows the program, too; what is called again comes back

    def clear(self) -> None:
        """Forget everything."""
        self._captured, self._by_age, self._refused, self.quick = {}, [], {}, quick()

    def add(self, key: Any, program: Program) -> None:
        """A program that stays."""
        self._captured.setdefault(key, []).append(program)

    def items(self) -> list[tuple[Any, Program]]:
        """All current programs, with their keys."""
        return [(key, program) for key, programs in list(self._captured.items()) for program in programs]

    def __len__(self) -> int:
        return sum(len(programs) for programs in list(self._captured.values()))


class GraphView:
    """A static graph for display: prints as text, renders as a picture in a notebook."""

    def __init__(self, graph: StaticGraph, library: Library) -> None:
        self.static = graph
        self.library = library

    def __str__(self) -> str:
        return text.dump(self.static, spans=False)

    def __repr__(self) -> str:
        return f"<static graph of {self.static.name}: {len(self)} nodes, {len(self.static.sites)} call sites>"

    def __len__(self) -> int:
        return len(self.static.nodes)

    def _repr_svg_(self) -> str:
        return self.svg()

    def svg(self) -> str:
        """The picture, as SVG text."""
        from undertow.viz.svg import svg  # the layout library is loaded only for pictures

        return svg(self.static)

    def dot(self) -> str:
        """The graph in Graphviz' language."""
        from undertow.viz.dot import dot

        return dot(self.static)

    def text(self, spans: bool = True) -> str:
        """The text form; `undertow.ir.text.parse` reads it back."""
        return text.dump(self.static, spans=spans)


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
            raise

    @boundary
    def run(self, *args: Any, stats: bool = False, **changes: Any) -> Any:
        """Run with these options; the function's arguments are positional. `stats=True` returns (result, stats)."""
        result, counted = apart(self._execute, args, {}, self._settings(changes, stats))
        return (result, counted) if stats else result

    @boundary
    def map(self, *args: Any, in_axes: Any = 0, stats: bool = False, **changes: Any) -> Any:
        """Many calls in one run: over the leading axis of arrays, over the items of lists.

        An argument that is wrapped in `ut.shared`, or whose entry of `in_axes` is None, is passed to every call whole.
        Items of a list may differ in shape and structure; results that do not stack come back as a list.
        """
        chosen = self._settings(changes, stats)
        args = mapped_over.with_axes(args, in_axes)
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
        graph = program.static(program.library(engine, is_simple, settings().is_checked))
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
        if not kwargs and program.is_kept:
            remember(self.__undertow_programs__.quick, every, arguments, program)
        return program.run(leaves, chosen)

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
        closure = self.__undertow_definition__.closure
        for name in changes.keys() & closure.signature.parameters.keys():
            raise UndertowError(
                f"`{name}` is an argument of `{closure.name}`, not an option",
                closure.span,
                hint="`run` and `map` take the function's arguments by position; their keywords are options",
            )
        return settings().with_(**({"timed": True} | changes if stats else changes))

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
        lengths: list[Type] = []  # of the leaves that are mapped
        for number, arg in enumerate([*bound, *args]):
            is_shared = isinstance(arg, Shared)
            value = arg.value if is_shared else mapped_over.as_mapped(arg)
            note = definition.note(known[number]) if number < len(known) else None
            if value is not arg and not is_shared and note is not None and note.structure == (tree.LEAF,):
                # A list of Python numbers takes the dtype annotated for one of them.
                value = as_array(arg, note.types[0].dtype, f"argument `{known[number]}`", definition.closure.span)
            found, structure = tree.flatten(value)
            values = [np.asarray(constant(x)) for x in found]
            leaves += values
            types += opened([leaf_type(x) for x in values], structure)
            lengths += [] if is_shared else map(leaf_type, values)
            names += tree.paths(value, f"x{number}")
            structures.append(structure)
            mapped.append(not is_shared)
        common_length(f"`{definition.name}.map`", lengths, definition.closure.span)
        parameters = tuple(f"x{n}" for n in range(len(mapped)))
        arguments = Arguments(leaves, tuple(types), tuple(structures), names, parameters)
        return arguments, tuple(mapped)

    def __undertow_program__(
        self, arguments: Arguments, mapped: tuple[bool, ...] | None = None
    ) -> tuple[Program, list[Any]]:
        """The program for these types, captured on first use, and its inputs."""
        definition = self.__undertow_definition__

        def capture(types: tuple[Type, ...]) -> Captured:
            given = replace(arguments, types=types)
            return capture_call(definition, given) if mapped is None else capture_map(definition, given, mapped)

        return self.__undertow_programs__.find((arguments.key, mapped), arguments, definition, capture)


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
