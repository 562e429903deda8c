"""What workers do while they are killed, frozen and delayed: work of several kinds, and what must come out of it.

A kind is a row of `WORKLOADS`: what workers import, a function that has a pool do the work, and one that says what must
come out. Tests of lost workers, and the chaos test, run all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.support import learners, searches
from tests.support.adders import nested

from undertow.api.options import sharing_out
from undertow.cluster.pool import Pool
from undertow.parallel.trainer import DataParallel

PATIENCE = 120.0  # seconds, of whatever clock


@dataclass(frozen=True)
class Workload:
    """One kind of work."""

    services: str  # "module:name", as workers import it
    guests: str
    run: Callable[[Pool, int], object]  # of this size
    expected: Callable[[int], object]
    many: int  # a size that takes a second or so
    seeds: int = 40  # for tests with virtual time; fewer for what takes long


# --------------------------------------------------------------------------------------------------------------
# Tasks that add up numbers: nested ones, and ones with later phases

PHASES = (0, 3, 4, 5, 1)
SHARED = 1000


def add_up(pool: Pool, size: int) -> dict[tuple[int, int], int]:
    """So many tasks: a third has tasks of its own, the others five phases; of half of these all are asked at once."""
    link = pool.link(b"key", b"plan")
    assert link is not None
    value = link.publish(str(SHARED).encode())
    replies: dict[tuple[int, int], int] = {}

    def submit(task: int, phase: int) -> None:
        link.submit(task, phase, str(task + phase).encode(), [value] if phase else [])

    for task in range(size):
        if task % 3 == 2:
            link.submit(task, 2, str(task % 25).encode(), [])
        else:
            for phase in PHASES if task % 3 else PHASES[:1]:
                submit(task, phase)
    wanted = expected_sums(size).keys()
    while replies.keys() != wanted:
        taken = link.take(PATIENCE)
        assert taken, f"nothing comes any more; {len(wanted) - len(replies)} replies are missing"
        for task, phase, reply in taken:
            assert (task, phase) not in replies, "a reply that came twice"
            replies[task, phase] = int(reply)
            if task % 3 == 0 and phase != PHASES[-1]:
                submit(task, PHASES[PHASES.index(phase) + 1])
            elif phase in (2, PHASES[-1]):
                link.drop(task)
    link.close()
    return replies


def expected_sums(size: int) -> dict[tuple[int, int], int]:
    """What they give."""
    sums: dict[tuple[int, int], int] = {}
    for task in range(size):
        if task % 3 == 2:
            sums[task, 2] = nested(task % 25)
            continue
        kept = sums[task, 0] = task
        for phase in PHASES[1:-1]:
            kept = sums[task, phase] = 3 * (kept + task + phase + SHARED) % 1_000_003
        sums[task, 1] = kept + task + 1 + SHARED
    return sums


# --------------------------------------------------------------------------------------------------------------
# Training: the loss of each step, parameters and what the optimizer remembers, all of them as bytes


def train(pool: Pool, size: int) -> list[bytes]:
    """So many steps."""
    trainer = DataParallel(
        learners.loss,
        learners.params(),
        learners.OPTIMIZER,
        has_aux=True,
        clip=0.5,
        cluster=pool,
        retries=10_000,
    )
    losses = [trainer.step(batch)[0] for batch in learners.batches(size)]
    trainer.close()
    return as_bytes(losses, trainer._fleet.replica.arrays())


@cache
def expected_training(size: int) -> list[bytes]:
    """The same in this process."""
    return as_bytes(*learners.expected(size))


def as_bytes(losses: list[Any], arrays: list[Any]) -> list[bytes]:
    return [value.tobytes() for value in (*losses, *arrays)]


# --------------------------------------------------------------------------------------------------------------
# Runs whose lanes are shared out


def search(pool: Pool, size: int) -> list[bytes]:
    """So many rounds."""
    with sharing_out(pool):
        return searches.results(size)


expected_search = cache(searches.results)  # in this process


WORKLOADS = {
    "sums": Workload("", "tests.support.adders:SlowAdders", add_up, expected_sums, many=30),
    "training": Workload("undertow.parallel.service:services", "", train, expected_training, many=100, seeds=4),
    "searches": Workload("", "undertow.engines.waves.guests:Guests", search, expected_search, many=8, seeds=2),
}
