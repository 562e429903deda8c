"""Arrays made from scalars, of sizes that may be known only at run time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.attributes import MOST_ELEMENTS, SHAPE
from undertow.ops.faults import unless_sized
from undertow.ops.gradient import Applied, Cotangents, Derivative, Tangents, linear_tangent, the
from undertow.ops.op import Op, Value
from undertow.ops.rules import ELEMENTS, REALS, check_dtypes, check_kind, new_shape, sized
from undertow.ops.term import Term, broadcast_like, cast, positions, size, total
from undertow.types import Type


def _fill_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("fill", types[0], ELEMENTS)
    if types[0].shape:
        raise TypeMismatch(f"an array cannot be filled with {types[0]}", hint="use a scalar, or ut.broadcast_to")
    shape = sized("fill", types, attrs)
    if any(isinstance(d, int) and d < 0 for d in shape):
        raise TypeMismatch(f"an array cannot have the shape {shape}", hint="sizes must not be negative")
    return (types[0].with_shape(shape),)


def _fill(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    value = values[0]
    shape = new_shape(values, attrs)
    return (np.full(shape, value, value.dtype) if shape else value,)


def _arange_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    dtype = check_dtypes("arange", types, REALS)
    if any(t.shape for t in types):
        raise TypeMismatch(
            f"arange takes scalars, not {', '.join(map(str, types))}", hint="start, stop and step must be scalars"
        )
    return (Type(dtype, (None,)),)


def _arange(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    start, stop, step = (v.item() for v in values)
    if step == 0:
        raise Fault("the step of arange must not be 0", kind=ZeroDivisionError)
    exact = isinstance(step, int)
    steps = -((start - stop) // step) if exact else (stop - start) / step
    if not steps <= MOST_ELEMENTS:
        raise Fault(f"arange from {start} to {stop} by {step} is too long", kind=ValueError)
    count = math.ceil(steps) if steps > 0 else 0
    dtype = values[0].dtype
    return (values[0] + np.arange(count, dtype=dtype) * values[2],)


# -- derivatives -------------------------------------------------------------------------------------------


def _fill_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    rank = at.y[0].type.rank
    return [total(the(g), range(rank)) if rank else the(g), *[None] * (len(at.x) - 1)]


def _steps(at: Applied) -> Term:
    """0, 1, 2, ... as floats, one for each element of an arange."""
    (y,) = at.y
    return cast(positions(size(y, 0), y), y.type.dtype)


def _arange_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    given, (start, _, step) = the(g), at.wanted
    return [total(given, (0,)) if start else None, None, total(given * _steps(at), (0,)) if step else None]


def _arange_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    start, _, step = t
    stepped = None if step is None else step * _steps(at)
    if start is None or stepped is None:
        return [stepped if start is None else broadcast_like(start, at.y[0])]
    return [start + stepped]


ROWS: tuple[Op, ...] = (
    Op(
        "fill", None, _fill_rule, _fill,
        "an array of `shape` full of the first operand; operands: the value, a size for each None",
        Derivative(_fill_grad, linear_tangent), faults=unless_sized, attrs=SHAPE,
    ),
    Op(
        "arange", 3, _arange_rule, _arange,
        "start, start + step, ... before stop; operands: start, stop, step, which must not be 0",
        Derivative(_arange_grad, _arange_tangent), faults=True,
    ),
)  # fmt: skip
