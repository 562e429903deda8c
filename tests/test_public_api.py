"""What is public is meant to be, is documented, and does not drag in what only pictures and the command line need."""

from __future__ import annotations

import functools
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from docs.manual import public_names, signature

import undertow as ut
import undertow.compat.v1 as v1
from undertow.elsewhere import FRAMEWORKS
from undertow.engines.contract import Options

ROOT = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "public_api.txt"


def describe(name: str, value: Any) -> str:
    if inspect.isclass(value):
        bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object and base.__name__[0] != "_")
        return f"class {name}({bases})" if bases else f"class {name}"
    return f"def {name}{signature(value)}" if callable(value) else f"{name} = {value!r}"


def test_list_of_public_names(golden: Callable[..., None]) -> None:
    """A change here is a change for users: it belongs in CHANGELOG.md. `--update` rewrites the list."""
    lines = [describe(name, value) for name, value in public_names().items()]
    for owner in (ut.Function, ut.SubGraph):
        for name, value in vars(owner).items():
            if inspect.isfunction(value) and not name.startswith("_"):
                lines.append(f"def {owner.__name__}.{name}{signature(value)}")
    text = "\n".join(lines) + "\n"
    golden(GOLDEN, text)


@pytest.mark.parametrize("name", public_names())
def test_is_documented(name: str) -> None:
    value = public_names()[name]
    if callable(value) and value is not ut.Array:
        own = value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)
        assert own, f"{name} has no docstring"
        assert own.strip().splitlines()[0].rstrip().endswith((".", ":", "?")), f"{name}: the first line is a sentence"


@pytest.mark.parametrize("method", ["__call__", "run", "map", "graph", "library", "input", "output"])
def test_methods_are_documented(method: str) -> None:
    assert inspect.getdoc(getattr(ut.SubGraph, method))


def test_errors_have_one_root() -> None:
    for value in public_names().values():
        if inspect.isclass(value) and issubclass(value, Exception):
            assert issubclass(value, ut.UndertowError)


@pytest.mark.slow
def test_import_is_light() -> None:
    """Pictures and the command line load their libraries when they are used."""
    heavy = ("igraph", "rich", "typer", "torch", "tensorflow", "jax", "ray", "llvmlite")
    program = f"import sys, undertow; print(*(name for name in {heavy} if name in sys.modules))"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == []


MODULES = [
    ut,
    ut.data,
    ut.linalg,
    ut.models,
    ut.optim,
    ut.random,
    ut.ray,
    ut.train,
    v1,
    v1.function,
    v1.math,
    v1.nn,
    v1.summary,
    v1.timeline,
    v1.train,
]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_dir_shows_what_there_is_and_nothing_else(module: ModuleType) -> None:
    assert dir(module) == sorted(module.__all__)
    for name in dir(module):
        value = getattr(module, name)
        assert not name.startswith("_")
        home = getattr(value, "__module__", None) or getattr(value, "__name__", "undertow")
        assert home.startswith("undertow") or home == "types" or value is ut.Array, f"{name} is somebody else's"
    assert len(public_names()) > 200


def test_names_of_other_frameworks_are_not_ours() -> None:
    """And a hint names only what there is."""
    assert set(FRAMEWORKS) & set(dir(ut)) == set()
    for hint in FRAMEWORKS.values():
        for path in re.findall(r"\but\.([a-zA-Z_][\w.]*\w)", hint):
            functools.reduce(getattr, path.split("."), ut)


def test_every_option_is_documented() -> None:
    text = inspect.getdoc(ut.options) or ""
    documented = re.findall(r"^(\w+)  +\S", text, re.MULTILINE)
    assert sorted(documented) == sorted(inspect.signature(ut.options).parameters)
    of_graphs = {"engine", "simplify", "overflow", "reorder", "placement"}
    assert set(documented) == of_graphs | {f.name for f in fields(Options)}


def test_is_typed() -> None:
    assert (Path(ut.__file__).parent / "py.typed").exists()


def test_no_dependency_is_pinned() -> None:
    """What is needed at run time is a range: OpenBLAS, which is exact, is inside the wheel."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    needed = re.findall(r'"([^"]+)"', text.partition("\ndependencies = [")[2].partition("\n]")[0])
    assert len(needed) >= 5 and not [name for name in needed if "==" in name]
