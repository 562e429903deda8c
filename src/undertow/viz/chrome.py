"""Runs in Chrome's trace event format, which ui.perfetto.dev and chrome://tracing show.

Each region has a track. On it, a wave is a slice that lasts until the next one begins, and a node that fires is a slice
that began when the event before it was recorded. Counters show lanes and frames, arrows lead from calls to the
activations that they make.

>>> events: list[TraceEvent] = []
>>> trace = ChromeTrace(events.append)
>>> for at, event in enumerate([RunStarted("fib", "waves"), WaveStarted(1, 2, 1), RunEnded(5, 0.1)]):
...     trace.add(event, at / 1000)
>>> [(e["name"], e["tid"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
[('region 1', 2, 1000.0, 1000.0), ('run', 0, 0.0, 2000.0)]
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from undertow.ir.graph import StaticGraph
from undertow.ir.structure import STARTS
from undertow.ir.trace import Event, Fired, FrameEnded, FrameStarted, Record, RunEnded, RunStarted, WaveStarted

TraceEvent = dict[str, Any]
_ENTERING = {*STARTS, "next"}

# --------------------------------------------------------------------------------------------------------------
# Trace events; times are microseconds


def slice_of(name: str, start: float, length: float, track: int, args: dict[str, Any], process: int = 1) -> TraceEvent:
    """Something that lasts."""
    times = {"ts": round(start, 3), "dur": round(max(length, 0.0), 3)}
    return {"ph": "X", "cat": "op", "name": name, "pid": process, "tid": track, **times, "args": args}


def counter(name: str, at: float, value: float) -> TraceEvent:
    """A number that changes."""
    return {"ph": "C", "name": name, "pid": 1, "tid": 0, "ts": round(at, 3), "args": {name: value}}


def arrow(kind: str, number: int, at: float, track: int, process: int = 1) -> TraceEvent:
    """The beginning ("s") or the end ("f") of an arrow between the slices that are there at that time."""
    end = {"bp": "e"} if kind == "f" else {}
    place = {"pid": process, "tid": track, "ts": round(at, 3)}
    return {"ph": kind, "cat": "call", "name": "call", "id": number, **place, **end}


def title(kind: str, name: str, process: int = 1, track: int = 0) -> TraceEvent:
    """What a "process" or a "thread" is called."""
    return {"ph": "M", "name": f"{kind}_name", "pid": process, "tid": track, "args": {"name": name}}


# --------------------------------------------------------------------------------------------------------------
# From our events


class ChromeTrace:
    """Makes trace events of a run's events, as these come, and hands them to `emit`."""

    def __init__(self, emit: Callable[[TraceEvent], None], graph: StaticGraph | None = None) -> None:
        self._emit = emit
        self._graph = graph
        self._names = [] if graph is None else region_names(graph)
        self._spent = 0.0  # seconds in here, which the run did not take
        self._first: float | None = None
        self._now = 0.0  # microseconds from the first event to the last
        self._titled: set[int] = set()
        self._wave: tuple[float, WaveStarted] | None = None  # the one under way, and when it began
        self._lanes: list[tuple[int, int]] = []  # depth and lanes of the waves under way; the deepest last
        self._under_way = 0  # the sum of these lanes: there may be as many waves as calls nest
        self._is_lockstep = True  # do waves begin with calls and end with returns?
        self._frames: dict[int, int] = {}  # by number: the region of each frame
        self._made: dict[int | None, list[int]] = {}  # frame -> frames that it makes, until it fires the node that does
        self._arrows: set[int] = set()  # frames that an arrow leads to, until something fires in them

    def add(self, event: Event, at: float | None = None) -> None:
        """The next event, which happened at that time in seconds; or now, and then the time in here does not count."""
        if at is not None:
            self._add(event, at)
            return
        now = time.perf_counter()
        self._add(event, now - self._spent)
        self._spent += time.perf_counter() - now

    def _add(self, event: Event, seconds: float) -> None:
        self._first = seconds if self._first is None else self._first
        before, self._now = self._now, (seconds - self._first) * 1e6
        if isinstance(event, Fired):
            self._fired(event, before)
        elif isinstance(event, FrameStarted):
            self._frames[event.frame] = event.region
            self._made.setdefault(event.parent, []).append(event.frame)
            self._emit(counter("frames", self._now, len(self._frames)))
        elif isinstance(event, FrameEnded):
            self._frames.pop(event.frame, None)
            self._made.pop(event.frame, None)
            self._emit(counter("frames", self._now, len(self._frames)))
        elif isinstance(event, WaveStarted):
            self._end_wave()
            self._begin_wave(event)
        elif isinstance(event, RunStarted):
            self._emit(title("process", f"{event.graph} on {event.engine}" if event.engine else event.graph))
        elif isinstance(event, RunEnded):
            self._end_wave()
            args: dict[str, Any] = {"firings": event.firings, **({"error": event.error} if event.error else {})}
            self._emit(title("thread", "run"))
            self._emit(slice_of("run", 0.0, self._now, 0, args))

    def _track(self, region: int) -> int:
        """The track of a region; track 0 is the run's."""
        if region not in self._titled:
            self._titled.add(region)
            self._emit(title("thread", self._name(region), track=region + 1))
        return region + 1

    def _name(self, region: int) -> str:
        return self._names[region] if region < len(self._names) else f"region {region}"

    def _fired(self, event: Fired, before: float) -> None:
        track = self._track(self._frames.get(event.frame, 0))
        args = {"frame": event.frame, "node": event.node, "live": event.live, "outputs": list(event.outputs)}
        self._emit(slice_of(event.name, before, self._now - before, track, args))
        if event.frame in self._arrows:
            self._arrows.discard(event.frame)
            self._emit(arrow("f", event.frame, before, track))
        for frame in self._made.pop(event.frame, ()) if self._enters(event.node) else ():
            self._arrows.add(frame)
            self._emit(arrow("s", frame, before, track))

    def _enters(self, node: int) -> bool:
        """Does this node make frames? The other engines than `reference` do not say when it fires."""
        return self._graph is not None and self._graph.nodes[node].op in _ENTERING

    def _begin_wave(self, event: WaveStarted) -> None:
        self._wave = self._now, event
        self._emit(counter("lanes", self._now, event.lanes))
        if event.stage:  # of an agenda: frames of several depths wait beside one another
            self._is_lockstep = False
        if self._is_lockstep and event.phase == 0:
            while self._lanes and self._lanes[-1][0] >= event.depth:
                self._under_way -= self._lanes.pop()[1]
            self._lanes.append((event.depth, event.lanes))
            self._under_way += event.lanes
            self._emit(counter("frames", self._now, self._under_way))

    def _end_wave(self) -> None:
        if self._wave is not None:
            start, event = self._wave
            args = {"lanes": event.lanes, "depth": event.depth, "phase": event.phase, "stage": event.stage}
            self._emit(slice_of(self._name(event.region), start, self._now - start, self._track(event.region), args))
            self._wave = None


@contextmanager
def chrome_file(path: str | os.PathLike[str], graph: StaticGraph) -> Iterator[Record]:
    """Takes the events of a run of this graph, and writes them to a file, which is whole whatever happens."""
    with open(path, "w", encoding="utf-8") as file:
        separator = "\n"

        def emit(event: TraceEvent) -> None:
            nonlocal separator
            file.write(separator + json.dumps(event))
            separator = ",\n"

        file.write('{"displayTimeUnit": "ms", "traceEvents": [')
        try:
            yield ChromeTrace(emit, graph).add
        finally:
            file.write("\n]}\n")


def region_names(graph: StaticGraph) -> list[str]:
    """What the regions of a graph are called in pictures; branches after the body that they are of."""
    names: list[str] = []
    for region in graph.regions:
        inside = region.kind == "branch" and region.parent is not None
        names.append(f"{names[region.parent or 0]}/{region.name}" if inside else region.name)
    return names
