"""Constants and traced values follow one set of rules: dtypes, values and faults do not depend on who is traced."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut

DTYPES: dict[str, Any] = {"bool": np.bool_, "i32": np.int32, "i64": np.int64, "f32": np.float32, "f64": np.float64}
Two = Callable[[Any, Any], Any]

# Each stands on a line of its own, where capture finds its source.
OPERATORS: dict[str, tuple[Two, ...]] = {
    "add": (
        lambda x, y: x + y,
        lambda x, y: ut.add(x, y),
        lambda x, y: np.add(x, y),
    ),
    "subtract": (
        lambda x, y: x - y,
        lambda x, y: ut.subtract(x, y),
        lambda x, y: np.subtract(x, y),
    ),
    "multiply": (
        lambda x, y: x * y,
        lambda x, y: ut.multiply(x, y),
        lambda x, y: np.multiply(x, y),
    ),
    "divide": (
        lambda x, y: x / y,
        lambda x, y: ut.divide(x, y),
        lambda x, y: np.divide(x, y),
    ),
    "floor_divide": (
        lambda x, y: x // y,
        lambda x, y: ut.floor_divide(x, y),
        lambda x, y: np.floor_divide(x, y),
    ),
    "remainder": (
        lambda x, y: x % y,
        lambda x, y: divmod(x, y)[1],
        lambda x, y: np.remainder(x, y),
    ),
    "pow": (
        lambda x, y: x**y,
        lambda x, y: pow(x, y),
        lambda x, y: np.power(x, y),
    ),
    "less": (
        lambda x, y: x < y,
        lambda x, y: ut.less(x, y),
        lambda x, y: np.less(x, y),
    ),
    "equal": (
        lambda x, y: x == y,
        lambda x, y: ut.equal(x, y),
        lambda x, y: np.equal(x, y),
    ),
    "maximum": (
        lambda x, y: ut.maximum(x, y),
        lambda x, y: np.maximum(x, y),
    ),
    "where": (lambda x, y: ut.where(True, x, y),),
    "bitwise_and": (
        lambda x, y: x & y,
        lambda x, y: ut.bitwise_and(x, y),
        lambda x, y: np.bitwise_and(x, y),
    ),
    "shift": (
        lambda x, y: x << y,
        lambda x, y: ut.bitwise_left_shift(x, y),
        lambda x, y: np.left_shift(x, y),
    ),
    "negative": (
        lambda x, y: -x,
        lambda x, y: ut.negative(x),
        lambda x, y: np.negative(x),
    ),
    "invert": (
        lambda x, y: ~x,
        lambda x, y: ut.bitwise_invert(x),
    ),
}


def outcome(work: Callable[[], Any]) -> Any:
    """The dtype and the bits of a result, or the kind of error."""
    try:
        value = np.asarray(work())
    except ut.RunError as error:
        return "fault", str(error).partition("\n")[0]
    except ut.UndertowError as error:
        return "refused", type(error).__name__
    return value.dtype.name, value.shape, value.tobytes() if not np.isnan(value).any() else "nan"


def outcomes(operator: Two, a: Any, b: Any) -> list[Any]:
    """With both operands traced, one of them, and none."""

    @ut.function
    def both(x: Any, y: Any) -> Any:
        return operator(x, y)

    @ut.function
    def left(x: Any) -> Any:
        return operator(x, b)

    @ut.function
    def right(y: Any) -> Any:
        return operator(a, y)

    @ut.function
    def none() -> Any:
        return operator(a, b)

    runs = (lambda: both(a, b), lambda: left(a), lambda: right(b), lambda: none())
    return [outcome(run) for run in runs]


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATORS)
def test_scalars(name: str) -> None:
    for (first, second), (m, n) in itertools.product(itertools.product(DTYPES, repeat=2), ((-7, 2), (16777217, 0))):
        if "bool" in (first, second) and (first == second or name in ("negative", "invert")):
            continue  # Python's operators on single booleans give integers, NumPy's functions give booleans
        a, b = DTYPES[first](m), DTYPES[second](n)
        wanted: Any = None
        for operator in OPERATORS[name]:
            found = outcomes(operator, a, b)
            wanted = wanted or found[0]
            assert found == [wanted] * 4, (name, first, second, m, n)


@pytest.mark.parametrize("name", ["add", "divide", "floor_divide", "less"])
def test_arrays(name: str) -> None:
    for first, second in itertools.product(("i32", "i64", "f32"), repeat=2):
        a, b = np.array([-7, 5, 2**24 + 1], DTYPES[first]), np.array([2, 3, 5], DTYPES[second])
        for operator in OPERATORS[name]:
            found = outcomes(operator, a, b)
            assert found == [found[0]] * 4, (name, first, second)


def test_numbers_beside_constants_are_weak() -> None:
    half, three = np.float32(0.5), np.int32(3)

    @ut.function
    def f(x: ut.i64) -> Any:
        return half * 2, three + 1, three * 0.5, half * three, half * np.int64(3), -three, three < 2.5

    kinds = [np.asarray(value).dtype.name for value in f(1)]
    assert kinds == ["float32", "int32", "float64", "float32", "float32", "int32", "bool"]


def test_a_fault_of_constants_belongs_to_its_branch() -> None:
    seven, zero = np.int32(7), np.int32(0)

    @ut.function
    def f(n: ut.i64) -> ut.i32:
        if n > 0:
            return seven // zero
        return seven

    assert f(0) == 7
    with pytest.raises(ut.Fault, match="division by zero"):
        f(1)


def test_other_dtypes_and_plain_numbers_are_left_to_python() -> None:
    small, words = np.uint8(250), np.array(["a", "b"])

    @ut.function
    def f(n: ut.i64) -> Any:
        return n + int(small + np.uint8(3)) + len(words == "a") + 7 // 2

    assert f(1) == 1 + 253 + 2 + 3


def test_eager_functions_raise_at_once() -> None:
    with pytest.raises(ut.Fault):
        ut.floor_divide(np.int32(7), np.int32(0))


EDGES = [0.0, -0.0, float("nan"), 1.0, -1.0, float("inf")]


@pytest.mark.parametrize("pick", [max, min])
def test_max_and_min_of_python_are_those_of_python(pick: Any) -> None:
    @ut.function
    def two(x: ut.f64, y: ut.f64) -> ut.f64:
        return pick(x, y)

    @ut.function
    def three(x: ut.f64, y: ut.f64, z: ut.f64) -> ut.f64:
        return pick([x, y, z])

    for x, y in itertools.product(EDGES, repeat=2):
        assert str(two(x, y)) == str(np.float64(pick(x, y))), (x, y)
        assert str(three(x, y, 0.0)) == str(np.float64(pick(x, y, 0.0))), (x, y)


def test_numbers_that_are_chosen_stay_weak() -> None:
    @ut.function
    def f(y: ut.f32, j: ut.i32, p: ut.bool) -> Any:
        half = 0.5 if p else 1.5
        count = 1
        if p:
            count = 2
        return y * half, y + count, j * count, j * half, (count + 1) * j, -half * y, count / 2, count

    @ut.function
    def declared(p: ut.bool) -> ut.f32:
        return 0.5 if p else 1.5

    for is_first in (True, False):
        found = f(np.float32(3), np.int32(3), is_first)
        half, count = (0.5, 2) if is_first else (1.5, 1)
        y, j = np.float32(3), np.int32(3)
        wanted = (y * half, y + count, j * count, j * half, (count + 1) * j, -half * y, count / 2, count)
        assert [np.asarray(v).dtype for v in found] == [np.asarray(v).dtype for v in wanted]
        assert found == wanted
        assert declared(is_first) == np.float32(half)
