"""Rarer functions on each element: of gamma and errors, of the bits of floats, common divisors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.ops.gradient import NO_GRADIENT
from undertow.ops.op import Op
from undertow.ops.rules import FLOATS, INTEGERS, binary, scalar, unary
from undertow.ops.term import Term, apply

_FEWEST = 20.0  # from here on the series of polygamma, with these Bernoulli numbers, is exact
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_LEAST = -1e6


def _of_scalars(function: Callable[..., float], operands: int) -> Callable[..., Any]:
    """A function of Python's floats, on each element."""
    each = np.frompyfunc(lambda *x: function(*map(float, x)), operands, 1)
    return lambda *x: scalar(np.asarray(each(*x), x[0].dtype))


def _is_pole(x: float) -> bool:
    return x <= 0 and x == math.floor(x)


def _gamma(x: float) -> float:
    if math.isinf(x) or math.isnan(x) or _is_pole(x):
        return x if x > 0 else math.copysign(math.inf, x) if x == 0 else math.nan
    try:
        return math.gamma(x)
    except OverflowError:
        return math.copysign(math.inf, x) if abs(x) < 1 else math.inf


def _lgamma(x: float) -> float:
    if math.isinf(x) or _is_pole(x):
        return math.inf
    try:
        return math.lgamma(x)
    except OverflowError:
        return math.inf


def _polygamma(order: float, value: float) -> float:
    """By recurrence up to where the asymptotic series holds: Abramowitz and Stegun, 6.4.6 and 6.4.11."""
    x = np.float64(value)  # which overflows and divides by 0 as C does
    if math.isnan(x) or x < _LEAST or _is_pole(x) or not 0 <= order < 30:
        return math.nan
    if math.isinf(x):
        return math.inf if order < 1 else 0.0
    n = int(order)
    sign, factorial = (-1.0) ** n, float(math.factorial(n))
    shifted = 0.0
    while x < _FEWEST + n:
        shifted -= sign * factorial / x ** (n + 1)
        x += 1
    series = factorial / (2 * x ** (n + 1))
    term = float(math.factorial(n + 1)) / (2 * x ** (n + 2))
    for k, bernoulli in enumerate(_BERNOULLI, 1):
        series += bernoulli * term
        term *= (2 * k + n) * (2 * k + n + 1) / ((2 * k + 1) * (2 * k + 2) * x * x)
    first = math.log(x) if n == 0 else -sign * float(math.factorial(n - 1)) / x**n
    return shifted + first - sign * series


def _next_polygamma(v: Term, n: Term, x: Term, z: Term) -> Term:
    return v * apply("polygamma", n + 1, x)


def _digamma(x: Term) -> Term:
    return apply("polygamma", 0, x)


def _gcd(x: Any, y: Any) -> Any:
    return scalar(np.asarray(np.gcd(x, y), x.dtype))


ROWS: tuple[Op, ...] = (
    unary(
        "cbrt", np.cbrt, FLOATS, "the cube root", (lambda v, x, z: v / (z * z * 3),), also="math.cbrt",
        example="cbrt([27, -8])\narray([ 3., -2.])",
    ),
    unary(
        "erfc", _of_scalars(math.erfc, 1), FLOATS, "1 - erf(x), exact where that is small",
        (lambda v, x, z: v * (apply("exp", -(x * x)) * (-2 / math.sqrt(math.pi))),), also="math.erfc",
    ),
    unary(
        "gamma", _of_scalars(_gamma, 1), FLOATS, "the gamma function: of n, the factorial of n - 1",
        (lambda v, x, z: v * (z * _digamma(x)),), also="math.gamma", example="gamma([1, 5])\narray([ 1., 24.])",
    ),
    unary(
        "lgamma", _of_scalars(_lgamma, 1), FLOATS, "the logarithm of the absolute value of gamma(x)",
        (lambda v, x, z: v * _digamma(x),), also="math.lgamma tf.lgamma",
    ),
    binary(
        "polygamma", _of_scalars(_polygamma, 2), FLOATS,
        "the n-th derivative of the derivative of lgamma, n from 0 to 29; nan below -1000000; operands: n, x",
        (None, _next_polygamma), takes=None,
    ),
    binary(
        "copysign", np.copysign, FLOATS, "the size of x with the sign of y",
        (lambda v, x, y, z: v * apply("copysign", 1, x) * apply("copysign", 1, y), None),
        also="math.copysign",
    ),
    binary(
        "nextafter", np.nextafter, FLOATS, "the float next to x in the direction of y", (lambda v, x, y, z: v, None),
        also="math.nextafter",
    ),
    binary("gcd", _gcd, INTEGERS, "the greatest common divisor", NO_GRADIENT,
        example="gcd([12, 18], 8)\narray([4, 2])"),
)  # fmt: skip
