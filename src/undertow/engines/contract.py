"""What every engine promises: plan a static graph once, then run the plan as often as you like.

A plan is immutable and holds no state of a run, so a run that fails or is interrupted leaves it usable.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

import numpy as np

from undertow.errors import UndertowError, brief
from undertow.ir.graph import Array, StaticGraph
from undertow.ir.trace import Event, Record, Tag

MAX_DEPTH = 2_000_000  # of calls, unless more is asked for: the core knows it too (core/include/undertow/run.h)
MAX_DEPTH_IN_PYTHON = 200_000  # the same on `reference` and `demand`, where a call takes some ten microseconds
SCHEDULERS = ("fifo", "lifo", "random")
Result = Array | np.generic  # a NumPy scalar where the type has no dimensions
State = MutableMapping[str, Result]  # the values of variables, by their names in the graph


class _Range(NamedTuple):
    """The numbers that an option may be."""

    least: int
    most: int
    hint: str
    kind: type[int] | type[float] = int

    def checked(self, name: str, value: Any) -> int | float:
        """The number as Python's own."""
        kinds = (int, np.integer) if self.kind is int else (int, float, np.integer, np.floating)
        if not isinstance(value, kinds) or isinstance(value, (bool, np.timedelta64)):
            wanted = "an integer" if self.kind is int else "a number of seconds"
            raise UndertowError(f"{name} must be {wanted}, not {brief(value)}", hint=f"write e.g. {name}=1000")
        if self.kind is float and value == float("inf"):
            return float(value)  # no limit
        if not self.least <= value <= self.most:  # nan too
            if value != value:
                what = "is not a number"
            elif value < self.least:
                what = "must not be negative" if self.least == 0 else f"must be at least {self.least}"
            else:
                what = f"must be at most {self.most:,}"
            shown = brief(value) if isinstance(value, int) else value
            raise UndertowError(f"{name}={shown} {what}", hint=self.hint)
        return self.kind(value)


_UNITS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}


def bytes_of(text: str) -> int:
    """A number of bytes as people write it; the units are powers of 1024.

    >>> bytes_of("4G") == bytes_of("4 GiB") == 4 << 30, bytes_of("1.5K"), bytes_of("1_000_000")
    (True, 1536, 1000000)
    """
    match = re.fullmatch(r"\s*([\d_]+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE | re.ASCII)
    try:
        number, unit = match.groups() if match else ("", "")
        scale = 1 << _UNITS[unit.upper()]
        return int(float(number) * scale) if "." in number else int(number) * scale
    except ValueError:
        raise UndertowError(
            f"memory={brief(text)} is not a number of bytes", hint='write memory=4_000_000_000, "512M", "4G" or "1.5G"'
        ) from None


_MOST = 2**62  # what the core counts up to
_RANGES = {
    **{name: _Range(0, _MOST, f"leave {name} out for no limit") for name in ("frames", "memory")},
    "max_depth": _Range(0, _MOST, "write max_depth=None for no limit"),
    "timeout": _Range(0, 10**9, "leave timeout out for no limit", float),
    "threads": _Range(1, 1024, "leave threads out to use every core"),
    "seed": _Range(-(2**63), 2**63 - 1, "a seed is an integer of 64 bits: two seeds never give the same numbers"),
    "schedule_seed": _Range(0, _MOST, "any number from 0 on gives a schedule of its own"),
}


def _is_path(value: object) -> bool:
    """Can a file have this name?"""
    if not isinstance(value, (str, os.PathLike)):
        return False
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


@dataclass(frozen=True, slots=True)
class Options:
    """How to run; an engine ignores options that it has no use for. None means no limit."""

    scheduler: str | None = None  # which ready node fires next: "fifo", "lifo" or "random"; None: the engine's choice
    schedule_seed: int | None = None  # of the random scheduler
    seed: int | None = None  # of the program's random numbers
    frames: int | None = None  # at once
    max_depth: int | None = 2_000_000  # of nested calls; loops and maps add none; None: any depth
    memory: int | None = None  # maximum bytes in frames and their arrays; of `ut.options` also "512M" or "4G"
    timeout: float | None = None  # seconds
    threads: int | None = None  # maximum number of threads; None: one per core
    check_finite: bool = False  # a float result with nan or inf is a fault
    trace: str | os.PathLike[str] | list[Event] | Record | None = None  # a file, a list, or a function to call
    timed: bool = False  # measure the time of each kind of step; implied by `stats=True`
    progress: bool = True  # show how far a run of more than two seconds has come, in terminals and notebooks

    def seconds_left(self) -> float:
        """How long a run may take that begins now."""
        return float("inf") if self.timeout is None else self.timeout

    def __post_init__(self) -> None:
        if self.scheduler is not None and not (isinstance(self.scheduler, str) and self.scheduler in SCHEDULERS):
            raise UndertowError(
                f"unknown scheduler {brief(self.scheduler)}", hint=f"choose from {', '.join(SCHEDULERS)}"
            )
        for name, allowed in _RANGES.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, allowed.checked(name, value))
        for name in ("check_finite", "timed", "progress"):
            if not isinstance(chosen := getattr(self, name), (bool, np.bool_)):
                raise UndertowError(f"{name} must be True or False, not {brief(chosen)}", hint=f"write {name}=True")
            object.__setattr__(self, name, bool(chosen))
        if not isinstance(self.trace, list | None) and not callable(self.trace) and not _is_path(self.trace):
            raise UndertowError(
                f"trace must be a file name, a list or a function, not {brief(self.trace)}",
                hint='write trace="run.jsonl"',
            )


