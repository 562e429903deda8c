"""Who is alive.

A worker is a number that stays. What runs as that worker is an *incarnation*, which has a number of its own and is
never trusted again once it is lost.

>>> roster = Roster(workers=1, times=Times())
>>> first = roster.begin(0, now=0.0)
>>> roster.join(first.incarnation); roster.hear(first.incarnation, now=1.0)
>>> roster.silent(now=2.5), [(entry.worker, why) for entry, why in roster.silent(now=3.1)]
([], [(0, 'it was silent for 2.1 s')])
>>> roster.lose(first.incarnation)
>>> second = roster.begin(0, now=3.1)
>>> roster.get(first.incarnation), roster.get(second.incarnation) is second, roster.is_fenced(first.incarnation)
(None, True, True)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds. A worker is told them with its ticket."""

    beat: float = 0.5  # between two signs of life
    silence: float = 2.0  # after which a worker is lost
    start: float = 120.0  # until a new one has to be there
    orphan: float = 30.0  # of the driver's silence, after which a worker ends itself


@dataclass(slots=True, eq=False)
class Entry:
    """One incarnation, and what is known of it."""

    worker: int
    incarnation: int
    since: float
    last: float  # heard of it
    is_ready: bool = False
    address: str = ""  # where its peers find it
    key: bytes = b""  # its public key
    place: str = ""  # where it runs, in words
    process: int = 0
    counters: tuple[int, ...] = ()
    told: set[int] = field(default_factory=set)  # plans and values that it has
    running: int = 0  # tasks that it has something to do for
    waiting: int = 0  # of these, those that wait for tasks of their own

    @property
    def load(self) -> int:
        """Tasks that it works on, or will at once."""
        return max(self.running - self.waiting, 0)


class Roster:
    """The incarnations that are there, or are starting."""

    def __init__(self, workers: int, times: Times) -> None:
        self.workers = workers
        self.times = times
        self.epoch = 0  # grows whenever the set of those that are ready does or shrinks
        self.starts = [0] * workers  # how often each was begun
        self.failed = [0] * workers  # starts in a row of which nobody was ever ready
        self._next = 1
        self._entries: dict[int, Entry] = {}
        self._of: dict[int, int] = {}  # the incarnation of a worker
        self._looked = 0.0
        self._was_held_up = False

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def get(self, incarnation: int) -> Entry | None:
        """It, unless it is lost."""
        return self._entries.get(incarnation)

    def now_of(self, worker: int) -> Entry | None:
        """The incarnation that is that worker now."""
        return self._entries.get(self._of.get(worker, 0))

    def ready(self) -> list[Entry]:
        """Those that work, in the order of workers."""
        return sorted((entry for entry in self if entry.is_ready), key=lambda entry: entry.worker)

    def is_fenced(self, incarnation: int) -> bool:
        """Whether it was of this pool, and is no more."""
        return 0 < incarnation < self._next and incarnation not in self._entries

    def begin(self, worker: int, now: float) -> Entry:
        """A new incarnation."""
        entry = Entry(worker, self._next, now, now)
        self._entries[entry.incarnation] = entry
        self._of[worker] = entry.incarnation
        self._next += 1
        self.starts[worker] += 1
        return entry

    def hear(self, incarnation: int, now: float) -> None:
        """A sign of life."""
        self._entries[incarnation].last = now

    def join(self, incarnation: int) -> None:
        """It is ready."""
        entry = self._entries[incarnation]
        entry.is_ready = True
        self.failed[entry.worker] = 0
        self.epoch += 1

    def lose(self, incarnation: int) -> None:
        """It is fenced from now on."""
        entry = self._entries.pop(incarnation)
        if entry.is_ready:
            self.epoch += 1
        else:
            self.failed[entry.worker] += 1

    def silent(self, now: float) -> list[tuple[Entry, str]]:
        """Those of whom nothing was heard for too long, and why they count as lost.

        If the driver itself was held up, nobody is to blame: what they said meanwhile is yet to be read.
        """
        held_up = now - self._looked if self._looked else 0.0
        was_held_up, self._was_held_up = self._was_held_up, held_up > self.times.silence / 2
        if self._was_held_up and not was_held_up:  # who is alive will be heard until it looks again
            for entry in self:
                entry.last += held_up
                entry.since += held_up
        self._looked = now
        found = []
        for entry in self:
            if entry.is_ready and now - entry.last > self.times.silence:
                found.append((entry, f"it was silent for {now - entry.last:.1f} s"))
            elif not entry.is_ready and now - entry.since > self.times.start:
                found.append((entry, f"it did not come up within {now - entry.since:.0f} s"))
        return found
