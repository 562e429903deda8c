"""Functions of each element: arithmetic, and the usual functions of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.values import tree
from undertow.frontend.values.operands import (
    as_number,
    as_operand,
    convert,
    floats,
    is_weak,
    numbers,
    type_of,
)
from undertow.frontend.values.traced import Traced, emit
from undertow.types import dtype_of

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "astype",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "divide",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_divide",
    "log",
    "log1p",
    "log2",
    "log10",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "positive",
    "pow",
    "reciprocal",
    "relu",
    "remainder",
    "round",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softplus",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "trunc",
]  # fmt: skip


def _one(op: str, operands: list[Any]) -> Any:
    return emit(op, operands)[0]


# -- arithmetic --------------------------------------------------------------------------------------------


def add(x: Any, y: Any, /) -> Any:
    """`x + y`; integers wrap, booleans count as 0 and 1.

    >>> add([1, 2], 0.5)
    array([1.5, 2.5])
    """
    return _one("add", numbers(x, y))


def subtract(x: Any, y: Any, /) -> Any:
    """`x - y`."""
    return _one("subtract", numbers(x, y))


def multiply(x: Any, y: Any, /) -> Any:
    """`x * y`."""
    return _one("multiply", numbers(x, y))


def divide(x: Any, y: Any, /) -> Any:
    """`x / y`; of integers, a f64.

    >>> divide([1, 2], 2)
    array([0.5, 1. ])
    """
    return _one("divide", floats(x, y))


def floor_divide(x: Any, y: Any, /) -> Any:
    """`x // y`, rounded down as in Python; an integer divided by 0 is a fault.

    >>> floor_divide(-7, [2, -2])
    array([-4,  3])
    """
    return _one("floor_divide", numbers(x, y))


def remainder(x: Any, y: Any, /) -> Any:
    """`x % y`, with the sign of y as in Python; of an integer by 0, a fault.

    >>> remainder(-7, [2, -2])
    array([ 1, -1])
    """
    return _one("remainder", numbers(x, y))


def pow(x: Any, y: Any, /) -> Any:
    """`x ** y`; an integer to a negative integer power is a fault.

    >>> pow(2, [3, 10])
    array([   8, 1024])
    """
    base, exponent = numbers(x, y)
    if isinstance(exponent, Traced):
        return _one("power", [base, exponent])
    if type_of(exponent).dtype.kind == "int" and np.any(exponent < 0):
        raise TypeMismatch(
            f"an integer to the power of {y}", hint="make the base a float, as in 2.0 ** n or ut.astype(x, ut.f64) ** n"
        )
    # The exponent of a square is so common, and squaring so much cheaper, that it has a row.
    return _one("square", [base]) if is_weak(y) and y == 2 else _one("power", [base, exponent])


def negative(x: Any, /) -> Any:
    """-x."""
    return _one("negative", numbers(x))


def stop_gradient(x: Any, /) -> Any:
    """The same value, or container of values, taken for a constant by derivatives."""
    leaves, structure = tree.flatten(x, lambda value: isinstance(value, Traced))
    return tree.unflatten(structure, [_one("stop_gradient", [as_operand(leaf)]) for leaf in leaves])


def positive(x: Any, /) -> Any:
    """+x: x itself, booleans as integers."""
    return as_number(x)


def abs(x: Any, /) -> Any:
    """The absolute value."""
    return _one("abs", numbers(x))


def sign(x: Any, /) -> Any:
    """-1, 0 or 1."""
    return _one("sign", numbers(x))


def square(x: Any, /) -> Any:
    """`x * x`."""
    return _one("square", numbers(x))


def minimum(x: Any, y: Any, /) -> Any:
    """The smaller of x and y, for each element; nan if either is."""
    return _one("minimum", numbers(x, y))


def maximum(x: Any, y: Any, /) -> Any:
    """The larger of x and y, for each element; nan if either is.

    >>> maximum([1.0, 5.0], 3)
    array([3., 5.])
    """
    return _one("maximum", numbers(x, y))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Not below min, and not above max.

    >>> clip([-1, 5, 99], 0, 10)
    array([ 0,  5, 10])
    """
    out = positive(x)
    if min is not None:
        out = maximum(out, min)
    return out if max is None else minimum(out, max)


def _whole(op: str, x: Any) -> Any:
    value = as_number(x)
    return value if type_of(value).dtype.kind == "int" else _one(op, [value])


