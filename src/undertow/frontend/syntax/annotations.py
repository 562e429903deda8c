"""Annotations of arguments and results: a structure with a type at every leaf.

>>> import undertow.types as t
>>> read(tuple[t.i64, t.f32[3]]).types
(i64, f32[3])
>>> read(typing.Annotated[np.ndarray, t.f32["n"]]).types  # the same for type checkers
(f32[n],)
>>> read(dict) is None  # says nothing that capture could use
True
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.elsewhere import reason
from undertow.errors import CaptureError, Span, TypeMismatch, brief
from undertow.frontend.objects.handle import token_of
from undertow.frontend.objects.kinds import kinds_of
from undertow.frontend.syntax.source import Names
from undertow.frontend.values import tree
from undertow.frontend.values.growing import whole
from undertow.frontend.values.leaves import check_range, describe, leaf_type, zero
from undertow.frontend.values.listed import is_storable
from undertow.frontend.values.operands import as_weak, flags_of, is_weak
from undertow.frontend.values.option import OPTION, annotated, fitted, is_option
from undertow.frontend.values.traced import Traced, cast, constant, emit, is_traced
from undertow.types import DType, OrNone, Type, as_type, bool_, c128, f64, i32, i64, said, weak_dtype, weak_kind

_UNIONS = (typing.Union, types.UnionType)
_TAKEN = {"bool": "True or False", "int": "an integer", "float": "a number", "complex": "a complex number"}
_PYTHON = {bool: bool_, int: i64, float: f64, complex: c128}


@dataclass(frozen=True, slots=True)
class Annotation:
    """The types at the leaves, and the structure around them."""

    types: tuple[Type, ...]
    structure: tree.Structure
    weak: tuple[bool, ...] = ()  # which leaves may be Python numbers: annotated `int`, `float`, `complex`; (): none

    @property
    def is_option(self) -> bool:
        """Does it say `X | None`?"""
        return self.structure[0] == OPTION

    def __str__(self) -> str:
        return tree.show(self.structure, self.types)

    def of(self, value: Any) -> Annotation:
        """What it says of a value that may be None, but is known not to be, or to be."""
        if value is None or is_option(value) or not self.is_option:
            return self
        return Annotation(self.types[:-1], self.structure[1:-1], self.weak[:-1])

    def at(self, structure: tree.Structure) -> Annotation:
        """What it says of values of a structure, in which parts that may be None are or are not."""
        numbers = annotated(structure, self.structure) if OPTION in self.structure else None
        if numbers is None:
            return self
        types = tuple(self.types[k] for k in numbers)
        return Annotation(types, structure, tuple(self.weak[k] for k in numbers) if self.weak else ())

    def lifted(self, value: Any) -> Any:
        """A value in the structure that is annotated, if it fits: what may be None gets its flag."""
        if OPTION not in self.structure:
            return value
        like = [
            as_weak(zero(t)) if w else zero(t) for t, w in zip(self.types, flags_of(self.weak, self.types), strict=True)
        ]
        leaves = fitted(tree.flatten(value, is_traced), (like, self.structure))
        return value if leaves is None else tree.unflatten(self.structure, leaves)


class _Nothing(Exception):
    """The annotation does not describe a value."""


def read(note: Any, names: Names | None = None) -> Annotation | None:
    """The annotation as structure and types, or None if it says nothing that capture can use.

    `names` are what strings in it may name; without them, annotations that name themselves are not looked for.
    """

    def children(part: Any) -> tuple[tree.Token, list[Any]] | None:
        kinds = None if names is None else kinds_of(part, names)
        return _children(part) if kinds is None else (token_of(kinds | {None}), [i32])

    try:
        leaves, structure = tree.flatten(note, _is_leaf, children)
    except _Nothing:
        return None
    for leaf in leaves:
        if not _is_leaf(leaf):
            raise CaptureError(
                f"the annotation {brief(note)} contains {brief(leaf)}, which is not a type",
                hint="write a type, as in ut.i64, ut.f32[3] or tuple[ut.i64, ut.bool]",
            )
    said = list(map(stated, leaves))
    weak = tuple(leaf in (int, float, complex) for leaf in said)
    types = tuple(as_type(_PYTHON.get(leaf, leaf)) for leaf in said)
    return Annotation(types, structure, weak if any(weak) else ())


def may_be_none(note: Any) -> bool:
    """Does an annotation say `X | None`?"""
    note = stated(note)
    is_union = typing.get_origin(note) in _UNIONS
    return isinstance(note, OrNone) or (is_union and type(None) in typing.get_args(note))


def stated(note: Any) -> Any:
    """What an annotation says to us: of `Annotated[ut.Array, ut.f32[3]]` f32[3], of `Annotated[int, "metres"]` int."""
    while typing.get_origin(note) is typing.Annotated:
        ours = [extra for extra in note.__metadata__ if isinstance(extra, (DType, Type))]
        note = ours[0] if ours else note.__origin__
    return note


def _is_leaf(note: Any) -> bool:
    note = stated(note)
    return isinstance(note, (DType, Type)) or any(note is python for python in _PYTHON)


def _children(note: Any) -> tuple[tree.Token, list[Any]] | None:
    note = stated(note)
    origin = typing.get_origin(note)
    if origin is tuple:
        args = typing.get_args(note)
        if Ellipsis in args:
            raise CaptureError(
                f"the annotation {note} has no fixed length", hint="list every element: tuple[ut.i64, ut.i64]"
            )
        return ("tuple", len(args)), list(args)
    if isinstance(note, OrNone):
        return OPTION, [note.type, bool]
    if origin in _UNIONS:
        given = [part for part in typing.get_args(note) if part is not type(None)]
        if len(given) == 1 and len(typing.get_args(note)) == 2 and not _holds_itself(given[0]):
            return OPTION, [given[0], bool]
        raise _Nothing
    if origin is list and len(typing.get_args(note)) == 1:
        inner = read(typing.get_args(note)[0])
        item = None if inner is None else (inner.structure, inner.types)
        if item is None or not is_storable(item):
            raise _Nothing
        structure, types = whole(item)
        return structure[0], list(types)
    if isinstance(note, type) and dataclasses.is_dataclass(note):
        hints = _hints(note)
        names = tuple(f.name for f in dataclasses.fields(note))
        return ("dataclass", len(names), note, names), [hints[name] for name in names]
    if isinstance(note, type) and issubclass(note, tuple) and hasattr(note, "_fields"):
        hints = _hints(note)
        return ("namedtuple", len(note._fields), note), [hints.get(name, Any) for name in note._fields]
    if isinstance(note, (tuple, list, dict)):
        return tree.children(note)
    if note is None or note is type(None):
        return ("static", tree.Identity(None)), []
    raise _Nothing


def _holds_itself(note: Any) -> bool:
    """Is it a class with a field that may be an object of the same class, like the next link of a chain?"""
    stack, seen = [note], list[Any]()
    while stack:
        item = stated(stack.pop())
        if isinstance(item, type) and (dataclasses.is_dataclass(item) or hasattr(item, "_fields")):
            if any(item is other for other in seen):
                return True
            seen.append(item)
            stack.extend(_hints(item).values())
        else:
            stack.extend(typing.get_args(item))
    return False


def _hints(note: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(note, include_extras=True)
    except Exception as fault:
        why, hint = reason(fault, "names in them must be globals of the file that defines the class")
        raise CaptureError(
            f"the annotations of the class `{note.__name__}` cannot be evaluated: {why}", hint=hint
        ) from None


Dims = dict[str, tuple[int, str]]  # named dimension -> its size, and the argument that has it


def convert(value: Any, wanted: Type | None, what: str, dims: Dims, span: Span | None = None) -> tuple[Any, Type]:
    """A leaf as a traced or NumPy value of the annotated type, and its type in the graph."""
    if wanted is None:
        if is_weak(value) and isinstance(value, int):
            check_range(value, i64, what, span)
        found = leaf_type(value)
        return (value if isinstance(value, Traced) else np.asarray(constant(value, found.dtype))[()]), found
    if is_weak(value):
        if weak_dtype(value, wanted.dtype) != wanted.dtype:
            raise TypeMismatch(
                f"{what} is {brief(value)}, but annotated as {wanted}", span, _how_to_convert(value, wanted)
            )
        if isinstance(value, int) and wanted.dtype.kind == "int":
            check_range(value, wanted.dtype, what, span)
        value = _number(value, wanted, what, span)
    elif not isinstance(value, Traced):
        value = constant(value)  # of one of our dtypes: f16 is f32, i8 is i32
    found = leaf_type(value)
    fits = found.dtype == wanted.dtype or np.can_cast(found.dtype.numpy, wanted.dtype.numpy, "safe")
    fits |= isinstance(value, Traced) and value.is_weak and weak_kind(found.dtype.kind, wanted.dtype) == wanted.dtype
    if not fits or not wanted.erased().accepts(found.with_dtype(wanted.dtype)):
        is_shape = fits or found.rank != wanted.rank
        hint = _how_to_shape(found, wanted) if is_shape else _how_to_convert(value, wanted)
        raise TypeMismatch(f"{what} is {said(found)}, but annotated as {wanted}", span, hint)
    if found.dtype != wanted.dtype:
        value = emit("cast", [value], dtype=wanted.dtype.name)[0]
    for name, size in zip(wanted.shape, found.shape, strict=True):
        if isinstance(name, str) and isinstance(size, int):
            known, owner = dims.setdefault(name, (size, what))
            if known != size:
                raise TypeMismatch(
                    f"the dimension {name!r} is {size} in {what}, but {known} in {owner}",
                    span,
                    hint="dimensions with the same name must be equal; use two names if they may differ",
                )
    return value, wanted.erased()


def as_array(value: Any, dtype: DType, what: str, span: Span | None) -> Any:
    """A list of numbers as the annotated array; Python numbers take the dtype if it can hold their kind."""
    value = list(value) if isinstance(value, range) else value
    if isinstance(value, range):
        value = np.asarray(value).tolist()
    leaves = tree.flatten(value, is_traced)[0]
    if any(isinstance(leaf, Traced) for leaf in leaves):
        return value
    try:
        array = np.asarray(value)
        weak = all(is_weak(leaf) and weak_dtype(leaf, dtype) == dtype for leaf in leaves)
        if weak and dtype.kind == "int" and array.size:
            for bound in (max(leaves), min(leaves)):
                check_range(bound, dtype, f"an element of {what}", span)
        return cast(value, dtype) if weak else array
    except TypeMismatch:
        raise
    except (ValueError, TypeError, OverflowError):
        raise TypeMismatch(
            f"{what} is {describe(value)}, which is not an array",
            span,
            hint="rows must have the same length and contain only numbers",
        ) from None


def _number(value: Any, wanted: Type, what: str, span: Span | None) -> Any:
    try:
        return cast(value, wanted.dtype)[()]
    except OverflowError:  # an integer too large even for a float
        raise TypeMismatch(f"{what} does not fit in {wanted.dtype}", span, hint="use a smaller number") from None


def _how_to_convert(value: Any, wanted: Type) -> str:
    """The hint for a value of the wrong dtype."""
    other = leaf_type(value).dtype
    change = f"change the annotation to {as_written(wanted.with_dtype(other))}"
    if is_weak(value):
        return f"use {_TAKEN[wanted.dtype.kind]}, or {change}"
    if other.kind == "complex" and wanted.dtype.kind != "bool":
        return f"take x.real, x.imag or abs(x), or {change}"
    if isinstance(value, Traced):
        slashes = " (or divide with //)" if wanted.dtype.kind == "int" and other.kind == "float" else ""
        return f"convert it with ut.astype(x, ut.{wanted.dtype}){slashes}, or {change}"
    return f"convert it with x.astype(np.{wanted.dtype.numpy.name}), or {change}"


def _how_to_shape(found: Type, wanted: Type) -> str:
    """The hint for a value of the wrong shape."""
    if found.rank == wanted.rank:
        return f"to accept any length, write {as_written(wanted.with_shape((None,) * found.rank))}"
    written = as_written(found.with_dtype(wanted.dtype))
    if wanted.rank == 0:
        return f"ut.{wanted.dtype} alone means a single number; this array is {written}"
    return f"change the value, or the annotation to {written}"


def as_written(type: Type) -> str:
    """A type as it is written in an annotation."""
    return f"ut.{type.dtype}[{', '.join(map(repr, type.shape))}]" if type.shape else f"ut.{type.dtype}"
