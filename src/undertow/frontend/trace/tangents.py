"""The capture of `ut.jvp`: a call of a function that is written with the tangents of its arguments, as a tangent node.

What is differentiated is a function of the library. Plain Python becomes one, under the name that it has: what it does
is captured inline in there.
"""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch, brief
from undertow.frontend.control.flow import describe, leaf_type
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.calls import Interpreter
from undertow.frontend.interpret.drive import Work
from undertow.frontend.syntax.source import Closure, Env, closure_of
from undertow.frontend.trace.capture import (
    Arguments,
    Captured,
    Definition,
    Session,
    Unit,
    arguments,
    until_order_is_known,
)
from undertow.frontend.values import tree
from undertow.frontend.values.state import Variable
from undertow.frontend.values.traced import Traced, constant
from undertow.ops.rules import may_be_equal
from undertow.types import Type, f64, said

_HOW = "write ut.jvp(f, (x, y), (dx, dy)): a tangent for each argument, None where it is zero"


# -- functions ---------------------------------------------------------------------------------------------


def definition_of(function: Any, count: int, span: Span | None) -> tuple[Definition, tuple[Any, ...]]:
    """What is captured when a function is called with so many arguments, and arguments that it has already."""
    definition = getattr(function, "__undertow_definition__", None)
    if definition is not None:
        return definition, getattr(function, "__undertow_bound__", ())
    if isinstance(function, Traced) or not callable(function):
        raise CaptureError(f"ut.jvp of {brief(function)}, which is not a function", span, hint=_HOW)
    return Definition(_applied(function, count, span)), ()


def _applied(function: Any, count: int, span: Span | None) -> Closure:
    """`lambda x, y: function(x, y)`, as if it stood where the function is defined."""
    own = function if isinstance(function, Closure) else None
    if inspect.isfunction(function):
        try:
            own = closure_of(function)
        except CaptureError:  # no source: it is called, and must do with traced values
            own = None
    place = (own.span if own is not None else span) or Span("<ut.jvp>", 1)
    known = "" if own is None else own.name
    inner = function.func if isinstance(function, functools.partial) else function
    name = known or getattr(inner, "__name__", type(inner).__name__)
    names = _parameters(own.signature if own is not None else None, count)
    call = ast.Call(ast.Name("function of jvp", ast.Load()), [ast.Name(n, ast.Load()) for n in names], [])
    taken = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    node = ast.Lambda(taken, call)
    for part in ast.walk(node):
        part.lineno, part.col_offset = place.line, place.column - 1  # type: ignore[attr-defined]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(n, kind) for n in names])
    return Closure(node, name, place.file, {"function of jvp": function}, {}, None, signature)


