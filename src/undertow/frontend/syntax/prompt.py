"""What was typed at Python's own prompt, by the history of readline.

The history is a list of lines: it does not say where a statement ends, and it leaves out empty lines and a line that
repeats the one before it. So blocks of lines are only proposed here; whoever asks must compare them with the code.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from types import CodeType
from typing import Any

_MOST_LINES = 20_000  # how far back
_MOST_BLOCKS = 4_000
_MOST_ENDS = 40  # of blocks with the same first line
_MOST_REPEATS = 2_000  # guesses which lines of a block stood there twice
_LONGEST_GUESSED = 100  # lines


def has_history() -> bool:
    """Is there a prompt with a history? What comes through a pipe gets into none, though an older one may be loaded."""
    return sys.__stdin__ is not None and sys.__stdin__.isatty() and bool(_history())


def _history() -> list[str]:
    readline: Any = sys.modules.get("readline")
    if readline is None:
        return []
    count = readline.get_current_history_length()
    numbers = range(max(1, count - _MOST_LINES), count + 1)
    return [line for number in numbers if (line := readline.get_history_item(number)) is not None]


def typed_blocks(code: CodeType) -> Iterator[str]:
    """Blocks of lines that may define a function with this code, the latest first."""
    lines = _history()
    blocks = list(dict.fromkeys(itertools.islice(_blocks(lines, code), _MOST_BLOCKS)))
    yield from blocks
    guesses = (guess for block in blocks for guess in _with_repeats(block))
    yield from itertools.islice(guesses, _MOST_REPEATS)


def _blocks(lines: list[str], code: CodeType) -> Iterator[str]:
    name = re.compile(r"\blambda\b" if code.co_name == "<lambda>" else rf"\bdef\s+{re.escape(code.co_name)}\b")
    last = max((line for _, _, line in code.co_lines() if line is not None), default=1)
    for at in reversed(range(len(lines))):
        if name.search(lines[at]) is None:
            continue
        # The statement around it starts in one of the lines before, if not in this one.
        for start in range(at, max(-1, at - last), -1):
            if not lines[start] or lines[start][0].isspace():
                continue
            ends = (e for e in range(at + 1, len(lines) + 1) if e == len(lines) or not lines[e][:1].isspace())
            for end in itertools.islice(ends, _MOST_ENDS):
                yield "\n".join(lines[start:end]) + "\n"


def _with_repeats(block: str) -> Iterator[str]:
    """The block with one line, or two, written twice."""
    lines = block.splitlines(keepends=True)
    if len(lines) > _LONGEST_GUESSED:
        return
    for count in (1, 2):
        for repeated in itertools.combinations_with_replacement(range(len(lines)), count):
            yield "".join(line * (1 + repeated.count(number)) for number, line in enumerate(lines))
