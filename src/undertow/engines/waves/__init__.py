"""The waves engine: activations of one region run together, as the lanes of a wave, in the C++ core.

`items` says what happens in which order, `encode` writes that down as rows of integers, the core runs them. What the
core cannot say, since it knows no names, is said here: errors with their tag traceback, and what acts on the world.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow import _core
from undertow.engines import checks
from undertow.engines.contract import LateStats, Options, Result, State, Stats
from undertow.engines.waves.encode import encode
from undertow.errors import FrameLimit, InternalError, RunError
from undertow.ir import trace
from undertow.ir.graph import StaticGraph
from undertow.ir.trace import Tag
from undertow.ops.op import CATALOGUE
from undertow.types import CTL, Type, dtype_of

WIDTH = 4096  # lanes of a wave, at most
_NO_LIMIT = 2**62
_FOR_EVER = float("inf")
_DEFAULTS = Options()


def usable_cores() -> int:
    """How many threads a run takes where nobody says."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


class Waves:
    """The engine."""

    name = "waves"
    is_lazy = False
    takes_hoisted = True

    def __init__(self, schedule: str = "auto") -> None:
        self.schedule = schedule

    def plan(self, graph: StaticGraph) -> WavesPlan:
        return WavesPlan(graph, schedule=self.schedule)


