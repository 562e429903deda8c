"""Explicit control flow: `ut.cond`, `ut.while_loop`, `ut.map`. Outside a capture they simply run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, brief
from undertow.frontend.control.body import Shared, graph_loop, graph_map
from undertow.frontend.control.mapped import as_mapped, calls_of, stacked_results
from undertow.frontend.interpret.calls import SPECIAL, Interpreter
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.syntax.calling import refuse_wrong_arguments
from undertow.frontend.syntax.source import Env
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe, leaf_type
from undertow.frontend.values.traced import FUNCTIONS, Traced, context, is_traced
from undertow.tracebacks import boundary
from undertow.types import said


def shared(value: Any) -> Shared:
    """Mark an argument of `map` as not mapped: every call gets the whole value."""
    return Shared(value)


@boundary
def cond(pred: Any, then: Callable[..., Any], other: Callable[..., Any], *operands: Any) -> Any:
    """`then(*operands)` where `pred` is true, else `other(*operands)`; only that one runs.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 5)
    6
    """
    current = context()
    if current is None or current.builder is None:
        return _apply(then if _is_true(pred) else other, operands)
    interp = current.session.interpreter
    return drive(current.session.until_known(lambda: _cond(interp, [pred, then, other, *operands], {}, None)))


def _cond(interp: Interpreter, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) < 3 or kwargs:
        raise CaptureError(
            "ut.cond takes a condition, two functions and their arguments",
            hint="write ut.cond(x > 0, lambda: a, lambda: b)",
        )
    pred, then, other, *operands = args
    truth = interp.truth(pred)
    if not isinstance(truth, Traced):
        return interp.call(then if truth else other, operands, {}, env)
    return interp.choose(
        truth, lambda: interp.call(then, operands, {}, env), lambda: interp.call(other, operands, {}, env), env
    )


def _apply(function: Any, args: Sequence[Any]) -> Any:
    """Call a user's function, outside any capture."""
    if not callable(function):
        raise CaptureError(f"{brief(function)} is not a function", hint="pass a function, as in lambda x: x + 1")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a C function without a signature
        return function(*args)
    refuse_wrong_arguments(getattr(function, "__name__", "it"), signature, args, {}, None)
    return function(*args)


def _is_true(value: Any) -> bool:
    if isinstance(value, np.ndarray) and value.ndim:
        raise TypeMismatch(
            f"the condition must be a single bool, not {said(leaf_type(value))}",
            hint="reduce it with ut.any(x) or ut.all(x), or choose per element with ut.where",
        )
    return bool(value)


@boundary
def while_loop(test: Callable[[Any], Any], body: Callable[[Any], Any], initial: Any) -> Any:
    """Apply `body` to the value while `test` of it is true.

    >>> while_loop(lambda x: x < 100, lambda x: x * 2, 3)
    192
    """
    current = context()
    if current is None or current.builder is None:
        value = initial
        while _is_true(_apply(test, [value])):
            value = _apply(body, [value])
        return value
    return drive(_while_loop(current.session.interpreter, [test, body, initial], {}, None))


def _while_loop(interp: Interpreter, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) != 3 or kwargs:
        raise CaptureError(
            "ut.while_loop takes a test, a body and an initial value",
            hint="write ut.while_loop(lambda x: x < 10, lambda x: x * 2, start)",
        )
    test, body, initial = args
    leaves, structure = tree.flatten(initial, is_traced)

    def header(params: list[Traced]) -> Work:
        value = yield interp.call(test, [tree.unflatten(structure, params)], {}, env)
        truth = interp.truth(value)
        if not isinstance(truth, Traced):
            raise CaptureError(
                "the test of this loop does not depend on the loop's value", hint="test the value: lambda x: x > 0"
            )
        return truth

    def step(params: list[Traced]) -> Work:
        value = yield interp.call(body, [tree.unflatten(structure, params)], {}, env)
        found, after = tree.flatten(value, is_traced)
        if after != structure:
            raise TypeMismatch(
                f"the body of ut.while_loop takes {describe(initial)}, but returns {describe(value)}",
                hint="return a value of the same structure",
            )
        return found

    names = tree.paths(initial, "value", is_traced)
    before = interp.ctx.open_builder.effect
    results = yield graph_loop(interp.ctx, leaves, names, header, step)
    if results is None:
        # The test acts on the world, so it becomes part of the step.
        def test_and_step(params: list[Traced]) -> Work:
            truth = yield header(params[1:])

            def go_on() -> Work:
                return [True, *(yield step(params[1:]))]

            return (yield interp.choose(truth, go_on, lambda: [False, *params[1:]], env))

        interp.ctx.open_builder.effect = before
        names = ["going", *names]
        results = yield graph_loop(interp.ctx, [True, *leaves], names, lambda params: params[0], test_and_step)
        del results[0]
    return tree.unflatten(structure, results)


@boundary
def map(function: Callable[..., Any], *arrays: Any) -> Any:
    """`function` applied to every element along the leading axis of the arrays, in parallel; results are stacked.

    Over no elements, dimensions of a result that are known at capture stay, and those known only at run time are 0.

    >>> map(lambda x: x * x, np.array([1, 2, 3]))
    array([1, 4, 9])
    """
    current = context()
    if current is None or current.builder is None:
        return _map_now(function, arrays)
    return drive(_map(current.session.interpreter, [function, *arrays], {}, None))


def _map_now(function: Callable[..., Any], arrays: Sequence[Any]) -> Any:
    if hasattr(type(function), "__undertow_definition__"):
        return function.map(*arrays)  # type: ignore[attr-defined]
    if not callable(function) or not arrays:
        raise _no_map()
    results = [_apply(function, call) for call in calls_of(arrays)]
    if not results:
        raise TypeMismatch(
            "ut.map over an empty array cannot tell the type of its result outside a captured function",
            hint="decorate it with @ut.function",
        )
    return stacked_results(results)


def _no_map() -> CaptureError:
    return CaptureError("ut.map takes a function and one or more arrays", hint="write ut.map(lambda a, b: a * b, x, y)")


def _map(interp: Interpreter, args: Sequence[Any], kwargs: dict[str, Any], env: Env | None) -> Work:
    if len(args) < 2 or kwargs:
        raise _no_map()
    function, *arrays = args
    arrays = [as_mapped(array) for array in arrays]
    return graph_map(interp.ctx, arrays, lambda values: interp.call(function, values, {}, env))


FUNCTIONS["while_loop"] = while_loop  # for functions below this layer
SPECIAL.update({cond: _cond, while_loop: _while_loop, map: _map})
