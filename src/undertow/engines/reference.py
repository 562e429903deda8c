"""The reference engine: the executable definition of what a static graph means. One firing at a time.

A *frame* holds the tokens of one tag: `slots` has a place for each input of each node of the body (constants are
there from the beginning), `pend` counts what each node still waits for. A node whose count has run out is *ready*
and waits in the pool; the scheduler picks the next. Branch regions share the frame of the body that they stand in.

How deadness is counted: a dead token takes one off a node's count and adds DEAD to it, so a node with any dead
input is ready at a multiple of DEAD, and one with live inputs only at 0. A merge over branches is ready (at 0) with
its first live token, or (at DEAD) when all are dead; whatever comes later takes it below 0.

A frame ends when each node of its body has fired once: live, dead, or swallowing a dead token. In a frame whose
site visits only some phases of its function, only the nodes of those phases count.

Longer than files here should be: the plan (first half) and the run (second half) share one private row format, and
the definition of the operators is meant to be read in one place.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from undertow.engines.contract import Options, Result, Stats
from undertow.errors import (
    Call,
    Fault,
    FrameLimit,
    GraphError,
    InternalError,
    RecursionLimit,
    RunError,
    Timeout,
    TypeMismatch,
)
from undertow.ir import trace
from undertow.ir.graph import Const, Node, Port, StaticGraph
from undertow.ir.walk import body_of, phase_of
from undertow.ops.op import CATALOGUE
from undertow.types import CTL, DType, Type, type_of

Value = Any  # a NumPy scalar or array of the declared type

DEAD = 1 << 20
_COUNT = DEAD - 1  # the part of `pend` that counts tokens
_GO = np.True_  # what a live order token carries
_BURST = 256  # firings between two looks at the clock
_NONE = object()  # no value yet

# What a row does when it fires. A forward hands its one value on: merge, return, exit, outer.
_KERNEL, _FORWARD, _SWITCH, _CALL, _CALL_START, _ENTER, _ENTER_START, _NEXT, _INPUT = range(9)
_FAN, _FAN_START, _GATHER, _KERNELS = range(9, 13)
_CODES = {
    "merge": _FORWARD,
    "return": _FORWARD,
    "exit": _FORWARD,
    "outer": _FORWARD,
    "switch": _SWITCH,
    "call": _CALL,
    "call_start": _CALL_START,
    "enter": _ENTER,
    "enter_start": _ENTER_START,
    "next": _NEXT,
    "start": _INPUT,
    "input": _INPUT,
    "fan": _FAN,
    "fan_start": _FAN_START,
    "gather": _GATHER,
}
_GATES = ("return", "exit", "gather")  # fire dead as soon as their control is dead
_ENTERING = ("call", "call_start", "enter", "enter_start", "next")  # a merge over these takes one token per frame
_DOWNWARD = ("call", "call_start", "enter", "enter_start", "fan", "fan_start")  # output 0 goes into a new frame
_LOUD = ("call_start", "enter_start", "fan_start")  # a dead one still tells the nodes that bring results back


class Reference:
    """The engine."""

    name = "reference"

    def plan(self, graph: StaticGraph) -> ReferencePlan:
        return ReferencePlan(graph)


# --------------------------------------------------------------------------------------------------------------
# The plan: rows of numbers, no names


class _Out(NamedTuple):
    """Where a live token of a port goes. Pairs are (node, slot), numbered within a body; slot 0 is never read."""

    plain: tuple[tuple[int, int], ...]
    merges: tuple[tuple[int, int], ...]
    up: dict[int, tuple[tuple[int, int], ...]] | None  # by the site of the frame: into the parent's frame
    down: tuple[tuple[_SitePlan, int], ...]  # the number of the invariant at a site
    lanes: tuple[int, ...]  # numbers of gathers
    fetches: tuple[int, ...]
    weight: int  # slots that it is stored in, if it is an array; -1: none, but it is an array
    is_far: bool  # does any of the last three exist?


class _Quiet(NamedTuple):
    """Where a dead token of a port goes."""

    plain: tuple[int, ...]
    gates: tuple[int, ...]
    merges: tuple[int, ...]
    up: dict[int, tuple[int, ...]] | None
    is_fetch: bool


class _Row(NamedTuple):
    """What happens when a node fires."""

    code: int
    number: int  # of the node in the graph
    first: int  # slots[first:last] are its inputs
    last: int
    held: tuple[int, ...]  # those slots that may hold arrays
    outs: tuple[_Out, ...]
    quiet: tuple[_Quiet, ...]
    extra: Any


@dataclass(slots=True, eq=False)
class _Edges:
    """The consumers of one port, while the plan is made."""

    plain: list[tuple[int, int]] = field(default_factory=list)
    controls: list[int] = field(default_factory=list)
    gates: list[int] = field(default_factory=list)
    merges: list[tuple[int, int]] = field(default_factory=list)
    returns: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    exits: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    down: list[tuple[_SitePlan, int]] = field(default_factory=list)
    lanes: list[int] = field(default_factory=list)
    fetches: list[int] = field(default_factory=list)

    def out(self, is_array: bool) -> _Out:
        up = {s: tuple(hits) for s, hits in (*self.returns.items(), *self.exits.items())}
        plain = (*self.plain, *((at, 0) for at in (*self.controls, *self.gates)))
        far = tuple(self.down), tuple(self.lanes), tuple(self.fetches)
        stored = len(self.plain) + len(self.merges)
        weight = (stored or -1) if is_array else 0
        return _Out(plain, tuple(self.merges), up or None, *far, weight, any(far))

    def quiet(self) -> _Quiet:
        # A dead token from a loop or map body is not for the parent: Exit and Gather swallow it.
        up = {s: tuple(at for at, _ in hits) for s, hits in self.returns.items()}
        plain = (*(at for at, _ in self.plain), *self.controls)
        return _Quiet(plain, tuple(self.gates), tuple(at for at, _ in self.merges), up or None, bool(self.fetches))


@dataclass(slots=True, eq=False)
class _Layout:
    """The frames of one body: what they look like when they begin."""

    nodes: list[int] = field(default_factory=list)
    pend: list[int] = field(default_factory=list)
    slots: list[Value] = field(default_factory=lambda: [None])
    rows: list[_Row] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)  # cells of loops and maps
    after: int = 0  # of a loop: the cell of the next iteration's frame

    def cell(self) -> int:
        self.slots.append(None)
        return len(self.slots) - 1

    @property
    def cost(self) -> int:
        """Bytes of a frame: the object, its two lists, and a NumPy scalar in every other slot."""
        return 320 + 8 * len(self.pend) + 24 * len(self.slots)


@dataclass(slots=True, eq=False)
class _SitePlan:
    """A site as rows see it."""

    number: int
    cell: int  # of the caller's frame: holds the callee's frame, or the context of a loop or map
    after: int = 0
    outers: list[tuple[int, int]] = field(default_factory=list)  # (node, slot) in the body entered
    gathers: list[tuple[int, int]] = field(default_factory=list)  # (node, slot) in the caller


@dataclass(slots=True, eq=False)
class _Kind:
    """A body as visited in a set of phases: all frames of a kind end after the same number of firings."""

    region: int
    layout: _Layout
    left: int
    is_call: bool
    below: dict[int, _Kind] = field(default_factory=dict)  # by site


class ReferencePlan:
    """A static graph as rows. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        owner = body_of(graph)
        self._home = [owner[node.region] for node in graph.nodes]
        self._owner = owner
        self._layouts = {number: _Layout() for number, region in enumerate(graph.regions) if region.kind != "branch"}
        self._local = [0] * len(graph.nodes)
        self._first = [0] * len(graph.nodes)
        self._edges = [[_Edges() for _ in node.types] for node in graph.nodes]
        self._sites: list[_SitePlan] = []
        self._lay_out()
        self._connect()
        for number, node in enumerate(graph.nodes):
            self._layouts[self._home[number]].rows.append(self._row(number, node))
        self.main = self._kinds()
        self.first_ready = [self._local[n] for n, node in enumerate(graph.nodes) if node.op in ("start", "input")]

    def run(self, inputs: Sequence[Result], options: Options | None = None) -> tuple[list[Result], Stats]:
        """Run until the fetches have arrived; the rest is abandoned."""
        results, stats, _ = self._run(inputs, options or Options(), drain=False)
        return results, stats

    def drain(self, inputs: Sequence[Result], options: Options | None = None) -> tuple[list[Result], Stats, int]:
        """Run until no token is left; also gives the number of frames that have not ended, which should be 0."""
        return self._run(inputs, options or Options(), drain=True)

    def _run(self, inputs: Sequence[Result], options: Options, drain: bool) -> tuple[list[Result], Stats, int]:
        values = self._check_inputs(inputs)
        with trace.recording(options.trace) as record:
            if record is not None:
                record(trace.RunStarted(self.graph.name, Reference.name))
            run = _Run(self, values, options, record)
            began, error = time.perf_counter(), ""
            try:
                # Integers wrap and floats follow IEEE, both without a word.
                with np.errstate(all="ignore"):
                    run.execute(drain)
            except BaseException as raised:
                error = f"{type(raised).__name__}: {getattr(raised, 'what', raised)}"
                raise
            finally:
                seconds = time.perf_counter() - began
                if record is not None:
                    record(trace.RunEnded(sum(run.fired), seconds, error))
        # A result may be an input, a constant, or a view of one: the user gets an array that is nobody else's.
        results = [np.array(v) if isinstance(v, np.ndarray) else v for v in run.results]
        return results, run.stats(seconds), len(run.live)

    def _check_inputs(self, inputs: Sequence[Result]) -> list[Value]:
        wanted = [self.graph.nodes[number] for number in self.graph.inputs]
        if len(inputs) != len(wanted):
            raise TypeMismatch(f"{self.graph.name or 'the graph'} takes {len(wanted)} inputs, not {len(inputs)}")
        values: list[Value] = []
        for value, node in zip(inputs, wanted, strict=True):
            array = np.asarray(value)
            if node.types[0] == CTL:
                values.append(_GO)
            elif not node.types[0].accepts(type_of(array)):
                raise TypeMismatch(f"{node.name} must be {node.types[0]}, not {type_of(array)}", node.span)
            else:
                values.append(_plain(array))
        return values

    def function_of(self, region: int) -> str:
        """The name of the function that a region belongs to, loops and maps left out."""
        regions = self.graph.regions
        while (parent := regions[region].parent) is not None:
            region = parent
        return regions[region].name

    # -- making the plan -----------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Give every node a number, a count and slots in its body, and every site a cell."""
        for number, node in enumerate(self.graph.nodes):
            layout = self._layouts[self._home[number]]
            self._local[number] = len(layout.nodes)
            self._first[number] = len(layout.slots)
            layout.nodes.append(number)
            ports = [operand for operand in (*node.inputs, *node.controls) if isinstance(operand, Port)]
            count = len(ports)
            if node.op == "merge":
                if node.controls or not all(isinstance(operand, Port) for operand in node.inputs):
                    raise GraphError(f"{node.name}: a merge takes ports only, and no control edges", node.span)
                layout.slots.append(None)
                if count and self.graph.nodes[ports[0].node].op in _ENTERING:
                    count = 1
            else:
                layout.slots += [_plain(i.value) if isinstance(i, Const) else None for i in node.inputs]
            if count == 0 and node.op not in ("start", "input"):
                raise GraphError(f"{node.name} has neither inputs nor a control edge: nothing triggers it", node.span)
            if count > _COUNT:
                raise GraphError(f"{node.name} has more than {_COUNT} inputs", node.span)
            layout.pend.append(count)
        for number, site in enumerate(self.graph.sites, 1):
            caller = self._layouts[self._owner[site.caller]]
            plan = _SitePlan(number, caller.cell())
            if site.kind != "call":
                caller.contexts.append(plan.cell)
            if site.kind == "loop":
                plan.after = self._layouts[site.callee].after = self._layouts[site.callee].cell()
            self._sites.append(plan)

    def _site(self, node: Node) -> _SitePlan:
        number = node.attrs.integer("site")
        if not 1 <= number <= len(self._sites):
            raise GraphError(f"{node.name} names site {number}, which does not exist", node.span)
        return self._sites[number - 1]

    def _lands(self, port: Port) -> int:
        """The body in whose frames a port's tokens arrive."""
        node = self.graph.nodes[port.node]
        if node.op in _DOWNWARD and port.index == 0:
            return self.graph.sites[self._site(node).number - 1].callee
        return self._home[port.node]

    def _connect(self) -> None:
        """Tell every port who consumes it."""
        for number, node in enumerate(self.graph.nodes):
            at, slot = self._local[number], self._first[number]
            for index, operand in enumerate(node.inputs):
                if not isinstance(operand, Port):
                    continue
                edges = self._edges[operand.node][operand.index]
                home = self._home[number]
                if node.op in _GATES:
                    site = self._site(node)
                    home = self.graph.sites[site.number - 1].callee
                    if node.op == "gather":
                        edges.lanes.append(len(site.gathers))
                        site.gathers.append((at, slot))
                    else:
                        hits = edges.returns if node.op == "return" else edges.exits
                        hits.setdefault(site.number, []).append((at, slot))
                elif node.op == "outer":
                    site = self._site(node)
                    home = self._owner[self.graph.sites[site.number - 1].caller]
                    edges.down.append((site, len(site.outers)))
                    site.outers.append((at, slot))
                elif node.op == "merge":
                    (edges.plain if self._pending(number) == 1 else edges.merges).append((at, slot))
                else:
                    edges.plain.append((at, slot + index))
                if self._lands(operand) != home:
                    source = self.graph.nodes[operand.node]
                    raise GraphError(f"an edge from {source.name} to {node.name} crosses frames", node.span)
            for port in node.controls:
                edges = self._edges[port.node][port.index]
                (edges.gates if node.op in _GATES else edges.controls).append(at)
                if self._lands(port) != self._home[number]:
                    source = self.graph.nodes[port.node]
                    raise GraphError(f"a control edge from {source.name} to {node.name} crosses frames", node.span)
        for index, port in enumerate(self.graph.fetches):
            if self._lands(port) != 0:
                raise GraphError(f"the fetch {self.graph.nodes[port.node].name} does not stand in the main graph")
            self._edges[port.node][port.index].fetches.append(index)

    def _pending(self, number: int) -> int:
        return self._layouts[self._home[number]].pend[self._local[number]]

    def _row(self, number: int, node: Node) -> _Row:
        first, code = self._first[number], _CODES.get(node.op)
        last = first + (1 if node.op == "merge" else len(node.inputs))
        held = [
            first + (0 if node.op == "merge" else index)
            for index, operand in enumerate(node.inputs)
            if isinstance(operand, Port) and self.graph.type_of(operand).shape and node.op != "gather"
        ]
        outs = tuple(e.out(bool(t.shape)) for e, t in zip(self._edges[number], node.types, strict=True))
        quiet = tuple(edges.quiet() for edges in self._edges[number])
        extra: Any = None
        if node.op in _DOWNWARD:
            quiet = quiet[1:] if node.op in _LOUD else ()
            extra = self._site(node)
        elif node.op == "next":
            quiet = ()
            extra = self._site(node)
        elif node.op == "input":
            extra = self.graph.inputs.index(number) + 1
        elif node.op == "start":
            extra = 0
        elif node.op == "gather":
            extra = node.types[0]
        elif code is None:
            if node.op not in CATALOGUE:
                raise GraphError(f"there is no operator named {node.op!r}", node.span)
            code = _KERNEL if len(node.types) == 1 else _KERNELS
            checks = tuple((t.dtype.numpy.type if not t.shape else None, t.dtype, t.rank) for t in node.types)
            extra = (CATALOGUE[node.op].eval, node.attrs, *(checks[0] if code == _KERNEL else (checks,)))
        assert code is not None
        return _Row(code, number, first, last, tuple(sorted(set(held))), outs, quiet, extra)

    def _kinds(self) -> _Kind:
        """Main's kind of frame, and below it every kind that a run can create."""
        masks = self._phase_masks()
        starts: dict[int, list[tuple[int, int]]] = {}  # by body: (site, its start node)
        visits: dict[int, list[tuple[int, int]]] = {}  # by site: (what a visit waits for, bit of its phase)
        for number, node in enumerate(self.graph.nodes):
            if node.op in _LOUD:
                site = self._site(node).number
                starts.setdefault(self._home[number], []).append((site, number))
                if node.op == "call_start":
                    visits.setdefault(site, []).append((masks[number], 1 << phase_of(node)))
        made: dict[tuple[int, int], _Kind] = {}
        todo: list[tuple[_Kind, int]] = []

        def kind(region: int, mask: int) -> _Kind:
            if (region, mask) not in made:
                layout = self._layouts[region]
                left = sum(not masks[number] & ~mask for number in layout.nodes)
                made[region, mask] = _Kind(region, layout, left, self.graph.regions[region].kind == "function")
                todo.append((made[region, mask], mask))
            return made[region, mask]

        main = kind(0, 1)
        while todo:
            above, mask = todo.pop()
            for site, number in starts.get(above.region, ()):
                if site not in above.below and not masks[number] & ~mask:
                    inner = 1
                    for needed, bit in visits.get(site, ()):
                        inner |= 0 if needed & ~mask else bit
                    above.below[site] = kind(self.graph.sites[site - 1].callee, inner)
        return main

    def _phase_masks(self) -> list[int]:
        """For each node, the phases of its body that it waits for, as bits; the first phase is always among them."""
        masks = [1] * len(self.graph.nodes)
        for number, node in enumerate(self.graph.nodes):
            source = node.inputs[0] if node.op == "merge" and node.inputs else None
            if not isinstance(source, Port) or self.graph.nodes[source.node].op not in ("call", "call_start"):
                continue
            phase = phase_of(self.graph.nodes[source.node])
            todo = [number] if phase else []
            layout = self._layouts[self._home[number]]
            while todo:
                at = todo.pop()
                if masks[at] >> phase & 1:
                    continue
                masks[at] |= 1 << phase
                for index, edges in enumerate(self._edges[at]):
                    if index > 0 or self.graph.nodes[at].op not in _DOWNWARD:
                        merges = (*edges.plain, *edges.merges)
                        todo += (layout.nodes[c] for c in (*(c for c, _ in merges), *edges.controls, *edges.gates))
        return masks


