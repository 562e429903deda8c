"""Several threads work on one run: on chunks of lanes, on lanes of large steps. The bits are those of one thread."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from tests.programs.numbers import takeuchi
from tests.support.graphs import optimized

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.waves import WavesPlan

D = 64


@ut.function
def encode(w, table, depth: ut.i64, number: ut.i64) -> ut.f32[D]:
    if depth == 0:
        return table[number % 100]
    left = encode(w, table, depth - 1, 2 * number)
    right = encode(w, table, depth - 1, 2 * number + 1)
    return ut.tanh(ut.concat([left, right]) @ w) * 0.5 + left


@ut.function
def loss(w: ut.f32[2 * D, D], table: ut.f32[100, D], roots: ut.i64[None]) -> ut.f32:
    return ut.sum(ut.map(lambda root: ut.sum(encode(w, table, 5, root)), roots))


def counted(f: Any, *arguments: Any, threads: int) -> tuple[list[Any], Any]:
    graph = optimized(f, *arguments)
    plan = WavesPlan(graph)
    found: list[Any] = []
    run = plan.core.run

    class Core:
        def run(self, *args: Any, **named: Any) -> Any:
            results, stats = run(*args, **named)
            found.append(stats)
            return results, stats

    plan.core = Core()  # type: ignore[assignment]
    leaves = [np.asarray(x) for x in arguments]
    return plan.run(leaves, Options(threads=threads))[0], found[0]


@pytest.fixture
def values() -> list[Any]:
    random = np.random.default_rng(5)
    w = random.normal(0, 0.1, (2 * D, D)).astype(np.float32)
    return [w, random.normal(size=(100, D)).astype(np.float32), np.arange(60)]  # too few for tasks


@pytest.mark.slow
def test_gradients_are_shared_out(values: list[Any]) -> None:
    gradient = ut.value_and_grad(loss, argnums=(0, 1))
    one, alone = counted(gradient, *values, threads=1)
    assert alone.shared_steps == 0
    for threads in (2, 3, 5):
        found, stats = counted(gradient, *values, threads=threads)
        assert stats.shared_steps > 10
        assert stats.waves == alone.waves and stats.activations == alone.activations
        for a, b in zip(found, one, strict=True):
            np.testing.assert_array_equal(a, b)
    wanted = gradient.run(*values[:2], values[2][:3], engine="reference")
    few = gradient.run(*values[:2], values[2][:3], engine="waves", threads=2)
    np.testing.assert_allclose(few[0], wanted[0], rtol=1e-4)
    for a, b in zip(few[1], wanted[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_large_arrays_of_one_lane_are_shared_out() -> None:
    @ut.function
    def f(x: ut.f64[1_000_003], y: ut.f64[1_000_003]):
        return x * y

    x, y = np.random.default_rng(1).normal(size=(2, 1_000_003))
    (found,), stats = counted(f, x, y, threads=2)
    assert stats.shared_steps > 0
    np.testing.assert_array_equal(found, x * y)


def test_the_first_lane_that_fails_is_named() -> None:
    @ut.function
    def third(x: ut.f64[500], k: ut.i64) -> ut.f64:
        return x[k] + ut.sum(x)

    x = np.ones((3000, 500))
    k = np.zeros(3000, np.int64)
    k[[1500, 2100, 2900]] = 500
    texts = []
    for threads in (1, 2, 4):
        with pytest.raises(ut.RunError) as caught:
            third.map(x, k, engine="waves", threads=threads)
        texts.append((caught.value.what, caught.value.calls))
    assert texts[0] == texts[1] == texts[2]


def test_a_timeout_ends_shared_work() -> None:
    @ut.function
    def spin(x: ut.f64[300_000], n: ut.i64) -> ut.f64:
        while n != 0:
            x = ut.sin(x)
            n = n - 1
        return x[0]

    with pytest.raises(ut.Timeout):
        spin.run(np.ones(300_000), -1, engine="waves", threads=2, timeout=0.3)


@pytest.mark.slow
def test_calls_on_numbers_are_shared_out_where_there_are_many() -> None:
    """The first run learns that there are many from its first chunks, those after it from the run before."""
    arguments = (27, 16, 8)
    graph = optimized(takeuchi, *arguments)
    inputs = [np.asarray(x, np.int32) for x in arguments]
    seen = set()
    for threads in (1, 2, 3):
        plan = WavesPlan(graph)
        for _ in range(3):
            (found,), stats = plan.run(inputs, Options(threads=threads))
            assert (found, stats.activations, stats.max_depth) == (16, 8_967_977, 27)
            seen.add((threads > 1, stats.waves))
    assert len(seen) > 2, "nothing was shared out"


def test_a_forked_process_has_threads_of_its_own() -> None:
    """Threads that are kept stay behind: the child must not wait for them."""
    x = np.random.default_rng(2).normal(size=1_000_003)

    @ut.function
    def f(x: ut.f64[1_000_003]):
        return x * x

    wanted = f.run(x, threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(f.run(x, threads=2), wanted) else 1)
    assert os.waitpid(child, 0)[1] == 0
