"""Programs: what threads share that plan the same captured function at once."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut
from undertow.api import program as programs
from undertow.api.options import ENGINES


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    return 1.0 if n <= 0 else x * power(x, n - 1)


@pytest.mark.parametrize("step", ["make_library", "flatten"])
def test_two_that_plan_at_once_go_on_with_the_same(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """A library that only one of them knows would end, and another one may get its identity, and its graph."""
    program, _ = power.__undertow_program__(power.__undertow_arguments__((2.0, 3), {}))
    program.libraries.clear()
    program.graphs.clear()
    engine, original = ENGINES["waves"], getattr(programs, step)
    others: list[Any] = []

    def graph() -> Any:
        return program.static(program.library(engine, True))

    def interrupted(*args: Any) -> Any:
        """Another thread comes in between, and is done first."""
        if not others:
            others.append(None)
            others[0] = graph()
        return original(*args)

    monkeypatch.setattr(programs, step, interrupted)
    assert graph() is others[0]
