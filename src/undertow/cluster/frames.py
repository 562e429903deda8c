"""What is sent: a header of fixed size, the fields of its kind, and parts.

What does not fit is refused; nothing is unpickled.

>>> frame = Frame(bytes(16), worker=1, incarnation=7, number=3, sent=3, heard=2, note=0, asks=False,
...               message=Message(Kind.CALL, (5,), (b"step", b"data")))
>>> decode(encode(frame), bytes(16)) == frame
True
>>> decode([b"GET / HTTP/1.1"], bytes(16))
Traceback (most recent call last):
undertow.cluster.frames.BadFrame: 14 bytes are no header
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum

Buffer = bytes | bytearray | memoryview

MAGIC = b"UTow"
VERSION = 1
SESSION = 16  # bytes
MOST_PARTS = 4096

# Magic, version, kind, flags, session, worker, incarnation, number, sent, heard, note.
_HEADER = struct.Struct("!4sBBH16sIQQQQI")
COUNTERS = struct.Struct("!8Q")
_ASKS = 1  # flag: something is missing here; send again what has not been heard


class BadFrame(Exception):
    """What has arrived is no frame of this session, or makes no sense."""


class Kind(IntEnum):
    """What a message is about. Kinds below `FIRST_NUMBERED` are repeated anyway, and may be lost."""

    BEAT = 1  # both ways: I am alive; from a worker, with its counters
    END = 2  # to a worker: end yourself
    HELLO = 8  # from a worker: where its peers find it, and a word on where it runs
    PEERS = 9  # to a worker: who else is there
    PLAN = 10  # to a worker: a plan, by number
    VALUE = 11  # both ways: a value that many tasks share, by number
    RUN = 12  # both ways: run this phase of this task
    REPLY = 13  # both ways: what has come of it
    FAILED = 14  # both ways: or why nothing has
    DROP = 15  # both ways: this task has no more phases
    CLOSE = 16  # both ways: this link, with its tasks and values, is needed no more
    CALL = 17  # to a worker: call this service
    RESULT = 18  # from a worker
    ERROR = 19  # from a worker
    PEER = 20  # between workers
    OPEN = 21  # from a worker: a link, by which a task gives lanes away
    PIPE = 22  # both ways, and between workers: bytes of a pipe, or its end


FIRST_NUMBERED = Kind.HELLO


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a kind, how many parts it may have, and what reads the first of these, or all."""

    fields: struct.Struct
    fewest: int
    most: int
    first: Callable[[Buffer], object] | None = None
    each: Callable[[Buffer], object] | None = None

    def check(self, parts: Sequence[Buffer]) -> None:
        """Raises BadFrame if it cannot be read: before it is taken, so that it can be asked for again."""
        if not self.fewest <= len(parts) <= self.most:
            raise BadFrame(f"{len(parts)} parts, not {self.fewest} to {self.most}")
        if self.first is not None and parts:
            self.first(parts[0])
        for part in parts if self.each is not None else ():
            self.each(part)  # type: ignore[misc]


