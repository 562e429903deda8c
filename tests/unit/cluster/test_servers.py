"""The parts of servers that need no process: the shared key, notes, and the desk of a server."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import undertow as ut
from undertow.cluster import notes, shared_key
from undertow.cluster.frames import BadFrame
from undertow.cluster.jobs import Jobs
from undertow.cluster.roster import Times
from undertow.cluster.server import SILENCE, Desk
from undertow.cluster.servers import address_for
from undertow.cluster.station import STRANGER, Action, Forget, Keys, Send, Ticket

ONE, OTHER = Keys(b"a" * 40, b"b" * 40), Keys(b"c" * 40, b"d" * 40)
JOBS = Jobs.of({"local": ["localhost:2222", "localhost:2223"], "ps": {4: "localhost:2224"}})


# -- the key -----------------------------------------------------------------------------------------------


@pytest.fixture
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(shared_key.VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path / "undertow" / "cluster.key"


def test_it_is_made_once_and_for_its_user_alone(key: Path) -> None:
    assert shared_key.shared_keys(lambda: ONE) == ONE
    assert shared_key.shared_keys(lambda: OTHER) == ONE
    assert stat.S_IMODE(key.stat().st_mode) == 0o600 and stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert os.listdir(key.parent) == ["cluster.key"]


def test_whoever_makes_it_first_has_made_it(key: Path) -> None:
    """Another process makes it while this one does."""

    def make() -> Keys:
        shared_key.shared_keys(lambda: OTHER)
        return ONE

    assert shared_key.shared_keys(make) == OTHER


def test_another_file(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(shared_key.VARIABLE, str(tmp_path / "mine"))
    assert shared_key.shared_keys(lambda: ONE) == ONE
    assert (tmp_path / "mine").exists() and not key.exists()


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_can_reach_is_refused(key: Path, mode: int) -> None:
    shared_key.shared_keys(lambda: ONE)
    key.chmod(mode)
    with pytest.raises(ut.UndertowError, match="others may read") as caught:
        shared_key.shared_keys(lambda: ONE)
    assert "chmod 600" in caught.value.hint


def test_what_is_no_key_is_refused(key: Path, tmp_path: Path) -> None:
    shared_key.shared_keys(lambda: ONE)
    for text in (b"", b"a" * 81, b"a" * 40 + b" " + b"b" * 41 + b"\n"):
        key.write_bytes(text)
        with pytest.raises(ut.UndertowError, match="holds no key"):
            shared_key.shared_keys(lambda: ONE)
    key.rename(tmp_path / "elsewhere")
    key.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ut.UndertowError, match="cannot be used"):
        shared_key.shared_keys(lambda: ONE)


# -- notes -------------------------------------------------------------------------------------------------

TICKET = Ticket("tcp://127.0.0.1:1", b"k" * 40, bytes(16), 0, 3, ONE, "tcp://127.0.0.1:*", Times())


def test_notes_come_back() -> None:
    say, fields = notes.decode(notes.encode("start", ticket=notes.fields_of(TICKET)), notes.FROM_SESSIONS)
    assert (say, notes.ticket_of(fields["ticket"])) == ("start", TICKET)
    parts = notes.encode("task", jobs=JOBS.as_dict(), job="ps", index=4)
    _, fields = notes.decode(parts, notes.FROM_SERVERS)
    assert notes.told_jobs(fields["jobs"]) == JOBS


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b"GET / HTTP/1.1"],
        [notes.MAGIC],
        [b"UTsv2", b'{"say": "bye"}'],
        [notes.MAGIC, b"\xff"],
        [notes.MAGIC, b"[" * 100_000],
        [notes.MAGIC, b"[]"],
        [notes.MAGIC, b'{"say": "task", "jobs": {}, "job": "a", "index": 0}'],  # a server says that
        [notes.MAGIC, b'{"say": ["bye"]}'],
        [notes.MAGIC, b'{"say": "bye", "why": 3}'],
        [notes.MAGIC, b'{"say": "end"}'],
        [notes.MAGIC, b'{"say": "end", "incarnation": true}'],
        [notes.MAGIC, b'{"say": "end", "incarnation": 1e3}'],
        [notes.MAGIC, b'{"say": "start", "ticket": "x"}'],
    ],
)
def test_what_is_no_note_is_refused(parts: list[bytes]) -> None:
    with pytest.raises(BadFrame):
        notes.decode(parts, notes.FROM_SESSIONS)


def test_what_is_no_ticket_is_refused() -> None:
    whole = notes.fields_of(TICKET)
    spoiled = [{key: value for key, value in whole.items() if key != name} for name in whole]
    spoiled += [{**whole, "more": 1}, {**whole, "worker": -1}, {**whole, "incarnation": "3"}]
    spoiled += [{**whole, "address": 7}]
    spoiled += [
        {**whole, "keys": {}},
        {**whole, "times": {"pace": 1}},
        {**whole, "times": {**whole["times"], "beat": 0}},
    ]
    spoiled += [{**whole, "keys": {}}, {**whole, "session": "zz"}, {**whole, "listen": "ipc://x"}]
    for fields in spoiled:
        with pytest.raises(BadFrame):
            notes.ticket_of(fields)


# -- the desk ----------------------------------------------------------------------------------------------


class Noted:
    """A launcher that only notes what it is asked for."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def start(self, ticket: Ticket, gone: Callable[[str], None]) -> None:
        self.done.append(ticket)
        self.gone = gone

    def end(self, worker: int, incarnation: int) -> None:
        self.done.append(incarnation)

    def close(self) -> None:
        self.done.append("closed")


