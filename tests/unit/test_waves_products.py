"""Gradients of weights in the waves engine: one product over all lanes, however the product was shaped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.function import make_library
from undertow.engines.contract import Options
from undertow.engines.waves import WavesPlan
from undertow.engines.waves.encode import _Encoder
from undertow.passes.flatten import flatten

D = 24
RANDOM = np.random.default_rng(3)
M, N = ut.f64[D, D], ut.f64[D]


def _recursion(step: Callable[[Any, Any, Any], Any], w: np.ndarray) -> tuple[Any, tuple[Any, ...]]:
    """The gradient of a recursion of two calls, and arguments for it."""

    @ut.function
    def grow(w: Any, x: N, n: ut.i32) -> N:
        if n <= 0:
            return x
        return step(w, grow(w, x * 0.5, n - 1), grow(w, x + 0.25, n - 2))

    @ut.function
    def loss(w: Any, x: N, n: ut.i32) -> ut.f64:
        return ut.sum(grow(w, x, n))

    return ut.grad(loss), (w, RANDOM.standard_normal(D) * 0.3, np.int32(5))


def _vector(w: Any, a: Any, b: Any) -> Any:
    return ut.tanh(ut.concat([a, b]) @ w)


def _turned(w: Any, a: Any, b: Any) -> Any:
    return ut.tanh(w.T @ ut.concat([a, b]))


def _reshaped(w: Any, a: Any, b: Any) -> Any:
    x = ut.concat([a, b])
    return ut.tanh(x @ ut.reshape(x @ ut.reshape(w, (2 * D, 2 * D * D)), (2 * D, D)))


def _transposed(w: Any, a: Any, b: Any) -> Any:
    return ut.tanh(ut.concat([a, b]) @ w.T)


def _rows(w: Any, a: Any, b: Any) -> Any:
    return ut.tanh(ut.sum(ut.stack([a, b, a * b]) @ w, axis=0))


def _column(w: Any, a: Any, b: Any) -> Any:
    return ut.tanh(w @ a + b)


CASES = {
    "vector": (_vector, (2 * D, D)),
    "turned": (_turned, (2 * D, D)),
    "reshaped": (_reshaped, (2 * D, 2 * D, D)),
    "transposed": (_transposed, (D, 2 * D)),
    "rows": (_rows, (D, D)),
    "column": (_column, (D, D)),
}


@pytest.mark.parametrize("case", CASES)
def test_weights_are_collected_as_products(case: str) -> None:
    step, shape = CASES[case]
    grad, arguments = _recursion(step, RANDOM.standard_normal(shape) * 0.4)
    graph = flatten(make_library(grad.library(*arguments), True, True))
    encoder = _Encoder(graph, True)
    whole = [n for n, node in enumerate(graph.nodes) if node.op == "collect" and n not in encoder.products]
    assert encoder.products and not whole
    np.testing.assert_allclose(
        grad.run(*arguments, engine="waves"), grad.run(*arguments, engine="reference"), rtol=1e-9, atol=1e-12
    )


def test_each_entry_collects_its_own() -> None:
    grad, (w, x, _) = _recursion(_rows, RANDOM.standard_normal((D, D)) * 0.4)
    found = grad.map(ut.shared(w), np.stack([x, -x, 2 * x]), np.array([3, 4, 5], np.int32), engine="waves")
    wanted = [grad.run(w, *more, engine="reference") for more in ((x, 3), (-x, 4), (2 * x, 5))]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


# -- what all waves share ----------------------------------------------------------------------------------------


class Counting:
    """The core's plan, and what it counted last."""

    def __init__(self, core: Any) -> None:
        self.core = core

    def run(self, *args: Any) -> Any:
        found = self.core.run(*args)
        self.counted = found[1]
        return found


def _counted(function: Any, *args: Any, **options: Any) -> tuple[list[Any], Any]:
    plan = WavesPlan(flatten(make_library(function.library(*args), True, True)))
    counting = Counting(plan.core)
    plan.core = counting  # type: ignore[assignment]
    return plan.run(args, Options(**options))[0], counting.counted


@pytest.mark.parametrize("case", ["vector", "transposed", "column"])
def test_weights_are_packed_once(case: str) -> None:
    step, shape = CASES[case]
    grad, (w, x, _) = _recursion(step, RANDOM.standard_normal(shape) * 0.2)
    results, counted = _counted(grad, w, x, np.int32(12))
    assert counted.waves > 10 and 0 < counted.packed <= 4
    np.testing.assert_allclose(results[0], grad.run(w, x, 12, engine="reference"), rtol=1e-9, atol=1e-12)


def test_without_room_nothing_is_packed() -> None:
    grad, (w, x, _) = _recursion(_vector, RANDOM.standard_normal((2 * D, D)) * 0.2)
    results, counted = _counted(grad, w, x, np.int32(7))
    small, without = _counted(grad, w, x, np.int32(7), memory=counted.peak_bytes)
    np.testing.assert_array_equal(results[0], small[0])
    assert counted.packed > without.packed == 0


def test_what_is_made_of_shared_values_is_computed_once() -> None:
    @ut.function
    def grow(w: M, x: N, n: ut.i32) -> N:
        if n <= 0:
            return x
        return ut.tanh(grow(w, x * 0.5, n - 1) @ ut.sin(w).T + grow(w, x, n - 2))

    w, x = RANDOM.standard_normal((D, D)) * 0.2, RANDOM.standard_normal(D)
    results, counted = _counted(grow, w, x, np.int32(12))
    assert counted.recalled >= 2 * (counted.max_depth - 4)
    np.testing.assert_allclose(results[0], grow.run(w, x, 12, engine="reference"), rtol=1e-9)


@pytest.mark.parametrize("threads", [1, 2])
def test_entries_after_each_other_do_not_see_what_others_packed(threads: int) -> None:
    """Weights of the second entry may come to stand where those of the first stood."""

    @ut.function
    def grow(w: M, x: N, n: ut.i32) -> N:
        if n <= 0:
            return x
        return ut.tanh(w @ grow(w, x * 0.5, n - 1) + grow(w, x, n - 2) @ (w * 0.5).T)

    @ut.function
    def repeated(w: M, x: N, n: ut.i32) -> N:
        for _ in range(n):
            w = ut.cos(w)
            x = grow(w * 0.1, x, n)
        return x

    w, x = RANDOM.standard_normal((D, D)) * 0.2, RANDOM.standard_normal(D)
    found = repeated.run(w, x, 9, engine="waves", threads=threads)
    np.testing.assert_allclose(found, repeated.run(w, x, 9, engine="reference"), rtol=1e-9)


def test_threads_give_the_same_bits() -> None:
    grad, (w, x, _) = _recursion(_column, RANDOM.standard_normal((D, D)) * 0.2)
    xs, ns = x * RANDOM.standard_normal((40, 1)), np.arange(40, dtype=np.int32) % 7
    one, two = (grad.map(ut.shared(w), xs, ns, engine="waves", threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)
