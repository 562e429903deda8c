"""Long runs show how far they have come: in terminals, not in pipes, not if it is switched off."""

from __future__ import annotations

import io
import os
import pty
import subprocess
import sys
import threading
import types
from pathlib import Path
from typing import Any

import pytest

import undertow as ut
from undertow.engines import progress
from undertow.engines.contract import Options

SPIN = """
import sys
import undertow as ut

@ut.function
def spin(n: ut.i64) -> ut.i64:
    while n > 0:
        n = n + 1
    return n

try:
    spin.run(1, timeout=2.6, engine=sys.argv[1], progress=sys.argv[2] == "on")
except ut.Timeout:
    print("stopped")
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def see(monkeypatch: pytest.MonkeyPatch, stderr: Any) -> None:
    """Replace stderr where progress is shown; pytest replaces it everywhere."""
    monkeypatch.setattr(progress, "sys", types.SimpleNamespace(stderr=stderr, modules=sys.modules))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(progress, "BETWEEN", 0.0)
    for name in ("CI", "UNDERTOW_PROGRESS", "TERM"):
        monkeypatch.delenv(name, raising=False)
    screen = Terminal()
    see(monkeypatch, screen)
    return screen


def test_a_line_that_goes_away(terminal: Terminal) -> None:
    assert progress.show(2.1, 1000, 5, 7, 3_000_000)
    assert terminal.getvalue() == "\r\x1b[Kundertow: 2 s, 1,000 activations, 5 waves, 7 deep, 3 MB"
    progress.hide()  # before something is printed
    progress.hide()
    assert terminal.getvalue().endswith("3 MB\r\x1b[K")
    assert progress.show(2.3, 2000, 0, 7, 0)
    progress.end()
    progress.end()
    assert terminal.getvalue().endswith("2,000 activations, 7 deep, 0 MB\r\x1b[K")


def test_what_workers_do_is_shown(terminal: Terminal) -> None:
    with progress.telling(lambda: "3 tasks on 2 workers"):
        assert progress.show(2.1, 1000, 5, 7, 3_000_000)
    assert terminal.getvalue().endswith("7 deep, 3 MB, 3 tasks on 2 workers")
    progress.end()


def test_what_workers_do_is_seen_in_80_columns(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with progress.telling(lambda: "40 tasks on 2 workers, 1.2 MB sent, 3.0 kB received"):
        assert progress.show(12.1, 81_000_000, 1200, 17, 250_000_000)
    text = terminal.getvalue().removeprefix("\r\x1b[K")
    assert text == "undertow: 12 s, 81,000,000 activations, 40 tasks on 2 workers, 1.2 MB sent"
    progress.end()
    monkeypatch.setenv("COLUMNS", "120")
    with progress.telling(lambda: "40 tasks on 2 workers, 1.2 MB sent, 3.0 kB received"):
        assert progress.show(12.1, 81_000_000, 1200, 17, 250_000_000)
    assert "250 MB, 40 tasks on 2 workers, 1.2 MB sent, 3.0 kB received" in terminal.getvalue()
    progress.end()


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("UNDERTOW_PROGRESS", "0"), ("TERM", "dumb")])
def test_switched_off(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    assert not progress.show(2.1, 1000, 5, 7, 0)
    assert terminal.getvalue() == ""


def test_not_in_a_file(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    see(monkeypatch, io.StringIO())
    assert not progress.show(2.1, 1000, 5, 7, 0)
    see(monkeypatch, None)
    assert not progress.show(2.1, 1000, 5, 7, 0)


def test_not_too_often(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BETWEEN", 1000.0)
    assert progress.show(2.0, 1, 1, 1, 0) and progress.show(2.0, 2, 2, 2, 0)
    progress.end()
    assert terminal.getvalue().count("undertow") == 1


def test_one_thread_at_a_time(terminal: Terminal) -> None:
    progress.show(2.0, 1, 1, 1, 0)
    before = terminal.getvalue()
    other = threading.Thread(target=lambda: (progress.show(3.0, 2, 2, 2, 0), progress.end()))
    other.start()
    other.join()
    assert terminal.getvalue() == before
    progress.end()


def test_notebooks(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Cell:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Cell:
        shown.append(data["text/plain"])
        return Cell()

    ipython: Any = types.SimpleNamespace(
        get_ipython=lambda: types.SimpleNamespace(kernel=1), display=types.SimpleNamespace(display=display)
    )
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    progress.show(2.0, 1, 1, 1, 0)
    progress.show(3.0, 2, 1, 1, 0)
    progress.end()
    assert [text[:13] for text in shown] == ["undertow: 2 s", "undertow: 3 s", ""]
    assert terminal.getvalue() == ""


def test_it_is_an_option() -> None:
    assert Options().progress and not Options(progress=False).progress
    with pytest.raises(ut.UndertowError, match="progress must be True or False"):
        ut.options(progress="yes")


@pytest.mark.slow
def test_in_a_real_terminal(tmp_path: Path) -> None:
    """All at once: each takes more than two seconds."""
    file = tmp_path / "spin.py"
    file.write_text(SPIN)
    kept = {name: value for name, value in os.environ.items() if name not in ("CI", "UNDERTOW_PROGRESS")}
    environment = {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm", "COLUMNS": "100"}
    started = []
    for engine, switch in (("waves", "on"), ("expand", "on"), ("reference", "on"), ("waves", "off")):
        ours, theirs = pty.openpty()
        command = [sys.executable, str(file), engine, switch]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment)
        os.close(theirs)
        started.append((engine, switch, process, ours))
    piped = subprocess.run([sys.executable, str(file), "waves", "on"], capture_output=True, env=environment)
    assert (piped.stdout, piped.stderr) == (b"stopped\n", b"")
    for engine, switch, process, ours in started:
        assert process.communicate()[0] == b"stopped\n", engine
        seen = read_all(ours)
        if switch == "on":
            assert seen.startswith("\r\x1b[Kundertow: 2 s, ") and seen.endswith(" MB\r\x1b[K"), (engine, seen)
        else:
            assert seen == ""


def read_all(descriptor: int) -> str:
    found = b""
    while True:
        try:
            found += (read := os.read(descriptor, 4096))
        except OSError:  # nobody holds the other end
            read = b""
        if not read:
            os.close(descriptor)
            return found.decode()
