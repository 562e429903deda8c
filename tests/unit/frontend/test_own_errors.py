"""Exceptions of the user's own classes, raised under conditions that are known only at run time."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from tests.support.engines import EVERY, forced

import undertow as ut


class Bad(Exception):
    pass


class TooDeep(ValueError):
    def __init__(self, n: Any, why: str = "no reason") -> None:
        super().__init__(f"depth {n}: {why}")
        self.n = n
        self.why = why


@ut.function
def search(n: ut.i64) -> ut.i64:
    if n > 100:
        raise Bad
    if n == 7:
        raise Bad("seven", n, 2.5)
    if n == 3:
        raise TooDeep(n * 2)
    if n == 2:
        raise TooDeep(n, why="two")
    if n <= 0:
        return 0
    return search(n - 5) + 1


def raised(n: int, **options: Any) -> Exception:
    with pytest.raises(Exception) as info:
        search.run(n, **options)
    return info.value


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("n", [101, 12, 13, 2])
def test_it_arrives_as_that_error(n: int, engine: str) -> None:
    with forced():
        error, expected = raised(n, engine=engine), raised(n, engine="python")
    assert type(error) is type(expected)
    assert error.args == expected.args
    assert vars(error) == vars(expected)
    cause = error.__cause__
    assert isinstance(cause, ut.Raised)
    assert len(cause.calls) == (1 if n in (101, 2) else 2 if n == 12 else 3)


@ut.function
def fussy(n: ut.i64, x: ut.f64, v: ut.i64[2]) -> ut.i64:
    if n == 0:
        raise ValueError(n)
    if n == 1:
        raise KeyError("x", n, x > 1)
    if n == 2:
        raise IndexError((n, x))
    if n == 3:
        raise ValueError
    if n == 4:
        raise TooDeep(n, why="v")
    if n == 5:
        raise ValueError(v)
    raise ValueError(f"{n} {x} {v}")


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("n", range(7))
def test_arguments_are_those_of_python(n: int, engine: str) -> None:
    arguments = n, 1.5, np.array([1, 2])
    with forced(), pytest.raises(Exception) as info:
        fussy.run(*arguments, engine=engine)
    with pytest.raises(Exception) as expected:
        fussy.run(*arguments, engine="python")
    assert repr(info.value.args) == repr(expected.value.args)
    assert repr(pickle.loads(pickle.dumps(info.value.args))) == repr(expected.value.args)
    if n != 4:
        assert isinstance(info.value, ut.Fault)
        assert isinstance(info.value, type(expected.value))
        assert repr(pickle.loads(pickle.dumps(info.value)).args) == repr(expected.value.args)


class Coded(Exception):
    def __init__(self, text: Any, code: Any) -> None:
        super().__init__(text)
        self.code = code


@ut.function
def told(n: ut.i64) -> ut.i64:
    if n == 1:
        raise Bad(f"item {n} of {n / 2:.2f}")
    if n == 2:
        raise Bad("item " + str(n), n, f"{n:3d}")
    if n == 3:
        raise Coded(f"item {n}", n)
    return told(n - 3)


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("n", [1, 5, 6])
def test_texts_of_own_errors_are_filled_in(n: int, engine: str) -> None:
    with forced(), pytest.raises(Exception) as info:
        told.run(n, engine=engine)
    with pytest.raises(Exception) as expected:
        told.run(n, engine="python")
    assert type(info.value) is type(expected.value)
    assert info.value.args == expected.value.args
    assert str(info.value) == str(expected.value)
    assert vars(info.value) == vars(expected.value)


def test_values_of_arrays_are_filled_in() -> None:
    @ut.function
    def total(xs: ut.f64[None]) -> ut.f64:
        t = 0.0
        for x in xs:
            if x < 0:
                raise Bad(x, [xs, "all"])
            t += x
        return t

    with pytest.raises(Bad) as info:
        total(np.array([1.0, -7.0, 3.0]))
    assert info.value.args[0] == -7.0
    np.testing.assert_array_equal(info.value.args[1][0], [1.0, -7.0, 3.0])


def test_map_raises_the_first() -> None:
    with pytest.raises(TooDeep, match="depth 6"):
        search.map(np.array([1, 3, 7]))


def test_elsewhere_the_class_of_python_arrives() -> None:
    """A process that has only the graph does not have the class."""
    fault = raised(13).__cause__
    again = pickle.loads(pickle.dumps(fault))
    assert isinstance(again, ValueError)
    assert again.raised == fault.raised


@pytest.mark.parametrize(("kind", "call"), [
    (ValueError, lambda: int("a")), (ValueError, lambda: [1, 2].index(3)), (OverflowError, lambda: int(float("inf"))),
    (TypeError, lambda: len(3)), (AttributeError, lambda: "text".no_method()),
])  # fmt: skip
def test_what_python_raises_for_values_known_at_capture_is_caught(kind: type[Exception], call: Any) -> None:
    def tried(n: int) -> int:
        try:
            k = call()
        except kind as error:
            return n + len(error.args)
        return k

    assert ut.function(tried)(3) == tried(3)
