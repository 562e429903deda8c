"""A pool whose workers servers start: one for each task of their cluster.

`cluster_of` asks one server who the others are; `open_tasks` opens the pool. If a server is no more, neither are its
workers, and the connection to it ends: that is known at once. One that comes back at its address is used again.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from undertow.cluster import notes
from undertow.cluster.extra import over_sockets
from undertow.cluster.frames import BadFrame
from undertow.cluster.jobs import Jobs, Task
from undertow.cluster.pool import Pool
from undertow.cluster.roster import Times
from undertow.cluster.server import own_address
from undertow.cluster.shared_key import VARIABLE, key_file, shared_keys
from undertow.cluster.station import Ticket
from undertow.errors import Timeout, UndertowError, WorkerLost

log = logging.getLogger("undertow.cluster")

WHAT = "a session on a cluster"
PATIENCE = 60.0  # seconds to wait for servers that have not been there yet
RETURN = 0.8  # seconds for one that was there to come back, each time that a worker on it is to start
FAREWELL = 10.0  # seconds for servers to end what they have started
BEAT = 1.0  # seconds
TELL = 10.0  # seconds of waiting between two lines of the log
MOST_REFUSALS = 3  # in a row: then it is not by chance


def missing(task: Task) -> str:
    """The error of a server that is not there."""
    return f"there is no server at {task.address}, for {task}"


def refused(task: Task) -> str:
    """The error of a server that is somebody else's."""
    return f"what listens at {task.address}, for {task}, does not take this program's key, {key_file()}"


REFUSED_HINT = f"servers and sessions need the same key: copy that file, or name another one in {VARIABLE}"
MISSING_HINT = "start all servers of the cluster: `undertow server`, or tf.train.Server(...).join() in a program"


class Inquiry:
    """A `Visitor` of one server, that asks who it is."""

    def __init__(self, keys: Any, address: str) -> None:
        self.answer: tuple[Jobs, str, int] | None = None
        self.refusals = 0
        self._is_over = threading.Event()
        self._ways = over_sockets("server_sockets", WHAT).Ways([f"tcp://{address}"], keys, self)

    def ask(self, seconds: float) -> None:
        """Wait for the answer, for so long."""
        self._ways.open()
        try:
            self._is_over.wait(seconds)
        finally:
            self._ways.send(0, notes.encode("bye"))
            self._ways.close()

    def met(self, server: int) -> None:
        """Ask."""
        self.refusals = 0
        self._ways.send(server, notes.encode("hello"))

    def parted(self, server: int) -> None:
        """It may come back."""

    def refused(self, server: int) -> None:
        """Several times, it will not change its mind."""
        self.refusals += 1
        if self.refusals >= MOST_REFUSALS:
            self._is_over.set()

    def heard(self, server: int, parts: Sequence[bytes]) -> None:
        """The answer."""
        try:
            say, fields = notes.decode(parts, notes.FROM_SERVERS)
            if say == "task":
                self.answer = notes.told_jobs(fields["jobs"]), fields["job"], fields["index"]
                self._is_over.set()
        except BadFrame as error:
            log.warning("a server says what makes no sense: %s", error)

    def tick(self, now: float) -> None:
        """Nothing."""


def cluster_of(address: str, seconds: float = PATIENCE) -> tuple[Jobs, Task]:
    """The cluster that the server at "host:port" belongs to, and which task it is."""
    unknown = Task("?", 0, address)
    inquiry = Inquiry(shared_keys(over_sockets("server_sockets", WHAT).new_keys), address)
    inquiry.ask(seconds)
    if inquiry.answer is None and inquiry.refusals >= MOST_REFUSALS:
        raise UndertowError(refused(unknown).replace(f", for {unknown},", ""), hint=REFUSED_HINT)
    if inquiry.answer is None:
        raise Timeout(f"there is no server at {address} after {seconds:.0f} s", hint=MISSING_HINT)
    jobs, job, index = inquiry.answer
    task = jobs.find(job, index)
    if task is None:
        raise UndertowError(
            f"the server at {address} says that it is /job:{job}/task:{index}, which its cluster does not have",
            hint="start it again",
        )
    return jobs, task


