"""The reference engine: the executable definition of what a static graph means. One firing at a time.

A *frame* holds the tokens of one tag: `slots` has a place for each input of each node of the body (constants are
there from the beginning), `pend` counts what each node still waits for. A node whose count has run out is *ready*
and waits in the pool; the scheduler picks the next. Branch regions share the frame of the body that they stand in.

`rows` is what a plan consists of and `plan` makes it of a graph. `frame`, `frames` and `memory` store tokens, `run`
moves them, `report` says what went wrong.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from undertow.engines import checks
from undertow.engines.contract import Options, Result, State, Stats
from undertow.engines.reference.plan import make_rows
from undertow.engines.reference.run import Run
from undertow.ir import trace
from undertow.ir.graph import StaticGraph


class Reference:
    """The engine."""

    name = "reference"
    is_lazy = False  # under a fair schedule it would be, but not under every one
    takes_hoisted = True

    def plan(self, graph: StaticGraph) -> ReferencePlan:
        return ReferencePlan(graph)


class ReferencePlan:
    """A static graph made ready. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.rows = make_rows(graph)

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run until the fetches have arrived; the rest is abandoned. `state` changes only if the run succeeds."""
        results, stats, _ = self._run(inputs, options or Options(), False, state)
        return results, stats

    def drain(self, inputs: Sequence[Result], options: Options | None = None) -> tuple[list[Result], Stats, int]:
        """Run until no token is left; also gives the number of frames that have not ended, which should be 0."""
        return self._run(inputs, options or Options(), True, None)

    def _run(
        self, inputs: Sequence[Result], options: Options, drain: bool, state: State | None
    ) -> tuple[list[Result], Stats, int]:
        values = checks.check_inputs(self.graph, inputs)
        with trace.recording(options.trace) as record:
            if record is not None:
                record(trace.RunStarted(self.graph.name, Reference.name))
            run = Run(self.rows, values, options, record, state)
            began, error = time.perf_counter(), ""
            try:
                # Integers wrap and floats follow IEEE, both without a word.
                with np.errstate(all="ignore"):
                    run.execute(drain)
            except BaseException as raised:
                error = f"{type(raised).__name__}: {getattr(raised, 'what', raised)}"
                raise
            finally:
                seconds = time.perf_counter() - began
                if record is not None:
                    record(trace.RunEnded(sum(run.fired), seconds, error))
        if state is not None:
            state.update(run.state)
        return (
            [checks.own(value) for value in run.results],
            run.counted(Reference.name, run.fired, run.dead, seconds),
            len(run.live),
        )
