"""Branches: early returns in every arrangement, short circuits, chained comparisons, conditional expressions."""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def inner_return(n: ut.i64) -> ut.i64:
    """`if a: if b: return`, and what follows is for those who came through."""
    total = 0
    if n > 3:
        total += 1
        if n > 6:
            return total * 100 + n
        total += 10
    total += n
    return total


@ut.function
def returns_on_both_sides(a: ut.i64, b: ut.i64) -> ut.i64:
    if a > 0:
        if b > 0:
            return a + b
        a = a * 2
    else:
        if b < 0:
            return a - b
        elif b == 0:
            return 1000
        b = b + 7
    if a == b:
        return -1
    return a * 10 + b


@ut.function
def returns_after_returns(n: ut.i64) -> ut.i64:
    """Each test stands in what is left of the one before; two of them mix returning and going on."""
    if n == 0:
        return 5
    m = n * n
    if m > 50:
        if n % 2 == 0:
            return returns_after_returns(n - 3) + 1
        m = m - 1
    if m % 3 == 0:
        if m % 2 == 0:
            if m % 4 == 0:
                return m
            m += 2
        else:
            return returns_after_returns(n - 1) + m
    elif m % 3 == 1:
        m += 100
    else:
        return -m
    if n > 4:
        return m + returns_after_returns(n - 4)
    return m


@ut.function
def ladder(n: ut.i64) -> ut.i64:
    if n < 0:
        kind = -1
    elif n == 0:
        kind = 0
    elif n < 10:
        kind = 1
    elif n < 100 and n % 2 == 0:
        kind = 2
    else:
        kind = 3
    return kind * 1000 + n


@ut.function
def short_circuit(a: ut.i64, b: ut.i64) -> ut.i64:
    """What stands to the right would fault, or call, if it were evaluated."""
    result = 0
    if b != 0 and a // b > 2:
        result += 1
    if b == 0 or a % b == 0:
        result += 10
    if a > 0 and (b > 0 or short_circuit(a - 1, b + 1) > 0) and not a <= b:
        result += 100
    return result


@ut.function
def chained(low: ut.i64, x: ut.i64, high: ut.i64) -> ut.i64:
    inside = low <= x < high
    outside = not low < x < high != 0
    return (1 if inside else 0) + (2 if outside else 0) + (4 if 0 < low < x // low <= high else 0)


@ut.function
def conditional_expressions(n: ut.i64, x: ut.f64) -> ut.f64:
    """Nested, with calls in them, and with a number that takes the other side's dtype."""
    sign = 1 if n > 0 else -1 if n < 0 else 0
    scale = 2 if x > 1.0 else x
    deep = conditional_expressions(n - 1, x / 2.0) if n > 0 else x if x < 0.5 else 0.25
    return scale * sign + deep


@ut.function
def value_of_or(a: ut.i64, b: ut.i64) -> ut.i64:
    """`or` and `and` give one of their operands, not a truth value."""
    first = a or b
    both = a and b
    return first * 1000 + both


@ut.function
def swap(a: ut.i64, b: ut.i64) -> tuple[ut.i64, ut.i64]:
    if a < b:
        a, b = b, a
    else:
        a += 1
    c = a
    if b < 0:
        c = -b
        b = 0
    return a + c, b


@ut.function
def unequal_paths(n: ut.i64, m: ut.i64) -> ut.i64:
    """A variable that only some paths set, read only where it is set."""
    if n > m:
        if n > 2 * m:
            return n
        step = n - m
    else:
        step = m - n + 1
    if step > 3:
        return unequal_paths(step - 1, m // 2) + step
    return step


@ut.function
def static_and_traced(n: ut.i64) -> ut.i64:
    """Branches that Python decides, around and inside those that are decided at run time."""
    wide = True
    total = n
    for k in range(3):
        if k == 1:
            continue
        if wide and n > k:
            total += k * 10
        elif not wide:
            total -= 1
        if k == 2 and n == 4:
            return -total
        wide = not wide
    return total


@ut.function
def explicit_cond(n: ut.i64, x: ut.f64) -> ut.f64:
    return ut.cond(n > 0, lambda v: explicit_cond(n - 1, v * 1.5) + 1.0, lambda v: v - 1.0, x)


MENU = {"soup": 3}


@ut.function
def never_reached(xs: list[ut.i64], n: ut.i64) -> ut.i64:
    """What Python would raise in a branch that is not taken: it is raised where it is."""
    if n == 0:
        return 0
    if n > 8:
        return MENU["cake"] + 1 // 0
    elif n > 7:
        assert len(MENU) > 7, f"{n} is too much"
    return xs[0] + never_reached(xs[1:], n - 1) if n > 1 and xs[0] != 5 else xs[0]


@ut.function
def in_an_empty_array(x: ut.f64[None], low: ut.i64, high: ut.i64) -> ut.i64:
    if low >= high:
        return -1
    middle = (low + high) // 2
    if x[middle] == 2.5:
        return middle
    return in_an_empty_array(x, middle + 1, high) if x[middle] < 2.5 else in_an_empty_array(x, low, middle)


@ut.function
def index_in_branch(n: ut.i64) -> ut.i64:
    """The index is known at capture, and the fault is of the run."""
    if n == 0:
        return (1, 2)[len(MENU) + 4]
    return index_in_branch(n - 1)


PROGRAMS = [
    program(never_reached, ([4, 5, 6], 0), ([4, 5, 6], 2), ([4, 2, 6], 3), tags="branch recursive"),
    program(in_an_empty_array, (np.zeros(0), 0, 0), (np.array([1.5, 2.5]), 0, 2), tags="branch recursive arrays"),
    program(index_in_branch, (3,), tags="branch recursive fault"),
    program(inner_return, (0,), (5,), (9,), tags="branch"),
    program(returns_on_both_sides, *((a, b) for a in (-2, 0, 3) for b in (-4, 0, 6)), tags="branch"),
    program(returns_after_returns, *((n,) for n in range(0, 14)), tags="branch recursive"),
    program(ladder, (-3,), (0,), (7,), (44,), (45,), (200,), tags="branch"),
    program(short_circuit, (0, 0), (6, 2), (7, 0), (5, -3), (4, 4), tags="branch recursive"),
    program(chained, (1, 2, 3), (0, 0, 5), (2, 9, 4), (2, 1, 3), tags="branch"),
    program(conditional_expressions, (0, 0.1), (-2, 3.0), (4, 5.0), tags="branch recursive"),
    program(value_of_or, (0, 0), (0, 7), (3, 0), (3, 7), tags="branch"),
    program(swap, (1, 2), (2, 1), (-5, -3), tags="branch"),
    program(unequal_paths, (9, 2), (9, 5), (1, 9), tags="branch recursive"),
    program(static_and_traced, (0,), (4,), (5,), tags="branch"),
    program(explicit_cond, (0, 2.0), (5, 2.0), tags="branch recursive"),
]
