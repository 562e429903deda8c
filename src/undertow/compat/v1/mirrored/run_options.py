"""`tf.RunOptions` and `tf.RunMetadata`: what a run is asked for beside its fetches, and what it leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from undertow.api.tracing import traced
from undertow.compat.v1.place import here
from undertow.engines.contract import Options, Plan
from undertow.errors import GraphError, TypeMismatch, brief
from undertow.ir.graph import Library
from undertow.tracebacks import boundaries
from undertow.viz.graphdef import graph_def
from undertow.viz.messages import RunMetadata as RunMetadata
from undertow.viz.messages import StepStats
from undertow.viz.step_stats import StepRecorder

__all__ = ["RunMetadata", "RunOptions"]


class RunOptions:
    """Options of one `Session.run`: `trace_level` FULL_TRACE measures it, `timeout_in_ms` limits its time."""

    NO_TRACE, SOFTWARE_TRACE, HARDWARE_TRACE, FULL_TRACE = range(4)

    def __init__(
        self,
        trace_level: int = NO_TRACE,
        timeout_in_ms: int = 0,
        inter_op_thread_pool: int = 0,
        output_partition_graphs: bool = False,
        report_tensor_allocations_upon_oom: bool = False,
    ) -> None:
        if trace_level not in range(4):
            raise TypeMismatch(
                f"there is no trace_level {brief(trace_level)}", here(), hint="write tf.RunOptions.FULL_TRACE"
            )
        self.trace_level = trace_level
        self.timeout_in_ms = timeout_in_ms
        self.inter_op_thread_pool = inter_op_thread_pool
        self.output_partition_graphs = output_partition_graphs
        self.report_tensor_allocations_upon_oom = report_tensor_allocations_upon_oom


class Asked:
    """What a run was asked for, and the metadata that it fills."""

    def __init__(self, options: Any = None, metadata: Any = None) -> None:
        if not isinstance(options, RunOptions | None):
            raise TypeMismatch(
                f"options of a run must be tf.RunOptions, not {brief(options)}",
                here(),
                hint="write options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)",
            )
        if not isinstance(metadata, RunMetadata | None):
            raise TypeMismatch(
                f"run_metadata must be tf.RunMetadata, not {brief(metadata)}",
                here(),
                hint="write metadata = tf.RunMetadata() before the run",
            )
        self.options = options or RunOptions()
        self.metadata = metadata

    @property
    def is_traced(self) -> bool:
        """Are the times of the run wanted?"""
        return self.metadata is not None and self.options.trace_level > RunOptions.NO_TRACE

    @property
    def changes(self) -> dict[str, Any]:
        """Options of the engine that the run gets."""
        milliseconds = self.options.timeout_in_ms
        timeout = {"timeout": milliseconds / 1000} if milliseconds else {}
        return timeout | ({"placement": "none"} if self.is_traced else {})  # a trace is of one process

    def begin(self, library: Library) -> None:
        """A run of this library begins: nothing is left of one before."""
        if self.metadata is not None:
            self.metadata.step_stats = StepStats()
            wants_graphs = self.options.output_partition_graphs
            self.metadata.partition_graphs = [graph_def(library)] if wants_graphs else []

    @contextlib.contextmanager
    def running(self, limits: Options, plan: Plan) -> Iterator[Options]:
        """The options of the engine. The metadata has the times of the run afterwards, even if it fails."""
        with traced(limits, plan) as options:
            if self.metadata is None or not self.is_traced:
                yield options
                return
            if options.trace is not None:
                raise GraphError(
                    "a run has one trace, but this one is to fill run_metadata, too",
                    here(),
                    hint="leave out trace=, or trace_level",
                )
            recorder = StepRecorder(plan.graph)
            try:
                yield replace(options, trace=recorder.add)
            finally:
                self.metadata.step_stats = recorder.step_stats()


boundaries(globals(), [name for name in __all__ if globals()[name].__module__ == __name__])
