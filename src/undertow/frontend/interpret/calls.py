"""Runs Python syntax during capture: functions and calls.

A call of an @ut.function becomes a call node, the user's own Python is captured inline, the rest simply runs.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from undertow.errors import CaptureError
from undertow.frontend.interpret.builtins import PYTHON, method_of_text, refuse_text
from undertow.frontend.interpret.containers import Containers
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.expressions import HANDLERS
from undertow.frontend.interpret.numpy_calls import on_traced
from undertow.frontend.interpret.operators import of_ufunc
from undertow.frontend.syntax.calling import (
    bind_arguments,
    is_user_code,
    refuse_unsupported,
    refuse_wrong_arguments,
    signature_of,
)
from undertow.frontend.syntax.source import Closure, Env
from undertow.frontend.values.traced import Traced
from undertow.tracebacks import note_caller

# Methods of lists, dicts and sets that change them.
_MUTATORS = frozenset((
    "add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault",
    "sort", "update",
))  # fmt: skip
# These inspect the calling frame, which is ours.
_FRAME_FUNCTIONS = (locals, globals, eval, exec)
_INLINE_DEPTH = 500


class Interpreter(Containers):
    """Evaluates every expression. `statements.py` and `branches.py` add statements."""

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
            signature_of(arguments, defaults), None, annotations, self.ctx.session.call_closure,
        )  # fmt: skip

    def call_node(self, node: ast.Call, env: Env) -> Work:
        function = yield self.expr(node.func, env)
        args: list[Any] = yield self.each(node.args, env)
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
            raise CaptureError(f"{function.__name__}() cannot be captured", hint="name the variables directly")
        span = self.ctx.span
        result = yield self.call(function, args, kwargs, env)
        self.ctx.span = span
        return result

    def call(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None = None) -> Work:
        """Call anything: an @ut.function becomes a call node, the user's Python is captured inline, the rest runs."""
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
        if isinstance(function, MethodType) and isinstance(function.__func__, (FunctionType, Closure)):
            args, function = [function.__self__, *args], function.__func__
        elif not isinstance(function, (type, FunctionType, Closure)) and is_user_code(
            type(function).__dict__.get("__call__")
        ):
            args, function = [function, *args], type(function).__call__
        if isinstance(function, Closure):
            return (yield self.invoke(function, args, kwargs))
        if is_user_code(function):
            return (yield self.invoke(self.ctx.session.closure(function), args, kwargs))
        if not callable(function):
            shown = f"a traced {function.type}" if isinstance(function, Traced) else _a(type(function).__name__)
            raise CaptureError(
                f"{shown} is not a function and cannot be called", hint="check the name before the parentheses"
            )
        return self.call_native(function, args, kwargs)

    def call_native(self, function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call a function that is not the user's own Python: ours, Python's or a library's."""
        if (text := method_of_text(function, args, kwargs)) is not None:
            return text
        refuse_text(function, args, kwargs)
        args = [self.ctx.session.seen_inside(value) for value in args]
        kwargs = {name: self.ctx.session.seen_inside(value) for name, value in kwargs.items()}
        if (compute := on_traced(function, args, kwargs)) is not None:
            return compute(*args, **kwargs)
        module = getattr(function, "__module__", None)
        if module == "math" and any(isinstance(a, Traced) for a in args):
            raise CaptureError(
                f"math.{function.__name__} cannot be captured for traced values",
                hint="write it with the functions of ut, such as ut.exp, ut.log, ut.erf",
            )
        function = of_ufunc(function, args, kwargs)
        try:
            return function(*args, **kwargs)
        except TypeError as fault:
            if isinstance(function, FunctionType) and str(module).startswith("undertow.frontend."):
                refuse_wrong_arguments(f"ut.{function.__name__}", inspect.signature(function), args, kwargs, None)
            raise fault
        except StopIteration:
            # It must not end the generator that we are in.
            raise CaptureError(
                "Python raised StopIteration: there is no next item", hint="pass a default, as in next(items, None)"
            ) from None

    def invoke(
        self, closure: Closure, args: Sequence[Any], kwargs: dict[str, Any], result: Callable[[Any], Any] | None = None
    ) -> Work:
        """Capture a plain Python function inline; `result` checks what it returns."""
        refuse_unsupported(closure)
        caller = self.ctx.span
        values = bind_arguments(closure, args, kwargs, caller)
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
        except Exception as fault:
            if caller is not None and caller.place != closure.span.place:  # else Python's own traceback shows the call
                note_caller(fault, self.ctx.span, caller)
            raise
        finally:
            self.depth -= 1

    def run_body(self, node: ast.FunctionDef, env: Env) -> Work:
        raise NotImplementedError  # branches.py

    def run(self, cell: Any, stop: Any, env: Env) -> Work:
        raise NotImplementedError  # branches.py


def _a(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


HANDLERS.update({ast.Lambda: Interpreter.make_closure, ast.Call: Interpreter.call_node})
# Functions that behave differently in a capture: Python's, and those that forms.py adds.
SPECIAL = dict(PYTHON)
