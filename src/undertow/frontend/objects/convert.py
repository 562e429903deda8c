"""Converts Python objects to columns: in linear time, however deep they are, each object once.

A worklist numbers objects by identity: what is shared stays shared, and cycles end. Numbers and strings are read in a
second pass, field by field.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import Span, TypeMismatch, brief, with_article
from undertow.frontend.objects.kinds import ITEMS, PYTHON, Handles, Kind, Kinds, Values, Words, said_of
from undertow.frontend.objects.layout import KIND, NONE, OFFSETS, Layout, layout_of
from undertow.types import i32

_NUMBERS: dict[str, int] = {}  # of strings: any string has one number in this process
_UNUSED = itertools.count()  # of threads that meet a string at once, each takes a number, and the first one's stays
_STEPS = 6  # of a path in a message, at its start and its end


def number_of_word(word: str) -> int:
    """The number that stands for a string where any string may be."""
    known = _NUMBERS.get(word)
    return _NUMBERS.setdefault(word, next(_UNUSED)) if known is None else known


@dataclass(frozen=True, slots=True, eq=False)
class Converted:
    """Objects as columns."""

    layout: Layout
    columns: list[np.ndarray[Any, Any]]
    objects: list[Any]  # by number

    def kind(self, number: int) -> Kind:
        """The kind of an object."""
        kinds = self.layout.kinds
        return kinds[0] if len(kinds) == 1 else kinds[self.columns[self.layout.special(KIND)][number]]

    def number(self, owner: int, name: Any) -> int:
        """The number of an object that another one holds in a field."""
        return int(self.columns[self.layout.column(self.kind(owner), name) or 0][owner])

    def rows(self, kind: Kind, number: int) -> slice:
        """Where the items of a list are."""
        offsets = self.columns[self.layout.special(OFFSETS, kind)]
        return slice(int(offsets[number]), int(offsets[number + 1]))

    def below(self, number: int) -> list[int]:
        """The numbers of all objects that one holds; of None, too."""
        kind = self.kind(number)
        if kind.form != "list":
            return [self.number(number, name) for name, held in kind.fields.items() if isinstance(held, Handles)]
        if not isinstance(kind.fields[ITEMS], Handles):
            return []
        return list(map(int, self.columns[self.layout.column(kind, ITEMS) or 0][self.rows(kind, number)]))

    def object(self, number: Any) -> Any:
        """The object of a number; of an array of numbers, a list."""
        if np.ndim(number):
            return [self.object(one) for one in number]
        return None if number == NONE else self.objects[int(number)]


@dataclass(frozen=True, slots=True, eq=False)
class Root:
    """An argument: an object, what it may be, and its name in messages."""

    value: Any
    kinds: Kinds
    called: str
    path: str


class _Link:
    """Where other objects are found: the numbers of those seen there so far, kind by kind."""

    __slots__ = ("kinds", "known", "numbers")

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.numbers: list[int] = []
        self.known: dict[type, tuple[Kind, dict[int, int]]] = {}  # class -> its kind here, and its objects


class _Plan:
    """How objects of one kind are read."""

    __slots__ = ("counts", "items", "kind", "links", "rows", "seen")

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.rows: list[int] = []  # the numbers of its objects
        self.seen: dict[int, int] = {}  # id -> number
        self.counts: list[int] = []  # of items, in lists
        named = [(name, _Link(held.kinds)) for name, held in kind.fields.items() if isinstance(held, Handles)]
        self.items = named[0][1] if named and kind.form == "list" else None
        self.links = [] if kind.form == "list" else [(getter_of(kind, name), name, link) for name, link in named]


def getter_of(kind: Kind, name: Any) -> Callable[[Any], Any]:
    """What reads a field of an object."""
    if kind.form == "value":
        return lambda value: value
    return operator.attrgetter(name) if kind.form == "object" else operator.itemgetter(name)


class _Conversion:
    def __init__(self, roots: Sequence[Root], kinds: Kinds, span: Span | None) -> None:
        self.roots, self.span = roots, span
        self.layout = layout_of(kinds.union(*(root.kinds for root in roots)))
        self.plans = {kind: _Plan(kind) for kind in self.layout.kinds}
        self.objects: list[Any] = []
        self.kinds: list[_Plan] = []

    # -- numbering -----------------------------------------------------------------------------------------------

    def number(self, value: Any, link: _Link, owner: int, name: Any) -> int:
        """The number of an object that was found somewhere."""
        if value is None and None in link.kinds:
            return NONE
        known = link.known.get(type(value))
        if known is None:
            found = self._kind(value, link.kinds)
            if found is None:
                raise self._misfit(value, said_of(link.kinds), owner, name)
            known = found, self.plans[found].seen
            if found.form != "tuple":
                link.known[type(value)] = known
        kind, seen = known
        number = seen.get(id(value))
        if number is None:
            number = seen[id(value)] = len(self.objects)
            self.objects.append(value)
            plan = self.plans[kind]
            self.kinds.append(plan)
            plan.rows.append(number)
        return number

    def _kind(self, value: Any, kinds: Kinds) -> Kind | None:
        cls = type(value)
        for kind in kinds:
            if kind is None:
                continue
            if cls is kind.python and (kind.form != "tuple" or len(value) == len(kind.fields)):
                return kind
            if (kind.form == "dict" and cls is dict) or (kind.python is Sequence and cls in (list, tuple)):
                return kind
        for kind in kinds:
            if kind is not None and kind.form == "value" and _is_value(value, kind):
                return kind
        return None

    def run(self) -> tuple[Converted, list[int]]:
        numbers = [self.number(root.value, _Link(root.kinds), ~k, None) for k, root in enumerate(self.roots)]
        objects, kinds, number_of = self.objects, self.kinds, self.number
        at = 0
        while at < len(objects):  # it grows meanwhile
            value, plan = objects[at], kinds[at]
            for get, name, link in plan.links:
                held = self._get(get, value, at, name)
                known = link.known.get(type(held))
                seen = None if known is None else known[1].get(id(held))
                link.numbers.append(number_of(held, link, at, name) if seen is None else seen)
            if plan.kind.form == "list":
                plan.counts.append(len(value))
                if (items := plan.items) is not None:
                    for index, held in enumerate(value):
                        items.numbers.append(number_of(held, items, at, index))
            at += 1
        return Converted(self.layout, self._columns(), objects), numbers

    def _get(self, get: Callable[[Any], Any], value: Any, at: int, name: Any) -> Any:
        try:
            return get(value)
        except (AttributeError, KeyError):
            raise TypeMismatch(
                f"{self._where(at, name)} is missing: this object has no `{name}`",
                self.span,
                hint="set it where the object is made: None, or a number",
            ) from None

    # -- columns ---------------------------------------------------------------------------------------------------

    def _columns(self) -> list[np.ndarray[Any, Any]]:
        layout, count = self.layout, max(len(self.objects), 1)  # a row may be read before it is known not to be there
        made: list[Any] = [None] * len(layout.columns)
        if len(layout.kinds) > 1:
            kinds = made[layout.special(KIND)] = np.zeros(count, np.int32)
            for number, kind in enumerate(layout.kinds):
                kinds[self.plans[kind].rows] = number
        for kind, plan in self.plans.items():
            links = {name: link for _, name, link in plan.links}
            if kind.form == "list":
                lengths = np.zeros(count + 1, np.int64)
                lengths[np.asarray(plan.rows, np.int64) + 1] = plan.counts
                made[layout.special(OFFSETS, kind)] = np.cumsum(lengths).astype(np.int32)
            for name, held in kind.fields.items():
                at = layout.column(kind, name)
                if at is None:
                    continue
                if kind.form == "list":
                    items = self._items(plan, held)
                    made[at] = items if len(items) else np.zeros((1, *items.shape[1:]), items.dtype)
                    continue
                rows = np.array(links[name].numbers, np.int32) if name in links else self._read(plan, name, held)
                if len(rows) == count:
                    made[at] = rows
                    continue
                if made[at] is None:
                    made[at] = np.zeros((count, *rows.shape[1:]), rows.dtype)
                made[at][plan.rows] = rows
        return made

    def _items(self, plan: _Plan, held: Any) -> np.ndarray[Any, Any]:
        if plan.items is not None:
            return np.array(plan.items.numbers, np.int32)
        values = [item for row in plan.rows for item in self.objects[row]]

        def where(k: int) -> tuple[int, Any]:
            ends = np.cumsum(plan.counts)
            row = int(np.searchsorted(ends, k, side="right"))
            return plan.rows[row], k - int(ends[row]) + plan.counts[row]

        return self._column(values, held, where)

    def _read(self, plan: _Plan, name: Any, held: Any) -> np.ndarray[Any, Any]:
        get = getter_of(plan.kind, name)
        objects = [self.objects[row] for row in plan.rows]
        try:
            values = list(map(get, objects))
        except (AttributeError, KeyError):
            values = [self._get(get, value, row, name) for value, row in zip(objects, plan.rows, strict=True)]
        shown = None if plan.kind.form == "value" else name
        return self._column(values, held, lambda k: (plan.rows[k], shown))

    def _column(
        self, values: list[Any], held: Values | Words, where: Callable[[int], tuple[int, Any]]
    ) -> np.ndarray[Any, Any]:
        if isinstance(held, Words):
            return self._words(values, held, where)
        column = column_of_values(values, held)
        if column is None:
            wrong = next((k for k, value in enumerate(values) if column_of_values([value], held) is None), 0)
            raise self._misfit(values[wrong], str(held.type), *where(wrong))
        return column

    def _words(self, values: list[Any], held: Words, where: Callable[[int], tuple[int, Any]]) -> np.ndarray[Any, Any]:
        numbers: list[int] = []
        known = None if held.known is None else {word: n for n, word in enumerate(held.known)}
        for k, word in enumerate(values):
            number = -1
            with contextlib.suppress(TypeError):  # not hashable
                number = known.get(word, -1) if known is not None else number_of_word(word) if type(word) is str else -1
            if number < 0:
                wanted = "a string" if known is None else f"one of {', '.join(map(repr, known))}"
                raise self._misfit(word, wanted, *where(k))
            numbers.append(number)
        return np.array(numbers, i32.numpy)

    # -- messages --------------------------------------------------------------------------------------------------

    def _misfit(self, value: Any, wanted: str, owner: int, name: Any) -> TypeMismatch:
        what = brief(value)
        if not isinstance(value, (bool, int, float, str, type(None))):
            what = with_article(type(value).__name__)
        if isinstance(value, (tuple, list)):
            what += f" of length {len(value)}"
        return TypeMismatch(
            f"{self._where(owner, name)} is {what}, but annotated as {wanted}",
            self.span,
            hint="change the value, or the annotation",
        )

    def _where(self, owner: int, name: Any) -> str:
        """A field of an object, as the user would write it from the argument on."""
        if owner < 0:
            return self.roots[~owner].called
        above: dict[int, tuple[int, Any]] = {}  # the first place that leads to an object
        for plan in self.plans.values():
            for _, label, link in plan.links:
                for row, number in zip(plan.rows, link.numbers, strict=False):
                    above.setdefault(number, (row, label))
            if plan.items is not None:
                places = ((row, k) for row, count in zip(plan.rows, plan.counts, strict=False) for k in range(count))
                for place, number in zip(places, plan.items.numbers, strict=False):
                    above.setdefault(number, place)
        starts = {self.number(root.value, _Link(root.kinds), 0, None): root for root in reversed(self.roots)}
        steps = [] if name is None else [self._step(owner, name)]
        while owner not in starts:
            owner, label = above[owner]
            steps.append(self._step(owner, label))
        steps.reverse()
        if len(steps) > 2 * _STEPS:
            steps[_STEPS:-_STEPS] = [f" ... {len(steps) - 2 * _STEPS} more ... "]
        root = starts[owner]
        return f"`{root.path}{''.join(steps)}` of {root.called}" if steps else root.called

    def _step(self, owner: int, name: Any) -> str:
        return f".{name}" if self.kinds[owner].kind.form == "object" else f"[{name!r}]"


def _is_value(value: Any, kind: Kind) -> bool:
    held = kind.fields["value"]
    if isinstance(held, Words):
        return isinstance(value, str) if held.known is None else value in held.known
    assert isinstance(held, Values)
    if held.is_weak and kind.python is int:
        return type(value) in (int, bool)
    if held.is_weak and kind.python is complex:  # of which neither an int nor a float is an instance
        return type(value) is complex
    return column_of_values([value], held) is not None


_ORDER = (bool, int, float, complex)
_EXACT = frozenset((bool, int, float, complex, np.float64, np.complex128))


def column_of_values(values: list[Any], held: Values) -> np.ndarray[Any, Any] | None:
    """Numbers, or arrays of one shape, as a column; None if one does not fit."""
    wanted, shape = held.type.dtype, (len(values), *held.type.shape)
    if not values:
        return np.zeros(shape, wanted.numpy)
    kinds = set(map(type, values))
    if kinds - _EXACT and any(not issubclass(kind, (np.generic, np.ndarray)) for kind in kinds - _EXACT):
        return None
    try:
        found = np.array(values)
    except (ValueError, OverflowError):
        return None
    if found.shape != shape or found.dtype.kind not in "biufc":
        return None
    if found.dtype == wanted.numpy:
        return found
    weak = [kind for kind in kinds if kind in PYTHON]
    strong = (
        [np.asarray(value).dtype for value in values if type(value) not in PYTHON] if len(weak) < len(kinds) else []
    )
    highest = {"bool": 0, "int": 1, "float": 2, "complex": 3}[wanted.kind]
    if any(_ORDER.index(kind) > highest for kind in weak):
        return None
    if any(not np.can_cast(dtype, wanted.numpy, "safe") for dtype in set(strong)):
        return None
    with np.errstate(all="ignore"):
        column = found.astype(wanted.numpy)
    if wanted.kind == "int" and not np.array_equal(column, found):
        return None
    return column


def convert_objects(roots: Sequence[Root], kinds: Kinds, span: Span | None) -> tuple[Converted, list[int]]:
    """The columns of all objects that these lead to, with room for some kinds, and the numbers of these."""
    return _Conversion(roots, kinds, span).run()
