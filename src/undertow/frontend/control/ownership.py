"""Who made what: the lists, dicts, sets and objects that captured code may change.

A capture runs Python once, but its graph runs many times. So a change of something from outside would happen once, at
capture, and is refused. What the capture itself has made may change as in Python, where the graph that made it is being
written. A branch undoes its changes before the other side is captured (`state.py`); what cannot be undone must not
change there.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.errors import CaptureError, Span, with_article
from undertow.frontend.control.restart import StartOver
from undertow.frontend.control.state import Held, State, held_by
from undertow.frontend.trace.builder import Builder
from undertow.frontend.trace.by_class import is_users_object
from undertow.frontend.values import tree
from undertow.frontend.values.growing import NOTHING, GrowingList, both, item_type
from undertow.frontend.values.leaves import Absent
from undertow.frontend.values.option import Option
from undertow.frontend.values.traced import Context, Traced
from undertow.ir.graph import Const

if TYPE_CHECKING:
    from undertow.frontend.trace.definition import Specialization

LIST_IN_LOOP = (
    "a list changes its length in a loop if all its items are numbers, arrays of one known shape, such as ut.f64[3], "
    "or tuples of these; otherwise write into an array made before the loop: x[i] = v"
)
_IMMUTABLE = (
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    tuple,
    frozenset,
    range,
    slice,
    type,
    ModuleType,
    Traced,
    Option,
    type(None),
)
_ONCE = "it would change once, when the function is captured, and never when the graph runs"
_INSTEAD = "return the new value, and change it where the function is called; ut.Variable keeps state, print(x) logs"


@dataclass(slots=True, eq=False)
class Home:
    """Where something was made."""

    value: Any  # keeps it alive: it is known by its identity
    builder: Builder
    region: int
    number: int  # in the order of making
    argument: Specialization | None = None  # the function that got it as a copy
    handed_to: str = ""  # a captured function that reads it as it is now
    default_of: str = ""  # the parameter whose default value it may be
    born: Any = None  # of an array: the place in the source that made it
    item: Any = None  # of a list: the type of items that it gets
    is_choice: bool = False  # does it stand for one of several others, which may still be in use?
    is_chosen: bool = False  # may such a choice stand for it?
    chosen_from: Any = None  # of a choice: the list whose item it is


class Ownership:
    """What one capture has made so far."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._homes: dict[int, Home] = {}
        self.states: list[State] = []  # of the branches that are being captured, innermost last
        self._returned: set[int] = set()
        self._copies: list[Any] = []  # known by the homes of what they copy
        self._changed: list[tuple[Any, str, Span | None]] = []  # what has changed, in order; its name, and where
        self._for_good: list[int] = []  # numbers of what has changed in a way that nothing can undo

    # -- what is made --------------------------------------------------------------------------------------

    def own(self, value: Any) -> Any:
        """Note that something was made here."""
        builder = self._ctx.builder
        if builder is not None and not isinstance(value, _IMMUTABLE):
            self._homes[id(value)] = Home(value, builder, builder.region, len(self._homes))
        return value

    def own_containers(self, value: Any, argument: Specialization | None = None) -> Any:
        """Note that the containers of a value were made here, of leaves; its static parts were not."""
        for item in _containers(value):
            self.own(item)
            self._homes[id(item)].argument = argument
        return value

    def refuse_identity(self, left: Any, right: Any) -> None:
        """Refuse `is` between containers among arguments: they are copies, and one may have been passed twice."""
        if left is right or type(left) is not type(right):
            return
        homes = [self._homes.get(id(value)) for value in (left, right)]
        if all(home is not None and home.argument is not None for home in homes) or isinstance(left, tuple):
            raise CaptureError(
                f"whether {with_article(_kind(left))} is the same object as another one is not defined in a graph, "
                "which has copies of its arguments",
                hint="compare what they hold with ==, or pass a number that says which it is",
            )

    def own_default(self, value: Any, parameter: str) -> None:
        """Note that an argument may be the default value of its parameter: in Python it lives from call to call."""
        for item in _containers(value):
            self._homes[id(item)].default_of = parameter

    def refuse_shared(self, structure: tree.Structure) -> None:
        """Refuse a result that every call would get, though Python makes a new one each time."""
        for token in structure:
            value = token[1].value if token[0] == "static" else None
            if value is not None and id(value) in self._homes:
                raise CaptureError(
                    f"{with_article(_kind(value))} made in the function cannot be returned: all calls would get the "
                    "same one",
                    hint="return its contents in a tuple, list, dict or dataclass",
                )

    def own_merged(self, value: Any, sides: tuple[Any, Any], regions: tuple[int, int]) -> None:
        """Note what a join has made of the values of two sides."""
        parts = _containers(value)
        if not parts:
            return
        builder = self._ctx.open_builder
        made_there = [
            (home := self._homes.get(id(item))) is not None and home.builder is builder and home.region == region
            for side, region in zip(sides, regions, strict=True)
            for item in _containers(side)
        ]
        for item in parts:
            self.own(item)
            home = self._homes[id(item)]
            home.region = builder.regions[regions[0]].parent or 0
            home.is_choice = not all(made_there)
        if not all(made_there):
            self._note_chosen(sides)

    def own_choice(self, value: Any, items: Sequence[Any]) -> None:
        """Note that a value is one of these items, chosen at run time."""
        for item in _containers(value):
            self.own(item)
            self._homes[id(item)].is_choice = True
            self._homes[id(item)].chosen_from = items
        self._note_chosen(items)

    def _note_chosen(self, values: Sequence[Any]) -> None:
        for item in (item for value in values for item in _containers(value)):
            if id(item) in self._homes:
                self._homes[id(item)].is_chosen = True

    def copied(self, value: Any) -> Any:
        """A copy of a value with what its containers hold now; of each, what was made where still holds."""
        copy = tree.unflatten(*reversed(tree.flatten(value, lambda item: isinstance(item, (Traced, Absent)))))
        for item, made in zip(_containers(value), _containers(copy), strict=True):
            home = self._homes.get(id(item))
            if home is not None and made is not item:
                self._homes[id(made)] = home
                self._copies.append(made)
        return copy

    def is_older(self, value: Any, made: int) -> bool:
        """Was it made before the capture had made that many things?"""
        home = self._homes.get(id(value))
        return home is not None and home.number < made

    def count(self) -> int:
        """How many things the capture has made."""
        return len(self._homes)

    def returned(self, value: Any) -> None:
        """Note what a function returns: its caller gets these containers."""
        self._returned.update(id(item) for item in _containers(value))

    def check_arguments(self, function: Specialization, is_called: bool) -> None:
        """Refuse a function that changes its arguments where its caller would see that."""
        for container, called, span in function.changed.values():
            if is_called or id(container) not in self._returned:
                if self._ctx.session.is_nested:
                    self.let_grow(container)
                raise CaptureError(
                    f"`{called}` is an argument, and `{function.definition.short_name}` has a copy of it: the caller's "
                    f"{_kind(container)} would not change",
                    span,
                    hint=f"work on a new one, {called} = {_copied(container, called)}, and return that",
                )

    def may_be_returned(self, values: Sequence[Any]) -> bool:
        """May a function have returned one of these, as a part of something or as one of two?"""
        homes = [self._homes.get(id(value)) for value in values]
        return any(id(value) in self._returned for value in values) or any(home and home.is_chosen for home in homes)

    def let_arguments_grow(self, function: Specialization) -> None:
        """Lists among the arguments of a function that it changes: lists of run-time length, if they may be."""
        for container, _, _ in function.changed.values():
            self.let_grow(container)

    def adopt(self, value: Any) -> Any:
        """Note what code other than the user's returns, if it is new: nobody else holds it."""
        is_tuple = type(value) is tuple
        if (isinstance(value, _IMMUTABLE) and not is_tuple) or type(value).__module__.startswith("undertow."):
            return value
        if sys.getrefcount(value) <= _NEW and id(value) not in self._homes:
            self.own(value)
            base = value.base if isinstance(value, np.ndarray) else None
            if base is not None and sys.getrefcount(base) <= _NEW_BASE:
                self.own(base)  # of a view that is all that there is of it: np.broadcast_to(0.0, 3)
            if isinstance(value, np.ndarray) and value.ndim:
                return self._born(value)
            if type(value) in (list, deque) and self._ctx.span is not None and getattr(value, "maxlen", None) is None:
                return self.new_list(value, self._ctx.span.place)
            stack = [value]
            while stack:  # what only something new holds is new as well
                held = stack.pop()
                held = held if isinstance(held, tuple) else held_by(held)
                for item in () if held is None else held.values() if isinstance(held, dict) else held:
                    if sys.getrefcount(item) > _NEW_INSIDE or id(item) in self._homes:
                        continue
                    if type(item).__module__.startswith("undertow."):
                        continue
                    if type(item) is tuple or not isinstance(item, _IMMUTABLE):
                        self.own(item)
                        stack.append(item)
        return value

    def _born(self, array: Any) -> Any:
        """A new array; as a value of the graph, if it changes in place later."""
        span, session = self._ctx.span, self._ctx.session
        if span is None or span.place not in session.changing:
            self._homes[id(array)].born = None if span is None else span.place
            return array
        builder = self._ctx.open_builder
        return Traced(builder, builder.gate(Const(np.ascontiguousarray(array)), span))

    def new_list(self, items: Any, place: Any) -> Any:
        """A new list; one whose length is known only at run time, if a graph changes that later."""
        item = self._ctx.session.growing.get(place)
        if item is not None:
            return GrowingList.of(items, item, place, type(items))
        self.own(items)
        if id(items) in self._homes:
            self.born(items, place)
        return items

    def born(self, items: list[Any], place: Any) -> None:
        """Note where a list comes from."""
        self._homes[id(items)].born = place

    def changes(self) -> int:
        """How many changes there were."""
        return len(self._changed)

    def check_round(
        self,
        since: int,
        before: Sequence[Any],
        first: Sequence[Any],
        last: Sequence[Any],
        is_outside: Callable[[Any], bool],
    ) -> None:
        """Refuse a change of what two variables of a loop hold: from then on they would be two.

        Of each variable: its value before the loop, when the round began, and when it ended. `is_outside` says what
        others hold, besides the variables of the loop.
        """
        changed = {id(value): (called, span) for value, called, span in self._changed[since:]}
        parts, old = [_containers(value) for value in first], [_containers(value) for value in before]
        for k, begun in enumerate(parts):
            for item, was in zip(begun, old[k], strict=False):
                if id(item) not in changed:
                    continue
                home = self._homes.get(id(was))
                is_shared = (home is not None and home.is_chosen) or is_outside(was)
                is_shared |= any(was is other for j, value in enumerate(old) if j != k for other in value)
                is_shared |= self._is_shared(last, k)
                if is_shared:
                    called, span = changed[id(item)]
                    raise CaptureError(
                        f"`{called}` changes in place in the loop, and another variable may hold the same "
                        f"{_kind(item)}",
                        span,
                        hint=f"let each have its own: {_copied(item, called)}",
                    )

    def check_carried(self, containers: Sequence[Held], values: Sequence[Any]) -> None:
        """Refuse a change of a container from outside a loop that one of its variables holds, then or after a round."""
        others = {id(part) for value in values for part in _containers(value)}
        for held in containers:
            if id(held.value) in others or self._homes[id(held.value)].is_chosen:
                raise CaptureError(
                    f"`{held.called}` changes in place in the loop, and another variable may hold the same "
                    f"{_kind(held.value)}",
                    hint=f"let each have its own: {_copied(held.value, held.called)}",
                )

    def _is_shared(self, values: Sequence[Any], k: int) -> bool:
        """May another of these values hold a container that this one holds?"""
        others = {id(part) for j, value in enumerate(values) if j != k for part in _containers(value)}
        for part in _containers(values[k]):
            home = self._homes.get(id(part))
            if id(part) in others or (home is not None and (home.is_choice or home.is_chosen)):
                return True
        return False

    def own_results(self, values: Sequence[Any], last: Sequence[Any]) -> None:
        """Note what the variables of a loop hold after it, of what they held at the end of a round."""
        for k, value in enumerate(values):
            self.own_containers(value)
            for part in _containers(value) if self._is_shared(last, k) else ():
                self._homes[id(part)].is_choice = True

    def inherit(self, items: Any, before: Any) -> None:
        """A loop carries a list: it comes from where the one before the loop comes from."""
        home = self._homes.get(id(before))
        if type(items) is list and home is not None and home.born is not None:
            self.born(items, home.born)

    def let_grow(self, items: Any, more: Sequence[Any] = (), item: Any = None) -> None:
        """A list that was made here is to change where a graph cannot follow: start over, if its items allow that."""
        home = self._homes.get(id(items)) if isinstance(items, (list, deque)) else None
        around = None if home is None or home.born is not None else _list_around(items, home)
        if around is not None:
            self.let_grow(around)  # then its items are rows, which may change
        if home is not None and home.born is not None and home.born not in self._ctx.session.growing:
            item = item or item_type([*items, *more])
            if item in (None, NOTHING):
                item = home.item or item
            if item is not None:
                self._ctx.session.let_grow(home.born, item)

    def let_fit(self, before: Any, after: Any) -> None:
        """A variable holds one list, and then another one: let these be of one kind, if they may."""
        for one, other in ((before, after), (after, before)):
            if isinstance(one, (list, deque)) and isinstance(other, GrowingList):
                own = item_type(list(one))
                self.let_grow(one, item=None if own is None else both(own, other.item))
        if isinstance(before, GrowingList) and isinstance(after, GrowingList):
            item = both(before.item, after.item)
            for growing in (before, after):
                if item is not None and growing.item != item:
                    growing.must_hold(item)
        elif isinstance(before, (list, deque)) and isinstance(after, (list, deque)):
            for side in (before, after):
                self.let_grow(side, [*before, *after])

    def make_traced(self, array: Any) -> None:
        """A constant array that was made here is to change in place: start over, with that array in the graph."""
        born = None
        while isinstance(array, np.ndarray):  # of a view, the array behind it
            home = self._homes.get(id(array))
            born = home.born if home is not None and home.born is not None else born
            array = array.base
        if born is not None:
            self._ctx.session.let_change(born)

    def home(self, value: Any) -> Home:
        """Where it was made."""
        return self._homes[id(value)]

    def move(self, value: Any) -> None:
        """A loop carries it: in its graph it may change."""
        builder = self._ctx.open_builder
        self._homes[id(value)] = replace(self._homes[id(value)], builder=builder, region=builder.region)

    def move_back(self, value: Any, home: Home) -> None:
        self._homes[id(value)] = home

    def disown(self, value: Any) -> None:
        """Treat the containers of a value as from outside: something outside keeps them."""
        for item in _containers(value):
            self._homes.pop(id(item), None)

    def has(self, value: Any) -> bool:
        """Was it made during this capture?"""
        return id(value) in self._homes

    def hand(self, value: Any, name: str) -> None:
        """A captured function reads this object, as it is now, whenever it is called."""
        stack, seen = [value], set[int]()
        while stack:
            item = stack.pop()
            home = self._homes.get(id(item))
            if id(item) in seen or (home is None and not isinstance(item, tuple)):
                continue
            seen.add(id(item))
            if home is not None:
                home.handed_to = home.handed_to or name
            held = item if isinstance(item, tuple) else held_by(item)
            stack.extend(() if held is None else held.values() if isinstance(held, dict) else held)

    def reads(self, value: Any) -> None:
        """A function reads this from an enclosing one; of containers it compares the contents at its next call."""
        home, builder = self._homes.get(id(value)), self._ctx.open_builder
        is_inside = home is not None and home.builder is not builder and builder.kind == "function"
        if is_inside and not isinstance(value, (list, dict)):
            self.hand(value, builder.name)

    # -- changes -------------------------------------------------------------------------------------------

    def change(
        self, value: Any, called: str, span: Span | None = None, can_undo: bool = True, more: Sequence[Any] = ()
    ) -> None:
        """Refuse a change that would not mean what it means in Python, or note it; a list gets `more` items."""
        what = f"`{called}`" if called else f"the {_kind(value)}"
        home, builder = self._homes.get(id(value)), self._ctx.open_builder
        if home is None:
            raise CaptureError(
                f"{what} is {with_article(_kind(value))} from outside this function: {_ONCE}"
                if called
                else f"this changes {with_article(_kind(value))} from outside this function: {_ONCE}",
                span,
                hint=_instead(value, called),
            )
        if home.handed_to:
            raise CaptureError(
                f"{what} changes after it was passed to `{home.handed_to}`, which is captured with what it held then",
                span,
                hint="create a new object, and pass that; or pass the values themselves",
            )
        if home.builder is not builder:
            if builder.kind != "map":
                self.let_grow(value, more)
            if builder.carrier is not None and not isinstance(value, set) and held_by(value) is not None:
                held = Held(value, called or f"the {_kind(value)}")
                raise StartOver(builder.carrier, containers=(*builder.carrier.containers, held))
            raise _of_another_graph(what, value, builder, span)
        if home.default_of:
            raise CaptureError(
                f"{what} is the default value of `{home.default_of}`, which Python keeps from call to call",
                span,
                hint=f"write `{home.default_of}=None`, and create a new one in the function",
            )
        if home.is_choice:
            self.let_grow(home.chosen_from)  # whose items are rows then, which can change
            raise CaptureError(
                f"{what} is one of two {_kind(value)}s, chosen at run time",
                span,
                hint="make a copy, and change that: " + _copied(value, called),
            )
        if home.is_chosen:
            raise CaptureError(
                f"{what} changes after something else was chosen at run time, which may be the same {_kind(value)}",
                span,
                hint="change it before, or choose from copies: " + _copied(value, called),
            )
        if home.argument is not None:
            if more:
                home.item = item_type([*value, *more])
                if self._ctx.session.is_nested:
                    self.let_grow(value)
            home.argument.changed.setdefault(id(value), (value, called, span or self._ctx.span))
        self._changed.append((value, called, span or self._ctx.span))
        self._check_undone(home, what, value, span, can_undo)

    def _check_undone(self, home: Home, what: str, value: Any, span: Span | None, can_undo: bool) -> None:
        can_undo = can_undo and held_by(value) is not None
        if not can_undo:
            self._for_good.append(home.number)
        if not _is_below(self._ctx.open_builder, home.region):
            return
        if not can_undo:
            raise CaptureError(
                f"{what}, {with_article(_kind(value))} made outside the branch, changes under a condition known only "
                "at run time",
                span,
                hint="change it outside the `if`, or use a list, a dict or a set",
            )
        if not self.states or id(held_by(value)) not in self.states[-1].contents:
            raise CaptureError(
                f"{what} changes under a condition known only at run time, where no local variable holds it",
                span,
                hint="keep it in a local variable: only those can have different values in different branches",
            )

    def check_return(self, state: State, span: Span | None) -> None:
        """Before going back to an earlier state: has something changed since that stays changed?"""
        if any(number < state.made for number in self._for_good[state.changed_for_good :]):
            raise CaptureError(
                "an iterator or another object that cannot be reset changes in a loop whose length is known only at "
                "run time",
                span,
                hint="use a list and an index into it, or `for i in range(n)`",
            )

    def before(self, value: Any, state: State) -> State:
        """The state, from which one may return even if this value, made just before it, changes for good."""
        state.made = min(state.made, self._homes[id(value)].number)
        return state

    def mark(self, state: State) -> State:
        """The state, with what is needed to notice later what cannot be undone."""
        state.made, state.changed_for_good = len(self._homes), len(self._for_good)
        return state


