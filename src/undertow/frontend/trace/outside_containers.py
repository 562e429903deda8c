"""Containers outside: how a capture guards them, takes them apart, and builds its own."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections import deque
from collections.abc import Callable, Sequence
from enum import Enum
from types import MethodType, SimpleNamespace
from typing import Any

import numpy as np

from undertow.frontend.syntax.calling import is_user_class
from undertow.frontend.trace.guards import Check, Read
from undertow.frontend.trace.opaque import WRAPPERS
from undertow.frontend.values import tree

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice, np.generic)
_MOST_HIDDEN = 64  # numbers of a container that are hidden arguments each; a longer one is compared as a whole

# The guard, what it expects, an empty container to fill (None if it is immutable), how to build it, and its parts.
Parts = tuple[Check, Any, Any, Callable[[list[Any]], Any], list[tuple[Read, Any, Any, str]]]


def parts_of(value: Any, name: str) -> Parts | None:
    """How to guard and take apart a container, and how to build it again."""
    kind = type(value)
    if isinstance(value, (list, tuple, deque, dict)):
        items = list(value) if isinstance(value, deque) else tree.items_of(value)
        labels: Any = tuple(dict.keys(value)) if isinstance(value, dict) else range(len(items))
        parts = [(Read.ITEM, key, item, f"{name}.{key}") for key, item in zip(labels, items, strict=True)]
        check = Check.KEYS if isinstance(value, dict) else Check.LENGTH
        expected = (kind, labels if isinstance(value, dict) else len(items))
        if isinstance(value, tuple):
            return check, expected, None, functools.partial(tuple_of, kind), parts[::-1]
        shell = copy.copy(value)
        return check, expected, shell, functools.partial(_filled, shell), parts[::-1]
    if kind is MethodType:
        return _of_attributes(value, name, ("__func__", "__self__"), None, lambda held: MethodType(*held))
    if hasattr(kind, "__undertow_definition__") and value.__undertow_bound__:  # a method: its object is read outside
        attribute = "__undertow_bound__"
        parts = [(Read.ATTRIBUTE, attribute, value.__undertow_bound__, f"{name}.{attribute}")]
        return Check.SAME, value, None, functools.partial(_rebound, value), parts
    if kind is functools.partial:
        return _of_attributes(value, name, ("func", "args", "keywords"), None, _partial)
    if isinstance(value, WRAPPERS):
        wrapper = object.__new__(kind)
        own_part = (Read.ATTRIBUTE, "__dict__", vars(value), name)
        return Check.KIND, kind, wrapper, functools.partial(_with_own, wrapper), [own_part]
    if tree.children(value) is None or hasattr(kind, "__undertow_parts__"):
        return None
    instance: Any = SimpleNamespace() if kind is SimpleNamespace else object.__new__(kind)
    fields = [] if kind is SimpleNamespace else [f.name for f in dataclasses.fields(value)]
    own = getattr(value, "__dict__", None)
    if own is not None and all(name in own for name in fields):
        part = (Read.ATTRIBUTE, "__dict__", own, name)
        return Check.KIND, kind, instance, functools.partial(_with_own, instance), [part]
    names = [key for key in dict.fromkeys((*fields, *(own or ()))) if hasattr(value, key)]
    return _of_attributes(value, name, names, instance, functools.partial(_with_attributes, instance, names))


def _of_attributes(value: Any, name: str, names: Sequence[str], shell: Any, build: Callable[[list[Any]], Any]) -> Parts:
    parts = [(Read.ATTRIBUTE, key, getattr(value, key), f"{name}.{key}") for key in names]
    return Check.KIND, type(value), shell, build, parts[::-1]


def tuple_of(kind: Any, contents: list[Any]) -> Any:
    """A tuple of this class, made without methods of its own; of a library's class, a plain one."""
    return tuple.__new__(kind if hasattr(kind, "_fields") or is_user_class(kind) else tuple, contents)


def _filled(shell: Any, contents: list[Any]) -> Any:
    if isinstance(shell, dict):
        dict.update(shell, zip(tuple(dict.keys(shell)), contents, strict=True))
    elif isinstance(shell, list):
        list.__setitem__(shell, slice(None), contents)
    else:
        shell.clear()
        shell.extend(contents)
    return shell


def _rebound(method: Any, contents: list[Any]) -> Any:
    bound = object.__new__(type(method))
    bound.__dict__.update(method.__dict__)
    bound.__undertow_definition__, (bound.__undertow_bound__,) = method.__undertow_definition__, contents
    bound.__undertow_programs__ = method.__undertow_programs__
    return bound


def _partial(contents: list[Any]) -> Any:
    function, args, kwargs = contents
    return functools.partial(function, *args, **kwargs)


def _with_attributes(instance: Any, names: Sequence[str], contents: list[Any]) -> Any:
    for name, value in zip(names, contents, strict=True):
        object.__setattr__(instance, name, value)
    return instance


def _with_own(instance: Any, contents: list[Any]) -> Any:
    instance.__dict__.update(contents[0])
    return instance


def copied(value: Any) -> Any:
    if isinstance(value, (list, tuple, dict)):
        leaves, structure = tree.flatten(value)
        return tree.unflatten(structure, leaves)
    return copy.copy(value)


def is_large(value: Any) -> bool:
    """Does a container hold many numbers, and nothing but constants?"""
    count = count_constants(value)
    return count is not None and count > _MOST_HIDDEN


def count_constants(value: Any) -> int | None:
    """The number of constants in a container that holds nothing else; None if it does."""
    count = 0
    stack = [value]
    seen: set[int] = set()
    while stack:
        item = stack.pop()
        if type(item) in (list, tuple, dict):
            if id(item) in seen:
                return None
            seen.add(id(item))
            stack.extend(item.values() if type(item) is dict else item)
        elif isinstance(item, PLAIN) and not isinstance(item, Enum):
            count += 1
        else:
            return None
    return count
