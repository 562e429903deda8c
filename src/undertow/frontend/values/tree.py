"""Containers: tuples, lists, dicts, dataclasses and namespaces of values, as a flat list of leaves and a structure.

A structure is a flat tuple of tokens in preorder, so it hashes and compares without recursion, however deep the
container is. One of our own classes may define `__undertow_parts__`, which gives its token and contents, and
`__undertow_whole__`, which builds it again.

>>> leaves, structure = flatten({"b": [1, 2], "a": 3})
>>> leaves
[1, 2, 3]
>>> unflatten(structure, leaves)
{'b': [1, 2], 'a': 3}
"""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np

from undertow.errors import brief, kind_of
from undertow.frontend.syntax.calling import is_user_class
from undertow.ir.exact import keys_of

Token = tuple[Any, ...]
Structure = tuple[Token, ...]

LEAF: Token = ("leaf",)
NOT_NUMBERS = {  # what arrays of NumPy hold that graphs cannot, by the kind of their dtype
    "U": "strings", "S": "bytes", "O": "objects", "V": "records", "M": "dates", "m": "times",
}  # fmt: skip
_BUILTIN = (tuple, list, dict)


class Identity:
    """A static object in a structure, equal only to itself (or to an equal string, enum or None)."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Identity):
            return False
        same_kind = type(self.value) is type(other.value) and isinstance(self.value, (str, bytes))
        return self.value is other.value or (same_kind and self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value) if isinstance(self.value, (str, bytes)) else id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(type(value), "_fields")


def items_of(value: tuple[Any, ...] | list[Any] | dict[Any, Any]) -> list[Any]:
    """The items of a container as it stores them, whatever methods a subclass has: the values of a dict."""
    if isinstance(value, tuple):
        return list(tuple.__iter__(value))
    return list(list.__iter__(value)) if isinstance(value, list) else list(dict.values(value))


def children(value: object) -> tuple[Token, list[Any]] | None:
    """The token of a container and its contents, or None if the value is not a container."""
    kind = type(value)
    if isinstance(value, (tuple, list, dict)):
        contents = items_of(value)
        if is_namedtuple(value):
            return ("namedtuple", len(contents), kind), contents
        keys = keys_of(dict.keys(value)) if isinstance(value, dict) else None
        if isinstance(value, defaultdict):
            return ("subclass", len(contents), kind, keys, Identity(value.default_factory)), contents
        if kind not in _BUILTIN and (is_user_class(kind) or kind in (OrderedDict, Counter)):
            return ("subclass", len(contents), kind, keys), contents
        if keys is not None:
            return ("dict", len(contents), keys), contents
        return ("tuple" if isinstance(value, tuple) else "list", len(contents)), contents
    if hasattr(kind, "__undertow_parts__"):
        parts: tuple[Token, list[Any]] = value.__undertow_parts__()  # type: ignore[attr-defined]
        return parts
    if dataclasses.is_dataclass(kind) and not hasattr(kind, "__undertow_static__"):
        names = tuple(f.name for f in dataclasses.fields(kind))
        names += extra_names(value, names)
        return ("dataclass", len(names), kind, names), [getattr(value, name) for name in names]
    if kind is SimpleNamespace:
        return ("namespace", len(vars(value)), tuple(vars(value))), list(vars(value).values())
    return None


def extra_names(value: object, fields: Sequence[str]) -> tuple[str, ...]:
    """The attributes of an object of a dataclass that are not its fields."""
    own = getattr(value, "__dict__", ())
    return tuple(name for name in own if name not in fields) if len(own) > len(fields) else ()


def without_cached(value: object) -> tuple[Token, list[Any]] | None:
    """The token of a container and its contents, without properties that an object of a dataclass remembers."""
    held = children(value)
    if held is None or held[0][0] != "dataclass":
        return held
    kind = type(value)
    names = tuple(name for name in held[0][3] if not isinstance(getattr(kind, name, None), cached_property))
    return ("dataclass", len(names), kind, names), [getattr(value, name) for name in names]


def is_number(value: object) -> bool:
    """A Python number, a NumPy scalar or a NumPy array of numbers."""
    return isinstance(value, (bool, int, float, complex, np.generic)) or (
        isinstance(value, np.ndarray) and value.dtype.kind in "biufc"
    )


def flatten(value: object, is_leaf: Any = None, children: Any = children) -> tuple[list[Any], Structure]:
    """The leaves of a container and its structure.

    Leaves are numbers, arrays and whatever `is_leaf` accepts; anything else that is not a container is static:
    part of the structure.
    """
    leaves: list[Any] = []
    tokens: list[Token] = []
    stack = [value]
    while stack:
        item = stack.pop()
        is_array = type(item) is np.ndarray and item.dtype.kind in "biufc"  # most leaves
        if is_array or (is_leaf is not None and is_leaf(item)) or is_number(item):
            leaves.append(item)
            tokens.append(LEAF)
            continue
        container = children(item)
        if container is None:
            tokens.append(("static", Identity(item)))
        else:
            token, contents = container
            tokens.append(token)
            stack.extend(reversed(contents))
    return leaves, tuple(tokens)


def unflatten(structure: Structure, leaves: Sequence[Any], construct: Any = None, static: Any = None) -> Any:
    """The container with this structure and these leaves; `construct` and `static` may replace how tokens are built."""
    if structure == (LEAF,):
        return leaves[0]
    # Each entry: the token, and the values gathered for it so far.
    stack: list[tuple[Token, list[Any]]] = [(("tuple", 1), [])]
    rest = iter(leaves)
    for token in structure:
        kind = token[0]
        if kind == "leaf":
            contents = stack[-1][1]
            contents.append(next(rest))
        elif kind == "static":
            contents = stack[-1][1]
            contents.append(token[1].value if static is None else static(token[1].value))
        else:
            contents = []
            stack.append((token, contents))
        while len(contents) == stack[-1][0][1] and len(stack) > 1:
            done, _ = stack.pop()
            value = (construct or build)(done, contents)
            contents = stack[-1][1]
            contents.append(value)
    return stack[0][1][0]


def as_plain_dicts(structure: Structure) -> Structure:
    """A structure with dicts in place of those of Python's own subclasses of dict."""
    return tuple(
        ("dict", token[1], token[3])
        if token[0] == "subclass" and token[3] is not None and not is_user_class(token[2])
        else token
        for token in structure
    )


