"""When two constants are the same: they have one type and the same bits.

Python's == cannot tell: 0.0 == -0.0 and 1 == 1.0 == True, while nan != nan.

>>> exact(0.0) == exact(-0.0), exact(1) == exact(True), exact(float("nan")) == exact(float("nan"))
(False, False, True)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import numpy as np

# Values of these types are equal only if they are the same, and differ from all values of the other types here.
PLAIN = frozenset((str, int, type(None)))


def exact(value: object) -> object:
    """A hashable stand-in, equal to that of another constant only if both have one type and the same bits.

    What is neither a number nor a tuple is compared by its own ==, among values of its type. (Recursion is as deep as
    tuples nest in attributes and keys, which Python itself hashes by recursion.)
    """
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is float:
        return kind, struct.pack("d", value)
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    if isinstance(value, tuple):
        return kind, tuple(map(exact, value))
    return kind, value


class ExactKeys(tuple[object, ...]):
    """The keys of a dict, equal to others only if each is the same constant."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and tuple(map(exact, self)) == tuple(map(exact, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(tuple(map(exact, self)))


def keys_of(keys: Iterable[object]) -> tuple[object, ...]:
    """Keys of a dict as they are compared: {1: x} and {True: x} are equal in Python, but not the same."""
    listed = tuple(keys)
    return listed if PLAIN.issuperset(map(type, listed)) else ExactKeys(listed)
