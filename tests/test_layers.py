"""Imports follow the arrows of the picture in CONTRIBUTING.md, which is the only table of layers.

Imports inside functions count as well. Other packages may be imported only where `GUESTS` says so.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest
from docs.manual import public_names

from undertow.passes.pipeline import PASSES

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "undertow"
FILES = sorted(SOURCE.rglob("*.py"))
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def read_picture(text: str) -> dict[str, set[str]]:
    """The arrows of the picture: who may import whom. (`subgraph` is a word of Mermaid's.)"""
    arrows: dict[str, set[str]] = {}
    for line in re.sub(r'\["[^"]*"\]', "", text).splitlines():
        if "-->" in line:
            here, there = line.split("-->")
            arrows.setdefault(part_named(here), set()).update(map(part_named, there.split("&")))
        elif line.strip().isidentifier():  # on its own
            arrows.setdefault(line.strip(), set())
    return arrows


def part_named(word: str) -> str:
    return {"undertow": "__init__", "subgraph_": "subgraph"}.get(word.strip(), word.strip())


def closed(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """All that each part gets to."""
    below: dict[str, set[str]] = {}
    for part in arrows:
        found, todo = set[str](), [part]
        while todo:
            fresh = arrows.get(todo.pop(), set()) - found
            found |= fresh
            todo += fresh
        below[part] = found
    return below


ARROWS = read_picture(re.findall(r"```mermaid\n(.*?)```", GUIDE, re.S)[0])
BELOW = closed(ARROWS)
PARTS = {*ARROWS, *(there for found in ARROWS.values() for there in found)}

# Packages from elsewhere, and which parts (or files) may import them. NumPy is everywhere.
GUESTS = {
    "igraph": ("viz",),
    "rich": ("cli",),
    "typer": ("cli",),
    "safetensors": (
        "api/archive.py",
        "compat/v1/training/saver.py",
        "parallel/checkpoint.py",
        "train/checkpoint.py",
    ),
    "matplotlib": ("train/curve.py",),
    "mypy": ("mypy_plugin.py",),
    "ray": ("ray",),
    "zmq": ("cluster/sockets.py", "cluster/server_sockets.py", "cluster/gate.py"),
}

# What runs on the C++ core. The other engines are pure Python, and so is all that is before them, but for commits:
# nothing may come between the parts of one.
CORE_HOMES = (
    "engines/waves",
    "engines/expand",
    "engines/native",
    "api/one_pass.py",
    "frontend/syntax/strings.py",
    "frontend/trace/guards.py",
    "frontend/values/transaction.py",
    "cluster/wires.py",
)


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


def parts_imported(source: str, path: str) -> Iterator[tuple[str, str, int]]:
    """The modules that a file imports: by full name, as the part of ours that it is of (or ""), with the line."""
    for name, line in imports(source, ".".join(("undertow", *Path(path).parts[:-1]))):
        top, *rest = name.split(".")
        there = "" if top != "undertow" else rest[0] if rest and rest[0] in PARTS else "__init__"
        yield name, there, line


def problems(here: str, path: str, source: str) -> Iterator[str]:
    """What is wrong with the imports of a file that belongs to the part `here`."""
    for name, there, line in parts_imported(source, path):
        top = name.split(".")[0]
        if there and there != here:
            if there not in BELOW.get(here, ()):
                yield f"{path}:{line}: {here} must not import {there}"
            elif there == "_core" and not is_at_home(path, CORE_HOMES):
                yield f"{path}:{line}: only {', '.join(CORE_HOMES)} may import _core"
        elif top in GUESTS:
            if not is_at_home(path, GUESTS[top]):
                yield f"{path}:{line}: only {', '.join(GUESTS[top])} may import {top}"
        elif not there and top != "numpy" and top not in sys.stdlib_module_names:
            yield f"{path}:{line}: {top} is in no table of tests/test_layers.py"


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_imports_point_left(file: Path) -> None:
    here = part_of(file)
    assert here in PARTS, f"{here} is not in the picture of CONTRIBUTING.md"
    path = file.relative_to(SOURCE).as_posix()
    assert list(problems(here, path, file.read_text(encoding="utf-8"))) == []


def test_the_picture_shows_what_there_is() -> None:
    there = {part_of(file) for file in FILES}
    assert PARTS - {"_core"} == there
    used = {
        (part_of(file), there)
        for file in FILES
        for _, there, _ in parts_imported(file.read_text(), f"{part_of(file)}/")
    }
    unused = {(here, there) for here, found in ARROWS.items() for there in found} - used
    assert not unused, "arrows that no import needs"
    assert not [part for part in PARTS if part in BELOW.get(part, ())], "a circle"
    said = re.findall(r"\w+", (SOURCE / "__init__.py").read_text().partition("# Layers")[2].partition("\n\n")[0])
    assert not [part for part in PARTS - {"_core", "__init__"} if part not in said]


def test_the_way_of_a_program() -> None:
    """The passes that CONTRIBUTING.md names are those of the two pipelines, in their order."""
    ways = dict(re.findall(r"^(\w+)  +(\w.* -> .*)$", GUIDE, re.M))
    assert {"frontend", "passes", "plan", "engines"} == ways.keys() <= PARTS
    assert ways["passes"].split(" -> ")[1:-3] == [name for name, _ in groupby(name for name, *_ in PASSES)]
    planned = re.findall(r'(?:yield |\()"(\w+)", ', (SOURCE / "plan" / "pipeline.py").read_text(encoding="utf-8"))
    assert ways["plan"].split(" -> ")[1:-1] == planned


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
        ("plan/fuse.py", "from undertow import _core", "plan must not import _core"),
        ("viz/svg.py", "from undertow.ops import FAMILIES", "viz must not import ops"),
        ("viz/layout.py", "import igraph", ""),
        ("api/function.py", "import igraph", "only viz may import igraph"),
        ("train/loop.py", "from undertow.data import trees", ""),
        ("models/rnn.py", "from undertow.compat import v1", "models must not import compat"),
        ("compat/v1/session.py", "from undertow.api.program import Program", ""),
        ("compat/v1/session.py", "from undertow.compat.v1.graph import Graph", ""),
        ("compat/v1/session.py", "from undertow.ir.graph import Port", ""),
        ("subgraph.py", "from undertow.compat import v1", "subgraph must not import compat"),
        ("api/function.py", "import undertow.compat.v1", "api must not import compat"),
        ("__init__.py", "from undertow import compat", "__init__ must not import compat"),
        ("api/function.py", "from rich import box", "only cli may import rich"),
        ("cli/demo.py", "import rich.table, typer, undertow", ""),
        ("engines/reference.py", "import torch", "torch is in no table"),
        ("engines/waves/plan.py", "from undertow import _core", ""),
        ("engines/reference.py", "from undertow._core import run_kernel", "only engines/waves"),
        ("api/function.py", "import undertow._core", "only engines/waves"),
        ("ops/arith.py", "import scipy", "scipy is in no table"),
        ("ops/arith.py", "import numpy as np, math", ""),
    ],
)
def test_the_rule_itself(path: str, source: str, wrong: str) -> None:
    found = list(problems(part_of(SOURCE / path), path, source))
    assert wrong in "".join(found) if wrong else not found


