"""Names of NumPy and math that are compositions, or rarer operators, on every engine."""

import math

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def products(x: ut.f64[None], n: ut.i64) -> tuple[ut.f64[None], ut.f64[None], ut.i64[None]]:
    """Running products, of what a recursion makes."""
    if n == 0:
        return np.cumprod(x), np.nancumprod(np.where(x > 1, np.nan, x)), np.cumprod(np.arange(1, 6))
    return products(np.cumprod(x)[::-1], n - 1)


@ut.function
def bits_of_floats(x: ut.f64[4]) -> tuple[ut.f64[4], ut.f64[4], ut.bool[4], ut.f64[4], ut.i32[4], ut.f64[4]]:
    part, power = np.frexp(x)
    return np.copysign(x, x[::-1]), np.nextafter(x, 0), np.signbit(x), part, power, np.ldexp(part, power)


@ut.function
def rarer_math(a: ut.f64, n: ut.i64) -> tuple[ut.f64, ut.f64, ut.f64, ut.f64, ut.f64, ut.f64, ut.f64]:
    return (
        math.gamma(a), math.lgamma(a), math.erfc(a), math.fmod(-a, 0.3), math.remainder(a, 0.3), math.ldexp(a, n),
        math.copysign(math.cbrt(a), -1.0),
    )  # fmt: skip


@ut.function
def common(a: ut.i64, b: ut.i64) -> ut.i64:
    """The divisors of numbers that get smaller."""
    if a == 0:
        return b
    return math.gcd(a, b) * 100 + math.lcm(a, 6) + common(a // 2, b)


@ut.function
def running(x: ut.f64[None]) -> tuple[ut.f64[None], ut.f64[None], ut.f64, ut.f64[None], ut.f64]:
    """Slopes, phases and statistics of a length that is known only at run time."""
    return np.gradient(x), np.unwrap(x * 3), np.cov(x), np.diff(x, prepend=0, append=1), np.nanvar(x)


@ut.function
def pieces(x: ut.f64[5], k: ut.i64[5]) -> tuple[ut.f64[5], ut.f64[5], ut.f64[3], ut.i64[5]]:
    made = np.piecewise(x, [x < 0, x > 1], [lambda v: v * v, 7.0])
    return made, np.choose(k % 3, [x, -x, 0.5]), np.polyfit(x, made, 2), np.lexsort((x, k % 2))


@ut.function
def each_row(x: ut.f64[2, 3]) -> tuple[ut.f64[2], ut.f64[2, 3]]:
    return np.apply_along_axis(lambda v: v.max() - v.min(), 1, x), np.apply_along_axis(np.sort, 0, x)


X = np.array([0.5, -2.0, 3.0, 0.25])
FIVE = np.array([2.0, -1.5, 0.5, 3.0, -0.25])

PROGRAMS = [
    program(products, (X, 0), (X, 2), (X[:0], 1), (X[:1], 1), tags="recursive arrays"),
    program(bits_of_floats, (X,), (np.array([0.0, -0.0, 1e-310, 1e300]),), tags="arrays"),
    program(rarer_math, (1.75, 3), (6.0, -2), tags="arrays"),
    program(common, (36, 48), tags="recursive"),
    program(running, (X,), (FIVE,), tags="arrays"),
    program(pieces, (FIVE, np.array([3, 1, 4, 1, 5])), tags="arrays"),
    program(each_row, (np.array([[1.0, 3.0, 2.0], [0.0, -1.0, 5.0]]),), tags="arrays"),
]
