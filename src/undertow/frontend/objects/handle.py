"""Handles: what stands for a Python object in a graph, which is its number; and words, which stand for strings.

Fields are looked up in columns (layout.py), which are arguments of the main graph. None has a number that no column
has. What an object may be is known as a set of kinds; which of them it is, if there are several, a column tells.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from undertow.errors import CaptureError, Fault, InternalError, TypeMismatch, brief, with_article
from undertow.frontend.functions import public as functions
from undertow.frontend.objects.convert import number_of_word
from undertow.frontend.objects.kinds import ITEMS, Field, Handles, Kind, Kinds, Unread, Values, Words, said_of
from undertow.frontend.objects.layout import KIND, NONE, OFFSETS, Layout
from undertow.frontend.values import tree
from undertow.frontend.values.traced import Traced, context, emit

_OUTSIDE = NONE + NONE // 2  # the number of an item that is not there


@dataclass(frozen=True, slots=True, eq=False)
class Objects:
    """The columns of the objects among the arguments of a program."""

    layout: Layout
    columns: Sequence[Any]


_NO_OBJECTS = Objects(Layout((), ()), ())  # of a program whose handles are all None


def token_of(kinds: Kinds) -> tree.Token:
    """The token of a handle in a structure."""
    return "object", 1, Handle, ("number",), kinds


def objects_now() -> Objects:
    """Those of the current capture."""
    current = context()
    if current is None:
        raise InternalError("a handle outside of a capture")
    found: Objects | None = current.session.objects
    return _NO_OBJECTS if found is None else found


class Handle:
    """An object of the caller's, or None, by its number."""

    __slots__ = ("kinds", "number")

    def __init__(self, kinds: Kinds, number: Any) -> None:
        self.kinds, self.number = kinds, number

    # -- as a container of values ----------------------------------------------------------------------------------

    def __undertow_parts__(self) -> tuple[tree.Token, list[Any]]:
        return token_of(self.kinds), [self.number]

    @staticmethod
    def __undertow_whole__(kinds: Kinds, contents: Sequence[Any]) -> Handle:
        return Handle(kinds, contents[0])

    @staticmethod
    def __undertow_joined__(one: Kinds | None, other: Kinds | None) -> tuple[tree.Token, Any]:
        """The token of objects of either kinds, and the number in it of None, for which the kinds are None."""
        none = frozenset[Kind | None]([None])
        return token_of((none if one is None else one) | (none if other is None else other)), np.int32(NONE)

    def of_kinds(self, kinds: Kinds) -> Handle:
        """The same object, of which less is known."""
        return self if kinds == self.kinds else Handle(kinds, self.number)

    @property
    def said(self) -> str:
        """What it may be, for messages."""
        return with_article(said_of(self.kinds - {None} or self.kinds))

    def __undertow_repr__(self) -> str:
        """For our own messages."""
        return self.said

    def _refuse(self, *_: object) -> NoReturn:
        raise CaptureError(
            f"{self.said} is known to a graph by its number: Python code that is not captured cannot use the object",
            hint="use its fields, compare it with `is`, loop over it, or hand it to a function",
        )

    # Nothing may take it for an object of Python's: as an element of a set it would be known by its own identity.
    __repr__ = __str__ = __format__ = __hash__ = __eq__ = __bool__ = __len__ = __iter__ = _refuse

    # -- what it is --------------------------------------------------------------------------------------------------

    @property
    def possible(self) -> list[Kind]:
        """What it may be besides None."""
        return [kind for kind in objects_now().layout.kinds if kind in self.kinds]

    def is_none(self) -> Any:
        if None not in self.kinds:
            return False
        return functions.equal(self.number, np.int32(NONE)) if self.possible else True

    def is_one_of(self, kinds: Iterable[Kind]) -> Any:
        """Is it of one of these kinds: known now, or at run time?"""
        wanted = [kind for kind in self.possible if kind in set(kinds)]
        if not wanted:
            return False
        if len(wanted) == len(self.possible):
            return functions.logical_not(self.is_none()) if None in self.kinds else True
        if None in self.kinds:  # which has no kind
            there = functions.not_equal(self.number, np.int32(NONE))
            first = functions.where(there, self.number, np.int32(0))
            return functions.logical_and(there, self._is_among(wanted, first))
        return self._is_among(wanted, self.number)

    def _is_among(self, wanted: Sequence[Kind], number: Any) -> Any:
        objects = objects_now()
        found = look_up(objects.columns[objects.layout.special(KIND)], number)
        answers = [functions.equal(found, np.int32(objects.layout.number(kind))) for kind in wanted]
        result = answers[0]
        for answer in answers[1:]:
            result = functions.logical_or(result, answer)
        return result

    def number_if(self, kinds: Sequence[Kind]) -> Any:
        """Its number where it is of one of these kinds; elsewhere one that no column has."""
        if len(kinds) == len(self.possible):
            return self.number
        return functions.where(self.is_one_of(kinds), self.number, np.int32(NONE))

    # -- what it holds -------------------------------------------------------------------------------------------------

    def has(self, name: Any) -> bool:
        """Has an object of one of its kinds this field?"""
        return any(name in kind.fields for kind in self.possible)

    def get(self, name: Any) -> Any:
        """A field; a fault where the object is None, or of a kind that has no such field."""
        having = [kind for kind in self.possible if name in kind.fields]
        objects = objects_now()
        columns = {objects.layout.column(kind, name) for kind in having}
        for kind in having:
            if isinstance(held := kind.fields[name], Unread):
                raise _unread(f"`{name}` of `{kind!r}`", held)
        if len(columns) != 1:
            raise TypeMismatch(
                f"the field `{name}` is annotated differently in {said_of(frozenset(having))}",
                hint="annotate it alike, or ask for the class first: isinstance(x, C)",
            )
        row = look_up(objects.columns[columns.pop() or 0], self.number_if(having))
        return _as_field(row, [kind.fields[name] for kind in having])

    def at(self, position: int) -> Any:
        """An item of a tuple at a position that is known."""
        kinds = [kind for kind in self.possible if kind.is_sequence]
        index = position if position >= 0 else position + self.length()
        names = {list(kind.fields)[index] for kind in kinds if 0 <= index < len(kind.fields)}
        if not names:
            raise CaptureError(
                f"index {position} is out of range for {self.said}", hint="a tuple has as many items as its annotation"
            )
        return self.get(names.pop())

    def value(self) -> Any:
        """The number that it is, or the string if it cannot be one; a fault where it is another object."""
        kinds = [kind for kind in self.possible if kind.form == "value"]
        numbers = [kind for kind in kinds if kind.python is not str]
        return Handle(frozenset(numbers or kinds), self.number_if(numbers or kinds)).get("value")

    @property
    def may_be_number(self) -> bool:
        return any(kind.form == "value" and kind.python is not str for kind in self.possible)

    # -- sequences -----------------------------------------------------------------------------------------------------

    @property
    def is_list(self) -> bool:
        """May it have items whose number is known only at run time?"""
        return any(kind.form == "list" for kind in self.possible)

    @property
    def is_tuple(self) -> bool:
        return not self.is_list and any(kind.is_sequence for kind in self.possible)

    def length(self) -> Any:
        """The number of its items: known, of tuples of one length."""
        kinds = [kind for kind in self.possible if kind.is_sequence]
        if not kinds:
            raise CaptureError(f"{self.said} has no length", hint="lists and tuples have one")
        lengths = {len(kind.fields) for kind in kinds}
        if not self.is_list and len(lengths) == 1:
            return lengths.pop()
        if not self.is_list:
            return self._tuple_length(kinds)
        start, end = self._bounds()
        return functions.astype(functions.subtract(end, start), np.int64)

    def _tuple_length(self, kinds: Sequence[Kind]) -> Any:
        result: Any = np.int64(len(kinds[0].fields))
        for kind in kinds[1:]:
            result = functions.where(self.is_one_of([kind]), np.int64(len(kind.fields)), result)
        return result

    def _list_kind(self) -> Kind:
        kinds = [kind for kind in self.possible if kind.is_sequence]
        if len(kinds) != 1 or kinds[0].form != "list":
            raise CaptureError(
                f"{self.said} may be a list or tuple of several annotations, which have nothing in common here",
                hint="annotate one list, of a union of items: list[A | B]",
            )
        return kinds[0]

    def _bounds(self) -> tuple[Any, Any]:
        kind = self._list_kind()
        objects = objects_now()
        offsets = objects.columns[objects.layout.special(OFFSETS, kind)]
        number = self.number_if([kind])
        return look_up(offsets, number), look_up(offsets, functions.add(number, np.int32(1)))

    def items(self) -> tuple[Any, Callable[[Any], Any]]:
        """The number of its items, and what gives the one at an index that is in range."""
        if not self.is_list:
            raise CaptureError(f"{self.said} is a tuple of several lengths", hint="annotate it as tuple[T, ...]")
        start, end = self._bounds()
        kind = self._list_kind()
        count = functions.astype(functions.subtract(end, start), np.int64)
        return count, lambda index: self._item(kind, functions.add(start, functions.astype(index, np.int32)))

    def _item(self, kind: Kind, position: Any) -> Any:
        held = kind.fields[ITEMS]
        if isinstance(held, Unread):
            raise _unread("an item of this list", held)
        objects = objects_now()
        column = objects.layout.column(kind, ITEMS)
        return _as_field(look_up(objects.columns[column or 0], position), [held])

    def item(self, index: Any) -> Any:
        """`x[index]`."""
        if isinstance(index, slice):
            raise CaptureError(
                f"a part of {self.said} would be a new object, which graphs cannot make",
                hint="pass the index of the first item beside it",
            )
        if isinstance(index, str):
            return self.get(index)
        if not self.is_list:
            try:
                return self.at(operator.index(index))
            except TypeError:
                raise CaptureError(f"{self.said} has no items", hint="lists and tuples have items") from None
        count, get = self.items()
        index = functions.astype(index, np.int64)
        front = functions.where(functions.less(index, 0), functions.add(index, count), index)
        is_there = functions.logical_and(functions.less_equal(0, front), functions.less(front, count))
        return get(functions.where(is_there, front, np.int64(_OUTSIDE)))

    def all_items(self) -> Handle | Any:
        """The items of a list as one handle of many, or as an array: what `ut.map` runs over."""
        kind = self._list_kind()
        start, end = self._bounds()
        objects = objects_now()
        held = kind.fields[ITEMS]
        column = objects.columns[objects.layout.column(kind, ITEMS) or 0]
        rows = emit("slice_between", [column, start, end], axis=0, step=1)[0]
        return _as_field(rows, [held])


