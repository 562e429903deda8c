"""`overflow="error"`: integers are Python's, or a fault, on every engine."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import undertow as ut

ENGINES = ("waves", "expand", "reference", "demand")
BOUNDS = {"i32": 31, "i64": 63}
PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x // y,
    "negative": lambda x, y: -x,
    "abs": lambda x, y: abs(x),
    "square": lambda x, y: x**2,
    "power": lambda x, y: x ** (y & 7),
    "shift": lambda x, y: x << (y & 31),
}


def fits(value: int, dtype: str) -> bool:
    return -(1 << BOUNDS[dtype]) <= value < 1 << BOUNDS[dtype]


def number(rng: random.Random, dtype: str) -> int:
    """A small one, or one near a power of two, where results just fit or do not."""
    width = BOUNDS[dtype]
    near = (1 << rng.randrange(width)) + rng.randrange(-2, 3)
    return max(-(1 << width), min(rng.choice((near, -near, rng.randrange(-9, 9))), (1 << width) - 1))


@pytest.mark.parametrize("dtype", BOUNDS)
@pytest.mark.parametrize("name", PYTHON)
def test_each_operator(name: str, dtype: str) -> None:
    kind, rng = {"i32": np.int32, "i64": np.int64}[dtype], random.Random(1)
    python, captured = PYTHON[name], ut.function(PYTHON[name])
    with ut.options(overflow="error"):
        for _ in range(60):
            x, y = number(rng, dtype), number(rng, dtype) or 1
            try:
                result: Any = int(captured(kind(x), kind(y)))
            except ut.Fault as fault:
                result = fault.what
            wanted = python(x, y)
            assert result == (wanted if fits(wanted, dtype) else f"an integer result does not fit in {dtype}"), (x, y)


@ut.function
def factorial(n: ut.i64) -> ut.i64:
    return 1 if n <= 1 else n * factorial(n - 1)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("simplify", [True, False])
def test_recursion(engine: str, simplify: bool) -> None:
    with ut.options(engine=engine, simplify=simplify, overflow="error"):
        assert factorial(20) == 2432902008176640000
        with pytest.raises(ut.Fault, match="does not fit in i64") as caught:
            factorial(21)
        assert caught.value.span is not None and caught.value.span.source().endswith("factorial(n - 1)")
    assert factorial.run(21, engine=engine, simplify=simplify) == -4249290049419214848


@ut.function
def arrays(x: ut.i64[None]) -> Any:
    return ut.sum(x), ut.prod(x), ut.cumsum(x, axis=0), x @ x


@pytest.mark.parametrize("engine", ENGINES)
def test_arrays(engine: str) -> None:
    with ut.options(engine=engine, overflow="error"):
        assert [np.asarray(v).tolist() for v in arrays(np.arange(1, 5))] == [10, 24, [1, 3, 6, 10], 30]
        for values in ([2**62, 2**62], [2**40, 2**40], [2**32, 0]):
            with pytest.raises(ut.Fault, match="does not fit in i64"):
                arrays(np.array(values))


@ut.function
def whole(x: ut.f64) -> ut.i64:
    return int(x)


@ut.function
def narrow(x: ut.f64) -> ut.i32:
    return ut.astype(x, ut.i32)


def test_casts() -> None:
    with ut.options(overflow="error"):
        assert [whole(x) for x in (-3.7, 0.0, 2.0**62, -(2.0**63))] == [-3, 0, 2**62, -(2**63)]
        for x in (2.0**63, -1e19, float("inf"), float("nan")):
            with pytest.raises(ut.Fault):
                whole(x)
        assert [narrow(x) for x in (2.0**31 - 0.5, -(2.0**31) - 0.5)] == [2**31 - 1, -(2**31)]
        for x in (2.0**31, -(2.0**31) - 1):
            with pytest.raises(ut.Fault):
                narrow(x)


def test_it_is_off_by_default() -> None:
    assert "within" not in str(factorial.graph(3))
    with ut.options(overflow="error"):
        assert "within" in str(factorial.graph(3))
    with pytest.raises(ut.UndertowError, match="unknown overflow 'raise'"):
        factorial.run(3, overflow="raise")
