"""Kinds of objects: what an annotation that names itself says about the objects of a tree, list or graph.

`class Node` with `left: "Node | None"`, and `Tree = int | tuple["Tree", "Tree"]`, do not say how deep a value is. Each
class and each form of tuple, list or number in them is a kind, whose fields are numbers, words, or other objects.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import threading
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from undertow.errors import brief
from undertow.frontend.syntax.calling import is_user_class
from undertow.frontend.syntax.source import Names
from undertow.types import DType, OrNone, Type, as_type, bool_, c128, f64, i64

PYTHON = {bool: bool_, int: i64, float: f64, complex: c128}
_OTHERS = (int, float, str, bytes, list, dict, set, frozenset, np.ndarray, np.generic, BaseException)
ITEMS = "items"  # the one field of a list


@dataclass(frozen=True, slots=True)
class Values:
    """A field of numbers, or of arrays of one shape."""

    type: Type
    is_weak: bool = False  # Python's numbers


@dataclass(frozen=True, slots=True)
class Words:
    """A field of strings, or of members of an enum."""

    known: tuple[Any, ...] | None  # all that there are; None: any string


@dataclass(frozen=True, slots=True)
class Handles:
    """A field of other objects."""

    kinds: frozenset[Kind | None]


@dataclass(frozen=True, slots=True)
class Unread:
    """A field that graphs cannot hold: it is refused where a program reads it."""

    note: str


Field = Values | Words | Handles | Unread


@dataclass(eq=False, slots=True)
class Kind:
    """Objects of one class, or of one form."""

    form: str  # "object", "tuple", "list", "dict" or "value"
    python: Any  # their class
    fields: dict[Any, Field] = field(default_factory=dict)  # of tuples by position; one for the items of a list

    def __repr__(self) -> str:
        return str(self.python.__name__)

    @property
    def is_sequence(self) -> bool:
        return self.form in ("list", "tuple") or (self.form == "object" and issubclass(self.python, tuple))

    def at(self, position: int) -> Field | None:
        """The field of a tuple or a named tuple at a position."""
        fields = list(self.fields.values())
        return fields[position] if 0 <= position < len(fields) else None


Kinds = frozenset[Kind | None]


_KNOWN: dict[Any, Kind] = {}  # class, or form and what it is made of -> kind
_LOCK = threading.RLock()  # held while kinds are read: another thread must not see one without its fields


def kinds_of(note: Any, names: Names) -> Kinds | None:
    """The kinds of an annotation that names itself, or that contains one which does; None of any other."""
    if not _may_recur(note):
        return None
    with _LOCK:
        found = _field(note, names)
    if not isinstance(found, Handles) or not any(_recurs(kind) for kind in reachable(found.kinds)):
        return None
    sole = next(iter(found.kinds)) if len(found.kinds) == 1 else None
    if sole is not None and _is_container(sole) and not _recurs(sole):
        return None  # a container of values, some of which are such objects
    return found.kinds


def _is_container(kind: Kind) -> bool:
    return kind.form == "tuple" or issubclass(kind.python, tuple) or dataclasses.is_dataclass(kind.python)


def reachable(kinds: Kinds) -> list[Kind]:
    """All kinds of objects that objects of these kinds lead to, these included."""
    found: dict[Kind, None] = dict.fromkeys(_in_order(kinds))
    todo = list(found)
    for kind in todo:  # it grows meanwhile
        for held in kind.fields.values():
            if isinstance(held, Handles):
                new = [other for other in _in_order(held.kinds) if other not in found]
                found.update(dict.fromkeys(new))
                todo += new
    return list(found)


def _in_order(kinds: Kinds) -> list[Kind]:
    return sorted((kind for kind in kinds if kind is not None), key=_NUMBERS.__getitem__)


_NUMBERS: dict[Kind, int] = {}  # in the order in which they were read


def _recurs(kind: Kind) -> bool:
    direct = frozenset(k for held in kind.fields.values() if isinstance(held, Handles) for k in held.kinds)
    return kind in reachable(direct)


def _may_recur(note: Any) -> bool:
    """Is it worth reading: does it name a class of the user's, or anything by a string?"""
    stack = [note]
    while stack:
        part = stack.pop()
        if isinstance(part, (str, typing.ForwardRef)) or hasattr(part, "__value__"):
            return True
        if isinstance(part, type) and is_user_class(part):
            return True
        if typing.get_origin(part) is not typing.Literal:
            stack += typing.get_args(part)
    return False


