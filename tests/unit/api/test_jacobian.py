"""Jacobians and Hessians: against differences, on every engine; their structure; what lanes share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.support.differences import WAYS, assert_close

import undertow as ut


@ut.function
def waved(x: ut.f64[None], n: ut.i64) -> ut.f64[None]:
    return x if n <= 0 else ut.sin(waved(x, n - 1)) * x[0]


X = np.array([0.3, 0.5, 0.7])


def _differences(f: Any, x: Any, step: float = 1e-6) -> Any:
    ends = [(np.asarray(f(x + step * e)), np.asarray(f(x - step * e))) for e in np.eye(len(x))]
    return np.stack([(above - below) / (2 * step) for above, below in ends], -1)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("mode", ["rev", "fwd"])
def test_differences(mode: str, way: dict[str, Any]) -> None:
    expected = _differences(lambda x: waved(x, 3), X)
    assert_close(ut.jacobian(waved, mode=mode).run(X, 3, **way), expected)


def test_second_derivatives() -> None:
    def total(x: Any) -> Any:
        return ut.sum(waved(x, 3))

    assert_close(ut.hessian(total)(X), _differences(ut.grad(total), X), 1e-5)
    assert ut.hessian(waved)(X, 2).shape == (3, 3, 3)


def test_structure() -> None:
    a, b = np.array([1.0, 2.0]), 3.0
    by_a, by_b = ut.jacobian(lambda a, b: a * a * b, argnums=(0, 1))(a, b)
    assert np.array_equal(by_a, np.diag([6.0, 12.0])) and np.array_equal(by_b, [1.0, 4.0])
    (aa, ab), (ba, bb) = ut.hessian(lambda a, b: ut.sum(a * a * b), argnums=(0, 1))(a, b)
    assert np.array_equal(aa, np.diag([6.0, 6.0])) and np.array_equal(ab, [2.0, 4.0])
    assert np.array_equal(ba, [2.0, 4.0]) and bb == 0.0
    jacobian, aux = ut.jacobian(lambda x: (x * x, "aside"), has_aux=True)(a)
    assert np.array_equal(jacobian, np.diag([2.0, 4.0])) and aux == "aside"
    assert ut.jacobian(waved).map(np.stack([X, X]), [1, 2]).shape == (2, 3, 3)
    assert ut.jacobian(lambda x: x * 2)(np.float32([1, 2])).dtype == np.float32


def test_rows_share_waves() -> None:
    waves = [ut.jacobian(waved).run(np.full(n, 0.5), 4, stats=True)[1].waves for n in (2, 20)]
    assert waves[0] == waves[1]


@pytest.mark.parametrize("mode", ["rev", "fwd"])
def test_random_draws_are_those_of_the_value(mode: str) -> None:
    def noisy(x: Any) -> Any:
        noise = ut.random.normal(size=3)
        return x * noise, noise

    jacobian, noise = ut.jacobian(noisy, has_aux=True, mode=mode).run(X, seed=3)
    assert np.array_equal(jacobian, np.diag(noise))


def test_asserts_stay() -> None:
    def positive(x: Any) -> Any:
        assert x[0] > 0, "negative"
        return x * x

    assert np.array_equal(ut.jacobian(positive)(X), np.diag(2 * X))
    with pytest.raises(AssertionError, match="negative"):
        ut.jacobian(positive)(-X)


def test_variables() -> None:
    v = ut.Variable(np.array([1.0, 2.0, 3.0]), name="v")

    def scaled(x: Any) -> Any:
        return x * v.read() * v.read()

    for mode in ("rev", "fwd"):
        by_x, by_v = ut.jacobian(scaled, argnums=0, variables=v, mode=mode)(X)
        assert_close(by_x, np.diag([1.0, 4.0, 9.0]))
        assert_close(by_v, np.diag(2 * X * [1.0, 2.0, 3.0]))


@dataclass
class Layer:
    weight: Any
    power: int
    is_on: bool = True


def test_integers_beside_floats_have_none() -> None:
    gradient = ut.grad(lambda p: p.weight**p.power)(Layer(2.0, 3))
    assert gradient == Layer(12.0, None, None)  # type: ignore[arg-type]
    assert ut.grad(lambda pair: pair[0] * pair[1])((2.0, 3)) == (3.0, None)
    layer = Layer(np.array([1.0, 2.0]), 2)
    value, gradient = ut.value_and_grad(lambda p: ut.sum(p.weight**p.power))(layer)
    assert value == 5.0 and np.array_equal(gradient.weight, [2.0, 4.0])
    optimizer = ut.optim.SGD(0.5)
    updated, _ = optimizer.update(gradient, optimizer.init(layer), layer)
    assert np.array_equal(updated.weight, [0.0, 0.0]) and updated.power == 2

    @ut.function
    def inside(layer: Any) -> Any:
        return ut.grad(lambda p: ut.sum(p.weight**p.power))(layer)

    assert np.array_equal(inside(layer).weight, [2.0, 4.0]) and inside(layer).power is None
