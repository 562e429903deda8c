"""Limits of runs, as users set them: they hold exactly, say where the run was, and leave the function usable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.recursions import count, even, fib
from tests.support.threads import in_threads

import undertow as ut
from undertow.api.options import settings


@ut.function
def doubled(x: ut.f64[None], n: ut.i64) -> ut.f64:
    if n == 0:
        return ut.sum(x)
    return doubled(x * 2, n - 1) + x[0]


def test_frames_are_exact() -> None:
    """On the reference engine; `waves` makes fewer at once where few are allowed."""
    _, stats = fib.run(8, engine="reference", stats=True)
    assert fib.run(8, engine="reference", frames=stats.peak_frames) == 21
    with pytest.raises(ut.FrameLimit, match=f"frames={stats.peak_frames - 1}"):
        fib.run(8, engine="reference", frames=stats.peak_frames - 1)


def test_memory_is_exact() -> None:
    x = np.ones(1000)
    _, stats = doubled.run(x, 20, stats=True)
    assert doubled.run(x, 20, memory=stats.peak_bytes) == doubled(x, 20)
    with pytest.raises(ut.FrameLimit, match="memory="):
        doubled.run(x, 20, memory=stats.peak_bytes - 1)


def test_memory_of_a_single_array() -> None:
    @ut.function
    def make(n: ut.i64) -> ut.f64:
        return ut.sum(ut.zeros(n))

    with pytest.raises(ut.FrameLimit, match="memory=5,000") as caught:
        make.run(1000, memory=5000)
    assert caught.value.calls


LIMITS: list[tuple[dict[str, Any], type[ut.RunError]]] = [
    ({"max_depth": 5}, ut.RecursionLimit),
    ({"frames": 5}, ut.FrameLimit),
    ({"memory": 5000}, ut.FrameLimit),
    ({"timeout": 0.0}, ut.Timeout),
]


@pytest.mark.parametrize(("limit", "error"), LIMITS, ids=lambda v: "-".join(v) if isinstance(v, dict) else "")
@pytest.mark.parametrize("scheduler", ["fifo", "lifo", "random"])
def test_limits_of_a_block(limit: dict[str, Any], error: type[ut.RunError], scheduler: str) -> None:
    before = settings()
    with ut.options(scheduler=scheduler, **limit):
        with pytest.raises(error):
            count(50)
        with pytest.raises(error):
            count.map([50, 60])
        with pytest.raises(error):
            count.run(50)
        assert count.run(5, **dict.fromkeys(limit)) == 5  # None: no limit
    assert settings() is before
    assert count(50) == 50


def test_the_nearest_setting_is_in_force() -> None:
    with ut.options(max_depth=3):
        with ut.options(max_depth=100):
            assert count(50) == 50
            with pytest.raises(ut.RecursionLimit, match="max_depth=7"):
                count.run(50, max_depth=7)
        with pytest.raises(ut.RecursionLimit, match="max_depth=3"):
            count(50)
    with pytest.raises(ut.UndertowError, match="unknown option"), ut.options(max_depth=3, speed=1):
        pass
    assert count(50) == 50


def test_settings_end_with_a_block_that_fails() -> None:
    before = settings()
    with pytest.raises(ZeroDivisionError), ut.options(max_depth=3):
        raise ZeroDivisionError
    assert settings() is before


def test_settings_belong_to_their_thread() -> None:
    with ut.options(max_depth=3):
        assert in_threads(lambda _: count(50), 1) == [50]


def test_a_failed_run_is_captured_only_once() -> None:
    @ut.function
    def f(n: ut.i64) -> ut.i64:
        if n == 0:
            return 0
        return f(n - 1)

    for _ in range(3):
        with pytest.raises(ut.RecursionLimit):
            f.run(10, max_depth=3)
    assert f(10) == 0
    assert len(f.__undertow_programs__) == 1


def test_a_fault_leaves_the_function_usable() -> None:
    @ut.function
    def invert(n: ut.i64) -> ut.i64:
        return 12 // n

    for _ in range(3):
        with pytest.raises(ut.Fault, match="division by zero"):
            invert(0)
        assert invert(5) == 2
        with pytest.raises(ut.Fault, match="division by zero") as caught:
            invert.map([1, 0, 2])
        assert "lane 1" in str(caught.value)
        assert list(invert.map([1, 2])) == [12, 6]


def test_a_failed_capture_leaves_the_function_usable() -> None:
    table: dict[str, Any] = {}

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return n + table["x"]

    with pytest.raises(ut.CaptureError, match="KeyError"):
        f(1)
    table["x"] = 2
    assert f(1) == 3


def test_deep_tracebacks_are_short() -> None:
    with pytest.raises(ut.RecursionLimit) as caught:
        count.run(-1, max_depth=3000)
    assert len(caught.value.calls) == 3000
    assert "2998 more calls like the line above" in str(caught.value)
    assert len(str(caught.value).splitlines()) < 12
    with pytest.raises(ut.RecursionLimit) as caught:
        even.run(-1, max_depth=1001)
    assert "998 more calls like the 2 lines above, 499 times" in str(caught.value)
