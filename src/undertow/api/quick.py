"""Calls with numbers and arrays alone: all that they need is found by the types of the arguments, in one look.

What is found is what the long way, which takes arguments apart and names what is wrong with them, has found before for
arguments of the same types. Where anything is unusual, such as an integer that does not fit, it is the long way again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from undertow.frontend import tree
from undertow.frontend.capture import Arguments
from undertow.types import DTYPES

_PYTHON: tuple[type, ...] = (int, float, bool)
_NUMPY = {d.numpy.type: d.numpy for d in DTYPES.values()}
# How Python numbers become values of a dtype: these raise OverflowError where a number does not fit. (f32 is not among
# them: what is too large for it becomes inf without a word, the long way.)
_MAKES = {np.bool_, np.int32, np.int64, np.float64}
_DTYPES = set(_NUMPY.values())
_MOST = 256  # signatures of one function: shapes are part of them, and may be new in every call

Key = tuple[Any, ...]
Program = TypeVar("Program")
Takes = tuple[Callable[[Any], Any] | None, ...]  # what makes a value of each argument; None: it is one


def key_of(args: Sequence[Any]) -> Key | None:
    """What decides how arguments are taken, or None where that is more than types."""
    key: list[Any] = []
    for arg in args:
        kind = type(arg)
        if kind is np.ndarray:
            key.append((arg.dtype, arg.shape))
        elif kind in _PYTHON or kind in _NUMPY:
            key.append(kind)
        else:
            return None
    return tuple(key)


def takes_of(args: Sequence[Any], given: Arguments) -> Takes | None:
    """How to make the leaves that the long way made of these arguments; None where there is more to it."""
    if len(args) != len(given.leaves) or any(structure != (tree.LEAF,) for structure in given.structures):
        return None
    takes: list[Callable[[Any], Any] | None] = []
    for arg, leaf in zip(args, given.leaves, strict=True):
        if isinstance(arg, (np.ndarray, np.generic)):
            if arg.dtype not in _DTYPES or arg.dtype != leaf.dtype:
                return None
            takes.append(None)
        elif leaf.dtype.type in _MAKES:
            takes.append(leaf.dtype.type)
        else:
            return None
    return tuple(takes)


class Quick(Generic[Program]):
    """What a function knows about calls with numbers and arrays alone."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Program, Takes]] = {}  # only added to, one item at a time: needs no lock

    def find(self, args: Sequence[Any]) -> tuple[Program, list[Any]] | None:
        """The program for such arguments and the values that it is fed with, if a call like this was seen before."""
        key = key_of(args)
        if key is None or (known := self._known.get(key)) is None:
            return None
        program, takes = known
        try:
            return program, [arg if take is None else take(arg) for arg, take in zip(args, takes, strict=True)]
        except OverflowError:
            return None

    def add(self, args: Sequence[Any], given: Arguments, program: Program) -> None:
        """Remember a call that went the long way."""
        key = key_of(args)
        if key is None or len(self._known) >= _MOST:
            return
        takes = takes_of(args, given)
        if takes is not None:
            self._known[key] = program, takes
