"""Which engine runs: the one that is named; else the default, or the one that can do what is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.recursions import fib

import undertow as ut
from undertow.api.options import DEFAULT_ENGINE, ENGINES
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


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "reference"])
def test_an_order_for_another_engine_is_an_error(engine: str) -> None:
    with pytest.raises(ut.UndertowError, match="scheduler='lifo' applies to the engine reference"):
        fib.run(3, engine=engine, scheduler="lifo")
    with ut.options(engine=engine), pytest.raises(ut.UndertowError, match="schedule_seed=1 applies to the engine"):
        fib.run(3, schedule_seed=1)


@pytest.mark.parametrize("engine", ["auto", *ENGINES])
def test_every_engine_can_be_traced(engine: str) -> None:
    events: list[Any] = []
    fib.run(3, engine=engine, trace=events)
    assert events[0] == RunStarted("fib", "waves" if engine == "auto" else engine)
    assert not events[-1].error


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
