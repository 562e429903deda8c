"""`for x in array`, where the length of the array is known only at run time."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.api.options import ENGINES


@ut.function
def best(xs: ut.f64[None]):
    found = -1.0
    x = 100.0
    for x in xs:
        if x < 0.0:
            continue
        if x > 5.0:
            break
        found = ut.maximum(found, x)
    return found, x


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("xs", "expected"), [([], (-1, 100)), ([1, 3, 2], (3, 2)), ([1, -2], (1, -2)), ([1, 9, 4], (1, 9))]
)
def test_continue_break_and_what_is_left(engine: str, xs: list[float], expected: tuple[float, float]) -> None:
    assert best.run(np.array(xs, float), engine=engine) == expected


@ut.function
def first_above(xs: ut.f64[None], bound: ut.f64) -> ut.f64:
    for x in xs:
        if x > bound:
            return x
    return -1.0


def test_return() -> None:
    assert first_above(np.array([1.0, 3.0, 4.0]), 2.0) == 3.0
    assert first_above(np.zeros(0), 2.0) == -1.0


@ut.function
def pairs(rows: ut.f64[None, 2]) -> ut.f64:
    total = 0.0
    for row in rows:
        for k in range(2):
            total = total + row[k]
        for other in rows:
            total = total + other[0] * row[1]
    return total


@pytest.mark.parametrize("engine", ENGINES)
def test_loops_in_loops(engine: str) -> None:
    rows = np.arange(6.0).reshape(3, 2)
    assert pairs.run(rows, engine=engine) == rows.sum() + rows[:, 0].sum() * rows[:, 1].sum()
    if engine != "demand":
        found = ut.grad(pairs).run(rows, engine=engine)
        np.testing.assert_allclose(found, 1 + np.array([rows[:, 1].sum(), rows[:, 0].sum()]) + np.zeros((3, 1)))


def test_the_variable_may_not_have_been_assigned() -> None:
    @ut.function
    def last(xs: ut.f64[None]):
        for x in xs:
            y = x
        return y

    assert last(np.arange(3.0)) == 2.0
    with pytest.raises(UnboundLocalError, match="cannot access local variable 'y'"):
        last(np.ones(0))


def test_a_length_that_is_known_is_unrolled() -> None:
    @ut.function
    def total(xs: ut.f64[3]) -> ut.f64:
        found = 0.0
        for x in xs:
            found = found + x
        return found

    assert total(np.arange(3.0)) == 3.0
    assert not any(node.op == "enter" for node in total.graph(np.arange(3.0), simplify=False).static.nodes)
