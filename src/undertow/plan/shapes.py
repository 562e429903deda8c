"""How operators move elements: which results are parts of operands, or concatenated operands."""

from __future__ import annotations

from typing import Any

from undertow.ir.graph import Const
from undertow.plan.plan import Kernel, Slot
from undertow.types import Type

SMALL = 64  # bytes: values up to this size share the memory of their table
COPIES = {"identity", "stop_gradient", "reshape", "expand_dims", "squeeze"}
CHANGES = {"put", "put_slice", "put_between", "put_rows"}  # their result is the first operand, but for what they write


def count_of(type_: Type) -> int:
    """Number of elements; -1 if it is known only at run time."""
    count = 1
    for length in type_.shape:
        if not isinstance(length, int):
            return -1
        count *= length
    return count


def size_of(type_: Type) -> int:
    """Bytes of a static type."""
    return count_of(type_) * type_.dtype.size


def is_large(slot: Slot | Const) -> bool:
    """Has it a known size, and memory of its own?"""
    return count_of(slot.type) * slot.type.dtype.size > SMALL


def is_row(kernel: Kernel, result: Type) -> bool:
    """Is the result just the operands, one after the other?"""
    if kernel.op not in ("concat", "stack"):
        return False
    axis = kernel.attrs.integer("axis")
    return all(length == 1 for length in result.shape[: axis % max(len(result.shape), 1)])


def part_at(kernel: Kernel, operand: Type) -> int:
    """If the result is a contiguous part of the operand, the number of elements before it; else -1."""
    if kernel.op in COPIES:
        return 0
    if kernel.op != "slice":
        return -1
    at, is_cut = 0, False  # is_cut: an axis before this one keeps more than one element, so this one must be whole
    cuts: Any = zip(*(kernel.attrs[key] for key in ("starts", "stops", "steps")), operand.shape, strict=True)  # type: ignore[arg-type]
    for start, stop, step, length in cuts:
        left = range(length)[slice(start, stop, step)]
        if not left or (len(left) > 1 and left.step != 1) or (is_cut and len(left) != length):
            return -1
        is_cut = is_cut or len(left) > 1
        at = at * length + left.start
    return at
