"""Memory of runs on waves: inputs are read where they are, results are nobody else's, blocks are used again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

N = 5000  # elements: too many to be copied along


@pytest.fixture(autouse=True)
def waves() -> Any:
    with ut.options(engine="waves", threads=1):
        yield


def test_inputs_take_no_memory_of_the_run() -> None:
    @ut.function
    def total(x: ut.f64[100 * N], y: ut.f64[None], n: ut.i64) -> ut.f64:
        if n == 0:
            return 0.0
        return x[n] + y[n] + total(x, y, n - 1)

    x = np.arange(100.0 * N)
    found, stats = total.run(x, x, 100, stats=True)
    assert found == 2 * 5050
    assert stats.peak_bytes < x.nbytes / 4


def test_mapped_inputs_are_read_where_they_are() -> None:
    @ut.function
    def third(row: ut.f64[1000]) -> ut.f64:
        return row[3]

    x = np.random.default_rng(3).normal(size=(500, 1000))
    found, stats = third.map(x, stats=True)
    np.testing.assert_array_equal(found, x[:, 3])
    assert stats.peak_bytes < x.nbytes


@ut.function
def known(x: ut.f64[N], n: ut.i64) -> (ut.f64[N], ut.f64[N], ut.f64[N, 1]):
    return x, known(x, n - 1)[0] if n > 0 else x, ut.reshape(x, (-1, 1))


@ut.function
def unknown(x: ut.f64[None], n: ut.i64) -> (ut.f64[None], ut.f64[None], ut.f64[None, 1]):
    return x, unknown(x, n - 1)[0] if n > 0 else x, ut.reshape(x, (-1, 1))


@pytest.mark.parametrize("same", [known, unknown])
def test_results_are_never_the_inputs(same: ut.Function) -> None:
    x = np.arange(float(N))
    before = x.copy()
    results = same(x, 3)
    for a, b in [(0, 1), (0, 2), (1, 2)]:
        assert not np.shares_memory(results[a], results[b])
    for result in results:
        assert not np.shares_memory(result, x)
        assert result.flags.writeable
        result += 1.0
    np.testing.assert_array_equal(x, before)


def test_mapped_results_are_never_the_inputs() -> None:
    @ut.function
    def rows(x: ut.f64[None, 100]) -> ut.f64[None, 100]:
        return ut.map(lambda row: row, x)

    x = np.random.default_rng(5).normal(size=(50, 100))
    found = rows(x)
    assert not np.shares_memory(found, x)
    np.testing.assert_array_equal(found, x)


def test_results_stay_while_others_run() -> None:
    @ut.function
    def scaled(x: ut.f64[N], by: ut.f64) -> (ut.f64[N], ut.f64[N]):
        return x * by, x + by

    x = np.arange(float(N))
    kept = [scaled(x, float(k)) for k in range(20)]
    for k, (times, plus) in enumerate(kept):
        np.testing.assert_array_equal(times, x * k)
        np.testing.assert_array_equal(plus, x + k)
    addresses = {array.ctypes.data for pair in kept for array in pair}
    assert len(addresses) == 40


def test_memory_of_results_is_used_again() -> None:
    @ut.function
    def doubled(x: ut.f64[N]) -> ut.f64[N]:
        return x * 2.0

    x = np.arange(float(N))
    addresses = {doubled(x).ctypes.data for _ in range(20)}
    assert len(addresses) < 5


def test_arrays_between_boundaries() -> None:
    @ut.function
    def total(x: ut.f64[1000], i: ut.i64) -> ut.f64:
        return ut.sum(x * 2.0) + x[i]

    raw = np.zeros(8 * 1000 + 3, np.uint8)
    x = raw[3:].view(np.float64)
    x[:] = np.arange(1000.0)
    assert total(x, 5) == 999000.0 + 5.0


def test_gradients_of_inputs_that_stay() -> None:
    @ut.function
    def loss(w: ut.f64[60, 60], x: ut.f64[60], n: ut.i64) -> ut.f64:
        if n == 0:
            return ut.sum(x)
        return loss(w, ut.tanh(x @ w), n - 1)

    random = np.random.default_rng(11)
    w, x = random.normal(0, 0.1, (60, 60)), random.normal(size=60)
    before = w.copy()
    grads = [ut.grad(loss)(w, x, 5) for _ in range(3)]
    np.testing.assert_array_equal(w, before)
    for grad in grads[1:]:
        assert not np.shares_memory(grad, grads[0])
        np.testing.assert_array_equal(grad, grads[0])
    np.testing.assert_allclose(grads[0], ut.grad(loss).run(w, x, 5, engine="reference"), rtol=1e-10)


def test_what_nobody_reads_any_more_goes() -> None:
    """Every level is there until the last has come back; what it has used up is not."""

    @ut.function
    def deep(w: ut.f64[N], x: ut.f64[N], n: ut.i64) -> ut.f64[N]:
        if n == 0:
            return x
        return ut.sin(deep(w, ut.cos(x * w), n - 1) * w)

    @ut.function
    def loss(w: ut.f64[N], x: ut.f64[N], n: ut.i64) -> ut.f64:
        return ut.sum(deep(w, x, n))

    w, x = np.linspace(0.5, 1.5, N), np.linspace(-1, 1, N)
    _, stats = deep.run(w, x, 100, stats=True)
    assert stats.peak_bytes < 1.5 * 100 * x.nbytes  # an argument of each
    _, stats = ut.grad(loss).run(w, x, 100, stats=True)
    assert stats.peak_bytes < 5 * 100 * x.nbytes


@pytest.mark.parametrize("lanes", [2, 3, 4, 5, 7, 9, 12])
def test_lanes_that_enter_a_branch_again_leave_its_columns_alone(lanes: int) -> None:
    """The second visit to a branch brings more arguments, beside columns that the first one has filled."""

    @ut.function
    def tree(n: ut.i64, w: ut.f64[3]) -> ut.f64:
        if n <= 1:
            return ut.sum(w * w)
        return tree(n - 1, w) * tree(n - 2, w) + ut.sin(w[0])

    @ut.function
    def along(n: ut.i64, w: ut.f64[3], v: ut.f64[3]) -> ut.f64[3]:
        return ut.jvp(lambda u: ut.grad(tree, argnums=1)(n, u), (w,), (v,))[1]

    w, directions = np.array([0.3, 0.5, -0.2]), np.outer(np.arange(1.0, lanes + 1), [1.0, 0.0, 0.0])
    for n in range(2, 8):
        found = along.map(n, w, directions, in_axes=(None, None, 0))
        np.testing.assert_allclose(found, np.outer(np.arange(1.0, lanes + 1), along(n, w, directions[0])), rtol=1e-9)
