"""`tensorflow.python.util.nest`: nested lists, tuples, named tuples and dicts of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from undertow.compat.v1.place import here
from undertow.errors import TypeMismatch
from undertow.frontend.values import tree

__all__ = ["assert_same_structure", "flatten", "is_sequence", "map_structure", "pack_sequence_as"]


def is_sequence(value: Any) -> bool:
    """Is it a list, a tuple or a dict?"""
    return isinstance(value, (list, tuple, dict))


def _flat(structure: Any) -> tuple[list[Any], tree.Structure]:
    return tree.flatten(structure, lambda value: not is_sequence(value))


def flatten(structure: Any) -> list[Any]:
    """What a structure holds, in order."""
    return _flat(structure)[0]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """The same structure with other contents."""
    leaves, shape = _flat(structure)
    if len(leaves) != len(flat_sequence):
        raise TypeMismatch(
            f"Could not pack sequence. Structure had {len(leaves)} elements, but flat_sequence had "
            f"{len(flat_sequence)} elements.",
            here(),
            hint="give as many",
        )
    return tree.unflatten(shape, list(flat_sequence))


def map_structure(func: Callable[..., Any], *structure: Any, check_types: bool = True) -> Any:
    """A function applied to what structures hold at the same place."""
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in zip(*map(flatten, structure), strict=True)])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise an error if two structures differ."""
    (ones, one), (others, other) = _flat(nest1), _flat(nest2)
    if len(ones) != len(others):
        raise TypeMismatch(
            "The two structures don't have the same number of elements.", here(), hint="give both the same structure"
        )
    if check_types and one != other:
        raise TypeMismatch("The two structures don't have the same nested structure.", here(), hint="make them equal")
