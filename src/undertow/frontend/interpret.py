"""Runs Python syntax during capture: expressions and calls.

Every handler is a generator that yields what it needs evaluated, `(syntax node, env)` or another generator,
and is sent the value back. `drive` keeps the waiting generators on a list, so neither nested expressions nor
nested helpers nor functions that call functions use the host's stack: depth is user data.

What depends on traced values writes nodes, what does not simply runs.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import functools
import inspect
import itertools
import operator
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Generator, Iterable, Sequence
from types import FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch
from undertow.frontend.flow import by_condition, force, join_effects, join_states, merge, restore, save
from undertow.frontend.source import Closure, Env, Undefined, closure_of
from undertow.frontend.traced import Context, Traced
from undertow.types import bool_, said

Work = Generator[Any, Any, Any]

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
    ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
INPLACE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd, ast.Sub: operator.isub, ast.Mult: operator.imul, ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv, ast.Mod: operator.imod, ast.Pow: operator.ipow, ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand, ast.BitOr: operator.ior, ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift, ast.RShift: operator.irshift,
}  # fmt: skip
_UNARY: dict[type, Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Is: operator.is_, ast.IsNot: operator.is_not,
}  # fmt: skip
# An operand of `and`/`or` made of these alone cannot fault and has no effect: it needs no branch of its own.
_PLAIN = (
    ast.Name, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Load,
    ast.And, ast.Or, ast.Not, ast.USub, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq,
)  # fmt: skip
# Methods of lists, dicts and sets that change them.
_MUTATORS = frozenset((
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault",
    "sort", "update",
))  # fmt: skip
# They look at the frame that calls them, which is ours.
_FRAME_FUNCTIONS = (locals, globals, eval, exec)
_LOCAL_HINT = "assign it first; a name that is assigned anywhere in a function is a variable of that function"
_MISSING = object()
_INLINE_DEPTH = 500


def drive(work: Work) -> Any:
    """Run a generator that yields work, to the end, with the waiting ones on a list instead of the stack."""
    stack: list[Work] = [work]
    value: Any = None
    fault: BaseException | None = None
    while stack:
        try:
            if fault is None:
                request = stack[-1].send(value)
            else:
                raised, fault = fault, None
                request = stack[-1].throw(raised)
        except StopIteration as done:
            stack.pop()
            value = done.value
        except BaseException as raised:
            stack.pop()
            fault = raised
        else:
            if type(request) is GeneratorType:
                stack.append(request)
                value = None
            else:
                value = request
    if fault is not None:
        raise fault
    return value


class Interpreter:
    """Evaluates syntax in environments. One per capture."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.depth = 0

    def expr(self, node: ast.expr, env: Env) -> Any:
        """The value of an expression, or a generator that will give it."""
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            raise CaptureError(f"{_said(node)} cannot be captured", self.span(node, env))
        return handler(self, node, env)

    def span(self, node: ast.AST, env: Env) -> Span:
        name = env.closure.name
        return Span(env.closure.file, node.lineno, node.col_offset + 1, name)  # type: ignore[attr-defined]

    def at(self, node: ast.AST, env: Env) -> None:
        """What happens from here on happens at this place in the user's source."""
        self.ctx.span = self.span(node, env)

    # -- names ---------------------------------------------------------------------------------------------

    def name(self, node: ast.Name, env: Env) -> Any:
        value = self.find(node.id, env)
        if value is _MISSING:
            raise CaptureError(
                f"`{node.id}` is not defined",
                self.span(node, env),
                hint=_did_you_mean(node.id, _visible_names(env))
                or "define it, or import it, before the first call; functions may be defined in any order",
            )
        if isinstance(value, Undefined):
            raise value.error(self.span(node, env))
        # A generator object is a value here, not work to be driven.
        return itertools.chain(value) if type(value) is GeneratorType else value

    def find(self, name: str, env: Env) -> Any:
        at: Env | None = env
        last = env
        while at is not None:
            if name in at.local:
                value = at.vars.get(name, _MISSING)
                if value is _MISSING:
                    return Undefined(f"`{name}` is used before it is assigned", _LOCAL_HINT)
                value = force(value, self.ctx)
                if at is not env:
                    self.ctx.session.note_reading(at, name, value)
                return value
            last, at = at, at.parent
        closure = last.closure
        if name in closure.cells:
            try:
                return closure.cells[name].cell_contents
            except ValueError:
                return Undefined(
                    f"`{name}` is used before it is assigned", "assign it in the enclosing function before the call"
                )
        if name in closure.globals:
            return closure.globals[name]
        builtins = closure.globals.get("__builtins__", __builtins__)
        table = builtins if isinstance(builtins, dict) else vars(builtins)
        return table.get(name, _MISSING)

    def bind(self, name: str, value: Any, env: Env) -> None:
        """Assign a variable; a value that was just computed gets its name."""
        while env.is_comprehension and name not in env.local and env.parent is not None:
            env = env.parent
        if isinstance(value, Traced) and value.builder is self.ctx.builder:
            value.builder.rename(value.port, name)
        env.vars[name] = value

    # -- operators -----------------------------------------------------------------------------------------

    def binary(self, node: ast.BinOp, env: Env) -> Work:
        left = yield self.expr(node.left, env)
        right = yield self.expr(node.right, env)
        self.at(node, env)
        if isinstance(node.op, ast.Mult):
            _refuse_repetition(left, right)
        return BINARY[type(node.op)](left, right)

    def unary(self, node: ast.UnaryOp, env: Env) -> Work:
        if isinstance(node.op, ast.Not):
            truth = yield self.condition(node.operand, env)
            self.at(node, env)
            return _function("logical_not")(truth) if isinstance(truth, Traced) else not truth
        value = yield self.expr(node.operand, env)
        self.at(node, env)
        return _UNARY[type(node.op)](value)

    def compare(self, node: ast.Compare, env: Env) -> Work:
        left = yield self.expr(node.left, env)
        result: Any = True
        for index, (op, right_node) in enumerate(zip(node.ops, node.comparators, strict=True)):
            if isinstance(result, Traced) and not is_plain(right_node):
                # a < b < f(c): c is looked at only if a < b.
                return (yield self._rest_of_chain(node, index, left, result, env))
            right = yield self.expr(right_node, env)
            self.at(node, env)
            holds = self._compare(op, left, right)
            result = holds if result is True else _function("logical_and")(result, holds)
            if not isinstance(result, Traced) and len(node.ops) > 1 and not result:
                return result
            left = right
        return result

    def _rest_of_chain(self, node: ast.Compare, index: int, left: Any, so_far: Traced, env: Env) -> Work:
        def rest() -> Work:
            value: Any = True
            before = left
            for op, right_node in list(zip(node.ops, node.comparators, strict=True))[index:]:
                right = yield self.expr(right_node, env)
                self.at(node, env)
                holds = self._compare(op, before, right)
                value = holds if value is True else _function("logical_and")(value, holds)
                before = right
            return value

        return (yield self.choose(so_far, rest, _give(False), env))

    def _compare(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(left, Traced) or any(isinstance(v, Traced) for v in _items(right)):
                raise CaptureError(
                    "`in` cannot be captured for values that are known only at run time",
                    hint="write `x == 1 or x == 2`, or ut.any(ut.asarray([1, 2]) == x)",
                )
            return left in right if isinstance(op, ast.In) else left not in right
        return _COMPARE[type(op)](left, right)

    def condition(self, node: ast.expr, env: Env) -> Work:
        """What `if`, `while` and `not` ask: the truth of an expression, a Python bool or a traced one."""
        if isinstance(node, ast.BoolOp):
            return (yield self.boolean(node, env, only_truth=True))
        value = yield self.expr(node, env)
        self.at(node, env)
        return self.truth(value)

    def boolean(self, node: ast.BoolOp, env: Env, only_truth: bool = False) -> Work:
        """`and` and `or` give one of their operands; where only its truth is asked, their types may differ."""
        is_and = isinstance(node.op, ast.And)
        evaluate = self.condition if only_truth else self._later
        value = yield evaluate(node.values[0], env)
        for index, next_node in enumerate(node.values[1:], 1):
            self.at(node.values[index - 1], env)
            truth = self.truth(value)
            if not isinstance(truth, Traced):
                if truth is not is_and:
                    return value
                value = yield evaluate(next_node, env)
                continue
            if truth is value and is_plain(next_node):
                other = yield evaluate(next_node, env)
                self.at(node, env)
                if isinstance(other, (bool, np.bool_)) or (isinstance(other, Traced) and other.dtype == bool_):
                    value = _function("logical_and" if is_and else "logical_or")(truth, other)
                    continue
            # The operand may fault, call or be no truth value: it runs in a branch, with all that follows it.
            rest = functools.partial(self._rest_of_boolean, node, index, env, evaluate)
            stay = _give(value)
            self.at(node, env)
            return (yield self.choose(truth, rest if is_and else stay, stay if is_and else rest, env))
        return value

    def _rest_of_boolean(self, node: ast.BoolOp, index: int, env: Env, evaluate: Callable[..., Work]) -> Work:
        rest = node.values[index:]
        tail: ast.expr = rest[0] if len(rest) == 1 else ast.copy_location(ast.BoolOp(node.op, rest), rest[0])
        return (yield evaluate(tail, env))

    def conditional(self, node: ast.IfExp, env: Env) -> Work:
        truth = yield self.condition(node.test, env)
        if not isinstance(truth, Traced):
            return (yield self.expr(node.body if truth else node.orelse, env))
        self.at(node, env)
        return (
            yield self.choose(truth, lambda: self._later(node.body, env), lambda: self._later(node.orelse, env), env)
        )

    def _later(self, node: ast.expr, env: Env) -> Work:
        return (yield self.expr(node, env))

    def truth(self, value: Any) -> bool | Traced:
        """What `if value` tests: a Python bool, or a traced bool scalar."""
        if not isinstance(value, Traced):
            return bool(value)
        if value.type.shape != ():
            raise TypeMismatch(
                f"the condition is a {value.type}, not one truth value",
                hint="reduce it with ut.any(x) or ut.all(x), or choose per element with ut.where",
            )
        return value if value.dtype == bool_ else _function("not_equal")(value, 0)

    def choose(self, pred: Traced, then: Callable[[], Work], other: Callable[[], Work], env: Env | None) -> Work:
        """The value of one of two pieces of work, chosen at run time: both are captured, each in a branch."""
        ctx, builder, span = self.ctx, self.ctx.open_builder, self.ctx.span
        outside = builder.region
        port = ctx.session.resolve(pred)
        regions = builder.branch(port)
        scratch = env or Env(_NOWHERE, frozenset(), None)
        before = save(scratch, builder)
        values, states = [], []
        try:
            for region, work in zip(regions, (then, other), strict=True):
                restore(before, scratch, builder)
                builder.region = region
                values.append((yield work()))
                states.append(save(scratch, builder))
        finally:
            builder.region = outside
        ctx.span = span
        join_states(before, states[0], states[1], regions, scratch, ctx)
        join_effects(before, [state.effect for state in states], regions, builder)
        return merge(values[0], values[1], regions, ctx, "", span, by_condition("this expression", span))

    # -- containers, attributes, subscripts ----------------------------------------------------------------

    def sequence(self, node: Any, env: Env) -> Work:
        items: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                items.extend((yield self.expr(item.value, env)))
            else:
                items.append((yield self.expr(item, env)))
        if isinstance(node, ast.Tuple):
            return tuple(items)
        return items if isinstance(node, ast.List) else set(items)

    def dictionary(self, node: ast.Dict, env: Env) -> Work:
        made: dict[Any, Any] = {}
        for key_node, value_node in zip(node.keys, node.values, strict=True):
            if key_node is None:
                made.update((yield self.expr(value_node, env)))
            else:
                key = yield self.expr(key_node, env)
                made[_static(key, "a dict key", self.span(key_node, env))] = yield self.expr(value_node, env)
        return made

    def attribute(self, node: ast.Attribute, env: Env) -> Work:
        value = yield self.expr(node.value, env)
        self.at(node, env)
        if isinstance(value, TracedText):
            raise _text_too_early(value)
        try:
            return getattr(value, node.attr)
        except AttributeError as fault:
            raise _no_attribute(value, node.attr, fault, self.span(node, env)) from None

    def subscript(self, node: ast.Subscript, env: Env) -> Work:
        value = yield self.expr(node.value, env)
        key = yield self.expr(node.slice, env)
        self.at(node, env)
        return self.item(value, key)

    def item(self, value: Any, key: Any) -> Any:
        """`value[key]`; a captured array or a list of numbers may be indexed by a traced value."""
        if isinstance(key, TracedText):
            raise _text_too_early(key)
        if isinstance(value, Traced) or not _has_traced(key):
            return value[key]
        if isinstance(value, (list, tuple)):
            try:
                value = _function("asarray")(value)
            except TypeMismatch:
                raise CaptureError(
                    f"this {type(value).__name__} cannot be indexed by a traced value: "
                    "it does not hold numbers, or arrays of one shape",
                    hint="choose with `if`/`elif`, or keep what it holds in one array",
                ) from None
        if isinstance(value, (np.ndarray, Traced)):
            from undertow.frontend.indexing import getitem

            return getitem(value, key)
        raise CaptureError(
            f"a {type(value).__name__} cannot be indexed by a traced value",
            hint="index an array instead, as in ut.asarray([10, 20])[i], or choose with `if`/`elif`",
        )

    def slice(self, node: ast.Slice, env: Env) -> Work:
        parts = []
        for part in (node.lower, node.upper, node.step):
            parts.append(None if part is None else (yield self.expr(part, env)))
        return slice(*parts)

    def comprehension(self, node: Any, env: Env) -> Work:
        inner = Env(env.closure, frozenset(_targets(node.generators)), env, {}, is_comprehension=True)
        found: list[Any] = []
        yield self._comprehend(node, inner, found)
        if isinstance(node, ast.DictComp):
            return dict(found)
        if isinstance(node, ast.GeneratorExp):
            return iter(found)
        return found if isinstance(node, ast.ListComp) else set(found)

    def _comprehend(self, node: Any, env: Env, found: list[Any]) -> Work:
        # The nest of `for` clauses as a stack of iterators; its depth is the source's, not the data's.
        first = yield self.expr(node.generators[0].iter, env.parent or env)
        stack = [self.iterate(first, self.span(node.generators[0].iter, env))]
        while stack:
            clause = node.generators[len(stack) - 1]
            item = next(stack[-1], _MISSING)
            if item is _MISSING:
                stack.pop()
                continue
            yield self.assign(clause.target, item, env)
            holds = True
            for test in clause.ifs:
                self.at(test, env)
                truth = self.truth((yield self.expr(test, env)))
                if isinstance(truth, Traced):
                    raise CaptureError(
                        "the `if` of a comprehension must not depend on traced values",
                        self.span(test, env),
                        hint="use ut.where, or a loop over range",
                    )
                if not truth:
                    holds = False
                    break
            if not holds:
                continue
            if len(stack) < len(node.generators):
                following = node.generators[len(stack)].iter
                stack.append(self.iterate((yield self.expr(following, env)), self.span(following, env)))
            elif isinstance(node, ast.DictComp):
                key = yield self.expr(node.key, env)
                found.append((_static(key, "a dict key", self.span(node.key, env)), (yield self.expr(node.value, env))))
            else:
                found.append((yield self.expr(node.elt, env)))

    def iterate(self, value: Any, span: Span) -> Any:
        """An iterator over something whose length is known now."""
        self.ctx.span = span
        return iter(value)

    def walrus(self, node: ast.NamedExpr, env: Env) -> Work:
        value = yield self.expr(node.value, env)
        self.bind(node.target.id, value, env)
        return value

    def text(self, node: ast.JoinedStr, env: Env) -> Work:
        """An f-string; one with traced values is filled in when the graph prints it."""
        parts: list[str] = []
        values: list[Traced] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(_escaped(str(part.value)))
            elif isinstance(part, ast.FormattedValue):
                value = yield self.expr(part.value, env)
                spec = "" if part.format_spec is None else (yield self.expr(part.format_spec, env))
                if isinstance(value, Traced):
                    parts.append(f"{{:{spec}}}" if spec else "{}")
                    values.append(value)
                    continue
                convert: Any = {115: str, 114: repr, 97: ascii}.get(part.conversion)
                parts.append(_escaped(format(convert(value) if convert else value, spec)))
        template = "".join(parts)
        return TracedText(template, values) if values else template.format()

    def assign(self, target: ast.expr, value: Any, env: Env) -> Work:
        """Bind a target: a name, a tuple of targets, or an item of a Python container."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, env)
        elif isinstance(target, (ast.Tuple, ast.List)):
            yield self._unpack(target, value, env)
        elif isinstance(target, ast.Subscript):
            container = yield self.expr(target.value, env)
            key = yield self.expr(target.slice, env)
            self.at(target, env)
            self.refuse_outside(target.value, container, env)
            if isinstance(container, np.ndarray):
                raise CaptureError(
                    "an array that was there before the capture cannot be changed by a graph",
                    hint="make a new one: ut.scatter_add(x, i, v) adds v at i, ut.where(mask, v, x) replaces",
                )
            if not isinstance(container, (Traced, list, dict)):
                raise CaptureError(
                    f"assigning to an item of a {type(container).__name__} cannot be captured",
                    hint="make a new one, and assign it to a variable",
                )
            if _has_traced(key) and not isinstance(container, Traced):
                raise CaptureError(
                    f"a {type(container).__name__} cannot be changed at a traced index",
                    hint="make it an array x: then ut.where(ut.arange(n) == i, v, x) has v at i",
                )
            if isinstance(key, TracedText):
                raise _text_too_early(key)
            container[key] = value
        else:
            raise CaptureError(
                "assigning to an attribute cannot be captured" if isinstance(target, ast.Attribute) else
                f"{_said(target)} cannot be assigned to",
                self.span(target, env),
                hint="make a new object, e.g. with dataclasses.replace, and return it",
            )  # fmt: skip
        return None

    def _unpack(self, target: ast.Tuple | ast.List, value: Any, env: Env) -> Work:
        if isinstance(value, Traced) and not value.type.shape:
            raise CaptureError(
                f"{said(value.type)} is one number: it cannot be unpacked into {len(target.elts)} variables",
                self.span(target, env),
                hint="give a tuple, or an array of known length",
            )
        items = list(self.iterate(value, self.span(target, env)))
        stars = [n for n, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        wanted = len(target.elts)
        if (len(items) != wanted and not stars) or len(items) < wanted - len(stars):
            named = wanted - len(stars)
            raise CaptureError(
                f"{len(items)} value{'' if len(items) == 1 else 's'} cannot be unpacked into "
                f"{'at least ' if stars else ''}{named} variable{'' if named == 1 else 's'}",
                self.span(target, env),
                hint="name as many variables as there are values, or take the rest with *rest",
            )
        if stars:
            tail = wanted - stars[0] - 1
            split = len(items) - tail
            items = [*items[: stars[0]], items[stars[0] : split], *items[split:]]
        for part, item in zip(target.elts, items, strict=True):
            yield self.assign(part.value if isinstance(part, ast.Starred) else part, item, env)

    # -- functions and calls -------------------------------------------------------------------------------

    def make_closure(self, node: Any, env: Env) -> Work:
        """A function defined inside a captured one."""
        arguments = node.args
        defaults: dict[str, Any] = {}
        positional = [*arguments.posonlyargs, *arguments.args]
        for arg, default in zip(
            positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True
        ):
            defaults[arg.arg] = yield self.expr(default, env)
        for arg, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                defaults[arg.arg] = yield self.expr(default, env)
        annotations: dict[str, Any] = {}
        if isinstance(node, ast.FunctionDef):
            every = [*positional, *arguments.kwonlyargs]
            for name, note in [*((a.arg, a.annotation) for a in every), ("return", node.returns)]:
                if note is not None:
                    annotations[name] = yield self.expr(note, env)
        short = node.name if isinstance(node, ast.FunctionDef) else "lambda"
        return Closure(
            node, f"{env.closure.name}.{short}", env.closure.file, env.closure.globals, env.closure.cells, env,
            _signature(arguments, defaults), None, annotations, self.ctx.session.call_closure,
        )  # fmt: skip

    def call_node(self, node: ast.Call, env: Env) -> Work:
        function = yield self.expr(node.func, env)
        args: list[Any] = []
        for part in node.args:
            if isinstance(part, ast.Starred):
                args.extend((yield self.expr(part.value, env)))
            else:
                args.append((yield self.expr(part, env)))
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = yield self.expr(keyword.value, env)
            if keyword.arg is None:
                kwargs.update(value)
            else:
                kwargs[keyword.arg] = value
        self.at(node, env)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _MUTATORS:
            self.refuse_outside(node.func.value, getattr(function, "__self__", None), env)
        if any(function is f for f in _FRAME_FUNCTIONS) or (
            any(function is f for f in (super, vars, dir)) and not args
        ):
            raise CaptureError(
                f"{function.__name__}() cannot be captured", hint="name the variables that you need directly"
            )
        span = self.ctx.span
        result = yield self.call(function, args, kwargs, env)
        self.ctx.span = span
        return result

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None = None) -> Work:
        """Call anything: one of ours becomes a call node, the user's own Python is captured inline, the rest runs."""
        if isinstance(function, functools.partial):
            args, kwargs, function = [*function.args, *args], {**function.keywords, **kwargs}, function.func
        definition = getattr(function, "__undertow_definition__", None)
        if definition is not None:
            bound = getattr(function, "__undertow_bound__", ())
            return (yield self.ctx.session.call(definition, [*bound, *args], kwargs))
        try:
            special = None if isinstance(function, Traced) else SPECIAL.get(function)
        except TypeError:  # not hashable
            special = None
        if special is not None:
            return (yield special(self, args, kwargs, env))
        if isinstance(function, Closure):
            return (yield self.invoke(function, args, kwargs))
        if isinstance(function, MethodType) and isinstance(function.__func__, (FunctionType, Closure)):
            args, function = [function.__self__, *args], function.__func__
        elif not isinstance(function, (type, FunctionType)) and _is_user_code(type(function).__dict__.get("__call__")):
            args, function = [function, *args], type(function).__call__
        if isinstance(function, Closure):
            return (yield self.invoke(function, args, kwargs))
        if _is_user_code(function):
            closure = self.ctx.session.closure(function)
            if closure is not None:
                return (yield self.invoke(closure, args, kwargs))
        if not callable(function):
            shown = f"a traced {function.type}" if isinstance(function, Traced) else _a(type(function).__name__)
            raise CaptureError(
                f"{shown} is not a function: it cannot be called", hint="look at the name before the parentheses"
            )
        return self.call_native(function, args, kwargs)

    def call_native(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call what is not the user's own Python: functions of ours, of Python and of libraries."""
        module = getattr(function, "__module__", None)
        if module == "math" and any(isinstance(a, Traced) for a in args):
            raise CaptureError(
                f"math.{function.__name__} cannot be captured for traced values",
                hint="write it with the functions of ut, such as ut.exp, ut.log, ut.erf",
            )
        try:
            return function(*args, **kwargs)
        except TypeError as fault:
            if isinstance(function, FunctionType) and str(module).startswith("undertow.frontend."):
                refuse_wrong_arguments(f"ut.{function.__name__}", inspect.signature(function), args, kwargs, None)
            raise fault
        except StopIteration:
            # Not to be taken for the end of the generator that we are in.
            raise CaptureError(
                "Python raised StopIteration: there is no next item", hint="give a default, as in next(items, None)"
            ) from None

    def refuse_outside(self, node: ast.expr, container: Any, env: Env) -> None:
        """What was there before the capture cannot change only where a condition holds, or once per iteration."""
        builder = self.ctx.open_builder
        if not isinstance(container, (list, dict, set)) or (builder.region == 0 and builder.kind == "function"):
            return
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        at: Env | None = env
        while at is not None and isinstance(node, ast.Name):
            if node.id in at.local:
                return
            at = at.parent
        if isinstance(node, ast.Name):
            raise CaptureError(
                f"`{node.id}` is not of this function: a graph cannot change it under a condition or in a loop",
                hint="return the value instead, and change it where the function is called",
            )

    def invoke(
        self,
        closure: Closure,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        result: Callable[[Any], Any] | None = None,
    ) -> Work:
        """Capture a plain Python function inline, as if its body stood here; `result` checks what it returns."""
        refuse_unsupported(closure)
        values = bind_arguments(closure, args, kwargs, self.ctx.span)
        env = Env(closure, closure.local, closure.env, values, result=result)
        self.depth += 1
        if self.depth > _INLINE_DEPTH:
            raise CaptureError(
                f"`{closure.name}` calls itself, directly or through others, more than {_INLINE_DEPTH} times",
                hint=f"a recursive function that works on traced values needs @ut.function: decorate `{closure.name}`",
            )
        try:
            if isinstance(closure.node, ast.Lambda):
                return (yield self.expr(closure.node.body, env))
            return (yield self.run_body(closure.node, env))
        finally:
            self.depth -= 1

    def run_body(self, node: ast.FunctionDef, env: Env) -> Work:
        raise NotImplementedError  # statements.py


class TracedText(str):
    """An f-string with traced values in it: a template, and what fills it in at run time."""

    template: str
    values: list[Traced]

    def __new__(cls, template: str, values: list[Traced]) -> TracedText:
        made = super().__new__(cls, template.format(*map(repr, values)) if "{:" not in template else template)
        made.template, made.values = template, values
        return made


class TracedRange:
    """`range` with traced bounds."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step

    def _refuse(self) -> CaptureError:
        return CaptureError(
            "the length of this range is known only at run time",
            hint="loop over it with a plain `for i in range(n):`, or use ut.map(f, ut.arange(n)) for a value of each i",
        )

    def __iter__(self) -> Any:
        raise self._refuse()

    def __len__(self) -> int:
        raise self._refuse()

    def __getitem__(self, key: Any) -> Any:
        raise self._refuse()


# -- what the handlers share -------------------------------------------------------------------------------


def _function(name: str) -> Any:
    from undertow.frontend import functions

    return getattr(functions, name)


def _give(value: Any) -> Callable[[], Work]:
    def work() -> Work:
        return value
        yield

    return work


def _said(node: ast.AST) -> str:
    """How a message names a piece of syntax."""
    names = {
        "Yield": "`yield`", "YieldFrom": "`yield from`", "Await": "`await`", "Try": "`try`", "TryStar": "`try`",
        "With": "`with`", "AsyncWith": "`async with`", "AsyncFor": "`async for`", "Global": "`global`",
        "Nonlocal": "`nonlocal`", "ClassDef": "a class defined in a captured function", "Match": "`match`",
        "AsyncFunctionDef": "`async def`", "Raise": "`raise`", "Delete": "`del`", "Import": "`import`",
    }  # fmt: skip
    kind = type(node).__name__
    return names.get(kind, f"this syntax ({kind})")


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _items(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple, set)) else (value,)


def _has_traced(key: Any) -> bool:
    stack = [key]
    while stack:
        item = stack.pop()
        if isinstance(item, Traced):
            return True
        if isinstance(item, (tuple, list)):
            stack.extend(item)
        elif isinstance(item, slice):
            stack.extend((item.start, item.stop, item.step))
    return False


def _static(key: Any, what: str, span: Span) -> Any:
    if isinstance(key, Traced):
        raise CaptureError(
            f"{what} must be known at capture, and this is a traced {key.type}",
            span,
            hint="use strings or numbers as keys, and an array for what is looked up by a traced value",
        )
    if isinstance(key, TracedText):
        raise _text_too_early(key, span)
    return key


def _text_too_early(text: TracedText, span: Span | None = None) -> CaptureError:
    return CaptureError(
        f"this text holds a traced {text.values[0].type}: what it says is known only at run time",
        span,
        hint="such an f-string can be printed, or be the message of an assert",
    )


def _refuse_repetition(left: Any, right: Any) -> None:
    for sequence, times in ((left, right), (right, left)):
        if isinstance(sequence, (list, tuple, str)) and isinstance(times, Traced) and not times.type.shape:
            raise CaptureError(
                f"a {type(sequence).__name__} cannot be repeated a traced number of times",
                hint="use an array: ut.zeros(n), ut.full(n, value)",
            )


def _a(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def _did_you_mean(name: str, known: Iterable[str], before: str = "") -> str:
    close = difflib.get_close_matches(name, [k for k in known if not k.startswith("__")], 1, 0.7)
    return f"did you mean `{before}{close[0]}`?" if close else ""


def _visible_names(env: Env) -> list[str]:
    found: dict[str, None] = {}
    at: Env | None = env
    last = env
    while at is not None:
        found.update(dict.fromkeys(sorted(at.vars)))
        last, at = at, at.parent
    return [*found, *last.closure.cells, *last.closure.globals, *dir(builtins)]


def _no_attribute(value: Any, name: str, fault: AttributeError, span: Span) -> CaptureError:
    """The error of an attribute that is not there, with one that the user may have meant."""
    if isinstance(value, Traced):
        from undertow.frontend import functions

        known = [k for k in dir(value) if not k.startswith("_") and k not in ("builder", "port", "type")]
        hint = f"write ut.{name}(x)" if name in functions.__all__ else _did_you_mean(name, known)
        return CaptureError(
            f"a traced {value.type} has no attribute `{name}`", span, hint or f"it has {', '.join(known)}"
        )
    if isinstance(value, ModuleType):
        short = "ut" if value.__name__ == "undertow" else value.__name__
        hint = _did_you_mean(name, dir(value), f"{short}.")
        return CaptureError(f"`{short}` has no `{name}`", span, hint or f"dir({short}) lists what it has")
    if isinstance(value, Closure):
        return CaptureError(
            f"the function `{value.name}` has no attribute `{name}`", span, "look at the name before the dot"
        )
    return CaptureError(
        " ".join(str(fault).split()), span, _did_you_mean(name, dir(value)) or "look at the name before the dot"
    )


def is_plain(node: ast.expr) -> bool:
    """Can it neither fault nor call nor act?"""
    stack: list[ast.AST] = [node]
    while stack:
        item = stack.pop()
        if not isinstance(item, _PLAIN):
            return False
        stack.extend(ast.iter_child_nodes(item))
    return True


def _targets(generators: list[ast.comprehension]) -> set[str]:
    return {n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}


def refuse_unsupported(closure: Closure) -> None:
    """Generators and coroutines have no graph."""
    body = closure.node.body
    stack: list[ast.AST] = list(reversed(body)) if isinstance(body, list) else [body]
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise CaptureError(
                f"{_said(node)} cannot be captured",
                Span(closure.file, node.lineno, node.col_offset + 1, closure.name),
                hint="return all values at once, in a tuple or an array",
            )
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.AsyncFunctionDef)):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def refuse_wrong_arguments(
    name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: dict[str, Any], span: Span | None
) -> None:
    """Raise if a function cannot be called with these arguments, saying how it can."""
    kinds = inspect.Parameter
    known = signature.parameters
    problem = ""
    if not any(p.kind == kinds.VAR_KEYWORD for p in known.values()):
        unknown = [key for key in kwargs if key not in known or known[key].kind == kinds.POSITIONAL_ONLY]
        if unknown:
            problem = f"it has no argument `{unknown[0]}`"
    if not problem:
        try:
            signature.bind(*args, **kwargs)
            return
        except TypeError as fault:
            problem = str(fault)
    positional = [p for p in known.values() if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)]
    if problem == "too many positional arguments":
        takes = f"{len(positional)} argument{'' if len(positional) == 1 else 's'}"
        problem = f"it takes {takes}, and {len(args)} are given"
    missing = re.fullmatch(r"missing a required (?:keyword-only )?argument: '(\w+)'", problem)
    if missing:
        problem = f"the argument `{missing[1]}` is missing"
    plain = [p.replace(annotation=kinds.empty) for p in known.values()]
    shown = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    short = name if name.startswith("ut.") else name.rsplit(".", 1)[-1]
    raise CaptureError(f"`{name}` cannot be called like this: {problem}", span, hint=f"it takes {short}{shown}")


def bind_arguments(closure: Closure, args: Sequence[Any], kwargs: dict[str, Any], span: Span | None) -> dict[str, Any]:
    """Parameter names to values, as Python would bind them."""
    try:
        bound = closure.signature.bind(*args, **kwargs)
    except TypeError:
        refuse_wrong_arguments(closure.name, closure.signature, args, kwargs, span)
        raise
    bound.apply_defaults()
    return dict(bound.arguments)


def _signature(arguments: ast.arguments, defaults: dict[str, Any]) -> inspect.Signature:
    kinds = inspect.Parameter
    made: list[inspect.Parameter] = []

    def add(arg: ast.arg, kind: Any) -> None:
        made.append(inspect.Parameter(arg.arg, kind, default=defaults.get(arg.arg, inspect.Parameter.empty)))

    for arg in arguments.posonlyargs:
        add(arg, kinds.POSITIONAL_ONLY)
    for arg in arguments.args:
        add(arg, kinds.POSITIONAL_OR_KEYWORD)
    if arguments.vararg:
        add(arguments.vararg, kinds.VAR_POSITIONAL)
    for arg in arguments.kwonlyargs:
        add(arg, kinds.KEYWORD_ONLY)
    if arguments.kwarg:
        add(arguments.kwarg, kinds.VAR_KEYWORD)
    return inspect.Signature(made)


_LIBRARY_PATHS = tuple(
    {os.path.realpath(sysconfig.get_path(key)) + os.sep for key in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_UNDERTOW = os.path.dirname(os.path.dirname(os.path.realpath(__file__))) + os.sep


@functools.lru_cache(maxsize=4096)
def _is_library_file(filename: str) -> bool:
    path = os.path.realpath(filename)
    return path.startswith(_LIBRARY_PATHS) or path.startswith(_UNDERTOW)


def _is_user_code(function: Any) -> bool:
    """Is it a Python function of the user's, and not of Python's library, an installed package or Undertow?"""
    if not isinstance(function, FunctionType) or function.__module__ in sys.stdlib_module_names:
        return False
    generator = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    return not function.__code__.co_flags & generator and not _is_library_file(function.__code__.co_filename)


def library_closure(function: FunctionType) -> Closure | None:
    """The closure of a user's function, or None where it has no source and must run as it is."""
    try:
        return closure_of(function)
    except CaptureError:
        return None


def _constant(self: Interpreter, node: ast.Constant, env: Env) -> Any:
    return node.value


_EXPRESSIONS: dict[type, Any] = {
    ast.Constant: _constant, ast.Name: Interpreter.name, ast.BinOp: Interpreter.binary,
    ast.UnaryOp: Interpreter.unary, ast.Compare: Interpreter.compare, ast.BoolOp: Interpreter.boolean,
    ast.IfExp: Interpreter.conditional, ast.Tuple: Interpreter.sequence, ast.List: Interpreter.sequence,
    ast.Set: Interpreter.sequence, ast.Dict: Interpreter.dictionary, ast.Attribute: Interpreter.attribute,
    ast.Subscript: Interpreter.subscript, ast.Slice: Interpreter.slice, ast.ListComp: Interpreter.comprehension,
    ast.SetComp: Interpreter.comprehension, ast.DictComp: Interpreter.comprehension,
    ast.GeneratorExp: Interpreter.comprehension, ast.NamedExpr: Interpreter.walrus, ast.JoinedStr: Interpreter.text,
    ast.Lambda: Interpreter.make_closure, ast.Call: Interpreter.call_node,
}  # fmt: skip
_NOWHERE = Closure(
    ast.Lambda(ast.arguments([], [], None, [], [], None, []), ast.Constant(None)), "", "", {}, {}, None,
    inspect.Signature(),
)  # fmt: skip
# Functions that mean something else for traced values; filled by forms.py.
SPECIAL: dict[Any, Callable[[Interpreter, Sequence[Any], dict[str, Any], Env | None], Work]] = {}
