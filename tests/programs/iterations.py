"""Loops as people write them around recursive calls: reductions, arrays to fill, iteration, errors."""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def argmax_of_calls(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    best, arg = -100, -1
    for k in range(n):
        v = argmax_of_calls(w * 3 % 7 + k, k - 1)
        if v > best:
            best = v
            arg = k
    return best * 3 - arg


@ut.function
def least_of_calls(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    best = 1000
    for k in range(n):
        best = min(best, least_of_calls(w * 3 % 7 + k, k - 1) + k)
    return best


@ut.function
def count_of_calls(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    c = 0
    for k in range(n):
        if count_of_calls(w * 3 % 7 + k, k - 1) % 2 == 0:
            c += 1
    return c


@ut.function
def product_of_calls(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    c = 1
    for k in range(n):
        c = c * product_of_calls(w + k, k - 1) % 1009
    return c


@ut.function
def sum_of_a_generator(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    return sum(sum_of_a_generator(w + k, k - 1) for k in range(n) if k % 3 != 1)


@ut.function
def max_of_a_generator(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    return max(max_of_a_generator(w * 3 % 7 + k, k - 1) for k in range(n))


@ut.function
def fill_two_columns(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    x = np.zeros((n, 2), np.int64)
    for i in range(n):
        for j in range(2):
            x[i, j] = fill_two_columns(w * 3 % 7 + i + j, i - 1)
    return x.sum()


@ut.function
def accumulators(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    a, b, c = 0, 1, 100
    for k in range(n):
        v = accumulators(w + k, k - 1)
        a += v
        b = b * 2 + a
        c = min(c, v - b)
    return a + b + c


@ut.function
def counted_while(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t, k = 0, 0
    while k < n:
        t += counted_while(w + k, k - 1)
        k += 1
    return t


@ut.function
def counted_down(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t, k = 0, n
    while k > 0:
        k -= 1
        t += counted_down(w + k, k - 1)
    return t


@ut.function
def over_rows(w: ut.i64[None], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t = 0
    for v in w:
        t += over_rows(w + v, n - 1)
    return t


@ut.function
def over_zipped(w: ut.i64[None], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t = 0
    for i, (v, u) in enumerate(zip(w, w[::-1], strict=False)):
        t += over_zipped(w + v, n - 1) * i + u
    return t


@ut.function
def over_reversed(w: ut.i64[None], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t = 0
    for v in reversed(w):
        t = t * 3 + over_reversed(w + v, n - 1)
    return t


@ut.function
def drawn(w: ut.i64[3], n: ut.i64) -> ut.f64:
    if n <= 0:
        return w[0] * ut.random.uniform()
    t = 0.0
    for k in range(n):
        t += drawn(w + k, k - 1) * ut.random.uniform()
    return t


@ut.function
def continued(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t = 0
    for k in range(n):
        v = continued(w + k, k - 1)
        if v % 2 == 0:
            continue
        t += v
    return t


@ut.function
def appended(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    xs = []
    for k in range(n):
        v = appended(w + k, k - 1)
        if v % 2 == 1:
            xs.append(v)
    return len(xs)


@ut.function
def loop_with_else(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t = 0
    for k in range(n):
        t += loop_with_else(w + k, k - 1)
    else:
        t += 1
    return t


@ut.function
def stops_at_the_first(w: ut.i64[3], n: ut.i64) -> ut.bool:
    if n <= 0:
        return w[0] % 2 == 0
    found = False
    for k in range(n):
        if stops_at_the_first(w + k, k - 1):
            found = True
            break
    return found


@ut.function
def asserting_between(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t = 0
    for k in range(n):
        if k % 2 == 0:
            v = asserting_between(w + k, k - 1)
            assert t + v < 100000, "large"
            t += v
        else:
            t += 2 * asserting_between(w, k - 2)
    return t


@ut.function
def only_asserting(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    for k in range(n):
        assert only_asserting(w + k, k - 1) >= 0, "negative"
    return w[1]


@ut.function
def only_raising(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    for k in range(n):
        if only_raising(w + k, k - 1) < 0:
            raise ValueError("bad")
    return 1


@ut.function
def failing(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t = 0
    for k in range(n):
        v = failing(w + k, k - 1)
        assert v != 4, f"four at {k}"
        t += v
        if t > 17:
            raise ValueError("much")
    return t


@ut.function
def guarded_calls(w: ut.i64[3], n: ut.i64) -> ut.i64:
    assert n > -5, "low"
    if n <= 0:
        return w[0]
    t = 0
    for k in range(n):
        assert w[0] + k < 8, "guard"
        t += guarded_calls(w + k, k - 1)
        if w[0] * k == 6:
            t += guarded_calls(w + k, k - 3)
            if t % 5 == 0:
                raise KeyError("key")
    assert t != 3
    return t


@ut.function
def raising_on_a_side(w: ut.i64[3], n: ut.i64) -> ut.i64:
    if n <= 0:
        return w[0]
    t = 0
    for k in range(n):
        if w[1] + k < 3:
            continue
        v = raising_on_a_side(w + k, k - 1)
        if v > 5:
            if v > 9:
                raise IndexError("nine")
            t += 1
            continue
        t += v + raising_on_a_side(w - k, k - 2)
    else:
        t += 1
    return t


_W, _OPEN = np.array([1, 2, 3]), np.array([3, 1, 2])

PROGRAMS = [
    program(argmax_of_calls, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(least_of_calls, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(count_of_calls, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(product_of_calls, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(sum_of_a_generator, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(max_of_a_generator, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(fill_two_columns, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(accumulators, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(counted_while, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(counted_down, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(over_rows, (_OPEN, 0), (_OPEN, 3), tags="loop recursive arrays"),
    program(over_zipped, (_OPEN, 0), (_OPEN, 3), tags="loop recursive arrays"),
    program(over_reversed, (_OPEN, 0), (_OPEN, 3), tags="loop recursive arrays"),
    program(drawn, (_W, 0), (_W, 5), tags="loop recursive arrays random", seed=5),
    program(continued, (_W, 0), (_W, 6), tags="loop recursive arrays"),
    program(appended, (_W, 0), (_W, 6), tags="loop recursive arrays"),
    program(loop_with_else, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(stops_at_the_first, (_W, 0), (_W, 5), tags="loop recursive arrays"),
    program(asserting_between, (_W, 0), (_W, 6), tags="loop recursive arrays effects"),
    program(only_asserting, (_W, 5), tags="loop recursive arrays effects"),
    program(only_raising, (_W, 5), tags="loop recursive arrays effects"),
    program(failing, (_W, 4), (_W - 1, 5), tags="loop recursive arrays effects fault"),
    program(guarded_calls, (_W, 6), (_W, 3), tags="loop recursive arrays effects fault"),
    program(raising_on_a_side, (_W, 6), (_W - 1, 5), tags="loop recursive arrays effects fault"),
]
