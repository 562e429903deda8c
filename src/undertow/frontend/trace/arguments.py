"""Arguments of a call: bound to parameters, checked against annotations, taken apart into leaves."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.errors import TypeMismatch
from undertow.frontend.syntax.annotations import Annotation, Dims, as_array, convert
from undertow.frontend.syntax.calling import bind_arguments
from undertow.frontend.trace.declared import opened
from undertow.frontend.values import tree
from undertow.frontend.values.leaves import describe
from undertow.frontend.values.traced import context, is_traced
from undertow.types import Type

if TYPE_CHECKING:
    from undertow.frontend.trace.definition import Definition


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """Arguments of a call: their leaves, and what the leaves were taken from."""

    leaves: list[Any]  # traced or NumPy values
    types: tuple[Type, ...]  # as the graph shall see them
    structures: tuple[tree.Structure, ...]  # one per parameter
    names: list[str]  # one per leaf
    parameters: tuple[str, ...]
    is_fixed: tuple[bool, ...]  # was the leaf's type annotated?

    def passed(self, signature: inspect.Signature, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """How a call passes these leaves: by position, and by name."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, value in zip(self.parameters, tree.unflatten_each(self.structures, leaves), strict=True):
            kind = signature.parameters[name].kind
            if kind == kind.VAR_POSITIONAL:
                args.extend(value)
            elif kind == kind.VAR_KEYWORD:
                kwargs.update(value)
            elif kind == kind.KEYWORD_ONLY:
                kwargs[name] = value
            else:
                args.append(value)
        return args, kwargs


def take_arguments(definition: Definition, args: Sequence[Any], kwargs: dict[str, Any]) -> Arguments:
    """Bind and check the arguments of a call."""
    current = context()
    # A call from outside is told where the function is defined: Python's traceback shows where it was called.
    span = current.span if current is not None else definition.closure.span
    values = bind_arguments(definition.closure, args, kwargs, span)
    leaves: list[Any] = []
    types: list[Type] = []
    structures: list[tree.Structure] = []
    names: list[str] = []
    fixed: list[bool] = []
    dims: Dims = {}
    for name, value in values.items():
        note = _spread(definition.note(name), value, definition.closure.signature.parameters[name])
        called = f"argument `{name}` of `{definition.name}`"
        if note is not None and note.structure == (tree.LEAF,) and isinstance(value, (list, tuple)):
            value = as_array(value, note.types[0].dtype, called, span)
        held, structure = tree.flatten(value, is_traced, definition.children)
        if note is not None and note.structure != structure:
            raise TypeMismatch(
                f"{called} is {describe(value)}, but {tree.show(note.structure, note.types)} is annotated",
                span,
                hint=_how_to_structure(value, note),
            )
        wanted = note.types if note is not None else (None,) * len(held)
        if current is not None and current.builder is not None:
            held = [current.session.bound(leaf) for leaf in held]
        for leaf, type, path in zip(held, wanted, tree.paths(value, name, is_traced), strict=True):
            converted, seen = convert(leaf, type, called if path == name else f"`{path}` of {called}", dims, span)
            leaves.append(converted)
            types.append(seen)
            names.append(path)
            fixed.append(type is not None)
        if note is None and held:
            types[-len(held) :] = opened(types[-len(held) :], structure)
        structures.append(structure)
    return Arguments(leaves, tuple(types), tuple(structures), names, tuple(values), tuple(fixed))


def _spread(note: Annotation | None, value: Any, parameter: inspect.Parameter) -> Annotation | None:
    """The annotation of `*args` and `**kwargs` is that of each of them."""
    held = tree.children(value)
    if note is None or held is None or parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        return note
    return Annotation(note.types * len(value), (held[0], *note.structure * len(value)))


def _is_list_for_array(value: Any, note: Annotation) -> bool:
    return isinstance(value, (list, tuple)) and note.structure == (tree.LEAF,) and note.types[0].rank > 0


def how_to_return(value: Any, note: Annotation) -> str:
    if _is_list_for_array(value, note):
        return "make an array of it with ut.stack, or change the annotation"
    return "return what is annotated, or change the annotation"


def _how_to_structure(value: Any, note: Annotation) -> str:
    """What to do about an argument of the wrong structure."""
    if _is_list_for_array(value, note):
        return "make an array of it with ut.stack, or change the annotation"
    if value is None or isinstance(value, (str, bytes)):
        return "give a number or an array" if note.structure == (tree.LEAF,) else "give values of that structure"
    if isinstance(value, np.ndarray) or (note.structure == (tree.LEAF,) and not isinstance(value, (tuple, list, dict))):
        return "use numbers and arrays of bool, i32, i64, f32 or f64"
    return "give the same structure, or change the annotation"
