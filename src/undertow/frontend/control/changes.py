"""Arrays that change in place: what they hold so far.

A traced array is an object of Python's that stands for a value of the graph. `x[i] = v` writes a node for the new value
and lets the object stand for that one, so that all names of the array see the change, as in NumPy. A view knows how it
is read from its array and written back into it (`values/views.py`): a change of either changes both.

Branches, loops and functions carry the change. Both sides of a branch start from the same values, and are merged. A
loop that changes an array carries it like a variable; a function that changes an argument has it as a further result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from undertow.errors import CaptureError, InternalError, Span
from undertow.frontend.control.aliasing import Aliases, array_from_outside
from undertow.frontend.control.merge import by_condition, merge
from undertow.frontend.control.restart import StartOver
from undertow.frontend.values.traced import Context, Traced, write
from undertow.frontend.values.views import live_views, view_behind
from undertow.ir.graph import EMPTY, Port
from undertow.ops.op import find

if TYPE_CHECKING:
    from undertow.frontend.trace.builder import Builder

Held = tuple[Traced, "Builder", Port]  # an array, and the value that it stands for
Values = dict[int, Held]  # by the identity of the array


class Changes:
    """The arrays that have changed during a capture."""

    def __init__(self, ctx: Context, aliases: Aliases) -> None:
        self._ctx = ctx
        self._aliases = aliases
        self._first: Values = {}  # before its first change

    # -- one change ----------------------------------------------------------------------------------------

    def update(self, array: Traced, value: Any, called: str, written: str) -> None:
        """Let an array hold a new value: through a view, the array behind it."""
        while (view := view_behind(array)) is not None:
            array, value = view.of, view.write(view.of, value)
        self._aliases.check_change(array, called, written)
        if array.builder is not self._ctx.open_builder:
            raise self._from_outside(array, called, written)
        if not isinstance(value, Traced):  # `x[:] = 0`: an array stands for a node, not for a constant
            (value,) = write(self._ctx, find("identity"), [value], EMPTY)
        self.put(array, value)

    def put(self, array: Traced, value: Traced) -> None:
        """Let an array, and the views of it, stand for a value of the current graph."""
        stack = [(array, value)]
        while stack:
            item, new = stack.pop()
            if not isinstance(new, Traced):
                raise InternalError(f"{item!r} cannot stand for a constant")
            self._first.setdefault(id(item), (item, item.builder, item.port))
            _hold(item, new.builder, new.port)
            stack.extend((view, view_behind(view).read(item)) for view in live_views(item) if self._is_visible(view))

    def _is_visible(self, view: Traced) -> bool:
        """Can a view be used where nodes are written now? One of a branch or loop that has ended cannot."""
        builder = self._ctx.open_builder
        _, made_by, port = self._first.get(id(view), (view, view.builder, view.port))
        if made_by is not builder:
            return made_by.is_open
        home, at = builder.nodes[port.node].region, builder.region
        while at != home and (parent := builder.regions[at].parent) is not None:
            at = parent
        return at == home

    def _from_outside(self, array: Traced, called: str, written: str) -> Exception:
        """An array of an enclosing graph changes: a loop starts over and carries it, others cannot."""
        builder = self._ctx.open_builder
        hint = f"make a new array: `{written}`"
        if array.builder.kind == "main":
            return array_from_outside(called, hint)
        inside = [builder]  # the graphs of this function, from here outwards
        while inside[-1].parent is not None:
            inside.append(inside[-1].parent)
        if array.builder not in inside and all(around.kind != "map" for around in inside):
            self._ctx.session.change_outside(array, inside[-1])
        if builder.kind == "loop" and builder.carrier is not None:
            return StartOver(builder.carrier, arrays=(*builder.carrier.arrays, array))
        where = "the function that ut.map calls" if builder.kind == "map" else "this loop"
        return CaptureError(f"`{called}` is an array made outside of {where}, which cannot change it", hint=hint)

    # -- states --------------------------------------------------------------------------------------------

    def now(self) -> Values:
        """What the arrays hold now."""
        return {key: (array, array.builder, array.port) for key, (array, _, _) in self._first.items()}

    def go_back(self, values: Values) -> None:
        """Let all arrays hold what they held then."""
        for key, first in self._first.items():
            array, builder, port = values.get(key, first)
            _hold(array, builder, port)

    def join(self, then: Values, other: Values, regions: tuple[int, int], span: Span | None) -> None:
        """Go on after a branch: what an array holds depends on the side that ran."""
        builder = self._ctx.open_builder
        for key in dict.fromkeys([*then, *other]):
            first = self._first[key]
            array, a, b = first[0], then.get(key, first)[1:], other.get(key, first)[1:]
            home = _side_of(builder, first[1], first[2], regions)
            if home is not None:  # made there: nobody else can have changed it
                _hold(array, *(a, b)[home])
            elif a == b:
                _hold(array, *a)
            elif view_behind(array) is None and array.builder is builder:
                differ = by_condition("an array", span)
                self.put(array, merge(Traced(*a), Traced(*b), regions, self._ctx, "", span, differ))

    def was_before(self, array: Traced, regions: tuple[int, int]) -> bool:
        """Is a value not made in one of the two sides of a branch?"""
        builder = self._ctx.open_builder
        return array.builder is builder and _side_of(builder, builder, array.port, regions) is None


def _hold(array: Traced, builder: Builder, port: Port) -> None:
    """Let an array stand for a value."""
    array.builder, array.port, array.type = builder, port, builder.type_of(port)


def _side_of(builder: Builder, made_by: Builder, port: Port, regions: tuple[int, int]) -> int | None:
    """The side of a branch that has made a value; None if it was there before."""
    at: int | None = builder.nodes[port.node].region if made_by is builder else None
    while at is not None and at not in regions:
        at = builder.regions[at].parent
    return None if at is None else regions.index(at)
