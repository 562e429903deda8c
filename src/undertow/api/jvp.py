"""`ut.jvp` and `ut.hvp`: derivatives along a direction, in forward mode."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from undertow.api.function import Function
from undertow.api.grad import grad
from undertow.api.options import settings
from undertow.api.program import apart
from undertow.errors import UndertowError
from undertow.frontend.interpret.calls import SPECIAL
from undertow.frontend.interpret.drive import drive
from undertow.frontend.syntax.calling import decorated
from undertow.frontend.trace.definition import Definition
from undertow.frontend.trace.library import Captured
from undertow.frontend.trace.tangents import (
    capture_jvp,
    checked,
    definition_of,
    match_tangents,
    with_tangents,
    write_jvp,
)
from undertow.frontend.values import tree
from undertow.frontend.values.traced import capturing, context, is_traced
from undertow.tracebacks import boundary
from undertow.types import Type


@boundary
def jvp(f: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """The value of `f(*primals)`, and its directional derivative along the tangents.

    A tangent has the structure, shapes and dtypes of its argument. None means zero, for any argument; integers and
    bools have no other tangent. The tangent of an integer result is an f64 zero. In a captured function it extends
    the graph; a jvp of a jvp is a second derivative. The capture of an @ut.function is cached, while plain
    Python is captured again each time.

    >>> value, slope = jvp(lambda x, y: x * y, (3.0, 5.0), (1.0, None))
    >>> float(value), float(slope)
    (15.0, 5.0)
    """
    primals, tangents = checked(primals, tangents)
    leaves, _ = tree.flatten((primals, tangents), is_traced)
    current = context(leaves)
    if current is not None and current.builder is not None:
        work = write_jvp(current.session.interpreter, [f, primals, tangents], {}, None)
        with capturing(current):
            value: tuple[Any, Any] = current.give(drive(work))
            return value
    definition, bound = definition_of(f, len(primals), None)
    is_kept = decorated(f) is not None
    function = _function(definition) if is_kept else Function(definition)
    return apart(_run, function, len(bound), (*bound, *primals), tangents)


SPECIAL[jvp] = write_jvp


@functools.lru_cache(maxsize=256)
def _function(definition: Definition) -> Function:
    """The programs of a function's derivative, by signature and choice of tangents."""
    return Function(definition)


def _run(function: Function, bound: int, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    definition, programs = function.__undertow_definition__, function.__undertow_programs__
    arguments = function.__undertow_arguments__(primals, {})
    arguments.refuse_objects("ut.jvp", "write ut.grad(f), or pass the numbers in arrays, as a forest does")
    matched = match_tangents(definition, arguments, bound, tangents, definition.closure.span)
    whole = with_tangents(arguments, matched)

    def capture(types: tuple[Type, ...]) -> Captured:
        given = replace(arguments, types=types[: len(arguments.types)])
        return capture_jvp(definition, given, matched)

    program, leaves = programs.find((arguments.key, tuple(matched)), whole, definition, capture)
    value, tangent = program.run(leaves, settings())[0]
    return value, tangent


@boundary
def hvp(f: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
    """The Hessian-vector product of a function that returns one number: how its gradient changes along the tangents.

    One product for each argument whose tangent is not None, in a tuple unless it is the only one.
    """
    primals, tangents = checked(primals, tangents)
    chosen = tuple(number for number, tangent in enumerate(tangents) if tangent is not None)
    if not chosen:
        raise UndertowError("ut.hvp needs a tangent", hint="pass a direction for at least one argument")
    gradient = grad(f, argnums=chosen[0] if len(chosen) == 1 else chosen)
    return jvp(gradient, primals, tangents)[1]
