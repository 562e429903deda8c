"""The sockets of servers, and of sessions that talk to them: ZeroMQ, encrypted, for those who have the shared key."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import zmq
from zmq.utils.monitor import parse_monitor_message

from undertow.cluster.frames import Buffer
from undertow.cluster.sockets import OPTIONS, Socket, SocketNetwork, SocketStation, send
from undertow.cluster.station import Keys, Machine

log = logging.getLogger("undertow.cluster")

ANYBODY = 1  # all who have the key, at the gate
TURN = 100  # milliseconds
MET = zmq.EVENT_HANDSHAKE_SUCCEEDED
PARTED = zmq.EVENT_DISCONNECTED
REFUSED = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH


def new_keys() -> Keys:
    """A new pair."""
    return SocketNetwork().keys()


class ServerStation(SocketStation):
    """A server's. Sources are the numbers of connections: all have the same key."""

    def __init__(self, machine: Machine, keys: Keys, listen: str) -> None:
        super().__init__(machine, keys, listen, zmq.ROUTER, 0.0, "server")
        self._door.router_mandatory = True
        self._gate.admit(keys.public, ANYBODY)
        self._numbers: dict[bytes, int] = {}  # by what ZeroMQ calls the connection
        self._routes: dict[int, bytes] = {}
        self._count = 0

    def _take(self, socket: Socket, frames: list[zmq.Frame], now: float) -> None:
        route = frames[0].bytes
        if route not in self._numbers:
            self._count += 1
            self._numbers[route], self._routes[self._count] = self._count, route
        self._hand_on(self._numbers[route], frames[1:], now)

    def _send(self, to: int, parts: Sequence[Buffer]) -> None:
        if (route := self._routes.get(to)) is not None:
            send(self._door, [route, *parts])

    def _forget(self, incarnation: int) -> None:
        self._numbers.pop(self._routes.pop(incarnation, b""), None)


class Visitor(Protocol):
    """Who talks to servers. Called by the thread of `Ways` alone, with the place of the server in the list."""

    def met(self, server: int) -> None:
        """It is there, and takes our key."""

    def parted(self, server: int) -> None:
        """The connection is no more."""

    def refused(self, server: int) -> None:
        """Somebody is there who does not take our key, or whose key is another."""

    def heard(self, server: int, parts: Sequence[bytes]) -> None:
        """Something has come."""

    def tick(self, now: float) -> None:
        """Some time has passed."""


class Ways:
    """A connection to each server, and a thread that owns their sockets."""

    def __init__(self, addresses: Sequence[str], keys: Keys, visitor: Visitor) -> None:
        self._addresses = addresses
        self._keys = keys
        self._visitor = visitor
        self._orders: deque[Callable[[], None]] = deque()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_closing = False
        self._ways: list[Socket] = []
        self._there: set[int] = set()
        self._thread = threading.Thread(target=self._loop, name="undertow servers", daemon=True)

    def open(self) -> None:
        """Begin to connect."""
        self._thread.start()

    def send(self, server: int, parts: Sequence[Buffer]) -> None:
        """Say something to a server, if it is there."""
        self._order(lambda: send(self._ways[server], parts))

    def close(self) -> None:
        """End, when what was said before is on its way."""

        def end() -> None:
            self._is_closing = True

        self._order(end)
        self._thread.join()
        os.close(self._bell)

    def _order(self, order: Callable[[], None]) -> None:
        self._orders.append(order)
        os.eventfd_write(self._bell, 1)

    # ----------------------------------------------------------------------------------------------------------
    # The thread

    def _loop(self) -> None:
        context: zmq.Context[Socket] = zmq.Context()
        poller = zmq.Poller()
        poller.register(self._bell, zmq.POLLIN)
        self._ways = [self._socket(context, address) for address in self._addresses]
        watches = [way.get_monitor_socket(MET | PARTED | REFUSED) for way in self._ways]
        for way in (*self._ways, *watches):
            poller.register(way, zmq.POLLIN)
        for way, address in zip(self._ways, self._addresses, strict=True):
            way.connect(address)
        while not self._is_closing:
            poller.poll(TURN)
            with suppress(BlockingIOError):
                os.eventfd_read(self._bell)
            for server, (way, watch) in enumerate(zip(self._ways, watches, strict=True)):
                self._shield(self._look, server, way, watch)
            self._shield(self._visitor.tick, time.monotonic())
            while self._orders:
                self._orders.popleft()()
        for way in self._ways:
            way.disable_monitor()
        context.destroy(linger=500)

    def _socket(self, context: zmq.Context[Socket], address: str) -> Socket:
        way = context.socket(zmq.DEALER)
        for option, value in OPTIONS.items():
            way.setsockopt(option, value)
        way.immediate = True  # what nobody is there to hear is not kept
        way.curve_publickey, way.curve_secretkey = self._keys.public, self._keys.secret
        way.curve_serverkey = self._keys.public
        way.ipv6 = "[" in address
        return way

    def _shield(self, event: Callable[..., None], *arguments: object) -> None:
        """If that fails it is a bug of ours, and yet the others go on."""
        try:
            event(*arguments)
        except Exception:
            log.exception("what talks to servers failed")

    def _look(self, server: int, way: Socket, watch: Socket) -> None:
        with suppress(zmq.Again):
            while True:
                event = parse_monitor_message(watch.recv_multipart(zmq.DONTWAIT))["event"]
                if event == MET:
                    self._there.add(server)
                    self._visitor.met(server)
                elif server in self._there:
                    self._there.discard(server)
                    self._visitor.parted(server)
                elif event & REFUSED:
                    self._visitor.refused(server)
        with suppress(zmq.Again):
            while True:
                self._visitor.heard(server, way.recv_multipart(zmq.DONTWAIT))
