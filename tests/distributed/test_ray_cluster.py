"""`undertow cluster up`, `status` and `down`, and programs that find it."""

from __future__ import annotations

import os
import subprocess
import sys
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
    said = run(home, "-c", PROGRAM, start=(sys.executable,))
    rows = [line.split() for line in said.splitlines()]
    assert ["worker", "machine", "process", "state", "program"] in rows
    assert sum(row[1:2] == ["127.0.0.1"] and row[3:4] == ["alive"] for row in rows) == 2
    assert "is down" in run(home, "cluster", "down")
    assert not folder.exists() and processes_with(str(folder)) == []
    assert "no cluster of yours" in run(home, "cluster", "down", code=1)
    assert "there is no Ray cluster on this machine" in run(home, "cluster", "status", code=1)
    assert [path.name for path in home.iterdir()] == []


def processes_with(text: str) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in entry.read_bytes():
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found