def _containers(value: Any) -> list[Any]:
    """The containers of a value that can change."""
    containers: list[Any] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Traced) or (held := tree.children(item)) is None:
            continue
        if not isinstance(item, _IMMUTABLE):
            containers.append(item)
        stack.extend(held[1])
    return containers


def _copied(value: Any, called: str) -> str:
    kind = type(value).__name__
    return f"{kind}({called})" if kind in ("list", "dict", "set") else f"copy.copy({called})"


def _is_below(builder: Builder, region: int) -> bool:
    """Is the current region inside this one?"""
    at = builder.regions[builder.region].parent
    while at is not None and at != region:
        at = builder.regions[at].parent
    return at is not None


def _of_another_graph(what: str, value: Any, builder: Builder, span: Span | None) -> CaptureError:
    kind = _kind(value)
    if builder.kind == "loop":
        hint = "assign a new object to the variable, or keep the value in a variable of its own"
        if isinstance(value, (list, deque)):
            hint = LIST_IN_LOOP
        elif isinstance(value, set):
            hint = "keep a flag for each number: seen = np.zeros(size, bool), then `seen[n] = True` and `if seen[n]:`"
        elif isinstance(value, dict):
            hint = "assign a new one to the variable: state = {**state, 'x': x}"
        return CaptureError(f"{what}, {with_article(kind)} made before the loop, changes inside it", span, hint)
    where = "the function that ut.map calls" if builder.kind == "map" else f"`{builder.name}`, a captured function"
    hint = "return the new value, and change it in the caller"
    handed = "a captured function hands back what it changes in its arguments"
    if builder.kind != "map" and (isinstance(value, dict) or is_dataclass(value)):
        hint = f"pass it as an argument: {handed}"
    elif builder.kind != "map" and is_users_object(value):
        hint = f"make `{kind}` a @dataclass with annotated fields, and pass it as an argument: {handed}"
    return CaptureError(
        f"{what} is {with_article(kind)} made outside of {where}: it would change once, at capture, and not at every "
        "call",
        span,
        hint=hint,
    )