def unflatten_each(structures: Iterable[Structure], leaves: Iterable[Any], static: Any = None) -> list[Any]:
    """The containers of these structures, which share one list of leaves.

    >>> unflatten_each([(("tuple", 2), LEAF, LEAF), (LEAF,)], [1, 2, 3])
    [(1, 2), 3]
    """
    rest = iter(leaves)
    return [unflatten(s, list(islice(rest, s.count(LEAF))), static=static) for s in structures]


def numbered(values: Iterable[object], is_leaf: Any = None, at: int = 0) -> list[tuple[range, Structure]]:
    """For each value, the numbers of its leaves (counted over all values, from `at` on) and its structure.

    >>> [numbers for numbers, _ in numbered([(1, 2), 3])]
    [range(0, 2), range(2, 3)]
    """
    ranges = []
    for value in values:
        leaves, structure = flatten(value, is_leaf)
        ranges.append((range(at, at + len(leaves)), structure))
        at += len(leaves)
    return ranges


def build(token: Token, contents: list[Any]) -> Any:
    """The container of a token with these contents."""
    kind = token[0]
    if kind == "tuple":
        return tuple(contents)
    if kind == "list":
        return contents
    if kind == "namedtuple":
        return token[2](*contents)
    if kind == "dict":
        return dict(zip(token[2], contents, strict=True))
    if kind == "subclass":
        return _instance(token[2], token[3], contents, *token[4:])
    if kind == "object":
        return token[2].__undertow_whole__(token[4], contents)
    if kind == "namespace":
        return SimpleNamespace(**dict(zip(token[2], contents, strict=True)))
    # A dataclass may check its fields or have fields that __init__ does not take: set them directly.
    instance = object.__new__(token[2])
    for name, value in zip(token[3], contents, strict=True):
        object.__setattr__(instance, name, value)
    return instance


def _instance(
    kind: Any, keys: Iterable[Any] | None, contents: list[Any], default_factory: Identity | None = None
) -> Any:
    """An object of a subclass of tuple, list or dict, made without its own methods."""
    if issubclass(kind, tuple):
        return tuple.__new__(kind, contents)
    if keys is None:
        made: Any = list.__new__(kind)
        list.extend(made, contents)
    else:
        plain: Any = OrderedDict if issubclass(kind, OrderedDict) else dict
        made = plain.__new__(kind)
        if default_factory is not None:
            made = defaultdict.__new__(kind)
            plain.__init__(made)
            made.default_factory = default_factory.value
        plain.update(made, zip(keys, contents, strict=True))
    return made


