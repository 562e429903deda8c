"""The parts of a placed graph on the workers of a pool, as the program sees them, of which it runs one itself.

Processes that are connected by wires are a *circle*: the program, which is part 0, and the workers from 0 on. It is
kept for the next run, unless a run has failed or a worker was lost: nobody knows then what is left in the wires. Knows
nothing of plans: a plan and a reply are bytes, an order to run it once is a message and large values. Runs are one
after the other.
"""

from __future__ import annotations

import json
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING

from undertow.cluster.frames import Buffer
from undertow.cluster.kept import Teller
from undertow.cluster.wires import SECONDS, SECRET, Doors, Place, Wire
from undertow.errors import RunError, WorkerLost

if TYPE_CHECKING:
    from undertow.cluster.pool import Future, Pool

SERVICE, STOP = "part", "stop part"  # of workers
PATIENCE = 60.0  # seconds in which all workers must be there
_LOOK = 0.5  # seconds until it is seen that a run has been left
_LAST = 5.0  # seconds for a worker to say that it has stopped

HasEnded = Callable[[bytes], bool]


def header(do: str, **values: object) -> bytes:
    """What a worker is asked for; `parallel/part_service.py` reads it."""
    return json.dumps({"do": do, **values}).encode()


class Circle:
    """The program and workers, connected. Used by one run at a time."""

    def __init__(self, pool: Pool, doors: Doors, workers: Sequence[tuple[int, int]], number: int) -> None:
        self.pool = pool
        self.workers = tuple(workers)
        self.number = number
        self.known: list[set[bytes]] = [set() for _ in workers]  # plans that each worker has
        self.teller = Teller()
        self.is_whole = True
        self._stop = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        try:
            asked = [self.ask(k, SERVICE, header("door")) for k in range(len(workers))]
            addresses = [bytes(future.result(SECONDS)[0]).decode() for future in asked]
            places = [Place(doors.address), *map(Place.of_worker, addresses, workers)]
            secret = os.urandom(SECRET)
            among = [[place.address, place.incarnation, place.name] for place in places]
            opening = [
                self.ask(k, SERVICE, header("open", circle=number, own=k + 1, among=among), secret)
                for k in range(len(workers))
            ]
            self.wire = doors.wire(places, 0, secret, self._stop)
            for future in opening:
                future.result(SECONDS)
        except BaseException:
            self.give_up()
            os.close(self._stop)
            raise

    def ask(self, number: int, service: str, *parts: Buffer) -> Future:
        """Call a service of a worker."""
        worker, incarnation = self.workers[number]
        return self.pool.call(worker, service, parts, incarnation, "a part")

    def give_up(self) -> None:
        """Whoever waits in a wire waits no more: this circle has come to its end."""
        self.is_whole = False
        os.eventfd_write(self._stop, 1)
        for number in range(len(self.workers)):
            self.ask(number, STOP, header("stop", circle=self.number))

    def close(self) -> None:
        """The program's end of it."""
        if self.is_whole:
            self.give_up()
        self.wire.close()
        os.close(self._stop)


class _Work:
    """One run of parts, from its beginning to its end, on a thread of its own: Ctrl-C comes to the program's alone.

    So whatever the program's thread does when it is interrupted, circles are whole or given up, and the next run has
    its turn.
    """

    def __init__(
        self,
        parts: Parts,
        plans: Sequence[tuple[bytes, bytes]],
        orders: Sequence[Sequence[Buffer]],
        has_ended: HasEnded,
    ) -> None:
        self._parts = parts
        self._plans, self._orders, self._has_ended = plans, orders, has_ended
        self._futures: list[Future] = []
        self.circle: Circle | None = None
        self.replies: list[bytes] = []
        self.error: BaseException | None = None
        self.has_begun = threading.Event()  # or never will
        self.has_replied = threading.Event()
        self.is_over = threading.Event()  # for the program
        self.is_taken = False  # all that was sent: the program has come to the end of its own part
        self.owner = threading.get_ident()
        self.thread = threading.Thread(target=self._run, name="undertow parts", daemon=True)

    def end(self) -> None:
        """The program has no more to do with it. May be called at any time, and often."""
        self.is_over.set()
        self._parts.wake()

    def _run(self) -> None:
        try:
            with self._parts.turn:
                if self.is_over.is_set():
                    return
                self._parts.running = self
                try:
                    self._run_in_turn()
                finally:
                    self._parts.running = None
        except BaseException as error:
            self.error = error
        finally:
            self.has_begun.set()
            self.has_replied.set()

    def _run_in_turn(self) -> None:
        circle = self._parts.circle(len(self._plans), self.is_over.is_set)
        if circle is None:
            return
        try:
            self._begin(circle)
            self.circle = circle
            self.has_begun.set()
            self._watch(circle)
            self.has_replied.set()
            self.is_over.wait()
            if not self.is_taken:
                circle.give_up()
        except BaseException:
            circle.give_up()
            raise
        finally:
            if not circle.is_whole:
                end = time.monotonic() + _LAST
                for future in self._futures:  # until then the worker is at it, and cannot begin another
                    with suppress(Exception):
                        future.result(max(0.0, end - time.monotonic()))

    def _begin(self, circle: Circle) -> None:
        for k, (key, plan) in enumerate(self._plans):
            if key not in circle.known[k]:
                circle.known[k].add(key)
                circle.ask(k, SERVICE, header("plan"), key, plan)
        about, said = circle.teller.tell(tuple(key for key, _ in self._plans), [order[1:] for order in self._orders])
        self._futures = [
            circle.ask(k, SERVICE, header("run", circle=circle.number, whole=whole, **about), key, order[0], *buffers)
            for k, ((key, _), order, (whole, buffers)) in enumerate(zip(self._plans, self._orders, said, strict=True))
        ]

    def _reason(self, circle: Circle, error: Exception) -> Exception:
        """Others notice that a worker is gone before the pool does, which knows why."""
        if not isinstance(error, WorkerLost):
            return error
        end = time.monotonic() + _LAST
        for peer, future in zip(circle.workers, self._futures, strict=True):
            try:
                future.result(max(0.0, end - time.monotonic()))
            except WorkerLost as reason:
                if peer not in circle.pool.workers():
                    return reason
            except TimeoutError:
                continue
            except Exception as other:
                return other
        return error

    def _watch(self, circle: Circle) -> None:
        """Wait for all replies. If a part stops before its end, or is lost, nobody needs to go on."""
        left = list(self._futures)
        while left:
            circle.pool.wait_for_one(left, self.is_over.is_set, _LOOK)
            if self.is_over.is_set() and not all(future.done() for future in left):
                circle.give_up()
                return
            for future in [future for future in left if future.done()]:
                left.remove(future)
                try:
                    reply = b"".join(future.result())
                except Exception as error:
                    circle.give_up()
                    self.error = self._reason(circle, error)
                    return
                if not self._has_ended(reply):
                    self.replies = [reply]
                    circle.give_up()
                    return
        self.replies = [b"".join(future.result()) for future in self._futures]


