"""The capture of `ut.jvp`: a call with the tangents of its arguments, written as a tangent node.

Only a function of the library can be differentiated, so plain Python becomes one, under its own name, with its body
captured inline.
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
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.calls import Interpreter
from undertow.frontend.interpret.drive import Work
from undertow.frontend.syntax.calling import decorated, is_user_code, signature_with
from undertow.frontend.syntax.source import Closure, Env, closure_of
from undertow.frontend.trace.by_class import is_users_object
from undertow.frontend.trace.capture import CaptureSession
from undertow.frontend.trace.definition import Arguments, Definition, Specialization, take_arguments
from undertow.frontend.trace.library import Captured, capture_main, learn_types
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.operands import is_weak
from undertow.frontend.values.state import Variable
from undertow.frontend.values.traced import Traced, constant, is_traced
from undertow.ops.rules import may_be_equal
from undertow.types import Type, f64, said

_HOW = "write ut.jvp(f, (x, y), (dx, dy)): a tangent for each argument, None where it is zero"


# -- functions ---------------------------------------------------------------------------------------------


def definition_of(function: Any, count: int, span: Span | None) -> tuple[Definition, tuple[Any, ...]]:
    """The definition to capture for a call with `count` arguments, and the arguments that the function is bound to."""
    known = decorated(function)
    if known is not None:
        return known
    if isinstance(function, Traced) or not callable(function):
        raise CaptureError(f"ut.jvp takes a function, not {brief(function)}", span, hint=_HOW)
    return Definition(_applied(function, count, span)), ()


def _applied(function: Any, count: int, span: Span | None) -> Closure:
    """`lambda x, y: function(x, y)`, as if written where the function is defined."""
    own = function if isinstance(function, Closure) else None
    if is_user_code(function):
        own = closure_of(function)
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
    return Closure(node, name, place.file, {"function of jvp": function}, {}, None, signature_with(names))


def _parameters(signature: inspect.Signature | None, count: int) -> list[str]:
    """Names for `count` arguments: the function's own, as far as it has them."""
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
        raise TypeMismatch(f"ut.jvp gets {len(primals)} arguments, but {len(tangents)} tangents", hint=_HOW)
    return tuple(primals), tuple(tangents)


def match_tangents(
    definition: Definition, arguments: Arguments, bound: int, tangents: Sequence[Any], span: Span | None
) -> dict[int, Any]:
    """The tangents of the leaves that have one, as values of their types; a None covers everything below it."""
    taken = definition.closure.signature.bind(*[None] * bound, *tangents).arguments
    matched: dict[int, Any] = {}
    number = 0
    for name, structure in zip(arguments.parameters, arguments.structures, strict=True):
        for tangent in _along(definition, structure, taken.get(name), name, span):
            type, leaf = arguments.types[number], arguments.leaves[number]
            value = None if tangent is None else _tangent(tangent, leaf, type, arguments.names[number], span)
            if value is not None:
                matched[number] = value
            number += 1
    return matched


def _along(definition: Definition, structure: tree.Structure, value: Any, name: str, span: Span | None) -> list[Any]:
    """The part of a tangent at each leaf of the argument."""
    held_static = [token for token in structure if token[0] == "static"]
    variables = [token for token in held_static if isinstance(token[1].value, Variable)]
    objects = [token for token in held_static if is_users_object(token[1].value)]
    found = tree.along(structure, value, definition.children, [*variables, *objects])
    if found is None:
        raise TypeMismatch(
            f"the tangent of `{name}` differs from `{name}` in structure: {describe(value)}",
            span,
            hint="use containers of the same kinds, lengths and keys; None means zero",
        )
    held = [token for token in structure if token == tree.LEAF or token in variables or token in objects]
    for token, item in zip(held, found, strict=True):
        if token in objects and item is not None:
            verb = "is" if len(structure) == 1 else "holds"
            raise TypeMismatch(
                f"`{name}` {verb} {brief(token[1].value)}: an object has no tangent",
                span,
                hint="pass what it holds as arguments, in a dict or a dataclass; or None as the tangent",
            )
        if token != tree.LEAF and item is not None and item is not token[1].value:
            what = f"`{name}` {'is' if len(structure) == 1 else 'holds'} the variable `{token[1].value.name}`"
            raise TypeMismatch(
                f"{what}, which has no tangent",
                span,
                hint="pass its value as the argument: v.read(); or None as the tangent",
            )
    return [item for token, item in zip(held, found, strict=True) if token == tree.LEAF]


