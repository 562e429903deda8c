"""Pools whose workers are in this process: services, streams, tasks, and what becomes of them when workers fail."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.support.network import Simulation

import undertow as ut
from undertow.cluster.frames import Buffer
from undertow.cluster.member import Member


def services(member: Member) -> dict[str, object]:
    """What the tests call."""

    def around(parts: Sequence[Buffer]) -> bytes:
        """The sum of the numbers of all workers, sent around."""
        stream = member.stream(
            int(bytes(parts[0])), among := [(peer.worker, peer.incarnation) for peer in member.peers]
        )
        at = among.index(member.peer)
        before, after = among[at - 1], among[(at + 1) % len(among)]
        total = member.worker
        for _ in range(len(among) - 1):
            stream.send(after, str(total).encode())
            total = member.worker + int(bytes(stream.receive(before)[0]))
        stream.close()
        return str(total).encode()

    def wrong(parts: Sequence[Buffer]) -> bytes:
        raise ValueError("no such luck")

    return {"echo": list, "who": lambda parts: str(member.peer).encode(), "around": around, "wrong": wrong}


class Adders:
    """Guests whose tasks add up numbers: phase 0 keeps them, phase 1 adds its message's and the shared ones."""

    def __init__(self, member: Member) -> None:
        self.member = member
        self.kept: dict[tuple[int, int], int] = {}
        self.plans: dict[bytes, bytes] = {}

    def plan(self, key: bytes, data: bytes) -> None:
        self.plans[key] = data

    def run(self, task: tuple[int, int], phase: int, message: bytes, shared: Sequence[Buffer]) -> bytes | None:
        assert self.plans[b"key"] == b"plan"
        if phase == 0:
            self.kept[task] = int(message)
            return message
        if phase == 2:  # the sum of the numbers below it, each by a task of its own
            link = self.member.link(b"key", b"plan")
            assert link is not None
            count = int(message)
            for number in range(count):
                link.submit(number, 2 if number % 4 == 3 else 0, str(number // 2).encode())
            total = replies = 0
            while replies < count:
                taken = link.take(10.0)
                replies += len(taken)
                total += sum(int(reply) for _, _, reply in taken)
            link.close()
            return str(total).encode()
        return str(self.kept[task] + int(message) + sum(int(bytes(part)) for part in shared)).encode()

    def drop(self, task: tuple[int, int]) -> None:
        self.kept.pop(task, None)


def nested(count: int) -> int:
    return sum(nested(number // 2) if number % 4 == 3 else number // 2 for number in range(count))


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
