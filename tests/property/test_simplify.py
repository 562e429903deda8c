"""Random programs before and after `simplify`: the same values, the same prints, never more firings."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.support.agreement import drained
from tests.support.bits import same
from tests.support.random_programs import random_program
from tests.support.validity import valid

from undertow.engines.contract import Options
from undertow.errors import UndertowError
from undertow.passes.simplify import simplify

INPUTS = ((2, 3, 0.5, True), (1, -1, -0.0, False), (3, 0, float("nan"), True), (0, 7, float("inf"), False))


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
            values, printed, stats = drained(before, args, Options(timeout=20.0))
        except UndertowError:
            continue  # a fault, or too long; what is left may fault less
        got, lines, counted = drained(after, args, Options(timeout=20.0))
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
