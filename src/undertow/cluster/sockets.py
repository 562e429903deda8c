"""A network of ZeroMQ sockets: encrypted, for those whose keys are known, at the address that was named.

The driver has one socket that workers connect to. A worker has one that other workers connect to, on which it only
receives, and one for each of the others, on which it only sends. All connections use CURVE: both ends prove that they
have the key that the other expects, and all that follows is encrypted and cannot be played again. `Gate` has the list.

Sockets belong to whoever holds the station's lock. Its thread receives, and waits on file descriptors while it does not
hold it; whoever has something to send sends it, without waking that thread first (30 microseconds).
"""

from __future__ import annotations

import logging
import os
import re
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress

import zmq
from zmq.utils.monitor import parse_monitor_message

from undertow.cluster.frames import BadFrame, Buffer
from undertow.cluster.gate import DOMAIN, HOLD, Gate, is_readable
from undertow.cluster.pieces import PIECE, cut, join
from undertow.cluster.station import DRIVER, STRANGER, Action, Admit, Forget, Keys, Machine, Send, Ticket
from undertow.errors import UndertowError

log = logging.getLogger("undertow.cluster")

Socket = zmq.Socket[bytes]

TICK = 0.1  # seconds
COPIED = 1 << 14  # parts up to this size are copied from what ZeroMQ has received
BATCH = 256  # messages that are taken at once, before others may have the lock
MOST_QUEUED = 1 << 14  # messages for one peer; more are dropped, and sent again when it asks

# Milliseconds, but for the sizes.
OPTIONS = {
    zmq.LINGER: 500,
    zmq.SNDHWM: MOST_QUEUED,
    zmq.RCVHWM: 1024,
    zmq.MAXMSGSIZE: PIECE + 1024,
    zmq.HANDSHAKE_IVL: 3000,  # for a stranger who connects and says nothing
    zmq.RECONNECT_IVL: 20,
    zmq.RECONNECT_IVL_MAX: 500,
    zmq.HEARTBEAT_IVL: 1000,  # so that a connection is given up whose other end does not answer
    zmq.HEARTBEAT_TIMEOUT: 5000,
}

FAILED_HANDSHAKES = {
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL: "it was broken off",
    zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL: "it was not ours",
}
OTHER_ENDS = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH  # the gate has told of these
DECIDED = 4.0  # seconds after which it is known what became of a handshake


class SocketNetwork:
    """A `Network`."""

    def keys(self) -> Keys:
        """A new pair."""
        return Keys(*zmq.curve_keypair())

    def driver(self, machine: Machine, keys: Keys, listen: str, perform: Callable[[Action], None]) -> DriverStation:
        """A station that workers connect to."""
        return DriverStation(machine, keys, listen, perform)

    def worker(self, machine: Machine, ticket: Ticket) -> WorkerStation:
        """A station that connects to the driver, and listens to other workers."""
        return WorkerStation(machine, ticket)


class _Waiter:
    """Somebody who waits for something to be true of the machine."""

    __slots__ = ("gate", "until")

    def __init__(self, until: Callable[[], bool]) -> None:
        self.until = until
        self.gate = threading.Lock()
        self.gate.acquire()

    def is_over(self) -> bool:
        """Whether it need not wait any more. What goes wrong when it looks is for it to find out."""
        try:
            return self.until()
        except Exception:
            return True


