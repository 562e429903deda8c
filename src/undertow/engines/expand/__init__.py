"""The expand engine: graph expansion (Jeong et al.), for comparison. A call copies the callee's graph.

`events` finds what waits for what in one phase of a body, `templates` what a copy of it consists of, `encode` writes
that as rows of integers. The core makes copies, moves tokens one at a time, and keeps what later phases need in a
table by call path: a backward phase is a fresh copy, which finds the values of the forward phase there.
"""

from __future__ import annotations

from typing import Any

from undertow import _core
from undertow.engines import native
from undertow.engines.contract import Options
from undertow.engines.expand.encode import encode
from undertow.ir.graph import StaticGraph


class Expand:
    """The engine."""

    name = "expand"
    is_lazy = False
    takes_hoisted = True
    forms_waves = False

    def plan(self, graph: StaticGraph) -> ExpandPlan:
        return ExpandPlan(graph)


class ExpandPlan(native.NativePlan):
    """A static graph made ready. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph) -> None:
        super().__init__(graph, Expand.name)
        encoded = encode(graph)
        self.core = _core.decode_templates(encoded.rows, encoded.words, encoded.constants)

    def call(
        self, values: list[Any], host: native.Host, where: list[Any], options: Options
    ) -> tuple[list[Any], _core.RunStats]:
        return self.core.run(
            values,
            host.apply,
            where,
            *native.limits_of(options),
            options.threads or 1,
            native.scheduler_of(options),
            options.schedule_seed or 0,
        )
