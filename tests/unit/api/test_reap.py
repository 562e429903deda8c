"""`ut.sow` and `ut.reap`: gradients, memory, files, SubGraphs, plain Python. Values: `programs/sown`."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut

ENGINES = ("waves", "reference", "demand", "expand")


@ut.function
def chain(x: ut.f64, n: ut.i64) -> ut.f64:
    ut.sow(ut.sin(x) * n, at=n)
    return x if n == 0 else x * chain(x + 0.25, n - 1)


@ut.function
def loss(x: ut.f64) -> ut.f64:
    last, values = ut.reap(chain, 4)(x, 3)
    return ut.sum(values**2) + last


@pytest.mark.parametrize("engine", ENGINES)
def test_first_and_second_derivative(engine: str) -> None:
    slope, h = ut.grad(loss), 1e-5
    with ut.options(engine=engine):
        np.testing.assert_allclose(slope(0.5), (loss(0.5 + h) - loss(0.5 - h)) / (2 * h), rtol=1e-7)
        np.testing.assert_allclose(ut.grad(slope)(0.5), (slope(0.5 + h) - slope(0.5 - h)) / (2 * h), rtol=1e-7)


@ut.function
def turned(z: ut.c128, n: ut.i64) -> ut.c128:
    ut.sow(z * z * n, at=n)
    return z if n == 0 else turned(z * 1j, n - 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_derivative_of_complex_values(engine: str) -> None:
    def f(z: Any) -> Any:
        last, values = ut.reap(turned, 4)(z, 3)
        return ut.real(ut.sum(values) * (2 - 1j)) + ut.abs(last)

    z, h = 0.5 + 0.25j, 1e-6
    with ut.options(engine=engine):
        value = ut.function(f)
        wanted = [(value(z + step) - value(z - step)) / (2 * h) for step in (h, h * 1j)]
        np.testing.assert_allclose(ut.grad(f)(z), wanted[0] - wanted[1] * 1j, rtol=1e-7)


@ut.function
def layered(w: ut.f64[64, 64], x: ut.f64[64], n: ut.i64) -> ut.f64[64]:
    h = ut.tanh(w @ x)
    ut.sow(ut.sum(h), at=n)
    return h if n == 0 else layered(w, h, n - 1)


def test_gradients_of_weights_are_collected() -> None:
    """No matrix for each activation: that would be 32768 bytes for each level."""

    @ut.function
    def total(w: ut.f64[64, 64], x: ut.f64[64], n: ut.i64) -> ut.f64:
        return ut.sum(ut.reap(layered, n + 1)(w, x, n)[1])

    w, x = np.eye(64) * 0.5, np.ones(64)
    peaks = [ut.grad(total).run(w, x, n, stats=True)[1].peak_bytes for n in (100, 200)]
    assert (peaks[1] - peaks[0]) / 100 < 16384


def test_rows_are_collected_at_one_entry() -> None:
    """Memory grows with the activations, not with their square; and the calls stay side by side."""

    @ut.function
    def tree(k: ut.i64, n: ut.i64) -> ut.i64:
        ut.sow(k, at=k)
        return 1 if k >= n // 2 else tree(2 * k + 1, n) + tree(2 * k + 2, n)

    @ut.function
    def numbers(n: ut.i64):
        return ut.reap(tree, n)(0, n)[1]

    n = 2**12 - 1
    numbered, stats = numbers.run(n, stats=True)
    assert numbered.tolist() == list(range(n))
    assert stats.peak_bytes < 400 * n
    assert stats.waves < 40


def test_lanes_of_a_map_have_collectors_of_their_own() -> None:
    @ut.function
    def values(x: ut.f64):
        return ut.reap(chain, 4)(x, 3)[1]

    rows = values.map(np.array([0.5, 1.0]))
    np.testing.assert_allclose(rows, [values(0.5), values(1.0)])
    assert ut.jacobian(values)(0.5).shape == (4,)


def test_random_numbers_are_those_that_were_used() -> None:
    @ut.function
    def walk(n: ut.i64) -> ut.f64:
        x = ut.random.uniform()
        ut.sow(x, at=n)
        return x if n == 0 else x + walk(n - 1)

    total, steps = ut.reap(walk, 5)(4)
    assert total == pytest.approx(steps.sum()) and len(set(steps)) == 5


def test_a_file_keeps_what_is_sown(tmp_path: Path) -> None:
    path = tmp_path / "chain.ut"
    ut.save(chain, path, examples=[(1.0, 2)])
    _, values = ut.reap(ut.load(path), 4)(0.5, 3)
    np.testing.assert_array_equal(values, ut.reap(chain, 4)(0.5, 3)[1])
    ut.save(loss, path, examples=[(1.0,)])
    assert ut.load(path)(0.5) == loss(0.5)


def test_a_subgraph_sows() -> None:
    with ut.SubGraph() as double:
        x = double.input(ut.f64)
        ut.sow(x, at=0)
        double.output(x * 2)
    assert double(2.0) == 4.0
    twice, values = ut.reap(double, 1)(2.0)
    assert (twice, values.tolist()) == (4.0, [2.0])


def test_plain_python_sows_what_the_value_is_now() -> None:
    @ut.function
    def fill(n: ut.i64):
        a = np.zeros(3)
        for k in range(n):
            a[k] = k + 1
            ut.sow(a, at=k)
        return a

    for engine in ("python", "waves"):
        with ut.options(engine=engine):
            assert ut.reap(fill, 2)(2)[1].tolist() == [[1, 0, 0], [1, 2, 0]]


def test_functions_without_the_collector_pay_nothing() -> None:
    """What is sown there is gone before engines see it."""

    @ut.function
    def alone(n: ut.i64) -> ut.i64:
        return n if n == 0 else 1 + alone(n - 1)

    @ut.function
    def sowing(n: ut.i64) -> ut.i64:
        ut.sow(n * n, at=n)
        return n if n == 0 else 1 + sowing(n - 1)

    assert len(sowing.graph(5)) == len(alone.graph(5))


def test_what_it_is_called() -> None:
    collector = ut.reap(chain, 3)
    assert repr(collector) == "<undertow function reap(chain)>"
    with pytest.raises(AttributeError, match=r"ut\.sow"):
        ut.register_forward_hook
    assert pickle.loads(pickle.dumps(loss))(0.5) == loss(0.5)
