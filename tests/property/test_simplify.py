"""Random programs before and after `simplify`: the same values, the same prints, never more firings."""

from __future__ import annotations

import contextlib
import io
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.support.bits import same
from tests.support.random_programs import random_program
from tests.support.validity import valid

from undertow.engines.contract import Options, Stats
from undertow.engines.reference import Reference
from undertow.errors import UndertowError
from undertow.ir.graph import Library
from undertow.passes.flatten import flatten
from undertow.passes.simplify import simplify

INPUTS = ((2, 3, 0.5, True), (1, -1, -0.0, False), (3, 0, float("nan"), True), (0, 7, float("inf"), False))


def run(library: Library, args: tuple[Any, ...]) -> tuple[list[Any], str, Stats]:
    inputs = [np.int64(args[0]), np.int64(args[1]), np.float64(args[2]), np.bool_(args[3])]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        values, stats, left = Reference().plan(flatten(library)).drain(inputs, Options(timeout=20.0))
    assert left == 0
    return values, printed.getvalue(), stats


def compare(chance: random.Random, inline: bool) -> None:
    function, source = random_program(chance)
    note(source)
    before = valid(function.library(*INPUTS[0]))
    after, report = simplify(before, inline=inline)
    note(str(report))
    valid(after)
    again, more = simplify(after)
    assert sum(more.counts.values()) <= sum(report.counts.values())
    valid(again)
    for args in INPUTS:
        try:
            values, printed, stats = run(before, args)
        except UndertowError:
            continue  # a fault, or too long; what is left may fault less
        got, lines, counted = run(after, args)
        assert all(map(same, got, values)), (args, got, values)
        assert lines == printed
        # A node that was dead may be live in a simpler graph, where a branch is gone; but there are never more.
        assert counted.firings + counted.dead_firings <= stats.firings + stats.dead_firings
        assert counted.activations <= stats.activations


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_random_programs_keep_their_meaning(chance: random.Random) -> None:
    compare(chance, inline=False)


@pytest.mark.slow
@settings(max_examples=30, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_so_they_do_when_calls_are_inlined(chance: random.Random) -> None:
    compare(chance, inline=True)
