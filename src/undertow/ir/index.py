"""Indexes of one graph: where its tokens live, which sites visit which regions; each is computed once, on first use.

`spec`, planners and engines share them. An index may rely on rules, so the rows of `spec` that use it come after the
rows that it relies on.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from undertow.errors import GraphError
from undertow.ir.budget import paced
from undertow.ir.graph import Const, FunctionGraph, Graph, Library, Node, Operand, Phase, Port, Site, StaticGraph
from undertow.ir.structure import BACK, ENTERS, LIBRARY, LINKED, PRIMITIVE, SITED, STARTS, STATIC, Structural
from undertow.ir.walk import (
    body_of,
    grouped,
    is_inward,
    is_parameter,
    link_of,
    node_phases,
    phase_of,
    port_regions,
    ports_of,
    reachable,
)
from undertow.types import Type


class GraphIndex:
    """The indexes of both function graphs and static graphs."""

    operators = LIBRARY

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes = graph.nodes
        self.regions = graph.regions

    def form(self, node: Node) -> Structural:
        return self.operators.get(node.op, PRIMITIVE)

    def exists(self, operand: Operand) -> bool:
        if isinstance(operand, Const):
            return True
        return 0 <= operand.node < len(self.nodes) and 0 <= operand.index < len(self.nodes[operand.node].types)

    def type(self, operand: Operand) -> Type:
        return self.graph.type_of(operand)

    @cached_property
    def _numbers(self) -> dict[str, list[int]]:
        return grouped((node.op, number) for number, node in enumerate(self.nodes))

    def of(self, op: str) -> Iterator[tuple[int, Node]]:
        """The nodes of one operator, with their numbers."""
        return ((number, self.nodes[number]) for number in self._numbers.get(op, ()))

    @cached_property
    def names(self) -> Counter[str]:
        return Counter(node.name for node in self.nodes)

    @cached_property
    def branches(self) -> dict[tuple[Port, int], tuple[int, int]]:
        """(predicate, enclosing region) -> the regions of the true and the false side."""
        return self.graph.branches()

    @cached_property
    def sides(self) -> Counter[tuple[Port | None, int | None, bool]]:
        return Counter((r.pred, r.parent, r.side) for r in self.regions if r.kind == "branch")

    @cached_property
    def owner(self) -> list[int]:
        """The body of each region."""
        return body_of(self.graph)

    @cached_property
    def bodies(self) -> list[int]:
        """The body of each node."""
        owner = self.owner
        return [owner[node.region] for node in self.nodes]

    @cached_property
    def region_of(self) -> Callable[[Port], int]:
        """The region of a port: that of its node, or the branch that a switch leads it into."""
        return port_regions(self.graph)

    def home(self, port: Port) -> int:
        """The region that a port's tokens live in."""
        return self.region_of(port)

    def lives(self, operand: Operand, region: int) -> bool:
        return isinstance(operand, Const) or self.home(operand) == region

    def side(self, region: int) -> tuple[int | None, bool] | None:
        """(parent, side) of a branch region; None for other regions."""
        found = self.regions[region]
        return (found.parent, found.side) if found.kind == "branch" else None

    @cached_property
    def phases(self) -> list[int]:
        """For each node, the last phase of its frame that it waits for."""
        return node_phases(self.graph)


