"""Runs Python syntax during capture: statements without control flow."""

from __future__ import annotations

import ast
import importlib
from collections import deque
from typing import Any

import numpy as np

from undertow.errors import CaptureError, kind_of
from undertow.frontend.control.aliasing import fit_in_place, is_array
from undertow.frontend.control.restart import Halted
from undertow.frontend.functions.debug import assert_
from undertow.frontend.interpret.calls import Interpreter
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.expressions import HANDLERS
from undertow.frontend.interpret.growing import call_method
from undertow.frontend.interpret.list_syntax import delete_item
from undertow.frontend.interpret.operators import INPLACE
from undertow.frontend.interpret.raising import is_conditional, raise_at_run_time
from undertow.frontend.interpret.special import of_operator, special
from undertow.frontend.interpret.standins import is_run_time
from undertow.frontend.syntax.queries import HINTS, is_text_of_names
from undertow.frontend.syntax.source import Env, Undefined
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.leaves import port_in
from undertow.frontend.values.text import TracedText, text_of
from undertow.frontend.values.traced import Traced, roots_of


class Statements(Interpreter):
    """Adds statements without control flow to expressions. `branches.py` adds the others."""

    def assignment(self, node: ast.Assign, env: Env) -> Work:
        value = yield self.expr(node.value, env)
        for target in node.targets:
            yield self.assign(target, value, env)

    def annotated(self, node: ast.AnnAssign, env: Env) -> Work:
        if node.value is not None:
            value = yield self.expr(node.value, env)
            yield self.assign(node.target, value, env)

    def augmented(self, node: ast.AugAssign, env: Env) -> Work:
        target = node.target
        holder = key = None
        if isinstance(target, ast.Name):
            before = self.name(target, env)
        else:
            holder = yield self.expr(target.value, env)
            if isinstance(target, ast.Subscript):
                key = yield self.expr(target.slice, env)
                self.at(target, env)
                before = yield self.item_of(holder, key)
            else:
                self.at(target, env)
                before = yield self.attribute_of(holder, target.attr, self.span(target, env), env)
        value = yield self.expr(node.value, env)
        self.at(node, env)
        if isinstance(before, (list, deque)) and isinstance(node.op, ast.Add) and is_run_time(value):
            value = yield self.collected(value)
            self.owned.let_fit(before, value)
        if isinstance(before, GrowingList) and isinstance(node.op, ast.Add):
            yield call_method(self, before, "extend", [value], {})
            if isinstance(holder, GrowingList):
                return  # it holds the same list
            after = before
        elif isinstance(before, (list, dict, set, deque, bytearray)):
            self.owned.change(before, ast.unparse(target))
            after = INPLACE[type(node.op)](before, value)
        elif (method := special(self.ctx.session, before, of_operator(node.op)[0].replace("__", "__i", 1))) is not None:
            after = yield self.call(method, [before, value], {})
        else:
            after = yield self.operate(node.op, before, value)
            if is_array(before) and not is_array(holder):
                if isinstance(holder, GrowingList):
                    self.update_array(node, before, after)
                    return
                if holder is not None:
                    self.owned.change(holder, ast.unparse(target.value))  # type: ignore[union-attr]
                after = self.update_array(node, before, after)
            elif is_array(before):
                after = fit_in_place(before, after, ast.unparse(target), _written_out(node))
        after = self.owned.adopt(after)
        if isinstance(target, ast.Name):
            self.bind(target.id, after, env)
        elif isinstance(target, ast.Subscript):
            yield self.set_item(holder, key, after, ast.unparse(target.value))
        else:
            yield self.set_attribute(holder, target.attr, after, ast.unparse(target.value))

    def update_array(self, node: ast.AugAssign, before: Any, after: Any) -> Any:
        """`x += ...` of an array: all names of the array, and its views, see the change."""
        called = ast.unparse(node.target)
        written = _written_out(node)
        after = fit_in_place(before, after, called, written)
        if isinstance(before, Traced):
            if not isinstance(after, Traced):
                after = Traced(self.ctx.open_builder, port_in(after, self.ctx.open_builder.region, self.ctx))
            self.changes.update(before, after, called, written)
            return before
        if isinstance(before.base, np.ndarray):
            self.owned.make_traced(before)
        self.aliases.change(before, called, written, allowed=1)
        if not isinstance(after, Traced):
            return after
        same = Traced(after.builder, after.port)
        same.base = roots_of(before)  # it is still that array
        return same

    def define(self, node: ast.FunctionDef, env: Env) -> Work:
        function: Any = yield self.make_closure(node, env)
        for decorator in reversed(node.decorator_list):
            wrap = yield self.expr(decorator, env)
            self.at(decorator, env)
            function = yield self.call(wrap, [function], {}, env)
        self.bind(node.name, function, env)

    def check(self, node: ast.Assert, env: Env) -> Work:
        if not __debug__:
            return  # python -O
        truth = yield self.condition(node.test, env)
        self.at(node, env)
        if not isinstance(truth, Traced):
            if not truth:
                yield self._fail(node, env)
        elif node.msg is None or isinstance(node.msg, ast.Constant) or is_text_of_names(node.msg):
            message = "" if node.msg is None else text_of((yield self.expr(node.msg, env)), conversion="s")
            self.at(node, env)
            if isinstance(message, TracedText):
                assert_(truth, message.template, *message.values)
            else:
                assert_(truth, message or f"assertion failed: {ast.unparse(node.test)}")
        else:  # the message is evaluated only where the assertion fails
            yield self.choose(truth, lambda: None, lambda: self._fail(node, env), env)

    def _fail(self, node: ast.Assert, env: Env) -> Work:
        """An assertion that fails: now if it fails in every run, otherwise wherever this is reached."""
        message = "" if node.msg is None else text_of((yield self.expr(node.msg, env)), conversion="s")
        self.at(node, env)
        if is_conditional(self.ctx) or isinstance(message, TracedText):
            said = message if node.msg is not None else f"assertion failed: {ast.unparse(node.test)}"
            raise_at_run_time(AssertionError, AssertionError(said))
            raise Halted
        raise CaptureError(
            f"assertion failed: {message or ast.unparse(node.test)}",
            hint="it does not depend on traced values, so it is checked during capture",
            kind=AssertionError,
        )

    def throw(self, node: ast.Raise, env: Env) -> Work:
        if node.exc is None:
            raise CaptureError("`raise` cannot be captured without an exception", self.span(node, env), HINTS["Raise"])
        error = yield self.expr(node.exc, env)
        self.at(node, env)
        kind = error if isinstance(error, type) else type(error)
        if not issubclass(kind, BaseException):
            raise CaptureError(
                f"only exceptions can be raised, not a {kind.__name__}", hint='raise one: ValueError("a text")'
            )
        if isinstance(error, KeyboardInterrupt):
            raise CaptureError("`raise KeyboardInterrupt` cannot be captured", hint=HINTS["Raise"])
        if not is_conditional(self.ctx):
            self.thrown = error() if isinstance(error, type) else error
            raise self.thrown  # whenever the function runs
        raise_at_run_time(kind, error)
        raise Halted

    def delete(self, node: ast.Delete, env: Env) -> Work:
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.name(target, env)
                env.vars[target.id] = Undefined(f"`{target.id}` is used after `del`", "assign it again first")
            elif isinstance(target, ast.Subscript):
                container = yield self.expr(target.value, env)
                key = yield self.expr(target.slice, env)
                self.at(target, env)
                if isinstance(container, GrowingList):
                    yield delete_item(self, container, key)
                    continue
                if isinstance(key, Traced) and not isinstance(container, Traced):
                    self.owned.let_grow(container)
                    raise CaptureError(
                        f"`del` at a traced index of {kind_of(container)} cannot be captured",
                        hint="keep the values in an array, and select with ut.where",
                    )
                method = special(self.ctx.session, container, "__delitem__")
                if method is not None:
                    yield self.call(method, [container, key], {})
                    continue
                if not isinstance(container, Traced):
                    self.owned.change(container, ast.unparse(target.value))
                del container[key]
            else:
                assert isinstance(target, ast.Attribute)
                changed = yield self.expr(target.value, env)
                self.at(target, env)
                if isinstance(changed, Traced):
                    raise CaptureError("an attribute of a traced value cannot be deleted", hint="leave it as it is")
                yield self.delete_attribute(changed, target.attr, ast.unparse(target.value))

    def bring_in(self, node: ast.Import | ast.ImportFrom, env: Env) -> None:
        self.at(node, env)
        for alias in node.names:
            if isinstance(node, ast.Import):
                module = importlib.import_module(alias.name)
                value = module if alias.asname else importlib.import_module(alias.name.split(".")[0])
            else:
                package = env.closure.globals.get("__package__") or None
                source = importlib.import_module("." * node.level + (node.module or ""), package)
                value = getattr(source, alias.name)
            env.vars[(alias.asname or alias.name).split(".")[0]] = value


def _written_out(node: ast.AugAssign) -> str:
    """`x += y` as `x = x + y`."""
    return ast.unparse(ast.Assign([node.target], ast.BinOp(node.target, node.op, node.value), lineno=1))


HANDLERS.update({
    ast.Expr: lambda interp, node, env: interp.expr(node.value, env), ast.Assign: Statements.assignment,
    ast.AnnAssign: Statements.annotated, ast.AugAssign: Statements.augmented,
    ast.FunctionDef: Statements.define, ast.Assert: Statements.check,
    ast.Raise: Statements.throw, ast.Delete: Statements.delete,
    ast.Import: Statements.bring_in, ast.ImportFrom: Statements.bring_in,
    ast.Pass: lambda *_: None,
})  # fmt: skip
