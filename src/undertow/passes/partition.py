"""Placement by estimate: a part for each node of a static graph, so that few bytes cross and no part has all the work.

An operator has the work of `ops/work.py`, times how often it runs. A value that crosses costs a token and its bytes,
times how often it is made, for each part that needs it, as `cut` does it: once, however many operators there use it;
through calls, parameters, reads of outer and hoisted values to wherever it goes; a sum below an entry once for each
part that adds to it; a predicate to every part that has work in the branch, or in what is called there. Routes and the
choice of a replica are in every part and cost nothing.

How often something runs is not known, so it is guessed: main once; what a loop or map enters 16 times as often as what
is around; what is recursive 64 times as often as it is entered; a side of a branch half as often.

What reads or assigns variables, or acts on the world, is in part 0; else, what has a part keeps it. Several placements
are tried, one for each of some limits on how uneven the work may be, and bodies as a whole; that whose heaviest part
and crossings cost least wins. Everything in one part is always among them, so a graph that is not worth cutting stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from undertow.ir.budget import paced
from undertow.ir.graph import Node, Port, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.structure import COLLECTED, COLLECTS, STARTS, is_primitive
from undertow.ir.walk import components, ports_of
from undertow.ops.effects import acts, is_stateful
from undertow.ops.replicas import chosen_nodes
from undertow.ops.work import bytes_of, operations
from undertow.passes.cut import Owners
from undertow.passes.hypergraph import Net, divide, improve, joined
from undertow.types import CTL

_FIRING = 64  # operations that firing an operator costs
_TOKEN = 4096  # operations that a token costs: made up, sent and taken in, a microsecond or two
_BYTE = 4  # operations that a byte costs on its way
_LANES, _CALLS = 16, 64  # runs of what a loop or map enters, of what is recursive
_MOST_RUNS = 2.0**40
_SLACKS = (1.1, 1.5, 2.0)  # how much more than its share of the work a part may have
_MOST_PINS = 64  # of a value that more vertices need, this many are looked at, and all are counted in the end


@dataclass(frozen=True, slots=True)
class Crossing:
    """A value that crosses, and a guess how often, and how many bytes that are."""

    name: str
    source: int  # parts
    target: int
    tokens: float
    bytes: float

    @property
    def cost(self) -> float:
        return _TOKEN * self.tokens + _BYTE * self.bytes

    def __str__(self) -> str:
        return f"{self.name}: {self.source} -> {self.target}, {self.tokens:,.1f} tokens, {self.bytes:,.0f} bytes"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a placement is expected to cost. Inputs cross from part 0, and what is fetched crosses to it."""

    work: tuple[float, ...]  # operations, by part
    crossings: tuple[Crossing, ...]  # those that cost most come first

    @property
    def tokens(self) -> float:
        return sum(crossing.tokens for crossing in self.crossings)

    @property
    def bytes(self) -> float:
        return sum(crossing.bytes for crossing in self.crossings)

    @property
    def cost(self) -> float:
        """In operations: until the heaviest part is done, and all that crosses has arrived."""
        return max(self.work) + sum(crossing.cost for crossing in self.crossings)

    @property
    def shares(self) -> list[float]:
        """Of all work, by part."""
        total = sum(self.work) or 1.0
        return [work / total for work in self.work]

    def __str__(self) -> str:
        shares = ", ".join(f"part {k} {share:.0%}" for k, share in enumerate(self.shares))
        return f"work: {shares}; {self.tokens:,.1f} tokens cross, {self.bytes:,.0f} bytes"


