"""Flatten a library into the one static graph: calls become Call and Return nodes that change tags.

Each body is put into the graph once. A call with m arguments and k results becomes one `call_start`, m `call` and
k `return` nodes under one site number; each parameter becomes a `merge` over its Call nodes. Loops and maps become
Enter/Next/Exit and Fan/Gather in the same way. What is hoisted becomes one `hoist` node at each call that makes an
entry, and in each body that uses it a `hoist_read` over all of these. Nothing in the result depends on data.

A later phase of a call or map visits the same frames: its nodes have the same site, and carry their phase. It makes no
new lanes, so `fan_start` takes their number from the first phase, and each `fan` waits for it.

Devices: a node keeps its own; that of a call, loop or map stays on its start tokens, where `place` finds it.

Only what main can reach is flattened, and of each function only the phases that some site visits. The library must be
valid (`ir.spec`), except that functions may be declared but not defined: that is checked here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from undertow.errors import GraphError
from undertow.ir import budget
from undertow.ir.graph import (
    EMPTY,
    Attrs,
    Const,
    FunctionGraph,
    Library,
    Node,
    Operand,
    Port,
    Region,
    Site,
    StaticGraph,
)
from undertow.ir.names import Names, in_scope
from undertow.ir.structure import BODIES, COLLECTED, ENTERING, ENTERS, SOURCES
from undertow.ir.walk import arguments, link_of, node_phases, phase_attr, phase_of, port_regions
from undertow.types import CTL, Type, i64

_BATCH = 256  # nodes that are paid for at once


def flatten(library: Library, name: str = "") -> StaticGraph:
    """The static graph of a library, called `name`, or like its main function."""
    budget.start_step("flatten")
    return _Flattener(library).run(name or library.main)


# --------------------------------------------------------------------------------------------------------------
# Which phases are visited


def _visited(library: Library) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Of each reachable graph: how many phases some site visits, and the last phase that each node waits for."""
    visited: dict[str, int] = {library.main: 1}
    phases: dict[str, list[int]] = {}
    entering: dict[str, list[int]] = {}  # nodes that enter other graphs and have not been followed yet
    todo = deque([library.main])
    while todo:
        name = todo.popleft()
        graph = library.functions[name]
        if name not in phases:
            phases[name] = node_phases(graph)
            entering[name] = [n for n, node in enumerate(graph.nodes) if node.op in ENTERING]
        left: list[int] = []
        for number in entering[name]:
            if phases[name][number] >= visited[name]:
                left.append(number)
                continue
            target, phase = _target(library, graph, graph.nodes[number])
            if visited.get(target, 0) <= phase:
                visited[target] = phase + 1
                todo.append(target)
        entering[name] = left
    return visited, phases


def _target(library: Library, graph: FunctionGraph, node: Node) -> tuple[str, int]:
    """The graph and phase that a node enters, after a check that they exist and fit."""
    where = f"{graph.name}/{node.name}"
    first, phase, arguments = node, 0, len(node.inputs)
    if node.op == "resume":
        link = node.inputs[0] if node.inputs else None
        if not isinstance(link, Port) or graph.nodes[link.node].op not in ("call", "map"):
            raise GraphError(f"{where}: the first input of `resume` must be a `call` or `map`", node.span)
        first, phase, arguments = graph.nodes[link.node], phase_of(node), arguments - 1
    target = first.attrs.text(ENTERS[first.op])
    callee = library.functions.get(target)
    if callee is None:
        raise GraphError(
            f"{where} enters {target!r}, which is not in the library",
            node.span,
            hint="define the function before the graph is built; declaring it is not enough",
        )
    if callee.kind != BODIES[first.op]:
        raise GraphError(f"{where}: `{node.op}` cannot enter {target}, which is a {callee.kind} graph", node.span)
    if not 0 <= phase < len(callee.phases):
        raise GraphError(f"{where}: {target} has no phase {phase}", node.span)
    wanted, results = len(callee.phases[phase].params), len(callee.phases[phase].results)
    if node.op != "resume":
        wanted -= graph.omitted(callee)
    if node.op == "loop":
        results -= 1  # the predicate
    if arguments != wanted or len(node.types) != results:
        raise GraphError(
            f"{where}: {target} takes {wanted} and gives {results}, "
            f"but this `{node.op}` hands over {arguments} and takes {len(node.types)}",
            node.span,
        )
    if node.op == "map" and callee.carried == 0:
        raise GraphError(f"{where}: {target} has no mapped parameter, so the number of lanes is unknown", node.span)
    return target, phase


