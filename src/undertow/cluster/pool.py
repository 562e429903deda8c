"""A pool of workers, as those see it who use it: services that are called, links by which runs share out tasks.

`Driver` decides; a station drives it. What is here waits, and hands over.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from undertow.cluster.driver import Call, Driver
from undertow.cluster.frames import SESSION, Buffer, as_parts
from undertow.cluster.links import PoolLink as PoolLink
from undertow.cluster.parts import Parts, PartsRun
from undertow.cluster.pipe import Pipe
from undertow.cluster.probe import Way, probe
from undertow.cluster.roster import Times
from undertow.cluster.station import Action, Carry, Finish, Launcher, Lost, Network, Start, Station
from undertow.cluster.tracks import Tracks
from undertow.cluster.wires import Doors
from undertow.cluster.worker import Counters
from undertow.errors import UndertowError, WorkerLost

log = logging.getLogger("undertow.cluster")


@dataclass(frozen=True, slots=True)
class WorkerStats:
    """What a worker has done and is doing. Counts are those of its present incarnation, as of its last heartbeat."""

    worker: int
    incarnation: int
    place: str  # where it runs
    process: int
    is_ready: bool
    starts: int  # incarnations so far
    running: int  # tasks that it has something to do for
    tasks: int  # phases of tasks that were run
    calls: int  # of services
    activations: int
    waves: int
    sent: int  # bytes, to the driver and to other workers
    received: int
    refused: int  # frames, by it and of it
    waited: float  # seconds in which it had nothing to do, or waited for others


class Future:
    """The result of a service that is yet to come."""

    def __init__(self, station: Station, call: Call) -> None:
        self._station = station
        self._call = call

    def done(self) -> bool:
        """Whether there is a result, or an error."""
        return self._call.is_done

    @property
    def span(self) -> tuple[float, float]:
        """When the service ran, once it has a result, by the clock of `Pool.now`."""
        return self._call.began, self._call.ended

    def failed(self) -> bool:
        """Whether there is an error."""
        return self._call.error is not None

    def result(self, timeout: float | None = None) -> list[Buffer]:
        """The parts that the service has given. Raises what it raised, WorkerLost, or TimeoutError."""
        with self._station.lock:
            if not self._station.wait(lambda: self._call.is_done, timeout):
                raise TimeoutError(f"no result in {timeout} s")
        if self._call.error is not None:
            raise self._call.error
        return list(self._call.result or ())

    def exception(self, timeout: float | None = None) -> Exception | None:
        """What `result` would raise."""
        try:
            self.result(timeout)
        except (UndertowError, TimeoutError) as error:
            return error
        return None


class Pool:
    """Workers that a launcher starts and a network reaches. It is the `Outside` of runs (`engines/outside.py`)."""

    def __init__(
        self,
        launcher: Launcher,
        network: Network,
        workers: int,
        retries: int = 3,
        times: Times | None = None,
        listen: str = "tcp://127.0.0.1:*",
    ) -> None:
        self._launcher: Any = launcher  # it may be a Carrier, too
        self._carries = hasattr(launcher, "publish")
        keys = network.keys()
        self._machine = Driver(os.urandom(SESSION), workers, retries, times or Times(), keys, listen, network.keys)
        self._station = network.driver(self._machine, keys, listen, self._perform)
        self._machine.address = self._station.address
        self._todo: deque[Callable[[], None]] = deque()  # for the launcher, in order
        self._is_launching = False
        self._on_lost: list[Callable[[int, int, str], None]] = []
        self._is_open = False
        self._streams = 0
        self._retries = retries
        self._parts = Parts(self)

    # ----------------------------------------------------------------------------------------------------------
    # Life

    def open(self, seconds: float | None = None, at_least: int | None = None) -> Pool:
        """Start the workers, and wait until they are there (all, or `at_least` so many), for so long at most."""
        self._station.run()
        self._is_open = True
        with self._station.lock:
            self._machine.open(self._station.now())
            self._station.wake()
        try:
            self.wait_for_workers(at_least, seconds)
        except BaseException:
            self.close()
            raise
        return self

    def wait_for_workers(self, count: int | None = None, seconds: float | None = None) -> None:
        """Wait until so many workers (all, if None) are ready. WorkerLost if that cannot be, else TimeoutError."""
        machine = self._machine
        wanted = machine.roster.workers if count is None else count

        def is_hopeless() -> bool:
            return machine.roster.workers - len(machine.given_up) < wanted

        with self._station.lock:
            self._station.wait(lambda: len(machine.roster.ready()) >= wanted or is_hopeless(), seconds)
            ready = len(machine.roster.ready())
            if ready >= wanted:
                return
            for worker, why in machine.given_up.items():
                raise WorkerLost(f"worker {worker} cannot be started: {why}")
        raise TimeoutError(f"{ready} of {wanted} workers are there after {seconds} s")

    def close(self) -> None:
        """End all workers, and wait until they are no more."""
        if not self._is_open:
            self._station.close()  # it has been bound, if nothing else
            return
        self._parts.close()
        self._is_open = False
        with self._station.lock:
            self._machine.close()
            self._station.wake()
            self._station.wait(lambda: not self._todo and not self._is_launching)
        self._station.close()
        self._launcher.close()

    def __enter__(self) -> Pool:
        return self if self._is_open else self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # ----------------------------------------------------------------------------------------------------------
    # Services, news

    def call(
        self,
        worker: int,
        service: str,
        payload: Buffer | Iterable[Buffer] = b"",
        incarnation: int | None = None,
        name: str = "",
    ) -> Future:
        """Call a service of a worker; of that incarnation, if one is named. `name` is for its track.

        Parts are not copied: leave them as they are. It is called once. If the worker is lost before its result has
        come, nobody knows how far it got: WorkerLost.
        """
        with self._station.lock:
            call = self._machine.call(worker, incarnation, service, as_parts(payload), name)
            self._station.wake()
        return Future(self._station, call)

    def wait(self, futures: Sequence[Future]) -> None:
        """Wait until all are done, or one has failed."""
        with self._station.lock:
            self._station.wait(lambda: all(f.done() for f in futures) or any(f.failed() for f in futures))

    def wait_for_one(
        self, futures: Sequence[Future], is_over: Callable[[], bool] = lambda: False, seconds: float | None = None
    ) -> None:
        """Wait until one of them is done, or it is over, about which `wake` tells; or for so long."""
        with self._station.lock:
            self._station.wait(lambda: is_over() or any(future.done() for future in futures), seconds)

    def wake(self) -> None:
        """Whoever waits for something looks again."""
        with self._station.lock:
            self._station.wake()

    def parts(
        self,
        plans: Sequence[tuple[bytes, bytes]],
        orders: Sequence[Sequence[Buffer]],
        has_ended: Callable[[bytes], bool],
    ) -> PartsRun:
        """Have workers run the other parts of a placed graph (`engines/outside.py`)."""
        return self._parts.run(plans, orders, has_ended)

    @property
    def retries(self) -> int:
        """How often what a lost worker did is done again."""
        return self._retries

    def new_stream(self) -> int:
        """A number for a stream between workers; greater than all before."""
        with self._station.lock:
            self._streams += 1
            return self._streams

    def doors(self) -> Doors:
        """By which workers come to this process, with the sockets of wires. Close them before the pool."""
        return Doors(self._machine, self._station)

    def pipe(self, number: int, incarnation: int) -> Pipe:
        """Bytes to and from an incarnation of a worker. Both ends know the number, and use it for nothing else."""
        return Pipe(self._machine, self._station, number, incarnation)

    @property
    def address(self) -> str:
        """Where it listens to workers."""
        return self._station.address

    @property
    def is_open(self) -> bool:
        """Whether there may be workers."""
        return self._is_open

    @property
    def size(self) -> int:
        """How many workers there are when none is lost."""
        return self._machine.roster.workers

    def workers(self) -> list[tuple[int, int]]:
        """Those that are ready, as (worker, incarnation) pairs, in their order."""
        with self._station.lock:
            return [(entry.worker, entry.incarnation) for entry in self._machine.roster.ready()]

    @property
    def epoch(self) -> int:
        """Grows whenever that list changes."""
        with self._station.lock:
            return self._machine.roster.epoch

    def on_lost(self, callback: Callable[[int, int, str], None]) -> None:
        """Call that with worker, incarnation and reason whenever a worker is lost, in a thread of its own."""
        self._on_lost.append(callback)

    def probe(self) -> list[Way]:
        """How long a message to each worker takes, there and back, and how many bytes a second it can be sent."""
        return probe(self)

    def now(self) -> float:
        """The time, as tracks have it."""
        return self._station.now()

    @contextmanager
    def tracked(self) -> Iterator[Tracks]:
        """Keep tracks of what workers do inside the block."""
        tracks = Tracks()
        with self._station.lock:
            before, self._machine.tracks = self._machine.tracks, tracks
        try:
            yield tracks
        finally:
            with self._station.lock:
                self._machine.tracks = before

    def track(self, worker: int, name: str, began: float, ended: float, **about: Any) -> None:
        """Add something that took time to a track, if there are any."""
        with self._station.lock:
            if self._machine.tracks is not None:
                self._machine.tracks.span(worker, name, began, ended, **about)

    def stats(self) -> list[WorkerStats]:
        """One row for each worker."""
        rows = []
        with self._station.lock:
            for worker in range(self._machine.roster.workers):
                entry = self._machine.roster.now_of(worker)
                counters = Counters(*entry.counters) if entry is not None else Counters()
                rows.append(
                    WorkerStats(
                        worker,
                        entry.incarnation if entry is not None else 0,
                        entry.place if entry is not None else "",
                        entry.process if entry is not None else 0,
                        entry is not None and entry.is_ready,
                        self._machine.roster.starts[worker],
                        entry.running if entry is not None else 0,
                        counters.tasks,
                        counters.calls,
                        counters.activations,
                        counters.waves,
                        counters.sent,
                        counters.received,
                        counters.refused + self._machine.traffic[worker].refused,
                        counters.waited / 1e6,
                    )
                )
        return rows

    # ----------------------------------------------------------------------------------------------------------
    # Tasks

    def link(self, key: bytes, plan: bytes) -> PoolLink | None:
        """A way to the workers for a run that begins; None if there are none."""
        if not self._is_open:
            return None
        with self._station.lock:
            link = self._machine.dispatch.open(self._machine.dispatch.plan(key, plan))
        return PoolLink(self._machine, self._station, link, self._launcher if self._carries else None, self._later)

    # ----------------------------------------------------------------------------------------------------------
    # What the machine wants done

    def _perform(self, action: Action) -> None:
        """Called by the station, in its thread, holding the lock."""
        if isinstance(action, Start):
            self._later(lambda: self._start(action))
        elif isinstance(action, Finish):
            self._later(lambda: self._launcher.end(action.worker, action.incarnation))
        elif isinstance(action, Carry):
            self._later(lambda: self._launcher.carry(action.worker, action.incarnation, action.number))
        elif isinstance(action, Lost):
            for callback in self._on_lost:
                self._station.spawn(lambda call=callback: call(action.worker, action.incarnation, action.why))  # type: ignore[misc]

    def _start(self, action: Start) -> None:
        incarnation = action.ticket.incarnation

        def gone(why: str) -> None:
            with self._station.lock:
                self._machine.gone(incarnation, why, self._station.now())
                self._station.wake()

        try:
            self._launcher.start(action.ticket, gone)
        except Exception as error:
            gone(f"it could not be started: {type(error).__name__}: {error}")

    def _later(self, work: Callable[[], None]) -> None:
        """Do that in the launcher's activity, after what was to be done before."""
        self._todo.append(work)
        if not self._is_launching:
            self._is_launching = True
            self._station.spawn(self._launch)

    def _launch(self) -> None:
        while True:
            with self._station.lock:
                if not self._todo:
                    self._is_launching = False
                    self._station.wake()
                    return
                work = self._todo.popleft()
            try:
                work()
            except Exception:
                log.exception("the launcher failed")
