"""Templates that are none: whatever the rows say, the core refuses them, or runs to some end; it never crashes."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from tests.support.spoiled import mutate, run_templates, templates

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
    ends: Counter[str] = Counter()
    for k in range(300):
        chance = random.Random(1000 * seed + k)
        program = chance.choice(programs)
        ends[run_templates(program, mutate(program, chance, kernels_too=True), chance)] += 1
    assert ends["refused"] > ends["ran"] > 0


def test_what_is_said() -> None:
    program = templates()[0]
    for rows in ([], program.rows[:-1], [*program.rows, 0], [99, *program.rows[1:]]):
        with pytest.raises(ValueError, match="not a plan"):
            _core.decode_templates(np.array(rows, np.int64), program.words, program.constants)
    with pytest.raises(ValueError, match="not a plan"):
        _core.decode_templates(program.rows, program.words, [])
