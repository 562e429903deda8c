"""Errors of functions that cannot be captured."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Sequence
from types import BuiltinFunctionType, MethodType
from typing import Any

from undertow.errors import CaptureError, Span, brief
from undertow.frontend.syntax.source import Closure
from undertow.frontend.trace.arguments import Arguments
from undertow.frontend.values import tree

# What Python calls our classes in its own messages, in the user's words.
_WORDS = {
    "Traced": "a traced value",
    "TracedRange": "a range of traced length",
    "TracedText": "a text with traced values",
    "Closure": "a function",
}


def raised_by_python(fault: BaseException, span: Span | None) -> CaptureError:
    """The error of a line that raised something while it was captured."""
    said = re.sub(r"'?\b(Traced|TracedRange|TracedText|Closure)\b'?", lambda m: _WORDS[m[1]], str(fault))
    return CaptureError(
        f"Python raised {type(fault).__name__}{': ' + ' '.join(said.split()) if said else ''}",
        span,
        hint="the line runs as plain Python while the graph is captured",
    )


def not_a_function(decorated: Any) -> CaptureError:
    kind = type(decorated).__name__
    what, hint = brief(decorated), "decorate a `def` or a lambda"
    if isinstance(decorated, type):
        what, hint = f"the class `{decorated.__name__}`", "decorate its methods one by one"
    elif isinstance(decorated, (staticmethod, classmethod, property)):
        what, hint = f"a {kind}", f"put @{kind} first, and @ut.function below it"
    elif isinstance(decorated, functools.partial):
        what, hint = "a functools.partial", "decorate the function itself, or a lambda that calls it"
    elif isinstance(decorated, MethodType):
        what, hint = f"the bound method `{decorated.__name__}`", "decorate the method where the class defines it"
    elif isinstance(decorated, BuiltinFunctionType):
        what, hint = f"`{decorated.__name__}`, which has no Python source", "call it inside a `def` that is decorated"
    elif callable(decorated):
        what, hint = f"an object of class `{kind}`", "decorate its method `__call__`, or a `def` that calls it"
    return CaptureError(f"@ut.function works on Python functions, not on {what}", hint=hint)


def unknown_result(closure: Closure, inside: Sequence[str], span: Span | None) -> CaptureError:
    """A function is called while it is being captured, inside of these, and nobody knows yet what it gives."""
    names = inside[inside.index(closure.name) :] if closure.name in inside else []
    through = "" if len(names) < 2 else f" ({' -> '.join(f'`{n}`' for n in [*names, closure.name])})"
    if isinstance(closure.node, ast.Lambda):
        return CaptureError(
            "a lambda that calls itself cannot say what it returns",
            span,
            hint="use a `def` with an annotated result: `def f(n: ut.i64) -> ut.i64:`",
        )
    taken = ", ".join(closure.signature.parameters)
    said = ", and its annotation names no type" if "return" in closure.annotations else ""
    return CaptureError(
        f"`{closure.name}` calls itself{through}, so its result must be annotated{said}",
        span,
        hint=f"write what it returns: `def {closure.node.name}({taken}) -> ut.i64:`, or ut.f32[3], or a tuple",
    )


def too_many_signatures(name: str, calls: Sequence[Arguments]) -> CaptureError:
    """Every call has arguments of yet another type: say which argument, and how it goes on."""
    shown: list[list[str]] = []
    for call in calls[:4]:
        rest = iter(call.types)
        shown.append([tree.show(s, [next(rest) for token in s if token == tree.LEAF]) for s in call.structures])
    columns = list(zip(calls[0].parameters, zip(*shown, strict=False), strict=False))
    parameter, types = next(((n, c) for n, c in columns if len(set(c)) == len(c)), columns[0])
    while len(types) > 2 and sum(map(len, types)) > 80:
        types = types[:-1]
    return CaptureError(
        f"argument `{parameter}` of `{name}` has another type at each call: {', '.join(types)}, ...",
        hint="a recursive call must keep the dtypes, ranks and structures of its arguments",
    )