class FunctionIndex(GraphIndex):
    """A function graph, and its library."""

    graph: FunctionGraph

    def __init__(self, graph: FunctionGraph, library: Library) -> None:
        super().__init__(graph)
        self.library = library

    def entered(self, node: Node) -> FunctionGraph | None:
        """The graph that a call, resume, loop, map or tangent enters; None if the library has none."""
        if node.op in LINKED:
            node = self.nodes[link_of(node)]
        name = node.attrs.get(ENTERS.get(node.op, ""))
        return self.library.functions.get(name) if isinstance(name, str) else None

    def callee(self, node: Node) -> FunctionGraph:
        """The same, for a node that is known to enter a graph."""
        callee = self.entered(node)
        assert callee is not None
        return callee

    def visit(self, node: Node) -> Phase:
        """The phase that a call, resume, loop, map or tangent begins."""
        return self.callee(node).phases[phase_of(node)]

    def params(self, node: Node) -> list[Type]:
        """The argument types of a call, resume, loop, map or tangent, without those that its entry already has."""
        callee = self.callee(node)
        types = [callee.nodes[param].types[0] for param in self.visit(node).params]
        if node.op == "tangent":
            return types + [types[index] for index in node.attrs.integers("given")]
        return types if node.op == "resume" else types[: len(types) - self.graph.omitted(callee)]

    def results(self, node: Node) -> list[Type]:
        """The types that the callee gives. A loop gives its variables: with no iteration, those that it was given."""
        callee = self.callee(node)
        if node.op == "loop":
            return [callee.nodes[param].types[0] for param in callee.params[: callee.carried]]
        given = [callee.type_of(port) for port in self.visit(node).results]
        if node.op == "tangent":
            return given + [given[index] for index in node.attrs.integers("wanted")]
        return given

    def hoisted(self, graph: FunctionGraph) -> list[Type]:
        """The types of an entry's hoisted arguments."""
        return [graph.nodes[param].types[0] for param in graph.params[len(graph.params) - graph.hoisted :]]

    def shared(self, node: Node) -> Type | None:
        """The type of the shared value that a node reads; None if there is none."""
        main, index = self.library.functions[self.library.main], node.attrs.integer("index")
        return main.type_of(main.shared[index]) if 0 <= index < len(main.shared) else None

    def collected(self, node: Node) -> Type | None:
        """The type of the entry's argument that a collect adds to, or a collected takes."""
        types = self.hoisted(self.callee(node) if node.op in LINKED else self.graph)
        index = node.attrs.integer("index")
        return types[index] if 0 <= index < len(types) else None

    @cached_property
    def gradients(self) -> Counter[int]:
        """How many gradients each call has."""
        return Counter(link_of(node) for _, node in self.of("gradient"))

    @cached_property
    def resumes(self) -> dict[tuple[int, int], list[int]]:
        """The resume nodes of each (call or map, later phase)."""
        return grouped(((link_of(node), phase_of(node)), number) for number, node in self.of("resume"))

    def before(self, node: Node) -> int | None:
        """The node that makes the visit before a resume's."""
        call, phase = link_of(node), phase_of(node) - 1
        return call if phase == 0 else self.resumes.get((call, phase), [None])[0]


@dataclass(slots=True, eq=False)
class Visit:
    """The nodes of one site and phase, by number."""

    starts: list[int] = field(default_factory=list)  # one, in a valid graph
    arguments: list[int] = field(default_factory=list)  # hoists among them
    backs: list[int] = field(default_factory=list)

    @property
    def start(self) -> int:
        return self.starts[0]


