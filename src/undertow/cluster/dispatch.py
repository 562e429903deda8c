"""Who runs what: tasks, the workers that have them, and what is run again when a worker is lost.

A link is a run, or a task on a worker that gives lanes away. A task belongs to a link. Its *steps* are the phases that
it was asked for, in order, with their messages; these are kept until it is dropped. The worker that takes the first
step holds the task, and gets the others. If that worker is lost, all steps run again, in order, on another, and replies
that the link already has are dropped: each step has one accepted reply.

States and events alone: what should be said to workers is collected in `outbox`, replies for runs of this process in
`Link.replies`.

Why nothing waits for ever: a task that waits for tasks of its own does not count as load, and its worker runs others
meanwhile. So while a worker is left, every task that does not wait gets its turn, and tasks wait only for younger ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from undertow.cluster.frames import Buffer, Kind, Message, encode_numbers
from undertow.cluster.roster import Entry, Roster
from undertow.cluster.tracks import Tracks
from undertow.errors import RunError, WorkerLost

AHEAD = 2  # tasks of a worker at once: one runs, one is there when it ends
LONGEST = 1 << 14  # bytes of the text of an error
NUMBERS = 32  # links and values are numbered by whoever makes them: incarnation << 32 | count; the driver is 0


@dataclass(frozen=True, slots=True)
class Step:
    """A phase that a task was asked for."""

    phase: int
    shared: tuple[int, ...]
    message: tuple[Buffer, ...]


@dataclass(slots=True, eq=False)
class Task:
    """Lanes of one invocation, from the first phase to the last."""

    link: Link
    number: int
    steps: list[Step] = field(default_factory=list)
    accepted: int = 0  # steps whose reply the link has
    holder: Entry | None = None
    told: int = 0  # steps that the holder has been told
    replied: int = 0  # and has replied to
    losses: int = 0
    is_queued: bool = False

    @property
    def is_running(self) -> bool:
        """Whether its holder has something to do for it."""
        return self.holder is not None and self.told > self.replied


@dataclass(frozen=True, slots=True)
class Reply:
    """What a run gets: the reply to a phase of a task, or why there is none."""

    task: int
    phase: int
    parts: tuple[Buffer, ...]
    error: Exception | None = None


def taken_from(replies: deque[Reply]) -> list[Reply]:
    """All replies that are there; they are so no more."""
    return [replies.popleft() for _ in range(len(replies))]


def results_of(taken: list[Reply]) -> list[tuple[int, int, bytes]]:
    """What replies give: task, phase, bytes. Raises the first error among them."""
    for reply in taken:
        if reply.error is not None:
            raise reply.error
    return [(reply.task, reply.phase, b"".join(reply.parts)) for reply in taken]


@dataclass(frozen=True, slots=True)
class Span:
    """A phase of a task, when it ran on which worker: a piece of that worker's track. Seconds of the driver's clock."""

    worker: int
    link: int
    task: int
    phase: int
    began: float
    ended: float
    sent: int  # bytes of its message
    received: int  # bytes of its reply


@dataclass(slots=True)
class Away:
    """What of a run was done on workers so far."""

    phases: int = 0
    sent: int = 0
    received: int = 0
    workers: set[int] = field(default_factory=set)

    def add(self, worker: int, sent: int, received: int) -> None:
        """One phase more."""
        self.phases += 1
        self.sent += sent
        self.received += received
        self.workers.add(worker)


@dataclass(slots=True, eq=False)
class Link:
    """Who asks for tasks: a run of this process (origin 0), or a task of the incarnation `origin`."""

    number: int
    origin: int
    plan: int
    tasks: dict[int, Task] = field(default_factory=dict)
    values: list[int] = field(default_factory=list)
    replies: deque[Reply] = field(default_factory=deque)
    error: Exception | None = None
    root: Link | None = None  # the run of this process in which all began, unless it is this
    away: Away = field(default_factory=Away)
    spans: list[Span] | None = None  # if somebody wants to know


class Dispatch:
    """All links, tasks and shared values of a pool."""

    def __init__(self, roster: Roster, retries: int) -> None:
        self._roster = roster
        self._retries = retries
        self._links: dict[int, Link] = {}
        self._held: dict[int, dict[Task, None]] = {}  # tasks by the incarnation that holds them, oldest first
        self._queue: deque[Task] = deque()  # tasks that nobody holds
        self._plans: dict[bytes, int] = {}
        self._plan_messages: dict[int, Message] = {}
        self._values: dict[int, Message] = {}
        self._count = 0
        self.outbox: list[tuple[Entry, Message]] = []

    # ----------------------------------------------------------------------------------------------------------
    # What links ask for

    def plan(self, key: bytes, data: Buffer) -> int:
        """The number of a plan."""
        number = self._plans.get(key)
        if number is None:
            number = self._plans[key] = self.new_number()
            self._plan_messages[number] = Message(Kind.PLAN, (number,), (key, data))
        return number

    def open(self, plan: int) -> Link:
        """A link for a run of this process."""
        number = self.new_number()
        link = self._links[number] = Link(number, 0, plan)
        return link

    def adopt(self, number: int, origin: int, plan: int, parent: int) -> bool:
        """A link for a task of that incarnation, which is one of the link `parent`. Whether that can be."""
        if number >> NUMBERS != origin or number in self._links or plan not in self._plan_messages:
            return False
        above = self._links.get(parent)
        self._links[number] = Link(number, origin, plan, root=above if above is None else above.root or above)
        return True

    def known(self, number: int, origin: int) -> Link | None:
        """A link that is open, if it is of that origin."""
        link = self._links.get(number)
        return link if link is not None and link.origin == origin else None

    def new_number(self) -> int:
        """For a link, a plan, or a value."""
        self._count += 1
        return self._count

    def publish(self, link: Link, number: int, data: Buffer | None) -> bool:
        """A value for many tasks: told to a worker before the first that needs it. None: it comes by another way.

        Whether it can be.
        """
        if number >> NUMBERS != link.origin or number in self._values:
            return False
        link.values.append(number)
        message = Message(Kind.VALUE, (link.number, number, data is None), (b"" if data is None else data,))
        self._values[number] = message
        return True

    def submit(self, link: Link, number: int, step: Step) -> None:
        """Run a phase of a task: a new one, or one that has had its earlier phases."""
        if link.error is not None:
            self._answer(link, Reply(number, step.phase, (), link.error))
            return
        task = link.tasks.get(number)
        if task is None:
            task = link.tasks[number] = Task(link, number)
        task.steps.append(step)
        if task.holder is not None:
            self._tell(task)
        elif not task.is_queued:
            self._enqueue(task)
            self.assign()

    def drop(self, link: Link, number: int) -> None:
        """A task has no more phases."""
        task = link.tasks.pop(number, None)
        if task is not None:
            self._release(task)
            self.assign()

    def close(self, link: Link) -> None:
        """A run has ended: its tasks, and values, are needed no more."""
        if self._links.pop(link.number, None) is None:
            return
        for task in link.tasks.values():
            self._release(task, tell=False)
        for value in link.values:
            self._values.pop(value, None)
        for entry in self._roster:
            if link.number in entry.told:
                entry.told.difference_update(link.values, (link.number,))
                self.outbox.append((entry, Message(Kind.CLOSE, (link.number,))))
        link.tasks.clear()
        self.assign()

    def idle(self) -> int:
        """How many tasks could begin at once."""
        if self._queue:
            return 0
        return sum(not entry.load for entry in self._roster if entry.is_ready)

    # ----------------------------------------------------------------------------------------------------------
    # What workers say

    def reply(
        self,
        entry: Entry,
        link_number: int,
        reply: Reply,
        now: float = 0.0,
        took: float = 0.0,
        tracks: Tracks | None = None,
    ) -> bool:
        """A worker has run a phase, or failed to, in so many seconds. Whether anybody waits for that."""
        link = self._links.get(link_number)
        task = None if link is None else link.tasks.get(reply.task)
        if link is None or task is None or task.holder is not entry or not task.is_running:
            return False
        if task.steps[task.replied].phase != reply.phase:
            return False
        task.replied += 1
        if not task.is_running:
            entry.running -= 1
        if task.replied > task.accepted:
            task.accepted += 1
            self._record(link, task, entry, reply, now, took, tracks)
            self._answer(link, reply)
        self.assign()
        return True

    def lose(self, entry: Entry, why: str) -> None:
        """An incarnation is gone: its tasks are run again elsewhere, and those that they asked for are not needed."""
        held = list(self._held.pop(entry.incarnation, ()))
        for link in [link for link in self._links.values() if link.origin == entry.incarnation]:
            self.close(link)
        begun = entry.waiting + 1  # of those that run; the others were waiting there for their turn
        again = []
        for task in held:
            if task.is_running and begun:
                begun -= 1
                task.losses += 1
            task.holder, task.told, task.replied = None, 0, 0
            if task.link.number not in self._links:
                continue
            if task.losses > self._retries:
                self._fail(task.link, lost(entry, why, task.losses))
            elif task.accepted < len(task.steps):
                again.append(task)
        for task in reversed(again):
            if task.link.error is None:
                task.is_queued = True
                self._queue.appendleft(task)
        self.assign()

    def abandon(self, error: Exception) -> None:
        """No worker is left, and none will come."""
        for link in list(self._links.values()):
            self._fail(link, error)

    # ----------------------------------------------------------------------------------------------------------
    # Who gets what

    def assign(self) -> None:
        """Give queued tasks to workers that have least to do."""
        while self._queue:
            entry = min(
                (entry for entry in self._roster if entry.is_ready),
                key=lambda entry: (entry.load, len(self._held.get(entry.incarnation, ())), entry.worker),
                default=None,
            )
            if entry is None or entry.load >= AHEAD:
                return
            task = self._queue.popleft()
            if not task.is_queued:
                continue
            task.is_queued = False
            task.holder = entry
            self._held.setdefault(entry.incarnation, {})[task] = None
            self._tell(task)

    def _tell(self, task: Task) -> None:
        """Tell its holder the steps that it has not been told, and what they need."""
        entry, link = task.holder, task.link
        assert entry is not None
        entry.running += not task.is_running
        for step in task.steps[task.told :]:
            if link.plan not in entry.told:
                entry.told.add(link.plan)
                self.outbox.append((entry, self._plan_messages[link.plan]))
            entry.told.add(link.number)
            for value in step.shared:
                if value not in entry.told and value in self._values:
                    message = self._values[value]
                    entry.told.update((value, message.fields[0]))
                    self.outbox.append((entry, message))
            fields = link.number, task.number, step.phase, link.plan
            self.outbox.append((entry, Message(Kind.RUN, fields, (encode_numbers(step.shared), *step.message))))
        task.told = len(task.steps)

    def _enqueue(self, task: Task) -> None:
        task.is_queued = True
        if task.link.origin:  # another task waits for it, and holds memory meanwhile
            self._queue.appendleft(task)
        else:
            self._queue.append(task)

    def _release(self, task: Task, tell: bool = True) -> None:
        task.is_queued = False
        if task.holder is not None:
            self._held.get(task.holder.incarnation, {}).pop(task, None)
            task.holder.running -= task.is_running
            if tell:
                self.outbox.append((task.holder, Message(Kind.DROP, (task.link.number, task.number))))
            task.holder = None

    @staticmethod
    def _record(
        link: Link, task: Task, entry: Entry, reply: Reply, now: float, took: float, tracks: Tracks | None
    ) -> None:
        root = link.root or link
        sent = sum(map(len, task.steps[task.replied - 1].message))
        received = sum(map(len, reply.parts))
        root.away.add(entry.worker, sent, received)
        if root.spans is not None:
            span = Span(entry.worker, link.number, task.number, reply.phase, max(now - took, 0.0), now, sent, received)
            root.spans.append(span)
        if tracks is not None:
            name = f"task {task.number}, phase {reply.phase}"
            tracks.span(entry.worker, name, now - took, now, run=root.number, sent=sent, received=received)

    def _answer(self, link: Link, reply: Reply) -> None:
        if not link.origin:
            link.replies.append(reply)
            return
        entry = self._roster.get(link.origin)
        if entry is None:
            return
        fields = link.number, reply.task, reply.phase, 0
        if reply.error is None:
            self.outbox.append((entry, Message(Kind.REPLY, fields, reply.parts)))
        else:
            self.outbox.append((entry, Message(Kind.FAILED, fields, describe(reply.error))))

    def _fail(self, link: Link, error: Exception) -> None:
        """A link gets this error for all that it waits for, and for whatever it asks from now on."""
        link.error = error
        for task in link.tasks.values():
            self._release(task)
            for step in task.steps[task.accepted :]:
                self._answer(link, Reply(task.number, step.phase, (), error))
            task.accepted = len(task.steps)


# --------------------------------------------------------------------------------------------------------------
# Errors as bytes


def lost(entry: Entry, why: str, losses: int) -> WorkerLost:
    """What a run is told when it was given up."""
    times = "once" if losses == 1 else "twice" if losses == 2 else f"{losses} times"
    return WorkerLost(
        f"worker {entry.worker} was lost: {why}; the same task has now been lost {times}",
        hint="look into that worker's log; allow more `retries` if machines come and go",
    )


def describe(error: BaseException) -> tuple[bytes, bytes, bytes]:
    """Class, text and hint: what an error says, without its traceback."""
    try:
        what, hint = str(getattr(error, "what", None) or error) or repr(error), str(getattr(error, "hint", ""))
    except Exception as worse:  # it cannot even say what it is
        what, hint = f"it has no text: {type(worse).__name__}", ""
    name, what_bytes, hint_bytes = (text.encode("utf-8", "replace") for text in (type(error).__name__, what, hint))
    return name[:LONGEST], what_bytes[:LONGEST], hint_bytes[:LONGEST]


def error_of(parts: Sequence[str], where: str) -> Exception:
    """The error that a worker described."""
    name, what, hint = parts
    if name == WorkerLost.__name__:
        return WorkerLost(what, hint=hint)
    return RunError(f"{where}: {name}: {what}", hint=hint)
