"""The expand engine: the graph-expanding rival (Jeong et al.). A call makes a copy of the callee's graph.

`events` says what waits for what in one phase of a body, `templates` what a copy of it consists of, `encode` writes
that down as rows of integers. The core makes copies, moves tokens one at a time, and keeps what later phases need in a
table by call path: the copy of a backward phase is a fresh one, and finds the values of the forward phase there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow import _core
from undertow.engines import checks, native
from undertow.engines.contract import Options, Result, State, Stats
from undertow.engines.expand.encode import encode
from undertow.errors import RunError
from undertow.ir.graph import StaticGraph
from undertow.types import CTL


class Expand:
    """The engine."""

    name = "expand"
    is_lazy = False
    takes_hoisted = True

    def plan(self, graph: StaticGraph) -> ExpandPlan:
        return ExpandPlan(graph)


class ExpandPlan:
    """A static graph made ready. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        encoded = encode(graph)
        self.core = _core.decode_templates(encoded.rows, encoded.words, encoded.constants)
        given = [graph.type_of(port) for port in graph.fetches]
        self._gives = [None if t == CTL else t.dtype.numpy.type if t.rank == 0 else np.asarray for t in given]

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run once: a value for each input, a value for each fetch. `state` changes only if the run succeeds."""
        options = options or Options()
        values = checks.check_inputs(self.graph, inputs)
        host = native.Host(self.graph, dict(state or {}))
        where: list[Any] = []
        began = time.perf_counter()
        try:
            found, counted = self.core.run(
                [np.asarray(value, order="C") for value in values],
                host.apply,
                where,
                native.NO_LIMIT if options.frames is None else options.frames,
                native.NO_LIMIT if options.max_depth is None else options.max_depth,
                native.NO_LIMIT if options.memory is None else options.memory,
                float("inf") if options.timeout is None else options.timeout,
                bool(options.check_finite),
            )
        except _core.Stopped as stopped:
            raise native.error_of(self.graph, stopped, options) from None
        except RunError as error:  # from an operator that the host runs
            error.span = error.span or self.graph.nodes[host.node].span
            error.calls = checks.calls_of(self.graph, tuple(where))
            raise
        if state is not None:
            state.update(host.state)
        results = [checks.GO if as_ is None else as_(value) for as_, value in zip(self._gives, found, strict=True)]
        return results, native.stats_of(self.graph, Expand.name, counted, time.perf_counter() - began)
