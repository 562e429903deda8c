"""Pools whose workers are in this process: services, streams, tasks, and what becomes of them when workers fail."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.adders import Adders, nested, services
from tests.support.network import Simulation

import undertow as ut
from undertow.cluster.frames import Buffer, Kind, decode


def test_services() -> None:
    with Simulation(seed=1) as simulation:
        pool = simulation.pool(3, services).open()
        assert [bytes(pool.call(worker, "who").result()[0]) for worker in range(3)] == [
            str(peer).encode() for peer in pool.workers()
        ]
        assert pool.call(1, "echo", [b"a", memoryview(b"bc"), b""]).result() == [b"a", b"bc", b""]
        with pytest.raises(ut.RunError, match="worker 2: ValueError: no such luck"):
            pool.call(2, "wrong").result()
        with pytest.raises(ut.RunError, match="there is no service 'step' here, only around, echo, who, wrong"):
            pool.call(2, "step").result()
        stats = pool.stats()
        assert [row.is_ready for row in stats] == [True] * 3


@pytest.mark.parametrize("seed", range(20))
def test_workers_send_each_other_messages(seed: int) -> None:
    with Simulation(seed, loss=0.1 * (seed % 3), repetition=0.1) as simulation:
        pool = simulation.pool(4, services).open()
        for turn in (1, 2):
            calls = [pool.call(worker, "around", str(turn).encode()) for worker in range(4)]
            assert [bytes(call.result()[0]) for call in calls] == [b"6"] * 4


class Counting(Simulation):
    """Counts the tables of workers that the driver sends."""

    tables = 0

    def post(self, sender: int, to: int, parts: Sequence[Buffer]) -> None:
        self.tables += decode(parts, bytes(parts[0][8:24])).message.kind == Kind.PEERS
        super().post(sender, to, parts)


def test_who_is_there_is_told_when_somebody_asks() -> None:
    """Not to all whenever one comes: that would be as many tables as the square of the workers."""
    with Counting(seed=3, start=5.0) as simulation:
        pool = simulation.pool(20, services).open()
        simulation.sleep(1.0)
        assert simulation.tables == 0
        calls = [pool.call(worker, "around", b"1") for worker in range(20)]
        assert [bytes(call.result()[0]) for call in calls] == [b"190"] * 20
        assert 20 <= simulation.tables < 60  # some are asked for again, since frames overtake each other
        simulation.kill(7)
        simulation.kill(8)
        simulation.sleep(2.9)
        assert len(pool.workers()) >= 18
        told = [member for member in simulation.members.values() if member.worker not in (7, 8)]
        assert all(not {1 + 7, 1 + 8} & {peer.incarnation for peer in member.peers} for member in told)


@pytest.mark.parametrize("seed", range(20))
def test_tasks(seed: int) -> None:
    with Simulation(seed, loss=0.1 * (seed % 3), repetition=0.1) as simulation:
        pool = simulation.pool(3, guests=Adders).open()
        link = pool.link(b"key", b"plan")
        assert link is not None
        assert link.idle() == 3
        value = link.publish(b"1000")
        for task in range(10):
            link.submit(task, 0, str(task).encode(), [])
        replies = {}
        while len(replies) < 20:
            for task, phase, reply in link.take(60.0):
                assert (task, phase) not in replies
                replies[task, phase] = int(reply)
                if phase == 0:
                    link.submit(task, 1, b"1", [value])
        assert replies == {(task, phase): task + phase * 1001 for task in range(10) for phase in (0, 1)}
        link.close()
        simulation.sleep(5.0)
        assert all(not member.kept for member in guests_of(simulation))


def guests_of(simulation: Simulation) -> list[Adders]:
    return [member._guests for member in simulation.members.values()]


@pytest.mark.parametrize("seed", range(20))
def test_tasks_of_tasks(seed: int) -> None:
    with Simulation(seed, loss=0.1 * (seed % 3), repetition=0.1) as simulation:
        pool = simulation.pool(2, guests=Adders).open()
        link = pool.link(b"key", b"plan")
        assert link is not None
        for task in range(4):
            link.submit(task, 2, b"24", [])
        replies: list[int] = []
        while len(replies) < 4:
            replies += [int(reply) for _, _, reply in link.take(60.0)]
        assert replies == [nested(24)] * 4
        link.close()
