"""Of several failing activations, the one is reported that Python would have reached first, on every engine."""

from __future__ import annotations

import contextlib
import io
import traceback
from typing import Any

import pytest

import undertow as ut
from undertow.api.options import ENGINES

ITEMS = [1, 2, 3]


@ut.function
def line_by_line(n):
    a = 10 // n
    b = ITEMS[n + 5]
    return a + b


@ut.function
def two_calls(n: ut.i64) -> ut.i64:
    if n == 0:
        return ITEMS[n + 7]
    if n == 1:
        return 5 // (n - 1)
    return two_calls(n - 1) + two_calls(n - 2)


@ut.function
def after_the_call(n: ut.i64) -> ut.i64:
    if n <= 0:
        return ITEMS[7 + n]
    x = after_the_call(n - 1)
    y = 7 // (n - 3)
    return x + y


@ut.function
def before_the_call(n: ut.i64) -> ut.i64:
    y = 7 // (n - 2)
    if n <= 0:
        return ITEMS[7 + n]
    return before_the_call(n - 1) + y


@ut.function
def in_a_loop(n):
    total = 0
    for i in range(n):
        total += 6 // (i - 2)
        total += ITEMS[i + 1]
    return total


@ut.function
def in_branches(n, m):
    if n > 0:
        x = ITEMS[n + 9]
    else:
        x = 1 // n
    y = 4 // m
    return x + y


@ut.function
def helper(n: ut.i64) -> ut.i64:
    assert n > 0, "not positive"
    return 8 // n


@ut.function
def of_arguments(n):
    return helper(n - 1) + helper(ITEMS[n + 9])


@ut.function
def raised_or_faulty(n: ut.i64) -> ut.i64:
    if n == 2:
        raise ValueError("two")
    return 0 if n < 0 else raised_or_faulty(n - 1) + 6 // n


@ut.function
def printing(n: ut.i64) -> ut.i64:
    print("at", n)
    if n == 0:
        return 1 // n
    return printing(n - 1) + ITEMS[n + 3]


CASES: list[tuple[Any, tuple[Any, ...]]] = [
    (line_by_line, (0,)), (two_calls, (5,)), (two_calls, (4,)), (after_the_call, (4,)), (before_the_call, (4,)),
    (in_a_loop, (9,)), (in_branches, (3, 0)), (in_branches, (0, 0)), (of_arguments, (1,)), (of_arguments, (3,)),
    (raised_or_faulty, (4,)), (raised_or_faulty, (1,)), (printing, (2,)),
]  # fmt: skip


def outcome(function: Any, args: tuple[Any, ...], engine: str) -> tuple[Any, ...]:
    """The line that failed, what was raised, and what was printed before."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        try:
            function.run(*args, engine=engine)
        except ut.Fault as fault:
            return fault.span and fault.span.line, fault, printed.getvalue()
        except Exception as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__]
            return lines[-1], error, printed.getvalue()
    raise AssertionError("it does not fail")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda x: getattr(x, "__name__", str(x)))
def test_the_fault_is_python_s(function: Any, args: tuple[Any, ...], engine: str) -> None:
    line, error, printed = outcome(function, args, engine)
    wanted = outcome(function, args, "python")
    assert (line, printed) == (wanted[0], wanted[2])
    assert isinstance(error, type(wanted[1]))


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_fail_in_order(engine: str) -> None:
    inverse = ut.function(lambda n: ITEMS[n] // (n - 1))
    for values, index in (([0, 1, 7], 1), ([0, 7, 1], 1), ([7, 1], 0)):
        with pytest.raises(ut.Fault) as raised:
            inverse.map(values, engine=engine)
        assert raised.value.calls[0].label == f"@1 lane {index}"


@pytest.mark.parametrize("engine", ENGINES)
def test_nothing_is_committed(engine: str) -> None:
    v = ut.Variable(0)

    @ut.function
    def stored(n):
        v.assign(n)
        return 5 // (n - n) + ITEMS[v.read() + 5]

    with pytest.raises(ZeroDivisionError):
        stored.run(3, engine=engine)
    assert v.read() == 0


def test_the_search_is_bounded() -> None:
    @ut.function
    def deep(n: ut.i64) -> ut.i64:
        return 1 // n if n == 0 else deep(n - 1) + 1

    with pytest.raises(ZeroDivisionError):
        deep(50_000)
