"""Lanes part at a branch and meet again: the same on every instruction set, for any number of lanes."""

from __future__ import annotations

import numpy as np
import pytest

from undertow import _core


@pytest.mark.parametrize("isa", _core.isas())
@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8"])
def test_lanes_part_and_meet(isa: str, dtype: str) -> None:
    random = np.random.default_rng(1)
    for n in (1, 7, 8, 15, 16, 17, 100, 1000):
        for share in (0.0, 0.3, 1.0):
            pred = random.random(n) < share
            values = random.integers(-9, 9, n).astype(dtype)
            yes, no, first, second, met = _core.part_and_meet(pred, values, False, False, isa)
            assert (yes, no) == (np.flatnonzero(pred).tolist(), np.flatnonzero(~pred).tolist())
            assert (first, second) == (values[pred].tobytes(), values[~pred].tobytes())
            assert met == values.tobytes()


@pytest.mark.parametrize("isa", _core.isas())
def test_one_value_for_all_lanes_of_a_side(isa: str) -> None:
    pred = np.arange(100) % 3 == 0
    for dtype in ("i4", "i8"):
        values = np.arange(100, 200).astype(dtype)
        for one_yes, one_no in ((True, False), (False, True), (True, True)):
            met = _core.part_and_meet(pred, values, one_yes, one_no, isa)[-1]
            wanted = np.where(pred, values[0] if one_yes else values, values[1] if one_no else values)
            assert np.frombuffer(met, dtype).tolist() == wanted.tolist()
