"""Every program in parts on the core, under random placements and orders of arrival, gives what plain Python gives."""

from __future__ import annotations

import contextlib
import io
from unittest.mock import patch

import pytest
from tests.programs import PROGRAMS, Program, assert_same
from tests.support.parts import InParts
from tests.support.placements import pairs

from undertow.api.options import ENGINES

PLACED = {engine.name: engine for engine in (InParts(1, 2), InParts(2, 3), InParts(3, 5))}
CHOSEN = [program for program in PROGRAMS if not program.tags & {"lazy", "deep", "fault"}]


@pytest.mark.parametrize(("program", "engine"), pairs(CHOSEN, PLACED, 1), ids=str)
def test_same_as_python(program: Program, engine: str) -> None:
    with patch.dict(ENGINES, PLACED):
        for case in range(len(program.cases)):
            expected = program.expected(case)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                result, _ = program.run(case, engine=engine, timeout=30.0)
            assert_same(result, expected.value)
            assert printed.getvalue() == expected.printed
