"""The user's current source line: the innermost stack frame that is not ours.

The TensorFlow 1 API runs functions as plain Python, so a node's source location is found on the host's stack.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
from types import CodeType, FrameType

from undertow.errors import PACKAGE, Span

_NAMES = {"<module>": "", "<lambda>": "lambda"}


@functools.lru_cache(maxsize=4096)
def _is_ours(file: str) -> bool:
    return file == contextlib.__file__ or os.path.realpath(file).startswith(PACKAGE)


def here() -> Span | None:
    """The user's line and column now."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return None
    code = frame.f_code
    return Span(code.co_filename, frame.f_lineno, _column(code, frame.f_lasti), _NAMES.get(code.co_name, code.co_name))


def line_of(code: CodeType) -> Span:
    """Where a function is defined."""
    return Span(code.co_filename, code.co_firstlineno, 1, _NAMES.get(code.co_name, code.co_name))


def _column(code: CodeType, instruction: int) -> int:
    if not hasattr(code, "co_positions"):  # Python 3.10
        return 1
    positions = next(itertools.islice(code.co_positions(), instruction // 2, None), None)
    column = None if positions is None else positions[2]
    return 1 if column is None else column + 1