class SocketStation:
    """What the stations of a driver and of a worker have in common."""

    def __init__(self, machine: Machine, keys: Keys, listen: str, kind: int, hold: float, name: str) -> None:
        check_listen(listen)
        self.lock = threading.Lock()
        self._machine = machine
        self._keys = keys
        self._name = name
        self._context: zmq.Context[Socket] = zmq.Context()
        self._gate = Gate(self._context, lambda why: machine.refuse(STRANGER, why), hold)  # before anybody can connect
        self._door = self._open(kind, listen)
        self._watch = self._door.get_monitor_socket(sum(FAILED_HANDSHAKES) | OTHER_ENDS | zmq.EVENT_ACCEPTED)
        self._accepted: deque[float] = deque()  # when others have connected, until it is known what became of that
        self._silent = 0  # connections that have come to nothing, and nothing was said of that
        self._sources = [self._door]  # that may receive
        self._waiters: list[_Waiter] = []
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)  # wakes the thread
        self._is_rung = False
        self._is_closing = False
        self._is_shut = False
        self._thread = threading.Thread(target=self._loop, name=f"undertow {name}", daemon=True)
        self.address = self._door.getsockopt_string(zmq.LAST_ENDPOINT)

    def _socket(self, kind: int) -> Socket:
        socket = self._context.socket(kind)
        for option, value in OPTIONS.items():
            socket.setsockopt(option, value)
        socket.curve_publickey, socket.curve_secretkey = self._keys.public, self._keys.secret
        return socket

    def _open(self, kind: int, listen: str) -> Socket:
        """The socket that others connect to."""
        socket = self._socket(kind)
        socket.curve_server = True
        socket.zap_domain = DOMAIN
        socket.ipv6 = "[" in listen
        try:
            socket.bind(listen)
        except zmq.ZMQError as error:
            self._context.destroy(linger=0)
            raise UndertowError(f"cannot listen at {listen}: {error.strerror}", hint=LISTEN_HINT) from None
        return socket

    # ----------------------------------------------------------------------------------------------------------
    # What others ask for

    def now(self) -> float:
        """Seconds, of a clock that does not stop while a process does."""
        return time.monotonic()

    def run(self) -> None:
        """Begin."""
        self._thread.start()

    def wake(self) -> None:
        """Do what the machine wants, and let those go on who waited for that."""
        self._settle()
        if (
            not (self._is_rung or self._is_shut) and self._has_input()
        ):  # sending may have swallowed the sign that there is some
            self._ring()

    def wait(self, until: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until something is true of the machine, or for so long."""
        end = None if seconds is None else time.monotonic() + seconds
        while not until():
            left = -1.0 if end is None else end - time.monotonic()
            if end is not None and left <= 0:
                return False
            waiter = _Waiter(until)
            self._waiters.append(waiter)
            self.lock.release()
            try:
                waiter.gate.acquire(timeout=min(left, threading.TIMEOUT_MAX))
            finally:
                self._lock_again()
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return True

    def _lock_again(self) -> None:
        """Whoever waits has the lock afterwards, whatever happens: Ctrl-C comes when it has."""
        interrupt: KeyboardInterrupt | None = None
        is_locked = False
        while not is_locked:
            try:
                is_locked = self.lock.acquire()
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def spawn(self, work: Callable[[], None]) -> None:
        """Do this beside all else."""

        def run() -> None:
            try:
                work()
            except Exception:
                log.exception("an activity of %s failed", self._name)

        threading.Thread(target=run, name=f"undertow {self._name}, activity", daemon=True).start()

    def close(self) -> None:
        """End, when all that was to be sent is sent, or nobody takes it."""
        with self.lock:
            self._is_closing = True
            if not self._is_shut:
                self._ring()
        if self._thread.ident is not None:
            self._thread.join()
        else:
            self._shut()

    # ----------------------------------------------------------------------------------------------------------
    # The thread

    def _ring(self) -> None:
        self._is_rung = True
        os.eventfd_write(self._bell, 1)

    def _loop(self) -> None:
        poll = select.poll()
        next_tick = 0.0
        known = 0
        while True:
            with self.lock:
                if self._is_rung:
                    self._is_rung = False
                    os.eventfd_read(self._bell)
                now = time.monotonic()
                self._receive(now)
                if now >= next_tick:
                    next_tick = now + TICK
                    self._shield(self._machine.tick, now)
                    self._gate.answer(now)
                self._settle()
                if self._is_closing:
                    self._shut()
                    return
                descriptors = [int(source.getsockopt(zmq.FD)) for source in self._sources]
                is_idle = not self._has_input()  # the last that is done to the sockets: it makes the signs valid
            if len(descriptors) != known:
                poll = select.poll()
                known = len(descriptors)
                for descriptor in (self._bell, int(self._gate.socket.getsockopt(zmq.FD)), *descriptors):
                    poll.register(descriptor, select.POLLIN)
            if is_idle:
                poll.poll(max(0.0, 1e3 * (next_tick - time.monotonic())))

    def _has_input(self) -> bool:
        return any(is_readable(source) for source in (self._gate.socket, *self._sources))

    def _receive(self, now: float) -> None:
        self._gate.answer(now)
        self._observe(now)
        for socket in self._sources:
            with suppress(zmq.Again):
                for _ in range(BATCH):
                    self._take(socket, socket.recv_multipart(zmq.DONTWAIT, copy=False), now)

    def _observe(self, now: float) -> None:
        """What ZeroMQ says of connections: of one that speaks another protocol, nothing but that it was there."""
        with suppress(zmq.Again):
            for _ in range(BATCH):
                event = parse_monitor_message(self._watch.recv_multipart(zmq.DONTWAIT))["event"]
                if event == zmq.EVENT_ACCEPTED:
                    self._accepted.append(now)
                else:
                    self._silent -= 1
                    if event in FAILED_HANDSHAKES:
                        why = FAILED_HANDSHAKES[zmq.Event(event)]
                        self._machine.refuse(STRANGER, f"a handshake that failed, {why}")
        while self._accepted and now - self._accepted[0] > DECIDED:
            self._accepted.popleft()
            self._silent += 1
        while self._silent > 0:
            self._silent -= 1
            self._machine.refuse(STRANGER, "a connection that spoke another protocol, or not at all")

    def _take(self, socket: Socket, frames: list[zmq.Frame], now: float) -> None:
        raise NotImplementedError

    def _hand_on(self, source: int, frames: Sequence[zmq.Frame], now: float) -> None:
        """Parts from an incarnation: to the machine."""
        try:
            parts = join([frame.bytes if len(frame) <= COPIED else frame.buffer for frame in frames])
        except BadFrame as error:
            self._machine.refuse(source, str(error))
        else:
            self._shield(self._machine.receive, source, parts, now)

    def _shield(self, event: Callable[..., None], *arguments: object) -> None:
        """An event of the machine. If that fails it is a bug of ours, and yet the others go on."""
        try:
            event(*arguments)
        except Exception:
            log.exception("%s failed", self._name)

    # ----------------------------------------------------------------------------------------------------------
    # What the machine wants done

    def _settle(self) -> None:
        actions: list[Action] = []
        self._shield(lambda: actions.extend(self._machine.actions()))
        for action in actions:
            if self._is_shut:
                continue
            if isinstance(action, Send):
                self._send(action.to, cut(action.parts))
            elif isinstance(action, Admit):
                self._shield(self._admit, action)
            elif isinstance(action, Forget):
                self._shield(self._forget, action.incarnation)
            else:
                self._shield(self._perform, action)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if waiter.is_over():
                waiter.gate.release()
            else:
                self._waiters.append(waiter)

    def _send(self, to: int, parts: Sequence[Buffer]) -> None:
        raise NotImplementedError

    def _admit(self, action: Admit) -> None:
        self._gate.admit(action.key, action.incarnation)

    def _forget(self, incarnation: int) -> None:
        self._gate.forget(incarnation)

    def _perform(self, action: Action) -> None:
        raise AssertionError(f"{self._name} cannot do that: {action}")

    def _shut(self) -> None:
        if self._is_shut:
            return
        self._settle()
        self._is_shut = True
        self._door.disable_monitor()
        self._context.destroy()  # sockets linger for as long as their option says
        os.close(self._bell)


class DriverStation(SocketStation):
    """The driver's."""

    def __init__(self, machine: Machine, keys: Keys, listen: str, perform: Callable[[Action], None]) -> None:
        super().__init__(machine, keys, listen, zmq.ROUTER, 0.0, "driver")
        self._door.router_mandatory = True
        self._routes: dict[int, bytes] = {}  # by incarnation: the connection that it last used
        self._do = perform

    def _perform(self, action: Action) -> None:
        self._do(action)

    def _take(self, socket: Socket, frames: list[zmq.Frame], now: float) -> None:
        source = source_of(frames[0])
        self._routes[source] = frames[0].bytes
        self._hand_on(source, frames[1:], now)

    def _send(self, to: int, parts: Sequence[Buffer]) -> None:
        route = self._routes.get(to)
        if route is not None:
            send(self._door, [route, *parts])


class WorkerStation(SocketStation):
    """A worker's."""

    def __init__(self, machine: Machine, ticket: Ticket) -> None:
        super().__init__(machine, ticket.keys, ticket.listen, zmq.PULL, HOLD, f"worker {ticket.worker}")
        self._ways: dict[int, Socket] = {}
        self._known: dict[int, Admit] = {}  # to whom there will be a way when something is to be sent
        self._sources.append(self._connect(DRIVER, zmq.DEALER, ticket.address, ticket.driver_key))

    def _connect(self, to: int, kind: int, address: str, key: bytes) -> Socket:
        way = self._ways[to] = self._socket(kind)
        way.curve_serverkey = key
        way.ipv6 = "[" in address
        way.connect(address)
        return way

    def _admit(self, action: Admit) -> None:
        super()._admit(action)
        self._known[action.incarnation] = action

    def _way(self, to: int) -> Socket | None:
        """The way to somebody who is known. Most workers talk to few others."""
        action = self._known.get(to)
        if to in self._ways or action is None:
            return self._ways.get(to)
        try:
            return self._connect(to, zmq.PUSH, action.address, action.key)
        except zmq.ZMQError as error:  # an address that is none
            self._machine.refuse(to, f"its address, {action.address}: {error.strerror}")
            return None

    def _forget(self, incarnation: int) -> None:
        super()._forget(incarnation)
        self._known.pop(incarnation, None)
        way = self._ways.pop(incarnation, None)
        if way is not None:
            way.close(linger=0)

    def _take(self, socket: Socket, frames: list[zmq.Frame], now: float) -> None:
        source = DRIVER if socket is not self._door else source_of(frames[0])
        if source == DRIVER or source in self._known:  # else it is forgotten
            self._hand_on(source, frames, now)

    def _send(self, to: int, parts: Sequence[Buffer]) -> None:
        way = self._way(to)
        if way is not None:
            send(way, parts)


def source_of(frame: zmq.Frame) -> int:
    """Whose key was used for the connection by which that came."""
    return int(frame.get("User-Id"))


def send(socket: Socket, parts: Sequence[Buffer]) -> None:
    """Send, and do not wait: what cannot go is lost, and the other end will ask for it."""
    with suppress(zmq.Again, zmq.ZMQError):
        socket.send_multipart(parts, zmq.DONTWAIT, copy=False)


LISTEN_HINT = 'name an address of this machine, as in "tcp://127.0.0.1:*"; "*" takes a port that is free'
_LISTEN = re.compile(r"tcp://(\[[0-9a-fA-F:.%\w]+\]|[\w.-]+):(\*|\d{1,5})")


def check_listen(listen: str) -> None:
    """Refuse addresses that are none, and those that stand for all that this machine has."""
    match = _LISTEN.fullmatch(listen)
    if match is None or (match[2] != "*" and int(match[2]) > 65535):
        raise UndertowError(f"cannot listen at {listen}: that is no address", hint=LISTEN_HINT)
    if match[1] in ("0.0.0.0", "[::]"):
        raise UndertowError(f"cannot listen at {listen}: that is every address of this machine", hint=LISTEN_HINT)
