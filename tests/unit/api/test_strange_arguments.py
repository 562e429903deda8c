"""Arguments of all kinds: what NumPy computes with them, or an error of ours that says what to pass instead."""

from __future__ import annotations

import array
import collections
import enum
import types
import warnings
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import undertow as ut


class Tensor:
    """An array of another library."""

    def __init__(self, values: Any) -> None:
        self.values = np.asarray(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.values, dtype)


class Plain(np.ndarray):
    pass


class Colour(enum.IntEnum):
    RED = 1


def read_only() -> Any:
    values = np.ones(3)
    values.flags.writeable = False
    return values


SMALL = ("f2", "i1", "i2", "u1", "u2", "u4", "u8")
THREE = [1.0, 2.0, 3.0]
VALUES: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "huge": lambda: 10**400,
    "too large": lambda: 2**63,
    "too small": lambda: -(2**63) - 1,
    "nan": lambda: float("nan"),
    "text": lambda: "nan",
    "bytes": lambda: b"abc",
    "bytearray": lambda: bytearray(b"abc"),
    "memoryview": lambda: memoryview(np.ones(3)),
    "array.array": lambda: array.array("d", THREE),
    "decimal": lambda: Decimal("1.5"),
    "fraction": lambda: Fraction(1, 3),
    "complex": lambda: 1j,
    "complex scalar": lambda: np.complex64(1j),
    "date": lambda: np.datetime64("2020-01-01"),
    "duration": lambda: np.timedelta64(3, "s"),
    "no axes": lambda: np.array(3.0),
    "subclass": lambda: np.ones(3).view(Plain),
    "masked": lambda: np.ma.masked_array(THREE, [False, True, False]),
    "record": lambda: np.zeros(3, [("a", "f4"), ("b", "i4")])[0],
    "records": lambda: np.zeros(3, [("a", "f4"), ("b", "i4")]),
    "strided": lambda: np.arange(6.0)[::2],
    "reversed": lambda: np.arange(3)[::-1],
    "by columns": lambda: np.asfortranarray(np.ones((2, 3))),
    "big-endian f8": lambda: np.array(THREE, ">f8"),
    "big-endian f4": lambda: np.array(THREE, ">f4"),
    "big-endian i4": lambda: np.array(THREE, ">i4"),
    "read-only": read_only,
    "strings": lambda: np.array(["a", "b"]),
    "objects": lambda: np.array([1, "a", None], object),
    "numbers as objects": lambda: np.array([1, 2], object),
    "complexes": lambda: np.ones(3, complex),
    "dates": lambda: np.array(["2020", "2021"], "M8[Y]"),
    **{f"{name} scalar": lambda name=name: np.dtype(name).type(3) for name in SMALL},
    **{f"{name} array": lambda name=name: np.array([1, 2, 3], name) for name in SMALL},
    "long double": lambda: np.ones(3, np.longdouble),
    "large u8": lambda: np.array([2**63], np.uint64),
    "ragged": lambda: [[1, 2], [3]],
    "ragged arrays": lambda: [np.ones(2), np.ones(3)],
    "empty": list,
    "mixed": lambda: [1, 2.5, True],
    "with none": lambda: [1, None],
    "large in a list": lambda: [1, 10**30],
    "a set": lambda: {1, 2},
    "a range": lambda: range(3),
    "a generator": lambda: (i for i in range(3)),
    "a deque": lambda: collections.deque([1, 2]),
    "a tensor": lambda: Tensor(THREE),
    "a scalar tensor": lambda: Tensor(1.0),
    "an enum": lambda: Colour.RED,
    "an object": object,
    "a function": lambda: len,
    "a type": lambda: int,
}  # fmt: skip
NOTES = [None, ut.f32, ut.f64, ut.i32, ut.i64, ut.bool, int, float, ut.f32[None], ut.f64[None], ut.i64[None]]


def take(x: Any) -> Any:
    return x


def twice(x: Any) -> Any:
    return x * 2


def outcome(function: Callable[..., Any], value: Any) -> Any:
    """What a function returns, or raises."""
    try:
        return function(value)
    except Exception as error:
        return error


def is_same(a: Any, b: Any) -> bool:
    return np.allclose(np.asarray(a, complex), np.asarray(b, complex), rtol=1e-6, equal_nan=True)


@pytest.mark.parametrize("note", NOTES, ids=str)
def test_arguments(note: Any) -> None:
    for name, make in VALUES.items():
        for python in (take, twice) if note is None else (take,):
            copied = types.FunctionType(python.__code__, python.__globals__, python.__name__)
            copied.__annotations__ = {} if note is None else {"x": note}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = outcome(ut.function(copied), make())
            if isinstance(found, Exception):
                assert isinstance(found, ut.UndertowError), name
                assert found.hint and not isinstance(found, ut.InternalError), name
            elif name != "a generator":  # is another one
                wanted = python(make())
                assert type(found) is type(wanted) or is_same(found, wanted), (name, found)


def test_constants_are_computed_without_warnings() -> None:
    @ut.function
    def f(x: ut.f64) -> Any:
        zero, large = np.zeros(2), np.float32(3e38)
        return x + np.exp(1000.0) + np.log(zero) + large * large + 1.0 / zero + np.float64(1.0) / np.float64(0.0)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(f(1.0)).all()


def test_small_dtypes_become_ours() -> None:
    @ut.function
    def f(x: ut.f32[None]) -> Any:
        return x * 2

    assert f(np.ones(3, np.float16)).dtype == np.float32
    assert f(np.ones(3, ">f4")).tolist() == [2.0, 2.0, 2.0]
    assert f(np.ones(4, np.float32)).tolist() == [2.0] * 4  # after them


@pytest.mark.parametrize(
    "call",
    [
        lambda: ut.zeros(np.array(3.0)),
        lambda: ut.zeros(np.timedelta64(3, "s")),
        lambda: ut.f32[np.timedelta64(3, "s")],
        lambda: ut.permute_dims(np.ones((2, 2)), None),
        lambda: ut.stack(np.ones(0)),
        lambda: ut.grad(twice, argnums=np.timedelta64(0, "s")),
        lambda: ut.jvp(twice, (1.0,), ([[1.0], [1.0, 2.0]],)),
        lambda: ut.jvp(twice, (1.0,), (10**400,)),
        lambda: ut.options(engine=memoryview(np.ones(3))),
        lambda: ut.options(frames=np.timedelta64(3, "s")),
        lambda: ut.options(simplify=None),
        lambda: ut.load(1),
    ],
)
def test_functions_refuse_in_our_words(call: Callable[[], Any]) -> None:
    with pytest.raises(ut.UndertowError) as caught:
        call()
    assert caught.value.hint


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("int8", "int32"),
        ("uint8", "int32"),
        ("int16", "int32"),
        ("uint16", "int32"),
        ("uint32", "int64"),
        ("float16", "float32"),
    ],
)
def test_narrow_dtypes_are_widened(narrow: str, wide: str) -> None:
    x = np.array([100], narrow)
    total = ut.function(lambda a, b: a + b + b)(x, x)
    assert total.dtype == wide and total[0] == 300
