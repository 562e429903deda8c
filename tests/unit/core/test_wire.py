"""Wires: batches between parts, over socket pairs of this process."""

from __future__ import annotations

import os
import random
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from undertow._core import Wire, WireLost, WireStopped

HEAD = struct.Struct("=QQ")
BATCH, CREDIT = 0xB5 << 56, 0xC5 << 56
LONG = 20.0  # seconds: a test that waits so long waits for what never comes


def wires(parts: int, stop: int = -1, window: int = 8 << 20) -> list[Wire]:
    """Each connected to all others, through sockets of this system."""
    sockets = [[-1] * parts for _ in range(parts)]
    for one in range(parts):
        for other in range(one):
            ends = socket.socketpair()
            sockets[one][other], sockets[other][one] = (end.detach() for end in ends)
    return [Wire(row, stop, window) for row in sockets]


@pytest.fixture
def two() -> Iterator[tuple[Wire, Wire]]:
    one, other = wires(2)
    yield one, other
    one.close()
    other.close()


def half(window: int = 8 << 20) -> tuple[Wire, socket.socket]:
    """A wire to part 1, and what part 1 would have."""
    mine, theirs = socket.socketpair()
    theirs.settimeout(LONG)
    return Wire([-1, mine.detach()], -1, window), theirs


def frame(body: bytes, credit: int = 0) -> bytes:
    return HEAD.pack(BATCH | len(body), credit) + body


def take_all(wire: Wire, size: int, while_waiting: Callable[[], object] | None = None) -> dict[int, bytes]:
    """What comes from each part, until there are so many bytes."""
    came: dict[int, list[bytes]] = {}
    there = 0
    end = time.monotonic() + LONG
    while there < size:
        assert time.monotonic() < end
        for part, batch in wire.take(1.0 if while_waiting is None else 0.0):
            came.setdefault(part, []).append(batch)
            there += len(batch)
        if while_waiting is not None:
            while_waiting()
    return {part: b"".join(batches) for part, batches in came.items()}


def test_batches_go_when_they_are_told_to(two: tuple[Wire, Wire]) -> None:
    one, other = two
    assert one.is_sent
    one.send(1, b"abc")
    one.send(1, memoryview(b"de"))
    assert not one.is_sent and other.take(0.0) == []
    one.flush()
    assert one.is_sent and other.take(LONG) == [(0, b"abcde")]
    one.flush()
    assert other.take(0.0) == []
    assert one.counts() == [(0, 0, 0, 0), (1, 5, 0, 0)] and other.counts() == [(0, 0, 1, 5), (0, 0, 0, 0)]


def test_large_batches_go_by_themselves(two: tuple[Wire, Wire]) -> None:
    """What is added at once stays in one batch."""
    one, other = two
    row = os.urandom(1000)
    for _ in range(100):
        one.send(1, row)
    ((part, batch),) = other.take(LONG)
    assert part == 0 and batch == row * 66
    one.flush()
    assert other.take(LONG) == [(0, row * 34)]


def test_a_part_without_connection(two: tuple[Wire, Wire]) -> None:
    for part in (0, 2, -1):
        with pytest.raises(ValueError, match=f"no connection to part {part}"):
            two[0].send(part, b"abc")
    with pytest.raises(ValueError, match="a window has one byte or more"):
        Wire([], -1, 0)


def talk(
    wire: Wire, own: int, plan: dict[tuple[int, int], list[int]], data: memoryview, ends: threading.Barrier
) -> None:
    """Send what the plan says, each row of it whole, and take what it says that others send."""
    chance = random.Random(own)
    mine = {to: list(sizes) for (source, to), sizes in plan.items() if source == own}
    expected = {source: list(sizes) for (source, to), sizes in plan.items() if to == own}
    came: dict[int, list[bytes]] = {source: [] for source in expected}
    missing = sum(map(sum, expected.values()))
    end = time.monotonic() + LONG
    while missing or any(mine.values()) or not wire.is_sent:
        assert time.monotonic() < end
        rest = [to for to in mine if mine[to]]
        if rest:
            to = chance.choice(rest)
            size = mine[to].pop(0)
            wire.send(to, data[size % 1000 : size % 1000 + size])
            if chance.random() < 0.5 or not any(mine.values()):
                wire.flush()
        for source, batch in wire.take(0.0 if rest else 1.0):
            came[source].append(batch)
            missing -= len(batch)
    for source, sizes in expected.items():
        assert b"".join(came[source]) == b"".join(data[size % 1000 : size % 1000 + size] for size in sizes)
    ends.wait(LONG)  # nobody goes before all have what they wait for
    wire.close()


