"""The command `undertow doctor`: what is installed."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil

import undertow as ut
from undertow.cli.console import make_console, table
from undertow.engines import DEFAULT, NAMES


def doctor() -> None:
    """Show the installation: versions, machine, engines and optional packages."""
    make_console().print(table(_findings()))


def _findings() -> list[tuple[str, str]]:
    """The rows of `doctor`."""
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), "")
    return [
        ("Python", f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"),
        ("undertow", ut.__version__),
        *((name, _installed(name)) for name in ("numpy", "igraph", "rich", "typer")),
        ("cores", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())),
        ("memory", _memory()),
        ("engines", ", ".join(f"{name} (auto)" if name == DEFAULT else name for name in NAMES)),
        ("", ""),
        *((f"{name} (extra)", _installed(name)) for name in ("torch", "tensorflow", "jax", "ray", "llvmlite")),
        ("dot (Graphviz)", shutil.which("dot") or "not found"),
        ("C++ compiler", (compiler and shutil.which(compiler)) or "not found"),
    ]


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _memory() -> str:
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        total, free = (os.sysconf(name) * page / 2**30 for name in ("SC_PHYS_PAGES", "SC_AVPHYS_PAGES"))
    except (ValueError, OSError, AttributeError):
        return "not known"
    return f"{total:.1f} GiB, {free:.1f} GiB free"
