"""A cable between workers and their driver that can be cut: connections stay, and nothing goes through any more."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from dataclasses import replace

from undertow.cluster.process import ProcessLauncher
from undertow.cluster.station import Ticket


class Cable:
    """To a driver. What is said while it is cut waits."""

    def __init__(self, address: str) -> None:
        host, port = address.removeprefix("tcp://").split(":")
        self._target = host, int(port)
        self._is_whole = threading.Event()
        self._is_whole.set()
        self._door = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self.address = f"tcp://127.0.0.1:{self._door.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """From now on."""
        self._is_whole.clear()

    def mend(self) -> None:
        """Until now."""
        self._is_whole.set()

    def close(self) -> None:
        """For good."""
        self.mend()
        shut(self._door)
        self._thread.join()
        for end in self._ends:
            shut(end)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._door.accept()
                self._ends.append(one)
                try:
                    other = socket.create_connection(self._target)
                except OSError:  # the driver has closed
                    shut(one)
                    continue
                self._ends.append(other)
                for ends in ((one, other), (other, one)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._is_whole.wait()
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


def shut(end: socket.socket) -> None:
    """Whoever waits for something there wakes."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


class CableLauncher(ProcessLauncher):
    """Gives each worker a cable of its own, and ends none that is lost: it has to find out by itself."""

    def __init__(self, services: str = "", guests: str = "") -> None:
        super().__init__(services, guests)
        self.cables: dict[int, Cable] = {}  # by incarnation
        self.may_end = False

    def start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        """With a cable in between."""
        cable = self.cables[ticket.incarnation] = Cable(ticket.address)
        super().start(replace(ticket, address=cable.address), gone)

    def end(self, worker: int, incarnation: int) -> None:
        """Not before all of them are to end."""
        if self.may_end:
            super().end(worker, incarnation)

    def close(self) -> None:
        """All."""
        super().close()
        for cable in self.cables.values():
            cable.close()
