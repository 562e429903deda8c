"""How what is sown reaches its collector: as rows that the entry collects, or handed back along the calls.

Each copy of a graph gives back more than its results: an order token (`Collecting`), an array and the number of values
at each place (`Adding`), or the inner product of all values with an array (`Weighing`, for derivatives). A way says
what that is of one `sow`, of none, of several, of the two sides of a branch, and of the lanes of a map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np

from undertow.ir.graph import Attrs, Const, Port
from undertow.ir.sparse import rows_types
from undertow.ops.term import (
    Term,
    apply,
    cast,
    expand_dims,
    filled,
    fitted,
    product,
    reshape,
    size,
    sizes,
    total,
)
from undertow.passes.derive.writer import DerivativeWriter
from undertow.types import CTL, Type, bool_, i64

Parts = tuple[Port, ...]

TWICE = "ut.sow has put several values at place {}; ut.reap(f, n, add=True) adds them"


class Way(Protocol):
    """What the graphs below a collector give back for it."""

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of that."""
        ...

    def sow(self, writer: DerivativeWriter, table: Port, place: Port, value: Term) -> Parts:
        """Of one `sow`. `table` is what the collector has handed down: an array with a row for each place."""
        ...

    def join(self, writer: DerivativeWriter, table: Port, parts: Sequence[Parts]) -> Parts:
        """Of several, or of none."""
        ...

    def of_lanes(self, writer: DerivativeWriter, table: Port, parts: Parts) -> Parts:
        """Of all lanes of a map, whose parts are stacked."""
        ...


def merged(writer: DerivativeWriter, a: Parts, b: Parts) -> Parts:
    """Of the two sides of a branch."""
    pairs = zip(a, b, strict=True)
    return tuple(Port(writer.add("merge", pair, (writer.type_of(pair[0]),), name="sown")) for pair in pairs)


def _as_row(table: Term, value: Term) -> Term:
    """A value in the type of the rows of a table."""
    row = table.type.with_shape(table.type.shape[1:])
    return fitted(cast(value, row.dtype), row)


class Collecting:
    """The entry collects the rows; what is handed back is an order token."""

    types: tuple[Type, ...] = (CTL,)

    def sow(self, writer: DerivativeWriter, table: Port, place: Port, value: Term) -> Parts:
        rows = (writer.term(place), _as_row(writer.term(table), value))
        operands = [writer.port(expand_dims(x, 0).operand) for x in rows]
        return (Port(writer.add("collect_rows", operands, (CTL,), Attrs(index=0))),)

    def join(self, writer: DerivativeWriter, table: Port, parts: Sequence[Parts]) -> Parts:
        return (writer.join([token for (token,) in parts]),)

    def of_lanes(self, writer: DerivativeWriter, table: Port, parts: Parts) -> Parts:
        return parts


@dataclass(frozen=True, slots=True, eq=False)
class Adding:
    """Arrays with a row for each place, and how many values are there, are added up along the calls."""

    table: Type

    @property
    def types(self) -> tuple[Type, ...]:
        return self.table, Type(i64, (None,))

    def sow(self, writer: DerivativeWriter, table: Port, place: Port, value: Term) -> Parts:
        like = writer.term(table)
        at = writer.term(place)
        none = filled(0, [size(like, 0)], at)
        array = apply("put", like, _as_row(like, value), at, axes=(0,))
        return writer.port(array.operand), writer.port(apply("put", none, 1, at, axes=(0,)).operand)

    def join(self, writer: DerivativeWriter, table: Port, parts: Sequence[Parts]) -> Parts:
        if not parts:
            like = writer.term(table)
            return table, writer.port(filled(0, [size(like, 0)], writer.term(Const(np.int64(0)))).operand)
        return tuple(
            writer.port(reduce(_plus, map(writer.term, column)).operand) for column in zip(*parts, strict=True)
        )

    def of_lanes(self, writer: DerivativeWriter, table: Port, parts: Parts) -> Parts:
        like = writer.term(table)
        array, count = map(writer.term, parts)
        none = filled(0, [size(like, 0)], count)
        array, count = _and_one_more(array, like), _and_one_more(count, none)
        if array.type.dtype == bool_:
            array = apply("any", array, axes=(0,), keepdims=False)
        else:
            array = cast(total(array, (0,)), array.type.dtype)
        return writer.port(array.operand), writer.port(total(count, (0,)).operand)


