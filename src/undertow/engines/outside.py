"""Work outside this process: what a run needs of whoever has workers, and what a worker does with what it gets.

A run cuts some of its calls into tasks (docs/design/0026-tasks.md). A task runs here or elsewhere; nobody can tell from
its result which it was. `Outside` has workers, a `Link` is one run's way to them, and `Guests` are the tasks that a
worker has. What goes to and fro is bytes. Who moves them, and what happens when a worker is lost, is not known here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

HasEnded = Callable[[bytes], bool]  # says of a reply: has the part come to its end?
Order = Sequence[Any]  # to run a part once: a message, and large values, as buffers
Reply = tuple[int, int, bytes]  # task, phase, what it gives


class Link(Protocol):
    """One run's way to workers. Called by the run's thread alone; what a method raises ends the run.

    If it has a true attribute `is_eager`, everything that can be sent is, whether it pays or not.
    """

    def idle(self) -> int:
        """How many tasks could begin at once elsewhere. Called often: a look at a number."""

    def publish(self, data: memoryview) -> int:
        """Keep a value that many tasks share, and number it. `data` must not be used after the call has returned."""

    def submit(self, task: int, phase: int, message: bytes, shared: Sequence[int]) -> None:
        """Have a phase of a task run, on the worker that has it.

        `shared` are the numbers of the published values that the message refers to, in its order. Messages of a task
        are kept until it is dropped: if its worker is lost, they run again, in order, on another.
        """

    def take(self, seconds: float) -> list[Reply]:
        """What has come back since; wait so long for the first of it, at most. Raises WorkerLost."""

    def drop(self, task: int) -> None:
        """A task has no more phases, or nobody needs them: a worker that is at it may stop."""

    def news(self) -> str:
        """What was done elsewhere for this run so far, in a few words; "" if nothing."""

    def close(self) -> None:
        """The run is over, however it ended: nobody needs its tasks any more, nor what it has published."""


class OtherParts(Protocol):
    """The other parts of a placed graph, while it runs once. Part 0 is here, part k + 1 on worker k."""

    @property
    def wire(self) -> Any:
        """The connections of part 0 to them, as the core has them. They fail if one of the others does."""

    def replies(self) -> list[bytes]:
        """What they reply, in order, when all have ended, or one has not come to its end. Raises WorkerLost."""

    def close(self) -> None:
        """The run is over, however it ended: whoever still runs a part stops."""


class Outside(Protocol):
    """Who has workers."""

    def link(self, key: bytes, plan: bytes) -> Link | None:
        """A link for a run that begins. `key` (32 bytes) stands for the plan, which workers need once."""

    @property
    def size(self) -> int:
        """How many workers there are when none is lost."""

    @property
    def retries(self) -> int:
        """How often a run in parts is begun again when a worker is lost."""

    def parts(self, plans: Sequence[tuple[bytes, bytes]], orders: Sequence[Order], has_ended: HasEnded) -> OtherParts:
        """Have workers run these parts, once all of them are there: for each a plan, with its key, and an order.

        When one has stopped before its end, the others are stopped, too.
        """


_outside: ContextVar[Outside | None] = ContextVar("outside", default=None)
# A child made by `os.fork` has none of the threads and sockets by which its parent reaches workers: it runs all itself.
os.register_at_fork(after_in_child=lambda: _outside.set(None))


def current() -> Outside | None:
    """Whoever has workers for runs that begin here."""
    return _outside.get()


@contextmanager
def using(outside: Outside | None) -> Iterator[None]:
    """Runs that begin inside the block may have tasks run elsewhere."""
    token = _outside.set(outside)
    try:
        yield
    finally:
        _outside.reset(token)
