"""Shapes: the same elements, arranged differently, and joined arrays.

Where a shape may hold sizes known only at run time, it is an attribute with None in their places, and the sizes
are operands, integer scalars, in order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops import term
from undertow.ops.attributes import AXES, AXIS, SHAPE, is_size, tuple_of
from undertow.ops.faults import unless_sized, unless_static
from undertow.ops.gradient import NONE, ZERO, Applied, Cotangents, Derivative, Tangents, linear, the
from undertow.ops.op import Op, Value
from undertow.ops.rules import (
    ELEMENTS,
    NUMBERS,
    check_axes,
    check_axis,
    check_dtypes,
    check_kind,
    fitting,
    given_shape,
    meet,
    new_shape,
    scalar,
    sized,
)
from undertow.ops.term import Size, Term
from undertow.types import Dim, Shape, Type, i64, show_shape


def _identity_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    return (types[0],)


# -- reshape, broadcast_to ---------------------------------------------------------------------------------


def _reshape_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    source = types[0]
    target = sized("reshape", types, attrs)
    known = [d for d in target if isinstance(d, int) and d != -1]
    open_at = [k for k, d in enumerate(target) if d == -1]
    wrong = TypeMismatch(
        f"{source} cannot be reshaped to {show_shape(target)}",
        hint="the number of elements must stay the same; one size may be -1, which is inferred",
    )
    if len(open_at) > 1 or any(d < 0 for d in known):
        raise wrong
    product = math.prod(known)
    if not source.is_static or None in target:
        if open_at and None not in target and product == 0:
            raise wrong
        return (source.with_shape(tuple(None if d == -1 else d for d in target)),)
    total = math.prod(d for d in source.shape if isinstance(d, int))
    if open_at:
        if product == 0 or total % product:
            raise wrong
        return (source.with_shape(tuple(total // product if d == -1 else d for d in target)),)
    if product != total:
        raise wrong
    return (source.with_shape(target),)


def _reshape(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x = values[0]
    shape = given_shape(values, attrs)
    try:
        return (scalar(np.reshape(x, shape)),)
    except ValueError:
        raise Fault(
            f"an array of shape {show_shape(x.shape)} cannot be reshaped to {show_shape(shape)}",
            hint="the number of elements must stay the same",
            kind=ValueError,
        ) from None


def _stretches(small: Shape, large: Shape) -> bool:
    """Can an array of the one shape be broadcast to the other, as far as the sizes are known?"""
    front = len(large) - len(small)
    return front >= 0 and all(n in (1, None, m) or m is None for n, m in zip(small, large[front:], strict=True))


def _broadcast_to_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    source = types[0]
    target = sized("broadcast_to", types, attrs)
    if not _stretches(source.shape, target):
        raise TypeMismatch(
            f"{source} cannot be broadcast to {show_shape(target)}",
            hint="only dimensions of length 1 stretch, and new ones come in front",
        )
    return (source.with_shape(target),)


def _broadcast_to(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x = values[0]
    shape = new_shape(values, attrs)
    try:
        return (scalar(np.broadcast_to(x, shape)),)
    except ValueError:
        raise Fault(
            f"shape {show_shape(x.shape)} cannot be broadcast to {show_shape(shape)}", kind=ValueError
        ) from None


def _sum_to_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    source = types[0]
    check_kind("sum_to", source, NUMBERS)
    target = sized("sum_to", types, attrs)
    if not _stretches(target, source.shape):
        raise TypeMismatch(f"{source} cannot be summed to {show_shape(target)}", hint="it must broadcast to the first")
    return (source.with_shape(target),)


def _sum_to(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    x = values[0]
    shape = given_shape(values, attrs)
    front = x.ndim - len(shape)
    lengths = x.shape[front:]
    if any(n not in (1, m) for n, m in zip(shape, lengths, strict=True)):
        raise Fault(f"shape {show_shape(x.shape)} cannot be summed to {show_shape(shape)}", kind=ValueError)
    stretched = (front + axis for axis, (n, m) in enumerate(zip(shape, lengths, strict=True)) if n != m)
    return (scalar(np.sum(x, axis=(*range(front), *stretched), dtype=x.dtype, keepdims=True).reshape(shape)),)


# -- axes --------------------------------------------------------------------------------------------------


def _transpose_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    axes = attrs.integers("axes")
    if sorted(axes) != list(range(types[0].rank)):
        raise TypeMismatch(f"{types[0]} cannot be transposed by the axes {axes}", hint="list every axis once")
    return (types[0].with_shape(tuple(types[0].shape[a] for a in axes)),)


def _expand_dims_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    axes = attrs.integers("axes")
    rank = types[0].rank + len(axes)
    if len(set(axes)) != len(axes) or any(not 0 <= a < rank for a in axes):
        raise TypeMismatch(f"the new axes {axes} do not fit a result with {rank} axes")
    rest = iter(types[0].shape)
    return (types[0].with_shape(tuple(1 if a in axes else next(rest) for a in range(rank))),)


def _squeeze_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    axes = attrs.integers("axes")
    check_axes("squeeze", axes, types[0])
    for axis in axes:
        if types[0].shape[axis] not in (1, None):
            raise TypeMismatch(
                f"axis {axis} of {types[0]} has length {types[0].shape[axis]} and cannot be squeezed",
                hint="only an axis of length 1 can be removed; x[0] selects one element of a longer one",
            )
    return (types[0].with_shape(tuple(d for a, d in enumerate(types[0].shape) if a not in axes)),)


def _squeeze(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    try:
        return (scalar(np.squeeze(values[0], attrs.integers("axes"))),)
    except ValueError:
        raise Fault(
            f"a squeezed axis of shape {show_shape(values[0].shape)} does not have length 1", kind=ValueError
        ) from None


def _flip_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_axes("flip", attrs.integers("axes"), types[0])
    return (types[0],)


def _dim_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_axis("dim", attrs.integer("axis"), types[0])
    return (Type(i64),)


# -- concat, stack -----------------------------------------------------------------------------------------


def _check_some(name: str, types: Sequence[Type]) -> None:
    if not types:
        raise TypeMismatch(f"{name} needs at least one array", hint="pass a list of arrays")
    check_dtypes(name, types, ELEMENTS)
    for type in types:
        if type.rank != types[0].rank:
            raise TypeMismatch(
                f"{name} of {types[0]} and {type}: the numbers of axes differ",
                hint="x[None] or ut.expand_dims adds an axis",
            )


def _met(name: str, types: Sequence[Type], free: int | None) -> list[Dim]:
    """The dimensions of operands that must be equal, except along axis `free`."""
    shape: list[Dim] = list(types[0].shape)
    for type in types[1:]:
        for axis, d in enumerate(type.shape):
            if axis != free:
                try:
                    shape[axis] = meet(name, shape[axis], d)
                except TypeMismatch:
                    elsewhere = "everywhere" if free is None else f"except along axis {free}"
                    raise TypeMismatch(
                        f"{name} of {types[0]} and {type}", hint=f"the shapes must be equal {elsewhere}"
                    ) from None
    return shape


def _concat_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    _check_some("concat", types)
    axis = attrs.integer("axis")
    if types[0].rank == 0:
        raise TypeMismatch("concat takes arrays, not scalars", hint="ut.stack makes a vector of scalars")
    check_axis("concat", axis, types[0])
    shape = _met("concat", types, axis)
    lengths = [t.shape[axis] for t in types]
    shape[axis] = None if None in lengths else sum(d for d in lengths if isinstance(d, int))
    return (types[0].with_shape(tuple(shape)),)


def _stack_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    _check_some("stack", types)
    axis = attrs.integer("axis")
    if not 0 <= axis <= types[0].rank:
        raise TypeMismatch(
            f"{types[0]} cannot be stacked along axis {axis}", hint=f"the result has {types[0].rank + 1} axes"
        )
    shape: Shape = tuple(_met("stack", types, None))
    return (types[0].with_shape((*shape[:axis], len(types), *shape[axis:])),)


# -- derivatives -------------------------------------------------------------------------------------------


def _part(g: Term, axis: int, start: Size, length: Size) -> Term:
    """g[start : start + length] along an axis."""
    if isinstance(start, int) and isinstance(length, int):
        rank = g.type.rank
        starts, stops = [None] * rank, [None] * rank
        starts[axis], stops[axis] = start, start + length  # type: ignore[call-overload]
        return term.apply("slice", g, starts=tuple(starts), stops=tuple(stops), steps=(None,) * rank)
    first = term.constant(start, g, i64) if isinstance(start, int) else start
    if isinstance(length, int):
        return term.apply("slice_at", g, first, axis=axis, size=length)
    return term.apply("slice_between", g, first, first + length, axis=axis, step=1)


def _concat_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    axis = at.attrs.integer("axis")
    out: list[Term | None] = []
    start: Size = 0
    for k, x in enumerate(at.x):
        if not any(at.wanted[k:]):
            break
        length = term.size(x, axis)
        out.append(_part(the(g), axis, start, length) if at.wanted[k] else None)
        start = length if isinstance(start, int) and start == 0 else start + length
    return [*out, *[None] * (len(at.x) - len(out))]


def _stack_grad(at: Applied, g: tuple[Term | None, ...]) -> Cotangents:
    axes = (at.attrs.integer("axis"),)
    numbers = (term.constant(k, the(g), i64) for k in range(len(at.x)))
    return [term.apply("index", the(g), k, axes=axes) if w else None for k, w in zip(numbers, at.wanted, strict=True)]


def _joined_tangent(at: Applied, t: tuple[Term | None, ...]) -> Tangents:
    return [at.again(*(term.zeros_like(x) if v is None else v for x, v in zip(at.x, t, strict=True)))]


def _itself(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
    return (values[0],)


ROWS: tuple[Op, ...] = (
    Op("identity", 1, _identity_rule, _itself, "x itself", linear(lambda at, g: g)),
    Op(
        "stop_gradient", 1, _identity_rule, _itself, "x itself, treated as a constant by derivatives", ZERO,
        also="tf.stop_gradient",
    ),
    Op(
        "dim", 1, _dim_rule, lambda values, attrs: (np.int64(values[0].shape[attrs.integer("axis")]),),
        "the length of `axis`, an i64", NONE, attrs=AXIS,
    ),
    Op(
        "reshape", None, _reshape_rule, _reshape,
        "x in `shape`, in row-major order; one size may be -1, which is inferred; operands: x, a size for each None",
        linear(lambda at, g: term.reshape(g, term.sizes(at.x[0]))), faults=unless_sized,
        attrs={"shape": tuple_of(lambda size: size == -1 or is_size(size), or_none=True)},
    ),
    Op(
        "broadcast_to", None, _broadcast_to_rule, _broadcast_to,
        "x repeated to fill `shape`; operands: x, a size for each None",
        linear(lambda at, g: term.sum_like(g, at.x[0])), faults=unless_sized, attrs=SHAPE,
    ),
    Op(
        "sum_to", None, _sum_to_rule, _sum_to,
        "x summed down to `shape`, which `broadcast_to` would stretch to that of x; operands: x, a size for each None",
        linear(lambda at, g: term.broadcast_like(g, at.x[0])), faults=unless_sized, attrs=SHAPE,
    ),
    Op(
        "transpose", 1, _transpose_rule, lambda values, attrs: (np.transpose(values[0], attrs.integers("axes")),),
        "axis k of the result is axis `axes[k]` of x",
        linear(lambda at, g: term.transpose(g, np.argsort(at.attrs.integers("axes")).tolist())), attrs=AXES,
    ),
    Op(
        "expand_dims", 1, _expand_dims_rule, lambda values, attrs: (np.expand_dims(values[0], attrs.integers("axes")),),
        "x with new axes of length 1 at `axes` of the result",
        linear(lambda at, g: term.squeeze(g, *at.attrs.integers("axes"))), attrs=AXES,
    ),
    Op(
        "squeeze", 1, _squeeze_rule, _squeeze, "x without `axes`, which must have length 1",
        linear(lambda at, g: term.expand_dims(g, *at.attrs.integers("axes"))), faults=unless_static, attrs=AXES,
        also=".squeeze",
    ),
    Op(
        "flip", 1, _flip_rule, lambda values, attrs: (scalar(np.flip(values[0], attrs.integers("axes"))),),
        "x reversed along `axes`", linear(lambda at, g: at.again(g)), attrs=AXES,
    ),
    Op(
        "concat", None, _concat_rule, fitting("concat", lambda xs, attrs: np.concatenate(xs, attrs.integer("axis"))),
        "arrays joined along `axis`", Derivative(_concat_grad, _joined_tangent), attrs=AXIS,
    ),
    Op(
        "stack", None, _stack_rule, fitting("stack", lambda xs, attrs: np.stack(xs, attrs.integer("axis"))),
        "arrays of one shape joined along a new `axis`", Derivative(_stack_grad, _joined_tangent), attrs=AXIS,
    ),
)  # fmt: skip
