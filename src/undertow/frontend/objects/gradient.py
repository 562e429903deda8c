"""Gradients with respect to the floats that objects hold: columns in a graph, and objects like the argument outside.

An object has one gradient, wherever it is reached from. So what an argument shares with itself, or with another
argument, is shared in the gradient, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.objects.convert import Converted, getter_of
from undertow.frontend.objects.handle import objects_now
from undertow.frontend.objects.kinds import ITEMS, Handles, Kind, Kinds, Values, reachable
from undertow.frontend.objects.layout import NONE
from undertow.frontend.values import tree


def float_columns(kinds: Kinds) -> tuple[int, ...]:
    """The columns of the floats that objects of these kinds, and all that they lead to, hold."""
    objects = objects_now()
    found = {
        objects.layout.column(kind, name): None
        for kind in reachable(kinds)
        for name, held in kind.fields.items()
        if isinstance(held, Values) and held.type.dtype.is_inexact
    }
    return tuple(number for number in found if number is not None)


class Gradient:
    """The gradient with respect to an object, by its number and the cotangents of columns."""

    __slots__ = ("columns", "known", "number")

    def __init__(self, known: tuple[int, ...], number: Any, columns: Sequence[Any]) -> None:
        self.known, self.number, self.columns = known, number, columns

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise CaptureError(
            f"`{name}` of the gradient of an object cannot be read in a graph",
            hint="return the gradient, and read it outside",
        )

    def __undertow_parts__(self) -> tuple[tree.Token, list[Any]]:
        return token_of(self.known), [self.number, *self.columns]

    @staticmethod
    def __undertow_whole__(known: tuple[int, ...], contents: Sequence[Any]) -> Gradient:
        return Gradient(known, contents[0], contents[1:])


def token_of(known: tuple[int, ...]) -> tree.Token:
    """The token of a gradient with respect to these columns."""
    return "object", 1 + len(known), Gradient, ("number", *(f"column.{k}" for k in known)), known


def as_objects(gradient: Gradient, converted: Converted) -> Any:
    """The gradient as objects like the argument."""
    if np.ndim(gradient.number):  # of many calls
        lanes = zip(gradient.number, zip(*gradient.columns, strict=True), strict=True)
        return [as_objects(Gradient(gradient.known, number, columns), converted) for number, columns in lanes]
    columns = dict(zip(gradient.known, gradient.columns, strict=True))
    return _Copies(columns, converted).of(int(gradient.number))


class _Copies:
    """Makes objects like others, each once, with gradients in place of floats and None in place of other values."""

    def __init__(self, columns: dict[int, Any], converted: Converted) -> None:
        self.columns, self.layout, self.objects = columns, converted.layout, converted
        self.made: dict[int, Any] = {}

    def of(self, root: int) -> Any:
        waiting: list[tuple[int, bool]] = [(root, False)]
        filled: list[Callable[[], None]] = []
        while waiting:
            number, is_ready = waiting.pop()
            if number == NONE or number in self.made:
                continue
            kind = self.objects.kind(number)
            below = self.objects.below(number)
            if not is_ready and _is_frozen(kind):  # it is made when all that it holds is
                waiting += [(number, True), *((other, False) for other in below)]
                continue
            self.made[number], fill = self._made(kind, number)
            filled.append(fill)
            waiting += [(other, False) for other in below]
        for fill in filled:
            fill()
        return None if root == NONE else self.made[root]

    def _made(self, kind: Kind, number: int) -> tuple[Any, Callable[[], None]]:
        value = self.objects.objects[number]
        if kind.form == "value":
            return self._leaf(kind, "value", number), _nothing
        if kind.form == "list":
            made: list[Any] = []
            if _is_frozen(kind):
                return tuple(self._items(kind, number)), _nothing
            return made, lambda: made.extend(self._items(kind, number))
        if _is_frozen(kind):
            return tree.build(_token(kind), [self._field(kind, name, number) for name in kind.fields]), _nothing
        if kind.form == "dict":
            entries: dict[Any, Any] = {}
            return entries, lambda: entries.update({name: self._field(kind, name, number) for name in kind.fields})
        copy = object.__new__(type(value)) if hasattr(type(value), "__dataclass_fields__") else SimpleNamespace()

        def fill() -> None:
            for name in kind.fields:
                object.__setattr__(copy, name, self._field(kind, name, number))

        return copy, fill

    def _field(self, kind: Kind, name: Any, number: int) -> Any:
        if not isinstance(kind.fields[name], Handles):
            return self._leaf(kind, name, number)
        held = getter_of(kind, name)(self.objects.objects[number])
        return None if held is None else self.made[self.objects.number(number, name)]

    def _leaf(self, kind: Kind, name: Any, row: int) -> Any:
        column = self.layout.column(kind, name)
        return self.columns[column][row] if column in self.columns else None

    def _items(self, kind: Kind, number: int) -> list[Any]:
        rows = self.objects.rows(kind, number)
        if isinstance(kind.fields[ITEMS], Handles):
            return [None if other == NONE else self.made[other] for other in self.objects.below(number)]
        column = self.layout.column(kind, ITEMS)
        return list(self.columns[column][rows]) if column in self.columns else [None] * (rows.stop - rows.start)


def _nothing() -> None:
    """What is whole needs no filling."""


def _is_frozen(kind: Kind) -> bool:
    return kind.form != "value" and issubclass(kind.python, tuple)


def _token(kind: Kind) -> tree.Token:
    return ("tuple", len(kind.fields)) if kind.form == "tuple" else ("namedtuple", len(kind.fields), kind.python)
