"""The base of frames in the Python engines: each knows its tag; limits apply to their number and memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import Value
from undertow.engines.contract import Options, Stats
from undertow.errors import FrameLimit, InternalError, RunError
from undertow.ir import trace
from undertow.ir.graph import StaticGraph


class TaggedFrame:
    """The storage of one tag."""

    __slots__ = ()
    parent: Any
    site: int  # 0 in main
    index: int  # of the iteration or lane; -1 in functions
    number: int
    depth: int  # of nested calls

    @property
    def label(self) -> trace.Label | None:
        if self.site == 0:
            return None
        return self.site if self.index < 0 else (self.site, self.index)

    def tag(self) -> trace.Tag:
        labels: list[trace.Label] = []
        frame = self
        while frame.parent is not None:
            label = frame.label
            assert label is not None
            labels.append(label)
            frame = frame.parent
        return tuple(labels)


F = TypeVar("F", bound=TaggedFrame)


class Limits(Generic[F]):
    """Counts frames and bytes, and refuses what is over a limit. An array counts once, whatever its slots and views."""

    def __init__(self, graph: StaticGraph, main: F, options: Options, record: trace.Record | None) -> None:
        self.graph = graph
        self.main = self.deepest = main
        self.options = options
        self.record = record
        self.made = 0
        self.activations = 0
        self.peak_frames = 0
        self.bytes = 0
        self.peak_bytes = 0
        self.held: dict[int, int] = {}  # slots that hold an array, by the identity of what owns its memory
        self.most_frames = float("inf") if options.frames is None else options.frames
        self.most_bytes = float("inf") if options.memory is None else options.memory
        self.most_depth = float("inf") if options.max_depth is None else options.max_depth

    def begin(self, frame: F, live: int, is_call: bool, region: int, cost: int) -> None:
        """Let a frame begin, if the limits allow it: one of so many that are alive."""
        self.made += 1
        if live > self.peak_frames:
            self.peak_frames = live
            if live > self.most_frames:
                raise checks.too_many_frames(self.options)
        if is_call:
            self.activations += 1
            if frame.depth > self.deepest.depth:
                self.deepest = frame
                if frame.depth > self.most_depth:
                    raise checks.too_deep(self.options)
        if self.record is not None:
            parent = None if frame.parent is None else frame.parent.number
            self.record(trace.FrameStarted(frame.number, parent, frame.label, region))
        self.grow(cost)

    def hold(self, value: Value, times: int = 1) -> None:
        """An array has been put into so many slots."""
        owner = value.base if isinstance(value.base, np.ndarray) else value
        before = self.held.get(id(owner), 0)
        self.held[id(owner)] = before + times
        if before == 0:
            self.grow(owner.nbytes)

    def let_go(self, value: Value) -> None:
        """An array has been taken out of one slot."""
        owner = value.base if isinstance(value.base, np.ndarray) else value
        left = self.held[id(owner)] - 1
        if left:
            self.held[id(owner)] = left
        else:
            del self.held[id(owner)]
            self.bytes -= owner.nbytes

    def release(self, slots: list[Value], held: Sequence[int]) -> None:
        """Empty those slots that hold arrays."""
        for slot in held:
            value = slots[slot]
            if type(value) is np.ndarray:
                self.let_go(value)
                slots[slot] = None

    def grow(self, more: int) -> None:
        self.bytes += more
        if self.bytes > self.peak_bytes:
            self.peak_bytes = self.bytes
            if self.bytes > self.most_bytes:
                raise checks.too_much_memory(self.bytes, self.options)

    def explained(self, error: Exception, number: int, frame: F) -> Exception:
        """What to raise for an error in a node: where it is, and which calls led there."""
        node = self.graph.nodes[number]
        if isinstance(error, InternalError):
            error.span = node.span
        elif isinstance(error, RunError):
            error.span, error.calls = node.span, checks.calls_of(self.graph, frame.tag())
        elif isinstance(error, MemoryError):
            calls = checks.calls_of(self.graph, frame.tag())
            return FrameLimit("out of memory", node.span, "set `memory` to limit the run", calls)
        else:
            return InternalError(f"{node.op} ({node.name}) failed: {type(error).__name__}: {error}", node.span)
        return error

    def counted(self, engine: str, fired: Sequence[int], dead: int, seconds: float) -> Stats:
        """What a run has counted; `fired`: live firings of each node."""
        return Stats(
            engine=engine,
            firings=sum(fired),
            dead_firings=dead,
            per_node=dict(zip((node.name for node in self.graph.nodes), fired, strict=True)),
            activations=self.activations,
            peak_frames=self.peak_frames,
            peak_bytes=self.peak_bytes,
            max_depth=self.deepest.depth,
            deepest_tag=self.deepest.tag(),
            seconds=seconds,
        )
