"""Jacobians: a map over the elements of the results, in reverse mode, or of the arguments, in forward mode.

Each lane is a call of the function with its derivative along one direction of the standard basis, so all rows share
waves. In reverse mode the Jacobian of one number is its gradient, and needs no map.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.control.body import graph_map
from undertow.frontend.functions import public as functions
from undertow.frontend.interpret.drive import Work
from undertow.frontend.trace.definition import Check
from undertow.frontend.trace.derivative import Derived, Wanted
from undertow.frontend.trace.pullback import DifferentiableCall, write_call
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe
from undertow.frontend.values.operands import dims
from undertow.frontend.values.traced import Traced, is_traced, operand
from undertow.ir.graph import Operand
from undertow.ir.walk import entered_by, reachable
from undertow.types import said


class Jacobian(Derived):
    """The Jacobian of a function with respect to some arguments: for each result, a container like those."""

    def __init__(self, mode: str, *options: Any) -> None:
        super().__init__(*options)
        self.what = "jacobian"
        self._name = f"jacobian({self.inner.name})"
        self.mode = mode

    def body(self, session: Session, args: list[Any], kwargs: dict[str, Any], check: Check) -> Work:
        wanted: Wanted = yield self.write_wanted(session, args, kwargs)
        answer, aux = self.split(wanted.call.value)
        results, structure = tree.flatten(answer, is_traced)
        for type_ in (*(x.type for x in results), *(wanted.call.arguments.types[k] for k in wanted.leaves)):
            if type_.dtype.kind == "complex":
                raise TypeMismatch(
                    f"the Jacobian of `{self.inner.name}` meets {said(type_)}: it is taken of real numbers",
                    hint="pass and return real and imaginary parts, or use ut.jvp and ut.vjp",
                )
        for result in results:
            if not result.type.dtype.is_inexact:
                raise TypeMismatch(
                    f"`{self.inner.name}` returns {describe(answer)}: {said(result.type)} has no derivative",
                    hint="return floats alone; with has_aux=True, `return y, aux` returns anything else beside them",
                )
        rows = yield (_columns if self.mode == "fwd" else _rows)(session, wanted, results)
        jacobian = tree.unflatten(structure, [self.arrange(wanted, row) for row in rows])
        return (jacobian, aux) if self.has_aux else jacobian


def _rows(session: Session, wanted: Wanted, results: Sequence[Traced]) -> Work:
    """For each result, the derivatives of all its elements by each wanted argument: reverse mode."""
    call = wanted.call
    if not wanted.leaves:
        return [[] for _ in results]
    if len(results) == 1 and not results[0].type.rank:
        one = np.ones((), results[0].type.dtype.numpy)
        return [call.gradient({results[0].port.index: operand(one)}, wanted.leaves)]
    starts = _starts(results)

    def row(values: list[Any]) -> Work:
        again = yield _written_again(session, call)
        cotangents: dict[int, Operand] = {
            result.port.index: operand(_direction(values[0], start, result))
            for start, result in zip(starts, results, strict=False)
        }
        return again.gradient(cotangents, wanted.leaves)

    stacked = yield _map(session, call, starts[-1], row)
    return [
        [_block(x, start, end, dims(result)) for x in stacked]
        for start, end, result in zip(starts, starts[1:], results, strict=False)
    ]


def _columns(session: Session, wanted: Wanted, results: Sequence[Traced]) -> Work:
    """The same by forward mode: a lane for each element of the arguments."""
    call, leaves = wanted.call, [wanted.call.arguments.leaves[index] for index in wanted.leaves]
    if not leaves:
        return [[] for _ in results]
    starts = _starts(leaves)
    numbers = [result.port.index for result in results]

    def column(values: list[Any]) -> Work:
        directions = [_direction(values[0], start, leaf) for start, leaf in zip(starts, leaves, strict=False)]
        callee = yield session.specialize(call.definition, call.arguments)
        value, moving = session.write_call(callee, call.arguments, dict(zip(wanted.leaves, directions, strict=True)))
        held = tree.flatten(value, is_traced)[0]
        floats = [k for k, leaf in enumerate(held) if leaf.type.dtype.is_inexact]
        return [moving[floats.index(number)] for number in numbers]

    stacked = yield _map(session, call, starts[-1], column)
    found: list[list[Any]] = []
    for x in stacked:
        last = functions.moveaxis(x, 0, -1)
        found.append(
            [
                functions.reshape(last[..., start:end], (*dims(last)[:-1], *dims(leaf)))
                for start, end, leaf in zip(starts, starts[1:], leaves, strict=False)
            ]
        )
    return found


def _written_again(session: Session, call: DifferentiableCall) -> Work:
    """The same call, written in a lane: a call has one gradient."""
    return write_call(session, call.definition, call.args, call.kwargs)


def _map(session: Session, call: DifferentiableCall, count: Any, lane: Any) -> Work:
    """A map over numbers up to `count`, whose lanes draw the same random numbers as the call."""
    outer = session.ctx.open_builder
    _refuse_repeated(session, call)

    def with_key(values: list[Any]) -> Work:
        inner = session.ctx.open_builder
        if outer.key is not None:
            inner.key, inner.hands_key_on = session.resolve(Traced(outer, outer.key)), True
        return (yield lane(values))

    return graph_map(session.ctx, [functions.arange(count)], with_key)


def _refuse_repeated(session: Session, call: DifferentiableCall) -> None:
    """Refuse functions that print or assign: each lane would."""
    callee = call.builder.nodes[call.number].attrs.text("callee")
    names = reachable([callee], lambda name: entered_by(session.graphs[name]))
    for node in (node for name in names for node in session.graphs[name].nodes):
        if node.op in _REPEATED:
            raise CaptureError(
                f"`{call.definition.name}` {_REPEATED[node.op]}: a Jacobian would do that for each of its rows",
                node.span,
                hint="move that out of the function; ut.vjp and ut.jvp give single products with the Jacobian",
            )


_REPEATED = {"print": "prints", **dict.fromkeys(("assign", "assign_rows", "update"), "assigns a variable")}


def _starts(values: Sequence[Any]) -> list[Any]:
    """Where the elements of each value begin, counted over all of them; then their number."""
    starts: list[Any] = [0]
    for value in values:
        size: Any = 1
        for length in dims(value):
            size = size * length
        starts.append(starts[-1] + size)
    return starts


def _direction(number: Any, start: Any, like: Any) -> Any:
    """Zeros like a value, and a one if the element of this number is in it."""
    shape = dims(like)
    size = _starts([like])[-1]
    flat = functions.astype(functions.arange(size) == number - start, like.dtype)
    return functions.reshape(flat, shape)


def _block(x: Any, start: Any, end: Any, shape: tuple[Any, ...]) -> Any:
    """Rows from start to end, in the shape of the result that they belong to."""
    return functions.reshape(x[start:end], (*shape, *dims(x)[1:]))
