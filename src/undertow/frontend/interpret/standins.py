"""Python objects with traced values inside: ranges, and others whose length is known only at run time.

Texts are in `values/text.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from undertow.errors import CaptureError
from undertow.frontend.objects.handle import Handle
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.traced import Traced, context

if TYPE_CHECKING:
    import ast

    from undertow.frontend.syntax.source import Env


OF_OTHERS: tuple[type, ...] = (enumerate, zip, reversed, type(reversed([])))  # iterators over what is there already


class TracedRange:
    """`range` with traced bounds."""

    __slots__ = ("start", "step", "stop")

    __undertow_said__ = "a range of run-time length"  # in messages

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step

    def _refuse(self) -> CaptureError:
        return CaptureError(
            "the length of this range is known only at run time",
            hint="use it in a plain `for i in range(n):`, or compute a value for each i with ut.map(f, ut.arange(n))",
        )

    def __iter__(self) -> Any:
        raise self._refuse()

    def __len__(self) -> int:
        raise self._refuse()

    def __getitem__(self, key: Any) -> Any:
        raise self._refuse()


_Taken = TypeVar("_Taken", bound="_Once")


class _Once:
    """What Python iterates once: a second time there would be nothing left, or the rest after a `break`."""

    __slots__ = ("_is_taken", "_made_in")

    def __init__(self) -> None:
        current = context()
        self._made_in = None if current is None else current.builder
        self._is_taken = False

    def take(self: _Taken) -> _Taken:
        current = context()
        if self._is_taken or current is None or current.builder is not self._made_in:
            raise CaptureError(
                "this iterator may have been used before: how many items are left is known only at run time",
                hint="write the zip(), the map() or the generator again where it is used",
            )
        self._is_taken = True
        return self


class TracedItems(_Once):
    """An iterator like `zip(x, y)` over as many items as the run has: `item` gives the one at an index, or work."""

    __slots__ = ("item", "length", "name")

    __undertow_said__ = "an iterator of run-time length"  # in messages

    def __init__(self, name: str, length: Any, item: Callable[[Any], Any]) -> None:
        super().__init__()
        self.name, self.length, self.item = name, length, item

    def __iter__(self) -> Any:
        raise CaptureError(
            f"the length of this {self.name} is known only at run time",
            hint="use it in a `for`, or in sum(), max(), min(), any() or all()",
        )


class TracedGenerator(_Once):
    """A generator expression over as many items as the run has: its syntax, its variables, and what it runs over."""

    __slots__ = ("env", "node", "over")

    __undertow_said__ = "a generator of run-time length"  # in messages

    def __init__(self, node: ast.GeneratorExp | ast.ListComp, env: Env, over: Any) -> None:
        super().__init__()
        self.node, self.env, self.over = node, env, over

    def __iter__(self) -> Any:
        raise CaptureError(
            "the length of this generator is known only at run time",
            hint="use it in sum(), max(), min(), any() or all(); ut.map(f, ut.arange(n)) gives an array",
        )


def is_run_time(value: Any) -> bool:
    """Is it known only at run time how many items it has?"""
    return (
        isinstance(value, (TracedItems, TracedRange, TracedGenerator, GrowingList))
        or (isinstance(value, Handle) and value.is_list)
        or (isinstance(value, Traced) and bool(value.type.rank) and value.type.shape[0] is None)
    )


_NEEDS_LOOP = "__undertow_needs_loop__"


def needing_loop(error: CaptureError) -> CaptureError:
    """Mark the error of a comprehension that could be a loop of the graph, where something reduces it."""
    setattr(error, _NEEDS_LOOP, True)
    return error


def needs_loop(error: CaptureError) -> bool:
    return hasattr(error, _NEEDS_LOOP)
