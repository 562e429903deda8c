"""Tracks of workers: what they were at, when they waited, and the file that says so."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.support.adders import SlowAdders, pause
from tests.support.network import Simulation

from undertow.cluster import tracks as module
from undertow.cluster.frames import Buffer
from undertow.cluster.member import Member
from undertow.cluster.tracks import DRIVER, Tracks


def dozing(member: Member) -> dict[str, object]:
    """A service that works for two seconds, and then waits for three, for a message of nobody's."""

    def doze(parts: Sequence[Buffer]) -> bytes:
        pause(member, 2.0)
        stream = member.stream(int(bytes(parts[0])), [member.peer])
        with pytest.raises(TimeoutError):
            stream.receive(member.peer, 3.0)
        stream.close()
        return b""

    return {"doze": doze}


def test_calls_and_waiting() -> None:
    with Simulation(seed=1) as simulation:
        pool = simulation.pool(2, dozing).open()
        with pool.tracked() as tracks:
            before = pool.now()
            pool.call(1, "doze", b"1", name="a nap").result()
            simulation.sleep(1.0)
        pool.call(1, "doze", b"2").result()  # nobody wants to know
        (mark,) = tracks.marks
        assert (mark.track, mark.name) == (1, "a nap")
        assert mark.ended is not None and 5.0 <= mark.ended - mark.began < 5.2 and mark.began >= before
        simulation.sleep(1.0)
        idle, busy = (row.waited for row in pool.stats())
        assert 3.4 <= idle - busy <= 4.6  # it has worked for two times two seconds, as of a sign of life
        assert {track for track, _, _ in tracks.counts} == {0, 1}
        sent = [counts["sent"] for track, _, counts in tracks.counts if track == 1]
        assert sent == sorted(sent) and sent[-1] > 0


def test_tasks_and_lost_workers() -> None:
    with Simulation(seed=2) as simulation:
        pool = simulation.pool(2, guests=SlowAdders).open()
        with pool.tracked() as tracks:
            link = pool.link(b"key", b"plan")
            assert link is not None
            for task in range(8):
                link.submit(task, 2, b"6", [])
            replies: list[bytes] = []
            while not replies:
                replies += [reply for _, _, reply in link.take(1.0)]
            simulation.kill(0)
            while len(replies) < 8:
                replies += [reply for _, _, reply in link.take(1.0)]
            link.close()
            simulation.sleep(5.0)
        names = [mark.name for mark in tracks.marks if mark.track >= 0]
        assert "task 0, phase 2" in names and "lost: it was silent for 2.1 s" in names and "ready" in names
        (run,) = (mark for mark in tracks.marks if mark.track == DRIVER)
        assert run.name == "run" and "tasks on 2 workers" in run.about["away"]
        tasks = [mark for mark in tracks.marks if mark.name.startswith("task")]
        assert {mark.about["run"] for mark in tasks} == {run.about["run"]}
        assert all(run.began <= mark.began for mark in tasks)


def test_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are microseconds since the first; what overlaps is in rows of its own."""
    monkeypatch.setattr(module, "MOST", 4)
    tracks = Tracks()
    tracks.span(DRIVER, "run", 100.0, 101.0, run=3)
    tracks.span(0, "one", 100.25, 100.75)
    tracks.span(0, "other", 100.5, 101.0)
    tracks.moment(1, "lost", 100.5)
    tracks.moment(1, "one too many", 100.5)
    tracks.count(0, 100.5, sent=7)
    assert tracks.dropped == 1
    path = tmp_path / "trace.json"
    tracks.write(path, {DRIVER: "this program", 0: "worker 0", 1: "worker 1"})
    events = json.loads(path.read_text())["traceEvents"]
    assert [event["args"]["name"] for event in events if event["name"] == "process_name"] == [
        "this program",
        "worker 0",
        "worker 1",
    ]
    rest = [event for event in events if event["ph"] != "M"]
    assert [(row["name"], row["ph"], row["pid"], row.get("tid"), row["ts"], row.get("dur")) for row in rest] == [
        ("run", "X", 0, 0, 0.0, 1e6),
        ("one", "X", 1, 0, 250000.0, 500000.0),
        ("other", "X", 1, 1, 500000.0, 500000.0),
        ("lost", "i", 2, 0, 500000.0, None),
        ("sent", "C", 1, None, 500000.0, None),
    ]
    assert rest[0]["args"] == {"run": 3} and rest[-1]["args"] == {"sent": 7}
