"""Data-parallel training on worker processes, one of which is killed or stopped: the bits are those of one process."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest
from tests.support import learners

from undertow.cluster.local import open_pool
from undertow.cluster.pool import Pool
from undertow.cluster.roster import Times
from undertow.parallel.trainer import DataParallel

SERVICES = "undertow.parallel.service:services"
STEPS = 8


def train(pool: Pool, events: dict[int, Any]) -> DataParallel:
    """Steps, and what happens before some of them."""
    trainer = DataParallel(learners.loss, learners.params(), learners.OPTIMIZER, has_aux=True, clip=0.5, cluster=pool)
    losses, wanted = [], learners.expected(STEPS)
    for number, batch in enumerate(learners.batches(STEPS)):
        if number in events:
            events[number]()
        losses.append(trainer.step(batch)[0])
    assert losses == wanted[0]
    assert learners.same_bits(trainer._fleet.replica.arrays(), wanted[1])
    return trainer


def test_two_processes() -> None:
    with open_pool(2, SERVICES, times=Times(beat=0.05, silence=20.0)) as pool:
        trainer = train(pool, {})
        assert trainer.again == 0 and trainer.workers == 2
        assert all(row.activations > 0 and row.calls >= STEPS for row in pool.stats())


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.parametrize("worker", [0, 1])
def test_a_worker_is_lost(how: signal.Signals, worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a step; a stopped one is noticed when it is silent. It is replaced, and takes part again.

    It is stopped before the step, and killed when it has been told what to do: so neither comes too early or too late.
    """
    call = Pool.call

    def call_and_kill(pool: Pool, to: int, *args: Any) -> Any:
        future = call(pool, to, *args)
        if to == worker and is_stopped.is_set() and how == signal.SIGKILL:
            is_stopped.clear()
            os.kill(process, how)
        return future

    def lose() -> None:
        os.kill(process, signal.SIGSTOP)
        is_stopped.set()

    is_stopped = threading.Event()
    monkeypatch.setattr(Pool, "call", call_and_kill)
    with open_pool(2, SERVICES) as pool:
        before = dict(pool.workers())
        process = pool.stats()[worker].process

        def wait() -> None:
            pool.wait_for_workers(2, 60.0)

        trainer = train(pool, {3: lose, 6: wait})
        assert trainer.again == 1
        now = dict(pool.workers())
        assert now[worker] > before[worker] and now[1 - worker] == before[1 - worker]
        assert trainer._fleet._steps == dict.fromkeys(now.items(), STEPS)
