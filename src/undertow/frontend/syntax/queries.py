"""Queries about pieces of syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from undertow.frontend.syntax.match import FunctionNode

# An operand of `and`/`or` made of these alone cannot fault and has no effect: it needs no branch of its own.
_PLAIN = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Load,
    ast.And, ast.Or, ast.Not, ast.USub, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """The syntax of a function's body, as it is written, without that of functions and classes inside."""
    stack: list[ast.AST] = list(reversed(function.body)) if isinstance(function.body, list) else [function.body]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.AsyncFunctionDef, ast.ClassDef)):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def is_procedure(function: FunctionNode) -> bool:
    """Does it end without a value on every path? What it is for is what it changes."""
    return not isinstance(function, ast.Lambda) and not any(
        isinstance(node, (ast.Yield, ast.YieldFrom)) or (isinstance(node, ast.Return) and node.value is not None)
        for node in own_nodes(function)
    )


def is_plain(node: ast.expr) -> bool:
    """Is it sure not to fault, call or act?"""
    stack: list[ast.AST] = [node]
    while stack:
        item = stack.pop()
        if not isinstance(item, _PLAIN):
            return False
        stack.extend(ast.iter_child_nodes(item))
    return True


def is_text_of_names(node: ast.expr) -> bool:
    """Is it an f-string that shows no more than what names hold?"""
    return isinstance(node, ast.JoinedStr) and all(
        isinstance(part, ast.Constant) or (isinstance(part, ast.FormattedValue) and is_plain(part.value))
        for part in node.values
    )


def targets(generators: list[ast.comprehension]) -> set[str]:
    return {n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}


def syntax_name(node: ast.AST) -> str:
    """The name of a piece of syntax, for messages."""
    names = {
        "Yield": "`yield`", "YieldFrom": "`yield from`", "Await": "`await`", "Try": "`try`", "TryStar": "`try`",
        "With": "`with`", "AsyncWith": "`async with`", "AsyncFor": "`async for`", "Global": "`global`",
        "Nonlocal": "`nonlocal`", "ClassDef": "a class defined in a captured function",
        "AsyncFunctionDef": "`async def`", "Raise": "`raise`", "Delete": "`del`", "Import": "`import`",
    }  # fmt: skip
    kind = type(node).__name__
    return names.get(kind, f"this syntax ({kind})")


# Hints: what to write instead of syntax that cannot be captured.
HINTS = {
    "Try": "test the condition with `if` before it can fail, or move the `try` outside @ut.function",
    "TryStar": "test the condition with `if` before it can fail, or move the `try` outside @ut.function",
    "SubGraph": "define the SubGraph before the function and call it here, with what it needs as inputs",
    "errstate": "results are inf and nan where NumPy would raise: test them with np.isfinite(x)",
    "With": "open files and locks outside @ut.function, and pass their contents as arguments",
    "AsyncWith": "move it outside @ut.function",
    "AsyncFor": "use an ordinary `for`",
    "AsyncFunctionDef": "use an ordinary `def`: graphs run in parallel on their own",
    "Global": "return the new value, and assign it in the caller",
    "Nonlocal": "return the new value instead, as in `total = add(total, x)`; ut.Variable keeps state. A variable of "
    "the captured function itself must be assigned at its top first",
    "ClassDef": "define the class outside the function",
    "Raise": 'use `assert x > 0, "x must be positive"`, or ut.assert_',
}