def _field(note: Any, names: Names) -> Field:
    try:
        note = _resolved(note, names)
    except NameError as fault:
        return Unread(f"{note!r}, which cannot be evaluated: {fault}")
    if isinstance(note, (DType, Type)) or note in PYTHON:
        type_ = as_type(PYTHON.get(note, note))
        if not type_.is_static:
            return Unread(str(type_))
        return Values(type_, note in (int, float, complex))
    if note is str:
        return Words(None)
    if typing.get_origin(note) is typing.Literal:
        return _literal(typing.get_args(note))
    members = _members(note, names)
    if len(members) == 1 and isinstance(members[0], (Values, Words, Unread)):
        return members[0]
    kinds: set[Kind | None] = set()
    for member in members:
        if isinstance(member, Handles):
            kinds |= member.kinds
        elif isinstance(member, Unread):
            return member
        else:
            assert member is not None
            kinds.add(_value_kind(member))
    return Handles(frozenset(kinds))


def _literal(values: tuple[Any, ...]) -> Field:
    if all(isinstance(value, str) for value in values):
        return Words(tuple(values))
    if all(type(value) is int for value in values):
        return Values(as_type(i64), True)
    if all(type(value) is bool for value in values):
        return Values(as_type(bool_))
    return Unread(f"Literal{list(values)}")


def _members(note: Any, names: Names) -> list[Field]:
    """The parts of a union."""
    if isinstance(note, OrNone):
        return [_field(note.type, names), Handles(frozenset([None]))]
    if isinstance(note, types.UnionType) or typing.get_origin(note) is typing.Union:
        parts: list[Field] = []
        for part in typing.get_args(note):
            found = _field(part, names)
            parts += [found] if found not in parts else []
        return parts
    if note is None or note is type(None):
        return [Handles(frozenset([None]))]
    return [_single(note, names)]


def _resolved(note: Any, names: Names) -> Any:
    """What a note says: strings evaluated, aliases and annotations of annotations looked through."""
    while True:
        if isinstance(note, typing.ForwardRef):
            note = note.__forward_arg__
        if isinstance(note, str):
            try:
                note = eval(note, names.globals, dict(names.local))
            except Exception as fault:
                raise NameError(fault) from None
        elif typing.get_origin(note) is typing.Annotated:
            ours = [extra for extra in note.__metadata__ if isinstance(extra, (DType, Type))]
            note = ours[0] if ours else note.__origin__
        elif type(note).__name__ == "TypeAliasType":
            note = note.__value__
        else:
            return note


def _single(note: Any, names: Names) -> Field:
    origin, args = typing.get_origin(note), typing.get_args(note)
    if origin is tuple and args and args[-1] is not Ellipsis:
        return _form("tuple", tuple, note, names, dict(enumerate(args)))
    if origin is tuple and args:
        return _form("list", tuple, note, names, {ITEMS: args[0]})
    if origin in (list, Sequence):
        return _form("list", origin, note, names, {ITEMS: args[0]})
    if isinstance(note, type) and typing.is_typeddict(note):
        return Handles(frozenset([_of_class(note, names, "dict")]))
    if isinstance(note, type) and issubclass(note, Enum):
        return Words(tuple(note))
    if isinstance(note, type) and is_user_class(note) and not issubclass(note, _OTHERS):
        every = [note]
        for cls in every:  # it grows meanwhile
            every += [sub for sub in cls.__subclasses__() if sub not in every]
        return Handles(frozenset(_of_class(cls, names, "object") for cls in every))
    return Unread(getattr(note, "__name__", None) or brief(note))


