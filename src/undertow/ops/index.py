"""Picking elements: slices, single elements, rows by number, and adding into them.

An index counts from the end where it is negative, as in Python. A slice is clamped to what there is; any other
index that is out of range is a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.op import Op, Value
from undertow.ops.rules import NUMBERS, check_axis, check_dtypes, meet, shapes_differ
from undertow.types import Dim, Type, show_shape


def _check_index(name: str, type: Type, scalars: bool) -> None:
    if type.dtype.kind != "int" or (scalars and type.shape):
        wanted = "an integer scalar" if scalars else "an array of integers"
        raise TypeMismatch(f"{name} by {type}", hint=f"the index must be {wanted}; ut.astype(i, ut.i64) converts")


def _out_of_range(x: Value, axes: Sequence[int], indices: Sequence[Value]) -> Fault:
    """The fault of the first index that the array does not have."""
    for axis, which in zip(axes, indices, strict=True):
        length, numbers = x.shape[axis], np.asarray(which)
        wrong = numbers[(numbers < -length) | (numbers >= length)]
        if wrong.size:
            return Fault(
                f"index {int(wrong.flat[0])} is out of range for axis {axis} of length {length}",
                hint=f"indices go from {-length} to {length - 1}: test the index first"
                if length
                else "the array is empty: test its length first",
            )
    return Fault("an index is out of range", hint="test the index first")


# -- slices ------------------------------------------------------------------------------------------------


def slices(attrs: Attrs) -> tuple[slice, ...]:
    """The Python slices of a `slice` node, one for each axis."""
    parts: list[Any] = [attrs["starts"], attrs["stops"], attrs["steps"]]
    return tuple(slice(*bounds) for bounds in zip(*parts, strict=True))


def _slice_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    cuts = slices(attrs)
    if len(cuts) != types[0].rank:
        raise TypeMismatch(f"{len(cuts)} slices of {types[0]}")
    shape: list[Dim] = []
    for cut, d in zip(cuts, types[0].shape, strict=True):
        if cut.step == 0:
            raise TypeMismatch("the step of a slice is 0")
        if isinstance(d, int):
            shape.append(len(range(*cut.indices(d))))
        else:
            shape.append(0 if cut.stop == 0 and (cut.step or 1) > 0 else None)
    return (types[0].with_shape(tuple(shape)),)


def _slice_at_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, start = types
    axis, size = attrs.integer("axis"), attrs.integer("size")
    check_axis("slice_at", axis, x)
    _check_index("slice_at", start, scalars=True)
    length = x.shape[axis]
    if size < 0 or (isinstance(length, int) and size > length):
        raise TypeMismatch(f"{size} elements of axis {axis} of {x}", hint="the size must be from 0 to the length")
    return (x.with_shape((*x.shape[:axis], size, *x.shape[axis + 1 :])),)


def _slice_at(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, start = values[0], int(values[1])
    axis, size = attrs.integer("axis"), attrs.integer("size")
    length = x.shape[axis]
    first = start + length if start < 0 else start
    if not 0 <= first <= length - size:
        raise Fault(
            f"{size} elements from {start} on are out of range for axis {axis} of length {length}",
            hint=f"the start can be from 0 to {length - size}" if length >= size else "",
        )
    return (x[(slice(None),) * axis + (slice(first, first + size),)],)


def _slice_between_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, start, stop = types
    axis = attrs.integer("axis")
    check_axis("slice_between", axis, x)
    _check_index("a slice", start, scalars=True)
    _check_index("a slice", stop, scalars=True)
    if attrs.integer("step") == 0:
        raise TypeMismatch("the step of a slice is 0")
    return (x.with_shape((*x.shape[:axis], None, *x.shape[axis + 1 :])),)


def _slice_between(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, start, stop = values
    cut = slice(int(start), int(stop), attrs.integer("step"))
    return (x[(slice(None),) * attrs.integer("axis") + (cut,)],)


# -- elements ----------------------------------------------------------------------------------------------


def _index_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, axes = types[0], attrs.integers("axes")
    if len(types) != 1 + len(axes) or len(set(axes)) != len(axes):
        raise TypeMismatch(f"{len(types) - 1} indices for axes {axes}")
    for axis, index in zip(axes, types[1:], strict=True):
        check_axis("index", axis, x)
        _check_index("index", index, scalars=True)
        if x.shape[axis] == 0:
            raise TypeMismatch(f"axis {axis} of {x} has no elements to index")
    return (x.with_shape(tuple(d for a, d in enumerate(x.shape) if a not in axes)),)


def _index(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x = values[0]
    key: list[Any] = [slice(None)] * x.ndim
    for axis, index in zip(attrs.integers("axes"), values[1:], strict=True):
        key[axis] = int(index)
    try:
        return (x[tuple(key)],)
    except IndexError:
        raise _out_of_range(x, attrs.integers("axes"), values[1:]) from None


def _take_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, indices = types
    axis = attrs.integer("axis")
    check_axis("take", axis, x)
    _check_index("take", indices, scalars=False)
    if x.shape[axis] == 0 and 0 not in indices.shape:
        raise TypeMismatch(f"axis {axis} of {x} has no elements to take")
    return (x.with_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)


def _take(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    try:
        return (np.take(values[0], values[1], attrs.integer("axis")),)
    except IndexError:
        raise _out_of_range(values[0], (attrs.integer("axis"),), values[1:]) from None


def _gather_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, indices = types
    axis = attrs.integer("axis")
    check_axis("take_along_axis", axis, x)
    _check_index("take_along_axis", indices, scalars=False)
    if indices.rank != x.rank:
        raise TypeMismatch(f"gather from {x} by {indices}", hint="both must have the same number of axes; see ut.take")
    return (
        x.with_shape(
            tuple(
                i if a == axis else meet("take_along_axis", d, i)
                for a, (d, i) in enumerate(zip(x.shape, indices.shape, strict=True))
            )
        ),
    )


def _gather(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, indices = values
    axis = attrs.integer("axis")
    if x.shape[:axis] + x.shape[axis + 1 :] != indices.shape[:axis] + indices.shape[axis + 1 :]:
        raise shapes_differ("take_along_axis", values)
    try:
        return (np.take_along_axis(x, indices, axis),)
    except IndexError:
        raise _out_of_range(x, (axis,), (indices,)) from None


def _scatter_add_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, indices, updates = types
    axis = attrs.integer("axis")
    check_dtypes("scatter_add", (x, updates), NUMBERS)
    check_axis("scatter_add", axis, x)
    _check_index("scatter_add", indices, scalars=False)
    wanted = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    if not Type(x.dtype, wanted).accepts(updates) and not updates.accepts(Type(x.dtype, wanted)):
        raise TypeMismatch(
            f"scatter_add of {updates} into {x} at {indices}",
            hint=f"the updates must have the shape of what ut.take would give, {show_shape(wanted)}",
        )
    return (x,)


def _scatter_add(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, indices, updates = values
    axis = attrs.integer("axis")
    if updates.shape != x.shape[:axis] + indices.shape + x.shape[axis + 1 :]:
        raise shapes_differ("scatter_add", values)
    out = np.array(x, copy=True)
    where: Any = (slice(None),) * axis + (indices,)
    try:
        np.add.at(out, where, updates)
    except IndexError:
        raise _out_of_range(x, (axis,), (indices,)) from None
    return (out,)


ROWS: tuple[Op, ...] = (
    Op(
        "slice",
        1,
        _slice_rule,
        lambda values, attrs: (values[0][slices(attrs)],),
        "x[start:stop:step] for each axis, from the tuples `starts`, `stops`, `steps`; None as in Python",
    ),
    Op(
        "slice_at",
        2,
        _slice_at_rule,
        _slice_at,
        "`size` elements of `axis`, all of them there, from the second operand on",
        faults=True,
    ),
    Op(
        "slice_between",
        3,
        _slice_between_rule,
        _slice_between,
        "x[start:stop:`step`] along `axis`; operands: x, start, stop; the length is known at run time",
    ),
    Op(
        "index",
        None,
        _index_rule,
        _index,
        "one element of each of `axes`, which go away; operands: x, an index for each",
        faults=True,
    ),
    Op("take", 2, _take_rule, _take, "the elements of `axis` with the numbers in the second operand", faults=True),
    Op(
        "take_along_axis",
        2,
        _gather_rule,
        _gather,
        "for each place of the second operand, the element of x there that it names along `axis`",
        faults=True,
    ),
    Op(
        "scatter_add",
        3,
        _scatter_add_rule,
        _scatter_add,
        "x with updates added where `take` would look; operands: x, indices, updates; repeated indices add up",
        faults=True,
    ),
)
