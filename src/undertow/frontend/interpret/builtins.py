"""Python's built-in functions on traced values: `len`, `range`, `print`, `round`, and the module `math`."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.functions import public as functions
from undertow.frontend.functions.elementwise import python_number
from undertow.frontend.functions.parts import refuse_complex
from undertow.frontend.interpret.cmath_calls import CMATH, complex_number
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.generators import CapturedGenerator, Yielded, makes_plainly, spend
from undertow.frontend.interpret.kinds import KINDS
from undertow.frontend.interpret.math_calls import IN_FLOATS, OTHERS, prod
from undertow.frontend.interpret.numpy_calls import holds_traced
from undertow.frontend.interpret.operators import BINARY, are_constants
from undertow.frontend.interpret.purity import is_users
from undertow.frontend.interpret.reducing import with_loops
from undertow.frontend.interpret.special import truth_of
from undertow.frontend.interpret.standins import TracedRange
from undertow.frontend.syntax.source import Closure, Env
from undertow.frontend.trace.places import Getter
from undertow.frontend.values.operands import as_operand, as_weak, floats, static_int, type_of
from undertow.frontend.values.text import TracedText, escaped, formatted, joined, text_of, text_too_early
from undertow.frontend.values.traced import Traced, effect, emit, is_traced, read, stays_weak
from undertow.frontend.values.tree import flatten
from undertow.ops.debug import ERRORS
from undertow.ops.op import CATALOGUE
from undertow.types import bool_, f64, i32, i64, said


def _any_traced(args: Sequence[Any]) -> bool:
    return any(isinstance(a, Traced) for a in args)


def _plain(function: Any, traced: Callable[..., Any]) -> Any:
    """The Python function, unless an argument is traced. (Of constants too, `divmod` and `pow` are operators.)"""
    is_operator = function in (builtins.divmod, builtins.pow)

    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
        args = [_listed(interp, a) if isinstance(a, Iterator) and function in _FOLDS else a for a in args]
        flat = [*args, *kwargs.values()]
        nested = [x for a in args if isinstance(a, (list, tuple)) for x in a] if function is not bool else []
        is_ours = is_operator and are_constants(flat)
        if is_ours or _any_traced(flat) or _any_traced(nested):
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


def _listed(interp: Any, items: Any) -> list[Any]:
    """What an iterator gives, taken from it: nobody outside may hold it."""
    return list(interp.iterate(items, interp.ctx.span))


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


def _single(name: str, value: Any, instead: str) -> Any:
    """A value that must be a single number: Python needs the truth of a comparison with it."""
    if isinstance(value, (Traced, np.ndarray)) and type_of(value).rank:
        raise TypeMismatch(f"{name}() cannot compare {said(type_of(value))}", hint=f"use {instead}")
    return value


def _has_order_of_its_own(value: Any) -> bool:
    """Is it compared in Python, and may that depend on traced values?"""
    return is_users(value) or (isinstance(value, (tuple, list)) and holds_traced(value))


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def _extreme(python: Any, name: str, is_better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Python's min or max: the first of those that no other is better than. So a nan stays only where it comes first,
    while ut.maximum is nan wherever there is one, and 0.0 does not take the place of -0.0. Integers have neither.
    """
    short = python.__name__

    def better(value: Any, best: Any) -> Any:
        if any(type_of(x).dtype.kind != "int" for x in (as_operand(best), as_operand(value))):
            return functions.where(is_better(value, best), value, best)
        return getattr(functions, name)(best, value)

    def best_of(interp: Any, values: list[Any], keys: list[Any], env: Env | None) -> Work:
        """The first one that no other is better than, by comparisons as the user's classes define them."""
        best, best_key = values[0], keys[0]
        for value, its_key in zip(values[1:], keys[1:], strict=True):
            wins = interp.truth((yield interp.operate(ast.Lt() if python is min else ast.Gt(), its_key, best_key)))
            if not isinstance(wins, Traced):
                best, best_key = (value, its_key) if wins else (best, best_key)
                continue
            sides = (value, its_key), (best, best_key)
            if value is its_key and best is best_key:
                best = best_key = yield interp.choose(wins, _giving(value), _giving(best), env)
            else:
                best, best_key = yield interp.choose(wins, _giving(sides[0]), _giving(sides[1]), env)
        return best

    def pick(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
        key = kwargs.get("key")
        listed = args[0] if args else ()
        if len(args) == 1 and isinstance(listed, Iterator):
            listed = _listed(interp, listed)
        if len(args) == 1 and isinstance(listed, Traced):
            if listed.type.rank == 1 and listed.type.shape[0] is None and not kwargs:
                return getattr(functions, short)(listed)  # of no elements it is a fault, as in Python
            listed = list(listed)
        values = listed if len(args) == 1 else args
        keys = values
        if key is not None and isinstance(values, (list, tuple, range)):
            keys = []
            for value in values:
                keys.append((yield interp.call(key, [value], {}, env)))
        is_plain = keys is values or not isinstance(values, (list, tuple))
        compared = keys if is_plain else [*keys, *values]
        if isinstance(keys, (list, tuple)) and len(keys) > 1 and any(map(_has_order_of_its_own, compared)):
            return (yield best_of(interp, list(values), list(keys), env))
        if not isinstance(keys, (list, tuple)) or not _any_traced(keys) or kwargs.keys() - {"key", "default"}:
            if keys is values or not isinstance(values, (list, tuple, range)) or len(args) != 1:
                return interp.call_native(python, args if listed is args else [listed, *args[1:]], kwargs)
            pairs = list(zip(keys, values, strict=True))
            return pairs[keys.index(python(keys))][1] if pairs else interp.call_native(python, [[]], kwargs)
        are_numbers = all(map(stays_weak, values))
        best, best_key = values[0], _single(short, keys[0], f"ut.{name}")
        for value, its_key in zip(values[1:], keys[1:], strict=True):
            _single(short, its_key, f"ut.{name}")
            if key is None:
                best = better(value, best)
            else:
                wins = is_better(its_key, best_key)
                best = functions.where(wins, _single(short, value, "ut.where"), _single(short, best, "ut.where"))
                best_key = functions.where(wins, its_key, best_key)
        return as_weak(best) if are_numbers and type_of(best).dtype.kind != "bool" else best

    return pick


def _fold(python: Any, name: str, empty: bool) -> Callable[..., Any]:
    """Python's any or all. Where making an item may act or fault, it is made only if those before it decide nothing."""
    short = python.__name__

    def fold(interp: Any, values: Any, items: Any, is_plain: bool, env: Env | None) -> Work:
        result: Any = empty
        for value in items:
            _single(short, value, f"ut.{short}")
            truth = interp.truth(value)
            if not isinstance(truth, Traced):
                if truth is not empty:
                    return not empty
            elif is_plain:
                result = truth if result is empty else getattr(functions, name)(result, truth)
            else:
                go_on, stop = (lambda: fold(interp, values, items, is_plain, env)), (lambda: not empty)
                result = yield interp.choose(truth, go_on if empty else stop, stop if empty else go_on, env)
                spend(values)
                return result
        return result

    def run(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
        if len(args) != 1 or kwargs:
            return interp.call_native(python, args, kwargs)
        values = read(args[0])
        if isinstance(values, Traced):
            if values.type.rank > 1:
                raise TypeMismatch(
                    f"{short}() takes single numbers, not the rows of {said(values.type)}", hint=f"use ut.{short}(x)"
                )
            return getattr(functions, short)(values)
        items = interp.iterate(values, interp.ctx.span)
        return (yield fold(interp, values, items, makes_plainly(values), env))

    return run


def _truth(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    if (
        len(args) == 1
        and not kwargs
        and not isinstance(args[0], Traced)
        and truth_of(interp.ctx.session, args[0]) is not None
    ):
        return interp.truth(args[0])
    return _plain(bool, _bool)(interp, args, kwargs, env)


def _sum(values: Any, start: Any = 0) -> Any:
    if isinstance(values, Traced):
        if not values.type.rank:
            raise TypeMismatch(f"sum() takes an array or a list, not {said(values.type)}", hint="use the number itself")
        if values.type.shape[0] == 0:
            return start
        # Python adds items to an int, one by one, so that an i32 stays one.
        total = functions.sum(values, axis=0, dtype=None if values.dtype == bool_ else values.dtype)
        return total if isinstance(start, int) and start == 0 else start + total
    total = start
    for value in values:
        total = total + value
    return total


def _round(x: Any, ndigits: Any = None) -> Any:
    """Python's round: an integer without `ndigits`; else as many decimals, halves to even."""
    if isinstance(ndigits, Traced):
        raise CaptureError(
            "the number of digits of round() must be known at capture time", hint="write a number: round(x, 2)"
        )
    if isinstance(x, Traced) and x.type.rank:
        raise TypeMismatch(f"round() takes a single number, not {said(x.type)}", hint="use ut.round(x, 2)")
    is_whole = x.dtype.kind != "float"
    if ndigits is None:
        return as_weak(functions.astype(x, i64)) if is_whole else _integer(functions.round(x))
    digits = static_int(ndigits, "the number of digits of round()")
    if not is_whole:  # f64 is rounded as Python's floats are, f32 as NumPy's
        if x.dtype != f64:
            return functions.round(x, digits)
        return emit("round_decimal", [x, np.float64(max(-400, min(digits, 400)))])[0]
    if digits >= 0:
        return functions.positive(x)
    if digits < -18:
        return functions.multiply(x, 0)
    step = 10**-digits
    low = functions.multiply(functions.floor_divide(x, step), step)
    twice = functions.multiply(functions.subtract(x, low), 2)
    odd = functions.equal(functions.remainder(functions.floor_divide(x, step), 2), 1)
    is_up = functions.logical_or(
        functions.greater(twice, step), functions.logical_and(functions.equal(twice, step), odd)
    )
    return functions.where(is_up, functions.add(low, step), low)


def _integer(whole: Any) -> Any:
    """A float without a fraction as an integer of Python's; nan and what does not fit is a fault."""
    whole = as_operand(whole)
    if type_of(whole).dtype.kind != "float":
        return as_weak(functions.astype(whole, i64))
    return as_weak(emit("to_integer", [whole, whole])[0])


def _length(value: Any) -> Any:
    if isinstance(value, Traced):
        return functions.length(value) if value.type.shape else len(value)
    return len(value)


def _text(value: Any = "", *rest: Any) -> Any:
    return text_of(value, conversion="s") if not rest else str(value, *rest)


def _texts(function: Any, traced: Callable[..., Any]) -> Any:
    """The Python function that makes a text; of traced values, and of containers of them, a traced one."""

    def work(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
        if args and not kwargs and (isinstance(args[0], (Traced, TracedText)) or type(args[0]) in (list, tuple, dict)):
            return traced(*args)
        return interp.call_native(function, args, kwargs)

    return work


def method_of_text(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """`text.format(...)` and `text.join(...)` with traced values; None if the call is none of these."""
    text = getattr(function, "__self__", None)
    if type(text) is not str or not isinstance(function, BuiltinFunctionType):
        return None
    if function.__name__ == "format" and any(has_traced_inside(a) for a in [*args, *kwargs.values()]):
        return formatted(text, args, kwargs)
    if function.__name__ == "join" and len(args) == 1 and not isinstance(args[0], (str, Traced)):
        texts = list(args[0])
        if any(isinstance(part, TracedText) for part in texts):
            return joined(text, texts)
        return text.join(texts)
    return None


def refuse_text(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Refuse to hand a traced text to code that is not ours, except to put it into a container or an exception."""
    is_ours = str(getattr(function, "__module__", None)).startswith("undertow.")
    if is_ours or isinstance(getattr(function, "__self__", None), (list, dict, set, BaseException)):
        return
    if isinstance(function, type) and issubclass(function, BaseException):
        return
    for value in (*args, *kwargs.values()):
        if isinstance(value, TracedText):
            raise text_too_early(value)


def has_traced_inside(value: Any) -> bool:
    """Is it traced, or a container of traced values?"""
    return isinstance(value, TracedText) or any(isinstance(x, Traced) for x in flatten(value, is_traced)[0])


def _of_one(name: str, traced: Callable[..., Any], instead: str) -> Callable[..., Any]:
    """A Python function of a single number: an array is an error."""

    def work(*values: Any, **named: Any) -> Any:
        for value in (*values, *named.values()):
            if isinstance(value, Traced) and value.type.shape:
                raise TypeMismatch(f"{name}() takes a single number, not {said(value.type)}", hint=f"use {instead}")
        return traced(*values, **named)

    work.__signature__ = inspect.signature(traced)  # type: ignore[attr-defined]
    return work


def _print(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    """Python's `print`: a line whenever the body runs, even if nothing in it is traced."""
    unknown = [key for key, value in kwargs.items() if key not in ("sep", "flush") and (key, value) != ("end", "\n")]
    if unknown:
        raise CaptureError(
            f"print() with `{unknown[0]}` cannot be captured",
            hint="a graph prints whole lines to standard output; join the parts in one f-string",
        )
    between = " " if kwargs.get("sep") is None else str(kwargs["sep"])
    texts = []
    for value in args:
        texts.append((yield interp.text_of_one(read(value), conversion="s")))
    line = joined(between, texts)
    if isinstance(line, TracedText):
        effect("print", line.values, template=line.template)
    else:
        effect("print", [], template=escaped(line))


def _map(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    """`map` of a function that behaves differently in a capture, as in map(str, values)."""
    function, *over = args if args else (None,)
    if not over or kwargs or isinstance(function, (Traced, list, dict, set)) or function not in PYTHON:
        return interp.call_native(map, args, kwargs)

    def work(items: Any) -> Work:
        for taken in items:
            yield Yielded((yield interp.call(function, list(taken), {}, env)))

    items = zip(*(interp.iterate(values, interp.ctx.span) for values in over), strict=False)
    return interp.owned.own(CapturedGenerator(interp.ctx, work(items), "map"))


def _construct(kind: type[Exception]) -> Any:
    """An exception may hold a traced text: `raise` knows what to do with it."""
    return lambda interp, args, kwargs, env: kind(*args, **kwargs)


def _is_traced_object(args: Sequence[Any]) -> bool:
    return bool(args) and isinstance(args[0], (Traced, TracedText))


def _getattr(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if _is_traced_object(args):
        return (yield KINDS[getattr](interp, args, kwargs, env))
    if len(args) not in (2, 3) or kwargs or not isinstance(args[1], str):
        return interp.call_native(getattr, args, kwargs)
    session = interp.ctx.session
    try:
        held = session.attribute(*args[:2])
        if isinstance(held, Getter):
            held = yield interp.call(held.function, held.args, {}, env)
    except AttributeError:
        if len(args) == 3:
            return args[2]
        raise
    return session.seen(held)


def _hasattr(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if _is_traced_object(args):
        return bool(KINDS[hasattr](interp, args, kwargs, env))
    if len(args) != 2 or kwargs or not isinstance(args[1], str):
        return bool(interp.call_native(hasattr, args, kwargs))
    try:
        held = interp.ctx.session.attribute(*args)
        if isinstance(held, Getter):
            yield interp.call(held.function, held.args, {}, env)
    except AttributeError:
        return False
    return True


def _vars(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    if len(args) != 1 or kwargs:
        return interp.call_native(vars, args, kwargs)
    return interp.ctx.session.attribute(args[0], "__dict__")


def _power(base: Any, exponent: Any, mod: Any = None) -> Any:
    if mod is not None:
        raise CaptureError(
            "pow() with a modulus cannot be captured for traced values: the power alone would overflow",
            hint="square and multiply in a loop, with `% m` after each step",
        )
    return BINARY[ast.Pow](base, exponent)


# Hints for calls of Python functions with arguments that have no counterpart.
_TAKEN: dict[Any, str] = {
    builtins.sorted: "use ut.sort(x) and ut.argsort(key)",
}


def _in_floats(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the module `math`: it computes with Python's floats."""

    @functools.wraps(compute)
    def work(*values: Any) -> Any:
        taken = [python_number(value) if isinstance(value, Traced) else value for value in values]
        refuse_complex(f"math.{compute.__name__}", *taken, instead=f"use cmath.{compute.__name__}")
        result = compute(*taken)
        return as_weak(result) if isinstance(result, Traced) and result.dtype == f64 else result

    return work


def _whole(name: str) -> Callable[[Any], Any]:
    return lambda x: _integer(getattr(functions, name)(x))


def _sorted(values: Any, *, reverse: bool = False) -> Any:
    array = as_operand(values)
    if type_of(array).rank != 1 or not isinstance(type_of(array).shape[0], int):
        raise CaptureError(
            f"sorted() of {said(type_of(array))} cannot be captured", hint="use ut.sort(x), which gives an array"
        )
    if type_of(array).dtype.kind == "float":
        numbers = functions.all(functions.logical_not(functions.isnan(array)))
        told = "sorted() of nan depends on how it is compared: np.sort(x) puts it last"
        effect("raise", [numbers], template=told, error="ValueError")
    inner = functions.sort(array, descending=bool(reverse))
    return list(functions.astype(inner, type_of(array).dtype))


def _wrapper(interp: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Any:
    """What `functools.wraps` does: a function that is defined in a captured one has no name to copy."""
    made = args[0] if args else kwargs.get("wrapper")
    return made if isinstance(made, Closure) else interp.call_native(functools.update_wrapper, args, kwargs)


_bool = _of_one("bool", lambda x: functions.astype(x, bool_), "ut.any(x) or ut.all(x)")
# Functions that go over their argument at once, so that an iterator may be a list.
_FOLDS = frozenset((builtins.sum, builtins.sorted, math.prod))
_TRACED: dict[Any, Callable[..., Any]] = {
    builtins.range: _range, builtins.len: _length, builtins.sum: _sum, builtins.pow: _power, builtins.sorted: _sorted,
    builtins.int: _of_one("int", lambda x: _integer(functions.trunc(x)), "ut.astype(x, ut.i64)"),
    builtins.float: _of_one(
        "float", lambda x: as_weak(functions.astype(x, f64)), "ut.astype(x, ut.f64)"
    ),
    builtins.complex: _of_one("complex", complex_number, "ut.astype(x, ut.c128)"),
    **{function: _of_one(f"cmath.{function.__name__}", compute, f"np.{function.__name__}")
       for function, compute in CMATH.items()},
    builtins.round: _round,
    builtins.divmod: lambda a, b: (BINARY[ast.FloorDiv](a, b), BINARY[ast.Mod](a, b)),
    **{getattr(math, name): _of_one(f"math.{name}", _whole(name), f"ut.{name}") for name in ("floor", "ceil", "trunc")},
    **{
        getattr(math, name): _of_one(f"math.{name}", _in_floats(getattr(functions, row.public)), f"ut.{row.public}")
        for row in CATALOGUE.values()
        for name in row.names("math.")
        if hasattr(math, name)  # cbrt is new in Python 3.11
    },
    math.fabs: _of_one("math.fabs", _in_floats(lambda x: functions.abs(*floats(x))), "ut.abs"),
    **{
        getattr(math, name): _of_one(f"math.{name}", _in_floats(compute), f"np.{name}")
        for name, compute in IN_FLOATS.items()
        if hasattr(math, name)  # exp2 is new in Python 3.11
    },
    **{getattr(math, name): _of_one(f"math.{name}", compute, f"np.{name}") for name, compute in OTHERS.items()},
    math.prod: prod,
    math.pow: _of_one("math.pow", _in_floats(lambda x, y: functions.pow(*floats(x, y))), "ut.pow"),
}  # fmt: skip
PRINT = builtins.print
# Python function -> what its call does in a capture; the handler gets the interpreter.
PYTHON: dict[Any, Callable[[Any, Sequence[Any], dict[str, Any], Env | None], Any]] = {
    **KINDS,
    PRINT: _print,
    builtins.getattr: _getattr,
    builtins.hasattr: _hasattr,
    builtins.vars: _vars,
    builtins.map: _map,
    builtins.min: _extreme(min, "minimum", functions.less),
    builtins.max: _extreme(max, "maximum", functions.greater),
    builtins.str: _texts(str, _text),
    builtins.repr: _texts(repr, lambda value: text_of(value, conversion="r")),
    builtins.ascii: _texts(ascii, lambda value: text_of(value, conversion="a")),
    builtins.format: _texts(format, text_of),
    **{kind: _construct(kind) for kind in ERRORS.values()},
    **{function: _plain(function, traced) for function, traced in _TRACED.items()},
    builtins.bool: _truth,
    builtins.any: _fold(any, "logical_or", False),
    builtins.all: _fold(all, "logical_and", True),
    functools.update_wrapper: _wrapper,
}
PYTHON.update(with_loops(PYTHON))
