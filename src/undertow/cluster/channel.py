"""One end of a conversation between two processes: in order, and each message once.

The network below may lose, delay, reorder and repeat frames.

Messages are numbered. Every frame says which number was the last to be sent, and up to which number all have arrived
at its sender. Who finds that something is missing asks for it, and gets all again that has not been heard. A heartbeat
is a frame, too, so the loss of the last message is noticed with the next beat. There are no timers: where frames
arrive in order, as over TCP, nothing is ever sent twice unless a connection broke.

>>> a, b = Channel(bytes(16), 0, 1), Channel(bytes(16), 0, 1)
>>> lost = a.send(Message(Kind.DROP, (1, 2)))
>>> b.receive(a.send(Message(Kind.DROP, (1, 3)))), b.is_behind  # it waits for the first
([], True)
>>> [message.kind.name for message in a.receive(b.beat())]
['BEAT']
>>> [message.fields for frame in a.again() for message in b.receive(frame)]
[(1, 2), (1, 3)]
"""

from __future__ import annotations

from collections import deque

from undertow.cluster.frames import FIRST_NUMBERED, BadFrame, Buffer, Frame, Kind, Message

MOST_EARLY = 4096  # messages that wait for one before them; more are sent again later

# What has arrived is acknowledged with the next frame; without one, after so many messages or bytes.
_MESSAGES = 64
_BYTES = 8 << 20


class Channel:
    """One end. What it holds is needed to send again; it is dropped when the other end has it."""

    def __init__(self, session: bytes, worker: int, incarnation: int) -> None:
        self._name = session, worker, incarnation
        self._sent = 0
        self._unheard: deque[tuple[int, Message]] = deque()
        self._heard = 0
        self._early: dict[int, Message] = {}
        self._beats = 0  # frames without a number of their own: counted by themselves, so that none is taken twice
        self._beats_heard = 0
        self._owed = 0
        self._owed_bytes = 0
        self._is_due = False
        self.note = 0  # goes with every frame
        self.is_behind = False  # something is missing here
        self.is_asked = False  # something is missing there

    @property
    def is_heard(self) -> bool:
        """Whether all that was sent has arrived."""
        return not self._unheard

    @property
    def owes(self) -> bool:
        """Whether so much has arrived that the other end should be told."""
        return self._is_due or self._owed >= _MESSAGES or self._owed_bytes >= _BYTES

    def send(self, message: Message) -> Frame:
        """The frame of a new message."""
        self._sent += 1
        self._unheard.append((self._sent, message))
        return self._frame(self._sent, message)

    def beat(self, kind: Kind = Kind.BEAT, parts: tuple[Buffer, ...] = ()) -> Frame:
        """A frame that may be lost: it says what has been sent and heard."""
        self._beats += 1
        return self._frame(self._beats, Message(kind, (), parts))

    def again(self) -> list[Frame]:
        """All that has not been heard, in order."""
        self.is_asked = False
        return [self._frame(number, message) for number, message in self._unheard]

    def _frame(self, number: int, message: Message) -> Frame:
        self._owed = self._owed_bytes = 0
        self._is_due = False
        return Frame(*self._name, number, self._sent, self._heard, self.note, self.is_behind, message)

    def receive(self, frame: Frame) -> list[Message]:
        """What can be handed on, in order. Raises BadFrame if the other end cannot have sent that."""
        if frame.heard > self._sent or (frame.message.kind >= FIRST_NUMBERED and frame.number > frame.sent):
            raise BadFrame("numbers that cannot be")
        while self._unheard and self._unheard[0][0] <= frame.heard:
            self._unheard.popleft()
        ready: list[Message] = []
        if frame.message.kind >= FIRST_NUMBERED:
            self._take(frame, ready)
        elif frame.number > self._beats_heard:
            self._beats_heard = frame.number
            ready.append(frame.message)
            self._is_due = self._owed > 0  # who only listens would never say that it has heard
        if frame.asks and self._unheard:
            self.is_asked = True
        self.is_behind = frame.sent > self._heard
        return ready

    def _take(self, frame: Frame, ready: list[Message]) -> None:
        if frame.number <= self._heard or frame.number in self._early:
            return  # a repetition
        if frame.number > self._heard + MOST_EARLY:
            return
        self._early[frame.number] = frame.message
        while (message := self._early.pop(self._heard + 1, None)) is not None:
            self._heard += 1
            self._owed += 1
            self._owed_bytes += sum(map(len, message.parts))
            ready.append(message)
