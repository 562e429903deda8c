"""Every program, with replicas of some of its functions or placed by estimate, gives what plain Python gives."""

from __future__ import annotations

import contextlib
import io
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from tests.programs import PROGRAMS, Program, assert_same
from tests.support.parts import OnThreads, Threads
from tests.support.replicated import on_devices, parts_of, some_functions

from undertow.api.options import ENGINES
from undertow.engines.contract import Plan
from undertow.engines.reference.placed import PlacedPlan
from undertow.engines.waves.placed import PlacedPlan as CorePlan
from undertow.engines.waves.placed import hosted_nodes
from undertow.ir.graph import Library, StaticGraph
from undertow.passes import partition as estimates
from undertow.passes.cut import cut
from undertow.passes.pipeline import make_library

DEVICES = ("worker:0", "worker:1", "worker:2")
CHOSEN = [program for program in PROGRAMS if not program.tags & {"lazy", "deep", "fault"}]
# What is handed on to one of several replicas is computed at once (docs/concepts/hybrid.md), and here it has no end.
AT_ONCE = {"factorial_in_between", "double_in_between", "nested_in_between"}


class Parts:
    """The reference engine, or the core, of a graph in parts."""

    is_lazy = False
    takes_hoisted = True
    forms_waves = True

    def __init__(self, name: str) -> None:
        self.name = name

    def plan(self, graph: StaticGraph) -> Plan:
        chance, count = Random(len(graph.nodes)), len(DEVICES) + 1
        if self.name == "replicas":
            places = parts_of(graph)
        elif self.name == "core":
            hosted = hosted_nodes(graph)
            places = [0 if number in hosted else place for number, place in enumerate(parts_of(graph))]
            return OnThreads(CorePlan(graph, cut(graph, places, count)), Threads(count - 1))
        else:  # with tokens that cost next to nothing, or else most programs would stay whole
            with patch.object(estimates, "_TOKEN", 0.1), patch.object(estimates, "_BYTE", 0.001):
                places = estimates.partition(graph, count)
        return PlacedPlan(cut(graph, places, count), chance.randrange)


PARTS = {name: Parts(name) for name in ("replicas", "core", "estimated")}


def with_replicas(library: Library, *options: bool) -> Library:
    """What an engine runs of a library, with replicas of some functions."""
    functions = some_functions(library, Random(len(library.functions)))
    return make_library(on_devices(library, functions, DEVICES), *options[:-1], is_placed=True)


def run(program: Program, engine: str, most: int | None = None) -> None:
    for case in range(len(program.cases))[:most]:
        expected = program.expected(case)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            result: Any = program.run(case, engine=engine)[0]
        assert_same(result, expected.value)
        assert printed.getvalue() == expected.printed


@pytest.mark.parametrize("program", CHOSEN, ids=str)
def test_placed_by_estimate(program: Program) -> None:
    with patch.dict(ENGINES, PARTS):
        run(program, "estimated")


@pytest.mark.parametrize("program", [program for program in CHOSEN if program.name not in AT_ONCE], ids=str)
def test_replicas(program: Program) -> None:
    with patch.dict(ENGINES, PARTS), patch("undertow.api.program.make_library", with_replicas):
        program.function.clear()  # a capture keeps the libraries that were made of it
        try:
            run(program, "replicas")
            run(program, "core", 1)
        finally:
            program.function.clear()
