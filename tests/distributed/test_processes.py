"""Pools whose workers are processes of this machine: services, streams, tasks, over encrypted sockets on loopback."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.adders import nested

import undertow as ut
from undertow.cluster.local import open_pool
from undertow.cluster.pool import Pool
from undertow.cluster.probe import probe
from undertow.cluster.roster import Times

WORKERS = 3
PATIENT = Times(silence=20.0)  # nobody fails here, and the machine may be busy


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    logs = tmp_path_factory.mktemp("logs")
    adders = "tests.support.adders:services", "tests.support.adders:Adders"
    with open_pool(WORKERS, *adders, times=PATIENT, logs=logs) as pool:
        yield pool
        stats = pool.stats()
    assert [row.refused for row in stats] == [0] * WORKERS
    assert not any(is_there(row.process) for row in stats)


def is_there(process: int) -> bool:
    return Path(f"/proc/{process}").exists()


def every_worker_has(pool: Pool, what: str) -> bool:
    """Whether all of them have done some of that: they say so with their next heartbeat."""
    end = time.monotonic() + 10.0
    while not (done := all(getattr(row, what) > 0 for row in pool.stats())) and time.monotonic() < end:
        threading.Event().wait(0.05)
    return done


def test_services(pool: Pool) -> None:
    who = [bytes(pool.call(worker, "who").result(10)[0]) for worker in range(WORKERS)]
    assert who == [str(peer).encode() for peer in pool.workers()]
    assert pool.call(1, "echo", [b"a", memoryview(b"bc"), b""]).result(10) == [b"a", b"bc", b""]
    with pytest.raises(ut.RunError, match="worker 2: ValueError: no such luck"):
        pool.call(2, "wrong").result(10)
    processes = [row.process for row in pool.stats()]
    assert len(set(processes)) == WORKERS and os.getpid() not in processes and all(map(is_there, processes))
    assert every_worker_has(pool, "calls") and every_worker_has(pool, "sent") and every_worker_has(pool, "received")


def test_large_parts(pool: Pool) -> None:
    large = os.urandom(1 << 20) * 11 + b"end"
    parts = pool.call(0, "echo", [b"", large, b"x" * 100_000]).result(10)
    assert [bytes(part) for part in parts] == [b"", large, b"x" * 100_000]


def test_ways_to_workers(pool: Pool) -> None:
    ways = probe(pool)
    assert [way.worker for way in ways] == list(range(WORKERS))
    assert all(0 < way.seconds < 0.5 and 1e6 < way.rate < 1e12 for way in ways)


CRASHES = """
import os, signal
from undertow.cluster.local import open_pool
with open_pool(2, "tests.support.adders:services") as pool:
    print(*(row.process for row in pool.stats()), flush=True)
    os.kill(pool.stats()[0].process, signal.SIGSTOP)
    input()
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "SIGINT", "an exception"])
def test_nothing_is_left_of_a_program_that_crashes(how: str, tmp_path: Path) -> None:
    """Its workers end with it, also one that stands still."""
    program = subprocess.Popen(
        [sys.executable, "-c", CRASHES],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    with program:
        assert program.stdout is not None and program.stdin is not None
        ends = [os.pidfd_open(int(number)) for number in program.stdout.readline().split()]
        if how.startswith("SIG"):
            program.send_signal(signal.Signals[how])
        program.communicate("" if how == "an exception" else None, timeout=60)
    assert len(ends) == 2 and program.returncode != 0
    for descriptor in ends:
        assert select.select([descriptor], [], [], 30.0)[0]
        os.close(descriptor)


def test_workers_send_each_other_messages(pool: Pool) -> None:
    for turn in (1, 2, 3):
        calls = [pool.call(worker, "around", str(turn).encode()) for worker in range(WORKERS)]
        assert [bytes(call.result(10)[0]) for call in calls] == [b"3"] * WORKERS


def test_tasks(pool: Pool) -> None:
    link = pool.link(b"key", b"plan")
    assert link is not None
    value = link.publish(b"1000")
    for task in range(30):
        link.submit(task, 0, str(task).encode(), [])
    replies = {}
    while len(replies) < 60:
        for task, phase, reply in link.take(10.0):
            assert (task, phase) not in replies
            replies[task, phase] = int(reply)
            if phase == 0:
                link.submit(task, 1, b"1", [value])
    assert replies == {(task, phase): task + phase * 1001 for task in range(30) for phase in (0, 1)}
    link.close()
    assert every_worker_has(pool, "tasks")


def test_tasks_of_tasks(pool: Pool) -> None:
    link = pool.link(b"key", b"plan")
    assert link is not None
    for task in range(4):
        link.submit(task, 2, b"24", [])
    replies: list[int] = []
    while len(replies) < 4:
        replies += [int(reply) for _, _, reply in link.take(10.0)]
    assert replies == [nested(24)] * 4
    link.close()
