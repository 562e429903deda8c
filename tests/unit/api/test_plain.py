"""engine="python": the undecorated function runs."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import undertow as ut


@ut.function
def fib(n: ut.i64) -> ut.i64:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


@ut.function
def doubled(x: ut.f64[None]):
    return x * 2


class Scale:
    def __init__(self, by: float) -> None:
        self.by = by

    @ut.function
    def of(self, x):
        return x * self.by


def test_numbers_stay_python_s() -> None:
    assert type(fib.run(10, engine="python")) is int
    with ut.options(engine="python"):
        assert fib(10) == 55 and Scale(2.0).of(3.0) == 6.0
        assert fib.map([1, 5, 10]).tolist() == [1, 5, 55]
    assert fib(10) == 55


def test_calls_inside_are_undecorated_too() -> None:
    seen: list[int] = []

    @ut.function
    def outer(n):
        seen.append(sys._getframe().f_lineno)  # a frame of its own: a debugger stops here
        return fib(n) + 1

    assert outer.run(5, engine="python") == 6 and len(seen) == 1


def test_lists_for_annotated_arrays_are_arrays() -> None:
    assert doubled.run([1, 2], engine="python").tolist() == [2.0, 4.0]
    with ut.options(engine="python"):
        assert doubled(x=[1, 2]).tolist() == [2.0, 4.0]


@ut.function
def sort(x: ut.f64[None], low: ut.i64, high: ut.i64) -> None:
    if high - low > 1:
        pivot = x[low]
        at = low
        for k in range(low + 1, high):
            if x[k] < pivot:
                x[at] = x[k]
                at += 1
                x[k] = x[at]
        x[at] = pivot
        sort(x, low, at)
        sort(x, at + 1, high)


@ut.function
def sorted_copy(x: ut.f64[None]):
    sort(x, 0, len(x))
    return x


@ut.function
def changed(box, *rest, **named):
    box["x"][0] = 7.0
    box["items"].append(1)
    rest[0][0] = 7.0
    return box, rest, named


def test_the_outermost_call_alone_copies_its_arguments() -> None:
    x = np.array([3.0, 1.0, 2.0])
    for engine in ("python", "waves"):
        assert sorted_copy.run(x, engine=engine).tolist() == [1.0, 2.0, 3.0]
        assert x.tolist() == [3.0, 1.0, 2.0]
    box = {"x": np.zeros(2), "items": [3]}
    for engine in ("python", "waves"):
        result = changed.run(box, x, y=x.copy(), engine=engine)
        assert result[0]["items"] == [3, 1] and result[0]["x"][0] == result[1][0][0] == 7.0
        assert result[2]["y"].tolist() == [3.0, 1.0, 2.0]
        assert x.tolist() == [3.0, 1.0, 2.0] and box["items"] == [3] and box["x"].tolist() == [0.0, 0.0]


def test_errors_are_python_s() -> None:
    invert = ut.function(lambda n: 10 // n)
    with pytest.raises(ZeroDivisionError) as raised:
        invert.run(0, engine="python")
    assert not isinstance(raised.value, ut.UndertowError)


def test_what_has_no_python_is_refused() -> None:
    with pytest.raises(ut.UndertowError, match='engine="python" cannot run'):
        ut.grad(lambda x: x * x).run(2.0, engine="python")


def test_stats_and_random_numbers() -> None:
    noisy = ut.function(lambda x: ut.random.normal() + x)
    result, stats = noisy.run(0.0, engine="python", seed=3, stats=True)
    assert stats.engine == "python" and result == noisy.run(0.0, engine="python", seed=3)


@pytest.mark.parametrize("args", [([np.ones(2), np.ones(3)],), ([[1.0, 2.0], [3.0]],)])
def test_ragged_maps(args: Any) -> None:
    found = doubled.map(*args, engine="python")
    for one, other in zip(found, doubled.map(*args), strict=True):
        np.testing.assert_array_equal(one, other)
