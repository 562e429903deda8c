"""The reference engine: the executable definition of what a static graph means. One firing at a time.

A *frame* holds the tokens of one tag: `slots` has a place for each input of each node of the body (constants are
there from the beginning), `pend` counts the tokens that each node still waits for. A node whose count has run out is
*ready* and waits in the pool; the scheduler picks the next. Branch regions share the frame of their body.

`rows` are the parts of a plan, and `plan` makes them from a graph. `frame` and `frames` store tokens, `run` moves them,
`report` explains deadlocks. `replay` follows one schedule of a program with variables, `behaviors` and `state_graph`
try all of them, and `watched` tells which tokens are in transit.
"""

from __future__ import annotations

from collections.abc import Sequence

from undertow.engines.contract import Options, Result, Stats
from undertow.engines.frames import PythonPlan
from undertow.engines.reference.plan import number_graph
from undertow.engines.reference.run import Run
from undertow.ir.graph import StaticGraph


class Reference:
    """The engine."""

    name = "reference"
    is_lazy = False  # it would be under a fair schedule, but not every schedule is
    takes_hoisted = True
    forms_waves = False

    def plan(self, graph: StaticGraph) -> ReferencePlan:
        return ReferencePlan(graph)


class ReferencePlan(PythonPlan):
    """A static graph made ready."""

    def __init__(self, graph: StaticGraph) -> None:
        super().__init__(graph, Reference.name, number_graph(graph), Run)

    def drain(self, inputs: Sequence[Result], options: Options | None = None) -> tuple[list[Result], Stats, int]:
        """Run until no token is left; also returns the number of frames that have not ended, which should be 0."""
        run, results, stats = self.execute(inputs, options or Options(), None, drain=True)
        return results, stats, len(run.live)
