"""Restore: searches that change an array, hand it down and restore it make the calls of a level in one wave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.programs import backtracking
from tests.programs.program import Program
from tests.support.validity import valid

import undertow as ut
from undertow.passes.restore import restore_arrays
from undertow.passes.simplify import simplify

PROGRAMS: dict[str, Program] = {program.name: program for program in backtracking.PROGRAMS}
RESTORED = {
    "nqueens", "nqueens_continue", "perms", "coin_ways", "subsets", "sudoku", "walks", "hpaths", "two_places",
    "mutual_boards", "floats", "sliced",
}  # fmt: skip


def restored(function: Any, *args: Any) -> int:
    """How many arrays of a function are restored; the result is valid, and has no more to restore."""
    library, count = restore_arrays(simplify(function.library(*args))[0])
    assert not restore_arrays(simplify(valid(library))[0])[1]
    return count["restored array"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_waves(name: str) -> None:
    """A wave for each level of the search; or one for each call, if what was changed is not certainly restored."""
    program = PROGRAMS[name]
    args = program.cases[-1]
    _, stats = program.function.run(*args, stats=True)
    assert bool(restored(program.function, *args)) == (name in RESTORED)
    levels = stats.max_depth if name != "mutual_boards" else 11  # two functions, of several depths
    assert stats.waves == (levels if name in RESTORED else stats.activations)


def test_gradients() -> None:
    @ut.function
    def weigh(x: ut.f64[4], n: ut.i64, size: ut.i64) -> ut.f64:
        if n == 0:
            return (x * x * x).sum()
        total = 0.0
        for i in range(size):
            before = x[i]
            x[i] = before * 0.5 + x[0]
            total = total * 0.9 + weigh(x, n - 1, size)
            x[i] = before
        return total

    @ut.function
    def weighed(x: ut.f64[4]) -> ut.f64:
        return weigh(x.copy(), 3, 4)

    x = np.array([0.5, -1.25, 2.0, 3.0])
    assert restored(weighed, x)
    gradient = ut.grad(weighed)
    np.testing.assert_allclose(gradient(x), gradient.run(x, engine="reference"), rtol=1e-13)
    steps = np.eye(4) * 1e-6
    expected = [(weighed(x + step) - weighed(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(gradient(x), expected, rtol=1e-7)


def test_what_a_test_has_found_is_no_derivative() -> None:
    """Where `x[i] == 0.0`, putting 0.0 keeps the value, but not the derivative."""

    @ut.function
    def scale(x: ut.f64[3], n: ut.i64) -> ut.f64:
        if n == 0:
            return x.sum()
        total = 0.0
        if x[0] == 0.0:
            x[0] = 1.0
            total += scale(x, n - 1)
            x[0] = 0.0
        return total + x[0] * 3.0

    @ut.function
    def scaled(x: ut.f64[3]) -> ut.f64:
        return scale(x.copy(), 1)

    np.testing.assert_array_equal(ut.grad(scaled)(np.zeros(3)), [0.0, 1.0, 1.0])


def test_large_arrays_are_changed_in_place() -> None:
    @ut.function
    def mark(x: ut.bool[4000], n: ut.i64, size: ut.i64) -> ut.i64:
        if n == 0:
            return 1
        total = 0
        for i in range(size):
            if not x[i]:
                x[i] = True
                total += mark(x, n - 1, size)
                x[i] = False
        return total

    @ut.function
    def marks(n: ut.i64, size: ut.i64) -> ut.i64:
        return mark(np.zeros(4000, bool), n, size)

    assert restored(marks, 2, 5) == 0
    assert marks(2, 5) == 20


def test_faults_are_the_loop_s() -> None:
    @ut.function
    def reach(x: ut.i64[4], n: ut.i64, size: ut.i64) -> ut.i64:
        if n == 0:
            return 12 // (x[1] - 2)
        total = 0
        for i in range(size):
            before = x[i]
            x[i] = n
            total += reach(x, n - 1, size)
            x[i] = before
        return total

    @ut.function
    def reached(n: ut.i64, size: ut.i64) -> ut.i64:
        return reach(np.zeros(4, np.int64), n, size)

    assert reached(1, 4) == reached.run(1, 4, engine="python")
    with pytest.raises(ZeroDivisionError):
        reached(2, 4)
    with pytest.raises(IndexError):
        reached(2, 5)


def test_slices_that_overlap() -> None:
    """What is put back into a part of where it was is a change."""

    @ut.function
    def moved(x: ut.f64[6], n: ut.i64) -> ut.f64:
        if n == 0:
            return x[0]
        x[1:4] = x[:3]
        x[1:4] = x[:3]
        x[[3, 4]] = x[[4, 5]]
        x[[3, 4]] = x[[4, 5]]
        return moved(x, n - 1) + x[3]

    @ut.function
    def all_of_it(x: ut.f64[6]) -> tuple[ut.f64, ut.f64[6], ut.f64[6]]:
        before = x.copy()
        return moved(x, 1), x, before

    x = np.arange(6.0)
    total, after, before = all_of_it(x)
    assert total == 5.0 and after.tolist() == [0.0, 0.0, 0.0, 5.0, 5.0, 5.0] and before.tolist() == x.tolist()
