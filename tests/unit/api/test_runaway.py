"""Recursion without end is told early, unless its depth was asked for."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.engines.contract import MAX_DEPTH, Options


@ut.function
def count(n: ut.i64) -> ut.i64:
    return n if n == 0 else count(n - 1) + 1


@ut.function
def fib(n: ut.i64) -> ut.i64:
    return n if n == 1 << 40 else fib(n - 1) + fib(n - 2)


@ut.function
def rows(x: ut.f64[500], n: ut.i64) -> ut.f64[500]:
    return x if n == 0 else rows(x * 0.5, n - 1) + x


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["waves", "expand"])
def test_a_missing_base_case_is_told(engine: str) -> None:
    with pytest.raises(ut.RecursionLimit, match="more than 2,000,000 deep") as caught:
        count.run(-1, engine=engine)
    assert "base case" in caught.value.hint and "max_depth=" in caught.value.hint
    assert len(caught.value.calls) == MAX_DEPTH


@pytest.mark.slow
def test_large_frames_are_told_earlier() -> None:
    """The core knows the depth that needs no asking: if it were another one there, this would take gigabytes."""
    for engine, work in (
        ("waves", lambda: rows.run(np.ones(500), -1)),
        ("waves", lambda: fib.run(1)),
        ("expand", lambda: rows.run(np.ones(500), -1, engine="expand")),
    ):
        with pytest.raises(ut.RecursionLimit, match="bytes so far") as caught:
            work()
        assert "base case" in caught.value.hint, engine
        assert 10_000 <= len(caught.value.calls) < 150_000, engine


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["reference", "demand"])
def test_engines_in_python_tell_it_earlier(engine: str) -> None:
    with pytest.raises(ut.RecursionLimit, match="more than 200,000 deep, on an engine") as caught:
        count.run(-1, engine=engine)
    assert "base case" in caught.value.hint and len(caught.value.calls) == 200_000
    assert count.run(60_000, engine=engine, max_depth=None) == 60_000


@pytest.mark.slow
def test_any_depth_on_request() -> None:
    deep = MAX_DEPTH + 1000
    assert count.run(deep, max_depth=None) == deep
    assert count.run(deep, max_depth=deep + 1) == deep
    assert rows.run(np.ones(500), 80_000, max_depth=80_001)[0] == pytest.approx(2.0)


def test_the_limit_is_an_option_like_any_other() -> None:
    assert Options().max_depth == MAX_DEPTH and Options(max_depth=None).max_depth is None
    with ut.options(max_depth=None):
        assert count(100) == 100
    for engine in ("reference", "demand"):
        with pytest.raises(ut.RecursionLimit, match="max_depth=50"):
            count.run(-1, engine=engine, max_depth=50)
