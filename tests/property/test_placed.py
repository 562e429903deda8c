"""Gradients of random programs in parts are those of the whole, under random placements and orders of arrival."""

from __future__ import annotations

import os
from random import Random
from unittest.mock import patch

import pytest
from tests.support.differences import assert_close
from tests.support.placed import Placed
from tests.support.slopes import rough, smooth

import undertow as ut
from undertow.api.options import ENGINES

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))


@pytest.mark.slow
@pytest.mark.parametrize("make", [smooth, rough])
def test_gradients(make: object) -> None:
    for seed in range(EXAMPLES or 12):
        chance = Random(seed)
        program = make(chance)  # type: ignore[operator]
        both = ut.value_and_grad(program.value, program.places)
        with patch.dict(ENGINES, {"placed": Placed(seed, 2 + seed % 4)}), ut.options(timeout=60.0):
            for args in program.inputs:
                wanted = both.run(*args, engine="reference")
                assert_close(both.run(*args, engine="placed"), wanted, 1e-9)