@dataclass(frozen=True, slots=True)
class Begun(Options):
    """Options of a run whose timeout began before it: the call has been captured and planned since."""

    began: float = 0.0  # by time.perf_counter

    @classmethod
    def at(cls, began: float, timeout: float, options: Options) -> Begun:
        chosen = {field.name: getattr(options, field.name) for field in fields(Options)}
        return cls(**chosen | {"timeout": timeout}, began=began)

    def seconds_left(self) -> float:
        return max(0.0, Options.seconds_left(self) - (time.perf_counter() - self.began))


@dataclass(slots=True)
class Stats:
    """What a run did."""

    engine: str
    firings: int = 0  # live ones
    dead_firings: int = 0
    per_node: dict[str, int] = field(default_factory=dict)  # live firings by node name
    activations: int = 0  # of functions: calls that were entered
    waves: int = 0  # batches of activations that ran together, if the engine forms any
    mean_width: float = 0.0  # activations per wave
    peak_width: int = 0  # activations of the widest wave
    peak_frames: int = 0
    peak_bytes: int = 0
    max_depth: int = 0  # of nested calls
    deepest_tag: Tag = ()  # of the first activation at that depth
    seconds: float = 0.0
    step_seconds: dict[str, float] = field(default_factory=dict)  # by kind of step, over all threads; if `timed`
    late: int = 0  # arguments in the program that are computed by need, where the callee uses them
    parts: int = 1  # in which the graph ran; activations, depths and frames are those of the part that has most
    crossed: int = 0  # bytes that these have sent to each other

    def __str__(self) -> str:
        """A short table: one line for each count."""
        return "\n".join(f"{name:<15} {count}" for name, count in rows_of(self))


def rows_of(stats: Stats) -> list[tuple[str, str]]:
    """(name, text) of each count; the time comes last."""
    rows = [
        ("engine", stats.engine),
        ("firings", f"{stats.firings:,} live, {stats.dead_firings:,} dead"),
        ("activations", f"{stats.activations:,}"),
        ("late arguments", f"{stats.late:,}"),
        ("parts", f"{stats.parts:,}, {stats.crossed:,} bytes sent between them"),
        ("waves", f"{stats.waves:,}, {stats.mean_width:,.1f} lanes wide on average, {stats.peak_width:,} at most"),
        ("frames at once", f"{stats.peak_frames:,}"),
        ("bytes at once", f"{stats.peak_bytes:,}"),
        ("deepest call", f"{stats.max_depth:,}"),
        ("seconds", f"{stats.seconds:.3f}"),
    ]
    counts = (("waves", stats.waves), ("late arguments", stats.late), ("parts", stats.parts - 1))
    left_out = {name for name, count in counts if not count}
    return [row for row in rows if row[0] not in left_out]


def sum_stats(parts: Sequence[Stats]) -> Stats:
    """The counts of several runs together: sums, and the largest of what is counted at one time."""
    total = Stats(parts[0].engine if parts else "")
    for part in parts:
        total.firings += part.firings
        total.dead_firings += part.dead_firings
        total.activations += part.activations
        total.mean_width = (total.mean_width * total.waves + part.mean_width * part.waves) / max(
            total.waves + part.waves, 1
        )
        total.waves += part.waves
        total.seconds += part.seconds
        total.crossed += part.crossed
        for name in ("peak_width", "peak_frames", "peak_bytes", "max_depth", "late", "parts"):
            setattr(total, name, max(getattr(total, name), getattr(part, name)))
        for name, count in part.per_node.items():
            total.per_node[name] = total.per_node.get(name, 0) + count
        for name, seconds in part.step_seconds.items():
            total.step_seconds[name] = total.step_seconds.get(name, 0.0) + seconds
    return total


class LateStats(Stats):
    """Stats whose fields are filled in when first read: building all of them can cost more than a short run."""

    __slots__ = ("_fill",)
    _fill: Callable[[str], Any]

    @classmethod
    def make(cls, fill: Callable[[str], Any], **known: Any) -> LateStats:
        """Stats with the known fields; `fill(name)` gives each of the others."""
        stats = cls.__new__(cls)
        stats._fill = fill
        for name, value in known.items():
            setattr(stats, name, value)
        return stats

    def __getattr__(self, name: str) -> Any:  # called only for fields that are not filled in yet
        if name.startswith("_"):
            raise AttributeError(name)
        value = self._fill(name)
        setattr(self, name, value)
        return value

    def __repr__(self) -> str:
        make, parts = self.__reduce__()
        return repr(make(*parts))

    def __reduce__(self) -> tuple[Any, ...]:
        return Stats, tuple(getattr(self, f.name) for f in fields(self))


class Plan(Protocol):
    """A graph made ready to run."""

    @property
    def graph(self) -> StaticGraph: ...

    def run(
        self, inputs: Sequence[Result], options: Options = ..., state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run once: a value for each input, a value for each fetch. `state` changes only if the run succeeds."""


class Engine(Protocol):
    """A way to run static graphs."""

    @property
    def name(self) -> str: ...

    @property
    def is_lazy(self) -> bool:
        """Does a run end even if a value that no fetch needs would never arrive?"""

    @property
    def takes_hoisted(self) -> bool:
        """Does it run graphs in which values are read from the entry (hoist, hoist_read)?"""

    @property
    def forms_waves(self) -> bool:
        """Do calls that are made together run together? Then loops are split, so that theirs are."""

    def plan(self, graph: StaticGraph) -> Plan:
        """Make a graph ready; everything that does not depend on the inputs happens here."""
