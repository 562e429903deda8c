"""Split: which loops are split, what their waves look like, and what is left as it was."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from tests.programs import iterations
from tests.programs.program import Program
from tests.support.validity import valid

import undertow as ut
from undertow.passes.pipeline import make_library
from undertow.passes.simplify import simplify
from undertow.passes.split import split_loops

W = np.array([0.5, 1.25])


def split_count(function: Any, *args: Any) -> int:
    """How many loops of a function are split; the result is valid, and has no more to split."""
    library, count = split_loops(simplify(function.library(*args))[0])
    assert not split_loops(valid(library))[1]
    return count["split loop"]


@ut.function
def grow(w: ut.f64[2], n: ut.i64) -> ut.f64:
    if n <= 0:
        return w[0]
    total = w[1]
    for k in range(n):
        total += grow(w * 0.5, k)
    return total


@ut.function
def mapped(w: ut.f64[2], n: ut.i64) -> ut.f64:
    if n <= 0:
        return w[0]
    return w[1] + ut.sum(ut.map(lambda k: mapped(w * 0.5, k), ut.arange(n)))


def test_as_many_waves_as_a_map() -> None:
    value, stats = grow.run(W, 10, stats=True)
    same, of_map = mapped.run(W, 10, stats=True)
    np.testing.assert_allclose(value, same)
    assert (stats.waves, stats.activations, stats.max_depth) == (of_map.waves, of_map.activations, of_map.max_depth)


@pytest.mark.parametrize("program", iterations.PROGRAMS, ids=lambda program: program.name)
def test_a_wave_for_each_level(program: Program) -> None:
    """However results are used, and whatever is asserted: iterations wait for each other only if a loop ends early."""
    is_split = bool(split_count(program.function, *program.cases[-1]))
    assert is_split == (program.name != "stops_at_the_first")
    if "fault" not in program.tags:
        _, stats = program.run(len(program.cases) - 1)
        assert stats.waves == (stats.max_depth if is_split else stats.activations)


def test_reorder() -> None:
    """With `reorder=True` a sum of floats is one operator, and no loop is left; without it, the bits are Python's."""

    @ut.function
    def average(w: ut.f64[2], n: ut.i64) -> ut.f64:
        if n <= 0:
            return w[0]
        total, product = w[1], 1.0
        for k in range(n):
            x = average(w * 0.7 + 0.1, k - 1)
            total += x * x
            product *= x
        return (total + product) / (n + 1)

    value, stats = average.run(W, 9, stats=True)
    assert value == average.run(W, 9, engine="python")
    assert " = exit " in str(average.graph(W, 9))
    reordered, same = average.run(W, 9, reorder=True, stats=True)
    np.testing.assert_allclose(reordered, value, rtol=1e-13)
    assert (same.waves, same.activations) == (stats.waves, stats.activations)
    with ut.options(reorder=True):
        assert " = exit " not in str(average.graph(W, 9))
        assert average(W, 0) == W[0]
        assert average(W, 9) == reordered
        gradient = ut.grad(average)(W, 6)
    np.testing.assert_allclose(gradient, ut.grad(average)(W, 6), rtol=1e-12)
    for engine in ("reference", "demand", "expand"):
        np.testing.assert_allclose(average.run(W, 5, reorder=True, engine=engine), average(W, 5), rtol=1e-13)


def test_reorder_is_true_or_false() -> None:
    with pytest.raises(ut.UndertowError, match="reorder must be True or False, not 1"):
        grow.run(W, 3, reorder=1)


def test_calls_in_tests_are_made_once() -> None:
    @ut.function
    def fits(w: ut.i64[3], k: ut.i64) -> ut.bool:
        return ut.any(w % 3 == k % 3)

    @ut.function
    def count_down(w: ut.i64[3], n: ut.i64) -> ut.i64:
        if n <= 0:
            return w[0]
        total = 0
        for k in range(n):
            if fits(w, k):
                total = total * 2 + count_down(w + k, k - 1)
        return total

    value, stats = count_down.run(np.array([0, 1, 4]), 6, stats=True)
    same, as_written = count_down.run(np.array([0, 1, 4]), 6, stats=True, simplify=False)
    assert value == same == count_down.run(np.array([0, 1, 4]), 6, engine="python")
    assert stats.activations == as_written.activations


def test_gradients_of_loops_that_assert() -> None:
    @ut.function
    def checked(w: ut.f64[2], n: ut.i64) -> ut.f64:
        if n <= 0:
            return w[0] * w[1]
        total = w[1]
        for k in range(n):
            x = checked(w * 0.8, k - 1)
            assert x < 1000.0, "large"
            if total > 1000.0:
                raise ValueError("larger")
            total = total * 0.9 + x * w[1]
        return total

    assert split_count(checked, W, 5) == 1
    gradient = ut.grad(checked)
    np.testing.assert_allclose(gradient(W, 6), gradient.run(W, 6, engine="reference"), rtol=1e-13)
    with pytest.raises(ut.Fault, match="large"):
        gradient(W * 1000, 6)