@pytest.mark.parametrize(
    ("seed", "parts", "most", "window"),
    [
        (0, 2, 1 << 10, 8 << 20),
        (1, 2, 1 << 20, 8 << 20),
        (2, 3, 1 << 10, 1 << 10),
        (3, 3, 1 << 20, 1 << 18),
        (4, 3, 1 << 16, 1),
        (5, 2, 50 << 20, 8 << 20),
        (6, 4, 3 << 20, 1 << 20),
    ],
)
def test_all_send_and_take_at_once(seed: int, parts: int, most: int, window: int) -> None:
    """More than all buffers hold: each takes while it waits until it can send."""
    chance = random.Random(seed)
    data = memoryview(chance.randbytes(1 << 16) * ((most >> 16) + 2))
    count = 4 if most > 10 << 20 else 60
    plan = {
        (one, other): [int(most ** chance.random()) if k else most for k in range(count)] + [0]
        for one in range(parts)
        for other in range(parts)
        if one != other
    }
    ends = threading.Barrier(parts)
    with ThreadPoolExecutor(parts) as threads:
        talks = [
            threads.submit(talk, wire, own, plan, data, ends) for own, wire in enumerate(wires(parts, window=window))
        ]
        for ended in talks:
            ended.result()


def test_a_million_tiny_messages(two: tuple[Wire, Wire]) -> None:
    one, other = two
    count = 1_000_000

    def send() -> None:
        for number in range(count):
            one.send(1, number.to_bytes(4, "little"))
            while one.is_full:
                assert one.take(LONG) == []
        one.flush()
        while not one.is_sent:
            assert one.take(LONG) == []

    with ThreadPoolExecutor(1) as thread:
        sending = thread.submit(send)
        came = take_all(other, 4 * count)[0]
        while other.take(0.0):  # what it owes goes
            raise AssertionError
        sending.result()
    assert came == b"".join(number.to_bytes(4, "little") for number in range(count))


def test_who_does_not_take_is_sent_no_more() -> None:
    """What waits for it stays with the sender, who knows that it is full; then all comes."""
    window = 1 << 20
    one, other = wires(2, window=window)
    row = os.urandom(1 << 14)
    rows = 0
    while not one.is_full:
        one.send(1, row)
        rows += 1
        assert one.take(0.0) == []
        assert rows < 1000
    assert rows == window // len(row)
    for _ in range(1000):  # more than it should make
        one.send(1, row)
        one.take(0.0)
    rows += 1000
    one.flush()
    assert one.is_full and not one.is_sent
    assert one.take(0.01) == []  # it waits
    came = take_all(other, rows * len(row), while_waiting=lambda: one.take(0.0))
    assert came == {0: row * rows} and not one.is_full and one.is_sent
    one.close()
    other.close()


def test_waiting_ends_with_credit() -> None:
    """Who is full waits until it is so no more, though nothing comes."""
    one, other = wires(2, window=1 << 12)
    one.send(1, bytes(1 << 12))
    one.flush()
    assert one.is_full
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(one.take, LONG)
        assert other.take(LONG) == [(0, bytes(1 << 12))]
        began = time.monotonic()
        assert waiting.result() == [] and not one.is_full
    assert time.monotonic() - began < LONG / 2
    one.close()
    other.close()


def test_memory_does_not_grow() -> None:
    """However much goes through."""
    one, other = wires(2, window=1 << 20)
    row = bytes(1 << 20)
    most = 0
    for turn in range(300):
        one.send(1, row)
        one.flush()
        while not one.is_sent or one.is_full:
            one.take(0.0)
            other.take(0.0)
        if turn == 30:
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < most + 8 * 1024
    one.close()
    other.close()


