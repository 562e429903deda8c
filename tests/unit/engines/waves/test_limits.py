"""Limits of runs on waves: what fits runs, however tight it is; the rest ends in our errors, soon, and says where.

Other than on the reference engine, `frames` and `memory` are not used up where fewer lanes at once would do: a run
fails only if going down lane by lane does. So `peak_frames` of a run without limits says nothing about the least that
it needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.graphs import optimized
from tests.support.recursions import fib, grows, halves
from tests.support.threads import in_threads

import undertow as ut
from undertow.engines.contract import Options
from undertow.engines.waves import WavesPlan
from undertow.ir.trace import RunEnded, RunStarted, WaveStarted, read_trace


@pytest.fixture(autouse=True)
def waves() -> Any:
    with ut.options(engine="waves"):
        yield


# --------------------------------------------------------------------------------------------------------------
# What fits


@pytest.mark.parametrize("frames", [21, 30, 200, 5000])
def test_frames_choose_the_width(frames: int) -> None:
    value, stats = fib.run(20, frames=frames, stats=True)
    assert value == 6765 and stats.peak_frames <= frames
    assert stats.activations == 21891


def test_too_few_frames() -> None:
    with pytest.raises(ut.FrameLimit, match="frames=20") as caught:
        fib.run(20, frames=20)
    assert len(caught.value.calls) == 19
    assert caught.value.span is not None and "fib(n - 1) + fib(n - 2)" in caught.value.span.source()


@pytest.mark.parametrize("memory", [100_000, 1_000_000, 100_000_000])
def test_memory_chooses_the_width(memory: int) -> None:
    x = np.linspace(0, 1, 100)
    value, stats = halves.run(x, 16, memory=memory, stats=True)
    np.testing.assert_allclose(value, halves.run(x, 16, engine="reference"))
    assert stats.peak_bytes <= memory
    value, stats = grows.run(x[:10], 14, memory=memory, stats=True)
    np.testing.assert_allclose(value, grows.run(x[:10], 14, engine="reference"))
    assert stats.peak_bytes <= memory


def test_too_little_memory() -> None:
    with pytest.raises(ut.FrameLimit, match=r"take [\d,]+ bytes, more than memory=20,000") as caught:
        halves.run(np.ones(100), 16, memory=20_000)
    assert caught.value.calls and caught.value.span is not None
    told = int(str(caught.value).split("take ")[1].split(" bytes")[0].replace(",", ""))
    assert told > 20_000


def test_what_later_phases_need_counts() -> None:
    def loss(x: Any) -> Any:
        return halves(x, 12)

    x = np.ones(100)
    wanted, stats = ut.grad(loss).run(x, stats=True)
    np.testing.assert_allclose(wanted, ut.grad(loss).run(x, engine="reference"))
    with pytest.raises(ut.FrameLimit, match="frames="):
        ut.grad(loss).run(x, frames=200)
    assert stats.peak_frames > 200


# --------------------------------------------------------------------------------------------------------------
# Time


# --------------------------------------------------------------------------------------------------------------
# Threads


@ut.function
def scaled(w: ut.f64, n: ut.i64) -> ut.f64:
    """Every lane of a map that calls it is an entry of its own, which is given `w`."""
    if n <= 1:
        return w
    return scaled(w, n - 1) * 0.5 + scaled(w, n - 2) * w


@ut.function
def checked(n: ut.i64, k: ut.i64) -> ut.i64:
    share = 1000 // (k - 700)
    return share if n == 0 else checked(n - 1, 2 * k) + checked(n - 1, 2 * k + 1)


def narrow_plan(function: Any, *args: Any, width: int = 8) -> Any:
    return WavesPlan(optimized(function, *args), width)


def test_threads_give_the_same_bits() -> None:
    """Chunks of one wave run on several threads: nothing depends on how many there are."""

    @ut.function
    def all_lanes(ws: ut.f64[200], n: ut.i64) -> ut.f64[200]:
        return ut.map(lambda w: scaled(w, n), ws)

    ws = np.linspace(-1, 1, 200)
    plan = narrow_plan(all_lanes, ws, 6)
    one, stats = plan.run([ws, np.int64(6)], Options(threads=1))
    for _ in range(10):
        for threads in (2, 4):
            several, counted = plan.run([ws, np.int64(6)], Options(threads=threads))
            np.testing.assert_array_equal(several[0], one[0], strict=True)
            assert (counted.activations, counted.max_depth) == (stats.activations, stats.max_depth)
            assert counted.deepest_tag == stats.deepest_tag and counted.per_node == stats.per_node


def test_threads_report_the_same_fault() -> None:
    """Where several tasks would fail, the first one is told, however soon others fail."""
    plan = narrow_plan(checked, 12, 1)
    expected = None
    for threads in (1, 2, 3, 2, 4, 2):
        with pytest.raises(ut.Fault, match="division by zero") as caught:
            plan.run([np.int64(12), np.int64(1)], Options(threads=threads))
        expected = expected or str(caught.value)
        assert str(caught.value) == expected


def test_threads_share_the_memory() -> None:
    plan = narrow_plan(halves, np.ones(100), 16, width=16)
    inputs = [np.ones(100), np.int64(16)]
    for threads in (1, 2):
        plan.run(inputs, Options(threads=threads, memory=2_000_000))
        with pytest.raises(ut.FrameLimit, match="memory=20,000"):
            plan.run(inputs, Options(threads=threads, memory=20_000))


def test_state_is_committed_by_runs_that_succeed() -> None:
    total = ut.Variable(0, name="total")

    @ut.function
    def add_up(n: ut.i64, bad: ut.i64) -> ut.i64:
        total.assign_add(n)
        if n == 0:
            return 10 // bad
        return add_up(n - 1, bad)

    add_up(4, 1)
    assert total.value == 10
    with pytest.raises(ut.Fault, match="division by zero"):
        add_up(4, 0)
    assert total.value == 10

    def work(_: int) -> None:
        with ut.options(engine="waves"):
            for _ in range(10):
                add_up(4, 1)

    in_threads(work, 3)
    assert total.value == 10 * 31  # runs that write the same variable come one after the other


# --------------------------------------------------------------------------------------------------------------
# Traces


def test_traces_have_waves(tmp_path: Path) -> None:
    events: list[Any] = []
    fib.run(6, trace=events)
    assert events[0] == RunStarted("fib", "waves")
    assert isinstance(events[-1], RunEnded) and not events[-1].error and events[-1].firings > 0
    waves = events[1:-1]
    assert all(isinstance(event, WaveStarted) for event in waves)
    assert [(wave.depth, wave.lanes) for wave in waves] == [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (6, 2)]
    file = tmp_path / "run.jsonl"
    fib.run(6, trace=file)
    assert list(read_trace(file))[:-1] == events[:-1]


def test_phases_are_waves() -> None:
    def loss(x: Any) -> Any:
        return halves(x, 3)

    events: list[Any] = []
    ut.grad(loss).run(np.ones(100), trace=events)
    phases = [event.phase for event in events if isinstance(event, WaveStarted)]
    assert set(phases) == {0, 1}


def chains(trees: int, words: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Trees that grow to the right: left child, right child, roots."""
    size = 2 * words - 1
    left, right = np.full(trees * size, -1, np.int32), np.full(trees * size, -1, np.int32)
    for tree in range(trees):
        for level in range(words - 1):
            node = tree * size + 2 * level
            left[node], right[node] = node + 1, node + 2
    return left, right, np.arange(trees, dtype=np.int32) * size


