"""Functions that call each other, defined in any order."""

from __future__ import annotations

from tests.programs.program import program

import undertow as ut


@ut.function
def is_even(n: ut.i64) -> ut.bool:
    if n == 0:
        return True
    return is_odd(n - 1)


@ut.function
def is_odd(n: ut.i64) -> ut.bool:
    return False if n == 0 else is_even(n - 1)


@ut.function
def male(n: ut.i64) -> ut.i64:
    """Hofstadter's sequences: each calls the other with the result of itself."""
    return 0 if n == 0 else n - female(male(n - 1))


@ut.function
def female(n: ut.i64) -> ut.i64:
    return 1 if n == 0 else n - male(female(n - 1))


@ut.function
def red(n: ut.i64, total: ut.i64) -> ut.i64:
    """Three in a ring, entered anywhere, with calls across."""
    if n <= 0:
        return total
    return green(n - 1, total + 1)


@ut.function
def green(n: ut.i64, total: ut.i64) -> ut.i64:
    if n <= 0:
        return total * 2
    return blue(n - 1, total) + red(n - 3, 1)


@ut.function
def blue(n: ut.i64, total: ut.i64) -> ut.i64:
    if n <= 0:
        return -total
    if n % 2 == 0:
        return red(n - 1, total * 3 % 101)
    return green(n - 2, red(n - 4, total))


@ut.function
def expression(depth: ut.i64, seed: ut.i64) -> ut.f64:
    """A grammar: sums of products of atoms, which are expressions again. Floats and integers together."""
    value = term(depth, seed * 3 + 1)
    if seed % 3 == 0:
        return value
    return value - term(depth - 1, seed + 5)


@ut.function
def term(depth: ut.i64, seed: ut.i64) -> ut.f64:
    if seed % 2 == 0:
        return atom(depth, seed + 1)
    return atom(depth - 1, seed * 5 + 2) * atom(depth - 2, seed + 3)


@ut.function
def atom(depth: ut.i64, seed: ut.i64) -> ut.f64:
    if depth <= 0:
        return ut.astype(seed % 7, ut.f64) / 2.0
    return expression(depth - 1, seed % 11) / 3.0


@ut.function
def down_both(n: ut.i64) -> tuple[ut.i64, ut.f64]:
    """Several results of several dtypes, through mutual recursion."""
    if n <= 0:
        return 0, 0.5
    count, share = up_both(n - 1)
    return count + n, share / 2.0


@ut.function
def up_both(n: ut.i64) -> tuple[ut.i64, ut.f64]:
    if n <= 0:
        return 1, 1.5
    count, share = down_both(n - 2)
    _, other = down_both(n - 3)
    return count * 2, share + other


PROGRAMS = [
    program(is_even, (0,), (7,), (10,), tags="recursive mutual"),
    program(is_odd, (0,), (7,), tags="recursive mutual"),
    program(male, (0,), (9,), tags="recursive mutual"),
    program(red, (0, 5), (12, 1), tags="recursive mutual"),
    program(blue, (9, 2), tags="recursive mutual"),
    program(expression, (0, 1), (5, 1), (6, 4), tags="recursive mutual"),
    program(down_both, (0,), (9,), tags="recursive mutual"),
]
