"""Workers that are Ray actors: they serve, map shared values, fail and come back; and nothing of Ray is left behind."""

from __future__ import annotations

import copy
import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import undertow as ut
from undertow.ray import clusters
from undertow.ray.clusters import Cluster

pytest.importorskip("ray", reason="make test-ray installs it")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.filterwarnings("default")]

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clusters, "SERVICES", "tests.support.mapped:services")
        patch.setattr(clusters, "GUESTS", "tests.support.mapped:Mapped")
        with ut.ray.cluster(workers=2) as cluster:
            yield cluster


def test_services(cluster: Cluster) -> None:
    assert cluster.workers == 2
    for worker in range(2):
        assert cluster.pool.call(worker, "echo", b"abc").result(PATIENCE) == [b"abc"]
    rows = cluster.stats()
    assert [row.calls for row in rows] == [1, 1] or all(row.is_ready for row in rows)
    assert str(rows).split()[:3] == ["worker", "where", "process"]
    assert len({row.process for row in rows} | {os.getpid()}) == 3


def test_the_way_to_workers_prints_as_a_table(cluster: Cluster) -> None:
    lines = str(cluster.probe()).splitlines()
    assert lines[0].split() == ["worker", "where", "there", "and", "back", "per", "second"] and len(lines) == 3


def test_shared_values_are_mapped(cluster: Cluster) -> None:
    """A large one comes by the object store, and is in its memory; a small one is sent."""
    link = cluster.pool.link(b"key", b"plan")
    assert link is not None
    numbers = [link.publish(memoryview(bytes(1 << 20) + b"big")), link.publish(memoryview(b"small"))]
    for task in range(4):
        link.submit(task, 0, b"", numbers)
    replies: list[bytes] = []
    while len(replies) < 4:
        replies += [reply for _, _, reply in link.take(PATIENCE)]
    link.close()
    for reply in replies:
        mapping, *_, big, small = reply.decode().split()
        assert mapping.startswith("/dev/shm/plasma") and (big, small) == ("big", "all")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_lost_workers_come_back(cluster: Cluster, how: signal.Signals) -> None:
    """One that is frozen is killed, though it does not hear Ray."""
    lost: queue.Queue[tuple[int, int, str]] = queue.Queue()
    cluster.pool.on_lost(lambda *news: lost.put(news))
    before = cluster.pool.workers()
    process = cluster.stats()[1].process
    descriptor = os.pidfd_open(process)
    os.kill(process, how)
    worker, incarnation, why = lost.get(timeout=PATIENCE)
    assert (worker, incarnation) == before[1] and ("Ray says" in why or "silent" in why)
    assert select.select([descriptor], [], [], PATIENCE)[0]
    os.close(descriptor)
    cluster.pool.wait_for_workers(2, PATIENCE)
    assert cluster.pool.workers()[0] == before[0] and cluster.pool.workers()[1][1] > incarnation
    assert cluster.pool.call(1, "echo", b"again").result(PATIENCE) == [b"again"]


def test_joining_what_this_program_is_connected_to(cluster: Cluster) -> None:
    """Its actors stay, and so does the connection."""
    import ray

    counter = ray.remote(num_cpus=0)(Counter).remote()
    with ut.ray.connect(workers=1, processors=0, listen=clusters.LOOPBACK) as joined:
        assert joined.pool.call(0, "echo", b"both").result(PATIENCE) == [b"both"]
    assert ray.is_initialized() and ray.get(counter.add.remote()) == 1
    with pytest.raises(ut.UndertowError, match="connected to a Ray cluster already") as caught, ut.ray.cluster():
        pass
    assert "leave the other block" in caught.value.hint and "shutdown" not in caught.value.hint
    assert [entry.name for entry in caught.traceback] == ["test_joining_what_this_program_is_connected_to"]


def test_too_few_processors(cluster: Cluster) -> None:
    """Both are taken by the block around: one error of ours, which says so."""
    began = time.monotonic()
    with pytest.raises(TimeoutError, match=r"0 of 2 workers are there .* which are 2, and \d of them free") as caught:
        ut.ray.connect(workers=2, seconds=2, listen=clusters.LOOPBACK).open()
    assert isinstance(caught.value, ut.UndertowError) and time.monotonic() - began < 30.0


