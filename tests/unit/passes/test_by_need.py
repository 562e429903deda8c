"""Which arguments are computed by need, as people are told, and that the run does what they are told."""

from __future__ import annotations

from typing import Any

import pytest
from tests.programs import find, late
from tests.support.engines import EVERY, forced

import undertow as ut
from undertow.api.late import LateView
from undertow.ir.spec import check


@ut.function
def ite(condition, a, b):
    return a if condition else b


@ut.function
def never(n: ut.i64) -> ut.i64:
    return 0 if n < 0 else never(n + 1) + 1


def arguments(view: LateView) -> list[tuple[str, bool, str]]:
    """Parameter, whether it is late, and why, of all calls that are listed."""
    return [(argument.name, argument.is_late, argument.why) for call in view.calls for argument in call.arguments]


def why(function: Any, *args: Any) -> str:
    """Why the last argument of the only call that is listed is computed at once."""
    (call,) = function.graph(*args).late().calls
    assert not call.late
    return call.arguments[-1].why


def test_what_is_said_of_a_choice() -> None:
    @ut.function
    def factorial(n: ut.i64) -> ut.i64:
        return ite(n <= 1, 1, n * factorial(n - 1))

    view = factorial.graph(5).late()
    assert len(view) == 1 and "1 late argument" in repr(view)
    assert arguments(view) == [
        ("condition", False, "every path needs it"),
        ("a", False, "neither a call nor a loop computes it"),
        ("b", True, "in if1.else, by 3 nodes: subtract, factorial, multiply"),
    ]
    check(view.static)


def test_a_program_without_any() -> None:
    @ut.function
    def fib(n: ut.i64) -> ut.i64:
        return 1 if n <= 1 else fib(n - 1) + fib(n - 2)

    view = fib.graph(5).late()
    assert len(view) == 0 and str(view).startswith("every argument is computed at once")
    assert [node.name for node in view.static.nodes] == [node.name for node in fib.graph(5).static.nodes]


def test_what_no_path_needs() -> None:
    """`two` gives both of its arguments, but one call uses the first result alone."""
    (call,) = find("one_of_two").function.graph(3).late().calls
    assert arguments(find("one_of_two").function.graph(3).late())[1][1:] == (
        True, "nowhere, as no path needs it: 1 node: for_ever_2",
    )  # fmt: skip
    assert call.unused == 1 and str(call).endswith("1 of its results is not computed")


@ut.function
def plus_one(condition, a, b):
    """Hands both on at once, one of them with something added."""
    return ite(condition, a * 2, b) + 1


def test_what_is_handed_on_at_once() -> None:
    @ut.function
    def factorials(n: ut.i64) -> ut.i64:
        return plus_one(n <= 1, 1, n * factorials(n - 1))

    (call,) = factorials.graph(5).late().calls
    assert call.callee == "plus_one"
    assert [argument.is_late for argument in call.arguments] == [False, False, True]
    assert call.arguments[-1].why == "where ite needs it, by 3 nodes: subtract, factorials, multiply"


def test_what_serves_two_is_computed_at_once() -> None:
    @ut.function
    def twice(n: ut.i64) -> ut.i64:
        shared = never(n)
        return ite(n > 3, n, shared) + ite(n > 2, n, shared)

    calls = twice.graph(5).late().calls
    assert len(calls) == 2 and not any(call.late for call in calls)
    assert "serves something else" in calls[0].arguments[-1].why


def test_what_acts_is_computed_at_once() -> None:
    @ut.function
    def speaks(n: ut.i64) -> ut.i64:
        ut.print("{}", n)
        return 0 if n <= 0 else speaks(n - 1)

    @ut.function
    def loud(n: ut.i64) -> ut.i64:
        return ite(n > 3, n, speaks(n))

    assert "acts" in why(loud, 5)


def test_what_two_branches_use() -> None:
    """In a branch that is taken if one of them is; before both, if the first one decides about the second."""

    @ut.function
    def maybe_twice(c: ut.bool, d: ut.bool, a: ut.i64) -> ut.i64:
        total = a if c else 0
        if d:
            total = total + a
        return total

    @ut.function
    def program(n: ut.i64) -> ut.i64:
        return maybe_twice(n > 3, n > 4, never(n))

    (call,) = program.graph(5).late().calls
    assert call.arguments[-1].why == "in a.needed.then, by 1 node: never"
    assert program(3) == 0
    (call,) = (
        call
        for call in find("in_dependent_branches").function.graph(5).late().calls
        if call.callee == "the_second_depends_on_the_first"
    )
    assert "comes first" in call.arguments[-1].why


def test_what_grows_is_computed_at_once() -> None:
    calls = find("unneeded_and_growing").function.graph(4).late().calls
    assert {call.arguments[-1].why for call in calls} == {"grows hands on more than it was given"}


@pytest.mark.parametrize("program", late.PROGRAMS, ids=str)
def test_what_is_said_is_what_runs(program: Any) -> None:
    """Each late argument of the pass is named, with its place; the picture marks what computes it."""
    if program.by == "map":
        return
    function, args = program.function, program.cases[0]
    view = function.graph(*args).late()
    written = sum(len(call.late) for call in view.calls)
    assert bool(written) == bool(function.graph(*args).static.sites and _late_sites(function, args))
    for call in view.calls:
        for argument in call.late:
            assert argument.nodes and argument.why.startswith(("in ", "nowhere", "where "))
    check(view.static)


def _late_sites(function: Any, args: tuple[Any, ...]) -> int:
    return sum(site.late for site in function.graph(*args).static.sites)


# --------------------------------------------------------------------------------------------------------------
# Counts


@ut.function
def up(n: ut.i64) -> ut.i64:
    return n if n % 7 == 0 else up(n + 1)


@ut.function
def down(n: ut.i64) -> ut.i64:
    """Below zero it never ends."""
    return n if n >= 0 and n % 7 == 0 else down(n - 1)


@ut.function
def nearest(n: ut.i64) -> ut.i64:
    return ite(n < 7, up(n), down(n))


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize(("n", "result", "calls"), [(3, 7, 5), (7, 7, 1), (13, 7, 7), (20, 14, 7)])
def test_what_is_not_needed_is_not_called(engine: str, n: int, result: int, calls: int) -> None:
    with forced():
        found, stats = nearest.run(n, engine=engine, stats=True)
    assert (found, stats.activations) == (result, 2 + calls)
    fired = {name.partition("/")[0] for name, count in stats.per_node.items() if count}
    assert ("down" in fired, "up" in fired) == (n >= 7, n < 7)


def test_lanes_go_their_own_ways() -> None:
    """In a map, those that take a branch compute its argument together: a wave for each step, not for each lane."""
    found, stats = ut.function(lambda ns: ut.map(nearest, ns)).run([3, 6, 13, 20, 4], engine="waves", stats=True)
    assert found.tolist() == [7, 7, 7, 14, 7]
    assert stats.activations == 1 + 5 * 2 + (5 + 2 + 4) + (7 + 7)
    assert stats.waves <= 4 + 7 + 7
