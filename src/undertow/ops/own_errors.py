"""Exceptions that a graph raises: those of the user's own classes, and Python's with arguments other than one text.

A graph knows them by a name, since it is data that can be saved. The process that has captured the function knows the
class and how to make the instance; elsewhere the exception of Python's arrives that the class derives from.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from undertow.errors import Fault

Make = Callable[[Sequence[Any]], BaseException]  # from the values known at run time
_MAKERS: dict[str, tuple[type[BaseException], Hashable, Make]] = {}


def name_of(kind: type[BaseException], form: Hashable, make: Make) -> str:
    """The name of an exception in graphs; those of one class and form share it."""
    number = 1
    while True:
        name = f"{kind.__qualname__}~{number}"
        held = _MAKERS.setdefault(name, (kind, form, make))
        if held[0] is kind and held[1] == form:
            return name
        number += 1


def own_error(fault: BaseException) -> BaseException | None:
    """The exception that the program has raised, if a fault stands for one whose arguments are more than its text."""
    name, values = fault.raised if isinstance(fault, Fault) and fault.raised else ("", ())
    return _MAKERS[name][2](values) if name in _MAKERS else None