def along(
    structure: Structure, value: object, children: Any = children, more: Sequence[Token] = ()
) -> list[Any] | None:
    """The values of a container at each leaf of a structure, and at `more` tokens; None if the structures differ.

    A None in the container stands for everything below it, and static parts may be anything.

    >>> along(flatten({"a": (1, 2), "b": 3})[1], {"b": 30, "a": None})
    [None, None, 30]
    """
    first = structure[0]
    if type(value) is dict and first[0] == "dict" and len(value) == structure.count(LEAF) == len(structure) - 1:
        try:  # parameters, most of the time
            return [value[key] for key in first[2]]
        except KeyError:
            return None
    values: list[Any] = []
    stack: list[Any] = [value]
    for token in structure:
        item = stack.pop()
        if token is LEAF or token == LEAF or token in more:
            values.append(item)
        elif token[0] == "static":
            continue
        elif item is None:
            stack += [None] * token[1]
        else:
            if token[0] == "dict" and isinstance(item, dict) and set(item) == set(token[2]):
                container = token, [item[key] for key in token[2]]
            else:
                container = children(item)
            if container is None or container[0] != token:
                return None
            stack += reversed(container[1])
    return values


def paths(value: object, name: str, is_leaf: Any = None) -> list[str]:
    """A readable name for each leaf, in the order of `flatten`.

    >>> paths({"W": 1, "b": (2, 3)}, "params")
    ['params.W', 'params.b.0', 'params.b.1']
    """
    names: list[str] = []
    stack: list[tuple[str, Any]] = [(name, value)]
    while stack:
        path, item = stack.pop()
        if (is_leaf is not None and is_leaf(item)) or is_number(item):
            names.append(path)
        elif (inner := children(item)) is not None:
            token, contents = inner
            at = {"dict": 2, "namespace": 2, "dataclass": 3, "object": 3, "subclass": 3}.get(token[0])
            labels = range(len(contents)) if at is None or token[at] is None else token[at]
            stack.extend(reversed([(f"{path}.{k}", v) for k, v in zip(labels, contents, strict=True)]))
    return names


_LONGEST = 120  # characters of a structure in a message
_MOST_TOKENS = 200


def show(structure: Structure, leaves: Sequence[object]) -> str:
    """A structure as Python would write it, for messages; `leaves` are the texts of its leaves.

    >>> leaves, structure = flatten({"W": (1, 2), "name": "tanh"})
    >>> show(structure, ["f32[3]", "i64"])
    "{'W': (f32[3], i64), 'name': 'tanh'}"
    """
    if len(structure) > _MOST_TOKENS:
        return f"a {structure[0][0]} of {len(leaves)} values"
    text: str = unflatten(structure, [str(leaf) for leaf in leaves], _show_container, _show_static)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _show_container(token: Token, texts: list[str]) -> str:
    kind = token[0]
    if kind == "tuple":
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
    if kind == "list":
        return f"[{', '.join(texts)}]"
    if kind == "dict":
        return "{" + ", ".join(f"{brief(key)}: {text}" for key, text in zip(token[2], texts, strict=True)) + "}"
    if kind == "subclass":
        plain: Token = ("list", token[1]) if token[3] is None else ("dict", token[1], token[3])
        return f"{token[2].__name__}({_show_container(plain, texts)})"
    if kind == "object" and hasattr(token[2], "__undertow_show__"):
        return str(token[2].__undertow_show__(texts))
    name = "SimpleNamespace" if kind == "namespace" else token[2].__name__
    if kind == "object" and hasattr(token[2], "__undertow_said__"):
        return str(token[2].__undertow_said__)
    names = token[2]._fields if kind == "namedtuple" else token[2] if kind == "namespace" else token[3]
    return f"{name}({', '.join(f'{n}={text}' for n, text in zip(names, texts, strict=True))})"


def _show_static(value: object) -> str:
    if value is None or isinstance(value, (str, bytes)):
        return repr(value) if len(repr(value)) <= _LONGEST // 2 else f"a long {type(value).__name__}"
    if isinstance(value, np.ndarray):
        return f"an array of {NOT_NUMBERS.get(value.dtype.kind, value.dtype.name)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return "a function"
    return kind_of(value)
