"""Scatter-add: the gradients of slices and lookups.

Places are named as in the operators that pick elements; those that are named twice get both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.attributes import AXIS, BOUNDS, SHAPE
from undertow.ops.faults import row_outside, unless_sized
from undertow.ops.gradient import Applied, Cotangents, Derivative, Tangents, linear, the
from undertow.ops.index import check_index, out_of_range, slices
from undertow.ops.op import Op, Value
from undertow.ops.rules import (
    NUMBERS,
    check_axis,
    check_dtypes,
    check_kind,
    may_be_equal,
    new_shape,
    shapes_differ,
    sized,
)
from undertow.ops.term import Term, apply, zeros_like
from undertow.types import Type, show_shape

# -- scatter_add, add_along_axis -----------------------------------------------------------------------------


def _check_adding(name: str, types: Sequence[Type], attrs: Attrs) -> int:
    """The axis, where the operands can be an array, indices along it, and updates."""
    x, indices, updates = types
    axis = attrs.integer("axis")
    check_dtypes(name, (x, updates), NUMBERS)
    check_axis(name, axis, x)
    check_index(name, indices, scalars=False)
    return axis


def _scatter_add_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, indices, updates = types
    axis = _check_adding("scatter_add", types, attrs)
    wanted = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if not may_be_equal(wanted, updates.shape):
        raise TypeMismatch(
            f"scatter_add cannot add {updates} to {x} at {indices}",
            hint=f"the updates must have the shape that ut.take returns, {show_shape(wanted)}",
        )
    if x.shape[axis] == 0 and indices.is_static and 0 not in indices.shape:
        raise TypeMismatch(f"axis {axis} of {x} has no elements to add to")
    return (x,)


def _scatter_add(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, indices, updates = values
    axis = attrs.integer("axis")
    if updates.shape != x.shape[:axis] + indices.shape + x.shape[axis + 1 :]:
        raise shapes_differ("scatter_add", values)
    return _added(values, axis, (slice(None),) * axis + (indices,))


def _added(values: Sequence[Value], axis: int, where: Any) -> tuple[Value, ...]:
    """X with the updates added at some places, which the indices name along an axis."""
    x, indices, updates = values
    out = np.array(x, copy=True)
    try:
        np.add.at(out, where, updates)
    except IndexError:
        raise out_of_range(x, (axis,), (indices,)) from None
    return (out,)


def _add_along_axis_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, indices, updates = types
    axis = _check_adding("add_along_axis", types, attrs)
    around = (*indices.shape[:axis], x.shape[axis], *indices.shape[axis + 1 :])
    if not may_be_equal(around, x.shape) or not may_be_equal(indices.shape, updates.shape):
        raise TypeMismatch(
            f"add_along_axis cannot add {updates} to {x} at {indices}",
            hint=f"each update needs an index, and the shapes must be equal except along axis {axis} of x",
        )
    return (x,)


def _add_along_axis(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, indices, updates = values
    axis = attrs.integer("axis")
    if (
        updates.shape != indices.shape
        or x.shape != indices.shape[:axis] + x.shape[axis : axis + 1] + indices.shape[axis + 1 :]
    ):
        raise shapes_differ("add_along_axis", values)
    key: list[Any] = list(np.ogrid[tuple(slice(n) for n in indices.shape)])
    key[axis] = indices
    return _added(values, axis, tuple(key))


# -- unslice -------------------------------------------------------------------------------------------------


def _unslice_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, cuts = types[0], slices(attrs)
    check_kind("unslice", x, NUMBERS)
    shape = sized("unslice", types, attrs)
    if len(cuts) != len(shape) or any(cut.step == 0 for cut in cuts):
        raise TypeMismatch(
            f"{len(cuts)} slices do not fit the shape {show_shape(shape)}",
            hint="write one for each axis, with a step other than 0",
        )
    room = tuple(
        len(range(*cut.indices(d))) if isinstance(d, int) else None for cut, d in zip(cuts, shape, strict=True)
    )
    if not may_be_equal(x.shape, room):
        raise TypeMismatch(f"{x} does not fit a slice {show_shape(room)} of {show_shape(shape)}")
    return (x.with_shape(shape),)


def _unslice(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x = values[0]
    shape = new_shape(values, attrs)
    out = np.zeros(shape, x.dtype)
    key: Any = (*slices(attrs), ...)
    place = out[key]
    if place.shape != x.shape:
        raise Fault(
            f"shape {show_shape(x.shape)} does not fit a slice of shape {show_shape(place.shape)}", kind=ValueError
        )
    place[...] = x
    return (out[()],)


# -- derivatives ---------------------------------------------------------------------------------------------


def _adding(picked: str) -> Derivative:
    """The rows of an operator that adds updates where the operator `picked` would look."""

    def grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
        into, _, updates = at.wanted
        return [the(g) if into else None, None, apply(picked, the(g), at.x[1], **at.attrs) if updates else None]

    def tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
        x, indices, _ = at.x
        into, _, updates = t
        if updates is None:
            return [into]
        return [at.again(zeros_like(x) if into is None else into, indices, updates)]

    return Derivative(grad, tangent)


def _unslice_back(at: Applied, g: Term) -> Term:
    return apply("slice", g, **{name: at.attrs[name] for name in ("starts", "stops", "steps")})


ROWS: tuple[Op, ...] = (
    Op(
        "scatter_add", 3, _scatter_add_rule, _scatter_add,
        "x with updates added at what `take` reads; operands: x, indices, updates; repeated indices add up",
        _adding("take"), faults=row_outside, attrs=AXIS, is_costly=True,
    ),
    Op(
        "add_along_axis", 3, _add_along_axis_rule, _add_along_axis,
        "x with updates added at what `take_along_axis` reads; operands: x, indices, updates; repeated indices add up",
        _adding("take_along_axis"), faults=row_outside, attrs=AXIS,
    ),
    Op(
        "unslice", None, _unslice_rule, _unslice,
        "zeros of `shape` with x at the elements that `slice` with `starts`, `stops`, `steps` reads; "
        "operands: x, a size for each None",
        linear(_unslice_back), faults=unless_sized, attrs={**BOUNDS, **SHAPE},
    ),
)  # fmt: skip
