"""Shared by the families of rows: type rules by kind of element, and kernels that turn NumPy's errors into faults.

A row whose operands have run-time dimensions may find at run time that their shapes do not fit: that is a
`Fault` whatever the row's `faults` says (`undertow.ops.faults` knows when it can happen).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.attributes import MOST_ELEMENTS
from undertow.ops.gradient import Slopes, pointwise
from undertow.ops.op import Coercion, Kernel, Op, Value
from undertow.types import INEXACT, Dim, DType, Shape, Type, broadcast, show_shape

Kinds = tuple[str, ...]

BOOLS: Kinds = ("bool",)
INTEGERS: Kinds = ("int",)
FLOATS: Kinds = ("float",)
COMPLEX: Kinds = ("complex",)
BITS: Kinds = ("bool", "int")
NUMBERS: Kinds = ("int", "float", "complex")
REALS: Kinds = ("int", "float")  # numbers that have an order
ORDERED: Kinds = ("bool", "int", "float")
ELEMENTS: Kinds = ("bool", "int", "float", "complex")

# What the functions of operators on each element make of their arguments, by what the operator works on.
TAKES: dict[Kinds, Coercion] = {
    BOOLS: "bools", INTEGERS: "numbers", FLOATS: "floats", INEXACT: "floats", BITS: "same dtype", NUMBERS: "numbers",
    REALS: "numbers", COMPLEX: "numbers", ORDERED: "same dtype", ELEMENTS: "same dtype",
}  # fmt: skip
_WORDS = {"bool": "booleans", "int": "integers", "float": "floats", "complex": "complex numbers", "ctl": "order tokens"}
_OF_PARTS = "take x.real, x.imag or abs(x)"
_CASTS = {
    FLOATS: "convert it with ut.astype(x, ut.f64)",
    INTEGERS: "ut.astype(x, ut.i64) makes integers",
    NUMBERS: "ut.astype(x, ut.i64) makes integers",
    REALS: "ut.astype(x, ut.i64) makes integers",
    BOOLS: "compare, as in x != 0, to get booleans",
    BITS: "ut.astype(x, ut.i64) makes integers; conditions are joined with `and`, `or`, `not`",
}


# -- types -------------------------------------------------------------------------------------------------


def check_kind(name: str, type: Type, kinds: Kinds) -> None:
    """An operand's elements must be of one of these kinds."""
    if type.dtype.kind not in kinds:
        wanted = " or ".join(_WORDS[k] for k in kinds)
        if type.dtype.kind == "complex":
            why = ": complex numbers have no order" if "int" in kinds else ""
            raise TypeMismatch(f"{name} works on {wanted}, not on {type}", hint=_OF_PARTS + why)
        raise TypeMismatch(f"{name} works on {wanted}, not on {type}", hint=_CASTS.get(kinds, ""))


def check_dtypes(name: str, types: Sequence[Type], kinds: Kinds) -> DType:
    """Operands must have one dtype, of one of these kinds; which it is."""
    first = types[0].dtype
    for type in types:
        check_kind(name, type, kinds)
        if type.dtype is not first and type.dtype != first:
            raise TypeMismatch(
                f"{name} of {types[0]} and {type}: the dtypes differ", hint="convert one of them with ut.astype"
            )
    return first


def check_axis(name: str, axis: int, type: Type) -> None:
    """An axis must be one that the operand has, counted from the front."""
    if not 0 <= axis < type.rank:
        raise TypeMismatch(
            f"axis {axis} of {name} is out of range for {type}, which has {type.rank} axes",
            hint="axes count from 0; negative ones count from the end",
        )


def check_axes(name: str, axes: Sequence[int], type: Type) -> None:
    for axis in axes:
        check_axis(name, axis, type)


def broadcast_shapes(types: Sequence[Type]) -> Shape:
    """The shape of an element-wise result of any number of operands."""
    shape: Shape = types[0].shape if types else ()
    for type in types:
        if type.shape != shape:
            shape = broadcast(shape, type.shape)
    return shape


def meet(name: str, a: Dim, b: Dim) -> Dim:
    """One dimension of two operands that must be equal there: the known one, if any."""
    if a is not None and b is not None and a != b:
        raise TypeMismatch(f"{name} needs equal dimensions, not {a} and {b}")
    return b if a is None else a


def may_be_equal(a: Shape, b: Shape) -> bool:
    """Can two shapes be the same at run time?"""
    return len(a) == len(b) and all(x == y or x is None or y is None for x, y in zip(a, b, strict=True))


