"""Calls whose results are put side by side: their lanes stand between each other, and nobody can tell otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.reference import ReferencePlan
from undertow.engines.waves import WavesPlan
from undertow.errors import RunError

D = 20  # elements of a vector: too many to be copied along
RANDOM = np.random.default_rng(5)
TABLE = RANDOM.normal(size=(7, D))
TWO, THREE = RANDOM.normal(size=(2 * D, D)) * 0.2, RANDOM.normal(size=(3 * D, D)) * 0.2
SIDE = 200
WIDTHS = (1, 2, 3, 5, 64, 4096)  # chunks that cut families apart, and one for all


@ut.function
def pair(table: ut.f64[7, D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
    if n < 2:
        return table[n]
    left = pair(table, w, n // 2)
    right = pair(table, w, n - n // 2 - 1)
    return ut.tanh(ut.concat([left, right]) @ w)


@ut.function
def turned(table: ut.f64[7, D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
    """The last call is put first, and both results are needed by themselves too."""
    if n < 2:
        return table[n]
    left = turned(table, w, n // 2)
    right = turned(table, w, n - n // 2 - 1)
    return ut.tanh(ut.concat([right, left]) @ w) * left + ut.max(right)


@ut.function
def three(table: ut.f64[7, D], w: ut.f64[3 * D, D], n: ut.i64) -> ut.f64[D]:
    if n < 3:
        return table[n]
    parts = [three(table, w, n // 3), three(table, w, n // 2 - 1), three(table, w, n // 4)]
    return ut.tanh(ut.reshape(ut.stack(parts), (-1,)) @ w)


@ut.function
def four(table: ut.f64[7, D], w: ut.f64[2 * D, D], n: ut.i64) -> (ut.f64[D], ut.i64):
    """Two families at once, and small results."""
    if n < 4:
        return table[n], n
    a, i = four(table, w, n // 2)
    b, j = four(table, w, n // 3)
    c, k = four(table, w, n // 4)
    d, m = four(table, w, n // 4 + 1)
    return ut.tanh(ut.concat([b, a]) @ w + ut.concat([c, d]) @ w), i + 2 * j + 3 * k + 5 * m


@ut.function
def shared(table: ut.f64[7, D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
    """One result stands in two places; one of them is beside a value that no call gives."""
    if n < 2:
        return table[n]
    left = shared(table, w, n // 2)
    right = shared(table, w, n // 3)
    both = ut.concat([left, right]) @ w
    return ut.tanh(both + ut.concat([left, table[n % 7]]) @ w)


@ut.function
def even(table: ut.f64[7, D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
    if n < 2:
        return table[n + 3]
    return ut.tanh(ut.concat([odd(table, w, n // 2), odd(table, w, n // 3)]) @ w)


@ut.function
def odd(table: ut.f64[7, D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
    """Each of two calls the other, and itself."""
    if n < 2:
        return table[n]
    return ut.tanh(ut.concat([even(table, w, n - n // 2), odd(table, w, n // 4)]) @ w)


@ut.function
def apart(table: ut.f64[7, D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
    """Along another axis rows are not side by side."""
    if n < 2:
        return table[n]
    left = ut.reshape(apart(table, w, n // 2), (2, D // 2))
    right = ut.reshape(apart(table, w, n // 3), (2, D // 2))
    return ut.tanh(ut.reshape(ut.concat([left, right], axis=1), (-1,)) @ w)


FUNCTIONS = [(pair, TWO), (turned, TWO), (three, THREE), (four, TWO), (shared, TWO), (even, TWO), (apart, TWO)]


@pytest.mark.parametrize(("function", "w"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", ""))
def test_values_for_any_width(function: ut.Function, w: Any) -> None:
    graph = function.graph(TABLE, w, np.int64(90)).static
    wanted, counted = ReferencePlan(graph).run([TABLE, w, np.int64(90)], Options())
    for width in WIDTHS:
        for threads in (1, 2):
            found, stats = WavesPlan(graph, width, "lockstep").run([TABLE, w, np.int64(90)], Options(threads=threads))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
            assert (stats.activations, stats.max_depth) == (counted.activations, counted.max_depth)


@pytest.mark.parametrize(("function", "w"), FUNCTIONS, ids=lambda x: getattr(x, "__name__", ""))
def test_gradients_for_any_width(function: ut.Function, w: Any) -> None:
    @ut.function
    def loss(table: ut.f64[7, D], w: Any, ns: ut.i64[None]) -> ut.f64:
        def of(n: ut.i64) -> ut.f64:
            found = function(table, w, n)
            return ut.sum((found[0] if function is four else found) ** 2)

        return ut.sum(ut.map(of, ns))

    args = TABLE, w, np.array([90, 1, 17, 40, 5])
    gradient = ut.grad(loss, argnums=(0, 1))
    graph = gradient.graph(*args).static
    wanted, _ = ReferencePlan(graph).run(list(args), Options())
    for width in WIDTHS:
        found, _ = WavesPlan(graph, width, "lockstep").run(list(args), Options(threads=1))
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_nothing_is_copied() -> None:
    """What both calls give is what is multiplied: there is room for it once."""

    @ut.function
    def total(x: ut.f64[SIDE], w: ut.f64[2 * SIDE, SIDE], n: ut.i64) -> ut.f64[SIDE]:
        if n == 0:
            return x * 2.0
        return ut.concat([total(x + 1.0, w, n - 1), total(x - 1.0, w, n - 1)]) @ w

    x, w = RANDOM.normal(size=SIDE), RANDOM.normal(size=(2 * SIDE, SIDE)) / SIDE
    found, stats = total.run(x, w, 10, engine="waves", threads=1, stats=True)
    np.testing.assert_allclose(found, total.run(x, w, 10, engine="reference"), rtol=1e-9, atol=1e-12)
    # Of the leaves: what they are given, and what they give. The vectors of all levels above them are as many again.
    assert stats.peak_bytes < 2.6 * 2**10 * SIDE * 8


def test_the_call_that_fails_is_named() -> None:
    @ut.function
    def failing(table: ut.f64[7, D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
        if n < 2:
            return table[ut.where(n == 1, 7, 0)]
        return ut.concat([failing(table, w, 0), failing(table, w, n - 3)]) @ w

    texts = set()
    for engine in ("reference", "waves"):
        with pytest.raises(RunError) as caught:
            failing.run(TABLE, TWO, 7, engine=engine, threads=1)
        texts.add((str(caught.value), str(caught.value.calls)))
    assert len(texts) == 1


def test_the_deepest_tag_is_one_of_them() -> None:
    @ut.function
    def uneven(x: ut.f64[D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
        if n < 1:
            return x
        return ut.concat([uneven(x, w, n // 3), uneven(x, w, n - 1)]) @ w

    x = RANDOM.normal(size=D)
    _, stats = uneven.run(x, TWO, 9, engine="waves", threads=1, stats=True)
    _, wanted = uneven.run(x, TWO, 9, engine="reference", stats=True)
    assert stats.deepest_tag == wanted.deepest_tag


@pytest.mark.parametrize("threads", [1, 3])
def test_a_view_that_shows_itself_late_is_of_all_lanes(threads: int) -> None:
    """That the reshaped results stand side by side is known only when they have been made, in the same series."""

    @ut.function
    def reshaped(x: ut.f64[D], w: ut.f64[2 * D, D], n: ut.i64) -> ut.f64[D]:
        if n == 0:
            return x * 1.5
        left, right = reshaped(x + 1.0, w, n - 1), reshaped(x - 1.0, w, n - 1)
        halves = ut.concat([ut.reshape(left, (2, D // 2)), ut.reshape(right, (2, D // 2))])
        sums = ut.reshape(ut.cumsum(halves, axis=0), (-1,))
        return ut.tanh(ut.concat([left, right]) @ w + 0.1 * (sums[:D] + sums[D:]))

    args = RANDOM.normal(size=D), TWO, np.int64(11)
    graph = reshaped.graph(*args).static
    wanted, _ = ReferencePlan(graph).run(list(args), Options())
    found, _ = WavesPlan(graph, 4096, "lockstep").run(list(args), Options(threads=threads))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
