"""Calls, maps and gradients whose lanes run on workers that are there: the bits of a run without them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
from tests.support import searches
from tests.support.shared_out import D, fails

import undertow as ut
from undertow.api.options import sharing_out
from undertow.cluster.local import open_pool
from undertow.cluster.pool import Pool
from undertow.cluster.roster import Times

WORKERS = 2
GUESTS = "undertow.engines.waves.guests:Guests"


@contextlib.contextmanager
def processes() -> Iterator[Pool]:
    with open_pool(WORKERS, guests=GUESTS, times=Times(silence=20.0)) as pool, sharing_out(pool):
        yield pool


@contextlib.contextmanager
def actors() -> Iterator[Pool]:
    pytest.importorskip("ray", reason="make test-ray installs it")
    with ut.ray.cluster(WORKERS) as cluster:
        yield cluster.pool


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("workers", [processes, pytest.param(actors, marks=pytest.mark.ray)])
def test_every_worker_takes_part(workers: contextlib.AbstractContextManager[Pool]) -> None:
    with workers() as pool:  # type: ignore[operator]
        there = searches.results(3)
        end = time.monotonic() + 10.0  # counts come with signs of life
        while not all(row.activations > 1000 and row.waves > 10 for row in pool.stats()) and time.monotonic() < end:
            time.sleep(0.05)
        rows = pool.stats()
        assert all(row.activations > 1000 and row.waves > 10 for row in rows), rows
        assert [row.refused for row in rows] == [0] * WORKERS
        refuses(pool)
        forks()
    assert there == searches.results(3)


def refuses(pool: Pool) -> None:
    """A fault on a worker is one of the user's lines, and the first lane's."""
    f = ut.function(lambda x, ns: ut.map(lambda n: fails(x, n), ns))
    ns = np.full(100, 3)
    ns[[40, 90]] = 33, 25
    with pytest.raises(ut.RunError, match="index 33") as caught:
        f(np.ones(D), ns)
    assert "fails" in str(caught.value) and "lane 40" in str(caught.value)
    with pytest.raises(ut.Timeout):
        searches.search.run(1, 60, timeout=0.3)


def forks() -> None:
    """A child has no way to workers: it runs everything itself."""
    child = os.fork()
    if child == 0:
        os._exit(7 if searches.results(3) else 1)
    end = time.monotonic() + 60.0
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0 and time.monotonic() < end:
        time.sleep(0.05)
    if ended[0] == 0:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended[1]) == 7


@ut.function
def prints(n: ut.i64, s: ut.i64) -> ut.i64:
    if n < 2:
        if s == 1:
            print("one")
        return s % 7
    return (prints(n - 1, s * 3 + 2) + prints(n - 2, s * 5 + 2)) % 1_000_003


@ut.function
def asserts(n: ut.i64, s: ut.i64) -> ut.i64:
    assert n >= 0, "negative"
    if n < 2:
        return s % 7
    return (asserts(n - 1, s * 3 + 1) + asserts(n - 2, s * 5 + 2)) % 1_000_003


@ut.function
def raises(n: ut.i64, s: ut.i64) -> ut.i64:
    if n < 0:
        raise ValueError("negative")
    if n < 2:
        return s % 7
    return (raises(n - 1, s * 3 + 1) + raises(n - 2, s * 5 + 2)) % 1_000_003


@ut.function
def divides(n: ut.i64, s: ut.i64) -> ut.i64:
    if n < 2:
        return s // (n + 3)
    return (divides(n - 1, s * 3 + 1) + divides(n - 2, s * 5 + 2)) % 1_000_003


@ut.function
def appends(n: ut.i64, s: ut.i64) -> ut.i64:
    items = []
    for item in range(s % 3 + 1):
        items.append(item)
    if n < 2:
        return len(items)
    return (appends(n - 1, s * 3 + 1) + appends(n - 2, s * 5 + 2) + sum(items)) % 1_000_003


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_what_goes_and_what_stays() -> None:
    """As docs/guides/several_machines.md says it."""
    with processes() as pool:

        def tasks() -> int:
            return sum(row.tasks for row in pool.stats())

        for program, goes in ((prints, False), (asserts, True), (raises, True), (divides, True), (appends, True)):
            before = tasks()
            program.map(np.full(64, 26 if goes else 8), np.arange(64) + 2)
            end = time.monotonic() + (10.0 if goes else 1.2)  # counts come with signs of life
            while tasks() == before and time.monotonic() < end:
                time.sleep(0.05)
            assert (tasks() > before) == goes, program