def test_calls_in_branches_share_waves() -> None:
    """An unrolled loop hands `best` from branch to branch; the calls do not need it."""

    @ut.function
    def search(board: ut.i64[5], left: ut.i64) -> ut.i64:
        if left == 0:
            return board[0] - board[1] * board[2]
        best = -99
        for i in range(5):
            if board[i] == 0:
                after = board.copy()
                after[i] = left
                best = max(best, -search(after, left - 1))
        return best

    _, stats = search.run(np.zeros(5, np.int64), 4, stats=True)
    assert (stats.activations, stats.waves) == (1 + 5 + 20 + 60 + 120, 5)


def test_gradients() -> None:
    @ut.function
    def slope(w: ut.f64[2], n: ut.i64) -> ut.f64:
        if n <= 0:
            return w[0] * w[1]
        total = w[1]
        for k in range(n):
            if k % 3 != 1:
                total = total * 0.9 + slope(w * 0.8, k - 1) * w[1]
        return total

    assert split_count(slope, W, 5) == 1
    both = ut.value_and_grad(slope)
    value, gradient = both(W, 6)
    wanted, expected = both.run(W, 6, engine="reference")
    np.testing.assert_array_equal(value, wanted)
    np.testing.assert_allclose(gradient, expected, rtol=1e-13)


def test_the_fault_is_the_loop_s() -> None:
    @ut.function
    def faulty(w: ut.i64[3], n: ut.i64) -> ut.i64:
        """The fault of the loop comes before those of the calls after it."""
        if n <= 0:
            return w[n + 3]
        total = 0
        for k in range(n, 0, -1):
            total += 12 // (k - 2)
            total += faulty(w[::-1], k - 3)
        return total

    assert split_count(faulty, np.array([1, 2, 3]), 2) == 1
    with pytest.raises(ZeroDivisionError):
        faulty(np.array([1, 2, 3]), 2)
    with pytest.raises(IndexError) as fault:
        faulty(np.array([1, 2, 3]), 6)
    with pytest.raises(IndexError, match=re.escape(str(fault.value))):
        faulty.run(np.array([1, 2, 3]), 6, engine="reference")


def test_only_engines_that_form_waves_split() -> None:
    library = grow.library(W, 3)
    kinds = {graph.kind for graph in make_library(library).functions.values()}
    assert "map" not in kinds
    assert "map" in {graph.kind for graph in make_library(library, forms_waves=True).functions.values()}


# -- loops that stay ---------------------------------------------------------------------------------------------


@ut.function
def numbers(n: ut.i64) -> ut.i64:
    """Each activation of these runs alone, faster than in a map."""
    total = 1
    for k in range(n):
        total += numbers(k)
    return total


@ut.function
def chained(w: ut.f64[2], n: ut.i64) -> ut.f64:
    """Each call needs the one before."""
    x = w[0]
    for k in range(n):
        x = chained(w * x, k - 1)
    return x


@ut.function
def left_early(w: ut.f64[2], n: ut.i64) -> ut.f64:
    x = w[0]
    for k in range(n):
        x += left_early(w, k)
        if x > 3:
            break
    return x


@ut.function
def unknown_length(w: ut.f64[2], n: ut.i64) -> ut.f64:
    x = w[0]
    while n > 0:
        x += unknown_length(w, n - 2)
        n = n // 2
    return x


@ut.function
def printing(w: ut.f64[2], n: ut.i64) -> ut.f64:
    x = w[0]
    for k in range(n):
        print(k)
        x += printing(w, k)
    return x


@ut.function
def growing(w: ut.f64[None], n: ut.i64) -> ut.f64[None]:
    """Results of several lengths."""
    if n <= 0:
        return w
    x = w
    for k in range(n):
        x = ut.concat([x, growing(w, k)])
    return x


@pytest.mark.parametrize("function", [chained, left_early, unknown_length, printing, growing])
def test_loops_that_stay(function: Any) -> None:
    assert split_count(function, W, 3) == 0


def test_numbers_stay() -> None:
    assert split_count(numbers, 3) == 0


def test_large_results_stay() -> None:
    @ut.function
    def table(w: ut.f64[2000], n: ut.i64) -> ut.f64[2000]:
        x = w
        for k in range(n):
            x = x + table(w * 2.0, k)
        return x

    @ut.function
    def reduced(w: ut.f64[2000], n: ut.i64) -> ut.f64[2000]:
        x = w
        for k in range(n):
            x = x + reduced(w * 2.0, k).sum()
        return x

    assert split_count(table, np.ones(2000), 3) == 0
    assert split_count(reduced, np.ones(2000), 3) == 1


@pytest.mark.parametrize("dtype", [ut.i32, ut.i64])
@pytest.mark.parametrize("bounds", [(0, 5, 1), (5, 0, 1), (-3, 7, 4), (9, -2, -3), (2, 2, -1)])
def test_counts(bounds: tuple[int, int, int], dtype: Any) -> None:
    step = bounds[2]

    @ut.function
    def count(w: ut.i64[2], first, bound) -> ut.i64:
        if w[1] == 0:
            return w[0]
        total = 0
        for k in range(first, bound, step):
            total = total * 10 + count(w - [k, 1], first, bound) + k
        return total

    args = np.array([4, 2]), *map(dtype.numpy.type, bounds[:2])
    assert split_count(count, *args) == 1
    assert count(*args) == count.run(*args, engine="python")
