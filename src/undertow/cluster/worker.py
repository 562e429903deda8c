"""A worker's end of a pool, as states and events: no clock, no socket, no thread.

What it is asked for is put into queues, from which the activities of `member.py` take it. Its tasks may have tasks of
their own (links), and workers send each other messages in *streams*.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Container, Sequence
from dataclasses import astuple, dataclass, field
from typing import ClassVar

from undertow.cluster.channel import Channel
from undertow.cluster.complaints import Complaints
from undertow.cluster.dispatch import NUMBERS, Reply, error_of
from undertow.cluster.frames import (
    COUNTERS,
    BadFrame,
    Buffer,
    Frame,
    Kind,
    Message,
    Peer,
    decode,
    decode_numbers,
    decode_peers,
    decode_text,
    encode,
    encode_numbers,
)
from undertow.cluster.pipe import Pipes
from undertow.cluster.station import DRIVER, STRANGER, Action, Admit, Forget, Send, Ticket

log = logging.getLogger("undertow.cluster")


@dataclass(slots=True)
class Counters:
    """What a worker has done so far; it goes with its heartbeats."""

    tasks: int = 0  # phases of tasks that were run
    calls: int = 0  # of services
    activations: int = 0
    waves: int = 0
    sent: int = 0  # bytes, to the driver and to peers
    received: int = 0
    refused: int = 0  # frames
    waited: int = 0  # microseconds in which it had nothing to do, or waited for others

    def encode(self) -> bytes:
        """The part of a BEAT."""
        return COUNTERS.pack(*astuple(self))


@dataclass(frozen=True, slots=True)
class Job:
    """A phase of a task, to be run."""

    link: int
    task: int
    phase: int
    plan: int
    shared: tuple[int, ...]
    message: tuple[Buffer, ...]

    @property
    def guest(self) -> tuple[int, int]:
        """Its task, as this worker names it."""
        return self.link, self.task


@dataclass(slots=True, eq=False)
class SubLink:
    """By which a task that runs here asks for tasks elsewhere."""

    number: int
    replies: deque[Reply] = field(default_factory=deque)


@dataclass(slots=True, eq=False)
class _Known:
    """A peer, and the conversations with it."""

    peer: Peer
    channel: Channel


class Worker:
    """The machine."""

    def __init__(self, ticket: Ticket, place: str, process: int) -> None:
        self.ticket = ticket
        self.counters = Counters()
        self.is_ended = False
        self.why = ""  # it has
        self.epoch = 0
        self.peers: tuple[Peer, ...] = ()
        self.plans: dict[int, tuple[bytes, Buffer]] = {}
        self.values: dict[int, Buffer] = {}
        self.jobs: deque[Job] = deque()
        self.dropped: deque[tuple[int, int]] = deque()  # tasks, by link and number
        self.calls: dict[str, deque[tuple[int, tuple[Buffer, ...]]]] = {}
        self.streams: dict[tuple[int, int], deque[tuple[Buffer, ...]]] = {}  # by stream and incarnation
        self.closed_streams = 0  # up to which nothing is taken any more
        self.pipes = Pipes()
        self.waiting = 0  # tasks here that wait for tasks elsewhere
        self._busy = 0  # activities that do something
        self._idle_since = 0.0  # while there are none
        self._complaints = Complaints(f"worker {ticket.worker}")
        self._name = ticket.session, ticket.worker, ticket.incarnation
        self._channel = Channel(*self._name)
        self._times = ticket.times
        self._place = place
        self._process = process
        self._known: dict[int, _Known] = {}
        self._links: dict[int, SubLink] = {}
        self._of_link: dict[int, list[int]] = {}  # values by link
        self._awaited = set[int]()  # values that come by another way
        self._count = 0
        self._heard: float | None = None
        self._looked = 0.0
        self._next_beat = 0.0
        self._actions: list[Action] = []

    # ----------------------------------------------------------------------------------------------------------
    # Life

    def open(self, address: str, now: float) -> None:
        """Say hello; `address` is where peers find this worker."""
        self._heard = self._looked = self._idle_since = now
        self._tell(Message(Kind.HELLO, (self._process,), (address.encode(), self._place.encode())))

    def end(self, why: str) -> None:
        """No more."""
        self.is_ended = True
        self.why = self.why or why

    def tick(self, now: float) -> None:
        """Give a sign of life; end if there has been none of the driver for long."""
        if self._heard is None or self.is_ended:
            return
        held_up = now - self._looked
        if held_up > self._times.silence:  # frozen: what the driver said meanwhile is yet to be read
            self._heard += held_up
        self._looked = now
        if now - self._heard > self._times.orphan:
            self.end(f"the driver was silent for {now - self._heard:.0f} s")
        elif now >= self._next_beat:
            self._next_beat = now + self._times.beat
            self.busy(0, now)
            self._beat()
            for known in self._known.values():
                if not known.channel.is_heard:
                    self._send(known.peer.incarnation, known.channel.beat())

    def _beat(self) -> None:
        self._send(DRIVER, self._channel.beat(Kind.BEAT, (self.counters.encode(),)))

    def busy(self, more: int, now: float) -> None:
        """So many more activities do something, and do not wait for others. While there are none, time is lost."""
        if not self._busy:
            self.counters.waited += int(1e6 * (now - self._idle_since))
        self._busy += more
        self._idle_since = now

    def wait(self, more: int) -> None:
        """So many more tasks here wait for tasks elsewhere: the driver should know, and send others meanwhile."""
        self.waiting += more
        self._channel.note = self.waiting
        self._beat()

    def count(self, activations: int, waves: int) -> None:
        """What a service has run: the driver knows when it has the result."""
        self.counters.activations += activations
        self.counters.waves += waves
        self._beat()

    @property
    def idle(self) -> int:
        """How many tasks could begin elsewhere, as far as is known here."""
        return self._idle

    _idle = 0

    # ----------------------------------------------------------------------------------------------------------
    # Events

    def receive(self, source: int, parts: Sequence[Buffer], now: float) -> None:
        """Parts from the driver, or from the incarnation that the station knows by its key."""
        if self.is_ended:
            return
        try:
            frame = decode(parts, self.ticket.session)
            self.counters.received += sum(map(len, parts))
            if source == DRIVER:
                self._from_driver(frame, now)
            else:
                self._from_peer(source, frame, now)
        except BadFrame as error:
            self.refuse(source, str(error))

    def refuse(self, source: int, why: str) -> None:
        """Something has come that is no frame of ours: count it, and go on."""
        self.counters.refused += 1
        names = {DRIVER: "the driver", STRANGER: "a stranger"}
        self._complaints.add(names.get(source, f"incarnation {source}"), why)

    def _from_driver(self, frame: Frame, now: float) -> None:
        if (frame.session, frame.worker, frame.incarnation) != self._name:
            raise BadFrame(f"it is for incarnation {frame.incarnation}")
        if frame.message.kind not in self._handlers:
            raise BadFrame(f"{frame.message.kind.name} is not for a worker")
        messages = self._channel.receive(frame)
        self._heard = now
        self._idle = frame.note
        for message in messages:
            try:
                self._handlers[message.kind](self, message)
            except Exception as error:  # nobody knows what else went wrong: the driver gets another worker
                log.exception("worker %d failed", self.ticket.worker)
                self.end(f"what the driver says makes no sense: {type(error).__name__}: {error}")
        self._answer(DRIVER, self._channel, now)

    def _from_peer(self, source: int, frame: Frame, now: float) -> None:
        known = self._known.get(source)
        if known is None:
            raise BadFrame("it is of no peer")
        if (frame.incarnation, frame.worker) != (source, known.peer.worker):
            raise BadFrame(f"it names worker {frame.worker}, incarnation {frame.incarnation}")
        if frame.message.kind not in (Kind.PEER, Kind.PIPE, Kind.BEAT):
            raise BadFrame(f"{frame.message.kind.name} is not for a peer")
        for message in known.channel.receive(frame):
            if message.kind == Kind.PEER:
                self._put(source, message)
            elif message.kind == Kind.PIPE:
                self.pipes.put(source, message)
        self._answer(source, known.channel, now)

    def _answer(self, to: int, channel: Channel, now: float) -> None:
        for frame in channel.answers(now):
            self._send(to, frame)

    # ----------------------------------------------------------------------------------------------------------
    # What the driver says

    def _end(self, message: Message) -> None:
        self.end("the driver said so")

    def _peers(self, message: Message) -> None:
        self.epoch = message.fields[0]
        self.peers = decode_peers(message.parts[0])
        there = {peer.incarnation: peer for peer in self.peers if peer.incarnation != self.ticket.incarnation}
        for incarnation in self._known.keys() - there.keys():
            del self._known[incarnation]
            self._actions.append(Forget(incarnation))
            self.pipes.lose(incarnation)
            for stream in [stream for stream in self.streams if stream[1] == incarnation]:
                del self.streams[stream]
        for incarnation, peer in there.items():
            if incarnation not in self._known:
                self._known[incarnation] = _Known(peer, Channel(*self._name))
                self._actions.append(Admit(incarnation, peer.key, peer.address))

    def _plan(self, message: Message) -> None:
        self.plans[message.fields[0]] = (bytes(message.parts[0]), message.parts[1])

    def _value(self, message: Message) -> None:
        link, number, is_carried = message.fields
        self._of_link.setdefault(link, []).append(number)
        if is_carried and number not in self.values:
            self._awaited.add(number)
        elif not is_carried:
            self.values[number] = message.parts[0]

    def _run(self, message: Message) -> None:
        link, task, phase, plan = message.fields
        self.jobs.append(Job(link, task, phase, plan, decode_numbers(message.parts[0]), message.parts[1:]))

    def _drop(self, message: Message) -> None:
        link, task = message.fields
        self.jobs = deque(job for job in self.jobs if (job.link, job.task) != (link, task))
        self.dropped.append((link, task))

    def _close(self, message: Message) -> None:
        link = message.fields[0]
        self.jobs = deque(job for job in self.jobs if job.link != link)
        self.dropped.append((link, -1))  # all that there are
        for number in self._of_link.pop(link, ()):
            self.values.pop(number, None)
            self._awaited.discard(number)

    def _call(self, message: Message) -> None:
        service = decode_text(message.parts[0])
        self.calls.setdefault(service, deque()).append((message.fields[0], message.parts[1:]))

    def _reply(self, message: Message) -> None:
        link, task, phase, _ = message.fields
        if link in self._links:
            self._links[link].replies.append(Reply(task, phase, message.parts))

    def _failed(self, message: Message) -> None:
        link, task, phase, _ = message.fields
        if link in self._links:
            error = error_of([decode_text(part) for part in message.parts], "a task of this task")
            self._links[link].replies.append(Reply(task, phase, (), error))

    def _pipe(self, message: Message) -> None:
        self.pipes.put(DRIVER, message)

    def _beat_of_driver(self, message: Message) -> None:
        """What it says is in the header."""

    _handlers: ClassVar[dict[Kind, Callable[[Worker, Message], None]]] = {
        Kind.BEAT: _beat_of_driver,
        Kind.END: _end,
        Kind.PEERS: _peers,
        Kind.PLAN: _plan,
        Kind.VALUE: _value,
        Kind.RUN: _run,
        Kind.DROP: _drop,
        Kind.CLOSE: _close,
        Kind.CALL: _call,
        Kind.REPLY: _reply,
        Kind.FAILED: _failed,
        Kind.PIPE: _pipe,
    }

    # ----------------------------------------------------------------------------------------------------------
    # What its activities say

    def place(self, number: int, value: Buffer) -> None:
        """A value that came by another way; VALUE may come later."""
        self.values[number] = value
        self._awaited.discard(number)

    def next_job(self, busy: Container[tuple[int, int]]) -> Job | None:
        """The oldest job that can be run: phases of a task one after the other, and with all the values it needs."""
        for job in self.jobs:
            if job.guest not in busy and self._awaited.isdisjoint(job.shared):
                return job
        return None

    def reply(self, job: Job, parts: tuple[Buffer, ...], took: float) -> None:
        """What a phase has given, in so many seconds."""
        self.counters.tasks += 1
        self._tell(Message(Kind.REPLY, (job.link, job.task, job.phase, int(1e6 * took)), parts))

    def fail(self, job: Job, error: tuple[bytes, bytes, bytes], took: float) -> None:
        """Why it has given nothing."""
        self._tell(Message(Kind.FAILED, (job.link, job.task, job.phase, int(1e6 * took)), error))

    def answer(self, call: int, parts: tuple[Buffer, ...], took: float) -> None:
        """What a service has given, in so many seconds."""
        self.counters.calls += 1
        self._tell(Message(Kind.RESULT, (call, int(1e6 * took)), parts))

    def excuse(self, call: int, error: tuple[bytes, bytes, bytes], took: float) -> None:
        """Why it has given nothing."""
        self._tell(Message(Kind.ERROR, (call, int(1e6 * took)), error))

    def open_link(self, plan: int, parent: int) -> SubLink:
        """A link for a task of the link `parent` that runs here."""
        link = SubLink(self._new_number())
        self._links[link.number] = link
        self._tell(Message(Kind.OPEN, (link.number, plan, parent)))
        return link

    def publish(self, link: SubLink, data: Buffer) -> int:
        """A value for tasks of that task."""
        number = self._new_number()
        self._tell(Message(Kind.VALUE, (link.number, number, 0), (data,)))
        return number

    def submit(
        self, link: SubLink, plan: int, task: int, phase: int, message: tuple[Buffer, ...], shared: Sequence[int]
    ) -> None:
        """Run that elsewhere."""
        self._tell(Message(Kind.RUN, (link.number, task, phase, plan), (encode_numbers(shared), *message)))

    def drop(self, link: SubLink, task: int) -> None:
        """It has no more phases."""
        self._tell(Message(Kind.DROP, (link.number, task)))

    def close_link(self, link: SubLink) -> None:
        """It is needed no more."""
        if self._links.pop(link.number, None) is not None:
            self._tell(Message(Kind.CLOSE, (link.number,)))

    def _new_number(self) -> int:
        self._count += 1
        return (self.ticket.incarnation << NUMBERS) + self._count

    # ----------------------------------------------------------------------------------------------------------
    # Streams between workers, and pipes

    def is_peer(self, incarnation: int) -> bool:
        """Whether it is there; DRIVER is the driver."""
        return not self.is_ended and (incarnation == DRIVER or incarnation in self._known)

    def send_pipe(self, incarnation: int, number: int, data: Buffer) -> None:
        """A message of a pipe, for a process that is there."""
        message = Message(Kind.PIPE, (number,), (data,))
        if incarnation == DRIVER:
            self._tell(message)
        else:
            self._send(incarnation, self._known[incarnation].channel.send(message))

    def send(self, incarnation: int, stream: int, parts: tuple[Buffer, ...]) -> None:
        """A message for a peer."""
        known = self._known[incarnation]
        self._send(incarnation, known.channel.send(Message(Kind.PEER, (stream,), parts)))

    def _put(self, source: int, message: Message) -> None:
        stream = message.fields[0]
        if stream > self.closed_streams:
            self.streams.setdefault((stream, source), deque()).append(message.parts)

    def close_streams(self, up_to: int) -> None:
        """Drop what was sent in these streams, and what will be."""
        self.closed_streams = max(self.closed_streams, up_to)
        for key in [key for key in self.streams if key[0] <= self.closed_streams]:
            del self.streams[key]

    # ----------------------------------------------------------------------------------------------------------
    # What is to be done

    def actions(self) -> list[Action]:
        """What is to be done now."""
        actions, self._actions = self._actions, []
        return actions

    def _tell(self, message: Message) -> None:
        self._send(DRIVER, self._channel.send(message))

    def _send(self, to: int, frame: Frame) -> None:
        if self.is_ended:
            return  # nobody listens
        parts = encode(frame)
        self.counters.sent += sum(map(len, parts))
        self._actions.append(Send(to, parts))
