"""Placed graphs on worker processes: what they give whole, faults as they are whole, and nothing left behind."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from tests.programs import PROGRAMS, Program, assert_same, devices
from tests.support.placed_runs import RUNS, factorial, recorded, same_outcome, to_and_fro

import undertow as ut
from undertow.api.options import sharing_out
from undertow.cluster.local import open_pool
from undertow.cluster.pool import Pool
from undertow.cluster.roster import Times
from undertow.cluster.wires import Place

pytestmark = pytest.mark.slow

WORKERS = 3  # most programs name two
PATIENT = Times(silence=20.0)  # nobody fails here, and the machine may be busy
SERVICES = "undertow.parallel.service:services"
FOREVER = 1_000_000_000  # iterations


def descriptors() -> set[str]:
    """What the files and sockets of this process are; ZeroMQ keeps a thread and what wakes it."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # that of the folder itself
            found.add(os.readlink(f"/proc/self/fd/{number}"))
    return {one for one in found if not one.startswith("anon_inode")}


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    before = {thread.name for thread in threading.enumerate()}
    before_fds = descriptors()
    guests = "undertow.engines.waves.guests:Guests"
    with open_pool(WORKERS, SERVICES, guests, times=PATIENT) as pool, sharing_out(pool):
        yield pool
        stats = pool.stats()
    assert [row.starts for row in stats] == [1] * WORKERS
    assert not any(Path(f"/proc/{row.process}").exists() for row in stats)
    assert {thread.name for thread in threading.enumerate() if "undertow" in thread.name} <= before
    assert descriptors() - before_fds == set()


@pytest.mark.parametrize("name", RUNS)
def test_same_as_whole(pool: Pool, name: str) -> None:
    run = RUNS[name]
    wanted = run.outcome(placement="none")
    before = [row.activations for row in pool.stats()[:2]]
    with recorded() as fired:
        assert same_outcome(run.outcome(), wanted)
        assert same_outcome(run.outcome(), wanted)  # with a circle that is there
    assert (
        len(fired) == 2
        and len(fired[0]) == (4 if name == "replicas" else 3)
        and all(count > 0 for row in fired for count in row)
    )
    end = time.monotonic() + 10.0  # workers say it with their next heartbeat
    while not (done := all(row.activations > a for row, a in zip(pool.stats(), before, strict=False))):
        assert time.monotonic() < end
        threading.Event().wait(0.05)
    assert done


NAMING = [program for program in PROGRAMS if program.name in {row.name for row in devices.PROGRAMS}]


@pytest.mark.parametrize("program", NAMING, ids=str)
def test_programs(pool: Pool, program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    for case in range(len(program.cases)):
        expected = program.expected(case)
        capsys.readouterr()
        result, _ = program.run(case, timeout=60.0)
        assert_same(result, expected.value)
        assert capsys.readouterr().out == expected.printed


def test_found_placement(pool: Pool) -> None:
    """By estimate, and by nobody."""
    for name in ("tree", "gradients", "fib"):
        run = RUNS[name]
        wanted = run.outcome(placement="none")
        with recorded() as fired:
            assert same_outcome(run.outcome(placement="auto"), wanted)
        assert all(fired)
    with recorded() as fired:
        factorial.run(3, placement="none")
    assert not fired


# ----------------------------------------------------------------------------------------------------------------------
# What goes wrong in a program


@ut.device("worker:1")
@ut.function
def asserts(n: ut.i64) -> ut.i64:
    assert n != 2, f"no {n}"
    return 1 if n == 0 else asserts(n - 1) + 1


@ut.device("worker:0")
@ut.function
def raises(n: ut.i64) -> ut.i64:
    if n == 2:
        raise KeyError("two", n)
    return 1 if n == 0 else raises(n - 1) + 1


@ut.function
def reaches(x: ut.f64[None], n: ut.i64) -> ut.f64:
    if n == 0:
        return 0.0
    with ut.device("worker:0"):
        element = x[n]
    return reaches(x, n - 1) + element


@ut.device("worker:1")
@ut.function
def deep(n: ut.i64) -> ut.i64:
    return 0 if n == 0 else 1 + deep(n - 1)


@ut.function
def divides(n: ut.i64) -> ut.f64:
    with ut.device("worker:0"):
        x = 1.0 / (n - 3.0)
    return x if n <= 0 else divides(n - 1) + x


WRONG: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any], type[Exception]]] = {
    "assert": (asserts, (5,), {}, ut.Fault),
    "raise": (raises, (5,), {}, KeyError),
    "index": (reaches, (np.ones(4), 6), {}, IndexError),
    "depth": (deep, (5000,), {"max_depth": 100}, ut.RecursionLimit),
    "frames": (deep, (5000,), {"frames": 100}, ut.FrameLimit),
    "memory": (deep, (500_000,), {"memory": 1 << 16}, ut.FrameLimit),
    "finite": (divides, (5,), {"check_finite": True}, ut.Fault),
}


@pytest.mark.parametrize("name", WRONG)
def test_faults(pool: Pool, name: str) -> None:
    """Of the class, with the words and the calls that they have without workers; and the next run works."""
    function, args, options, kind = WRONG[name]
    raised = []
    for placement in ("none", "devices"):
        with pytest.raises(kind) as found:
            function.run(*args, **options, placement=placement)
        raised.append(found.value)
    whole, placed = raised
    assert type(placed) is type(whole) and str(placed) == str(whole) and placed.args == whole.args
    assert isinstance(whole, ut.RunError) and isinstance(placed, ut.RunError)
    assert (placed.span, placed.calls) == (whole.span, whole.calls)
    assert factorial(5) == 120


