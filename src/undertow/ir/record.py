"""Records from JSON: a dataclass whose fields must have the types that it declares.

Python checks no types, so a file of a user's could put a string where a number is added up much later.

>>> from dataclasses import dataclass
>>> @dataclass
... class Point:
...     x: "int"
...     y: "float" = 0.0
>>> record_of(Point, {"x": 1, "y": 2})
Point(x=1, y=2)
>>> record_of(Point, {"x": "1"})
Traceback (most recent call last):
ValueError: `x` must be int, not '1'
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar

from undertow.errors import brief

T = TypeVar("T")


def _is_integer(value: object) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63


def _is_number(value: object) -> bool:
    return type(value) is float or _is_integer(value)


def _is_label(value: object) -> bool:
    return _is_integer(value) or (type(value) is list and len(value) == 2 and all(map(_is_integer, value)))


# By what is written after the colon. A type that is not here is a KeyError the first time that anybody looks.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "bool": lambda value: type(value) is bool,
    "int": _is_integer,
    "float": _is_number,
    "str": lambda value: type(value) is str,
    "int | None": lambda value: value is None or _is_integer(value),
    "Label | None": lambda value: value is None or _is_label(value),
    "tuple[str, ...]": lambda value: type(value) is list and all(type(item) is str for item in value),
}


def record_of(kind: type[T], data: object) -> T:
    """The record with these fields, lists as tuples; a ValueError if it cannot have them."""
    if type(data) is not dict:
        raise ValueError(f"{kind.__name__} must be an object, not {brief(data)}")
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    if unknown := data.keys() - fields.keys():
        raise ValueError(f"{kind.__name__} has no {brief(min(unknown))}")
    found: dict[str, Any] = {}
    for name, field in fields.items():
        if name in data:
            if not _KINDS[str(field.type)](data[name]):
                raise ValueError(f"`{name}` must be {field.type}, not {brief(data[name])}")
            found[name] = tuple(data[name]) if type(data[name]) is list else data[name]
        elif field.default is dataclasses.MISSING:
            raise ValueError(f"{kind.__name__} lacks `{name}`")
    return kind(**found)
