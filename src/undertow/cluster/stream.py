"""Messages between workers, for one purpose: the sums of one training step, say."""

from __future__ import annotations

from collections.abc import Iterable

from undertow.cluster.frames import Buffer, as_parts
from undertow.cluster.station import Station
from undertow.cluster.worker import Worker
from undertow.errors import WorkerLost


class Stream:
    """Its number is the same on all workers, and grows from stream to stream.

    `among` says who takes part, as (worker, incarnation) pairs. If any of these is lost, whoever waits for a message
    gets WorkerLost: what was begun with it cannot be finished.
    """

    def __init__(self, machine: Worker, station: Station, number: int, among: tuple[tuple[int, int], ...]) -> None:
        self.number = number
        self.among = among
        self._machine = machine
        self._station = station

    def send(self, peer: tuple[int, int], parts: Buffer | Iterable[Buffer]) -> None:
        """A message, of several parts perhaps. They are not copied: leave them as they are."""
        with self._station.lock:
            self._check()
            self._machine.send(peer[1], self.number, as_parts(parts))
            self._station.wake()

    def receive(self, peer: tuple[int, int], seconds: float | None = None) -> list[Buffer]:
        """The next message of a peer, in the order in which it was sent. TimeoutError if none has come in time."""
        machine, key = self._machine, (self.number, peer[1])
        with self._station.lock:

            def is_over() -> bool:
                return machine.is_ended or self._gone() is not None or self.number <= machine.closed_streams

            machine.busy(-1, self._station.now())
            try:
                has_come = self._station.wait(lambda: bool(machine.streams.get(key)) or is_over(), seconds)
            finally:
                machine.busy(+1, self._station.now())
            if machine.streams.get(key):
                return list(machine.streams[key].popleft())
            self._check()
            if not has_come:
                raise TimeoutError(f"nothing came from worker {peer[0]} in {seconds} s")
            raise WorkerLost(f"stream {self.number} is closed")

    def close(self) -> None:
        """Drop what has come and will come in this stream, and in all with smaller numbers."""
        with self._station.lock:
            self._machine.close_streams(self.number)
            self._station.wake()

    def _gone(self) -> tuple[int, int] | None:
        own = self._machine.ticket.incarnation
        for peer in self.among:
            if peer[1] != own and not self._machine.is_peer(peer[1]):
                return peer
        return None

    def _check(self) -> None:
        gone = self._gone()
        if self._machine.is_ended:
            raise WorkerLost(f"this worker has ended: {self._machine.why}")
        if gone is not None:
            raise WorkerLost(f"worker {gone[0]}, incarnation {gone[1]}, is gone")
