"""The table of fields: how records of a plan are encoded as integers, derived from the classes of `plan`.

A record is its fields, one after the other; a tuple is a count and then its members, unless its type fixes the count;
a word of a `Literal` is its index there; an item is the number of its kind, and then its fields.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import fields
from typing import Any, NamedTuple, get_args

from undertow.plan import plan

INTEGERS = ("int", "Operand", "SlotNumber", "RegionNumber", "KernelNumber", "NodeName")
UNIONS = {"Straight": plan.Straight, "Entered": plan.Entered}
# The kinds of items: a kind's number is its place here.
KINDS: tuple[type, ...] = (
    plan.Op,
    plan.Branch,
    plan.Call,
    plan.Loop,
    plan.Map,
    plan.Read,
    plan.Collect,
    plan.Collected,
    plan.Fused,
    plan.Send,
    plan.Recv,
    plan.Replica,
)
PARTS = (plan.Transfer, plan.Exit, plan.Merge, plan.FusedInput, plan.Instruction, plan.FusedOutput)
FRAMES = (plan.Slot, plan.Group, plan.Stage, plan.Program, plan.Region)
RECORDS = {cls.__name__: cls for cls in (*PARTS, *KINDS, *FRAMES)}
_WORDS = ("RegionKind", "SlotKind", "Home", "DeferredKind", "CollectKind", "InstructionKind", "Schedule")
WORDS: dict[str, tuple[str, ...]] = {name: get_args(getattr(plan, name)) for name in _WORDS}
_LEFT_OUT = ("Name", "tuple[Item, ...]", "tuple[tuple[int, int], ...]")  # names, and what only unordered plans have


class Field(NamedTuple):
    """A field of a record, and its type as written in the class."""

    name: str
    type: str


def fields_of(record: type[Any]) -> list[Field]:
    """The fields of a record that the core reads."""
    return [Field(f.name, str(f.type)) for f in fields(record) if f.type not in _LEFT_OUT]


def fields_hash() -> int:
    """A hash of the whole table: the core refuses plans that were encoded by another table than it was built with."""
    records = [(name, fields_of(record)) for name, record in RECORDS.items()]
    return zlib.crc32(repr((records, WORDS)).encode())


def members_of(type_: str) -> tuple[str, int | None] | None:
    """For a tuple: the type of its members, and their number if known; None for anything else.

    >>> members_of("tuple[tuple[SlotNumber, ...], ...]"), members_of("tuple[Operand, Operand]"), members_of("int")
    (('tuple[SlotNumber, ...]', None), ('Operand', 2), None)
    """
    if not (match := re.fullmatch(r"tuple\[(.*)\]", type_)):
        return None
    inside = match.group(1)
    if inside.endswith(", ..."):
        return inside.removesuffix(", ..."), None
    half = inside[: len(inside) // 2 - 1]
    assert inside == f"{half}, {half}", f"{type_}: of one type, or of two that are equal"
    return half, 2
