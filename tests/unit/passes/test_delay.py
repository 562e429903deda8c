"""`delay`: what is late, what stays eager, and what it costs."""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

import numpy as np
import pytest
from tests.programs.late import factorial_by_choice, for_ever, ite
from tests.support.engines import EVERY, forced
from tests.support.validity import valid
from tests.support.written import function_of

import undertow as ut
from undertow.passes.delay import delay_arguments
from undertow.passes.simplify import simplify


@ut.function
def fib(n: ut.i64) -> ut.i64:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def counts(function: ut.Function, *args: Any) -> dict[str, int]:
    """What the pass did to a captured program."""
    library = function.library(*args)
    after, count = delay_arguments(library)
    if not count:
        assert after is library
    valid(after)
    return dict(count)


# --------------------------------------------------------------------------------------------------------------
# What stays as it is


@ut.function
def both(c: ut.bool, a: ut.i64, b: ut.i64) -> ut.i64:
    return a + b if c else a - b


@ut.function
def checked(a: ut.i64, b: ut.i64) -> ut.i64:
    if a < 0:
        raise ValueError("negative")
    return a + b


@ut.function
def needs_both(n: ut.i64) -> ut.i64:
    return both(n > 3, fib(n), fib(n + 1)) + checked(fib(n), fib(n - 1))


