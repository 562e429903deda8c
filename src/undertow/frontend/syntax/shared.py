"""Variables that inner functions assign (`nonlocal`): each becomes a list of one item, which all functions share.

`count = 0`, and `nonlocal count; count += 1` in an inner function, become `count = [0]` and `count[0] += 1`: changes of
a list that the function made are known to every part of a capture. A variable whose first assignment is not a plain one
at the top of its function keeps its `nonlocal`, which is refused.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

from undertow.frontend.syntax.match import FunctionNode

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NAMING = (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def with_shared_variables(node: FunctionNode) -> FunctionNode:
    """The function, with lists in place of the variables that functions inside of it assign."""
    if not any(isinstance(inner, ast.Nonlocal) for inner in ast.walk(node)):
        return node
    known: FunctionNode | None = vars(node).get("undertow_shared")
    if known is None:
        known = copy.deepcopy(node)
        _rewrite(known, frozenset())
        vars(node)["undertow_shared"] = known
    return known


def _rewrite(function: Any, around: frozenset[str]) -> None:
    """Rewrite a function; `around`: what is shared in those around it."""
    parameters = {a.arg for a in ast.walk(function.args) if isinstance(a, ast.arg)}
    outer = _declared(function)
    own = (parameters | _bound(function)) - outer
    shared = {name for name in _wanted(function) & own if _may_be_shared(function, name, parameters)}
    visible = frozenset((around - own) | shared)
    if isinstance(function, ast.Lambda):
        function.body = _Names(visible).visit(function.body)
    else:
        body: list[ast.stmt] = []
        begun = shared & parameters
        for name in sorted(begun):
            body.append(_at(function.body[0], ast.Assign([_name(name, ast.Store())], _listed(_name(name)))))
        for statement in function.body:
            begins = _begun_by(statement) & shared - begun
            if begins:
                begun |= begins
                body += _beginning(statement, begins, visible)
            else:
                body.append(_Names(visible).visit(statement))
        function.body = body
    for inner in _inner(function):
        _rewrite(inner, visible)


def _own(function: Any) -> Iterator[ast.AST]:
    """The nodes of a function outside of the functions in it, which are among them."""
    todo: list[ast.AST] = list(function.body) if isinstance(function.body, list) else [function.body]
    while todo:
        node = todo.pop()
        yield node
        todo += _evaluated(node) if isinstance(node, _SCOPES) else ast.iter_child_nodes(node)


def _evaluated(inner: Any) -> list[ast.AST]:
    """What of an inner function the one around it evaluates."""
    decorators = [] if isinstance(inner, ast.Lambda) else inner.decorator_list
    return [*decorators, *inner.args.defaults, *(d for d in inner.args.kw_defaults if d is not None)]


def _inner(function: Any) -> list[Any]:
    return [node for node in _own(function) if isinstance(node, _SCOPES)]


def _declared(function: Any) -> set[str]:
    return {name for node in _own(function) if isinstance(node, (ast.Nonlocal, ast.Global)) for name in node.names}


def _bound(function: Any) -> set[str]:
    inside = {
        id(n)
        for comprehension in _own(function)
        if isinstance(comprehension, _COMPREHENSIONS)
        for g in comprehension.generators
        for n in ast.walk(g.target)
    }
    names = {
        n.id for n in _own(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and id(n) not in inside
    }
    return names | {n.name for n in _own(function) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def _wanted(function: Any) -> set[str]:
    """What the functions in it declare as `nonlocal`, and do not find in a function in between."""
    wanted: set[str] = set()
    for inner in _inner(function):
        parameters = {a.arg for a in ast.walk(inner.args) if isinstance(a, ast.arg)}
        declared = {name for node in _own(inner) if isinstance(node, ast.Nonlocal) for name in node.names}
        wanted |= declared | (_wanted(inner) - ((parameters | _bound(inner)) - declared))
    return wanted


def _may_be_shared(function: Any, name: str, parameters: set[str]) -> bool:
    for node in ast.walk(function):  # of the functions inside, too: an item of a list cannot stand everywhere
        if isinstance(node, ast.NamedExpr) and node.target.id == name:
            return False
        if isinstance(node, _NAMING) and name in (getattr(node, "name", None), getattr(node, "rest", None)):
            return False
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any(name in (a.asname, a.name) for a in node.names):
            return False
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Del):
            return False
    if name in parameters:
        return True
    first = next((s for s in function.body if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(s))), None)
    return first is not None and name in _begun_by(first)


def _begun_by(statement: ast.stmt) -> set[str]:
    """The variables that a statement assigns by name, each with a value of its own."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return {statement.target.id} if isinstance(statement.target, ast.Name) else set()
    if not isinstance(statement, ast.Assign):
        return set()
    names = {target.id for target in statement.targets if isinstance(target, ast.Name)}
    if len(statement.targets) == 1 and _is_each(statement.targets[0], statement.value):
        return {target.id for target in statement.targets[0].elts}  # type: ignore[attr-defined]
    return names if len(statement.targets) == 1 or isinstance(statement.value, ast.Constant) else set()


