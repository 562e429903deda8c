"""Errors that teach: what happened, where (the user's line), what to do next.

>>> print(CaptureError("`try` cannot be captured", Span("model.py", 12), hint="use `if`"))
`try` cannot be captured
  --> model.py:12
<BLANKLINE>
hint: use `if`
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, overload

import numpy as np

PACKAGE = os.path.dirname(os.path.realpath(__file__)) + os.sep  # code below it is ours; spans show the user's


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the user's source: file, line and column (both from 1), and the enclosing function."""

    file: str
    line: int
    column: int = 1
    function: str = ""
    caller: Span | None = field(default=None, compare=False, repr=False)  # the call of a helper captured inline

    @property
    def place(self) -> tuple[str, int, int]:
        """Where it is, whatever the function is called."""
        return self.file, self.line, self.column

    def source(self) -> str:
        """The text of the line; empty if the file cannot be read."""
        return linecache.getline(self.file, self.line).rstrip()

    def show(self) -> str:
        """`file:line, in function`, and the text of the line if it can be read."""
        place = f"{self.file}:{self.line}" + (f", in {self.function}" if self.function else "")
        text = self.source()
        return f"{place}\n      {text.strip()}" if text.strip() else place


@dataclass(frozen=True, slots=True)
class SavedSpan(Span):
    """A place in the source that a loaded function was captured from. The path comes from an untrusted file.

    So the line is never read: the path could be /dev/zero, or a secret that an error message would print.
    """

    def source(self) -> str:
        """Always empty, even if a file of that name exists."""
        return ""


@dataclass(frozen=True, slots=True)
class Call:
    """One link of a tag traceback: the call site, and the label that it put on the tag."""

    label: str
    span: Span | None
    function: str  # the function that makes the call


class Calls(Sequence[Call]):
    """The calls of a tag, outermost first. Calls are resolved lazily: a tag can be millions of labels long.

    `labels` is an array [calls, 2] of sites and indices, as `call_of` takes them; innermost first, as tags are.
    """

    def __init__(self, labels: Any, call_of: Callable[[int, int], Call]) -> None:
        self._labels = labels[::-1]
        self._call_of = call_of
        self._known: dict[tuple[int, int], Call] = {}

    def __len__(self) -> int:
        return len(self._labels)

    @overload
    def __getitem__(self, at: int) -> Call: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Call, ...]: ...
    def __getitem__(self, at: int | slice) -> Call | tuple[Call, ...]:
        if isinstance(at, slice):
            return tuple(map(self._call, *self._labels[at].T.tolist()))
        site, index = self._labels[at].tolist()
        return self._call(site, index)

    def _call(self, site: int, index: int) -> Call:
        found = self._known.get((site, index))
        if found is None:
            found = self._known[site, index] = self._call_of(site, index)
        return found

    def __iter__(self) -> Iterator[Call]:
        return iter(self[:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Calls | tuple) and len(self) == len(other) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} calls>"

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)

    def repeats(self, at: int, period: int) -> int:
        """How often the `period` calls from `at` on repeat."""
        end, step = at + period, 64
        while end < len(self):
            there = self._labels[end : end + step]
            differ = np.flatnonzero((there != self._labels[end - period : end - period + len(there)]).any(axis=1))
            if len(differ):
                end += int(differ[0])
                break
            end += len(there)
            step = min(2 * step, 1 << 16)
        return (end - at) // period


_E = TypeVar("_E", bound="_OfKind")


class _OfKind(Exception):
    """An error that is of a class of Python's too, if it has a `kind`, so that Python's `except` catches it."""

    what: str
    _kind: type[Exception] | None

    def __new__(cls: type[_E], *args: Any, kind: type[Exception] | None = None, **_: Any) -> _E:
        made = cls if kind is None else _class_of_kind(cls, kind)
        base: Any = made
        while base.__module__ != "builtins":  # the class of Python's that decides what instances look like in memory
            base = base.__base__
        instance: _E = base.__new__(made, *args[:1])
        instance._kind = kind
        return instance

    def __reduce__(self) -> tuple[Any, ...]:
        base = next(kind for kind in type(self).__mro__ if kind in _PICKLED)
        return _unpickled, (base, self.what, self._kind, self.args), self.__dict__


