"""Gradients of calls: a `gradient` node beside the call turns cotangents of its results into those of its arguments.

The gradient stands beside the call, and a call has only one; a second gradient needs its own call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend.functions.creation import zeros_like
from undertow.frontend.interpret.drive import Work, drive
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.definition import Arguments, Definition, take_arguments
from undertow.frontend.trace.rows_only import only_rows
from undertow.frontend.trace.session import Session
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe
from undertow.frontend.values.operands import as_weak, dims, flags_of
from undertow.frontend.values.rows import IndexedRows
from undertow.frontend.values.traced import Traced, constant, emit, is_traced, operand
from undertow.ir.graph import Attrs, Operand, Port
from undertow.ir.sparse import rows_types, sparse_attr
from undertow.types import Type, f64, said


@dataclass(frozen=True, slots=True, eq=False)
class DifferentiableCall:
    """A call that has been written, and how to write its gradient."""

    session: Session
    definition: Definition
    args: list[Any]
    kwargs: dict[str, Any]
    arguments: Arguments
    value: Any
    builder: Builder
    region: int
    number: int  # of the call node

    def floats(self, indices: Sequence[int]) -> list[int]:
        """Those of these arguments that are floats."""
        return [index for index in indices if self.arguments.types[index].dtype.is_inexact]

    def refuse_integers(self, indices: Sequence[int]) -> None:
        for index in indices:
            type_ = self.arguments.types[index]
            if not type_.dtype.is_inexact:
                name = f"`{self.arguments.names[index]}` of `{self.definition.name}`"
                raise TypeMismatch(
                    f"{name} is {said(type_)}: only floats have gradients",
                    hint="pass a float, as in 3.0, or differentiate with respect to other arguments: argnums=...",
                )

    def gradient(self, cotangents: dict[int, Operand], wanted: Sequence[int], sparse_rows: bool = False) -> list[Any]:
        """Write the gradient: from cotangents by result to a cotangent for each of these arguments.

        With `sparse_rows`, the cotangent of an argument that is only looked up by rows is IndexedRows.
        """
        builder = self.builder
        call = builder.nodes[self.number]
        takes = self.session.argument_types(call.attrs.text("callee"))
        looked_up = only_rows(self.session.graphs, call.attrs.text("callee")) if sparse_rows else ()
        sparse = tuple(index for index in wanted if index in looked_up)
        types: list[Type] = []
        for index in wanted:
            type_ = takes[index].erased()
            types += rows_types(type_) if index in sparse else [type_]
        inputs = [Port(self.number, min(cotangents)), *cotangents.values()]
        attrs = Attrs(given=tuple(cotangents), wanted=tuple(wanted), **sparse_attr(sparse))
        name = f"d_{call.name.rsplit('/', 1)[-1]}"
        number = builder.add("gradient", inputs, tuple(types), attrs, self.session.ctx.span, name)
        outputs = (Traced(builder, Port(number, k)) for k in range(len(types)))
        weak = flags_of(self.arguments.weak, self.arguments.leaves)
        return [
            IndexedRows(next(outputs), next(outputs), dims(self.arguments.leaves[index]))
            if index in sparse
            else as_weak(next(outputs))
            if weak[index] and takes[index].dtype is f64
            else next(outputs)
            for index in wanted
        ]


def write_call(session: Session, definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Work:
    """Write a call that can be differentiated. What it changes are copies of its arguments."""
    arguments = take_arguments(definition, args, kwargs)
    taken, named = copies(session, (list(args), kwargs))
    value = yield session.call(definition, taken, named)
    leaves, _ = tree.flatten(value, is_traced)
    if not leaves:
        raise CaptureError(
            f"`{definition.name}` returns nothing to differentiate",
            hint="return the number to differentiate",
        )
    builder = session.ctx.open_builder
    number = builder.origin(leaves[0].port).node
    assert builder.nodes[number].op == "call"
    return DifferentiableCall(
        session, definition, list(args), kwargs, arguments, value, builder, builder.region, number
    )


def copies(session: Session, values: Any) -> Any:
    """The same values with arrays of their own in the current graph, for a function that may change them."""
    leaves, structure = tree.flatten(values, is_traced)
    if not any(map(_is_array, leaves)):
        return values
    own = [emit("identity", [leaf])[0] if _is_array(leaf) else leaf for leaf in leaves]
    return session.interpreter.owned.own_containers(tree.unflatten(structure, own))


def _is_array(value: Any) -> bool:
    return isinstance(value, Traced) and value.type.rank > 0


def scalar_of(value: Any, name: str) -> Traced:
    """The single float to differentiate."""
    if not isinstance(value, Traced):
        raise TypeMismatch(
            f"`{name}` returns {describe(value)}, but a gradient is taken of a single number",
            hint="return only the number, or use has_aux=True to return the number and something else",
        )
    if not value.type.dtype.is_inexact:
        raise TypeMismatch(
            f"`{name}` returns {said(value.type)}: only floats have gradients",
            hint="compute with floats; ut.astype(x, ut.f64) converts",
        )
    if value.type.dtype.kind == "complex":
        raise TypeMismatch(
            f"`{name}` returns {said(value.type)}: a gradient is taken of a real number",
            hint="return z.real, z.imag or abs(z); ut.jvp gives the derivative of a function that is holomorphic",
        )
    if value.type.rank:
        raise TypeMismatch(
            f"`{name}` returns {said(value.type)}, but a gradient is taken of a single number",
            hint="reduce it, as in ut.sum(x), or pass a cotangent: value, back = ut.vjp(f, ...)",
        )
    return value


# Of each argument: the numbers of its leaves among all those that the call takes, and its structure.
Shapes = Sequence[tuple[Sequence[int], tree.Structure]]


@dataclass(slots=True, eq=False)
class Pullback:
    """What `vjp` returns beside the value, inside a capture: from cotangents of results to those of arguments."""

    call: DifferentiableCall
    skipped: int  # arguments that a method is bound to
    shapes: Shapes
    is_used: bool = False
    __undertow_static__: ClassVar[bool] = True  # no container of values, though a dataclass

    def __call__(self, cotangents: Any) -> tuple[Any, ...]:
        call, session = self.call, self.call.session
        is_there = session.ctx.builder is call.builder and call.builder.region == call.region
        if self.is_used or not is_there:  # a call has one gradient, in its own region
            call = drive(write_call(session, call.definition, call.args, call.kwargs))
        self.is_used = True
        return pull_back(call, cotangents, self.shapes)[self.skipped :]


def pull_back(call: DifferentiableCall, cotangents: Any, shapes: Shapes) -> tuple[Any, ...]:
    """Write the gradient for these cotangents: containers of these shapes, with None for non-floats."""
    name = call.definition.name
    results, structure = tree.flatten(call.value, is_traced)
    apart = tree.along(structure, cotangents)
    if apart is None or any(tree.children(cotangent) is not None for cotangent in apart):
        raise TypeMismatch(
            f"the cotangent is {describe(cotangents)}, but `{name}` returns {describe(call.value)}",
            hint="pass a cotangent of the same structure, as in back(ut.ones_like(value))",
        )
    by_result: dict[int, Operand] = {}
    for result, cotangent in zip(results, apart, strict=True):
        if cotangent is not None and result.type.dtype.is_inexact:
            by_result[result.port.index] = operand(_fit(cotangent, result.type, name))
    wanted = [k for k, t in enumerate(call.arguments.types) if t.dtype.is_inexact]
    made: list[Any] = [None] * len(call.arguments.types)
    if by_result and wanted:
        for index, value in zip(wanted, call.gradient(by_result, wanted), strict=True):
            made[index] = value
    else:
        for index in wanted:
            made[index] = zeros_like(call.arguments.leaves[index])
    parts: list[Any] = []
    for indices, own in shapes:
        bare = tuple(_NOTHING if token[0] == "static" else token for token in own)
        parts.append(tree.unflatten(bare, [made[index] for index in indices]))
    return tuple(parts)


_NOTHING: tree.Token = ("static", tree.Identity(None))


def _fit(cotangent: Any, type_: Type, name: str) -> Any:
    value = cotangent if isinstance(cotangent, Traced) else constant(cotangent, type_.dtype)
    held = value.type if isinstance(value, Traced) else Type(type_.dtype, np.shape(value))
    if not type_.accepts(held):
        raise TypeMismatch(
            f"the cotangent is {said(held)}, but `{name}` returns {said(type_)}",
            hint="pass one of the same dtype and shape",
        )
    return value
