"""Results that are only added up, on the way to an entry, are collected there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.api.function import make_library
from undertow.ir.graph import Library
from undertow.ir.spec import check
from undertow.passes.sums import collect_sums

W = np.random.default_rng(1).normal(size=(3, 2))
NS = np.array([3, 4, 1])


@ut.function
def tree(w, n: ut.i64) -> (ut.f64[2], ut.f64):
    if n <= 1:
        state = ut.tanh(w[n])
        return state, ut.sum(state * state)
    left, a = tree(w, n - 1)
    right, b = tree(w, n - 2)
    state = ut.tanh(left + right)
    return state, ut.sum(state * state) + a + b


@ut.function
def added(w, ns):
    return ut.sum(ut.map(lambda n: tree(w, n)[1], ns))


@ut.function
def each(w, ns):
    """Those of the roots are looked at one by one."""
    return ut.sum(ut.map(lambda n: tree(w, n)[1] ** 2, ns))


@ut.function
def looked_at(w, n: ut.i64) -> (ut.f64[2], ut.f64):
    if n <= 1:
        return w[n], ut.sum(w[n] ** 2)
    left, a = looked_at(w, n - 1)
    right, b = looked_at(w, n - 2)
    return left + right, ut.sum(left * right) + a + ut.where(b > 1.0, b, 0.5 * b)


@ut.function
def doubled(w, n: ut.i64) -> (ut.f64[2], ut.f64):
    if n <= 1:
        return w[n], ut.sum(w[n] ** 2)
    left, a = doubled(w, n - 1)
    return left * 0.5, ut.sum(left) + a + a


@ut.function
def dropped(w, n: ut.i64) -> (ut.f64[2], ut.f64):
    if n <= 1:
        return w[n], ut.sum(w[n] ** 2)
    left, a = dropped(w, n - 1)
    right, _ = dropped(w, n - 2)  # in a gradient, that is a call of another function, without losses
    return left - right, ut.sum(left * right) + a


@ut.function
def two(w, n: ut.i64) -> (ut.f64[2], ut.f64, ut.f64):
    """Two sums, and a constant that is added where nothing else is."""
    if n <= 1:
        return w[n], ut.sum(w[n] ** 2), 1.5
    left, a, b = two(w, n - 1)
    right, c, d = two(w, n - 2)
    state = left * right
    return state, a + c, b + ut.sum(ut.tanh(state)) + d


def first(function: Any) -> Any:
    return ut.function(lambda w, ns: ut.sum(ut.map(lambda n: function(w, n)[1], ns)))


looks, doubles, drops = first(looked_at), first(doubled), first(dropped)


@ut.function
def both(w, ns):
    def one(n):
        _, a, b = two(w, n)
        return a * b

    return ut.sum(ut.map(one, ns))


def library_of(function: Any) -> Library:
    return make_library(function.library(W, NS), True, True)


def collects(library: Library) -> int:
    return sum(
        node.op == "collected" and node.name.endswith(".sum") for g in library.functions.values() for node in g.nodes
    )


@pytest.mark.parametrize(
    ("function", "count"), [(added, 1), (each, 0), (looks, 0), (doubles, 0), (drops, 1), (both, 0)]
)
def test_what_is_only_added_up_is_collected(function, count):
    library = library_of(ut.value_and_grad(function))
    check(library)
    assert collects(library) == count


def test_a_recursion_that_collects_nothing_is_left():
    library = library_of(added)
    assert collects(library) == 0
    assert collect_sums(library)[0] is library


@pytest.mark.parametrize("engine", ["reference", "waves", "expand", "demand"])
@pytest.mark.parametrize("function", [added, each, looks, doubles, drops, both])
@pytest.mark.parametrize("ns", [NS, NS[:0]])
def test_values_are_the_same(function, engine, ns):
    value, gradient = ut.value_and_grad(function).run(W, ns, engine=engine)
    assert value == pytest.approx(function(W, ns), rel=1e-12, abs=1e-12)
    step = 1e-6
    for index in np.ndindex(W.shape):
        above, below = W.copy(), W.copy()
        above[index] += step
        below[index] -= step
        difference = (function(above, ns) - function(below, ns)) / (2 * step)
        assert gradient[index] == pytest.approx(difference, abs=1e-5)


def test_a_sum_may_be_what_the_way_back_begins_with():
    """The cotangent of the loss is made of the loss."""

    def square(w, ns):
        return added(w, ns) ** 2

    value, gradient = ut.value_and_grad(ut.function(square))(W, NS)
    loss, of_loss = ut.value_and_grad(added)(W, NS)
    assert value == pytest.approx(loss**2)
    np.testing.assert_allclose(gradient, 2 * loss * of_loss, rtol=1e-12)


def test_several_sums():
    """Each has a place of its own at the entry."""

    @ut.function
    def losses(w, n: ut.i64) -> (ut.f64, ut.f64):
        _, a, b = two(w, n)
        return a, b

    @ut.function
    def product(w, n: ut.i64) -> ut.f64:
        a, b = losses(w, n)
        return a * b

    def apart(w, n):
        return ut.value_and_grad(product)(w, n)

    value, gradient = apart(W, 5)
    a, b = losses(W, 5)
    assert value == pytest.approx(a * b)
    parts = [ut.grad(ut.function(lambda w, n, k=k: losses(w, n)[k]))(W, 5) for k in range(2)]
    np.testing.assert_allclose(gradient, parts[0] * b + parts[1] * a, rtol=1e-12)


def test_many_small_numbers_lose_no_digits():
    @ut.function
    def many(w: ut.f32[2], n: ut.i64) -> (ut.f32[2], ut.f32):
        if n <= 0:
            return w, ut.sum(w)
        left, a = many(w, n - 1)
        right, b = many(w, n - 1)
        return (left + right) * 0.5, ut.sum(w) + a + b

    @ut.function
    def loss(w: ut.f32[2]) -> ut.f32:
        return many(w, 15)[1]

    value, _ = ut.value_and_grad(loss)(np.array([0.1, 0.2], np.float32))
    assert value == pytest.approx((2**16 - 1) * float(np.float32(0.1) + np.float32(0.2)), rel=1e-6)
