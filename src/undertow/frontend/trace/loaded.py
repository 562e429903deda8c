"""A definition without Python source: its graphs are given, and its arguments must have the types of one of them.

Containers match by name, not by identity of their class: a dataclass or namedtuple fits a saved one if its name and
its fields are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from undertow.errors import TypeMismatch
from undertow.frontend.syntax.annotations import Annotation
from undertow.frontend.syntax.source import NoSource
from undertow.frontend.trace.definition import Arguments, Definition
from undertow.frontend.trace.graft import Ready
from undertow.frontend.values import tree
from undertow.frontend.values.traced import context
from undertow.types import f32, i32


class LostDefault:
    """Stands for a default that could not be saved, since it was not plain data."""

    def __repr__(self) -> str:
        return "<a default that was not saved>"


LOST = LostDefault()


class ReadyDefinition(Definition):
    """A function that was captured elsewhere, at one or more signatures."""

    is_python = False

    def __init__(
        self, source: NoSource, notes: Mapping[str, Annotation], classes: Sequence[type], signatures: Sequence[Ready]
    ) -> None:
        super().__init__(source)
        self._notes = dict(notes)
        self.signatures = tuple(signatures)
        self._classes = {_looks(cls): cls for cls in reversed(classes)}  # of two with the same look, the first
        self._classes_here = frozenset(classes)

    def children(self, value: object) -> tuple[tree.Token, list[Any]] | None:
        """The token and contents of a container; one that looks like a saved class counts as that class."""
        container = tree.children(value)
        if container is None or container[0][0] not in ("dataclass", "namedtuple"):
            return container
        (kind, count, cls, *rest), contents = container
        if cls not in self._classes_here:
            cls = self._classes.get(_looks(cls), cls)
        return (kind, count, cls, *rest), contents

    def ready(self, arguments: Arguments) -> Ready:
        """The graphs for these arguments."""
        fitting = [
            signature
            for signature in self.signatures
            if signature.structures == arguments.structures
            and all(takes.accepts(type) for takes, type in zip(signature.types, arguments.types, strict=True))
        ]
        for signature in fitting:
            if signature.weak is None or signature.weak == arguments.weak:
                return signature
        current = context()
        is_mapped = current is not None and current.builder is not None and current.builder.kind == "map"
        for signature in fitting:
            if is_mapped or not _tells_weak(signature):  # a map has no Python numbers
                return signature
        raise self._refusal(arguments)

    def _refusal(self, arguments: Arguments) -> TypeMismatch:
        current = context()
        span = current.span if current is not None else None
        alike = [signature for signature in self.signatures if signature.structures == arguments.structures]
        shown = show_arguments(arguments.structures, arguments.types, arguments.parameters)
        what = f"`{self.name}` was not saved for {shown}"
        if any(signature.types == arguments.types for signature in alike):
            numbers = ", ".join(
                f"`{name}`" for name, weak in zip(arguments.names, arguments.weak, strict=False) if weak
            )
            told = f"Python numbers as {numbers}" if numbers else "numbers of NumPy's"
            what = f"`{self.name}` was not saved for {told}: beside i32 and f32 they mean something else"
        elif len(alike) == 1:
            for name, takes, type in zip(arguments.names, alike[0].types, arguments.types, strict=True):
                if not takes.accepts(type):
                    what = f"`{name}` of `{self.name}` must be {takes}, not {type}"
                    break
        saved = "; ".join(
            show_arguments(signature.structures, signature.types, tuple(self.closure.signature.parameters))
            for signature in self.signatures[:4]
        )
        more = "; ..." if len(self.signatures) > 4 else ""
        hint = (
            f"it was saved for {saved}{more}; to add signatures, ut.save it with examples=[...]"
            if saved
            else f"it was saved only for map: call {self.name}.map, or ut.save it with examples=[...]"
        )
        return TypeMismatch(what, span, hint)


def _tells_weak(signature: Ready) -> bool:
    """May it matter whether its arguments are Python numbers? They take the dtypes of what they meet, if narrower."""
    narrow = (i32, f32)
    nodes = (node for graph in signature.graphs.values() for node in graph.nodes)
    return any(type.dtype in narrow for node in nodes for type in node.types)


def _looks(cls: type) -> tuple[str, str, tuple[str, ...]]:
    """The kind and the name of a dataclass or namedtuple, and its fields."""
    if dataclasses.is_dataclass(cls):
        return "dataclass", cls.__name__, tuple(field.name for field in dataclasses.fields(cls))
    return "namedtuple", cls.__name__, tuple(getattr(cls, "_fields", ()))


def show_arguments(structures: Sequence[tree.Structure], types: Sequence[Any], names: Sequence[str]) -> str:
    """Arguments for messages: `(params: dict of 'W', 'b'; f32[3,3]; f32[3], n: i64)`."""
    parts: list[str] = []
    rest = iter(types)
    for name, structure in zip(names, structures, strict=True):
        if structure in ((("tuple", 0),), (("dict", 0, ()),)):  # empty *args or **kwargs
            continue
        contents = [next(rest) for token in structure if token == tree.LEAF]
        parts.append(f"{name}: {tree.show(structure, contents)}")
    return f"({', '.join(parts)})"
