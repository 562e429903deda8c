"""The driver's end of a pool, as states and events: no clock, no socket, no thread.

Frames are taken apart, workers that fall silent are lost and replaced, and what others ask for (`dispatch.py`: tasks;
calls of services here) is told to workers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from undertow.cluster.channel import Channel
from undertow.cluster.complaints import Complaints
from undertow.cluster.dispatch import Dispatch, Reply, Step, error_of
from undertow.cluster.frames import (
    BadFrame,
    Buffer,
    Frame,
    Kind,
    Message,
    Peer,
    decode,
    decode_address,
    decode_numbers,
    decode_text,
    encode,
    encode_peers,
    read_counters,
)
from undertow.cluster.pipe import Pipes
from undertow.cluster.roster import Entry, Roster, Times
from undertow.cluster.station import STRANGER, Action, Admit, Carry, Finish, Keys, Lost, Send, Start, Ticket
from undertow.cluster.tracks import Tracks
from undertow.cluster.worker import Counters
from undertow.errors import WorkerLost

log = logging.getLogger("undertow.cluster")

LAST = (1 << 64) - 1  # no frame has a greater number
FAILED_STARTS = 3  # in a row: then that worker is given up


@dataclass(slots=True, eq=False)
class Call:
    """A service that a worker was asked for."""

    entry: Entry | None
    name: str = ""  # what it is about, on the worker's track
    began: float = 0.0  # once it is done: when, by the driver's clock
    ended: float = 0.0
    result: tuple[Buffer, ...] | None = None
    error: Exception | None = None

    @property
    def is_done(self) -> bool:
        """Whether there is a result, or an error."""
        return self.result is not None or self.error is not None


@dataclass(slots=True)
class Traffic:
    """Bytes and frames between the driver and one worker, over all its incarnations."""

    sent: int = 0
    received: int = 0
    refused: int = 0


class Driver:
    """The machine. Its `station` sets `address`, and then calls `open`."""

    def __init__(
        self,
        session: bytes,
        workers: int,
        retries: int,
        times: Times,
        keys: Keys,
        listen: str,
        new_keys: Callable[[], Keys],
    ) -> None:
        self.address = ""
        self.roster = Roster(workers, times)
        self.dispatch = Dispatch(self.roster, retries)
        self.traffic = [Traffic() for _ in range(workers)]
        self.given_up: dict[int, str] = {}  # workers that cannot be started, and why
        self.is_closing = False
        self.pipes = Pipes()
        self.tracks: Tracks | None = None  # if somebody wants to know
        self._has_come = False  # somebody of whom others have not been told
        self._has_gone = False  # likewise
        self._complaints = Complaints("the driver")
        self._session = session
        self._times = times
        self._keys = keys
        self._listen = listen
        self._new_keys = new_keys
        self._channels: dict[int, Channel] = {}
        self._calls: dict[int, Call] = {}
        self._count = 0
        self._actions: list[Action] = []
        self._told_idle = 0
        self._next_beat = 0.0

    # ----------------------------------------------------------------------------------------------------------
    # Life

    def open(self, now: float) -> None:
        """Start all workers."""
        for worker in range(self.roster.workers):
            self._begin(worker, now)

    def close(self) -> None:
        """Tell all workers to end."""
        self.is_closing = True
        for entry in list(self.roster):
            self._lose(entry, "the pool was closed", 0.0)

    def gone(self, incarnation: int, why: str, now: float) -> None:
        """The launcher says that it has ended, or could not begin."""
        entry = self.roster.get(incarnation)
        if entry is not None:
            self._lose(entry, why, now)

    def _begin(self, worker: int, now: float) -> None:
        entry = self.roster.begin(worker, now)
        keys = self._new_keys()
        entry.key = keys.public
        channel = self._channels[entry.incarnation] = Channel(self._session, worker, entry.incarnation)
        channel.note = self._told_idle
        ticket = Ticket(
            self.address, self._keys.public, self._session, worker, entry.incarnation, keys, self._listen, self._times
        )
        self._actions += [Admit(entry.incarnation, keys.public), Start(ticket)]

    def _lose(self, entry: Entry, why: str, now: float) -> None:
        was_ready = entry.is_ready
        self.roster.lose(entry.incarnation)
        self.pipes.lose(entry.incarnation)
        channel = self._channels.pop(entry.incarnation)
        self._send(entry, channel.beat(Kind.END))
        self._actions += [Finish(entry.worker, entry.incarnation), Lost(entry.worker, entry.incarnation, why)]
        error = WorkerLost(f"worker {entry.worker} was lost: {why}")
        for number, call in list(self._calls.items()):
            if call.entry is entry:
                call.error = error
                del self._calls[number]
        if self.is_closing:
            self.dispatch.abandon(WorkerLost("the pool was closed"))
            return
        log.warning("worker %d, incarnation %d: %s", entry.worker, entry.incarnation, why)
        if self.tracks is not None:
            self.tracks.moment(entry.worker, f"lost: {why}", now, incarnation=entry.incarnation)
        if self.roster.failed[entry.worker] < FAILED_STARTS:
            self._begin(entry.worker, now)
        else:
            self.given_up[entry.worker] = why
            if len(self.given_up) == self.roster.workers:
                self.dispatch.abandon(WorkerLost(f"no worker is left; worker {entry.worker}: {why}"))
        self.dispatch.lose(entry, why)
        self._has_gone |= was_ready

    def _introduce(self) -> None:
        """Tell all who is there. It is a table for each, so not whenever one comes: when somebody has to know."""
        self._has_come = self._has_gone = False
        ready = self.roster.ready()
        peers = [Peer(entry.worker, entry.incarnation, entry.key, entry.address) for entry in ready]
        message = Message(Kind.PEERS, (self.roster.epoch,), (encode_peers(peers),))
        for entry in ready:
            self._tell(entry, message)

    # ----------------------------------------------------------------------------------------------------------
    # Commands

    def call(
        self, worker: int, incarnation: int | None, service: str, parts: tuple[Buffer, ...], name: str = ""
    ) -> Call:
        """Call a service of a worker; of that incarnation, if one is named."""
        entry = self.roster.now_of(worker)
        if entry is None or not entry.is_ready or incarnation not in (None, entry.incarnation):
            why = "that incarnation is gone" if incarnation is not None else "it is not there"
            return Call(None, error=WorkerLost(f"worker {worker}: {self.given_up.get(worker, why)}"))
        if self._has_come or self._has_gone:
            self._introduce()
        self._count += 1
        call = self._calls[self._count] = Call(entry, name or service)
        self._tell(entry, Message(Kind.CALL, (self._count,), (service.encode(), *parts)))
        return call

    def is_peer(self, incarnation: int) -> bool:
        """Whether that worker is there."""
        entry = self.roster.get(incarnation)
        return entry is not None and entry.is_ready

    def send_pipe(self, incarnation: int, number: int, data: Buffer) -> None:
        """A message of a pipe, for a worker that is there."""
        entry = self.roster.get(incarnation)
        if entry is not None:
            self._tell(entry, Message(Kind.PIPE, (number,), (data,)))

    # ----------------------------------------------------------------------------------------------------------
    # Events

    def receive(self, source: int, parts: Sequence[Buffer], now: float) -> None:
        """Parts from an incarnation, which the station knows by its key."""
        try:
            frame = decode(parts, self._session)
            if frame.incarnation != source:
                raise BadFrame(f"it names incarnation {frame.incarnation}")
            entry = self.roster.get(source)
            if entry is None:
                if self.roster.is_fenced(source):  # it may have been frozen, or cut off
                    self._fence(frame)
                    return
                raise BadFrame("no worker of this pool")
            if frame.worker != entry.worker:
                raise BadFrame(f"it names worker {frame.worker}")
            if frame.message.kind not in self._handlers:
                raise BadFrame(f"{frame.message.kind.name} is not for a driver")
            messages = self._channels[source].receive(frame)
        except BadFrame as error:
            self.refuse(source, str(error))
        else:
            self.traffic[entry.worker].received += sum(map(len, parts))
            self._take(entry, frame.note, messages, now)
        self.settle()

    def _fence(self, frame: Frame) -> None:
        """Tell one that is lost to end itself, with a number that is greater than any that it has heard."""
        order = Frame(self._session, frame.worker, frame.incarnation, LAST, 0, 0, 0, False, Message(Kind.END))
        self._actions.append(Send(frame.incarnation, encode(order)))

    def refuse(self, source: int, why: str) -> None:
        """Something has come that is no frame of ours: count it, and go on."""
        entry = self.roster.get(source)
        if entry is not None:
            self.traffic[entry.worker].refused += 1
        self._complaints.add("a stranger" if source == STRANGER else f"incarnation {source}", why)

    @property
    def refused(self) -> int:
        """What has been, of whomever."""
        return self._complaints.count

    def _take(self, entry: Entry, note: int, messages: list[Message], now: float) -> None:
        """What a worker says, in order. If that makes no sense, nobody knows what else went wrong there: it is lost."""
        entry.last = now
        if entry.waiting != note:
            entry.waiting = note
            self.dispatch.assign()
        for message in messages:
            try:
                if not entry.is_ready and message.kind not in (Kind.HELLO, Kind.BEAT):
                    raise BadFrame(f"{message.kind.name} before HELLO")
                self._handlers[message.kind](self, entry, message, now)
            except Exception as error:
                if not isinstance(error, BadFrame):
                    log.exception("the driver failed")
                self.refuse(entry.incarnation, str(error))
                self._lose(entry, f"what it says makes no sense: {error}", now)
                return
        for frame in self._channels[entry.incarnation].answers(now):
            self._send(entry, frame)

    def tick(self, now: float) -> None:
        """Look who is silent, and give signs of life."""
        for entry, why in self.roster.silent(now):
            self._lose(entry, why, now)
        if self._has_gone:
            self._introduce()
        if now >= self._next_beat:
            self._next_beat = now + self._times.beat
            for entry in self.roster:
                if entry.is_ready:
                    self._send(entry, self._channels[entry.incarnation].beat())
        self.settle()

    # ----------------------------------------------------------------------------------------------------------
    # What workers say

    def _hello(self, entry: Entry, message: Message, now: float) -> None:
        if entry.is_ready:
            raise BadFrame("a second HELLO")
        entry.process = message.fields[0]
        entry.address, entry.place = decode_address(message.parts[0]), decode_text(message.parts[1])
        self.roster.join(entry.incarnation)
        if self.tracks is not None:
            self.tracks.moment(entry.worker, "ready", now, incarnation=entry.incarnation, process=entry.process)
        self._has_come = True
        self.dispatch.assign()

    def _beat(self, entry: Entry, message: Message, now: float) -> None:
        if message.parts:
            entry.counters = read_counters(message.parts[0])
            if self.tracks is not None:
                counters = Counters(*entry.counters)
                self.tracks.count(entry.worker, now, sent=counters.sent, activations=counters.activations)

    def _open(self, entry: Entry, message: Message, now: float) -> None:
        number, plan, parent = message.fields
        if not self.dispatch.adopt(number, entry.incarnation, plan, parent):
            raise BadFrame("a link that cannot be")

    def _run(self, entry: Entry, message: Message, now: float) -> None:
        link_number, task, phase, _ = message.fields
        link = self.dispatch.known(link_number, entry.incarnation)
        if link is not None:
            self.dispatch.submit(link, task, Step(phase, decode_numbers(message.parts[0]), message.parts[1:]))

    def _value(self, entry: Entry, message: Message, now: float) -> None:
        link = self.dispatch.known(message.fields[0], entry.incarnation)
        if link is not None and not self.dispatch.publish(link, message.fields[1], message.parts[0]):
            raise BadFrame("a value that cannot be")

    def _reply(self, entry: Entry, message: Message, now: float) -> None:
        link, task, phase, took = message.fields
        self.dispatch.reply(entry, link, Reply(task, phase, message.parts), now, took / 1e6, self.tracks)

    def _failed(self, entry: Entry, message: Message, now: float) -> None:
        link, task, phase, took = message.fields
        error = error_of([decode_text(part) for part in message.parts], f"worker {entry.worker}")
        self.dispatch.reply(entry, link, Reply(task, phase, (), error), now, took / 1e6, self.tracks)

    def _drop(self, entry: Entry, message: Message, now: float) -> None:
        link = self.dispatch.known(message.fields[0], entry.incarnation)
        if link is not None:
            self.dispatch.drop(link, message.fields[1])

    def _close(self, entry: Entry, message: Message, now: float) -> None:
        link = self.dispatch.known(message.fields[0], entry.incarnation)
        if link is not None:
            self.dispatch.close(link)

    def _pipe(self, entry: Entry, message: Message, now: float) -> None:
        self.pipes.put(entry.incarnation, message)

    def _result(self, entry: Entry, message: Message, now: float) -> None:
        call = self._call_of(entry, message, now)
        if call is not None:
            call.result = message.parts

    def _error(self, entry: Entry, message: Message, now: float) -> None:
        call = self._call_of(entry, message, now)
        if call is not None:
            call.error = error_of([decode_text(part) for part in message.parts], f"worker {entry.worker}")

    def _call_of(self, entry: Entry, message: Message, now: float) -> Call | None:
        number, took = message.fields
        call = self._calls.get(number)
        if call is None or call.entry is not entry:
            return None
        call.began, call.ended = now - took / 1e6, now
        if self.tracks is not None:
            self.tracks.span(entry.worker, call.name, call.began, now, received=sum(map(len, message.parts)))
        return self._calls.pop(number)

    _handlers: ClassVar[dict[Kind, Callable[[Driver, Entry, Message, float], None]]] = {
        Kind.HELLO: _hello,
        Kind.BEAT: _beat,
        Kind.OPEN: _open,
        Kind.RUN: _run,
        Kind.VALUE: _value,
        Kind.REPLY: _reply,
        Kind.FAILED: _failed,
        Kind.DROP: _drop,
        Kind.CLOSE: _close,
        Kind.RESULT: _result,
        Kind.ERROR: _error,
        Kind.PIPE: _pipe,
    }

    # ----------------------------------------------------------------------------------------------------------
    # What is to be done

    def actions(self) -> list[Action]:
        """What is to be done now."""
        self.settle()
        actions, self._actions = self._actions, []
        return actions

    @property
    def idle(self) -> int:
        """How many tasks could begin at once, as of the last event."""
        return self._told_idle

    def settle(self) -> None:
        """After each event: say what is to be said."""
        idle = self.dispatch.idle()
        outbox, self.dispatch.outbox = self.dispatch.outbox, []
        for entry, message in outbox:
            self._tell(entry, message)
            if message.kind == Kind.VALUE and message.fields[2]:
                self._actions.append(Carry(entry.worker, entry.incarnation, message.fields[1]))
        if idle == self._told_idle:
            return
        self._told_idle = idle
        for entry in self.roster:  # those that work may give something away
            channel = self._channels[entry.incarnation]
            channel.note = idle
            if entry.running:
                self._send(entry, channel.beat())

    def _tell(self, entry: Entry, message: Message) -> None:
        channel = self._channels.get(entry.incarnation)
        if channel is not None:
            self._send(entry, channel.send(message))

    def _send(self, entry: Entry, frame: Frame) -> None:
        parts = encode(frame)
        self.traffic[entry.worker].sent += sum(map(len, parts))
        self._actions.append(Send(entry.incarnation, parts))
