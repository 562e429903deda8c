"""The waves engine: activations of one region run together, as the lanes of a wave, in the C++ core.

`undertow.plan` decides what happens in which order, `encode` writes that as rows of integers, the core runs them.
"""

from __future__ import annotations

import functools
import hashlib
from typing import Any

from undertow import _core
from undertow.engines import native, outside, progress
from undertow.engines.contract import Options
from undertow.engines.waves.encode import encode
from undertow.engines.waves.plan_bytes import pack
from undertow.ir.graph import StaticGraph
from undertow.plan.pipeline import make_plan
from undertow.plan.plan import Plan, Schedule

WIDTH = 4096  # lanes of a wave, at most
SCHEDULES = ("auto", "lockstep", "agenda")


class Waves:
    """The engine. The plan chooses the schedule that suits it, unless one is forced."""

    is_lazy = False
    takes_hoisted = True
    forms_waves = True

    def __init__(self, schedule: str = "auto") -> None:
        assert schedule in SCHEDULES
        self.schedule = schedule
        self.name = "waves" if schedule == "auto" else f"waves:{schedule}"

    def plan(self, graph: StaticGraph) -> WavesPlan:
        return WavesPlan(graph, schedule=self.schedule)

    def plan_data(self, graph: StaticGraph) -> Plan:
        """The plan that the core will execute, for inspection."""
        return make_plan(graph, native.traits_of, forced=forced_of(self.schedule))


def forced_of(schedule: str) -> Schedule | None:
    """The schedule of all groups, if one is forced."""
    return None if schedule == "auto" else "agenda" if schedule == "agenda" else "lockstep"


class WavesPlan(native.NativePlan):
    """A static graph made ready. Holds nothing of any run."""

    def __init__(
        self,
        graph: StaticGraph,
        width: int = WIDTH,
        schedule: str = "auto",
        defers: bool = True,
        plan: Plan | None = None,
    ) -> None:
        super().__init__(graph, "waves")
        self.width = width
        plan = plan or make_plan(graph, native.traits_of, defers, forced_of(schedule))
        self.is_free = schedule == "auto"
        self.plan = plan
        self._encoded = encode(plan, [node.name for node in graph.nodes])
        self.core = _core.decode(self._encoded.rows, self._encoded.words, self._encoded.constants)

    @functools.cached_property
    def shipped(self) -> tuple[bytes, bytes]:
        """What stands for the plan, and the plan as workers get it."""
        data = pack(self._encoded)
        return hashlib.sha256(data).digest(), data

    def call(
        self, values: list[Any], host: native.Host, where: list[Any], options: Options
    ) -> tuple[list[Any], _core.RunStats]:
        workers = outside.current()
        link = None if workers is None else workers.link(*self.shipped)
        if link is None:
            return self._run_core(values, host, where, options, None)
        try:
            with progress.telling(link.news):
                return self._run_core(values, host, where, options, link)
        finally:
            link.close()

    def _run_core(
        self, values: list[Any], host: native.Host, where: list[Any], options: Options, link: outside.Link | None
    ) -> tuple[list[Any], _core.RunStats]:
        return self.core.run(
            values,
            host.apply,
            where,
            self.width,
            *native.limits_of(options),
            # An agenda makes frames as early as it can; where their number is limited, lockstep goes deep first.
            self.is_free and options.frames is not None,
            options.threads or _core.usable_cores(),
            None if host.record is None else host.wave,
            options.timed,
            link,
            None,
            native.scheduler_of(options),
        )
