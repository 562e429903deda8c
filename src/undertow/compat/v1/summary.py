"""`tf.summary`: what TensorBoard shows of a training, and `FileWriter`, which writes it to event files.

A summary is fetched like a tensor: the run computes the tensors that it shows, and the host serializes them.
"""

from __future__ import annotations

import copy
import os
import re
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.graphs.collection import GraphKeys
from undertow.compat.v1.graphs.hosted import Hosted, Text
from undertow.compat.v1.missing import explain
from undertow.compat.v1.place import here
from undertow.compat.v1.tensor import Tensor, as_tensor, is_tensor_like
from undertow.errors import GraphError, TypeMismatch, UndertowError, brief
from undertow.tracebacks import boundaries
from undertow.viz import event_file
from undertow.viz.event_file import EventWriter
from undertow.viz.messages import Event, GraphDef, RunMetadata, SessionLog, Summary, SummaryValue

__all__ = [
    "Event", "FileWriter", "FileWriterCache", "SessionLog", "Summary", "histogram", "image", "merge", "merge_all",
    "scalar", "text",
]  # fmt: skip


class Part(NamedTuple):
    """What a summary shows under a tag: a tensor, or something that is known before the run."""

    tag: str
    tensor: Tensor | None
    make: Callable[[str, Any], Sequence[SummaryValue]]


class SummaryTensor(Hosted):
    """What `tf.summary.scalar` and its like return: fetched, the bytes of a Summary."""

    def __init__(self, graph: Graph, name: str, parts: Sequence[Part] = ()) -> None:
        super().__init__(graph, name)
        self.parts = list(parts)

    @property
    def tensors(self) -> Sequence[Tensor]:
        """The tensors that it shows."""
        return [part.tensor for part in self.parts if part.tensor is not None]

    def made_of(self, tensors: Sequence[Any]) -> SummaryTensor:
        """The same of other tensors."""
        rest = iter(tensors)
        other = copy.copy(self)
        other.parts = [part if part.tensor is None else part._replace(tensor=next(rest)) for part in self.parts]
        return other

    def value_in(self, values: dict[str, Any], computed: Sequence[Any] = ()) -> bytes:
        """The bytes of the Summary."""
        rest = iter(computed)
        made = [part.make(part.tag, None if part.tensor is None else next(rest)) for part in self.parts]
        return Summary([value for found in made for value in found]).SerializeToString()


def _numbers(name: str, values: Any, collections: Any, family: str | None, make: Any) -> SummaryTensor:
    tensor = as_tensor(values)
    return _add(tensor.graph, name, tensor, collections, family, make)


def _add(graph: Graph, name: str, tensor: Any, collections: Any, family: str | None, make: Any) -> SummaryTensor:
    if not isinstance(name, str) or not name:
        raise TypeMismatch(f"the name of a summary is {brief(name)}", here(), hint='write tf.summary.scalar("loss", x)')
    name = re.sub(r"[^\w.\-/]", "_", name, flags=re.ASCII)
    summary = SummaryTensor(graph, name if family is None else f"{family}/{name}")
    tag = summary.name.removesuffix(":0")  # as in TensorFlow, the family stands before it, and in it
    summary.parts.append(Part(tag if family is None else f"{family}/{tag}", tensor, make))
    graph.add_to_collections([GraphKeys.SUMMARIES] if collections is None else collections, summary)
    return summary


def scalar(name: str, tensor: Any, collections: Any = None, family: str | None = None) -> SummaryTensor:
    """A summary of one number."""
    return _numbers(name, tensor, collections, family, lambda tag, value: [event_file.scalar_value(tag, value)])


def histogram(name: str, values: Any, collections: Any = None, family: str | None = None) -> SummaryTensor:
    """A summary of the distribution of a tensor's numbers."""
    return _numbers(name, values, collections, family, lambda tag, value: [event_file.histogram_value(tag, value)])


def image(
    name: str, tensor: Any, max_outputs: int = 3, collections: Any = None, family: str | None = None
) -> SummaryTensor:
    """A summary of pictures: a tensor [number, height, width, channels] of floats, which are scaled."""
    return _numbers(name, tensor, collections, family, lambda tag, v: event_file.image_values(tag, v, int(max_outputs)))


