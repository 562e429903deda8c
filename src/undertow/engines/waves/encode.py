"""A plan as rows of integers, which the core decodes. `plan.fields` says what stands where; names end here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from undertow.engines.native import Encoded, Writer, type_row
from undertow.errors import GraphError
from undertow.plan.fields import INTEGERS, KINDS, RECORDS, UNIONS, WORDS, Field, fields_of, members_of
from undertow.plan.plan import Plan

VERSION = 4
_Write = Callable[[Any, list[int]], object]
_PLAIN = {*INTEGERS, "bool"} - {"NodeName"}
_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def encode(plan: Plan, nodes: Sequence[str]) -> Encoded:
    """All that the core must know; `nodes` are the names of the graph's nodes, in their order."""
    writer = Writer()
    for constant in plan.constants:
        writer.constant(constant)
    for kernel in plan.kernels:
        writer.kernel(kernel.op, kernel.attrs, kernel.inputs, kernel.outputs, kernel.is_effect)
    out: list[int] = []
    write = _Writers({name: number for number, name in enumerate(nodes)})
    for type_, records in (("Group", plan.groups), ("Region", plan.regions)):
        write.of(f"tuple[{type_}, ...]")(records, out)
    return writer.encoded([VERSION, len(nodes)], out)


class _Writers:
    """A function for each type of the table, made when it is first asked for."""

    def __init__(self, nodes: dict[str, int]) -> None:
        self.nodes = nodes
        self.known: dict[str, _Write] = {}
        self.items: dict[type, _Write] = {}

    def of(self, type_: str) -> _Write:
        if type_ not in self.known:
            self.known[type_] = self._make(type_)
        return self.known[type_]

    def _make(self, type_: str) -> _Write:
        if type_ == "NodeName":
            return self._node
        if type_ in INTEGERS or type_ == "bool":
            return lambda value, out: out.append(value)
        if type_ in WORDS:
            words = {word: number for number, word in enumerate(WORDS[type_])}
            return lambda value, out: out.append(words[value])
        if type_ == "Type":
            rows: dict[int, list[int]] = {}  # by the identity of types, of which there are few

            def write_type(value: Any, out: list[int]) -> None:
                row = rows.get(id(value))
                if row is None:
                    row = rows[id(value)] = type_row(value)
                out.extend(row)

            return write_type
        if type_ in UNIONS:
            return self._item
        if (members := members_of(type_)) is not None:
            return self._tuple(*members)
        return self._record(fields_of(RECORDS[type_]))

    def _record(self, fields: Sequence[Field]) -> _Write:
        """Fields one after the other; numbers that follow each other in one go."""
        parts: list[tuple[Callable[[Any], Any], _Write]] = []
        for is_plain, some in groupby(fields, lambda field: field.type in _PLAIN):
            names = [field.name for field in some]
            if is_plain and len(names) > 1:
                parts.append((attrgetter(*names), lambda values, out: out.extend(values)))
            else:
                types = {field.name: field.type for field in fields}
                parts += [(attrgetter(name), self.of(types[name])) for name in names]

        def write(value: Any, out: list[int]) -> None:
            for get, part in parts:
                part(get(value), out)

        return write

    def _tuple(self, type_: str, count: int | None) -> _Write:
        if type_ in INTEGERS and type_ != "NodeName":

            def write_numbers(value: Sequence[int], out: list[int]) -> None:
                if count is None:
                    out.append(len(value))
                out.extend(value)

            return write_numbers
        member = self.of(type_)

        def write(value: Sequence[Any], out: list[int]) -> None:
            if count is None:
                out.append(len(value))
            for each in value:
                member(each, out)

        return write

    def _node(self, value: str, out: list[int]) -> None:
        if value not in self.nodes:
            raise GraphError(
                f"the static graph has no node {value!r}", hint="name one that it has, behind the item: `; node=NAME`"
            )
        out.append(self.nodes[value])

    def _item(self, value: Any, out: list[int]) -> None:
        kind = type(value)
        write = self.items.get(kind)
        if write is None:
            write = self.items[kind] = self.of(kind.__name__)
        out.append(_NUMBERS[kind])
        write(value, out)
