"""Signals at random moments of runs that write variables: these are all old or all new, and the next run works."""

from __future__ import annotations

import signal
from random import Random

from tests.fuzz.case import Case
from tests.support.commits import FACES
from tests.support.inject import Injected

DELAYS = (1e-5, 5e-5, 1e-4, 3e-4, 1e-3, 3e-3)  # seconds: a run takes some tens of microseconds to some milliseconds


def _raise(number: int, frame: object) -> None:
    raise Injected


def interrupted_runs(random: Random) -> Case:
    """Runs of one face, each cut off after a delay of its own."""
    name = random.choice(list(FACES))
    delays = [random.choice(DELAYS) * random.random() + 1e-6 for _ in range(50)]

    def run() -> None:
        work, look = FACES[name]()
        work()
        done = look()[0]
        before = signal.signal(signal.SIGALRM, _raise)
        try:
            for delay in delays:
                try:
                    try:
                        signal.setitimer(signal.ITIMER_REAL, delay)
                        work()
                    finally:
                        signal.setitimer(signal.ITIMER_REAL, 0)
                except Injected:
                    signal.setitimer(signal.ITIMER_REAL, 0)
                first, second = look()
                assert first == second, f"torn: {first} and {second}"
                assert first in (done, done + 1), f"{first} after {done}"
                work()
                done = first + 1
                assert look() == (done, done)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    return Case(run, f"{name}, interrupted after {', '.join(f'{delay * 1e6:.0f}' for delay in delays)} us")
