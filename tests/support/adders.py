"""What workers do in tests of pools: services, and tasks that add up numbers."""

from __future__ import annotations

from collections.abc import Sequence

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
    """Guests whose tasks add up numbers.

    Phase 0 keeps a number, phase 1 adds its message's and the shared ones to it, phase 2 has the numbers below its own
    added up by tasks of its own. Phases from 3 on change what is kept, so each must run once, and in order.
    """

    seconds = 0.0  # that a phase takes

    def __init__(self, member: Member) -> None:
        self.member = member
        self.kept: dict[tuple[int, int], int] = {}
        self.plans: dict[bytes, bytes] = {}

    def plan(self, key: bytes, data: bytes) -> None:
        self.plans[key] = data

    def run(
        self, task: tuple[int, int], key: bytes, phase: int, message: bytes, shared: Sequence[Buffer]
    ) -> bytes | None:
        assert self.plans[key] == b"plan"
        if self.seconds:
            pause(self.member, self.seconds)
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
        total = self.kept[task] + int(message) + sum(int(bytes(part)) for part in shared)
        if phase > 2:
            self.kept[task] = total = 3 * total % 1_000_003
        return str(total).encode()

    def drop(self, task: tuple[int, int]) -> None:
        self.kept.pop(task, None)


class SlowAdders(Adders):
    """The same, with time to lose their worker."""

    seconds = 0.02


def pause(member: Member, seconds: float) -> None:
    """Let time pass, real or simulated."""
    with member._station.lock:
        member._station.wait(lambda: False, seconds)


def nested(count: int) -> int:
    return sum(nested(number // 2) if number % 4 == 3 else number // 2 for number in range(count))