class Word:
    """A string, or a member of an enum, by its number: it can be compared."""

    __slots__ = ("known", "number")

    def __init__(self, known: tuple[Any, ...] | None, number: Any) -> None:
        self.known, self.number = known, number

    def __undertow_parts__(self) -> tuple[tree.Token, list[Any]]:
        return ("object", 1, Word, ("number",), self.known), [self.number]

    @staticmethod
    def __undertow_whole__(known: Any, contents: Sequence[Any]) -> Word:
        return Word(known, contents[0])

    said = "a string of an object"

    def __undertow_repr__(self) -> str:
        """For our own messages."""
        return self.said

    def _refuse(self, *_: object) -> NoReturn:
        raise CaptureError(
            "a string of an object is known only at run time", hint='compare it with others: x.op == "+"'
        )

    __repr__ = __str__ = __format__ = __hash__ = __eq__ = __bool__ = __len__ = __iter__ = _refuse

    def equals(self, other: Any) -> Any:
        """`self == other`."""
        if isinstance(other, Word):
            if other.known != self.known:
                raise CaptureError("these strings are annotated differently", hint="annotate both as str")
            return functions.equal(self.number, other.number)
        if self.known is None:
            return functions.equal(self.number, np.int32(number_of_word(other))) if isinstance(other, str) else False
        if other not in self.known:
            return False
        return functions.equal(self.number, np.int32(self.known.index(other)))


