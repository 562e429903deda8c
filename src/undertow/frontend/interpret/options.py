"""What captured code does with values that may be None: tests, operators, calls.

Where a branch has asked whether there is a value, its sides know the answer: there the value is itself, or None. Where
nothing is known, `+` and its like are a TypeError of the run if there is none, and what Python does with None as with
anything else (`print`, `==`, `isinstance`) is a branch.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.control.merge import force
from undertow.frontend.control.restart import Halted
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.interpret.kinds import class_of
from undertow.frontend.interpret.raising import is_conditional, raise_at_run_time, raise_later
from undertow.frontend.syntax.source import Env
from undertow.frontend.trace.builder import Builder
from undertow.frontend.values.leaves import ABSENT
from undertow.frontend.values.option import Option, is_option
from undertow.frontend.values.traced import Context, Traced, effect
from undertow.ir.graph import Const, Port

Fact = tuple[Port, bool]  # a value of a graph, and that it is true or false


# -- what is known ------------------------------------------------------------------------------------------


def settled(value: Any, ctx: Context) -> Any:
    """An Option where the branches around say whether there is a value: that, or None. Anything else as it is."""
    if not is_option(value):
        return value
    truth = _truth_here(value.is_there, ctx) if isinstance(value.is_there, Traced) else bool(value.is_there)
    return value if truth is None else value.value if truth else None


def _truth_here(flag: Traced, ctx: Context) -> bool | None:
    """What the branches around say of a flag."""
    builder: Builder | None = ctx.open_builder
    while builder is not None:
        wanted = {
            builder.origin(inner)
            for (made_by, port), inner in builder.lifted.items()
            if made_by is flag.builder and made_by.origin(port) == made_by.origin(flag.port)
        }
        if builder is flag.builder:
            wanted.add(builder.origin(flag.port))
        for port, truth in _facts(builder) if wanted else ():
            if port in wanted:
                return truth
        builder = builder.parent
    return None


def _facts(builder: Builder) -> Iterator[Fact]:
    """What is true and false where nodes are written now, by the branches around in this graph."""
    facts: list[Fact] = []
    at: int | None = builder.region
    while at is not None:
        region = builder.regions[at]
        if region.pred is not None:
            facts.append((region.pred, bool(region.side)))
        at = region.parent
    seen: set[Fact] = set()
    while facts:
        port, truth = facts.pop()
        port = builder.origin(port)
        if (port, truth) not in seen:
            seen.add((port, truth))
            yield port, truth
            facts += _implied(builder, port, truth)


def _implied(builder: Builder, port: Port, truth: bool) -> list[Fact]:
    """What else is known if this is true, or false."""
    node = builder.nodes[port.node]
    inputs = [i for i in node.inputs if isinstance(i, Port)]
    if node.op == "logical_not":
        return [(inputs[0], not truth)]
    if node.op == "identity" or node.op == ("logical_and" if truth else "logical_or"):
        return [(i, truth) for i in inputs]
    if node.op == "merge":
        possible = [i for i in inputs if _constant(builder, i) in (None, truth)]
        if len(possible) == 1:  # control came from there
            region = builder.regions[builder.home(possible[0])]
            assert region.pred is not None
            return [(possible[0], truth), (region.pred, bool(region.side))]
    return []


def _constant(builder: Builder, port: Port) -> bool | None:
    """What a value is wherever it is there: a constant, or the predicate of its own branch."""
    region, origin = builder.regions[builder.home(port)], builder.origin(port)
    if region.pred is not None and builder.origin(region.pred) == origin:
        return bool(region.side)
    node = builder.nodes[origin.node]
    held = node.inputs[0] if node.op == "identity" else None
    return bool(held.value) if isinstance(held, Const) else None


def reads_option(node: ast.expr, env: Env, ctx: Context) -> bool:
    """Is there a value that may be None among the names of an expression?"""
    names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
    return any(
        is_option(force(around.vars[name], ctx)) for around in env.outwards() for name in names & around.vars.keys()
    )


# -- what code does with it ---------------------------------------------------------------------------------


def needed(value: Any, ctx: Context, told: str, kind: type[Exception] = TypeError) -> Any:
    """The value of an Option where Python needs one: an error of the run if there is none."""
    value = settled(value, ctx)
    if not is_option(value):
        return value
    effect("raise", [value.is_there], template=told.replace("{", "{{").replace("}", "}}"), error=kind.__name__)
    return value.value


def by_cases(interp: Any, value: Any, use: Callable[[Any], Any], env: Env | None) -> Work:
    """What `use` gives for the value of an Option or for None, whichever it is at run time."""
    value = settled(value, interp.ctx)
    if not is_option(value):
        return (yield use(value))

    def of_none() -> Work:
        try:
            return (yield use(None))
        except (TypeError, CaptureError) as fault:
            raise_at_run_time(TypeError, TypeError(str(fault).partition("\n")[0]))
            return ABSENT

    return (yield interp.choose(value.is_there, lambda: use(value.value), of_none, env))


def operate(interp: Any, op: ast.operator | ast.cmpop, left: Any, right: Any) -> Work:
    """An operator with an Option as an operand."""
    left, right = settled(left, interp.ctx), settled(right, interp.ctx)
    if isinstance(op, (ast.Eq, ast.NotEq)):
        if is_option(left):
            return (yield by_cases(interp, left, lambda one: interp.operate(op, one, right), None))
        if is_option(right):
            return (yield by_cases(interp, right, lambda one: interp.operate(op, left, one), None))
        return (yield interp.operate(op, left, right))
    if isinstance(op, (ast.Is, ast.IsNot)):
        return _identity(interp, left, right, isinstance(op, ast.Is))
    if isinstance(op, (ast.In, ast.NotIn)):
        right = needed(right, interp.ctx, "argument of type 'NoneType' is not iterable")
        return (yield by_cases(interp, left, lambda one: interp.contained(op, one, right), None))
    values = [side.value if is_option(side) else side for side in (left, right)]
    told = [told_of_none(op, None, values[1]), told_of_none(op, values[0], None)]
    sides = [needed(side, interp.ctx, text) for side, text in zip((left, right), told, strict=True)]
    return (yield interp.operate(op, *sides))


def told_of_none(op: ast.operator | ast.cmpop, left: Any, right: Any) -> str:
    """What Python says of an operator with None as an operand."""
    kinds = f"{class_of(left).__name__!r} and {class_of(right).__name__!r}"
    if isinstance(op, ast.cmpop):
        return f"{_SIGNS[type(op)]!r} not supported between instances of {kinds}"
    return f"unsupported operand type(s) for {_SIGNS[type(op)]}: {kinds}"


def refuse_none(op: ast.operator | ast.cmpop, left: Any, right: Any, ctx: Context) -> None:
    """None as an operand, under a condition: an error of the run, where it gets there."""
    if (left is None or right is None) and type(op) in _SIGNS and is_conditional(ctx):
        raise_later(TypeError(told_of_none(op, left, right)), ctx)
        raise Halted


def holds_option(value: Any) -> bool:
    """Is it a list or tuple with a value in it that may be None?"""
    return type(value) in (list, tuple) and any(map(is_option, value))


def among(interp: Any, items: Sequence[Any], value: Any) -> Work:
    """`value in items`, where some of these are Options."""
    result: Any = False
    for item in items:
        holds = interp.truth((yield interp.operate(ast.Eq(), item, value)))
        if holds is True:
            return True
        if holds is not False:
            result = holds if result is False else functions.logical_or(result, holds)
    return result


def _identity(interp: Any, left: Any, right: Any, is_same: bool) -> Any:
    option, other = (left, right) if is_option(left) else (right, left)
    if not is_option(option):
        return interp.compared(ast.Is() if is_same else ast.IsNot(), option, other)
    if other is not None:
        raise CaptureError(
            "whether a value that may be None is the same object as another one is not defined in a graph",
            hint="compare it with ==, or with None",
        )
    return functions.logical_not(option.is_there) if is_same else option.is_there


def truth(interp: Any, value: Option) -> Any:
    """What `if value` tests."""
    holds = interp.truth(value.value)
    if isinstance(holds, Traced):
        return functions.logical_and(value.is_there, holds)
    return value.is_there if holds else False


# Functions that take None as they take other values.
_TAKES_NONE = (
    builtins.print, builtins.str, builtins.repr, builtins.ascii, builtins.format, builtins.bool, builtins.isinstance,
    builtins.type, builtins.callable, builtins.hasattr, builtins.getattr, builtins.id,
)  # fmt: skip


def call(interp: Any, function: Any, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    """A call of code that is not the user's with an Option among its arguments."""
    args = [settled(value, interp.ctx) for value in args]
    kwargs = {name: settled(value, interp.ctx) for name, value in kwargs.items()}
    if isinstance(getattr(function, "__self__", None), (list, dict, set)) and not any(map(is_option, args[:1])):
        return (yield interp.call(function, args, kwargs, env))
    number = next((n for n, value in enumerate(args) if is_option(value)), None)
    name = next((name for name, value in kwargs.items() if is_option(value)), None)
    if number is None and name is None:
        return (yield interp.call(function, args, kwargs, env))

    def with_value(value: Any) -> Any:
        if number is None:
            assert name is not None
            return interp.call(function, args, {**kwargs, name: value}, env)
        return interp.call(function, [*args[:number], value, *args[number + 1 :]], kwargs, env)

    held = args[number] if number is not None else kwargs[name or ""]
    if any(function is other for other in _TAKES_NONE) or number is None or (number and _is_numeric(function)):
        return (yield by_cases(interp, held, with_value, env))
    called = getattr(function, "__name__", type(function).__name__)
    return (yield with_value(needed(held, interp.ctx, f"{called}() got None (NoneType) where it needs a value")))


def _is_numeric(function: Any) -> bool:
    """Is it a function of ours or of NumPy's, whose arguments after the first may be None?"""
    module = str(getattr(function, "__module__", None)).partition(".")[0]
    return module in ("undertow", "numpy") or isinstance(function, np.ufunc)


_SIGNS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
