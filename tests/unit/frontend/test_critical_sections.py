"""`ut.critical_section`: several variables in one step, on every engine, and in no interleaving otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.engines import EVERY, forced

import undertow as ut

checking = ut.Variable(100, name="checking")
savings = ut.Variable(5, name="savings")


@ut.critical_section(checking, savings, has_aux=True)
def move(checking, savings, amount):
    """The sum stays; nothing is taken that is not there."""
    if amount > checking:
        return (checking, savings), False
    return (checking - amount, savings + amount), True


def _carelessly(amount: Any) -> Any:
    """The same, as separate reads and assignments."""
    if amount > checking:
        return False
    checking.assign(checking - amount)
    savings.assign(savings + amount)
    return True


@ut.function
def careful_lane(amount):
    return move(amount)


@ut.function
def careless_lane(amount):
    return _carelessly(amount)


@ut.function
def carefully(amounts):
    return ut.map(careful_lane, amounts), checking.read(), savings.read()


@ut.function
def carelessly(amounts):
    return ut.map(careless_lane, amounts), checking.read(), savings.read()


def reset() -> None:
    checking.assign(100)
    savings.assign(5)


def sums(found: Any) -> set[int]:
    return {
        int(state.variables["checking"] + state.variables["savings"])
        for trace in found.traces
        for state in trace.states
    }


def test_no_interleaving_violates_it() -> None:
    reset()
    found = ut.behaviors(carefully, np.array([60, 70]), traces=True)
    assert found.is_complete and len(found.traces) == 2
    assert sums(found) == {105}  # in every state of every behavior
    assert {tuple(one.result[0].tolist()) for one in found} == {(True, False), (False, True)}
    assert all(one.variables["checking"] >= 0 for one in found)


@pytest.mark.slow
def test_without_it_interleavings_do() -> None:
    reset()
    found = ut.behaviors(carelessly, np.array([60, 70]), traces=True, budget=1000)
    assert sums(found) != {105}
    both = found.shortest(lambda one: one.result is not None and one.result[0].all())
    assert sum(both.outcome.variables.values()) != 105  # 130 of 100 were moved


@pytest.mark.parametrize("engine", EVERY)
def test_every_engine_runs_it_in_one_step(engine: str) -> None:
    reset()
    with forced():
        done, left, there = carefully.run(np.array([60, 70, 10, 25]), engine=engine)
    taken = np.array([60, 70, 10, 25])[done].sum()
    assert left == 100 - taken >= 0 and there == 5 + taken
    assert (checking.value, savings.value) == (left, there)


def test_outside_a_capture() -> None:
    reset()
    assert move(30) is True and (checking.value, savings.value) == (70, 35)
    assert move(1000) is False and (checking.value, savings.value) == (70, 35)

    @ut.critical_section(checking, savings)
    def swap(a, b):
        return b, a

    assert swap() == (35, 70) == (checking.value, savings.value)
    assert swap.__name__ == "swap"


def test_variables_of_one_name_and_a_single_one() -> None:
    x, y = ut.Variable(1.0), ut.Variable(2.0)  # both are called `variable`

    @ut.critical_section(x, y)
    def both(a, b, c):
        return a + c, b * c

    @ut.critical_section(x)
    def one(a):
        return -a

    @ut.function
    def f(c):
        return both(c), one()

    assert f(3.0) == ((4.0, 6.0), -4.0) and (x.value, y.value) == (-4.0, 6.0)
    assert both(1.0) == (-3.0, 6.0) and one() == 3.0


def test_if_one_value_does_not_fit_none_is_assigned() -> None:
    x, y = ut.Variable(1.0, name="x"), ut.Variable(np.zeros(2), name="y")

    @ut.critical_section(x, y)
    def grow(x, y):
        return x + 1, ut.concat([y, y])

    with pytest.raises(ut.UndertowError):
        grow()
    with pytest.raises(ut.TypeMismatch, match="for variable `y`, which holds"):
        ut.function(lambda: grow())()
    assert x.value == 1.0


def test_what_is_refused() -> None:
    x, y = ut.Variable(1.0, name="x"), ut.Variable(2.0, name="y")
    with pytest.raises(ut.TypeMismatch, match="over variables, not over nothing"):
        ut.critical_section()
    with pytest.raises(ut.TypeMismatch, match="over variables, not over 3"):
        ut.critical_section(3)  # type: ignore[arg-type]
    with pytest.raises(ut.TypeMismatch, match="names a variable twice"):
        ut.critical_section(x, x)
    with pytest.raises(ut.TypeMismatch, match="a critical section is a function"):
        ut.critical_section(x)(3)  # type: ignore[arg-type]

    @ut.critical_section(x, y)
    def wrong(x, y):
        return x + y

    @ut.critical_section(x, y, has_aux=True)
    def not_a_pair(x, y):
        return x, y, x

    @ut.critical_section(x)
    def reads(a):
        return a + y.read()

    for section, message in (
        (wrong, "updates variables `x` and `y` returns an f64"),
        (not_a_pair, r"returns \(f64, f64, f64\)"),
        (reads, "reads variable `y`"),
    ):
        with pytest.raises(ut.UndertowError, match=message):
            ut.function(lambda section=section: section())()
    with pytest.raises(ut.TypeMismatch, match="returns"):
        wrong()