def look_up(column: Any, number: Any) -> Any:
    """A row of a column."""
    return emit("index", [column, number], axes=(0,))[0]


def _as_field(row: Any, fields: Sequence[Field]) -> Any:
    """What stands in a column, as the value of fields that share it."""
    first = fields[0]
    if isinstance(first, Values):
        return Traced(row.builder, row.port, True) if first.is_weak and isinstance(row, Traced) else row
    if isinstance(first, Words):
        return Word(first.known, row)
    every = frozenset(kind for held in fields if isinstance(held, Handles) for kind in held.kinds)
    return Handle(every, row)


def _unread(what: str, held: Unread) -> CaptureError:
    return CaptureError(
        f"{what} is annotated {held.note}, which graphs cannot hold",
        hint="annotate numbers, arrays of known shape, strings, and lists, tuples or objects of these",
    )


def as_number(value: Any) -> Any:
    """The number that an object is, or the value itself."""
    return value.value() if isinstance(value, Handle) and value.may_be_number else value


def is_number(value: Any) -> bool:
    return isinstance(value, (Traced, bool, int, float, np.generic))


def fault_of_objects(fault: Fault) -> Fault:
    """The fault of a run, in the user's words where it is that None, or an object of another class, was read."""
    found = re.match(r"index (\d+) is out of range", fault.what)
    if found is None or int(found[1]) < NONE:
        return fault
    if int(found[1]) >= _OUTSIDE:
        return Fault("list index out of range", fault.span, "test len(x) first", fault.calls, kind=IndexError)
    hint = "test it first: `if x is not None`, or isinstance(x, C)"
    what = "this object is None here, or of a class without this field"
    return Fault(what, fault.span, hint, fault.calls, kind=AttributeError)


def as_handle(value: Any, kinds: Kinds, called: str, widens: bool) -> Handle:
    """A value of a graph where an object of these kinds is annotated; if it `widens`, it may be of other kinds, too."""
    if value is None:
        return Handle(kinds, np.int32(NONE))
    if isinstance(value, Handle):
        if value.kinds <= kinds:
            return value.of_kinds(kinds)
        if widens and value.kinds & kinds:
            return value.of_kinds(kinds | value.kinds)
        raise TypeMismatch(
            f"{called} is {said_of(value.kinds)}, but annotated as {said_of(kinds)}",
            hint="pass another one, or change the annotation",
        )
    is_new = any(kind is not None and type(value) is kind.python for kind in kinds)
    what = f"a {type(value).__name__} from elsewhere, or a new one" if is_new else brief(value)
    raise TypeMismatch(
        f"{called} is {what}, but annotated as {said_of(kinds)}",
        hint="annotate the argument of the outermost function through which it comes: a graph has the objects that "
        "came so, and what they hold, and makes no others",
    )
