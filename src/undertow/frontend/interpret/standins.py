"""Python objects with traced values inside: ranges. (Texts are in `values/text.py`.)"""

from __future__ import annotations

from typing import Any

from undertow.errors import CaptureError


class TracedRange:
    """`range` with traced bounds."""

    __slots__ = ("start", "step", "stop")

    def __init__(self, start: Any, stop: Any, step: Any) -> None:
        self.start, self.stop, self.step = start, stop, step

    def _refuse(self) -> CaptureError:
        return CaptureError(
            "the length of this range is known only at run time",
            hint="use it in a plain `for i in range(n):`, or compute a value for each i with ut.map(f, ut.arange(n))",
        )

    def __iter__(self) -> Any:
        raise self._refuse()

    def __len__(self) -> int:
        raise self._refuse()

    def __getitem__(self, key: Any) -> Any:
        raise self._refuse()
