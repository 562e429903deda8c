"""Every program in parts on the core, under random placements and orders of arrival, gives what plain Python gives."""

from __future__ import annotations

import contextlib
import io
from unittest.mock import patch

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program, assert_same
from tests.support.parts import InParts
from tests.support.turns import of_turn

import undertow as ut
from undertow.api.options import ENGINES

PLACED = {engine.name: engine for engine in (InParts(1, 2), InParts(2, 3), InParts(3, 5))}
CHOSEN = [program for program in PROGRAMS if not program.tags & {"lazy", "deep", "fault"}]


@pytest.mark.parametrize(
    ("program", "engine"), [(p, name) for turn, p in enumerate(CHOSEN, 1) for name in of_turn(PLACED, turn)], ids=str
)
def test_same_as_python(program: Program, engine: str) -> None:
    with patch.dict(ENGINES, PLACED):
        for case in range(len(program.cases)):
            expected = program.expected(case)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                result, _ = program.run(case, engine=engine, timeout=30.0)
            assert_same(result, expected.value)
            assert printed.getvalue() == expected.printed


@ut.function
def triangle(n: ut.i64) -> ut.i64:
    return 0 if n <= 0 else n + triangle(n - 1)


@ut.function
def wide(base: ut.f64[20], lanes: ut.i64) -> tuple[ut.f64, ut.i64]:
    """What crosses are numbers, bools, vectors, and arrays whose size each lane chooses: hundreds at a time."""

    def lane(k):  # type: ignore[no-untyped-def]
        vector = base * ut.astype(k, ut.f64)
        some = ut.arange(k % 5 + 1)
        if ut.sum(vector) > 9000.0:
            number = triangle(k % 7) + ut.sum(some * k)
        else:
            number = ut.sum(some) - k
        is_even = number % 2 == 0
        for j in range(k % 3):
            vector = vector + ut.astype(number * j, ut.f64)
        return ut.sum(vector[:7] * 0.5) if is_even else ut.sum(vector), number

    reals, numbers = ut.map(lane, ut.arange(lanes))
    return ut.sum(reals), ut.sum(numbers * ut.arange(lanes))


@pytest.mark.parametrize("seed", range(8))
def test_many_lanes(seed: int) -> None:
    """Tokens that come in the order of their frames, in the opposite one, in parts of it, or in none."""
    engine = InParts(seed, 2 + seed % 3)
    base = np.linspace(-1.0, 3.0, 20)
    expected = wide.run(base, 700, engine="waves")
    with patch.dict(ENGINES, {engine.name: engine}):
        real, number = wide.run(base, 700, engine=engine.name, timeout=30.0)
    assert number == expected[1]
    assert np.isclose(real, expected[0], rtol=1e-12)
