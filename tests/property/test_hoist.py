"""Random programs before and after `hoist`: the same values, prints and activations, never more firings."""

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
from undertow.passes.hoist import hoist
from undertow.passes.simplify import simplify

INPUTS = (
    (2, 3, 0.5, True, 1.5, 2),
    (1, -1, -0.0, False, -2.0, 0),
    (3, 0, float("nan"), True, 0.25, 5),
    (0, 7, float("inf"), False, 0.0, 1),
)
SCHEDULES = (
    Options(timeout=20.0),
    Options(timeout=20.0, scheduler="lifo"),
    Options(timeout=20.0, scheduler="random", schedule_seed=7),
)


def compare(chance: random.Random) -> None:
    function, source = random_program(chance, invariants=True)
    note(source)
    before, _ = simplify(function.library(*INPUTS[0]))
    hoisted, report = hoist(before)
    note(str(report))
    after, _ = simplify(valid(hoisted))
    valid(after)
    inlined = valid(simplify(hoisted, inline=True)[0])
    for args in INPUTS:
        try:
            values, printed, stats = drained(before, args, SCHEDULES[0])
        except UndertowError:
            continue  # a fault, or too long
        for library in (hoisted, after, inlined):
            got, lines, counted = drained(library, args, SCHEDULES[chance.randrange(3)])
            assert all(map(same, got, values)), (args, got, values)
            assert sorted(lines.split("\n")) == sorted(printed.split("\n"))  # the lanes of a map have no order
            if library is inlined:
                continue  # whose firings are another matter
            assert counted.firings <= stats.firings
            if "hoisted operator" not in report.counts:  # beside an entry in a branch that is not taken, it is dead
                assert counted.firings + counted.dead_firings <= stats.firings + stats.dead_firings
            if library is hoisted:  # a constant argument may decide a branch, and so make a call dead
                assert (counted.activations, counted.max_depth) == (stats.activations, stats.max_depth)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(chance=st.randoms(use_true_random=False))
def test_random_programs_keep_their_meaning(chance: random.Random) -> None:
    compare(chance)
