"""Variables that a loop of the graph assigns first, and that are read after it: the loop may not run.

Until the loop has assigned one, it holds None; reading it after the loop is then Python's UnboundLocalError.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import partial
from typing import Any

from undertow.frontend.control.merge import force
from undertow.frontend.interpret.options import needed
from undertow.frontend.syntax.queries import own_nodes
from undertow.frontend.syntax.source import Env, Undefined, Unsure
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.option import is_option
from undertow.frontend.values.traced import Context, Traced, is_traced
from undertow.frontend.values.tree import flatten

MAY_NOT_RUN = "`{}` is assigned only inside a loop that may not run"


def told_unset(name: str) -> str:
    return f"cannot access local variable '{name}' where it is not associated with a value"


def read_next(loop: ast.For | ast.While, env: Env, assigned: Iterable[str]) -> frozenset[str]:
    """Which variables that a loop assigns have no value before it, and are read after it before they are assigned."""
    fresh = {n for n in assigned if n in env.local and isinstance(env.vars.get(n, Undefined("")), Undefined)}
    end = loop.end_lineno or loop.lineno
    first: dict[str, int] = {}
    for node in own_nodes(env.closure.node) if fresh else ():
        if isinstance(node, ast.Name) and node.id in fresh and node.lineno > end:
            first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
    if not first:
        return frozenset()
    return frozenset(
        node.id
        for node in own_nodes(env.closure.node)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and first.get(node.id) == node.lineno
    )


def may_be_none(name: str, env: Env, ctx: Context) -> bool:
    """Can a value that a variable holds after a round, perhaps on some of its paths, be one that may be None?"""
    value = force(env.vars.get(name, Undefined("")), ctx)
    if isinstance(value, Undefined):
        return not isinstance(value, Unsure)
    if value is None or is_option(value) or isinstance(value, GrowingList):
        return False
    leaves = flatten(value, is_traced)[0]
    return bool(leaves) and all(isinstance(leaf, Traced) for leaf in leaves)


def after_loop(name: str, env: Env, ctx: Context) -> Any:
    """What the variable holds after the loop."""
    value = force(env.vars[name], ctx)
    if not is_option(value):
        return value
    read = partial(needed, value, ctx, told_unset(name), UnboundLocalError)
    return Unsure(MAY_NOT_RUN.format(name), "assign it before the loop as well", read=read)
