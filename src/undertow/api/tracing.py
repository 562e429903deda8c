"""Where the events of a run go: engines write JSON lines, and a file whose name ends in .json is in Chrome's format."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import replace

from undertow.engines.contract import Options, Plan


def chrome_path(limits: Options) -> str | None:
    """The file that a trace in Chrome's format goes to, if it does."""
    path = limits.trace
    if path is None or isinstance(path, list) or callable(path):
        return None
    name = os.fsdecode(path)
    return name if name.lower().endswith(".json") else None


def traced(limits: Options, plan: Plan) -> contextlib.AbstractContextManager[Options]:
    """The options for a run of this plan: with a trace that engines know."""
    path = chrome_path(limits)
    return contextlib.nullcontext(limits) if path is None else _in_chrome_format(path, limits, plan)


@contextlib.contextmanager
def _in_chrome_format(path: str, limits: Options, plan: Plan) -> Iterator[Options]:
    from undertow.viz.chrome import chrome_file  # most runs write none

    with chrome_file(path, plan.graph) as record:
        yield replace(limits, trace=record)
