"""The fast path of calls with numbers, arrays and plain containers: the types alone select the program, in one lookup.

It returns what the slow path, which flattens arguments and reports what is wrong with them, found before for
arguments of the same types. Anything unusual, such as an integer that does not fit, takes the slow path again.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from undertow.frontend.trace.definition import Arguments
from undertow.frontend.values import tree
from undertow.ir.exact import PLAIN
from undertow.types import DTYPES, Type

_DTYPES = {d.numpy for d in DTYPES.values()}
_NUMBERS: set[type] = {int, float, bool, *(dtype.type for dtype in _DTYPES)}
# Converters of Python numbers, by dtype: they raise OverflowError if a number does not fit. (Not f32: a number too
# large for it silently becomes inf on the slow path.)
_MAKES: set[type] = {np.bool_, np.int32, np.int64, np.float64}
_MOST = 256  # signatures of one function

Key = tuple[Any, ...]
Takes = list[tuple[int, Callable[[Any], Any]]]  # leaves that are not values yet, and how to make them
# The shapes of arrays: (leaf, shape) if known; (leaf, axis, length) if some lengths are known only at run time. Such a
# length is ~k: axes with the same k had equal lengths in the remembered call (perhaps by name), and must have again.
Shapes = tuple[list[tuple[int, tuple[int, ...]]], list[tuple[int, int, int]]]
Program = TypeVar("Program")


@functools.lru_cache(1024)
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass that is a plain container."""
    is_special = hasattr(kind, "__undertow_parts__") or hasattr(kind, "__undertow_static__")
    if is_special or not dataclasses.is_dataclass(kind) or issubclass(kind, (tuple, list, dict, int, float)):
        return None
    return tuple(f.name for f in dataclasses.fields(kind))


def take_apart(args: Sequence[Any]) -> tuple[Key, list[Any]] | None:
    """The lookup key of the arguments, and their leaves; None if more than types matters."""
    key: list[Any] = []
    leaves: list[Any] = []
    stack = list(reversed(args))
    while stack:
        item = stack.pop()
        kind: Any = type(item)
        if kind is np.ndarray:
            key += (item.dtype, item.ndim)
            leaves.append(item)
        elif kind in _NUMBERS:
            key.append(kind)
            leaves.append(item)
        elif kind is dict and PLAIN.issuperset(map(type, item)):
            key += (kind, tuple(item))
            stack.extend(reversed(item.values()))
        elif kind is tuple or kind is list:
            key += (kind, len(item))
            stack.extend(reversed(item))
        elif (names := _names(kind)) is not None:
            key.append(kind)
            stack.extend([getattr(item, name) for name in reversed(names)])
        elif hasattr(kind, "__undertow_parts__"):  # a forest, sparse rows
            token, contents = item.__undertow_parts__()
            key.append(token)
            stack.extend(reversed(contents))
        else:
            return None
    return tuple(key), leaves


def takes_of(args: Sequence[Any], leaves: Sequence[Any], arguments: Arguments) -> Takes | None:
    """How to build the leaves that the slow path built from these arguments; None if that is not possible."""
    if tuple(tree.flatten(arg)[1] for arg in args) != arguments.structures:
        return None  # defaults have come in, or a list stands for an array
    if len(leaves) != len(arguments.leaves):
        return None  # an array that is no leaf
    takes: Takes = []
    for number, (leaf, taken) in enumerate(zip(leaves, arguments.leaves, strict=True)):
        if isinstance(leaf, (np.ndarray, np.generic)):
            if leaf.dtype not in _DTYPES or leaf.dtype != taken.dtype:
                return None
        elif taken.dtype.type in _MAKES:
            takes.append((number, taken.dtype.type))
        else:
            return None
    return takes


def shapes_of(leaves: Sequence[Any], types: Sequence[Type]) -> Shapes:
    """The shapes of arguments like these."""
    whole: list[tuple[int, tuple[int, ...]]] = []
    parts: list[tuple[int, int, int]] = []
    groups: dict[int, int] = {}  # by length
    for number, (leaf, type_) in enumerate(zip(leaves, types, strict=True)):
        if not isinstance(leaf, np.ndarray):
            continue
        if type_.is_static:
            whole.append((number, leaf.shape))
            continue
        for axis, (n, d) in enumerate(zip(leaf.shape, type_.shape, strict=True)):
            parts.append((number, axis, n if isinstance(d, int) else ~groups.setdefault(n, len(groups))))
    return whole, parts


def has_shapes(leaves: Sequence[Any], shapes: Shapes) -> bool:
    """Are these the shapes of the leaves?"""
    whole, parts = shapes
    for number, wanted in whole:
        if leaves[number].shape != wanted:
            return False
    lengths: dict[int, int] = {}
    for number, axis, length in parts:
        n = leaves[number].shape[axis]
        if (length if length >= 0 else lengths.setdefault(length, n)) != n:
            return False
    return True


class Quick(Generic[Program]):
    """The calls of a function seen so far."""

    def __init__(self) -> None:
        # Only added to, one item at a time: needs no lock.
        self._known: dict[Key, list[tuple[Program, Takes, Shapes]]] = {}
        self._count = 0

    def find(self, args: Sequence[Any]) -> tuple[Program, list[Any]] | None:
        """The program and its input leaves, if a call like this was seen before."""
        try:
            if (apart := take_apart(args)) is None:
                return None
            leaves = apart[1]
            for program, takes, shapes in self._known.get(apart[0], ()):
                if has_shapes(leaves, shapes):
                    for number, make in takes:
                        leaves[number] = make(leaves[number])
                    return program, leaves
            return None
        except Exception:  # a number that does not fit, a field that is not set: the slow path explains what is wrong
            return None

    def add(self, args: Sequence[Any], arguments: Arguments, program: Program) -> None:
        """Remember a call that took the slow path."""
        if self._count >= _MOST or (apart := take_apart(args)) is None:
            return
        if (takes := takes_of(args, apart[1], arguments)) is not None:
            self._count += 1
            self._known.setdefault(apart[0], []).append((program, takes, shapes_of(apart[1], arguments.types)))
