"""Every program in parts, under random placements and orders of arrival, gives what plain Python gives."""

from __future__ import annotations

import contextlib
import io
from unittest.mock import patch

import pytest
from tests.programs import PROGRAMS, Program, assert_same
from tests.support.placed import Placed

from undertow.api.options import ENGINES

PLACED = {engine.name: engine for engine in (Placed(1, 2), Placed(2, 3), Placed(3, 5))}
CHOSEN = [program for program in PROGRAMS if not program.tags & {"lazy", "deep", "fault"}]


@pytest.mark.parametrize("engine", PLACED)
@pytest.mark.parametrize("program", CHOSEN, ids=str)
def test_same_as_python(program: Program, engine: str) -> None:
    with patch.dict(ENGINES, PLACED):
        for case in range(len(program.cases)):
            expected = program.expected(case)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                result, _ = program.run(case, engine=engine)
            assert_same(result, expected.value)
            assert printed.getvalue() == expected.printed
