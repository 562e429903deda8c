"""Runs Python in a process of its own: for what would harm the process of the tests, or needs one that is new."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import undertow as ut

ROOT = Path(__file__).parents[2]


def run_python(*args: str, folder: Path, text: str = "", timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """A Python process of its own, in a folder, that knows Undertow and reads a text."""
    return subprocess.run(
        [sys.executable, *args], cwd=folder, input=text, capture_output=True, text=True, timeout=timeout, check=False,
        env={**_environment(), "HOME": str(folder)},
    )  # fmt: skip


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": f"{Path(ut.__file__).parent.parent}:{ROOT}", "PATH": "/usr/bin:/bin"}


def typed_at_prompt(lines: Sequence[str], folder: Path) -> str:
    """What a terminal shows after these lines were typed at Python's prompt, each after the prompt for it."""
    environment = {**_environment(), "TERM": "dumb", "HOME": str(folder), "PYTHON_BASIC_REPL": "1"}
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-q"], environment)
    shown = b""

    def wait_for(*prompts: bytes) -> None:
        nonlocal shown
        before = len(shown)
        while not shown[before:].endswith(prompts):
            if not select.select([terminal], [], [], 60)[0]:
                raise TimeoutError(shown.decode())
            try:
                shown += os.read(terminal, 1 << 16)
            except OSError:  # it has ended
                return

    wait_for(b">>> ")
    for line in lines:
        os.write(terminal, line.encode() + b"\n")
        wait_for(b">>> ", b"... ")
    os.write(terminal, b"\x04")  # the end of the input
    wait_for(b"\0")
    os.waitpid(pid, 0)
    os.close(terminal)
    return shown.decode().replace("\r\n", "\n")


def run_script(folder: Path, common: str, script: str, *args: str, timeout: float = 120) -> None:
    """It reaches its end, and prints nothing on the way; it may import `tests.support`."""
    file = folder / "script.py"
    file.write_text(f'{common}{textwrap.dedent(script)}\nprint("usable")\n')
    done = subprocess.run(
        [sys.executable, str(file), *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=_environment(),
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "usable\n"