@dataclass(slots=True, eq=False)
class Wanted:
    """A worker that is to start when its server is there, or is given up."""

    ticket: Ticket
    gone: Callable[[str], None]
    until: float


class ServerLauncher:
    """A `Launcher`, and the `Visitor` of all servers: worker k is started by that of task k."""

    def __init__(self, jobs: Jobs, keys: Any, patience: float) -> None:
        self._tasks = jobs.tasks
        self._patience = patience
        self.hint = MISSING_HINT  # of the error, if they are not all there
        self._lock = threading.Lock()  # of all below; nobody is called while it is held
        self._there: set[int] = set()  # servers that have said who they are
        self._seen: set[int] = set()  # likewise, ever
        self._wrong: dict[int, str] = {}  # servers that are there, but of another cluster; what to say of them
        self._refusals = [0] * len(jobs.tasks)
        self._wanted: dict[int, Wanted] = {}  # by incarnation
        self._started: dict[int, tuple[int, Callable[[str], None]]] = {}  # likewise: server, and whom to tell
        self._taking_leave: set[int] = set()
        self._is_over = threading.Event()
        self._next_beat = 0.0
        self._next_word = time.monotonic() + TELL
        self._is_open = False
        addresses = [f"tcp://{task.address}" for task in jobs.tasks]
        self._ways = over_sockets("server_sockets", WHAT).Ways(addresses, keys, self)

    def absent(self) -> list[Task]:
        """The tasks whose servers are not there."""
        with self._lock:
            return [task for server, task in enumerate(self._tasks) if server not in self._there]

    # ----------------------------------------------------------------------------------------------------------
    # What the pool asks for

    def start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        """Hand a ticket to a server, when that is there."""
        if not self._is_open:
            self._is_open = True
            self._ways.open()
        with self._lock:
            patience = RETURN if ticket.worker in self._seen else self._patience
            self._wanted[ticket.incarnation] = Wanted(ticket, gone, time.monotonic() + patience)
            is_there, wrong = ticket.worker in self._there, self._wrong.get(ticket.worker)
        if is_there:
            self._hand_over(ticket.worker)
        elif wrong is not None:
            self._give_up(ticket.worker, wrong)

    def end(self, worker: int, incarnation: int) -> None:
        """Have a worker ended by its server."""
        with self._lock:
            self._wanted.pop(incarnation, None)
            server, _ = self._started.pop(incarnation, (None, None))
        if server is not None:
            self._ways.send(server, notes.encode("end", incarnation=incarnation))

    def close(self) -> None:
        """Wait until servers have ended all. It takes no thread that is not there yet: a program may be ending."""
        with self._lock:
            if not self._is_open:
                return
            self._is_open = False
            self._wanted.clear()
            self._started.clear()
            self._taking_leave = set(self._there)
            leaving = list(self._taking_leave)
        for server in leaving:
            self._ways.send(server, notes.encode("bye"))
        if leaving:
            self._is_over.wait(FAREWELL)
        self._ways.close()

    # ----------------------------------------------------------------------------------------------------------
    # What servers say

    def met(self, server: int) -> None:
        """Ask who it is."""
        self._refusals[server] = 0
        self._ways.send(server, notes.encode("hello"))

    def parted(self, server: int) -> None:
        """Its workers end with the connection: either it is no more, or it will take us for somebody else."""
        with self._lock:
            self._there.discard(server)
            self._wrong.pop(server, None)
            lost = [number for number, (where, _) in self._started.items() if where == server]
            told = [self._started.pop(number)[1] for number in lost]
            self._leave(server)
        for gone in told:
            gone(f"the connection to its server, {self._tasks[server].address}, has ended")

    def refused(self, server: int) -> None:
        """It may be by chance."""
        self._refusals[server] += 1
        if self._refusals[server] >= MOST_REFUSALS:
            self.hint = REFUSED_HINT
            self._give_up(server, refused(self._tasks[server]))

    def heard(self, server: int, parts: Sequence[bytes]) -> None:
        """A note."""
        try:
            say, fields = notes.decode(parts, notes.FROM_SERVERS)
        except BadFrame as error:
            log.warning("the server at %s says what makes no sense: %s", self._tasks[server].address, error)
            return
        if say == "task":
            self._introduced(server, fields["job"], fields["index"])
        elif say == "gone":
            with self._lock:
                _, gone = self._started.pop(fields["incarnation"], (0, None))
            if gone is not None:
                gone(fields["why"])
        else:
            with self._lock:
                self._leave(server)

    def tick(self, now: float) -> None:
        """Give up those who do not come; say that we are here."""
        with self._lock:
            late = [number for number, wanted in self._wanted.items() if now > wanted.until]
            given_up = [self._wanted.pop(number) for number in late]
            there = list(self._there)
            waiting = sorted({wanted.ticket.worker for wanted in self._wanted.values()})
        for wanted in given_up:
            wanted.gone(missing(self._tasks[wanted.ticket.worker]))
        if now >= self._next_beat:
            self._next_beat = now + BEAT
            for server in there:
                self._ways.send(server, notes.encode("beat"))
        if now >= self._next_word:
            self._next_word = now + TELL
            for server in waiting:
                log.warning("still waiting: %s", missing(self._tasks[server]))

    def _introduced(self, server: int, job: str, index: int) -> None:
        task = self._tasks[server]
        if (job, index) != (task.job, task.index):
            why = f"the server at {task.address} is /job:{job}/task:{index}, not {task}"
            with self._lock:
                self._wrong[server] = why
            self._give_up(server, why)
            return
        with self._lock:
            self._there.add(server)
            self._seen.add(server)
        self._hand_over(server)

    def _hand_over(self, server: int) -> None:
        """The tickets that are for that server."""
        with self._lock:
            numbers = [number for number, wanted in self._wanted.items() if wanted.ticket.worker == server]
            ready = [self._wanted.pop(number) for number in numbers]
            for wanted in ready:
                self._started[wanted.ticket.incarnation] = server, wanted.gone
        for wanted in ready:
            self._ways.send(server, notes.encode("start", ticket=notes.fields_of(wanted.ticket)))

    def _give_up(self, server: int, why: str) -> None:
        with self._lock:
            numbers = [number for number, wanted in self._wanted.items() if wanted.ticket.worker == server]
            given_up = [self._wanted.pop(number) for number in numbers]
        for wanted in given_up:
            wanted.gone(why)

    def _leave(self, server: int) -> None:
        if server in self._taking_leave:
            self._taking_leave.discard(server)
            if not self._taking_leave:
                self._is_over.set()


