"""Does the public face work at all? Everything once, under 5 s."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import undertow as ut


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def tree_sum(values: ut.f64[None], left: ut.i64, right: ut.i64) -> ut.f64:
    if right - left == 1:
        return values[left]
    middle = (left + right) // 2
    return tree_sum(values, left, middle) + tree_sum(values, middle, right)


@ut.function
def is_even(n: ut.i64) -> ut.bool:
    return True if n == 0 else is_odd(n - 1)


@ut.function
def is_odd(n: ut.i64) -> ut.bool:
    return False if n == 0 else is_even(n - 1)


@ut.function
def gcd(a: ut.i64, b: ut.i64) -> ut.i64:
    while b != 0:
        a, b = b, a % b
    return a


@ut.function
def inverse(n: ut.i64) -> ut.i64:
    return 1 // n if n == 0 else inverse(n - 1)


def test_call() -> None:
    assert fib(10) == 89
    assert fib(n=10) == 89
    assert isinstance(fib(10), np.int64)


def test_arrays() -> None:
    values = np.arange(10.0)
    assert tree_sum(values, 0, 10) == values.sum()


def test_mutual_recursion() -> None:
    assert is_even(6) and not is_odd(6)


def test_loop() -> None:
    assert gcd(84, 36) == 12


@pytest.mark.parametrize("numbers", [[5, 6, 8, 9], np.array([5, 6, 8, 9]), range(5, 9), [np.int64(5)]])
def test_map(numbers: list[int]) -> None:
    assert fib.map(numbers).tolist() == [fib(int(n)) for n in numbers]


def test_map_over_nothing() -> None:
    assert fib.map(range(0)).shape == (0,)


@pytest.mark.parametrize("scheduler", ["fifo", "lifo", "random"])
def test_run_with_options(scheduler: str) -> None:
    result, stats = fib.run(5, scheduler=scheduler, stats=True)
    assert result == 8
    assert stats.activations == 15
    assert stats.max_depth == 5
    with ut.options(scheduler=scheduler):
        assert fib(5) == 8


def test_graph() -> None:
    graph = fib.graph(3)
    assert len(graph) == len(fib.graph(30))
    assert "call" in str(graph) and "return" in str(graph)
    assert graph.svg().startswith("<svg")
    assert graph.dot().startswith("digraph")
    assert set(fib.library(3).functions) == {"main", "fib"}


def test_trace(tmp_path: Path) -> None:
    fib.run(3, trace=tmp_path / "run.jsonl")
    lines = (tmp_path / "run.jsonl").read_text(encoding="utf-8").splitlines()
    assert '"run"' in lines[0] and '"run_end"' in lines[-1]


def test_errors() -> None:
    with pytest.raises(ut.Fault, match="division by zero") as fault:
        inverse(3)
    assert len(fault.value.calls) == 4
    with pytest.raises(ut.RecursionLimit):
        fib.run(10, max_depth=3)
    with pytest.raises(ut.TypeMismatch):
        fib(1.5)


def test_deep() -> None:
    assert is_even(3_000)