@ut.function
def takes_cheap(n: ut.i64) -> ut.i64:
    return ite(n > 0, n // 2, 100 // n) + fib(3)


@ut.function
def loops_over(n: ut.i64, a: ut.i64) -> ut.i64:
    total = 0
    for _ in range(n):
        total = total + a
    return total


@ut.function
def hands_to_loop(n: ut.i64) -> ut.i64:
    return loops_over(n, fib(n))


@ut.function
def uses_it_too(n: ut.i64) -> ut.i64:
    x = fib(n)
    return ite(n > 3, x, 0) + x


@pytest.mark.parametrize(
    "function", [fib, needs_both, takes_cheap, hands_to_loop, uses_it_too], ids=lambda f: f.__name__
)
def test_needed_arguments_are_not_late(function: ut.Function) -> None:
    """Strict parameters, also of functions that may raise an error; cheap arguments; what serves something else too."""
    assert counts(function, 5) == {}
    assert function.run(5, stats=True)[1].late == 0


@ut.function
def prints(n: ut.i64) -> ut.i64:
    print("n is", n)
    return n if n <= 0 else prints(n - 1)


@ut.function
def asserts(n: ut.i64) -> ut.i64:
    assert n < 10, "too large"
    return n if n <= 0 else asserts(n - 1)


@ut.function
def may_print(n: ut.i64) -> ut.i64:
    return ite(n > 1, n, prints(n))


@ut.function
def may_fail(n: ut.i64) -> ut.i64:
    return ite(n > 1, n, asserts(n))


def test_effects_always_happen() -> None:
    assert counts(may_print, 2) == counts(may_fail, 2) == {}
    for engine in EVERY:
        with forced(), contextlib.redirect_stdout(io.StringIO()) as printed:
            assert may_print.run(2, engine=engine) == 2
        assert printed.getvalue() == "n is 2\nn is 1\nn is 0\n"
        with forced(), pytest.raises(ut.Fault, match="too large"):
            may_fail.run(12, engine=engine)


def test_variables_are_read_in_order() -> None:
    total = ut.Variable(np.int64(1))

    @ut.function
    def sums(n: ut.i64) -> ut.i64:
        return total.read() if n <= 0 else sums(n - 1) + 1

    @ut.function
    def reads_then_assigns(n: ut.i64) -> ut.i64:
        x = ite(n > 1, sums(n), 0)
        total.assign(np.int64(100))
        return x

    assert counts(reads_then_assigns, 2) == {}
    assert reads_then_assigns(2) == 3


# --------------------------------------------------------------------------------------------------------------
# What is late


@ut.function
def announces(c: ut.bool, a: ut.i64, b: ut.i64) -> ut.i64:
    """Prints, and needs one of its arguments."""
    print("choosing")
    if c:
        return a
    assert not c
    return b


@ut.function
def announced(n: ut.i64) -> ut.i64:
    return announces(n > 3, n, for_ever(n))


def test_the_callee_may_act() -> None:
    assert counts(announced, 5) == {"late argument": 1}
    for engine in EVERY:
        with forced(), contextlib.redirect_stdout(io.StringIO()) as printed:
            assert announced.run(5, engine=engine, timeout=20.0) == 5
        assert printed.getvalue() == "choosing\n"


@ut.function
def one_of_many(k: ut.i64, a: ut.i64, b: ut.i64, c: ut.i64) -> ut.i64:
    if k == 0:
        return a + b
    if k == 1:
        return b * 2
    return c


@ut.function
def three_at_once(k: ut.i64) -> ut.i64:
    shared = fib(k + 5)
    return one_of_many(k, shared + 1, shared + fib(k), for_ever(-1) if k > 1 else for_ever(1))


def test_arguments_share_what_computes_them() -> None:
    """`shared` is computed once where both need it: never more calls than Python makes."""
    assert counts(three_at_once, 1) == {"late argument": 3}
    for k, expected, calls in ((0, 5 + 1 + 5, 15 + 1), (1, (8 + 1) * 2, 25 + 1), (2, 0, 1)):
        for engine in EVERY:
            with forced():
                found, stats = three_at_once.run(k, engine=engine, stats=True, timeout=20.0)
            assert found == expected
            assert stats.activations == calls + 2  # and one_of_many, three_at_once


@ut.function
def two_branches(c: ut.bool, d: ut.bool, a: ut.i64) -> ut.i64:
    s = a if c else 0
    if d:
        s = s + a
    return s


@ut.function
def used_twice(n: ut.i64) -> ut.i64:
    return two_branches(n > 1, n > 2, fib(n)) + ite(n < 100, 0, two_branches(n > 1, n > 2, for_ever(n)))


def test_nothing_is_computed_twice() -> None:
    calls = 25  # of fib(6)
    for engine in EVERY:
        with forced():
            found, stats = used_twice.run(6, engine=engine, stats=True, timeout=20.0)
        assert found == 16
        assert stats.activations == calls + 3


def test_many_choices_stay_small() -> None:
    """A chain of choices is linear in its length: each copy has what its own call chooses."""
    tests = 120
    inner = "late(n - 1)"
    for k in range(tests):
        inner = f"ite(n == {k}, {k}, {inner})"
    text = f"""
@ut.function
def ite(c, a, b):
    return a if c else b

@ut.function
def late(n: ut.i64) -> ut.i64:
    return {inner}
"""
    late = function_of(text, "late")
    library = simplify(late.library(5))[0]
    began = time.perf_counter()
    after, count = delay_arguments(library)
    assert time.perf_counter() - began < 20.0
    assert count["late argument"] == tests
    assert sum(len(graph.nodes) for graph in after.functions.values()) < 40 * tests
    assert late(130) == 119


def test_late_arguments_are_counted() -> None:
    stats = factorial_by_choice.run(5, stats=True)[1]
    assert stats.late == 1
    assert "late arguments  1" in str(stats)
    assert "late" not in str(fib.run(5, stats=True)[1])
    assert 'callee="ite~2" late=1' in str(delay_arguments(factorial_by_choice.library(5))[0])
    assert "late=1" in str(factorial_by_choice.graph(5))


def test_faults_name_the_line_of_the_argument() -> None:
    @ut.function
    def divides(n: ut.i64) -> ut.i64:
        return ite(n < 0, 0, 100 // n + divides(n - 1))

    for engine in EVERY:
        with forced(), pytest.raises(ZeroDivisionError) as fault:
            divides.run(3, engine=engine)
        assert "100 // n + divides(n - 1)" in str(fault.value)
