"""Functions with their own derivative: in all places, with containers, draws, pickled."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.support.differences import WAYS, assert_close, assert_valid

import undertow as ut

C = np.array([1.0, 2.0, 3.0])
FACTOR = 2.5


@ut.custom_vjp
def sine(x: Any, y: Any) -> Any:
    return ut.sin(x) * y


def _forward(x: Any, y: Any) -> Any:
    return sine(x, y), (ut.cos(x), ut.sin(x), y)


def _backward(kept: Any, d: Any) -> Any:
    cos, sin, y = kept
    return 100.0 * cos * d * y, sin * d


sine.defvjp(_forward, _backward)


@ut.custom_jvp
def tenfold(x: Any, n: Any) -> Any:
    return x**n


@tenfold.defjvp
def _tenfold(primals: Any, tangents: Any) -> Any:
    x, n = primals
    return tenfold(x, n), 10.0 * n * x ** (n - 1) * tangents[0]


@ut.function
def chain(w: ut.f64, x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else sine(chain(w, x, n - 1), w)


def _loop(x: Any) -> Any:
    for _ in range(2):
        x = sine(x, 1.0)
    return x


CASES = {
    "value": (ut.function(lambda x: sine(x, 2.0)), (0.3,), 2 * np.sin(0.3)),
    "gradient": (ut.grad(sine, argnums=(0, 1)), (0.3, 2.0), (200 * np.cos(0.3), np.sin(0.3))),
    "second": (ut.grad(ut.grad(sine)), (0.3, 2.0), -200 * np.sin(0.3)),
    "recursive": (ut.grad(chain, argnums=(0, 1)), (1.5, 0.3, 1), (np.sin(0.3), 150 * np.cos(0.3))),
    "loop": (ut.grad(_loop), (0.3,), 1e4 * np.cos(0.3) * np.cos(np.sin(0.3))),
    "map": (ut.grad(lambda xs: ut.sum(ut.map(lambda x: sine(x, 2.0), xs))), (C,), 200 * np.cos(C)),
    "jacobian": (ut.jacobian(lambda x: tenfold(x, 2), mode="fwd"), (C,), np.diag(20 * C)),
    "hessian": (ut.hessian(lambda x: ut.sum(tenfold(x, 3))), (C,), np.diag(60 * C)),
    "forward": (ut.grad(tenfold), (2.0, 3), 120.0),
    "forward, second": (ut.grad(ut.grad(tenfold)), (2.0, 3), 120.0),
}


@pytest.mark.parametrize("case", CASES)
def test_every_way(case: str) -> None:
    function, args, expected = CASES[case]
    for way in WAYS:
        assert_close(function.run(*args, **way), expected, 1e-9)
    assert_valid(function, *args)


def test_rules_cost_nothing_where_no_derivative_is_taken() -> None:
    graph = ut.function(lambda x: sine(x, 2.0)).graph(0.3)
    assert "cos" not in {node.op for node in graph.static.nodes}


def test_containers_and_values_from_outside() -> None:
    @ut.custom_vjp
    def scaled(p: Any) -> Any:
        return {"y": p["w"] * C, "n": p["n"] + 1}

    scaled.defvjp(lambda p: (scaled(p), p), lambda p, d: ({"w": d["y"] * C * FACTOR, "n": None},))
    assert np.array_equal(ut.grad(lambda w: ut.sum(scaled({"w": w, "n": 3})["y"]))(C), C * FACTOR)


@ut.function
def _vector_forward(x: ut.f64[None]) -> tuple[ut.f64[None], ut.f64[None]]:
    return 2.0 * x, x


@ut.function
def _vector_backward(x: ut.f64[None], d: ut.f64[None]) -> tuple[ut.f64[None]]:
    return (5.0 * d,)


@ut.function
def _vector_rule(p: tuple[ut.f64[None]], t: tuple[ut.f64[None]]) -> tuple[ut.f64[None], ut.f64[None]]:
    return 2.0 * p[0], 5.0 * t[0]


def test_lengths_that_only_the_function_knows() -> None:
    @ut.custom_vjp
    def backward(x: Any) -> Any:
        return 2.0 * x

    @ut.custom_jvp
    def forward(x: Any) -> Any:
        return 2.0 * x

    backward.defvjp(_vector_forward, _vector_backward)
    forward.defjvp(_vector_rule)
    for function in (backward, forward):
        gradient = ut.grad(lambda x, function=function: ut.sum(function(x)))
        for way in WAYS:
            assert_close(gradient.run(C, **way), np.full(3, 5.0))
        assert_valid(gradient, C)


def test_none_is_zero() -> None:
    @ut.custom_vjp
    def cut(x: Any, how: Any) -> Any:
        return x * x

    cut.defvjp(lambda x, how: (x * x, None), lambda _, d: (None, None))
    assert ut.grad(cut)(3.0, "text") == 0.0
    assert cut.run(3.0, "text", engine="python") == 9.0


def test_random_draws_are_those_of_the_value() -> None:
    @ut.custom_vjp
    def noisy(x: Any) -> Any:
        return x * ut.random.normal()

    def forward(x: Any) -> Any:
        k = ut.random.normal()
        return x * k, k

    noisy.defvjp(forward, lambda k, d: (d * k,))
    value, slope = ut.value_and_grad(noisy).run(2.0, seed=1)
    assert value == 2.0 * slope == noisy.run(2.0, seed=1)


def test_inside_of_a_captured_function() -> None:
    @ut.function
    def inside(x: ut.f64) -> Any:
        k = 2.0 * x

        @ut.custom_vjp
        def scaled(y: Any) -> Any:
            return y * k

        scaled.defvjp(lambda y: (y * k, None), lambda _, d: (d * k * 7.0,))
        return ut.grad(scaled)(x)

    assert inside(3.0) == 42.0


def test_pickled() -> None:
    assert ut.grad(pickle.loads(pickle.dumps(sine)))(0.3, 2.0) == ut.grad(sine)(0.3, 2.0)
