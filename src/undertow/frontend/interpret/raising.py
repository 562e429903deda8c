"""Exceptions at run time: `raise`, and what Python raises in a branch for values that are known at capture.

`if n > 2: return items[5]` means an IndexError when `n > 2`, and nothing else. So in a branch that the run chooses,
an index that is out of range, a missing key, a division by zero and a false `assert` are faults of the run. Other
exceptions (a wrong name, a wrong type) are errors of the capture: the cause may be a traced value, and not the program.
So are attributes and items that do not exist, but for those of None and of objects of the user's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.errors import CaptureError, TypeMismatch, UndertowError
from undertow.frontend.control.restart import Halted
from undertow.frontend.interpret.drive import Work
from undertow.frontend.values.leaves import ABSENT
from undertow.frontend.values.text import TracedText, escaped, text_of
from undertow.frontend.values.traced import Context, effect

_LATE = (IndexError, KeyError, ZeroDivisionError, AssertionError)
_ALL = (*_LATE, AttributeError, TypeError)


def is_conditional(ctx: Context) -> bool:
    """Does what is written now run under a condition, in a loop or map, or in a function that another one calls?"""
    builder = ctx.open_builder
    return builder.region != 0 or builder.kind != "function" or ctx.session.is_called


def raise_at_run_time(kind: type[BaseException], held: tuple[Any, ...]) -> None:
    """Write a `raise` into the graph; `held` are the arguments of the exception."""
    text = text_of(held[0] if len(held) == 1 else held) if held else kind.__name__
    values = text.values if isinstance(text, TracedText) else []
    template = text.template if isinstance(text, TracedText) else escaped(text)
    effect("raise", [np.False_, *values], template=template, error=kind.__name__)


def or_absent(work: Callable[[], Any], ctx: Context) -> Work:
    """What the work gives; ABSENT if it raises an exception at run time."""
    failed = ctx.session.failed_captures
    try:
        return (yield work())
    except Halted:
        return ABSENT
    except _LATE as fault:
        # A graph that was given up half-way cannot be called: then the error is that of the capture.
        if not is_conditional(ctx) or ctx.session.failed_captures != failed:
            raise
        raise_later(fault, ctx)
        return ABSENT


def raise_later(fault: Exception, ctx: Context) -> None:
    """Write a `raise` of what Python has raised during capture."""
    is_ours = isinstance(fault, (CaptureError, TypeMismatch))
    kind = next((kind for kind in _ALL if type(fault) is kind or (is_ours and isinstance(fault, kind))), None)
    if kind is None:
        raise fault  # of a class of the user's, or one of our own that a run never raises
    builder = ctx.open_builder
    held = (fault.what,) if isinstance(fault, UndertowError) else fault.args
    builder.raised = builder.raised or (" ".join(map(str, held)), kind, ctx.span)
    raise_at_run_time(kind, held)
