"""A line that says how far a long run has come: in terminals and notebooks, never in pipes and files.

Engines call `show` from the second second of a run on, a few times a second, and `end` when the run is over; then the
line is gone. A short run costs nothing: it never gets here. UNDERTOW_PROGRESS=0 switches it off, `progress=False` too.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

FIRST = 2.0  # seconds of a run before it is shown
BETWEEN = 0.2
LEAVES_OUT = (" waves", " deep", " received", " MB")  # where the line is too long, in this order

_running: int | None = None  # the thread whose run is shown: two would overwrite each other's line
_is_on_screen = False
_cell: Any = None  # where a notebook shows it
_shown_at = -math.inf  # parts of a run on several threads tell more often than anybody can read


_news: ContextVar[Callable[[], str] | None] = ContextVar("news", default=None)


@contextmanager
def telling(news: Callable[[], str]) -> Iterator[None]:
    """What is shown of runs inside says this, too."""
    token = _news.set(news)
    try:
        yield
    finally:
        _news.reset(token)


def show(seconds: float, activations: int, waves: int, depth: int, bytes_: int) -> bool:
    """Show how far the run of this thread has come; False if nobody would see it."""
    global _running, _is_on_screen, _cell, _shown_at
    me, now = threading.get_ident(), time.monotonic()
    if (_running is not None and _running != me) or now < _shown_at + BETWEEN:
        return True  # perhaps later
    is_notebook = _is_notebook()
    if not is_wanted(is_notebook):
        return False
    _running = me
    text = line(seconds, activations, waves, depth, bytes_)
    if (news := _news.get()) is not None and (away := news()):
        text += f", {away}"
    if is_notebook:
        _cell = _display(text, _cell)
    else:
        sys.stderr.write(f"\r\x1b[K{shortened(text, shutil.get_terminal_size().columns - 1)}")
        sys.stderr.flush()
    _is_on_screen, _shown_at = True, now
    return True


def hide() -> None:
    """Erase the line: something else is about to be printed."""
    global _is_on_screen
    if not _is_on_screen:
        return
    _is_on_screen = False
    if _cell is not None:
        _display("", _cell)
    else:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def end() -> None:
    """The run of this thread is over."""
    global _running, _cell, _shown_at
    if _running == threading.get_ident():
        hide()
        _running, _cell, _shown_at = None, None, -math.inf


def line(seconds: float, activations: int, waves: int, depth: int, bytes_: int) -> str:
    """What is shown.

    >>> line(12.3, 4_500_000, 120, 17, 250_000_000)
    'undertow: 12 s, 4,500,000 activations, 120 waves, 17 deep, 250 MB'
    """
    in_waves = f" {waves:,} waves," if waves else ""
    return f"undertow: {seconds:.0f} s, {activations:,} activations,{in_waves} {depth:,} deep, {bytes_ / 1e6:,.0f} MB"


def shortened(text: str, width: int) -> str:
    """As much as fits: what matters least is left out first, so that what workers do is seen, too.

    >>> shortened("undertow: 9 s, 5,000,000 activations, 120 waves, 17 deep, 250 MB, 40 tasks on 2 workers", 70)
    'undertow: 9 s, 5,000,000 activations, 250 MB, 40 tasks on 2 workers'
    """
    parts = text.split(", ")
    for ending in LEAVES_OUT:
        if len(", ".join(parts)) > width:
            parts = [part for part in parts if not part.endswith(ending)]
    return ", ".join(parts)[:width]


def is_wanted(is_notebook: bool) -> bool:
    """Would somebody see it, and has nobody switched it off?"""
    if os.environ.get("UNDERTOW_PROGRESS", "1").lower() in ("0", "off", "no", "false"):
        return False
    if is_notebook:
        return True
    stream = sys.stderr
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("CI")


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def _display(text: str, cell: Any) -> Any:
    """Show a text in a notebook, in the place of the one before."""
    display = sys.modules["IPython"].display
    if cell is None:
        return display.display({"text/plain": text}, raw=True, display_id=True)
    cell.update({"text/plain": text}, raw=True)
    return cell
