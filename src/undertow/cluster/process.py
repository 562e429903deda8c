"""Workers that are processes of this machine.

A worker is started by `python -m undertow.cluster`. Its ticket goes through a pipe, never on the command line, where
everybody can read it. The pipe stays open: a worker whose pipe ends kills itself and whatever it has started. So does
the kernel, if the thread that started it is no more. So nothing is left, however this process ends. Workers are in
sessions of their own: Ctrl-C is for this process alone.
"""

from __future__ import annotations

import logging
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from undertow.cluster.station import Ticket

log = logging.getLogger("undertow.cluster")

LENGTH = struct.Struct("!I")  # of a ticket, before it
PATIENCE = 0.5  # seconds until a worker that should end is sent SIGTERM, and again until it is killed


@dataclass(slots=True, eq=False)
class Child:
    """A worker's process."""

    process: subprocess.Popen[bytes]
    worker: int
    incarnation: int
    descriptor: int  # readable when it has ended
    log: Path
    gone: Callable[[str], None]
    end_at: float | None = None  # when it should have ended
    was_asked: bool = False  # with SIGTERM

    def is_stopped(self) -> bool:
        """Whether it stands still: then it hears nothing but SIGKILL."""
        with suppress(OSError):
            return Path(f"/proc/{self.process.pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"t")
        return False

    def signal(self, number: int) -> None:
        """To it and to whatever it has started. It is not reaped yet, so the number is still its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)


class ProcessLauncher:
    """A `Launcher`. One thread of its own starts, watches and ends workers, and lives as long as they do.

    `services` and `guests` name functions that take a `Member`, as "module:name"; workers import them. `environment` is
    added to that of this process. Workers write what they print to files in `logs`.
    """

    def __init__(
        self,
        services: str = "",
        guests: str = "",
        environment: Mapping[str, str] | None = None,
        logs: str | os.PathLike[str] | None = None,
    ) -> None:
        self._command = [sys.executable, "-m", "undertow.cluster", services, guests]
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path)
        self._environment = {**os.environ, "PYTHONPATH": path, **(environment or {})}
        self._logs = None if logs is None else Path(logs)
        self._made_logs: Path | None = None
        self._is_needed = False  # somebody may want to read them
        self._children: dict[int, Child] = {}
        self._orders: deque[Callable[[], None]] = deque()
        self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._is_closing = False
        self._thread: threading.Thread | None = None

    # ----------------------------------------------------------------------------------------------------------
    # What the pool asks for

    def start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        """Start a worker."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name="undertow launcher", daemon=True)
            self._thread.start()
        self._order(lambda: self._start(ticket, gone))

    def end(self, worker: int, incarnation: int) -> None:
        """It was told to end; see to it that it does."""
        self._order(lambda: self._end(incarnation))

    def close(self) -> None:
        """Wait until all are gone, and remove their logs if nobody will ask for them."""
        thread, self._thread = self._thread, None
        if thread is None:
            return

        def end_all() -> None:
            self._is_closing = True
            for incarnation in self._children:
                self._end(incarnation)

        self._order(end_all)
        thread.join()
        os.close(self._bell)
        if self._made_logs is not None and not self._is_needed:
            shutil.rmtree(self._made_logs, ignore_errors=True)

    def processes(self) -> dict[int, int]:
        """The process of each incarnation that runs."""
        return {number: child.process.pid for number, child in list(self._children.items())}

    def _order(self, order: Callable[[], None]) -> None:
        self._orders.append(order)
        os.eventfd_write(self._bell, 1)

    # ----------------------------------------------------------------------------------------------------------
    # The thread

    def _loop(self) -> None:
        while self._children or self._orders or not self._is_closing:
            poll = select.poll()
            poll.register(self._bell, select.POLLIN)
            for child in self._children.values():
                poll.register(child.descriptor, select.POLLIN)
            ends = [child.end_at for child in self._children.values() if child.end_at is not None]
            poll.poll(max(0.0, 1e3 * (min(ends) - time.monotonic()) + 1) if ends else None)
            with suppress(BlockingIOError):
                os.eventfd_read(self._bell)
            while self._orders:
                self._orders.popleft()()
            for child in list(self._children.values()):
                self._look(child)

    def _start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        path = self._folder() / f"worker-{ticket.worker}-{ticket.incarnation}.log"
        try:
            with path.open("wb") as output:
                process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    start_new_session=True,
                )
            assert process.stdin is not None
            data = ticket.to_bytes()
            with suppress(BrokenPipeError):  # it has ended already, and its log says why
                process.stdin.write(LENGTH.pack(len(data)) + data)
                process.stdin.flush()
        except OSError as error:
            gone(f"it could not be started: {error}")
            return
        descriptor = os.pidfd_open(process.pid)
        child = Child(process, ticket.worker, ticket.incarnation, descriptor, path, gone)
        self._children[ticket.incarnation] = child

    def _folder(self) -> Path:
        if self._logs is None:
            self._logs = self._made_logs = Path(tempfile.mkdtemp(prefix="undertow-"))
        self._logs.mkdir(parents=True, exist_ok=True)
        return self._logs

    def _end(self, incarnation: int) -> None:
        child = self._children.get(incarnation)
        if child is not None and child.end_at is None:
            child.end_at = time.monotonic() + (0.0 if child.is_stopped() else PATIENCE)

    def _look(self, child: Child) -> None:
        """See whether it has ended, or should have."""
        code = child.process.poll()
        if code is not None:
            child.signal(signal.SIGKILL)  # to what it has started
            del self._children[child.incarnation]
            os.close(child.descriptor)
            assert child.process.stdin is not None
            with suppress(BrokenPipeError):
                child.process.stdin.close()
            if child.end_at is None:
                self._is_needed = True
                child.gone(f"{reason(code)}; its log is {child.log}{last_words(child.log)}")
        elif child.end_at is not None and time.monotonic() >= child.end_at:
            if child.was_asked or child.is_stopped():
                child.signal(signal.SIGKILL)
            else:
                child.signal(signal.SIGTERM)
            child.was_asked = True
            child.end_at = time.monotonic() + PATIENCE


def reason(code: int) -> str:
    """How a process has ended, in words.

    >>> reason(3), reason(-9)
    ('its process ended with code 3', 'its process was ended by SIGKILL')
    """
    if code >= 0:
        return f"its process ended with code {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"its process was ended by {names.get(-code, f'signal {-code}')}"


def last_words(path: Path) -> str:
    """The last line of a log, if there is one."""
    with suppress(OSError):
        lines = path.read_bytes()[-4096:].decode(errors="replace").split("\n")
        for line in reversed(lines):
            if line.strip():
                return f", and says last: {line.strip()[:200]}"
    return ""
