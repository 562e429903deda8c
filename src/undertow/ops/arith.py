"""Arithmetic on each element: numbers in, numbers of the same dtype out.

Integers wrap. Floor division and remainder are Python's: the remainder has the sign of the divisor. Floats follow
IEEE 754 and never fault. Kernels use Python's operators where there is one: on NumPy scalars those are ten times
as fast as the ufuncs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault
from undertow.ir.graph import Attrs
from undertow.ops.op import Op, Value
from undertow.ops.rules import ELEMENTS, FLOATS, NUMBERS, binary, check_kind, scalar, unary
from undertow.types import DTYPES, Type


def _has_zero(y: Any) -> bool:
    return not y if y.ndim == 0 else not y.all()


def _floor_divide(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and _has_zero(y):
        raise Fault("integer division by zero", hint="test the divisor first, or divide floats")
    return x // y


def _remainder(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and _has_zero(y):
        raise Fault("integer remainder of a division by zero", hint="test the divisor first, or use floats")
    return x % y


def _power(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and (y < 0 if y.ndim == 0 else (y < 0).any()):
        raise Fault("an integer to a negative integer power", hint="make the base a float: ut.astype(x, ut.f64)")
    return x**y


_math_erf = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Any) -> Any:
    return scalar(np.asarray(_math_erf(x), x.dtype))


def _cast_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("cast", types[0], ELEMENTS)
    return (types[0].with_dtype(DTYPES[attrs.text("dtype")]),)


def _cast(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x = values[0]
    to = DTYPES[attrs.text("dtype")].numpy
    if x.dtype.kind == "f" and to.kind == "i":
        # C leaves this open where the number does not fit; we saturate, and nan becomes 0.
        limits = np.iinfo(to)  # type: ignore[type-var]
        above, below = x >= -float(limits.min), x < float(limits.min)
        whole = np.where(above | below | np.isnan(x), 0, x).astype(to)
        return (scalar(np.where(above, limits.max, np.where(below, limits.min, whole)).astype(to)),)
    return (x.astype(to),)


def _float(name: str, doc: str, function: Any = None) -> Op:
    return unary(name, function or getattr(np, name), FLOATS, doc)


ROWS: tuple[Op, ...] = (
    binary("add", operator.add, NUMBERS, "x + y"),
    binary("subtract", operator.sub, NUMBERS, "x - y"),
    binary("multiply", operator.mul, NUMBERS, "x * y"),
    binary("divide", operator.truediv, FLOATS, "x / y"),
    binary("floor_divide", _floor_divide, NUMBERS, "x // y, rounded down; an integer y must not be 0", faults=True),
    binary("remainder", _remainder, NUMBERS, "x % y, with the sign of y; an integer y must not be 0", faults=True),
    binary("power", _power, NUMBERS, "x ** y; an integer y must not be negative", faults=True),
    binary("atan2", np.arctan2, FLOATS, "the angle of the point (x, y); operands: y, x"),
    binary("minimum", np.minimum, NUMBERS, "the smaller of x and y; nan if either is"),
    binary("maximum", np.maximum, NUMBERS, "the larger of x and y; nan if either is"),
    unary("negative", operator.neg, NUMBERS, "-x"),
    unary("abs", operator.abs, NUMBERS, "x without its sign"),
    unary("sign", np.sign, NUMBERS, "-1, 0 or 1; nan of nan"),
    unary("square", lambda x: x * x, NUMBERS, "x * x"),
    _float("reciprocal", "1 / x"),
    _float("floor", "the largest whole number not above x"),
    _float("ceil", "the smallest whole number not below x"),
    _float("trunc", "x without its fraction"),
    _float("round", "the nearest whole number; halves go to the even one", np.rint),
    _float("sqrt", "the square root"),
    _float("exp", "e ** x"),
    _float("exp2", "2 ** x"),
    _float("expm1", "exp(x) - 1, exact near 0"),
    _float("log", "the natural logarithm"),
    _float("log2", "the logarithm to base 2"),
    _float("log10", "the logarithm to base 10"),
    _float("log1p", "log(1 + x), exact near 0"),
    _float("sin", "the sine"),
    _float("cos", "the cosine"),
    _float("tan", "the tangent"),
    _float("asin", "the inverse sine", np.arcsin),
    _float("acos", "the inverse cosine", np.arccos),
    _float("atan", "the inverse tangent", np.arctan),
    _float("sinh", "the hyperbolic sine"),
    _float("cosh", "the hyperbolic cosine"),
    _float("tanh", "the hyperbolic tangent"),
    _float("asinh", "the inverse hyperbolic sine", np.arcsinh),
    _float("acosh", "the inverse hyperbolic cosine", np.arccosh),
    _float("atanh", "the inverse hyperbolic tangent", np.arctanh),
    _float("erf", "the error function", _erf),
    Op(
        "cast",
        1,
        _cast_rule,
        _cast,
        "x as `dtype`; floats lose their fraction, those that do not fit saturate, nan becomes 0; integers wrap",
    ),
)
