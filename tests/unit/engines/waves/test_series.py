"""Operators in a row on many lanes go through them piece by piece: the same values, in less room."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut

D = 24
LANES = 700  # several pieces, and the last are not full


@ut.function
def bilinear(params, x: ut.f32[D]) -> ut.f32[D]:
    """A wide value that nobody else needs, seen in another shape; and one that is the same for all lanes."""
    tensor = ut.reshape(params["V"] * 0.5, (D, D * D))
    matrix = ut.reshape(x @ tensor, (D, D))
    scale = ut.sum(params["b"]) + 1.0
    return ut.tanh(x @ matrix + params["b"]) * scale


@pytest.fixture
def params() -> dict[str, Any]:
    random = np.random.default_rng(3)
    return {"V": random.normal(0, 0.1, (D, D, D)).astype(np.float32), "b": random.normal(0, 0.1, D).astype(np.float32)}


def wanted_of(params: dict[str, Any], x: Any) -> Any:
    wide = {name: value.astype(np.float64) for name, value in params.items()}
    matrix = np.einsum("ni,ijk->njk", x.astype(np.float64), 0.5 * wide["V"])
    return np.tanh(np.einsum("nj,njk->nk", x, matrix) + wide["b"]) * (wide["b"].sum() + 1)


@pytest.mark.parametrize("lanes", [63, 64, LANES])
def test_the_same_values_for_any_number_of_threads(params: dict[str, Any], lanes: int) -> None:
    x = np.random.default_rng(4).normal(size=(lanes, D)).astype(np.float32)
    one, stats = bilinear.map(ut.shared(params), x, engine="waves", threads=1, stats=True)
    np.testing.assert_allclose(one, wanted_of(params, x), rtol=1e-4, atol=1e-5)
    for threads in (2, 3):
        found, more = bilinear.map(ut.shared(params), x, engine="waves", threads=threads, stats=True)
        np.testing.assert_array_equal(found, one)
        assert more.per_node == stats.per_node


def test_what_nobody_else_needs_takes_room_for_a_piece(params: dict[str, Any]) -> None:
    x = np.random.default_rng(4).normal(size=(LANES, D)).astype(np.float32)
    _, stats = bilinear.map(ut.shared(params), x, engine="waves", threads=1, stats=True)
    assert stats.peak_bytes < LANES * D * D * 4 / 2


def test_gradients(params: dict[str, Any]) -> None:
    @ut.function
    def loss(params, x: ut.f32[None, D]) -> ut.f32:
        return ut.sum(ut.map(lambda row: ut.sum(bilinear(params, row)), x))

    x = np.random.default_rng(4).normal(size=(LANES, D)).astype(np.float32)
    gradient = ut.grad(loss)
    all_at_once = gradient.run(params, x, engine="waves", threads=1)
    parts = [gradient.run(params, x[k : k + 50], engine="waves", threads=1) for k in range(0, LANES, 50)]
    for name in params:
        np.testing.assert_allclose(all_at_once[name], sum(part[name] for part in parts), rtol=1e-3, atol=1e-2)
    several = gradient.run(params, x, engine="waves", threads=3)
    for name in params:
        np.testing.assert_array_equal(several[name], all_at_once[name])


def test_sums_over_lanes_are_taken_while_a_piece_is_there(params: dict[str, Any]) -> None:
    """The gradient of a matrix of each lane is added up, and never there for all lanes."""

    @ut.function
    def plain(params, x: ut.f32[D]) -> ut.f32[D]:
        matrix = ut.reshape(x @ ut.reshape(params["V"], (D, D * D)), (D, D))
        return ut.tanh(x @ matrix + params["b"])

    @ut.function
    def loss(params, x: ut.f32[None, D]) -> ut.f32:
        return ut.sum(ut.map(lambda row: ut.sum(plain(params, row)), x))

    x = np.random.default_rng(4).normal(size=(LANES, D)).astype(np.float32)
    _, stats = ut.grad(loss).run(params, x, engine="waves", threads=1, stats=True)
    assert stats.peak_bytes < LANES * D * D * 4 / 2


def test_a_value_that_is_the_same_at_first_only() -> None:
    """The slots of a loop are written again in every iteration."""

    @ut.function
    def wander(x: ut.f64[40], n: ut.i64) -> ut.f64[40]:
        at = ut.zeros(40, dtype=ut.f64)
        while n > 0:
            step = ut.cos(at) * 0.5
            at = step * step + at
            at = at + x
            n = n - 1
        return at

    x = np.random.default_rng(5).normal(size=(300, 40))
    n = np.arange(300) % 4
    found = wander.map(x, n, engine="waves", threads=1)
    at = np.zeros((300, 40))
    for k in range(3):
        at = np.where((n > k)[:, None], (np.cos(at) * 0.5) ** 2 + at + x, at)
    np.testing.assert_allclose(found, at, rtol=1e-12)


def test_the_lane_that_fails_is_named() -> None:
    @ut.function
    def picked(x: ut.f64[50], k: ut.i64) -> ut.f64:
        y = ut.exp(x) * 2.0
        return ut.sum(y * y) + y[k]

    x, k = np.ones((900, 50)), np.zeros(900, np.int64)
    k[[333, 600]] = 50
    texts = set()
    for threads in (1, 2):
        with pytest.raises(ut.RunError) as caught:
            picked.map(x, k, engine="waves", threads=threads)
        texts.add((caught.value.what, str(caught.value.calls)))
    with pytest.raises(ut.RunError) as caught:
        picked.map(x, k, engine="reference")
    assert texts == {(caught.value.what, str(caught.value.calls))}
