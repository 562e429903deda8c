"""`undertow cluster` and `undertow server`, where nothing runs: texts and errors.

With Ray: distributed/test_ray_cluster.py; with servers: distributed/test_servers.py.
"""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from undertow.cli import commands as cli
from undertow.cli.cluster import machines_table, workers_table
from undertow.cli.console import make_console
from undertow.ray import standing
from undertow.ray.survey import Machine, Placed


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def invoke(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(cli.app, ["cluster", *arguments])
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="the extra is installed")
@pytest.mark.parametrize("command", ["up", "status"])
def test_without_the_extra(command: str) -> None:
    said = invoke(command, code=1)
    assert "needs Ray" in said and "pip install 'undertow[ray]'" in said and "Traceback" not in said


def test_nothing_runs() -> None:
    said = invoke("down", code=1)
    assert "no cluster of yours runs here" in said and "hint: `undertow cluster up` starts one" in said


def test_wrong_usage() -> None:
    assert "memory='lots' is not a number of bytes" in invoke("up", "--memory", "lots", code=1)
    assert "too little for Ray's object store" in invoke("up", "--memory", "10M", code=1)
    assert "--workers" in invoke("up", "--workers", "0", code=2)


def here(**changes: object) -> str:
    """A note that names this process."""
    pid = os.getpid()
    row = {"address": "a", "client": "", "folder": "f", "keeper": pid, "born": standing.birth_of(pid)}
    return json.dumps({**row, **changes})


def test_a_note_of_ours_is_believed(home: Path) -> None:
    path = standing.note()
    assert path.parent == home
    path.write_text(here())
    path.chmod(0o600)
    found = standing.find()
    assert found is not None and found.keeper == os.getpid()


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (here(), 0o644),  # somebody else may read it
        (here(), 0o622),  # or write it
        (here(born="1"), 0o600),  # the process is another one now
        (here(keeper=2**22 + 1), 0o600),
        (here(more=1), 0o600),
        ("{}", 0o600),
        ("no note", 0o600),
    ],
    ids=["read by others", "written by others", "born later", "gone", "more", "empty", "no JSON"],
)
def test_others_are_not(text: str, mode: int) -> None:
    standing.note().write_text(text)
    standing.note().chmod(mode)
    assert standing.find() is None
    assert "no cluster of yours runs here" in invoke("down", code=1)


def test_links_are_not_followed(home: Path) -> None:
    (home / "elsewhere").write_text(here())
    (home / "elsewhere").chmod(0o600)
    standing.note().symlink_to(home / "elsewhere")
    assert standing.find() is None


def test_tables(capsys: pytest.CaptureFixture[str]) -> None:
    machines = [Machine("10.0.0.5", True, 8.0, 6.0, 16e9, 4e9), Machine("10.0.0.6", False, 0.0, 0.0, 0.0, 0.0)]
    workers = [Placed("10.0.0.5", 4711, "alive", "01000000"), Placed("10.0.0.5", 4712, "alive", "01000000")]
    console = make_console()
    console.print(machines_table(machines, workers))
    console.print(workers_table(workers))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[1] == ["10.0.0.5", "alive", "8", "6", "16.0", "GB", "4.0", "GB", "2"]
    assert rows[2] == ["10.0.0.6", "gone", "0"]
    assert rows[4] == ["0", "10.0.0.5", "4711", "alive", "01000000"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--cluster", "{"], 2, "--cluster is no JSON"),
        (["--cluster", "[]"], 2, "--cluster is no JSON object"),
        (["--cluster", '{"a": ["x"]}'], 1, "no address"),
        (["--cluster", '{"a": ["x:1", "y:1"]}'], 1, "which task of job 'a'"),
        (["--cluster", '{"a": {"3": "x:1"}}', "--task", "2"], 1, "job 'a' has no task 2"),
        (["--cluster", '{"a": ["192.0.2.1:2222"]}'], 1, "cannot listen at tcp://192.0.2.1:2222"),
    ],
)
def test_servers_that_cannot_be(
    arguments: list[str], code: int, says: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERTOW_CLUSTER_KEY", str(home / "key"))
    done = CliRunner().invoke(cli.app, ["server", *arguments])
    assert done.exit_code == code and says in " ".join(done.output.replace("│", " ").split()), done.output