class PartsRun:
    """The other parts of one run, as the program has them; `OtherParts` of `engines/outside.py`."""

    def __init__(self, work: _Work) -> None:
        self._work = work
        # If Ctrl-C has come before anybody could close it. No lock of ours: this may happen anywhere.
        weakref.finalize(self, work.is_over.set).atexit = False
        work.thread.start()

    @property
    def wire(self) -> Wire:
        """The connections of part 0, once this run has its turn and all workers are there."""
        self._work.has_begun.wait()
        if self._work.circle is None:
            raise self._work.error or WorkerLost("the run was stopped")
        return self._work.circle.wire

    def replies(self) -> list[bytes]:
        """What the others reply: all, or only that of the first that has stopped before its end."""
        self._work.is_taken = True
        self._work.has_replied.wait()
        if self._work.error is not None:
            raise self._work.error
        return self._work.replies

    def close(self) -> None:
        """The run is over."""
        self._work.end()
        self._work.thread.join()


_INSIDE: ContextVar[_Work | None] = ContextVar("inside", default=None)


class Parts:
    """What a pool knows of circles."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._doors: Doors | None = None
        self._circles: dict[int, Circle] = {}  # by how many workers
        self._count = 0
        self.turn = threading.Lock()  # runs are one after the other; held by their own threads
        self.running: _Work | None = None

    def run(
        self, plans: Sequence[tuple[bytes, bytes]], orders: Sequence[Sequence[Buffer]], has_ended: HasEnded
    ) -> PartsRun:
        """Begin the parts of a run, once all their workers are there, and no other run is at it."""
        running = self.running
        if running is not None and running.owner == threading.get_ident():
            if _INSIDE.get() is running and not running.is_over.is_set():
                raise RunError(
                    "a run that is placed on workers begins another one",
                    hint="make the inner call outside of the graph",
                )
            running.end()  # Ctrl-C has left it, and nobody has closed it
        work = _Work(self, plans, orders, has_ended)
        _INSIDE.set(work)  # in this run's own context, which ends with it
        return PartsRun(work)

    def wake(self) -> None:
        """A thread that waits for replies looks whether its run is over."""
        self._pool.wake()

    def circle(self, count: int, is_over: Callable[[], bool]) -> Circle | None:
        """A circle of so many workers, and the program; None if the run is over before."""
        pool = self._pool
        end = time.monotonic() + PATIENCE
        while True:
            if is_over():
                return None
            try:
                pool.wait_for_workers(None, max(0.0, min(_LOOK, end - time.monotonic())))
            except TimeoutError:
                if time.monotonic() < end:
                    continue
                raise WorkerLost(f"{count} workers are needed, and after {PATIENCE:.0f} s they are not there") from None
            workers = pool.workers()[:count]
            known = self._circles.get(count)
            if known is not None:
                if known.is_whole and known.workers == tuple(workers):
                    return known
                del self._circles[count]
                known.close()
            if len(workers) == count:
                break
        self._doors = self._doors or pool.doors()
        self._count += 1
        made = self._circles[count] = Circle(pool, self._doors, workers, self._count)
        return made

    def close(self) -> None:
        """Disconnect."""
        running = self.running
        if running is not None:  # Ctrl-C has left it
            running.end()
            running.thread.join()
        for circle in self._circles.values():
            circle.close()
        self._circles.clear()
        if self._doors is not None:
            self._doors.close()
            self._doors = None