def text(name: str, tensor: Any, collections: Any = None) -> SummaryTensor:
    """A summary of a text, or of a list of them: Python's, or tf.constant of them."""
    if is_tensor_like(tensor) and not isinstance(tensor, Text):
        raise TypeMismatch(f"{tensor!r} is no text", here(), hint='give a Python text: tf.summary.text("note", "...")')
    try:
        shown = event_file.text_value(name, tensor.value if isinstance(tensor, Text) else tensor)
    except UndertowError as fault:
        fault.span = fault.span or here()
        raise

    def make(tag: str, _: Any) -> list[SummaryValue]:
        return [SummaryValue(tag, tensor=shown.tensor, metadata=shown.metadata)]

    return _add(get_default_graph(), name, None, collections, None, make)


def merge(inputs: Sequence[Any], collections: Any = None, name: str | None = None) -> SummaryTensor:
    """One summary of several."""
    parts = list(inputs) if isinstance(inputs, (list, tuple)) else []
    if not parts or not all(isinstance(part, SummaryTensor) for part in parts):
        odd = next((part for part in parts if not isinstance(part, SummaryTensor)), inputs)
        raise TypeMismatch(
            f"{brief(odd)} cannot be merged", here(), hint="give a list of what tf.summary.scalar and its like return"
        )
    if len({part.graph for part in parts}) > 1:
        raise GraphError("summaries of several graphs cannot be merged", here(), hint="merge those of one graph")
    graph = parts[0].graph
    merged = SummaryTensor(graph, name or "Merge/MergeSummary", [part for summary in parts for part in summary.parts])
    graph.add_to_collections(collections, merged)
    return merged


def merge_all(key: Any = GraphKeys.SUMMARIES, scope: str | None = None, name: str | None = None) -> Any:
    """One summary of all in a collection of the default graph; None if there is none."""
    found = get_default_graph().get_collection(key, scope)
    return merge(found, name=name) if found else None


# -- writing ---------------------------------------------------------------------------------------------------


class FileWriter:
    """Writes summaries and graphs to an event file in a folder, for TensorBoard. A context manager."""

    def __init__(
        self,
        logdir: Any,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        self._writer = EventWriter(logdir, filename_suffix or "")
        self._logdir = str(os.fspath(logdir))
        self._suffix = filename_suffix or ""
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a summary: the bytes that `sess.run(merged)` returns, or a tf.Summary."""
        if isinstance(summary, SummaryTensor):
            raise TypeMismatch(f"{summary!r} has no value yet", here(), hint="add what sess.run returns for it")
        self._writer.summary(summary, global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a graph, for the page Graphs."""
        if isinstance(graph, Graph):
            graph = graph.as_graph_def()
        shown = graph_def if graph is None else graph
        if not isinstance(shown, (GraphDef, bytes)):
            raise TypeMismatch(f"{brief(shown)} is not a graph", here(), hint="give sess.graph, or a GraphDef")
        self._writer.graph(shown, global_step)

    def add_run_metadata(self, run_metadata: RunMetadata, tag: str, global_step: Any = None) -> None:
        """Write the times of a run under a tag, for the page Graphs."""
        self._writer.run_metadata(run_metadata, tag, global_step)

    def add_session_log(self, session_log: SessionLog, global_step: Any = None) -> None:
        """Write that a session has started or stopped."""
        self._writer.session_log(session_log, global_step)

    def add_event(self, event: Event) -> None:
        """Write an event."""
        self._writer.write(event)

    def flush(self) -> None:
        """Let TensorBoard see what was added."""
        self._writer.flush()

    def close(self) -> None:
        """End the file."""
        self._writer.close()

    def reopen(self) -> None:
        """Begin another file in the same folder, if this one is closed."""
        if self._writer.is_closed:
            self._writer = EventWriter(self._logdir, self._suffix)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FileWriterCache:
    """One FileWriter for each folder."""

    _lock = threading.RLock()  # around all of the dict
    _writers: dict[str, FileWriter] = {}  # noqa: RUF012  # as in TensorFlow, all programs share it

    @staticmethod
    def get(logdir: Any) -> FileWriter:
        """The writer of a folder, made when it is first asked for."""
        with FileWriterCache._lock:
            key = os.fspath(logdir)
            if key not in FileWriterCache._writers:
                FileWriterCache._writers[key] = FileWriter(logdir, graph=get_default_graph())
            return FileWriterCache._writers[key]

    @staticmethod
    def clear() -> None:
        """Close all writers, and forget them."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._writers.values():
                writer.close()
            FileWriterCache._writers.clear()


def __getattr__(name: str) -> Any:
    raise AttributeError(explain(f"summary.{name}", [f"summary.{known}" for known in __all__]))


def __dir__() -> list[str]:
    return sorted(__all__)


boundaries(globals(), [name for name in __all__ if globals()[name].__module__ == __name__])
