"""A plan as rows of integers, which the core decodes. `plan.fields` says what stands where; names end here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from undertow.engines.native import Encoded, Writer, type_row
from undertow.plan.fields import INTEGERS, KINDS, RECORDS, UNIONS, WORDS, fields_of, members_of
from undertow.plan.plan import Plan

VERSION = 4
_Write = Callable[[Any, list[int]], object]
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

    def of(self, type_: str) -> _Write:
        if type_ not in self.known:
            self.known[type_] = self._make(type_)
        return self.known[type_]

    def _make(self, type_: str) -> _Write:
        if type_ == "NodeName":
            return lambda value, out: out.append(self.nodes[value])
        if type_ in INTEGERS or type_ == "bool":
            return lambda value, out: out.append(value)
        if type_ in WORDS:
            words = {word: number for number, word in enumerate(WORDS[type_])}
            return lambda value, out: out.append(words[value])
        if type_ == "Type":
            return lambda value, out: out.extend(type_row(value))
        if type_ in UNIONS:
            return self._item
        if (members := members_of(type_)) is not None:
            return self._tuple(*members)
        parts = [(field.name, self.of(field.type)) for field in fields_of(RECORDS[type_])]

        def write(value: Any, out: list[int]) -> None:
            for name, part in parts:
                part(getattr(value, name), out)

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

    def _item(self, value: Any, out: list[int]) -> None:
        out.append(_NUMBERS[type(value)])
        self.of(type(value).__name__)(value, out)
