"""A worker of a pool that is a Ray actor: a member of the pool, with large values from Ray's object store."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from undertow.cluster.member import Member
from undertow.cluster.names import load
from undertow.cluster.station import Ticket
from undertow.ray.extra import network, the_ray

LOOPBACK = "tcp://127.0.0.1:"


class Actor:
    """One incarnation of a worker. Its methods run side by side, each in a thread of the actor's.

    `services` and `guests` name functions that take a `Member`: "module:name".
    """

    def __init__(self, services: str, guests: str) -> None:
        self._services, self._guests = services, guests
        self._member: Member | None = None
        self._is_there = threading.Event()

    def where(self) -> tuple[str, int, str]:
        """Node, process, and when that began."""
        return the_ray().get_runtime_context().get_node_id(), os.getpid(), birth_of(os.getpid())

    def run(self, ticket_bytes: bytes) -> str:
        """Serve, until it is over; why it ended."""
        ticket = Ticket.from_bytes(ticket_bytes)
        address = the_ray().util.get_node_ip_address()
        if not ticket.address.startswith(LOOPBACK):
            ticket = replace(ticket, listen=f"tcp://{address}:*")
        self._member = Member(ticket, network(), load(self._services), load(self._guests), place=address)
        self._is_there.set()
        return self._member.run()

    def place(self, number: int, value: Any) -> None:
        """A published value: an array in the memory of the node's object store, not a copy of it."""
        self._is_there.wait()
        if self._member is not None:
            self._member.place(number, memoryview(value))


def birth_of(process: int) -> str:
    """When a process of this machine began, as its system says it. OSError if there is none."""
    return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
