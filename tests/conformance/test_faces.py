"""One program, two faces: `@ut.function` and `ut.SubGraph` write the same library, with the same values everywhere.

A face is a way to write functions. Each program stands here in both, alike on purpose: to be read side by side.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.programs import assert_same
from tests.programs.numbers import ackermann, factorial, fibonacci
from tests.support.engines import EVERY

import undertow as ut
from undertow.ir import spec, text

LEFT = np.array([1, 3, -1, -1, -1], np.int32)
RIGHT = np.array([2, 4, -1, -1, -1], np.int32)
LEAF = np.array([False, False, True, True, True])
VALUE = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
VECTOR = ut.f64["n"]
WORDS = np.arange(15, dtype=np.float32).reshape(5, 3) / 10
WEIGHTS = np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3)


@dataclass(frozen=True)
class Row:
    """A program: arguments to run it with, as a function, and what makes it as a subgraph."""

    name: str
    cases: tuple[tuple[Any, ...], ...]
    function: ut.Function
    subgraph: Callable[[], ut.SubGraph]
    seed: int | None = None
    reads_arrays: bool = False  # global ones: hidden arguments of the function, constants of the block, which runs once


def factorial_subgraph() -> Any:
    with ut.SubGraph() as factorial:
        n = factorial.input(ut.i64)
        factorial.output(ut.cond(n == 0, lambda: 1, lambda: n * factorial(n - 1)))
    return factorial


def fibonacci_subgraph() -> Any:
    with ut.SubGraph() as fibonacci:
        n = fibonacci.input(ut.i64)

        def sum_of_two():
            return fibonacci(n - 1) + fibonacci(n - 2)

        fibonacci.output(ut.cond(n < 2, lambda: n, sum_of_two))
    return fibonacci


def ackermann_subgraph() -> Any:
    with ut.SubGraph() as ackermann:
        m = ackermann.input(ut.i64)
        n = ackermann.input(ut.i64)

        def inner():
            return ut.cond(n == 0, lambda: ackermann(m - 1, 1), lambda: ackermann(m - 1, ackermann(m, n - 1)))

        ackermann.output(ut.cond(m == 0, lambda: n + 1, inner))
    return ackermann


@ut.function
def even(n: ut.i64) -> ut.bool:
    return True if n == 0 else odd(n - 1)


@ut.function
def odd(m: ut.i64) -> ut.bool:
    return False if m == 0 else even(m - 1)


def even_subgraph() -> Any:
    even, odd = ut.SubGraph(returns=ut.bool), ut.SubGraph(returns=ut.bool)
    n, m = even.input(ut.i64), odd.input(ut.i64)
    with even:
        even.output(ut.cond(n == 0, lambda: True, lambda: odd(n - 1)))
    with odd:
        odd.output(ut.cond(m == 0, lambda: False, lambda: even(m - 1)))
    return even


@ut.function
def tree_sum(node: ut.i32) -> ut.f64:
    if LEAF[node]:
        return VALUE[node]
    return tree_sum(LEFT[node]) + tree_sum(RIGHT[node])


def tree_sum_subgraph() -> Any:
    with ut.SubGraph() as tree_sum:
        node = tree_sum.input(ut.i32)

        def inner():
            return tree_sum(LEFT[node]) + tree_sum(RIGHT[node])

        tree_sum.output(ut.cond(ut.asarray(LEAF)[node], lambda: VALUE[node], inner))
    return tree_sum


@ut.function
def tree_rnn(node: ut.i32) -> ut.f32[3]:
    if LEAF[node]:
        return ut.tanh(WORDS[node])
    left = tree_rnn(LEFT[node])
    right = tree_rnn(RIGHT[node])
    return ut.tanh(ut.concat([left, right]) @ WEIGHTS)


def tree_rnn_subgraph() -> Any:
    with ut.SubGraph() as tree_rnn:
        node = tree_rnn.input(ut.i32)

        def leaf():
            return ut.tanh(WORDS[node])

        def inner():
            left = tree_rnn(LEFT[node])
            right = tree_rnn(RIGHT[node])
            return ut.tanh(ut.concat([left, right]) @ WEIGHTS)

        tree_rnn.output(ut.cond(ut.asarray(LEAF)[node], leaf, inner))
    return tree_rnn


@ut.function
def digits(n: ut.i64) -> ut.i64:
    _, total = ut.while_loop(
        lambda value: value[0] > 0, lambda value: (value[0] // 10, value[1] + value[0] % 10), (n, 0)
    )
    return total if total < 10 else digits(total)


def digits_subgraph() -> Any:
    with ut.SubGraph() as digits:
        n = digits.input(ut.i64)
        _, total = ut.while_loop(
            lambda value: value[0] > 0, lambda value: (value[0] // 10, value[1] + value[0] % 10), (n, 0)
        )
        digits.output(ut.cond(total < 10, lambda: total, lambda: digits(total)))
    return digits


@ut.function
def walks(n: ut.i64) -> ut.i64:
    if n <= 0:
        return 1
    return ut.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] + walks(v[0])), (0, 0))[1]


def walks_subgraph() -> Any:
    with ut.SubGraph() as walks:
        n = walks.input(ut.i64)

        def inner():
            return ut.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] + walks(v[0])), (0, 0))[1]

        walks.output(ut.cond(n <= 0, lambda: 1, inner))
    return walks


@ut.function
def weight(node: ut.i64, depth: ut.i64) -> ut.i64:
    if depth == 0:
        return node
    return ut.sum(ut.map(lambda child: weight(child, depth - 1), node * 3 + ut.arange(3)))


def weight_subgraph() -> Any:
    with ut.SubGraph() as weight:
        node, depth = weight.input(ut.i64), weight.input(ut.i64)

        def inner():
            return ut.sum(ut.map(lambda child: weight(child, depth - 1), node * 3 + ut.arange(3)))

        weight.output(ut.cond(depth == 0, lambda: node, inner))
    return weight


@ut.function
def several(n: ut.i64) -> tuple[ut.i64, ut.f64]:
    if n <= 0:
        return 0, 0.5
    count, share = several(n - 1)
    return count + n, share / 2.0


def several_subgraph() -> Any:
    with ut.SubGraph() as several:
        n = several.input(ut.i64)

        def inner():
            count, share = several(n - 1)
            return count + n, share / 2.0

        several.output(ut.cond(n <= 0, lambda: (0, 0.5), inner))
    return several


@ut.function
def outer(n: ut.i64, bonus: ut.i64) -> ut.i64:
    limit = n // 2

    @ut.function
    def climb(k: ut.i64) -> ut.i64:
        return bonus if k >= limit else climb(k + 1) + k * n

    first = climb(0)
    return first + climb(limit - 1)


def outer_subgraph() -> Any:
    with ut.SubGraph() as outer:
        n, bonus = outer.input(ut.i64), outer.input(ut.i64)
        limit = n // 2
        with ut.SubGraph(name="outer.climb") as climb:
            k = climb.input(ut.i64)
            climb.output(ut.cond(k >= limit, lambda: bonus, lambda: climb(k + 1) + k * n))
        first = climb(0)
        outer.output(first + climb(limit - 1))
    return outer


# What is used of the outer function turns out after the recursive call; it goes through a loop, too.
@ut.function
def scaled(n: ut.i64, x: ut.f64) -> ut.f64:
    @ut.function
    def walk(k: ut.i64) -> ut.f64:
        if k > 0:
            below = ut.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, v[1] + walk(k - 1)), (0, 0.0))[1]
            return below * x
        return 1.0

    return walk(n)


def scaled_subgraph() -> Any:
    with ut.SubGraph() as scaled:
        n, x = scaled.input(ut.i64), scaled.input(ut.f64)
        with ut.SubGraph(name="scaled.walk") as walk:
            k = walk.input(ut.i64)

            def inner():
                below = ut.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, v[1] + walk(k - 1)), (0, 0.0))[1]
                return below * x

            walk.output(ut.cond(k > 0, inner, lambda: 1.0))
        scaled.output(walk(n))
    return scaled


@ut.function
def collatz(n: ut.i64) -> ut.i64:
    if n == 1:
        return 0
    return 1 + collatz(n // 2 if n % 2 == 0 else 3 * n + 1)


def collatz_subgraph() -> Any:
    with ut.SubGraph() as collatz:
        n = collatz.input(ut.i64)

        def step():
            return ut.cond(n % 2 == 0, lambda: n // 2, lambda: 3 * n + 1)

        collatz.output(ut.cond(n == 1, lambda: 0, lambda: 1 + collatz(step())))
    return collatz


# Calls and loops whose arguments are all constants, in branches.
@ut.function
def steps(n: ut.i64) -> ut.i64:
    if n <= 1:
        return n
    return steps(1) + ut.while_loop(lambda v: v < 5, lambda v: v + steps(1) + steps(0), 0)


def steps_subgraph() -> Any:
    with ut.SubGraph() as steps:
        n = steps.input(ut.i64)

        def inner():
            return steps(1) + ut.while_loop(lambda v: v < 5, lambda v: v + steps(1) + steps(0), 0)

        steps.output(ut.cond(n <= 1, lambda: n, inner))
    return steps


@ut.function
def noisy(n: ut.i64) -> ut.i64:
    def inner():
        below = noisy(n - 1)
        ut.print("{} above {}", n, below)
        return below + n

    return ut.cond(n == 0, lambda: 0, inner)


def noisy_subgraph() -> Any:
    with ut.SubGraph() as noisy:
        n = noisy.input(ut.i64)

        def inner():
            below = noisy(n - 1)
            ut.print("{} above {}", n, below)
            return below + n

        noisy.output(ut.cond(n == 0, lambda: 0, inner))
    return noisy


@ut.function
def chatter(n: ut.i64) -> ut.i64:
    def inner():
        total = ut.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] + chatter(v[0])), (0, 0))[1]
        ut.print("{}", total)
        return total

    return ut.cond(n <= 0, lambda: 1, inner)


def chatter_subgraph() -> Any:
    with ut.SubGraph() as chatter:
        n = chatter.input(ut.i64)

        def inner():
            total = ut.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] + chatter(v[0])), (0, 0))[1]
            ut.print("{}", total)
            return total

        chatter.output(ut.cond(n <= 0, lambda: 1, inner))
    return chatter


@ut.function
def drift(n: ut.i64) -> ut.f64:
    def inner():
        below = drift(n - 1)
        both = ut.map(lambda k: drift(n - 2) * k, ut.arange(2))
        return below + ut.random.uniform() + ut.sum(both)

    return ut.cond(n <= 0, lambda: 0.0, inner)


def drift_subgraph() -> Any:
    with ut.SubGraph() as drift:
        n = drift.input(ut.i64)

        def inner():
            below = drift(n - 1)
            both = ut.map(lambda k: drift(n - 2) * k, ut.arange(2))
            return below + ut.random.uniform() + ut.sum(both)

        drift.output(ut.cond(n <= 0, lambda: 0.0, inner))
    return drift


@ut.function
def total(x: VECTOR, at: ut.i64) -> ut.f64:
    return 0.0 if at >= x.shape[0] else x[at] + total(x, at + 1)


def total_subgraph() -> Any:
    with ut.SubGraph() as total:
        x, at = total.input(ut.f64["n"]), total.input(ut.i64)
        total.output(ut.cond(at >= x.shape[0], lambda: 0.0, lambda: x[at] + total(x, at + 1)))
    return total


PROGRAMS = [
    Row("factorial", ((0,), (10,)), factorial, factorial_subgraph),
    Row("fibonacci", ((1,), (9,)), fibonacci, fibonacci_subgraph),
    Row("ackermann", ((0, 3), (2, 2)), ackermann, ackermann_subgraph),
    Row("even and odd", ((0,), (7,)), even, even_subgraph),
    Row("tree sum", ((0,), (3,)), tree_sum, tree_sum_subgraph, reads_arrays=True),
    Row("tree rnn", ((0,), (4,)), tree_rnn, tree_rnn_subgraph, reads_arrays=True),
    Row("loop inside", ((7,), (98765,)), digits, digits_subgraph),
    Row("recursion inside a loop", ((0,), (5,)), walks, walks_subgraph),
    Row("map over children", ((1, 0), (1, 3)), weight, weight_subgraph),
    Row("several results", ((0,), (6,)), several, several_subgraph),
    Row("closure", ((10, 3), (0, 2)), outer, outer_subgraph),
    Row("closure found late", ((0, 2.0), (3, 0.5)), scaled, scaled_subgraph),
    Row("collatz", ((1,), (27,)), collatz, collatz_subgraph),
    Row("constant arguments", ((0,), (4,)), steps, steps_subgraph),
    Row("prints after the call", ((0,), (4,)), noisy, noisy_subgraph),
    Row("prints, recursion inside a loop", ((0,), (3,)), chatter, chatter_subgraph),
    Row("random numbers", ((0,), (4,)), drift, drift_subgraph, seed=3),
    Row("run-time dimension", (([1.0, 2.5, 4.0], 0), ([], 0)), total, total_subgraph),
]
IDS = [row.name for row in PROGRAMS]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in PROGRAMS if not row.reads_arrays])
def test_the_library_is_the_same(row: Row) -> None:
    wanted, found = (program.library(*row.cases[0]) for program in (row.function, row.subgraph()))
    spec.check(found)
    assert text.dump(found, spans=False) == text.dump(wanted, spans=False)


@pytest.mark.parametrize("engine", EVERY)
@pytest.mark.parametrize("row", PROGRAMS, ids=IDS)
def test_the_values_are_the_same(row: Row, engine: str) -> None:
    subgraph = row.subgraph()
    for case in row.cases:
        results = []
        for program, runs_on in ((row.function, "reference"), (subgraph, engine)):
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                results.append((program.run(*case, engine=runs_on, seed=row.seed), printed.getvalue()))
        assert_same(results[1][0], results[0][0])
        assert results[1][1] == results[0][1]


@pytest.mark.parametrize("row", PROGRAMS, ids=IDS)
def test_every_node_has_a_line(row: Row) -> None:
    for graph in row.subgraph().library(*row.cases[0]).functions.values():
        for node in graph.nodes:
            if node.op not in ("start", "param", "switch", "merge") and graph.kind != "main":
                assert node.span is not None and node.span.file == __file__, node
