"""Leaves of containers: their types, their names in messages, and how they become tokens of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from undertow.errors import Span, TypeMismatch, brief
from undertow.frontend.values.operands import convert, is_weak
from undertow.frontend.values.traced import Context, Traced, constant
from undertow.frontend.values.tree import flatten, show
from undertow.ir.exact import exact
from undertow.ir.graph import Const, Port
from undertow.types import DType, Type, i32, said, type_of, weak_dtype


class Absent:
    """Stands for the value of a side that never reaches the join; a zero is merged in its place."""


ABSENT = Absent()


def leaf_type(value: Any, dtype: DType | None = None) -> Type:
    """The type of a leaf; a Python number takes `dtype`."""
    if isinstance(value, Traced):
        return value.type if dtype is None or not value.is_weak else value.type.with_dtype(dtype)
    if is_weak(value):
        return Type(dtype or weak_dtype(value))
    return type_of(np.asarray(constant(value)))


def zero(type: Type) -> Any:
    """A placeholder of a type, whose value is never used: dimensions known only at run time are 0."""
    return np.zeros([d if isinstance(d, int) else 0 for d in type.shape], type.dtype.numpy)[()]


def describe(value: Any) -> str:
    """A value in words, for messages: its type, the number itself if it is known, or its structure."""
    leaves, structure = flatten(value, lambda v: isinstance(v, (Traced, Absent)))
    if value is None:
        return "nothing (None)"
    if len(structure) == 1 and leaves and not isinstance(leaves[0], (bool, int, float)):
        return said(leaf_type(value))
    shown = (brief(x) if is_weak(x) else "?" if isinstance(x, Absent) else str(leaf_type(x)) for x in leaves)
    return show(structure, list(shown))


def is_static_equal(a: Any, b: Any) -> bool:
    """Are both the same Python constant?"""
    plain = (bool, int, float, str, bytes, type(None))
    return isinstance(a, plain) and isinstance(b, plain) and exact(a) == exact(b)


def port_in(value: Any, region: int, ctx: Context, dtype: DType | None = None) -> Port:
    """A leaf as a token of a region of the current graph; a Python number takes `dtype`."""
    builder = ctx.open_builder
    before = builder.region
    builder.region = region
    try:
        if isinstance(value, Traced):
            return ctx.session.resolve(convert(value, dtype) if value.is_weak and dtype is not None else value)
        if dtype is None and isinstance(value, (bool, int, float)):
            dtype = weak_dtype(value)
        if isinstance(value, int) and dtype is not None and dtype.kind == "int":
            check_range(value, dtype)
        return builder.gate(Const(np.asarray(constant(value, dtype))), ctx.span)
    finally:
        builder.region = before


def check_range(value: int, dtype: DType, what: str = "", span: Span | None = None) -> None:
    """Raise an error if a Python integer does not fit the dtype that it takes."""
    bounds = np.iinfo(np.int32 if dtype == i32 else np.int64)
    if not bounds.min <= value <= bounds.max:
        raise TypeMismatch(
            f"{what or 'an integer'} is {brief(value)}, which does not fit in {dtype}",
            span,
            hint=f"the largest {dtype} is {bounds.max}: use {'i64' if dtype == i32 else 'a float'}",
        )
