"""What a worker does with tasks of other processes: each is a guest, from its first phase to its last.

`Guests` is what a worker of `undertow.cluster` asks for. Plans come as bytes and are decoded once; a task's messages go
to the core as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Protocol

from undertow import _core
from undertow.engines.outside import Link, Reply
from undertow.engines.waves.plan_bytes import unpack

Task = tuple[int, int]
Buffer = bytes | bytearray | memoryview


class Home(Protocol):
    """What guests need of the worker on which they are."""

    def link(self, key: bytes, plan: bytes) -> Link | None:
        """A way to other workers, for the task that this thread runs."""

    def idle(self) -> int:
        """How many tasks could begin at once elsewhere."""

    def count(self, activations: int, waves: int) -> None:
        """Say what was done."""


class Guests:
    """The tasks of one worker. Used by several threads, each with a task of its own."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._plans: dict[bytes, _core.Plan] = {}
        self._tasks: dict[Task, tuple[_core.Guest, OwnLink]] = {}
        self._running = set[Task]()
        self._dropped = set[Task]()  # while they ran
        self._lock = threading.Lock()

    def plan(self, key: bytes, data: bytes) -> None:
        """A plan that tasks will name."""
        if key not in self._plans:
            encoded = unpack(data)
            self._plans[key] = _core.decode(encoded.rows, encoded.words, encoded.constants)

    def run(self, task: Task, key: bytes, phase: int, message: bytes, shared: Sequence[Buffer]) -> bytes | None:
        """Run a phase; None if the task was dropped meanwhile."""
        with self._lock:
            if phase == 0:  # for the first time, or again
                self._tasks[task] = _core.Guest(self._plans[key]), OwnLink(self._home, key)
            guest, link = self._tasks[task]
            self._running.add(task)
        reply = None
        try:
            reply = guest.run(message, list(shared), link)
        finally:
            self._home.count(guest.activations, guest.waves)
            with self._lock:
                self._running.discard(task)
                is_over = reply is None or task in self._dropped
                self._dropped.discard(task)
                if is_over:
                    self._tasks.pop(task, None)
            if is_over:
                link.close()
        return reply

    def drop(self, task: Task) -> None:
        """A task is needed no more; stops it if it runs."""
        with self._lock:
            guest, link = self._tasks.get(task, (None, None))
            if guest is not None and task in self._running:
                self._dropped.add(task)
                guest.stop()
                return
            self._tasks.pop(task, None)
        if link is not None:
            link.close()


class OwnLink:
    """A guest's way to other workers. It is opened when there is something to send."""

    def __init__(self, home: Home, key: bytes) -> None:
        self.is_eager: bool = getattr(home, "is_eager", False)
        self._home = home
        self._key = key
        self._link: Link | None = None

    def idle(self) -> int:
        """How many tasks could begin at once elsewhere."""
        return self._home.idle()

    def publish(self, data: memoryview) -> int:
        """Share a value between tasks."""
        return self._open().publish(data)

    def submit(self, task: int, phase: int, message: bytes, shared: Sequence[int]) -> None:
        """Have a phase run elsewhere."""
        self._open().submit(task, phase, message, shared)

    def take(self, seconds: float) -> list[Reply]:
        """What has come back."""
        return self._open().take(seconds)

    def drop(self, task: int) -> None:
        """It has no more phases."""
        self._open().drop(task)

    def news(self) -> str:
        """Nobody asks a task."""
        return ""

    def close(self) -> None:
        """The task is over."""
        if self._link is not None:
            self._link.close()
            self._link = None

    def _open(self) -> Link:
        if self._link is None:
            self._link = self._home.link(self._key, b"")
            assert self._link is not None, "the worker has this plan"
        return self._link
