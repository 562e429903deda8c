"""The base of the Python engines: which graphs they take, kernels, frames with tags and limits, and the run."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import Value
from undertow.engines.contract import Options, Result, State, Stats
from undertow.errors import GraphError, InternalError, RunError
from undertow.ir import trace
from undertow.ir.graph import Node, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.structure import BACK, SOURCES, STATIC
from undertow.ir.walk import ports_of
from undertow.ops.op import CATALOGUE

# How a node of the catalogue is evaluated: with one result, with several, on the variables of the run.
KERNEL, KERNELS, STATE = range(3)


def kernel_of(node: Node) -> tuple[int, tuple[Any, ...]]:
    """Which of these, and (function, attributes, then what each result must be: scalar type or None, dtype, rank)."""
    op = CATALOGUE[node.op]
    code = STATE if op.state else KERNEL if len(node.types) == 1 else KERNELS
    checks = tuple((None if t.shape else t.dtype.numpy.type, t.dtype, t.rank) for t in node.types)
    return code, (op.state or op.eval, node.attrs, *(checks[0] if code == KERNEL else (checks,)))


def check_runnable(index: StaticIndex) -> None:
    """Raise a GraphError where nothing triggers a node, or an edge leads into a frame in which nobody waits."""
    for number, node in enumerate(index.nodes):
        ports = ports_of(node.inputs)
        if node.op not in STATIC and node.op not in CATALOGUE:
            raise GraphError(f"unknown operator {node.op!r}", node.span)
        if node.op == "merge" and (node.controls or len(ports) < len(node.inputs)):
            raise GraphError(f"{node.name}: a merge takes only ports, and no control edges", node.span)
        if not ports and not node.controls and node.op not in SOURCES:
            raise GraphError(f"{node.name} has neither inputs nor a control edge: nothing triggers it", node.span)
        body = index.bodies[number]
        taken = index.site(node).callee if node.op in BACK else body  # where inputs arrive
        if node.op == "outer":
            taken = index.owner[index.site(node).caller]
        elif node.op == "hoist_read":
            taken = 0
        for port in ports:
            if index.lands(port) != taken and not (node.op == "hoist_read" and index.nodes[port.node].op == "hoist"):
                raise crosses_frames("an edge", index.nodes[port.node], node)
        for port in node.controls:
            if index.lands(port) != body:
                raise crosses_frames("a control edge", index.nodes[port.node], node)
    for port in index.graph.fetches:
        if index.lands(port) != 0:
            raise GraphError(f"the fetch {index.nodes[port.node].name} is not in the main graph")


def crosses_frames(edge: str, source: Node, target: Node) -> GraphError:
    return GraphError(f"{edge} from {source.name} to {target.name} crosses frames", target.span)


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


class PythonRun(Generic[F]):
    """One run: counts firings, frames and bytes, and refuses what is over a limit.

    An array counts once, whatever its slots and views.
    """

    results: list[Value]

    def __init__(
        self, graph: StaticGraph, main: F, options: Options, record: trace.Record | None, state: State | None
    ) -> None:
        self.graph = graph
        self.main = self.deepest = main
        self.options = options
        self.record = record
        self.state = dict(state or {})
        self.fired = [0] * (len(graph.nodes) + 1)  # live firings; the last one counts steps that are not firings
        self.dead = 0
        self.deadline = time.perf_counter() + options.seconds_left()
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
                raise checks.stopped("frames", self.options)
        if is_call:
            self.activations += 1
            if frame.depth > self.deepest.depth:
                self.deepest = frame
                if frame.depth > self.most_depth:
                    raise checks.stopped("depth", self.options)
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

    def let_go_all(self, values: Iterable[Value]) -> None:
        """The same, of those values that are arrays."""
        for value in values:
            if type(value) is np.ndarray:
                self.let_go(value)

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
                raise checks.stopped("memory", self.options, self.bytes)

    def results_of(self, code: int, number: int, parts: Any, inputs: list[Value]) -> list[Value]:
        """What an operator of several results gives, or one that works on variables."""
        kernel, attrs, wanted = parts
        raw = kernel(self.state, inputs, attrs) if code == STATE else kernel(inputs, attrs)
        values = [checks.conform(value, dtype, rank) for value, (_, dtype, rank) in zip(raw, wanted, strict=True)]
        if self.options.check_finite:
            for value in values:
                checks.check_finite(value, self.graph.nodes[number].op)
        return values

    def fail(self, error: Exception, number: int, frame: F) -> NoReturn:
        """Raise an error in a node as what it is, saying where it is and which calls led there."""
        node, cause = self.graph.nodes[number], error
        if isinstance(error, OSError):
            raise error  # the trace or what a program prints cannot be written: neither ours nor the program's fault
        if isinstance(error, MemoryError):
            error = checks.stopped("out_of_memory", self.options)
        if isinstance(error, RunError):
            error.span, error.calls = node.span, checks.calls_of(self.graph, frame.tag())
        elif isinstance(error, InternalError):
            error.span = node.span
        else:
            error = InternalError(f"{node.op} ({node.name}) failed: {type(error).__name__}: {error}", node.span)
        if error is cause:
            raise error
        raise error from cause

    def stats(self, engine: str, seconds: float) -> Stats:
        """What the run has counted."""
        fired = self.fired[:-1]
        return Stats(
            engine=engine,
            firings=sum(fired),
            dead_firings=self.dead,
            per_node=dict(zip((node.name for node in self.graph.nodes), fired, strict=True)),
            activations=self.activations,
            peak_frames=self.peak_frames,
            peak_bytes=self.peak_bytes,
            max_depth=self.deepest.depth,
            deepest_tag=self.deepest.tag(),
            seconds=seconds,
        )

    def execute(self, drain: bool = False) -> None:
        """Run until the `results` are there; to drain, until nothing is left to do."""
        raise NotImplementedError


class PythonPlan:
    """A static graph made ready for an engine in Python. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph, engine: str) -> None:
        self.graph = graph
        self.engine = engine

    def start(
        self, values: list[Value], options: Options, record: trace.Record | None, state: State | None
    ) -> PythonRun[Any]:
        """A run that has done nothing yet."""
        raise NotImplementedError

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run until the fetches have arrived; the rest is abandoned. `state` changes only if the run succeeds."""
        return self.execute(inputs, options or Options(), state)[1:]

    def execute(
        self, inputs: Sequence[Result], options: Options, state: State | None, drain: bool = False
    ) -> tuple[Any, list[Result], Stats]:
        """The run, when it has ended, its results, and what it counted."""
        values = checks.check_inputs(self.graph, inputs)
        with trace.recording(options.trace, self.graph.name, self.engine) as recording:
            run = self.start(values, options, recording.record, state)
            try:
                # Integers wrap and floats follow IEEE, both without a word.
                with np.errstate(all="ignore"):
                    run.execute(drain)
            finally:
                recording.firings = sum(run.fired[:-1])
        if state is not None:
            state.update(run.state)
        return run, [checks.own(value) for value in run.results], run.stats(self.engine, recording.seconds)
