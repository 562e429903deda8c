"""How Python calls functions: binding arguments to parameters, and which functions are the user's own."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType, MethodType
from typing import Any

from undertow.errors import CaptureError, Span
from undertow.frontend.syntax.queries import own_nodes, syntax_name
from undertow.frontend.syntax.source import Closure
from undertow.tracebacks import is_library_file


def refuse_unsupported(closure: Closure) -> None:
    """Generators and coroutines have no graph."""
    for node in own_nodes(closure.node):
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            raise CaptureError(
                f"{syntax_name(node)} cannot be captured",
                Span(closure.file, node.lineno, node.col_offset + 1, closure.name),
                hint="return all values at once in a tuple or an array",
            )


def refuse_wrong_arguments(
    name: str, signature: inspect.Signature, args: Sequence[Any], kwargs: dict[str, Any], span: Span | None
) -> None:
    """Raise an error if a function cannot be called with these arguments; it says how it can."""
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
        problem = f"it takes {takes}, but {len(args)} are given"
    missing = re.fullmatch(r"missing a required (?:keyword-only )?argument: '(\w+)'", problem)
    if missing:
        problem = f"the argument `{missing[1]}` is missing"
    plain = [p.replace(annotation=kinds.empty) for p in known.values()]
    shown = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    short = name if name.startswith("ut.") else re.sub(r"[^(]*\.", "", name)  # also in `grad(make.f)`
    raise CaptureError(
        f"`{name}` cannot be called like this: {problem}", span, f"it takes {short}{shown}", kind=TypeError
    )


def bind_arguments(
    closure: Closure,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    span: Span | None,
    default: Callable[[Closure, str, Any], Any] | None = None,
) -> dict[str, Any]:
    """Parameter name -> value, as Python would bind them; `default` may look up a default instead."""
    try:
        bound = closure.signature.bind(*args, **kwargs)
    except TypeError:
        refuse_wrong_arguments(closure.name, closure.signature, args, kwargs, span)
        raise
    given = len(bound.arguments)
    before = set(bound.arguments)
    bound.apply_defaults()
    values = dict(bound.arguments)
    if default is not None and len(values) > given:
        for name, parameter in closure.signature.parameters.items():
            if name not in before and parameter.default is not parameter.empty:
                values[name] = default(closure, name, values[name])
    return values


def signature_of(arguments: ast.arguments, defaults: dict[str, Any]) -> inspect.Signature:
    parameter = inspect.Parameter
    kinds = (
        (arguments.posonlyargs, parameter.POSITIONAL_ONLY),
        (arguments.args, parameter.POSITIONAL_OR_KEYWORD),
        ([arguments.vararg], parameter.VAR_POSITIONAL),
        (arguments.kwonlyargs, parameter.KEYWORD_ONLY),
        ([arguments.kwarg], parameter.VAR_KEYWORD),
    )
    named = [(arg.arg, kind) for args, kind in kinds for arg in args if arg is not None]
    return inspect.Signature([parameter(n, kind, default=defaults.get(n, parameter.empty)) for n, kind in named])


def signature_with(names: Iterable[str], kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD) -> inspect.Signature:
    """The signature of a function whose parameters are all of one kind."""
    return inspect.Signature([inspect.Parameter(name, kind) for name in names])


@functools.lru_cache(maxsize=4096)
def is_library_module(name: str) -> bool:
    """Is it a module of the standard library, an installed package or Undertow?"""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:  # built in; or a notebook, a prompt
        return name.partition(".")[0] in sys.stdlib_module_names and name != "__main__"
    return is_library_file(file)


def is_user_class(kind: type) -> bool:
    """Is it a class of the user's own?"""
    return not is_library_module(kind.__module__)


def decorated(function: Any) -> tuple[Any, tuple[Any, ...]] | None:
    """The definition of an @ut.function, and the arguments that it is bound to; None if it is anything else."""
    bound: tuple[Any, ...] = ()
    while isinstance(function, MethodType):  # what `classmethod` makes of one, from Python 3.13 on
        function, bound = function.__func__, (function.__self__, *bound)
    if not hasattr(type(function), "__undertow_definition__"):  # not of the object: a method has what its function has
        return None
    return function.__undertow_definition__, (*function.__undertow_bound__, *bound)


def is_user_code(function: Any) -> bool:
    """Is it the user's own Python function, not one of the standard library, an installed package or Undertow?"""
    if not isinstance(function, FunctionType):
        return False
    code, module = function.__code__, function.__globals__
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    file = code.co_filename
    if file.startswith("<"):  # made by exec: it belongs to the module that did that
        if str(module.get("__name__")).split(".")[0] in sys.stdlib_module_names:
            return False
        file = module.get("__file__") or file
    return not is_library_file(file)
