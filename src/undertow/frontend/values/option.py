"""Values that may be None at run time: a value, and a flag beside it that says whether there is one.

Where one side of a join is None and the other a value, the joined value is an `Option`. Where there is none, the
leaves of the value are zeros that nobody reads.

>>> structure, *leaves = agree(flatten((1, None)), flatten((1, 2)))
>>> structure == (("tuple", 2), LEAF, OPTION, LEAF, LEAF), leaves[0][2], leaves[1]
(True, False, [1, 2, True])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.values.leaves import ABSENT, Absent, leaf_type, zero
from undertow.frontend.values.operands import is_number
from undertow.frontend.values.traced import Traced, context
from undertow.frontend.values.tree import LEAF, Identity, Structure, Token, flatten, unflatten

Parts = tuple[Sequence[Any], Structure]  # the leaves of a value, and its structure


class Option:
    """A value that may be None."""

    __slots__ = ("is_there", "value")

    def __init__(self, value: Any, is_there: Any) -> None:
        self.value = value
        self.is_there = is_there

    def __undertow_parts__(self) -> tuple[Token, list[Any]]:
        return OPTION, [self.value, self.is_there]

    @staticmethod
    def __undertow_whole__(_: Any, contents: list[Any]) -> Any:
        value, is_there = contents
        current = context()
        if isinstance(is_there, Traced) or (current is not None and current.builder is not None):
            return Option(value, is_there)
        if np.ndim(is_there):  # of many calls
            leaves, structure = flatten(value)
            rows = [unflatten(structure, [leaf[k] for leaf in leaves]) for k in range(len(is_there))]
            return [row if held else None for row, held in zip(rows, is_there, strict=True)]
        return value if is_there else None

    @staticmethod
    def __undertow_token__(known: Sequence[Any]) -> Token:
        if known:
            raise ValueError(known)
        return OPTION

    @staticmethod
    def __undertow_show__(texts: list[str]) -> str:
        return f"{texts[0]} or None"


def _refused(*_: Any, **__: Any) -> Any:
    raise CaptureError(
        "a value that may be None is used where Python must know now whether it is",
        hint="test it first: `if x is not None:`",
    )


for _name in (
    "__bool__", "__contains__", "__eq__", "__float__", "__format__", "__ge__", "__getitem__", "__gt__",
    "__hash__", "__index__", "__int__", "__iter__", "__le__", "__len__", "__lt__", "__ne__", "__repr__", "__str__",
):  # fmt: skip
    setattr(Option, _name, _refused)

OPTION: Token = ("object", 2, Option, ("value", "is_there"), ())
_NONE: Token = ("static", Identity(None))


def is_option(value: object) -> bool:
    return type(value) is Option


def end_of(structure: Sequence[Token], at: int) -> int:
    """The end of the part of a structure that begins with a token."""
    missing = 1
    while missing:
        token = structure[at]
        missing += -1 if token[0] in ("leaf", "static") else token[1] - 1
        at += 1
    return at


def agree(a: Parts, b: Parts) -> tuple[Structure, list[Any], list[Any]] | None:
    """The structure of two values where None beside a value is an Option, and the leaves of both in it.

    ABSENT stands for the leaves of what is None. The result is None if the structures differ in anything else.
    """
    sides = [(list(leaves), list(structure)) for leaves, structure in (a, b)]
    at = leaf = 0
    while at < max(len(structure) for _, structure in sides):
        tokens = [structure[at] if at < len(structure) else None for _, structure in sides]
        if tokens[0] != tokens[1] and not _join(sides, tokens, at, leaf):
            missing = next((n for n, token in enumerate(tokens) if token == _NONE), None)
            other = next((n for n, token in enumerate(tokens) if token == OPTION), None)
            if missing is not None:
                leaves, structure = sides[1 - missing]
                end = end_of(structure, at)
                if tokens[1 - missing] != OPTION and not _make_option(leaves, structure, at, end, leaf):
                    return None
                inside = structure[at : end_of(structure, at)]
                count = inside.count(LEAF) - 1
                sides[missing][0][leaf:leaf] = [ABSENT] * count + [False]
                sides[missing][1][at : at + 1] = inside
            elif other is not None and tokens[1 - other] is not None:
                leaves, structure = sides[1 - other]
                if not _make_option(leaves, structure, at, end_of(structure, at), leaf):
                    return None
            else:
                return None
        leaf += sides[0][1][at] == LEAF
        at += 1
    return tuple(sides[0][1]), sides[0][0], sides[1][0]


def joined_token(one: Token, other: Token) -> Token | None:
    """The token of objects that are known as either of two (objects/handle.py); None if there is none."""
    if one[0] != "object" or one[:3] != other[:3] or not hasattr(one[2], "__undertow_joined__"):
        return None
    joined: Token = one[2].__undertow_joined__(one[4], other[4])[0]
    return joined


def _join(sides: Sequence[tuple[list[Any], list[Token]]], tokens: Sequence[Token | None], at: int, leaf: int) -> bool:
    """Make handles of objects alike, one of which may be None; False if they are none."""
    found = next((token for token in tokens if token is not None and token[0] == "object"), None)
    join = None if found is None else getattr(found[2], "__undertow_joined__", None)
    if found is None or join is None:
        return False
    if any(token is None or (token != _NONE and token[:3] != found[:3]) for token in tokens):
        return False
    known = [None if token is None or token == _NONE else token[4] for token in tokens]
    token, none = join(*known)
    for (leaves, structure), its in zip(sides, known, strict=True):
        structure[at] = token
        if its is None:
            structure.insert(at + 1, LEAF)
            leaves.insert(leaf, none)
    return True


def _make_option(leaves: list[Any], structure: list[Token], at: int, end: int, leaf: int) -> bool:
    """Make an Option of a part of a value; False if that holds nothing that a graph could."""
    count = structure[at:end].count(LEAF)
    if not count:
        return False
    leaves.insert(leaf + count, True)
    structure[at:end] = [OPTION, *structure[at:end], LEAF]
    return True


def fitted(value: Parts, like: Parts) -> list[Any] | None:
    """The leaves of a value in the structure of another one, with zeros for what is None; None if it does not fit."""
    agreed = agree(value, like)
    if agreed is None or agreed[0] != like[1]:
        return None
    return [blank(other) if isinstance(leaf, Absent) else leaf for leaf, other in zip(*agreed[1:], strict=True)]


def blank(like: Any) -> Any:
    """A zero in place of a leaf: a Python number if that is one."""
    made = zero(leaf_type(like))
    return made.item() if is_number(like) or type(made) is np.bool_ else made


def annotated(structure: Structure, wanted: Structure) -> list[int] | None:
    """For each leaf of a structure, the number of the leaf that it is in an annotated one.

    Where an Option is annotated there may be None, a plain value or an Option. The result is None if the structures
    differ in anything else.

    >>> annotated((LEAF,), (OPTION, LEAF, LEAF)), annotated((_NONE,), (OPTION, LEAF, LEAF))
    ([0], [])
    """
    numbers = list(range(wanted.count(LEAF)))
    tokens = list(wanted)
    leaf = 0
    for at, token in enumerate(structure):
        while at < len(tokens) and tokens[at] == OPTION != token:
            end = end_of(tokens, at)
            count = tokens[at:end].count(LEAF)
            if token == _NONE:
                tokens[at:end] = [_NONE]
                del numbers[leaf : leaf + count]
            else:
                tokens[at:end] = tokens[at + 1 : end - 1]
                del numbers[leaf + count - 1]
        if at == len(tokens) or tokens[at] != token:
            return None
        leaf += token == LEAF
    return numbers if len(tokens) == len(structure) else None
