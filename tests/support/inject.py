"""Interrupts at chosen instructions: what a signal handler can do, at every place where it can, and then some.

A handler runs between two instructions of Python. Python itself looks for signals only at some of them; here every one
counts, so that nothing depends on which.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import undertow as ut

SOURCE = str(Path(ut.__file__).parent)


class Injected(BaseException):
    """What the handler raises."""


def interrupted(work: Callable[[], Any], number: int, files: Sequence[str] = ("",)) -> BaseException | None:
    """Do some work, but raise before the instruction with a number, of those in these files of Undertow's.

    Gives what was raised; None if there are not so many.
    """
    starts = tuple(f"{SOURCE}/{file}" for file in files)
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        if not frame.f_code.co_filename.startswith(starts):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            count += 1
            if count == number:
                raise Injected
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except Injected as raised:
        return raised
    finally:
        sys.settrace(before)
    return None


def interrupts(
    work: Callable[[], Any], files: Sequence[str] = ("",), first: int = 1, step: int = 1
) -> Iterator[BaseException | None]:
    """Do the work again and again, interrupted somewhere else each time; None when it came to its end."""
    number, raised = first, interrupted(work, first, files)
    while raised is not None:
        yield raised
        number += step
        raised = interrupted(work, number, files)
    yield None
