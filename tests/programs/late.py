"""Programs that end because an argument is computed only where the callee needs it. Every engine runs them.

Python computes every argument of a call, and would go on for ever: the results are stated. So are those of programs
that make fewer calls than Python does.
"""

from __future__ import annotations

import numpy as np
from tests.programs.program import program

import undertow as ut


@ut.function
def ite(condition, a, b):
    """Needs its condition and one of the others."""
    if condition:
        return a
    return b


@ut.function
def for_ever(n: ut.i64) -> ut.i64:
    """Has a base case that is never met."""
    return 0 if n < 0 else for_ever(n + 1) + 1


@ut.function
def while_positive(n: ut.i64) -> ut.i64:
    while n > 0:
        n = n + 1
    return n


# --------------------------------------------------------------------------------------------------------------
# The base case is in the function that chooses


@ut.function
def factorial_by_choice(n: ut.i64) -> ut.i64:
    return ite(n <= 1, 1, n * factorial_by_choice(n - 1))


@ut.function
def fibonacci_by_choice(n: ut.i64) -> ut.i64:
    return ite(n <= 1, n, fibonacci_by_choice(n - 1) + fibonacci_by_choice(n - 2))


@ut.function
def even_by_choice(n: ut.i64) -> ut.bool:
    return ite(n == 0, True, odd_by_choice(n - 1))


@ut.function
def odd_by_choice(n: ut.i64) -> ut.bool:
    return ite(n == 0, False, even_by_choice(n - 1))


