"""Options of runs: defaults, overridden by `with ut.options(...)`, overridden by the keywords of `f.run`.

>>> with options(engine="reference", max_depth=100):
...     settings().limits.max_depth
100
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import os
import secrets
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from undertow import engines
from undertow.api.placing import check_placement
from undertow.engines.contract import Engine, Options, bytes_of
from undertow.engines.demand import Demand
from undertow.engines.expand import Expand
from undertow.engines.outside import Outside, using
from undertow.engines.reference import Reference
from undertow.engines.waves import Waves
from undertow.engines.waves.direct import RunOptions, run_options
from undertow.errors import UndertowError, brief
from undertow.frontend.values.random import STREAM, Stream, folded
from undertow.tracebacks import boundary

ENGINES: dict[str, Engine] = {"reference": Reference(), "demand": Demand(), "waves": Waves(), "expand": Expand()}
DEFAULT_ENGINE = engines.DEFAULT
PYTHON = "python"  # no engine: the undecorated function runs, see `api/plain.py`
_ORDERED = "reference"  # fires one node at a time, so it alone takes a scheduler
_ORDERS = ("scheduler", "schedule_seed")
_LIMITS = {f.name for f in fields(Options)}
_OF_GRAPHS = {"engine", "simplify", "overflow", "reorder", "placement"}
OPTIONS = _LIMITS | _OF_GRAPHS
_EVERYWHERE = ("max_depth", "memory", "frames", "timeout", "threads", "check_finite")


@dataclass(frozen=True, slots=True)
class Settings:
    """The engine, its options, and which form of the graph it runs."""

    engine: str = "auto"
    limits: Options = field(default_factory=Options)
    simplify: bool = True
    overflow: str = "wrap"  # what integers do: "wrap", or "error"
    reorder: bool = False  # may a loop's numbers be added up in another order?
    stream: Stream | None = None  # of `with ut.options(seed=...)`: each run draws the next seed from it
    is_shared_out: bool = False  # may runs use workers?
    placement: str = "devices"  # which parts of a graph they run: as the program says, as is found ("auto"), or "none"
    # For calls that the core runs at once; None if they may not.
    quick: RunOptions | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_quick = (
            self.simplify
            and not (self.is_checked or self.reorder or self.is_shared_out)
            and self.engine != PYTHON
            and self.find_engine().name == "waves"
        )
        object.__setattr__(self, "quick", run_options(self.limits) if is_quick else None)

    @property
    def is_checked(self) -> bool:
        """Is an integer that overflows a fault?"""
        return self.overflow == "error"

    @property
    def is_placeable(self) -> bool:
        """May parts of a run be placed on workers? A trace is of one process."""
        return self.placement != "none" and self.limits.trace is None and self.find_engine().name == "waves"

    def with_(self, **changes: Any) -> Settings:
        """These settings with some changed."""
        if not changes:
            return self
        try:  # the same changes as before, most of the time; 1 and True are not the same
            return _changed(self, tuple([(name, type(value), value) for name, value in changes.items()]))
        except (TypeError, ValueError):  # not hashable
            return self._changed(changes)

    def _changed(self, changes: dict[str, Any]) -> Settings:
        unknown = changes.keys() - OPTIONS
        if unknown:
            name, known = min(unknown), sorted(OPTIONS)
            close = difflib.get_close_matches(name, known, 1)
            raise UndertowError(
                f"unknown option {name!r}",
                hint=f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}",
            )
        if isinstance(memory := changes.get("memory"), str):
            changes["memory"] = bytes_of(memory)
        orders = {name: value for name in _ORDERS if (value := changes.get(name)) is not None}
        engine = changes.pop("engine", self.engine)
        if not isinstance(engine, str) or (engine not in ("auto", PYTHON) and engine not in ENGINES):
            raise UndertowError(f"unknown engine {brief(engine)}", hint=f"one of auto, {', '.join(ENGINES)}, {PYTHON}")
        is_simple = changes.pop("simplify", self.simplify)
        if not isinstance(is_simple, bool):
            raise UndertowError(
                f"simplify must be True or False, not {brief(is_simple)}", hint="leave it out, or write simplify=False"
            )
        overflow = changes.pop("overflow", self.overflow)
        if overflow not in ("wrap", "error"):
            raise UndertowError(f"unknown overflow {brief(overflow)}", hint='write overflow="wrap" or overflow="error"')
        reorder = changes.pop("reorder", self.reorder)
        if not isinstance(reorder, bool):
            raise UndertowError(
                f"reorder must be True or False, not {brief(reorder)}", hint="leave it out, or write reorder=True"
            )
        placement = check_placement(changes.pop("placement", self.placement))
        stream = None if "seed" in changes else self.stream
        limits = replace(self.limits, **changes)
        chosen = Settings(engine, limits, is_simple, overflow, reorder, stream, self.is_shared_out, placement)
        if orders and engine not in ("auto", _ORDERED):
            name, value = next(iter(orders.items()))
            raise UndertowError(
                f"{name}={brief(value)} applies to the engine {_ORDERED}, not to {engine}",
                hint=f'write engine="{_ORDERED}", or leave engine out',
            )
        return chosen

    def find_engine(self) -> Engine:
        """The named engine; if none is named, the default, or the one that supports the requested order."""
        if self.engine not in ("auto", PYTHON):
            return ENGINES[self.engine]
        is_ordered = any(getattr(self.limits, name) is not None for name in _ORDERS)
        return ENGINES[_ORDERED if is_ordered else DEFAULT_ENGINE]

    def for_part(self, number: int) -> Settings:
        """The settings of one of several runs that make up a map: each draws other random numbers."""
        seed = self.limits.seed
        return self if seed is None or self.stream is not None else self.with_(seed=folded(seed, number))

    def draw_seed(self) -> np.int64:
        """The seed of a run: the next one of a stream, the given one, or a random one."""
        seed = self.limits.seed if self.stream is None else self.stream.draw()
        return np.int64(secrets.randbits(63) if seed is None else seed)


@functools.lru_cache(64)
def _changed(settings: Settings, changes: tuple[tuple[str, type, Any], ...]) -> Settings:
    return settings._changed({name: value for name, _, value in changes})


try:  # a quarter of what is free at start
    _MEMORY: int | None = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4
except (ValueError, OSError, AttributeError):  # not known on this system: no limit
    _MEMORY = None
_DEFAULTS = Settings(limits=Options(memory=_MEMORY))
_SETTINGS: ContextVar[Settings | None] = ContextVar("undertow_settings", default=None)


def quick_options() -> RunOptions | None:
    """The limits of calls that the core may run at once."""
    chosen = _SETTINGS.get()
    return _DEFAULTS.quick if chosen is None else chosen.quick


def settings() -> Settings:
    """The current settings."""
    return _SETTINGS.get() or _DEFAULTS


def changed_limits() -> dict[str, Any]:
    """What runs elsewhere should be told, too: limits that differ from the defaults."""
    now, usual = settings().limits, _DEFAULTS.limits
    return {name: getattr(now, name) for name in _EVERYWHERE if getattr(now, name) != getattr(usual, name)}


def use(chosen: Settings) -> None:
    """Make these the settings of the rest of this context."""
    if chosen.limits.seed is not None and chosen.stream is None:
        chosen = replace(chosen, stream=Stream(chosen.limits.seed))
    _SETTINGS.set(chosen)
    STREAM.set(chosen.stream)


@boundary
def options(**changes: Any) -> contextlib.AbstractContextManager[None]:
    """Run everything in the `with` block with these options. `f.run` and `f.map` take the same ones for one run.

    >>> with options(engine="reference", memory="4G"):
    ...     pass

    engine          which engine runs: "waves", "reference", "demand" or "expand"; "auto" is "waves", or "reference"
                    if there is a scheduler; "python" runs the undecorated function, for a debugger
    simplify        run the simplified graph; False runs it as it was captured
    overflow        what an integer does that does not fit its dtype: "wrap" around, or be an "error", which costs time
    reorder         True lets a loop over recursive calls add up and multiply their results at once, in another order
                    than the program's: floats are rounded otherwise
    placement       on a cluster, which workers run what of a graph: "devices" as `ut.device` says, "auto" where it
                    pays, by an estimate; "none": no worker has a part of its own
    seed            of random numbers, an integer: each run in the block draws other ones, the same in each block with
                    that seed; f.run(x, seed=0) draws the same each time. None: new ones in each run
    max_depth       how deep calls may nest; None for no limit
    memory          bytes that a run may use, as a number or as "512M" or "4G"; None for no limit. The default is a
                    quarter of what is free when Undertow is imported
    frames          how many frames a run may have at once; None for no limit
    timeout         seconds that a call may take; None for no limit
    threads         how many threads the engine may use; None for one per core
    check_finite    make a float result with nan or inf an error
    trace           a file to write every event of the run to, as JSON lines, or in Chrome's format if its name ends in
                    .json; or a list to append them to, or a function to call with each
    timed           measure the time of each kind of step; `f.run(x, stats=True)` does
    progress        show how far a run of more than two seconds has come, in terminals and notebooks
    scheduler       which ready node fires next, in the engine "reference": "fifo", "lifo" or "random"
    schedule_seed   of the random scheduler
    """
    around = settings()
    return _changed_inside(changes, around, around.with_(**changes))  # refuses wrong ones here, on the user's line


@contextlib.contextmanager
def _changed_inside(changes: dict[str, Any], around: Settings, chosen: Settings) -> Iterator[None]:
    before, stream = _SETTINGS.get(), STREAM.get()
    try:
        now = settings()  # other ones than before, perhaps: a context can be entered later than it was made
        use(chosen if now is around else now.with_(**changes))  # inside the `try`: Ctrl-C may come right after it
        yield
    finally:
        _SETTINGS.set(before)
        STREAM.set(stream)


@contextlib.contextmanager
def sharing_out(workers: Outside) -> Iterator[None]:
    """Runs inside may give work to these workers."""
    before = _SETTINGS.get()
    try:
        _SETTINGS.set(replace(settings(), is_shared_out=True))
        with using(workers):
            yield
    finally:
        _SETTINGS.set(before)


@contextlib.contextmanager
def repeating(seed: int) -> Iterator[None]:
    """Draw the same random numbers in every run inside."""
    before = _SETTINGS.get()
    try:
        _SETTINGS.set(settings().with_(seed=seed))
        yield
    finally:
        _SETTINGS.set(before)


# What `help` and editors show: every option with its default, but for that of `memory`, which is the machine's.
options.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=... if name == "memory" else getattr(of, name))
    for of in (_DEFAULTS, _DEFAULTS.limits)
    for name in (f.name for f in fields(of) if f.init)
    if name not in ("limits", "stream", "is_shared_out")
])  # fmt: skip