_NOWHERE = _Out((), (), None, (), (), (), 0, True)  # everything has been delivered; see whether the run is over


def _plain(array: Value) -> Value:
    """Scalars travel as NumPy scalars: arithmetic on those is much faster than on arrays without dimensions."""
    return array if array.ndim else array[()]


# --------------------------------------------------------------------------------------------------------------
# The run: tokens and frames


class _Frame:
    """The storage of one tag."""

    __slots__ = ("context", "depth", "index", "kind", "left", "number", "parent", "pend", "rows", "site", "slots")

    def __init__(
        self, kind: _Kind, parent: _Frame | None, site: int, index: int, context: _Context | None, number: int
    ) -> None:
        layout = kind.layout
        self.kind = kind
        self.rows = layout.rows
        self.pend = layout.pend[:]
        self.slots = layout.slots[:]
        self.left = kind.left  # nodes that have not fired
        self.parent = parent
        self.site = site  # 0 in main
        self.index = index  # of the iteration or lane; -1 in functions
        self.context = context
        self.number = number
        self.depth: int = 0 if parent is None else parent.depth + kind.is_call  # of nested calls

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


class _Context:
    """What the frames of one loop or map, entered from one frame, share."""

    __slots__ = ("cells", "first", "kind", "lacking", "lanes", "missing", "parent", "site", "values", "waiting")

    def __init__(self, parent: _Frame, site: _SitePlan) -> None:
        self.parent = parent
        self.site = site
        self.kind = parent.kind.below[site.number]
        self.values: list[Value] = [_NONE] * len(site.outers)  # the invariants that have arrived
        self.missing = len(site.outers)
        self.waiting: list[_Frame] = []  # frames that began before all invariants were there
        self.first: _Frame | None = None  # of a loop
        self.lanes: list[_Frame] | None = None  # of a map
        self.cells: list[list[Value]] = []  # of a map: the results so far, for each gather and lane
        self.lacking: list[int] = []  # of a map: how many results each gather still waits for


