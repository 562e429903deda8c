"""Programs: captured signatures of a function, with the graphs and plans that were made of each so far."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from undertow.api.collection import collection_paused
from undertow.api.late import LateView
from undertow.api.open_lengths import Axes, are_long, means_the_same, open_axes, with_open_lengths
from undertow.api.options import DEFAULT_ENGINE, ENGINES, Settings, settings
from undertow.api.placed import PlacedView
from undertow.api.placing import names_devices, placed_plan
from undertow.api.quick import direct, quick
from undertow.api.tracing import traced
from undertow.engines import outside
from undertow.engines.contract import Begun, Engine, Options, Plan, Stats
from undertow.engines.reference import ReferencePlan
from undertow.engines.reference.first import first_fault
from undertow.engines.waves.direct import Direct
from undertow.errors import Fault, RunError, UndertowError
from undertow.frontend.trace.definition import Arguments, Definition
from undertow.frontend.trace.library import Captured
from undertow.frontend.values import tree
from undertow.frontend.values.state import transaction
from undertow.frontend.values.traced import capturing, context
from undertow.ir import budget, text
from undertow.ir.graph import Library, StaticGraph
from undertow.ops.debug import printing
from undertow.ops.own_errors import own_error
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library
from undertow.types import Type

if TYPE_CHECKING:  # what draws is loaded when it is needed
    from undertow.viz.messages import GraphDef

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
        if isinstance(path, list) or callable(path)
        else f"the trace cannot be written to {os.fspath(path)!r}: {fault.strerror}",
        hint="choose a file in an existing folder with enough space",
    ) from fault


@dataclass(slots=True, eq=False)
class Program:
    """A captured signature: its library after each pass, and the plans that engines have made so far."""

    captured: Captured
    name: str
    libraries: dict[tuple[bool, ...], Library] = field(default_factory=dict)  # by the arguments of `make_library`
    graphs: dict[int, StaticGraph] = field(default_factory=dict)  # by the identity of the library
    plans: dict[tuple[str, bool, bool, bool], Plan] = field(default_factory=dict)  # by the arguments of `plan`
    placed: dict[tuple[object, ...], Plan | None] = field(default_factory=dict)  # by the arguments of `placed_plan`
    opened: Axes | None = None  # axes of the arguments whose lengths were known, and are open now
    direct: Direct | None = None  # the plan that is run by default, if the core needs nothing else to run it
    is_kept: bool = True  # for other calls
    has_devices: bool | None = None  # does it name any? None: nobody has looked

    def takes(self, arguments: Arguments) -> bool:
        """Are these arguments of the types that it was captured for?"""
        wanted = self.captured
        return wanted.structures == arguments.key and self.is_for(arguments) and self.accepts(arguments.types)

    def is_for(self, arguments: Arguments) -> bool:
        """Was it captured for Python numbers where these are?"""
        return self.captured.weak is None or self.captured.weak == arguments.weak

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

    def library(
        self, engine: Engine, simplify: bool, checked: bool = False, reorder: bool = False, is_placed: bool = False
    ) -> Library:
        """The library that an engine runs: simplified, and with checks for integers that overflow, or not.

        One that is to be placed has copies of functions that several workers run.
        """
        key = engine.takes_hoisted and simplify, simplify, checked, engine.forms_waves, reorder, is_placed
        if key not in self.libraries:
            # Of threads that make one at once, the first one's stays: `graphs` knows libraries by their identity.
            self.libraries.setdefault(key, apart(self._within_bounds, make_library, self.captured.library, *key))
        return self.libraries[key]

    def static(self, library: Library) -> StaticGraph:
        """The static graph of one of the libraries, built on first use."""
        if id(library) not in self.graphs:
            self.graphs.setdefault(id(library), apart(self._within_bounds, flatten, library, self.name))
        return self.graphs[id(library)]

    def plan(self, engine: Engine, simplify: bool = True, checked: bool = False, reorder: bool = False) -> Plan:
        key = engine.name, simplify, checked, reorder
        if key not in self.plans:
            with collection_paused():
                graph = self.static(self.library(engine, simplify, checked, reorder))
                plan = self.plans.setdefault(key, apart(self._within_bounds, engine.plan, graph))
                if engine is ENGINES[DEFAULT_ENGINE] and simplify and not (checked or reorder):
                    self.direct = direct(self.captured, plan)
        return self.plans[key]

    def placed_plan(self, chosen: Settings) -> Plan | None:
        """The plan of the graph in parts, if workers that are there run some of it; None if it runs whole."""
        workers = outside.current()
        if workers is None or not chosen.is_placeable or not (chosen.placement == "auto" or self.names_devices()):
            return None
        key = chosen.simplify, chosen.is_checked, chosen.reorder, chosen.placement, workers.size
        if key not in self.placed:
            begin(chosen)
            with collection_paused():
                graph = self.static(self.library(chosen.find_engine(), *key[:3], is_placed=True))
                made = apart(self._within_bounds, placed_plan, graph, workers.size, chosen.placement)
                self.placed.setdefault(key, made)
        return self.placed[key]

    def names_devices(self) -> bool:
        """Does the program say what runs on workers?"""
        if self.has_devices is None:
            self.has_devices = names_devices(self.captured.library)
        return self.has_devices

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
        except RunError as fault:  # some are OSErrors too
            own = own_error(fault)
            if own is None:
                raise
            if isinstance(fault, type(own)):  # one of Python's classes, and so is the fault
                fault.args = own.args
                raise
            raise own from fault
        except OSError as fault:
            check_written(fault, chosen)
            raise

    def _run_plan(
        self, plan: Plan, inputs: list[Any], chosen: Settings, limits: Options, state: dict[str, Any] | None
    ) -> tuple[list[Any], Stats]:
        """Run a plan. Of several faults, the one is raised that Python would have reached first."""
        before = None if state is None else dict(state)
        with printing() if self.captured.has_effect else _SILENT as output, traced(limits, plan) as options:
            try:
                return plan.run(inputs, options, state)
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
        if chosen.is_shared_out and (placed := self.placed_plan(chosen)) is not None:
            return placed
        plan = self.plans.get((engine.name, chosen.simplify, chosen.is_checked, chosen.reorder))
        if plan is None:
            begin(chosen)
            plan = self.plan(engine, chosen.simplify, chosen.is_checked, chosen.reorder)
        return plan

    def view(self, simplify: bool | None = None) -> GraphView:
        """The static graph for display; by default the one that the current options run."""
        return apart(self._view, simplify)

    def _view(self, simplify: bool | None) -> GraphView:
        chosen = settings()
        begin(chosen)
        with collection_paused():
            is_simple = chosen.simplify if simplify is None else simplify
            engine = chosen.find_engine()
            library = self.library(engine, is_simple, chosen.is_checked, chosen.reorder)

            def replicated() -> StaticGraph:
                return self.static(self.library(engine, is_simple, chosen.is_checked, chosen.reorder, is_placed=True))

            def late() -> LateView:
                view: LateView = apart(self._within_bounds, LateView, self.captured.library, self.name)
                return view

            shared_out = replicated if self.names_devices() else None
            return GraphView(self.static(library), library, self.captured.library, late, shared_out)


class Programs:
    """The signatures of a function captured so far; shared by all threads and by its bound methods."""

    def __init__(self) -> None:
        # Every change is one operation of a dict or list: no lock, for which a signal handler could wait for ever.
        self._captured: dict[Any, list[Program]] = {}
        self._by_age: list[tuple[Any, Program]] = []  # those that can be captured again
        self._refused: dict[Any, None] = {}  # (key, types with open lengths, weak) that no program was made for
        self.quick = quick()

    def find(
        self, key: Any, arguments: Arguments, definition: Definition, capture: Callable[[tuple[Type, ...]], Captured]
    ) -> tuple[Program, list[Any]]:
        """The program that takes arguments of these types, captured on first use, and its inputs."""
        objects = arguments.objects
        for program in self._captured.get(key, ()):
            if program.is_for(arguments) and program.accepts(arguments.types):
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
        alike = [program for program in self._captured.get(key, ()) if program.is_for(arguments)]
        types = with_open_lengths([program.captured.types for program in alike], arguments.types)
        if types is None or (key, types, arguments.weak) in self._refused:
            return None
        captured: Captured | None = None
        with contextlib.suppress(Exception):  # what is wrong is said by a capture for these lengths alone, if at all
            captured = capture(types)
        # Of those captured before, the ones that still hold: others may have read other things outside.
        known = [p.captured for p in alike if p.leaves([], arguments.objects) is not None]
        if captured is None or not any(means_the_same(captured, other) for other in known):
            self._refused[key, types, arguments.weak] = None
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

    def __init__(
        self,
        graph: StaticGraph,
        library: Library,
        captured: Library,
        late: Callable[[], LateView],
        replicated: Callable[[], StaticGraph] | None = None,
    ) -> None:
        self.static = graph
        self.library = library
        self.captured = captured  # before any pass
        self._late = late
        self._replicated = replicated

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

    @property
    def captured_graph(self) -> StaticGraph:
        """The static graph of the functions as they were captured: `explain` and other readers of graphs take it."""
        return flatten(self.captured, self.static.name)

    def graph_def(self) -> GraphDef:
        """Its functions as TensorFlow's GraphDef, which TensorBoard draws: `.SerializeToString()`, `str()`."""
        from undertow.viz.graphdef import graph_def

        return graph_def(self.library)

    def intensional(self) -> str:
        """Yaghi's zero-order program with `call_i` and `actuals`, of the functions as they were captured."""
        from undertow.viz.intensional import intensional

        return intensional(self.captured)

    def placed(self, workers: int | None = None, placement: str = "devices") -> PlacedView:
        """The graph in parts, as on a cluster with so many workers; if not given, with as many as `ut.device` names.

        placement="auto" finds what pays, for any number of workers.
        """
        return PlacedView(self.static if self._replicated is None else self._replicated(), workers, placement)

    def late(self) -> LateView:
        """The graph as it was written, and which arguments of its calls are computed by need.

        All else is computed at once, many calls together.
        """
        return self._late()

    def text(self, spans: bool = True) -> str:
        """The text form; `undertow.ir.text.parse` reads it back."""
        return text.dump(self.static, spans=spans)
