"""A server: a process that starts workers for whoever has the key of its user, and ends them.

It is one task of a cluster. A session hands it tickets; each becomes a process of its own (`process.py`), so a worker
that fails harms neither the server nor other sessions. Of a session that leaves, or is silent for long, nothing stays.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from undertow.cluster import notes
from undertow.cluster.complaints import Complaints
from undertow.cluster.extra import over_sockets
from undertow.cluster.frames import BadFrame, Buffer
from undertow.cluster.jobs import Jobs, Task
from undertow.cluster.names import GUESTS, SERVICES
from undertow.cluster.process import ProcessLauncher
from undertow.cluster.shared_key import shared_keys
from undertow.cluster.station import STRANGER, Action, Forget, Launcher, Send
from undertow.errors import UndertowError

log = logging.getLogger("undertow.cluster")

SILENCE = 10.0  # seconds, after which a session is taken to be no more
LAUNCHED = "tcp://{}:*"


@dataclass(slots=True, eq=False)
class Session:
    """A connection by which somebody asks for something, and the workers that it has here."""

    heard: float
    launcher: Launcher | None = None
    incarnations: set[int] = field(default_factory=set)


class Desk:
    """The machine: who has asked for what. `launch` makes a launcher; `dismiss` closes one, and then calls back."""

    def __init__(
        self,
        jobs: Jobs,
        task: Task,
        listen: str,
        launch: Callable[[], Launcher],
        dismiss: Callable[[Launcher, Callable[[], None]], None],
        tell_gone: Callable[[int, int, str], None],
    ) -> None:
        self.jobs = jobs
        self.task = task
        self.sessions: dict[int, Session] = {}
        self._listen = listen
        self._launch = launch
        self._dismiss = dismiss
        self._tell_gone = tell_gone
        self._complaints = Complaints(f"the server {task}")
        self._actions: list[Action] = []

    @property
    def refused(self) -> int:
        """How much has been, of whomever."""
        return self._complaints.count

    def receive(self, source: int, parts: Sequence[Buffer], now: float) -> None:
        """A note of a session, by the number of its connection."""
        session = self.sessions.setdefault(source, Session(now))
        session.heard = now
        try:
            say, fields = notes.decode(parts, notes.FROM_SESSIONS)
            self._handlers[say](self, source, session, **fields)
        except BadFrame as error:
            self.refuse(source, str(error))

    def refuse(self, source: int, why: str) -> None:
        """Something has come that is nothing of ours: count it, and go on."""
        self._complaints.add("a stranger" if source == STRANGER else f"session {source}", why)

    def tick(self, now: float) -> None:
        """End what belongs to sessions that are no more."""
        for source, session in list(self.sessions.items()):
            if now - session.heard > SILENCE:
                if session.launcher is not None:
                    log.warning("%s: session %d was silent for %.0f s", self.task, source, now - session.heard)
                self._leave(source, session, lambda: None)

    def actions(self) -> list[Action]:
        """What is to be said."""
        actions, self._actions = self._actions, []
        return actions

    def say(self, source: int, say: str, **fields: Any) -> None:
        """A note for a session."""
        self._actions.append(Send(source, [*notes.encode(say, **fields)]))

    # ----------------------------------------------------------------------------------------------------------
    # What sessions say

    def _hello(self, source: int, session: Session) -> None:
        self.say(source, "task", jobs=self.jobs.as_dict(), job=self.task.job, index=self.task.index)

    def _beat(self, source: int, session: Session) -> None:
        pass  # it was heard, that is all

    def _start(self, source: int, session: Session, ticket: dict[str, Any]) -> None:
        wanted = replace(notes.ticket_of(ticket), listen=self._listen)
        if wanted.incarnation in session.incarnations:
            raise BadFrame(f"incarnation {wanted.incarnation} a second time")
        if session.launcher is None:
            session.launcher = self._launch()
        session.incarnations.add(wanted.incarnation)
        session.launcher.start(wanted, lambda why: self._tell_gone(source, wanted.incarnation, why))

    def _end(self, source: int, session: Session, incarnation: int) -> None:
        if session.launcher is not None:
            session.launcher.end(-1, incarnation)

    def _bye(self, source: int, session: Session) -> None:
        self._leave(source, session, lambda: self.say(source, "bye"))

    def _leave(self, source: int, session: Session, then: Callable[[], None]) -> None:
        """End its workers, and then all that is known of it."""
        del self.sessions[source]

        def forget() -> None:
            then()
            self._actions.append(Forget(source))

        if session.launcher is None:
            forget()
        else:
            self._dismiss(session.launcher, forget)

    _handlers: ClassVar[dict[str, Callable[..., None]]] = {
        "hello": _hello,
        "beat": _beat,
        "start": _start,
        "end": _end,
        "bye": _bye,
    }


class Server:
    """One task of a cluster, in this process. It serves from `start` until `close`, or until the process ends."""

    def __init__(self, jobs: Jobs, task: Task, services: str = SERVICES, guests: str = GUESTS) -> None:
        self.jobs = jobs
        self.task = task
        self._worker = services, guests
        self._station: Any = None
        self._desk: Desk | None = None
        self._is_closed = False

    @property
    def target(self) -> str:
        """What a session names to use it."""
        return f"grpc://{self.task.address}"

    @property
    def is_started(self) -> bool:
        """Whether it serves, or has."""
        return self._station is not None

    @property
    def refused(self) -> int:
        """What strangers and others have sent that made no sense."""
        return 0 if self._desk is None else self._desk.refused

    def start(self) -> None:
        """Listen, and serve in threads of its own."""
        if self._is_closed:
            raise UndertowError(f"the server {self.task} is closed", hint="make another one")
        if self._station is not None:
            return
        sockets = over_sockets("server_sockets", "a server")
        keys = shared_keys(sockets.new_keys)
        host = own_address(self.task)
        desk = Desk(self.jobs, self.task, LAUNCHED.format(host), self._launch, self._dismiss, self._tell_gone)
        station = sockets.ServerStation(desk, keys, f"tcp://{host}:{self.task.port or '*'}")
        port = int(station.address.rpartition(":")[2])
        if port != self.task.port:
            address = f"{self.task.host}:{port}"
            self.jobs, self.task = self.jobs.moved(self.task, address), replace(self.task, address=address)
            desk.jobs, desk.task = self.jobs, self.task
        self._station, self._desk = station, desk
        station.run()

    def join(self) -> None:
        """Wait until it is closed; Ctrl-C ends that."""
        if not self._is_closed:
            self.start()
            with self._station.lock:
                self._station.wait(lambda: self._is_closed)

    def close(self) -> None:
        """End all workers, and listen no more."""
        if self._station is None or self._is_closed:
            self._is_closed = True
            return
        assert self._desk is not None
        with self._station.lock:
            self._is_closed = True
            launchers = [session.launcher for session in self._desk.sessions.values()]
            self._desk.sessions.clear()
            self._station.wake()
        for launcher in launchers:
            if launcher is not None:
                launcher.close()
        self._station.close()

    # ----------------------------------------------------------------------------------------------------------
    # What the desk wants done

    def _launch(self) -> Launcher:
        return ProcessLauncher(*self._worker)

    def _dismiss(self, launcher: Launcher, then: Callable[[], None]) -> None:
        """Close a launcher, which takes a while."""

        def work() -> None:
            launcher.close()
            with self._station.lock:
                then()
                self._station.wake()

        self._station.spawn(work)

    def _tell_gone(self, source: int, incarnation: int, why: str) -> None:
        """A worker has ended, says its launcher's thread."""
        with self._station.lock:
            if self._desk is not None and source in self._desk.sessions:
                self._desk.say(source, "gone", incarnation=incarnation, why=why)
                self._station.wake()


def own_address(task: Task) -> str:
    """The number of the host that this task's address names: it must be one of this machine's."""
    try:
        found = socket.getaddrinfo(task.host.strip("[]"), None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise UndertowError(
            f"nobody knows the host {task.host!r} of {task}: {error.strerror}", hint="name a host or an IP address"
        ) from None
    family, _, _, _, place = min(found, key=lambda row: row[0] != socket.AF_INET)
    return f"[{place[0]}]" if family == socket.AF_INET6 else str(place[0])
