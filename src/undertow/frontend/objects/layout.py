"""Layouts: which columns hold objects of some kinds, and all that these lead to.

Objects are numbered. A column has a row for each object, whatever its kind is: a value, or the number of another
object. A list has a range of the column of its items, between two offsets. None is a number that no column has: reading
a field of None is a fault like any other index that is out of range.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from undertow.frontend.objects.kinds import ITEMS, Field, Kind, Kinds, Unread, Values, reachable
from undertow.types import Type, i32

NONE = 2**30  # the number of None
KIND, OFFSETS = "kind", "offsets"  # columns that stand for no field


@dataclass(frozen=True, slots=True)
class Column:
    """A column: equal fields of several kinds share one."""

    name: str
    type: Type  # of all rows
    owner: Kind | None = None  # the kind of lists whose items, or offsets, it holds
    is_weak: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """The columns of some kinds of objects."""

    kinds: tuple[Kind, ...]
    columns: tuple[Column, ...]

    def number(self, kind: Kind) -> int:
        return self.kinds.index(kind)

    def column(self, kind: Kind, name: Any) -> int | None:
        """The number of the column that holds a field; None if graphs cannot."""
        found = column_of(kind, name, kind.fields[name])
        return None if found is None else self.columns.index(found)

    def special(self, name: str, owner: Kind | None = None) -> int:
        """The column of kinds, or of the offsets of a kind of lists."""
        return self.columns.index(Column(name, Type(i32, (None,)), owner))


def column_of(kind: Kind, name: Any, held: Field) -> Column | None:
    """The column of a field."""
    owner = kind if kind.form == "list" else None
    called = ITEMS if owner is not None else str(name)
    if isinstance(held, Unread):
        return None
    if isinstance(held, Values):
        return Column(called, held.type.with_shape((None, *held.type.shape)), owner, held.is_weak)
    return Column(f"{called}.{type(held).__name__.lower()}", Type(i32, (None,)), owner)


@functools.lru_cache(1024)
def layout_of(kinds: Kinds) -> Layout:
    """The layout of objects of these kinds, and of all that they lead to."""
    every = reachable(kinds)
    columns: dict[Column, None] = {}
    if len(every) > 1:
        columns[Column(KIND, Type(i32, (None,)))] = None
    for kind in every:
        if kind.form == "list":
            columns[Column(OFFSETS, Type(i32, (None,)), kind)] = None
        for name, held in kind.fields.items():
            if (column := column_of(kind, name, held)) is not None:
                columns[column] = None
    return Layout(tuple(every), tuple(columns))
