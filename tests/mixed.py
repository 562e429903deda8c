"""Waves with the schedule of each group chosen by its number, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from undertow import _core
from undertow.engines import native
from undertow.engines.contract import Options
from undertow.engines.waves import WIDTH, WavesPlan
from undertow.ir.graph import StaticGraph


class MixedPlan(WavesPlan):
    """The groups of these numbers run by agenda, the others in lockstep."""

    def __init__(self, graph: StaticGraph, agenda: Sequence[int], width: int = WIDTH) -> None:
        super().__init__(graph, width, "lockstep")
        self.agenda = list(agenda)

    def call(
        self, values: list[Any], host: native.Host, where: list[Any], options: Options
    ) -> tuple[list[Any], _core.RunStats]:
        return self.core.run(
            values,
            host.apply,
            where,
            self.width,
            *native.limits_of(options),
            self.agenda,
            options.threads or 1,
            None if host.record is None else host.wave,
            options.timed,
        )


def subsets(count: int) -> Iterator[tuple[int, ...]]:
    """All of the first numbers, some of them, or none."""
    for size in range(count + 1):
        yield from itertools.combinations(range(count), size)
