"""Gradients of random recursive programs: what differences say, on every engine, simplified or not."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from tests.support.differences import WAYS, assert_close, assert_valid, changed, leaves
from tests.support.random_programs import random_program
from tests.support.smooth_programs import arguments, smooth_program

import undertow as ut
from undertow.frontend.values import tree
from undertow.frontend.values.traced import is_traced

ROUGH_INPUTS = ((2, 3, 0.53, True, 1.31, 2), (3, -1, -0.37, False, 0.71, 1))
SCHEDULES = ({"scheduler": "lifo"}, {"scheduler": "random", "schedule_seed": 3})


@dataclass(frozen=True, eq=False)
class SlopeProgram:
    """A function whose gradient is to be compared."""

    text: str
    value: ut.Function  # gives a number
    inputs: list[tuple[Any, ...]]
    places: tuple[int, ...]  # of the arguments that it is differentiated by


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


def compare_slopes(program: SlopeProgram, chance: random.Random, order: int = 1) -> tuple[int, int]:
    """How many of the inputs were compared, and how many had a gradient that is not zero."""
    value, inputs, places = program.value, program.inputs, program.places
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
        for number, leaf in enumerate(tree.flatten(first(*args), is_traced)[0]):
            found = found + ut.sum(leaf) * (number + 1.0)
        return found

    return total


def smooth(chance: random.Random) -> SlopeProgram:
    """Programs that are smooth nearly everywhere."""
    function, source = smooth_program(chance)
    inputs = [arguments(chance) for _ in range(2)]

    @ut.function
    def value(n, x, v, w):
        number, _, array = function(n, x, v, w)
        return number + ut.sum(array * 0.7)

    return SlopeProgram(f"{source}\n# {inputs}", value, inputs, (1, 2, 3))


def rough(chance: random.Random) -> SlopeProgram:
    """Full of floors, comparisons, and what passes can take away."""
    function, source = random_program(chance, effects=False, invariants=True)
    value = ut.function(lambda n, a, x, b, w, k: function(n, a, x, b, w, k)[1])
    return SlopeProgram(source, value, list(ROUGH_INPUTS), (2, 4))
