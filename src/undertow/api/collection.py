"""Pauses garbage collection while programs are compiled.

Capture, passes and plans create thousands of small objects, nearly all of which stay alive: scanning them again
and again takes a fifth of the time of a first call.
"""

from __future__ import annotations

import gc
from types import TracebackType


class collection_paused:  # it stands in a `with`
    """No cyclic garbage collection inside, in any thread; reference counts still free everything else.

    Written out, since an interrupt inside of `contextlib` could leave it switched off.
    """

    def __enter__(self) -> None:
        self.was_on = gc.isenabled()
        try:
            gc.disable()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        raised: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self.was_on:
            gc.enable()
