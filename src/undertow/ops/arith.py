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

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.attributes import DTYPE
from undertow.ops.faults import by_negative, by_negative_slack, by_zero
from undertow.ops.gradient import Applied, Slope, single
from undertow.ops.op import Op, Value
from undertow.ops.rules import ELEMENTS, FLOATS, NUMBERS, REALS, binary, check_kind, scalar, unary, with_zeros
from undertow.ops.term import Term, apply, cast, equal, where
from undertow.types import DTYPES, INEXACT, DType, Type, i64


def _has_zero(y: Any) -> bool:
    return not y if y.ndim == 0 else not y.all()


def _floor_divide(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and _has_zero(y):
        raise Fault("integer division by zero", hint="test the divisor first, or divide floats", kind=ZeroDivisionError)
    return x // y


def _remainder(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and _has_zero(y):
        raise Fault("integer remainder by zero", hint="test the divisor first, or use floats", kind=ZeroDivisionError)
    return x % y


def _power(x: Any, y: Any) -> Any:
    if y.dtype.kind == "i" and (y < 0 if y.ndim == 0 else (y < 0).any()):
        raise Fault(
            "an integer cannot be raised to a negative integer power",
            hint="make the base a float: ut.astype(x, ut.f64)",
            kind=ValueError,
        )
    return x**y


def _within(x: Any, y: Any) -> Any:
    is_outside = y < 0 if y.ndim == 0 else (y < 0).any()
    if x.dtype.kind == "f":
        if is_outside:
            raise Fault(
                "a parameter of a random distribution is not valid",
                hint="scales and probabilities must not be negative, probabilities must add up to 1",
                kind=ValueError,
            )
        return scalar(np.where(np.True_, x, y))
    if is_outside:
        raise Fault(
            f"an integer result does not fit in {'i32' if x.dtype == np.int32 else 'i64'}",
            hint='use floats or a wider dtype; with overflow="wrap", the default, integers wrap around',
        )
    return x + np.zeros_like(y)


def _minimum(x: Any, y: Any) -> Any:
    out = np.minimum(x, y)
    # NumPy leaves open which of two zeros it gives. The sum of both is the larger one.
    return with_zeros(out, (x == 0) & (y == 0), lambda: -(-x - y)) if out.dtype.kind == "f" else out


def _maximum(x: Any, y: Any) -> Any:
    out = np.maximum(x, y)
    return with_zeros(out, (x == 0) & (y == 0), lambda: x + y) if out.dtype.kind == "f" else out


def _to_integer(x: Any, again: Any) -> Any:
    if np.isnan(again).any():
        raise Fault("nan cannot be converted to an integer", hint="test it first: math.isnan(x)", kind=ValueError)
    if not ((again >= -(2.0**63)) & (again < 2.0**63)).all():
        raise Fault(
            "a float is too large for an integer of 64 bits",
            hint="use ut.floor, ut.ceil or ut.trunc, which give floats",
            kind=OverflowError,
        )
    return _whole(x, np.dtype(np.int64))


_python_round = np.frompyfunc(lambda x, digits: round(float(x), int(digits)), 2, 1)


def _round_decimal(x: Any, digits: Any) -> Any:
    return scalar(np.asarray(_python_round(x, np.where(digits <= 400, np.maximum(digits, -400), 400)), x.dtype))


_math_erf = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Any) -> Any:
    return scalar(np.asarray(_math_erf(x), x.dtype))


def _cast_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("cast", types[0], ELEMENTS)
    dtype = DTYPES[attrs.text("dtype")]
    if types[0].dtype.kind == "complex" and dtype.kind in REALS:
        raise TypeMismatch(f"{types[0]} cannot be converted to {dtype}", hint="take x.real, x.imag or abs(x)")
    return (types[0].with_dtype(dtype),)


def _cast(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x = values[0]
    to = DTYPES[attrs.text("dtype")].numpy
    return (_whole(x, to) if x.dtype.kind == "f" and to.kind == "i" else x.astype(to),)


def _whole(x: Any, to: np.dtype[Any]) -> Any:
    """Floats as integers. C leaves open what becomes of those that do not fit; we saturate, and nan becomes 0."""
    limits = np.iinfo(to)
    above, below = x >= -float(limits.min), x < float(limits.min)
    whole = np.where(above | below | np.isnan(x), 0, x).astype(to)
    return scalar(np.where(above, limits.max, np.where(below, limits.min, whole)).astype(to))


def _cast_slope(x: Term, dtype: DType) -> Term | None:
    """A cotangent or tangent of a conversion; a float that was made complex has that of the real part."""
    if not dtype.is_inexact:
        return None
    is_part = x.type.dtype.kind == "complex" and dtype.kind == "float"
    return cast(apply("real", x) if is_part else x, dtype)


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
    if x.type.dtype.kind == "complex":
        is_zero = equal(x, 0)
        return v * where(is_zero, 0, apply("log", where(is_zero, 1, x)) * z)
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


def _erf_slope(v: Term, x: Term, z: Term) -> Term:
    return v * (apply("exp", -(x * x)) * (2 / math.sqrt(math.pi)))


def _abs_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("abs", types[0], NUMBERS)
    return (types[0].with_dtype(types[0].dtype.real),)


def _direction(at: Applied) -> Term:
    """Complex numbers divided by their absolute values, conjugated; 0 where they are 0."""
    x, size = at.x[0], at.y[0]
    return apply("conj", x) / cast(where(equal(size, 0), 1, size), x.type.dtype)


def _abs_grad(at: Applied, g: Term) -> Term:
    x = at.x[0]
    if x.type.dtype.kind == "complex":
        return cast(g, x.type.dtype) * _direction(at)
    return g * apply("sign", x)


def _abs_tangent(at: Applied, t: Term) -> Term:
    x = at.x[0]
    return apply("real", t * _direction(at)) if x.type.dtype.kind == "complex" else t * apply("sign", x)


def _float(name: str, doc: str, slope: Slope | None, function: Any = None, also: str = "", **more: Any) -> Op:
    return unary(name, function or getattr(np, name), FLOATS, doc, (slope,), also=also, **more)


def _inexact(name: str, doc: str, slope: Slope, function: Any = None, also: str = "", **more: Any) -> Op:
    return unary(name, function or getattr(np, name), INEXACT, doc, (slope,), also=also, **more)


_FLAT = (None,)  # piecewise constant: the derivative is zero wherever there is one

ROWS: tuple[Op, ...] = (
    binary(
        "add", operator.add, NUMBERS, "`x + y`; integers wrap", (lambda v, x, y, z: v, lambda v, x, y, z: v),
        also="__add__ tf.add", example="add([1, 2], 0.5)\narray([1.5, 2.5])",
    ),
    binary(
        "subtract", operator.sub, NUMBERS, "`x - y`", (lambda v, x, y, z: v, lambda v, x, y, z: -v),
        also="__sub__ tf.subtract tf.sub",
    ),
    binary(
        "multiply", operator.mul, NUMBERS, "`x * y`", (lambda v, x, y, z: v * y, lambda v, x, y, z: v * x),
        also="__mul__ tf.multiply tf.mul",
    ),
    binary(
        "divide", operator.truediv, INEXACT, "`x / y`", (lambda v, x, y, z: v / y, lambda v, x, y, z: -(v * z / y)),
        also="__truediv__ tf.divide tf.truediv", example="divide([1, 2], 2)\narray([0.5, 1. ])",
    ),
    binary(
        "floor_divide", _floor_divide, REALS, "`x // y`, rounded down; an integer y must not be 0", (None, None),
        faults=by_zero, also="__floordiv__ tf.floordiv tf.floor_div",
        example="floor_divide(-7, [2, -2])\narray([-4,  3])",
    ),
    binary(
        "remainder", _remainder, REALS, "`x % y`, with the sign of y; an integer y must not be 0",
        (lambda v, x, y, z: v, lambda v, x, y, z: -(v * apply("floor_divide", x, y))),
        faults=by_zero, also="__mod__ tf.mod tf.floormod", example="remainder(-7, [2, -2])\narray([ 1, -1])",
    ),
    binary(
        "power", _power, NUMBERS,
        "`x ** y`; an integer y must not be negative; by y its derivative is 0 where x is not positive",
        (_base_slope, _exponent_slope), faults=by_negative, takes=None, also="ut.pow __pow__ math.pow tf.pow",
    ),
    binary(
        "within", _within, REALS,
        'x; a fault where y is negative: the check that overflow="error" adds, and that of parameters of distributions',
        (lambda v, x, y, z: v, None), faults=by_negative_slack, takes=None,
    ),
    binary(
        "atan2", np.arctan2, FLOATS, "the angle of the point (x, y); operands: y, x",
        (lambda v, y, x, z: v * (x / (x * x + y * y)), lambda v, y, x, z: -(v * (y / (x * x + y * y)))),
        operands="y x", also="math.atan2",
    ),
    binary(
        "minimum", _minimum, REALS,
        "the smaller of x and y; nan if either is; -0.0 is below 0.0; equal ones share the gradient",
        (lambda v, x, y, z: _preferred(v, x, y, "less"), lambda v, x, y, z: _preferred(v, y, x, "less")),
        also="tf.minimum",
    ),
    binary(
        "maximum", _maximum, REALS,
        "the larger of x and y; nan if either is; 0.0 is above -0.0; equal ones share the gradient",
        (lambda v, x, y, z: _preferred(v, x, y, "greater"), lambda v, x, y, z: _preferred(v, y, x, "greater")),
        also="tf.maximum", example="maximum([1.0, 5.0], 3)\narray([3., 5.])",
    ),
    unary("negative", operator.neg, NUMBERS, "-x", (lambda v, x, z: -v,), also="__neg__ tf.negative tf.neg"),
    Op(
        "abs", 1, _abs_rule, lambda values, attrs: (abs(values[0]),),
        "the absolute value, a float of a complex number; flat at 0", single(_abs_grad, _abs_tangent),
        also="__abs__ math.fabs tf.abs", takes="numbers",
    ),
    unary("sign", np.sign, REALS, "-1, 0 or 1; nan of nan", _FLAT, also="tf.sign"),
    unary("square", lambda x: x * x, NUMBERS, "`x * x`", (lambda v, x, z: v * (x * 2),), also="tf.square"),
    _inexact("reciprocal", "1 / x", lambda v, x, z: -(v * z * z), also="tf.reciprocal"),
    _float("floor", "the largest whole number not above x", None, also="__floor__ tf.floor", takes="whole"),
    _float("ceil", "the smallest whole number not below x", None, also="__ceil__ tf.ceil", takes="whole"),
    _float("trunc", "the whole part, without the fraction", None, also="__trunc__", takes="whole"),
    _float(
        "round", "the nearest whole number; halves go to the even one", None, np.rint,
        also="np.rint __round__ tf.round", takes=None,
    ),
    binary(
        "round_decimal", _round_decimal, FLOATS, "x with y decimals, rounded as Python's round does",
        (None, None), takes=None,
    ),
    binary(
        "to_integer", _to_integer, FLOATS, "x as i64; nan and what does not fit is a fault; operands: x, x",
        (None, None), i64, faults=True, takes=None,
    ),
    _inexact(
        "sqrt", "the square root", lambda v, x, z: v * (0.5 / z),
        also="math.sqrt tf.sqrt", example="sqrt([4, 9])\narray([2., 3.])",
    ),
    _inexact("exp", "`e ** x`", lambda v, x, z: v * z, also="math.exp tf.exp", is_costly=True),
    _inexact("exp2", "`2 ** x`", lambda v, x, z: v * (z * math.log(2))),
    _inexact("expm1", "exp(x) - 1, exact near 0", lambda v, x, z: v * (z + 1), also="math.expm1 tf.expm1"),
    _inexact("log", "the natural logarithm", lambda v, x, z: v / x, also="math.log tf.log", is_costly=True),
    _inexact("log2", "the logarithm to base 2", lambda v, x, z: v / (x * math.log(2)), also="math.log2"),
    _inexact("log10", "the logarithm to base 10", lambda v, x, z: v / (x * math.log(10)), also="math.log10"),
    _inexact("log1p", "log(1 + x), exact near 0", lambda v, x, z: v / (x + 1), also="math.log1p tf.log1p"),
    _inexact("sin", "the sine", lambda v, x, z: v * apply("cos", x), also="math.sin tf.sin"),
    _inexact("cos", "the cosine", lambda v, x, z: -(v * apply("sin", x)), also="math.cos tf.cos"),
    _inexact("tan", "the tangent", lambda v, x, z: v * (z * z + 1), also="math.tan tf.tan"),
    _inexact("asin", "the inverse sine", lambda v, x, z: v / _sqrt(1 - x * x), np.arcsin, "math.asin tf.asin"),
    _inexact("acos", "the inverse cosine", lambda v, x, z: -(v / _sqrt(1 - x * x)), np.arccos, "math.acos tf.acos"),
    _inexact("atan", "the inverse tangent", lambda v, x, z: v / (x * x + 1), np.arctan, "math.atan tf.atan"),
    _inexact("sinh", "the hyperbolic sine", lambda v, x, z: v * apply("cosh", x), also="math.sinh tf.sinh"),
    _inexact("cosh", "the hyperbolic cosine", lambda v, x, z: v * apply("sinh", x), also="math.cosh tf.cosh"),
    _inexact(
        "tanh", "the hyperbolic tangent", lambda v, x, z: v * (1 - z * z),
        also="math.tanh tf.tanh tf.nn.tanh", is_costly=True,
    ),
    _inexact("asinh", "the inverse hyperbolic sine", lambda v, x, z: v / _sqrt(x * x + 1), np.arcsinh),
    _inexact("acosh", "the inverse hyperbolic cosine", lambda v, x, z: v / _sqrt((x - 1) * (x + 1)), np.arccosh),
    _inexact("atanh", "the inverse hyperbolic tangent", lambda v, x, z: v / (1 - x * x), np.arctanh),
    _float("erf", "the error function", _erf_slope, _erf, "math.erf tf.erf"),
    Op(
        "cast", 1, _cast_rule, _cast,
        "x as `dtype`; floats lose their fraction, those that do not fit saturate, nan becomes 0; integers wrap",
        single(
            lambda at, g: _cast_slope(g, at.x[0].type.dtype), lambda at, t: _cast_slope(t, at.y[0].type.dtype),
        ), attrs=DTYPE,
    ),
)  # fmt: skip
