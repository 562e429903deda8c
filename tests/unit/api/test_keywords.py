"""Arguments by keyword: of calls, `run`, `map` and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut


@ut.function
def descent(n: ut.i64, *rest: ut.i64, step: ut.i64 = 1, **others: ut.i64) -> ut.i64:
    if n <= 0:
        return sum(rest) + sum(others.values())
    return step + descent(n - step, *rest, step=step, **others)


class Scaled:
    def __init__(self, by: int) -> None:
        self.by = by

    @ut.function
    def total(self, *values: ut.i64, twice: ut.i64 = 0) -> ut.i64:
        return self.by * sum(values) + twice * sum(values)


@pytest.mark.parametrize("engine", ["waves", "reference", "python"])
def test_run_takes_arguments_by_keyword(engine: str) -> None:
    assert descent.run(7, 5, 6, step=2, more=100, engine=engine) == 8 + 11 + 100
    assert descent.run(n=4, engine=engine) == 4
    assert Scaled(3).total.run(1, 2, twice=1, engine=engine) == 12


@pytest.mark.parametrize("engine", ["waves", "reference", "python"])
def test_map_takes_arguments_by_keyword(engine: str) -> None:
    found = descent.map(np.arange(3), step=np.array([1, 2, 3]), more=ut.shared(10), engine=engine)
    assert found.tolist() == [10, 12, 13]
    assert Scaled(3).total.map([1, 2], twice=[0, 1], engine=engine).tolist() == [3, 8]


def test_map_by_keyword_inside_a_function() -> None:
    assert ut.function(lambda x: descent.map(x, step=x + 1))(np.arange(3)).tolist() == [0, 2, 3]


def test_random_numbers_are_those_of_a_map_by_position() -> None:
    @ut.function
    def draw(x: ut.f64, by: ut.f64) -> Any:
        return ut.random.normal() * x + by

    x = np.ones(3)
    assert (draw.map(x, by=x, seed=1) == draw.map(x, x, seed=1)).all()


def test_gradients_by_keyword() -> None:
    f = ut.function(lambda x, *rest, scale=2.0, **others: x * x * scale + sum(rest) + sum(others.values()))
    assert ut.grad(f)(3.0, 1.0, scale=4.0, q=2.0) == 24
    assert ut.grad(f).run(3.0, scale=4.0) == 24
    assert ut.grad(f, argnums=(0, 1))(3.0, 1.0) == (12, 1)


def test_an_option_is_no_keyword_of_a_function_that_takes_any() -> None:
    assert descent.run(3, more=1, timeout=60.0) == 4
    with pytest.raises(ut.UndertowError, match="unknown option 'stepp'"):
        ut.function(lambda n, *, step=1: n + step).run(3, stepp=2)
