"""Classes that a saved function names: found without running code of theirs, or made to look the same.

A file is not trusted, and classes run code on almost every occasion: modules import others when asked for a name, a
metaclass or a descriptor answers for an attribute, constructors open files. So everything here looks into dictionaries
past all that, and a class that could still notice is not used: a plain one of the same name and fields stands for it.
Containers of defaults and bound objects are put together without their constructors. (What a call returns is
constructed as the class says: by then the user has called the function.)
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import keyword
import sys
from collections.abc import Mapping
from types import MemberDescriptorType, ModuleType
from typing import Any

from undertow.errors import LoadError
from undertow.frontend.values import tree

# The slots of modules and classes themselves: attributes of the same names may be properties of the user's.
_MODULE_DICT: Any = vars(ModuleType)["__dict__"]
_CLASS_DICT: Any = vars(type)["__dict__"]
_BASES: Any = vars(type)["__mro__"]
_FLAGS: Any = vars(type)["__flags__"]
_IS_HEAP_TYPE, _IS_ABSTRACT = 1 << 9, 1 << 20  # of CPython's type objects
_PLAIN_METACLASSES = (type, abc.ABCMeta)


def find_class(kind: str, module: str, qualname: str, fields: tuple[str, ...]) -> type | None:
    """The class of that name in an already imported module, if it is of that kind and has those fields."""
    owner = sys.modules.get(module)
    if not issubclass(type(owner), ModuleType):
        return None
    names: Mapping[str, Any] = _MODULE_DICT.__get__(owner)
    found: Any = None
    for part in qualname.split("."):
        found = names.get(part)
        if type(found) not in _PLAIN_METACLASSES:
            return None
        names = _CLASS_DICT.__get__(found)
    return found if _is_quiet(kind, found) and _fields_of(kind, found) == fields else None


def _attribute(cls: type, name: str) -> Any:
    """What a class or its bases define under a name, as it stands there."""
    return next((held[name] for base in _BASES.__get__(cls) if name in (held := _CLASS_DICT.__get__(base))), None)


def _is_quiet(kind: str, cls: type) -> bool:
    """Can an object of the class come and go without code of the user's?"""
    builtin = [base for base in _BASES.__get__(cls) if not _FLAGS.__get__(base) & _IS_HEAP_TYPE]
    is_plain = builtin == ([object] if kind == "dataclass" else [tuple, object])
    return is_plain and not _FLAGS.__get__(cls) & _IS_ABSTRACT and _attribute(cls, "__del__") is None


def _fields_of(kind: str, cls: type) -> tuple[str, ...] | None:
    """The fields of a class; None if it is not of that kind, or sets a field by code of its own."""
    table = _attribute(cls, "__dataclass_fields__")
    if kind == "namedtuple":
        names = _attribute(cls, "_fields")
        is_names = type(names) is tuple and all(type(name) is str for name in names)
        return names if table is None and is_names else None
    if type(table) is not dict or any(type(field) is not dataclasses.Field for field in table.values()):
        return None
    found = tuple(field.name for field in dataclasses.fields(cls))  # of that table: class variables are not among them
    if any(type(name) is not str or _sets_by_code(_attribute(cls, name)) for name in found):
        return None
    return found


def _sets_by_code(attribute: Any) -> bool:
    """Is it a property, or another descriptor that is told of assignments? (A slot is one that runs no code.)"""
    return type(attribute) is not MemberDescriptorType and _attribute(type(attribute), "__set__") is not None


def make_class(kind: str, module: str, qualname: str, fields: tuple[str, ...]) -> type:
    """A plain class with that name and those fields."""
    name = qualname.rpartition(".")[2]
    for word in (name, *fields):
        if not word.isidentifier() or keyword.iskeyword(word) or (word.startswith("__") and word.endswith("__")):
            raise LoadError(f"{word!r:.80} is not a valid name of a class or field")
    try:
        made: type = (
            dataclasses.make_dataclass(name, [(field, Any) for field in fields])
            if kind == "dataclass"
            else collections.namedtuple(name, fields)
        )
    except (TypeError, ValueError) as fault:  # a name twice, a name that namedtuples do not allow
        raise LoadError(f"a {kind} cannot have the fields {fields!r:.80}: {fault}") from None
    made.__module__, made.__qualname__ = module, qualname
    return made


def build_quietly(token: tree.Token, held: list[Any]) -> Any:
    """A container of that token, for `tree.unflatten`: a namedtuple without its constructor."""
    return tuple.__new__(token[2], held) if token[0] == "namedtuple" else tree.build(token, held)
