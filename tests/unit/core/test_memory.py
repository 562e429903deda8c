"""Lanes are touched by kernels and by one interface, and by nothing else: they may live where the host cannot look."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import undertow
from undertow import _core

ROOT = Path(__file__).parents[3]
CORE = ROOT / "core"

# Kernels; the interface, and the blocks that it works on; what has no lanes: tokens of the rival, parameters that an
# optimizer steps, arrays of Python's, numbers in messages, and what sockets give.
MAY_COPY = (*("src/kernel/", "src/isa/"), *("src/memory/lanes.h", "src/memory/memory.cpp"), *("src/expand/", "bind/"),
            "src/remote/bytes.h", "src/remote/wire.cpp")  # fmt: skip


def guarded(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Python in a process whose lanes are guarded."""
    path = os.pathsep.join([str(Path(undertow.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "UNDERTOW_MEMORY": "guarded", "PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True)


def test_nothing_else_copies_or_fills_lanes() -> None:
    found = {
        str(path.relative_to(CORE))
        for folder in ("include", "src", "bind")
        for path in (CORE / folder).rglob("*")
        if path.suffix in (".h", ".cpp") and re.search(r"\bmem(cpy|set|move)\b", path.read_text())
    }
    assert "src/memory/lanes.h" in found
    assert not [path for path in sorted(found) if not path.startswith(MAY_COPY)]


@pytest.mark.slow
def test_the_environment_chooses_the_memory() -> None:
    assert _core.memory == os.environ.get("UNDERTOW_MEMORY", "ordinary")
    found = guarded("-c", "from undertow import _core; print(_core.memory, _core.peek(True))")
    assert (found.returncode, found.stdout) == (0, "guarded 1.5\n"), found.stderr


@pytest.mark.slow
def test_the_host_cannot_look_at_guarded_lanes() -> None:
    found = guarded("-c", "from undertow import _core; print(_core.peek(False))")
    assert (found.returncode, found.stdout) == (-signal.SIGSEGV, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tests", "chosen"),
    [("test_programs.py", "waves"), ("test_gradients.py", "tree or map or loop or grid")],
    ids=["programs", "gradients"],
)
def test_programs_run_in_guarded_memory(tests: str, chosen: str) -> None:
    """Some of what `make guarded` runs: a schedule that looks at floats outside the interface crashes here."""
    found = guarded("-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/conformance/{tests}", "-k", chosen)
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
