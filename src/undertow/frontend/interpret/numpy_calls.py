"""Calls of NumPy's functions and methods in captured code: with traced values among their arguments they are ours.

NumPy asks its arguments for help only where they are arrays themselves. Of a list or a dict of traced values it would
make an array of objects, and compute with these.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.syntax.source import Closure
from undertow.frontend.values.traced import FUNCTIONS, Context, Traced, call_numpy

_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_ITERATORS: tuple[type, ...] = (
    map,
    filter,
    zip,
    enumerate,
    reversed,
    type(iter([])),
    type(iter(())),
    type(iter({}.values())),
)
_MOST = 10_000  # values looked at in one argument


def holds_traced(value: Any) -> bool:
    """Is there a traced value in this argument, in containers of containers too?"""
    if isinstance(value, (Traced, str, bytes, int, float, np.ndarray, np.generic)):
        return isinstance(value, Traced)
    stack = [value]
    looked_at = 0
    while stack and looked_at < _MOST:
        item: Any = stack.pop()
        looked_at += 1
        if isinstance(item, Traced):
            return True
        if isinstance(item, (list, tuple, set, frozenset)) or type(item) in _VIEWS:
            stack.extend(item)
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, slice):
            stack.extend((item.start, item.stop, item.step))
        elif isinstance(item, _ITERATORS):
            reduced: Any = item.__reduce__()
            stack.extend(reduced[1])
    return False


def on_traced(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[..., Any] | None:
    """What computes a call of NumPy with traced values; None if it is no such call."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, np.ufunc) and any(map(holds_traced, args)):
        return lambda *args, **kwargs: FUNCTIONS["ufunc_method"](owner, function.__name__, args, kwargs)
    is_method = isinstance(owner, (np.ndarray, np.generic))
    module = getattr(function, "__module__", None) or ""
    if not is_method and module.partition(".")[0] != "numpy":
        return None
    if not any(map(holds_traced, args)) and not any(map(holds_traced, kwargs.values())):
        return None
    if not is_method:
        return lambda *args, **kwargs: call_numpy(function, args, kwargs)
    method = getattr(Traced, function.__name__, None)
    if method is None:
        raise CaptureError(
            f"x.{function.__name__} with traced values cannot be captured",
            hint="use functions of ut, which follow the array API standard",
        )
    return partial(method, owner)


def refuse_traced(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], fault: Exception) -> None:
    """Raise an error if a function of Python's that failed was passed traced values: it takes none."""
    given = [*args, *kwargs.values()]
    module = getattr(function, "__module__", None) or "builtins"
    if module.partition(".")[0] not in sys.stdlib_module_names:
        return  # the user's own, or a library's: what it says is what happened
    if any(map(holds_traced, given)) or any(isinstance(value, Closure) for value in given):
        what = "traced values" if any(map(holds_traced, given)) else "functions that are defined in a captured one"
        name = getattr(function, "__qualname__", type(function).__name__)
        raise CaptureError(
            f"{name}() does not take {what}: Python raised {type(fault).__name__}",
            hint="write it with operators, or with functions of ut, or define it outside",
        ) from None


# What to write instead of functions that compare, or take apart, numbers that are known only at run time; by module.
_COMPARING = {
    "_bisect": "count: ut.sum(ut.asarray(items) < x) is bisect_left, and with <= it is bisect_right",
    "_heapq": "sort an array: ut.sort(ut.asarray(items))[:k] are the k smallest",
    "heapq": "sort an array: ut.sort(ut.asarray(items))[:k] are the k smallest",
    "builtins.bin": "take bits by arithmetic: (n >> k) & 1 is bit k",
}


def refuse_comparing(function: Any, fault: CaptureError) -> None:
    """Raise a better error where a function of Python's asked for the value of a traced number."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__name__", "")
    hint = _COMPARING.get(f"{module}.{name}", _COMPARING.get(str(module), ""))
    if hint and fault.hint in (Context.hints["truth"], Context.hints["index"]):
        raise CaptureError(f"{name}() needs numbers that are known only at run time", fault.span, hint) from None