def test_one_batch_that_is_larger_than_the_window() -> None:
    one, other = wires(2, window=1 << 10)
    large = os.urandom(10 << 20)
    one.send(1, b"first")
    one.flush()
    one.send(1, large)
    one.flush()
    one.send(1, b"last")
    one.flush()
    assert take_all(other, len(large) + 9, while_waiting=lambda: one.take(0.0)) == {0: b"first" + large + b"last"}
    one.close()
    other.close()


def test_stop() -> None:
    stop = os.eventfd(0)
    one, _other = wires(2, stop)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(one.take, LONG)
        os.eventfd_write(stop, 1)
        with pytest.raises(WireStopped):
            waiting.result()
    with pytest.raises(WireStopped):
        one.take(0.0)
    os.eventfd_read(stop)
    assert one.take(0.0) == []
    one.close()
    os.fstat(stop)  # it is not the wire's
    os.close(stop)


def test_a_part_that_is_lost() -> None:
    """What it has sent comes first; who it was is said, as often as one asks."""
    first, second, third = wires(3)
    second.send(0, b"a last word")
    second.flush()
    second.close()
    assert first.take(LONG) == [(1, b"a last word")]
    for _ in range(2):
        with pytest.raises(WireLost) as caught:
            first.take(LONG)
        assert caught.value.args == (1,)
    first.send(1, bytes(1 << 20))
    first.flush()
    third.send(1, bytes(1 << 20))  # it does not know yet
    third.flush()
    with pytest.raises(WireLost) as caught:
        third.take(LONG)
    assert caught.value.args == (1,)
    first.close()
    third.close()


def test_sockets_are_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    one, other = wires(2)
    one.send(1, b"abc")
    one.close()
    one.close()
    with pytest.raises(ValueError, match="this wire is closed"):
        one.take(0.0)
    del other
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("size", [1, 15, 16, 17, 1000, 300_000])
def test_frames_in_pieces(size: int) -> None:
    """However they are cut on their way."""
    wire, theirs = half()
    bodies = [b"a", os.urandom(5000), b"bc", os.urandom(400_000), b"d"]
    data = b"".join(map(frame, bodies))[: 40_000 if size < 1000 else None]
    came: list[bytes] = []
    for at in range(0, len(data), size):
        rest = data[at : at + size]
        while rest:
            rest = rest[theirs.send(rest) :]
            came += [batch for _, batch in wire.take(0.0)]
    if size < 1000:
        assert came == bodies[:3]
        theirs.close()
        with pytest.raises(WireLost):  # in the middle of a frame
            wire.take(LONG)
    else:
        while len(came) < 5:
            came += [batch for _, batch in wire.take(LONG)]
        assert came == bodies
        theirs.close()
    wire.close()


def test_what_is_written() -> None:
    """Frames, and credit: a quarter of the window, or with a batch."""
    wire, theirs = half(window=1000)
    theirs.sendall(frame(bytes(100)))
    assert wire.take(LONG) == [(1, bytes(100))]
    wire.send(1, b"abc")
    wire.flush()
    assert theirs.recv(1000) == frame(b"abc", 100)
    theirs.sendall(frame(bytes(250), 3))
    assert wire.take(LONG) == [(1, bytes(250))]
    assert theirs.recv(1000) == HEAD.pack(CREDIT, 250)
    wire.close()
    assert theirs.recv(1) == b""
    theirs.close()


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        bytes(16),
        HEAD.pack(BATCH, 0),  # no bytes
        HEAD.pack(BATCH | (1 << 41), 0),
        HEAD.pack(CREDIT, 0),
        HEAD.pack(CREDIT | 1, 1),
        HEAD.pack(CREDIT, 1),  # for what was never sent
        HEAD.pack(CREDIT, 1 << 63),
        HEAD.pack((0xB6 << 56) | 1, 0) + b"x",
        frame(b"well") + HEAD.pack(7, 7),
    ],
)
def test_garbage(data: bytes) -> None:
    wire, theirs = half()
    theirs.sendall(data)
    for _ in range(2):
        with pytest.raises(ValueError, match="part 1 has sent what makes no sense"):
            wire.take(LONG)
    wire.close()
    theirs.close()


