"""Notes between a session and a server: JSON of a few known forms, and nothing else.

>>> decode(encode("end", incarnation=3), FROM_SESSIONS)
('end', {'incarnation': 3})
>>> decode([b"UTsv1", b'{"say": "end", "incarnation": -3}'], FROM_SESSIONS)
Traceback (most recent call last):
undertow.cluster.frames.BadFrame: incarnation of end is -3
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from undertow.cluster.frames import BadFrame, Buffer
from undertow.cluster.jobs import Jobs
from undertow.cluster.station import Ticket
from undertow.errors import UndertowError

MAGIC = b"UTsv1"
LONGEST = 1 << 20  # bytes of a note: a cluster may have many tasks

Form = Mapping[str, Callable[[Any], bool]]


def is_number(value: Any) -> bool:
    """Of an incarnation, say."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 64


def is_text(value: Any) -> bool:
    """A text."""
    return isinstance(value, str)


def is_table(value: Any) -> bool:
    """What `ticket_of` or `jobs_of` takes apart."""
    return isinstance(value, dict)


FROM_SESSIONS: Mapping[str, Form] = {
    "hello": {},  # who are you?
    "beat": {},  # I am still here
    "start": {"ticket": is_table},  # a worker
    "end": {"incarnation": is_number},  # that worker
    "bye": {},  # end all of mine, and say when they are no more
}
FROM_SERVERS: Mapping[str, Form] = {
    "task": {"jobs": is_table, "job": is_text, "index": is_number},  # that I am, of that cluster
    "gone": {"incarnation": is_number, "why": is_text},  # a worker has ended
    "bye": {},
}


def encode(say: str, **fields: Any) -> list[bytes]:
    """A note, as the parts that are sent."""
    return [MAGIC, json.dumps({"say": say, **fields}).encode()]


def decode(parts: Sequence[Buffer], known: Mapping[str, Form]) -> tuple[str, dict[str, Any]]:
    """What it says, and its fields. Raises BadFrame."""
    if len(parts) != 2 or bytes(parts[0][: len(MAGIC) + 1]) != MAGIC or len(parts[1]) > LONGEST:
        raise BadFrame("no note of ours")
    try:
        fields = json.loads(bytes(parts[1]))
    except (ValueError, RecursionError):
        raise BadFrame("a note that is no JSON") from None
    if not isinstance(fields, dict) or not isinstance(say := fields.pop("say", None), str) or say not in known:
        raise BadFrame("a note of an unknown kind")
    form = known[say]
    if fields.keys() != form.keys():
        raise BadFrame(f"a note {say} with {sorted(fields)}, not {sorted(form)}")
    for name, is_fitting in form.items():
        if not is_fitting(fields[name]):
            raise BadFrame(f"{name} of {say} is {fields[name]!r:.60}")
    return say, fields


def ticket_of(fields: Mapping[str, Any]) -> Ticket:
    """The ticket in a note."""
    try:
        ticket = Ticket.from_bytes(json.dumps(fields).encode())
        times = (ticket.times.beat, ticket.times.silence, ticket.times.start, ticket.times.orphan)
        is_fitting = (
            all(is_number(number) for number in (ticket.worker, ticket.incarnation))
            and all(is_text(text) and text.startswith("tcp://") for text in (ticket.address, ticket.listen))
            and all(isinstance(seconds, (int, float)) and seconds > 0 for seconds in times)
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadFrame(f"a ticket that is none: {error}") from None
    if not is_fitting:
        raise BadFrame("a ticket that is none")
    return ticket


def fields_of(ticket: Ticket) -> dict[str, Any]:
    """A ticket, for a note."""
    found: dict[str, Any] = json.loads(ticket.to_bytes())
    return found


def jobs_of(fields: Mapping[str, Any]) -> Jobs:
    """The cluster in a note, or on a command line: JSON has no numbers for keys."""

    def numbered(tasks: Any) -> Any:
        is_table = isinstance(tasks, dict) and all(key.isascii() and key.isdigit() for key in tasks)
        return {int(key): address for key, address in tasks.items()} if is_table else tasks

    return Jobs.of({job: numbered(tasks) for job, tasks in fields.items()})


def told_jobs(fields: Mapping[str, Any]) -> Jobs:
    """The cluster in a note of somebody else."""
    try:
        return jobs_of(fields)
    except UndertowError as error:
        raise BadFrame(f"a cluster that is none: {error.what}") from None
