"""Libraries that are evaluated inside one firing: what moves values, faults, and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.ir.graph import Library
from undertow.ir.text import parse
from undertow.ops import evaluate
from undertow.ops.evaluate import evaluate_library, may_evaluate


def run(function: Any, *args: Any) -> list[Any]:
    """What the library of a function gives for NumPy values."""
    values = [np.asarray(value)[()] for value in args]
    library = function.library(*values)
    assert all(may_evaluate(node) for graph in library.functions.values() for node in graph.nodes)
    return [value.tolist() for value in evaluate_library(library, values)]


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return n
    return fib(n - 1) + fib(n - 2)


@ut.function
def loops(n):
    total = 0
    for i in range(n):
        k = i
        while k > 0:
            total += k
            k //= 2
        if total > 100:
            break
    return total, n


@ut.function
def maps(xs, y):
    return ut.map(lambda x: ut.sum(ut.map(lambda z: z * x + y, xs)), xs)


@ut.function
def uneven(ns):
    return ut.map(lambda n: ut.ones(n), ns)


def test_calls_loops_branches_and_maps() -> None:
    assert run(fib, 12) == [144]
    for n in (0, 1, 9, 50):
        python = ut.options(engine="python")
        with python:
            wanted = [int(value) for value in loops(n)]
        assert run(loops, n) == wanted
    assert run(maps, [1, 2, 3], 10) == [[36, 42, 48]]
    assert run(maps, np.zeros(0, np.int64), 10) == [[]]


def test_faults_are_those_of_the_operators() -> None:
    with pytest.raises(ut.Fault, match="division"):
        run(ut.function(lambda x, y: x // y), 1, 0)
    with pytest.raises(ut.Fault, match="different shapes"):
        run(uneven, [1, 2])
    assert run(ut.function(lambda x, y: 0 if y == 0 else x // y), 1, 0) == [0]


def test_nested_calls_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "DEEPEST", 20)
    assert run(fib, 15) == [610]
    with pytest.raises(ut.RecursionLimit, match="more than 20 nested calls"):
        run(fib, 30)


def test_a_run_that_updates_for_ever_times_out() -> None:
    x = ut.Variable(1.0, name="x")

    @ut.function
    def f(n):
        def spin(old, n):
            while n > 0:
                old = old + 1
            return old

        return x.update(spin, n)

    for engine in ("waves", "reference"):
        with pytest.raises(ut.Timeout, match="an update was not done"):
            f.run(1, engine=engine, timeout=0.1)
    assert x.value == 1.0


def test_what_acts_is_not_evaluated() -> None:
    library = parse("""library 1 main=main

main main(n: i64) -> (n)
  p: ctl = print n, start template="{}"
""")
    assert isinstance(library, Library)
    assert [may_evaluate(node) for node in library.functions["main"].nodes] == [True, True, False]
