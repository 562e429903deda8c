"""Indexing: slices, single elements, rows by number.

An index counts from the end where it is negative, as in Python. A slice is clamped to what there is; any other
index that is out of range is a fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.attributes import AXES, AXIS, BOUNDS, is_integer, is_size
from undertow.ops.faults import element_outside, row_outside, start_outside, unless_static
from undertow.ops.gradient import Applied, RowCotangent, linear
from undertow.ops.op import Op, Value
from undertow.ops.rules import check_axis, meet, shapes_differ
from undertow.ops.term import Term, apply, cast, filled, positions, shaped, size, sizes, zeros_like
from undertow.types import Dim, Type, i64


def check_index(name: str, type: Type, scalars: bool) -> None:
    """An index must be of integers."""
    if type.dtype.kind != "int" or (scalars and type.shape):
        wanted = "an integer scalar" if scalars else "an array of integers"
        raise TypeMismatch(
            f"{name} cannot index by {type}", hint=f"the index must be {wanted}; ut.astype(i, ut.i64) converts"
        )


def out_of_range(x: Value, axes: Sequence[int], indices: Sequence[Value]) -> Fault:
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
                kind=IndexError,
            )
    return Fault("an index is out of range", hint="test the index first", kind=IndexError)


# -- slices ------------------------------------------------------------------------------------------------


def slices(attrs: Attrs) -> tuple[slice, ...]:
    """The Python slices of a `slice` node, one for each axis."""
    parts: list[Any] = [attrs["starts"], attrs["stops"], attrs["steps"]]
    return tuple(slice(*bounds) for bounds in zip(*parts, strict=True))


def _slice_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    cuts = slices(attrs)
    if len(cuts) != types[0].rank:
        raise TypeMismatch(f"{len(cuts)} slices do not fit {types[0]}")
    shape: list[Dim] = []
    for cut, d in zip(cuts, types[0].shape, strict=True):
        if cut.step == 0:
            raise TypeMismatch("the step of a slice must not be 0")
        if isinstance(d, int):
            shape.append(len(range(*cut.indices(d))))
        else:
            shape.append(0 if cut.stop == 0 and (cut.step or 1) > 0 else None)
    return (types[0].with_shape(tuple(shape)),)


def _slice_at_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, start = types
    axis, size = attrs.integer("axis"), attrs.integer("size")
    check_axis("slice_at", axis, x)
    check_index("slice_at", start, scalars=True)
    length = x.shape[axis]
    if size < 0 or (isinstance(length, int) and size > length):
        raise TypeMismatch(
            f"{size} elements do not fit axis {axis} of {x}", hint="the size must be from 0 to the length"
        )
    return (x.with_shape((*x.shape[:axis], size, *x.shape[axis + 1 :])),)


def _slice_at(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, start = values[0], int(values[1])
    axis, size = attrs.integer("axis"), attrs.integer("size")
    length = x.shape[axis]
    first = start + length if start < 0 else start
    if not 0 <= first <= length - size:
        raise Fault(
            f"{size} elements from {start} are out of range for axis {axis} of length {length}",
            hint=f"the start must be from 0 to {length - size}" if length >= size else "",
            kind=IndexError,
        )
    return (x[(slice(None),) * axis + (slice(first, first + size),)],)


def _slice_between_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, start, stop = types
    axis = attrs.integer("axis")
    check_axis("slice_between", axis, x)
    check_index("a slice", start, scalars=True)
    check_index("a slice", stop, scalars=True)
    if attrs.integer("step") == 0:
        raise TypeMismatch("the step of a slice must not be 0")
    return (x.with_shape((*x.shape[:axis], None, *x.shape[axis + 1 :])),)


def _slice_between(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, start, stop = values
    cut = slice(int(start), int(stop), attrs.integer("step"))
    return (x[(slice(None),) * attrs.integer("axis") + (cut,)],)


# -- elements ----------------------------------------------------------------------------------------------


def _index_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, axes = types[0], attrs.integers("axes")
    if len(types) != 1 + len(axes) or len(set(axes)) != len(axes):
        raise TypeMismatch(f"{len(types) - 1} indices do not fit the axes {axes}")
    for axis, index in zip(axes, types[1:], strict=True):
        check_axis("index", axis, x)
        check_index("index", index, scalars=True)
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
        raise out_of_range(x, attrs.integers("axes"), values[1:]) from None


def _take_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, indices = types
    axis = attrs.integer("axis")
    check_axis("take", axis, x)
    check_index("take", indices, scalars=False)
    if x.shape[axis] == 0 and indices.is_static and 0 not in indices.shape:
        raise TypeMismatch(f"axis {axis} of {x} has no elements to take")
    return (x.with_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])),)


def _take(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    try:
        return (np.take(values[0], values[1], attrs.integer("axis")),)
    except IndexError:
        raise out_of_range(values[0], (attrs.integer("axis"),), values[1:]) from None


def _compress_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, mask = types
    axis = attrs.integer("axis")
    check_axis("compress", axis, x)
    if mask.dtype.kind != "bool" or mask.rank != 1:
        raise TypeMismatch(f"{mask} cannot be the mask of an axis", hint="it must be a vector of booleans")
    length, wanted = mask.shape[0], x.shape[axis]
    if isinstance(length, int) and isinstance(wanted, int) and length != wanted:
        raise TypeMismatch(
            f"a mask of length {length} does not fit axis {axis} of {x}", hint="it must have the length of that axis"
        )
    return (x.with_shape((*x.shape[:axis], None, *x.shape[axis + 1 :])),)


def _compress(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, mask = values
    axis = attrs.integer("axis")
    if x.shape[axis] != len(mask):
        raise Fault(
            f"a mask of length {len(mask)} does not fit axis {axis} of length {x.shape[axis]}",
            hint="make it of the same array: x[x > 0]",
            kind=IndexError,
        )
    return (np.compress(mask, x, axis),)


def _gather_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    x, indices = types
    axis = attrs.integer("axis")
    check_axis("take_along_axis", axis, x)
    check_index("take_along_axis", indices, scalars=False)
    if indices.rank != x.rank:
        raise TypeMismatch(
            f"{x} cannot be gathered by {indices}", hint="both must have the same number of axes; see ut.take"
        )
    pairs = enumerate(zip(x.shape, indices.shape, strict=True))
    return (x.with_shape(tuple(i if a == axis else meet("take_along_axis", d, i) for a, (d, i) in pairs)),)


def _gather(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x, indices = values
    axis = attrs.integer("axis")
    if x.shape[:axis] + x.shape[axis + 1 :] != indices.shape[:axis] + indices.shape[axis + 1 :]:
        raise shapes_differ("take_along_axis", values)
    try:
        return (np.take_along_axis(x, indices, axis),)
    except IndexError:
        raise out_of_range(x, (axis,), (indices,)) from None


# -- derivatives: what was picked is added back into zeros -----------------------------------------------------


def _put_back(at: Applied, indices: Term, g: Term, op: str = "scatter_add") -> Term:
    return apply(op, zeros_like(at.x[0]), indices, g, axis=at.attrs.integer("axis"))


def _slice_at_back(at: Applied, g: Term) -> Term:
    # A negative start stays right: all `size` elements are there, so none of the numbers reaches 0.
    start = cast(at.x[1], i64)
    return _put_back(at, start + positions(at.attrs.integer("size"), start), g)


def _slice_between_back(at: Applied, g: Term) -> Term:
    x, start, stop = at.x
    numbers = positions(size(x, at.attrs.integer("axis")), x)
    return _put_back(at, apply("slice_between", numbers, start, stop, axis=0, step=at.attrs["step"]), g)


def _compress_back(at: Applied, g: Term) -> Term | RowCotangent:
    x, mask = at.x
    axis = at.attrs.integer("axis")
    places = apply("compress", positions(size(x, axis), x), mask, axis=0)
    return RowCotangent(places, g) if axis == 0 else _put_back(at, places, g)


def _index_back(at: Applied, g: Term) -> Term | RowCotangent:
    """One axis after the other, from the last to the first; the first may be that of a table's rows."""
    x = at.x[0]
    picked = sorted(zip(at.attrs.integers("axes"), at.x[1:], strict=True), key=lambda pair: pair[0])
    gone = [axis for axis, _ in picked]
    lengths = sizes(x)
    for before in reversed(range(len(picked))):
        axis, number = picked[before]
        if axis == 0:
            return RowCotangent(number, g)
        room = [n for a, n in enumerate(lengths) if a not in gone[:before]]
        g = apply("scatter_add", filled(0, room, x), number, g, axis=axis - before)
    return g