def _kind(value: Any) -> str:
    if isinstance(value, ModuleType):
        return "module"
    if isinstance(value, type):
        return "class"
    if hasattr(type(value), "__next__"):
        return "iterator"
    name = type(value).__name__
    return "array" if name == "ndarray" else name


def _instead(value: Any, called: str) -> str:
    if hasattr(type(value), "__next__"):
        return f"make a list of it before the call, {called or 'items'} = list({called or 'items'}), and pass that"
    if _kind(value) == "array":
        return "create a new array, and return it; ut.Variable keeps an array between calls"
    return _INSTEAD


def _references() -> int:
    """The reference count of something new, as `adopt` sees it."""
    counts: list[int] = []

    def adopt(_: object, value: Any) -> None:
        counts.append(sys.getrefcount(value))

    new: list[Any] = []
    adopt(None, new)
    return counts[0]


def _references_inside() -> int:
    """The reference count of what only something new holds, as the loop in `adopt` sees it."""
    held: list[list[Any]] = [[]]
    for item in held:
        return sys.getrefcount(item)
    return 0


def _references_to_base() -> int:
    """The reference count of an array that only a view holds, as `adopt` sees it."""
    view = np.zeros(1)[:]
    base = view.base
    return sys.getrefcount(base)


_NEW = _references()
_NEW_INSIDE = _references_inside()
_NEW_BASE = _references_to_base()


def _list_around(items: Any, home: Home) -> Any:
    """The list of which a list is an item: the one that it was chosen from, or an argument; None if there is none."""
    if home.chosen_from is not None:
        return home.chosen_from
    if home.argument is None or home.argument.handover is None:
        return None
    containers = home.argument.handover.containers
    path = next((path for path, value in containers.items() if value is items), ())
    around = containers.get(path[:1]) if len(path) > 1 else None
    return around if type(around) is list else None
