"""Worker processes that are killed, stopped and held up at random, as a seed decides, while something goes on.

with Chaos(pool, Random(1)) as chaos:
    work(pool)
print(chaos.counts)
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import TracebackType

from undertow.cluster.pool import Pool
from undertow.cluster.process import Child, ProcessLauncher
from undertow.cluster.roster import Times

# What happens, and how often.
WAYS = {
    "held up": 6,  # it stands still, and goes on before it counts as lost
    "killed": 3,
    "stopped": 2,  # for good
    "late": 2,  # it stands still, and goes on when others have its work
}
LENGTHS = {"held up": (0.02, 0.6), "late": (1.2, 3.0)}  # of standing still, in silences after which it counts as lost
BETWEEN = 0.2, 1.6  # seconds
PATIENCE = 90.0


@dataclass(frozen=True)
class Standing:
    """A worker that stands still, and will go on."""

    until: float
    descriptor: int
    peer: tuple[int, int]


class Chaos:
    """What befalls the workers of a pool inside a block, and what became of them."""

    def __init__(self, pool: Pool, random: Random) -> None:
        self.counts: Counter[str] = Counter()
        self._pool, self._random = pool, random
        self._silence = pool._machine._times.silence
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._standing: list[Standing] = []
        self.returned: list[Standing] = []  # those that went on when it was too late

    def __enter__(self) -> Chaos:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._thread.join()
        for standing in list(self._standing):
            self._go_on(standing)

    def wait_for_the_late(self) -> list[int]:
        """Who comes back when others have its work is told to end, and does: their incarnations."""
        for late in self.returned:
            assert select.select([late.descriptor], [], [], PATIENCE)[0], "a worker that came back late goes on"
            os.close(late.descriptor)
        return [late.peer[1] for late in self.returned]

    def _run(self) -> None:
        following = time.monotonic() + self._random.uniform(*BETWEEN)
        while not self._is_over.wait(
            max(0.0, min([following, *(standing.until for standing in self._standing)]) - time.monotonic())
        ):
            now = time.monotonic()
            for standing in [standing for standing in self._standing if standing.until <= now]:
                self._go_on(standing)
            if now >= following:
                self._happen()
                following = now + self._random.uniform(*BETWEEN)

    def _happen(self) -> None:
        """Something, to any worker that is there and goes."""
        standing = [one.peer for one in self._standing]
        rows = [(row.process, (row.worker, row.incarnation)) for row in self._pool.stats() if row.is_ready]
        there = [row for row in rows if row[1] not in standing]
        if not there:
            return
        process, peer = self._random.choice(there)
        (way,) = self._random.choices(list(WAYS), list(WAYS.values()))
        try:
            descriptor = os.pidfd_open(process)
        except ProcessLookupError:
            return
        if peer not in self._pool.workers():  # it has ended, and the number may be another process's
            os.close(descriptor)
            return
        self.counts[way] += 1
        tell(descriptor, signal.SIGKILL if way == "killed" else signal.SIGSTOP)
        now = time.monotonic()
        if way in LENGTHS:
            length = self._random.uniform(*LENGTHS[way]) * self._silence
            self._standing.append(Standing(now + length, descriptor, peer))
        else:
            os.close(descriptor)

    def _go_on(self, standing: Standing) -> None:
        self._standing.remove(standing)
        is_lost = standing.peer not in self._pool.workers()
        tell(standing.descriptor, signal.SIGCONT)
        if is_lost:
            self.returned.append(standing)
        else:
            os.close(standing.descriptor)


def tell(descriptor: int, number: signal.Signals) -> None:
    """A signal for a process that may have ended."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(descriptor, number)


class PatientLauncher(ProcessLauncher):
    """Leaves workers that are stopped alone for a while, so that they may come back when others have their work."""

    seconds = 8.0

    def __init__(self, services: str, guests: str) -> None:
        super().__init__(services, guests)
        self.codes: dict[int, int] = {}  # with which they have ended, by incarnation

    def _end(self, incarnation: int) -> None:
        super()._end(incarnation)
        child = self._children.get(incarnation)
        if child is not None and child.is_stopped() and not self._is_closing:
            child.end_at = time.monotonic() + self.seconds

    def _look(self, child: Child) -> None:
        super()._look(child)
        code = child.process.poll()
        if code is not None and child.incarnation not in self._children:
            self.codes[child.incarnation] = code


def repeated(work: Callable[[], None], seconds: float) -> int:
    """Work until so many seconds have passed, and at least once; how often it was done."""
    end = time.monotonic() + seconds
    times = 0
    while not times or time.monotonic() < end:
        work()
        times += 1
    return times


HURRIED = Times(beat=0.25, silence=1.0)  # so that more can happen in the same time
