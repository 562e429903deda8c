"""Reductions and scans: one number from many, along axes.

`axes` is a tuple of axes counted from the front, `keepdims` keeps them with length 1. Results keep the dtype: the
front end widens i32 before a sum, as NumPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault, TypeMismatch
from undertow.ir.graph import Attrs
from undertow.ops.op import Kernel, Op, TypeRule, Value
from undertow.ops.rules import BOOLS, FLOATS, NUMBERS, Kinds, check_axis, check_kind, scalar
from undertow.types import Dim, Type, i64


def reduced(name: str, type: Type, axes: Sequence[int], keepdims: bool) -> Type:
    """The type that is left when axes are reduced."""
    for axis in axes:
        check_axis(name, axis, type)
    shape: tuple[Dim, ...] = tuple(1 if axis in axes else d for axis, d in enumerate(type.shape))
    if not keepdims:
        shape = tuple(d for axis, d in enumerate(shape) if axis not in axes)
    return type.with_shape(shape)


def _refuse_empty(name: str, type: Type, axes: Sequence[int]) -> None:
    if any(type.shape[axis] == 0 for axis in axes):
        raise TypeMismatch(
            f"{name} of no elements: {type} along {tuple(axes)}",
            hint="an empty array has no largest or smallest element",
        )


def _reduction_rule(name: str, kinds: Kinds, empty: bool) -> TypeRule:
    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        check_kind(name, types[0], kinds)
        axes = attrs.integers("axes")
        result = reduced(name, types[0], axes, bool(attrs["keepdims"]))
        if not empty:
            _refuse_empty(name, types[0], axes)
        return (result,)

    return rule


def _reduction_kernel(name: str, function: Callable[..., Any]) -> Kernel:
    def kernel(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        try:
            return (function(values[0], axis=attrs.integers("axes"), keepdims=bool(attrs["keepdims"])),)
        except ValueError:
            raise Fault(f"{name} of no elements", hint="test the length first: x.shape[0] > 0") from None

    return kernel


def _reduction(name: str, function: Callable[..., Any], kinds: Kinds, doc: str, empty: bool = True) -> Op:
    """`empty`: is there a result for no elements?"""
    rule = _reduction_rule(name, kinds, empty)
    return Op(name, 1, rule, _reduction_kernel(name, function), doc, faults=not empty)


def _position_rule(name: str) -> TypeRule:
    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        check_kind(name, types[0], NUMBERS)
        axes = (attrs.integer("axis"),)
        result = reduced(name, types[0], axes, bool(attrs["keepdims"]))
        _refuse_empty(name, types[0], axes)
        return (result.with_dtype(i64),)

    return rule


def _position_kernel(name: str, function: Callable[..., Any]) -> Kernel:
    def kernel(values: Sequence[Value], attrs: Attrs) -> tuple[Value, ...]:
        try:
            return (function(values[0], axis=attrs.integer("axis"), keepdims=bool(attrs["keepdims"])),)
        except ValueError:
            raise Fault(f"{name} of no elements", hint="test the length first: x.shape[0] > 0") from None

    return kernel


def _position(name: str, function: Callable[..., Any], doc: str) -> Op:
    return Op(name, 1, _position_rule(name), _position_kernel(name, function), doc, faults=True)


def _scan(name: str, kernel: Callable[[Any, Attrs], Any], doc: str, positions: bool = False) -> Op:
    def rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        check_kind(name, types[0], NUMBERS)
        check_axis(name, attrs.integer("axis"), types[0])
        return (types[0].with_dtype(i64) if positions else types[0],)

    return Op(name, 1, rule, lambda values, attrs: (kernel(values[0], attrs),), doc)


def _sort(x: Any, attrs: Attrs) -> Any:
    axis = attrs.integer("axis")
    ordered = np.sort(x, axis=axis, kind="stable")
    return np.flip(ordered, axis) if attrs["descending"] else ordered


def _argsort(x: Any, attrs: Attrs) -> Any:
    axis = attrs.integer("axis")
    if not attrs["descending"]:
        return np.argsort(x, axis=axis, kind="stable")
    # Turned around twice, so that equal elements keep their order.
    return np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def _logsumexp(x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    out = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True, dtype=x.dtype)) + top
    return scalar(np.asarray(out if keepdims else np.squeeze(out, axis)))


ROWS: tuple[Op, ...] = (
    _reduction("sum", lambda x, **how: np.sum(x, dtype=x.dtype, **how), NUMBERS, "the sum along `axes`"),
    _reduction("prod", lambda x, **how: np.prod(x, dtype=x.dtype, **how), NUMBERS, "the product along `axes`"),
    _reduction("max", np.max, NUMBERS, "the largest along `axes`, of at least one; nan if any is", empty=False),
    _reduction("min", np.min, NUMBERS, "the smallest along `axes`, of at least one; nan if any is", empty=False),
    _reduction("any", np.any, BOOLS, "is any true along `axes`?"),
    _reduction("all", np.all, BOOLS, "are all true along `axes`?"),
    _reduction("logsumexp", _logsumexp, FLOATS, "log(sum(exp(x))) along `axes`, without overflow"),
    _position("argmax", np.argmax, "where along `axis` the (first) largest stands"),
    _position("argmin", np.argmin, "where along `axis` the (first) smallest stands"),
    _scan("cumsum", lambda x, a: np.cumsum(x, a.integer("axis"), x.dtype), "the running sum along `axis`"),
    _scan("sort", _sort, "sorted along `axis`, from the largest if `descending`; nan counts as largest"),
    _scan("argsort", _argsort, "the order that `sort` sorts into; equal elements keep theirs", positions=True),
)
