"""Plain Python functions that call themselves, and whose recursion ends at run time: they are captured as functions.

Helpers are captured inline. One that calls itself under a condition of the run would never end so: its call is a call
of the graph. A recursion that ends at capture, over structure that is known then, stays inline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from undertow.frontend.syntax.source import Closure, Env
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.traced import Context, Traced

Place = tuple[str, int, int, str]  # in the source

_NUMBERS = (int, float, complex, np.number)


def place_of(closure: Closure) -> Place:
    """Where a function is written: the same for all closures that one `def` makes."""
    return closure.file, closure.node.lineno, closure.node.col_offset, closure.name


def region_of(ctx: Context) -> tuple[Any, int]:
    """The graph and the branch in it that is written now."""
    builder = ctx.open_builder
    return builder, builder.region


def recurs_at_run_time(open_: Sequence[Env], closure: Closure, values: Mapping[str, Any], ctx: Context) -> bool:
    """Does a helper that is captured inline call itself where the run decides, with arguments of the same kinds?"""
    around = next((env for env in reversed(open_) if env.region is not None and env.closure.node is closure.node), None)
    if around is None or around.region == region_of(ctx):
        return False
    return _kinds_of(around.given) == _kinds_of(values)


def _kinds_of(values: Mapping[str, Any]) -> tuple[Any, ...]:
    """What the arguments are, apart from the values of numbers and the lengths of lists."""
    return tuple((name, _kind(value)) for name, value in values.items())


def _kind(value: Any) -> Any:
    if isinstance(value, Traced):
        return "array" if value.type.rank else "bool" if value.type.dtype.kind == "bool" else "number"
    if isinstance(value, (bool, str)) or value is None:
        return "static", value
    if isinstance(value, _NUMBERS):
        return "number"
    if isinstance(value, np.ndarray):
        return "array"
    if isinstance(value, (list, deque, GrowingList)):
        return "list"
    if isinstance(value, tuple):
        return tuple(map(_kind, value))
    if isinstance(value, dict):
        return "dict", tuple((key, _kind(item)) for key, item in dict.items(value))
    return "static", id(value)
