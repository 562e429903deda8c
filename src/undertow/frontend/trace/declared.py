"""Dimensions that a class declares to be known only at run time, so that arrays of any length share one capture.

An argument without annotation takes the types of the actual call, sizes included. Where the fields of a dataclass or a
named tuple are annotated with types, dimensions that these leave open (`ut.i32["n"]`, `ut.f32[None, 3]`) stay open: a
dataclass that declares `word: ut.i32["n"]` may hold another number of words in every call, and nothing is captured
again. One of our own classes with `__undertow_parts__` declares them by `__undertow_types__`, which may also contain
`OPEN_ROWS`.

>>> from dataclasses import make_dataclass
>>> import numpy as np
>>> from undertow.frontend.values import tree
>>> from undertow.types import f32, i32
>>> Sentence = make_dataclass("Sentence", [("words", i32["n"]), ("weight", f32[3])])
>>> declared(tree.flatten(Sentence(np.zeros(5, np.int32), np.zeros(3, np.float32)))[1])
[i32[n], f32[3]]
"""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterator, Sequence
from typing import Any

from undertow.frontend.syntax.annotations import stated
from undertow.frontend.values.tree import LEAF, Structure, Token
from undertow.types import Type


class OpenRows:
    """Stands for an array of any type and rank whose first dimension is open."""


OPEN_ROWS = OpenRows()
Declared = Type | OpenRows | None


def opened(types: Sequence[Type], structure: Structure) -> list[Type]:
    """The types of the leaves of a structure, with dimensions open where its classes declare them so."""
    if not any(token[0] in _CLASSES for token in structure):
        return list(types)
    return [_open(type, note) for type, note in zip(types, declared(structure), strict=True)]


def declared(structure: Structure) -> list[Declared]:
    """For each leaf of a structure, the type that the class around it declares, if any."""
    found: list[Declared] = []
    # The declarations of the values still to come, container by container.
    stack: list[Iterator[Any]] = [iter([None])]
    for token in structure:
        while (note := next(stack[-1], stack)) is stack:
            stack.pop()
        if token == LEAF:
            note = stated(note)
            found.append(note if isinstance(note, (Type, OpenRows)) else None)
        elif token[0] != "static":
            stack.append(iter(_notes(token, note)))
    return found


def _open(type: Type, note: Declared) -> Type:
    if isinstance(note, OpenRows):
        return type.with_shape((None, *type.shape[1:])) if type.rank else type
    if note is None or note.rank != type.rank:
        return type
    pairs = zip(type.shape, note.shape, strict=True)
    return type.with_shape(tuple(size if isinstance(wanted, int) else None for size, wanted in pairs))


def _notes(token: Token, note: Any) -> Sequence[Any]:
    """The declarations of the values that a container holds."""
    if token[0] in ("dataclass", "namedtuple"):
        names = token[3] if token[0] == "dataclass" else token[2]._fields
        return [_hints(token[2]).get(name) for name in names]
    if token[0] == "object" and hasattr(token[2], "__undertow_types__"):
        notes: Sequence[Any] = token[2].__undertow_types__(token[4])
        return notes
    inner = typing.get_args(note) if token[0] == "tuple" and typing.get_origin(note) is tuple else ()
    return inner if len(inner) == token[1] else [None] * token[1]


@functools.lru_cache(1024)
def _hints(kind: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception:  # annotations with unknown names declare nothing
        return {}


_CLASSES = frozenset(("dataclass", "namedtuple", "object"))
