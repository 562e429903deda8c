"""Recursion with asserts and raises forms waves as it does without; what prints stays in order."""

from __future__ import annotations

import contextlib
import io

import pytest

import undertow as ut
from undertow.passes.pipeline import library_steps


class Negative(Exception):
    pass


@ut.function
def fib(n: int) -> int:
    assert n >= 0, f"{n} is negative"
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@ut.function
def checked(n: int) -> int:
    if n < 0:
        raise Negative(f"{n}")
    if n < 2:
        return n
    a = checked(n - 1)
    if a > 50:
        assert a != 89, "too many"
        a += checked(0)
    return a + checked(n - 2)


@ut.function
def printed(n: int) -> int:
    assert n >= 0
    print("n", n)
    return n if n < 2 else printed(n - 1) + printed(n - 2)


@ut.function
def without_end(n: int) -> int:
    assert n < 500, f"as far as {n}"
    return 0 if n < 0 else without_end(n + 1) + 1


@ut.function
def descend(n: int) -> int:
    assert n != 7, "seven"
    return 0 if n <= 0 else 1 + descend(n - 1)


def changed(function: ut.Function, *args: object) -> bool:
    return any(step.name == "unorder" and step.has_changed for step in library_steps(function.library(*args)))


def test_waves() -> None:
    result, stats = fib.run(15, engine="waves", stats=True)
    assert (result, stats.activations) == (610, 1973)
    assert stats.waves < 40
    result, stats = checked.run(10, engine="waves", stats=True)
    assert result == 55 and stats.waves < stats.activations / 2


@pytest.mark.parametrize("engine", ["reference", "demand", "expand", "waves"])
def test_faults_are_pythons(engine: str) -> None:
    with pytest.raises(AssertionError, match="-3 is negative"):
        fib.run(-3, engine=engine)
    with pytest.raises(Negative, match="-2"):
        checked.run(-2, engine=engine)
    with pytest.raises(AssertionError, match="too many"):
        checked.run(12, engine=engine)
    with pytest.raises(AssertionError, match="seven"):
        descend.run(20, engine=engine)


@pytest.mark.parametrize("engine", ["reference", "expand", "waves"])
def test_an_assert_ends_a_recursion(engine: str) -> None:
    with pytest.raises(AssertionError, match="as far as 500"):
        without_end.run(0, engine=engine)


def test_what_is_printed_stays_in_order() -> None:
    assert changed(fib, 5) and changed(checked, 5)
    assert not changed(printed, 5)
    with contextlib.redirect_stdout(io.StringIO()) as found:
        printed(3)
    assert found.getvalue() == "n 3\nn 2\nn 1\nn 0\nn 1\n"


def test_a_recursion_in_a_line_runs_narrow() -> None:
    (group,) = [line for line in str(descend.plan(3)).splitlines() if line.startswith("group") and "descend" in line]
    assert "narrow" in group
    assert descend.run(6, engine="waves") == 6
