"""Worker processes that are cut off from their driver in the middle of training, for a while or for good."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterator

import pytest
from tests.support import learners
from tests.support.cable import CableLauncher

from undertow.cluster.pool import Pool
from undertow.cluster.roster import Times
from undertow.cluster.sockets import SocketNetwork
from undertow.parallel.trainer import DataParallel

pytestmark = pytest.mark.slow

STEPS = 8
NOTICED = 3.0  # seconds


@pytest.fixture
def pool() -> Iterator[tuple[Pool, CableLauncher]]:
    launcher = CableLauncher("undertow.parallel.service:services")
    with Pool(launcher, SocketNetwork(), 2, times=Times(orphan=9.0)).open(60.0) as pool:
        yield pool, launcher
        launcher.may_end = True


def process_of(pool: Pool, worker: int) -> int:
    return os.pidfd_open(pool.stats()[worker].process)


def is_over(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


@pytest.mark.parametrize(("worker", "seconds"), [(0, 3.0), (1, 3.0), (1, 8.0)])
def test_for_a_while(pool: tuple[Pool, CableLauncher], worker: int, seconds: float) -> None:
    """It is noticed, its shards are computed elsewhere, and when it hears of that it ends itself.

    After eight seconds ZeroMQ has given up its connection, too, and it comes with a new one.
    """
    losses, wanted = [], learners.expected(STEPS)
    the_pool, launcher = pool
    trainer = DataParallel(
        learners.loss, learners.params(), learners.OPTIMIZER, has_aux=True, clip=0.5, cluster=the_pool
    )
    lost: list[tuple[int, float]] = []
    the_pool.on_lost(lambda *news: lost.append((news[1], time.monotonic())))
    incarnation = the_pool.workers()[worker][1]
    descriptor = process_of(the_pool, worker)
    for number, batch in enumerate(learners.batches(STEPS)):
        if number == 3:
            launcher.cables[incarnation].cut()
            began = time.monotonic()
        losses.append(trainer.step(batch)[0])
    assert losses == wanted[0] and trainer.again == 1
    assert learners.same_bits(trainer._fleet.replica.arrays(), wanted[1])
    ((who, when),) = lost
    assert who == incarnation and when - began < NOTICED
    assert not is_over(descriptor, max(0.0, began + seconds - time.monotonic()))  # it cannot know
    launcher.cables[incarnation].mend()
    assert is_over(descriptor, 5.0)
    the_pool.wait_for_workers(2, 60.0)
    assert the_pool.stats()[worker].starts == 2


def test_for_good(pool: tuple[Pool, CableLauncher]) -> None:
    """It ends itself when it has heard nothing for as long as its ticket says."""
    the_pool, launcher = pool
    descriptor = process_of(the_pool, 0)
    launcher.cables[the_pool.workers()[0][1]].cut()
    assert not is_over(descriptor, 5.0)
    assert is_over(descriptor, 10.0)
    the_pool.wait_for_workers(2, 60.0)