class StaticIndex(GraphIndex):
    """A static graph."""

    graph: StaticGraph
    operators = STATIC

    def __init__(self, graph: StaticGraph) -> None:
        super().__init__(graph)
        self.sites = graph.sites
        self._entry_sites: dict[int, frozenset[int]] = {}

    def site(self, node: Node) -> Site:
        """The site that a node belongs to."""
        number = node.attrs.integer("site")
        if not 1 <= number <= len(self.sites):
            raise GraphError(f"{node.name} names site {number}, which does not exist", node.span)
        return self.sites[number - 1]

    def home(self, port: Port) -> int:
        node = self.nodes[port.node]
        return self.site(node).callee if is_inward(node, port.index) else self.region_of(port)

    def lands(self, port: Port) -> int:
        """The body in whose frames a port's tokens arrive."""
        node = self.nodes[port.node]
        return self.site(node).callee if is_inward(node, port.index) else self.bodies[port.node]

    def waits_for(self, port: Port) -> int:
        """The last phase that a port's tokens wait for, of the frame in which they arrive."""
        node = self.nodes[port.node]
        return phase_of(node) if is_inward(node, port.index) else self.phases[port.node]

    def is_parameter(self, node: Node) -> bool:
        return is_parameter(self.graph, node)

    def visit_key(self, node: Node) -> tuple[int, int]:
        return node.attrs.integer("site"), phase_of(node)

    @cached_property
    def visits(self) -> dict[tuple[int, int], Visit]:
        """The operators of each (site, phase)."""
        visits: defaultdict[tuple[int, int], Visit] = defaultdict(Visit)
        for number, node in enumerate(paced(self.nodes)):
            if node.op in SITED and node.op != "next":
                visit = visits[self.visit_key(node)]
                parts = visit.starts if node.op in STARTS else visit.backs if node.op in BACK else visit.arguments
                parts.append(number)
        return dict(visits)

    @cached_property
    def starts(self) -> dict[tuple[int, int], list[int]]:
        """The start tokens of each (site, phase)."""
        return {key: visit.starts for key, visit in self.visits.items() if visit.starts}

    def before(self, node: Node) -> int | None:
        """The start token of the visit before a node's."""
        site, phase = self.visit_key(node)
        return self.starts.get((site, phase - 1), [None])[0]

    @cached_property
    def phase_count(self) -> list[int]:
        """The number of phases of each body: those that nodes wait for or that sites visit."""
        counts = [1] * len(self.regions)
        for body, phase in zip(self.bodies, self.phases, strict=True):
            if phase >= counts[body]:
                counts[body] = phase + 1
        for site, phase in self.visits:
            callee = self.sites[site - 1].callee
            counts[callee] = max(counts[callee], phase + 1)
        return counts

    def visits_of(self, site: int) -> list[tuple[int, Visit]]:
        """The phases in which a site is visited, and its operators in each."""
        phases = range(self.phase_count[self.sites[site - 1].callee])
        return [(phase, self.visits[site, phase]) for phase in phases if (site, phase) in self.visits]

    def visited(self, site: int) -> list[int]:
        """How many phases of its callee a site visits, if the caller is visited in its first 1, 2, ... phases."""
        visits = [(self.phases[visit.start], phase + 1) for phase, visit in self.visits_of(site)]
        counts = range(1, self.phase_count[self.owner[self.sites[site - 1].caller]] + 1)
        return [max((number for phase, number in visits if phase < count), default=0) for count in counts]

    @cached_property
    def sites_into(self) -> dict[int, list[int]]:
        """The sites that enter each body."""
        return grouped((site.callee, number) for number, site in enumerate(self.sites, 1))

    @cached_property
    def hoists(self) -> dict[int, dict[int, int]]:
        """Site that makes an entry -> index of an argument -> number of its hoist."""
        hoists: dict[int, dict[int, int]] = {}
        for number, node in self.of("hoist"):
            hoists.setdefault(node.attrs.integer("site"), {})[node.attrs.integer("index")] = number
        return hoists

    def entry_sites(self, region: int) -> frozenset[int]:
        """The sites that make the entries above a region; 0 means main, without an entry."""
        body = self.owner[region]
        if body not in self._entry_sites:

            def callers(at: int) -> list[int]:
                """The bodies that enter this one without making an entry."""
                sites = (number for number in self.sites_into.get(at, ()) if number not in self.hoists)
                return [self.owner[self.sites[number - 1].caller] for number in sites]

            bodies = reachable([body], callers)
            entries = {n for at in bodies for n in self.sites_into.get(at, ()) if n in self.hoists}
            self._entry_sites[body] = frozenset(entries | ({0} & bodies.keys()))
        return self._entry_sites[body]

    @cached_property
    def outers(self) -> dict[int, list[int]]:
        """Loop or map -> the nodes by which its body reads from the caller."""
        return self._by_site("outer")

    @cached_property
    def nexts(self) -> dict[int, list[int]]:
        """Loop -> the nodes that carry values into its next iteration."""
        return self._by_site("next")

    def _by_site(self, op: str) -> dict[int, list[int]]:
        return grouped((node.attrs.integer("site"), number) for number, node in self.of(op))

    @cached_property
    def carriers(self) -> Counter[tuple[object, ...]]:
        """How many nodes carry each argument and result of each visit."""
        nodes = (node for op in SITED if "index" in STATIC[op].integers for _, node in self.of(op))
        return Counter((node.op, *self.visit_key(node), node.attrs["index"]) for node in nodes)

    @cached_property
    def _uses(self) -> dict[Port, list[tuple[Node, bool]]]:
        return grouped(
            (port, (node, is_control))
            for node in self.nodes
            for is_control, operands in ((False, node.inputs), (True, node.controls))
            for port in ports_of(operands)
            if self.nodes[port.node].op in SITED
        )

    def uses(self, number: int, index: int = 0) -> list[tuple[Node, bool]]:
        """The consumers of an output of a sited operator, and whether they consume it by a control edge."""
        return self._uses.get(Port(number, index), [])
