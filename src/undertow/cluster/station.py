"""What drives the two ends: protocols.

A *machine* is one end as states and events. A *station* owns the sockets and the clock: it hands frames and the time to
its machine, and does what the machine wants done. Activities (threads that wait for something to happen in a machine)
hold `lock` while they look at it, and call `wake` when they have given it something to do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from undertow.cluster.frames import Buffer
from undertow.cluster.roster import Times

DRIVER = 0  # the driver, where a number of an incarnation is asked for
STRANGER = -1  # nobody whom we know, likewise


@dataclass(frozen=True, slots=True)
class Keys:
    """A pair of keys, as text of 40 characters each."""

    public: bytes
    secret: bytes


@dataclass(frozen=True, slots=True)
class Ticket:
    """What a worker must know to join. It has a secret key: hand it over on a private way."""

    address: str  # of the driver
    driver_key: bytes
    session: bytes
    worker: int
    incarnation: int
    keys: Keys
    listen: str  # where it listens to other workers
    times: Times

    def to_bytes(self) -> bytes:
        """For a pipe, or an actor's argument."""
        row = asdict(self)
        return json.dumps(row, default=lambda value: value.hex()).encode()

    @staticmethod
    def from_bytes(data: bytes) -> Ticket:
        """What `to_bytes` wrote."""
        row: dict[str, Any] = json.loads(data)
        keys = Keys(*(bytes.fromhex(row["keys"][name]) for name in ("public", "secret")))
        known = {"driver_key": bytes.fromhex(row["driver_key"]), "session": bytes.fromhex(row["session"])}
        return Ticket(**{**row, **known, "keys": keys, "times": Times(**row["times"])})


# --------------------------------------------------------------------------------------------------------------
# What machines want done


@dataclass(frozen=True, slots=True)
class Send:
    """Parts for an incarnation, or for the driver."""

    to: int
    parts: list[Buffer]


@dataclass(frozen=True, slots=True)
class Admit:
    """Take connections with that key, and connect to that address, if there is one, to send to it."""

    incarnation: int
    key: bytes
    address: str = ""


@dataclass(frozen=True, slots=True)
class Forget:
    """Neither listen to it any more nor send to it."""

    incarnation: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start that incarnation."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Finish:
    """Make sure that it is no more."""

    worker: int
    incarnation: int


@dataclass(frozen=True, slots=True)
class Lost:
    """News: an incarnation is lost."""

    worker: int
    incarnation: int
    why: str


@dataclass(frozen=True, slots=True)
class Carry:
    """Take that value to it by the launcher's own way."""

    worker: int
    incarnation: int
    number: int


Action = Send | Admit | Forget | Start | Finish | Lost | Carry


class Machine(Protocol):
    """One end, as states and events."""

    def receive(self, source: int, parts: Sequence[Buffer], now: float) -> None:
        """Parts have come from an incarnation that has shown its key, or from the driver."""

    def refuse(self, source: int, why: str) -> None:
        """Something has come that is nothing of ours: count it, and go on."""

    def tick(self, now: float) -> None:
        """Some time has passed."""

    def actions(self) -> list[Action]:
        """What is to be done now, each once."""


class Station(Protocol):
    """What drives a machine."""

    @property
    def address(self) -> str:
        """Where it listens."""

    @property
    def lock(self) -> AbstractContextManager[object]:
        """Held by whoever looks at the machine."""

    def now(self) -> float:
        """The time, in seconds from some moment on."""

    def run(self) -> None:
        """Begin."""

    def wake(self) -> None:
        """The machine has something to do. Holding `lock`."""

    def wait(self, until: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until something is true of the machine, or for so long; whether it is. Gives up `lock` meanwhile."""

    def spawn(self, work: Callable[[], None]) -> None:
        """Do this beside all else."""

    def close(self) -> None:
        """End, when all that was to be sent is sent."""


class Network(Protocol):
    """Makes stations that reach each other."""

    def keys(self) -> Keys:
        """A new pair."""

    def driver(self, machine: Machine, keys: Keys, listen: str, perform: Callable[[Action], None]) -> Station:
        """A station that workers connect to. `perform` does what is no matter of the network."""

    def worker(self, machine: Machine, ticket: Ticket) -> Station:
        """A station that connects to the driver, and listens to other workers."""


class Launcher(Protocol):
    """Starts and ends workers. Methods are called by one thread, one after the other: none may take long."""

    def start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        """Start a worker. It calls `gone` if it learns that the worker has ended, with a word on why, from any thread.

        An exception means that this worker cannot be started. One that is late is no error.
        """

    def end(self, worker: int, incarnation: int) -> None:
        """Make sure that it is no more; it may have ended long ago, or be about to."""

    def close(self) -> None:
        """Wait until all that were started are no more."""


class Carrier(Protocol):
    """What a launcher may have, too: a way of its own for large values. A worker gets them by `Member.place`."""

    def publish(self, number: int, data: Buffer) -> bool:
        """Keep a value, if it is worth that. Called by the thread of whoever publishes."""

    def carry(self, worker: int, incarnation: int, number: int) -> None:
        """Take it to that worker. It may be there already."""

    def forget(self, number: int) -> None:
        """Nobody needs it any more."""
