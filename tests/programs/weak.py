"""Programs over f32 and i32 as people write them: Python numbers take the dtype of what they meet, early or late."""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut

X = np.array([1.5, 2.25, -3.0, 4.125], np.float32)
N = np.array([3, 1, 4, 1, 5], np.int32)
RATE = 0.125


@ut.function
def total(x, n):
    t = 0.0
    for i in range(n):
        t = t + x[i]
    return t


@ut.function
def largest(x):
    best, at = -1e30, -1
    for i in range(x.shape[0]):
        if x[i] > best:
            best, at = x[i], i
    return best, at


@ut.function
def horner(c, x):
    r = 0
    for k in range(len(c)):
        r = r * x + c[k]
    return r


@ut.function
def series(x, n):
    """e to the power x: weak, strong and counted numbers together."""
    term, s = 1.0, 1.0
    for k in range(1, n):
        term = term * x / k
        s += term
    return s


@ut.function
def halved(x, n):
    """By squaring; the result meets x only under a condition."""
    r = 1
    while n > 0:
        if n % 2 == 1:
            r = r * x
        x = x * x
        n = n // 2
    return r


@ut.function
def chosen(n: ut.i32, p) -> ut.i32:
    if p:
        ans = 1
    else:
        ans = 5
    while n > 0:
        ans = ans * 2 + (1 << n)
        n = n - 1
    return ans


@ut.function
def ones(n):
    count = 0
    while n:
        count += n & 1
        n >>= 1
    return count


@ut.function
def scaled(a, x, b=0.5):
    return a * x + b * RATE


@ut.function
def blended(x, w):
    return scaled(w, x) + scaled(2, x, 1) * (1 / len(N)) + scaled(w, 1.0) * x


@ut.function
def summed(x, i, t) -> ut.f32:
    """The accumulator begins as a Python number, and is an f32 in every activation."""
    if i == x.shape[0]:
        return t
    return summed(x, i + 1, t + x[i])


@ut.function
def walked(a, i, left) -> ut.i32:
    """The index begins as a Python number; those that it is replaced with are i32."""
    if left == 0:
        return i
    return walked(a, (a[i] + i) % 5, left - 1)


@ut.function
def raised(x: float, n: int) -> float:
    return 1 if n == 0 else x * raised(x, n - 1)


@ut.function
def raised_beside(x: float, y):
    """A function over Python numbers gives one."""
    return raised(x, 3) * y


@ut.function
def first_negative(x, n):
    """`return` of Python numbers and of f32 out of loops."""
    for i in range(n):
        if x[i] < 0:
            return x[i]
        if i > 2:
            return 0.5
    return 1


@ut.function
def carried(x, n):
    """Loops inside of loops, and containers of Python numbers."""
    state = (0, 1.0, [0.5, 2])
    for i in range(n):
        a, b, (c, d) = state
        s = 0
        for j in range(i + 1):
            s = s + x[j] * j
        state = (a + 1, b * x[i], [c + s, d * N[i]])
    return state


@ut.function
def wide(a, k):
    """A Python integer need not fit in an i32 to be compared with one."""
    for _ in range(a):
        k = k * 2
    return a < k, k > a, a == k


@ut.function
def descended(x, n):
    """Gradient descent, by hand."""
    w = 0.5
    for _ in range(n):
        w = w - 0.1 * (w * x - 1) * x
    return w


@ut.function
def slope(w, x):
    """The gradient of a Python number is one."""
    return ut.grad(scaled)(w, x, 1.0) * x


@ut.function
def one_array(x, n):
    """Items of one array; NumPy alone gives float64 and complex128."""
    return np.array([0.5, x, n]), np.array([x, 1j])


PROGRAMS = [
    program(total, (X, np.int32(0)), (X, 4), tags="loop"),
    program(largest, (X,), tags="loop branch"),
    program(horner, (X, np.float32(2)), (X, 2), (N, 2), (N, np.int64(2)), tags="loop"),
    program(series, (np.float32(0.5), np.int32(8)), (0.5, 8), tags="loop"),
    program(halved, (np.float32(1.5), 5), (1.5, np.int32(5)), (2, 5), (np.int32(2), 5), tags="loop branch"),
    program(chosen, (3, True), (0, False), tags="loop branch"),
    program(ones, (np.int32(11),), (11,), tags="loop"),
    program(scaled, (2.0, X), (2, X), (np.float64(2), X), (2.0, np.float32(3)), (2.0, 3.0, 1), tags="arrays"),
    program(blended, (np.float32(2), 0.25), (np.float32(2), np.float32(0.25)), tags="recursive"),
    program(summed, (X, 0, 0.0), (X, np.int32(1), np.float32(2)), tags="recursive"),
    program(walked, (N, 0, 4), (N, np.int32(2), 3), tags="recursive"),
    program(raised, (1.5, 3), (2, 0), tags="recursive"),
    program(raised_beside, (1.5, np.float32(2)), (1.5, 2), tags="recursive"),
    program(first_negative, (X, 4), (X, 2), tags="loop branch"),
    program(carried, (X, np.int32(0)), (X, 3), tags="loop containers"),
    program(wide, (np.int32(5), 2**40), (np.int32(3), 0), tags="loop"),
    program(descended, (np.float32(2), 3), (np.float32(2), np.int32(0)), tags="loop"),
    program(slope, (2.0, np.float32(3)), stated=[np.float32(9)], tags="gradient"),
    program(
        one_array,
        (np.float32(3), 2),
        stated=[(np.array([0.5, 3, 2], np.float32), np.array([3, 1j], np.complex64))],
        tags="arrays",
    ),
]
