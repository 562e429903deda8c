"""Runs a script in a process of its own: for what would harm the process of the tests, or needs one that is new."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import undertow as ut

ROOT = Path(__file__).parents[2]


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
        env={"PYTHONPATH": f"{Path(ut.__file__).parent.parent}:{ROOT}", "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == "usable\n"
