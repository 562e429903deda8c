"""Every example, and every program in docs, runs alone, quietly succeeds, and has something to show."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TEXTBOOK = [
    ROOT / "examples" / f"{name}.py" for name in ("boards", "counting", "searches", "sorting", "tables", "tic_tac_toe")
]
BY_PYTHON = "import runpy, sys, undertow as ut\nwith ut.options(engine='python'): runpy.run_path(sys.argv[1])"


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [*EXAMPLES, *(ROOT / "docs" / f"{name}.py" for name in ("from_scratch", "intensional", "toy_engine"))],
    ids=lambda path: path.stem,
)
def test_runs(program: Path, tmp_path: Path) -> None:
    assert printed([str(program)], tmp_path).strip()
    assert not list(tmp_path.iterdir()), "examples leave nothing behind"


@pytest.mark.slow
@pytest.mark.parametrize("program", TEXTBOOK, ids=lambda path: path.stem)
def test_python_gives_the_same(program: Path, tmp_path: Path) -> None:
    """The textbook's programs are as one writes them for CPython."""
    assert printed([str(program)], tmp_path) == printed(["-c", BY_PYTHON, str(program)], tmp_path)


def printed(arguments: list[str], folder: Path) -> str:
    """What Python prints in an empty folder, on the standard output alone."""
    env = {
        **os.environ,
        "XDG_CONFIG_HOME": str(folder.parent),
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONIOENCODING": "utf-8",
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        capture_output=True, encoding="utf-8", timeout=60, cwd=folder, env=env, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("program", EXAMPLES, ids=lambda path: path.stem)
def test_is_short_and_says_what_it_shows(program: Path) -> None:
    source = program.read_text(encoding="utf-8")
    assert len(source.splitlines()) < 60
    assert ast.get_docstring(ast.parse(source))
    assert "assert" in source
    assert f"[{program.name}]({program.name})" in (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
