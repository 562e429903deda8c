"""Python's built-in functions on traced values: `len`, `range`, `print`, and the module `math`."""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.debug import escaped
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.operators import are_constants
from undertow.frontend.interpret.standins import TracedRange, TracedText
from undertow.frontend.syntax.source import Env
from undertow.frontend.trace.places import Getter
from undertow.frontend.values.operands import as_operand, type_of
from undertow.frontend.values.traced import Traced, effect
from undertow.ops.op import CATALOGUE
from undertow.types import bool_, f64, i32, i64, promote, said


def _any_traced(args: Sequence[Any]) -> bool:
    return any(isinstance(a, Traced) for a in args)


def _plain(function: Any, traced: Callable[..., Any]) -> Any:
    """The Python function, unless an argument is traced. (Of constants too, `divmod` and `pow` are operators.)"""
    is_operator = function in (builtins.divmod, builtins.pow)

    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
        flat = [*args, *kwargs.values()]
        nested = [x for a in args if isinstance(a, (list, tuple)) for x in a]
        is_ours = is_operator and are_constants(flat)
        if is_ours or _any_traced(flat) or _any_traced(nested) or any(isinstance(a, TracedText) for a in args):
            try:
                inspect.signature(traced).bind(*args, **kwargs)
            except TypeError:
                raise CaptureError(
                    f"{function.__name__}() cannot be captured for traced values with these arguments",
                    hint=f"write it with the functions of ut, or {_TAKEN.get(function, 'with fewer arguments')}",
                ) from None
            return traced(*args, **kwargs)
        return interp.call_native(function, args, kwargs)

    return work


def _range(*args: Any) -> Any:
    start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
    for bound in (start, stop, step):
        if isinstance(bound, Traced) and (bound.dtype not in (i32, i64) or bound.type.shape):
            raise TypeMismatch(
                f"the bounds of range must be integers, not {said(bound.type)}", hint="convert it: ut.astype(x, ut.i64)"
            )
        if not isinstance(bound, (Traced, int, np.integer)):
            raise TypeMismatch(f"the bounds of range must be integers, not {brief(bound)}", hint="write an integer")
    return TracedRange(start, stop, step)


