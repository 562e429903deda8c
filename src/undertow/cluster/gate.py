"""Who may connect: keys that are on the list, and nobody else.

ZeroMQ asks before it takes a connection (ZAP, its RFC 27): a request on a socket of the same process, with the key that
the other side has proved to have. The answer names the incarnation whose key that is; ZeroMQ then marks all that comes
by that connection with it. While nobody answers, nobody gets in.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import zmq
from zmq.utils import z85

DOMAIN = b"undertow"
HOLD = 1.0  # seconds for which somebody whose key is not known may wait at the gate
MOST_HELD = 64
MOST_ASKED = 256  # before others have their turn


def is_readable(socket: zmq.Socket[bytes]) -> bool:
    """Whether there is something to receive; not that it can be received, for a connection may just have ended."""
    return bool(int(socket.getsockopt(zmq.EVENTS)) & zmq.POLLIN)


class Gate:
    """The list. Used by the thread of a station alone, but for `admit` and `forget`, for which its lock is held."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], refuse: Callable[[str], None], hold: float) -> None:
        self.socket = context.socket(zmq.ROUTER)
        self.socket.linger = 0
        self.socket.bind("inproc://zeromq.zap.01")
        self._refuse = refuse
        self._hold = hold
        self._admitted: dict[bytes, int] = {}  # by key
        self._held: list[tuple[float, list[bytes], bytes, str]] = []  # until, envelope, key, address

    def admit(self, key: bytes, incarnation: int) -> None:
        """From now on."""
        self._admitted[z85.decode(key)] = incarnation
        self._look(0.0)

    def forget(self, incarnation: int) -> None:
        """No new connection."""
        self._admitted = {key: number for key, number in self._admitted.items() if number != incarnation}

    def answer(self, now: float) -> None:
        """Decide on those who ask."""
        with suppress(zmq.Again):
            for _ in range(MOST_ASKED):
                self._ask(self.socket.recv_multipart(zmq.DONTWAIT), now)
        self._look(now)

    def _ask(self, request: list[bytes], now: float) -> None:
        envelope, address, mechanism, credentials = request[:4], request[5], request[7], request[8:]
        place = address.decode(errors="replace")
        if mechanism != b"CURVE" or len(credentials) != 1:
            self._no(envelope, f"no key, from {place}")
        else:
            self._held.append((now + self._hold, envelope, credentials[0], place))

    def _look(self, now: float) -> None:
        """Let in those who are on the list, and send away those who have waited long enough."""
        held, self._held = self._held, []
        for place, (until, envelope, key, address) in enumerate(held):
            incarnation = self._admitted.get(key)
            if incarnation is not None:
                self.socket.send_multipart([*envelope, b"200", b"OK", str(incarnation).encode(), b""])
            elif now >= until or len(held) - place > MOST_HELD:
                self._no(envelope, f"a key that is not on the list, from {address}")
            else:
                self._held.append((until, envelope, key, address))

    def _no(self, envelope: list[bytes], why: str) -> None:
        self.socket.send_multipart([*envelope, b"400", b"no", b"", b""])
        self._refuse(why)