@ut.function
def collatz_by_choice(n: ut.i64) -> ut.i64:
    """A choice in an argument of a choice."""
    return ite(n == 1, 0, ite(n % 2 == 0, collatz_by_choice(n // 2), collatz_by_choice(3 * n + 1)) + 1)


@ut.function
def many_choices(n: ut.i64) -> ut.i64:
    return ite(n == 0, 10, ite(n == 1, 20, ite(n == 2, 30, ite(n == 3, 40, many_choices(n - 4) + 1))))


@ut.function
def branch_in_argument(n: ut.i64) -> ut.i64:
    return ite(n <= 0, 0, (branch_in_argument(n - 1) if n % 2 else branch_in_argument(n - 2) * 2) + n)


@ut.function
def next_pair(pair):
    return pair[1], pair[0] + pair[1]


@ut.function
def pairs_by_choice(n: ut.i64) -> tuple[ut.i64, ut.i64]:
    return ite(n <= 0, (0, 1), next_pair(pairs_by_choice(n - 1)))


@ut.function
def tak_by_choice(x: ut.i64, y: ut.i64, z: ut.i64) -> ut.i64:
    t = tak_by_choice
    return ite(y >= x, z, t(t(x - 1, y, z), t(y - 1, z, x), t(z - 1, x, y)))


@ut.function
def power_by_choice(x: ut.f64, n: ut.i64) -> ut.f64:
    return ite(n <= 0, 1.0, x * power_by_choice(x, n - 1))


@ut.function
def squares_by_choice(x: ut.f64[None], i: ut.i64) -> ut.f64:
    """Reading the element behind the last one would be a fault."""
    return ite(i >= x.shape[0], 0.0, x[i] * x[i] + squares_by_choice(x, i + 1))


@ut.function
def cell_by_choice(x: ut.f64[3], n: ut.i64) -> ut.f64[3]:
    return ite(n <= 0, x, ut.tanh(cell_by_choice(x, n - 1) * 0.5 + ut.astype(n, ut.f64)))


@ut.function
def mapped_choices(xs: ut.i64[None]) -> ut.i64:
    return ut.sum(ut.map(lambda x: ite(x > 2, factorial_by_choice(x), while_positive(x - 3)), xs))


@ut.function
def choices_in_a_loop(n: ut.i64) -> ut.i64:
    total = 0
    for k in range(n):
        total = total + ite(k < 100, factorial_by_choice(k), for_ever(k))
    return total


@ut.function
def draws_by_choice(n: ut.i64) -> ut.f64:
    return ite(n <= 0, 0.0, ut.random.uniform() + draws_by_choice(n - 1))


def either(condition, a, b):
    """A helper that is no @ut.function."""
    return a if condition else b


def both(a, b):
    if not a:
        return False
    return b


@ut.function
def factorial_by_helper(n: ut.i64) -> ut.i64:
    return either(n <= 1, 1, n * factorial_by_helper(n - 1))


@ut.function
def even_by_helper(n: ut.i64) -> ut.bool:
    return either(n == 0, True, odd_by_helper(n - 1))


@ut.function
def odd_by_helper(n: ut.i64) -> ut.bool:
    return both(n != 0, even_by_helper(n - 1))


class Scale:
    def __init__(self, factor):
        self.factor = factor

    def choose(self, condition, a, b):
        return a * self.factor if condition else b


SCALE = Scale(2.0)


@ut.function
def power_by_method(x: ut.f64, n: ut.i64) -> ut.f64:
    return SCALE.choose(n == 0, 1.0, x * power_by_method(x, n - 1))


@ut.function
def power_by_closure(x: ut.f64, n: ut.i64) -> ut.f64:
    choose = lambda condition, a, b: a * x if condition else b  # noqa: E731
    return choose(n == 0, 1.0, x * power_by_closure(x, n - 1))


# --------------------------------------------------------------------------------------------------------------
# A function in between, which hands its arguments on at once


@ut.function
def ite_plus(condition, a, b):
    return ite(condition, a, b) + 1


@ut.function
def ite_twice(condition, a, b):
    """Computes something of them first."""
    return ite(condition, a + a, b * 2)


@ut.function
def both_of_two(c, d, a, b):
    return ite(c, ite(d, a, b), 3)


@ut.function
def factorial_in_between(n: ut.i64) -> ut.i64:
    """The base case is two calls away."""
    return ite_plus(n <= 1, 1, n * factorial_in_between(n - 1))


@ut.function
def double_in_between(n: ut.i64) -> ut.i64:
    return ite_plus(n > 100, for_ever(n), n) + ite_twice(n < 100, n, while_positive(n))


@ut.function
def nested_in_between(n: ut.i64) -> ut.i64:
    return both_of_two(n > 2, n > 3, factorial_by_choice(n), for_ever(n))


@ut.function
def down_to(n: ut.i64, a: ut.i64) -> ut.i64:
    return then_down_to(n, a)


@ut.function
def then_down_to(n: ut.i64, a: ut.i64) -> ut.i64:
    if n == 100:
        return a
    return 5 if n <= 0 else down_to(n - 1, a)


@ut.function
def handed_on_in_between(n: ut.i64) -> ut.i64:
    return down_to(n, for_ever(0)) + down_to(102, factorial_by_choice(n))


# --------------------------------------------------------------------------------------------------------------
# Arguments and results that are not needed


@ut.function
def two(a, b):
    return a, b


@ut.function
def one_of_two(n: ut.i64) -> ut.i64:
    """Elsewhere, both results are used."""
    x, y = two(n, for_ever(-1))
    return two(n + 7, for_ever(1))[0] + x + y


@ut.function
def with_endless(n: ut.i64) -> tuple[ut.i64, ut.i64]:
    if n < 0:
        return n, for_ever(n)
    return n + 1, for_ever(n)


@ut.function
def one_of_its_results(n: ut.i64) -> ut.i64:
    return with_endless(n)[0] + sum(with_endless(-n))


@ut.function
def choose(flag: ut.bool, a: ut.i64, b: ut.i64) -> ut.i64:
    if flag:
        return a * 2
    return b


@ut.function
def unneeded_on_this_path(n: ut.i64) -> ut.i64:
    return choose(n > 3, n, for_ever(n))


@ut.function
def endless_loop_in_argument(n: ut.i64) -> ut.i64:
    return choose(n > 3, n, while_positive(n))


@ut.function
def rarely(w: ut.i64, n: ut.i64) -> ut.i64:
    """Hands its argument on, and needs it at the end of some calls."""
    if n == 50:
        return w
    return 0 if n <= 0 else rarely(w, n - 1)


@ut.function
def handed_on(n: ut.i64) -> ut.i64:
    return rarely(for_ever(0), n) + rarely(for_ever(1) * 3, n) + rarely(for_ever(-1) + n, 52)


@ut.function
def swaps(n: ut.i64, a: ut.i64, b: ut.i64) -> ut.i64:
    if n <= 0:
        return a
    return swaps(n - 1, b, a)


@ut.function
def swapped_arguments(n: ut.i64) -> ut.i64:
    wanted = n * n
    return swaps(n, wanted, for_ever(1)) if n % 2 == 0 else swaps(n, for_ever(2), wanted)


@ut.function
def at_least_one(c: ut.bool, d: ut.bool, a: ut.i64) -> ut.i64:
    """Needs it on two paths of three, at different depths."""
    if c:
        return a
    if d:
        return a + 1
    return -1


@ut.function
def on_two_paths(n: ut.i64) -> ut.i64:
    return at_least_one(n == 1, n == 2, factorial_by_choice(n)) + at_least_one(n > 1, n > 2, while_positive(1 - n))


@ut.function
def in_turn(c: ut.bool, d: ut.bool, e: ut.bool, a: ut.i64) -> ut.i64:
    """Branches that follow each other, one of them on the other side, one in another one."""
    total = 0
    if c:
        total = total + a
    if d:
        total = total * 10
    else:
        total = total + a * 2
    if e:
        if c:
            total = total - a
        total = total + 1
    return total


@ut.function
def in_three_branches(n: ut.i64) -> ut.i64:
    """The argument is computed once for all, or not at all."""
    return in_turn(n == 1, n != 2, n > 2, factorial_by_choice(n)) + in_turn(n > 9, n < 9, n < 9, for_ever(n))


@ut.function
def the_second_depends_on_the_first(c: ut.bool, a: ut.i64) -> ut.i64:
    total = a if c else 0
    if total > 5:
        total = total + a
    return total


@ut.function
def in_dependent_branches(n: ut.i64) -> ut.i64:
    """Nobody knows in advance whether the second one is taken: the argument is computed before both."""
    return the_second_depends_on_the_first(n > 2, factorial_by_choice(n))


@ut.function
def row_in_two_branches(c: ut.bool, d: ut.bool, x: ut.f64[None]) -> ut.f64:
    total = ut.sum(x) if c else 0.5
    if d:
        total = total * x[0]
    return total


@ut.function
def rows_by_need(n: ut.i64) -> ut.f64:
    return row_in_two_branches(n > 1, n > 2, ut.concat([row(n), ut.ones(1)]))


@ut.function
def row(n: ut.i64) -> ut.f64[None]:
    if n <= 1:
        return ut.ones(1)
    return ut.concat([row(n - 1), ut.ones(1) * 2.0])


PROGRAMS = [
    program(factorial_by_choice, (5,), (1,), tags="recursive", stated=[120, 1]),
    program(fibonacci_by_choice, (10,), tags="recursive", stated=[55]),
    program(even_by_choice, (7,), (8,), tags="mutual", stated=[False, True]),
    program(collatz_by_choice, (27,), tags="recursive", stated=[111]),
    program(many_choices, (9,), (2,), tags="recursive", stated=[22, 30]),
    program(branch_in_argument, (7,), (4,), tags="recursive branch", stated=[29, 8]),
    program(pairs_by_choice, (10,), tags="recursive containers", stated=[(55, 89)]),
    program(tak_by_choice, (8, 4, 2), tags="recursive", stated=[3]),
    program(power_by_choice, (2.0, 5), (0.5, 0), tags="recursive", stated=[np.float64(32.0), np.float64(1.0)]),
    program(squares_by_choice, (np.arange(4.0), 0), tags="recursive arrays", stated=[np.float64(14.0)]),
    program(cell_by_choice, (np.zeros(3), 0), (np.full(3, -2.0), 1), tags="recursive arrays", stated=[np.zeros(3)] * 2),
    program(mapped_choices, (np.arange(6),), tags="recursive map", stated=[6 + 24 + 120 - 6]),
    program(factorial_by_choice, ([1, 2, 6],), by="map", name="factorials", stated=[np.array([1, 2, 720])]),
    program(choices_in_a_loop, (5,), tags="recursive loop late", stated=[1 + 1 + 2 + 6 + 24]),
    program(draws_by_choice, (4,), tags="recursive random", seed=3),
    program(factorial_by_helper, (5,), tags="recursive", stated=[120]),
    program(even_by_helper, (7,), (8,), tags="mutual", stated=[False, True]),
    program(power_by_method, (3.0, 4), tags="recursive closure", stated=[np.float64(162.0)]),
    program(power_by_closure, (3.0, 4), tags="recursive closure", stated=[np.float64(243.0)]),
    program(factorial_in_between, (4,), (1,), tags="recursive", stated=[4 * (3 * (2 * 2 + 1) + 1) + 1, 2]),
    program(double_in_between, (4,), tags="recursive loop late", stated=[5 + 8]),
    program(nested_in_between, (4,), (2,), tags="recursive branch", stated=[24, 3]),
    program(handed_on_in_between, (4,), tags="mutual", stated=[5 + 24]),
    program(one_of_two, (4,), tags="recursive", stated=[4 + 7 + 4]),
    program(one_of_its_results, (4,), tags="recursive", stated=[5 - 4]),
    program(unneeded_on_this_path, (4,), tags="recursive", stated=[8]),
    program(endless_loop_in_argument, (4,), tags="loop late", stated=[8]),
    program(handed_on, (3,), tags="recursive", stated=[3]),
    program(swapped_arguments, (4,), (3,), tags="recursive", stated=[16, 9]),
    program(in_three_branches, (1,), (2,), (3,), stated=[11, 5, 2], tags="recursive branch"),
    program(in_dependent_branches, (2,), (3,), stated=[0, 12], tags="recursive branch"),
    program(rows_by_need, (1,), (2,), (3,), tags="recursive arrays", stated=[0.5, 4.0, 6.0]),
    program(on_two_paths, (1,), (2,), (3,), tags="recursive branch", stated=[1 - 1, 3 - 1, -1 - 2]),
]
