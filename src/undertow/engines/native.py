"""Shared by the engines of the C++ core: kernel encodings, host callbacks and error messages.

A graph goes to the core as rows of integers, the words that they refer to, and constants. The core knows no names, so
this file builds error messages with their tag tracebacks; it also runs the operators that act on the world.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow import _core
from undertow.engines import checks, progress
from undertow.engines.contract import SCHEDULERS, LateStats, Options, Result, State, Stats
from undertow.errors import GraphError, InternalError, RunError
from undertow.ir import trace
from undertow.ir.graph import Array, Attr, Const, StaticGraph
from undertow.ir.literal import show_attr
from undertow.ops.lanes import stack_lanes
from undertow.ops.op import CATALOGUE
from undertow.plan.kernels import Traits
from undertow.plan.plan import Kernel
from undertow.types import CTL, DTYPES, Type, dtype_of

DTYPE_NUMBERS = {name: number for number, name in enumerate(("bool", "i32", "i64", "f32", "f64", "c64", "c128"))}
NO_LIMIT = 2**62
_UNKNOWN = -1  # a length known only at run time
_DEFAULTS = Options()
Signature = Sequence[tuple[str, int]]

assert set(DTYPE_NUMBERS) == set(DTYPES) - {"ctl"}


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Rows, the words that they refer to, and constants."""

    rows: npt.NDArray[np.int64]
    words: list[str]
    constants: list[Array]


def type_row(type_: Type) -> list[int]:
    """A dtype, a rank, and the lengths, -1 if known only at run time."""
    dims = [n if isinstance(n, int) else _UNKNOWN for n in type_.shape]
    return [DTYPE_NUMBERS[type_.dtype.name], len(dims), *dims]


class Encoder:
    """Writes the parts that every plan has: words, constants, kernels."""

    def __init__(self) -> None:
        self.words: dict[str, int] = {}
        self.constants: dict[Const, int] = {}
        self.kernels: list[list[int]] = []

    def encoded(self, head: list[int], rest: list[int]) -> Encoded:
        """A head, the number of constants, the kernels, and the rest."""
        rows = [*head, len(self.constants), len(self.kernels)]
        for kernel in self.kernels:
            rows += kernel
        constants = [np.asarray(const.value, order="C") for const in self.constants]
        return Encoded(np.array(rows + rest, np.int64), list(self.words), constants)

    def word(self, text: str) -> int:
        return self.words.setdefault(text, len(self.words))

    def constant(self, value: Const) -> int:
        """A constant as an operand: a number below zero."""
        return ~self.constants.setdefault(value, len(self.constants))

    def kernel(
        self, op: str, attrs: Mapping[str, Attr], inputs: Signature, outputs: Signature, is_effect: bool = False
    ) -> int:
        """The number of a kernel: an operator, its attributes, the dtypes and ranks of its operands and results."""
        row = [self.word(op), int(is_effect), len(attrs)]
        for key, value in attrs.items():
            row += [self.word(key), *self.attribute(value)]
        for types in (inputs, outputs):
            row.append(len(types))
            for dtype, rank in types:
                row += [DTYPE_NUMBERS.get(dtype, 0), rank]
        self.kernels.append(row)
        return len(self.kernels) - 1

    def attribute(self, value: Attr) -> list[int]:
        """0: an integer, 1: a word, 2: a tuple of integers, in pairs of (is there, value); 3: nothing.

        A tuple of words is one word: no kernel of the core takes any.
        """
        if isinstance(value, str):
            return [1, self.word(value)]
        if isinstance(value, tuple) and any(isinstance(part, str) for part in value):
            return [1, self.word(show_attr(value))]
        if isinstance(value, tuple):
            row = [2, len(value)]
            for part in value:
                row += [0, 0] if part is None else [1, int(part)]  # type: ignore[arg-type]
            return row
        return [0, int(value)] if value is not None else [3, 0]


@lru_cache(maxsize=4096)
def traits_of(kernel: Kernel) -> Traits:
    """The traits of a kernel, from the core."""
    if kernel.is_effect:
        return Traits(is_native=False)
    return Traits(*_core.kernel_traits(kernel.op, dict(kernel.attrs), list(kernel.inputs), list(kernel.outputs)))


class Host:
    """Runs operators that act on the world or have no native kernel, one activation at a time."""

    def __init__(self, graph: StaticGraph, state: dict[str, Any], record: trace.Record | None = None) -> None:
        self.graph = graph
        self.state = state
        self.record = record

    def wave(self, region: int, lanes: int, depth: int, phase: int, stage: int) -> None:
        assert self.record is not None
        self.record(trace.WaveStarted(region, lanes, depth, phase, stage))

    def apply(self, number: int, values: list[Any]) -> list[Any]:
        progress.hide()  # it may print
        node = self.graph.nodes[number]
        row = CATALOGUE[node.op]
        plain = [checks.as_plain(value) for value in values]
        try:
            with np.errstate(all="ignore"):
                results = row.state(self.state, plain, node.attrs) if row.state else row.eval(plain, node.attrs)
        except RunError as error:  # the run may go on, with what comes before this in the program
            error.span = error.span or node.span
            raise
        conformed = (checks.conform(value, t.dtype, t.rank) for value, t in zip(results, node.types, strict=True))
        return [np.asarray(value, order="C") for value in conformed]


