"""Programs that capture once got wrong, each with what was wrong."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.ir.spec import check
from undertow.ir.structure import LIBRARY, STATIC
from undertow.ops.op import CATALOGUE


def printed(function: ut.Function, *args: object, capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """What a run prints, under several schedulers."""
    check(function.library(*args))
    check(function.graph(*args).static)
    lines: list[list[str]] = []
    for scheduler, seed in (("fifo", 0), ("lifo", 0), ("random", 1), ("random", 2), ("random", 3)):
        function.run(*args, scheduler=scheduler, schedule_seed=seed)
        lines.append(capsys.readouterr().out.split())
    return lines


def plain(function: ut.Function) -> Any:
    """The Python function."""
    return function.__wrapped__  # type: ignore[attr-defined]


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


def test_a_join_that_is_first_read_in_the_test_of_a_loop() -> None:
    """The Merge was forgotten together with the test, which belongs into the loop, but the variable kept it."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        if n > 3:
            n = n - 1
        k = 0
        while k * 2 < n:
            k += 1
        return n * 100 + k

    assert (f(2), f(9)) == (201, 804)


def test_a_loop_variable_begins_as_a_python_number() -> None:
    """It takes a wider dtype where it meets one: on one path of the body, or in a loop inside the loop."""

    @ut.function
    def one_path(n: ut.i64) -> ut.f64:
        total = 0
        k = 0
        while True:
            k += 1
            if k > n:
                break
            if k % 2 == 0:
                total = total + 0.5
            total = total * 2
        return total

    @ut.function
    def inner_loop(n: ut.i64) -> ut.f64:
        total, count = 0, 0
        for i in range(n):
            for j in range(i):
                total = total + j / 2
                count += 1
        return total + count

    assert (one_path(0), one_path(5)) == (0.0, plain(one_path)(5))
    assert (inner_loop(0), inner_loop(4)) == (0.0, 8.0)


def test_the_variable_of_a_for_loop_afterwards() -> None:
    """It keeps its last value, and where the loop never runs the one from before."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        k = -5
        for k in range(n):
            if k * k > 10:
                break
        return k

    assert [f(n) for n in (0, 3, 9)] == [-5, 2, 4]


def test_a_range_with_a_static_step_has_one_comparison() -> None:
    """Both were made, to go up and to go down."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        total = 0
        for k in range(n):
            total += k
        return total

    ops = [node.op for node in f.graph(3).static.nodes]
    assert ops.count("less") == 1 and "greater" not in ops


def test_conditions_of_several_types() -> None:
    """Operands of `and` and `or` in a condition had to have one type, though only their truth is asked."""

    @ut.function
    def f(n: ut.i64, x: ut.f64) -> ut.i64:
        total = 1 if n and n > 3 else 2
        if not (n and x) or f(0, x) < 0:
            total += 10
        k = n
        while k and total < 500 and x:
            total += 100
            k -= 1
        return total + (1000 if n > 0 or x or n else 2000)

    for n, x in ((0, 0.0), (0, 1.5), (3, 0.0), (3, 1.5), (9, 0.5)):
        assert f(n, x) == plain(f)(n, x)


def test_the_value_of_and_is_an_operand() -> None:
    """`n > 2 and n` gave a truth value instead of n."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return n > 2 and n

    with pytest.raises(ut.TypeMismatch, match="this expression is an i64 where the condition is true, but a bool"):
        f(5)


def test_the_test_of_a_loop_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """What the last test printed was not awaited by what follows the loop."""

    @ut.function
    def loud(n: ut.i64) -> ut.i64:
        ut.print("test", n)
        return n

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        while loud(n) > 0:
            n -= 1
        ut.print("between", n)
        n = ut.while_loop(lambda k: loud(k) < 2, lambda k: k + 1, n)
        ut.print("end", n)
        return n

    lines = ["test 1", "test 0", "between 0", "test 0", "test 1", "test 2", "end 2"]
    assert printed(f, 1, capsys=capsys) == [" ".join(lines).split()] * 5


def test_the_test_of_a_loop_assigns() -> None:
    """The variable had the value from before the last test."""

    @ut.function
    def f(n: ut.i64) -> tuple[ut.i64, ut.i64]:
        k = 0
        while 3 < (n := n - 2) < 100:
            if n == 7:
                continue
            k += n
        return n, k

    assert [f(n) for n in (0, 5, 13)] == [plain(f)(n) for n in (0, 5, 13)]


def test_names_tell_nothing_of_attempts() -> None:
    """What was captured twice left gaps in the numbers behind names: `loop~4`, `n.if_2` without an `n.if`."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        total = 0
        for k in range(n):
            j = k
            while j * j > total:
                ut.print("j", j)
                if j == 5:
                    return total
                j -= 1
            total += j + 1
        return total

    library = f.library(3)
    name = "test_names_tell_nothing_of_attempts.f"
    assert list(library.functions) == ["main", name, f"{name}.loop", f"{name}.loop.loop"]
    for graph in library.functions.values():
        names = {node.name for node in graph.nodes}
        for found in names:
            stem, _, number = found.rpartition("_")
            if number.isdigit():
                before = stem if number == "2" else f"{stem}_{int(number) - 1}"
                assert before in names, f"{found}, but no {before}"


