"""Values that may be None: arguments, results, variables of loops and branches, fields; what is done with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from tests.programs.program import program

import undertow as ut


class Best(NamedTuple):
    value: ut.f64
    at: ut.i64


@dataclass
class Range:
    low: ut.i64
    high: ut.i64 | None = None


@ut.function
def place_of(a: ut.i64[None], x: ut.i64, i: ut.i64) -> ut.i64 | None:
    if i == len(a):
        return None
    return i if a[i] == x else place_of(a, x, i + 1)


@ut.function
def found_first(a: ut.i64[None], x: ut.i64):
    for i in range(len(a)):
        if a[i] == x:
            return i
    return None


@ut.function
def pair_with_sum(items, total):
    """Reaching the end returns None, as in Python."""
    for i in range(len(items)):
        for j in range(i + 1, len(items)):
            if items[i] + items[j] == total:
                return [i, j]


@ut.function
def ten_times_the_place(a: ut.i64[None], x: ut.i64) -> ut.i64:
    i = place_of(a, x, 0)
    return -1 if i is None else 10 * i


@ut.function
def without_asking(a: ut.i64[None], x: ut.i64) -> ut.i64:
    return 10 * place_of(a, x, 0) + 1


@ut.function
def largest_above(x: ut.f64[None], least: ut.f64) -> Best | None:
    best = None
    for i in range(len(x)):
        if x[i] > least and (best is None or x[i] > best.value):
            best = Best(x[i], i)
    return best


@ut.function
def factor_of(n: ut.i64) -> int | None:
    """It reaches its end where there is none."""
    k = 2
    while k * k <= n:
        if n % k == 0:
            return k
        k += 1


@ut.function
def number_of_factors(n: ut.i64) -> ut.i64:
    count = 1
    while (k := factor_of(n)) is not None:
        n //= k
        count += 1
    return count


@ut.function
def fewest_coins(n: ut.i64) -> ut.i64 | None:
    if n == 0:
        return 0
    if n < 0:
        return None
    best = None
    for coin in (3, 5):
        rest = fewest_coins(n - coin)
        if rest is not None and (best is None or rest + 1 < best):
            best = rest + 1
    return best


@ut.function
def lowest(n: ut.i64, best: ut.i64 | None = None) -> ut.i64 | None:
    """It is handed on through a recursion, as None at first."""
    if n == 0:
        return best
    value = n * n % 7
    return lowest(n - 1, value if best is None or value < best else best)


@ut.function
def two_largest(a: ut.i64[None]) -> tuple[ut.i64 | None, ut.i64 | None]:
    first = second = None
    for x in a:
        if first is None or x > first:
            first, second = x, first
        elif second is None or x > second:
            second = x
    return first, second


@ut.function
def longest_run(n: ut.i64):
    run = None
    longest = 0
    for i in range(n):
        if i % 4 == 3:
            run = None
        else:
            run = 1 if run is None else run + 1
            if run > longest:
                longest = run
    return longest, run


@ut.function
def counted_until_none(n: ut.i64) -> ut.i64:
    at = n if n > 0 else None
    total = 0
    while at is not None:
        total += at
        at = at - 2 if at > 1 else None
    return total


@ut.function
def widened(r: Range, n: ut.i64) -> Range:
    if r.high is None:
        return Range(r.low, n)
    return Range(r.low) if n > r.high else r


@ut.function
def questions(n: ut.i64):
    y = n if n > 2 else None
    return y == 3, y != 3, y is None, y is not None, isinstance(y, int), y in (3, None), y or 7, not y


@ut.function
def matched_with_none(n: ut.i64) -> ut.i64:
    match factor_of(n):
        case None:
            return 0
        case 2:
            return 22
        case k if k > 4:
            return k
        case k:
            return -k


@ut.function
def told_of_factors(n: ut.i64) -> None:
    print("factor", factor_of(n))


@ut.function
def in_objects_and_dicts(n: ut.i64):
    r = Range(n)
    held = {"most": None, "n": n}
    pair = [None, n]
    if n > 2:
        r.high = n + 1
        held["most"] = 2 * n
        pair[0] = -n
    return r, held, pair, r.high is None or r.high > 5


@ut.function
def an_array_or_none(x: ut.f64) -> ut.f64[3] | None:
    v = None
    if x > 0:
        v = np.ones(3)
    if v is None:
        return None
    v[1] = x
    return v


@ut.function
def either(a: ut.i64, b: ut.i64) -> ut.i64:
    x = a if a > 2 else None
    y = b if b > 2 else None
    if x is not None and y is not None:
        return x * y
    if x is None and y is None:
        return 0
    return y if x is None else x


@ut.function
def inverse(x: ut.f64) -> ut.f64 | None:
    return None if x == 0 else 1 / x


@ut.function
def seen_from_inside(n: ut.i64):
    y = n if n > 2 else None

    @ut.function
    def times(k: ut.i64) -> ut.i64:
        if k == 0:
            return 0
        return -1 if y is None else y + times(k - 1)

    return times(3), ut.map(lambda k: k if y is None else k + y, np.arange(3))


@ut.function
def next_above(a: ut.i64[None], least: ut.i64):
    pair = next(((i, j) for i in range(len(a)) for j in range(i) if a[i] * a[j] > 10 * least), None)
    return next((x for x in a if x > least), None), (0, 0) if pair is None else pair


@ut.function
def items_that_may_be_none(n: ut.i64):
    items = [k if k < n else None for k in range(4)]
    return sum(0 if x is None else x for x in items), items, None in items, 2 in items


_A = np.array([3, 1, 4, 1, 5, 9, 2, 6])
_X = _A * 1.5
PROGRAMS = [
    program(place_of, (_A, 4, 0), (_A, 7, 0)),
    program(pair_with_sum, ([2, 7, 11, 15], 18), ([2, 7, 11, 15], 3), tags="branch"),
    program(pair_with_sum, (_A, 7), (_A, 3), tags="loop", name="pair_with_sum_of_an_array"),
    program(found_first, (_A, 4), (_A, 7), tags="loop"),
    program(ten_times_the_place, (_A, 4), (_A, 7)),
    program(without_asking, (_A, 4), tags="recursive"),
    program(without_asking, (_A, 7), tags="recursive fault", name="without_asking_where_none_is"),
    program(largest_above, (_X, 2.0), (_X, 100.0), tags="loop containers"),
    program(number_of_factors, (360,), (97,), tags="loop"),
    program(fewest_coins, (10,), (7,), (0,)),
    program(lowest, (5,), (0,), (5, 1)),
    program(two_largest, (_A,), (_A[:1],), (_A[:0],), tags="loop containers"),
    program(longest_run, (3,), (4,), (9,), (0,), tags="loop"),
    program(counted_until_none, (10,), (0,), tags="loop"),
    program(widened, (Range(1), 5), (Range(1, 4), 5), (Range(1, 9), 5), tags="containers branch"),
    program(questions, (3,), (4,), (0,), tags="branch"),
    program(matched_with_none, (8,), (9,), (35,), (7,), tags="branch loop"),
    program(told_of_factors, (8,), (7,), tags="effects branch"),
    program(in_objects_and_dicts, (3,), (5,), (0,), tags="containers branch"),
    program(an_array_or_none, (2.0,), (-2.0,), tags="arrays branch"),
    program(either, (3, 4), (3, 0), (0, 4), (0, 0), tags="branch"),
    program(next_above, (_A, 3), (_A, 30), tags="loop branch"),
    program(items_that_may_be_none, (5,), (2,), tags="containers branch"),
    program(inverse, (2.0,), (0.0,), tags="branch"),
    program(seen_from_inside, (5,), (0,), tags="closure map"),
]
