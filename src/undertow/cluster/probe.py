"""The way to a worker and back: how long it takes, and how much goes through in a second."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from undertow.cluster.pool import Pool

TURNS = 20  # short messages, of which the fastest counts
SIZE = 8 << 20  # bytes of the long ones
LONG_TURNS = 3
PATIENCE = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class Way:
    """As it was measured."""

    worker: int
    place: str  # where it runs
    seconds: float  # there and back, for next to nothing
    rate: float  # bytes per second, one way, encrypted


def probe(pool: Pool) -> list[Way]:
    """The ways to all workers that are there, one after the other. They have a service `echo`."""
    places = {row.worker: row.place for row in pool.stats()}
    large = os.urandom(SIZE)
    found = []
    for worker, incarnation in pool.workers():

        def turn(data: bytes, peer: tuple[int, int] = (worker, incarnation)) -> float:
            began = time.perf_counter()
            pool.call(peer[0], "echo", data, peer[1]).result(PATIENCE)
            return time.perf_counter() - began

        short = min(turn(b"") for _ in range(TURNS))
        long = min(turn(large) for _ in range(LONG_TURNS))
        found.append(Way(worker, places[worker], short, 2 * SIZE / max(long - short, 1e-9)))
    return found
