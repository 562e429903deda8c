"""Workers of one process, without time: tasks run when their run waits, in an order that a seed decides.

Some are lost: then all phases that the task has had run again, on another worker. Everything that can be sent is.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.parts import Threads

from undertow.api.options import sharing_out
from undertow.engines.outside import Reply
from undertow.engines.waves.guests import Guests

SHARED = Sequence[int]


@dataclass
class Step:
    phase: int
    message: bytes
    shared: SHARED


@dataclass
class Task:
    number: int
    steps: list[Step] = field(default_factory=list)
    replied: int = 0


class Elsewhere:
    """An Outside. `losses`: how often, of a hundred phases, a worker is lost before its reply comes."""

    is_eager = True
    retries = 0
    size = 3
    parts = Threads(3).parts  # of programs that name devices

    def __init__(self, seed: int = 0, losses: int = 0, workers: int = 3) -> None:
        self.random = random.Random(seed)
        self.losses = losses
        self.workers = workers
        self.phases = self.lost = self.activations = self.sent = 0
        self.nested = 0  # tasks of tasks
        self.messages: list[bytes] = []
        self.plans: dict[bytes, bytes] = {}
        self.links = 0
        self._worker = Guests(self)

    def link(self, key: bytes, plan: bytes) -> Link:
        is_nested = key in self.plans and not plan
        if plan:
            self.plans[key] = plan
            self._worker.plan(key, plan)
        self.links += 1
        return Link(self, key, self.links, is_nested)

    # What guests need of their worker.

    def idle(self) -> int:
        return self.random.randrange(self.workers)

    def count(self, activations: int, waves: int) -> None:
        self.activations += activations


class Link:
    is_eager = True

    def __init__(self, outside: Elsewhere, key: bytes, number: int, is_nested: bool) -> None:
        self._outside = outside
        self._key = key
        self._number = number
        self._is_nested = is_nested
        self._values: list[bytes] = []
        self._tasks: dict[int, Task] = {}
        self.is_closed = False

    def idle(self) -> int:
        return self._outside.workers

    def publish(self, data: memoryview) -> int:
        self._values.append(bytes(data))
        return len(self._values) - 1

    def submit(self, task: int, phase: int, message: bytes, shared: SHARED) -> None:
        assert not self.is_closed
        outside = self._outside
        outside.sent += len(message)
        outside.messages.append(message)
        outside.nested += self._is_nested
        self._tasks.setdefault(task, Task(task)).steps.append(Step(phase, message, list(shared)))

    def take(self, seconds: float) -> list[Reply]:
        """Some of what is asked for, but something: in any order."""
        waiting = [task for task in self._tasks.values() if task.replied < len(task.steps)]
        if not waiting or (seconds == 0 and self._outside.random.random() < 0.5):
            return []
        chosen = self._outside.random.sample(waiting, self._outside.random.randint(1, len(waiting)))
        return [reply for task in chosen for reply in self._run(task)]

    def _run(self, task: Task) -> Iterator[Reply]:
        outside, guest = self._outside, (self._number, task.number)
        while outside.random.randrange(100) < outside.losses:  # whatever the task has had, runs again
            outside.lost += 1
            outside._worker.drop(guest)
            for step in task.steps[: task.replied]:
                self._ask(guest, step)
        for step in task.steps[task.replied :]:
            reply = self._ask(guest, step)
            assert reply is not None
            task.replied += 1
            yield task.number, step.phase, reply

    def _ask(self, guest: tuple[int, int], step: Step) -> bytes | None:
        self._outside.phases += 1
        shared = [self._values[number] for number in step.shared]
        return self._outside._worker.run(guest, self._key, step.phase, step.message, shared)

    def drop(self, task: int) -> None:
        self._tasks.pop(task, None)
        self._outside._worker.drop((self._number, task))

    def news(self) -> str:
        return f"{self._outside.phases} tasks"

    def close(self) -> None:
        self.is_closed = True
        for task in list(self._tasks):
            self.drop(task)


@contextmanager
def elsewhere(seed: int = 0, losses: int = 0, workers: int = 3) -> Iterator[Elsewhere]:
    """Runs inside send everything that can be sent."""
    outside = Elsewhere(seed, losses, workers)
    with sharing_out(outside):
        yield outside
