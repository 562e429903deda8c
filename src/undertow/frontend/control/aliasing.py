"""Arrays that change in place: who else holds the array.

In NumPy `x += 1` changes the array that `x` names, so every other name, container and view of it changes too. In a
graph it makes a new value for `x` alone. That is the same if nobody else holds the array; otherwise it is refused. A
traced array is known by the value that it came from (`Traced.base`): views, joins and results of calls remember theirs.
"""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.errors import CaptureError, Span, TypeMismatch
from undertow.frontend.control.merge import Joined
from undertow.frontend.control.state import held_by
from undertow.frontend.syntax.source import Closure, Env
from undertow.frontend.values.growing import GrowingList
from undertow.frontend.values.leaves import leaf_type
from undertow.frontend.values.option import is_option
from undertow.frontend.values.traced import Context, Traced, roots_of
from undertow.frontend.values.views import view_behind
from undertow.types import said

if TYPE_CHECKING:
    from undertow.frontend.control.ownership import Ownership
    from undertow.frontend.trace.builder import Builder
    from undertow.frontend.trace.definition import Specialization


def is_array(value: Any) -> bool:
    """Is it an array that could change in place? Scalars cannot."""
    return (isinstance(value, Traced) and value.type.rank > 0) or (isinstance(value, np.ndarray) and value.ndim > 0)


def _ids(values: Iterable[Any]) -> set[int]:
    return {id(root) for value in values for root in roots_of(value)}


def array_from_outside(called: str, hint: str, span: Span | None = None) -> CaptureError:
    """The error of a change to an array that the capture has not made."""
    return CaptureError(f"`{called}` is an array from outside this function: a graph cannot change it", span, hint)


def fit_in_place(before: Any, after: Any, called: str, written: str) -> Any:
    """The result of an update, as NumPy would store it in the array: of its dtype and shape."""
    types = leaf_type(before), leaf_type(after)
    if not np.can_cast(types[1].dtype.numpy, types[0].dtype.numpy, "same_kind"):
        raise TypeMismatch(
            f"`{called}` is {said(types[0])}, and an array keeps its dtype: it cannot hold {types[1].dtype} values",
            hint=f"make a new array: `{written}`",
        )
    fits = types[0].rank == types[1].rank and all(
        a == b or a is None or b is None for a, b in zip(types[0].shape, types[1].shape, strict=True)
    )
    if not fits:
        raise TypeMismatch(
            f"`{called}` is {said(types[0])}, and an array keeps its shape: the result would be {said(types[1])}",
            hint=f"make a new array: `{written}`",
        )
    return after.astype(types[0].dtype.numpy) if types[0].dtype != types[1].dtype else after


@dataclass(frozen=True, slots=True, eq=False)
class _Either:
    """One of two arrays that a name may hold."""

    array: Any


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """An array that a list has got as an item, while something else held it."""

    array: Any


def _sides(joined: Joined) -> list[Any]:
    return joined.merged or [joined.then, joined.other]


def _is_view_of(item: Any, array: Traced) -> bool:
    """Is it a view that follows the array?"""
    while isinstance(item, Traced) and (view := view_behind(item)) is not None:
        if view.of is array:
            return True
        item = view.of
    return False


