"""The base of the Python engines: which graphs they take, kernels, frames with tags and limits, and the run."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NoReturn, TypeVar

import numpy as np

from undertow.engines import checks, progress
from undertow.engines.checks import Value
from undertow.engines.contract import MAX_DEPTH, MAX_DEPTH_IN_PYTHON, Options, Result, State, Stats
from undertow.errors import GraphError, InternalError, RunError, TypeMismatch
from undertow.ir import trace
from undertow.ir.graph import Node, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.structure import BACK, SOURCES, STATIC
from undertow.ir.walk import ports_of
from undertow.ops.attributes import MOST_ELEMENTS
from undertow.ops.op import CATALOGUE
from undertow.types import Type, type_of

_FEW_BYTES = 1 << 16

# Kinds of catalogue nodes: one result, several results, access to variables.
KERNEL, KERNELS, STATE = range(3)


def kernel_of(node: Node) -> tuple[int, tuple[Any, ...]]:
    """Which of these, and (function, attributes, then what each result must be: scalar type or bytes, dtype, rank).

    The bytes of an array are -1 where its shape is known only at run time.
    """
    op = CATALOGUE[node.op]
    if op.tagged:
        raise GraphError(f"{node.name} depends on the tag, and this engine has none for it", node.span)
    code = STATE if op.state else KERNEL if len(node.types) == 1 else KERNELS
    wanted = tuple((_bytes_of(t) if t.shape else t.dtype.numpy.type, t.dtype, t.rank) for t in node.types)
    return code, (op.state or op.eval, node.attrs, *(wanted[0] if code == KERNEL else (wanted,)))


def _bytes_of(type_: Type) -> int:
    sizes = [d for d in type_.shape if isinstance(d, int)]
    return math.prod(sizes) * type_.dtype.numpy.itemsize if len(sizes) == type_.rank else -1


def _bytes_ahead(node: Node, values: Sequence[Value]) -> int:
    """How many bytes the result of an operator will take, as far as its operands tell; 0 if its kernel refuses it."""
    shape, item = node.attrs.get("shape"), node.types[0].dtype.numpy.itemsize
    if node.op == "arange":
        start, stop, step = (float(value) for value in values)
        count = (stop - start) / step if step else 0.0
        return int(count) * item if 0 < count <= MOST_ELEMENTS else 0
    if isinstance(shape, tuple) and None in shape:
        sizes = iter(values[1:])
        elements = math.prod(d if isinstance(d, int) else int(next(sizes)) for d in shape)
        return elements * item if 0 < elements <= MOST_ELEMENTS else 0
    # No other result is larger than all combinations of elements: the rule is asked only where these are many.
    most: int = math.prod(d or 1 for value in values for d in value.shape) * item
    if most <= _FEW_BYTES:
        return most
    try:
        (made, *_) = CATALOGUE[node.op].type([type_of(value) for value in values], node.attrs)
    except TypeMismatch:
        return 0
    return max(_bytes_of(made), 0)


def check_runnable(index: StaticIndex) -> None:
    """Raise a GraphError if nothing triggers a node, or an edge leads into a frame where nothing waits for it."""
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


class _Clock:
    """When a run began, when it must end, and whether it shows how far it has come."""

    # Not attributes of the run: on an object that has 30, CPython finds methods more slowly.
    __slots__ = ("began", "deadline", "shows")

    def __init__(self, options: Options) -> None:
        self.began = time.perf_counter()
        self.deadline = self.began + options.seconds_left()
        self.shows = options.progress

    def alarm(self, next_line: float) -> float:
        """When to look at the clock again."""
        return min(self.deadline, next_line) if self.shows else self.deadline

    def first_alarm(self) -> float:
        return self.alarm(self.began + progress.FIRST)


class PythonRun(Generic[F]):
    """One run: counts firings, frames and bytes, and enforces the limits.

    An array counts once, however many slots and views it has.
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
        self.fired = [0] * (
            len(graph.nodes) + 1
        )  # live firings by node; the last element counts steps that are not firings
        self.dead = 0
        self.clock = _Clock(options)
        self.started = 0
        self.activations = 0
        self.peak_frames = 0
        self.bytes = 0
        self.peak_bytes = 0
        self.held: dict[int, int] = {}  # id of the array that owns the memory -> number of slots that hold it
        self.most_frames = float("inf") if options.frames is None else options.frames
        self.most_bytes = float("inf") if options.memory is None else options.memory
        self.most_depth = float("inf") if options.max_depth is None else options.max_depth
        if options.max_depth == MAX_DEPTH:
            self.most_depth = MAX_DEPTH_IN_PYTHON

    def look(self) -> float:
        """Raise an error after the timeout, else show how far the run has come; returns when to look again."""
        now, clock = time.perf_counter(), self.clock
        if now > clock.deadline:
            raise checks.stopped("timeout", self.options)
        clock.shows = progress.show(now - clock.began, self.activations, 0, self.deepest.depth, self.bytes)
        return clock.alarm(now + progress.BETWEEN)

    def begin(self, frame: F, live: int, is_call: bool, region: int, cost: int) -> None:
        """Start a frame, if the limits allow it; `live` counts it among the live ones."""
        self.started += 1
        if live > self.peak_frames:
            self.peak_frames = live
            if live > self.most_frames:
                raise checks.stopped("frames", self.options)
        if is_call:
            self.activations += 1
            if frame.depth > self.deepest.depth:
                self.deepest = frame
                if frame.depth > self.most_depth:
                    why = "unasked_in_python" if self.options.max_depth == MAX_DEPTH else "depth"
                    raise checks.stopped(why, self.options, MAX_DEPTH_IN_PYTHON)
        if self.record is not None:
            parent = None if frame.parent is None else frame.parent.number
            self.record(trace.FrameStarted(frame.number, parent, frame.label, region))
        self.grow(cost)

    def hold(self, value: Value, times: int = 1) -> None:
        """Count an array that has been put into `times` slots."""
        owner = value.base if isinstance(value.base, np.ndarray) else value
        before = self.held.get(id(owner), 0)
        self.held[id(owner)] = before + times
        if before == 0:
            self.grow(owner.nbytes)

    def let_go(self, value: Value) -> None:
        """Count an array out that has been taken from one slot."""
        owner = value.base if isinstance(value.base, np.ndarray) else value
        left = self.held[id(owner)] - 1
        if left:
            self.held[id(owner)] = left
        else:
            del self.held[id(owner)]
            self.bytes -= owner.nbytes

    def let_go_all(self, values: Iterable[Value]) -> None:
        """`let_go` each of the values that is an array."""
        for value in values:
            if type(value) is np.ndarray:
                self.let_go(value)

    def release(self, slots: list[Value], held: Sequence[int]) -> None:
        """Empty those of the slots that hold arrays."""
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

    def foresee(self, number: int, size: int, values: Sequence[Value]) -> None:
        """Refuse an array that there is no memory for, before it is made."""
        more = size if size >= 0 else _bytes_ahead(self.graph.nodes[number], values)
        if self.bytes + more > self.most_bytes:
            raise checks.stopped("memory", self.options, self.bytes + more)

    def results_of(self, code: int, number: int, parts: Any, inputs: list[Value]) -> list[Value]:
        """The results of an operator that has several, or that accesses variables."""
        kernel, attrs, wanted = parts
        raw = kernel(self.state, inputs, attrs) if code == STATE else kernel(inputs, attrs)
        values = [checks.conform(value, dtype, rank) for value, (_, dtype, rank) in zip(raw, wanted, strict=True)]
        if self.options.check_finite:
            for value in values:
                checks.check_finite(value, self.graph.nodes[number].op)
        return values

    def fail(self, error: Exception, number: int, frame: F) -> NoReturn:
        """Raise an error of a node as the right class, with its source line and the calls that led there."""
        node, cause = self.graph.nodes[number], error
        is_ours = isinstance(error, RunError)  # some of ours are Python's too
        if isinstance(error, OSError) and not is_ours:
            raise error  # writing the trace, or the program's prints, failed: neither our fault nor the program's
        if isinstance(error, MemoryError) and not is_ours:
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
        """The counts of the run."""
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
            late=sum(site.late for site in self.graph.sites),
        )

    def execute(self, drain: bool = False) -> None:
        """Run until the `results` are there; with `drain`, until nothing is left to do."""
        raise NotImplementedError


class PythonPlan:
    """A static graph made ready for an engine in Python. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph, engine: str, rows: Any, start: Callable[..., PythonRun[Any]]) -> None:
        self.graph = graph
        self.engine = engine
        self.rows = rows  # what the engine runs
        self.start = start  # makes a run of these rows, the inputs, options, what records events, and variables

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run until the fetches have arrived; the rest is abandoned. `state` changes only if the run succeeds."""
        return self.execute(inputs, options or Options(), state)[1:]

    def execute(
        self, inputs: Sequence[Result], options: Options, state: State | None, drain: bool = False
    ) -> tuple[Any, list[Result], Stats]:
        """The finished run, its results and its counts."""
        values = checks.check_inputs(self.graph, inputs)
        with trace.recording(options.trace, self.graph.name, self.engine) as recording:
            run = self.start(self.rows, values, options, recording.record, state)
            try:
                # Integers wrap and floats follow IEEE 754, without warnings.
                with np.errstate(all="ignore"):
                    run.execute(drain)
            finally:
                progress.end()
                recording.firings = sum(run.fired[:-1])
        if state is not None:
            state.update(run.state)
        return run, [checks.own(value) for value in run.results], run.stats(self.engine, recording.seconds)
