"""`timeline.Timeline`: the times that a run has left in its metadata, as a trace that Chrome and Perfetto show.

from undertow.compat.v1 import timeline  # from tensorflow.python.client import timeline
"""

from __future__ import annotations

from typing import Any

from undertow.compat.v1.place import here
from undertow.errors import TypeMismatch, brief
from undertow.tracebacks import boundaries
from undertow.viz.messages import StepStats
from undertow.viz.step_stats import timeline

__all__ = ["Timeline"]


class Timeline:
    """The times of a run: `Timeline(run_metadata.step_stats)`."""

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        if not isinstance(step_stats, StepStats) or not step_stats.dev_stats:
            what = (
                "these StepStats have no times" if isinstance(step_stats, StepStats) else f"{brief(step_stats)} is none"
            )
            raise TypeMismatch(
                f"a timeline is of the StepStats of a run, and {what}",
                here(),
                hint="run with options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE) and run_metadata=metadata, "
                "then give metadata.step_stats",
            )
        self._stats = step_stats

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """The text of a file for ui.perfetto.dev and chrome://tracing. The memory of single nodes is not known."""
        return timeline(self._stats, show_dataflow)


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), __all__)