# --------------------------------------------------------------------------------------------------------------
# Private names

# Of the standard library, which has no public name for them.
THEIRS = {"_getframe", "_fields", "_replace", "_ParameterKind"}


def private_uses(source: str) -> Iterator[str]:
    """Names with an underscore that a file takes from another one."""
    nodes = list(ast.walk(ast.parse(source)))
    own = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.id for node in nodes if isinstance(node, ast.Name)}  # fields of dataclasses among them
    own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_self(node.value)}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.lineno}: {alias.name}" for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            yield f"{node.lineno}: {ast.unparse(node)}"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_core" and name not in THEIRS


def is_self(value: ast.expr) -> bool:
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_private_names_stay_in_their_file(file: Path) -> None:
    assert list(private_uses(file.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from undertow.ir.walk import _name", ["1: _name"]),
        ("from undertow import _core", []),
        ("import undertow.ir.walk as walk\nwalk._name()", ["2: walk._name"]),
        ("def f(program):\n    return program._plans", ["2: program._plans"]),
        ("class A:\n    def __init__(self, other):\n        self._x = other._x", []),
        ("sys._getframe().__name__", []),
    ],
)
def test_the_rule_of_private_names(source: str, found: list[str]) -> None:
    assert list(private_uses(source)) == found


# --------------------------------------------------------------------------------------------------------------
# Programs that users read

# Beside `undertow` itself, as docs/reference/api.md says.
PUBLIC_MODULES = ("undertow.compat.v1", "undertow.ir.trace", "undertow.ir.text")


@pytest.mark.parametrize(
    "file",
    sorted(
        [
            *ROOT.glob("examples/*.py"),
            *ROOT.glob("benchmarks/*.py"),
            *ROOT.glob("benchmarks/rivals/ours*.py"),
            SOURCE / "cli" / "demo_programs.py",
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
                if alias.name in PUBLIC_MODULES:
                    continue
                if alias.name == "undertow._core" and file.stem in ("kernels", "tokens"):
                    continue  # benchmarks of what has no public name
                assert not alias.name.startswith("undertow."), f"line {node.lineno}: {alias.name} is private"
                if alias.name == "undertow":
                    ours.add(alias.asname or alias.name)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "undertow":
            if node.module in PUBLIC_MODULES:
                continue
            if node.module in ("undertow.api.options", "undertow.cluster.local") and file.stem == "placed":
                continue  # a pool of processes without Ray
            assert node.module == "undertow", f"line {node.lineno}: {node.module} is private"
            assert {alias.name for alias in node.names} <= public, f"line {node.lineno}: not all of these are public"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name) and node.value.id in ours:
                assert node.attr in public, f"line {node.lineno}: ut.{node.attr} is not public"
            is_private = node.attr.startswith("_") and not node.attr.startswith("__")
            assert not is_private, f"line {node.lineno}: .{node.attr} is private"


@pytest.mark.parametrize("name", ["from_scratch", "intensional"])
def test_what_explains_an_idea_needs_nothing(name: str) -> None:
    source = (ROOT / "docs" / f"{name}.py").read_text(encoding="utf-8")
    assert {name.split(".")[0] for name, _ in imports(source)} <= sys.stdlib_module_names


@pytest.mark.parametrize(
    "file", sorted((ROOT / "tests").rglob("*.py")), ids=lambda path: path.relative_to(ROOT / "tests").as_posix()
)
def test_no_test_imports_another_test(file: Path) -> None:
    """What tests share stands in `tests/support`, `tests/programs` and `tests/fuzz`."""
    for name, line in imports(file.read_text(encoding="utf-8")):
        home = name.split(".")
        assert home[0] != "tests" or home[1] in ("support", "programs", "fuzz"), f"line {line}: {name} is a test's own"
        assert not any(part.startswith("test_") for part in home), f"line {line}: {name} is a test"
