"""Handles among arguments and results, where an annotation names itself (kinds.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.errors import Span, TypeMismatch
from undertow.frontend.objects.convert import Converted, Root, convert_objects
from undertow.frontend.objects.gradient import Gradient, as_objects
from undertow.frontend.objects.handle import Handle, Word, as_handle
from undertow.frontend.objects.kinds import Kinds
from undertow.frontend.values import tree


def is_handle(token: tree.Token) -> bool:
    return token[0] == "object" and token[2] is Handle


def has_handles(structure: tree.Structure) -> bool:
    """Are there objects of run-time shape in a structure?"""
    return any(map(is_handle, structure))


def alike(structure: tree.Structure) -> tree.Structure:
    """A structure in which handles of any kinds are the same."""
    if not has_handles(structure):
        return structure
    return tuple((*token[:4], None) if is_handle(token) else token for token in structure)


def with_handles(structure: tree.Structure, value: Any, make: Callable[[Any, Kinds], Any]) -> Any:
    """A value with what `make` gives where a structure has handles; the value itself where it has another structure."""
    if len(structure) == 2 and is_handle(structure[0]):
        return make(value, structure[0][4])
    if structure == (tree.LEAF,):
        return value.value() if isinstance(value, Handle) and value.may_be_number else value
    if not has_handles(structure):
        return value
    kinds: list[Kinds | None] = []
    plain: list[tree.Token] = []
    tokens = iter(structure)
    for token in tokens:
        if is_handle(token):
            next(tokens)  # its number
            kinds.append(token[4])
            plain.append(tree.LEAF)
        else:
            kinds += [None] * (token == tree.LEAF)
            plain.append(token)
    leaves = tree.along(tuple(plain), value)
    if leaves is None:
        return value
    made = [leaf if its is None else make(leaf, its) for leaf, its in zip(leaves, kinds, strict=True)]
    return tree.unflatten(tuple(plain), made)


class Given:
    """The objects among the arguments of a call from outside: handles now, converted when all are known."""

    def __init__(self) -> None:
        self.roots: list[Root] = []
        self.handles: list[Handle] = []

    def take(self, structure: tree.Structure, value: Any, called: str, path: str) -> Any:
        """An argument with handles in place of objects."""

        def make(one: Any, kinds: Kinds) -> Handle:
            if isinstance(one, Handle):
                return one
            handle = Handle(kinds, len(self.roots))
            self.roots.append(Root(one, kinds, called, path))
            self.handles.append(handle)
            return handle

        return with_handles(structure, value, make)

    def take_each(self, structure: tree.Structure, values: Sequence[Any], called: str, path: str) -> Handle:
        """A handle of many objects: those that a function is mapped over."""
        start = len(self.roots)
        kinds = structure[0][4]
        self.roots += [Root(one, kinds, f"item {k} of {called}", f"{path}[{k}]") for k, one in enumerate(values)]
        handle = Handle(kinds, slice(start, len(self.roots)))
        self.handles.append(handle)
        return handle

    def convert(self, span: Span | None) -> Converted | None:
        """Their columns; the handles get their numbers."""
        if not self.handles:
            return None
        converted, found = convert_objects(self.roots, self.handles[0].kinds, span)
        numbers = np.array(found, np.int32)
        for handle in self.handles:
            handle.number = numbers[handle.number]
        return converted


def in_graph(structure: tree.Structure, value: Any, called: str, widens: bool) -> Any:
    """A value of a graph with handles where an annotation has them, of the kinds annotated, or of more."""
    return with_handles(structure, value, lambda one, kinds: as_handle(one, kinds, called, widens))


def restored(value: Any, converted: Converted) -> Any:
    """A result with the caller's own objects in place of handles."""
    is_ours = lambda part: isinstance(part, (Handle, Word, Gradient))  # noqa: E731
    leaves, structure = tree.flatten(value, is_ours)
    if not any(map(is_ours, leaves)):
        return value
    found = []
    for leaf in leaves:
        if isinstance(leaf, Handle):
            found.append(converted.object(leaf.number))
        elif isinstance(leaf, Gradient):
            found.append(as_objects(leaf, converted))
        elif isinstance(leaf, Word):
            raise TypeMismatch("a string of an object cannot be returned", hint="return the object that has it")
        else:
            found.append(leaf)
    return tree.unflatten(structure, found)
