"""Constants of captured code keep their sign and their type: 0.0 is not -0.0, 1 is neither 1.0 nor True."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.engines import EVERY, forced

import undertow as ut

ENGINES = sorted(EVERY)


def signs(function: Any, *args: Any) -> list[bool]:
    """Whether the result is negative, on every engine."""
    with forced():
        return [bool(np.signbit(function.run(*args, engine=engine))) for engine in ENGINES]


def test_an_expression_that_chooses_among_zeros() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.f64:
        return 0.0 if n <= 0 else -0.0

    assert not any(signs(f, 0))
    assert all(signs(f, 1))


@pytest.mark.parametrize("make", [float, np.float64, np.float32])
def test_variables_that_are_zeros(make: Any) -> None:
    plus, minus = make(0.0), make(-0.0)

    @ut.function
    def f(n: ut.i64) -> Any:
        x, y = plus, minus
        if n > 0:
            x, y = y, x
        return x, {"y": (y,)}

    for n in (0, 1):
        x, rest = f(n)
        assert np.signbit([x, rest["y"][0]]).tolist() == [n == 1, n == 0]


def test_returns_of_zeros() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.f64:
        if n > 3:
            return -0.0
        if n > 0:
            return f(n - 1)
        return 0.0

    assert not any(signs(f, 2))
    assert all(signs(f, 4))


def test_nan_in_both_branches() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.f64:
        x = float("nan")
        if n > 0:
            x = float("nan")
        return x

    assert np.isnan(f(0)) and np.isnan(f(1))


def test_specializations_read_zeros_apart() -> None:
    @ut.function
    def outer(n: ut.f64) -> ut.f64:
        zero = 0.0

        @ut.function
        def inner(x: ut.f64) -> ut.f64:
            return x / zero

        first = inner(n)
        zero = -0.0
        return first - inner(n)

    assert outer(1.0) == np.inf


KEYS: list[Any] = [1, True, 1.0, np.float32(1), 0.0, -0.0]


@pytest.mark.parametrize("is_static", [False, True])
def test_keys_of_dicts_are_what_was_passed(is_static: bool) -> None:
    @ut.function
    def f(d: Any) -> Any:
        (key,) = d
        return 1 / ut.asarray(key), {key: d[key]}

    for key in KEYS:
        ratio, made = f({key: np.float32(2)})
        with np.errstate(all="ignore"):
            wanted = np.float64(1) / np.asarray(key)[()]
        assert ratio == wanted and np.result_type(ratio) == (np.float32 if key is KEYS[3] else np.float64)
        (found,) = made
        assert type(found) is type(key) and np.signbit(found) == np.signbit(key)


def test_keys_that_differ_between_branches_are_refused() -> None:
    @ut.function
    def f(n: ut.i64) -> Any:
        return {0.0: n} if n > 0 else {-0.0: n}

    with pytest.raises(ut.TypeMismatch):
        f(1)


def test_lanes_of_zeros_of_both_signs() -> None:
    @ut.function
    def g(x: ut.f64) -> ut.f64:
        return 1.0 / x

    @ut.function
    def f(xs: Any) -> Any:
        return ut.sum(ut.map(g, xs) * ut.asarray([0.0, -0.0]))

    (gradient,) = (ut.grad(f)(np.array([1.0, 1.0])),)
    assert np.signbit(gradient).tolist() == [True, False]
