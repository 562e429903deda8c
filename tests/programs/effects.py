"""Effects: what is printed and asserted, always, and in program order."""

from __future__ import annotations

from tests.programs.program import program

import undertow as ut


@ut.function
def announce(n: ut.i64) -> ut.i64:
    """Before and after the recursive call."""
    ut.print("enter", n)
    if n == 0:
        return 0
    below = announce(n - 1)
    ut.print("leave {} with {}", n, below)
    return below + n


@ut.function
def both_children(n: ut.i64) -> ut.i64:
    """The second call comes after the first, though neither needs the other."""
    if n <= 0:
        ut.print("leaf")
        return 1
    left = both_children(n - 1)
    right = both_children(n - 2)
    print("node", n, left + right)
    return left + right


@ut.function
def in_branches(n: ut.i64) -> ut.i64:
    """Effects in one branch, in both, and in neither."""
    if n > 2:
        ut.print("big", n)
    if n % 2 == 0:
        ut.print("even")
        n = n + 1
    else:
        ut.print("odd")
    total = n * 2 if n > 0 else -n
    ut.print("total", total)
    return total


@ut.function
def in_loops(n: ut.i64) -> ut.i64:
    total = 0
    for k in range(n):
        ut.print("round", k)
        if k == 3:
            ut.print("enough")
            break
        total += shout(k)
    ut.print("done", total)
    return total


@ut.function
def shout(k: ut.i64) -> ut.i64:
    ut.print("{}!", k)
    return k * 2


@ut.function
def unused_result(n: ut.i64) -> ut.i64:
    """An effect happens although nothing needs what the call returns."""
    shout(n)
    shout(n + 1)
    return n


@ut.function
def only_effects(n: ut.i64) -> None:
    """A function without a result, left early where there is nothing to say."""
    if n <= 0:
        return
    ut.print("tick", n)
    only_effects(n - 1)


@ut.function
def calls_only_effects(n: ut.i64) -> ut.i64:
    only_effects(n)
    ut.print("over")
    return n + 1


@ut.function
def checked(n: ut.i64) -> ut.i64:
    """Assertions that hold."""
    assert n >= 0, "n must not be negative"
    if n == 0:
        return 1
    ut.assert_(n < 100, "{} is too much", n)  # noqa: PT009 - ours
    return checked(n - 1) * 2 % 1000


@ut.function
def fails_deep_down(n: ut.i64) -> ut.i64:
    ut.print("at", n)
    assert n != 2, "two is not allowed"
    if n == 0:
        return 0
    return fails_deep_down(n - 1) + 1


@ut.function
def divides(n: ut.i64) -> ut.i64:
    """A fault of an operator, in the deepest activation."""
    if n < 0:
        return 0
    return 10 // n + divides(n - 1)


@ut.function
def guarded(n: ut.i64) -> ut.i64:
    """No fault: what could fault stands in the other branch."""
    return 0 if n == 0 else 100 // n + guarded(n - 1)


PROGRAMS = [
    program(announce, (0,), (3,), tags="effects recursive"),
    program(both_children, (0,), (3,), tags="effects recursive"),
    program(in_branches, (-1,), (2,), (5,), tags="effects branch"),
    program(in_loops, (0,), (2,), (9,), tags="effects loop"),
    program(unused_result, (4,), tags="effects"),
    program(calls_only_effects, (0,), (3,), tags="effects recursive"),
    program(checked, (0,), (12,), tags="effects recursive"),
    program(fails_deep_down, (4,), tags="effects recursive fault"),
    program(divides, (3,), tags="recursive fault"),
    program(guarded, (5,), tags="recursive branch"),
]
