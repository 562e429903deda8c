"""Who is not expected, and what nobody should send: refused, counted, logged, and of no consequence.

Strangers get no further than the handshake. Malformed frames are sent with the keys of workers, and of the driver,
which no stranger has: what lies behind the handshake has to stand them, too.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from random import Random

import pytest
import zmq
from tests.support.spoiled_frames import PROTOCOLS, malformed
from tests.support.workloads import WORKLOADS

import undertow as ut
from undertow.cluster.pool import Pool
from undertow.cluster.process import ProcessLauncher
from undertow.cluster.roster import Times
from undertow.cluster.sockets import SocketNetwork
from undertow.cluster.station import Ticket

MALFORMED = 100_000
CONNECTIONS = 300  # of strangers
WORKERS = 2


class Spy(ProcessLauncher):
    """Keeps the tickets, with the keys."""

    def __init__(self) -> None:
        super().__init__("tests.support.adders:services", "tests.support.adders:Adders")
        self.tickets: list[Ticket] = []

    def start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        self.tickets.append(ticket)
        super().start(ticket, gone)


@pytest.fixture
def attacked() -> Iterator[tuple[Pool, Spy]]:
    """A pool, which must not lose anybody, whatever a test does."""
    launcher = Spy()
    with Pool(launcher, SocketNetwork(), WORKERS, times=Times(silence=20.0)).open(60.0) as pool:
        before = pool.workers()
        pool.call(0, "echo").result(10)  # then workers know of each other
        began = time.monotonic()
        yield pool, launcher
        assert pool.workers() == before and len(launcher.tickets) == WORKERS
        assert WORKLOADS["sums"].run(pool, 30) == WORKLOADS["sums"].expected(30)
        assert time.monotonic() - began < 300.0


def refused_of(pool: Pool, worker: int) -> int:
    return pool.stats()[worker].refused


def wait_for(count: Callable[[], int], wanted: int) -> int:
    """What it has become, when it has come so far."""
    end = time.monotonic() + 60.0
    while count() < wanted and time.monotonic() < end:
        threading.Event().wait(0.05)
    return count()


@pytest.mark.slow
def test_malformed_frames(attacked: tuple[Pool, Spy]) -> None:
    """A third each with a worker's key to the driver, with a peer's to a worker, and from the driver to a worker."""
    pool, launcher = attacked
    first, second = launcher.tickets
    chance = Random(1)
    share = MALFORMED // 3 + 1
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()

    def connected(kind: int, address: str, server_key: bytes) -> zmq.Socket[bytes]:
        way = context.socket(kind)
        way.curve_serverkey = server_key
        way.curve_publickey, way.curve_secretkey = second.keys.public, second.keys.secret
        way.sndtimeo = 60_000
        way.connect(address)
        return way

    def known_address(worker: int) -> str:
        return next(entry.address for entry in pool._machine.roster.ready() if entry.worker == worker)

    try:
        way = connected(zmq.DEALER, first.address, first.driver_key)
        for _ in range(share):
            way.send_multipart(malformed(second.session, second.worker, second.incarnation, chance), copy=False)
        assert wait_for(lambda: refused_of(pool, 1), share) == share

        peer = connected(zmq.PUSH, known_address(0), first.keys.public)
        for _ in range(share):
            peer.send_multipart(malformed(second.session, second.worker, second.incarnation, chance), copy=False)
        assert wait_for(lambda: refused_of(pool, 0), share) == share

        station = pool._station
        for number in range(share):
            parts = malformed(first.session, first.worker, first.incarnation, chance)
            with station.lock:
                station._door.send_multipart([station._routes[first.incarnation], *parts], copy=False)
            if number % 1000 == 999:  # it takes what it has room for, and drops the rest
                wait_for(lambda: refused_of(pool, 0), share + number + 1)
        assert wait_for(lambda: refused_of(pool, 0), 2 * share) == 2 * share
    finally:
        context.destroy(linger=0)


def test_frames_that_are_played_again(attacked: tuple[Pool, Spy]) -> None:
    """By whoever has a worker's key."""
    pool, launcher = attacked
    ticket = launcher.tickets[0]
    played: list[list[bytes]] = []
    receive = pool._machine.receive

    def listening(source: int, parts: list[bytes], now: float) -> None:
        if source == ticket.incarnation:
            played.append([bytes(part) for part in parts])
        receive(source, parts, now)

    pool._machine.receive = listening
    assert pool.call(0, "echo", b"abc").result(10) == [b"abc"]
    pool._machine.receive = receive
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    way = context.socket(zmq.DEALER)
    way.curve_serverkey = ticket.driver_key
    way.curve_publickey, way.curve_secretkey = ticket.keys.public, ticket.keys.secret
    way.connect(ticket.address)
    for parts in played * 100:
        way.send_multipart(parts)
    assert played and wait_for(lambda: refused_of(pool, 0), 100 * len(played)) == 100 * len(played)
    context.destroy(linger=0)


