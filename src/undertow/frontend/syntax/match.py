"""Which definition of a text is a function's: the one that compiles to the function's code.

So a text may come from anywhere, and lambdas on one line are told apart: equal code is the same program. Two things
are left out of the comparison, file names and line numbers, because a text may stand elsewhere than it did.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

from undertow.frontend.syntax.parse import compile_statements, parse, walk

FunctionNode = ast.FunctionDef | ast.Lambda
_COMPARED = (
    "co_name", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_code", "co_names",
    "co_varnames", "co_freevars", "co_cellvars", *(["co_exceptiontable"] if sys.version_info >= (3, 11) else []),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A definition in a text."""

    node: FunctionNode
    line: int  # where its code says that it starts: at its first decorator
    number: int  # of the top-level statement that it is in; its code depends on no other one


@dataclass(frozen=True, slots=True, eq=False)
class _Definitions:
    """The definitions of a text, by the names of their code."""

    tree: ast.Module
    by_name: dict[str, list[_Place]]
    imports: list[ast.stmt]


@functools.lru_cache(maxsize=64)
def _definitions(source: str, filename: str) -> _Definitions:
    tree = parse(source, filename)
    by_name: dict[str, list[_Place]] = {}
    for number, statement in enumerate(tree.body):
        for node in walk(statement):
            if isinstance(node, (ast.FunctionDef, ast.Lambda)):
                by_name.setdefault(_code_name(node), []).append(_Place(node, _first_line(node), number))
    return _Definitions(tree, by_name, _imports(tree))