def _extreme(name: str, is_better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Python's min or max: the first of those that no other is better than. So a nan stays only where it comes first,
    while ut.maximum is nan wherever there is one, and 0.0 does not take the place of -0.0. Integers have neither.
    """

    def pick(*args: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        best = values[0]
        for value in values[1:]:
            if any(type_of(x).dtype.kind == "float" for x in (as_operand(best), as_operand(value))):
                best = functions.where(is_better(value, best), value, best)
            else:
                best = getattr(functions, name)(best, value)
        return best

    return pick


def _fold(name: str, empty: bool) -> Callable[..., Any]:
    def run(values: Any) -> Any:
        if isinstance(values, Traced):
            return getattr(functions, "all" if empty else "any")(values)
        result: Any = empty
        for value in values:
            truth = value if not isinstance(value, Traced) or value.dtype == bool_ else functions.not_equal(value, 0)
            result = truth if result is empty else getattr(functions, name)(result, truth)
        return result

    return run


def _sum(values: Any, start: Any = 0) -> Any:
    if isinstance(values, Traced):
        return functions.sum(values, axis=0) if values.ndim > 1 else functions.sum(values)
    total = start
    for value in values:
        total = total + value
    return total


def _length(value: Any) -> Any:
    if isinstance(value, Traced):
        return functions.length(value) if value.type.shape else len(value)
    return len(value)


def _text(value: Any = "", *_: Any) -> Any:
    if isinstance(value, Traced):
        raise CaptureError(
            f"the text of a traced {value.type} is known only at run time",
            hint='print it with print(x), or with an f-string: print(f"x is {x}")',
        )
    return str(value)


def _of_one(name: str, traced: Callable[..., Any], instead: str) -> Callable[..., Any]:
    """A Python function of a single number: an array is an error."""

    def work(*values: Any) -> Any:
        for value in values:
            if isinstance(value, Traced) and value.type.shape:
                raise TypeMismatch(f"{name}() takes a single number, not {said(value.type)}", hint=f"use {instead}")
        return traced(*values)

    work.__signature__ = inspect.signature(traced)  # type: ignore[attr-defined]
    return work


def _print(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> None:
    """Python's `print`: a line whenever the body runs, even if nothing in it is traced."""
    unknown = [key for key, value in kwargs.items() if key not in ("sep", "flush") and (key, value) != ("end", "\n")]
    if unknown:
        raise CaptureError(
            f"print() with `{unknown[0]}` cannot be captured",
            hint="a graph prints whole lines to standard output; join the parts in one f-string",
        )
    parts: list[str] = []
    held: list[Any] = []
    for value in args:
        if isinstance(value, TracedText):
            parts.append(value.template)
            held += value.values
        elif isinstance(value, Traced):
            parts.append("{}")
            held.append(value)
        else:
            parts.append(escaped(str(value)))
    between = " " if kwargs.get("sep") is None else str(kwargs["sep"])
    effect("print", held, template=escaped(between).join(parts))


def _getattr(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) not in (2, 3) or kwargs or not isinstance(args[1], str):
        return interp.call_native(getattr, args, kwargs)
    session = interp.ctx.session
    try:
        held = session.attribute(*args[:2])
    except AttributeError:
        if len(args) == 3:
            return args[2]
        raise
    if isinstance(held, Getter):
        held = yield interp.call(held.function, held.args, {}, env)
    return session.seen(held)


def _hasattr(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> bool:
    if len(args) != 2 or kwargs or not isinstance(args[1], str):
        return bool(interp.call_native(hasattr, args, kwargs))
    try:
        interp.ctx.session.attribute(*args)
    except AttributeError:
        return False
    return True


def _vars(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    if len(args) != 1 or kwargs:
        return interp.call_native(vars, args, kwargs)
    return interp.ctx.session.attribute(args[0], "__dict__")


def _power(base: Any, exponent: Any, mod: Any = None) -> Any:
    value = functions.pow(base, exponent)
    return value if mod is None else functions.remainder(value, mod)


# Hints for calls of Python functions with arguments that have no counterpart.
_TAKEN: dict[Any, str] = {
    builtins.max: "compare with `if`: max() takes values or a list, without key= and default=",
    builtins.min: "compare with `if`: min() takes values or a list, without key= and default=",
}


def _whole(name: str) -> Callable[[Any], Any]:
    return lambda x: functions.astype(getattr(functions, name)(x), i64)


_TRACED: dict[Any, Callable[..., Any]] = {
    builtins.range: _range, builtins.len: _length, builtins.min: _extreme("minimum", functions.less),
    builtins.max: _extreme("maximum", functions.greater), builtins.sum: _sum, builtins.any: _fold("logical_or", False),
    builtins.all: _fold("logical_and", True), builtins.pow: _power,
    builtins.int: _of_one("int", lambda x: functions.astype(functions.trunc(x), i64), "ut.astype(x, ut.i64)"),
    builtins.float: _of_one(
        "float", lambda x: functions.astype(x, promote(x.dtype, f64)), "ut.astype(x, ut.f64)"
    ),
    builtins.bool: _of_one("bool", lambda x: functions.astype(x, bool_), "ut.any(x) or ut.all(x)"),
    builtins.round: lambda x, digits=None: functions.round(x) if digits is not None else _whole("round")(x),
    builtins.divmod: lambda a, b: (functions.floor_divide(a, b), functions.remainder(a, b)), builtins.str: _text,
    **{getattr(math, name): _of_one(f"math.{name}", _whole(name), f"ut.{name}") for name in ("floor", "ceil", "trunc")},
    **{
        getattr(math, name): _of_one(f"math.{name}", getattr(functions, row.public), f"ut.{row.public}")
        for row in CATALOGUE.values()
        for name in row.names("math.")
    },
}  # fmt: skip
# Python function -> what its call does in a capture; the handler gets the interpreter.
PYTHON: dict[Any, Callable[[Any, Sequence[Any], dict[str, Any], Env | None], Any]] = {
    builtins.print: _print,
    builtins.getattr: _getattr,
    builtins.hasattr: _hasattr,
    builtins.vars: _vars,
    **{function: _plain(function, traced) for function, traced in _TRACED.items()},
}