def _new(key: Any, form: str, python: Any) -> Kind:
    kind = _KNOWN[key] = Kind(form, python)
    _NUMBERS[kind] = len(_NUMBERS)
    return kind


def _form(form: str, python: Any, note: Any, names: Names, notes: Mapping[Any, Any]) -> Field:
    """A tuple or list: all that are written alike, strings and aliases looked through, are one kind."""
    key = form, python, _written(note, names, ())
    if key not in _KNOWN:
        kind = _new(key, form, python)
        kind.fields.update({name: _field(part, names) for name, part in notes.items()})
    return Handles(frozenset([_KNOWN[key]]))


def _written(note: Any, names: Names, around: tuple[Any, ...]) -> Any:
    """An annotation with classes for their names, and a number of levels for an annotation around it."""
    try:
        note = _resolved(note, names)
    except NameError:
        return note
    for level, other in enumerate(reversed(around)):
        if other is note:
            return level
    parts = typing.get_args(note)
    if not parts or typing.get_origin(note) is typing.Literal:
        return note
    is_union = isinstance(note, types.UnionType) or typing.get_origin(note) is typing.Union
    inside = (_written(part, names, (*around, note)) for part in parts)
    return ("union", frozenset(inside)) if is_union else (typing.get_origin(note), *inside)


def _value_kind(held: Values | Words) -> Kind:
    """Numbers or strings among other objects."""
    if held not in _KNOWN:
        python: Any = str
        if isinstance(held, Values):
            python = next((p for p, d in PYTHON.items() if held.type == as_type(d)), held.type.dtype.numpy.type)
        _new(held, "value", python).fields["value"] = held
    return _KNOWN[held]


def _of_class(cls: type, names: Names, form: str) -> Kind:
    if cls not in _KNOWN:
        kind = _new(cls, form, cls)
        module = sys.modules.get(cls.__module__)
        own = {**names.globals, **names.local} if module is None or "<locals>" in cls.__qualname__ else {}
        seen = Names(vars(module) if module is not None else names.globals, {**own, cls.__name__: cls})
        try:
            for name, note in _notes(cls).items():
                kind.fields[name] = _field(note, seen)
        except BaseException:
            del _KNOWN[cls]
            raise
    return _KNOWN[cls]


def _notes(cls: type) -> dict[str, Any]:
    """The annotated attributes of objects of a class; of one that annotates none, those that its `__init__` takes."""
    notes: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is not object and (is_user_class(base) or typing.is_typeddict(cls)):
            notes |= inspect.get_annotations(base)
    if issubclass(cls, tuple):
        return {name: notes.get(name, typing.Any) for name in getattr(cls, "_fields", ())}
    if dataclasses.is_dataclass(cls):
        fields = {f.name for f in dataclasses.fields(cls)}
        return {name: note for name, note in notes.items() if name in fields}
    if not notes and isinstance(cls.__init__, types.FunctionType):
        notes = {name: note for name, note in inspect.get_annotations(cls.__init__).items() if name != "return"}
    return {name: note for name, note in notes.items() if not _is_of_class(note)}


def _is_of_class(note: Any) -> bool:
    return "ClassVar" in note if isinstance(note, str) else typing.get_origin(note) is typing.ClassVar


@functools.lru_cache(1024)
def said_of(kinds: Kinds) -> str:
    """The kinds in words, for messages."""
    names = [f"{kind.form} of {len(kind.fields)}" if kind.form == "tuple" else repr(kind) for kind in _in_order(kinds)]
    return " or ".join(dict.fromkeys([*names, *(["None"] if None in kinds else [])]))