class UndertowError(Exception):
    """The base of all errors that Undertow raises. `span` is the user's line, `hint` says what to do next.

    `callers` are the lines of the user's functions that led there during capture, innermost first.
    """

    def __init__(self, what: str, span: Span | None = None, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.span = span
        self.hint = hint
        self.callers: list[Span] = []

    def __str__(self) -> str:
        parts = [self.what, *self._details(), *self._calls()]
        if self.span is not None:
            parts.append(f"  --> {self.span.show()}")
        text = "\n".join(parts)
        return f"{text}\n\nhint: {self.hint}" if self.hint else text

    def _details(self) -> list[str]:
        """Lines below what happened."""
        return []

    def _calls(self) -> list[str]:
        """The lines that led there, outermost first."""
        return fold_calls([Call("", span, span.function) for span in reversed(self._callers())], most_lines=8)

    def _callers(self) -> list[Span]:
        """Those that were noted during capture, else those that the span itself knows; innermost first."""
        spans = list(self.callers)
        at = None if spans else self.span
        while at is not None and (caller := at.caller) is not None:
            if (caller.file, caller.line) != (at.file, at.line):  # not a lambda in a line that is shown anyway
                spans.append(caller)
            at = caller
        return spans


class UnknownName(UndertowError, AttributeError):
    """A module of Undertow, or a captured function, has no such name."""


class CaptureError(_OfKind, UndertowError):
    """A Python function cannot become a graph.

    If that is because Python raised an exception during capture, it is of that class too.

    >>> isinstance(CaptureError("Python raised KeyError", kind=KeyError), KeyError)
    True
    """

    def __init__(
        self, what: str, span: Span | None = None, hint: str = "", *, kind: type[Exception] | None = None
    ) -> None:
        UndertowError.__init__(self, what, span, hint)


class TypeMismatch(_OfKind, UndertowError, TypeError, ValueError):
    """A dtype, shape or structure is not what it must be. For shapes NumPy raises a ValueError, so it is both.

    An index that is out of range is an IndexError, too.
    """

    def __init__(
        self, what: str, span: Span | None = None, hint: str = "", *, kind: type[Exception] | None = None
    ) -> None:
        UndertowError.__init__(self, what, span, hint)


class GraphError(UndertowError):
    """A graph breaks a rule of its form, or a text does not describe a graph."""


class GradientMismatch(UndertowError):
    """A derivative differs from finite differences, or from the other mode."""


class DataError(UndertowError, ValueError):
    """Text or values are not trees, or not of the required form. `lines` are the bad lines, each with a reason."""

    lines: tuple[tuple[int, str], ...] = ()


class SaveError(UndertowError):
    """A function cannot be saved."""


class LoadError(UndertowError):
    """A file is not a usable saved function: damaged, hostile, or too new."""


class RunError(UndertowError):
    """A run failed. `calls` is the tag traceback: the calls from the main graph to the failing activation."""

    def __init__(self, what: str, span: Span | None = None, hint: str = "", calls: Sequence[Call] = ()) -> None:
        super().__init__(what, span, hint)
        self.calls: Sequence[Call] = calls if isinstance(calls, Calls) else tuple(calls)

    def _details(self) -> list[str]:
        return ["tag traceback (outermost call first):", *fold_calls(self.calls)] if self.calls else []

    def _callers(self) -> list[Span]:
        """Those that the last call of the tag traceback does not show already."""
        last = self.calls[-1].span if self.calls else None
        return [span for span in super()._callers() if last is None or span.place != last.place]


class Fault(_OfKind, RunError):
    """An operator cannot handle its operands' values: division by zero, an index out of range, a failed assert.

    With a `kind` it is of that class too, so that Python's `except ZeroDivisionError` catches it.

    >>> isinstance(Fault("integer division by zero", kind=ZeroDivisionError), ZeroDivisionError)
    True
    """

    def __init__(
        self, what: str, span: Span | None = None, hint: str = "", calls: Sequence[Call] = (),
        *, kind: type[Exception] | None = None,
    ) -> None:  # fmt: skip
        RunError.__init__(self, what, span, hint, calls)
        self.raised: tuple[str, tuple[Any, ...]] | None = None  # if it stands for an exception of the user's own


class Raised(Fault):
    """A `raise` of the program's own, under a condition that was known only at run time. It is of the class raised."""


_PICKLED = (Raised, Fault, CaptureError, TypeMismatch)
_CLASSES: dict[tuple[type[_OfKind], type[Exception]], type[_OfKind]] = {}


def _class_of_kind(base: type[_OfKind], kind: type[Exception]) -> type[_OfKind]:
    """A class that is also an exception of Python's; a fault that the program raises itself has that name, too."""
    made = _CLASSES.get((base, kind))
    if made is None:
        name = kind.__name__ if base is Raised else base.__name__
        fresh = type(name, (base, kind), {"__doc__": base.__doc__, "__module__": base.__module__})
        made = _CLASSES.setdefault((base, kind), fresh)
    return made


def _unpickled(base: type[_OfKind], what: str, kind: type[Exception] | None, args: tuple[Any, ...]) -> _OfKind:
    made = base(what, kind=kind)
    made.args = args
    return made


class RecursionLimit(RunError, RecursionError):
    """Calls nest deeper than `max_depth`."""


class FrameLimit(RunError, MemoryError):
    """More frames, memory or nodes are in use than `frames`, `memory` or the size of a file allow."""


class Timeout(RunError, TimeoutError):
    """The call took longer than `timeout`: its run, or what comes before it. Or workers were not there in time."""


class WorkerLost(RunError):
    """A worker was lost more often than `retries` allows, or none is left: which one, and why."""


class InternalError(UndertowError):
    """A bug in Undertow; please report it."""


def with_article(name: str) -> str:
    """The name of a kind of thing with its article, for messages.

    >>> with_article("list"), with_article("array"), with_article("UserDict")
    ('a list', 'an array', 'a UserDict')
    """
    is_vowel = name[:1].lower() in set("aeiou") and not name.lower().startswith(("us", "uni", "ut"))
    return f"{'an' if is_vowel else 'a'} {name}"


def kind_of(value: object) -> str:
    """What a value is, with its article, for messages. A class of ours says what it stands for in a user's program.

    >>> kind_of([1]), kind_of(range(3))
    ('a list', 'a range')
    """
    said: str | None = getattr(type(value), "__undertow_said__", None)
    return said or with_article(type(value).__name__)


def brief(value: object, longest: int = 60) -> str:
    """A value of the user's, for messages: on one line, cut short, without addresses.

    >>> brief([1, 2]), brief("a" * 100), brief(object())
    ('[1, 2]', "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...", 'an object')
    """
    if isinstance(value, int) and value.bit_length() > 4 * longest:
        return f"an integer of {value.bit_length()} bits"  # its digits would take for ever
    plain = with_article(type(value).__name__)
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a __repr__ that fails must not hide what we have to say
        if not hasattr(type(value), "__undertow_repr__"):
            return plain
        text = value.__undertow_repr__()  # type: ignore[attr-defined]
    if " at 0x" in text:
        return plain
    return text if len(text) <= longest else text[: longest - 3] + "..."


def fold_calls(calls: Sequence[Call], longest_period: int = 8, most_lines: int = 60) -> list[str]:
    """The lines of a tag traceback, with runs of repeated call patterns folded into one.

    >>> a = Call("@2", None, "f")
    >>> fold_calls([Call("@1", None, "main")] + [a] * 500)
    ['  @1 in main', '  @2 in f', '  ... 499 more calls like the line above']

    What is still long loses its middle: depth is user data.
    """
    lines: list[str] = []
    counts: list[int] = []  # how many calls a line stands for
    at = 0
    while at < len(calls):
        best_period, best_repeats = 0, 1
        for period in range(1, longest_period + 1):
            repeats = _repeats(calls, at, period)
            if repeats > 2 and repeats * period > best_repeats * best_period:
                best_period, best_repeats = period, repeats
                if at + repeats * period + period > len(calls):
                    break  # hardly anything is left for a longer period to cover
        if best_period == 0:
            lines.append(_show_call(calls[at]))
            counts.append(1)
            at += 1
            continue
        lines += [_show_call(call) for call in calls[at : at + best_period]]
        more = (best_repeats - 1) * best_period
        above = "the line above" if best_period == 1 else f"the {best_period} lines above, {best_repeats - 1} times"
        lines.append(f"  ... {more} more calls like {above}")
        counts += [1] * best_period + [more]
        at += best_period * best_repeats
    if len(lines) <= most_lines:
        return lines
    half = most_lines // 2
    return [*lines[:half], f"  ... {sum(counts[half:-half])} calls left out", *lines[-half:]]


def _repeats(calls: Sequence[Call], at: int, period: int) -> int:
    """How often the next `period` calls repeat."""
    if isinstance(calls, Calls):
        return calls.repeats(at, period)
    end = at + period
    while end < len(calls) and (calls[end] is calls[end - period] or calls[end] == calls[end - period]):
        end += 1
    return (end - at) // period


def _show_call(call: Call) -> str:
    if call.span is None:
        return f"  {call.label} in {call.function}"
    return f"  {call.label} {call.span.show()}" if call.label else f"  {call.span.show()}"
