"""A worker of a pool, as those see it who give it something to do: services, guests, streams between workers.

A *service* is a function of bytes that the driver calls by name; calls of one service run one after the other, in
order, and different services side by side. *Guests* are the tasks of runs. A *stream* carries messages between workers.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from undertow.cluster.dispatch import describe
from undertow.cluster.frames import Buffer, Peer, as_parts
from undertow.cluster.pipe import Pipe
from undertow.cluster.station import Network, Ticket
from undertow.cluster.stream import Stream
from undertow.cluster.sublink import MemberLink
from undertow.cluster.wires import Doors
from undertow.cluster.worker import Job, Worker
from undertow.errors import RunError

log = logging.getLogger("undertow.cluster")

Service = Callable[[Sequence[Buffer]], Buffer | Iterable[Buffer]]


THEIRS = (Exception, SystemExit, KeyboardInterrupt)  # what guests and services may raise: it is the caller's to see


class Guests(Protocol):
    """The tasks that a worker has (`engines/outside.py`)."""

    def plan(self, key: bytes, data: bytes) -> None:
        """A plan that tasks will name."""

    def run(
        self, task: tuple[int, int], key: bytes, phase: int, message: bytes, shared: Sequence[Buffer]
    ) -> bytes | None:
        """Run a phase of a task of the plan `key`; None if the task was dropped meanwhile."""

    def drop(self, task: tuple[int, int]) -> None:
        """A task is needed no more; stops it if it runs."""


class Member:
    """One incarnation of a worker. `services` and `guests` are made when it is there, since they may use it."""

    def __init__(
        self,
        ticket: Ticket,
        network: Network,
        services: Callable[[Member], Mapping[str, Service]] | None = None,
        guests: Callable[[Member], Guests] | None = None,
        place: str = "",
    ) -> None:
        self.ticket = ticket
        self._doors: list[Doors] = []
        self._machine = Worker(ticket, place, os.getpid())
        self._station = network.worker(self._machine, ticket)
        self._services = {} if services is None else dict(services(self))
        self._guests = None if guests is None else guests(self)
        self._busy = set[tuple[int, int]]()
        self._guested = set[tuple[int, int]]()
        self._plans_given = set[int]()
        self._current = threading.local()  # `link`: that of the task that an activity runs
        self._runners = 0
        self._serving = set[str]()

    @property
    def worker(self) -> int:
        """Its number in the pool."""
        return self.ticket.worker

    @property
    def peer(self) -> tuple[int, int]:
        """Worker and incarnation: how others name it."""
        return self.ticket.worker, self.ticket.incarnation

    @property
    def peers(self) -> tuple[Peer, ...]:
        """All workers that are there, in their order, this one too."""
        with self._station.lock:
            return self._machine.peers

    @property
    def epoch(self) -> int:
        """Grows whenever that set changes."""
        with self._station.lock:
            return self._machine.epoch

    def run(self) -> str:
        """Serve until the driver says that it is over, or is silent for long; why it ended."""
        self.start()
        with self._station.lock:
            self._station.wait(lambda: self._machine.is_ended)
        for doors in self._doors:
            doors.close()
        self._station.close()
        return self._machine.why

    def start(self) -> None:
        """Serve, and return at once."""
        self._station.run()
        with self._station.lock:
            self._machine.open(self._station.address, self._station.now())
            self._station.wake()
        self._spawn(self._listen)

    def _spawn(self, work: Callable[[], None]) -> None:
        """An activity. If one fails, by a fault of ours, this worker ends: it would be there, and do nothing."""

        def run() -> None:
            try:
                work()
            except Exception as error:
                log.exception("an activity of worker %d failed", self.worker)
                with self._station.lock:
                    self._machine.end(f"a fault of ours: {type(error).__name__}: {error}")
                    self._station.wake()

        self._station.spawn(run)

    def place(self, number: int, value: Buffer) -> None:
        """A shared value has come by another way than the pool's frames."""
        with self._station.lock:
            self._machine.place(number, value)
            self._station.wake()

    # ----------------------------------------------------------------------------------------------------------
    # Activities

    def _listen(self) -> None:
        """Begin an activity for whatever has come to do."""
        machine, station = self._machine, self._station
        while True:
            with station.lock:
                station.wait(self._has_news)
                if machine.is_ended:
                    return
                for service in self._unserved():
                    self._serving.add(service)
                    self._spawn(lambda service=service: self._serve(service))  # type: ignore[misc]
                if self._lacks_runner():
                    self._runners += 1
                    self._spawn(self._work)
                dropped = [machine.dropped.popleft() for _ in range(len(machine.dropped))]
            for link, task in dropped:
                self._drop(link, task)

    def _has_news(self) -> bool:
        machine = self._machine
        return machine.is_ended or bool(machine.dropped) or self._lacks_runner() or bool(self._unserved())

    def _lacks_runner(self) -> bool:
        return bool(self._machine.jobs) and self._runners <= self._machine.waiting

    def _unserved(self) -> list[str]:
        return [name for name, calls in self._machine.calls.items() if calls and name not in self._serving]

    def _serve(self, service: str) -> None:
        """Answer the calls of a service, in order."""
        machine, station = self._machine, self._station
        with station.lock:
            calls = machine.calls[service]
        while True:
            with station.lock:
                station.wait(lambda: machine.is_ended or bool(calls))
                if machine.is_ended:
                    return
                number, parts = calls.popleft()
                began = station.now()
                machine.busy(+1, began)
            result, error = self._call(service, parts)
            with station.lock:
                took = station.now() - began
                machine.busy(-1, began + took)
                if error is not None:
                    machine.excuse(number, describe(error), took)
                else:
                    machine.answer(number, result, took)
                station.wake()

    def _call(self, service: str, parts: Sequence[Buffer]) -> tuple[tuple[Buffer, ...], BaseException | None]:
        try:
            if service not in self._services:
                raise RunError(f"there is no service {service!r} here, only {', '.join(sorted(self._services))}")
            return as_parts(self._services[service](parts)), None
        except THEIRS as error:
            return (), error

    def _work(self) -> None:
        """Run phases of tasks, one after the other. While a task waits for others, another activity does this."""
        machine, station = self._machine, self._station

        def is_surplus() -> bool:
            return machine.is_ended or self._runners > machine.waiting + 1

        while True:
            with station.lock:
                station.wait(lambda: is_surplus() or machine.next_job(self._busy) is not None)
                job = None if is_surplus() else machine.next_job(self._busy)
                if job is None:
                    self._runners -= 1
                    return
                machine.jobs.remove(job)
                self._busy.add(job.guest)
                self._guested.add(job.guest)
                plan = machine.plans.get(job.plan)
                shared = [machine.values.get(number, b"") for number in job.shared]
                began = station.now()
                machine.busy(+1, began)
            reply, error = self._run(job, plan, shared)
            with station.lock:
                took = station.now() - began
                machine.busy(-1, began + took)
                self._busy.discard(job.guest)
                if error is not None:
                    machine.fail(job, describe(error), took)
                elif reply is not None:
                    machine.reply(job, (reply,), took)
                is_dropped = job.guest not in self._guested
                station.wake()
            if is_dropped:  # it may have been before its guest began
                self._forget(job.guest)

    def _run(
        self, job: Job, plan: tuple[bytes, Buffer] | None, shared: Sequence[Buffer]
    ) -> tuple[bytes | None, BaseException | None]:
        self._current.link = job.link
        try:
            if self._guests is None or plan is None:
                raise RunError("this worker takes no tasks" if plan is not None else "this worker lacks a plan")
            if job.plan not in self._plans_given:
                self._guests.plan(plan[0], bytes(plan[1]))
                self._plans_given.add(job.plan)
            return self._guests.run(job.guest, bytes(plan[0]), job.phase, b"".join(job.message), shared), None
        except THEIRS as error:
            return None, error

    def _drop(self, link: int, task: int) -> None:
        """A task is needed no more; with -1, all of that link."""
        with self._station.lock:
            dropped = [guest for guest in self._guested if guest[0] == link and task in (guest[1], -1)]
            self._guested.difference_update(dropped)
        for guest in dropped:
            self._forget(guest)

    def _forget(self, guest: tuple[int, int]) -> None:
        try:
            if self._guests is not None:
                self._guests.drop(guest)
        except THEIRS:
            log.exception("worker %d could not drop a task", self.worker)

    # ----------------------------------------------------------------------------------------------------------
    # What guests and services use

    def count(self, activations: int, waves: int) -> None:
        """Say what a run has done, for the statistics of this worker."""
        with self._station.lock:
            self._machine.count(activations, waves)
            self._station.wake()

    def idle(self) -> int:
        """How many tasks could begin at once elsewhere, as the driver last said."""
        return self._machine.idle

    def link(self, key: bytes, plan: bytes) -> MemberLink | None:
        """A way to other workers for a task that runs here."""
        with self._station.lock:
            for number, (known, _) in self._machine.plans.items():
                if known == key:
                    link = self._machine.open_link(number, getattr(self._current, "link", 0))
                    self._station.wake()
                    return MemberLink(self._machine, self._station, link, number)
        return None

    def stream(self, number: int, among: Iterable[tuple[int, int]]) -> Stream:
        """Messages between workers, for one purpose. Numbers grow; `among` are (worker, incarnation) pairs."""
        return Stream(self._machine, self._station, number, tuple(among))

    def pipe(self, number: int, incarnation: int) -> Pipe:
        """Bytes to and from another process, for one purpose: a peer's, or DRIVER's."""
        return Pipe(self._machine, self._station, number, incarnation)

    def doors(self) -> Doors:
        """By which others come to this process, with the sockets of wires. They are closed when it ends."""
        doors = Doors(self._machine, self._station)
        self._doors.append(doors)
        return doors
