"""Random recursive programs: their gradients are what differences say, on every engine, simplified or not.

`UNDERTOW_PROPERTY_EXAMPLES=5000 pytest tests/property/test_gradients.py` looks further, at other programs each time.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.support.slopes import compare_slopes, rough, smooth

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))
SETTINGS: dict[str, Any] = {
    "derandomize": not EXAMPLES,
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}


@pytest.mark.slow
@settings(max_examples=EXAMPLES or 20, **SETTINGS)
@given(chance=st.randoms(use_true_random=False))
def test_smooth_programs(chance: random.Random) -> None:
    program = smooth(chance)
    note(program.text)
    compare_slopes(program, chance)


@pytest.mark.slow
@settings(max_examples=EXAMPLES or 15, **SETTINGS)
@given(chance=st.randoms(use_true_random=False))
def test_rough_programs(chance: random.Random) -> None:
    program = rough(chance)
    note(program.text)
    compare_slopes(program, chance)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 8 or 3, **SETTINGS)
@given(chance=st.randoms(use_true_random=False))
def test_second_derivatives(chance: random.Random) -> None:
    program = smooth(chance)
    note(program.text)
    compare_slopes(program, chance, order=2)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(2))
def test_larger_programs(shard: int) -> None:
    """From seeds: Hypothesis likes small ones."""
    first = random.Random().randrange(1 << 40) if EXAMPLES else 100 * shard
    counts = []
    for seed in range(first, first + (EXAMPLES // 4 or 6)):
        chance = random.Random(seed)
        program = smooth(chance)
        try:
            counts.append(compare_slopes(program, chance))
        except Exception as fault:
            raise AssertionError(f"seed {seed}:\n{program.text}") from fault
    assert sum(compared for compared, _ in counts) > len(counts), "most programs are compared"
    assert sum(moving for _, moving in counts) > len(counts), "most gradients are not zero"
