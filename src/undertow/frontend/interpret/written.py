"""Syntax that capture writes itself, for programs that mean the same as the user's: expressions that are functions."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from undertow.frontend.interpret.expressions import HANDLERS


class Computed(ast.expr):
    """An expression whose value is what a function of ours gives, or the work that gives it."""

    _fields = ()

    def __init__(self, compute: Callable[[], Any], at: ast.AST) -> None:
        super().__init__()
        self.compute = compute
        ast.copy_location(self, at)


def do(compute: Callable[[], Any], at: ast.AST) -> ast.stmt:
    """A statement that calls a function of ours."""
    return ast.copy_location(ast.Expr(Computed(compute, at)), at)


def when(test: Callable[[], Any], body: list[ast.stmt], at: ast.AST) -> ast.stmt:
    """An `if` whose test is a function of ours."""
    return ast.copy_location(ast.If(Computed(test, at), body, []), at)


HANDLERS[Computed] = lambda _, node, env: node.compute()
