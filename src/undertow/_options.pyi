"""Written by `python docs/manual.py options`; do not edit."""

import os
from typing import TypedDict

from undertow.ir.trace import Event, Record

class RunOptions(TypedDict, total=False):
    engine: str
    simplify: bool
    overflow: str
    reorder: bool
    placement: str
    scheduler: str | None
    schedule_seed: int | None
    seed: int | None
    frames: int | None
    max_depth: int | None
    memory: int | str | None
    timeout: float | None
    threads: int | None
    check_finite: bool
    trace: str | os.PathLike[str] | list[Event] | Record | None
    timed: bool
    progress: bool
