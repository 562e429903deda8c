"""The demand engine: it computes what is needed and nothing else, effects in order, and keeps little."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.programs import find
from tests.programs.late import choose, unneeded_on_this_path
from tests.programs.lazy import first, for_ever
from tests.support import hand_programs
from tests.support.agreement import agree, demand
from tests.support.body import I64, Body, const, library
from tests.support.graphs import captured
from tests.support.hand_programs import deep_branches, factorial, fibonacci, loop_in_branch, sum_loop, two_phases
from tests.support.recursions import fib, swap_down

import undertow as ut
from undertow.api.function import Function
from undertow.engines.contract import Options
from undertow.engines.demand import Demand, explain
from undertow.errors import Fault, RunError
from undertow.ir.graph import Library, Port
from undertow.ops.op import CATALOGUE
from undertow.passes.flatten import flatten
from undertow.types import CTL, f64

# Programs of every kind, as captured; the conformance suite has their results.
SOME = (
    "fibonacci", "takeuchi", "ackermann", "is_even", "find_pair", "collatz", "catalan", "triangle", "sum_to",
    "explicit_while", "table", "nested_recursion", "lifted_closure", "closure_in_loop", "dict_of_lists", "bisect",
    "halves_sum", "hanoi", "both_children", "in_branches", "in_loops", "calls_only_effects",
)  # fmt: skip


# --------------------------------------------------------------------------------------------------------------
# Programs


@pytest.mark.parametrize("name", hand_programs.PROGRAMS)
def test_programs_built_by_hand(name: str) -> None:
    graph = flatten(hand_programs.PROGRAMS[name]())
    for inputs in hand_programs.ARGUMENTS[name]:
        agree(graph, *inputs)


@pytest.mark.parametrize("name", SOME)
def test_no_node_fires_more_often_than_on_the_reference(name: str) -> None:
    program = find(name)
    for case, args in enumerate(program.cases):
        agree(flatten(program.capture(case)[0]), *program.function.__undertow_arguments__(args, {}).leaves)


@pytest.mark.parametrize("flag", [True, False])
def test_branches(flag: bool) -> None:
    agree(flatten(deep_branches(150)), flag)
    agree(flatten(loop_in_branch()), flag, 4, 1)


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_random_numbers_are_those_of_the_reference(seed: int) -> None:
    @ut.function
    def walk(n: ut.i64) -> ut.f64:
        if n == 0:
            return 0.0
        total = ut.random.normal()
        for _ in range(n):
            total += ut.random.uniform()
        return total + walk(n - 1) + ut.sum(ut.map(lambda x: x * ut.random.uniform(), ut.arange(3)))

    assert walk.run(4, engine="demand", seed=seed) == walk.run(4, engine="reference", seed=seed)


def test_counts() -> None:
    stats = agree(flatten(fibonacci()), 10)
    assert stats.activations == 177
    assert stats.per_node["fib/n"] == 177
    assert stats.per_node["fib/total"] == 88
    assert stats.per_node["fib/left.start"] == stats.per_node["fib/start"] == 0  # nobody asks for plain start tokens
    assert stats.max_depth == 10
    assert stats.deepest_tag == (2,) * 9 + (1,)


@pytest.mark.parametrize(("x", "y"), [(0, 0), (4, 3), (1, 6)])
def test_two_phases(x: int, y: int) -> None:
    stats = agree(flatten(two_phases()), x, y)
    assert stats.activations == x + 1 + y + 1
    assert stats.per_node["f/dy"] == x + 1


def test_the_second_phase_alone() -> None:
    """Only the gradient is fetched: the first phase is evaluated as far as the second needs it."""
    graph = flatten(two_phases())
    (result,), stats = demand(replace(graph, fetches=graph.fetches[2:]), 4, 3)
    assert result == math.factorial(4)
    assert stats.activations == 5
    assert stats.per_node["f/depth"] == 0


# --------------------------------------------------------------------------------------------------------------
# Laziness


@ut.function
def lazy_fault(n: ut.i64) -> ut.i64:
    return choose(n == 0, 7, 100 // n)


@ut.function
def lazy_variable(n: ut.i64) -> ut.i64:
    """What a loop carries round is evaluated if its end is asked for: here the division by 0 is overwritten."""
    x = 0
    for i in range(n):
        x = 12 // i if i < 2 else i
    return x


@ut.function
def lazy_lanes(xs: ut.i64[None]) -> ut.i64:
    """The elements that a result does not need; the lanes still run, for they are gathered."""
    return ut.sum(ut.map(lambda x: first(x, for_ever(1)), xs))


@ut.function
def lazy_pair(n: ut.i64) -> ut.i64:
    @ut.function
    def both(m: ut.i64) -> tuple[ut.i64, ut.i64]:
        return m + 1, for_ever(m)

    return both(n)[0]


@pytest.mark.parametrize(
    ("function", "args", "result", "activations"),
    [
        (swap_down, (2, 2), 1, 2),
        (swap_down, (50, 2), 1, 50),
        (unneeded_on_this_path, (4,), 8, 2),
        (lazy_fault, (0,), 14, 2),
        (lazy_fault, (5,), 20, 2),
        (lazy_variable, (5,), 4, 1),
        (lazy_lanes, (np.arange(4),), 6, 5),
        (lazy_pair, (3,), 4, 2),
    ],
)
def test_what_no_result_needs_is_never_computed(
    function: Function, args: tuple[Any, ...], result: int, activations: int
) -> None:
    (found,), stats = demand(captured(function, *args), *args)
    assert found == result
    assert stats.activations == activations
    assert stats.per_node.get("for_ever/n", 0) == 0
    assert function.run(*args, engine="demand", timeout=20) == result


def test_what_is_needed_is_computed_once() -> None:
    @ut.function
    def twice(n: ut.i64) -> ut.i64:
        k = fib(n)
        return k * k + first(k, k) + k

    _, stats = demand(captured(twice, 8), 8)
    assert stats.activations == 2 + fib.run(8, stats=True)[1].activations


# --------------------------------------------------------------------------------------------------------------
# Effects


def test_what_a_program_says_comes_before_its_faults(capsys: pytest.CaptureFixture[str]) -> None:
    @ut.function
    def careful(n: ut.i64) -> ut.i64:
        print("n =", n)
        assert n != 0, "no zero, please"
        return 100 // n

    assert careful.run(5, engine="demand") == 20
    capsys.readouterr()
    with pytest.raises(Fault, match="no zero, please"):
        careful.run(0, engine="demand")
    assert capsys.readouterr().out == "n = 0\n"


def print_then_call(effect: str) -> Library:
    """A call that waits for a print by control edges alone, and whose body has nodes that only the start triggers.

    main:  p = print x   r = call f() after p        f:  one = 1 after start
    """
    f = Body("f")
    one = f.add("identity", const(1), types=(I64,), name="one", controls=(Port(0),))
    main = Body("main", "main")
    x = main.param("x")
    said = main.add(effect, x, types=(CTL,), name="said", template="x = {}")
    made = main.add("call", types=(I64,), name="f", controls=(said,), callee="f")
    return library(main.finish([made]), f.finish([one]))


def test_start_tokens_carry_the_order_that_they_were_given(capsys: pytest.CaptureFixture[str]) -> None:
    stats = agree(flatten(print_then_call("print")), 3)
    assert capsys.readouterr().out == "x = 3\n" * 7
    assert stats.per_node["main/f.start"] == stats.per_node["f/start"] == 1


# --------------------------------------------------------------------------------------------------------------
# Depth


def test_depth_does_not_use_the_host_s_stack() -> None:
    results, stats = demand(flatten(factorial()), 3_000)
    assert results == [np.int64(0)]
    assert stats.max_depth == 3_000


@pytest.mark.slow
def test_a_hundred_thousand_arguments_that_wait_for_each_other() -> None:
    @ut.function
    def sum_down(n: ut.i64, total: ut.i64) -> ut.i64:
        return total if n == 0 else sum_down(n - 1, total + n)

    @ut.function
    def lazy_chain(n: ut.i64) -> ut.i64:
        x = 0
        for i in range(n):
            x = first(x + i, 0)  # a call may do without its argument: nothing is evaluated before the end
        return x

    assert sum_down.run(100_000, 0, engine="demand") == 5_000_050_000
    assert Demand().plan(captured(lazy_chain, 1)).run([np.int64(50_000)])[0] == [1_249_975_000]


@ut.function
def fails_before_it_is_endless(n: ut.i64) -> ut.i64:
    assert n >= 0, "negative"
    if n == 0:
        return 1
    return n * fails_before_it_is_endless(n - 2)


def test_what_comes_before_a_call_happens_before_the_call() -> None:
    """The result alone would never be known: its recursion has no end."""
    with pytest.raises(ut.Fault, match="negative") as caught:
        fails_before_it_is_endless.run(5, engine="demand", timeout=20.0)
    assert len(caught.value.calls) == 4


# --------------------------------------------------------------------------------------------------------------
# The store


@ut.function
def fib_loop(n: ut.i64) -> ut.i64:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@ut.function
def last_square(n: ut.i64) -> ut.i64:
    last = -1
    for i in range(n):
        last = i * i
    return last


@ut.function
def turning(n: ut.i64) -> ut.i64:
    """Variables that change places: none of them is needed in every iteration."""
    a, b, c = 1, 2, 3
    for _ in range(n):
        a, b, c = b, c, a
    return a


@ut.function
def lanes(xs: ut.i64[None], n: ut.i64) -> ut.i64[None]:
    return ut.map(lambda x: fib(x) + n * x, xs)


@ut.function
def many_results(n: ut.i64) -> tuple[ut.i64, ut.i64]:
    """Two results of one call, of which a caller may take one."""
    if n <= 0:
        return 1, 2
    a, b = many_results(n - 1)
    if n % 2 == 0:
        return a, n
    return a + b, b


@ut.function
def quiet(n: ut.i64) -> None:
    for i in range(n):
        print("i =", i)


def test_frames_of_calls_go() -> None:
    assert agree(captured(fib, 12), 12).peak_frames == 12 + 1
    assert agree(captured(find("catalan").function, 6), 6).peak_frames < 25


@pytest.mark.slow
def test_a_large_call_tree_needs_little() -> None:
    result, stats = fib.run(20, engine="demand", stats=True)
    assert result == 6765
    assert stats.peak_frames <= 22


@pytest.mark.parametrize(
    ("function", "most"), [(fib_loop, 6), (last_square, 4), (find("triangle").function, 7), (turning, 30)]
)
def test_old_iterations_go(function: Function, most: int) -> None:
    for n in (0, 1, 2, 5, 27):
        assert agree(captured(function, n), n).peak_frames <= most


def test_an_order_token_keeps_no_old_iterations(capsys: pytest.CaptureFixture[str]) -> None:
    assert agree(captured(quiet, 50), 50).peak_frames < 6


def test_iterations_stay_while_a_variable_may_be_asked_for() -> None:
    """Nothing says that `turning` needs any of its variables in every iteration, or that a second result is needed."""
    assert agree(captured(turning, 40), 40).peak_frames > 40
    graph = flatten(sum_loop())
    assert agree(graph, 200, 1).peak_frames > 200
    assert agree(replace(graph, fetches=graph.fetches[1:]), 200, 1).peak_frames < 5


def test_lanes_go_one_by_one() -> None:
    for few in ([5, 0, 7], []):
        agree(captured(lanes, np.array(few, np.int64), 2), np.array(few, np.int64), 2)
    xs = np.arange(40) % 5
    assert agree(captured(lanes, xs, 2), xs, 2).peak_frames < 10


def test_a_frame_stays_for_its_other_results() -> None:
    @ut.function
    def later(n: ut.i64) -> tuple[ut.i64, ut.i64]:
        return many_results(n)

    for n in (0, 6, 9):
        assert agree(captured(later, n), n).activations == n + 2


# --------------------------------------------------------------------------------------------------------------
# Graphs that are odd, or not valid


def test_an_operator_with_several_results(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(CATALOGUE["identity"], name="both", eval=lambda values, _: (values[0], values[0] * 2.5))
    monkeypatch.setitem(CATALOGUE, "both", row)
    many = f64[None]
    main = Body("main", "main")
    made = main.add("both", main.param("x", many), types=(many, many), name="both").node
    graph = flatten(library(main.finish([Port(made, 1), Port(made, 0)])))
    stats = agree(graph, np.arange(3.0))
    assert stats.per_node["main/both"] == 1
    with pytest.raises(Fault, match="both returned inf"):
        Demand().plan(graph).run([np.array([np.inf])], Options(check_finite=True))
    assert "EVAL(both, []) = both(EVAL(x, []))" in explain(graph, [np.ones(2)])


def test_a_value_that_depends_on_itself() -> None:
    graph = flatten(factorial())
    at = next(number for number, node in enumerate(graph.nodes) if node.name == "fac/p")
    nodes = tuple(replace(n, inputs=(n.inputs[0], Port(at))) if n.name == "fac/p" else n for n in graph.nodes)
    with pytest.raises(RunError, match=r"deadlock: fac/p under \[1\] depends on itself") as caught:
        Demand().plan(replace(graph, nodes=nodes)).run([np.int64(3)])
    assert [call.label for call in caught.value.calls] == ["@1"]