class NativePlan:
    """A static graph made ready for the core. Holds nothing of any run. Engines say how the core is called."""

    def __init__(self, graph: StaticGraph, engine: str) -> None:
        self.graph = graph
        self.engine = engine
        # Computed here, not in each run: a run may be short.
        self._takes_order = CTL in [graph.nodes[number].types[0] for number in graph.inputs]
        fetched = [graph.type_of(port) for port in graph.fetches]
        self._gives = [None if t == CTL else t.dtype.numpy.type if t.rank == 0 else np.asarray for t in fetched]

    def call(
        self, values: list[Any], host: Host, where: list[Any], options: Options
    ) -> tuple[list[Any], _core.RunStats]:
        """Run in the core: results and counts. `where` receives the tag at which the host raised an error."""
        raise NotImplementedError

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run once: a value for each input, a value for each fetch. `state` changes only if the run succeeds."""
        options = options or _DEFAULTS
        if options.trace is None:
            return self._run(inputs, options, state, None)
        with trace.recording(options.trace, self.graph.name, self.engine) as run:
            results, stats = self._run(inputs, options, state, run.record)
            run.firings = stats.firings
        return results, stats

    def _run(
        self, inputs: Sequence[Result], options: Options, state: State | None, record: trace.Record | None
    ) -> tuple[list[Result], Stats]:
        host = Host(self.graph, dict(state) if state else {}, record)
        where: list[Any] = []
        values = self._values(inputs)
        began = time.perf_counter()
        try:
            fetched, counted = self.call(values, host, where, options)
        except _core.Stopped as stopped:
            raise error_of(self.graph, stopped, options) from None
        except RunError as error:
            if not where:  # of a worker
                raise
            # from an operator that the host runs
            error.calls = checks.calls_of(self.graph, where[0])
            raise
        except ValueError:
            checks.check_inputs(self.graph, inputs)  # raises a better error if an input is wrong
            raise
        seconds = time.perf_counter() - began
        if state is not None:
            state.update(host.state)
        results = [checks.GO if as_ is None else as_(value) for as_, value in zip(self._gives, fetched, strict=True)]
        return results, stats_of(self.graph, self.engine, counted, seconds)

    def error_of(self, stopped: _core.Stopped, options: Options) -> BaseException:
        """The error to raise for a run that the core has stopped."""
        return error_of(self.graph, stopped, options)

    def _values(self, inputs: Sequence[Result]) -> list[Any]:
        """The inputs of a run as arrays that the core can read. The core checks their types."""
        if self._takes_order:
            inputs = checks.check_inputs(self.graph, inputs)
        return [np.asarray(value, order="C") for value in inputs]


def limits_of(options: Options) -> tuple[int, int, int, float, bool, bool]:
    """In the core's order: frames, depth, memory, seconds; must floats be finite? Is progress shown?"""
    return (
        NO_LIMIT if options.frames is None else options.frames,
        NO_LIMIT if options.max_depth is None else options.max_depth,
        NO_LIMIT if options.memory is None else options.memory,
        options.seconds_left(),
        bool(options.check_finite),
        options.progress,
    )


def scheduler_of(options: Options) -> int:
    """In the core's order; 0 leaves the choice to the engine."""
    return 0 if options.scheduler is None else 1 + SCHEDULERS.index(options.scheduler)


def stats_of(graph: StaticGraph, engine: str, counted: _core.RunStats, seconds: float) -> Stats:
    """The counts of a run in the core."""

    def fill(name: str) -> Any:
        if name == "per_node":
            return {node.name: count for node, count in zip(graph.nodes, counted.fired, strict=True)}
        if name == "late":
            return sum(site.late for site in graph.sites)
        if name in ("parts", "crossed"):
            return getattr(counted, name, int(name == "parts"))  # the core runs one part
        return tuple(counted.deepest) if name == "deepest_tag" else getattr(counted, name)

    return LateStats.make(fill, engine=engine, dead_firings=0, seconds=seconds)


def depth_of(tag: npt.NDArray[np.int64]) -> int:
    """The calls of a tag: labels without an index."""
    return int((np.asarray(tag).reshape(-1, 2)[:, 1] < 0).sum())


def error_of(graph: StaticGraph, stopped: Any, options: Options) -> BaseException:
    """The error to raise for a run that the core has stopped."""
    kind, number, tag, values, a, b, site = stopped.args
    span = graph.nodes[number].span if number >= 0 else None
    if site > 0:
        span = graph.sites[site - 1].span
    try:
        if kind == "fault":
            node = graph.nodes[number]
            with np.errstate(all="ignore"):
                CATALOGUE[node.op].eval([checks.as_plain(value) for value in values], node.attrs)
            return InternalError(f"{node.op} ({node.name}) failed in the core, but not in the reference kernel", span)
        if kind == "not_finite":
            checks.check_finite(values[0], graph.nodes[number].op)
        if kind == "unequal_results":
            stack_lanes(values, Type(dtype_of(values[0].dtype)))
        if kind == "missing":
            return GraphError("the plan reads a column that was dropped or never written", span)
        if kind not in checks.STOPS:
            return InternalError(f"the core stopped: {kind}", span)
        error = checks.stopped(kind, options, a, depth_of(tag) if kind == "depth" else b)
    except RunError as raised:
        error = raised
    error.span = error.span or span
    error.calls = checks.calls_of(graph, tag)
    return error