def _parameters(signature: inspect.Signature | None, count: int) -> list[str]:
    """Names for so many arguments: those of the function where it has them."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [] if signature is None else [n for n, p in signature.parameters.items() if p.kind in kinds]
    return [names[k] if k < len(names) else f"x{k}" for k in range(count)]


# -- tangents ----------------------------------------------------------------------------------------------


def checked(primals: Any, tangents: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """The arguments and their tangents, one for each."""
    for given, what in ((primals, "the arguments"), (tangents, "their tangents")):
        if not isinstance(given, (tuple, list)):
            raise TypeMismatch(f"ut.jvp takes {what} as a tuple, not {describe(given)}", hint=_HOW)
    if len(primals) != len(tangents):
        raise TypeMismatch(f"ut.jvp is given {len(primals)} arguments and {len(tangents)} tangents", hint=_HOW)
    return tuple(primals), tuple(tangents)


def match_tangents(
    definition: Definition, given: Arguments, bound: int, tangents: Sequence[Any], span: Span | None
) -> dict[int, Any]:
    """The tangents of leaves that have one, as values of their types; a None stands for all that is below it."""
    taken = definition.closure.signature.bind(*[None] * bound, *tangents).arguments
    found: dict[int, Any] = {}
    number = 0
    for name, structure in zip(given.parameters, given.structures, strict=True):
        for tangent in _along(definition, structure, taken.get(name), name, span):
            type, leaf = given.types[number], given.leaves[number]
            value = None if tangent is None else _tangent(tangent, leaf, type, given.names[number], span)
            if value is not None:
                found[number] = value
            number += 1
    return found


def _along(definition: Definition, structure: tree.Structure, value: Any, name: str, span: Span | None) -> list[Any]:
    """What stands in a tangent at each leaf of the argument."""
    variables = [token for token in structure if token[0] == "static" and isinstance(token[1].value, Variable)]
    found = tree.along(structure, value, definition.children, variables)
    if found is None:
        raise TypeMismatch(
            f"the tangent of `{name}` has another structure than `{name}`: {describe(value)}",
            span,
            hint="give containers of the same kinds, lengths and keys; None stands for zero",
        )
    held = [token for token in structure if token == tree.LEAF or token in variables]
    for token, item in zip(held, found, strict=True):
        if token != tree.LEAF and item is not None and item is not token[1].value:
            what = f"`{name}` {'is' if len(structure) == 1 else 'holds'} the variable `{token[1].value.name}`"
            raise TypeMismatch(
                f"{what}, which has no tangent", span, hint="give its value for the argument: v.read(); or None here"
            )
    return [item for token, item in zip(held, found, strict=True) if token == tree.LEAF]


def _tangent(value: Any, leaf: Any, type: Type, name: str, span: Span | None) -> Any:
    """The tangent of one leaf, of its type; None where there is none, because it is no float."""
    is_weak = isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)
    if type.dtype.kind != "float":
        is_zero = isinstance(value, Traced) or np.asarray(value).dtype.kind == "V" or not np.any(value)
        if not is_zero:
            raise TypeMismatch(
                f"`{name}` is {said(type)}, so its tangent is zero, and not {brief(value)}",
                span,
                hint="give None as its tangent; to differentiate, make the argument a float: 2.0 instead of 2",
            )
        return None
    if is_weak or isinstance(value, (list, tuple)):
        value = np.asarray(value, type.dtype.numpy)[()]
    elif not isinstance(value, Traced):
        value = np.asarray(constant(value))[()]
    found = leaf_type(value)
    if found.dtype != type.dtype or not may_be_equal(found.shape, type.shape):
        raise TypeMismatch(
            f"the tangent of `{name}` is {said(found)}, but `{name}` is {said(type)}",
            span,
            hint="a tangent has the dtype and the shape of its argument; None stands for zero",
        )
    return value if type.accepts(found) else functions.broadcast_to(value, leaf.shape)


# -- capture -----------------------------------------------------------------------------------------------


def write_jvp(interp: Interpreter, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    """`ut.jvp` in a captured function: the value and its tangent."""
    session, span = interp.ctx.session, interp.ctx.span
    if len(args) + len(kwargs) != 3 or not kwargs.keys() <= {"primals", "tangents"}:
        raise CaptureError("ut.jvp takes a function, its arguments and their tangents", hint=_HOW)
    function, primals, tangents = (*args, *(kwargs[key] for key in ("primals", "tangents") if key in kwargs))
    if interp.ctx.open_builder.is_block:
        raise CaptureError(
            "ut.jvp cannot stand in the block of a SubGraph",
            hint="call it in an @ut.function, or on the SubGraph when its block is closed",
        )
    primals, tangents = checked(primals, tangents)
    definition, bound = _definition_in(session, function, len(primals), span)
    given = arguments(definition, [*bound, *primals], {})
    matched = match_tangents(definition, given, len(bound), tangents, span)
    unit = yield session.find_unit(definition, given)
    return write_tangent(session, unit, given, matched)


def _definition_in(session: Session, function: Any, count: int, span: Span | None) -> Any:
    """The definition of a function, the same one whenever a session differentiates it."""
    key = id(function), count
    if key not in session.wrapped:
        session.wrapped[key] = function, definition_of(function, count, span)  # held, so that its number stays its own
    return session.wrapped[key][1]


def write_tangent(session: Session, unit: Unit, given: Arguments, tangents: dict[int, Any]) -> tuple[Any, Any]:
    """Write a tangent node: the value and its tangent, of f64 zeros for what is no float."""
    value, found = session.write_call(unit, given, tangents)
    leaves, structure = tree.flatten(value, lambda v: isinstance(v, Traced))
    rest = iter(found)
    moved = [next(rest) if x.dtype.kind == "float" else functions.zeros_like(x, dtype=f64) for x in leaves]
    return value, tree.unflatten(structure, moved)


def capture_jvp(definition: Definition, given: Arguments, tangents: dict[int, Any]) -> Captured:
    """The library for one `jvp` outside of a capture: main takes the arguments, then their tangents."""
    captured, types = until_order_is_known(lambda written: _capture_jvp(definition, given, tangents, written))
    if types != given.types:
        # The function turned out to work for more sizes: let the main graph take them all.
        wider = replace(given, types=types)
        captured, _ = until_order_is_known(lambda written: _capture_jvp(definition, wider, tangents, written))
    return captured


def _capture_jvp(
    definition: Definition, given: Arguments, tangents: dict[int, Any], written: frozenset[Any]
) -> tuple[Captured, tuple[Type, ...]]:
    session = Session(written)
    count = len(given.leaves)
    seen: list[tuple[Type, ...]] = []

    def work(leaves: list[Traced]) -> Work:
        session.ctx.span = definition.closure.span
        inner = replace(given, leaves=leaves[:count])
        unit = yield session.find_unit(definition, inner)
        seen.append(unit.types)
        return write_tangent(session, unit, inner, dict(zip(tangents, leaves[count:], strict=True)))

    return session.capture(with_tangents(given, tangents), work), seen[0]


def with_tangents(given: Arguments, tangents: dict[int, Any]) -> Arguments:
    """What main is fed with: the arguments, then the tangents."""
    return replace(
        given,
        leaves=[*given.leaves, *tangents.values()],
        types=(*given.types, *(given.types[number] for number in tangents)),
        names=[*given.names, *(f"{given.names[number]}.t" for number in tangents)],
        is_fixed=(*given.is_fixed, *(given.is_fixed[number] for number in tangents)),
    )
