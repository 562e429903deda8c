"""Placed graphs whose workers are killed, frozen or cut off in the middle of a run: it runs again."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.support.cable import CableLauncher
from tests.support.placed_runs import factorial, to_and_fro, total

import undertow as ut
from undertow.api.options import sharing_out
from undertow.cluster.local import open_pool
from undertow.cluster.pool import Pool
from undertow.cluster.roster import Times
from undertow.cluster.sockets import SocketNetwork

pytestmark = pytest.mark.slow

SERVICES = "undertow.parallel.service:services"
NOTICED = 3.0  # seconds
FOREVER = 1_000_000_000

begun = threading.Event()


class Signal(io.StringIO):
    """Says when a run has begun."""

    def write(self, text: str) -> int:
        begun.set()
        return super().write(text)


@ut.function
def step(n: ut.i64) -> ut.f64:
    """Variables and prints, and a loop that takes some seconds in between."""
    total.assign_add(1.0)
    print("begin", n)
    x = to_and_fro(n)
    total.assign_add(x)
    print("end", n)
    return total.read()


LONG = 20_000  # iterations: some seconds


def losing(pool: Pool, worker: int, befall: Callable[[int], Any], iterations: int = LONG) -> tuple[float, str, float]:
    """Run while something befalls a worker: the result, what was printed, and the seconds until that was noticed."""
    begun.clear()
    lost: list[float] = []
    pool.on_lost(lambda *news: lost.append(time.monotonic()))
    process = pool.stats()[worker].process
    when: list[float] = []

    def work() -> None:
        begun.wait(60.0)
        when.append(time.monotonic())
        befall(process)

    thread = threading.Thread(target=work)
    thread.start()
    with contextlib.redirect_stdout(Signal()) as printed:
        found = step(iterations)
    thread.join()
    assert lost, "the run was over before anything happened"
    return found, printed.getvalue(), lost[0] - when[0]


@pytest.fixture
def pool() -> Iterator[Pool]:
    with open_pool(2, SERVICES) as pool, sharing_out(pool):
        yield pool


@pytest.mark.parametrize("worker", [0, 1])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_lost(pool: Pool, worker: int, number: signal.Signals) -> None:
    total.assign(0.0)
    wanted = step.run(LONG, placement="none")
    total.assign(0.0)
    found, printed, seconds = losing(pool, worker, lambda process: os.kill(process, number))
    assert (found, float(total.read())) == (wanted, float(wanted))
    assert printed == f"begin {LONG}\nend {LONG}\n" and seconds < NOTICED
    assert pool.stats()[worker].starts == 2
    assert factorial(10) == 3628800


def test_cut_off() -> None:
    launcher = CableLauncher(SERVICES)
    with Pool(launcher, SocketNetwork(), 2, times=Times(orphan=9.0)).open(60.0) as pool, sharing_out(pool):
        total.assign(0.0)
        wanted = step.run(LONG, placement="none")
        total.assign(0.0)
        incarnation = pool.workers()[1][1]
        found, printed, seconds = losing(pool, 1, lambda process: launcher.cables[incarnation].cut())
        assert found == wanted == float(total.read()) and seconds < NOTICED
        assert printed == f"begin {LONG}\nend {LONG}\n"
        launcher.cables[incarnation].mend()
        assert factorial(10) == 3628800
        launcher.may_end = True


def test_too_many_losses() -> None:
    """The error says which worker, and why; variables are as they were, and workers come back."""
    with open_pool(2, SERVICES, retries=0) as pool, sharing_out(pool):
        total.assign(0.0)
        with pytest.raises(ut.WorkerLost, match=r"worker 1.*SIGKILL"):
            losing(pool, 1, lambda process: os.kill(process, signal.SIGKILL), FOREVER)
        assert total.read() == 0.0
        assert factorial(10) == 3628800