ROWS: tuple[Op, ...] = (
    Op(
        "slice", 1, _slice_rule, lambda values, attrs: (values[0][slices(attrs)],),
        "x[start:stop:step] for each axis, from the tuples `starts`, `stops`, `steps`; None as in Python",
        linear(lambda at, g: shaped("unslice", g, sizes(at.x[0]), **at.attrs)), attrs=BOUNDS,
    ),
    Op(
        "slice_at", 2, _slice_at_rule, _slice_at,
        "`size` elements of `axis`, starting at the second operand; all must be in range",
        linear(_slice_at_back), faults=start_outside, is_apart=True, attrs={**AXIS, "size": is_size},
    ),
    Op(
        "slice_between", 3, _slice_between_rule, _slice_between,
        "x[start:stop:`step`] along `axis`; operands: x, start, stop; the length is known at run time",
        linear(_slice_between_back), is_apart=True, attrs={**AXIS, "step": is_integer},
    ),
    Op(
        "index", None, _index_rule, _index,
        "one element of each of `axes`, which are removed; operands: x, an index for each",
        linear(_index_back), faults=element_outside, is_apart=True, attrs=AXES, is_costly=True,
    ),
    Op(
        "take", 2, _take_rule, _take, "the elements of `axis` at the indices in the second operand",
        linear(lambda at, g: RowCotangent(at.x[1], g) if at.attrs["axis"] == 0 else _put_back(at, at.x[1], g)),
        faults=row_outside, is_apart=True, attrs=AXIS,
    ),
    Op(
        "compress", 2, _compress_rule, _compress,
        "the elements of `axis` where the mask, the second operand, is true; the length is known at run time",
        linear(_compress_back), faults=unless_static, attrs=AXIS,
    ),
    Op(
        "take_along_axis", 2, _gather_rule, _gather,
        "for each index in the second operand, the element of x at that index along `axis`",
        linear(lambda at, g: _put_back(at, at.x[1], g, "add_along_axis")), faults=row_outside, attrs=AXIS,
    ),
)  # fmt: skip
