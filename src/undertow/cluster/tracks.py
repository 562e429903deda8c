"""Tracks: what every worker was at, and when, for a file that Perfetto (ui.perfetto.dev) and Chrome can show.

Times are seconds of the driver's clock. Workers say how long a thing took, and it ended when the driver heard of it.

>>> tracks = Tracks()
>>> tracks.span(0, "task 1", 2.0, 5.0, sent=100)
>>> tracks.span(0, "task 2", 4.0, 6.0)  # beside the other: in a row of its own
>>> tracks.span(0, "sums", 2.5, 3.0)  # inside of the first
>>> [(event["name"], event["tid"]) for event in tracks.events({}) if event["ph"] == "X"]
[('task 1', 0), ('sums', 0), ('task 2', 1)]
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

DRIVER = -1  # the track of this program
MOST = 1_000_000  # marks that are kept


@dataclass(frozen=True, slots=True)
class Mark:
    """A piece of a track; a moment if it has no end."""

    track: int  # the worker, or DRIVER
    name: str
    began: float
    ended: float | None
    about: Mapping[str, Any]


@dataclass(slots=True)
class Tracks:
    """What has happened since. Whoever adds something holds the lock of the pool's station."""

    marks: list[Mark] = field(default_factory=list)
    counts: list[tuple[int, float, Mapping[str, int]]] = field(default_factory=list)
    dropped: int = 0

    def span(self, track: int, name: str, began: float, ended: float, **about: Any) -> None:
        """Something that took time."""
        self._add(Mark(track, name, began, max(ended, began), about))

    def moment(self, track: int, name: str, when: float, **about: Any) -> None:
        """Something that happened."""
        self._add(Mark(track, name, when, None, about))

    def count(self, track: int, when: float, **counts: int) -> None:
        """How much of several things there has been by then."""
        if len(self.counts) < MOST:
            self.counts.append((track, when, counts))

    def _add(self, mark: Mark) -> None:
        if len(self.marks) < MOST:
            self.marks.append(mark)
        else:
            self.dropped += 1

    def events(self, names: Mapping[int, str]) -> list[dict[str, Any]]:
        """As Chrome's trace format has them: a process for each track, a thread for each of its rows."""
        found: list[dict[str, Any]] = []
        for track, name in sorted(names.items()):
            found.append({"ph": "M", "name": "process_name", "pid": track + 1, "args": {"name": name}})
            found.append({"ph": "M", "name": "process_sort_index", "pid": track + 1, "args": {"sort_index": track}})
        begin = min([mark.began for mark in self.marks] + [when for _, when, _ in self.counts], default=0.0)
        for track in sorted({mark.track for mark in self.marks}):
            marks = [mark for mark in self.marks if mark.track == track]
            for row, mark in in_rows(marks):
                event = {"name": mark.name, "pid": track + 1, "tid": row, "ts": micro(mark.began - begin)}
                if mark.ended is None:
                    event |= {"ph": "i", "s": "p"}
                else:
                    event |= {"ph": "X", "dur": micro(mark.ended - mark.began)}
                found.append(event | {"args": dict(mark.about)})
        for track, when, counts in self.counts:
            for name, value in counts.items():
                at = {"pid": track + 1, "ts": micro(when - begin)}
                found.append({"ph": "C", "name": name, **at, "args": {name: value}})
        return found

    def write(self, path: str | os.PathLike[str], names: Mapping[int, str]) -> None:
        """Write such a file."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": self.events(names), "displayTimeUnit": "ms"}, file)


def micro(seconds: float) -> float:
    """Microseconds, as the format has times."""
    return round(1e6 * seconds, 1)


def in_rows(marks: Iterable[Mark]) -> list[tuple[int, Mark]]:
    """Each mark with a row, such that those of one row lie inside of each other, or apart."""
    rows: list[list[float]] = []  # the ends of what is open in each
    found = []
    for mark in sorted(marks, key=lambda mark: (mark.began, -(mark.began if mark.ended is None else mark.ended))):
        ended = mark.began if mark.ended is None else mark.ended
        for row in rows:
            while row and row[-1] <= mark.began:
                row.pop()
        number = next((k for k, row in enumerate(rows) if not row or row[-1] >= ended), len(rows))
        if number == len(rows):
            rows.append([])
        rows[number].append(ended)
        found.append((number, mark))
    return found
