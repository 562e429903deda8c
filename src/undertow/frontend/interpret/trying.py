"""`try`: `finally` is written on every way out, as Python's compiler does; `except` where capture shows what happens.

A graph catches nothing. So `try`/`except` is captured if what is tried cannot raise, or if it raises already during
capture, whatever the arguments are. A `finally` that acts, or that would swallow an exception, needs a `try` that
cannot raise.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import partial
from typing import Any

from undertow.errors import CaptureError, UndertowError
from undertow.frontend.control.merge import force
from undertow.frontend.control.restart import Halted
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.outcomes import Cell, cells
from undertow.frontend.interpret.purity import has_lasting_effect
from undertow.frontend.interpret.raising import LATE
from undertow.frontend.interpret.written import Computed, do
from undertow.frontend.syntax.queries import HINTS
from undertow.frontend.syntax.source import Env
from undertow.frontend.trace.builder import Builder

# Operators that neither NumPy nor Python raises an exception for, whatever numbers they get.
_CALM = frozenset((
    "abs", "add", "cast", "equal", "greater", "greater_equal", "identity", "less", "less_equal", "logical_and",
    "logical_not", "logical_or", "maximum", "merge", "minimum", "multiply", "negative", "not_equal", "param",
    "positive", "print", "start", "subtract", "switch", "where",
))  # fmt: skip
_ENTERS = ("call", "loop", "map")
# What to write instead of catching an exception.
_INSTEAD = {
    "ZeroDivisionError": "test the divisor first: `0 if d == 0 else n / d`",
    "IndexError": "test the index first: `if 0 <= i < len(x):`",
    "KeyError": "test the key first: `if key in table:`, or write `table.get(key, default)`",
    "AttributeError": "test it first: `if x is not None:`, or getattr(x, name, default)",
    "StopIteration": "write next(items, default)",
}
_LOOPS = (ast.For, ast.While)
_APART = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def try_block(interp: Any, node: ast.Try, after: Cell | None, env: Env) -> Work:
    """The outcome of a `try`, or of its statements so far, and the place after it."""
    if node.finalbody:
        tried = node
        if node.handlers:
            tried = ast.copy_location(ast.Try(node.body, node.handlers, node.orelse, []), node)
        return None, cells(_with_finally(interp, node, [tried] if node.handlers else node.body, env), after)
    return (yield _with_handlers(interp, node, after, env))


# -- finally -----------------------------------------------------------------------------------------------


def _with_finally(interp: Any, node: ast.Try, body: list[ast.stmt], env: Env) -> list[ast.stmt]:
    """The statements of a `try`, with those of its `finally` before each way out."""
    ctx = interp.ctx
    began: list[tuple[Builder, int]] = []
    swallows = _leaves(node.finalbody)

    def begin() -> None:
        began.append((ctx.open_builder, len(ctx.open_builder.nodes)))

    def check(first: list[int], is_after: bool) -> None:
        builder = ctx.open_builder
        first.append(len(builder.nodes))
        if is_after and not has_lasting_effect(builder.nodes[first[-2] :], ctx.session.graphs):
            return
        where, start = began[-1]
        if (is_after or swallows) and _may_raise(interp, where, start, first[0]):
            raise CaptureError(
                "this `finally` would run after an exception, too, and a graph ends with the first one",
                interp.span(node.finalbody[0], env),
                hint="print, assign or return after the `try` instead",
            )

    def finally_() -> list[ast.stmt]:
        counts: list[int] = []
        at = node.finalbody[0]
        before, behind = (do(partial(check, counts, is_after), at) for is_after in (False, True))
        return [before, *node.finalbody, behind]

    return [do(begin, node), *_leaving_by(body, finally_, env, interp), *finally_()]


def _leaving_by(body: list[ast.stmt], finally_: Callable[[], list[ast.stmt]], env: Env, interp: Any) -> list[ast.stmt]:
    """The statements with more of them before each `return`, and each `break` and `continue` out of them.

    Source nests at most as deep as Python's parser allows.
    """

    def rewritten(statement: ast.stmt, in_loop: bool) -> list[ast.stmt]:
        if isinstance(statement, ast.Return):
            name = f"returned {statement.lineno}:{statement.col_offset}"
            held = ast.Constant(None) if statement.value is None else statement.value
            keep = ast.Assign([ast.copy_location(ast.Name(name, ast.Store()), statement)], held)
            value = Computed(lambda: force(env.vars[name], interp.ctx), statement)
            return [ast.copy_location(keep, statement), *finally_(), ast.copy_location(ast.Return(value), statement)]
        if isinstance(statement, (ast.Break, ast.Continue)):
            return [statement] if in_loop else [*finally_(), statement]
        if isinstance(statement, _APART) or not _leaves([statement], in_loop):
            return [statement]
        if isinstance(statement, ast.Try) and statement.finalbody:
            inner = _with_finally(interp, statement, _without_finally(statement), env)
            return [part for one in inner for part in rewritten(one, in_loop)]
        fields = {name: getattr(statement, name) for name in statement._fields}
        for name, held in fields.items():
            inside = in_loop or (isinstance(statement, _LOOPS) and name == "body")
            if name in ("body", "orelse", "finalbody"):
                fields[name] = [part for one in held for part in rewritten(one, inside)]
            elif name in ("handlers", "cases"):
                fields[name] = [within(one, inside) for one in held]
        return [ast.copy_location(type(statement)(**fields), statement)]

    def within(part: Any, in_loop: bool) -> Any:
        fields = {name: getattr(part, name) for name in part._fields}
        fields["body"] = [made for one in part.body for made in rewritten(one, in_loop)]
        made = type(part)(**fields)
        return ast.copy_location(made, part) if isinstance(part, ast.ExceptHandler) else made

    return [part for statement in body for part in rewritten(statement, False)]


def _without_finally(node: ast.Try) -> list[ast.stmt]:
    if not node.handlers:
        return node.body
    return [ast.copy_location(ast.Try(node.body, node.handlers, node.orelse, []), node)]


def _leaves(statements: list[ast.stmt], in_loop: bool = False) -> bool:
    """Is there a `return` in these statements, or a `break` or `continue` out of them?"""
    stack: list[tuple[ast.AST, bool]] = [(statement, in_loop) for statement in statements]
    while stack:
        item, inside = stack.pop()
        if isinstance(item, ast.Return) or (isinstance(item, (ast.Break, ast.Continue)) and not inside):
            return True
        if isinstance(item, _LOOPS):
            stack += [(one, True) for one in item.body] + [(one, inside) for one in item.orelse]
        elif not isinstance(item, _APART):
            stack += [(child, inside) for child in ast.iter_child_nodes(item)]
    return False


# -- except ------------------------------------------------------------------------------------------------


def _with_handlers(interp: Any, node: ast.Try, after: Cell | None, env: Env) -> Work:
    graph = interp.ctx.open_builder
    start = len(graph.nodes)
    after_body = cells([do(partial(_refuse_raising, interp, node, start, env), node), *node.orelse], after)
    if _leaves(node.body) and not _leaves(node.body, in_loop=True):  # by `break` or `continue`: to a place in the list
        return None, cells(node.body, after_body)
    try:
        outcome = yield interp.run_uncaught(cells(node.body), env)
    except Halted:
        _refuse_raising(interp, node, start, env)
        raise
    except Exception as fault:
        is_pythons = isinstance(fault, LATE) and not isinstance(fault, UndertowError)
        handler = (yield _handler_of(interp, node, fault, env)) if is_pythons or fault is interp.thrown else None
        if handler is None or interp.ctx.builder is not graph:
            raise
        _refuse_raising(interp, node, start, env)
        if handler.name is not None:
            caught = fault.__cause__ if isinstance(fault, CaptureError) else fault
            interp.bind(handler.name, interp.owned.own(caught), env)
        return None, cells(handler.body, after)
    _refuse_raising(interp, node, start, env)
    return outcome, after_body


def _handler_of(interp: Any, node: ast.Try, fault: Exception, env: Env) -> Work:
    """The first `except` that catches an exception."""
    for handler in node.handlers:
        kind = Exception if handler.type is None else (yield interp.expr(handler.type, env))
        if isinstance(fault, kind):
            return handler
    return None


def _refuse_raising(interp: Any, node: ast.Try, start: int, env: Env) -> None:
    """What is tried must not raise at run time, where nothing could catch it."""
    builder = interp.ctx.open_builder
    if not _may_raise(interp, builder, start, len(builder.nodes)):
        return
    kinds = [ast.unparse(handler.type) for handler in node.handlers if handler.type is not None]
    hint = next((_INSTEAD[kind] for kind in kinds if kind in _INSTEAD), HINTS["Try"])
    where = interp.span(node, env)
    raise CaptureError("`try` cannot be captured where an exception may be raised at run time", where, hint)


def _may_raise(interp: Any, began_in: Builder, start: int, end: int) -> bool:
    """May a node that was written since then raise an exception, in the graph of that time or in one inside it?"""
    builder: Builder | None = interp.ctx.open_builder
    graphs, seen = interp.ctx.session.graphs, set[str]()
    stack: list[Any] = []
    while builder is not None and builder is not began_in:
        stack += builder.nodes[:end]
        builder, end = builder.parent, len(began_in.nodes)
    stack += began_in.nodes[start:end]
    while stack:
        node = stack.pop()
        entered = node.attrs.get("callee") or node.attrs.get("body")
        if node.op not in _CALM and (node.op not in _ENTERS or entered not in graphs):
            return True
        if entered in graphs and entered not in seen:
            seen.add(entered)
            stack += graphs[entered].nodes
    return False
