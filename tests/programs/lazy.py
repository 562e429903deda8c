"""Programs that end only because calls are not strict, and only on engines that say that they are lazy.

Most arguments that no result needs are never computed on any engine: see `late.py`. An argument stays eager where its
callee hands on more than it was given. Python is eager too: the results are stated.
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
def unneeded_result(n: ut.i64) -> tuple[ut.i64, ut.i64]:
    return n, for_ever(n)


@ut.function
def takes_the_first(n: ut.i64) -> ut.i64:
    """Of two results only the one that arrives is used."""
    found, _ = unneeded_result(n)
    return found + 1


@ut.function
def grows(n: ut.i64, a: ut.i64) -> ut.i64:
    """What it hands on is what it was given, and more."""
    if n < 0:
        return a
    if n == 0:
        return 7
    return grows(n - 1, for_ever(a) + a)


@ut.function
def unneeded_and_growing(n: ut.i64) -> ut.i64:
    return grows(n, n)


PROGRAMS = [
    program(unneeded_argument, (4,), tags="recursive", stated=[5]),
    program(takes_the_first, (4,), tags="recursive", stated=[5]),
    program(unneeded_and_growing, (4,), tags="lazy recursive", stated=[7]),
]
