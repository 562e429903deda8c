"""What a capture may change: arguments, caches, and what `ut.static` marks."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import undertow as ut


def test_the_outermost_call_copies_its_arguments() -> None:
    @ut.function
    def f(x: ut.f64[3], items: Any) -> Any:
        x += 1
        items[0], items[1] = items[1], items[0]
        items.append(x)
        return items

    array, items = np.ones(3), [1, 2]
    found = f(array, items)
    assert [int(v) for v in found[:2]] == [2, 1] and found[2].tolist() == [2, 2, 2]
    assert array.tolist() == [1, 1, 1] and items == [1, 2]


def test_static_runs_at_capture() -> None:
    calls: list[float] = []

    def clock() -> float:
        calls.append(time.perf_counter())
        return calls[-1]

    @ut.function
    def f(x: ut.f64) -> ut.f64:
        return x + ut.static(clock())

    assert f(1.0) == f(1.0) == 1.0 + calls[0]
    assert len(calls) == 1
    assert ut.static(clock()) == calls[1]


def test_gradients_of_functions_that_change_their_arrays() -> None:
    @ut.function
    def f(x: ut.f64[3]) -> ut.f64:
        y = x.copy()
        y *= x
        y[0] = 3 * y[1]
        return ut.sum(y)

    @ut.function
    def g(x: ut.f64[3]) -> ut.f64[3]:
        x[1] = 7
        return x

    assert ut.grad(f)(np.array([1.0, 2.0, 3.0])).tolist() == [0, 16, 6]
    assert f.map(np.ones((2, 3))).tolist() == [5, 5]
    assert g.map(np.ones((2, 3))).tolist() == [[1, 7, 1], [1, 7, 1]]


def test_captured_functions_change_the_arrays_of_their_callers() -> None:
    @ut.function
    def bump(v: ut.f64[2], n: ut.i64) -> ut.f64[2]:
        v += 1
        return v if n <= 0 else bump(v * 1.0, n - 1)

    @ut.function
    def held(x: ut.f64[2]) -> tuple[ut.f64[2], ut.f64[2]]:
        y = 2 * x
        bump(y, 0)
        return y, bump(2 * x, 2)

    assert np.array(held(np.ones(2))).tolist() == [[3, 3], [5, 5]]


def test_a_recursive_function_that_changes_its_array_after_the_call() -> None:
    """That it changes its argument is known only after it was called: it is captured again with that knowledge."""

    @ut.function
    def f(v: ut.f64[2], n: ut.i64) -> ut.f64[2]:
        if n > 0:
            f(v, n - 1)
        v += 1
        return v

    assert f(np.ones(2), 3).tolist() == [5, 5]


def test_what_a_function_reads_may_change_between_its_calls() -> None:
    """A captured function that reads an array of the one around it gets what that holds at each call."""

    @ut.function
    def f(n: ut.i64) -> tuple[ut.f64, ut.f64]:
        x = np.zeros(3)

        @ut.function
        def total(k: ut.i64) -> ut.f64:
            return x[0] if k <= 0 else total(k - 1) + x[1]

        x[0] = 1
        first = total(n)
        x[1] = 10
        return first, total(n)

    assert f(2) == (1, 21)


def test_what_only_new_things_hold_is_new() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        rows = list(map(list, zip([1, 2], [3, n], strict=True)))
        rows[1].append(n)
        table = dict.fromkeys("ab", 0)
        table["a"] += n
        values, counts = np.unique(np.array([3, 3, 1]), return_counts=True)
        counts += 1
        return sum(rows[1]) + table["a"] + counts[0] + values[0] - 1

    assert f(5) == 2 + 5 + 5 + 5 + 2
