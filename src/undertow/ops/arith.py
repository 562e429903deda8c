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
from undertow.ops.gradient import Applied, Cotangents, Slope, Tangents, the
from undertow.ops.op import Op, Value
from undertow.ops.rules import ELEMENTS, FLOATS, NUMBERS, binary, check_kind, scalar, unary
from undertow.ops.term import Term, apply, cast, equal, where
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


def _cast_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    (x,) = at.x
    return [cast(the(g), x.type.dtype) if x.type.dtype.kind == "float" else None]


def _cast_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    to = at.y[0].type.dtype
    return [cast(the(t), to) if to.kind == "float" else None]


# -- slopes: v times the partial derivative; x, y are the operands and z is the result ---------------------------


def _base_slope(v: Term, x: Term, y: Term, z: Term) -> Term:
    known = y.constant
    if known is not None and (known == 2).all():
        return v * (y * x)
    exponent = y - 1
    if known is None or not known.all():
        # 0 ** 0 is flat, but 0 * 0 ** -1 is nan.
        exponent = where(apply("logical_and", equal(x, 0), equal(y, 0)), 1, exponent)
    return v * (y * x**exponent)


def _exponent_slope(v: Term, x: Term, y: Term, z: Term) -> Term:
    known = x.constant
    if known is not None and (np.asarray(known, np.float64) > 0).all():
        return v * (apply("log", x) * z)
    positive = x > 0  # elsewhere there is no real logarithm; the inner `where` keeps nan out of its derivative
    return v * where(positive, apply("log", where(positive, x, 1)) * z, 0)


def _preferred(v: Term, x: Term, y: Term, op: str) -> Term:
    """All of v where `op` prefers x to y, half of it where they are equal."""
    return where(apply(op, x, y), v, where(equal(x, y), v * 0.5, 0))


def _sqrt(x: Term) -> Term:
    return apply("sqrt", x)


def _float(name: str, doc: str, slope: Slope | None, function: Any = None) -> Op:
    return unary(name, function or getattr(np, name), FLOATS, doc, (slope,))


_FLAT = (None,)  # piecewise constant: the derivative is zero wherever there is one

ROWS: tuple[Op, ...] = (
    binary("add", operator.add, NUMBERS, "x + y", (lambda v, x, y, z: v, lambda v, x, y, z: v)),
    binary("subtract", operator.sub, NUMBERS, "x - y", (lambda v, x, y, z: v, lambda v, x, y, z: -v)),
    binary("multiply", operator.mul, NUMBERS, "x * y", (lambda v, x, y, z: v * y, lambda v, x, y, z: v * x)),
    binary("divide", operator.truediv, FLOATS, "x / y", (lambda v, x, y, z: v / y, lambda v, x, y, z: -(v * z / y))),
    binary(
        "floor_divide",
        _floor_divide,
        NUMBERS,
        "x // y, rounded down; an integer y must not be 0",
        (None, None),
        faults=True,
    ),
    binary(
        "remainder",
        _remainder,
        NUMBERS,
        "x % y, with the sign of y; an integer y must not be 0",
        (lambda v, x, y, z: v, lambda v, x, y, z: -(v * apply("floor_divide", x, y))),
        faults=True,
    ),
    binary(
        "power",
        _power,
        NUMBERS,
        "x ** y; an integer y must not be negative; by y its derivative is 0 where x is not positive",
        (_base_slope, _exponent_slope),
        faults=True,
    ),
    binary(
        "atan2",
        np.arctan2,
        FLOATS,
        "the angle of the point (x, y); operands: y, x",
        (lambda v, y, x, z: v * (x / (x * x + y * y)), lambda v, y, x, z: -(v * (y / (x * x + y * y)))),
    ),
    binary(
        "minimum",
        np.minimum,
        NUMBERS,
        "the smaller of x and y; nan if either is; equal ones share the gradient",
        (lambda v, x, y, z: _preferred(v, x, y, "less"), lambda v, x, y, z: _preferred(v, y, x, "less")),
    ),
    binary(
        "maximum",
        np.maximum,
        NUMBERS,
        "the larger of x and y; nan if either is; equal ones share the gradient",
        (lambda v, x, y, z: _preferred(v, x, y, "greater"), lambda v, x, y, z: _preferred(v, y, x, "greater")),
    ),
    unary("negative", operator.neg, NUMBERS, "-x", (lambda v, x, z: -v,)),
    unary("abs", operator.abs, NUMBERS, "x without its sign; flat at 0", (lambda v, x, z: v * apply("sign", x),)),
    unary("sign", np.sign, NUMBERS, "-1, 0 or 1; nan of nan", _FLAT),
    unary("square", lambda x: x * x, NUMBERS, "x * x", (lambda v, x, z: v * (x * 2),)),
    _float("reciprocal", "1 / x", lambda v, x, z: -(v * z * z)),
    _float("floor", "the largest whole number not above x", None),
    _float("ceil", "the smallest whole number not below x", None),
    _float("trunc", "x without its fraction", None),
    _float("round", "the nearest whole number; halves go to the even one", None, np.rint),
    _float("sqrt", "the square root", lambda v, x, z: v * (0.5 / z)),
    _float("exp", "e ** x", lambda v, x, z: v * z),
    _float("exp2", "2 ** x", lambda v, x, z: v * (z * math.log(2))),
    _float("expm1", "exp(x) - 1, exact near 0", lambda v, x, z: v * (z + 1)),
    _float("log", "the natural logarithm", lambda v, x, z: v / x),
    _float("log2", "the logarithm to base 2", lambda v, x, z: v / (x * math.log(2))),
    _float("log10", "the logarithm to base 10", lambda v, x, z: v / (x * math.log(10))),
    _float("log1p", "log(1 + x), exact near 0", lambda v, x, z: v / (x + 1)),
    _float("sin", "the sine", lambda v, x, z: v * apply("cos", x)),
    _float("cos", "the cosine", lambda v, x, z: -(v * apply("sin", x))),
    _float("tan", "the tangent", lambda v, x, z: v * (z * z + 1)),
    _float("asin", "the inverse sine", lambda v, x, z: v / _sqrt(1 - x * x), np.arcsin),
    _float("acos", "the inverse cosine", lambda v, x, z: -(v / _sqrt(1 - x * x)), np.arccos),
    _float("atan", "the inverse tangent", lambda v, x, z: v / (x * x + 1), np.arctan),
    _float("sinh", "the hyperbolic sine", lambda v, x, z: v * apply("cosh", x)),
    _float("cosh", "the hyperbolic cosine", lambda v, x, z: v * apply("sinh", x)),
    _float("tanh", "the hyperbolic tangent", lambda v, x, z: v * (1 - z * z)),
    _float("asinh", "the inverse hyperbolic sine", lambda v, x, z: v / _sqrt(x * x + 1), np.arcsinh),
    _float("acosh", "the inverse hyperbolic cosine", lambda v, x, z: v / _sqrt((x - 1) * (x + 1)), np.arccosh),
    _float("atanh", "the inverse hyperbolic tangent", lambda v, x, z: v / (1 - x * x), np.arctanh),
    _float("erf", "the error function", lambda v, x, z: v * (apply("exp", -(x * x)) * (2 / math.sqrt(math.pi))), _erf),
    Op(
        "cast",
        1,
        _cast_rule,
        _cast,
        "x as `dtype`; floats lose their fraction, those that do not fit saturate, nan becomes 0; integers wrap",
        grad=_cast_grad,
        tangent=_cast_tangent,
    ),
)
