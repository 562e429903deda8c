"""Bytes to and fro between any two processes of a pool, by the messages that they exchange anyway: encrypted, in order.

A *pipe* has a number that both ends know. What comes before this end is opened waits; what comes for one that is closed
is dropped. Nobody bounds here how much is on its way: whoever writes has to.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from undertow.cluster.frames import Buffer, Message
from undertow.cluster.station import DRIVER, Station
from undertow.errors import WorkerLost


class Pipes:
    """What a machine keeps of its pipes."""

    def __init__(self) -> None:
        self.arrived: dict[tuple[int, int], deque[bytes]] = {}  # by number and incarnation
        self._closed = set[tuple[int, int]]()

    def put(self, source: int, message: Message) -> None:
        """A message has come. One without bytes says that the other end is closed."""
        key = message.fields[0], source
        if key not in self._closed:
            self.arrived.setdefault(key, deque()).append(b"".join(message.parts))

    def close(self, number: int, source: int) -> None:
        """Drop what has come, and what will."""
        self._closed.add((number, source))
        self.arrived.pop((number, source), None)

    def lose(self, source: int) -> None:
        """That incarnation is no more."""
        self.arrived = {key: data for key, data in self.arrived.items() if key[1] != source}
        self._closed = {key for key in self._closed if key[1] != source}

    def is_closed(self, number: int, source: int) -> bool:
        """Whether this end is."""
        return (number, source) in self._closed


class Ends(Protocol):
    """The machines: a driver's or a worker's."""

    pipes: Pipes

    def is_peer(self, incarnation: int) -> bool:
        """Whether it is there; DRIVER is the driver."""

    def send_pipe(self, incarnation: int, number: int, data: Buffer) -> None:
        """A message of a pipe."""


class Pipe:
    """One end. Its two directions may be used by two threads."""

    def __init__(self, machine: Ends, station: Station, number: int, peer: int) -> None:
        self.number, self.peer = number, peer
        self._machine, self._station = machine, station

    @property
    def is_lost(self) -> bool:
        """Whether the other process is no more. Holding the lock of the station."""
        return not self._machine.is_peer(self.peer)

    @property
    def has_come(self) -> bool:
        """Whether there is something to receive. Holding that lock."""
        return bool(self._machine.pipes.arrived.get((self.number, self.peer)))

    def send(self, data: Buffer) -> None:
        """Some bytes, which are not copied."""
        with self._station.lock:
            self._check()
            self._machine.send_pipe(self.peer, self.number, data)
            self._station.wake()

    def receive(self, seconds: float | None = None) -> bytes:
        """What has come next; b"" at the end. WorkerLost if nothing will, TimeoutError if nothing has in time."""
        with self._station.lock:
            if not self._station.wait(lambda: self.has_come or self.is_lost or self._is_closed(), seconds):
                raise TimeoutError(f"nothing came in {seconds} s")
            if self.has_come:
                return self._machine.pipes.arrived[self.number, self.peer].popleft()
            self._check()
            return b""

    def close(self) -> None:
        """Say so to the other end."""
        with self._station.lock:
            if not self._is_closed():
                if not self.is_lost:
                    self._machine.send_pipe(self.peer, self.number, b"")
                self._machine.pipes.close(self.number, self.peer)
                self._station.wake()

    def _is_closed(self) -> bool:
        return self._machine.pipes.is_closed(self.number, self.peer)

    def _check(self) -> None:
        if self.is_lost:
            name = "the driver" if self.peer == DRIVER else f"incarnation {self.peer}"
            raise WorkerLost(f"{name} is gone")
