"""The limits of a call hold from capture to the result: time in every step, and nodes in what passes make."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from tests.support.saved import packed, unpacked

import undertow as ut
import undertow.compat.v1 as tf
from undertow.ir import budget

ENGINES = ("waves", "reference", "demand", "expand")


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    return 1.0 if n == 0 else x * power(x, n - 1)


@ut.function
def slope(x: ut.f64):
    return ut.grad(power)(x, 3)


@ut.function
def g0(x: ut.f64):
    return power(x, 10)


class Clock:
    """Every look at it takes a second; it remembers who looked. (Engines have their own.)"""

    def __init__(self) -> None:
        self.now = 0.0
        self.steps: set[str] = set()

    def perf_counter(self) -> float:
        self.now += 1.0
        current = budget._BUDGET.get()
        self.steps |= {current.step} if current is not None else set()
        return self.now


def test_every_step_looks_at_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(budget, "time", clock)
    fresh = ut.Function(slope.__undertow_definition__)
    with ut.options(timeout=10**6):
        fresh.plan(2.0)
    assert clock.steps >= {"capture", "simplify", "extend", "constants", "hoist", "flatten"}
    assert clock.steps >= {"lower", "order", "defer", "fuse", "lifetimes", "homes", "schedule"}


@pytest.mark.parametrize("engine", ENGINES)
def test_planning_is_part_of_the_call(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = ut.Function(slope.__undertow_definition__)
    with ut.options(engine=engine):
        fresh.graph(2.0)
    monkeypatch.setattr(budget, "time", Clock())
    with pytest.raises(ut.Timeout, match=r"planning|lower"):
        fresh.run(2.0, engine=engine, timeout=1.5)
    monkeypatch.undo()
    assert fresh.run(2.0, engine=engine) == 12.0


@pytest.mark.parametrize("engine", ENGINES)
def test_the_run_gets_what_is_left_of_the_time(engine: str) -> None:
    @ut.function
    def endless(n: ut.i64) -> ut.i64:
        return 0 if n < 0 else endless(n + 1)

    began = time.perf_counter()
    with pytest.raises(ut.Timeout, match=r"(longer than|within) 0\.05 s"):
        endless.run(1, engine=engine, timeout=0.05, max_depth=None, memory=None)
    spent = time.perf_counter() - began
    assert spent < 10
    with pytest.raises(ut.Timeout):
        endless.map([1, 2], engine=engine, timeout=0)


def test_python_that_never_ends_is_stopped_at_capture() -> None:
    @ut.function
    def spins(x: ut.f64):
        n = 0
        while n >= 0:
            n = n + 1
        return x

    with pytest.raises(ut.Timeout, match=r"capture was not done within 0\.05 s") as caught:
        spins.run(1.0, timeout=0.05)
    assert caught.value.span is not None


def test_a_loop_that_unrolls_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    @ut.function
    def unrolls(x: ut.f64):
        while True:
            x = x + 1.0
            if ut.stop_gradient is None:
                break
        return x

    monkeypatch.setattr(budget, "FEWEST_NODES", 1000)
    with pytest.raises(ut.FrameLimit, match="capture would make more than 1,000 nodes, all that memory=10 allows"):
        unrolls.run(1.0, memory=10)
    monkeypatch.setattr(budget, "MOST_NODES", 2000)
    with pytest.raises(ut.FrameLimit, match="capture would make more than 2,000 nodes, all that a program may have"):
        unrolls(1.0)


def test_sessions_and_behaviors_have_the_same_limits() -> None:
    with tf.Graph().as_default(), tf.Session(timeout=0) as session:
        x = tf.constant(1.0) + 1.0
        with pytest.raises(ut.Timeout):
            session.run(x)
        with pytest.raises(ut.Timeout):
            session.behaviors(x)
    with ut.options(timeout=0), pytest.raises(ut.Timeout):
        ut.behaviors(power, 2.0, 3)


def test_a_call_inside_another_has_no_more_time() -> None:
    def work() -> tuple[float, float] | None:
        budget.begin(timeout=5.0)
        first = budget.clock()
        budget.begin(timeout=100.0)
        assert budget.clock() == first
        budget.begin()
        assert budget.clock() == first
        budget.begin(timeout=1.0)
        return budget.clock()

    from contextvars import copy_context

    inner = copy_context().run(work)
    assert inner is not None and inner[0] == 1.0
    assert budget.clock() is None


# --------------------------------------------------------------------------------------------------------------
# Files

HEAD = """library 1 main=main

main main(x: f64) -> (g)
  g: f64 = call x callee="g{0}"
"""
LEVEL = """
function g{0}(x: f64) -> (d)
  y: f64 = call x callee="g{1}"
  d: f64 = gradient y, 1.0:f64 given=[0] wanted=[0]
"""


def nested_derivatives(tmp_path: Path, levels: int) -> Any:
    """A small file that asks for the derivative of a derivative of ... of `power`."""
    ut.save(g0, tmp_path / "base.ut", examples=[(2.0,)], spans=False)
    entries = unpacked((tmp_path / "base.ut").read_bytes())
    text = entries["graphs/0.txt"].decode()
    body = text[text.index("\nfunction") :]
    made = HEAD.format(levels) + "".join(LEVEL.format(k, k - 1) for k in range(levels, 0, -1)) + body
    entries["graphs/0.txt"] = made.encode()
    path = tmp_path / "nested.ut"
    path.write_bytes(packed(entries))
    assert path.stat().st_size < 4000
    return ut.load(path)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_small_file_cannot_become_a_large_program(engine: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("undertow.api.load._FEWEST_NODES", 1000)
    monkeypatch.setattr("undertow.api.load._GROWTH", 10)
    assert nested_derivatives(tmp_path, 1).run(2.0, engine=engine) == 10 * 2.0**9
    bomb = nested_derivatives(tmp_path, 12)
    with pytest.raises(ut.FrameLimit, match="all that a file of its size may become") as caught:
        bomb.run(2.0, engine=engine)
    assert "source" in caught.value.hint
    for ask in (bomb.graph, bomb.plan):
        with pytest.raises(ut.FrameLimit, match="of its size"):
            ask(2.0)


def test_a_small_file_cannot_outlast_its_timeout(tmp_path: Path) -> None:
    bomb = nested_derivatives(tmp_path, 12)
    with pytest.raises(ut.Timeout, match=r"was not done within 0\.05 s"):
        bomb.run(2.0, timeout=0.05)