# --------------------------------------------------------------------------------------------------------------
# Nodes that are still being wired


class _StaticNode:
    """A node of the static graph that is still being wired: a copy of `like`, a node of the library, with changes.

    `ir.draft` writes nodes after what they use. Here a merge stands before the calls that it takes arguments from, so
    inputs refer to nodes that have no number yet, and are added as sites are found.
    """

    __slots__ = ("attrs", "body", "controls", "inputs", "name", "number", "op", "region", "span", "types")

    def __init__(
        self,
        op: str,
        body: _Body,
        like: Node,
        inputs: Iterable[_Source] = (),
        controls: Iterable[_Wire] = (),
        attrs: Attrs = EMPTY,
        name: str = "",
        types: tuple[Type, ...] | None = None,
        region: int | None = None,
    ) -> None:
        self.op, self.body, self.attrs, self.span = op, body, attrs, like.span
        self.inputs, self.controls = list(inputs), list(controls)
        self.name = name or like.name  # unique within the body; `region` counts within the body, too
        self.region = like.region if region is None else region
        self.types = like.types if types is None else types
        self.number = -1


_Wire = tuple[_StaticNode, int]
_Source = Const | _Wire
_Gate = tuple[_Wire, list[_Wire]]  # the pivot of a site, and the control edges that the user or a pass put on it


@dataclass(slots=True, eq=False)
class _Body:
    """One body in the static graph: a function, or a loop or map at its one site."""

    graph: FunctionGraph
    key: str  # its name in the library
    name: str  # its name in the static graph, unique
    visited: int  # number of phases that are visited
    phases: list[int]  # for each node, the last phase that it waits for
    above: _Body | None = None  # the body that a loop or map stands in, and where
    parent: int | None = None
    site: int = 0  # of a loop or map
    regions: list[Region] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # region -> static region, or -1 if it is not visited
    branches: dict[tuple[Port, int], tuple[int, int]] = field(default_factory=dict)
    own: dict[int, _StaticNode] = field(default_factory=dict)  # library node number -> its static node
    ports: dict[Port, _Source] = field(default_factory=dict)
    pivots: dict[tuple[int, int], _Wire] = field(default_factory=dict)  # by region and phase
    sites: dict[int, tuple[int, _Body]] = field(default_factory=dict)  # of each call and map
    exits: list[_StaticNode] = field(default_factory=list)  # of a loop, not wired to its variables yet

    def is_visited(self, node: int) -> bool:
        return self.phases[node] < self.visited


@dataclass(frozen=True, slots=True, eq=False)
class _Visit:
    """A loop, or one phase of a call or map, that is being wired."""

    body: _Body
    number: int  # of the call, loop, map or resume
    callee: _Body
    phase: int
    arguments: tuple[Operand, ...]
    start: _StaticNode
    gate: _Gate
    attrs: dict[str, int]  # of all its nodes: the site, and the phase if it is not the first


def _merged(first: Iterable[_Wire], then: Iterable[_Wire]) -> list[_Wire]:
    """All wires, without duplicates."""
    return list(dict.fromkeys((*first, *then)))


# --------------------------------------------------------------------------------------------------------------
# The pass


