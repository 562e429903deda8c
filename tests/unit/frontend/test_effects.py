"""Effects come in program order, whatever the scheduler and the engine do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

SCHEDULES: list[dict[str, Any]] = [{"scheduler": "fifo"}, {"scheduler": "lifo"}] + [
    {"scheduler": "random", "schedule_seed": seed} for seed in range(8)
]
SCHEDULES += [{"engine": engine} for engine in ("demand", "waves", "expand")]


@ut.function
def late(n: ut.i64) -> ut.i64:
    """Prints only after a chain of calls."""
    if n == 0:
        print("first")
        return 0
    return late(n - 1)


@ut.function
def quiet(n: ut.i64):
    """Leaves, in one branch, before anything is printed."""
    if n > 0:
        return n
    print("never")
    return n


@ut.function
def leaves_early(n: ut.i64):
    late(20)
    quiet(n)
    print("second")
    return n


@ut.function
def maps_nothing(values: ut.i64[None]):
    late(20)
    ut.map(lambda x: ut.print("lane {}", x), values)
    print("second")
    return ut.sum(values)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_branch_without_effects_hands_the_order_on(schedule, capsys):
    leaves_early.run(5, **schedule)
    assert capsys.readouterr().out == "first\nsecond\n"


@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_a_map_without_lanes_hands_the_order_on(schedule, capsys):
    maps_nothing.run(np.zeros(0, np.int64), **schedule)
    assert capsys.readouterr().out == "first\nsecond\n"
