"""A writer that computes at once what rows write, and derivatives of what it wrote: the smallest user of the rows.

Every node is checked as it is written: its attributes and types as those of a graph from outside, its value against
what the type rule foretold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.ir.graph import Attrs, Const, Node, Operand, Port
from undertow.ops.gradient import Applied, NoGradient, dense
from undertow.ops.op import find
from undertow.ops.rules import may_be_equal
from undertow.ops.term import Term, total
from undertow.ops.vet import type_rule
from undertow.types import Type, type_of


@dataclass
class Entry:
    """A node and its values; a leaf has no operator."""

    op: str
    operands: tuple[Operand, ...]
    attrs: Attrs
    types: tuple[Type, ...]
    values: tuple[Any, ...]


Hides = Callable[[int, int], bool]  # (number of a leaf, axis) -> is its length known only at run time?


class Tape:
    """What was written so far. Types do not know the dimensions of leaves that are hidden from them."""

    def __init__(self, hides: Hides = lambda leaf, axis: False) -> None:
        self.hides = hides
        self.entries: list[Entry] = []

    def leaf(self, value: Any) -> Term:
        type = type_of(value)
        number = len(self.entries)
        known = type.with_shape(tuple(None if self.hides(number, a) else n for a, n in enumerate(type.shape)))
        self.entries.append(Entry("", (), Attrs(), (known,), (value,)))
        return Term(self, Port(len(self.entries) - 1))

    def type_of(self, operand: Operand) -> Type:
        return operand.type if isinstance(operand, Const) else self.entries[operand.node].types[operand.index]

    def value(self, term: Term) -> Any:
        return self._value(term.operand)

    def _value(self, operand: Operand) -> Any:
        return operand.value if isinstance(operand, Const) else self.entries[operand.node].values[operand.index]

    def write(self, op: str, operands: Sequence[Operand], attrs: Attrs) -> tuple[Operand, ...]:
        types = type_rule(Node(op, tuple(operands), (), "", attrs=attrs), [self.type_of(x) for x in operands])
        with np.errstate(all="ignore"):
            values = find(op).eval([self._value(x) for x in operands], attrs)
        for type, value in zip(types, values, strict=True):
            assert type.accepts(type_of(value)), (op, attrs, [self.type_of(x) for x in operands], type, type_of(value))
        if all(isinstance(x, Const) for x in operands):
            return tuple(Const(v) for v in values)
        self.entries.append(Entry(op, tuple(operands), attrs, types, values))
        return tuple(Port(len(self.entries) - 1, k) for k in range(len(types)))

    # -- derivatives ---------------------------------------------------------------------------------------

    def _applied(self, number: int, active: set[Port]) -> Applied:
        entry = self.entries[number]
        wanted = tuple(x in active and self.type_of(x).dtype.kind == "float" for x in entry.operands)
        outputs = tuple(Term(self, Port(number, k)) for k in range(len(entry.types)))
        return Applied(entry.op, tuple(Term(self, x) for x in entry.operands), outputs, entry.attrs, wanted)

    def _active(self, leaves: Sequence[Term]) -> set[Port]:
        """What depends on the leaves."""
        active: set[Any] = {x.operand for x in leaves}
        for number, entry in enumerate(self.entries):
            if any(x in active for x in entry.operands):
                active |= {Port(number, k) for k in range(len(entry.types))}
        return active

    def pull(self, seeds: Sequence[tuple[Term, Term]], leaves: Sequence[Term]) -> list[Term | None]:
        """The cotangents of the leaves, from those of some outputs."""
        active = self._active(leaves)
        found: dict[Operand, Term] = {}

        def add(to: Operand, part: Term) -> None:
            found[to] = part if to not in found else found[to] + part

        for output, seed in seeds:
            add(output.operand, seed)
        for number in reversed(range(len(self.entries))):
            at = self._applied(number, active)
            g = tuple(found.get(y.operand) for y in at.y)
            if not any(at.wanted) or not any(v is not None for v in g):
                continue
            row = find(at.op).grad
            assert row is not None and not isinstance(row, NoGradient), at.op
            parts = row(at, g)
            assert len(parts) == len(at.x)
            for x, wanted, part in zip(at.x, at.wanted, parts, strict=True):
                if wanted and part is not None:
                    whole = dense(part, x)
                    assert type_of(self.value(whole)) == type_of(self.value(x)), (at.op, at.attrs)
                    assert may_be_equal(whole.type.shape, x.type.shape)
                    add(x.operand, whole)
                assert wanted or part is None, f"{at.op} computes for nobody"
        return [found.get(x.operand) for x in leaves]

    def push(self, seeds: Sequence[tuple[Term, Term]], outputs: Sequence[Term]) -> list[Term | None]:
        """The tangents of outputs, from those of the leaves."""
        found: dict[Operand, Term] = {x.operand: t for x, t in seeds}
        for number in range(len(self.entries)):
            at = self._applied(number, set())
            t = tuple(found.get(x.operand) for x in at.x)
            if not any(v is not None for v in t):
                continue
            row = find(at.op).tangent
            assert row is not None
            if isinstance(row, NoGradient):
                assert all(y.type.dtype.kind != "float" for y in at.y)
                continue
            parts = row(at, t)
            assert len(parts) == len(at.y)
            for y, part in zip(at.y, parts, strict=True):
                if part is not None:
                    assert type_of(self.value(part)) == type_of(self.value(y)), (at.op, at.attrs)
                    assert may_be_equal(part.type.shape, y.type.shape)
                    found[y.operand] = part
        return [found.get(y.operand) for y in outputs]

    def inner(self, x: Term, y: Term) -> Term:
        """The sum of all products: a scalar."""
        both = x * y
        return total(both, range(both.type.rank))