def _and_one_more(stacked: Term, last: Term) -> Term:
    """The arrays of lanes, and a last one. (Where there are no lanes, their stack does not know its other lengths.)"""
    lanes, length, *row = sizes(stacked)
    rows = apply("concat", reshape(stacked, [product([lanes, length]), *row]), last, axis=0)
    return reshape(rows, [lanes + 1, size(last, 0), *row])


def _plus(a: Term, b: Term) -> Term:
    return apply("logical_or", a, b) if a.type.dtype == bool_ else a + b


@dataclass(frozen=True, slots=True, eq=False)
class Weighing:
    """The inner product (its real part) of all that is sown with the table, which is a cotangent of it."""

    table: Type

    @property
    def types(self) -> tuple[Type, ...]:
        return (Type(self.table.dtype.real),)

    def sow(self, writer: DerivativeWriter, table: Port, place: Port, value: Term) -> Parts:
        weights = writer.term(table)
        row = apply("index", weights, writer.term(place), axes=(0,))
        product = row * _as_row(weights, value)
        if product.type.dtype.kind == "complex":
            product = apply("real", product)
        return (writer.port((total(product, range(product.type.rank)) if product.type.rank else product).operand),)

    def join(self, writer: DerivativeWriter, table: Port, parts: Sequence[Parts]) -> Parts:
        if not parts:
            return (writer.port(Const(np.zeros((), self.table.dtype.real.numpy))),)
        return (writer.port(reduce(_plus, (writer.term(part) for (part,) in parts)).operand),)

    def of_lanes(self, writer: DerivativeWriter, table: Port, parts: Parts) -> Parts:
        return (writer.port(total(writer.term(parts[0]), (0,)).operand),)


class Dropping:
    """Nothing is handed back: what is sown goes nowhere."""

    types: tuple[Type, ...] = ()

    def sow(self, writer: DerivativeWriter, table: Port, place: Port, value: Term) -> Parts:
        return ()

    def join(self, writer: DerivativeWriter, table: Port, parts: Sequence[Parts]) -> Parts:
        return ()

    def of_lanes(self, writer: DerivativeWriter, table: Port, parts: Parts) -> Parts:
        return ()


def gathered(writer: DerivativeWriter, table: Port, link: Port, parts: Parts, adds: bool) -> Port:
    """The array of a collector, from what its call, `link`, has given back."""
    like = writer.term(table)
    if len(parts) == 2:
        array, count = parts
        after = () if adds else (_checked_once(writer, writer.term(count)),)
        whole = writer.port(fitted(writer.term(array), like.type).operand)
        return Port(writer.add("identity", (whole,), (like.type,), controls=after))
    rows = writer.add("collected_rows", (link, table), rows_types(like.type), Attrs(index=0), parts)
    places, values = writer.term(Port(rows)), writer.term(Port(rows, 1))
    if adds:
        return writer.port(apply("scatter_add", like, places, values, axis=0).operand)
    after = (_checked_once(writer, _counts(like, places)),)
    inputs = (table, values.operand, places.operand)
    return Port(writer.add("put_rows", inputs, (like.type,), Attrs(axis=0), after))


def _checked_once(writer: DerivativeWriter, count: Term) -> Port:
    """The order token after a check that no place has several values; one that has the most is named."""
    counts = apply("concat", writer.term(Const(np.ones(1, np.int64))), count, axis=0)  # not empty
    is_once = apply("max", counts, axes=(0,), keepdims=False) < 2
    place = apply("argmax", counts, axis=0, keepdims=False) - 1
    operands = (is_once.operand, place.operand)
    return Port(writer.add("raise", operands, (CTL,), Attrs(error="ValueError", template=TWICE)))


def _counts(like: Term, places: Term) -> Term:
    """How many values are at each place."""
    none, ones = filled(0, [size(like, 0)], places), filled(1, [size(places, 0)], places)
    return apply("scatter_add", none, places, ones, axis=0)
