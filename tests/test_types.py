"""mypy and pyright accept annotated programs, those of the docs among them, and refuse what is wrong.

pyright comes as basedpyright, which brings all that it needs as wheels; it is told to be what pyright is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.support.blocks import blocks_of, source_of

ROOT = Path(__file__).parent.parent
TYPED = ROOT / "tests" / "typed"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
# Functions of the docs need not be annotated, and a page is a notebook, in which names are used again.
LENIENT = ("--allow-untyped-defs", "--allow-any-generics", "--allow-incomplete-defs", "--allow-untyped-calls",
           "--allow-untyped-decorators", "--no-check-untyped-defs", "--no-warn-return-any")  # fmt: skip
Complaints = list[tuple[str, int, str]]  # file, line, what


def mypy(folder: Path, files: Sequence[Path], options: Sequence[str] = (), plugin: bool = True) -> Complaints:
    config = folder / "mypy.ini"
    config.write_text(f"[mypy]\nplugins = {'undertow.mypy_plugin' if plugin else ''}\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", config, "--cache-dir", folder / "cache"]
    env = {**os.environ, "MYPYPATH": str(ROOT / "src"), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([*command, *options, *files], capture_output=True, text=True, env=env, cwd=folder)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    return [(Path(file).name, int(line), what) for file, line, what in found]


def pyright(folder: Path, files: Sequence[Path], mode: str) -> Complaints:
    if importlib.util.find_spec("basedpyright") is None:
        pytest.skip("basedpyright is not installed")
    settings = {"typeCheckingMode": mode, "extraPaths": [str(ROOT / "src")], "include": [str(file) for file in files]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "-p", folder]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] >= len(files), done.stderr
    return [
        (Path(said["file"]).name, said["range"]["start"]["line"] + 1, said["message"])
        for said in report["generalDiagnostics"]
        if said["severity"] == "error"
    ]


@pytest.fixture
def programs(tmp_path: Path) -> list[Path]:
    """The programs of the docs: what is on each page, and the examples."""
    found = sorted((ROOT / "examples").glob("*.py"))
    for page in PAGES:
        found.append(tmp_path / f"{page.stem.lower()}_page.py")
        found[-1].write_text(source_of(blocks_of(page.read_text(encoding="utf-8"))), encoding="utf-8")
    return found


@pytest.mark.slow
def test_mypy_accepts_the_programs_of_the_docs(tmp_path: Path, programs: list[Path]) -> None:
    pages = [file for file in programs if file.parent == tmp_path]
    assert mypy(tmp_path, [file for file in programs if file not in pages], LENIENT) == []
    assert mypy(tmp_path, pages, ("--allow-redefinition", *LENIENT)) == []


@pytest.mark.slow
def test_pyright_accepts_the_programs_of_the_docs(tmp_path: Path, programs: list[Path]) -> None:
    assert pyright(tmp_path, programs, "basic") == []


def refused(file: Path) -> set[int]:
    return {n for n, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# refused")}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["annotated", "objects", "short"])
@pytest.mark.parametrize(
    "checker",
    [
        pytest.param(lambda folder, file: mypy(folder, [file]), id="mypy"),
        pytest.param(lambda folder, file: mypy(folder, [file], plugin=False), id="mypy without the plugin"),
        pytest.param(lambda folder, file: pyright(folder, [file], "standard"), id="pyright"),
    ],
)
def test_annotated_programs(
    tmp_path: Path, name: str, checker: Callable[[Path, Path], Complaints], request: pytest.FixtureRequest
) -> None:
    """Every line that is wrong is refused, and no other."""
    file = TYPED / f"{name}.py"
    complaints = checker(tmp_path, file)
    if name == "short" and "without" in request.node.name:
        assert any("type arguments" in what for _, _, what in complaints)  # which is what the plugin is for
    else:
        assert {line for _, line, _ in complaints} == refused(file), complaints


@pytest.mark.slow
@pytest.mark.parametrize("name", ["annotated", "objects", "short"])
def test_annotated_programs_run(name: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([sys.executable, TYPED / f"{name}.py"], check=True, capture_output=True, env=env)
