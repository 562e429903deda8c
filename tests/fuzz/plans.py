"""Plans and templates that are none: rows of integers, spoiled, for the core to refuse or to run to some end."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random

import numpy as np
import numpy.typing as npt
from tests.fuzz.case import Case
from tests.support.spoiled import Program, mutate, run_plan, run_templates, templates, wave_plans

_wave_plans, _templates = cache(wave_plans), cache(templates)


def spoiled_plan(chance: Random) -> Case:
    """A plan of `waves` with spoiled numbers: refused, or run to some end."""
    return _case(_wave_plans(), run_plan, chance)


def spoiled_templates(chance: Random) -> Case:
    """Templates of `expand`, spoiled in the same way."""
    return _case(_templates(), run_templates, chance)


def _case(
    programs: list[Program], run: Callable[[Program, npt.NDArray[np.int64], Random], str], chance: Random
) -> Case:
    program = chance.choice(programs)
    rows, seed = mutate(program, chance, kernels_too=True), chance.random()
    return Case(lambda: run(program, rows, Random(seed)), f"{program.graph.name}\n{_difference(program.rows, rows)}")


def _difference(before: npt.NDArray[np.int64], after: npt.NDArray[np.int64]) -> str:
    """Where rows part from those of the program, and where they meet again."""
    most = min(len(before), len(after))
    unequal = np.flatnonzero(before[:most] != after[:most])
    first = int(unequal[0]) if len(unequal) else most
    shown = slice(first, first + 20)
    return f"{len(before)} rows, then {len(after)}; from {first} on: {before[shown]}, then {after[shown]}"
