"""Calls with numbers, arrays and plain containers of them: the types alone say which program to run, in one look.

What is found is what the long way, which takes arguments apart and names what is wrong with them, has found before for
arguments of the same types. Where anything is unusual, such as an integer that does not fit, it is the long way again.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from undertow.frontend import tree
from undertow.frontend.capture import Arguments
from undertow.types import DTYPES

_DTYPES = {d.numpy for d in DTYPES.values()}
_NUMBERS: set[type] = {int, float, bool, *(dtype.type for dtype in _DTYPES)}
# How Python numbers become values of a dtype: these raise OverflowError where a number does not fit. (f32 is not among
# them: what is too large for it becomes inf without a word, the long way.)
_MAKES: set[type] = {np.bool_, np.int32, np.int64, np.float64}
_MOST = 256  # signatures of one function: shapes are part of them, and may be new in every call

Key = tuple[Any, ...]
Takes = tuple[Callable[[Any], Any] | None, ...]  # what makes a value of each leaf; None: it is one
Program = TypeVar("Program")


@functools.lru_cache(1024)
def _names(kind: type) -> tuple[str, ...] | None:
    """The fields of a dataclass that is a container and nothing else."""
    is_special = hasattr(kind, "__undertow_parts__") or hasattr(kind, "__undertow_static__")
    if is_special or not dataclasses.is_dataclass(kind) or issubclass(kind, (tuple, list, dict, int, float)):
        return None
    return tuple(f.name for f in dataclasses.fields(kind))


def take_apart(args: Sequence[Any]) -> tuple[Key, list[Any]] | None:
    """What decides how arguments are taken, and their leaves; None where it is more than types that decides."""
    key: list[Any] = []
    leaves: list[Any] = []
    stack = list(reversed(args))
    while stack:
        item = stack.pop()
        kind: Any = type(item)
        if kind is np.ndarray:
            key.append((item.dtype, item.shape))
            leaves.append(item)
        elif kind in _NUMBERS:
            key.append(kind)
            leaves.append(item)
        elif kind is dict:
            key += (kind, tuple(item))
            stack.extend(reversed(item.values()))
        elif kind is tuple or kind is list:
            key += (kind, len(item))
            stack.extend(reversed(item))
        elif (names := _names(kind)) is not None:
            key.append(kind)
            stack.extend([getattr(item, name) for name in reversed(names)])
        else:
            return None
    return tuple(key), leaves


def takes_of(args: Sequence[Any], leaves: Sequence[Any], given: Arguments) -> Takes | None:
    """How to make the leaves that the long way made of these arguments; None where there is more to it."""
    if tuple(tree.flatten(arg)[1] for arg in args) != given.structures:
        return None  # defaults have come in, or a list stands for an array
    takes: list[Callable[[Any], Any] | None] = []
    for leaf, made in zip(leaves, given.leaves, strict=True):
        if isinstance(leaf, (np.ndarray, np.generic)):
            if leaf.dtype not in _DTYPES or leaf.dtype != made.dtype:
                return None
            takes.append(None)
        elif made.dtype.type in _MAKES:
            takes.append(made.dtype.type)
        else:
            return None
    return tuple(takes)


class Quick(Generic[Program]):
    """What a function knows about such calls."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Program, Takes]] = {}  # only added to, one item at a time: needs no lock

    def find(self, args: Sequence[Any]) -> tuple[Program, list[Any]] | None:
        """The program for such arguments and the leaves that it is fed with, if a call like this was seen before."""
        try:
            if (apart := take_apart(args)) is None or (known := self._known.get(apart[0])) is None:
                return None
            return known[0], [x if take is None else take(x) for x, take in zip(apart[1], known[1], strict=True)]
        except Exception:  # a number that does not fit, a field that is not set: the long way says what is wrong
            return None

    def add(self, args: Sequence[Any], given: Arguments, program: Program) -> None:
        """Remember a call that went the long way."""
        if len(self._known) >= _MOST or (apart := take_apart(args)) is None:
            return
        if (takes := takes_of(args, apart[1], given)) is not None:
            self._known[apart[0]] = program, takes
