"""The way of workers to a program outside: what goes in at one end comes out at the other, in order, until it ends."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from undertow.ray import relay
from undertow.ray.relay import Relay, Tunnel


class Handle:
    """A method of an actor that is in this process."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.remote = method


class Actor:
    """An actor that is in this process."""

    def __init__(self, made: Any) -> None:
        self.made = made

    def __getattr__(self, name: str) -> Handle:
        return Handle(getattr(self.made, name))


class Ray:
    """As much of Ray as a tunnel needs. What was put is what one gets."""

    def __init__(self) -> None:
        self.util = self
        self.actors: list[Relay] = []
        self.is_broken = False

    def get_node_ip_address(self) -> str:
        return "127.0.0.1"

    def remote(self, kind: type[Relay]) -> Any:
        def make() -> Actor:
            self.actors.append(kind())
            return Actor(self.actors[-1])

        made = Handle(make)
        made.options = lambda **_: made  # type: ignore[attr-defined]
        return made

    def get(self, value: Any) -> Any:
        if self.is_broken:
            raise ConnectionError("no way")
        return value

    def kill(self, actor: Actor, no_restart: bool) -> None:
        actor.made._wires.close()


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Ray:
    made = Ray()
    monkeypatch.setattr(relay, "the_ray", lambda: made)
    monkeypatch.setattr(relay, "POLL", 0.05)
    return made


@contextlib.contextmanager
def listening(serve: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server with a thread for each connection."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=served, args=(door.accept()[0],), daemon=True).start()

        def served(end: socket.socket) -> None:
            with end, contextlib.suppress(OSError):
                serve(end)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{door.getsockname()[1]}"
        door.shutdown(socket.SHUT_RDWR)
        thread.join()


def echo(end: socket.socket) -> None:
    """Greet, then say again what is said, and end with a full stop."""
    end.sendall(b"hello")
    while data := end.recv(1 << 16):
        end.sendall(data)
        if data.endswith(b"."):
            return


def connected(tunnel: Tunnel) -> socket.socket:
    host, port = tunnel.address.removeprefix("tcp://").split(":")
    way = socket.create_connection((host, int(port)), timeout=30)
    way.sendall(b"greetings ")
    return way


def read(way: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := way.recv(1 << 16)):
        data += more
    return data


def test_several_at_once(ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes each, more than may wait on the way; each ends when its other end does."""
    monkeypatch.setattr(relay, "MOST", 1 << 18)
    results: dict[int, bool] = {}

    def talk(number: int, tunnel: Tunnel) -> None:
        data = Random(number).randbytes(3_000_000) + b"."
        with connected(tunnel) as way:
            sender = threading.Thread(target=way.sendall, args=(data,))
            sender.start()
            wanted = b"hellogreetings " + data
            results[number] = read(way, len(wanted)) == wanted and way.recv(1) == b""
            sender.join()

    def until_full_stop(end: socket.socket) -> None:
        end.sendall(b"hello")
        left = len(b"greetings ") + 3_000_001
        while left and (data := end.recv(1 << 16)):
            end.sendall(data)
            left -= len(data)

    with listening(until_full_stop) as address:
        tunnel = Tunnel(ray)
        tunnel.open(address)
        threads = [threading.Thread(target=talk, args=(number, tunnel)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        tunnel.close()
    assert results == dict.fromkeys(range(5), True)


def test_who_ends_first_ends_the_other(ray: Ray) -> None:
    ended = threading.Event()

    def until_ended(end: socket.socket) -> None:
        echo(end)
        ended.set()

    with listening(until_ended) as address:
        tunnel = Tunnel(ray)
        tunnel.open(address)
        with connected(tunnel) as way:
            assert read(way, 15) == b"hellogreetings "
        assert ended.wait(30)
        with connected(tunnel) as way:
            way.sendall(b"the end.")
            assert read(way, 100) == b"hellogreetings the end."
        tunnel.close()


def test_nobody_at_the_other_end(ray: Ray) -> None:
    with socket.create_server(("127.0.0.1", 0)) as door:
        address = f"tcp://127.0.0.1:{door.getsockname()[1]}"
    tunnel = Tunnel(ray)
    tunnel.open(address)
    with connected(tunnel) as way:
        assert read(way, 1) == b""
    tunnel.close()


def test_a_broken_way_ends_all_connections(ray: Ray, caplog: pytest.LogCaptureFixture) -> None:
    ended = threading.Event()

    def until_ended(end: socket.socket) -> None:
        echo(end)
        ended.set()

    with listening(until_ended) as address:
        tunnel = Tunnel(ray)
        tunnel.open(address)
        with connected(tunnel) as way:
            assert read(way, 15) == b"hellogreetings "
            ray.is_broken = True
            assert ended.wait(30)
        ray.is_broken = False
        tunnel.close()
    assert "the way to the cluster is broken: ConnectionError: no way" in caplog.text


def test_nothing_is_left(ray: Ray) -> None:
    with listening(echo) as address:
        tunnel = Tunnel(ray)
        tunnel.open(address)
        with connected(tunnel) as way:
            assert read(way, 15) == b"hellogreetings "
            tunnel.close()
    end = time.monotonic() + 30
    while any("relay" in thread.name for thread in threading.enumerate()):
        assert time.monotonic() < end
