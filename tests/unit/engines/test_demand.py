"""The demand engine: it gives what the reference gives, computes what is needed and nothing else, effects in order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.unit.engines.test_reference import loop_in_branch
from tests.unit.passes.test_flatten import (
    I64,
    PROGRAMS,
    Body,
    const,
    deep_branches,
    factorial,
    fibonacci,
    library,
    two_phases,
)

import undertow as ut
from undertow.api.function import Function
from undertow.engines.contract import Engine, Options, Plan, Stats
from undertow.engines.demand import Demand, DemandPlan
from undertow.engines.demand.run import Run
from undertow.engines.expand import ExpandPlan
from undertow.engines.reference import Reference
from undertow.engines.waves import WavesPlan
from undertow.errors import (
    Fault,
    RecursionLimit,
)
from undertow.ir.graph import Library, Port, StaticGraph
from undertow.passes.flatten import flatten
from undertow.types import CTL, f64

MANY = f64[None]


def plan_of(program: Library) -> DemandPlan:
    return Demand().plan(flatten(program))


def demand(graph: StaticGraph, *inputs: Any) -> tuple[list[Any], Stats]:
    """Results and statistics of a run that left nothing in the store."""
    plan = Demand().plan(graph)
    values = [np.asarray(value) for value in inputs]
    run = Run(plan, [value[()] for value in values], Options(), None)
    run.execute()
    assert (run.live, run.bytes, run.held) == (0, 0, {})
    return plan.run(values)


def agree(graph: StaticGraph, *inputs: Any) -> Stats:
    """The statistics of a run that gives what the other engines give, and fires no node more often."""
    results, stats = demand(graph, *inputs)
    wanted, reference = Reference().plan(graph).run([np.asarray(value) for value in inputs])
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(one, other, strict=True)
        assert type(one) is type(other)
    assert all(count <= reference.per_node[node] for node, count in stats.per_node.items())
    assert stats.firings == sum(stats.per_node.values()) <= reference.firings
    assert stats.activations <= reference.activations
    assert stats.max_depth <= reference.max_depth
    for plan in (*(WavesPlan(graph, width) for width in (1, 2, 4096)), ExpandPlan(graph)):
        found, _ = plan.run([np.asarray(value) for value in inputs])
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, strict=True)
    return stats


def captured(function: Function, *args: Any) -> StaticGraph:
    """The static graph of a function as captured: nothing is simplified away."""
    return flatten(function.library(*args))


def test_it_is_an_engine() -> None:
    engine: Engine = Demand()
    plan: Plan = engine.plan(flatten(factorial()))
    results, stats = plan.run([np.int64(5)])
    assert results == [np.int64(120)]
    assert (stats.engine, stats.dead_firings) == ("demand", 0)
    assert fib.run(10, engine="demand") == 89


# --------------------------------------------------------------------------------------------------------------
# Programs


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_built_by_hand(name: str) -> None:
    graph = flatten(PROGRAMS[name]())
    given: dict[str, list[list[Any]]] = {
        "scaled_map": [[np.ones(n) * 3, np.ones(n), 2.0] for n in (0, 1, 4)],
        "map_of_calls": [[flag, np.array([3, 0, 2])] for flag in (True, False)],
        "map_of_tokens": [[np.ones(2)], [np.ones(0)]],
        "tokens_all_over": [[np.array(xs, np.int64)] for xs in ([], [0], [3, 0, 2])],
    }
    for inputs in given.get(name, [[n, 2] for n in (0, 1, 2, 7)]):
        agree(graph, *inputs[: len(graph.inputs)])


@pytest.mark.parametrize("flag", [True, False])
def test_branches(flag: bool) -> None:
    agree(flatten(deep_branches(150)), flag)
    agree(flatten(loop_in_branch()), flag, 4, 1)


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def tak(x: ut.i64, y: ut.i64, z: ut.i64) -> ut.i64:
    if y < x:
        return tak(tak(x - 1, y, z), tak(y - 1, z, x), tak(z - 1, x, y))
    return z


@ut.function
def ackermann(m: ut.i64, n: ut.i64) -> ut.i64:
    if m == 0:
        return n + 1
    if n == 0:
        return ackermann(m - 1, 1)
    return ackermann(m - 1, ackermann(m, n - 1))


@ut.function
def is_even(n: ut.i64) -> ut.bool:
    return n == 0 or is_odd(n - 1)


@ut.function
def is_odd(n: ut.i64) -> ut.bool:
    return n != 0 and is_even(n - 1)


@ut.function
def divisor(n: ut.i64) -> ut.i64:
    """The first divisor above 1, by a loop that is left early."""
    found = n
    for d in range(2, n):
        if d * d > n:
            break
        if n % d == 0:
            found = d
            break
    return found


@ut.function
def collatz(n: ut.i64) -> ut.i64:
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@ut.function
def catalan(n: ut.i64) -> ut.i64:
    """Calls inside a loop inside a call."""
    if n == 0:
        return 1
    total = 0
    for left in range(n):
        total += catalan(left) * catalan(n - 1 - left)
    return total


@ut.function
def triangle(n: ut.i64) -> ut.i64:
    total = 0
    for i in range(n):
        for j in range(i):
            if j % 2 == 0:
                total += j
    return total


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
def nested_lanes(xs: ut.i64[None, 2]) -> ut.i64[None, 2]:
    return ut.map(lambda row: ut.map(lambda x: x * row[0], row), xs)


@ut.function
def closures(n: ut.i64, k: ut.i64) -> ut.i64:
    @ut.function
    def climb(m: ut.i64) -> ut.i64:
        return k if m <= 0 else climb(m - 1) + m

    return climb(n) * k


@dataclass
class Point:
    x: Any
    y: Any


@ut.function
def containers(n: ut.i64, pair: tuple[ut.i64, ut.i64], table: dict[str, ut.i64]) -> dict[str, Any]:
    swapped = [pair[1], pair[0]]
    point = Point(swapped[0] + table["a"], table["b"])
    if n > 0:
        point = Point(point.y, point.x)
    return {"point": (point.x, point.y), "rest": swapped}


@ut.function
def tree_sum(xs: ut.f64[None]) -> ut.f64:
    """Divide and conquer: every call has another size."""
    n = xs.shape[0]
    if n == 0:
        return 0.0
    if n == 1:
        return xs[0]
    return tree_sum(xs[: n // 2]) + tree_sum(xs[n // 2 :])


@ut.function
def many_results(n: ut.i64) -> tuple[ut.i64, ut.i64]:
    """Two results of one call, of which a caller may take one."""
    if n <= 0:
        return 1, 2
    a, b = many_results(n - 1)
    if n % 2 == 0:
        return a, n
    return a + b, b


CAPTURED: list[tuple[Function, tuple[Any, ...]]] = [
    *((fib, (n,)) for n in (0, 1, 10)),
    (tak, (8, 4, 2)),
    (ackermann, (2, 3)),
    *((is_even, (n,)) for n in (0, 7)),
    *((divisor, (n,)) for n in (2, 49, 97)),
    (collatz, (27,)),
    (catalan, (5,)),
    *((triangle, (n,)) for n in (0, 9)),
    *((fib_loop, (n,)) for n in (0, 1, 2, 40)),
    *((last_square, (n,)) for n in (0, 1, 9)),
    *((turning, (n,)) for n in (0, 1, 5)),
    (lanes, (np.array([5, 0, 7]), np.int64(2))),
    (lanes, (np.array([], np.int64), np.int64(2))),
    (nested_lanes, (np.array([[1, 2], [3, 4]]),)),
    (nested_lanes, (np.zeros((0, 2), np.int64),)),
    (closures, (4, 3)),
    *((containers, (n, (1, 2), {"a": 3, "b": 4})) for n in (0, 1)),
    *((tree_sum, (np.arange(n) * 0.5,)) for n in (0, 1, 13)),
    *((many_results, (n,)) for n in (0, 6)),
]


@pytest.mark.parametrize(("function", "args"), CAPTURED, ids=lambda value: getattr(value, "__name__", None))
def test_captured_programs(function: Function, args: tuple[Any, ...]) -> None:
    graph = captured(function, *args)
    leaves = [leaf for arg in args for leaf in (arg.values() if isinstance(arg, dict) else np.atleast_1d(arg))]
    agree(graph, *(args if len(graph.inputs) == len(args) else leaves))
    with ut.options(engine="demand"):
        one = function(*args)
    np.testing.assert_equal(one, function.run(*args, engine="reference"))


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
def forever(n: ut.i64) -> ut.i64:
    if n == 0:
        return 0
    return forever(n + 1)


@ut.function
def first(x: ut.i64, y: ut.i64) -> ut.i64:
    return x


@ut.function
def swap_down(x: ut.i64, y: ut.i64) -> ut.i64:
    """The classic: its second argument is never needed, and never ends."""
    return 1 if x <= 1 else swap_down(x - 1, swap_down(x, y))


@ut.function
def choose(flag: ut.bool, a: ut.i64, b: ut.i64) -> ut.i64:
    return a if flag else b


@ut.function
def lazy_argument(n: ut.i64) -> ut.i64:
    return choose(n > 0, n, forever(n))


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
    return ut.sum(ut.map(lambda x: first(x, forever(1)), xs))


@ut.function
def lazy_pair(n: ut.i64) -> ut.i64:
    @ut.function
    def both(m: ut.i64) -> tuple[ut.i64, ut.i64]:
        return m + 1, forever(m)

    return both(n)[0]


@pytest.mark.parametrize(
    ("function", "args", "result", "activations"),
    [
        (swap_down, (2, 2), 1, 2),
        (swap_down, (50, 2), 1, 50),
        (lazy_argument, (3,), 3, 2),
        (lazy_fault, (0,), 7, 2),
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
    assert stats.per_node.get("forever/n", 0) == 0
    assert function.run(*args, engine="demand", timeout=20) == result


def test_what_is_needed_is_computed_once() -> None:
    @ut.function
    def twice(n: ut.i64) -> ut.i64:
        k = fib(n)
        return k * k + first(k, k) + k

    _, stats = demand(captured(twice, 8), 8)
    assert stats.activations == 2 + fib.run(8, stats=True)[1].activations


def test_firings_on_tak() -> None:
    graph = captured(tak, 8, 4, 2)
    stats = agree(graph, 8, 4, 2)
    assert stats.firings < Reference().plan(graph).run([np.int64(n) for n in (8, 4, 2)])[1].firings


# --------------------------------------------------------------------------------------------------------------
# Effects


@ut.function
def noisy(n: ut.i64) -> ut.i64:
    """The base case is left before anything is printed."""
    if n <= 0:
        return 0
    print("in", n)
    result = noisy(n - 1) + noisy(n - 2)
    print("out", n)
    return result


@ut.function
def noisy_loop(n: ut.i64) -> ut.i64:
    total = 0
    while total < n:
        if total % 2 == 0:
            print("even", total)
        total += noisy(total) + 1
    ut.print("done")
    return 0


@ut.function
def quiet(n: ut.i64) -> None:
    for i in range(n):
        print("i =", i)


@ut.function
def noisy_map(n: ut.i64) -> ut.i64:
    def say(x: ut.i64) -> ut.i64:
        print("lane", x)
        return x

    ut.print("before")
    total = ut.sum(ut.map(say, ut.arange(n)))
    print("after", total)
    return total


@pytest.mark.parametrize("function", [noisy, noisy_loop, quiet, noisy_map], ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [0, 1, 4])
def test_effects_happen_in_program_order(function: Function, n: int, capsys: pytest.CaptureFixture[str]) -> None:
    def say(*items: Any) -> None:
        lines.append(" ".join(map(str, items)))

    def noisy_twin(n: int) -> int:
        if n <= 0:
            return 0
        say("in", n)
        result = noisy_twin(n - 1) + noisy_twin(n - 2)
        say("out", n)
        return result

    lines: list[str] = []
    if function is noisy:
        noisy_twin(n)
    elif function is noisy_loop:
        total = 0
        while total < n:
            if total % 2 == 0:
                say("even", total)
            total += noisy_twin(total) + 1
        say("done")
    elif function is quiet:
        for i in range(n):
            say("i =", i)
    else:
        say("before")
        for x in range(n):
            say("lane", x)
        say("after", sum(range(n)))
    function.run(n, engine="demand")
    assert capsys.readouterr().out.splitlines() == lines
    agree(captured(function, n), n)


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
def test_a_hundred_thousand_nested_calls() -> None:
    plan = plan_of(factorial())
    results, stats = plan.run([np.int64(100_000)])
    assert results == [np.int64(0)]
    assert stats.max_depth == stats.activations == len(stats.deepest_tag) == 100_000
    with pytest.raises(RecursionLimit) as caught:
        plan.run([np.int64(100_000)], Options(max_depth=90_000))
    assert len(caught.value.calls) == 90_000
    assert len(str(caught.value)) < 2_000


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
    assert n >= 0, "below zero"
    if n == 0:
        return 1
    return n * fails_before_it_is_endless(n - 2)


def test_what_comes_before_a_call_happens_before_the_call() -> None:
    """The result alone would never be known: its recursion has no end."""
    with pytest.raises(ut.Fault, match="below zero") as caught:
        fails_before_it_is_endless.run(5, engine="demand", timeout=20.0)
    assert len(caught.value.calls) == 4