def shape_of(attrs: Attrs) -> tuple[Any, ...]:
    """The attribute `shape`: sizes, and None for each that is an operand."""
    shape = attrs["shape"]
    assert isinstance(shape, tuple)
    return shape


def sized(name: str, types: Sequence[Type], attrs: Attrs) -> Shape:
    """The shape that the attribute says: each None in it is the size that the next operand after the first holds."""
    shape, sizes = shape_of(attrs), types[1:]
    if sum(d is None for d in shape) != len(sizes):
        raise TypeMismatch(f"{name} to {tuple(shape)} needs an operand for each None, but has {len(sizes)}")
    for size in sizes:
        if size.dtype.kind != "int" or size.shape:
            raise TypeMismatch(
                f"the sizes of {name} must be integer scalars, not {size}", hint="convert it with ut.astype(n, ut.i64)"
            )
    return shape


# -- kernels -----------------------------------------------------------------------------------------------


def scalar(value: Value) -> Value:
    """A NumPy scalar in place of an array without axes: arithmetic on it is much faster."""
    return value[()] if value.ndim == 0 else value


def with_zeros(value: Value, where: Value, zeros: Callable[[], Value]) -> Value:
    """A result with other zeros in some places; few have any."""
    return scalar(np.asarray(np.where(where, zeros(), value), value.dtype)) if np.any(where) else value


def given_shape(values: Sequence[Value], attrs: Attrs) -> tuple[int, ...]:
    """The shape that `sized` promised, with the sizes that the operands hold."""
    shape, rest = shape_of(attrs), iter(values[1:])
    out = tuple(int(next(rest)) if d is None else int(d) for d in shape)
    for asked, size in zip(shape, out, strict=True):
        if asked is None and size < 0:
            raise Fault(f"{size} is not a valid size of an axis", hint="sizes must not be negative", kind=ValueError)
    return out


def new_shape(values: Sequence[Value], attrs: Attrs) -> tuple[int, ...]:
    """The same, of an array that is made at run time: it must be of a reasonable size."""
    shape = given_shape(values, attrs)
    if math.prod(max(size, 1) for size in shape) > MOST_ELEMENTS:  # NumPy refuses [2**62, 2**62, 0] too
        raise Fault(
            f"an array of shape {show_shape(shape)} is too large",
            hint=f"an array made at run time has at most {MOST_ELEMENTS:,} elements",
            kind=ValueError,
        )
    return shape


def _each(
    arity: int,
    name: str,
    function: Callable[..., Any],
    kinds: Kinds,
    doc: str,
    slopes: Slopes,
    result: DType | None = None,
    **more: Any,
) -> Op:
    """A row that works on each element, or each pair of elements. `more` are fields of the row."""

    def one(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        return (function(values[0]),)

    def two(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        try:
            return (function(values[0], values[1]),)
        except Fault:
            raise
        except ValueError:
            raise shapes_differ(name, values) from None

    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        dtype = check_dtypes(name, types, kinds)
        shape = broadcast_shapes(types)
        # Types are compared often, and soonest where they are the same object.
        return (types[0],) if result is None and shape == types[0].shape else (Type(result or dtype, shape),)

    kernel = one if arity == 1 else two
    return Op(name, arity, rule, kernel, doc, pointwise(slopes), **{"takes": TAKES[kinds], **more})


unary, binary = partial(_each, 1), partial(_each, 2)


def fitting(name: str, kernel: Callable[[Sequence[Value], Attrs], Value]) -> Kernel:
    """A kernel of one result in which NumPy's complaint about shapes is a fault."""

    def guarded(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        try:
            return (kernel(values, attrs),)
        except Fault:
            raise
        except ValueError:
            raise shapes_differ(name, values) from None

    return guarded


def shapes_differ(name: str, values: Sequence[Value]) -> Fault:
    """The fault of operands whose run-time shapes do not fit."""
    shapes = " and ".join(show_shape(np.shape(v)) for v in values)
    hint = "these dimensions were known only at run time"
    if len({0 in np.shape(v) for v in values}) == 2:
        hint += (
            "; an empty ut.map gives results of size 0: annotate the size (-> ut.f32[3]), or test first "
            "whether there are any elements"
        )
    return Fault(f"{name}: the shapes {shapes} do not fit", hint=hint, kind=ValueError)