class WavesPlan:
    """A static graph made ready. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph, width: int = WIDTH, schedule: str = "auto") -> None:
        self.graph = graph
        self.width = width
        encoded = encode(graph)
        self.schedule = encoded.schedule if schedule == "auto" else schedule
        self.is_free = schedule == "auto"
        constants = [np.asarray(value, order="C") for value in encoded.constants]
        self.core = _core.decode(encoded.rows, encoded.words, constants)
        # A short run must not spend its time on what is known before it.
        taken = [graph.nodes[number].types[0] for number in graph.inputs]
        self._takes = [(type_.dtype.numpy, type_.shape) for type_ in taken]
        given = [graph.type_of(port) for port in graph.fetches]
        self._gives = [None if t == CTL else t.dtype.numpy.type if t.rank == 0 else np.asarray for t in given]

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run once: a value for each input, a value for each fetch. `state` changes only if the run succeeds."""
        options = options or _DEFAULTS
        if options.trace is None:
            return self._run(inputs, options, state, None)
        with trace.recording(options.trace) as record:
            assert record is not None
            record(trace.RunStarted(self.graph.name, Waves.name))
            began, firings, error = time.perf_counter(), 0, ""
            try:
                results, stats = self._run(inputs, options, state, record)
                firings = stats.firings
            except BaseException as raised:
                error = f"{type(raised).__name__}: {getattr(raised, 'what', raised)}"
                raise
            finally:
                record(trace.RunEnded(firings, time.perf_counter() - began, error))
        return results, stats

    def _run(
        self, inputs: Sequence[Result], options: Options, state: State | None, record: trace.Record | None
    ) -> tuple[list[Result], Stats]:
        host = _Host(self.graph, dict(state) if state else {}, record)
        where: list[Any] = []
        values = self._values(inputs)
        began = time.perf_counter()
        try:
            found, counted = self.core.run(
                values,
                host.apply,
                where,
                self.width,
                _NO_LIMIT if options.frames is None else options.frames,
                _NO_LIMIT if options.max_depth is None else options.max_depth,
                _NO_LIMIT if options.memory is None else options.memory,
                _FOR_EVER if options.timeout is None else options.timeout,
                bool(options.check_finite),
                # An agenda makes frames as early as it can: where they are counted, lockstep goes deep first.
                self.schedule == "agenda" and (options.frames is None or not self.is_free),
                options.threads or usable_cores(),
                None if record is None else host.wave,
            )
        except _core.Stopped as stopped:
            raise self._error(stopped, options) from None
        except RunError as error:  # from an operator that the host runs
            error.span = error.span or self.graph.nodes[host.node].span
            error.calls = checks.calls_of(self.graph, tuple(where))
            raise
        seconds = time.perf_counter() - began
        if state is not None:
            state.update(host.state)
        results = [checks.GO if as_ is None else as_(value) for as_, value in zip(self._gives, found, strict=True)]
        return results, self._stats(counted, seconds)

    def _values(self, inputs: Sequence[Result]) -> list[Any]:
        """What a run is given, as arrays that the core can read."""
        values = [np.asarray(value, order="C") for value in inputs]
        if len(values) == len(self._takes):
            for value, (dtype, shape) in zip(values, self._takes, strict=True):
                if value.dtype != dtype or (value.shape != shape and not _fits(value.shape, shape)):
                    break  # an order token, or a mistake
            else:
                return values
        return [np.asarray(value, order="C") for value in checks.check_inputs(self.graph, inputs)]

    def _stats(self, counted: _core.RunStats, seconds: float) -> Stats:
        def fill(name: str) -> Any:
            if name == "per_node":
                return {node.name: count for node, count in zip(self.graph.nodes, counted.fired, strict=True)}
            return tuple(counted.deepest) if name == "deepest_tag" else getattr(counted, name)

        return LateStats.make(fill, engine=Waves.name, dead_firings=0, seconds=seconds)

    def _error(self, stopped: Any, options: Options) -> BaseException:
        """What to raise for a run that the core has stopped."""
        kind, number, labels, values, a, b, site = stopped.args
        tag: Tag = tuple(labels)
        span = self.graph.nodes[number].span if number >= 0 else None
        if site > 0:
            span = self.graph.sites[site - 1].span
        error: BaseException
        try:
            if kind == "fault":
                node = self.graph.nodes[number]
                with np.errstate(all="ignore"):
                    CATALOGUE[node.op].eval([checks.as_plain(value) for value in values], node.attrs)
                return InternalError(f"{node.op} ({node.name}) failed in the core only", span)
            if kind == "not_finite":
                checks.check_finite(values[0], self.graph.nodes[number].op)
            if kind == "unequal_results":
                checks.stack_lanes(values, Type(dtype_of(values[0].dtype)))
            limits: dict[str, Callable[[], RunError]] = {
                "unequal_lanes": lambda: checks.unequal_lanes(a, b),
                "unequal_visits": lambda: checks.unequal_visits(a, b),
                "memory": lambda: checks.too_much_memory(a, options),
                "frames": lambda: checks.too_many_frames(options),
                "depth": lambda: checks.too_deep(options),
                "timeout": lambda: checks.too_long(options),
                "out_of_memory": lambda: FrameLimit("out of memory", hint="set `memory` to stop earlier"),
            }
            if kind not in limits:
                return InternalError(f"the core stopped: {kind}", span)
            error = limits[kind]()
        except RunError as raised:
            error = raised
        if isinstance(error, RunError):
            error.span = error.span or span
            error.calls = checks.calls_of(self.graph, tag)
        return error


def _fits(shape: tuple[int, ...], wanted: tuple[int | str | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(d == n or d is None for n, d in zip(shape, wanted, strict=True))


class _Host:
    """Runs what acts on the world, and what has no kernel: one operator of one lane at a time."""

    def __init__(self, graph: StaticGraph, state: dict[str, Any], record: trace.Record | None) -> None:
        self.graph = graph
        self.state = state
        self.record = record
        self.node = 0

    def wave(self, region: int, lanes: int, depth: int, phase: int, stage: int) -> None:
        assert self.record is not None
        self.record(trace.WaveStarted(region, lanes, depth, phase, stage))

    def apply(self, number: int, values: list[Any]) -> list[Any]:
        self.node = number
        node = self.graph.nodes[number]
        row = CATALOGUE[node.op]
        plain = [checks.as_plain(value) for value in values]
        with np.errstate(all="ignore"):
            found = row.state(self.state, plain, node.attrs) if row.state else row.eval(plain, node.attrs)
        settled = (checks.settle(value, t.dtype, t.rank) for value, t in zip(found, node.types, strict=True))
        return [np.asarray(value, order="C") for value in settled]
