"""Converts users' arguments to operands: traced or NumPy values of one dtype.

Python numbers are weak: they take the dtype of what they meet, if it can hold their kind. All other values promote.
Arithmetic on booleans is done in i64. Lists are arrays; those that hold traced values are stacked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import TypeMismatch, brief
from undertow.frontend.values.traced import Traced, constant, emit, length, not_a_value, read, stays_weak
from undertow.ops.attributes import MOST_AXES
from undertow.types import (
    DType,
    Type,
    bool_,
    c64,
    dtype_of,
    f64,
    i32,
    i64,
    is_integer,
    promote,
    said,
    weak_dtype,
    weak_kind,
)
from undertow.types import type_of as numpy_type_of


def is_weak(value: object) -> bool:
    """Is it a Python number? (NumPy's f64 is a Python float too, but has a dtype of its own.)"""
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def is_number(value: object) -> bool:
    """Is it a Python integer, float or complex number, known now or at run time? (A bool takes every dtype anyway.)"""
    return stays_weak(value) and value.__class__ is not bool


def flags_of(weak: Sequence[bool], values: Sequence[Any]) -> list[bool]:
    """For each value, whether it is a Python number; those after the last flag are not."""
    return [*weak, *[False] * (len(values) - len(weak))]


def as_weak(value: Any) -> Any:
    """A single number as Python's: it takes the dtype of what it meets. Its own must be i64, f64 or c128."""
    return Traced(value.builder, value.port, is_weak=True) if isinstance(value, Traced) else value.item()


def type_of(value: Any) -> Type:
    """The type of an operand."""
    return value.type if isinstance(value, Traced) else numpy_type_of(value)


def convert(value: Any, dtype: DType) -> Any:
    """An operand converted to a dtype."""
    if (own := type_of(value).dtype) == dtype:
        return value
    if own.kind == "complex" and dtype.kind in ("int", "float"):
        raise TypeMismatch(
            f"{said(type_of(value))} cannot be converted to {dtype}", hint="take x.real, x.imag or abs(x)"
        )
    return emit("cast", [value], dtype=dtype.name)[0]


def number(value: Any, dtype: DType) -> Any:
    """A Python number as a NumPy scalar of a dtype."""
    if dtype is f64 and type(value) is float:
        return np.float64(value)
    try:
        with np.errstate(all="ignore"):  # 1e300 is inf as f32, silently, as in arithmetic
            return dtype.numpy.type(value)
    except OverflowError:
        hint = "convert the other operand: ut.astype(x, ut.i64)" if abs(value) < 2**63 else "use a float: 1e20"
        raise TypeMismatch(f"{brief(value)} does not fit in {dtype}", hint=hint) from None


def as_operand(value: Any, dtype: DType | None = None) -> Any:
    """A traced value as it is, anything else as a NumPy value; converted to a dtype if one is given."""
    value = read(value)
    if is_weak(value):
        value = number(value, weak_dtype(value, dtype))
    elif isinstance(value, (list, tuple)):
        leaves = _leaves(value)
        if any(isinstance(leaf, Traced) for leaf in leaves):
            value = _stacked(value, common_dtype(_prepared(leaves)))
    elif not isinstance(value, (Traced, np.ndarray, np.generic, range)) and not hasattr(value, "__array__"):
        raise not_a_value(value)
    if not isinstance(value, Traced):
        value = constant(value)
    return value if dtype is None else convert(value, dtype)


def _leaves(value: Any) -> list[Any]:
    """What is in nested lists. Depth is user data, and endless where a list contains itself."""
    leaves: list[Any] = []
    stack = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        if not isinstance(item, (list, tuple)):
            leaves.append(read(item))
        elif depth == MOST_AXES:
            what = f"lists are nested more than {MOST_AXES} deep"
            raise TypeMismatch(what, hint=f"an array has at most {MOST_AXES} axes")
        else:
            stack += [(inner, depth + 1) for inner in reversed(item)]
    return leaves


def _stacked(value: Any, dtype: DType) -> Any:
    """Nested lists as one array. (Recursion is as deep as an array has axes: `_leaves` has seen to that.)"""
    if isinstance(value, (list, tuple)):
        return emit("stack", [_stacked(item, dtype) for item in value], axis=0)[0]
    return as_operand(value, dtype)


def common_dtype(values: Sequence[Any]) -> DType:
    """The dtype that Python numbers and operands promote to."""
    strong = [type_of(v).dtype for v in values if not stays_weak(v)]
    common: DType | None = None
    for dtype in strong:
        common = dtype if common is None else promote(common, dtype)
    for value in values:
        if stays_weak(value):
            is_traced = isinstance(value, Traced)
            taken = weak_kind(value.dtype.kind, common) if is_traced else weak_dtype(value, common)
            common = taken if common is None else promote(common, taken)
    assert common is not None, "at least one value"
    return common


def _prepared(values: Sequence[Any]) -> list[Any]:
    return [v if is_weak(v) else as_operand(v) for v in values]


def _traced_dtype(values: Sequence[Any]) -> DType | None:
    """The dtype of traced values that all have the same, and of Python numbers that take it; None if in doubt."""
    common: DType | None = None
    for value in values:
        if value.__class__ is Traced:
            if common is None:
                common = value.type.dtype
            if value.type.dtype is not common:  # though one may be weak, and take the other's
                return None
        elif value.__class__ is not int and value.__class__ is not float:
            return None
    if common is None or common.kind == "bool":
        return None
    return common if common.is_inexact or float not in map(type, values) else None


def _to_one(values: Sequence[Any], chosen: Callable[[DType], DType]) -> list[Any]:
    if (common := _traced_dtype(values)) is not None and chosen(common) is common:
        return [value if value.__class__ is Traced else number(value, common) for value in values]
    prepared = _prepared(values)
    dtype = chosen(common_dtype(prepared))
    return [number(v, dtype) if is_weak(v) else convert(v, dtype) for v in prepared]


def _unchanged(dtype: DType) -> DType:
    return dtype


def _at_least_i64(dtype: DType) -> DType:
    return i64 if dtype is i32 else dtype


def same_dtype(*values: Any) -> list[Any]:
    """Operands of one common dtype."""
    return _to_one(values, _unchanged)


def compared(x: Any, y: Any) -> list[Any]:
    """Operands of one dtype: as in NumPy, an integer of Python's need not fit in an i32 to be compared with one."""
    is_wide = (x.__class__ is Traced and x.is_weak) or (y.__class__ is Traced and y.is_weak)
    return _to_one((x, y), _at_least_i64 if is_wide else _unchanged)


def numbers(*values: Any) -> list[Any]:
    """Operands of one dtype that is not bool: arithmetic on booleans is done in i64."""
    return _to_one(values, lambda dtype: i64 if dtype.kind == "bool" else dtype)


def floats(*values: Any) -> list[Any]:
    """Operands of one float or complex dtype: f64 if none is a float."""
    return _to_one(values, lambda dtype: dtype if dtype.is_inexact else f64)


def promote_complex(value: Any) -> Any:
    """An operand as complex numbers: of two f32 where it is f32, else of two f64."""
    (found,) = floats(value)
    return convert(found, promote(type_of(found).dtype, c64))


def bools(*values: Any) -> list[Any]:
    """Operands as booleans: what is not 0 is true."""
    return [as_bool(v) for v in values]


def as_bool(value: Any) -> Any:
    """One operand as booleans."""
    return convert(as_operand(value), bool_)


def integers(value: Any, what: str) -> Any:
    """An operand that must hold integers."""
    found = as_operand(value)
    if isinstance(value, (list, tuple)) and not value:
        return np.zeros(0, np.int64)
    if type_of(found).dtype.kind != "int":
        raise TypeMismatch(
            f"{what} must be integers, not {type_of(found)}", hint="ut.astype(i, ut.i64) converts; see also ut.where"
        )
    return found


def result_dtype(dtype: object, default: DType) -> DType:
    """The dtype that the user asked for, or the default."""
    return default if dtype is None else dtype_of(dtype)


# -- axes and sizes ----------------------------------------------------------------------------------------


def static_int(value: Any, what: str) -> int:
    """An integer that must be known at capture."""
    if isinstance(value, (Traced, bool, np.bool_)):
        raise TypeMismatch(
            f"{what} must be a Python integer, not {brief(value)}", hint="it must be known at capture time"
        )
    try:
        return operator.index(value)
    except TypeError:
        raise TypeMismatch(f"{what} must be an integer, not {brief(value)}", hint="write e.g. 0") from None


def one_axis(axis: Any, rank: int, what: str) -> int:
    """An axis counted from the front."""
    number = static_int(axis, f"the axis of {what}")
    if not -rank <= number < rank:
        raise TypeMismatch(
            f"axis {number} of {what} is out of range for an array with {rank} ax{'i' if rank == 1 else 'e'}s",
            hint="a scalar has no axes" if rank == 0 else f"the axis must be from {-rank} to {rank - 1}",
        )
    return number % rank


def along(x: Any, axis: Any, what: str) -> tuple[Any, int]:
    """An operand, and an axis of it counted from the front."""
    value = as_operand(x)
    return value, one_axis(axis, type_of(value).rank, what)


def some_axes(axis: Any, rank: int, what: str) -> tuple[int, ...]:
    """Axes counted from the front, in order; None means all of them."""
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(one_axis(a, rank, what) for a in given))
    if len(set(axes)) != len(axes):
        raise TypeMismatch(f"{what} along axes {tuple(given)} lists an axis twice")
    return axes


