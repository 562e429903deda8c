"""Values of Python's own classes whose contents can change unseen: buffers, views, proxies, arrays of objects.

Code that is not captured reads them, so a program may only keep a copy that a guard compares with the value at each
call. What cannot be compared is refused.
"""

from __future__ import annotations

import copy
import os
import sys
from array import array
from collections import ChainMap, UserDict, UserList, deque
from types import MappingProxyType
from typing import Any

import numpy as np

from undertow.errors import CaptureError, with_article
from undertow.frontend.values import tree
from undertow.ir.exact import exact

# Containers of the standard library that are Python objects around a list or dict.
WRAPPERS = (UserDict, UserList, ChainMap)
_CONSTANTS = (bool, int, float, complex, str, bytes, type(None), np.generic)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_INSTEAD = {
    **dict.fromkeys(_VIEWS, "keep the dict instead, and ask it in the function: d.keys(), d.values(), d.items()"),
    memoryview: "make an array of it: np.asarray(view)",
    MappingProxyType: "use a dict of your own: dict(m)",
    np.ndarray: "use a list or tuple of the objects, or an array of numbers",
}


def is_opaque(value: object) -> bool:
    """Can it change, although it is no container or object that is taken apart?"""
    kind: Any = type(value)
    if isinstance(value, (list, dict, deque)):
        return False
    if kind in _INSTEAD:
        return kind is not np.ndarray or value.dtype.kind == "O"  # type: ignore[attr-defined]
    is_pythons = kind.__module__.partition(".")[0] in sys.stdlib_module_names
    return is_pythons and hasattr(kind, "__setitem__") and not hasattr(value, "__dict__")


def is_changing(value: object) -> bool:
    """May something that a library holds change, as sys.argv and os.environ do?"""
    if value is sys.modules:
        return False  # the interpreter refuses it
    return isinstance(value, (list, dict, set, deque, *WRAPPERS, type(os.environ))) or is_opaque(value)


def held_copy(value: Any, name: str) -> Any:
    """A copy that `is_same` compares with the value later; an error if there is none."""
    kind = type(value)
    if kind in (bytearray, array):
        return copy.copy(value)
    if kind is MappingProxyType:
        leaves, structure = tree.flatten(dict(value))
        if all(isinstance(item, _CONSTANTS) for item in (*leaves, *_statics(structure))):
            return MappingProxyType(tree.unflatten(structure, leaves))
    if kind is np.ndarray and all(isinstance(item, _CONSTANTS) for item in value.ravel().tolist()):
        return value.copy()
    what = "an array of objects" if kind is np.ndarray else with_article(kind.__name__)
    raise CaptureError(
        f"`{name}` is {what}, whose contents may change between two calls",
        hint=_INSTEAD.get(kind, "pass what the function needs of it as an argument"),
    )


def is_same(a: Any, b: Any) -> bool | None:
    """Do two values of one class hold the same? None if they are not of the classes here."""
    if isinstance(a, (bytearray, array)):
        return getattr(a, "typecode", "") == getattr(b, "typecode", "") and bytes(a) == bytes(b)
    if isinstance(a, MappingProxyType):
        (held, structure), (others, other) = tree.flatten(dict(a)), tree.flatten(dict(b))
        return structure == other and list(map(exact, held)) == list(map(exact, others))
    if isinstance(a, np.ndarray) and a.dtype.kind == "O":
        return a.shape == b.shape and list(map(exact, a.ravel())) == list(map(exact, b.ravel()))
    return None


def _statics(structure: tree.Structure) -> list[Any]:
    return [token[1].value for token in structure if token[0] == "static"]
