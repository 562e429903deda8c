"""The row type of the ops catalogue, and the catalogue itself.

A row says all there is to know about an operator. Dtypes of operands are already equal when a type
rule sees them (the front end casts); element-wise operators broadcast. Its derivative is there, or the row says
that there is none; `undertow.ops.gradient` says what the two rows of a derivative are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from undertow.errors import CaptureError, InternalError
from undertow.ir.graph import Array, Attr, Attrs
from undertow.ir.path import Path
from undertow.ops.gradient import Derivative, Gradient, NoGradient, Tangent
from undertow.types import Type

Value = Any  # np.ndarray or np.generic of the declared type
TypeRule = Callable[[Sequence[Type], Attrs], tuple[Type, ...]]
Kernel = Callable[[Sequence[Value], Attrs], tuple[Value, ...]]
# Types, attributes and values (None where not known now) of the operands -> can it fault?
Faults = Callable[[Sequence[Type], Attrs, Sequence[Any]], bool]
# What a function makes of its arguments before it applies the operator; `whole`: integers are the result already.
Coercion = Literal["numbers", "floats", "whole", "bools", "same dtype", "choice"]


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One row of the catalogue."""

    name: str  # in graphs, and that of its kernel in the core
    arity: int | None  # None: any number of operands
    type: TypeRule  # types of the operands -> types of the outputs; raises TypeMismatch
    eval: Kernel  # the reference kernel; raises Fault
    doc: str  # one line, for the reference manual
    derivative: Derivative
    faults: bool | Faults = False  # can `eval` raise Fault? True: whatever the operands are
    is_apart: bool = False  # is each operand looked at on its own, so that their run-time shapes need not fit?
    effect: bool = False  # does it act on the world (print, assert)? Then it is ordered and never removed
    state: Callable[..., tuple[Value, ...]] | None = None  # (store, operands, attrs): used instead of `eval`
    tagged: Callable[[Path, Attrs], tuple[Value, ...]] | None = None  # (tag, attrs): instead of `eval`; no operands
    attrs: Mapping[str, Callable[[Attr], bool]] = field(default_factory=dict)  # what each attribute must be
    is_costly: bool = False  # is its result worth more than the memory that it takes until the next phase?
    # The function of its name that does no more than apply it is made from the row: see frontend.functions.plain.
    takes: Coercion | None = None  # None: there is no such function, or it is written by hand
    operands: str = "x y"  # the names of its parameters
    example: str = ""  # a call and what it gives, for its docstring
    # Who else means this operator, besides the function of NumPy with its name: `__add__` and `.sum` of values,
    # `math.sin`, `np.rint`, `tf.reduce_sum`; and `ut.pow`, if the name of the function is another.
    also: str = ""

    @property
    def grad(self) -> Gradient | NoGradient:
        """Cotangents of the outputs -> of the operands."""
        return self.derivative.grad

    @property
    def tangent(self) -> Tangent | NoGradient:
        """Tangents of the operands -> of the outputs."""
        return self.derivative.tangent

    def names(self, prefix: str) -> list[str]:
        """What it is called elsewhere: `names("math.")` are its names in Python's `math`, without the prefix."""
        return [name.removeprefix(prefix) for name in self.also.split() if name.startswith(prefix)]

    def sentence(self, axis: str = "an axis") -> str:
        """The line as the docstring of a function, which knows its attributes as parameters."""
        text = (
            self.doc.partition("; operands:")[0].replace("`axis`", axis).replace("`axes`", "an axis, several, or all")
        )
        text = text[0].upper() + text[1:] if re.match("[a-z]{2,}[ ,]", text) else text  # not the x of `x where ...`
        return text if text.endswith("?") else f"{text}."

    @property
    def public(self) -> str:
        """The name of its function."""
        return (*self.names("ut."), self.name)[0]


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
        raise CaptureError(f"unknown operator {name!r}")
    return CATALOGUE[name]


def evaluate(name: str, values: Sequence[Array | np.generic], attrs: Attrs) -> tuple[Value, ...]:
    """Run a row's reference kernel on NumPy values."""
    return find(name).eval(values, attrs)
