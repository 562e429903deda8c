"""Chaos: worker processes are killed, stopped and held up at random while they train, run tasks, and parts of graphs.

Nothing is lost: what comes out are the bits of a run without workers. All of `tests/support/workloads.py` is tried, on
processes, and with `make test-ray` on Ray actors. Each takes five seconds; `UNDERTOW_CHAOS=120` makes that two minutes,
and `UNDERTOW_CHAOS_SEED` chooses what happens. `make chaos` does both with all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from tests.support.chaos import HURRIED, Chaos, PatientLauncher, repeated
from tests.support.placed_runs import expected, in_parts
from tests.support.workloads import WORKLOADS, Workload

from undertow.cluster.pool import Pool
from undertow.cluster.sockets import SocketNetwork

pytestmark = pytest.mark.slow

SECONDS = float(os.environ.get("UNDERTOW_CHAOS", "5"))
SEED = int(os.environ.get("UNDERTOW_CHAOS_SEED", "1"))
WORKERS = 3
PLACED = Workload(
    "undertow.parallel.service:services", "undertow.engines.waves.guests:Guests", in_parts, expected, many=10
)
ALL = {**WORKLOADS, "parts": PLACED}
MANY = 10_000  # losses of one task, or of one step: here they are no reason to give up


@contextmanager
def actors(workload: Workload) -> Iterator[Pool]:
    """Workers that are Ray actors, on a Ray of their own."""
    import undertow as ut
    from undertow.ray import clusters

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "SERVICES", workload.services)
        patch.setattr(clusters, "GUESTS", workload.guests)
        with ut.ray.cluster(workers=3 if workload is PLACED else 2, retries=MANY) as cluster:
            yield cluster.pool


def chaos_in(pool: Pool, workload: Workload, name: str) -> list[int]:
    """Work on workers to which things happen, until the time is over, and once more when all is quiet.

    Returns the incarnations that came back when others had their work.
    """
    work, wanted = workload.run, workload.expected(workload.many)
    assert work(pool, workload.many) == wanted
    chaos = Chaos(pool, Random(f"{SEED} {name}"))

    def again() -> None:
        assert work(pool, workload.many) == wanted, dict(chaos.counts)

    with chaos:
        times = repeated(again, SECONDS)
    pool.wait_for_workers(seconds=120.0)
    again()
    late = chaos.wait_for_the_late()
    starts = sum(row.starts for row in pool.stats())
    print(f"{name}: {times} times in {SECONDS:.0f} s; {dict(chaos.counts)}; {starts} starts")
    assert sum(chaos.counts.values()) >= SECONDS / 5 and starts > pool.size
    assert all(row.tasks + row.calls > 0 for row in pool.stats())
    return late


@pytest.mark.parametrize("name", ALL)
def test_processes(name: str) -> None:
    """Who stands still is left alone for a while; who goes on when it is too late ends itself."""
    workload = ALL[name]
    launcher = PatientLauncher(workload.services, workload.guests)
    with Pool(launcher, SocketNetwork(), WORKERS, MANY, HURRIED).open(120.0) as pool:
        late = chaos_in(pool, workload, name)
    assert not launcher.processes()
    assert [launcher.codes[incarnation] for incarnation in late] == [0] * len(late)  # none needed a signal


@pytest.mark.ray
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ALL)
def test_actors(name: str) -> None:
    pytest.importorskip("ray", reason="make test-ray installs it")
    with actors(ALL[name]) as pool:
        chaos_in(pool, ALL[name], name)
