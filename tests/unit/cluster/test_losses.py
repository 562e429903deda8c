"""Workers that are killed, frozen, cut off or misunderstood, over a network that loses, delays and repeats frames.

Whatever the seed: it is noticed in under three seconds, somebody else does their work, results are those of an
undisturbed run, and who comes back ends itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from tests.support.adders import Adders, SlowAdders, pause, services
from tests.support.network import Host, SimulatedLauncher, Simulation
from tests.support.workloads import WORKLOADS

import undertow as ut
from undertow.cluster.frames import Buffer
from undertow.cluster.names import load
from undertow.cluster.pool import Pool, PoolLink
from undertow.cluster.roster import Roster, Times

NOTICED = 3.0  # seconds
WAYS = ("kill", "freeze", "cut off")


class Trouble:
    """What happens to workers, at times that the seed decides, and when it was noticed."""

    def __init__(self, simulation: Simulation, pool: Pool, seed: int, times: int) -> None:
        self.simulation = simulation
        self.random = Random(seed)
        self.happened: dict[int, tuple[float, str, Host]] = {}  # by incarnation
        self.noticed: dict[int, float] = {}
        pool.on_lost(lambda worker, incarnation, why: self.noticed.setdefault(incarnation, simulation.time))
        for _ in range(times):
            simulation.later(self.random.random() * 3.0, self.happen)

    def happen(self) -> None:
        """To any worker that is well."""
        well = [(number, member) for number, member in self.simulation.members.items() if number not in self.happened]
        well = [pair for pair in well if self.simulation.host(pair[1].worker) is self.simulation.stations[pair[0]].host]
        if not well:
            return
        incarnation, member = self.random.choice(well)
        way = self.random.choice(WAYS)
        host = self.simulation.stations[incarnation].host
        self.happened[incarnation] = self.simulation.time, way, host
        if way == "kill":
            self.simulation.kill(member.worker)
        elif way == "freeze":
            self.simulation.freeze(member.worker)
            if self.random.random() < 0.5:
                self.simulation.later(self.random.random() * 8.0, lambda: self.simulation.thaw(host))
        else:
            self.simulation.cut_off(member.worker)
            if self.random.random() < 0.5:
                self.simulation.later(self.random.random() * 8.0, lambda: setattr(host, "is_cut_off", False))


@pytest.mark.parametrize(
    ("name", "seed"),
    [
        pytest.param(name, seed, marks=[pytest.mark.slow] * (workload.seeds < 40))
        for name, workload in WORKLOADS.items()
        for seed in range(workload.seeds)
    ],
)
def test_work_survives(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of half of the seeds nobody kills who was lost, so that they have to end themselves."""
    monkeypatch.setattr(SimulatedLauncher, "may_end", seed % 2 == 0)
    workload = WORKLOADS[name]
    with Simulation(seed, loss=0.05 * (seed % 3), repetition=0.05 * (seed % 4)) as simulation:
        pool = simulation.pool(3, load(workload.services), load(workload.guests), retries=100).open()
        trouble = Trouble(simulation, pool, seed, times=1 + seed % 5)
        for _ in range(3):
            assert workload.run(pool, 30) == workload.expected(30)
        simulation.sleep(40.0)
        assert len(pool.workers()) == 3
        assert workload.run(pool, 9) == workload.expected(9)
        for incarnation, (when, way, host) in trouble.happened.items():
            noticed = trouble.noticed.get(incarnation)
            member = simulation.members[incarnation]
            if noticed is None:  # it came back in time
                assert way != "kill" and not (host.is_frozen or host.is_cut_off)
            else:
                assert way == "kill" or noticed - when < NOTICED
                assert host.is_killed or host.is_frozen or member._machine.is_ended


def test_a_killed_worker_is_noticed() -> None:
    """Its silence is, if nobody sees it end."""
    with Simulation(seed=3) as simulation:
        pool = simulation.pool(2, services).open()
        lost: list[tuple[int, int, str, float]] = []
        pool.on_lost(lambda *news: lost.append((*news, simulation.time)))
        before = dict(pool.workers())
        simulation.sleep(1.7)
        when = simulation.time
        simulation.kill(1)
        simulation.sleep(NOTICED)
        ((worker, incarnation, why, noticed),) = lost
        assert (worker, incarnation) == (1, before[1]) and "silent for 2." in why and noticed - when < NOTICED
        simulation.sleep(1.0)
        assert dict(pool.workers()) == {0: before[0], 1: before[1] + 1} and pool.stats()[1].starts == 2
        assert pool.call(1, "echo", b"again").result() == [b"again"]


