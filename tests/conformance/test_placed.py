"""Every program in parts, under random placements and orders of arrival, gives what plain Python gives."""

from __future__ import annotations

import contextlib
import io
from unittest.mock import patch

import pytest
from tests.programs import PROGRAMS, Program, assert_same, devices
from tests.support.placed import Placed, PlacedByDevice
from tests.support.turns import of_turn

from undertow.api.options import ENGINES

PLACED = {engine.name: engine for engine in (Placed(1, 2), Placed(2, 3), Placed(3, 5))}
CHOSEN = [program for program in PROGRAMS if not program.tags & {"lazy", "deep", "fault"}]

NAMING = [program for program in PROGRAMS if program.name in {row.name for row in devices.PROGRAMS}]


@pytest.mark.parametrize(
    ("program", "engine"), [(p, name) for turn, p in enumerate(CHOSEN) for name in of_turn(PLACED, turn)], ids=str
)
def test_same_as_python(program: Program, engine: str) -> None:
    with patch.dict(ENGINES, PLACED):
        for case in range(len(program.cases)):
            expected = program.expected(case)
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                result, _ = program.run(case, engine=engine)
            assert_same(result, expected.value)
            assert printed.getvalue() == expected.printed


@pytest.mark.parametrize("forms_waves", [False, True])
@pytest.mark.parametrize("program", NAMING, ids=str)
def test_devices(program: Program, forms_waves: bool) -> None:
    """Programs that name devices, placed as they say: every worker that is named does something."""
    for case in range(len(program.cases)):
        engine = PlacedByDevice(case, 3, forms_waves)
        expected = program.expected(case)
        with patch.dict(ENGINES, {engine.name: engine}), contextlib.redirect_stdout(io.StringIO()) as printed:
            result, _ = program.run(case, engine=engine.name)
        assert_same(result, expected.value)
        assert printed.getvalue() == expected.printed
        assert engine.last is not None
    named = {
        device
        for node in program.function.graph(*program.cases[-1]).static.nodes
        if (device := node.attrs.get("device"))
    }
    assert named
    assert all(engine.last.fired[1 + int(str(name).partition(":")[2])] > 1 for name in named)