def open_tasks(jobs: Jobs, retries: int = 3, seconds: float = PATIENCE) -> tuple[Pool, ServerLauncher]:
    """A worker on each task, when all are there; and what has had them started.

    `seconds` are for each server to be there, and at each of the few times that a worker on it is tried to start.
    """
    keys = shared_keys(over_sockets("server_sockets", WHAT).new_keys)
    network = over_sockets("sockets", WHAT).SocketNetwork()
    launcher = ServerLauncher(jobs, keys, seconds)
    pool = Pool(launcher, network, len(jobs.tasks), retries, Times(), listen=f"tcp://{address_for(jobs)}:*")
    try:
        return pool.open(max(seconds, PATIENCE)), launcher
    except (TimeoutError, WorkerLost) as error:
        absent = [task.address for task in launcher.absent()]
        if isinstance(error, WorkerLost):
            error.hint = launcher.hint
            raise
        what = f"there is no server at {', '.join(absent)}" if absent else "not all workers are there"
        raise Timeout(f"{what} after {max(seconds, PATIENCE):.0f} s", hint=launcher.hint) from None


def address_for(jobs: Jobs) -> str:
    """An address of this machine that all servers reach: not loopback, unless all are at that."""
    for task in jobs.tasks:
        host = own_address(task)
        if not (host.startswith("127.") or host == "[::1]"):
            family = socket.AF_INET6 if host.startswith("[") else socket.AF_INET
            with socket.socket(family, socket.SOCK_DGRAM) as way:
                way.connect((host.strip("[]"), task.port))  # sends nothing
                mine = str(way.getsockname()[0])
            return f"[{mine}]" if family == socket.AF_INET6 else mine
    return "127.0.0.1"
