"""How processes of a pool get the sockets of a wire: each has *doors*, by which others come in.

On one machine a door is a Unix socket whose name is in no folder, so that nothing is left of a process that was killed.
Who comes proves, as does who opens, that it knows a secret, which went over the encrypted connections of the pool; the
system says that both are of the same user. Who cannot get to a door, since it is on another machine, builds a *bridge*:
one end of a pair of sockets is the wire's, and what comes out of the other end goes through a pipe of the pool
(`pipe.py`) as it is. The higher part of two comes to the lower one, and so decides which it is.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from undertow import _core
from undertow.cluster.pipe import Ends, Pipe
from undertow.cluster.station import DRIVER, Station
from undertow.errors import UndertowError, WorkerLost

Wire = _core.Wire
SECRET = 16  # bytes
SECONDS = 30.0  # in which all must have come together
WINDOW = 16 << 20  # bytes that may be on their way from one part to another

_KNOCK = struct.Struct("!4s32s")
_MAGIC = b"UTwi"
_PATIENCE = 2.0  # seconds until somebody at the door has said who it is
_MOST_HELD = 64  # who stand at a door that nobody has opened yet
_PIECE = 1 << 18  # bytes that a bridge carries at once
_CREDENTIALS = struct.Struct("3i")  # process, user, group


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part is: the door of its process, and its incarnation (DRIVER: the program itself)."""

    address: str
    incarnation: int = DRIVER
    name: str = "the program"

    @staticmethod
    def of_worker(address: str, peer: tuple[int, int]) -> Place:
        """Of a worker and its incarnation."""
        return Place(address, peer[1], f"worker {peer[0]}")


