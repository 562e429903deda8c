"""Assignment to a part of an array: x with other values at what an operator of `index.py` reads.

`put` is the counterpart of `index`, `put_slice` of `slice`, `put_between` of `slice_between`, `put_rows` of `take`. The
result is a new value; where nobody else holds x, an engine writes into it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.attributes import AXES, AXIS, BOUNDS, is_integer
from undertow.ops.faults import is_outside, unless_static
from undertow.ops.gradient import Applied, Cotangents, Derivative, Tangents, the
from undertow.ops.index import out_of_range, slices
from undertow.ops.op import CATALOGUE, Op, Value
from undertow.ops.rules import may_be_equal
from undertow.ops.term import Term, apply, equal, expand_dims, filled, positions, size, where, zeros_like
from undertow.types import Type, show_shape

# -- type rules: the counterpart says what the new values must look like ---------------------------------------


def _rule(reads: str) -> Callable[[Sequence[Type], Attrs], tuple[Type, ...]]:
    """The rule of an operator that writes what `reads` would read. Operands: x, the new values, where."""

    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x, value, *places = types
        (part,) = CATALOGUE[reads].type([x, *places], attrs)
        if value.dtype != x.dtype or not may_be_equal(value.shape, part.shape):
            raise TypeMismatch(
                f"{value} cannot replace a part of {x}, which is {part}", hint="shape and dtype must fit"
            )
        return (x,)

    return rule


def _written(x: Value, key: Any, value: Value) -> tuple[Value, ...]:
    """X with a value at a key. (NumPy would broadcast the value.)"""
    out = np.array(x, copy=True)
    place = out[key]
    if np.shape(place) != np.shape(value):
        raise Fault(
            f"an array of shape {show_shape(np.shape(value))} cannot replace a part of shape "
            f"{show_shape(np.shape(place))}",
            hint="test the lengths first",
            kind=ValueError,
        )
    out[key] = value
    return (out,)


def _put(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, value, *indices = values
    key: list[Any] = [slice(None)] * x.ndim
    for axis, index in zip(attrs.integers("axes"), indices, strict=True):
        key[axis] = int(index)
    try:
        return _written(x, tuple(key), value)
    except IndexError:
        raise out_of_range(x, attrs.integers("axes"), indices) from None


def _put_between(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, value, start, stop = values
    cut = slice(int(start), int(stop), attrs.integer("step"))
    return _written(x, (slice(None),) * attrs.integer("axis") + (cut,), value)


def _put_rows(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, rows, indices = values
    axis = attrs.integer("axis")
    try:
        return _written(x, (slice(None),) * axis + (indices,), rows)
    except IndexError:
        raise out_of_range(x, (axis,), (indices,)) from None


def _element_outside(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    return any(is_outside(i, types[0].shape[a]) for a, i in zip(attrs.integers("axes"), known[2:], strict=True))


def _row_outside(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    return is_outside(known[2], types[0].shape[attrs.integer("axis")])


# -- derivatives: what was replaced has no influence, what replaced it has all ---------------------------------


def _replacing(read: Callable[[Applied, Term], Term]) -> Derivative:
    """The rows of an operator whose new values get what `read` finds in the cotangent."""

    def grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
        value, places = at.x[1], at.x[2:]
        return [
            at.again(the(g), zeros_like(value), *places) if at.wanted[0] else None,
            read(at, the(g)) if at.wanted[1] else None,
            *[None] * len(places),
        ]

    def tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
        parts = [zeros_like(x) if part is None else part for x, part in zip(at.x, t[:2], strict=False)]
        return [at.again(*parts, *at.x[2:])]

    return Derivative(grad, tangent)


def _read_rows(at: Applied, g: Term) -> Term:
    """Of rows that name one place, the last has replaced it."""
    x, rows, indices = at.x
    axis = at.attrs.integer("axis")
    count = size(indices, 0)
    numbers = positions(count, indices)
    winners = apply("put_rows", filled(0, [size(x, axis)], numbers), numbers, indices, axis=0)
    is_last = equal(apply("take", winners, indices, axis=0), numbers)
    read = apply("take", g, indices, axis=axis)
    return where(expand_dims(is_last, *range(1, rows.type.rank - axis)), read, zeros_like(read))


def _put_rows_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    if len(types) == 3 and types[2].rank != 1:
        raise TypeMismatch(f"rows cannot be named by {types[2]}", hint="the indices must be a list of integers")
    return _rule("take")(types, attrs)


ROWS: tuple[Op, ...] = (
    Op(
        "put", None, _rule("index"), _put,
        "x with a value where `index` reads; operands: x, the value, an index for each of `axes`",
        _replacing(lambda at, g: apply("index", g, *at.x[2:], **at.attrs)),
        faults=_element_outside, attrs=AXES, is_costly=True,
    ),
    Op(
        "put_slice", 2, _rule("slice"), lambda values, attrs: _written(values[0], slices(attrs), values[1]),
        "x with values where `slice` reads; operands: x, the values",
        _replacing(lambda at, g: apply("slice", g, **at.attrs)), faults=unless_static, attrs=BOUNDS, is_costly=True,
    ),
    Op(
        "put_between", 4, _rule("slice_between"), _put_between,
        "x with values where `slice_between` reads; operands: x, the values, start, stop",
        _replacing(lambda at, g: apply("slice_between", g, *at.x[2:], **at.attrs)),
        faults=True, attrs={**AXIS, "step": is_integer}, is_costly=True,
    ),
    Op(
        "put_rows", 3, _put_rows_rule, _put_rows,
        "x with rows where `take` reads; operands: x, the rows, a list of indices; the last row for a place counts",
        _replacing(_read_rows), faults=_row_outside, attrs=AXIS, is_costly=True,
    ),
)  # fmt: skip
