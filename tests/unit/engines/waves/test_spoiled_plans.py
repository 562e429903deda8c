"""Plans that are no plans: whatever the rows say, the core refuses them, or runs to some end; it never crashes."""

from __future__ import annotations

import random

import numpy as np
import pytest
from tests.support.spoiled import mutate, run_plan, wave_plans

from undertow import _core


def test_plans_that_are_plans_run() -> None:
    for program in wave_plans():
        for seed in range(4):
            assert run_plan(program, program.rows, random.Random(seed)) in ("ran", "stopped")


@pytest.mark.parametrize("seed", range(4))
def test_spoiled_plans(seed: int) -> None:
    """Mutations of rows; `wrong` ones are refused, or come to some end."""
    programs = wave_plans()
    ends = set()
    for k in range(150):
        chance = random.Random(1000 * seed + k)
        program = chance.choice(programs)
        ends.add(run_plan(program, mutate(program, chance, kernels_too=True), chance))
    assert "refused" in ends and ends - {"refused"}


def test_what_is_said() -> None:
    program = wave_plans()[0]
    for rows, said in (
        ([], "it ends too early"),
        (program.rows[:-1], "it ends too early"),
        ([*program.rows, 0], "numbers are left over at its end"),
        ([99, *program.rows[1:]], "another version of the encoding.* rebuild it: `make core`"),
        ([program.rows[0] + 256, *program.rows[1:]], "or for other fields; rebuild it: `make core`"),
    ):
        with pytest.raises(ValueError, match=said):
            _core.decode(np.array(rows, np.int64), program.words, program.constants)
    with pytest.raises(ValueError, match="too few constants"):
        _core.decode(program.rows, program.words, [])
