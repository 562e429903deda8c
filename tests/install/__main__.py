"""Installs each file of a folder into an empty environment, and runs the tour of the README there.

A wheel is installed with nothing on the path but that environment: no compiler, no CMake. The sdist is built with what
the machine has, and then runs the same way. Wheels for other Pythons than those that are named are left out, and told.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.blocks import tour


def fits(file: Path, version: tuple[int, int]) -> bool:
    """Is it for this Python? A wheel of the stable ABI is for its own and all later ones."""
    if file.suffix != ".whl":
        return True
    tag, abi = file.name.split("-")[2:4]
    own = int(tag[2:3]), int(tag[3:])
    return own <= version if abi == "abi3" else own == version


def environments(file: Path, pythons: list[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    for python in pythons:
        asked = [python, "-c", "import sys; print(*sys.version_info[:2])"]
        major, minor = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
        if fits(file, (int(major), int(minor))):
            yield python, (int(major), int(minor))


def attempt(file: Path, python: str) -> str:
    """Install and run; what there is to say about it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        own = Path(folder, "bin")
        bare = {"PATH": str(own), "HOME": os.environ.get("HOME", folder), "PYTHONNOUSERSITE": "1"}
        bare |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy") or "PIP" in name}
        building = {**os.environ, "PATH": f"{own}{os.pathsep}{os.environ['PATH']}"}
        environment = bare if file.suffix == ".whl" else building
        environment.pop("PYTHONPATH", None)
        pip = [own / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, file.resolve()], check=True, env=environment, cwd=folder)
        program, printed = tour()
        Path(folder, "tour.py").write_text(program, encoding="utf-8")
        before = time.perf_counter()
        done = subprocess.run([own / "python", "tour.py"], capture_output=True, text=True, env=bare, cwd=folder)
        seconds = time.perf_counter() - before
        assert done.returncode == 0, done.stderr
        assert done.stdout == printed, done.stdout
        for command in (["undertow", "--version"], ["python", "-m", "undertow", "doctor"]):
            subprocess.run([own / command[0], *command[1:]], check=True, capture_output=True, env=bare, cwd=folder)
        size = sum(part.stat().st_size for part in Path(folder).rglob("site-packages/undertow/**/*") if part.is_file())
        return f"installed {size / 2**20:.0f} MiB, the tour took {seconds:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.install", description=__doc__)
    parser.add_argument("folder", type=Path, help="with wheels and an sdist")
    parser.add_argument("--python", action="append", help="an interpreter; may be repeated")
    chosen = parser.parse_args()
    pythons = chosen.python or [sys.executable]
    files = sorted([*chosen.folder.glob("*.whl"), *chosen.folder.glob("*.tar.gz")])
    if not files:
        raise SystemExit(f"{chosen.folder} has no wheel and no sdist; make wheel makes them")
    for file in files:
        tried = list(environments(file, pythons))
        size = file.stat().st_size / 2**20
        for python, (major, minor) in tried if file.suffix == ".whl" else tried[:1]:
            print(f"{file.name} ({size:.1f} MiB), Python {major}.{minor}: {attempt(file, python)}", flush=True)
        if not tried:
            print(f"{file.name}: not tried, for want of its Python")


if __name__ == "__main__":
    main()
