"""Errors that teach: what happened, where (the user's line), what to do next.

>>> print(CaptureError("`try` cannot be captured", Span("model.py", 12), hint="use `if`"))
`try` cannot be captured
  --> model.py:12
<BLANKLINE>
hint: use `if`
"""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in the user's source: file, line and column (both from 1), and the function it stands in."""

    file: str
    line: int
    column: int = 1
    function: str = ""

    def source(self) -> str:
        """The text of the line, or nothing where the file is not there."""
        return linecache.getline(self.file, self.line).rstrip()

    def show(self) -> str:
        """`file:line, in function`, and the line itself where it can be read."""
        place = f"{self.file}:{self.line}" + (f", in {self.function}" if self.function else "")
        text = self.source()
        return f"{place}\n      {text.strip()}" if text.strip() else place


@dataclass(frozen=True, slots=True)
class Call:
    """One link of a tag traceback: the call site, and the label that it put on the tag."""

    label: str
    span: Span | None
    function: str  # the function that makes the call


class UndertowError(Exception):
    """Everything that Undertow raises. `span` is the user's line, `hint` what to do next."""

    def __init__(self, what: str, span: Span | None = None, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.span = span
        self.hint = hint

    def __str__(self) -> str:
        parts = [self.what]
        if self.span is not None:
            parts.append(f"  --> {self.span.show()}")
        text = "\n".join(parts)
        return f"{text}\n\nhint: {self.hint}" if self.hint else text


class CaptureError(UndertowError):
    """A Python function cannot become a graph."""


class TypeMismatch(UndertowError):
    """A dtype, shape or structure is not what it must be."""


class GraphError(UndertowError):
    """A graph breaks a rule of its form, or a text does not describe a graph."""


class RunError(UndertowError):
    """A run failed. `calls` is the tag traceback: the calls from the main graph to the failing activation."""

    def __init__(self, what: str, span: Span | None = None, hint: str = "", calls: Sequence[Call] = ()) -> None:
        super().__init__(what, span, hint)
        self.calls = tuple(calls)

    def __str__(self) -> str:
        parts = [self.what]
        if self.calls:
            parts.append("tag traceback (outermost call first):")
            parts += fold_calls(self.calls)
        if self.span is not None:
            parts.append(f"  --> {self.span.show()}")
        text = "\n".join(parts)
        return f"{text}\n\nhint: {self.hint}" if self.hint else text


class Fault(RunError):
    """An operator met values that it cannot work on: division by zero, an index out of range, a failed assert."""


class RecursionLimit(RunError):
    """Calls nest deeper than `max_depth`."""


class FrameLimit(RunError):
    """More frames or memory are in use than `frames` or `memory` allow."""


class Timeout(RunError):
    """The run took longer than `timeout`."""


class InternalError(UndertowError):
    """A fault of Undertow itself; please report it."""


def fold_calls(calls: Sequence[Call], longest_period: int = 8) -> list[str]:
    """The lines of a tag traceback, with runs of repeated call patterns folded into one.

    >>> a = Call("@2", None, "f")
    >>> fold_calls([Call("@1", None, "main")] + [a] * 500)
    ['  @1 in main', '  @2 in f', '  ... 499 more calls like the line above']
    """
    lines: list[str] = []
    at = 0
    while at < len(calls):
        best_period, best_repeats = 0, 1
        for period in range(1, longest_period + 1):
            pattern = calls[at : at + period]
            repeats = 1
            while tuple(calls[at + repeats * period : at + (repeats + 1) * period]) == tuple(pattern):
                repeats += 1
            if repeats > 2 and repeats * period > best_repeats * best_period:
                best_period, best_repeats = period, repeats
        if best_period == 0:
            lines.append(_show_call(calls[at]))
            at += 1
            continue
        lines += [_show_call(call) for call in calls[at : at + best_period]]
        more = (best_repeats - 1) * best_period
        above = "the line above" if best_period == 1 else f"the {best_period} lines above, {best_repeats - 1} times"
        lines.append(f"  ... {more} more calls like {above}")
        at += best_period * best_repeats
    return lines


def _show_call(call: Call) -> str:
    if call.span is None:
        return f"  {call.label} in {call.function}"
    return f"  {call.label} {call.span.show()}"