def test_timeout(pool: Pool) -> None:
    began = time.monotonic()
    with pytest.raises(ut.Timeout, match=r"longer than 0\.5 s") as found:
        to_and_fro.run(FOREVER, timeout=0.5)
    assert time.monotonic() - began < 5.0
    assert found.value.span is not None and found.value.span.file == __file__.replace(
        "distributed/test_parts", "support/placed_runs"
    )
    assert factorial(6) == 720


def test_a_device_that_is_not_there(pool: Pool) -> None:
    @ut.function
    def far(n: ut.i64) -> ut.i64:
        with ut.device("worker:7"):
            return n + 1

    with pytest.raises(
        ut.GraphError, match=r"worker:7.*there is no such worker[\s\S]*there are worker:0, worker:1, worker:2"
    ):
        far(1)
    assert far.run(1, placement="none") == 2


# ----------------------------------------------------------------------------------------------------------------------
# What befalls a run


class Interrupted(KeyboardInterrupt):
    """Ctrl-C."""


@contextmanager
def interrupt(seconds: float) -> Iterator[None]:
    """Ctrl-C after so long, in this thread."""

    def handler(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seconds", [0.0002, 0.001, 0.003, 0.01, 0.03, 0.3])
def test_interrupt(pool: Pool, seconds: float) -> None:
    """In the middle of the run, or while it begins; the next one works."""
    for _ in range(3):
        began = time.monotonic()
        with pytest.raises(Interrupted), interrupt(seconds):
            to_and_fro.run(FOREVER)
        assert time.monotonic() - began < 5.0
        assert same_outcome(RUNS["map"].outcome(), RUNS["map"].outcome(placement="none"))


def test_threads(pool: Pool) -> None:
    """Runs of several threads are one after the other."""
    wanted = {name: run.outcome(placement="none") for name, run in RUNS.items() if name in ("fib", "tree", "loop")}
    found: dict[tuple[str, int], Any] = {}

    def work(name: str) -> None:
        with sharing_out(pool):
            for turn in range(5):
                run = RUNS[name]
                found[name, turn] = float(run.function.run(*run.args))

    threads = [threading.Thread(target=work, args=(name,)) for name in wanted]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {(name, turn): float(wanted[name][0][0]) for name in wanted for turn in range(5)}


def test_one_thread_is_interrupted_while_it_waits_for_another(pool: Pool) -> None:
    done = threading.Event()

    def work() -> None:
        with sharing_out(pool), pytest.raises(ut.Timeout):
            to_and_fro.run(FOREVER, timeout=1.5)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    with pytest.raises(Interrupted), interrupt(0.5):
        to_and_fro.run(FOREVER)
    thread.join()
    assert done.is_set() and factorial(7) == 5040


def test_large_arrays(pool: Pool) -> None:
    """More than fits into any window."""

    @ut.function
    def there(x: ut.f64[None]) -> tuple[ut.f64[None], ut.f64]:
        with ut.device("worker:0"):
            y = x * 2.0
        with ut.device("worker:1"):
            z = y + 1.0
        return z, ut.sum(y)

    x = np.arange(6_600_000.0)
    z, total = there(x)
    assert np.array_equal(z, x * 2 + 1) and total == there.run(x, placement="none")[1]


def test_bridges(pool: Pool) -> None:
    """Who cannot get to a door builds a bridge: it is all the same."""

    def nowhere(address: str, *rest: Any) -> Place:
        return Place("nowhere", *rest)

    nowhere.of_worker = lambda address, peer: Place.of_worker("nowhere", peer)  # type: ignore[attr-defined]

    def end_circle() -> None:
        with pytest.raises(ut.Timeout):
            to_and_fro.run(FOREVER, timeout=0.1)

    end_circle()
    with patch("undertow.cluster.parts.Place", nowhere):
        for run in RUNS.values():
            assert same_outcome(run.outcome(), run.outcome(placement="none"))
        assert "undertow bridge" in {thread.name for thread in threading.enumerate()}
        end_circle()
        assert factorial(8) == 40320
    end_circle()
    assert factorial(9) == 362880
    for thread in threading.enumerate():
        if thread.name == "undertow bridge":  # it ends with its wire
            thread.join(10.0)
            assert not thread.is_alive()


def test_what_a_failed_run_has_left_in_the_wires(pool: Pool) -> None:
    """A worker may have come to its end, and sent what nobody takes, when the program's own part fails."""

    @ut.function
    def walk(n: ut.i64) -> ut.i64:
        if n == 0:
            return 0
        with ut.device("worker:0"):
            less = n - 1
        return walk(less) + n

    @ut.function
    def early(n: ut.i64, x: ut.f64[None, None], least: ut.f64) -> ut.i64:
        assert ut.sum(x @ x) >= least  # which takes a while
        return walk(n)

    x = np.ones((1200, 1200))
    for n in range(500, 503):
        with pytest.raises(AssertionError):
            early(n, x, 1e12)
        assert early(n, x, 0.0) == n * (n + 1) // 2
