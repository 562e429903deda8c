"""What an annotation says about arguments and results: a structure with a type at every leaf.

>>> import undertow.types as t
>>> read(tuple[t.i64, t.f32[3]]).types
(i64, f32[3])
>>> read(dict) is None  # says nothing that capture could use
True
"""

from __future__ import annotations

import dataclasses
import typing
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch
from undertow.frontend import tree
from undertow.frontend.flow import check_range, leaf_type
from undertow.frontend.loops import is_weak
from undertow.frontend.traced import Traced, constant, emit
from undertow.types import DType, Type, as_type, bool_, f64, i64, show_shape, weak_dtype

_PYTHON = {bool: bool_, int: i64, float: f64}


@dataclass(frozen=True, slots=True)
class Annotation:
    """The types at the leaves, and the structure around them."""

    types: tuple[Type, ...]
    structure: tree.Structure


class _Nothing(Exception):
    """The annotation does not describe a value."""


def read(note: Any) -> Annotation | None:
    """The annotation as structure and types, or None where it says nothing that capture can use."""
    try:
        leaves, structure = tree.flatten(note, _is_leaf, _children)
    except _Nothing:
        return None
    return Annotation(tuple(as_type(_PYTHON.get(leaf, leaf)) for leaf in leaves), structure)


def _is_leaf(note: Any) -> bool:
    return isinstance(note, (DType, Type)) or note in (bool, int, float)


def _children(note: Any) -> tuple[tree.Token, list[Any]] | None:
    origin = typing.get_origin(note)
    if origin is tuple:
        args = typing.get_args(note)
        if Ellipsis in args:
            raise CaptureError(f"{note} has no fixed length", hint="write out every element: tuple[ut.i64, ut.i64]")
        return ("tuple", len(args)), list(args)
    if isinstance(note, type) and dataclasses.is_dataclass(note):
        hints = typing.get_type_hints(note)
        names = tuple(f.name for f in dataclasses.fields(note))
        return ("dataclass", len(names), note, names), [hints[name] for name in names]
    if isinstance(note, type) and issubclass(note, tuple) and hasattr(note, "_fields"):
        hints = typing.get_type_hints(note)
        return ("namedtuple", len(note._fields), note), [hints.get(name, Any) for name in note._fields]
    if isinstance(note, (tuple, list, dict)):
        return tree.children(note)
    if note is None or note is type(None):
        return ("static", tree.Identity(None)), []
    raise _Nothing


def convert(value: Any, wanted: Type | None, what: str, names: dict[str, int]) -> tuple[Any, Type]:
    """A leaf as a traced or NumPy value of the annotated type, and the type that the graph shall see."""
    if not isinstance(value, Traced) and not is_weak(value):
        value = constant(value)
    if wanted is None:
        found = leaf_type(value)
        return (value if isinstance(value, Traced) else np.asarray(constant(value, found.dtype))[()]), found
    if is_weak(value):
        if weak_dtype(value, wanted.dtype) != wanted.dtype:
            raise TypeMismatch(f"{what} is {value!r}, but {wanted} is annotated", hint="give a number of that kind")
        if isinstance(value, int) and wanted.dtype.kind == "int":
            check_range(value, wanted.dtype)
        value = np.asarray(value, wanted.dtype.numpy)[()]
    found = leaf_type(value)
    if found.dtype != wanted.dtype:
        if not np.can_cast(found.dtype.numpy, wanted.dtype.numpy, "safe"):
            raise TypeMismatch(
                f"{what} is a {found}, but {wanted} is annotated",
                hint=f"convert it with ut.astype(x, ut.{wanted.dtype}), or change the annotation",
            )
        value = emit("cast", [value], dtype=wanted.dtype.name)[0]
        found = found.with_dtype(wanted.dtype)
    if not wanted.erased().accepts(found):
        raise TypeMismatch(
            f"{what} has shape {show_shape(found.shape)}, but {wanted} is annotated",
            hint="a dimension that is known only at run time is written None or as a name",
        )
    for name, size in zip(wanted.shape, found.shape, strict=True):
        if isinstance(name, str) and isinstance(size, int) and names.setdefault(name, size) != size:
            raise TypeMismatch(f"{what} has {size} as its dimension {name!r}, which is {names[name]} elsewhere")
    return value, wanted.erased()
