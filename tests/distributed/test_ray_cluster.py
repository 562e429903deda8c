"""`undertow cluster up`, `status` and `down`, and programs that find it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="make test-ray installs it")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.filterwarnings("default")]

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    subprocess.run(command("cluster", "down"), env=surroundings(tmp_path), capture_output=True, timeout=PATIENCE)


def surroundings(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return {**kept, "HOME": str(home), "XDG_RUNTIME_DIR": str(home), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "undertow", *arguments]


def run(home: Path, *arguments: str, code: int = 0, start: tuple[str, ...] = (sys.executable, "-m", "undertow")) -> str:
    done = subprocess.run(
        [*start, *arguments], env=surroundings(home), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


PROGRAM = """
import subprocess, sys
import undertow as ut
from undertow.ray import clusters
clusters.SERVICES = "tests.support.mapped:services"
with ut.ray.connect(*sys.argv[1:]) as cluster:
    assert cluster.workers == 2
    for worker in range(2):
        assert cluster.pool.call(worker, "echo", b"abc").result(60) == [b"abc"]
    subprocess.run([sys.executable, "-m", "undertow", "cluster", "status"])
"""


def test_up_status_down(home: Path) -> None:
    said = run(home, "cluster", "up", "--workers", "2", "--memory", "128M")
    folder = Path(said.partition("files are in ")[2].split()[0])
    assert "Ray is up at 127.0.0.1:" in said and (folder / "token").stat().st_mode & 0o077 == 0
    assert "runs here already" in run(home, "cluster", "up", code=1)
    said = run(home, "cluster", "status")
    assert "alive" in said and "no workers of Undertow" in said
    address = said.partition("Ray at ")[2].split()[0]
    said = run(home, "-c", PROGRAM, address, start=(sys.executable,))
    rows = [line.split() for line in said.splitlines()]
    assert ["worker", "machine", "process", "state", "program"] in rows
    assert sum(row[1:2] == ["127.0.0.1"] and row[3:4] == ["alive"] for row in rows) == 2
    assert "is down" in run(home, "cluster", "down")
    assert not folder.exists() and processes_with(str(folder)) == []
    assert "no cluster of yours" in run(home, "cluster", "down", code=1)
    assert "there is no Ray cluster on this machine" in run(home, "cluster", "status", code=1)
    assert [path.name for path in home.iterdir()] == []


PRIVATE = """
import sys
import undertow as ut
with ut.ray.cluster(workers=1):
    print("it is there", flush=True)
    sys.stdin.read()
"""

JOINS = """
import undertow as ut
with ut.ray.connect(seconds=60):
    print("joined")
"""


def test_the_cluster_of_another_program_is_not_found(home: Path) -> None:
    """What `ut.ray.cluster()` starts is for one program; a cluster that stays is found beside it."""
    with subprocess.Popen(
        [sys.executable, "-c", PRIVATE],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=surroundings(home), text=True,
    ) as other:  # fmt: skip
        assert other.stdout is not None and other.stdout.readline() == "it is there\n"
        began = time.monotonic()
        assert "there is no Ray cluster on this machine" in run(home, "cluster", "status", code=1)
        assert "there is no Ray cluster on this machine" in run(home, "-c", JOINS, start=(sys.executable,), code=1)
        assert time.monotonic() - began < 30.0  # two Pythons have started
        said = run(home, "cluster", "up", "--workers", "1", "--memory", "128M")
        assert said.partition("Ray is up at ")[2].partition(",")[0] in run(home, "cluster", "status")
        assert "joined" in run(home, "-c", JOINS, start=(sys.executable,))
        other.communicate("")


CRASHES = """
import os, signal, sys
import undertow as ut
with ut.ray.connect(workers=2) as cluster:
    print("processes", *(row.process for row in cluster.stats()), flush=True)
    os.kill(cluster.stats()[0].process, signal.SIGSTOP)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_program_that_crashes(home: Path) -> None:
    """Its workers end, a frozen one too; the cluster stays, and takes the next program."""
    run(home, "cluster", "up", "--workers", "2", "--memory", "128M")
    said = run(home, "-c", CRASHES, start=(sys.executable,), code=-9)
    processes = [int(number) for number in said.partition("processes ")[2].split()[:2]]
    end = time.monotonic() + 60.0
    while there := [number for number in processes if b"undertow" in ray_name(number) or b"ray::" in ray_name(number)]:
        assert time.monotonic() < end, there
    assert "no workers of Undertow" in run(home, "cluster", "status")
    run(home, "-c", PROGRAM, start=(sys.executable,))


def ray_name(process: int) -> bytes:
    """What an actor's process calls itself; nothing if it is no more."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


OUTSIDE = """
import os, signal, sys
import numpy as np
import undertow as ut
from tests.support import learners
from undertow.ray import clusters
clusters.SERVICES = "tests.support.mapped:training"
STEPS = 6
if __name__ == "__main__":
    wanted = learners.expected(STEPS)
    with ut.ray.connect(sys.argv[1], workers=2) as cluster:
        assert cluster.pool.address.startswith("tcp://127.0.0.1:"), cluster.pool.address
        trainer = ut.ray.DataParallel(learners.loss, learners.params(), learners.OPTIMIZER, has_aux=True, clip=0.5)
        losses = []
        for number, batch in enumerate(learners.batches(STEPS)):
            if number == 3:
                os.kill(cluster.stats()[0].process, signal.SIGKILL)
            losses.append(trainer.step(batch)[0])
        cluster.pool.wait_for_workers(seconds=90.0)
        assert losses == wanted[0] and trainer.again == 1
        assert learners.same_bits(trainer._fleet.replica.arrays(), wanted[1])
        large = np.arange(1 << 20)
        assert bytes(cluster.pool.call(1, "echo", [large.data]).result(60)[0]) == large.tobytes()
    print("it went well")
"""


def own_address() -> str:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect(("192.0.2.77", 9))  # nothing is sent
        return str(way.getsockname()[0])


def free_port(address: str, first: int) -> str:
    """A port that nobody uses now, above those that Ray gives its workers."""
    for port in range(first, first + 5000):
        with socket.socket() as way, contextlib.suppress(OSError):
            way.bind((address, port))
            return str(port)
    raise AssertionError("no port is free")


def test_from_outside(home: Path) -> None:
    """With ray:// only one port of the cluster has to be reached, and nobody has to reach this program."""
    try:
        address = own_address()
    except OSError:
        pytest.skip("this machine has no address beyond loopback")
    ports = "--port", free_port(address, 21000), "--client-port", free_port(address, 26000)
    said = run(home, "cluster", "up", "--workers", "2", "--memory", "128M", "--listen", address, *ports)
    folder = said.partition("files are in ")[2].split()[0]
    client = said.partition('ut.ray.connect("')[2].partition('"')[0]
    assert client.startswith(f"ray://{address}:")
    program = home / "outside.py"
    program.write_text(OUTSIDE)
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": f"{folder}/token"}
    done = subprocess.run(
        [sys.executable, str(program), client],
        env={**surroundings(home), **token}, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "it went well" in done.stdout, done.stdout + done.stderr


def processes_with(text: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found
