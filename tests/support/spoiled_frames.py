"""Frames as nobody should send them: real ones, spoiled, and what speaks other protocols."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from random import Random

from undertow.cluster.frames import (
    COUNTERS,
    BadFrame,
    Frame,
    Kind,
    Message,
    Peer,
    decode,
    encode,
    encode_numbers,
    encode_peers,
)
from undertow.cluster.pieces import join

# One message of every kind, as each is really sent.
MESSAGES = (
    Message(Kind.BEAT, (), (COUNTERS.pack(*range(8)),)),
    Message(Kind.BEAT),
    Message(Kind.END),
    Message(Kind.HELLO, (4711,), (b"tcp://127.0.0.1:5000", b"here")),
    Message(Kind.PEERS, (3,), (encode_peers([Peer(0, 1, b"k" * 40, "tcp://127.0.0.1:1")]),)),
    Message(Kind.PLAN, (1,), (b"key", b"plan")),
    Message(Kind.VALUE, (2, 3, 0), (b"value",)),
    Message(Kind.RUN, (2, 5, 0, 1), (encode_numbers([3]), b"message")),
    Message(Kind.REPLY, (2, 5, 0, 17), (b"reply",)),
    Message(Kind.FAILED, (2, 5, 0, 17), (b"ValueError", b"what", b"hint")),
    Message(Kind.DROP, (2, 5)),
    Message(Kind.CLOSE, (2,)),
    Message(Kind.CALL, (9,), (b"echo", b"argument")),
    Message(Kind.RESULT, (9, 17), (b"result",)),
    Message(Kind.ERROR, (9, 17), (b"ValueError", b"what", b"")),
    Message(Kind.PEER, (1,), (b"part", b"part")),
    Message(Kind.OPEN, (1 << 32, 1, 2)),
    Message(Kind.PIPE, (1,), (b"bytes",)),
)

# How other programs begin to talk.
PROTOCOLS = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),  # TLS
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",  # as gRPC does
    b"*1\r\n$4\r\nPING\r\n",  # Redis
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + bytes(48),  # ZMTP, without encryption
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00CURVE" + bytes(47) + b"\x06\xff" + b"\xff" * 8,  # a giant command
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00CURVE" + bytes(47) + b"\x04\xc8\x05HELLO" + bytes(194),
    b"",
)


def spoiled(parts: Sequence[bytes], chance: Random) -> list[bytes]:
    """A frame, changed in one way or in several. It may be a frame still."""
    changed = list(parts)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        changed = chance.choice(WAYS)(changed, chance) or [b""]
    return changed


def sometimes(many: int, chance: Random) -> int:
    """Large ones take long: a few are enough."""
    return many if chance.random() < 0.005 else 0


def _flip(parts: list[bytes], chance: Random) -> list[bytes]:
    number = chance.randrange(len(parts))
    data = bytearray(parts[number] or b"\0")
    for _ in range(chance.choice((1, 1, 8))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return [*parts[:number], bytes(data), *parts[number + 1 :]]


def _cut(parts: list[bytes], chance: Random) -> list[bytes]:
    number = chance.randrange(len(parts))
    data = parts[number]
    return [*parts[:number], data[: chance.randrange(len(data) + 1)], *parts[number + 1 :]]


def _lengthen(parts: list[bytes], chance: Random) -> list[bytes]:
    number = chance.randrange(len(parts))
    more = chance.randbytes(sometimes(70_000, chance) or chance.choice((1, 8)))
    return [*parts[:number], parts[number] + more, *parts[number + 1 :]]


def _number(parts: list[bytes], chance: Random) -> list[bytes]:
    """A field of the header, or behind it, is a giant."""
    giant = struct.pack("!Q", chance.choice((0, 1 << 32, 1 << 63, (1 << 64) - 1)))
    at = chance.randrange(8, max(len(parts[0]) - 7, 9))
    return [parts[0][:at] + giant + parts[0][at + 8 :], *parts[1:]]


def _other_session(parts: list[bytes], chance: Random) -> list[bytes]:
    return [parts[0][:8] + chance.randbytes(16) + parts[0][24:], *parts[1:]]


def _parts(parts: list[bytes], chance: Random) -> list[bytes]:
    """Some are missing, there twice, or in another order."""
    return [chance.choice(parts) for _ in range(sometimes(5000, chance) or chance.randrange(len(parts) + 2))]


def _protocol(parts: list[bytes], chance: Random) -> list[bytes]:
    return [chance.choice(PROTOCOLS)]


def _noise(parts: list[bytes], chance: Random) -> list[bytes]:
    return [chance.randbytes(chance.randrange(200)) for _ in range(chance.randrange(4))]


def _pieces(parts: list[bytes], chance: Random) -> list[bytes]:
    """As if it had been cut into pieces, of which there are not so many."""
    counts = [chance.choice((0, 1, 2, 1 << 31)) for _ in range(chance.randrange(4))]
    return [b"UTcut" + struct.pack(f"!{len(counts)}I", *counts), *parts]


WAYS = (_flip, _flip, _cut, _lengthen, _number, _other_session, _parts, _protocol, _noise, _pieces)


def is_malformed(parts: Sequence[bytes], session: bytes, worker: int, incarnation: int) -> bool:
    """Whether nobody can have said that: else it is a frame of that incarnation, though it was spoiled."""
    try:
        frame = decode(join(parts), session)
    except BadFrame:
        return True
    return (frame.worker, frame.incarnation) != (worker, incarnation)


def malformed(session: bytes, worker: int, incarnation: int, chance: Random) -> list[bytes]:
    """A frame that must be refused."""
    while True:
        numbers = chance.randrange(1, 100), 100, 0, 0, chance.random() < 0.5
        frame = Frame(session, worker, incarnation, *numbers, chance.choice(MESSAGES))
        parts = spoiled([bytes(part) for part in encode(frame)], chance)
        if is_malformed(parts, session, worker, incarnation):
            return parts
