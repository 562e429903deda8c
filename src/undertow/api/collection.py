"""Making programs ready without looking for garbage.

Capture, passes and plans make thousands of small objects, nearly all of which stay: looking for cycles among them again
and again takes a fifth of the time of a first call.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """No garbage collection meanwhile, in any thread; reference counts still free what is not in a cycle."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
