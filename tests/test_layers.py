"""Imports point one way: a file may import from layers before its own, and from its own part of its layer.

    errors <- types <- ir <- ops <- frontend | passes | partition | plan | viz
                                                                      plan <- engines (+ _core)
              all of these <- api <- subgraph <- compat | data, models, train | interop <- cli

Imports inside of functions count as well. Other packages may be imported only where the table says so.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from undertow.manual import public_names

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "undertow"
FILES = sorted(SOURCE.rglob("*.py"))

# A layer is a row; what stands in one string may import each other, its neighbours may not.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors",),
    ("types",),
    ("_core",),
    ("ir",),
    ("ops",),
    ("frontend", "passes", "partition", "plan", "viz"),
    ("engines",),
    ("api",),
    ("subgraph",),
    ("__init__",),
    ("compat", "data models train", "interop"),
    ("cli cli_data cli_predict cli_train console demo demo_programs manual __main__",),
)
RANK = {name: rank for rank, layer in enumerate(LAYERS) for part in layer for name in part.split()}
PART = {name: part for layer in LAYERS for part in layer for name in part.split()}

# Packages from elsewhere, and which parts (or files) may import them. NumPy is everywhere.
GUESTS = {
    "igraph": ("viz",),
    "rich": ("cli", "cli_predict", "cli_train", "console", "demo"),
    "typer": ("cli", "cli_data", "cli_predict", "cli_train", "console"),
    "llvmlite": ("engines/jit",),
    "ray": ("engines/ray",),
    "safetensors": ("api/archive.py", "train/checkpoint.py"),
    "matplotlib": ("train/curve.py",),
    "torch": ("interop/torch.py",),
    "tensorflow": ("interop/tensorflow.py",),
    "jax": ("interop/jax.py",),
}

# What runs on the C++ core. The other engines are pure Python, and so is all that is before them.
CORE_HOMES = ("engines/waves", "engines/expand", "engines/native", "engines/ray", "api/one_pass.py")


def imports(source: str, package: str = "") -> Iterator[tuple[str, int]]:
    """The modules that a file imports, by full name, with the line; `from a import b` gives a.b."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base] if base else above)
            for alias in node.names:
                yield f"{base}.{alias.name}", node.lineno


