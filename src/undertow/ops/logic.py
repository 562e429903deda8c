"""Element-wise comparisons, logic, selection and bits. Logic functions treat nonzero numbers as true."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from undertow.errors import Fault
from undertow.ir.graph import Attrs
from undertow.ops.faults import by_negative
from undertow.ops.gradient import NO_GRADIENT, pointwise
from undertow.ops.op import Op, Value
from undertow.ops.rules import (
    BITS,
    BOOLS,
    ELEMENTS,
    INTEGERS,
    ORDERED,
    Kinds,
    binary,
    broadcast_shapes,
    check_dtypes,
    check_kind,
    fitting,
    scalar,
    unary,
)
from undertow.ops.term import where
from undertow.types import INEXACT, Type, bool_


def _shift(how: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    if y < 0 if y.ndim == 0 else (y < 0).any():
        raise Fault("a shift must not be negative", hint="shift the other way", kind=ValueError)
    return how(x, y)


def _where_rule(types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
    check_kind("the condition of where", types[0], BOOLS)
    dtype = check_dtypes("where", types[1:], ELEMENTS)
    return (Type(dtype, broadcast_shapes(types)),)


def _where(values: Sequence[Value], attrs: Attrs) -> Value:
    condition, x, y = values
    if condition.ndim == x.ndim == y.ndim == 0:
        return x if condition else y
    return scalar(np.where(condition, x, y))


def _truth(name: str, function: Any, kinds: Kinds, doc: str, **more: Any) -> Op:
    """A row that gives a boolean for each element."""
    return unary(name, function, kinds, doc, NO_GRADIENT, bool_, **more)


def _compare(name: str, function: Any, doc: str, also: str, kinds: Kinds = ORDERED, **more: Any) -> Op:
    return binary(name, function, kinds, doc, NO_GRADIENT, bool_, also=also, **more)


def _bits(name: str, function: Any, kinds: Kinds, doc: str, **more: Any) -> Op:
    return binary(name, function, kinds, doc, NO_GRADIENT, **more)


# What is not chosen gets a plain zero: its own derivative may be infinite.
_CHOICE = pointwise((None, lambda v, c, x, y, z: where(c, v, 0), lambda v, c, x, y, z: where(c, 0, v)))

ROWS: tuple[Op, ...] = (
    _compare("equal", operator.eq, "`x == y`", "__eq__ tf.equal", ELEMENTS),
    _compare("not_equal", operator.ne, "`x != y`", "__ne__ tf.not_equal", ELEMENTS),
    _compare("less", operator.lt, "`x < y`", "__lt__ tf.less", example="less([1, 3], 2)\narray([ True, False])"),
    _compare("less_equal", operator.le, "`x <= y`", "__le__ tf.less_equal"),
    _compare("greater", operator.gt, "`x > y`", "__gt__ tf.greater"),
    _compare("greater_equal", operator.ge, "`x >= y`", "__ge__ tf.greater_equal"),
    _truth("isnan", np.isnan, INEXACT, "is it not a number?", also="math.isnan tf.is_nan"),
    _truth("isinf", np.isinf, INEXACT, "is it infinite?", also="math.isinf tf.is_inf"),
    _truth("isfinite", np.isfinite, INEXACT, "is it neither nan nor infinite?", also="math.isfinite tf.is_finite"),
    _bits("logical_and", operator.and_, BOOLS, "are both true?", also="tf.logical_and"),
    _bits("logical_or", operator.or_, BOOLS, "is either true?", also="tf.logical_or"),
    _bits("logical_xor", operator.xor, BOOLS, "is exactly one of them true?", also="tf.logical_xor"),
    _truth("logical_not", operator.invert, BOOLS, "is it false?", also="tf.logical_not"),
    _bits("bitwise_and", operator.and_, BITS, "`x & y`, of integers or booleans", also="__and__"),
    _bits("bitwise_or", operator.or_, BITS, "`x | y`, of integers or booleans", also="__or__"),
    _bits("bitwise_xor", operator.xor, BITS, "`x ^ y`, of integers or booleans", also="__xor__"),
    unary("bitwise_invert", operator.invert, BITS, "~x, of integers or booleans", NO_GRADIENT, also="__invert__"),
    _bits(
        "bitwise_left_shift", partial(_shift, operator.lshift), INTEGERS,
        "`x << y`; 0 if y is the width of x or more; y must not be negative",
        faults=by_negative, also="__lshift__", example="bitwise_left_shift(1, [0, 4])\narray([ 1, 16])",
    ),
    _bits(
        "bitwise_right_shift", partial(_shift, operator.rshift), INTEGERS,
        "`x >> y`, keeping the sign; 0 or -1 if y is the width of x or more; y must not be negative",
        faults=by_negative, also="__rshift__",
    ),
    Op(
        "where", 3, _where_rule, fitting("where", _where),
        "x where the condition is true, else y; both are computed; operands: condition, x, y", _CHOICE,
        takes="choice", operands="condition x y", example="where([True, False], [1, 2], -1.0)\narray([ 1., -1.])",
    ),
)  # fmt: skip
