"""The row type of the ops catalogue, and the catalogue itself.

A row says all there is to know about an operator. Dtypes of operands are already equal when a type
rule sees them (the front end casts); element-wise operators broadcast. Its derivative is there, or the row says
that there is none; `undertow.ops.gradient` says what the two rows of a derivative are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import CaptureError, InternalError
from undertow.ir.graph import Array, Attrs
from undertow.ops.gradient import Gradient, NoGradient, Tangent
from undertow.types import Type

Value = Any  # np.ndarray or np.generic of the declared type
TypeRule = Callable[[Sequence[Type], Attrs], tuple[Type, ...]]
Kernel = Callable[[Sequence[Value], Attrs], tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class Op:
    """One row of the catalogue."""

    name: str
    arity: int | None  # None: any number of operands
    type: TypeRule  # types of the operands -> types of the outputs; raises TypeMismatch
    eval: Kernel  # the reference kernel; raises Fault
    doc: str  # one line, for the reference manual
    faults: bool = False  # can `eval` raise Fault?
    effect: bool = False  # does it act on the world (print, assert)? Then it is ordered and never removed
    state: Callable[..., tuple[Value, ...]] | None = None  # (store, operands, attrs): used instead of `eval`
    grad: Gradient | NoGradient | None = None  # cotangents of the outputs -> of the operands; None: nobody said
    tangent: Tangent | NoGradient | None = None  # tangents of the operands -> of the outputs
    native: str | None = None  # name of the kernel in the C++ core


CATALOGUE: dict[str, Op] = {}


def register(row: Op) -> Op:
    """Add a row; a name is taken once."""
    if row.name in CATALOGUE:
        raise InternalError(f"operator {row.name} has two rows")
    CATALOGUE[row.name] = row
    return row


def find(name: str) -> Op:
    """The row of an operator."""
    if name not in CATALOGUE:
        raise CaptureError(f"there is no operator named {name!r}")
    return CATALOGUE[name]


def evaluate(name: str, values: Sequence[Array | np.generic], attrs: Attrs) -> tuple[Value, ...]:
    """Run a row's reference kernel on NumPy values."""
    return find(name).eval(values, attrs)
