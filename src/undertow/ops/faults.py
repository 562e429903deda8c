"""When can a node fault? What its row says, made exact by what is known of its operands.

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

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.ir.graph import Attrs
from undertow.ops.op import Op
from undertow.types import Type

# Types, attributes and values (None where not known now) of the operands -> is it sure not to fault?
Safe = Callable[[Sequence[Type], Attrs, Sequence[Any]], bool]


def _static(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """Shapes that were checked at capture are all that could be wrong."""
    return all(t.is_static for t in types)


def _nonzero(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    return types[1].dtype.kind == "float" or (known[1] is not None and bool(np.all(known[1])))


def _not_negative(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    return types[1].dtype.kind == "float" or (known[1] is not None and bool(np.all(np.asarray(known[1]) >= 0)))


def _static_shape(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    shape = attrs["shape"]
    assert isinstance(shape, tuple)
    return types[0].is_static and None not in shape


def _in_range(index: Any, length: Any) -> bool:
    if index is None or not isinstance(length, int):
        return False
    return bool(np.all((-length <= np.asarray(index)) & (np.asarray(index) < length)))


def _indices_in_range(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    return all(_in_range(i, types[0].shape[a]) for a, i in zip(attrs.integers("axes"), known[1:], strict=True))


def _rows_in_range(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    return _in_range(known[1], types[0].shape[attrs.integer("axis")])


def _start_in_range(types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    length = types[0].shape[attrs.integer("axis")]
    if known[1] is None or not isinstance(length, int):
        return False
    first = int(known[1]) + (length if known[1] < 0 else 0)
    return 0 <= first <= length - attrs.integer("size")


SAFE: dict[str, Safe] = {
    "floor_divide": _nonzero,
    "remainder": _nonzero,
    "power": _not_negative,
    "bitwise_left_shift": _not_negative,
    "bitwise_right_shift": _not_negative,
    "max": _static,
    "min": _static,
    "argmax": _static,
    "argmin": _static,
    "squeeze": _static,
    "reshape": _static_shape,
    "broadcast_to": _static_shape,
    "sum_to": _static_shape,
    "unslice": _static_shape,
    "fill": _static_shape,
    "random_bits": _static_shape,
    "random_uniform": _static_shape,
    "random_normal": _static_shape,
    "index": _indices_in_range,
    "take": _rows_in_range,
    "take_along_axis": _rows_in_range,
    "scatter_add": _rows_in_range,
    "add_along_axis": _rows_in_range,
    "slice_at": _start_in_range,
}

# Run-time shapes of these need not fit: each operand is looked at on its own.
_FREE = frozenset({"index", "take", "slice_at", "slice_between", "print"})


def may_fault(row: Op, types: Sequence[Type], attrs: Attrs, known: Sequence[Any]) -> bool:
    """Can a node with these operands fault? `known` has the value of each constant operand, else None."""
    if row.name not in _FREE and len(types) > 1 and not all(t.is_static for t in types):
        return True
    if not row.faults:
        return False
    safe = SAFE.get(row.name)
    return safe is None or not safe(types, attrs, known)
