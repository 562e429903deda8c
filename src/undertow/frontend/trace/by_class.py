"""Objects that count by their class: another one serves as well, since what a program reads of it is guarded."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from enum import Enum
from types import MethodType, ModuleType
from typing import Any

import numpy as np

from undertow.frontend.syntax.calling import is_user_class
from undertow.frontend.values import tree

# The hint for objects of a plain class that the run would have to choose between.
DATACLASS = "make `{}` a @dataclass with annotated fields: these are then values of the graph"


def is_object(value: Any) -> bool:
    """Is it an object that is read attribute by attribute, so that another one of its class serves as well?"""
    kind = type(value)
    if (
        isinstance(value, (type, ModuleType))
        or hasattr(kind, "__undertow_read__")
        or kind.__module__.startswith("undertow.")
    ):
        return False
    if hasattr(kind, "__undertow_definition__"):
        return False
    return is_user_class(kind) or (kind.__module__ != "builtins" and hasattr(value, "__dict__") and not callable(value))


@functools.lru_cache(1024)
def is_read_by_attributes(kind: type) -> bool:
    """Are all objects of this class read attribute by attribute?"""
    if issubclass(kind, (type, ModuleType, Enum, np.ndarray)) or hasattr(kind, "__undertow_read__"):
        return False
    return is_user_class(kind) and not hasattr(kind, "__undertow_definition__")


def is_users_object(value: Any) -> bool:
    """Is it an object of a class of the user's, read attribute by attribute?"""
    kind: Any = type(value)
    return is_read_by_attributes(kind)


def is_guarded_by_class(value: Any) -> bool:
    """Does a static argument count by its class? What it holds is guarded where it is read."""
    return (
        is_object(value)
        or isinstance(value, (set, frozenset, deque, MethodType, functools.partial))
        or (isinstance(value, np.ndarray) and value.dtype.kind != "O")
    ) and not isinstance(value, Enum)


def static_objects(structures: Sequence[tree.Structure]) -> list[Any]:
    """The objects among arguments that count by their class, in order."""
    return [
        token[1].value
        for structure in structures
        for token in structure
        if token[0] == "static" and is_guarded_by_class(token[1].value)
    ]


def by_class(structures: tuple[tree.Structure, ...]) -> tuple[tree.Structure, ...]:
    """The structures of arguments, with the class in place of each object that counts by it."""
    if not any(token[0] == "static" for structure in structures for token in structure):
        return structures
    return tuple(
        tuple(
            ("instance", type(token[1].value))
            if token[0] == "static" and is_guarded_by_class(token[1].value)
            else token
            for token in structure
        )
        for structure in structures
    )