def _is_each(target: ast.expr, value: ast.expr) -> bool:
    """`a, b = 0, 1`, of names and constants?"""
    return (
        isinstance(target, ast.Tuple)
        and isinstance(value, ast.Tuple)
        and len(target.elts) == len(value.elts)
        and all(isinstance(t, ast.Name) for t in target.elts)
        and all(isinstance(v, ast.Constant) for v in value.elts)
    )


def _beginning(statement: Any, names: set[str], visible: frozenset[str]) -> list[ast.stmt]:
    """The first assignment of shared variables: to new lists."""
    if isinstance(statement, ast.AnnAssign):
        pairs: list[tuple[Any, Any]] = [(statement.target, statement.value)]
    elif len(statement.targets) == 1 and _is_each(statement.targets[0], statement.value):
        pairs = list(zip(statement.targets[0].elts, statement.value.elts, strict=True))
    else:
        pairs = [(target, statement.value) for target in statement.targets]
    made: list[ast.stmt] = []
    for target, value in pairs:
        written = _Names(visible).visit(value)
        is_new = isinstance(target, ast.Name) and target.id in names
        to = target if is_new else _Names(visible).visit(target)
        made.append(_at(statement, ast.Assign([to], _listed(written) if is_new else written)))
    return made


class _Names(ast.NodeTransformer):
    """Items of lists in place of shared variables, up to the functions inside."""

    def __init__(self, shared: frozenset[str]) -> None:
        self.shared = shared

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self.shared:
            return node
        item = ast.Subscript(_at(node, _name(node.id)), _at(node, ast.Constant(0)), node.ctx)
        return _at(node, item)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> Any:
        rest = [name for name in node.names if name not in self.shared]
        return _at(node, ast.Nonlocal(rest) if rest else ast.Pass())

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if not (isinstance(node.target, ast.Name) and node.target.id in self.shared):
            return self.generic_visit(node)
        if node.value is None:
            return _at(node, ast.Pass())
        return _at(node, ast.Assign([self.visit(node.target)], self.visit(node.value)))

    def _comprehension(self, node: Any) -> Any:
        """Its variables are its own; the first thing that it goes over is of the function around it."""
        first = self.visit(node.generators[0].iter)
        node.generators[0].iter = ast.Constant(None)
        own = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        made = _Names(self.shared - own).generic_visit(node)
        made.generators[0].iter = first  # type: ignore[attr-defined]
        return made

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def _function(self, node: Any) -> Any:
        """Its body is rewritten by itself, for it may have variables of the same names."""
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [None if d is None else self.visit(d) for d in node.args.kw_defaults]
        if not isinstance(node, ast.Lambda):
            node.decorator_list = [self.visit(decorator) for decorator in node.decorator_list]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _function


def _name(name: str, ctx: ast.expr_context | None = None) -> ast.Name:
    return ast.Name(name, ctx or ast.Load())


def _listed(value: ast.expr) -> ast.List:
    return ast.List([value], ast.Load())


def _at(place: ast.AST, node: Any) -> Any:
    for part in ast.walk(node):
        if isinstance(part, (ast.expr, ast.stmt)) and not hasattr(part, "lineno"):
            ast.copy_location(part, place)
    return node