class Office:
    """A desk, and the launchers that it was given."""

    def __init__(self) -> None:
        self.launchers: list[Noted] = []
        self.gone: list[tuple[int, int, str]] = []

        def launch() -> Noted:
            self.launchers.append(Noted())
            return self.launchers[-1]

        def dismiss(launcher: object, then: Callable[[], None]) -> None:
            assert isinstance(launcher, Noted)
            launcher.close()
            then()

        there = JOBS.tasks[1]
        self.desk = Desk(JOBS, there, "tcp://127.0.0.9:*", launch, dismiss, lambda *what: self.gone.append(what))

    def say(self, source: int, say: str, now: float = 0.0, **fields: object) -> list[Action]:
        self.desk.receive(source, notes.encode(say, **fields), now)
        return self.desk.actions()


def test_who_it_is() -> None:
    (answer,) = Office().say(7, "hello")
    assert isinstance(answer, Send) and answer.to == 7
    _, fields = notes.decode(answer.parts, notes.FROM_SERVERS)
    assert (fields["job"], fields["index"], notes.told_jobs(fields["jobs"])) == ("local", 1, JOBS)


def test_sessions_have_workers_of_their_own() -> None:
    office = Office()
    for source in (1, 2):
        office.say(source, "start", ticket=notes.fields_of(TICKET))
    office.say(1, "end", incarnation=3)
    first, second = office.launchers
    (ticket, ended), (same,) = first.done, second.done
    assert isinstance(ticket, Ticket) and ticket == same and ended == 3
    assert ticket.listen == "tcp://127.0.0.9:*" and ticket.address == TICKET.address  # where the server is
    second.gone("it is ill")
    assert office.gone == [(2, 3, "it is ill")]
    bye, forgotten = office.say(1, "bye")
    assert isinstance(bye, Send) and forgotten == Forget(1)
    assert first.done[-1] == "closed" and second.done[-1] == ticket and list(office.desk.sessions) == [2]


def test_a_ticket_is_used_once() -> None:
    office = Office()
    for _ in range(2):
        office.say(1, "start", ticket=notes.fields_of(TICKET))
    assert len(office.launchers[0].done) == 1 and office.desk.refused == 1


def test_who_is_silent_has_left() -> None:
    office = Office()
    office.say(1, "start", ticket=notes.fields_of(TICKET))
    office.say(2, "start", ticket=notes.fields_of(TICKET))
    office.say(2, "beat", now=SILENCE)
    office.desk.tick(SILENCE + 0.5)
    assert office.desk.actions() == [Forget(1)]
    assert office.launchers[0].done[-1] == "closed" and list(office.desk.sessions) == [2]


def test_nonsense_is_counted() -> None:
    office, chance = Office(), Random(3)
    whole = notes.encode("start", ticket=notes.fields_of(TICKET))[1]
    for _ in range(200):
        spoiled = bytearray(whole)
        del spoiled[chance.randrange(len(spoiled)) :]
        office.desk.receive(1, [notes.MAGIC, bytes(spoiled)], 0.0)
    office.desk.refuse(STRANGER, "no key")
    assert office.desk.refused == 201 and not office.launchers and not office.desk.actions()


def test_where_a_session_listens() -> None:
    assert address_for(JOBS) == "127.0.0.1"
    assert address_for(Jobs.of({"a": ["[::1]:1"]})) == "127.0.0.1"
