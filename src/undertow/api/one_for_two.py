"""One array or list that a call gets twice, and changes: a graph has a copy for each argument, so it is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.errors import CaptureError
from undertow.frontend.syntax.source import Closure
from undertow.frontend.trace.definition import Arguments
from undertow.frontend.trace.library import Captured

_WORK = 10_000  # of a search for an element that two arrays share
_HINT = "pass a copy: f(x, x.copy())"


def may_be_one(captured: Captured) -> bool:
    """May a call be one that `refuse_one_for_two` refuses?"""
    arrays = sum(type_.rank > 0 for type_ in captured.types)
    return captured.changes_containers or bool(captured.changed and arrays > 1)


def refuse_one_for_two(captured: Captured, arguments: Arguments, given: Sequence[Any], closure: Closure) -> None:
    """Refuse a call that changes an argument of which another one is the same, or a part, or holds it."""
    for k in captured.changed:
        for n, other in enumerate(arguments.leaves):
            if n != k and _overlap(arguments.leaves[k], other):
                raise CaptureError(
                    f"`{closure.name}` changes its argument `{arguments.names[k]}` in place, and gets the same array, "
                    f"or a part of it, as `{arguments.names[n]}`",
                    closure.span,
                    hint=_HINT,
                )
    if captured.changes_containers and (kind := _held_twice(given)):
        raise CaptureError(
            f"`{closure.name}` changes a {kind} among its arguments, and gets the same {kind} twice",
            closure.span,
            hint=_HINT,
        )


def _overlap(one: Any, other: Any) -> bool:
    if not (np.ndim(one) and np.ndim(other) and np.may_share_memory(one, other)):
        return False
    try:
        return bool(np.shares_memory(one, other, max_work=_WORK))  # type: ignore[arg-type]  # it takes any bound
    except np.exceptions.TooHardError:
        return True


def _held_twice(given: Sequence[Any]) -> str:
    """The class of a container that stands at two places in the arguments, or ''."""
    seen: set[int] = set()
    stack = list(given)
    while stack:
        item = stack.pop()
        if isinstance(item, (list, dict, set)) or hasattr(item, "__dict__"):
            if id(item) in seen:
                return type(item).__name__
            seen.add(id(item))
        if isinstance(item, (list, tuple)):
            stack += item
        elif isinstance(item, dict):
            stack += item.values()
        elif not isinstance(item, (type, np.ndarray)) and not callable(item):
            stack += getattr(item, "__dict__", {}).values()
    return ""