@pytest.mark.parametrize("seed", range(100))
def test_random_garbage(seed: int) -> None:
    """It is refused, or it happens to be frames, or one that never ends; nothing worse."""
    chance = random.Random(seed)
    wire, theirs = half()
    wire.send(1, bytes(1000))
    wire.flush()
    heads = (BATCH | chance.randrange(1 << 12), CREDIT, chance.getrandbits(64), BATCH | chance.getrandbits(41))
    for _ in range(5):
        theirs.sendall(HEAD.pack(chance.choice(heads), chance.choice((0, 1, 100, chance.getrandbits(64)))))
        theirs.sendall(chance.randbytes(chance.randrange(1 << 12)))
    theirs.close()
    with pytest.raises((ValueError, WireLost)):
        take_all(wire, 1 << 50)
    wire.close()


def test_a_length_is_believed_as_far_as_bytes_come() -> None:
    """Who names a terabyte does not get it."""
    wire, theirs = half()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    theirs.sendall(HEAD.pack(BATCH | (1 << 40), 0) + b"and little else")
    assert wire.take(0.0) == []
    theirs.close()
    with pytest.raises(WireLost):
        wire.take(LONG)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 16 * 1024
    wire.close()


@pytest.mark.parametrize("size", [1 << 16, 300_001, 9 << 20])
def test_large_rows_go_from_where_they_are(two: tuple[Wire, Wire], size: int) -> None:
    """The batch before them, theirs, and that after them."""
    one, other = two
    row = os.urandom(size)
    one.send(1, b"before")
    with ThreadPoolExecutor(1) as pool:
        poured = pool.submit(one.pour, 1, row, 3)
        came = take_all(other, 6 + 3 * size)
        poured.result(LONG)
    one.send(1, b"after")
    one.flush()
    assert came == {0: b"before" + 3 * row} and other.take(LONG) == [(0, b"after")]
    assert one.counts()[1][1] == other.counts()[0][3] == 6 + 3 * size + 5


def test_what_was_lent_goes_no_more_once_its_owner_has_it_back() -> None:
    """Somebody who does not take is lost, while a row that was lent has gone in part: nothing of it is sent later."""
    stop, stopper = os.pipe()
    mine, theirs = socket.socketpair()
    wire = Wire([-1, mine.detach()], stop)
    with ThreadPoolExecutor(1) as pool:
        poured = pool.submit(wire.pour, 1, bytes(8 << 20), 4)
        theirs.recv(1 << 10)  # it has begun
        os.write(stopper, b"!")
        with pytest.raises(WireStopped):
            poured.result(LONG)
    os.read(stop, 1)
    while _has_more(theirs):
        theirs.recv(1 << 20)
    wire.send(1, b"more")
    wire.flush()
    with pytest.raises(WireLost):
        wire.take(LONG)
    assert not _has_more(theirs)
    wire.close()
    theirs.close()
    os.close(stop)
    os.close(stopper)


def _has_more(end: socket.socket) -> bool:
    try:
        return bool(end.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK))
    except BlockingIOError:
        return False


@pytest.mark.parametrize("size", [(5 << 16) - 15, 1 << 19])
def test_what_follows_a_long_batch_comes_with_its_rest(size: int) -> None:
    """Longer than what is read at once; and whatever is there then is taken, too, in order."""
    wire, theirs = half()
    long = os.urandom(size)
    sent = frame(long) + frame(b"a") + frame(b"bc") + frame(long[:70_000]) + frame(b"d")
    with ThreadPoolExecutor(1) as pool:
        sending = pool.submit(theirs.sendall, sent)
        came = take_all(wire, size + 70_004)
        sending.result(LONG)
    assert came == {1: long + b"abc" + long[:70_000] + b"d"}
    wire.close()
    theirs.close()
