"""Lanes are shared out as tasks. For any number of threads: the same bits, counts and faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program
from tests.support.graphs import optimized
from tests.support.shared_out import (
    D,
    cut_everywhere,
    fails,
    grown,
    grown_by_all,
    is_plain,
    leaves,
    lengths,
    loss,
    same_back,
    trees,
)

import undertow as ut
from undertow import _core
from undertow.engines.contract import Options
from undertow.engines.waves import WavesPlan


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    cut_everywhere(monkeypatch)


def core_stats(f: Any, *arguments: Any, threads: int = 1, **limits: Any) -> tuple[list[Any], _core.RunStats]:
    """Results, and what the core has counted."""
    plan = WavesPlan(optimized(f, *arguments))
    seen: list[_core.RunStats] = []
    run = plan.core.run

    class Core:
        def run(self, *args: Any) -> Any:
            results, stats = run(*args)
            seen.append(stats)
            return results, stats

    plan.core = Core()  # type: ignore[assignment]
    results, _ = plan.run([np.asarray(x) for x in arguments], Options(threads=threads, **limits))
    return list(results), seen[0]


def agree(f: Any, *arguments: Any) -> Any:
    """The results, equal to the bit for one thread, two and three."""
    alone, counted = core_stats(f, *arguments)
    assert counted.tasks > 1
    for threads in (2, 3):
        results, stats = core_stats(f, *arguments, threads=threads)
        for a, b in zip(results, alone, strict=True):
            np.testing.assert_array_equal(a, b)
        for name in ("tasks", "activations", "waves", "max_depth"):
            assert getattr(stats, name) == getattr(counted, name), name
    return alone


@ut.function
def all_same_back(x: ut.f64[None], ns: ut.i64[None]) -> ut.f64[None, None]:
    return ut.map(lambda n: same_back(x, n), ns)


@pytest.mark.slow
@pytest.mark.usefixtures("small_tasks")
@pytest.mark.parametrize("order", [0, 1, 2])
def test_trees_and_their_gradients(order: int) -> None:
    """Of the second order, activations have four phases."""
    f: Any = loss
    if order == 1:
        f = ut.value_and_grad(loss, argnums=(0, 1))
    if order == 2:
        f = ut.grad(lambda w, table, roots: ut.sum(ut.grad(loss)(w, table, roots) ** 2))
    arguments = trees(9)
    found = agree(f, *arguments)
    wanted = f.run(*arguments, engine="reference") if order < 2 else ()
    for a, b in zip(found, leaves(wanted), strict=False):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.usefixtures("small_tasks")
def test_arrays_of_run_time_shape() -> None:
    x, ns = np.arange(5.0), np.arange(7)
    (found,) = agree(grown_by_all, x, ns)
    np.testing.assert_allclose(found, grown_by_all.run(x, ns, engine="reference"))
    (rows,) = agree(lengths, ns)
    np.testing.assert_array_equal(rows, np.stack([grown(3)] * 7))
    (rows,) = agree(all_same_back, x, ns)
    np.testing.assert_array_equal(rows, np.stack([x] * 7))


@pytest.mark.slow
def test_a_batch_of_64_is_shared_out_as_it_is() -> None:
    """Without any help of the test: this is what a training step does."""
    rnn = ut.models.TreeRNN(50, 5, width=200)
    forest = _forest(64)
    gradient = ut.value_and_grad(rnn.total_loss(), sparse_rows=False)
    params = rnn.init(0)
    one, two = (gradient.run(params, forest, threads=threads) for threads in (1, 2))
    assert one[0] == two[0]
    for name in params:
        np.testing.assert_array_equal(one[1][name], two[1][name])


def _forest(count: int) -> Any:
    random = np.random.default_rng(7)
    depths, word, label = [], [], []
    for _ in range(count):
        waiting = [(int(random.integers(2, 12)), 0)]
        while waiting:
            leaves, depth = waiting.pop()
            depths.append(depth)
            word.append(int(random.integers(50)) if leaves == 1 else -1)
            label.append(int(random.integers(5)))
            if leaves > 1:
                left = int(random.integers(1, leaves))
                waiting += [(leaves - left, depth + 1), (left, depth + 1)]
    return ut.data.Forest.from_depths(depths, word, label, binary=True)


@pytest.mark.usefixtures("small_tasks")
def test_limits_hold_for_all_tasks_together() -> None:
    arguments = trees(9)
    f = ut.value_and_grad(loss, argnums=(0, 1))
    _, free = core_stats(f, *arguments)
    for threads in (1, 2):
        with pytest.raises(ut.FrameLimit):
            core_stats(f, *arguments, threads=threads, memory=free.peak_bytes // 3)
        core_stats(f, *arguments, threads=threads, memory=4 * free.peak_bytes)


@pytest.mark.usefixtures("small_tasks")
def test_the_first_lane_at_fault_is_reported() -> None:
    f = ut.function(lambda x, ns: ut.sum(ut.map(lambda n: fails(x, n), ns)))
    for engine in ("reference", "waves"):
        with pytest.raises(ut.RunError) as caught:
            f.run(np.ones(D), np.array([1, 2, 3, 33, 4, 25, 1]), engine=engine, threads=2)
        assert "index 33" in caught.value.what, engine


@pytest.mark.slow
@pytest.mark.parametrize("program", [p for p in PROGRAMS if is_plain(p)][::3], ids=str)
def test_programs_in_tasks_of_one_lane(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of all programs: each a map of five equal calls, so a task for each."""
    f = program.function
    lanes = [[x] * 5 for x in program.cases[0]]

    def mapped(threads: int) -> list[Any]:
        return list(leaves(f.map(*lanes, engine="waves", threads=threads)))

    f.clear()
    try:
        whole = mapped(1)
    except ut.UndertowError as error:
        pytest.skip(f"not for maps: {error.what}")
    cut_everywhere(monkeypatch)
    f.clear()
    one, two = mapped(1), mapped(2)
    f.clear()
    for a, b, c in zip(whole, one, two, strict=True):
        np.testing.assert_array_equal(b, c)
        if np.asarray(a).dtype.kind in "fc":
            np.testing.assert_allclose(a, b, rtol=1e-6)
        else:
            np.testing.assert_array_equal(a, b)
