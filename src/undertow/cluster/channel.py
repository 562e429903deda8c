"""One end of a conversation between two processes: in order, and each message once.

The network below may lose, delay, reorder and repeat frames.

Messages are numbered. Every frame says which number was the last to be sent, and up to which number all have arrived
at its sender. Who finds that something is missing asks for it, and gets all again that has not been heard. A heartbeat
is a frame, too, so the loss of the last message is noticed with the next beat. Where frames arrive in order, as over
TCP, nothing is ever sent twice unless a connection broke. What comes twice is taken once; if nobody has asked for it
again, somebody has played it again, and it is refused.

>>> a, b = Channel(bytes(16), 0, 1), Channel(bytes(16), 0, 1)
>>> lost = a.send(Message(Kind.DROP, (1, 2)))
>>> b.receive(a.send(Message(Kind.DROP, (1, 3))))  # it waits for the first
[]
>>> request, = b.answers(now=0.0)
>>> [message.kind.name for message in a.receive(request)]
['BEAT']
>>> [message.fields for frame in a.answers(now=0.0) for message in b.receive(frame)]
[(1, 2), (1, 3)]
"""

from __future__ import annotations

from collections import deque

from undertow.cluster.frames import FIRST_NUMBERED, BadFrame, Buffer, Frame, Kind, Message

# Messages that wait for one before them; more are sent again later.
MOST_EARLY = 4096
MOST_EARLY_BYTES = 64 << 20
ASK = 0.1  # seconds between two requests for what is missing, and between two answers to such

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
        self._early_bytes = 0
        self._beats = 0  # frames without a number of their own: counted by themselves, so that none is taken twice
        self._beats_heard = 0
        self._owed = 0
        self._owed_bytes = 0
        self._is_due = False
        self._is_behind = False  # something is missing here
        self._asked: tuple[float, int] | None = None  # when it was last asked for, and what had arrived then
        self._first_asked: int | None = None  # what had arrived when something was first asked for
        self._is_asked = False  # something is missing there
        self._answered = -ASK
        self.note = 0  # goes with every frame

    @property
    def is_heard(self) -> bool:
        """Whether all that was sent has arrived."""
        return not self._unheard

    def send(self, message: Message) -> Frame:
        """The frame of a new message."""
        self._sent += 1
        self._unheard.append((self._sent, message))
        return self._frame(self._sent, message)

    def beat(self, kind: Kind = Kind.BEAT, parts: tuple[Buffer, ...] = ()) -> Frame:
        """A frame that may be lost: it says what has been sent and heard."""
        self._beats += 1
        return self._frame(self._beats, Message(kind, (), parts))

    def answers(self, now: float) -> list[Frame]:
        """What should be sent after something was received: what the other end lacks, and what is to be said to it.

        While what was asked for arrives, nothing is asked for again: with much on its way, it would grow and grow.
        """
        frames: list[Frame] = []
        if self._is_asked and now - self._answered >= ASK:
            self._is_asked, self._answered = False, now
            frames += [self._frame(number, message) for number, message in self._unheard]
        if not self._is_behind:
            self._asked = None
        elif self._asked is not None and self._heard != self._asked[1]:
            self._asked = now, self._heard  # it is coming
        asks = self._is_behind and (self._asked is None or now - self._asked[0] >= ASK)
        if asks:
            self._asked = now, self._heard
            if self._first_asked is None:
                self._first_asked = self._heard
        if asks or self._is_due or self._owed >= _MESSAGES or self._owed_bytes >= _BYTES:
            self._beats += 1
            frames.append(self._frame(self._beats, Message(Kind.BEAT), asks))
        return frames

    def _frame(self, number: int, message: Message, asks: bool = False) -> Frame:
        self._owed = self._owed_bytes = 0
        self._is_due = False
        return Frame(*self._name, number, self._sent, self._heard, self.note, asks, message)

    def receive(self, frame: Frame) -> list[Message]:
        """What can be handed on, in order. Raises BadFrame if the other end cannot have sent that, or not now."""
        is_numbered = frame.message.kind >= FIRST_NUMBERED
        if frame.heard > self._sent or (is_numbered and not 0 < frame.number <= frame.sent):
            raise BadFrame("numbers that cannot be")
        if not is_numbered and frame.number <= self._beats_heard:
            raise BadFrame("a sign of life that has been here before, or a later one")
        is_repeated = is_numbered and (frame.number <= self._heard or frame.number in self._early)
        if is_repeated and (self._first_asked is None or frame.number <= self._first_asked):
            raise BadFrame("a message that has been here before")
        while self._unheard and self._unheard[0][0] <= frame.heard:
            self._unheard.popleft()
        ready: list[Message] = []
        if not is_numbered:
            self._beats_heard = frame.number
            ready.append(frame.message)
            self._is_due = self._owed > 0  # who only listens would never say that it has heard
        elif not is_repeated:
            self._take(frame, ready)
        self._is_asked |= frame.asks and bool(self._unheard)
        self._is_behind = frame.sent > self._heard
        return ready

    def _take(self, frame: Frame, ready: list[Message]) -> None:
        size = sum(map(len, frame.message.parts))
        ahead = frame.number - self._heard - 1
        if ahead and (ahead > MOST_EARLY or self._early_bytes + size > MOST_EARLY_BYTES):
            return
        self._early[frame.number] = frame.message
        self._early_bytes += size
        while (message := self._early.pop(self._heard + 1, None)) is not None:
            size = sum(map(len, message.parts))
            self._heard += 1
            self._early_bytes -= size
            self._owed += 1
            self._owed_bytes += size
            ready.append(message)
