"""Encodes a static graph as rows: numbers for nodes and slots, and the consumers of every port."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from undertow.engines.checks import as_plain
from undertow.engines.frames import check_runnable, kernel_of
from undertow.engines.reference.rows import (
    CODES,
    COUNT,
    TAGGED,
    Kind,
    Layout,
    NumberedGraph,
    Out,
    Quiet,
    Row,
    SitePlan,
)
from undertow.errors import GraphError
from undertow.ir.budget import paced
from undertow.ir.graph import Const, Node, Port, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.structure import BACK, COLLECTED, COLLECTS, INWARD, SOURCES, STARTS
from undertow.ir.walk import phase_of, ports_of
from undertow.ops.effects import is_tagged
from undertow.ops.op import CATALOGUE

_ONE_OF_SEVERAL = ("merge", "hoist_read", "recv")  # these have one slot, however many inputs


def number_graph(graph: StaticGraph) -> NumberedGraph:
    """The plan of a graph; raises a GraphError if it cannot run."""
    return _Planner(graph).make()


@dataclass(slots=True, eq=False)
class _Edges:
    """The consumers of one port."""

    plain: list[tuple[int, int]] = field(default_factory=list)
    controls: list[int] = field(default_factory=list)
    gates: list[int] = field(default_factory=list)
    merges: list[tuple[int, int]] = field(default_factory=list)
    returns: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    exits: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    down: list[tuple[SitePlan, int]] = field(default_factory=list)
    lanes: list[tuple[int, int]] = field(default_factory=list)
    fetches: list[int] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)

    def out(self, is_array: bool) -> Out:
        up = {s: tuple(hits) for s, hits in (*self.returns.items(), *self.exits.items())}
        plain = (*self.plain, *((at, 0) for at in (*self.controls, *self.gates)))
        far = tuple(self.down), tuple(self.lanes), tuple(self.fetches), tuple(self.shared)
        stored = len(self.plain) + len(self.merges)
        weight = (stored or -1) if is_array else 0
        return Out(plain, tuple(self.merges), up or None, *far, weight, any(far))

    def quiet(self) -> Quiet:
        # Exit and Gather swallow dead tokens: a loop or map body sends none to its parent.
        up = {s: tuple(at for at, _ in hits) for s, hits in self.returns.items()}
        plain = (*(at for at, _ in self.plain), *self.controls)
        return Quiet(plain, tuple(self.gates), tuple(at for at, _ in self.merges), up or None, bool(self.fetches))


class _Planner:
    """Plans one graph: first places, then edges, then rows, then kinds of frames."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.index = StaticIndex(graph)
        check_runnable(self.index)
        self.home = self.index.bodies
        self.layouts = {number: Layout() for number, region in enumerate(graph.regions) if region.kind != "branch"}
        self.local = [0] * len(graph.nodes)  # the number of each node within its body
        self.first = [0] * len(graph.nodes)  # the first slot of each node
        self.edges = [[_Edges() for _ in node.types] for node in graph.nodes]
        self.sites: list[SitePlan] = []
        self.shared: dict[Port, int] = {}  # values of main that other bodies read

    def make(self) -> NumberedGraph:
        self.lay_out()
        self.connect()
        for number, node in enumerate(paced(self.graph.nodes)):
            self.layouts[self.home[number]].rows.append(self.row(number, node))
        first_ready = (self.local[n] for n, node in enumerate(self.graph.nodes) if node.op in SOURCES)
        return NumberedGraph(
            self.graph,
            self.index.phases,
            self.kinds(self.index.phases),
            tuple(first_ready),
            len(self.shared),
            any(node.op in ("send", "recv") or is_tagged(node.op) for node in self.graph.nodes),
        )

    # -- places --------------------------------------------------------------------------------------------

    def lay_out(self) -> None:
        """Give every node a number, a count and slots in its body, and every site a cell."""
        for number, node in enumerate(paced(self.graph.nodes)):
            layout = self.layouts[self.home[number]]
            self.local[number] = len(layout.nodes)
            self.first[number] = len(layout.slots)
            layout.nodes.append(number)
            layout.pend.append(self.count(node))
            if node.op in _ONE_OF_SEVERAL:
                layout.slots.append(None)
            else:
                layout.slots += [as_plain(i.value) if isinstance(i, Const) else None for i in node.inputs]
        for number, site in enumerate(self.graph.sites, 1):
            caller = self.layouts[self.index.owner[site.caller]]
            plan = SitePlan(number, caller.cell())
            if site.kind != "call":
                caller.contexts.append(plan.cell)
            if site.kind == "loop":
                plan.after = self.layouts[site.callee].cell()
            self.sites.append(plan)
        for number, node in self.index.of("recv"):
            layout = self.layouts[self.home[number]]
            layout.recvs.append((self.local[number], self.first[number], node.attrs.integer("edge")))
        for _, node in self.index.of("hoist"):
            plan = self.site(node)
            plan.hoisted = max(plan.hoisted, node.attrs.integer("index") + 1)

    def count(self, node: Node) -> int:
        """The number of tokens that a node waits for."""
        if self.index.is_parameter(node):
            return 1
        ports = ports_of((*node.inputs, *node.controls))
        if node.op == "hoist_read":
            if not node.controls or not node.inputs or len(ports) < len(node.inputs) + len(node.controls):
                raise GraphError(f"{node.name}: a hoist_read takes ports and a control edge", node.span)
            return 1 + len(node.controls)
        if len(ports) > COUNT:
            raise GraphError(f"{node.name} has more than {COUNT} inputs", node.span)
        return len(ports) + (node.op == "recv")

    # -- edges ---------------------------------------------------------------------------------------------

    def site(self, node: Node) -> SitePlan:
        self.index.site(node)  # raises if there is none
        return self.sites[node.attrs.integer("site") - 1]

    def connect(self) -> None:
        """Record the consumers of every port."""
        for number, node in enumerate(paced(self.graph.nodes)):
            for index, operand in enumerate(node.inputs):
                if isinstance(operand, Port):
                    self.connect_input(number, node, index, operand)
            for port in node.controls:
                edges = self.edges[port.node][port.index]
                (edges.gates if node.op in BACK else edges.controls).append(self.local[number])
        for index, port in enumerate(self.graph.fetches):
            self.edges[port.node][port.index].fetches.append(index)

    def connect_input(self, number: int, node: Node, index: int, port: Port) -> None:
        """Record one consumer."""
        at, slot = self.local[number], self.first[number]
        edges = self.edges[port.node][port.index]
        if node.op in BACK:
            plan = self.site(node)
            if node.op == "gather":
                edges.lanes.append((len(plan.gathers), phase_of(node)))
                plan.gathers.append((at, slot, phase_of(node)))
            else:
                hits = edges.returns if node.op == "return" else edges.exits
                hits.setdefault(plan.number, []).append((at, slot))
        elif node.op == "outer":
            plan = self.site(node)
            edges.down.append((plan, len(plan.outers)))
            plan.outers.append((at, slot))
        elif node.op == "hoist_read":
            self.connect_read(number, index, port)
        elif node.op == "merge":
            (edges.plain if self.count(node) == 1 else edges.merges).append((at, slot))
        else:
            edges.plain.append((at, slot + index))

    def connect_read(self, number: int, index: int, port: Port) -> None:
        """Record the readers of entry arguments and shared values, which are delivered when a frame is created."""
        layout, maker = self.layouts[self.home[number]], self.graph.nodes[port.node]
        at, slot = self.local[number], self.first[number]
        if maker.op != "hoist":
            if port not in self.shared:
                self.shared[port] = len(self.shared)
                self.edges[port.node][port.index].shared.append(self.shared[port])
            layout.shared_reads.append((at, slot, self.shared[port]))
        elif index == 0:
            layout.reads.append((at, slot, maker.attrs.integer("index")))

    # -- rows ----------------------------------------------------------------------------------------------

    def row(self, number: int, node: Node) -> Row:
        first, code = self.first[number], CODES.get(node.op)
        last = first + (1 if node.op in _ONE_OF_SEVERAL else len(node.inputs))
        held = {
            first + (0 if node.op in _ONE_OF_SEVERAL else index)
            for index, operand in enumerate(node.inputs)
            if isinstance(operand, Port) and self.graph.type_of(operand).shape and node.op != "gather"
        }
        outs = tuple(e.out(bool(t.shape)) for e, t in zip(self.edges[number], node.types, strict=True))
        quiet = tuple(edges.quiet() for edges in self.edges[number])
        extra: Any = None
        if node.op in STARTS:
            quiet = quiet[1:]  # a dead start begins nothing inside, but its Return nodes must know
        elif node.op in INWARD:
            quiet = ()
        if node.op in ("fan_start", "fan"):
            extra = self.site(node), phase_of(node)
        elif node.op in COLLECTED or node.op == "hoist":
            extra = self.site(node), node.attrs.integer("index")
        elif node.op in STARTS or node.op in INWARD:
            extra = self.site(node)
        elif node.op in COLLECTS:
            extra = node.attrs.integer("index")
        elif node.op == "input":
            extra = self.graph.inputs.index(number) + 1
        elif node.op == "start":
            extra = 0
        elif node.op == "gather":
            extra = node.types[0]
        elif node.op == "send":
            extra = node.attrs.integer("edge")
        elif is_tagged(node.op):
            code, extra = TAGGED, (CATALOGUE[node.op].tagged, node.attrs)
        elif code is None:
            code, extra = kernel_of(node)
        assert code is not None
        return Row(code, number, first, last, tuple(sorted(held)), outs, quiet, extra)

    # -- kinds ---------------------------------------------------------------------------------------------

    def kinds(self, phases: list[int]) -> Kind:
        """Main's kind of frame, and below it every kind that a run can create."""
        starts: dict[
            int, list[tuple[int, int, int]]
        ] = {}  # body -> (site, phase that it visits, phase that it waits for)
        fed: dict[int, list[int]] = {}  # map body -> the phases of the tokens fed to its lanes
        for number, node in enumerate(self.graph.nodes):
            if node.op in ("fan_start", "fan"):
                fed.setdefault(self.index.site(node).callee, []).append(phase_of(node))
            if node.op in STARTS:
                visit = self.site(node).number, phase_of(node), phases[number]
                starts.setdefault(self.home[number], []).append(visit)
        kinds: dict[tuple[int, int], Kind] = {}
        todo: list[Kind] = []

        def kind(region: int, visits: int) -> Kind:
            if (region, visits) not in kinds:
                layout = self.layouts[region]
                others = [row for row in layout.rows if phases[row.number] >= visits]
                left, unread = len(layout.rows) - len(others), tuple(slot for row in others for slot in row.held)
                left += sum(phase < visits for phase in fed.get(region, ()))
                is_call = self.graph.regions[region].kind == "function"
                kinds[region, visits] = Kind(region, visits, layout, left, unread, is_call)
                todo.append(kinds[region, visits])
            return kinds[region, visits]

        main = kind(0, 1)
        while todo:
            above = todo.pop()
            visits: dict[int, int] = {}  # site -> number of phases that a frame of this kind visits
            for site, phase, needed in starts.get(above.region, ()):
                if needed < above.visits:
                    visits[site] = max(visits.get(site, 0), phase + 1)
            for site, count in visits.items():
                above.below[site] = kind(self.graph.sites[site - 1].callee, count)
        return main