class _Flattener:
    """One run of the pass. Bodies are queued when a site first enters them, and wired one after the other."""

    def __init__(self, library: Library) -> None:
        self.library = library
        if library.main not in library.functions:
            raise GraphError(f"the library has no main graph {library.main!r}")
        self.visited, self.phases = _visited(library)
        self.functions: dict[str, _Body] = {}
        self.bodies: list[_Body] = []
        self.order: list[_StaticNode] = []  # placed nodes, in the order of the static graph
        self.sites: list[tuple[Site, _Body]] = []  # each with the body that it enters
        self.results: list[tuple[_StaticNode, _Body, Port]] = []  # Return nodes and the result that each waits for
        self.hoists: dict[tuple[str, int], list[_Source]] = {}  # (group, index) -> the Hoist nodes of its entries
        self.reads: list[tuple[_StaticNode, str, int]] = []  # (read, group, index); group "" is what main shares
        self.names = Names()
        self.region_count = 0

    def run(self, name: str) -> StaticGraph:
        main = self.body(self.library.main)
        todo = 0
        while todo < len(self.bodies):
            self.wire(self.bodies[todo])
            todo += 1
        for static, body, port in self.results:
            static.inputs.append(body.ports[port])
        for static, group, index in self.reads:
            static.inputs += self.hoists[group, index] if group else [main.ports[main.graph.shared[index]]]
        for number, static in enumerate(self.order):
            static.number = number
        return StaticGraph(
            nodes=tuple(self.freeze(static) for static in budget.paced(self.order)),
            regions=tuple(region for body in self.bodies for region in self.freeze_regions(body)),
            name=name,
            sites=tuple(replace(site, callee=callee.places[0]) for site, callee in self.sites),
            inputs=tuple(main.own[param].number for param in main.graph.params),
            fetches=tuple(self.freeze_port(main.ports[port]) for port in main.graph.results),
        )

    # -- bodies --------------------------------------------------------------------------------------------

    def body(self, name: str) -> _Body:
        """A new body, with nodes for its starts and parameters."""
        graph = self.library.functions[name]
        body = _Body(graph, name, self.names.fresh(name), self.visited[name], self.phases[name])
        body.regions = list(graph.regions)
        body.branches = graph.branches()
        if graph.kind in ("main", "function"):
            for phase, port in enumerate(graph.regions[0].starts[: body.visited]):
                body.pivots[0, phase] = self.reserve(body, port.node, graph.kind == "main")
            for phase, visit in enumerate(graph.phases[: body.visited]):
                for param in visit.params[: len(visit.params) - (0 if phase else graph.hoisted)]:
                    self.reserve(body, param, graph.kind == "main")
            self.read_entry(body)
        self.bodies.append(body)
        return body

    def function(self, name: str) -> _Body:
        """The body of a function: there is one, however many sites call it."""
        if name not in self.functions:
            self.functions[name] = self.body(name)
        return self.functions[name]

    def inner(self, kind: str, body: _Body, node: Node) -> _Body:
        """The body of a loop or map. It has one site, so a second node that names the same graph gets a copy."""
        name = node.attrs.text("body")
        around: _Body | None = body if name in self.names else None  # a first use cannot contain itself
        while around is not None:
            if around.key == name:
                raise GraphError(f"{body.name}/{node.name}: the {kind} {name} contains itself", node.span)
            around = around.above
        inner = self.body(name)
        inner.above, inner.parent = body, body.places[node.region]
        inner.site = self.site(kind, body, node, inner)
        return inner

    def read_entry(self, body: _Body) -> None:
        """A hoist_read for each hoisted parameter that the body uses; the others would fire for nothing."""
        graph = body.graph
        if not graph.hoisted:
            return
        used: set[Operand | None] = {region.pred for region in graph.regions}
        used.update(port for phase in graph.phases for port in phase.results)
        for node in graph.nodes:
            used.update(node.inputs)
            used.update(node.controls)
        for index, param in enumerate(graph.params[len(graph.params) - graph.hoisted :]):
            if Port(param) in used:
                static = _StaticNode("hoist_read", body, graph.nodes[param], controls=[body.pivots[0, 0]])
                body.own[param] = static
                body.ports[Port(param)] = static, 0
                self.reads.append((static, graph.group, index))

    def reserve(self, body: _Body, number: int, is_main: bool = False) -> _Wire:
        """The first output of the static node for a library node, which may not have been reached yet."""
        if number not in body.own:
            node = body.graph.nodes[number]
            op, attrs = node.op, node.attrs
            if op in SOURCES:
                if is_main:
                    op, attrs = ("start", EMPTY) if op == "start" else ("input", Attrs(index=attrs.integer("index")))
                else:
                    op, attrs = "merge", EMPTY
            body.own[number] = self.stand_in(body, number, _StaticNode(op, body, node, attrs=attrs))
        return body.own[number], 0

    def stand_in(self, body: _Body, number: int, static: _StaticNode) -> _StaticNode:
        """Let a static node give the values of a library node."""
        for index in range(len(static.types)):
            body.ports[Port(number, index)] = static, index
        return static

    def wire(self, body: _Body) -> None:
        """Put a body into the graph."""
        if body.graph.kind == "loop" and (body.graph.results[0], 0) not in body.branches:
            pred, count = body.graph.results[0], len(body.regions)
            body.regions += [Region("branch", f"while.{s}", 0, pred, s == "then") for s in ("then", "else")]
            body.branches[pred, 0] = count, count + 1
        for region in body.regions:
            is_visited = region.pred is None or body.is_visited(region.pred.node)
            body.places.append(self.region_count if is_visited else -1)
            self.region_count += is_visited
        for number, region in enumerate(body.regions):
            if region.kind == "branch":
                self.find_pivots(body, number, region)
        budget.pay(len(body.graph.nodes) % _BATCH)
        for number, node in enumerate(body.graph.nodes):
            if not number % _BATCH and number:
                budget.pay(_BATCH)
            if not body.is_visited(number):
                continue
            if node.op in SOURCES:
                if number in body.own:
                    self.order.append(body.own[number])
            elif node.op in ("call", "map", "resume"):
                self.wire_visit(body, number, node)
            elif node.op == "loop":
                self.wire_loop(body, number, node)
            elif node.op == "shared":
                static = _StaticNode("hoist_read", body, node, controls=self.controls(body, node))
                self.reads.append((self.place(self.stand_in(body, number, static)), "", node.attrs.integer("index")))
            elif node.op in COLLECTED:
                self.wire_collected(body, number, node)
            else:
                self.wire_plain(body, number, node)
        if body.graph.kind == "loop":
            self.close_loop(body)

    def find_pivots(self, body: _Body, number: int, region: Region) -> None:
        """Note the pivots that a branch region already has; the same Switch serves the other side."""
        assert region.pred is not None and region.parent is not None
        for port in region.starts:
            if body.is_visited(port.node):
                static, _ = self.reserve(body, port.node)
                phase = body.phases[port.node]
                body.pivots[number, phase] = static, port.index
                for side, other in enumerate(body.branches[region.pred, region.parent]):
                    if other >= 0:
                        body.pivots.setdefault((other, phase), (static, side))

    def pivot(self, body: _Body, region: int, node: int | None = None) -> _Wire:
        """The pivot of a region in the phase that `node` waits for; it is written where it is missing."""
        phase = 0 if node is None else body.phases[node]
        path: list[int] = []
        while (region, phase) not in body.pivots:
            path.append(region)
            above = body.regions[region].parent
            assert above is not None and body.regions[region].kind == "branch", "a body without a start"
            region = above
        while path:
            inner = path.pop()
            pred = body.regions[inner].pred
            assert pred is not None
            name = in_scope("start.if", body.regions, region)
            like = Node("switch", (), (CTL, CTL), name, region, span=body.graph.nodes[pred.node].span)
            switch = self.place(_StaticNode("switch", body, like, [body.ports[pred], body.pivots[region, phase]]))
            for side, number in enumerate(body.branches[pred, region]):
                if number >= 0:
                    body.pivots[number, phase] = switch, side
            region = inner
        return body.pivots[region, phase]

    # -- nodes ---------------------------------------------------------------------------------------------

    def place(self, static: _StaticNode) -> _StaticNode:
        self.order.append(static)
        return static

    def source(self, body: _Body, operand: Operand) -> _Source:
        return operand if isinstance(operand, Const) else body.ports[operand]

    def controls(self, body: _Body, node: Node) -> list[_Wire]:
        """The control edges of a node. An invariant that became a constant is present when its body's pivot is."""
        if not node.controls:
            return []
        wires: list[_Wire] = []
        for port in node.controls:
            source = body.ports[port]
            wires.append(self.pivot(body, 0) if isinstance(source, Const) else source)
        return _merged(wires, ())

    def wire_plain(self, body: _Body, number: int, node: Node) -> None:
        static, _ = self.reserve(body, number)
        static.inputs = [self.source(body, operand) for operand in node.inputs]
        static.controls = self.controls(body, node)
        if not static.controls and all(isinstance(source, Const) for source in static.inputs):
            static.controls = [self.pivot(body, node.region, number)]
        self.place(static)

    def site(self, kind: str, body: _Body, node: Node, callee: _Body) -> int:
        late = node.attrs.integer("late") if "late" in node.attrs else 0
        site = Site(kind, f"{body.name}/{node.name}", body.places[node.region], -1, node.span, late)
        self.sites.append((site, callee))
        return len(self.sites)

    def push(self, op: str, visit: _Visit, operand: Operand, param: int, index: int) -> _Wire:
        """A node that hands one argument on under a longer tag: call, hoist, enter or fan."""
        body, (pivot, controls) = visit.body, visit.gate
        node, source = body.graph.nodes[visit.number], self.source(body, operand)
        # An argument of an earlier phase must wait, or it would enter where this phase is never visited.
        is_early = isinstance(operand, Const) or body.phases[operand.node] < body.phases[visit.number]
        if is_early or isinstance(source, Const):
            controls = _merged((pivot,), controls)
        formal, attrs = visit.callee.graph.nodes[param], Attrs(index=index, **visit.attrs)
        static = _StaticNode(op, body, node, [source], controls, attrs, f"{node.name}.{formal.name}", formal.types)
        return self.place(static), 0

    def begin(self, op: str, body: _Body, number: int, node: Node, **attrs: int) -> tuple[_StaticNode, _Gate]:
        """The start token of a site: created under the pivot of the region that the site stands in."""
        gate = self.pivot(body, node.region, number), self.controls(body, node)
        controls = _merged((gate[0],), gate[1])
        own = Attrs(**attrs) | {key: node.attrs[key] for key in ("device",) if key in node.attrs}
        static = _StaticNode(op, body, node, (), controls, own, f"{node.name}.start", (CTL, CTL))
        return self.place(static), gate

    def pop(self, op: str, body: _Body, number: int, node: Node, start: _StaticNode, **attrs: int) -> list[_StaticNode]:
        """The nodes that bring the results back under the shorter tag: return, exit or gather."""
        back: list[_StaticNode] = []
        for index, type in enumerate(node.types):
            name = node.name if len(node.types) == 1 else f"{node.name}.{index}"
            back.append(_StaticNode(op, body, node, (), [(start, 1)], Attrs(index=index, **attrs), name, (type,)))
            body.ports[Port(number, index)] = self.place(back[-1]), 0
        return back

    def wire_visit(self, body: _Body, number: int, node: Node) -> None:
        """A call or map, or a later phase of one: the start token, the arguments and the results."""
        phase = phase_of(node)
        if node.op == "resume":
            site, callee = body.sites[link_of(node)]
        elif node.op == "call":
            callee = self.function(node.attrs.text("callee"))
            site = self.site("call", body, node, callee)
        else:
            callee = self.inner("map", body, node)
            site = callee.site
        body.sites[number] = site, callee
        is_map = callee.graph.kind == "map"
        attrs = {"site": site, **phase_attr(phase)}
        start, gate = self.begin("fan_start" if is_map else "call_start", body, number, node, **attrs)
        visit = _Visit(body, number, callee, phase, arguments(node), start, gate, attrs)
        if is_map:
            self.hand_to_lanes(visit)
        else:
            self.hand_to_function(visit)
        back = self.pop("gather" if is_map else "return", body, number, node, start, **attrs)
        self.results += zip(back, [callee] * len(back), callee.graph.phases[phase].results, strict=True)

    def hand_to_function(self, visit: _Visit) -> None:
        """One Call node for each argument, into the merge of its parameter; one Hoist for each that the entry keeps."""
        callee, graph = visit.callee, visit.callee.graph
        callee.pivots[0, visit.phase][0].inputs.append((visit.start, 0))
        params = graph.phases[visit.phase].params
        own = len(params) - (0 if visit.phase else graph.hoisted)
        for index, (operand, param) in enumerate(zip(visit.arguments, params, strict=False)):
            if index < own:
                callee.own[param].inputs.append(self.push("call", visit, operand, param, index))
            else:
                wire = self.push("hoist", visit, operand, param, index - own)
                self.hoists.setdefault((graph.group, index - own), []).append(wire)

    def hand_to_lanes(self, visit: _Visit) -> None:
        """One Fan node for each array. Its elements need no merge: a map body has one site."""
        lanes, graph, start = visit.callee, visit.callee.graph, visit.start
        start.types = (CTL, Type(i64))
        lanes.pivots[0, visit.phase] = start, 0
        lanes.ports[graph.regions[0].starts[visit.phase]] = start, 0
        params, mapped = graph.phases[visit.phase].params, len(visit.arguments)
        if visit.phase == 0:
            mapped = graph.carried
            start.inputs.append(self.source(visit.body, visit.arguments[0]))
            self.lend(visit.body, lanes, visit.arguments[mapped:], params[mapped:])
            self.read_entry(lanes)
        else:
            count = lanes.pivots[0, 0][0], 1
            start.inputs.append(count)
            visit = replace(visit, gate=(visit.gate[0], [count, *visit.gate[1]]))  # without lanes, no elements
        for index, (operand, param) in enumerate(zip(visit.arguments[:mapped], params, strict=False)):
            lanes.ports[Port(param)] = self.push("fan", visit, operand, param, index)

    def wire_collected(self, body: _Body, number: int, node: Node) -> None:
        """The sum of what was collected below the entry that a call made."""
        attrs = Attrs(site=body.sites[link_of(node)][0], index=node.attrs.integer("index"))
        value = self.source(body, node.inputs[1])
        static = _StaticNode(node.op, body, node, [value], self.controls(body, node), attrs)
        self.place(self.stand_in(body, number, static))

    def wire_loop(self, body: _Body, number: int, node: Node) -> None:
        loop = self.inner("loop", body, node)
        site = loop.site
        start, gate = self.begin("enter_start", body, number, node, site=site)
        pivot = loop.graph.regions[0].starts[0].node
        loop.pivots[0, 0] = self.reserve(loop, pivot)
        loop.own[pivot].inputs.append((start, 0))
        carried = loop.graph.carried
        params = loop.graph.params
        visit = _Visit(body, number, loop, 0, node.inputs, start, gate, {"site": site})
        for index, (operand, param) in enumerate(zip(node.inputs[:carried], params, strict=False)):
            self.reserve(loop, param)
            loop.own[param].inputs.append(self.push("enter", visit, operand, param, index))
        self.lend(body, loop, node.inputs[carried:], params[carried:])
        self.read_entry(loop)
        loop.exits = self.pop("exit", body, number, node, start, site=site)

    def close_loop(self, loop: _Body) -> None:
        """The way round and the way out: `next` where the predicate is true, `exit` where it is false."""
        graph, pred = loop.graph, loop.graph.results[0]
        then, _ = loop.branches[pred, 0]
        home = port_regions(graph)
        switches: dict[Operand, _StaticNode] = {
            node.inputs[1]: loop.own[number]
            for number, node in enumerate(graph.nodes)
            if node.op == "switch" and node.region == 0 and node.inputs[0] == pred
        }

        def switch(port: Port) -> _StaticNode:
            if port not in switches:
                node = graph.nodes[port.node]
                name, types = f"{node.name}.while", (node.types[port.index],) * 2
                inputs = [loop.ports[pred], loop.ports[port]]
                switches[port] = self.place(_StaticNode("switch", loop, node, inputs, name=name, types=types, region=0))
            return switches[port]

        def back(param: int, source: _Source) -> None:
            node = graph.nodes[param]
            name, attrs = f"{loop.regions[then].name}/{node.name}.next", Attrs(site=loop.site)
            static = _StaticNode("next", loop, node, [source], attrs=attrs, name=name, region=then)
            loop.own[param].inputs.append((self.place(static), 0))

        for param, exit in zip(graph.params, loop.exits, strict=False):
            exit.inputs.append((switch(Port(param)), 1))
        back(graph.regions[0].starts[0].node, self.pivot(loop, then))
        for param, port in zip(graph.params, graph.results[1:], strict=False):
            back(param, loop.ports[port] if home(port) == then else (switch(port), 0))

    def lend(self, body: _Body, inner: _Body, operands: Sequence[Operand], params: Sequence[int]) -> None:
        """Hand invariants to a loop or map: a constant as itself, anything else read from the parent's frame."""
        # Predicates and results must be ports: a constant used as one needs a node.
        named = {region.pred for region in inner.regions}
        named.update(port for phase in inner.graph.phases for port in phase.results)
        for operand, param in zip(operands, params, strict=False):  # hoisted ones are not handed over
            source, formal = self.source(body, operand), inner.graph.nodes[param]
            if isinstance(source, Const) and Port(param) not in named:
                inner.ports[Port(param)] = source
                continue
            static = _StaticNode("outer", inner, formal, [source], [inner.pivots[0, 0]], Attrs(site=inner.site))
            inner.own[param] = static
            inner.ports[Port(param)] = static, 0

    # -- the end -------------------------------------------------------------------------------------------

    def freeze(self, static: _StaticNode) -> Node:
        body = static.body
        inputs = tuple([s if isinstance(s, Const) else Port(s[0].number, s[1]) for s in static.inputs])
        controls = tuple([Port(other.number, index) for other, index in static.controls])
        name, region = self.names.fresh(f"{body.name}/{static.name}"), body.places[static.region]
        return Node(static.op, inputs, static.types, name, region, static.attrs, controls, static.span)

    def freeze_port(self, source: _Source) -> Port:
        assert not isinstance(source, Const), "a result that is a constant"
        return Port(source[0].number, source[1])

    def freeze_regions(self, body: _Body) -> list[Region]:
        starts: dict[int, dict[int, Port]] = {}
        for (number, phase), (static, index) in body.pivots.items():
            starts.setdefault(number, {})[phase] = Port(static.number, index)
        regions: list[Region] = []
        for number, region in enumerate(body.regions):
            if body.places[number] < 0:
                continue
            parent, pred, by_phase = body.parent, None, starts.get(number, {})
            if region.kind == "branch":
                assert region.parent is not None and region.pred is not None
                parent, pred = body.places[region.parent], self.freeze_port(body.ports[region.pred])
            pivots = tuple(by_phase[phase] for phase in sorted(by_phase))
            regions.append(Region(region.kind, region.name, parent, pred, region.side, pivots))
        return regions
