"""Waves with the schedule of each group chosen by its number, for tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from undertow.engines.native import traits_of
from undertow.engines.waves import WIDTH, WavesPlan
from undertow.ir.graph import StaticGraph
from undertow.plan.pipeline import make_plan


class MixedPlan(WavesPlan):
    """The groups of these numbers run by agenda, the others in lockstep."""

    def __init__(self, graph: StaticGraph, agenda: Sequence[int], width: int = WIDTH) -> None:
        plan = make_plan(graph, traits_of, forced="lockstep")
        groups = tuple(
            replace(group, schedule="agenda") if number in agenda else group for number, group in enumerate(plan.groups)
        )
        super().__init__(graph, width, "lockstep", plan=replace(plan, groups=groups))
        self.groups = len(groups)


def subsets(count: int) -> Iterator[tuple[int, ...]]:
    """All of the first numbers, some of them, or none."""
    for size in range(count + 1):
        yield from itertools.combinations(range(count), size)
