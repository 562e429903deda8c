"""Encodes a plan as integers for the core. `plan.fields` defines the layout; names are left out.

The code that writes records is generated from that table, as dataclasses generate theirs: a plan has thousands of
records, so encoding must be fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from undertow.engines.native import Encoded, Encoder, type_row
from undertow.errors import GraphError
from undertow.plan.fields import INTEGERS, KINDS, RECORDS, UNIONS, WORDS, fields_hash, fields_of, members_of
from undertow.plan.plan import Plan

VERSION = 5  # of the encoding of what is not a record, and of the meaning of fields; `fields_hash` covers the records
_FORMAT = fields_hash() << 8 | VERSION
_Rows = list[int]


def encode(plan: Plan, nodes: Sequence[str], others: Mapping[str, int] = MappingProxyType({})) -> Encoded:
    """The plan as the core reads it; `nodes` are the names of the graph's nodes, in order.

    Of a part, `nodes` are those of the whole graph, and `others` the numbers of its own ones there.
    """
    encoder = Encoder()
    for constant in plan.constants:
        encoder.constant(constant)
    for kernel in plan.kernels:
        encoder.kernel(kernel.op, kernel.attrs, kernel.inputs, kernel.outputs, kernel.is_effect)
    out: _Rows = []
    _writer()(plan, out, _NodeNumbers({**others, **{name: number for number, name in enumerate(nodes)}}))
    return encoder.encoded([_FORMAT, len(nodes)], out)


@cache
def _writer() -> Callable[[Plan, _Rows, dict[str, int]], None]:
    """The function that writes groups and regions of a plan; its third argument maps node names to numbers."""
    known: dict[str, Any] = {"type_row": lru_cache(maxsize=4096)(type_row)}
    known |= {name: {word: number for number, word in enumerate(words)} for name, words in WORDS.items()}
    lines = ["def write(value, out, nodes):", *_put("value.groups", "tuple[Group, ...]")]
    lines += _put("value.regions", "tuple[Region, ...]")
    for name, record in RECORDS.items():
        lines.append(f"def {name}(value, out, nodes):")
        lines += [line for field in fields_of(record) for line in _put(f"value.{field.name}", field.type)]
    exec("\n".join(lines), known)
    known["items"] = {cls: (number, known[cls.__name__]) for number, cls in enumerate(KINDS)}
    return known["write"]  # type: ignore[no-any-return]


def _put(value: str, type_: str) -> list[str]:
    """The lines that write a value of a type, one column in."""
    if type_ == "NodeName":
        return [f" out.append(nodes[{value}])"]
    if type_ in INTEGERS or type_ == "bool":
        return [f" out.append({value})"]
    if type_ in WORDS:
        return [f" out.append({type_}[{value}])"]
    if type_ == "Type":
        return [f" out += type_row({value})"]
    if type_ in UNIONS:
        return [f" kind, put = items[{value}.__class__]", " out.append(kind)", f" put({value}, out, nodes)"]
    if (members := members_of(type_)) is None:
        return [f" {type_}({value}, out, nodes)"]
    member, count = members
    head = [f" out.append(len({value}))"] if count is None else []
    if member in INTEGERS and member != "NodeName":
        return [*head, f" out += {value}"]
    each = value.count("each") * "_" + "each"  # a name for each depth of nesting
    return [*head, f" for {each} in {value}:", *(f" {line}" for line in _put(each, member))]


class _NodeNumbers(dict[str, int]):
    """The number of each node, by its name."""

    def __missing__(self, name: str) -> int:
        raise GraphError(
            f"the static graph has no node {name!r}", hint="name an existing one after the item: `; node=NAME`"
        )
