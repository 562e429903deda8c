"""Events of a run: the stream that the viewer and the tests read.

Frames are numbered as they begin; the main graph's is 0. A frame's beginning names its parent and label, and no
event spells out a tag: tags are as long as the recursion is deep, so a trace of them would be quadratic. `Tags`
puts them together for those who ask.

>>> events = [FrameStarted(0, None, None, 0), FrameStarted(1, 0, 3, 1), FrameStarted(2, 1, (4, 0), 2)]
>>> show_tag(Tags(events)[2])
'[4.0, 3]'
>>> from_json(to_json(events[2])) == events[2]
True
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from undertow.errors import GraphError, brief
from undertow.ir.record import record_of
from undertow.types import type_of

# A call's label is its site; an iteration of a loop and a lane of a map are (site, index).
Label = int | tuple[int, int]
Tag = tuple[Label, ...]  # innermost label first, as in `n:t`

DEAD = "*"  # how an output without data is shown


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run of the graph of that name begins."""

    graph: str
    engine: str = ""


@dataclass(frozen=True, slots=True)
class FrameStarted:
    """An activation begins: a call, an iteration or a lane. The main graph's has no parent and no label."""

    frame: int
    parent: int | None
    label: Label | None
    region: int

    @property
    def site(self) -> int | None:
        """The site that made the frame."""
        return self.label[0] if isinstance(self.label, tuple) else self.label


@dataclass(frozen=True, slots=True)
class Fired:
    """A node fired in a frame; `outputs` shows each output, `*` where it is dead."""

    frame: int
    node: int
    name: str
    live: bool
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FrameEnded:
    """Every node of the frame has fired, and its storage is gone."""

    frame: int


@dataclass(frozen=True, slots=True)
class WaveStarted:
    """Activations of one region begin a phase together, as the lanes of a wave; or a stage of it, on an agenda.

    Engines that run waves have no frames of single activations: this is what they tell instead.
    """

    region: int
    lanes: int
    depth: int  # of nested calls
    phase: int = 0
    stage: int = 0


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The fetches have arrived, or the run failed: then `error` says how."""

    firings: int
    seconds: float
    error: str = ""


Event = RunStarted | FrameStarted | Fired | FrameEnded | WaveStarted | RunEnded
Record = Callable[[Event], None]

_KINDS: dict[str, type[Event]] = {
    "run": RunStarted,
    "frame": FrameStarted,
    "fired": Fired,
    "frame_end": FrameEnded,
    "wave": WaveStarted,
    "run_end": RunEnded,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def to_json(event: Event) -> dict[str, Any]:
    """An event as JSON data; `event` says which."""
    fields = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return {"event": _NAMES[type(event)], **fields}


def from_json(data: Any) -> Event:
    """The inverse of `to_json`."""
    fields = dict(data) if type(data) is dict else {}
    name = fields.pop("event", None)
    try:
        if type(name) is not str or name not in _KINDS:
            raise ValueError("it names no event")
        return record_of(_KINDS[name], fields)
    except ValueError as fault:
        raise GraphError(f"{brief(data)} is not an event of a trace: {fault}") from None


def read_trace(path: str | os.PathLike[str]) -> Iterator[Event]:
    """The events of a JSONL file, one line after the other."""
    with open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    data = json.loads(line.decode())
                except (ValueError, RecursionError) as fault:
                    why = "it is nested too deeply" if isinstance(fault, RecursionError) else fault
                    raise GraphError(
                        f"line {number} of {os.fspath(path)!r} is not an event of a trace: {why}",
                        hint="f.run(..., trace=path) writes such files",
                    ) from None
                yield from_json(data)


@dataclass(slots=True)
class Recording:
    """A run while it lasts: where its events go, and what its last event will say."""

    record: Record | None
    firings: int = 0  # live ones: the engine counts them
    seconds: float = 0.0  # known when it has ended


@contextmanager
def recording(
    target: str | os.PathLike[str] | list[Event] | Record | None, graph: str, engine: str
) -> Iterator[Recording]:
    """A run whose events go to a JSONL file, which is closed at the end whatever happens, to a list, a function, or
    nowhere.
    """
    with ExitStack() as stack:
        run = Recording(None)
        if isinstance(target, list):
            run.record = target.append
        elif callable(target):
            run.record = target
        elif target is not None:
            file = stack.enter_context(open(target, "w", encoding="utf-8"))
            run.record = lambda event: print(json.dumps(to_json(event)), file=file)
        if run.record is not None:
            run.record(RunStarted(graph, engine))
        began, error = time.perf_counter(), ""
        try:
            yield run
        except BaseException as raised:
            error = f"{type(raised).__name__}: {getattr(raised, 'what', raised)}"
            raise
        finally:
            run.seconds = time.perf_counter() - began
            if run.record is not None:
                run.record(RunEnded(run.firings, run.seconds, error))


class Tags:
    """The tags of the frames in a trace, by frame number."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self._frames: dict[int, tuple[int | None, Label | None]] = {}
        for event in events:
            self.add(event)

    def add(self, event: Event) -> None:
        """Take note of the next event."""
        if isinstance(event, FrameStarted):
            if event.parent is not None and not (event.parent < event.frame and event.parent in self._frames):
                raise GraphError(f"frame {event.frame} of the trace begins before frame {event.parent}, its parent")
            self._frames[event.frame] = event.parent, event.label

    def __getitem__(self, frame: int) -> Tag:
        if frame not in self._frames:
            raise GraphError(f"the trace has no frame {brief(frame)}")
        labels: list[Label] = []
        at: int | None = frame
        while at is not None:
            at, label = self._frames[at]
            if label is not None:
                labels.append(label)
        return tuple(labels)


def show_label(label: Label) -> str:
    return f"{label[0]}.{label[1]}" if isinstance(label, tuple) else str(label)


def show_tag(tag: Tag, longest: int = 12) -> str:
    """A tag as text, `[2, 2, 1]`; the middle of a long one is left out."""
    labels: list[str]
    if len(tag) <= longest:
        labels = [show_label(label) for label in tag]
    else:
        half = longest // 2
        labels = [show_label(label) for label in (*tag[:half], *tag[-half:])]
        labels.insert(half, f"... {len(tag) - 2 * half} more ...")
    return f"[{', '.join(labels)}]"


def show_value(value: Any) -> str:
    """A value in a few characters: small ones in full, others by their type."""
    array = np.asarray(value)
    if array.size > 6:
        return repr(type_of(array))
    return json.dumps(array.tolist()) if array.ndim else str(array[()])
