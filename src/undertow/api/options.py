"""Options of runs: defaults, overridden by `with ut.options(...)`, overridden by the keywords of `f.run`.

>>> with options(engine="reference", max_depth=100):
...     settings().limits.max_depth
100
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import os
import secrets
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from undertow.engines.contract import Engine, Options
from undertow.engines.demand import Demand
from undertow.engines.expand import Expand
from undertow.engines.reference import Reference
from undertow.engines.waves import Waves
from undertow.engines.waves.direct import RunOptions, run_options
from undertow.errors import UndertowError, brief

ENGINES: dict[str, Engine] = {"reference": Reference(), "demand": Demand(), "waves": Waves(), "expand": Expand()}
DEFAULT_ENGINE = "waves"
_ORDERED = "reference"  # fires one node at a time, so it alone takes a scheduler
_ORDERS = ("scheduler", "schedule_seed")
_LIMITS = {f.name for f in fields(Options)}


@dataclass(frozen=True, slots=True)
class Settings:
    """The engine, its options, and whether it runs the simplified graph."""

    engine: str = "auto"
    limits: Options = field(default_factory=Options)
    simplify: bool = True
    # For calls that the core runs at once; None if they may not.
    quick: RunOptions | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_quick = self.simplify and self.find_engine().name == "waves"
        object.__setattr__(self, "quick", run_options(self.limits) if is_quick else None)

    def with_(self, **changes: Any) -> Settings:
        """These settings with some changed."""
        if not changes:
            return self
        try:  # the same changes as before, most of the time; 1 and True are not the same
            return _changed(self, tuple([(name, type(value), value) for name, value in changes.items()]))
        except TypeError:  # not hashable
            return self._changed(changes)

    def _changed(self, changes: dict[str, Any]) -> Settings:
        unknown = changes.keys() - _LIMITS - {"engine", "simplify"}
        if unknown:
            name, known = min(unknown), sorted(_LIMITS | {"engine", "simplify"})
            close = difflib.get_close_matches(name, known, 1)
            raise UndertowError(
                f"unknown option {name!r}",
                hint=f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}",
            )
        orders = {name: value for name in _ORDERS if (value := changes.get(name)) is not None}
        engine = changes.pop("engine", self.engine)
        if not isinstance(engine, str) or (engine != "auto" and engine not in ENGINES):
            raise UndertowError(f"unknown engine {brief(engine)}", hint=f"one of auto, {', '.join(ENGINES)}")
        is_simple = changes.pop("simplify", self.simplify)
        if not isinstance(is_simple, bool):
            raise UndertowError(f"simplify must be True or False, not {brief(is_simple)}")
        chosen = Settings(engine, replace(self.limits, **changes), is_simple)
        if orders and engine not in ("auto", _ORDERED):
            name, value = next(iter(orders.items()))
            raise UndertowError(
                f"{name}={brief(value)} applies to the engine {_ORDERED}, not to {engine}",
                hint=f'write engine="{_ORDERED}", or leave engine out',
            )
        return chosen

    def find_engine(self) -> Engine:
        """The named engine; if none is named, the default, or the one that supports the requested order."""
        if self.engine != "auto":
            return ENGINES[self.engine]
        is_ordered = any(getattr(self.limits, name) is not None for name in _ORDERS)
        return ENGINES[_ORDERED if is_ordered else DEFAULT_ENGINE]

    def draw_seed(self) -> np.int64:
        """The seed of a run: the given one, or a random one."""
        seed = self.limits.seed
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


@contextlib.contextmanager
def options(**changes: Any) -> Iterator[None]:
    """Run everything inside with these options: engine, scheduler, frames, max_depth, memory, timeout, ..."""
    before = _SETTINGS.get()
    chosen = settings().with_(**changes)
    try:
        _SETTINGS.set(chosen)  # inside the `try`: Ctrl-C may come right after it
        yield
    finally:
        _SETTINGS.set(before)