def _tangent(value: Any, leaf: Any, type: Type, name: str, span: Span | None) -> Any:
    """The tangent of one leaf, of its type; None if the leaf is not a float."""
    if not type.dtype.is_inexact:
        is_zero = isinstance(value, Traced) or np.asarray(value).dtype.kind == "V" or not np.any(value)
        if not is_zero:
            raise TypeMismatch(
                f"`{name}` is {said(type)}, so its tangent must be None (zero), not {brief(value)}",
                span,
                hint="to differentiate, make the argument a float: 2.0 instead of 2",
            )
        return None
    if is_weak(value) or isinstance(value, (list, tuple)):
        try:
            value = np.asarray(value, type.dtype.numpy)[()]
        except (ValueError, TypeError, OverflowError):
            raise TypeMismatch(
                f"the tangent of `{name}` is {brief(value)}, which is not {said(type)}",
                span,
                hint="a tangent has the dtype and shape of its argument; None means zero",
            ) from None
    elif not isinstance(value, Traced):
        value = np.asarray(constant(value))[()]
    found = leaf_type(value)
    if found.dtype != type.dtype or not may_be_equal(found.shape, type.shape):
        raise TypeMismatch(
            f"the tangent of `{name}` is {said(found)}, but `{name}` is {said(type)}",
            span,
            hint="a tangent has the dtype and shape of its argument; None means zero",
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
            "ut.jvp cannot be called in the block of a SubGraph",
            hint="call it in an @ut.function, or on the SubGraph after its block",
        )
    primals, tangents = checked(primals, tangents)
    definition, bound = _definition_in(session, function, len(primals), span)
    arguments = take_arguments(definition, [*bound, *primals], {})
    matched = match_tangents(definition, arguments, len(bound), tangents, span)
    callee = yield session.specialize(definition, arguments)
    return write_tangent(session, callee, arguments, matched)


def _definition_in(session: Session, function: Any, count: int, span: Span | None) -> Any:
    """The definition of a function, one for each session that differentiates it."""
    key = id(function), count
    if key not in session.differentiated:
        # The entry holds the function, so that its id stays unique.
        session.differentiated[key] = function, definition_of(function, count, span)
    return session.differentiated[key][1]


def write_tangent(
    session: Session, callee: Specialization, arguments: Arguments, tangents: dict[int, Any]
) -> tuple[Any, Any]:
    """Write a tangent node: the value and its tangent, with f64 zeros for non-floats."""
    value, moving = session.write_call(callee, arguments, tangents)
    leaves, structure = tree.flatten(value, is_traced)
    rest = iter(moving)
    moved = [next(rest) if x.dtype.is_inexact else functions.zeros_like(x, dtype=f64) for x in leaves]
    return value, tree.unflatten(structure, moved)


def capture_jvp(definition: Definition, arguments: Arguments, tangents: dict[int, Any]) -> Captured:
    """The library for one `jvp` outside a capture: main takes the arguments, then their tangents."""
    count = len(arguments.leaves)

    def write(session: CaptureSession, leaves: list[Traced]) -> Work:
        inner = replace(arguments, leaves=leaves[:count], types=session.main.types[:count])
        function = yield session.specialize(definition, inner)
        moving = [function.types[number] for number in tangents]
        learn_types(session, (*function.types, *moving))
        return write_tangent(session, function, inner, dict(zip(tangents, leaves[count:], strict=True)))

    return capture_main(definition, with_tangents(arguments, tangents), write)


def with_tangents(arguments: Arguments, tangents: dict[int, Any]) -> Arguments:
    """The inputs of main: the arguments, then the tangents."""
    return replace(
        arguments,
        leaves=[*arguments.leaves, *tangents.values()],
        types=(*arguments.types, *(arguments.types[number] for number in tangents)),
        names=[*arguments.names, *(f"{arguments.names[number]}.t" for number in tangents)],
    )
