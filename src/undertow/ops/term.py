"""Terms: values of a graph that is being written, with Python's operators. Gradient rows are written over them.

A term is an operand and the writer that appends nodes; every operation appends one. Sizes are numbers where the types
know them and terms where only the run will: so rows are written once for both, and what static shapes make a
no-op writes nothing.

>>> from undertow.ir.graph import Port
>>> from undertow.types import f64
>>> class Vectors(list):  # a writer for which every value is a vector
...     def write(self, op, operands, attrs):
...         self.append(op)
...         return (Port(len(self)),)
...
...     def type_of(self, operand):
...         return f64[3]
>>> graph = Vectors()
>>> x = Term(graph, Port(0))
>>> broadcast_like(2 * x + 1, x).operand, graph
(Port(node=2, index=0), ['multiply', 'add'])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from undertow.ir.graph import Array, Attr, Attrs, Const, Operand
from undertow.types import DType, Type, i64


class TermWriter(Protocol):
    """What appends nodes to a graph. Folding constants, and writing a node twice or once, is its affair."""

    def write(self, op: str, operands: Sequence[Operand], attrs: Attrs) -> tuple[Operand, ...]:
        """Append a node; its outputs."""
        ...

    def type_of(self, operand: Operand) -> Type:
        """The type of an operand, as far as it is known before the run."""
        ...


_Infix = Callable[["Term", "Term | float"], "Term"]


def _infix(op: str) -> tuple[_Infix, _Infix]:
    """Two methods of terms: the operator with the term on the left, and on the right."""
    return (lambda x, y: apply(op, x, y)), (lambda x, y: apply(op, y, x))


@dataclass(frozen=True, slots=True)
class Term:
    """A value of the graph that `writer` writes. A Python number beside it is a constant of its dtype."""

    writer: TermWriter
    operand: Operand

    @property
    def type(self) -> Type:
        return self.writer.type_of(self.operand)

    @property
    def constant(self) -> Array | None:
        """Its value, where that is known now."""
        return self.operand.value if isinstance(self.operand, Const) else None

    def __neg__(self) -> Term:
        return apply("negative", self)

    __add__, __radd__ = _infix("add")
    __sub__, __rsub__ = _infix("subtract")
    __mul__, __rmul__ = _infix("multiply")
    __truediv__, __rtruediv__ = _infix("divide")
    __pow__ = _infix("power")[0]
    __matmul__ = _infix("matmul")[0]
    __gt__ = _infix("greater")[0]
    __lt__ = _infix("less")[0]


Size = int | Term  # of an axis: a number, or an i64 scalar that the run will know


def constant(value: float | Array, beside: Term, dtype: DType | None = None) -> Term:
    """A number or array as a term; of the dtype of the term beside it unless told."""
    return Term(beside.writer, Const(np.asarray(value, (dtype or beside.type.dtype).numpy)))


def apply(op: str, *operands: Term | float, **attrs: Attr) -> Term:
    """Append a node of one output. Numbers take the dtype of the first term."""
    first = next(x for x in operands if isinstance(x, Term))
    terms = [x if isinstance(x, Term) else constant(x, first) for x in operands]
    (output,) = first.writer.write(op, [x.operand for x in terms], Attrs(**attrs))
    return Term(first.writer, output)


# -- sizes -------------------------------------------------------------------------------------------------


def size(x: Term, axis: int) -> Size:
    """The length of an axis."""
    known = x.type.shape[axis]
    return known if isinstance(known, int) else apply("dim", x, axis=axis)


def sizes(x: Term) -> list[Size]:
    """The length of every axis."""
    return [size(x, axis) for axis in range(x.type.rank)]


def product(lengths: Sequence[Size]) -> Size:
    """The number of elements of an array of these lengths."""
    total: Size = math.prod(n for n in lengths if isinstance(n, int))
    for n in lengths:
        if isinstance(n, Term):
            total = n if isinstance(total, int) and total == 1 else n * total
    return total


def shaped(op: str, x: Term, lengths: Sequence[Size], **attrs: Attr) -> Term:
    """A node whose `shape` has None for each size that the run will know, which is an operand."""
    shape = tuple(n if isinstance(n, int) else None for n in lengths)
    return apply(op, x, *(n for n in lengths if isinstance(n, Term)), shape=shape, **attrs)


def is_same_shape(x: Term, y: Term) -> bool:
    """Are two terms sure to have the same shape?"""
    return x.type.is_static and x.type.shape == y.type.shape


# -- arrays ------------------------------------------------------------------------------------------------


def filled(value: float, lengths: Sequence[Size], beside: Term) -> Term:
    """An array full of one number, of the dtype of the term beside it."""
    return shaped("fill", constant(value, beside), lengths)


def zeros_like(x: Term) -> Term:
    return filled(0, sizes(x), x)


def positions(length: Size, beside: Term) -> Term:
    """0, 1, 2, ...: the numbers of the elements of an axis."""
    if isinstance(length, int):
        return constant(np.arange(length), beside, i64)
    return apply("arange", 0, length, 1)


def reshape(x: Term, lengths: Sequence[Size]) -> Term:
    if x.type.is_static and list(x.type.shape) == list(lengths):
        return x
    return shaped("reshape", x, lengths)


def broadcast_like(x: Term, y: Term) -> Term:
    """Repeat x to the shape of y."""
    return x if is_same_shape(x, y) else shaped("broadcast_to", x, sizes(y))


def sum_like(x: Term, y: Term) -> Term:
    """Sum x down to the shape of y, which could be broadcast to that of x."""
    front = x.type.rank - y.type.rank
    stretched = []
    for axis, (n, m) in enumerate(zip(y.type.shape, x.type.shape[front:], strict=True), front):
        if n is None and m != 1:
            return shaped("sum_to", x, sizes(y))
        if n == 1 and m != 1:
            stretched.append(axis)
    if stretched:
        x = total(x, stretched, keepdims=True)
    return total(x, range(front)) if front else x


def transpose(x: Term, axes: Sequence[int]) -> Term:
    return x if list(axes) == sorted(axes) else apply("transpose", x, axes=tuple(axes))


def swapped(x: Term) -> Term:
    """A matrix, or each of a batch, with rows and columns exchanged."""
    *batch, rows, columns = range(x.type.rank)
    return transpose(x, (*batch, columns, rows))


def expand_dims(x: Term, *axes: int) -> Term:
    return apply("expand_dims", x, axes=axes) if axes else x


def squeeze(x: Term, *axes: int) -> Term:
    return apply("squeeze", x, axes=axes) if axes else x


# -- elements ----------------------------------------------------------------------------------------------


def total(x: Term, axes: Sequence[int], keepdims: bool = False) -> Term:
    """The sum along axes."""
    return apply("sum", x, axes=tuple(axes), keepdims=keepdims)


def equal(x: Term, y: Term | float) -> Term:
    return apply("equal", x, y)


def where(condition: Term, x: Term | float, y: Term | float) -> Term:
    """Choose x where the condition is true, else y; one of them may be a number."""
    beside = x if isinstance(x, Term) else y
    assert isinstance(beside, Term)
    return apply("where", condition, *(v if isinstance(v, Term) else constant(v, beside) for v in (x, y)))


def cast(x: Term, dtype: DType) -> Term:
    return x if x.type.dtype == dtype else apply("cast", x, dtype=dtype.name)


def fitted(x: Term, type_: Type) -> Term:
    """The same value with the lengths that a type knows and its own type does not."""
    if type_.accepts(x.type):
        return x
    lengths: list[Size] = [n if isinstance(n, int) else size(x, axis) for axis, n in enumerate(type_.shape)]
    return shaped("reshape", x, lengths)
