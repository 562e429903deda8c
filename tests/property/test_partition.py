"""Random programs placed by estimate give what the whole gives, and the placement is never worse than none."""

from __future__ import annotations

import os
from random import Random
from typing import Any
from unittest.mock import patch

import pytest
from tests.support.differences import assert_close
from tests.support.placed import type_rule
from tests.support.slopes import rough, smooth

import undertow as ut
from undertow.api.options import ENGINES
from undertow.engines.reference.placed import PlacedPlan
from undertow.ir import spec
from undertow.ir.graph import StaticGraph
from undertow.passes import partition as estimates
from undertow.passes.cut import cut

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))


@pytest.mark.slow
@pytest.mark.parametrize("make", [smooth, rough])
def test_programs(make: Any) -> None:
    """Tokens cost next to nothing here, or else such small programs would stay whole."""
    cut_up = 0
    for seed in range(EXAMPLES or 15):
        chance = Random(seed)
        program = make(chance)
        count = 2 + seed % 4
        both = ut.value_and_grad(program.value, program.places)
        graph: StaticGraph = both.graph(*program.inputs[0]).static
        with patch.object(estimates, "_TOKEN", chance.choice((0.01, 10))), patch.object(estimates, "_BYTE", 0.001):
            places = estimates.partition(graph, count)
            assert places == estimates.partition(graph, count)
            whole = estimates.estimate(graph, [0] * len(places), count)
            assert estimates.estimate(graph, places, count).cost <= whole.cost
        cut_up += len(set(places)) > 1
        placed = cut(graph, places, count)
        for part in placed.parts:
            spec.check(part.graph, type_rule)
        inputs = both.__undertow_arguments__(program.inputs[0], {}).leaves
        wanted = ENGINES["reference"].plan(graph).run(inputs)[0]
        assert_close(tuple(PlacedPlan(placed, chance.randrange).run(inputs)[0]), tuple(wanted), 1e-9)
    assert cut_up > 5
