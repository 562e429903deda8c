"""Functions of Python's `math` on traced numbers that are no single operator: compositions, and tables of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions import numpy_numbers as rarer
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.numpy_ufuncs import hypot
from undertow.frontend.values.operands import as_operand, convert, floats, integers
from undertow.frontend.values.traced import Traced, effect
from undertow.types import bool_, f64, i64, said

_FACTORIALS = np.array([math.factorial(n) for n in range(21)])  # all that an i64 holds
_MOST_CHOSEN = 66  # likewise: all of this row of Pascal's triangle
_COMBINATIONS = np.array([math.comb(n, k) for n in range(_MOST_CHOSEN + 1) for k in range(_MOST_CHOSEN + 1)])
_MOST_ROOT = 3037000499  # the root of the largest i64


def _require(condition: Any, message: str, error: str = "ValueError") -> None:
    effect("raise", [as_operand(condition)], template=message, error=error)


def _whole(x: Any, name: str) -> Any:
    return convert(integers(x, f"what math.{name} takes"), i64)


def factorial(n: Any) -> Any:
    value = _whole(n, "factorial")
    _require(functions.greater_equal(value, 0), "factorial() not defined for negative values")
    _require(functions.less_equal(value, 20), "the factorial of a number above 20 does not fit in i64", "OverflowError")
    return functions.take(_FACTORIALS, value, axis=0)


def perm(n: Any, k: Any = None) -> Any:
    total = _whole(n, "perm")
    if k is None:
        return factorial(total)
    some = _whole(k, "perm")
    for value, what in ((total, "n"), (some, "k")):
        _require(functions.greater_equal(value, 0), f"{what} must be a non-negative integer")
    _require(functions.less_equal(total, 20), "math.perm of more than 20 may not fit in i64", "OverflowError")
    rest = functions.maximum(functions.subtract(total, some), 0)
    ways = functions.floor_divide(functions.take(_FACTORIALS, total, axis=0), functions.take(_FACTORIALS, rest, axis=0))
    return functions.where(functions.greater(some, total), 0, ways)


def comb(n: Any, k: Any) -> Any:
    total, some = _whole(n, "comb"), _whole(k, "comb")
    for value, what in ((total, "n"), (some, "k")):
        _require(functions.greater_equal(value, 0), f"{what} must be a non-negative integer")
    most = f"math.comb of more than {_MOST_CHOSEN} may not fit in i64"
    _require(functions.less_equal(total, _MOST_CHOSEN), most, "OverflowError")
    place = functions.add(functions.multiply(total, _MOST_CHOSEN + 1), functions.minimum(some, _MOST_CHOSEN))
    return functions.where(functions.greater(some, total), 0, functions.take(_COMBINATIONS, place, axis=0))


def isqrt(n: Any) -> Any:
    value = _whole(n, "isqrt")
    _require(functions.greater_equal(value, 0), "isqrt() argument must be nonnegative")
    root = functions.astype(functions.sqrt(functions.astype(value, np.float64)), np.int64)
    root = functions.minimum(root, _MOST_ROOT)
    root = functions.where(functions.greater(functions.square(root), value), functions.subtract(root, 1), root)
    more = functions.minimum(functions.add(root, 1), _MOST_ROOT)
    return functions.where(functions.less_equal(functions.square(more), value), more, root)


def log(x: Any, base: Any = None) -> Any:
    if base is None:
        return functions.log(x)
    _require(functions.logical_not(functions.less_equal(base, 0)), "math domain error")
    return functions.divide(functions.log(x), functions.log(base))


def dist(p: Any, q: Any) -> Any:
    if not all(isinstance(x, (list, tuple)) for x in (p, q)) or len(p) != len(q):
        raise CaptureError(
            "math.dist takes two lists or tuples of one length", hint="np.linalg.norm(p - q) takes arrays"
        )
    return hypot(*(functions.subtract(a, b) for a, b in zip(p, q, strict=True)))


def prod(values: Any, *, start: Any = 1) -> Any:
    if isinstance(values, Traced):
        if not values.type.rank:
            raise TypeMismatch(
                f"math.prod() takes an array or a list, not {said(values.type)}", hint="use the number itself"
            )
        if values.type.shape[0] == 0:
            return start
        dtype = None if values.dtype == bool_ else values.dtype
        return functions.multiply(start, functions.prod(values, axis=0, dtype=dtype))
    for value in values:
        start = start * value
    return start


def gcd(*given: Any) -> Any:
    return _folded(functions.gcd, given, 0)


def lcm(*given: Any) -> Any:
    return _folded(rarer.least_multiple, given, 1)


def _folded(function: Callable[..., Any], given: tuple[Any, ...], start: int) -> Any:
    found: Any = start
    for value in given:
        found = function(found, _whole(value, function.__name__))
    return found


def frexp(x: Any) -> tuple[Any, Any]:
    part, power = rarer.fraction_and_power(convert(as_operand(x), f64))
    return part, convert(power, i64)


def isclose(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    x, y = floats(a, b)
    apart = functions.abs(functions.subtract(x, y))
    larger = functions.maximum(functions.abs(x), functions.abs(y))
    bound = functions.maximum(functions.multiply(rel_tol, larger), abs_tol)
    finite = functions.logical_and(functions.isfinite(x), functions.isfinite(y))
    near = functions.logical_and(finite, functions.less_equal(apart, bound))
    return functions.logical_or(functions.equal(x, y), near)


def degrees(x: Any) -> Any:
    return functions.multiply(x, 180.0 / math.pi)


def radians(x: Any) -> Any:
    return functions.multiply(x, math.pi / 180.0)


# What computes with Python's floats, and the others.
IN_FLOATS: dict[str, Callable[..., Any]] = {
    "log": log, "degrees": degrees, "radians": radians, "hypot": hypot, "modf": rarer.parts_of,
    "fmod": lambda x, y: rarer.remainder_of_c(*floats(x, y)), "remainder": rarer.nearest_remainder,
    "ulp": rarer.last_place,
    "exp2": functions.exp2, "asinh": functions.asinh, "acosh": functions.acosh, "atanh": functions.atanh,
}  # fmt: skip
OTHERS: dict[str, Callable[..., Any]] = {
    "factorial": factorial, "perm": perm, "comb": comb, "isqrt": isqrt, "isclose": isclose, "dist": dist,
    "gcd": gcd, "lcm": lcm, "frexp": frexp, "ldexp": rarer.scaled_by_power,
}  # fmt: skip
