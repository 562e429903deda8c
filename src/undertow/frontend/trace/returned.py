"""What a captured function may return: values of the graph, containers of them, and Python objects that do not change.

An iterator would be used up after the first call, and an object that holds traced values would show them to the
caller, long after the capture.
"""

from __future__ import annotations

from collections import ChainMap, UserDict, deque
from collections.abc import Iterator, KeysView, Sequence, ValuesView
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, kind_of
from undertow.frontend.interpret.numpy_calls import holds_traced
from undertow.frontend.interpret.standins import TracedRange
from undertow.frontend.syntax.source import Closure
from undertow.frontend.trace.opaque import WRAPPERS
from undertow.frontend.values.traced import Traced
from undertow.frontend.values.tree import Structure, children
from undertow.types import DTYPES

_DTYPES = frozenset(dtype.numpy for dtype in DTYPES.values())
_PLAIN = {"tuple": tuple, "list": list, "dict": dict}  # by the token of a container


def refuse_unreturnable(leaves: Sequence[Any], structure: Structure) -> None:
    """Raise an error if a result holds something that is not the caller's to have."""
    for leaf in leaves:
        if isinstance(leaf, (np.ndarray, np.generic)) and leaf.dtype not in _DTYPES:
            raise TypeMismatch(
                f"a {leaf.dtype.name} cannot be returned: graphs have bool, i32, i64, f32 and f64",
                hint="convert it, as in x.astype(np.int64)",
            )
    for token in structure:
        if token[0] == "static":
            _refuse(token[1].value)


def refuse_other_kinds(value: Any) -> None:
    """Raise an error for a container in a result that its caller would get as another one, or not whole."""
    stack = [value]
    while stack:
        item = stack.pop()
        held = None if isinstance(item, Traced) else children(item)
        if held is None:
            continue
        stack.extend(held[1])
        if held[0][0] == "subclass" and getattr(item, "__dict__", None):
            raise CaptureError(
                f"{_kind(item)} with attributes cannot be returned: the caller would get its items alone",
                hint="return the attributes beside it, or use a dataclass",
            )
        plain = _PLAIN.get(held[0][0])
        if plain is not None and type(item) is not plain:
            raise CaptureError(
                f"{_kind(item)} cannot be returned: the caller would get a plain {plain.__name__}",
                hint=f"return {plain.__name__}(x), and build it in the caller",
            )


def _refuse(value: Any) -> None:
    if isinstance(value, TracedRange):
        raise CaptureError(
            "a range with traced bounds cannot be returned", hint="return its bounds, or ut.arange(start, stop)"
        )
    if isinstance(value, (Iterator, KeysView, ValuesView, type({}.items()))):
        raise CaptureError(f"{_kind(value)} cannot be returned", hint="return a list of it: list(...)")
    if isinstance(value, np.ndarray):
        raise CaptureError(
            f"an array of {value.dtype.name} cannot be returned", hint="graphs have bool, i32, i64, f32 and f64"
        )
    if isinstance(value, (deque, *WRAPPERS)):
        plain = "dict" if isinstance(value, (UserDict, ChainMap)) else "list"
        raise CaptureError(
            f"{_kind(value)} cannot be returned: all calls would get the same one",
            hint=f"return {plain}(x), and build it in the caller",
        )
    held = [vars(value)] if hasattr(value, "__dict__") and not isinstance(value, type) else []
    held += [value.__self__] if hasattr(value, "__self__") else []
    held += [value.args, value.keywords] if hasattr(value, "func") and hasattr(value, "keywords") else []
    if holds_traced(value) or any(map(holds_traced, held)):
        raise CaptureError(
            f"{_kind(value)} that holds traced values cannot be returned",
            hint="return the values in a tuple, list, dict or dataclass",
        )


def refuse_closures(structure: Structure) -> None:
    """Raise an error if the outermost result holds a function that is defined in a captured one."""
    for token in structure:
        if token[0] == "static" and isinstance(token[1].value, Closure):
            raise CaptureError(
                f"`{token[1].value.name}` is defined inside of a captured function and cannot be returned",
                hint="return the values that it computes, or define it outside",
            )


def _kind(value: Any) -> str:
    return kind_of(value)