@pytest.mark.parametrize("way", ["freeze", "cut_off"])
def test_who_comes_back_ends_itself(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its replies count no more; the tasks were given to others."""
    monkeypatch.setattr(SimulatedLauncher, "may_end", False)
    with Simulation(seed=4) as simulation:
        pool = simulation.pool(1, guests=SlowAdders).open()
        link = pool.link(b"key", b"plan")
        assert link is not None
        link.submit(0, 0, b"5", [])
        link.submit(0, 3, b"0", [])
        simulation.sleep(0.021)
        first = simulation.members[1]
        host = getattr(simulation, way)(0)
        assert [reply for _ in range(2) for _, _, reply in link.take(20.0)] == [b"5", b"15"]
        assert not first._machine.is_ended
        simulation.thaw(host)
        host.is_cut_off = False
        simulation.sleep(1.0)
        assert first._machine.is_ended and "the driver said so" in first._machine.why
        assert link.take(0.0) == []


def test_who_hears_nothing_for_long_ends_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedLauncher, "may_end", False)
    with Simulation(seed=5) as simulation:
        pool = simulation.pool(1, services).open()
        simulation.cut_off(0)
        simulation.sleep(29.0)
        assert not simulation.members[1]._machine.is_ended
        simulation.sleep(2.0)
        assert "the driver was silent for 30 s" in simulation.members[1]._machine.why
        assert pool.workers() == [(0, 2)]


class Poison(Adders):
    """A task that ends its worker."""

    def run(
        self, task: tuple[int, int], key: bytes, phase: int, message: bytes, shared: Sequence[Buffer]
    ) -> bytes | None:
        if int(message) == -13:
            host = next(
                station.host for station in SIMULATIONS[-1].stations.values() if station.machine is self.machine
            )
            host.is_killed = True
            pause(self.member, 1.0)
        return super().run(task, key, phase, message, shared)

    @property
    def machine(self) -> object:
        return self.member._machine


SIMULATIONS: list[Simulation] = []


@pytest.mark.parametrize(("retries", "times"), [(0, "once"), (1, "twice"), (3, "4 times")])
def test_a_task_that_ends_its_worker_is_given_up(retries: int, times: str) -> None:
    """The error names the worker and why it was lost; other tasks are not blamed, and the pool goes on."""
    with Simulation(seed=6) as simulation:
        SIMULATIONS[:] = [simulation]
        pool = simulation.pool(2, guests=Poison, retries=retries).open()
        link = pool.link(b"key", b"plan")
        assert link is not None
        for task in (12, -13, 14):
            link.submit(abs(task), 0, str(task).encode(), [])
        with pytest.raises(ut.WorkerLost) as caught:
            take_all(link)
        assert "worker " in caught.value.what and "it was silent for 2" in caught.value.what
        assert f"the same task has now been lost {times}" in caught.value.what
        assert "retries" in caught.value.hint
        link.close()
        simulation.sleep(5.0)
        assert len(pool.workers()) == 2
        assert WORKLOADS["sums"].run(pool, 12) == WORKLOADS["sums"].expected(12)
        assert sum(row.starts for row in pool.stats()) == 2 + retries + 1


@pytest.mark.parametrize("seed", range(10))
def test_frames_that_are_spoiled_on_their_way(seed: int) -> None:
    """They are refused, counted, and asked for again."""
    random = Random(seed)

    def spoil(parts: list[bytes]) -> list[bytes]:
        if random.random() > 0.2:
            return parts
        way = random.randrange(5)
        if way == 0:
            return [parts[0][: random.randrange(len(parts[0]))], *parts[1:]]
        if way == 1:
            return [bytes(len(parts[0])), *parts[1:]]
        if way == 2:
            return parts + [b"more"] * 5000
        if way == 3:
            return [b"GET / HTTP/1.1\r\n\r\n"]
        return [parts[0][:8] + random.randbytes(16) + parts[0][24:], *parts[1:]]  # of another session

    with Simulation(seed) as simulation:
        pool = simulation.pool(2, guests=Adders).open()
        simulation.tamper = spoil
        assert WORKLOADS["sums"].run(pool, 30) == WORKLOADS["sums"].expected(30)
        simulation.tamper = None
        simulation.sleep(1.0)
        assert sum(row.refused for row in pool.stats()) > 10


def take_all(link: PoolLink) -> None:
    """Until there is an error, or nothing more."""
    while link.take(60.0):
        pass


def test_a_held_up_driver_blames_nobody_but_once() -> None:
    roster = Roster(2, Times())
    for worker in (0, 1):
        roster.join(roster.begin(worker, now=0.0).incarnation)
    assert roster.silent(0.1) == []
    assert roster.silent(9.0) == []  # what they said meanwhile is yet to be read
    roster.hear(1, now=9.0)
    ((entry, _),) = roster.silent(10.95)
    assert entry.worker == 1