def round(x: Any, /, decimals: int = 0) -> Any:
    """The nearest number with so many decimals, halves to the even one; integers stay as they are.

    >>> round([0.5, 1.5, -2.7])
    array([ 0.,  2., -3.])
    """
    value = as_number(x)
    if type_of(value).dtype.kind == "int" or decimals == 0:
        return _whole("round", value)
    scale = 10.0**decimals
    return divide(_whole("round", multiply(value, scale)), scale)


def floor(x: Any, /) -> Any:
    """The largest whole number not above x."""
    return _whole("floor", x)


def ceil(x: Any, /) -> Any:
    """The smallest whole number not below x."""
    return _whole("ceil", x)


def trunc(x: Any, /) -> Any:
    """The whole part, without the fraction."""
    return _whole("trunc", x)


# -- functions of floats; integers become f64 --------------------------------------------------------------


def sqrt(x: Any, /) -> Any:
    """The square root.

    >>> sqrt([4, 9])
    array([2., 3.])
    """
    return _one("sqrt", floats(x))


def reciprocal(x: Any, /) -> Any:
    """1 / x."""
    return _one("reciprocal", floats(x))


def exp(x: Any, /) -> Any:
    """`e ** x`."""
    return _one("exp", floats(x))


def exp2(x: Any, /) -> Any:
    """2 ** x."""
    return _one("exp2", floats(x))


def expm1(x: Any, /) -> Any:
    """exp(x) - 1, exact near 0."""
    return _one("expm1", floats(x))


def log(x: Any, /) -> Any:
    """The natural logarithm."""
    return _one("log", floats(x))


def log2(x: Any, /) -> Any:
    """The logarithm to base 2."""
    return _one("log2", floats(x))


def log10(x: Any, /) -> Any:
    """The logarithm to base 10."""
    return _one("log10", floats(x))


def log1p(x: Any, /) -> Any:
    """log(1 + x), exact near 0."""
    return _one("log1p", floats(x))


def sin(x: Any, /) -> Any:
    """The sine."""
    return _one("sin", floats(x))


def cos(x: Any, /) -> Any:
    """The cosine."""
    return _one("cos", floats(x))


def tan(x: Any, /) -> Any:
    """The tangent."""
    return _one("tan", floats(x))


def asin(x: Any, /) -> Any:
    """The inverse sine."""
    return _one("asin", floats(x))


def acos(x: Any, /) -> Any:
    """The inverse cosine."""
    return _one("acos", floats(x))


def atan(x: Any, /) -> Any:
    """The inverse tangent."""
    return _one("atan", floats(x))


def atan2(y: Any, x: Any, /) -> Any:
    """The angle of the point (x, y)."""
    return _one("atan2", floats(y, x))


def sinh(x: Any, /) -> Any:
    """The hyperbolic sine."""
    return _one("sinh", floats(x))


def cosh(x: Any, /) -> Any:
    """The hyperbolic cosine."""
    return _one("cosh", floats(x))


def tanh(x: Any, /) -> Any:
    """The hyperbolic tangent."""
    return _one("tanh", floats(x))


def asinh(x: Any, /) -> Any:
    """The inverse hyperbolic sine."""
    return _one("asinh", floats(x))


def acosh(x: Any, /) -> Any:
    """The inverse hyperbolic cosine."""
    return _one("acosh", floats(x))


def atanh(x: Any, /) -> Any:
    """The inverse hyperbolic tangent."""
    return _one("atanh", floats(x))


def erf(x: Any, /) -> Any:
    """The error function."""
    return _one("erf", floats(x))


def sigmoid(x: Any, /) -> Any:
    """1 / (1 + exp(-x)).

    >>> sigmoid(0.0)
    np.float64(0.5)
    """
    return _one("sigmoid", floats(x))


def softplus(x: Any, /) -> Any:
    """log(1 + exp(x)), without overflow."""
    return _one("softplus", floats(x))


def relu(x: Any, /) -> Any:
    """Positive elements as they are, else 0.

    >>> relu([-1.0, 2.0])
    array([0., 2.])
    """
    return _one("relu", numbers(x))


def astype(x: Any, dtype: Any, /) -> Any:
    """Converted to another dtype. Floats lose their fraction and saturate, nan becomes 0; integers wrap.

    >>> astype([1.9, -1.9, 1e99], "i32")
    array([         1,         -1, 2147483647], dtype=int32)
    """
    return convert(as_operand(x), dtype_of(dtype))