class Doors:
    """Those of one process. `Pool.doors` and `Member.doors` make them."""

    def __init__(self, machine: Ends, station: Station) -> None:
        self._machine, self._station = machine, station
        self._expected: dict[bytes, bytes] = {}  # what it answers, by what somebody says
        self._inside: dict[bytes, socket.socket] = {}  # who has been let in, by what they said
        self._held: dict[bytes, socket.socket] = {}  # who may have come too early, likewise
        self._bridges: list[_Bridge] = []
        self._is_closed = False
        self.address = f"undertow-{secrets.token_hex(16)}"
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind("\0" + self.address)  # in no folder
        self._door.listen(_MOST_HELD)
        self._thread = threading.Thread(target=self._open, name="undertow door", daemon=True)
        self._thread.start()

    def wire(
        self,
        among: Sequence[Place],
        own: int,
        secret: bytes,
        stop: int = -1,
        seconds: float = SECONDS,
        window: int = WINDOW,
        bridged: bool = False,
    ) -> _core.Wire:
        """A wire of part `own` to all others, which call this at about the same time, with the same places and secret.

        A secret is used once. `bridged`: as if no other door could be reached. Raises WorkerLost if one of them is
        gone, and TimeoutError if one does not come.
        """
        if len(secret) != SECRET:
            raise UndertowError(f"a secret of {len(secret)} bytes", hint=f"os.urandom({SECRET}) makes one")
        if window < 1:
            raise UndertowError(f"a window of {window} bytes", hint="it has one byte or more")
        end = time.monotonic() + seconds
        pipes = {
            part: Pipe(self._machine, self._station, _number(secret, own, part), place.incarnation)
            for part, place in enumerate(among)
            if part != own
        }

        def lost() -> str:  # without any of them there is no wire
            return next((among[part].name for part, pipe in pipes.items() if pipe.is_lost), "")

        guests = {part: _proof(secret, b"in", part, own) for part in pipes if part > own}
        found: dict[int, socket.socket] = {}
        used: set[int] = set()  # pipes that are bridges
        self._expect({guest: _proof(secret, b"out", own, part) for part, guest in guests.items()})
        try:
            for part in range(own):  # all at once, then one after the other
                found_one = None if bridged else _come(among[part].address, _proof(secret, b"in", own, part))
                if found_one is not None:
                    found[part] = found_one
                else:
                    pipes[part].send(_proof(secret, b"bridge", own, part))
            for part in range(own):
                if part in found:
                    answer = _proof(secret, b"out", part, own)
                    if not self._is_answered(found[part], answer, among[part], lost, end):
                        found.pop(part).close()
                        pipes[part].send(_proof(secret, b"bridge", own, part))
                if part not in found:
                    found[part] = self._build(pipes[part])
                    used.add(part)
            for part, guest in guests.items():
                self._await(guest, pipes[part], among[part], lost, end)
                inside = self._inside.pop(guest, None)
                if inside is None:
                    if not hmac.compare_digest(pipes[part].receive(0.0), _proof(secret, b"bridge", part, own)):
                        raise WorkerLost(f"{among[part].name} does not know the secret")
                    inside = self._build(pipes[part])
                    used.add(part)
                found[part] = inside
            return _core.Wire([found[part].detach() if part != own else -1 for part in range(len(among))], stop, window)
        except BaseException:
            for one in found.values():
                one.close()
            raise
        finally:
            self._forget(guests.values())
            for part, pipe in pipes.items():
                if part not in used:
                    self._drop(pipe)

    def close(self) -> None:
        """Nobody comes in any more, and bridges are taken down. Wires that are there already do not need a door."""
        with self._station.lock:
            if self._is_closed:
                return
            self._is_closed = True
            bridges, self._bridges = self._bridges, []
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)  # whoever accepts wakes
        self._thread.join()
        self._door.close()
        for one in (*self._held.values(), *self._inside.values()):
            one.close()
        for bridge in bridges:
            bridge.close()

    # ----------------------------------------------------------------------------------------------------------
    # Who comes in

    def _open(self) -> None:
        """The thread of the door."""
        while True:
            try:
                guest, _ = self._door.accept()
            except OSError:
                return
            try:
                guest.settimeout(_PATIENCE)
                said = _knock_of(guest)
            except OSError:
                guest.close()
                continue
            with self._station.lock:
                if self._is_closed:
                    guest.close()
                    return
                answer = self._expected.pop(said, None)
                if answer is None:
                    if said in self._held:  # it says what another has said
                        self._held.pop(said).close()
                    self._held[said] = guest
                    while len(self._held) > _MOST_HELD:
                        self._held.pop(next(iter(self._held))).close()
                else:
                    self._let_in(said, guest, answer)

    def _let_in(self, said: bytes, guest: socket.socket, answer: bytes) -> None:
        with suppress(OSError):  # it has gone again: the wire will find out
            guest.sendall(answer)
        self._inside[said] = guest
        self._station.wake()

    def _expect(self, answers: dict[bytes, bytes]) -> None:
        with self._station.lock:
            if self._is_closed:
                raise UndertowError("these doors are closed")
            for said, answer in answers.items():
                guest = self._held.pop(said, None)
                if guest is None:
                    self._expected[said] = answer
                else:
                    self._let_in(said, guest, answer)

    def _forget(self, guests: Iterable[bytes]) -> None:
        with self._station.lock:
            for said in guests:
                self._expected.pop(said, None)
                if said in self._inside:
                    self._inside.pop(said).close()

    def _await(self, guest: bytes, pipe: Pipe, place: Place, lost: Callable[[], str], end: float) -> None:
        """Until somebody has come in, or wants a bridge."""
        with self._station.lock:

            def is_over() -> bool:
                return guest in self._inside or pipe.has_come or bool(lost()) or self._is_closed

            if not self._station.wait(is_over, max(end - time.monotonic(), 0.0)):
                raise TimeoutError(f"{place.name} has not come in time")
            if guest not in self._inside and not pipe.has_come:
                raise WorkerLost(f"{name} is gone" if (name := lost()) else "these doors are closed")

    def _is_answered(self, at: socket.socket, answer: bytes, place: Place, lost: Callable[[], str], end: float) -> bool:
        """Whether whoever opens is the one that was meant. It may not have opened yet."""
        while True:
            at.settimeout(0.1)  # then look whether it is still there
            try:
                said = _read(at, len(answer))
            except TimeoutError:
                with self._station.lock:
                    name = lost()
                if name:
                    raise WorkerLost(f"{name} is gone") from None
                if time.monotonic() >= end:
                    raise TimeoutError(f"{place.name} has not opened in time") from None
                continue
            except OSError:
                return False
            return hmac.compare_digest(said, answer)

    # ----------------------------------------------------------------------------------------------------------
    # Bridges

    def _build(self, pipe: Pipe) -> socket.socket:
        """The wire's end of a bridge."""
        mine, theirs = socket.socketpair()
        bridge = _Bridge(pipe, theirs, self._taken_down)
        with self._station.lock:
            self._bridges.append(bridge)
        bridge.begin()
        return mine

    def _taken_down(self, bridge: _Bridge) -> None:
        with self._station.lock:
            if bridge in self._bridges:
                self._bridges.remove(bridge)

    def _drop(self, pipe: Pipe) -> None:
        """Not used, and never will be."""
        with self._station.lock:
            self._machine.pipes.close(pipe.number, pipe.peer)


