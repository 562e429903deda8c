"""Views: arrays that are a part of another one, or another shape of it, as basic indexing and `x.T` give them.

A view knows its array, how to read it from that array, and how to write it back. So it can follow changes of the array,
and be changed itself.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from undertow.frontend.values.traced import Traced, roots_of


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """How an array depends on another one."""

    of: Traced
    read: Callable[[Any], Any]  # array -> view
    write: Callable[[Any, Any], Any]  # array, new view -> new array


def view_behind(array: Traced) -> Any:
    """The View that an array is; None if it is an array of its own."""
    return getattr(array, "view", None)


def make_view(value: Any, view: View) -> Any:
    """Note that a value is a view."""
    if isinstance(value, Traced) and value.type.rank and value is not view.of:
        value.base, value.view = roots_of(view.of), view
        if getattr(view.of, "views", None) is None:
            view.of.views = []
        view.of.views.append(weakref.ref(value))
    return value


def live_views(array: Traced) -> Iterator[Traced]:
    """The views of an array that are still in use."""
    held = getattr(array, "views", None)
    if held:
        array.views = [ref for ref in held if ref() is not None]
        yield from [view for ref in array.views if (view := ref()) is not None]