def _imports(tree: ast.Module) -> list[ast.stmt]:
    """One statement that imports whatever the module imports: attributes of these names are called by other code."""
    names: dict[str, None] = {}
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(((alias.asname or alias.name).split(".")[0], None) for alias in node.names)
        elif not isinstance(node, (ast.expr, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    names.pop("*", None)
    return [ast.fix_missing_locations(ast.Import([ast.alias(name) for name in names]))] if names else []


def _code_name(node: FunctionNode) -> str:
    return node.name if isinstance(node, ast.FunctionDef) else "<lambda>"


def _first_line(node: FunctionNode) -> int:
    is_decorated = isinstance(node, ast.FunctionDef) and node.decorator_list
    return node.decorator_list[0].lineno if is_decorated else node.lineno  # type: ignore[union-attr]


def find_definition(source: str, filename: str, code: CodeType) -> FunctionNode | None:
    """The definition in a text that compiles to this code; None if there is none. The text may be no Python."""
    try:
        definitions = _definitions(source, filename)
    except (SyntaxError, ValueError, RecursionError):
        return None
    places = [place for place in definitions.by_name.get(code.co_name, ()) if _has_parameters(place.node, code)]
    # Where Python says that it is, as a rule; if lines were inserted above it, elsewhere.
    places.sort(key=lambda place: abs(place.line - code.co_firstlineno))
    for number in dict.fromkeys(place.number for place in places):
        nodes = {place.node: place.line for place in places if place.number == number}
        statement = _Statement(source, filename, number)
        # At a prompt and in a notebook, a statement is compiled alone.
        for before in (definitions.imports, []) if definitions.imports else ([],):
            node = _match(statement, [*before, definitions.tree.body[number]], nodes, code)
            if node is not None:
                return node
    return None


def _has_parameters(node: FunctionNode, code: CodeType) -> bool:
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    mangled = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return len(names) == len(mangled) and all(b.endswith(a) for a, b in zip(names, mangled, strict=True))


def find_cached(source: str, filename: str, code: CodeType, module: CodeType) -> FunctionNode | None:
    """The definition in a text that is known to compile to this module, where the module has this code."""
    if code.co_firstlineno not in _lines_of_equals(module, code):
        return None
    try:
        places = _definitions(source, filename).by_name.get(code.co_name, [])
    except (SyntaxError, ValueError, RecursionError):
        return None
    nodes = [p.node for p in places if p.line == code.co_firstlineno and _has_parameters(p.node, code)]
    return nodes[0] if len(nodes) == 1 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Statement:
    """A top-level statement of a text, to parse again where a copy of its tree is needed."""

    source: str
    filename: str
    number: int

    def copied(self) -> ast.stmt:
        return parse(self.source, self.filename).body[self.number]


def _match(
    place: _Statement, statements: list[ast.stmt], lines: dict[FunctionNode, int], code: CodeType
) -> FunctionNode | None:
    """The one of some definitions that compiles to this code; they are given with their first lines.

    They are all in the last one of the statements.
    """
    *before, _ = statements
    try:
        equal = _lines_of_equals(compile_statements(statements, place.filename, code), code)
        if not equal and _is_rewritten(code):
            rewritten = [*before, *_rewritten(place)]
            equal = _lines_of_equals(compile_statements(rewritten, place.filename, code), code)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for first in lines.values():
        if first in equal:
            nodes = [node for node, line in lines.items() if line == first]
            return nodes[0] if len(nodes) == 1 else _tell_apart(place, before, nodes, code)
    return None


def _lines_of_equals(module: CodeType, code: CodeType) -> set[int]:
    """The lines at which functions start that have the same code."""
    return {c.co_firstlineno for c in _all_codes(module) if c.co_name == code.co_name and is_same_code(c, code)}


def _tell_apart(
    place: _Statement, before: list[ast.stmt], nodes: list[FunctionNode], code: CodeType
) -> FunctionNode | None:
    """The one of several lambdas on one line that compiles to this code.

    Code says at which line it starts, so each lambda is moved to a line of its own, in a copy of the tree.
    """
    statement = place.copied()
    wanted = {(node.lineno, node.col_offset): node for node in nodes}
    moved: dict[int, FunctionNode] = {}
    for copy in walk(statement):
        if isinstance(copy, ast.Lambda) and (copy.lineno, copy.col_offset) in wanted:
            line = (statement.end_lineno or statement.lineno) + 1 + len(moved)
            moved[line] = wanted[copy.lineno, copy.col_offset]
            copy.lineno = copy.end_lineno = line
            copy.end_col_offset = copy.col_offset + 1
    equal = _lines_of_equals(compile_statements([*before, statement], place.filename, code), code)
    return next((node for line, node in moved.items() if line in equal), None)


def _is_rewritten(code: CodeType) -> bool:
    """Has pytest rewritten its assertions, as it does in modules of tests? Then it uses names that nobody can write."""
    return any(name.startswith("@py") for inner in _all_codes(code) for name in (*inner.co_names, *inner.co_varnames))


def _rewritten(place: _Statement) -> list[ast.stmt]:
    """A statement whose assertions are rewritten by pytest."""
    rewrite: Any = sys.modules.get("_pytest.assertion.rewrite")
    if rewrite is None:
        raise ValueError("pytest is not there")
    module = ast.Module([place.copied()], [])
    rewrite.rewrite_asserts(module, place.source.encode(), place.filename, None)
    return module.body


def _all_codes(code: CodeType) -> Iterator[CodeType]:
    """This code and that of every function defined in it."""
    stack = [code]
    while stack:
        code = stack.pop()
        yield code
        stack.extend(constant for constant in reversed(code.co_consts) if isinstance(constant, CodeType))


def is_same_code(a: CodeType, b: CodeType) -> bool:
    """Do both do the same, wherever they stand?

    >>> one, other = (lambda x: x + 1), (lambda x: x + 1)
    >>> is_same_code(one.__code__, other.__code__), is_same_code(one.__code__, (lambda x: x + 1.0).__code__)
    (True, False)
    """
    stack = [(a, b)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if any(getattr(a, name) != getattr(b, name) for name in _COMPARED) or len(a.co_consts) != len(b.co_consts):
            return False
        if (a.co_flags ^ b.co_flags) & ~inspect.CO_NESTED:  # which says only that it stands in another function
            return False
        for one, other in zip(a.co_consts, b.co_consts, strict=True):
            if isinstance(one, CodeType) and isinstance(other, CodeType):
                stack.append((one, other))
            elif _identity(one) != _identity(other):
                return False
    return True


def _identity(constant: Any) -> Any:
    """A key that tells constants apart as the compiler does: 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    if isinstance(constant, (tuple, frozenset)):
        return type(constant), type(constant)(map(_identity, constant))
    return type(constant), repr(constant) if isinstance(constant, (float, complex)) else constant
