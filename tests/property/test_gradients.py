"""Random recursive programs: their gradients are what differences say, on every engine, simplified or not.

`UNDERTOW_PROPERTY_EXAMPLES=5000 pytest tests/property/test_gradients.py` looks further, at other programs each time.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, currently_in_test_context, given, note, settings
from hypothesis import strategies as st
from tests.support.differences import WAYS, assert_close, assert_valid, changed, leaves
from tests.support.random_programs import random_program
from tests.support.smooth_programs import arguments, smooth_program

import undertow as ut
from undertow.frontend.values import tree

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))
ROUGH_INPUTS = ((2, 3, 0.53, True, 1.31, 2), (3, -1, -0.37, False, 0.71, 1))
SCHEDULES = ({"scheduler": "lifo"}, {"scheduler": "random", "schedule_seed": 3})
SETTINGS: dict[str, Any] = {
    "derandomize": not EXAMPLES,
    "database": None,
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
}


def along(value: Callable[..., Any], args: tuple[Any, ...], places: tuple[int, ...], seed: int) -> Any:
    """A random direction, and the slope along it by differences; None near a kink: two steps do not agree."""
    rng = np.random.default_rng(seed)
    directions = {place: [rng.uniform(-1, 1, leaf.shape) for leaf in leaves(args[place])] for place in places}
    found = []
    for step in (1e-5, 2.3e-6):
        ends = []
        for by in (step, -step):
            moved = list(args)
            for place, parts in directions.items():
                for number, part in enumerate(parts):
                    for at in np.ndindex(part.shape):
                        moved[place] = changed(moved[place], number, at, by * part[at])
            ends.append(value(*moved))
        found.append((ends[0] - ends[1]) / (2 * step))
    is_smooth = np.isfinite(found).all() and max(map(abs, found)) < 1e3 and np.isclose(*found, 1e-4, 1e-5)
    return directions, found[0] if is_smooth else None


def compare(
    value: ut.Function, inputs: list[tuple[Any, ...]], places: tuple[int, ...], chance: random.Random, order: int
) -> tuple[int, int]:
    """How many of the inputs were compared, and how many had a gradient that is not zero."""
    compared = moving = 0
    with ut.options(timeout=60.0):
        for _ in range(order - 1):
            value = _summed_slopes(value, places)
        both = ut.value_and_grad(value, places)
        assert_valid(both, *inputs[0])
        for number, args in enumerate(inputs):
            directions, wanted = along(value, args, places, number)
            if wanted is None:
                continue
            found, gradient = both(*args)
            slope = sum(
                float(np.sum(part * d))
                for place, leaf in zip(places, gradient, strict=True)
                for part, d in zip(leaves(leaf), directions[place], strict=True)
            )
            compared, moving = compared + 1, moving + (abs(slope) > 1e-6)
            assert found == value(*args)
            assert_close(slope, wanted, 1e-4)
            for way in (*WAYS, SCHEDULES[chance.randrange(2)]):
                assert_close(both.run(*args, **way), (found, gradient), 1e-9)
    return compared, moving


def _summed_slopes(value: ut.Function, places: tuple[int, ...]) -> ut.Function:
    """One number that depends on all of the gradient: to be differentiated again."""
    first = ut.grad(value, places)

    @ut.function
    def total(*args):
        found = 0.0
        for number, leaf in enumerate(tree.flatten(first(*args), lambda x: hasattr(x, "dtype"))[0]):
            found = found + ut.sum(leaf) * (number + 1.0)
        return found

    return total


def smooth(chance: random.Random, order: int = 1) -> tuple[int, int]:
    function, source = smooth_program(chance)
    inputs = [arguments(chance) for _ in range(2)]
    if currently_in_test_context():
        note(f"{source}\n# {inputs}")

    @ut.function
    def value(n, x, v, w):
        number, _, array = function(n, x, v, w)
        return number + ut.sum(array * 0.7)

    return compare(value, inputs, (1, 2, 3), chance, order)


def rough(chance: random.Random, order: int = 1) -> tuple[int, int]:
    function, source = random_program(chance, effects=False, invariants=True)
    if currently_in_test_context():
        note(source)
    value = ut.function(lambda n, a, x, b, w, k: function(n, a, x, b, w, k)[1])
    return compare(value, list(ROUGH_INPUTS), (2, 4), chance, order)


@pytest.mark.slow
@settings(max_examples=EXAMPLES or 20, **SETTINGS)
@given(chance=st.randoms(use_true_random=False))
def test_smooth_programs(chance: random.Random) -> None:
    smooth(chance)


@pytest.mark.slow
@settings(max_examples=EXAMPLES or 15, **SETTINGS)
@given(chance=st.randoms(use_true_random=False))
def test_rough_programs(chance: random.Random) -> None:
    """Full of floors, comparisons, and what passes can take away."""
    rough(chance)


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 8 or 3, **SETTINGS)
@given(chance=st.randoms(use_true_random=False))
def test_second_derivatives(chance: random.Random) -> None:
    smooth(chance, order=2)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(2))
def test_larger_programs(shard: int) -> None:
    """From seeds: Hypothesis likes small ones."""
    first = random.Random().randrange(1 << 40) if EXAMPLES else 100 * shard
    counts = []
    for seed in range(first, first + (EXAMPLES // 4 or 6)):
        try:
            counts.append(smooth(random.Random(seed)))
        except Exception as fault:
            raise AssertionError(f"seed {seed}:\n{smooth_program(random.Random(seed))[1]}") from fault
    assert sum(compared for compared, _ in counts) > len(counts), "most programs are compared"
    assert sum(moving for _, moving in counts) > len(counts), "most gradients are not zero"
