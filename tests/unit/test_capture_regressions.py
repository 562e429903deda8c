"""Programs that capture once got wrong, each with what was wrong."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.ir.spec import check


def printed(function: ut.Function, *args: object, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """What a run prints, under several schedulers."""
    check(function.library(*args))
    check(function.graph(*args).static)
    lines: list[list[str]] = []
    for scheduler, seed in (("fifo", 0), ("lifo", 0), ("random", 1), ("random", 2), ("random", 3)):
        function.run(*args, scheduler=scheduler, schedule_seed=seed)
        lines.append(capsys.readouterr().out.split())
    return lines


def test_first_effects_in_both_branches(capsys: pytest.CaptureFixture[str]) -> None:
    """Each branch made an effect parameter of its own."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        if n > 0:
            ut.print("a")
        else:
            ut.print("b")
        ut.print("c")
        return n

    assert printed(f, 1, capsys=capsys) == [["a", "c"]] * 5
    assert printed(f, 0, capsys=capsys) == [["b", "c"]] * 5


def test_first_effect_in_a_loop_that_is_left_early(capsys: pytest.CaptureFixture[str]) -> None:
    """The second capture of the loop made a second effect parameter."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        k = 0
        while k < n:
            ut.print(k)
            if k == 2:
                break
            k += 1
        return k

    assert printed(f, 9, capsys=capsys) == [["0", "1", "2"]] * 5


def test_a_branch_without_effects_waits_for_those_before(capsys: pytest.CaptureFixture[str]) -> None:
    """The side that does nothing did not wait for the effects before the call."""

    @ut.function
    def slow(n: ut.i64) -> ut.i64:
        return 0 if n == 0 else slow(n - 1)

    @ut.function
    def maybe(n: ut.i64) -> ut.i64:
        if n > 0:
            ut.print("never")
        return n

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        ut.print(slow(n))
        maybe(n - n)
        ut.print("last")
        return n

    assert printed(f, 20, capsys=capsys) == [["0", "last"]] * 5


def test_a_function_without_result_may_return_early(capsys: pytest.CaptureFixture[str]) -> None:
    """A bare `return` on one path was taken for a missing value on the others."""

    @ut.function
    def tick(n: ut.i64) -> None:
        if n > 3:
            if n > 5:
                return
            ut.print("high")
        if n <= 0:
            return
        ut.print(n)
        tick(n - 1)

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        tick(n)
        ut.print("over")
        return n

    assert printed(f, 4, capsys=capsys) == [["high", "4", "3", "2", "1", "over"]] * 5
    assert printed(f, 6, capsys=capsys) == [["over"]] * 5


def test_a_closure_sees_the_value_of_now() -> None:
    """A nested ut.function kept the value that a variable around it had at the first call."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        x = n

        @ut.function
        def add(k: ut.i64) -> ut.i64:
            return k + x if k > 0 else add(k + 1)

        first = add(0)
        x = x * 100
        second = add(0)
        if n > 2:
            x = 7
        return first * 1_000_000 + second * 1_000 + add(0)

    assert f(2) == 3_201_201
    assert f(3) == 4_301_008


def test_annotated_star_arguments() -> None:
    """The annotation of `*args` and `**kwargs` is that of each of them, not of all."""

    @ut.function
    def f(n: ut.i64, *more: ut.i64, **named: ut.f64) -> ut.f64:
        if n <= 0:
            return named["x"] + sum(more)
        return f(n - 1, *more, x=named["x"] * 2)

    assert f(2, 5, 6, x=1) == 15.0
    assert f(0, x=1.5) == 1.5


def test_a_function_as_argument() -> None:
    """A function that is made during capture was taken for a container, and looked into for ever."""

    @ut.function
    def apply(f, n: ut.i64) -> ut.i64:
        return f(n) if n <= 0 else apply(f, n - 1) + f(n)

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        def double(k):
            return k * 2 + n

        return apply(double, n) + apply(lambda k: k, n)

    assert f(3) == sum(k * 2 + 3 for k in range(4)) + sum(range(4))


def test_two_branches_on_one_value() -> None:
    """Two `if`s on the same value in the same region made two pairs of regions that nothing could tell apart.

    p ──┬─► if1.then   both `if`s stand in these two regions
        └─► if1.else
    """

    @ut.function
    def f(p: ut.bool, n: ut.i64) -> ut.i64:
        a = n + 1 if p else n * 2
        if p:
            b = a * 10
        else:
            b = f(True, a)
        return (a if p else b) + b

    check(f.library(True, 1))
    static = f.graph(True, 1).static
    check(static)
    assert [region.kind for region in static.regions].count("branch") == 2
    assert (f(True, 3), f(False, 3)) == (44, 154)
