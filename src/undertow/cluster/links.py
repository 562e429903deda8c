"""The way of a run of this process to the workers of a pool, and what it says of what they have done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from undertow.cluster.dispatch import Away, Link, Span, Step, results_of, taken_from
from undertow.cluster.driver import Driver
from undertow.cluster.frames import Buffer
from undertow.cluster.station import Station
from undertow.cluster.tracks import DRIVER


class PoolLink:
    """What `Link` of `engines/outside.py` asks for, for a run of this process. Used by the thread of that run alone."""

    def __init__(
        self, machine: Driver, station: Station, link: Link, carrier: Any, later: Callable[[Callable[[], None]], None]
    ) -> None:
        self._machine = machine
        self._station = station
        self._link = link
        self._carrier = carrier
        self._carried: list[int] = []
        self._later = later
        self._began = station.now()

    def idle(self) -> int:
        """How many tasks could begin at once elsewhere."""
        return self._machine.idle

    def publish(self, data: Buffer) -> int:
        """Share a value between tasks; copied."""
        with self._station.lock:
            number = self._machine.dispatch.new_number()
        is_carried = self._carrier is not None and self._carrier.publish(number, data)
        if is_carried:
            self._carried.append(number)
        with self._station.lock:
            self._machine.dispatch.publish(self._link, number, None if is_carried else bytes(data))
        return number

    def submit(self, task: int, phase: int, message: Buffer, shared: Sequence[int] = ()) -> None:
        """Run a phase of a task."""
        with self._station.lock:
            self._machine.dispatch.submit(self._link, task, Step(phase, tuple(shared), (bytes(message),)))
            self._machine.settle()
            self._station.wake()

    def take(self, seconds: float) -> list[tuple[int, int, bytes]]:
        """What has come back; waits so long at most."""
        replies = self._link.replies
        with self._station.lock:
            self._station.wait(lambda: bool(replies), seconds)
            taken = taken_from(replies)
        return results_of(taken)

    def drop(self, task: int) -> None:
        """It has no more phases."""
        with self._station.lock:
            self._machine.dispatch.drop(self._link, task)
            self._station.wake()

    def record(self) -> None:
        """From now on keep when each phase ran, and where."""
        with self._station.lock:
            self._link.spans = []

    def spans(self) -> list[Span]:
        """Phases of this run's tasks, and of theirs, that ran on workers, if they were to be kept."""
        with self._station.lock:
            return list(self._link.spans or ())

    def news(self) -> str:
        """What workers have done for this run so far, in a few words; "" if nothing."""
        with self._station.lock:
            return words(self._link.away)

    def close(self) -> None:
        """The run is over."""
        with self._station.lock:
            if self._machine.tracks is not None and self._link.away.phases:
                about = {"run": self._link.number, "away": words(self._link.away)}
                self._machine.tracks.span(DRIVER, "run", self._began, self._station.now(), **about)
            self._machine.dispatch.close(self._link)
            for number in self._carried:
                self._later(lambda number=number: self._carrier.forget(number))  # type: ignore[misc]
            self._station.wake()


def words(away: Away) -> str:
    """What was done away from here.

    >>> words(Away(40, 12_000_000, 3_000, {0, 1}))
    '40 tasks on 2 workers, 12.0 MB sent, 3.0 kB received'
    """
    if not away.phases:
        return ""
    tasks = "task" if away.phases == 1 else "tasks"
    workers = "worker" if len(away.workers) == 1 else "workers"
    return (
        f"{away.phases:,} {tasks} on {len(away.workers)} {workers}, "
        f"{size(away.sent)} sent, {size(away.received)} received"
    )


def size(count: int) -> str:
    """Bytes, in a unit that fits.

    >>> size(999), size(1_234_567)
    ('999 B', '1.2 MB')
    """
    value, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.1f} {unit}" if unit != "B" else f"{count} B"
