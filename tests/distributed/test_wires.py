"""Wires between processes of this machine: through doors, and over bridges."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.wired import PATIENCE, converse

import undertow as ut
from undertow._core import Wire, WireLost
from undertow.cluster.local import open_pool
from undertow.cluster.pool import Pool
from undertow.cluster.roster import Times
from undertow.cluster.wires import SECRET, Doors, Place

WORKERS = 2


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    logs = tmp_path_factory.mktemp("logs")
    with open_pool(WORKERS, "tests.support.wired:services", times=Times(silence=20.0), logs=logs) as pool:
        yield pool


@pytest.fixture
def doors(pool: Pool) -> Iterator[Doors]:
    doors = pool.doors()
    yield doors
    doors.close()
    for worker in range(WORKERS):
        pool.call(worker, "drop").result(PATIENCE)
    assert until(lambda: not threads())


def threads() -> list[str]:
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name in ("undertow door", "undertow bridge")]


def until(is_so: Callable[[], bool]) -> bool:
    """Whether it comes to be so."""
    end = time.monotonic() + PATIENCE
    while not is_so() and time.monotonic() < end:
        threading.Event().wait(0.01)
    return is_so()


def places(pool: Pool, doors: Doors) -> list[Place]:
    found = [Place(doors.address)]
    for peer in pool.workers():
        found.append(Place.of_worker(bytes(pool.call(peer[0], "address").result(PATIENCE)[0]).decode(), peer))
    return found


def begin(pool: Pool, among: list[Place], secret: bytes, **options: Any) -> list[Any]:
    rows = [[place.address, place.incarnation, place.name] for place in among]
    return [
        pool.call(
            part - 1,
            "wire",
            json.dumps({"among": rows, "own": part, "secret": secret.hex(), "options": options}).encode(),
        )
        for part in range(1, len(among))
    ]


def connect(pool: Pool, doors: Doors, bridged: bool, **options: Any) -> Wire:
    secret = os.urandom(SECRET)
    among = places(pool, doors)
    calls = begin(pool, among, secret, bridged=bridged, **options)
    wire = doors.wire(among, 0, secret, bridged=bridged, **options)
    for call in calls:
        call.result(PATIENCE)
    return wire


@pytest.mark.parametrize("bridged", [False, True])
@pytest.mark.parametrize(("size", "window"), [(100, 8 << 20), (1 << 20, 8 << 20), (3 << 20, 1 << 16)])
def test_all_parts_talk(pool: Pool, doors: Doors, bridged: bool, size: int, window: int) -> None:
    """Twice over the same wire. What goes over a bridge is known to the pool."""
    before = sum(row.sent for row in pool.stats())
    wire = connect(pool, doors, bridged, window=window)
    assert ("undertow bridge" in threads()) == bridged
    for seed in (1, 2):
        calls = [
            pool.call(part - 1, "converse", json.dumps([part, WORKERS + 1, seed, size]).encode())
            for part in range(1, WORKERS + 1)
        ]
        converse(wire, 0, WORKERS + 1, seed, size)
        theirs = [json.loads(bytes(call.result(PATIENCE)[0])) for call in calls]
        for part, counts in enumerate(theirs, 1):
            sent, sent_bytes, taken, taken_bytes = wire.counts()[part]
            assert counts[0] == [taken, taken_bytes, sent, sent_bytes]
    wire.close()
    if bridged:
        assert until(lambda: sum(row.sent for row in pool.stats()) - before > 4 * size)


@pytest.mark.parametrize("bridged", [False, True])
def test_a_part_that_closes_its_end(pool: Pool, doors: Doors, bridged: bool) -> None:
    wire = connect(pool, doors, bridged)
    pool.call(0, "drop").result(PATIENCE)
    with pytest.raises(WireLost) as caught:
        wire.take(PATIENCE)
    assert caught.value.args == (1,)
    wire.close()
    assert until(lambda: threads() == ["undertow door"])


@pytest.mark.parametrize("bridged", [False, True])
def test_a_process_that_is_killed(bridged: bool, tmp_path: Path) -> None:
    """The wire is lost at once, and nothing is left."""
    before = len(os.listdir("/proc/self/fd"))
    with open_pool(WORKERS, "tests.support.wired:services", times=Times(silence=20.0), logs=tmp_path) as pool:
        doors = pool.doors()
        among = places(pool, doors)
        wire = connect(pool, doors, bridged)
        os.kill(pool.stats()[1].process, 9)
        with pytest.raises(WireLost) as caught:
            wire.take(PATIENCE)
        assert caught.value.args == (2,)
        wire.close()
        secret = os.urandom(SECRET)
        with pytest.raises(ut.WorkerLost, match="worker 1"):
            doors.wire(among, 0, secret, bridged=bridged)
        doors.close()
        doors.close()
        with pytest.raises(ut.UndertowError, match="these doors are closed"):
            doors.wire(among, 0, secret)
    assert not threads()
    assert until(lambda: len(os.listdir("/proc/self/fd")) <= before + 1)
    assert not [line for line in Path("/proc/net/unix").read_text().splitlines() if among[0].address in line]
    assert not [line for line in Path("/proc/net/unix").read_text().splitlines() if among[2].address in line]


def test_who_does_not_come(pool: Pool, doors: Doors) -> None:
    with pytest.raises(TimeoutError, match="worker 0 has not come in time"):
        doors.wire(places(pool, doors), 0, os.urandom(SECRET), seconds=0.2)
    with pytest.raises(ut.UndertowError, match="a secret of 3 bytes"):
        doors.wire(places(pool, doors), 0, b"abc")


def test_another_secret(pool: Pool, doors: Doors) -> None:
    """Who has another one stays outside; neither end gets a wire."""
    among = places(pool, doors)
    calls = begin(pool, among, os.urandom(SECRET), seconds=0.5)
    with pytest.raises(TimeoutError, match="worker 0 has not come in time"):
        doors.wire(among, 0, os.urandom(SECRET), seconds=0.5)
    for call in calls:
        with pytest.raises(ut.UndertowError, match=r"has not (opened|come) in time"):
            call.result(PATIENCE)


@pytest.mark.parametrize("says", [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n ", b"", b"UTwi" + bytes(32), bytes(1000)])
def test_strangers_at_the_door(pool: Pool, doors: Doors, says: bytes) -> None:
    """They hold nobody up, and get no answer."""
    guests = []
    for _ in range(3):
        guest = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        guest.connect("\0" + doors.address)
        guest.sendall(says)
        guests.append(guest)
        if not says:
            guest.close()
    wire = connect(pool, doors, False)
    calls = [pool.call(part - 1, "converse", json.dumps([part, 3, 1, 10]).encode()) for part in (1, 2)]
    converse(wire, 0, 3, 1, 10)
    for call in calls:
        call.result(PATIENCE)
    wire.close()
    doors.close()
    for guest in guests:
        if says:
            guest.settimeout(PATIENCE)
            with contextlib.suppress(ConnectionResetError):
                assert guest.recv(100) == b""
            guest.close()
