"""A plugin for mypy, which takes the dimensions in `x: ut.f32["n", 3]` for types: it leaves them out, as pyright does.

In pyproject.toml: `[tool.mypy]` and `plugins = ["undertow.mypy_plugin"]`. No other file imports this: mypy is no
dependency.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mypy.nodes import AssignmentStmt, FuncDef, Import, ImportFrom, MypyFile, Statement
from mypy.plugin import AnalyzeTypeContext, Plugin
from mypy.types import CallableType, TupleType, Type, UnboundType, UnionType

_HOME = "undertow._annotations"
_DTYPES = ("bool", "i32", "i64", "f32", "f64", "c64", "c128")


class DimensionsPlugin(Plugin):
    """Leaves out dimensions: in annotations as soon as a file is parsed, and in aliases when they are looked at."""

    def get_additional_deps(self, file: MypyFile) -> list[tuple[int, str, int]]:
        names = _dtypes_in(file)
        if names:
            _strip(file, names)
        return []

    def get_type_analyze_hook(self, fullname: str) -> Callable[[AnalyzeTypeContext], Type] | None:
        home, _, name = fullname.rpartition(".")
        if home != _HOME or name not in _DTYPES:
            return None
        return lambda context: context.api.named_type(fullname, [])


def _dtypes_in(file: MypyFile) -> frozenset[str]:
    """What the dtypes are called in a file: `ut.f32`, `undertow.f32`, `f32`."""
    names: set[str] = set()
    for statement in file.imports:
        if isinstance(statement, Import):
            for module, alias in statement.ids:
                if module == "undertow":
                    names.update(f"{alias or module}.{name}" for name in _DTYPES)
        elif isinstance(statement, ImportFrom) and statement.id == "undertow":
            names.update(alias or name for name, alias in statement.names if name in _DTYPES)
    return frozenset(names)


# Where statements hold other statements. mypy's own visitors are compiled, and cannot be derived from.
_INNER = ("defs", "body", "bodies", "else_body", "finally_body", "handlers", "func", "items")


def _strip(file: MypyFile, names: frozenset[str]) -> None:
    """Leave out the dimensions in all annotations of functions and variables."""
    statements: list[Any] = [file]
    while statements:
        statement = statements.pop()
        if isinstance(statement, (list, tuple)):
            statements += statement
            continue
        if isinstance(statement, FuncDef):
            for signature in (statement.type, statement.unanalyzed_type):
                if isinstance(signature, CallableType):
                    _strip_types([*signature.arg_types, signature.ret_type], names)
        elif isinstance(statement, AssignmentStmt):
            _strip_types([statement.type, statement.unanalyzed_type], names)
        if isinstance(statement, (Statement, FuncDef, MypyFile)):
            statements += [inner for inner in (getattr(statement, name, None) for name in _INNER) if inner is not None]


def _strip_types(types: list[Type | None], names: frozenset[str]) -> None:
    while types:
        found = types.pop()
        if isinstance(found, UnboundType) and found.name in names:
            found.args = ()
        elif isinstance(found, UnboundType):
            types += found.args
        elif isinstance(found, (UnionType, TupleType)):
            types += found.items


def plugin(version: str) -> type[Plugin]:
    """What mypy asks for."""
    return DimensionsPlugin