class _Bridge:
    """Two threads that carry what comes out of a socket to a pipe, and back, until either ends."""

    def __init__(self, pipe: Pipe, end: socket.socket, taken_down: Callable[[_Bridge], None]) -> None:
        self._pipe, self._end, self._taken_down = pipe, end, taken_down
        self._threads = [
            threading.Thread(target=self._carry, args=(way,), name="undertow bridge", daemon=True)
            for way in (self._out, self._back)
        ]
        self._left = len(self._threads)
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Carry."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Take it down, and wait until it is."""
        self._fall()
        for thread in self._threads:
            thread.join()

    def _fall(self) -> None:
        self._pipe.close()
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)

    def _carry(self, way: Callable[[], None]) -> None:
        with suppress(OSError, WorkerLost):
            way()
        self._fall()
        with self._lock:
            self._left -= 1
            is_last = self._left == 0
        if is_last:
            self._end.close()
            self._taken_down(self)

    def _out(self) -> None:
        while data := self._end.recv(_PIECE):
            self._pipe.send(data)

    def _back(self) -> None:
        while data := self._pipe.receive():
            self._end.sendall(data)


# --------------------------------------------------------------------------------------------------------------
# What is said at a door


def _proof(secret: bytes, what: bytes, speaker: int, listener: int) -> bytes:
    """Only who knows the secret can say that."""
    return hmac.digest(secret, b"%s %d %d" % (what, speaker, listener), "sha256")


def _number(secret: bytes, one: int, other: int) -> int:
    """Of the pipe between two parts."""
    return int.from_bytes(_proof(secret, b"pipe", min(one, other), max(one, other))[:8], "big")


def _come(address: str, says: bytes) -> socket.socket | None:
    """To a door, and say that; None if there is no way."""
    guest = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        guest.connect("\0" + address)
        _check_user(guest)
        guest.sendall(_KNOCK.pack(_MAGIC, says))
    except OSError:
        guest.close()
        return None
    return guest


def _knock_of(guest: socket.socket) -> bytes:
    """What somebody at the door says. OSError if it is nothing of ours."""
    _check_user(guest)
    magic, said = _KNOCK.unpack(_read(guest, _KNOCK.size))
    if magic != _MAGIC:
        raise ConnectionError("it speaks another protocol")
    return bytes(said)


def _check_user(other: socket.socket) -> None:
    _, user, _ = _CREDENTIALS.unpack(other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if user != os.getuid():
        raise ConnectionError("it is of another user")


def _read(source: socket.socket, size: int) -> bytes:
    """So many bytes: they come at once, or not at all."""
    data = source.recv(size, socket.MSG_WAITALL)
    if len(data) < size:
        raise ConnectionError("it has gone again")
    return data
