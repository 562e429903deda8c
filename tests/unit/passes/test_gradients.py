"""Gradients of recursive programs: against closed forms and finite differences, on every engine and schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.differences import WAYS, assert_close, assert_valid, check_gradient
from tests.support.differentiable import (
    ackermann,
    even,
    fibonacci,
    halves,
    loop_in_recursion,
    mapped,
    power,
    tree_sum,
    while_newton,
)

import undertow as ut


@ut.function
def several(x: ut.f64, n: ut.i64) -> tuple[ut.f64, ut.i64, ut.f64]:
    """Three results, one of them an integer."""
    if n <= 0:
        return x, 0, x * x
    a, k, b = several(x * 0.5, n - 1)
    return a * b + x, k + 1, b + a * k


@ut.function
def first_of_several(x: ut.f64, n: ut.i64) -> ut.f64:
    return several(x, n)[0]


@ut.function
def all_of_several(x: ut.f64, n: ut.i64) -> ut.f64:
    a, k, b = several(x, n)
    return a * b * k


@ut.function
def recursion_in_loop(x: ut.f64, n: ut.i64) -> ut.f64:
    total = 0.0
    for k in range(n):
        total = total * x + power(x, k)
    return total


@ut.function
def one_branch(x: ut.f64, n: ut.i64) -> ut.f64:
    """Recursion in only one branch; values from before the branch are used in both."""
    y = ut.sin(x)
    if n > 0 and x > 0.1:
        return one_branch(x * y, n - 1) * x
    elif n > 3:
        return y * x
    return y + x


@ut.function
def weighted(w: ut.f64[None], x: ut.f64) -> ut.f64:
    """A map over different weights, each with a recursion of its own length."""
    powers = ut.map(lambda a, k: power(a * x, k), w, ut.arange(w.shape[0]))
    return ut.sum(powers * w)


@ut.function
def twice(x: ut.f64, n: ut.i64) -> ut.f64:
    """A result of a recursion consumed by another function: sin(exp(2 x, n))."""
    return ut.sin(power(2.0 * x, n))


@ut.function
def accumulate(x: ut.f64, n: ut.i64, acc: ut.f64) -> ut.f64:
    """Tail recursion."""
    return acc if n <= 0 else accumulate(x, n - 1, acc * x + 1.0)


@ut.function
def swapping(x: ut.f64, y: ut.f64, n: ut.i64) -> ut.f64:
    """Arguments that change places at every call."""
    return x * x * y if n <= 0 else swapping(y, x, n - 1) * x


@ut.function
def three_way(x: ut.f64, n: ut.i64) -> ut.f64:
    """Nested branches, with calls in several of them, and a value that only one uses."""
    z = 2.0
    y = x * x
    if n > 2:
        if x > 1.0:
            z = y * three_way(x * 0.3, n - 1)
        else:
            z = three_way(x * 1.4, n - 2)
    elif n == 1:
        z = three_way(y, 0) - x
    return z * x


CASES: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (power, (1.3, 5), {"order": 3, "expected": 5 * 1.3**4}),
    (power, (1.3, 0), {"expected": 0.0}),
    (fibonacci, (0.7, 6), {"order": 2}),
    (even, (0.7, 5), {"order": 2}),
    (ackermann, (2, 0.95), {"argnums": 1, "order": 2}),
    (first_of_several, (0.8, 4), {"order": 2}),
    (all_of_several, (0.8, 4), {"order": 2}),
    (recursion_in_loop, (0.9, 5), {"order": 2}),
    (recursion_in_loop, (0.9, 0), {"expected": 0.0}),
    (loop_in_recursion, (0.9, 4), {}),
    (one_branch, (0.9, 4), {"order": 2}),
    (one_branch, (0.05, 4), {}),
    (one_branch, (0.05, 1), {}),
    (while_newton, (2.0,), {"expected": 0.5 / np.sqrt(2.0)}),
    (tree_sum, (np.linspace(-0.5, 0.7, 10).reshape(5, 2), 0), {}),
    (halves, (np.arange(1.0, 6.0) / 5,), {}),
    (halves, (np.zeros(0),), {}),
    (mapped, (0.4, 3), {"order": 2}),
    (mapped, (0.4, 0), {"expected": 1.0}),
    (weighted, (np.array([0.5, 0.7, 0.9, 1.1]), 0.8), {"argnums": (0, 1)}),
    (weighted, (np.zeros(0), 0.8), {"argnums": (0, 1)}),
    (twice, (0.4, 3), {"order": 3, "expected": np.cos(0.8**3) * 24 * 0.4**2}),
    (accumulate, (0.9, 4, 0.5), {"argnums": (0, 2)}),
    (accumulate, (0.9, 4, 0.5), {"argnums": 2, "expected": 0.9**4}),
    (swapping, (0.7, 1.2, 3), {"argnums": (0, 1)}),
    (swapping, (0.7, 1.2, 2), {"argnums": 1}),
    (three_way, (1.2, 5), {"order": 2}),
    (three_way, (0.9, 4), {}),
    (three_way, (0.9, 1), {}),
]


def rows() -> list[Any]:
    found: list[Any] = []
    for number, (function, args, options) in enumerate(CASES):
        marks = [pytest.mark.slow] if "order" in options else []
        found.append(pytest.param(function, args, options, id=f"{function.__name__}-{number}", marks=marks))
    return found


@pytest.mark.parametrize(("function", "args", "options"), rows())
def test_against_differences(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    check_gradient(function, *args, **options)


@ut.function
def mixed(x: ut.f64, y: ut.f64, n: ut.i64) -> ut.f64:
    if n > 0:
        return x * y + mixed(x * y, y, n - 1)
    return x * (1.0 / y)


@ut.function
def mixed_once(x: ut.f64, y: ut.f64) -> ut.f64:
    return x * y * y if y > 0.0 else x * y


@pytest.mark.slow
def test_mixed_derivatives_go_through_branches_in_later_phases_only() -> None:
    """The cotangents of both sides of a Switch come from a phase before the one that undoes it."""
    for y in (0.7, -0.7):
        found = check_gradient(ut.grad(mixed_once, 0), 1.3, y, argnums=1)
        assert_close(found, 2 * y if y > 0 else 1.0)
        check_gradient(ut.grad(mixed, 0), 1.3, y, 2, argnums=1)
        check_gradient(ut.grad(mixed, 1), 1.3, y, 2, argnums=0)


# -- values and shapes ---------------------------------------------------------------------------------------


def test_the_side_of_a_branch_that_is_not_taken_may_be_anything() -> None:
    @ut.function
    def roots(x: ut.f64, n: ut.i64) -> ut.f64:
        y = ut.sqrt(x) if x > 0.0 else 0.0
        return y if n <= 0 else y + roots(x, n - 1)

    check_gradient(roots, -1.0, 2, expected=0.0)
    check_gradient(roots, 4.0, 2, expected=0.75)
    assert ut.grad(roots)(0.0, 2) == 0.0


def test_where_needs_a_finite_value_on_both_sides() -> None:
    """As everywhere: what `where` does not choose is computed, and 0 * inf is nan."""
    x = np.array([4.0, -1.0, 0.0])
    found = ut.grad(lambda x: ut.sum(ut.where(x > 0.0, ut.sqrt(ut.where(x > 0.0, x, 1.0)), 2.0 * x)))(x)
    assert found.tolist() == [0.25, 2.0, 2.0]
    found = ut.grad(lambda x: ut.sum(ut.where(x > 0.0, ut.sqrt(x), 2.0 * x)))(x)
    assert found[0] == 0.25 and np.isnan(found[1])


def test_sides_with_different_shapes() -> None:
    @ut.function
    def f(x: ut.f64[None], n: ut.i64) -> ut.f64:
        if n > 0:
            y = x[:n]
        else:
            y = ut.concat([x, x * 2.0, x])
        if n > 1:
            z = y * y
        else:
            z = y
        return ut.sum(z * z) + ut.sum(x)

    for n in (0, 1, 2):
        check_gradient(f, np.array([0.1, 0.2, 0.3]), n)
    check_gradient(f, np.zeros(0), 0)


def test_arrays_that_grow_and_shrink() -> None:
    @ut.function
    def f(x: ut.f64[None], n: ut.i64) -> ut.f64[None]:
        if n <= 0:
            return x
        if n % 2 == 0:
            return ut.concat([f(x * 0.5, n - 1), x])
        return f(ut.concat([x, x]), n - 1)[1:] * x[0]

    check_gradient(ut.function(lambda x, n: ut.sum(f(x, n) ** 2.0)), np.array([0.1, 0.2, 0.3]), 4)


def test_broadcasts_decided_at_run_time() -> None:
    @ut.function
    def f(x: ut.f64[None], y: ut.f64[None, None], n: ut.i64) -> ut.f64:
        return ut.sum(x * y) if n <= 0 else f(x * x, y + x, n - 1) + ut.mean(y)

    for x in (np.array([0.1, 0.2]), np.array([0.1])):
        check_gradient(f, x, np.ones((3, 2)), 0, argnums=(0, 1))
    check_gradient(f, np.array([0.1, 0.2]), np.ones((3, 2)), 2, argnums=(0, 1))


def test_a_result_of_a_wider_type_than_it_has() -> None:
    """A length that is annotated as unknown, and known to the body: its cotangent is made to fit."""

    @ut.function
    def pair(x: ut.f64, n: ut.i64) -> ut.f64[None]:
        if n <= 0:
            return ut.stack([x, x * x])
        return ut.stack([ut.sin(x), x * n])

    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        return ut.sum(pair(x, n) * 2.0) + ut.sum(ut.map(lambda k: pair(x, k), ut.arange(n))[:, 0])

    check_gradient(f, 0.7, 2)

    @ut.function
    def pulled(x: ut.f64, v: ut.f64[None]) -> ut.f64:
        return ut.vjp(pair, x, 1)[1](v)[0]

    check_gradient(pulled, 0.7, np.array([0.3, 0.4]), argnums=(0, 1))


def test_an_argument_that_is_handed_on_as_a_wider_type() -> None:
    """It is read from the entry all the same, as the wider type; the narrower one is made of it where it is wanted."""

    @ut.function
    def total(x: ut.f64[None], n: ut.i64) -> ut.f64:
        return ut.sum(ut.sin(x)) if n <= 0 else total(x, n - 1) * x[0]

    @ut.function
    def f(x: ut.f64[2], n: ut.i64) -> ut.f64:
        return total(x, n) + x[1]

    check_gradient(f, np.array([0.3, 0.4]), 2)


def test_a_map_in_a_map_of_itself() -> None:
    @ut.function
    def f(x: ut.f64[None], n: ut.i64) -> ut.f64:
        if n <= 0:
            return ut.sum(x * x)
        rows = ut.map(lambda a: ut.map(lambda b: a * b, x), x)
        return ut.sum(ut.map(lambda row: f(ut.sin(row), n - 1), rows)) * x[0]

    check_gradient(f, np.array([0.4, 0.7]), 2)


def test_single_precision() -> None:
    @ut.function
    def f(x: ut.f32[2], n: ut.i32) -> ut.f32:
        return ut.sum(x * x) if n <= 0 else ut.tanh(f(x * 0.5, n - 1)) + x[0]

    x = np.array([0.5, -0.25])

    @ut.function
    def double(x: ut.f64[2], n: ut.i32) -> ut.f64:
        return ut.sum(x * x) if n <= 0 else ut.tanh(double(x * 0.5, n - 1)) + x[0]

    expected = check_gradient(double, x, np.int32(3))
    for way in WAYS:
        found = ut.grad(f).run(x.astype(np.float32), np.int32(3), **way)
        assert found.dtype == np.float32
        assert_close(found, expected, 1e-6)


@pytest.mark.slow
def test_a_gradient_consumed_again_in_the_same_run() -> None:
    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        slope = ut.grad(power)(x, n)
        value, again = ut.value_and_grad(twice)(slope * 0.1, n)
        return slope * value + again

    check_gradient(f, 0.7, 3, order=2)


@pytest.mark.slow
def test_three_gradients_one_inside_the_other() -> None:
    third = ut.grad(ut.grad(ut.grad(power)))
    for way in WAYS:
        assert_close(third.run(1.5, 5, **way), 60 * 1.5**2, 1e-12)
        assert third.run(1.5, 2, **way) == 0.0
    assert_valid(third, 1.5, 5)
