"""Comparisons, truth and bits, on each element."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import Fault
from undertow.ir.graph import Attrs
from undertow.ops.gradient import NO_GRADIENT, pointwise
from undertow.ops.op import Op, Value
from undertow.ops.rules import (
    BITS,
    BOOLS,
    ELEMENTS,
    FLOATS,
    INTEGERS,
    binary,
    broadcast_shapes,
    check_dtypes,
    check_kind,
    compare,
    fitting,
    scalar,
    unary,
)
from undertow.ops.term import where
from undertow.types import Type, bool_


def _check_shift(y: Any) -> None:
    if y < 0 if y.ndim == 0 else (y < 0).any():
        raise Fault("a shift by a negative number of bits", hint="shift the other way")


def _left_shift(x: Any, y: Any) -> Any:
    _check_shift(y)
    return x << y


def _right_shift(x: Any, y: Any) -> Any:
    _check_shift(y)
    return x >> y


def _where_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("the condition of where", types[0], BOOLS)
    dtype = check_dtypes("where", types[1:], ELEMENTS)
    return (Type(dtype, broadcast_shapes(types)),)


def _where(values: Sequence[Value], attrs: Attrs) -> Value:
    condition, x, y = values
    if condition.ndim == x.ndim == y.ndim == 0:
        return x if condition else y
    return scalar(np.where(condition, x, y))


# What is not chosen gets a plain zero: its own derivative may be infinite.
_CHOICE = pointwise((None, lambda v, c, x, y, z: where(c, v, 0), lambda v, c, x, y, z: where(c, 0, v)))

ROWS: tuple[Op, ...] = (
    compare("equal", operator.eq, "x == y"),
    compare("not_equal", operator.ne, "x != y"),
    compare("less", operator.lt, "x < y"),
    compare("less_equal", operator.le, "x <= y"),
    compare("greater", operator.gt, "x > y"),
    compare("greater_equal", operator.ge, "x >= y"),
    unary("isnan", np.isnan, FLOATS, "is it not a number?", NO_GRADIENT, bool_),
    unary("isinf", np.isinf, FLOATS, "is it infinite?", NO_GRADIENT, bool_),
    unary("isfinite", np.isfinite, FLOATS, "is it neither nan nor infinite?", NO_GRADIENT, bool_),
    binary("logical_and", operator.and_, BOOLS, "x and y", NO_GRADIENT),
    binary("logical_or", operator.or_, BOOLS, "x or y", NO_GRADIENT),
    binary("logical_xor", operator.xor, BOOLS, "one of x and y, not both", NO_GRADIENT),
    unary("logical_not", operator.invert, BOOLS, "not x", NO_GRADIENT),
    binary("bitwise_and", operator.and_, BITS, "x & y", NO_GRADIENT),
    binary("bitwise_or", operator.or_, BITS, "x | y", NO_GRADIENT),
    binary("bitwise_xor", operator.xor, BITS, "x ^ y", NO_GRADIENT),
    unary("bitwise_invert", operator.invert, BITS, "~x", NO_GRADIENT),
    binary(
        "bitwise_left_shift",
        _left_shift,
        INTEGERS,
        "x << y; 0 if y is the width of x or more; y must not be negative",
        NO_GRADIENT,
        faults=True,
    ),
    binary(
        "bitwise_right_shift",
        _right_shift,
        INTEGERS,
        "x >> y, keeping the sign; 0 or -1 if y is the width of x or more; y must not be negative",
        NO_GRADIENT,
        faults=True,
    ),
    Op(
        "where",
        3,
        _where_rule,
        fitting("where", _where),
        "x where the first operand is true, else y",
        grad=_CHOICE.grad,
        tangent=_CHOICE.tangent,
    ),
)