def test_strangers(attacked: tuple[Pool, Spy], caplog: pytest.LogCaptureFixture) -> None:
    """At the driver's door and at a worker's: other protocols, no key, a key that is not on the list."""
    pool, launcher = attacked
    caplog.set_level(logging.WARNING, "undertow.cluster")
    machine = pool._machine
    doors = [launcher.tickets[0].address, machine.roster.ready()[0].address]
    chance = Random(2)
    for address in doors:
        host, port = address.removeprefix("tcp://").split(":")
        for number in range(CONNECTIONS):
            with socket.create_connection((host, int(port)), timeout=10) as way, suppress(OSError):
                way.sendall(PROTOCOLS[number % len(PROTOCOLS)] + (os.urandom(100) if chance.random() < 0.3 else b""))
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        plain, unknown = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
        unknown.curve_serverkey = launcher.tickets[0].driver_key
        unknown.curve_publickey, unknown.curve_secretkey = zmq.curve_keypair()
        for way in (plain, unknown):
            way.sndtimeo = 1000
            way.connect(address)
            with suppress(zmq.Again):  # the door may have been shut by now
                way.send_multipart([b"let me in"])
        if address == doors[0]:
            assert wait_for(lambda: machine.refused, CONNECTIONS + 2) >= CONNECTIONS + 2
        else:
            assert wait_for(lambda: refused_of(pool, 0), CONNECTIONS + 2) >= CONNECTIONS + 2
        assert not plain.poll(0) and not unknown.poll(0)
        context.destroy(linger=0)
    assert any("a handshake that failed" in line for line in caplog.messages)
    assert len(caplog.messages) < 30  # however many there were


@pytest.mark.parametrize(
    ("listen", "what"),
    [
        ("tcp://0.0.0.0:*", "every address of this machine"),
        ("tcp://[::]:*", "every address of this machine"),
        ("tcp://*:*", "no address"),
        ("ipc:///tmp/somewhere", "no address"),
        ("tcp://127.0.0.1:70000", "no address"),
        ("tcp://192.0.2.1:*", "Cannot assign requested address"),
    ],
)
def test_where_it_listens_is_named(listen: str, what: str) -> None:
    with pytest.raises(ut.UndertowError, match=what) as caught:
        Pool(Spy(), SocketNetwork(), 1, listen=listen)
    assert "name an address of this machine" in caught.value.hint


def test_it_listens_there_and_nowhere_else(attacked: tuple[Pool, Spy]) -> None:
    """As the system sees it: this process and its workers have sockets at 127.0.0.1, and at no other address."""
    pool, _ = attacked
    processes = [os.getpid(), *(row.process for row in pool.stats())]
    inodes = set()
    for process in processes:
        for name in os.listdir(f"/proc/{process}/fd"):
            with suppress(OSError):
                inodes.add(os.readlink(f"/proc/{process}/fd/{name}").removeprefix("socket:[").removesuffix("]"))
    listening = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/net/{table}") as lines:
            rows = [line.split() for line in list(lines)[1:]]
        listening += [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]
    assert len(listening) == 1 + WORKERS
    assert {place.split(":")[0] for place in listening} == {"0100007F"}
