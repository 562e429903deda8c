"""Everything about a saved function except its graphs, as plain JSON: structures, types, parameters, defaults.

Structures refer to classes by number, and a table lists the name and fields of each class (classes.py). Reading looks
for such a class in modules that are already imported, and imports only our own: a file cannot run code.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from undertow.api.classes import build_quietly, find_class, make_class
from undertow.errors import LoadError, SaveError, TypeMismatch
from undertow.frontend.objects.arguments import is_handle
from undertow.frontend.syntax.annotations import Annotation
from undertow.frontend.values import tree
from undertow.frontend.values.traced import constant
from undertow.ir.exact import keys_of
from undertow.ir.graph import Array
from undertow.ir.literal import PART, digest
from undertow.types import DTYPES, Dim, Type

Json = Any
_T = TypeVar("_T")
_PLAIN = (bool, int, float, str)
_NUMBER = re.compile(PART)
_MOST_FIELDS = 10_000  # of all classes together
# Our own container classes: their names in files, and where they are. Files refer to no other module.
_OURS = {
    "rows": ("undertow.frontend.values.rows", "IndexedRows"),
    "forest": ("undertow.data.forest", "Forest"),
    "option": ("undertow.frontend.values.option", "Option"),
}

# --------------------------------------------------------------------------------------------------------------
# Writing


class Encoder:
    """Turns values into JSON; `classes` and `arrays` collect what the values refer to."""

    def __init__(self, classes: Sequence[type] = ()) -> None:
        self.classes = list(classes)
        self.arrays: dict[str, Array] = {}

    def class_table(self) -> Json:
        return [
            {
                "kind": "dataclass" if dataclasses.is_dataclass(cls) else "namedtuple",
                "module": cls.__module__,
                "qualname": cls.__qualname__,
                "fields": list(_fields(cls)),
            }
            for cls in self.classes
        ]

    def structure(self, structure: tree.Structure, what: str) -> Json:
        return [self._token(token, what) for token in structure]

    def _token(self, token: tree.Token, what: str) -> Json:
        kind = token[0]
        if kind == "static":
            value = token[1].value
            if value is not None and type(value) is not str:
                raise SaveError(
                    f"{what} contains a {type(value).__name__}, {value!r:.80}, which cannot be saved",
                    hint="arguments and results may hold numbers, arrays, strings and None, in tuples, lists, dicts, "
                    "namedtuples and dataclasses",
                )
            return [kind, value]
        if kind == "dict":
            for key in token[2]:
                if key is not None and (type(key) not in _PLAIN or (type(key) is float and not math.isfinite(key))):
                    raise SaveError(
                        f"{what} is a dict with the key {key!r:.80}, which cannot be saved",
                        hint="keys must be strings, numbers or None",
                    )
            return [kind, list(token[2])]
        if kind in ("dataclass", "namedtuple"):
            if kind == "dataclass" and token[3] != _fields(token[2]):
                raise SaveError(
                    f"{what} is a {token[2].__name__} with the attribute `{token[3][-1]}`, which is not a field",
                    hint="declare it in the class",
                )
            if token[2] not in self.classes:
                self.classes.append(token[2])
            return [kind, self.classes.index(token[2])]
        if kind in ("namespace", "subclass"):
            name = "SimpleNamespace" if kind == "namespace" else token[2].__name__
            raise SaveError(f"{what} contains a {name}, which cannot be saved", hint="use a dict or a dataclass")
        if kind == "object":
            for name, place in _OURS.items():
                if place[1] == token[2].__name__:
                    return [name, list(token[4])]
            if is_handle(token):
                raise SaveError(
                    f"{what} is an object whose annotation names itself, which a file has no class for",
                    hint="save a function of a forest: ut.data.from_nested makes one of objects",
                )
            raise SaveError(f"{what} contains a text of traced values", hint="return the values, and format them after")
        return list(token)  # a leaf, a tuple, a list

    def type(self, type: Type) -> Json:
        return [type.dtype.name, *type.shape]

    def annotation(self, note: Annotation, what: str) -> Json:
        row = {"structure": self.structure(note.structure, what), "types": [self.type(t) for t in note.types]}
        return row | ({"weak": list(note.weak)} if note.weak else {})

    def value(self, value: Any, what: str) -> Json:
        """A default or a bound object."""
        leaves, structure = tree.flatten(value)
        return {"structure": self.structure(structure, what), "leaves": [self._leaf(leaf, what) for leaf in leaves]}

    def _leaf(self, leaf: Any, what: str) -> Json:
        if type(leaf) is bool or (type(leaf) is int and -(2**63) <= leaf < 2**63):
            return leaf
        if type(leaf) is float:
            return leaf if math.isfinite(leaf) else {"float": repr(leaf)}
        if type(leaf) is complex:
            return {"complex": [repr(leaf.real), repr(leaf.imag)]}
        try:
            array = np.asarray(constant(leaf))
        except TypeMismatch as fault:
            raise SaveError(f"{what}: {fault.what}", hint=fault.hint) from fault
        self.arrays[digest(array)] = array
        return {"array": digest(array)}


def _fields(cls: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls)) if dataclasses.is_dataclass(cls) else tuple(cls._fields)


def _class_token(kind: str, cls: type) -> tree.Token:
    fields = _fields(cls)
    return (kind, len(fields), cls, fields) if kind == "dataclass" else (kind, len(fields), cls)


# --------------------------------------------------------------------------------------------------------------
# Reading


def want(value: Json, kind: type[_T], what: str) -> _T:
    """The value, checked to be of that kind."""
    if type(value) is not kind:
        raise LoadError(f"{what} must be of type {kind.__name__}, not {value!r:.80}")
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a surrogate pair cannot be printed
            raise LoadError(f"{what} is not valid text: {value!r:.80}") from None
    found: _T = value
    return found


def entry(values: Json, key: str, kind: type[_T], what: str) -> _T:
    """The value of a key in a JSON object, checked to be of that kind."""
    entries = want(values, dict, what)
    if key not in entries:
        raise LoadError(f"{what} has no `{key}`")
    return want(entries[key], kind, f"`{key}` of {what}")


def flags(row: Json, key: str, count: int, what: str) -> tuple[bool, ...] | None:
    """One flag for each of so many leaves, or none at all; None if the row says nothing of them."""
    if row.get(key) is None:
        return None
    held = tuple(want(flag, bool, f"`{key}` of {what}") for flag in entry(row, key, list, what))
    if held and len(held) != count:
        raise LoadError(f"{what} has {len(held)} flags `{key}`, but {count} leaves")
    return held


class Decoder:
    """The inverse of Encoder. Anything that Encoder would not write is a LoadError."""

    def __init__(self, class_table: Json, arrays: dict[str, Array]) -> None:
        self.kinds: list[str] = []
        self.classes: list[type] = []
        self.arrays = arrays
        table = want(class_table, list, "the table of classes")
        size = 0
        for number, row in enumerate(table):
            what = f"class {number}"
            kind, module = entry(row, "kind", str, what), entry(row, "module", str, what)
            qualname = entry(row, "qualname", str, what)
            fields = tuple(want(name, str, f"a field of {what}") for name in entry(row, "fields", list, what))
            size += 1 + len(fields)
            if size > _MOST_FIELDS:  # making a class takes a millisecond
                raise LoadError(f"its {len(table):,} classes have more than {_MOST_FIELDS:,} fields")
            if kind not in ("dataclass", "namedtuple"):
                raise LoadError(f"{what} is a {kind!r:.40}, neither a dataclass nor a namedtuple")
            self.kinds.append(kind)
            self.classes.append(
                find_class(kind, module, qualname, fields) or make_class(kind, module, qualname, fields)
            )

    def structure(self, tokens: Json, what: str) -> tree.Structure:
        """A complete structure: every container has as many children as it declares, and there is one root."""
        decoded: list[tree.Token] = []
        missing = 1
        for row in want(tokens, list, f"the structure of {what}"):
            if missing == 0:
                raise LoadError(f"the structure of {what} has extra tokens")
            token = self._token(want(row, list, f"a token of {what}"), what)
            missing += (token[1] if token[0] not in ("leaf", "static") else 0) - 1
            decoded.append(token)
        if missing:
            raise LoadError(f"the structure of {what} ends too early")
        return tuple(decoded)

    def _token(self, row: list[Json], what: str) -> tree.Token:
        kind = row[0] if row else None
        if kind == "leaf" and len(row) == 1:
            return tree.LEAF
        if len(row) != 2:
            raise LoadError(f"invalid token {row!r:.80} in the structure of {what}")
        content = row[1]
        if kind == "static":
            return kind, tree.Identity(None if content is None else want(content, str, f"a part of {what}"))
        if kind in ("tuple", "list") and type(content) is int and 0 <= content < 2**31:
            return kind, content
        if kind == "dict":
            keys = keys_of(want(content, list, f"the keys of {what}"))
            if not all(key is None or type(key) in _PLAIN for key in keys) or len(set(keys)) != len(keys):
                raise LoadError(f"the keys of {what} are invalid: {keys!r:.80}")
            return kind, len(keys), keys
        if type(kind) is str and kind in _OURS and type(content) is list:
            module, name = _OURS[kind]
            try:
                token: tree.Token = getattr(importlib.import_module(module), name).__undertow_token__(content)
                return token
            except (TypeError, ValueError):
                raise LoadError(f"invalid token {row!r:.80} in the structure of {what}") from None
        if type(content) is int and 0 <= content < len(self.classes) and self.kinds[content] == kind:
            return _class_token(kind, self.classes[content])
        raise LoadError(f"invalid token {row!r:.80} in the structure of {what}")

    def type(self, row: Json, what: str, named: bool = False) -> Type:
        """A type; `named`: may a dimension be a name, as in annotations?"""
        dtype, *shape = want(row, list, f"the type of {what}") or [None]
        if not isinstance(dtype, str) or dtype not in DTYPES or DTYPES[dtype].kind == "ctl":
            raise LoadError(f"the type of {what} is invalid: {row!r:.80}")
        dims: list[Dim] = []
        for dim in shape:
            is_size = dim is None or (type(dim) is int and 0 <= dim < 2**63)
            if not (is_size or (named and isinstance(dim, str))):
                raise LoadError(f"the type of {what} has an invalid dimension: {dim!r:.80}")
            dims.append(want(dim, str, f"a dimension of {what}") if isinstance(dim, str) else dim)
        return Type(DTYPES[dtype], tuple(dims))

    def types(self, rows: Json, what: str, named: bool = False) -> tuple[Type, ...]:
        return tuple(self.type(row, what, named) for row in want(rows, list, f"the types of {what}"))

    def annotation(self, row: Json, what: str) -> Annotation:
        structure = self.structure(entry(row, "structure", list, what), what)
        types = self.types(entry(row, "types", list, what), what, named=True)
        check_leaves(structure, len(types), what)
        return Annotation(types, structure, flags(row, "weak", len(types), what) or ())

    def value(self, row: Json, what: str) -> Any:
        structure = self.structure(entry(row, "structure", list, what), what)
        leaves = [self._leaf(leaf, what) for leaf in entry(row, "leaves", list, what)]
        check_leaves(structure, len(leaves), what)
        return tree.unflatten(structure, leaves, build_quietly)

    def _leaf(self, leaf: Json, what: str) -> Any:
        if type(leaf) in (bool, int, float):
            return leaf
        if type(leaf) is dict and leaf.keys() == {"float"} and leaf["float"] in ("inf", "-inf", "nan"):
            return float(leaf["float"])
        if type(leaf) is dict and leaf.keys() == {"complex"}:
            parts = want(leaf["complex"], list, f"a complex number of {what}")
            if len(parts) == 2 and all(type(part) is str and _NUMBER.fullmatch(part) for part in parts):
                return complex(*map(float, parts))
        if type(leaf) is dict and leaf.keys() == {"array"}:
            name = want(leaf["array"], str, f"an array of {what}")
            if name not in self.arrays or digest(self.arrays[name]) != name:
                raise LoadError(f"the array {name!r:.40} of {what} is not among the constants")
            return self.arrays[name][()]
        raise LoadError(f"{what} contains an invalid value: {leaf!r:.80}")


def check_leaves(structure: Sequence[tree.Token], count: int, what: str) -> None:
    """A structure must have a leaf for each type or value."""
    leaves = structure.count(tree.LEAF)
    if leaves != count:
        raise LoadError(f"{what} has {leaves} leaves in its structure, but {count} types or values")
