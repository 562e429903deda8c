"""Programs that end only because calls are not strict: an argument that no result needs never arrives.

An eager engine may run on for ever, so these are for engines that say that they are lazy. Python is eager too: the
results are stated.
"""

from __future__ import annotations

from tests.programs.program import program

import undertow as ut


@ut.function
def for_ever(n: ut.i64) -> ut.i64:
    """Has a base case that is never met."""
    return 0 if n < 0 else for_ever(n + 1) + 1


@ut.function
def first(a: ut.i64, b: ut.i64) -> ut.i64:
    return a


@ut.function
def unneeded_argument(n: ut.i64) -> ut.i64:
    return first(n + 1, for_ever(n))


@ut.function
def choose(flag: ut.bool, a: ut.i64, b: ut.i64) -> ut.i64:
    """Which argument is needed turns out only inside."""
    if flag:
        return a * 2
    return b


@ut.function
def unneeded_on_this_path(n: ut.i64) -> ut.i64:
    return choose(n > 3, n, for_ever(n))


@ut.function
def unneeded_result(n: ut.i64) -> tuple[ut.i64, ut.i64]:
    return n, for_ever(n)


@ut.function
def takes_the_first(n: ut.i64) -> ut.i64:
    """Of two results only the one that arrives is used."""
    found, _ = unneeded_result(n)
    return found + 1


PROGRAMS = [
    program(unneeded_argument, (4,), tags="lazy recursive", stated=[5]),
    program(unneeded_on_this_path, (4,), tags="lazy recursive", stated=[8]),
    program(takes_the_first, (4,), tags="lazy recursive", stated=[5]),
]
