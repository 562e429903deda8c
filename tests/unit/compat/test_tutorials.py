"""Programs in the manner of the TensorFlow 1 tutorials: each asserts what it has learned."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import undertow.compat.v1 as tf

FOLDER = Path(__file__).parent / "tutorials"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_tutorial(program: str) -> None:
    runpy.run_path(str(FOLDER / f"{program}.py"), run_name="__main__")
    assert tf.get_default_session() is None