@dataclass(frozen=True, slots=True)
class Message:
    """What one end has to say: a kind, numbers and bytes."""

    kind: Kind
    fields: tuple[int, ...] = ()
    parts: tuple[Buffer, ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """A message on its way. `worker` and `incarnation` are those of the sender, or of whom the driver sends it to."""

    session: bytes
    worker: int
    incarnation: int
    number: int  # of this message; kinds that are not numbered count by themselves
    sent: int  # the number of the last one that was sent
    heard: int  # all up to this number have arrived here
    note: int  # from the driver: tasks that could begin elsewhere; from a worker: tasks of its that wait for others
    asks: bool  # something is missing
    message: Message


def encode(frame: Frame) -> list[Buffer]:
    """The parts that go over the network. The first is the header; the others are not copied."""
    message = frame.message
    head = _HEADER.pack(
        MAGIC,
        VERSION,
        message.kind,
        _ASKS if frame.asks else 0,
        frame.session,
        frame.worker,
        frame.incarnation,
        frame.number,
        frame.sent,
        frame.heard,
        min(frame.note, 0xFFFFFFFF),
    )
    return [head + LAYOUTS[message.kind].fields.pack(*message.fields), *message.parts]


def decode(parts: Sequence[Buffer], session: bytes) -> Frame:
    """The frame that was encoded; raises BadFrame if these parts are not one of this session."""
    head = bytes(parts[0][: 2 * _HEADER.size]) if parts else b""
    if len(head) < _HEADER.size:
        raise BadFrame(f"{len(head)} bytes are no header")
    magic, version, number_of_kind, flags, whose, *numbers = _HEADER.unpack_from(head)
    if magic != MAGIC:
        raise BadFrame("the header does not begin like ours")
    if version != VERSION:
        raise BadFrame(f"version {version}, and this is {VERSION}")
    if whose != session:
        raise BadFrame("another session")
    layout = LAYOUTS.get(number_of_kind)
    if layout is None or flags & ~_ASKS:
        raise BadFrame(f"kind {number_of_kind} with flags {flags}")
    if len(parts[0]) != _HEADER.size + layout.fields.size:
        raise BadFrame(f"a header of {len(parts[0])} bytes, of kind {number_of_kind}")
    layout.check(parts[1:])
    worker, incarnation, number, sent, heard, note = numbers
    message = Message(Kind(number_of_kind), layout.fields.unpack_from(head, _HEADER.size), tuple(parts[1:]))
    return Frame(session, worker, incarnation, number, sent, heard, note, bool(flags & _ASKS), message)


# --------------------------------------------------------------------------------------------------------------
# Parts that are tables


@dataclass(frozen=True, slots=True)
class Peer:
    """One incarnation of a worker, as other workers know it."""

    worker: int
    incarnation: int
    key: bytes  # public
    address: str


_PEER = struct.Struct("!IQ40sH")
_KEY = re.compile(rb"[0-9a-zA-Z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")
_ADDRESS = re.compile(rb"[!-~]{1,256}")


def encode_peers(peers: Sequence[Peer]) -> bytes:
    """The part of a PEERS message."""
    rows = []
    for peer in peers:
        address = peer.address.encode()
        rows.append(_PEER.pack(peer.worker, peer.incarnation, peer.key, len(address)) + address)
    return b"".join(rows)


def decode_peers(part: Buffer) -> tuple[Peer, ...]:
    """The rows of that part."""
    data, at, peers = bytes(part), 0, []
    while at < len(data):
        if at + _PEER.size > len(data):
            raise BadFrame("a table of peers that ends too early")
        worker, incarnation, key, length = _PEER.unpack_from(data, at)
        at += _PEER.size
        if at + length > len(data):
            raise BadFrame("a table of peers that ends too early")
        if not _KEY.fullmatch(key):
            raise BadFrame("a key that is none")
        peers.append(Peer(worker, incarnation, key, decode_address(data[at : at + length])))
        at += length
    if len({peer.incarnation for peer in peers}) < len(peers):
        raise BadFrame("a peer that is in its table twice")
    return tuple(peers)


def decode_address(part: Buffer) -> str:
    """Where somebody is found."""
    data = bytes(part)
    if not _ADDRESS.fullmatch(data):
        raise BadFrame("an address that is none")
    return data.decode("ascii")


def as_parts(data: Buffer | Iterable[Buffer]) -> tuple[Buffer, ...]:
    """Bytes, or several, as parts whose length is in bytes. Not copied: whoever gives them leaves them as they are."""
    given = (data,) if isinstance(data, bytes | bytearray | memoryview) else data
    return tuple(part.cast("B") if isinstance(part, memoryview) else part for part in given)


def encode_numbers(numbers: Sequence[int]) -> bytes:
    """Numbers of values, as a part."""
    return struct.pack(f"!{len(numbers)}Q", *numbers)


def decode_numbers(part: Buffer) -> tuple[int, ...]:
    """The numbers in such a part."""
    if len(part) % 8:
        raise BadFrame("a list of numbers that ends too early")
    return struct.unpack(f"!{len(part) // 8}Q", part)


def decode_text(part: Buffer) -> str:
    """Text of at most 64 KB."""
    if len(part) > 1 << 16:
        raise BadFrame(f"a text of {len(part)} bytes")
    return bytes(part).decode("utf-8", "replace")


def read_counters(part: Buffer) -> tuple[int, ...]:
    """What a worker has done so far, in the order of the fields of `Counters`."""
    if len(part) != COUNTERS.size:
        raise BadFrame("counters of another size")
    return COUNTERS.unpack(part)


LAYOUTS = {
    Kind.BEAT: Layout(struct.Struct("!"), 0, 1, read_counters),  # counters
    Kind.END: Layout(struct.Struct("!"), 0, 0),
    Kind.HELLO: Layout(struct.Struct("!I"), 2, 2, decode_address, decode_text),  # process; address, place
    Kind.PEERS: Layout(struct.Struct("!Q"), 1, 1, decode_peers),  # epoch; table
    Kind.PLAN: Layout(struct.Struct("!Q"), 2, 2),  # plan; key, bytes
    Kind.VALUE: Layout(struct.Struct("!QQB"), 1, 1),  # link, value, whether it comes by another way; bytes
    Kind.RUN: Layout(struct.Struct("!QQIQ"), 2, MOST_PARTS, decode_numbers),  # link, task, phase, plan; values, message
    Kind.REPLY: Layout(struct.Struct("!QQIQ"), 1, MOST_PARTS),  # link, task, phase, microseconds; reply
    Kind.FAILED: Layout(
        struct.Struct("!QQIQ"), 3, 3, each=decode_text
    ),  # link, task, phase, microseconds; class, what, hint
    Kind.DROP: Layout(struct.Struct("!QQ"), 0, 0),  # link, task
    Kind.CLOSE: Layout(struct.Struct("!Q"), 0, 0),  # link
    Kind.CALL: Layout(struct.Struct("!Q"), 1, MOST_PARTS, decode_text),  # call; service, arguments
    Kind.RESULT: Layout(struct.Struct("!QQ"), 0, MOST_PARTS),  # call, microseconds; result
    Kind.ERROR: Layout(struct.Struct("!QQ"), 3, 3, each=decode_text),  # call, microseconds; class, what, hint
    Kind.PEER: Layout(struct.Struct("!Q"), 0, MOST_PARTS),  # stream; parts
    Kind.OPEN: Layout(struct.Struct("!QQQ"), 0, 0),  # link, plan, the link of its task
    Kind.PIPE: Layout(struct.Struct("!Q"), 1, 1),  # pipe; bytes
}
