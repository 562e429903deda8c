"""A door inside a cluster for a program outside: with `ray://` workers cannot reach it, and it reaches one port alone.

An actor takes the connections of workers, and hands on what they say by Ray's way, batch by batch; `Tunnel` is the
other end, which makes a connection to the pool for each of theirs. What goes through is encrypted from end to end: the
actor has no key, and reads nothing.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Any

from undertow.ray.extra import the_ray

log = logging.getLogger("undertow.cluster")

PIECE = 1 << 20  # bytes that are read at once
MOST = 16 << 20  # bytes that wait to be fetched: then workers wait
POLL = 1.0  # seconds until an actor that has nothing says so

Item = tuple[int, bytes | None]  # of which connection; None: it has begun; no bytes: it has ended


class Wires:
    """Connections by number. One thread reads all of them; whoever has something to send sends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._has_news = threading.Condition(self._lock)
        self._news: list[Item] = []
        self._size = 0
        self._ends: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._bell, self._alarm = socket.socketpair()
        self._selector.register(self._alarm, selectors.EVENT_READ)
        self._added: list[tuple[int, socket.socket]] = []
        self._door: socket.socket | None = None
        self._count = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._read, name="undertow relay", daemon=True)

    def open(self, door: socket.socket | None = None) -> None:
        """Begin; whoever connects to the door is a new connection."""
        self._door = door
        if door is not None:
            self._selector.register(door, selectors.EVENT_READ)
        self._thread.start()

    def add(self, number: int, end: socket.socket) -> None:
        """A connection that was made here."""
        with self._lock:
            self._ends[number] = end
            self._added.append((number, end))
        self._ring()

    def take(self, seconds: float) -> list[Item]:
        """What has been said since; waits so long at most."""
        with self._lock:
            self._has_news.wait_for(lambda: bool(self._news) or self._is_closed, seconds)
            news, self._news, self._size = self._news, [], 0
            self._has_news.notify_all()
            return news

    def send(self, items: Sequence[Item]) -> None:
        """Say that; no bytes end a connection."""
        for number, data in items:
            if data is None:
                continue
            with self._lock:
                end = self._ends.get(number)
                if end is not None and not data:
                    del self._ends[number]
            if end is None:
                continue
            with contextlib.suppress(OSError):
                if data:
                    end.sendall(data)
                else:
                    end.shutdown(socket.SHUT_RDWR)  # who reads it closes it

    def close(self) -> None:
        """End all."""
        with self._lock:
            self._is_closed = True
            self._has_news.notify_all()
        self._ring()
        self._thread.join()

    def _ring(self) -> None:
        with contextlib.suppress(OSError):
            self._bell.send(b"!")

    def _read(self) -> None:
        while True:
            for key, _ in self._selector.select():
                end = key.fileobj
                assert isinstance(end, socket.socket)
                if end is self._alarm:
                    end.recv(4096)
                elif end is self._door:
                    self._accept(end)
                else:
                    self._hear(key.data, end)
            with self._lock:
                added, self._added = self._added, []
                if self._is_closed:
                    break
            for number, end in added:
                self._selector.register(end, selectors.EVENT_READ, number)
        ends = [key.fileobj for key in self._selector.get_map().values()]
        self._selector.close()
        for end in (*ends, self._bell):
            assert isinstance(end, socket.socket)
            end.close()

    def _accept(self, door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            end, _ = door.accept()
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._count += 1
            with self._lock:
                self._ends[self._count] = end
                self._news.append((self._count, None))
                self._has_news.notify_all()
            self._selector.register(end, selectors.EVENT_READ, self._count)

    def _hear(self, number: int, end: socket.socket) -> None:
        try:
            data = end.recv(PIECE)
        except OSError:
            data = b""
        if not data:
            self._selector.unregister(end)
            end.close()
        with self._lock:
            self._has_news.wait_for(lambda: self._size < MOST or self._is_closed)
            if not data and self._ends.pop(number, None) is None:
                return  # the other side has ended it
            self._news.append((number, data))
            self._size += len(data)
            self._has_news.notify_all()


class Relay:
    """The actor."""

    def __init__(self) -> None:
        self._wires = Wires()
        host = the_ray().util.get_node_ip_address()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        door = socket.create_server((host, 0), family=family)
        self._wires.open(door)
        self._address = f"tcp://{f'[{host}]' if ':' in host else host}:{door.getsockname()[1]}"

    def address(self) -> str:
        """Where workers connect to."""
        return self._address

    def pull(self) -> list[Item]:
        """What they have said."""
        return self._wires.take(POLL)

    def push(self, items: list[Item]) -> None:
        """What is said to them."""
        self._wires.send(items)


class Tunnel:
    """The program's end."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._wires = Wires()
        self._relay = ray.remote(Relay).options(num_cpus=0, max_restarts=0, max_concurrency=3).remote()
        self.address: str = ray.get(self._relay.address.remote())
        self._target = ("", 0)
        self._is_over = False
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._fetch, self._bring)]

    def open(self, address: str) -> None:
        """Lead to that address of this machine, "tcp://HOST:PORT"."""
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self._target = host.strip("[]"), int(port)
        self._wires.open()
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End it, and the actor."""
        self._is_over = True
        if self._threads[0].ident is not None:
            self._wires.close()
        with contextlib.suppress(Exception):  # it may be gone, or the connection to Ray
            self._ray.kill(self._relay, no_restart=True)
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(2 * POLL)

    def _until_over(self, turn: Callable[[], None]) -> None:
        while not self._is_over:
            try:
                turn()
            except Exception as error:  # Ray has many, and all mean that nothing gets through any more
                if not self._is_over:
                    log.warning("the way to the cluster is broken: %s: %s", type(error).__name__, error)
                    self._is_over = True
                    self._wires.close()

    def _fetch(self) -> None:
        """What workers say."""

        def turn() -> None:
            items: list[Item] = self._ray.get(self._relay.pull.remote())
            for number, data in items:
                if data is None:
                    self._connect(number)
            self._wires.send(items)

        self._until_over(turn)

    def _connect(self, number: int) -> None:
        try:
            self._wires.add(number, socket.create_connection(self._target))
        except OSError:  # the pool is closed
            self._ray.get(self._relay.push.remote([(number, b"")]))

    def _bring(self) -> None:
        """What is said to them."""

        def turn() -> None:
            items = self._wires.take(POLL)
            if items:
                self._ray.get(self._relay.push.remote(items))

        self._until_over(turn)
