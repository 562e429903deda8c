"""Templates that are none: whatever the rows say, decoding them gives a ValueError or templates; it never crashes.

Numbers are checked, the order of what happens is not (waves checks that too): so what was spoiled is not run here.
"""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from tests.support.spoiled import mutate, templates

from undertow import _core
from undertow.engines.expand import ExpandPlan


def test_templates_that_are_templates_run() -> None:
    for program in templates():
        _core.decode_templates(program.rows, program.words, program.constants)
        results, _ = ExpandPlan(program.graph).run(program.inputs)
        assert results


@pytest.mark.parametrize("seed", range(4))
def test_spoiled_templates(seed: int) -> None:
    programs = templates()
    found: Counter[str] = Counter()
    for k in range(500):
        chance = random.Random(1000 * seed + k)
        program = chance.choice(programs)
        try:
            _core.decode_templates(mutate(program, chance), program.words, program.constants)
            found["decoded"] += 1
        except ValueError as wrong:
            found[str(wrong).split(":")[0]] += 1
    assert found.keys() == {"decoded", "not a plan"}
    assert found["not a plan"] > found["decoded"]


def test_what_is_said() -> None:
    program = templates()[0]
    for rows in ([], program.rows[:-1], [*program.rows, 0], [99, *program.rows[1:]]):
        with pytest.raises(ValueError, match="not a plan"):
            _core.decode_templates(np.array(rows, np.int64), program.words, program.constants)
    with pytest.raises(ValueError, match="not a plan"):
        _core.decode_templates(program.rows, program.words, [])