def part_of(path: Path) -> str:
    """The name under which the table knows a file: its folder, or the file's own name."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def is_at_home(path: str, homes: Sequence[str]) -> bool:
    return any(f"{path}/".startswith((f"{home}/", f"{home}.py/")) for home in homes)


def problems(here: str, path: str, source: str) -> Iterator[str]:
    """What is wrong with the imports of a file that belongs to the part `here`."""
    package = ".".join(("undertow", *Path(path).parts[:-1]))
    for name, line in imports(source, package):
        top, *rest = name.split(".")
        if top == "undertow":
            there = rest[0] if rest and rest[0] in RANK else "__init__"
            if PART[here] == PART[there]:
                continue
            if RANK[there] >= RANK[here] or (here == "engines" and there in ("frontend", "passes", "partition", "viz")):
                yield f"{path}:{line}: {here} must not import {there}"
            elif there == "_core" and not is_at_home(path, CORE_HOMES):
                yield f"{path}:{line}: only {', '.join(CORE_HOMES)} may import _core"
            elif here == "viz" and RANK[there] > RANK["ir"]:
                yield f"{path}:{line}: viz reads ir only, not {there}"
        elif top in GUESTS:
            if not is_at_home(path, GUESTS[top]):
                yield f"{path}:{line}: only {', '.join(GUESTS[top])} may import {top}"
        elif top != "numpy" and top not in sys.stdlib_module_names:
            yield f"{path}:{line}: {top} is in no table of tests/test_layers.py"


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_point_left(file: Path) -> None:
    here = part_of(file)
    assert here in RANK, f"{here} has no place in the table of tests/test_layers.py"
    path = file.relative_to(SOURCE).as_posix()
    assert list(problems(here, path, file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("path", "source", "wrong"),
    [
        ("ir/graph.py", "from undertow.types import Type", ""),
        ("ir/graph.py", "import undertow.ops.arith", "ir must not import ops"),
        ("ir/graph.py", "from undertow import ops", "ir must not import ops"),
        ("ir/graph.py", "from ..ops import arith", "ir must not import ops"),
        ("ir/graph.py", "from .. import ops", "ir must not import ops"),
        ("ir/graph.py", "from .walk import body_of", ""),
        ("ir/graph.py", "from undertow import fib", "ir must not import __init__"),
        ("errors.py", "import undertow.types", "errors must not import types"),
        ("passes/flatten.py", "def f():\n    import undertow.engines.reference", "passes must not import engines"),
        ("engines/reference.py", "from undertow.ops.op import CATALOGUE", ""),
        ("engines/reference.py", "from undertow.passes import flatten", "engines must not import passes"),
        ("engines/waves/__init__.py", "from undertow.plan.plan import Plan", ""),
        ("plan/fuse.py", "from undertow.passes import flatten", "plan must not import passes"),
        ("plan/fuse.py", "from undertow import _core", "may import _core"),
        ("viz/svg.py", "from undertow.ops import FAMILIES", "viz reads ir only"),
        ("viz/layout.py", "import igraph", ""),
        ("api/function.py", "import igraph", "only viz may import igraph"),
        ("models/rnn.py", "from undertow.data import trees", ""),
        ("models/rnn.py", "from undertow.compat import v1", "models must not import compat"),
        ("compat/v1/session.py", "from undertow.api.function import Program", ""),
        ("compat/v1/session.py", "from undertow.compat.v1.graph import Graph", ""),
        ("compat/v1/session.py", "from undertow.subgraph import SubGraph", ""),
        ("subgraph.py", "from undertow.compat import v1", "subgraph must not import compat"),
        ("api/function.py", "import undertow.compat.v1", "api must not import compat"),
        ("__init__.py", "from undertow import compat", "__init__ must not import compat"),
        ("api/function.py", "from rich import box", "only cli, cli_predict, cli_train, console, demo may import rich"),
        ("cli.py", "import rich.table, typer, undertow", ""),
        ("engines/reference.py", "import torch", "only interop/torch.py may import torch"),
        ("engines/waves/plan.py", "from undertow import _core", ""),
        ("engines/reference.py", "from undertow._core import run_kernel", "only engines/waves"),
        ("api/function.py", "import undertow._core", "only engines/waves"),
        ("interop/torch.py", "import torch.nn", ""),
        ("interop/torch.py", "import jax", "only interop/jax.py may import jax"),
        ("ops/arith.py", "import scipy", "scipy is in no table"),
        ("ops/arith.py", "import numpy as np, math", ""),
    ],
)
def test_the_rule_itself(path: str, source: str, wrong: str) -> None:
    found = list(problems(part_of(SOURCE / path), path, source))
    assert wrong in "".join(found) if wrong else not found


# --------------------------------------------------------------------------------------------------------------
# Programs that users read


@pytest.mark.parametrize(
    "file",
    sorted(
        [
            *ROOT.glob("examples/*.py"),
            *ROOT.glob("benchmarks/*.py"),
            *ROOT.glob("benchmarks/rivals/ours*.py"),
            SOURCE / "demo_programs.py",
        ]
    ),
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_examples_and_benchmarks_use_public_names(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    public = {name.split(".")[0] for name in public_names()} | {"__version__"}
    ours = {"undertow"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "undertow._core" and file.stem == "kernels":
                    continue  # the one benchmark of what has no public name
                assert not alias.name.startswith("undertow."), f"line {node.lineno}: {alias.name} is private"
                if alias.name == "undertow":
                    ours.add(alias.asname or alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "undertow":
            assert node.module == "undertow", f"line {node.lineno}: {node.module} is private"
            assert {alias.name for alias in node.names} <= public, f"line {node.lineno}: not all of these are public"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in ours:
                assert node.attr in public, f"line {node.lineno}: ut.{node.attr} is not public"
            is_private = node.attr.startswith("_") and not node.attr.startswith("__")
            assert not is_private, f"line {node.lineno}: .{node.attr} is private"


def test_from_scratch_needs_nothing() -> None:
    source = (ROOT / "docs" / "from_scratch.py").read_text(encoding="utf-8")
    assert {name.split(".")[0] for name, _ in imports(source)} <= sys.stdlib_module_names
