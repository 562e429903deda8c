"""Queries about pieces of syntax."""

from __future__ import annotations

import ast

# An operand of `and`/`or` made of these alone cannot fault and has no effect: it needs no branch of its own.
_PLAIN = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Load,
    ast.And, ast.Or, ast.Not, ast.USub, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


def is_plain(node: ast.expr) -> bool:
    """Can it neither fault nor call nor act?"""
    stack: list[ast.AST] = [node]
    while stack:
        item = stack.pop()
        if not isinstance(item, _PLAIN):
            return False
        stack.extend(ast.iter_child_nodes(item))
    return True


def targets(generators: list[ast.comprehension]) -> set[str]:
    return {n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}


def syntax_name(node: ast.AST) -> str:
    """How a message names a piece of syntax."""
    names = {
        "Yield": "`yield`", "YieldFrom": "`yield from`", "Await": "`await`", "Try": "`try`", "TryStar": "`try`",
        "With": "`with`", "AsyncWith": "`async with`", "AsyncFor": "`async for`", "Global": "`global`",
        "Nonlocal": "`nonlocal`", "ClassDef": "a class defined in a captured function", "Match": "`match`",
        "AsyncFunctionDef": "`async def`", "Raise": "`raise`", "Delete": "`del`", "Import": "`import`",
    }  # fmt: skip
    kind = type(node).__name__
    return names.get(kind, f"this syntax ({kind})")
