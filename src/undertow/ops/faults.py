"""When can a node fault? As its row says, refined by what is known about its operands.

No pass moves an operator that can fault out of its branch, so `n // 2` and `x[0]` should not count as ones.

>>> from undertow.ir.graph import EMPTY
>>> from undertow.ops.op import find
>>> from undertow.types import i64
>>> two, unknown = np.int64(2), None
>>> may_fault(find("floor_divide"), [Type(i64), Type(i64)], EMPTY, [unknown, two])
False
>>> may_fault(find("floor_divide"), [Type(i64), Type(i64)], EMPTY, [two, unknown])
True
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.ir.graph import Attrs
from undertow.ops.op import Op
from undertow.ops.rules import shape_of
from undertow.types import Type


def may_fault(row: Op, types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """Can a node with these operands fault? `known` has the value of each constant operand, else None."""
    if not row.is_apart and len(types) > 1 and not all(t.is_static for t in types):
        return True
    return row.faults if isinstance(row.faults, bool) else row.faults(types, attrs, known)


# -- what rows say -----------------------------------------------------------------------------------------


def unless_static(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """Shapes that were checked at capture are all that could be wrong."""
    return not all(t.is_static for t in types)


def unless_sized(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """The same, where the attribute `shape` says what comes out."""
    return not types[0].is_static or None in shape_of(attrs)


def by_zero(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """An integer as the second operand must not be 0."""
    return not types[1].dtype.is_inexact and (known[1] is None or not np.all(known[1]))


def by_negative(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """An integer as the second operand must not be negative."""
    return not types[1].dtype.is_inexact and (known[1] is None or bool(np.any(np.asarray(known[1]) < 0)))


def by_negative_slack(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """A number as the second operand must not be negative."""
    return known[1] is None or bool(np.any(np.asarray(known[1]) < 0))


def is_outside(index: Any, length: Any) -> bool:
    """May an index, or one of an array of them, name nothing?"""
    if index is None or not isinstance(length, int):
        return True
    return bool(np.any((np.asarray(index) < -length) | (np.asarray(index) >= length)))


def element_outside(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """There must be an element for each index."""
    return any(is_outside(i, types[0].shape[a]) for a, i in zip(attrs.integers("axes"), known[1:], strict=True))


def row_outside(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """The same, for an array of indices into one axis."""
    return is_outside(known[1], types[0].shape[attrs.integer("axis")])


def start_outside(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """All `size` elements from the start on must be there."""
    length = types[0].shape[attrs.integer("axis")]
    if known[1] is None or not isinstance(length, int):
        return True
    first = int(known[1]) + (length if known[1] < 0 else 0)
    return not 0 <= first <= length - attrs.integer("size")
