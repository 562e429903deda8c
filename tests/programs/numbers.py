"""Functions of a few numbers that call themselves."""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def factorial(n: ut.i64) -> ut.i64:
    if n == 0:
        return 1
    return n * factorial(n - 1)


@ut.function
def fibonacci(n: ut.i64) -> ut.i64:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@ut.function
def ackermann(m: ut.i64, n: ut.i64) -> ut.i64:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@ut.function
def takeuchi(x: ut.i32, y: ut.i32, z: ut.i32) -> ut.i32:
    if x <= y:
        return z
    return takeuchi(takeuchi(x - 1, y, z), takeuchi(y - 1, z, x), takeuchi(z - 1, x, y))


@ut.function
def mccarthy(n: ut.i64) -> ut.i64:
    return n - 10 if n > 100 else mccarthy(mccarthy(n + 11))


@ut.function
def gcd(a: ut.i64, b: ut.i64) -> ut.i64:
    if b == 0:
        return abs(a)
    return gcd(b, a % b)


@ut.function
def power(base: ut.f64, exponent: ut.i64) -> ut.f64:
    """By squaring: one call on each level."""
    if exponent == 0:
        return 1.0
    half = power(base, exponent // 2)
    return half * half if exponent % 2 == 0 else half * half * base


@ut.function
def divisor_from(n: ut.i64, d: ut.i64) -> ut.i64:
    """The least divisor of n that is at least d."""
    if d * d > n:
        return n
    if n % d == 0:
        return d
    return divisor_from(n, d + 1)


@ut.function
def count_primes(n: ut.i64) -> ut.i64:
    """How many primes there are up to n; a recursive function that calls another."""
    if n < 2:
        return 0
    is_prime = divisor_from(n, 2) == n
    return count_primes(n - 1) + (1 if is_prime else 0)


@ut.function
def binomial(n: ut.i64, k: ut.i64) -> ut.i64:
    if k == 0 or k == n:
        return 1
    return binomial(n - 1, k - 1) + binomial(n - 1, k)


@ut.function
def hanoi(n: ut.i64, source: ut.i64, target: ut.i64) -> tuple[ut.i64, ut.i64]:
    """How many moves, and a checksum over them: several results, used one by one."""
    if n == 0:
        return 0, 0
    other = 6 - source - target
    before, sum_before = hanoi(n - 1, source, other)
    after, sum_after = hanoi(n - 1, other, target)
    return before + 1 + after, (sum_before * 7 + 10 * source + target + sum_after * 3) % 10007


@ut.function
def fibonacci_pair(n: ut.i64) -> tuple[ut.i64, ut.i64]:
    """Two results, of which one becomes the other."""
    if n == 0:
        return 0, 1
    a, b = fibonacci_pair(n - 1)
    return b, a + b


@ut.function
def collatz(n: ut.i64, steps: ut.i64) -> ut.i64:
    """A tail call in each branch."""
    if n == 1:
        return steps
    if n % 2 == 0:
        return collatz(n // 2, steps + 1)
    return collatz(3 * n + 1, steps + 1)


@ut.function
def digits(n: ut.i64, base: ut.i64 = 10) -> ut.i64:
    """The sum of the digits; the base has a default, and is also given by name."""
    if n < base:
        return n
    return n % base + digits(n // base, base=base)


@ut.function
def nested(n: ut.i64) -> ut.i64:
    """Calls as arguments of calls (Hofstadter's G and H)."""
    if n <= 0:
        return 0
    return n - nested(nested(n - 1))


@ut.function
def integral(a: ut.f64, b: ut.f64, whole: ut.f64, tolerance: ut.f64) -> ut.f64:
    """Adaptive Simpson quadrature: the depth depends on floats."""
    middle = (a + b) / 2.0
    left, right = _simpson(a, middle), _simpson(middle, b)
    error = left + right - whole
    if abs(error) <= 15.0 * tolerance:
        return left + right + error / 15.0
    return integral(a, middle, left, tolerance / 2.0) + integral(middle, b, right, tolerance / 2.0)


def _curve(x):
    return ut.exp(-x * x) * ut.sin(8.0 * x) + 1.0


def _simpson(a, b):
    return (b - a) / 6.0 * (_curve(a) + 4.0 * _curve((a + b) / 2.0) + _curve(b))


@ut.function
def square_root(x: ut.f64, guess: ut.f64) -> ut.f64:
    better = (guess + x / guess) / 2.0
    return better if ut.abs(better - guess) < 1e-12 * better else square_root(x, better)


@ut.function
def wrap(n: ut.i32, x: ut.i32) -> ut.i32:
    """Integers wrap around; Python's do not, so the result is stated."""
    return x if n == 0 else wrap(n - 1, x * 1103515245 + 12345)


def _wrapped(n: int, x: int) -> int:
    for _ in range(n):
        x = (x * 1103515245 + 12345) & 0xFFFFFFFF
    return x - (1 << 32) if x >> 31 else x


@ut.function
def sums_of_python(x: ut.i32[None], p: ut.bool[None]):
    """Python adds the items to an int: an i32 stays one. NumPy's sum is an i64."""
    return sum(x), sum(x, 1), sum(x, 0.5), x.sum(), sum(p), sum(x * 2)


PROGRAMS = [
    program(sums_of_python, (np.array([2, 3, -7], np.int32), np.array([True, True])), tags="arrays"),
    program(factorial, (0,), (1,), (10,), (20,)),
    program(fibonacci, (0,), (1,), (5,), (10,)),
    program(ackermann, (0, 0), (1, 2), (2, 2), (2, 3)),
    program(takeuchi, (1, 2, 3), (4, 2, 0), (6, 3, 0)),
    program(mccarthy, (150,), (99,), (80,)),
    program(gcd, (0, 0), (12, 18), (-12, 18), (1071, 462)),
    program(power, (2.0, 0), (1.5, 13), (-0.5, 30)),
    program(count_primes, (0,), (2,), (30,)),
    program(binomial, (0, 0), (6, 3), (7, 2)),
    program(hanoi, (0, 1, 3), (4, 1, 3)),
    program(fibonacci_pair, (0,), (40,)),
    program(collatz, (1, 0), (27, 0)),
    program(digits, (7,), (987654321,), (255, 2)),
    program(nested, (0,), (12,)),
    program(integral, (0.0, 2.0, 0.5, 1e-6), (-1.0, 1.0, 0.0, 1e-4)),
    program(square_root, (2.0, 1.0), (1e6, 3.0)),
    program(wrap, (0, 5), (40, 7), stated=[_wrapped(0, 5), _wrapped(40, 7)]),
]