def test_a_map_over_an_empty_list() -> None:
    """A list without numbers was no array."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        return n + 1

    found = f.map([])
    assert found.shape == (0,) and found.dtype.kind == "i"


def test_an_operator_may_not_have_the_name_of_a_structural_one() -> None:
    """`take_along_axis` was once called `gather`, like the operator that ends a map."""
    structural = {*LIBRARY, *STATIC}
    assert not CATALOGUE.keys() & structural


def test_elements_along_an_axis() -> None:
    @ut.function
    def pick(x: ut.f64[2, 3], i: ut.i64[2, 1]):
        return ut.take_along_axis(x, i, axis=1)

    x = np.arange(6.0).reshape(2, 3)
    assert pick(x, np.array([[2], [0]])).tolist() == [[2.0], [3.0]]


def test_lists_in_lists_change_in_a_branch() -> None:
    """Where lists change places, what they held was taken from the other branch."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        rows = [[0, 0], [n, 1]]
        if n > 3:
            rows[0][1] = n
            rows[1], rows[0] = rows[0], rows[1]
        return rows[0][0] * 1000 + rows[0][1] * 100 + rows[1][0] * 10 + rows[1][1]

    assert (f(5), f(2)) == (5105, 21)


def test_sets_change_in_a_branch() -> None:
    """A set kept what both branches put into it."""

    @ut.function
    def same(n: ut.i64) -> ut.i64:
        seen = {1}
        if n > 3:
            seen.add(2)
        else:
            seen.add(2)
            n = n + 10
        return n + len(seen)

    @ut.function
    def different(n: ut.i64) -> ut.i64:
        seen = {1}
        if n > 3:
            seen.add(2)
        return n + len(seen)

    assert (same(5), same(2)) == (7, 14)
    with pytest.raises(ut.CaptureError, match="`seen` has the items 1, 2 where the condition is true, but the items 1"):
        different(5)


def test_containers_in_attributes_change_in_a_branch() -> None:
    """A list in an attribute kept what both branches put into it."""

    class Account:
        def __init__(self) -> None:
            self.items: list[object] = []

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        account = Account()
        account.items.append(1)
        if n > 3:
            account.items.append(n)
        else:
            account.items.append(7)
        return sum(account.items)

    assert (f(5), f(2)) == (6, 8)


def test_a_loop_that_python_runs_is_left_on_one_of_several_paths() -> None:
    """That the loop must become one of the graph was found out too late, after the branches had joined."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        k = 0
        while k < 3:
            k += 1
            if n > 2 * k:
                n = n - 1
            elif n == 2:
                break
        return n * 10 + k

    assert [f(n) for n in range(9)] == [plain(f)(n) for n in range(9)]


def test_a_loop_variable_of_any_length_takes_one_of_known_length() -> None:
    """The rule for loops wanted the same type, though every length fits a run-time one."""

    @ut.function
    def f(x: ut.f64[None], n: ut.i64) -> ut.f64[None]:
        for k in range(n):
            x = ut.asarray([1.0, 2.0]) * k
        return x

    check(f.library([5.0], 1))
    assert f([5.0, 6.0, 7.0], 0).tolist() == [5.0, 6.0, 7.0]
    assert f([5.0, 6.0, 7.0], 3).tolist() == [2.0, 4.0]


def test_a_variable_that_is_set_where_control_goes_on() -> None:
    """The path that leaves the loop does not set it, but never comes to where it is read."""

    @ut.function
    def f(n: ut.i64) -> ut.i64:
        total = 0
        for k in range(n):
            if k == 7:
                return -total
            elif k * k > 20:
                if total > 15:
                    break
                step = 1
            elif k == 2:
                continue
            else:
                step = k + 1
            total += step
        return total

    assert [f(n) for n in range(12)] == [plain(f)(n) for n in range(12)]


def test_numbers_of_several_branches_take_the_dtype_of_the_others() -> None:
    """Numbers that were chosen among became integers, which a float does not join."""

    @ut.function
    def f(n: ut.i64, x: ut.f64) -> ut.f64:
        y = 0
        if n > 5:
            y = x * 2
        elif n > 3:
            y = 1
        elif n > 1:
            y = 2
        return y

    assert [f(n, 0.25) for n in (0, 2, 4, 6)] == [0.0, 2.0, 1.0, 0.5]


def test_bounds_of_random_numbers_take_their_dtype():
    @ut.function
    def draw():
        return ut.random.uniform(-0.5, 0.5, 3, ut.f32), ut.random.normal(1.5, 2.0, 3, ut.f32)

    assert [x.dtype for x in draw()] == [np.float32, np.float32]
    assert ut.random.uniform(-0.5, 0.5, 3, ut.f32).dtype == np.float32


def test_functions_that_were_given_another_name_are_found() -> None:
    """Those of Undertow are made from rows of operators; users rename theirs. The source is where the code says."""
    np.testing.assert_allclose(ut.grad(ut.tanh)(1.0), 1 / np.cosh(1.0) ** 2)
    np.testing.assert_allclose(ut.vjp(ut.multiply, 2.0, 3.0)[1](1.0), (3.0, 2.0))

    def doubled(x: Any) -> Any:
        return x * 2.0

    doubled.__name__ = doubled.__qualname__ = "scaled"
    assert ut.function(doubled)(4.0) == 8.0


@functools.cache
@ut.function
def _cached_fib(n: ut.i64) -> ut.i64:
    return n if n < 2 else _cached_fib(n - 1) + _cached_fib(n - 2)


def test_a_cache_above_a_captured_function() -> None:
    """The recursion goes through the cache, which a graph leaves out."""
    twice = ut.function(lambda n: 2 * _cached_fib(n))
    assert _cached_fib(20) == 6765 and twice(10) == 110
    assert _cached_fib.cache_info().currsize == 1
