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
from undertow.engines.contract import Options, Result, State, Stats
from undertow.engines.waves.encode import encode
from undertow.errors import FrameLimit, InternalError, RunError
from undertow.ir.graph import StaticGraph
from undertow.ir.trace import Tag
from undertow.ops.op import CATALOGUE
from undertow.types import CTL, Type, dtype_of

WIDTH = 4096  # lanes of a wave, at most
_NO_LIMIT = 2**62


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
        constants = [np.asarray(value, order="C") for value in encoded.constants]
        self.core = _core.decode(encoded.rows, encoded.words, constants)

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run once: a value for each input, a value for each fetch. `state` changes only if the run succeeds."""
        options = options or Options()
        values = checks.check_inputs(self.graph, inputs)
        host = _Host(self.graph, dict(state or {}))
        where: list[Any] = []
        began = time.perf_counter()
        try:
            found, counted = self.core.run(
                [np.asarray(value, order="C") for value in values],
                host.apply,
                where,
                self.width,
                _NO_LIMIT if options.frames is None else options.frames,
                _NO_LIMIT if options.max_depth is None else options.max_depth,
                _NO_LIMIT if options.memory is None else options.memory,
                float("inf") if options.timeout is None else options.timeout,
                bool(options.check_finite),
                self.schedule == "agenda",
                options.threads or usable_cores(),
            )
        except _core.Stopped as stopped:
            raise self._error(stopped, options) from None
        except RunError as error:  # from an operator that the host runs
            error.span = error.span or self.graph.nodes[host.node].span
            error.calls = checks.calls_of(self.graph, tuple(where))
            raise
        if state is not None:
            state.update(host.state)
        types = [self.graph.type_of(port) for port in self.graph.fetches]
        results = [
            checks.GO if type_ == CTL else checks.as_plain(value) for type_, value in zip(types, found, strict=True)
        ]
        return results, self._stats(counted, time.perf_counter() - began)

    def _stats(self, counted: dict[str, Any], seconds: float) -> Stats:
        fired = counted["fired"]
        return Stats(
            engine=Waves.name,
            firings=sum(fired),
            per_node={node.name: count for node, count in zip(self.graph.nodes, fired, strict=True)},
            activations=counted["activations"],
            peak_frames=counted["peak_frames"],
            peak_bytes=counted["peak_bytes"],
            max_depth=counted["max_depth"],
            deepest_tag=tuple(counted["deepest"]),
            seconds=seconds,
        )

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


class _Host:
    """Runs what acts on the world, and what has no kernel: one operator of one lane at a time."""

    def __init__(self, graph: StaticGraph, state: dict[str, Any]) -> None:
        self.graph = graph
        self.state = state
        self.node = 0

    def apply(self, number: int, values: list[Any]) -> list[Any]:
        self.node = number
        node = self.graph.nodes[number]
        row = CATALOGUE[node.op]
        plain = [checks.as_plain(value) for value in values]
        with np.errstate(all="ignore"):
            found = row.state(self.state, plain, node.attrs) if row.state else row.eval(plain, node.attrs)
        settled = (checks.settle(value, t.dtype, t.rank) for value, t in zip(found, node.types, strict=True))
        return [np.asarray(value, order="C") for value in settled]