def partition(graph: StaticGraph, count: int, kept: Mapping[int, int] | None = None) -> list[int]:
    """The part of each node, of `count`; `kept` are the parts of nodes that have one already."""
    kept = kept or {}
    fewest = max(kept.values(), default=0) + 1
    counts = [count]
    while counts[-1] > fewest:  # the search for many parts may miss what is best for few
        counts.append(max((counts[-1] + 1) // 2, fewest))
    found = [_Partition(graph, number, kept).run() for number in reversed(counts)]
    return min(found, key=lambda pair: pair[0])[1]


def estimate(graph: StaticGraph, places: Sequence[int], count: int) -> Estimate:
    """What a placement is expected to cost, and why."""
    return _Partition(graph, count, dict(enumerate(places))).estimate(range(count))


def runs_of(index: StaticIndex) -> list[float]:
    """By region: a guess how often it runs."""
    bodies = sorted(set(index.owner))
    below: dict[int, list[tuple[int, float]]] = {body: [] for body in bodies}  # bodies entered, how often
    halves = [0] * len(index.regions)
    for number, region in enumerate(index.regions):
        if region.kind == "branch" and region.parent is not None:
            halves[number] = min(halves[region.parent] + 1, 10)
    for site in index.sites:
        often = 0.5 ** halves[site.caller] * (1.0 if site.kind == "call" else _LANES)
        below[index.owner[site.caller]].append((site.callee, often))
    runs = dict.fromkeys(bodies, 0.0) | {0: 1.0}
    for group in reversed(components(bodies, lambda body: [callee for callee, _ in below[body]])):
        inside = set(group)
        if len(group) > 1 or any(callee in inside for callee, _ in below[group[0]]):
            entered = min(sum(runs[body] for body in group) * _CALLS, _MOST_RUNS)
            runs.update(dict.fromkeys(group, entered))
        for body in group:
            for callee, often in below[body]:
                if callee not in inside:
                    runs[callee] = min(runs[callee] + runs[body] * often, _MOST_RUNS)
    return [runs[body] * 0.5**half for body, half in zip(index.owner, halves, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Value:
    """A value that may cross: who makes it, how often, and where it goes."""

    name: str
    maker: int  # vertex
    runs: float
    bytes: int
    pins: frozenset[int]  # vertices that take it
    routes: frozenset[int]  # groups of routes that lead it on
    is_sum: bool = False  # does it go the other way?

    @property
    def weight(self) -> float:
        return self.runs * (_TOKEN + _BYTE * self.bytes)


class _Partition:
    """A graph as vertices and values. The first vertices are the parts: those of what is there already."""

    def __init__(self, graph: StaticGraph, count: int, kept: Mapping[int, int]) -> None:
        self.graph = graph
        self.nodes = graph.nodes
        self.count = count
        self.index = StaticIndex(graph)
        self.runs = runs_of(self.index)
        self.work: list[float] = [0.0] * count
        self.bodies: list[int] = [-1] * count  # of each vertex
        vertices = self.place_operators(kept)
        self.owners = Owners(self.index, vertices)
        self.vertices = self.owners.part_of  # by node; of joins, that of what they join
        self.takers: list[set[int]] = [set() for _ in range(len(self.nodes) + len(graph.regions))]  # by route
        self.leads: list[dict[int, None]] = [{} for _ in self.takers]  # by route: to which others
        self.values = self.find_values()

    # -- the graph as vertices and values ----------------------------------------------------------------------

    def place_operators(self, kept: Mapping[int, int]) -> list[int]:
        """A vertex for each operator; part 0 for all else."""
        vertices, chosen = [0] * len(self.nodes), chosen_nodes(self.graph)
        for number, node in enumerate(paced(self.nodes)):
            if number in chosen or not (is_primitive(node.op) or node.op in COLLECTS or node.op in COLLECTED):
                continue
            if node.op == "identity" and CTL in node.types:
                continue  # a route of order tokens
            operands = [self.graph.type_of(operand) for operand in node.inputs]
            work = self.runs[node.region] * (_FIRING + operations(node.op, operands, node.types))
            if is_stateful(node.op) or acts(node.op):
                vertices[number] = 0
            elif number in kept:
                vertices[number] = kept[number]
            else:
                vertices[number] = len(self.work)
                self.work.append(0.0)
                self.bodies.append(self.index.bodies[number])
            self.work[vertices[number]] += work
        return vertices

    def is_order(self, port: Port) -> bool:
        return self.graph.type_of(port) == CTL

    def is_made(self, port: Port) -> bool:
        """Is it made in one part, so that it crosses to others? Of order tokens, those of what acts."""
        node = self.nodes[port.node]
        if self.is_order(port):
            return is_primitive(node.op) and node.op != "identity"
        return node.op == "input" or self.owners.is_owned(port.node)

    def is_taker(self, node: Node, number: int) -> bool:
        """Does it take values where it is, and not hand them on to whoever uses them?"""
        if CTL in node.types and node.op not in COLLECTS and (node.op == "identity" or not is_primitive(node.op)):
            return False
        return node.op in COLLECTS or self.owners.is_owned(number)

    def find_values(self) -> list[_Value]:
        pins: dict[Port, set[int]] = {}
        routes: dict[Port, dict[int, None]] = {}

        def need(port: Port, vertex: int = -1, route: int = -1) -> None:
            """A vertex takes a value, or a route leads it on."""
            if port in self.owners.pivots or self.nodes[port.node].op in (*COLLECTS, "start"):
                return
            if self.is_made(port):
                if vertex >= 0:
                    pins.setdefault(port, set()).add(vertex)
                else:
                    routes.setdefault(port, {})[route] = None
            elif vertex >= 0:
                self.takers[port.node].add(vertex)
            else:
                self.leads[port.node][route] = None

        first = len(self.nodes)  # the routes of regions: where parts work
        for number, node in enumerate(paced(self.nodes)):
            is_taker = self.is_taker(node, number)
            vertex = self.vertices[number] if is_taker else -1
            for port in (*ports_of(node.inputs), *node.controls):
                need(port, vertex, number)
            if is_taker:
                self.takers[first + node.region].add(vertex)
            if node.op in COLLECTS or node.op in COLLECTED:
                for entry in self.entries_of(node):
                    hoist = self.index.hoists.get(entry, {}).get(node.attrs.integer("index"))
                    if hoist is not None:
                        self.takers[hoist].add(vertex)
            if node.op in STARTS:
                for port in ports_of(node.inputs):
                    need(port, route=first + self.index.site(node).callee)
        for number, region in enumerate(self.graph.regions):
            if region.parent is not None and region.kind == "branch":
                self.leads[first + region.parent][first + number] = None
                if region.pred is not None:
                    need(region.pred, route=first + number)
        for site in self.graph.sites:
            self.leads[first + site.caller][first + site.callee] = None
        for port in self.graph.fetches:
            need(port, 0)
        self.group_routes()
        group = self.group_of
        values = [
            _Value(
                self.label(port),
                0 if self.nodes[port.node].op == "input" else self.vertices[port.node],
                self.runs[self.index.region_of(port)],
                bytes_of(self.graph.type_of(port)),
                frozenset(pins.get(port, ())),
                frozenset(group[route] for route in routes.get(port, ())),
            )
            for port in dict.fromkeys((*pins, *routes))
        ]
        return values + self.sums()

    def label(self, port: Port) -> str:
        node = self.nodes[port.node]
        return node.name if len(node.types) == 1 else f"{node.name}.{port.index}"

    def entries_of(self, node: Node) -> Iterable[int]:
        return self.index.entry_sites(node.region) if node.op in COLLECTS else (node.attrs.integer("site"),)

    def sums(self) -> list[_Value]:
        """The sums below entries: each as a value that goes the other way, to those who add to it."""
        adders: dict[tuple[int, int], set[int]] = {}
        for op in COLLECTS:
            for number, node in self.index.of(op):
                for site in self.entries_of(node):
                    adders.setdefault((site, node.attrs.integer("index")), set()).add(self.vertices[number])
        found = []
        for op in COLLECTED:
            for number, node in self.index.of(op):
                key = node.attrs.integer("site"), node.attrs.integer("index")
                size = sum(map(bytes_of, node.types))
                pins = frozenset(adders.get(key, ()))
                found.append(
                    _Value(node.name, self.vertices[number], self.runs[node.region], size, pins, frozenset(), True)
                )
        return found

    def group_routes(self) -> None:
        """Routes that lead to each other, as one; each group comes after those that it leads to."""
        groups = components(range(len(self.leads)), self.leads.__getitem__)
        self.group_of = [0] * len(self.leads)
        for number, group in enumerate(groups):
            for route in group:
                self.group_of[route] = number
        self.group_takers = [frozenset(v for route in group for v in self.takers[route]) for group in groups]
        self.group_leads = [
            sorted({self.group_of[to] for route in group for to in self.leads[route]} - {number})
            for number, group in enumerate(groups)
        ]

    # -- nets --------------------------------------------------------------------------------------------------

    def nets(self) -> list[Net]:
        """Who needs what, for the search: of the takers of a value not more than can be looked at."""
        reached: list[frozenset[int]] = []
        for takers, leads in zip(paced(self.group_takers), self.group_leads, strict=True):
            reached.append(_few(takers.union(*(reached[to] for to in leads))))
        nets = []
        for value in paced(self.values):
            pins = _few(value.pins.union(*(reached[route] for route in value.routes)))
            nets.append(Net({value.maker: value.weight}, tuple(sorted(pins))))
        return joined(nets, range(len(self.work)))

    def needed_by(self, parts: Sequence[int]) -> Iterator[tuple[_Value, int]]:
        """The other parts that need each value, as bits, with every taker counted; `parts` by vertex."""
        reached: list[int] = []  # by group of routes: the parts that it leads to
        for takers, leads in zip(self.group_takers, self.group_leads, strict=True):
            bits = 0
            for vertex in takers:
                bits |= 1 << parts[vertex]
            for to in leads:
                bits |= reached[to]
            reached.append(bits)
        for value in paced(self.values):
            bits = 0
            for vertex in value.pins:
                bits |= 1 << parts[vertex]
            for route in value.routes:
                bits |= reached[route]
            bits &= ~(1 << parts[value.maker])
            if bits:
                yield value, bits

    def loads(self, parts: Sequence[int]) -> list[float]:
        work = [0.0] * self.count
        for vertex, part in enumerate(parts):
            work[part] += self.work[vertex]
        return work

    def cost(self, parts: Sequence[int]) -> float:
        return max(self.loads(parts)) + sum(value.weight * bits.bit_count() for value, bits in self.needed_by(parts))

    def estimate(self, parts: Sequence[int]) -> Estimate:
        crossings = []
        for value, bits in self.needed_by(parts):
            maker, size = parts[value.maker], value.runs * value.bytes
            for target in range(self.count):
                if bits >> target & 1:
                    source, target = (target, maker) if value.is_sum else (maker, target)
                    crossings.append(Crossing(value.name, source, target, value.runs, size))
        crossings.sort(key=lambda crossing: (-crossing.cost, crossing.name, crossing.target))
        return Estimate(tuple(self.loads(parts)), tuple(crossings))

    # -- the choice --------------------------------------------------------------------------------------------

    def run(self) -> tuple[float, list[int]]:
        """The cheapest of what is tried: its cost, and the part of each node."""
        anchors = list(range(self.count))
        tried = [anchors + [part] * (len(self.work) - self.count) for part in range(self.count)]
        free = len(self.work) - self.count
        if self.count > 1 and free and sum(self.work) > _TOKEN:  # else not worth a token
            nets = self.nets()
            tried += divide(self.work, nets, self.count, _SLACKS)
            tried.append(improve(self.work, nets, self.count, _SLACKS[1], self.whole_bodies()))
        cost, best = min(((self.cost(parts), parts) for parts in tried), key=lambda pair: pair[0])
        return cost, [best[vertex] for vertex in self.vertices]

    def whole_bodies(self) -> list[int]:
        """Each body in one part, the heaviest first, always where the least work is."""
        total: dict[int, float] = {}
        for vertex in range(self.count, len(self.work)):
            total[self.bodies[vertex]] = total.get(self.bodies[vertex], 0.0) + self.work[vertex]
        loads, part_of = self.work[: self.count], dict[int, int]()
        for body in sorted(total, key=lambda body: (-total[body], body)):
            part_of[body] = min(range(self.count), key=lambda part: (loads[part], part))
            loads[part_of[body]] += total[body]
        return [*range(self.count), *(part_of[body] for body in self.bodies[self.count :])]


def _few(vertices: frozenset[int]) -> frozenset[int]:
    """Not too many of them, from all over."""
    if len(vertices) <= _MOST_PINS:
        return vertices
    ordered = sorted(vertices)
    return frozenset(ordered[k * len(ordered) // _MOST_PINS] for k in range(_MOST_PINS))