def test_what_all_lanes_share_makes_no_wave_narrower() -> None:
    @ut.function
    def encode(table, left, right, node: ut.i32) -> ut.f32[20]:
        if left[node] < 0:
            return table[node % 1000]
        turned = ut.reshape(table, (20, 1000))  # made of what is shared: there once
        both = encode(table, left, right, left[node]) + encode(table, left, right, right[node])
        return both + turned[:, 0]

    table = np.random.default_rng(7).normal(size=(1000, 20)).astype(np.float32)
    left, right, roots = chains(100, 12)
    shared = map(ut.shared, (table, left, right))
    # A table for each lane would fill this many times over.
    found, stats = encode.map(*shared, roots, memory=32 << 20, threads=1, stats=True)
    assert stats.waves == 12 and stats.activations == 100 * 23
    np.testing.assert_allclose(found, encode.map(*map(ut.shared, (table, left, right)), roots, memory=None))


def test_what_lanes_hold_alone_makes_waves_narrower() -> None:
    @ut.function
    def walk(table, n: ut.i64) -> ut.f32:
        if n == 0:
            return 0.0
        return walk(table, n - 1) + ut.sum(table * 1.5)

    tables = np.ones((64, 1000), np.float32)
    wide, wide_stats = walk.map(tables, np.full(64, 3), threads=1, stats=True)
    found, stats = walk.map(tables, np.full(64, 3), threads=1, memory=1 << 20, stats=True)
    assert stats.waves > wide_stats.waves
    np.testing.assert_array_equal(found, wide)


def test_an_operator_may_have_many_operands() -> None:
    @ut.function
    def joined(rows: ut.f64[100, 3], n: ut.i64) -> ut.f64[300]:
        if n > 0:
            return joined(rows, n - 1) + 1.0
        return ut.concat([rows[k] for k in range(100)])

    rows = np.arange(300.0).reshape(100, 3)
    np.testing.assert_array_equal(joined.run(rows, 2), rows.reshape(-1) + 2.0)
