"""Which engine runs: the one that is named; else the default, or the one that can do what is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.support.recursions import fib

import undertow as ut
from undertow.api.options import DEFAULT_ENGINE, ENGINES, settings
from undertow.engines.contract import Options
from undertow.ir.trace import RunStarted


def engine_of(**options: Any) -> str:
    value, stats = fib.run(6, stats=True, **options)
    assert value == 8 and stats.activations == 25
    return str(stats.engine)


def test_waves_by_default() -> None:
    assert DEFAULT_ENGINE == "waves"
    assert engine_of() == engine_of(engine="auto") == "waves"
    assert fib.map([5, 6], stats=True)[1].engine == "waves"
    with ut.options(engine="demand"):
        assert engine_of() == "demand"
        assert engine_of(engine="auto") == "waves"


def test_an_order_is_for_the_reference_engine() -> None:
    for options in ({"scheduler": "fifo"}, {"scheduler": "random", "schedule_seed": 3}, {"schedule_seed": 0}):
        assert engine_of(**options) == "reference"
        assert engine_of(engine="reference", **options) == "reference"
        with ut.options(**options):
            assert engine_of() == "reference"
            assert engine_of(engine="waves") == "waves"  # the later is the stronger
            assert engine_of(scheduler=None, schedule_seed=None) == "waves"


@pytest.mark.parametrize("engine", [name for name in ENGINES if name not in ("reference", "expand")])
def test_an_order_for_another_engine_is_an_error(engine: str) -> None:
    with pytest.raises(ut.UndertowError, match="scheduler='lifo' applies to the engines reference and expand"):
        fib.run(3, engine=engine, scheduler="lifo")
    with ut.options(engine=engine), pytest.raises(ut.UndertowError, match="schedule_seed=1 applies to the engines"):
        fib.run(3, schedule_seed=1)


def test_priorities_are_for_waves_too() -> None:
    for scheduler in ("depth", "longest_path"):
        assert engine_of(scheduler=scheduler) == "reference"
        assert engine_of(engine="waves", scheduler=scheduler) == "waves"
        with pytest.raises(ut.UndertowError, match="applies to the engines"):
            fib.run(3, engine="demand", scheduler=scheduler)


@pytest.mark.parametrize("engine", ["auto", *ENGINES])
def test_every_engine_can_be_traced(engine: str) -> None:
    events: list[Any] = []
    fib.run(3, engine=engine, trace=events)
    assert events[0] == RunStarted("fib", "waves" if engine == "auto" else engine)
    assert not events[-1].error


@pytest.mark.parametrize(
    ("written", "size"),
    [("4G", 4 << 30), ("512M", 512 << 20), ("1.5GiB", 3 << 29), ("500 kb", 500 << 10), ("0", 0), ("1_000", 1000)],
)
def test_memory_as_people_write_it(written: str, size: int) -> None:
    with ut.options(memory=written):
        assert settings().limits.memory == size
    assert fib.run(3, memory="1M") == 2


def test_what_waves_counts() -> None:
    _, stats = fib.run(12, stats=True)
    assert stats.activations == 465
    assert stats.peak_width <= stats.peak_frames and stats.peak_bytes > 0
    assert stats.mean_width == pytest.approx(stats.activations / stats.waves)
    assert {"operators", "branches", "calls"} <= stats.step_seconds.keys()
    assert 0 < sum(stats.step_seconds.values()) <= stats.seconds
    assert fib.run(12, stats=True, timed=False)[1].step_seconds == {}


@pytest.mark.parametrize(
    ("option", "said"), [({"scheduler": "lilo"}, "unknown scheduler 'lilo'"), ({"frames": -1}, "frames=-1")]
)
def test_options_are_checked(option: dict[str, Any], said: str) -> None:
    with pytest.raises(ut.UndertowError, match=said):
        Options(**option)


# --------------------------------------------------------------------------------------------------------------
# Numbers out of range

ABSURD: list[Any] = [
    10**30, 10**400, -(10**400), 10**5000, -1, 1.5, float("nan"), float("-inf"), True, "three", b"3",
    np.uint64(2**64 - 1), np.array([1, 2]), np.array(5), 1j, "\0", "\ud800",
]  # fmt: skip
NAMES = ("frames", "max_depth", "memory", "timeout", "threads", "seed", "schedule_seed", "scheduler", "trace", "timed")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", ABSURD, ids=lambda value: ut.errors.brief(value)[:20])
def test_an_option_is_in_range_or_refused(name: str, value: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    allowed = {("seed", -1), ("timeout", 1.5), ("trace", "three"), ("timed", True)}
    if any(name == known and type(value) is type(good) and value == good for known, good in allowed):
        with ut.options(**{name: value}):
            assert fib(3) == 2
        return
    with pytest.raises(ut.UndertowError, match=name) as caught, ut.options(**{name: value}):
        pass
    assert caught.value.hint


def test_numbers_of_numpy_are_numbers() -> None:
    numbers: dict[str, Any] = {
        "frames": np.int32(9),
        "timeout": np.float32(60),
        "threads": np.int64(1),
        "seed": np.int64(3),
    }
    assert fib.run(3, **numbers, memory=np.uint32(10**9), timed=np.True_, check_finite=np.False_) == 2
    assert fib.run(3, timeout=float("inf")) == 2


@ut.function
def draw():
    return ut.random.uniform()


def test_two_seeds_are_two_seeds() -> None:
    seeds = [0, 1, -1, 2**31, 2**32, -(2**32), 2**62, 2**63 - 1, -(2**63)]
    assert len({float(draw.run(seed=seed)) for seed in seeds}) == len(seeds)
    for seed in (2**63, -(2**63) - 1):
        with pytest.raises(ut.UndertowError, match="seed=") as caught:
            draw.run(seed=seed)
        assert "64 bits" in caught.value.hint
    with pytest.raises(ut.UndertowError, match="schedule_seed=-1 must not be negative"):
        draw.run(schedule_seed=-1)  # Python's generator would take it for 1
    with pytest.raises(ut.DataError, match="seed is -1"):
        ut.data.sentiment(3, seed=-1)
    with pytest.raises(ut.UndertowError, match="seed is"):
        ut.train.Recipe(seed=2**32)
    with pytest.raises(ut.UndertowError, match="seed is -1"):
        ut.models.TreeRNN(5, 2, width=2).init(-1)


def test_a_block_changes_the_options_that_it_is_entered_with() -> None:
    block = ut.options(threads=1)
    with ut.options(max_depth=7), block:
        assert (settings().limits.max_depth, settings().limits.threads) == (7, 1)
    assert settings().limits.max_depth != 7
