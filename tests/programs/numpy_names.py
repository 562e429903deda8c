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


@ut.function
def counted_elements(x: ut.f64[2, None]):
    """Only those where a mask is true count, beside a first value."""
    some = np.sum(x, axis=0, where=x > 0, initial=2), np.mean(x, where=x < 1), np.prod(x, initial=3, where=x > 1)
    most = np.max(x, axis=1, initial=0.5), np.min(x, initial=9, where=x > 0), np.max(x[:, :0], axis=1, initial=-1)
    return some, most, np.any(x, axis=1, where=x > 2), np.all(x, where=x > 2), np.var(x, axis=0, dtype=np.float32)


@ut.function
def methods_of_ufuncs(x: ut.f64[4], k: ut.i64[4]):
    y = x.copy()
    np.add.at(y, k % 4, x)
    np.subtract.at(y, [1, 1], 0.5)
    sums = np.add.reduce(x), np.maximum.reduce(x), np.multiply.reduce(np.stack([x, x]), axis=1, keepdims=True)
    scans = np.maximum.accumulate(x), np.minimum.accumulate(k), np.add.accumulate(k), np.logical_or.reduce(k > 3)
    return y, sums, scans, np.multiply.outer(x, k), np.subtract.outer(k, k), np.add(x, k, dtype=np.float32)


@ut.function
def moved_around(x: ut.f64[2, 3, 4]):
    rows = np.full((2, 3), x[0, :, 0]), np.zeros_like(x, shape=(2, 2)), np.take(x, [5, -7], axis=2, mode="wrap")
    joined = np.r_[x[0, 0], 1.5, 0:2], np.c_[x[0], x[1, :, 0]], np.concatenate([x, x], axis=1, dtype=np.float32)
    best = x.copy()
    np.put_along_axis(best, np.argmax(x, axis=2, keepdims=True), 0.0, axis=2)
    moved = np.roll(x, (1, -1), axis=(0, 2)), np.moveaxis(x, (0, 2), (1, 0)), x.reshape(4, -1, order="F")
    return rows, joined, best, moved, np.ravel(x, order="F"), np.diff(x[0, 0] > 0), np.diff(x > 0, axis=1, n=2)


@ut.function
def singles_of_singles(x: ut.f32[4]):
    """f32 stays f32 in functions that are made of others."""
    halves = np.logaddexp(x, x[::-1]), np.logaddexp2(x, 1.0), np.heaviside(x, 0.5), np.unwrap(x * 3, period=2.5)
    return halves, np.linalg.norm(x, 3), np.linalg.norm(x, ord=2.5)


@ut.function
def powers_of_small_integers(k: ut.i32[3]):
    """As in NumPy, wide enough."""
    return np.vander(k * 100, 5), np.polyder(k)


@ut.function
def matched(z: ut.c128[5], w: ut.c128[2], m: ut.c128[2, 2]):
    """The second signal, and the vector, are conjugated."""
    return np.correlate(z, w), np.correlate(z, w, "full"), np.correlate(w, z, "same"), np.vecdot(w, m), np.vdot(w, w)


X = np.array([0.5, -2.0, 3.0, 0.25])
FIVE = np.array([2.0, -1.5, 0.5, 3.0, -0.25])

PROGRAMS = [
    program(products, (X, 0), (X, 2), (X[:0], 1), (X[:1], 1), tags="recursive arrays"),
    program(bits_of_floats, (X,), (np.array([0.0, -0.0, 1e-310, 1e300]),), tags="arrays"),
    program(rarer_math, (1.75, 3), (6.0, -2), tags="arrays"),
    program(common, (36, 48), tags="recursive"),
    program(running, (X,), (FIVE,), tags="arrays"),
    program(pieces, (FIVE, np.array([3, 1, 4, 1, 5])), tags="arrays"),
    program(counted_elements, (np.array([[0.5, -1.0, 3.0], [2.0, 4.0, -2.0]]),), (-np.ones((2, 4)),), tags="arrays"),
    program(methods_of_ufuncs, (X, np.array([1, 5, 0, 1])), (X[::-1], np.array([3, 3, 7, 2])), tags="arrays"),
    program(moved_around, (np.arange(24.0).reshape(2, 3, 4) % 7 - 3,), tags="arrays"),
    program(singles_of_singles, (X.astype(np.float32),), (np.zeros(4, np.float32),), tags="arrays"),
    program(powers_of_small_integers, (np.array([30, -2, 7], np.int32),), tags="arrays"),
    program(
        matched,
        (FIVE + 1j * FIVE[::-1], np.array([1 + 2j, -0.5j]), np.array([[1.0, 2j], [0.5 - 1j, 3.0]])),
        tags="arrays",
    ),
    program(each_row, (np.array([[1.0, 3.0, 2.0], [0.0, -1.0, 5.0]]),), tags="arrays"),
]
