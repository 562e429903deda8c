"""Traces in Chrome's format: files of runs on every engine, and what their slices, counters and arrows say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.chrome import checked, named

import undertow as ut
from undertow.api.options import ENGINES
from undertow.ir.trace import FrameEnded, FrameStarted, RunEnded, WaveStarted
from undertow.viz.chrome import ChromeTrace


@ut.function
def fib(n: ut.i64) -> ut.i64:
    if n <= 1:
        return 1
    return fib(n - 1) + fib(n - 2)


@ut.function
def power(x: ut.f64, n: ut.i64) -> ut.f64:
    return 1.0 if n == 0 else x * power(x, n - 1)


@ut.function
def total(n: ut.i64) -> ut.i64:
    total = 0
    for i in range(n):
        total += fib(i)
    return total


@ut.function
def failing(n: ut.i64) -> ut.i64:
    return 100 // n + failing(n - 1) if n >= 0 else 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("function", "args"), [(fib, (5,)), (total, (4,)), (ut.grad(power), (2.0, 3))], ids=str)
def test_a_file_of_a_run(tmp_path: Path, engine, function, args):
    expected = function.run(*args, engine=engine)
    assert function.run(*args, engine=engine, trace=tmp_path / "run.json") == expected
    events = checked((tmp_path / "run.json").read_text())
    (run,) = named(events, "X")["run"]
    assert named(events, "M")["process_name"][0]["args"]["name"].endswith(f" on {engine}") and run["dur"] > 0


def test_waves_are_slices_and_frames_are_counted(tmp_path: Path):
    _, stats = fib.run(12, trace=tmp_path / "run.json", stats=True)
    events = checked((tmp_path / "run.json").read_text())
    waves = named(events, "X")["fib"]
    assert len(waves) == stats.waves and sum(wave["args"]["lanes"] for wave in waves) == stats.activations
    assert max(wave["args"]["depth"] for wave in waves) == stats.max_depth
    counters = named(events, "C")
    assert [event["args"]["lanes"] for event in counters["lanes"]][1:] == [wave["args"]["lanes"] for wave in waves]
    assert max(event["args"]["frames"] for event in counters["frames"]) == stats.peak_frames
    assert {event["args"]["name"] for event in named(events, "M")["thread_name"]} == {"run", "main", "fib"}


def test_what_fires_is_a_slice_and_calls_are_arrows(tmp_path: Path):
    _, stats = fib.run(5, engine="reference", trace=tmp_path / "run.json", stats=True)
    events = checked((tmp_path / "run.json").read_text())
    slices = named(events, "X")
    assert sum(event["args"].get("live", False) for found in slices.values() for event in found) == stats.firings
    assert len(slices["fib/less_equal"]) == stats.activations == len(named(events, "f")["call"])
    assert max(event["args"]["frames"] for event in named(events, "C")["frames"]) == stats.peak_frames
    # Every arrow begins where a node that makes calls fires.
    starts = {(event["tid"], event["ts"]): event["name"] for found in slices.values() for event in found}
    assert all(starts[event["tid"], event["ts"]].endswith(".start") for event in named(events, "s")["call"])


def test_a_run_that_fails_leaves_a_whole_file(tmp_path: Path):
    with pytest.raises(ut.Fault):
        failing.run(3, trace=tmp_path / "run.json")
    (run,) = named(checked((tmp_path / "run.json").read_text()), "X")["run"]
    assert "division by zero" in run["args"]["error"]


def test_options_around_calls(tmp_path: Path):
    with ut.options(trace=str(tmp_path / "RUN.JSON")):
        fib(3)
    assert named(checked((tmp_path / "RUN.JSON").read_text()), "X")["fib"]


def test_other_files_have_a_line_for_each_event(tmp_path: Path):
    fib.run(3, trace=tmp_path / "run.jsonl")
    assert json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])["event"] == "run"


def test_a_function_takes_events():
    events = []
    fib.run(3, trace=lambda event: events.append(event))
    assert [event.lanes for event in events if isinstance(event, WaveStarted)] == [1, 1, 2, 2]
    with pytest.raises(ut.UndertowError, match="a file name, a list or a function, not 3"):
        fib.run(3, trace=3)


def test_a_folder_that_is_not_there():
    with pytest.raises(ut.UndertowError, match="cannot be written"):
        fib.run(3, trace="no/such/folder/run.json")


def test_an_agenda_counts_lanes_only():
    """Its stages begin and end in any order, so no frames follow from them."""
    events = []
    trace = ChromeTrace(events.append)
    for at, event in enumerate((WaveStarted(1, 4, 1), WaveStarted(1, 3, 1, stage=1), WaveStarted(1, 2, 2))):
        trace.add(event, at)
    trace.add(RunEnded(0, 0.0), 3.0)
    counters = named(events, "C")
    assert [event["args"]["frames"] for event in counters["frames"]] == [4]
    assert [event["args"]["lanes"] for event in counters["lanes"]] == [4, 3, 2]
    slices = [(event["ts"], event["dur"]) for event in named(events, "X")["region 1"]]
    assert slices == [(0, 1e6), (1e6, 1e6), (2e6, 1e6)]


def test_frames_that_end_are_forgotten():
    events = []
    trace = ChromeTrace(events.append)
    for number in range(3):
        trace.add(FrameStarted(number, None, None, 0), number)
        trace.add(FrameEnded(number), number)
    assert [event["args"]["frames"] for event in named(events, "C")["frames"]] == [1, 0] * 3
