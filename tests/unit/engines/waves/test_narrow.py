"""Narrow waves: a few lanes that cannot become more run one by one. Same values, counts and tags as everywhere.

The expand engine has codes for operators on numbers too, and is looked at alongside.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut

LEAST = np.iinfo(np.int32).min


@ut.function
def walk(n: ut.i32, i: ut.i32) -> ut.i32:
    """At each level a helper goes one deeper, and comes back."""
    if n == 0:
        return i
    return walk(n - 1, i + even(i, 0))


@ut.function
def even(i: ut.i32, k: ut.i32) -> ut.i32:
    if k == 1:
        return i % 2
    return even(i, k + 1)


@ut.function
def in_loops(n: ut.i64) -> ut.i64:
    """The deepest call is made in the second iteration of the third of the outer loop."""
    if n == 0:
        return 1
    total = 0
    for i in range(4):
        for k in range(n + 1):
            if i == 2 and k == 1:
                total = total + in_loops(n - 1)
    return total + n


@pytest.mark.parametrize(("function", "args"), [(walk, (40, 3)), (in_loops, (3,))])
def test_tags_and_counts_are_those_of_the_reference_engine(function: Any, args: tuple[int, ...]) -> None:
    expected, counted = function.run(*args, engine="reference", stats=True)
    found, stats = function.run(*args, engine="waves", stats=True)
    assert found == expected
    assert stats.deepest_tag == counted.deepest_tag
    assert (stats.activations, stats.max_depth) == (counted.activations, counted.max_depth)


@pytest.mark.parametrize("engine", ["waves", "expand"])
def test_time_follows_the_number_of_calls_not_its_square(engine: str) -> None:
    """Every level is deeper than all before: nothing of the size of the tag may happen there."""
    _, stats = walk.run(100_000, 1, engine=engine, timeout=4.0, stats=True)
    assert len(stats.deepest_tag) == stats.max_depth == 100_002


def test_time_of_many_lanes_follows_the_number_of_calls_too() -> None:
    """In lockstep, with lanes enough that none of them runs alone; the helper may do that."""
    lanes = np.full(32, 10_000, np.int32)
    _, stats = walk.map(lanes, np.ones(32, np.int32), engine="waves", timeout=4.0, stats=True)
    assert len(stats.deepest_tag) == stats.max_depth + 1 == 10_003


def test_time_of_arrays_follows_the_number_of_calls_too() -> None:
    @ut.function
    def first(w: ut.f32[3], n: ut.i64) -> ut.f32[3]:
        return w * 0.5 if n == 0 else first(w + 1.0, n - 1)

    @ut.function
    def down(w: ut.f32[3], n: ut.i64) -> ut.f32[3]:
        return w if n == 0 else down(first(down(w, 0), 1), n - 1)

    _, stats = down.run(np.ones(3, np.float32), 10_000, engine="waves", timeout=4.0, stats=True)
    assert stats.max_depth == 10_002


NUMBERS: list[Callable[[Any, Any], Any]] = [
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod, ut.minimum, ut.maximum,
]  # fmt: skip
TESTS: list[Callable[[Any, Any], Any]] = [
    operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
]  # fmt: skip
PAIRS = [(7, 2), (-7, 2), (7, -2), (-7, -2), (LEAST, -1), (LEAST, 3), (5, 5)]


@pytest.mark.parametrize("dtype", [ut.i32, ut.i64, ut.f32, ut.f64], ids=str)
@pytest.mark.parametrize(("x", "y"), PAIRS)
def test_operators_give_what_they_give_elsewhere(dtype: Any, x: int, y: int) -> None:
    """With both operands from cells, and with either of them a constant; as values, and as conditions of branches."""
    forms = [lambda a, b: (a, b), lambda a, b: (a, y), lambda a, b: (x, b)]
    as_bool, as_number = tuple[(ut.bool,) * len(TESTS) * 6], tuple[(dtype,) * len(NUMBERS) * 6]

    @ut.function
    def numbers(n: ut.i64, a: dtype, b: dtype) -> as_number:  # type: ignore[valid-type]
        if n > 0:
            return numbers(n - 1, a, b)
        found = [op(*form(a, b)) for op in NUMBERS for form in forms]
        return (*found, *(-value for value in found))

    @ut.function
    def tests(n: ut.i64, a: dtype, b: dtype) -> as_bool:  # type: ignore[valid-type]
        if n > 0:
            return tests(n - 1, a, b)
        found = [op(*form(a, b)) for op in TESTS for form in forms]
        return (*found, *(ut.cond(op(*form(a, b)), lambda: a < 6, lambda: b > 2) for op in TESTS for form in forms))

    args = 2, np.dtype(str(dtype).replace("i", "int").replace("f", "float")).type(x), y
    for function in numbers, tests:
        expected = function.run(*args, engine="reference")
        for engine in "waves", "expand":
            np.testing.assert_equal(function.run(*args, engine=engine), expected)


def test_faults_know_their_operands() -> None:
    @ut.function
    def down(n: ut.i32, by: ut.i32) -> ut.i32:
        return 7 // by if n == 0 else down(n - 1, by - 1)

    said = []
    for engine in "reference", "waves", "expand":
        with pytest.raises(ut.RunError, match="by zero") as caught:
            down.run(3, 3, engine=engine)
        said.append(str(caught.value))
    assert said[0] == said[1] == said[2]


# -- elements of arrays ------------------------------------------------------------------------------------------------


@ut.function
def total(x: ut.f64[None], n: ut.i64) -> ut.f64:
    return 0.0 if n == 0 else x[n] * 2.0 + total(x, n - 1)


@ut.function
def diagonal(w: ut.f32[None, None], i: ut.i32, j: ut.i32) -> ut.f32:
    """Two places, one of them from the end; on both sides of a branch."""
    if i < 0:
        return w[0, j] * w[-1, -1]
    return w[i, j] + diagonal(w, i - 1, (j + 1) % 3)


@ut.function
def search(x: ut.i64[8], key: ut.i64, low: ut.i64, high: ut.i64) -> ut.i64:
    """A length that is known, and a tail call in each of two branches."""
    if low >= high:
        return low
    middle = (low + high) // 2
    if x[middle] < key:
        return search(x, key, middle + 1, high)
    return search(x, key, low, middle)


@ut.function
def jumps(links: ut.i32[None], n: ut.i64, at: ut.i32) -> ut.i64:
    """A constant, a loop that looks into an array, and a place that is found in one."""
    steps = ut.asarray([1, 5, 9], dtype=ut.i64)
    if n == 0:
        return 0
    found = steps[n % 3]
    for k in range(2):
        found = found + ut.astype(links[k], ut.i64)
    return found + at + jumps(links, n - 1, links[at])


@ut.function
def twice(x: ut.f64[None], n: ut.i64) -> ut.f64:
    """One such function calls another."""
    return 0.0 if n == 0 else total(x, n) * x[0] + twice(x, n - 1)


X, W, LINKS = np.linspace(1, 2, 60), np.arange(12, dtype=np.float32).reshape(4, 3), np.array([3, 0, 1, 2], np.int32)
LOOKS: list[tuple[Any, tuple[Any, ...]]] = [
    (total, (X, 50)),
    (diagonal, (W, np.int32(3), np.int32(1))),
    (search, (np.arange(8) * 10, 45, 0, 8)),
    (jumps, (LINKS, 30, np.int32(2))),
    (twice, (X, 9)),
]


@pytest.mark.parametrize(("function", "args"), LOOKS, ids=lambda x: getattr(x, "__name__", ""))
def test_elements_of_arrays(function: Any, args: tuple[Any, ...]) -> None:
    expected, counted = function.run(*args, engine="reference", stats=True)
    found, stats = function.run(*args, engine="waves", stats=True)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert (stats.activations, stats.max_depth) == (counted.activations, counted.max_depth)
    if function is not twice:  # there `twice` goes wave by wave, only `total` is narrow, and several are deepest
        assert stats.waves == 1
        assert stats.deepest_tag == counted.deepest_tag


@pytest.mark.parametrize(("function", "args"), [LOOKS[0], LOOKS[1], LOOKS[4]], ids=lambda x: getattr(x, "__name__", ""))
def test_gradients_of_elements(function: Any, args: tuple[Any, ...]) -> None:
    gradient = ut.grad(function)
    np.testing.assert_allclose(gradient.run(*args), gradient.run(*args, engine="reference"), rtol=1e-6)
    rows = ut.grad(function, sparse_rows=True)
    np.testing.assert_allclose(rows.run(*args).dense(), gradient.run(*args, engine="reference"), rtol=1e-6)

    @ut.function
    def squared(*args: Any) -> Any:
        return ut.sum(ut.grad(function)(*args) ** 2) + function(*args) ** 2

    second = ut.grad(squared)
    np.testing.assert_allclose(second.run(*args), second.run(*args, engine="reference"), rtol=1e-5, atol=1e-6)


def test_rows_are_those_that_were_looked_at() -> None:
    found = ut.grad(total, sparse_rows=True).run(X, 40)
    assert sorted(found.indices.tolist()) == list(range(1, 41))
    assert found.rows.tolist() == [2.0] * 40


def test_a_place_that_is_not_there() -> None:
    texts = set()
    for engine in ("reference", "waves"):
        with pytest.raises(ut.RunError) as caught:
            total.run(X, 62, engine=engine)
        texts.add((str(caught.value), str(caught.value.calls)))
        with pytest.raises(ut.RunError) as caught:
            jumps.run(np.array([1, 7], np.int32), 3, 0, engine=engine)
        texts.add((str(caught.value), str(caught.value.calls)))
    assert len(texts) == 2