def is_static_int(value: Any) -> bool:
    """Is it an integer that is known now?"""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iu"
    return is_integer(value)


def split_shape(shape: Any, what: str) -> tuple[tuple[int | None, ...], list[Any]]:
    """A shape as attribute and operands: None in the attribute for each size that is an operand."""
    attr: list[int | None] = []
    sizes: list[Any] = []
    for size in shape if isinstance(shape, (tuple, list)) else (shape,):
        if is_static_int(size):
            attr.append(int(size))
        elif isinstance(size, Traced) and size.type.dtype.kind == "int" and not size.type.shape:
            attr.append(None)
            sizes.append(convert(size, i64))
        elif isinstance(shape, np.ndarray) and shape.ndim:
            return split_shape(tuple(shape), what)
        else:
            raise TypeMismatch(
                f"{brief(size)} cannot be a size in the shape of {what}",
                hint="sizes must be integers, static or traced",
            )
    return tuple(attr), sizes


def dims(value: Any) -> tuple[Any, ...]:
    """The lengths of the axes: numbers, and traced i64 scalars where known only at run time."""
    return tuple(dim(value, axis) for axis in range(type_of(value).rank))


def dim(value: Any, axis: int) -> Any:
    """The length of one axis."""
    known = type_of(value).shape[axis]
    return known if isinstance(known, int) else length(value, axis)
