"""Random programs that change arrays in place do what plain Python does on every engine, whoever else holds an array.

`UNDERTOW_PROPERTY_EXAMPLES=5000 pytest tests/property/test_changes.py` looks further, at other programs each time.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.support.changing_programs import LENGTH, changing_program
from tests.support.native_agreement import agree, assert_equal
from tests.support.written import load_text

EXAMPLES = int(os.environ.get("UNDERTOW_PROPERTY_EXAMPLES", "0"))


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(4))
def test_programs(shard: int, tmp_path: Path) -> None:
    first = Random().randrange(1 << 40) if EXAMPLES else 1000 * shard
    for seed in range(first, first + (EXAMPLES // 4 or 5)):
        chance = Random(seed)
        text = changing_program(chance)
        function = load_text(text, tmp_path).first
        x, y, z = np.linspace(-1.0, 1.0, LENGTH), np.linspace(0.5, 1.5, chance.randint(4, 12)), np.arange(3)
        for n in (0, 3):
            try:
                given = x.copy(), y.copy(), z.copy(), np.int64(n)
                wanted = function.run(x.copy(), y.copy(), z.copy(), n, engine="python")  # which changes its arguments
                assert_equal(agree(function.graph(*given).static, given, chance, 1e-9)[0], wanted, 1e-9)
                assert_equal(function.run(*given, engine="demand"), wanted, 1e-9)
                assert_equal(given[:3], (x, y, z), 0)
            except Exception as fault:
                raise AssertionError(f"seed {seed}, n = {n}:\n{text}") from fault
