"""Arguments of classes that are based on Python's numbers, and compute in their own way."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from undertow.errors import Span, TypeMismatch, with_article
from undertow.frontend.syntax.calling import is_user_class

_EXACT = frozenset((bool, int, float, np.float64))
_BASES = (int, float)
_MAY_DIFFER = frozenset(("__init__", "__new__", "__doc__", "__module__", "__dict__", "__repr__", "__class_getitem__"))


def refuse_own_classes(value: Any, called: str, span: Span | None) -> None:
    """Refuse numbers of classes that compute in their own way: a graph holds plain ones."""
    stack = [value]
    while stack:
        item = stack.pop()
        kind = type(item)
        if kind is list or kind is tuple:
            stack.extend(item)
        elif kind is dict:
            stack.extend(item.values())
        elif isinstance(item, _BASES) and kind not in _EXACT and (own := _own_method(kind)):  # type: ignore[arg-type]
            base = next(base.__name__ for base in _BASES if issubclass(kind, base))
            raise TypeMismatch(
                f"{called} holds {with_article(kind.__name__)}, which has a `{own}` of its own: "
                f"a graph would take it for {with_article(base)}",
                span,
                hint=f"pass a plain one, {base}(x), or an object that holds it",
            )


@functools.lru_cache(maxsize=1024)
def _own_method(kind: type) -> str:
    """The name of a method that a class of the user's overrides of the number that it is."""
    base = next((base for base in _BASES if issubclass(kind, base)), None)
    if base is None or not is_user_class(kind):
        return ""
    owners = [owner for owner in kind.__mro__[: kind.__mro__.index(base)] if is_user_class(owner)]
    known = vars(base).keys() - _MAY_DIFFER
    return next((name for owner in owners for name in vars(owner) if name in known), "")