def test_a_cluster_is_not_pickled(cluster: Cluster) -> None:
    for work in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(ut.TypeMismatch, match="a cluster cannot be pickled"):
            work(cluster)


class Counter:
    """An actor of somebody else's."""

    count = 0

    def add(self) -> int:
        self.count += 1
        return self.count


PROGRAM = """
import os, sys
import undertow as ut

def main():
    with ut.ray.cluster(workers=1) as cluster:
        print(os.environ["RAY_AUTH_TOKEN_PATH"], cluster.stats()[0].process, flush=True)
        if sys.argv[1] == "exception":
            sys.stdin.readline()
            raise ValueError("no luck")
        sys.stdin.read()

if sys.argv[1] == "twice":
    with ut.ray.cluster(workers=1):
        assert "RAY_AUTH_MODE" in os.environ
    assert "RAY_AUTH_MODE" not in os.environ
main()
"""


@pytest.mark.parametrize("end", ["SIGKILL", "SIGINT", "SIGTERM", "exception", "twice"])
def test_nothing_is_left(end: str, tmp_path: Path) -> None:
    """Of a program that ends in any way: no process, no folder, and nothing in its home."""
    home = tmp_path / "home"
    home.mkdir()
    env = {**os.environ, "HOME": str(home), "PYTHONPATH": f"{ROOT / 'src'}"}
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"):
        env.pop(name, None)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, end],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True,
    ) as program:  # fmt: skip
        assert program.stdout is not None and program.stderr is not None
        token, process = program.stdout.readline().split()
        keepers = [os.pidfd_open(number) for number in processes_with(token) if "keeper.py" in command_of(number)]
        assert len(keepers) == 1 and int(process) in processes_with(token)
        if end.startswith("SIG"):
            program.send_signal(signal.Signals[end])
        said = program.communicate("go on\n")[1]
        assert (program.returncode == 0) == (end == "twice"), said
        assert end != "exception" or "ValueError: no luck" in said
    assert select.select(keepers, [], [], PATIENCE)[0]
    os.close(keepers[0])
    assert [command_of(number) for number in processes_with(token)] == []
    assert not Path(token).parent.exists()
    assert list(home.iterdir()) == []


LOSES = """
import os, signal
import undertow as ut
with ut.ray.cluster(workers=2) as cluster:
    for number in (signal.SIGKILL, signal.SIGSTOP):
        starts = cluster.stats()[1].starts
        os.kill(cluster.stats()[1].process, number)
        while cluster.stats()[1].starts == starts:
            pass
        cluster.pool.wait_for_workers(seconds=60)
print("that is all")
"""


def test_lost_workers_do_not_spoil_what_a_program_prints() -> None:
    """Ray would tell of them on standard output."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    done = subprocess.run(
        [sys.executable, "-c", LOSES],
        env={**env, "PYTHONPATH": f"{ROOT / 'src'}"}, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout == "that is all\n"
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == [
        "worker 1, incarnation 2",
        "worker 1, incarnation 3",
    ]


@pytest.mark.parametrize("sign", ["head.py", "raylet"])
def test_nothing_is_left_of_a_start_that_is_interrupted(sign: str, tmp_path: Path) -> None:
    """By Ctrl-C, when Ray is about to start, and when it is starting."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    env |= {"HOME": str(tmp_path), "PYTHONPATH": f"{ROOT / 'src'}", "UNDERTOW_TEST": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "early"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=env, text=True
    ) as program:
        end = time.monotonic() + PATIENCE
        while not any(sign in command_of(number) for number in processes_with(str(tmp_path))):
            assert program.poll() is None and time.monotonic() < end
        program.send_signal(signal.SIGINT)
        said = program.communicate(timeout=PATIENCE)[1]
    assert program.returncode != 0 and "KeyboardInterrupt" in said
    assert str(ROOT / "src") not in said or sys.version_info < (3, 11), said  # no frames of ours
    assert [command_of(number) for number in processes_with(str(tmp_path))] == []


def processes_with(text: str) -> list[int]:
    """Processes in whose environment that stands."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def command_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return ""
