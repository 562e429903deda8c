"""Gradients of weights in the waves engine: one product over all lanes, however the product was shaped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.support.graphs import optimized

import undertow as ut
from undertow.plan.lower import lower
from undertow.plan.plan import Collect
from undertow.plan.products import find_products
from undertow.plan.walk import places

D = 6
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
    graph = optimized(grad, *arguments)
    plan = find_products(lower(graph))
    items = [item for _, _, program in places(plan) for item in program.unordered]
    kinds = [item.kind for item in items if isinstance(item, Collect)]
    assert kinds and set(kinds) == {"product"}
    np.testing.assert_allclose(
        grad.run(*arguments, engine="waves"), grad.run(*arguments, engine="reference"), rtol=1e-12, atol=1e-14
    )


def test_each_entry_collects_its_own() -> None:
    grad, (w, x, _) = _recursion(_rows, RANDOM.standard_normal((D, D)) * 0.4)
    found = grad.map(ut.shared(w), np.stack([x, -x, 2 * x]), np.array([3, 4, 5], np.int32), engine="waves")
    wanted = [grad.run(w, *more, engine="reference") for more in ((x, 3), (-x, 4), (2 * x, 5))]
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
