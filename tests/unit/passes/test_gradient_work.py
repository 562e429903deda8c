"""What gradients cost: nothing twice or in vain, graphs of one size, less kept with checkpoints; depth is data."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from tests.support.differences import WAYS, assert_close, check_gradient
from tests.support.differentiable import fibonacci, loop_in_recursion, mapped, power, tree_sum

import undertow as ut
from undertow.api.options import ENGINES
from undertow.ir.graph import FunctionGraph, Library
from undertow.ir.text import dump
from undertow.ops.op import CATALOGUE
from undertow.passes.pipeline import make_library


def extended(function: ut.Function, *args: Any, collect: bool = True) -> Library:
    """The library that an engine runs, simplified."""
    return make_library(function.library(*args), collect, True)


def graph_of(library: Library, name: str) -> FunctionGraph:
    (found,) = [graph for key, graph in library.functions.items() if key == name or key.endswith("." + name)]
    return found


def callees(library: Library, name: str) -> list[str]:
    return [node.attrs.text("callee") for node in graph_of(library, name).nodes if node.op == "call"]


# -- nothing twice -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (power, (1.1, 6)),
        (fibonacci, (0.7, 6)),
        (loop_in_recursion, (0.9, 4)),
        (mapped, (0.4, 3)),
        (tree_sum, (np.linspace(-0.5, 0.7, 10).reshape(5, 2), 0)),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_forward_nodes_fire_as_often_as_without_a_gradient(function: Any, args: Any, way: dict[str, Any]) -> None:
    """Operators of the source, counted by their place in it."""
    both = ut.value_and_grad(function)
    alone, stats = forward(function, args, way), forward(both, args, way)
    assert alone[0] == stats[0] and sum(alone[0].values()) > 5
    assert stats[1] - 1 == alone[1] + iterations(function, args), "a gradient is no call; loops have become calls"
    assert both(*args)[0] == function(*args)


def forward(function: ut.Function, args: Any, way: dict[str, Any]) -> tuple[Counter[Any], int]:
    """How often each operator of the source fired; and activations. What gradients compute is named d.something."""
    stats = function.run(*args, stats=True, **way)[1]
    program, _ = function.__undertow_program__(function.__undertow_arguments__(args, {}))
    graph = program.static(program.library(ENGINES[way["engine"]], way["simplify"]))
    found: Counter[Any] = Counter()
    for node in graph.nodes:
        if node.op in CATALOGUE and node.op != "identity" and not node.name.rsplit("/", 1)[-1].startswith("d."):
            found[node.op, node.span] += stats.per_node.get(node.name, 0)
    return +found, stats.activations


def iterations(function: ut.Function, args: Any) -> int:
    """Of loops, and the visits that end them."""
    if function is not loop_in_recursion:
        return 0
    return _visits(args[1])


def _visits(n: int) -> int:
    """Of the two loops of `loop_in_recursion` and of all that they call."""
    return n + 1 + sum(i + 1 + sum(_visits(j) for j in range(i)) for i in range(n))


def test_the_graph_does_not_depend_on_depth() -> None:
    slope = ut.grad(fibonacci)
    sizes = set()
    for n in (0, 3, 8):
        slope(0.7, n)
        sizes.add(len(slope.graph(0.7, n)))
    assert len(sizes) == 1
    second = ut.grad(slope)
    assert len(second.graph(0.7, 1)) < 8 * sizes.pop()


# -- nothing in vain -----------------------------------------------------------------------------------------


def test_calls_without_a_gradient_call_the_plain_function() -> None:
    @ut.function
    def f(x: ut.f64, y: ut.f64, n: ut.i64) -> ut.f64:
        return x * power(y, n) + ut.stop_gradient(power(x, n)) + power(x, 2)

    library = extended(ut.grad(f), 1.5, 2.0, 3)
    assert sorted(callees(library, "f.grad")) == ["power", "power", "power.grad"]
    check_gradient(f, 1.5, 2.0, 3, argnums=1)
    assert_close(ut.grad(f)(1.5, 2.0, 3), 2.0**3 + 2 * 1.5)


def test_a_function_without_an_active_call_is_not_extended() -> None:
    @ut.function
    def count(x: ut.f64, n: ut.i64) -> ut.i64:
        return 0 if x < 0.1 else count(x * 0.5, n) + 1

    @ut.function
    def f(x: ut.f64) -> ut.f64:
        return x * count(x, 3)

    library = extended(ut.grad(f), 1.5)
    assert not any("count.grad" in name for name in library.functions)
    assert ut.grad(f)(1.5) == count(1.5, 3)


def test_only_active_results_and_arguments_have_cotangents() -> None:
    @ut.function
    def two(x: ut.f64, y: ut.f64, n: ut.i64) -> tuple[ut.f64, ut.f64]:
        if n <= 0:
            return x, y
        a, b = two(x, y, n - 1)
        return a * x, b * y

    @ut.function
    def f(x: ut.f64, y: ut.f64, n: ut.i64) -> ut.f64:
        a, b = two(x, y, n)
        return a + ut.stop_gradient(b)

    library = extended(ut.grad(f), 1.5, 2.0, 3, collect=False)
    (phase, back) = graph_of(library, "two.grad").phases
    assert len(phase.results) == 2 and len(back.params) == 1 and len(back.results) == 1
    assert_close(ut.grad(f, (0, 1))(1.5, 2.0, 3), (4 * 1.5**3, 0.0))


def test_what_is_nowhere_active_is_zero_without_a_visit() -> None:
    f = ut.function(lambda x, y: ut.floor(x) + y)
    slope = ut.grad(f)
    assert slope(1.5, 2.0) == 0.0
    assert "resume" not in dump(extended(slope, 1.5, 2.0))
    g = ut.function(lambda x, y: y * y)
    assert ut.grad(g)(1.5, 2.0) == 0.0
    assert ut.grad(g)(np.ones(3), 2.0).tolist() == [0.0] * 3
    assert ut.grad(lambda x, y: 2.0 * y, (0, 1))(1.5, 2.0) == (0.0, 2.0)
    assert ut.grad(lambda x: 3.0)(1.5) == 0.0
    assert ut.grad(lambda x: x)(1.5) == 1.0


# -- checkpoints ---------------------------------------------------------------------------------------------


@ut.function
def heavy(x: ut.f64, n: ut.i64) -> ut.f64:
    """Keeps something at each step. How far it goes depends on x: so it cannot begin before x is there."""
    return ut.sin(x) if n <= 0 or x > 9.0 else heavy(ut.sin(x) * 1.1, n - 1)


@ut.function
def outer(x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else outer(heavy(x, 30), n - 1)


saving = ut.checkpoint(heavy)


@ut.function
def outer_saving(x: ut.f64, n: ut.i64) -> ut.f64:
    return x if n <= 0 else outer_saving(saving(x, 30), n - 1)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_checkpoints_give_the_same_and_keep_less(way: dict[str, Any]) -> None:
    found, stats = ut.value_and_grad(outer).run(0.7, 12, stats=True, **way)
    less, fewer = ut.value_and_grad(outer_saving).run(0.7, 12, stats=True, **way)
    assert_close(less, found, 1e-12)
    assert fewer.peak_frames < stats.peak_frames / 3
    assert fewer.activations - stats.activations == 12 * 31, "each is called once more"


@pytest.mark.slow
def test_checkpoints_of_other_kinds() -> None:
    assert saving(0.7, 3) == heavy(0.7, 3)
    assert_close(ut.grad(saving)(0.7, 3), ut.grad(heavy)(0.7, 3), 1e-12)
    assert_close(ut.checkpoint(ut.grad(heavy))(0.7, 3), ut.grad(heavy)(0.7, 3), 1e-12)
    check_gradient(outer_saving, 0.7, 2, order=2)

    @ut.function
    def in_loops(x: ut.f64, n: ut.i64) -> ut.f64:
        for k in range(n):
            x = x + ut.checkpoint(lambda y, k: ut.sin(y) * power(y, k))(x, k)
        return x + ut.sum(ut.map(lambda y: saving(y * x, 2), ut.arange(3) * 0.1))

    check_gradient(in_loops, 0.4, 3)


def test_a_checkpointed_function_that_calls_itself() -> None:
    @ut.function
    def f(x: ut.f64, n: ut.i64) -> ut.f64:
        return x if n <= 0 else ut.checkpoint(g)(ut.sin(x), n - 1) * x

    @ut.function
    def g(x: ut.f64, n: ut.i64) -> ut.f64:
        return f(x * 1.1, n)

    check_gradient(f, 0.8, 4)


def test_checkpoints_draw_the_same_numbers_again() -> None:
    @ut.function
    def noisy(x: ut.f64) -> ut.f64:
        return x * ut.random.uniform() * ut.sin(x)

    f = ut.function(lambda x: noisy(x) * ut.random.uniform())
    g = ut.function(lambda x: ut.checkpoint(noisy)(x) * ut.random.uniform())
    for way in WAYS:
        assert_close(ut.value_and_grad(g).run(0.7, seed=3, **way), ut.value_and_grad(f).run(0.7, seed=3, **way), 1e-12)


# -- depth and width -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["reference", "demand", "waves", "expand"])
def test_depth_is_data(engine: str) -> None:
    limit = sys.getrecursionlimit()

    @ut.function
    def chain(x: ut.f64, n: ut.i64) -> ut.f64:
        return x if n <= 0 else chain(x * 0.9999, n - 1) + x

    n = 20_000
    found = ut.grad(chain).run(1.0, n, engine=engine)
    assert_close(found, np.sum(0.9999 ** np.arange(n + 1)), 1e-9)
    assert sys.getrecursionlimit() == limit


def test_wide_trees() -> None:
    @ut.function
    def wide(x: ut.f64, n: ut.i64) -> ut.f64:
        return x if n <= 0 else wide(x, n - 1) + wide(x * 0.5, n - 1) + wide(x * 0.25, n - 1)

    for engine in ("reference", "demand"):
        assert_close(ut.grad(wide).run(2.0, 5, engine=engine), 1.75**5, 1e-12)
