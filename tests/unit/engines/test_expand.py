"""The expand engine: what a copy consists of, how copies come and go, what is kept for later phases, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.differentiable import power

import undertow as ut
from undertow import _core
from undertow.engines.expand.encode import encode
from undertow.engines.expand.events import DECIDED, ENTERED, NODE
from undertow.engines.expand.templates import Templates

N = ut.f64["n"]


@ut.function
def fibonacci(n: ut.i64) -> ut.i64:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@ut.function
def last(n: ut.i64, m: ut.i64) -> ut.i64:
    return m if n == 0 else last(n - 1, m + n)


@ut.function
def scaled(x: N, n: ut.i64) -> N:
    return x if n == 0 else ut.tanh(scaled(x, n - 1) * 1.5 + x)


@ut.function
def lanes(n: ut.i64) -> ut.f64:
    return ut.sum(ut.map(lambda k: ut.sum(ut.zeros(100) + k), ut.astype(ut.arange(n), ut.f64)))


def run(function: Any, *args: Any, **options: Any) -> tuple[Any, Any]:
    found: tuple[Any, Any] = function.run(*args, engine="expand", stats=True, **options)
    return found


# --------------------------------------------------------------------------------------------------------------
# Templates


def test_only_what_works_is_a_step() -> None:
    """Switches, merges, starts and returns are waits between steps; one step of fib waits for two things.

    less -> decided -> subtract -> call --+
                    -> subtract -> call --+-> add
    """
    template = Templates(fibonacci.graph(5).static).by_phase[1, 0]
    kinds = sorted(event[0] for event in template.steps)
    assert kinds == sorted([NODE] * 4 + [DECIDED] + [ENTERED] * 2)
    assert sorted(len(waits) for waits in template.steps.values()) == [0, 1, 1, 1, 1, 1, 2]


def test_later_phases_read_what_earlier_ones_have_left() -> None:
    found = Templates(ut.grad(power).graph(2.0, 5).static)
    (body,) = [body for body, count in enumerate(found.index.phase_count) if count == 2]
    first, second = found.by_phase[body, 0], found.by_phase[body, 1]
    assert first.saves and not first.loads
    assert second.loads == first.saves and not second.saves
    assert second.reads  # what the entry was given is read there again, and not kept


def test_rows_that_make_no_sense() -> None:
    encoded = encode(ut.grad(power).graph(2.0, 5).static)
    _core.decode_templates(encoded.rows, encoded.words, encoded.constants)
    refused = 0
    for place in range(len(encoded.rows)):
        for value in (-(2**40), 2**40, 7, -1):
            rows = encoded.rows.copy()
            rows[place] = value
            try:
                _core.decode_templates(rows, encoded.words, encoded.constants)
            except ValueError as wrong:
                refused += "not a plan" in str(wrong)
    assert refused > 2 * len(encoded.rows)
    for size in range(0, len(encoded.rows), 7):
        with pytest.raises(ValueError, match="not a plan"):
            _core.decode_templates(encoded.rows[:size].copy(), encoded.words, encoded.constants)


# --------------------------------------------------------------------------------------------------------------
# Copies


def test_copies_go_when_they_are_done() -> None:
    result, stats = run(fibonacci, 20)
    assert (result, stats.activations, stats.max_depth) == (6765, 21891, 20)
    assert stats.peak_frames == 21  # main, and one path of calls
    assert stats.deepest_tag.count(2) == 19


def test_depth_is_data() -> None:
    """Results go up through all callers, also where every one of them hands them on at once."""
    result, stats = run(last, 300_000, 0)
    assert (result, stats.max_depth) == (45_000_150_000, 300_001)


def test_lanes_are_made_one_by_one() -> None:
    result, stats = run(lanes, 3000)
    assert result == 100 * sum(range(3000))
    assert stats.peak_frames < 10
    assert stats.peak_bytes < 200_000


def test_an_abandoned_run_leaves_nothing() -> None:
    for _ in range(3):
        with pytest.raises(ut.RecursionLimit):
            run(ut.grad(power), 1.01, 1000, max_depth=500)
        assert run(ut.grad(power), 1.0, 1000)[0] == pytest.approx(1000)


# --------------------------------------------------------------------------------------------------------------
# Later phases


def test_what_is_kept_grows_with_activations() -> None:
    gradient = ut.grad(power)
    few, many = (run(gradient, 1.0, n)[1] for n in (100, 1000))
    assert (few.peak_frames, many.peak_frames) == (103, 1003)
    with pytest.raises(ut.FrameLimit):
        run(gradient, 1.0, 1000, frames=500)


def test_kept_arrays_go_with_their_last_phase() -> None:
    """Of calls that come one after the other, what is kept is needed only until the next."""

    @ut.function
    def several(x: N, n: ut.i64) -> N:
        total = x
        for _ in range(n):
            total = total + ut.grad(lambda y: ut.sum(scaled(y, 5)))(x)
        return total

    x = np.linspace(-1, 1, 1000)
    one, many = (run(several, x, n) for n in (1, 50))
    assert many[1].peak_bytes < 2 * one[1].peak_bytes
    np.testing.assert_allclose(many[0], x + 50 * (one[0] - x), rtol=1e-12)


def test_second_derivatives() -> None:
    second = ut.grad(ut.grad(power))
    assert run(second, 1.1, 12)[0] == pytest.approx(12 * 11 * 1.1**10)