class Aliases:
    """What holds the arrays of a capture: the variables of all functions that are being captured, and iterators."""

    def __init__(self, ctx: Context, owned: Ownership) -> None:
        self._ctx = ctx
        self._owned = owned
        self.envs: list[Env] = []  # of the functions that are being captured, innermost last
        self._iterators: list[tuple[Any, list[Any]]] = []  # and the arrays that they run over

    def iterates(self, iterator: Any, arrays: Iterable[Any]) -> None:
        """Note that an iterator runs over arrays: it has views of them."""
        held = [array for array in arrays if is_array(array)]
        if held:
            self._iterators.append((iterator, held))

    def holders(self, arrays: Sequence[Any], most: int = 2) -> list[str]:
        """The places that hold one of these arrays, or a view of one, as the user would write them."""
        held = ((name, item) for name, item in self._held(arrays) if not isinstance(item, GrowingList))
        return [name for name, _ in itertools.islice(held, most)]

    def is_held(self, arrays: Sequence[Any]) -> bool:
        """Does a variable hold one of these arrays, or a list that has it as a column?"""
        return any(not isinstance(item, _Kept) for _, item in self._held(arrays))

    def part_of(self, items: GrowingList) -> str:
        """A name of an item of a list, if it is a list or an array, which follows its place; empty if there is none."""
        for name, item in self._held(items.stores):
            if isinstance(item, GrowingList) or (isinstance(item, Traced) and view_behind(item) is not None):
                return name
        return ""

    def _held(self, arrays: Sequence[Any]) -> Iterator[tuple[str, Any]]:
        """The places that hold one of these arrays, or a view of one, and what they hold."""
        wanted = _ids(arrays)
        seen: set[int] = set()
        stack: list[tuple[str, Any]] = []
        envs = [around for env in reversed(self.envs) for around in env.outwards()]

        def open_env(env: Env) -> None:
            for around in env.outwards():
                if id(around) not in seen:
                    seen.add(id(around))
                    stack.extend(around.vars.items())

        self._iterators = [(it, held) for it, held in self._iterators if not _is_unused(it, self._owned.has)]
        stack.extend(("the iterator of a loop", array) for _, held in self._iterators for array in held)
        for env in reversed(envs):
            open_env(env)
        while stack:
            name, item = stack.pop()
            if isinstance(item, (int, float, str)):
                continue
            if is_array(item):
                if not wanted.isdisjoint(id(root) for root in roots_of(item)):
                    yield name, item
                continue
            if id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Joined):
                stack.extend((name, _Either(side) if is_array(side) else side) for side in _sides(item))
            elif isinstance(item, GrowingList):
                if not item.is_row:
                    stack.extend((name, column) for column in item.columns)
                    stack.extend((name, _Kept(array)) for array in item.kept)
                elif not wanted.isdisjoint(_ids(item.stores)):
                    yield name, item
            elif isinstance(item, (_Either, _Kept)):
                if not wanted.isdisjoint(id(root) for root in roots_of(item.array)):
                    yield name, item
            elif isinstance(item, (list, tuple, set, frozenset)) or hasattr(type(item), "popleft"):
                stack.extend((f"{name}[{k}]", part) for k, part in enumerate(item))
            elif isinstance(item, dict):
                stack.extend((f"{name}[{key!r}]", part) for key, part in item.items())
            elif is_option(item):
                stack.append((name, item.value))
            elif isinstance(item, Closure):
                if item.env is not None:
                    open_env(item.env)
            elif isinstance(item, functools.partial):
                stack.extend((name, part) for part in (*item.args, *item.keywords.values()))
            elif (self._owned.has(item) or hasattr(item, "__dataclass_fields__")) and held_by(item) is not None:
                stack.extend((f"{name}.{key}", part) for key, part in held_by(item).items())

    def change(self, array: Any, called: str, written: str, allowed: int, span: Span | None = None) -> None:
        """Refuse to change an array in place that more than `allowed` places hold; note that it changes."""
        places = self.holders([array], allowed + 1)
        if len(places) > allowed:
            others = [place for place in places if place != called]
            other = next(iter(others), places[0])
            other = other if " " in other else f"`{other}`"
            raise CaptureError(
                f"`{called}` changes in place, and {other} holds the same array, or a part of it: NumPy changes both",
                span,
                hint=f"make a new array: `{written}`",
            )
        for root in roots_of(array):
            self._note(root, called, written, span)

    def check_change(self, array: Traced, called: str, written: str) -> None:
        """Refuse to change an array if something holds it or another one: which of them, is known only at run time."""
        if array.base:
            self.change(array, called, written, allowed=1)
            return
        for name, item in self._held([array]):
            if item is not array and not _is_view_of(item, array) and not isinstance(item, GrowingList):
                place = name if " " in name else f"`{name}`"
                raise CaptureError(
                    f"`{called}` changes in place, and {place} may hold the same array: that is known only at run time",
                    hint=f"make a new array: `{written}`",
                )
        # A parameter of a function is a further result of it, and a loop carries arrays from outside.
        carrier = array.builder.carrier
        is_carried = carrier is not None and any(array is other for other in carrier.arrays)
        if array.builder.kind != "function" and not is_carried:
            self._note(array, called, written, None)

    def _note(self, root: Any, called: str, written: str, span: Span | None) -> None:
        """Note that an array changes: it may be an argument of a function, or a variable of a loop."""
        hint = f"make a new array: `{written}`"
        if isinstance(root, np.ndarray):
            if not self._owned.has(root):
                raise array_from_outside(called, hint, span)
            return
        builder: Builder = root.builder
        if root.port.node in builder.params:
            if builder.kind == "main":
                raise array_from_outside(called, hint, span)
            if builder.kind == "map":
                raise CaptureError(
                    f"`{called}` is a part of the array that ut.map runs over, which would change with it", span, hint
                )
            builder.changed.setdefault(builder.params.index(root.port.node), (called, written, span or self._ctx.span))

    def check_loop(self, initial: list[Any], params: list[Traced], values: list[Any], inner: Builder) -> None:
        """Arrays of variables that change in a loop: who else holds them, before it and from round to round?"""
        changed = dict(inner.changed)
        waiting = list(changed)
        while waiting:  # a variable that takes over the array of another
            k = waiting.pop()
            for j, param in enumerate(params):
                if is_array(values[k]) and any(root is param for root in roots_of(values[k])) and j not in changed:
                    changed[j] = changed[k]
                    waiting.append(j)
        for k, (called, written, span) in changed.items():
            if k >= len(params):
                continue
            for held in (initial, values):
                for j, other in enumerate(held):
                    if j != k and is_array(other) and is_array(held[k]) and _ids([other]) & _ids([held[k]]):
                        raise CaptureError(
                            f"`{called}` changes in place, and another variable of the loop holds the same array",
                            span,
                            hint=f"make a new array: `{written}`",
                        )
            for value, allowed in ((values[k], -1), (initial[k], 0)):
                outside = [r for r in roots_of(value) if not isinstance(r, Traced) or r.builder is not inner]
                if is_array(value) and outside:
                    if allowed < 0:
                        raise CaptureError(
                            f"`{called}` changes in place in the next round of the loop, with an array from outside it",
                            span,
                            hint=f"make a new array: `{written}`",
                        )
                    self.change(value, called, written, allowed, span)

    def may_be_one(self, one: Any, other: Any) -> bool:
        """May two values be the same array, or parts of one?"""
        return is_array(one) and is_array(other) and not _ids([one]).isdisjoint(_ids([other]))

    def check_outside(self, arrays: Iterable[Traced], variables: Iterable[tuple[str, Any]]) -> None:
        """Arrays from outside a loop that it changes: does one of its variables hold one, from round to round?"""
        for array in arrays:
            for variable, value in variables:
                if not is_array(value) or _ids([value]).isdisjoint(_ids([array])):
                    continue
                called = next((name for name in self.holders([array]) if name != variable), "an array")
                raise CaptureError(
                    f"`{called}` changes in place in the loop, and `{variable}` may hold the same array",
                    hint=f"let `{variable}` have an array of its own: `{variable} = {called}.copy()`",
                )

    def check_call(self, callee: Specialization, leaves: Sequence[Any]) -> None:
        """A call by captured code: nobody but the callee may hold the arrays that it changes."""
        for k, (called, written, span) in callee.changed_arrays.items():
            if k < len(leaves) and is_array(leaves[k]):
                places = self.holders([leaves[k]], 1)
                if places:
                    raise CaptureError(
                        f"`{callee.definition.short_name}` changes its argument `{called}` in place: here that is the "
                        f"array `{places[0]}`, which NumPy changes too",
                        self._ctx.span,
                        hint=f"make a new array there: `{written}`",
                    )
                for root in roots_of(leaves[k]):
                    self._note(root, called, written, span)


def _is_unused(iterator: Any, is_made: Callable[[Any], bool]) -> bool:
    """Does nobody hold an iterator any more, but those who note what it runs over?"""
    return sys.getrefcount(iterator) - is_made(iterator) <= _UNUSED


def _references() -> int:
    """The reference count of what only a tuple in a list holds, as `_is_unused` sees it."""
    counts: list[int] = []

    def look(value: Any, _: Any) -> bool:
        counts.append(sys.getrefcount(value))
        return True

    nothing: list[Any] = []
    [(it, held) for it, held in [(object(), nothing)] if not look(it, held)]
    return counts[0]


_UNUSED = _references()