class _Run:
    """One run: the pool, the live frames and the counts."""

    def __init__(self, plan: ReferencePlan, values: list[Value], options: Options, record: trace.Record | None) -> None:
        self.plan = plan
        self.options = options
        self.record = record
        self.values = [_GO, *values]
        self.results: list[Value] = [None] * len(plan.graph.fetches)
        self.missing = len(self.results)
        self.fired = [0] * len(plan.graph.nodes)  # live firings
        self.dead = 0
        self.live: set[_Frame] = set()
        self.made = 0
        self.activations = 0
        self.peak_frames = 0
        self.held: dict[int, int] = {}  # slots that hold an array, by the identity of what owns its memory
        self.bytes = 0
        self.peak_bytes = 0
        self.most_frames = float("inf") if options.frames is None else options.frames
        self.most_bytes = float("inf") if options.memory is None else options.memory
        self.most_depth = float("inf") if options.max_depth is None else options.max_depth
        self.pool: deque[tuple[_Frame, int]] | list[tuple[_Frame, int]]
        self.pop: Callable[[], tuple[_Frame, int]]
        if options.scheduler == "fifo":
            self.pool = deque()
            self.pop = self.pool.popleft
        else:
            pool = self.pool = []
            self.pop = pool.pop if options.scheduler == "lifo" else _random_pop(pool, options.schedule_seed)
        self.push = self.pool.append
        self.main = self.deepest = _Frame(plan.main, None, 0, -1, None, 0)

    # -- the loop ------------------------------------------------------------------------------------------

    def execute(self, drain: bool) -> None:
        """Fire nodes until the fetches have arrived or, to drain, until nothing is left to fire."""
        self.open(self.main)
        for at in self.plan.first_ready:
            self.push((self.main, at))
        if drain or self.missing:
            self.loop(drain)
        if self.missing:
            raise self.deadlock()

    def loop(self, drain: bool) -> None:
        pool, pop, fired, record = self.pool, self.pop, self.fired, self.record
        deliver, release, is_strict = self.deliver, self.release, self.options.check_finite
        timeout = float("inf") if self.options.timeout is None else self.options.timeout
        deadline = time.perf_counter() + timeout
        frame, number, dead = self.main, 0, 0
        try:
            while pool:
                if time.perf_counter() > deadline:
                    raise Timeout(f"the run took longer than {timeout} s", hint="give it a longer `timeout`")
                for _ in repeat(None, _BURST):
                    if not pool:
                        break
                    frame, at = pop()
                    slots = frame.slots
                    code, number, first, last, held, outs, quiet, extra = frame.rows[at]
                    if frame.pend[at] > 0:
                        dead += 1
                        if held:
                            release(slots, held)
                        for token in quiet:
                            self.kill(frame, token)
                        if record is not None:
                            record(self.event(frame, number, False, [_NONE] * len(outs)))
                    else:
                        fired[number] += 1
                        target = frame
                        if code == _KERNEL:
                            kernel, attrs, want, type_, rank = extra
                            value = kernel(slots[first:last], attrs)[0]
                            if type(value) is not want:
                                value = _settle(value, type_, rank)
                            if is_strict:
                                self.check_finite(value, number)
                            out = outs[0]
                        elif code == _FORWARD:
                            value = slots[first]
                            out = outs[0]
                        elif code == _SWITCH:
                            value = slots[first + 1]
                            side = 0 if slots[first] else 1
                            out = outs[side]
                            self.kill(frame, quiet[1 - side])
                        elif code == _CALL:
                            value = slots[first]
                            target = slots[extra.cell] or self.call(frame, extra)
                            out = outs[0]
                        elif code == _CALL_START:
                            value = _GO
                            deliver(slots[extra.cell] or self.call(frame, extra), _GO, outs[0])
                            out = outs[1]
                        elif code == _NEXT:
                            value = slots[first]
                            target = slots[extra.after] or self.iterate(frame, extra)
                            out = outs[0]
                        elif code == _ENTER:
                            value = slots[first]
                            target = self.enter(frame, extra)
                            out = outs[0]
                        elif code == _ENTER_START:
                            value = _GO
                            deliver(self.enter(frame, extra), _GO, outs[0])
                            out = outs[1]
                        elif code == _INPUT:
                            value = self.values[extra]
                            out = outs[0]
                        elif code == _FAN_START:
                            value = np.int64(len(slots[first]))
                            for lane in self.spread(frame, extra, len(slots[first])):
                                deliver(lane, _GO, outs[0])
                            out = outs[1]
                        elif code == _FAN:
                            value = slots[first]
                            for element, lane in zip(value, self.spread(frame, extra, len(value)), strict=True):
                                deliver(lane, element, outs[0])
                            out = _NOWHERE
                        elif code == _GATHER:
                            value = self.gather(slots[first], extra)
                            slots[first] = None
                            out = outs[0]
                        else:
                            kernel, attrs, checks = extra
                            value = list(map(_settle_as, kernel(slots[first:last], attrs), checks))
                            for result, out in zip(value, outs, strict=True):
                                if is_strict:
                                    self.check_finite(result, number)
                                deliver(frame, result, out)
                            out = _NOWHERE
                        if held:
                            release(slots, held)
                        if record is not None:
                            shown = value if code == _KERNELS else [value] * len(outs)
                            if code == _SWITCH:
                                shown = [value if o is out else _NONE for o in outs]
                            record(self.event(frame, number, True, shown))
                        deliver(target, value, out)
                        if out.is_far and self.missing == 0 and not drain:
                            return
                    frame.left -= 1
                    if frame.left == 0:
                        self.close(frame)
        except RunError as error:
            error.span = self.plan.graph.nodes[number].span
            error.calls = self.calls(frame)
            raise
        except InternalError as error:
            error.span = self.plan.graph.nodes[number].span
            raise
        except MemoryError as error:
            node = self.plan.graph.nodes[number]
            raise FrameLimit("out of memory", node.span, "set `memory` to stop earlier", self.calls(frame)) from error
        except Exception as error:
            node = self.plan.graph.nodes[number]
            raise InternalError(
                f"{node.op} ({node.name}) failed: {type(error).__name__}: {error}", node.span
            ) from error
        finally:
            self.dead = dead

    # -- tokens --------------------------------------------------------------------------------------------

    def deliver(self, target: _Frame, value: Value, out: _Out) -> None:
        """Hand a live token to everyone who waits for it."""
        plain, merges, up, _, _, _, weight, is_far = out
        push, pend, slots = self.push, target.pend, target.slots
        if weight > 0:
            self.hold(value, weight)
        for at, slot in plain:
            slots[slot] = value
            count = pend[at] - 1
            pend[at] = count
            if not count & _COUNT:
                push((target, at))
        for at, slot in merges:
            if pend[at] > 0:
                slots[slot] = value
                pend[at] = 0
                push((target, at))
        if up is not None:
            hits = up.get(target.site, ())
            parent = target.parent
            assert parent is not None
            if weight and hits:
                self.hold(value, len(hits))
            slots, pend = parent.slots, parent.pend
            for at, slot in hits:
                slots[slot] = value
                count = pend[at] - 1
                pend[at] = count
                if not count & _COUNT:
                    push((parent, at))
        if is_far:
            self.deliver_far(target, value, out)

    def deliver_far(self, target: _Frame, value: Value, out: _Out) -> None:
        """The rarer ways: to invariants of loops and maps, to gathers, out of the run."""
        for site, number in out.down:
            context = self.context(target, site)
            context.values[number] = value
            context.missing -= 1
            if type(value) is np.ndarray:
                self.hold(value, 1)
            at, slot = site.outers[number]
            for frame in context.waiting:
                self.put(frame, at, slot, value)
            if context.missing == 0:
                context.waiting = []
        for number in out.lanes:
            lane = target.context
            assert lane is not None
            lane.cells[number][target.index] = value
            lane.lacking[number] -= 1
            if type(value) is np.ndarray:
                self.hold(value, 1)
            if lane.lacking[number] == 0:
                self.collect(lane, number)
        for number in out.fetches:
            self.results[number] = value
            self.missing -= 1

    def kill(self, target: _Frame, token: _Quiet) -> None:
        """Hand a dead token to everyone who waits for it."""
        plain, gates, merges, up, is_fetch = token
        push, pend = self.push, target.pend
        for at in plain:
            count = pend[at] + (DEAD - 1)
            pend[at] = count
            if not count & _COUNT:
                push((target, at))
        for at in gates:
            pend[at] = DEAD
            push((target, at))
        for at in merges:
            pend[at] -= 1
            if pend[at] == 0:
                pend[at] = DEAD
                push((target, at))
        if up is not None and target.site in up:
            parent = target.parent
            assert parent is not None
            for at in up[target.site]:
                parent.pend[at] += DEAD - 1
                if not parent.pend[at] & _COUNT:
                    push((parent, at))
        if is_fetch:
            raise RunError("a fetch is dead", hint="what is fetched must not stand in a branch")

    def put(self, frame: _Frame, at: int, slot: int, value: Value) -> None:
        """One token into one slot."""
        frame.slots[slot] = value
        if type(value) is np.ndarray:
            self.hold(value, 1)
        frame.pend[at] -= 1
        if not frame.pend[at] & _COUNT:
            self.push((frame, at))

    def hold(self, value: Value, times: int) -> None:
        """Count the memory of an array that waits in slots: once, in however many slots and views."""
        owner = value.base if isinstance(value.base, np.ndarray) else value
        before = self.held.get(id(owner), 0)
        self.held[id(owner)] = before + times
        if before == 0:
            self.grow(owner.nbytes)

    def release(self, slots: list[Value], held: Sequence[int]) -> None:
        for slot in held:
            value = slots[slot]
            if type(value) is np.ndarray:
                self.let_go(value)
                slots[slot] = None

    def let_go(self, value: Value) -> None:
        owner = value.base if isinstance(value.base, np.ndarray) else value
        left = self.held[id(owner)] - 1
        if left:
            self.held[id(owner)] = left
        else:
            del self.held[id(owner)]
            self.bytes -= owner.nbytes

    def grow(self, more: int) -> None:
        self.bytes += more
        if self.bytes > self.peak_bytes:
            self.peak_bytes = self.bytes
            if self.bytes > self.most_bytes:
                raise FrameLimit(
                    f"frames and the arrays in them take {self.bytes:,} bytes; memory={self.options.memory:,}",
                    hint="allow more `memory`, or work on less at once",
                )

    def check_finite(self, value: Value, number: int) -> None:
        if value.dtype.kind == "f" and not np.isfinite(value).all():
            what = "nan" if np.isnan(value).any() else "inf"
            raise Fault(
                f"{self.plan.graph.nodes[number].op} gave {what}", hint="run without check_finite to let it pass"
            )

    # -- frames --------------------------------------------------------------------------------------------

    def open(self, frame: _Frame) -> _Frame:
        """Let a frame begin, if the limits allow it."""
        kind = frame.kind
        self.made += 1
        self.live.add(frame)
        if len(self.live) > self.peak_frames:
            self.peak_frames = len(self.live)
            if self.peak_frames > self.most_frames:
                raise FrameLimit(
                    f"more than frames={self.options.frames} activations are alive at once",
                    hint="allow more `frames`, or see that every path comes to a base case",
                )
        if kind.is_call:
            self.activations += 1
            if frame.depth > self.deepest.depth:
                self.deepest = frame
                if frame.depth > self.most_depth:
                    raise RecursionLimit(
                        f"calls nest deeper than max_depth={self.options.max_depth}",
                        hint="see that every path comes to a base case, or allow a larger `max_depth`",
                    )
        if self.record is not None:
            parent = None if frame.parent is None else frame.parent.number
            self.record(trace.FrameStarted(frame.number, parent, frame.label, kind.region))
        self.grow(kind.layout.cost)
        if frame.left == 0:  # a lane that only hands its element back
            self.close(frame)
        return frame

    def close(self, frame: _Frame) -> None:
        """Every node has fired: the frame's storage goes."""
        for cell in frame.kind.layout.contexts:
            context = frame.slots[cell]
            if context is not None:
                for value in context.values:
                    if type(value) is np.ndarray:
                        self.let_go(value)
        self.live.discard(frame)
        self.bytes -= frame.kind.layout.cost
        frame.slots, frame.pend = [], []
        if self.record is not None:
            self.record(trace.FrameEnded(frame.number))

    def call(self, frame: _Frame, site: _SitePlan) -> _Frame:
        """The frame of a call that is entered for the first time: by its start token or by any argument."""
        callee = self.open(_Frame(frame.kind.below[site.number], frame, site.number, -1, None, self.made))
        frame.slots[site.cell] = callee
        return callee

    def context(self, frame: _Frame, site: _SitePlan) -> _Context:
        """What the frames of a loop or map share."""
        context: _Context | None = frame.slots[site.cell]
        if context is None:
            context = frame.slots[site.cell] = _Context(frame, site)
        return context

    def enter(self, frame: _Frame, site: _SitePlan) -> _Frame:
        """The frame of a loop's first iteration."""
        context = self.context(frame, site)
        if context.first is None:
            context.first = self.inside(context, 0)
        return context.first

    def iterate(self, frame: _Frame, site: _SitePlan) -> _Frame:
        """The frame of the iteration after this one."""
        assert frame.context is not None
        after = frame.slots[site.after] = self.inside(frame.context, frame.index + 1)
        return after

    def spread(self, frame: _Frame, site: _SitePlan, count: int) -> list[_Frame]:
        """The frames of the lanes of a map."""
        context = self.context(frame, site)
        if context.lanes is None:
            context.cells = [[None] * count for _ in site.gathers]
            context.lacking = [count] * len(site.gathers)
            context.lanes = [self.inside(context, index) for index in range(count)]
            if count == 0:
                for number in range(len(site.gathers)):
                    self.collect(context, number)
        if len(context.lanes) != count:
            raise Fault(
                f"a map over arrays of {len(context.lanes)} and of {count} elements",
                hint="mapped arrays must agree in their first dimension",
            )
        return context.lanes

    def inside(self, context: _Context, index: int) -> _Frame:
        """A frame of a loop or map, with the invariants that have arrived."""
        frame = self.open(_Frame(context.kind, context.parent, context.site.number, index, context, self.made))
        for (at, slot), value in zip(context.site.outers, context.values, strict=True):
            if value is not _NONE:
                self.put(frame, at, slot, value)
        if context.missing:
            context.waiting.append(frame)
        return frame

    def collect(self, context: _Context, number: int) -> None:
        """All lanes have given a result: hand the list to its Gather."""
        at, slot = context.site.gathers[number]
        self.put(context.parent, at, slot, context.cells[number])

    def gather(self, values: list[Value], type_: Type) -> Value:
        """The results of all lanes as one value."""
        if type_ == CTL:
            return _GO
        for value in values:
            if type(value) is np.ndarray:
                self.let_go(value)
        if not values:
            return np.zeros([0, *(d if isinstance(d, int) else 0 for d in type_.shape[1:])], type_.dtype.numpy)
        shapes = {value.shape for value in values}
        if len(shapes) > 1:
            raise Fault(
                f"lanes of a map gave results of unequal shapes: {', '.join(map(str, sorted(shapes)))}",
                hint="pad them to one shape",
            )
        return np.array(values, type_.dtype.numpy)

    # -- what to say about it ------------------------------------------------------------------------------

    def event(self, frame: _Frame, number: int, is_live: bool, values: Sequence[Value]) -> trace.Fired:
        shown = tuple(trace.DEAD if value is _NONE else trace.show_value(value) for value in values)
        return trace.Fired(frame.number, number, self.plan.graph.nodes[number].name, is_live, shown)

    def stats(self, seconds: float) -> Stats:
        names = (node.name for node in self.plan.graph.nodes)
        return Stats(
            engine=Reference.name,
            firings=sum(self.fired),
            dead_firings=self.dead,
            per_node=dict(zip(names, self.fired, strict=True)),
            activations=self.activations,
            peak_frames=self.peak_frames,
            peak_bytes=self.peak_bytes,
            max_depth=self.deepest.depth,
            deepest_tag=self.deepest.tag(),
            seconds=seconds,
        )

    def calls(self, frame: _Frame) -> tuple[Call, ...]:
        """The tag traceback of a frame, outermost call first."""
        graph = self.plan.graph
        found: list[Call] = []
        at = frame
        while at.parent is not None:
            site = graph.sites[at.site - 1]
            label = {"call": "", "loop": f" iteration {at.index}", "map": f"[{at.index}]"}[site.kind]
            found.append(Call(f"@{at.site}{label}", site.span, self.plan.function_of(site.caller)))
            at = at.parent
        return tuple(reversed(found))

    def deadlock(self) -> RunError:
        """Nothing can fire and a fetch is missing: say what waits, what has some of its tokens first."""
        nodes = self.plan.graph.nodes
        waiting: list[tuple[bool, str]] = []
        for frame in self.live:
            layout = frame.kind.layout
            for number, now, full in zip(layout.nodes, frame.pend, layout.pend, strict=True):
                left = now & _COUNT
                if now > 0 and left:
                    text = f"{nodes[number].name} under {trace.show_tag(frame.tag())}: {full - left} of {full} tokens"
                    waiting.append((left == full, text))
        waiting.sort()
        lines = [f"  {text}" for _, text in waiting[:10]]
        if len(waiting) > 10:
            lines.append(f"  ... and {len(waiting) - 10} more")
        missing = [nodes[p.node].name for p, v in zip(self.plan.graph.fetches, self.results, strict=True) if v is None]
        what = f"deadlock: no node can fire, but {', '.join(missing)} has not arrived. What waits:"
        return RunError("\n".join([what, *lines]), hint="the graph is not valid: see that every input is produced")


def _settle(value: Value, dtype: DType, rank: int) -> Value:
    """What a kernel gave, as a value of the declared type."""
    if dtype.kind == "ctl":
        return _GO
    array = np.asarray(value)
    if array.dtype != dtype.numpy:
        array = array.astype(dtype.numpy)
    if array.ndim != rank:
        raise InternalError(f"a kernel gave {array.ndim} dimensions where {rank} are declared")
    return array if rank else array[()]


def _settle_as(value: Value, check: tuple[type | None, DType, int]) -> Value:
    return _settle(value, *check[1:])


def _random_pop(pool: list[tuple[_Frame, int]], seed: int) -> Callable[[], tuple[_Frame, int]]:
    chance = random.Random(seed).random

    def pop() -> tuple[_Frame, int]:
        at = int(chance() * len(pool))
        pool[at], pool[-1] = pool[-1], pool[at]
        return pool.pop()

    return pop
