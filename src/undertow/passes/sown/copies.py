"""Copies of the graphs below a collector, which give it what they sow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from undertow.errors import CaptureError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, Const, FunctionGraph, Node, Operand, Phase, Port
from undertow.ir.implied import param_node
from undertow.ir.sown import reaps
from undertow.ir.structure import ENTERS, SOWS
from undertow.ir.walk import link_of
from undertow.ops.term import Size, fitted, shaped
from undertow.passes.derive.activity import Activity, Request
from undertow.passes.derive.entries import NO_ENTRIES, Entries, find_entries
from undertow.passes.derive.writer import DerivativeWriter, joined_up
from undertow.passes.sown.ways import Collecting, Parts, Way, gathered, merged
from undertow.types import CTL, Type


@dataclass(frozen=True, slots=True, eq=False)
class Below:
    """The graphs that sow below a collector, and what becomes of them."""

    names: Mapping[str, str]  # of their copies
    root: str
    way: Way
    table: Type | None  # of the array that the collector hands down to them, if it does
    requests: Mapping[str, Request]  # the keys of `entries`
    entries: Entries

    @property
    def is_group(self) -> bool:
        return isinstance(self.way, Collecting)

    @property
    def is_handed_on(self) -> bool:
        """Is the array an argument of all calls?"""
        return self.table is not None and not self.is_group

    def hoisted(self, name: str) -> Mapping[int, int]:
        return self.entries.hoisted(self.requests[name])

    def arguments(self, node: Node, name: str) -> tuple[Operand, ...]:
        """The arguments of a call, loop or map of a graph that its copy takes as its own."""
        return tuple(x for index, x in enumerate(node.inputs) if index not in self.hoisted(name))


def below(
    functions: Mapping[str, FunctionGraph], root: str, names: Mapping[str, str], way: Way, table: Type | None
) -> Below:
    """What to copy for collectors around the graph `root`: `names` are the graphs below that sow."""
    requests = {name: Request(name, ((),), ((),)) for name in names}
    entries = NO_ENTRIES
    if isinstance(way, Collecting):
        visits = {requests[name]: Activity(frozenset(), _visits(functions[name], requests)) for name in names}
        entries = find_entries(requests[root], visits, functions, names[root])
    return Below(names, root, way, table, requests, entries)


def _visits(graph: FunctionGraph, requests: Mapping[str, Request]) -> dict[int, Request]:
    collectors = reaps(graph)
    return {
        number: requests[node.attrs.text(ENTERS[node.op])]
        for number, node in enumerate(graph.nodes)
        if node.op in ENTERS and number not in collectors and node.attrs[ENTERS[node.op]] in requests
    }


@dataclass(eq=False)
class Rewriting:
    """A graph in the making: its collectors become calls of copies; where it is `inside` one, it sows for that."""

    graph: FunctionGraph
    name: str
    collectors: Mapping[int, Below | None]  # by call; None where nothing is sown
    inside: Below | None = None
    parts: dict[int, list[Parts]] = field(default_factory=dict)  # by region
    variables: Parts = ()  # of a loop: what was sown so far
    tables: dict[int, tuple[Port, Port, Parts]] = field(default_factory=dict)  # by call: table, link, parts

    def __post_init__(self) -> None:
        self.draft = Draft(self.graph.kind, self.name)
        self.copy = Copy(self.graph, self.draft)
        self.writer = DerivativeWriter(self.draft, waits=False)
        self.seen: dict[int, Port] = {}  # the table handed down, by region

    def make(self) -> FunctionGraph:
        graph, copy, inside = self.graph, self.copy, self.inside
        first, carried = self.write_params()
        done = {graph.regions[0].starts[0].node, *graph.params}
        for number, node in enumerate(graph.nodes):
            if number not in done:
                self.put(number, node)
        results = [copy.ports[port] for port in graph.results]
        if inside is not None:
            results += self.all_parts(inside)
        made = self.draft.freeze(graph, [Phase(tuple(first), tuple(results))], carried)
        if inside is not None and inside.is_group:
            made = replace(made, group=inside.names[inside.root], hoisted=1 + len(inside.entries.params))
        return replace(made, name=self.name)

    def write_params(self) -> tuple[list[int], int]:
        """The parameters: as of the graph, a loop variable for each part, the table, and what is hoisted."""
        graph, copy, draft, inside = self.graph, self.copy, self.draft, self.inside
        copy.add(graph.regions[0].starts[0].node)
        hoisted = {} if inside is None else inside.hoisted(graph.name)
        kept = [param for index, param in enumerate(graph.params) if index not in hoisted]
        first = [copy.add(param, replace(graph.nodes[param], attrs=Attrs(index=k))) for k, param in enumerate(kept)]
        if inside is None:
            return first, graph.carried
        carried = graph.carried
        if graph.kind == "loop":
            variables = [draft.add(param_node(0, 0, "sown", type_, graph.span)) for type_ in inside.way.types]
            self.variables = tuple(map(Port, variables))
            first[carried:carried] = variables
            carried += len(variables)
        if inside.table is not None:
            first.append(draft.add(param_node(0, len(first), "places", inside.table, graph.span)))
            self.seen[0] = Port(first[-1])
        given = [draft.add(node) for node in inside.entries.params]
        first += given
        for k, number in enumerate(first):
            draft.nodes[number] = replace(draft.nodes[number], attrs=Attrs(index=k))
        for index, position in hoisted.items():
            own, term = Port(graph.params[index]), self.writer.term(Port(given[position]))
            self.writer.beside(graph.nodes[own.node], 0)
            copy.ports[own] = self.writer.port(fitted(term, graph.type_of(own)).operand)
        return first, carried

    def put(self, number: int, node: Node) -> None:
        if node.op in SOWS:
            if self.inside is not None and self.inside.table is not None:
                self.sow(node, self.inside)
        elif node.op == "reap" and link_of(node) in self.collectors:
            self.reap(number, node)
        elif number in self.collectors:
            self.collect(number, node, self.collectors[number])
        elif node.op in ENTERS and self.inside is not None and node.attrs[ENTERS[node.op]] in self.inside.names:
            self.enter(number, node, self.inside)
        else:
            self.copy.add(number, node)

    # -- inside a collector --------------------------------------------------------------------------------

    def table(self, inside: Below) -> Port:
        """The array that the collector has handed down, in the current region; the start token where there is none."""
        return Port(0) if inside.table is None else self.draft.bring(self.seen, self.writer.region, "places")

    def beside(self, node: Node) -> None:
        self.writer.beside(node, self.copy.place(node.region), name=node.name)

    def sow(self, node: Node, inside: Below) -> None:
        self.beside(node)
        writer, region = self.writer, self.writer.region
        place, value = map(self.copy.operand, node.inputs)
        parts = inside.way.sow(writer, self.table(inside), writer.port(place), writer.term(value))
        self.parts.setdefault(region, []).append(parts)

    def enter(self, number: int, node: Node, inside: Below) -> None:
        """Enter the copy instead of the original."""
        self.beside(node)
        key = ENTERS[node.op]
        target = node.attrs.text(key)
        if node.op == "tangent":
            raise CaptureError(
                "`ut.sow` below ut.jvp: what is sown there would have to be differentiated, too",
                node.span,
                hint="sow values of the function itself, outside of the derivative",
            )
        inputs = tuple(map(self.copy.operand, inside.arguments(node, target)))
        if node.op == "loop":
            carried = len(node.types)
            inputs = (*inputs[:carried], *inside.way.join(self.writer, self.table(inside), ()), *inputs[carried:])
        if inside.is_handed_on:
            inputs += (self.table(inside),)
        lanes = self.draft.type_of(inputs[0]).shape[:1] if node.op == "map" else ()
        types = [t if t == CTL else t.with_shape((*lanes, *t.shape)) for t in inside.way.types]
        parts = self.call(number, replace(node, attrs=node.attrs | {key: inside.names[target]}), inputs, types)
        if node.op == "map":
            parts = inside.way.of_lanes(self.writer, self.table(inside), parts)
        self.parts.setdefault(self.writer.region, []).append(parts)

    def call(self, number: int, node: Node, inputs: tuple[Operand, ...], types: list[Type]) -> Parts:
        """Write a call, loop or map that also gives what is for the collector."""
        count = len(node.types)
        made = self.copy.add_moved(number, replace(node, types=(*node.types, *types)), inputs, range(count))
        return tuple(Port(made, count + k) for k in range(len(types)))

    def all_parts(self, inside: Below) -> Parts:
        """What the graph gives back: of a loop, the next values of the variables for it."""
        writer, graph = self.writer, self.graph
        writer.span, writer.device, writer.name = graph.span, None, "sown"
        top = 0
        if graph.kind == "loop":
            pred = self.copy.ports[graph.results[0]]
            top = self.draft.pairs[pred, 0][0]
            now = tuple(self.draft.bring({0: port}, top, "sown") for port in self.variables)
            self.parts.setdefault(top, []).insert(0, now)

        def join(parts: list[Parts]) -> Parts:
            return inside.way.join(writer, self.table(inside), parts)

        return joined_up(writer, self.parts, join, lambda a, b: merged(writer, a, b), top)

    # -- collectors ----------------------------------------------------------------------------------------

    def collect(self, number: int, node: Node, below: Below | None) -> None:
        """A call that is a collector."""
        if below is None:
            self.copy.add(number, node)
            return
        reap = self.graph.nodes[reaps(self.graph)[number]]
        self.beside(reap)
        table = self.zeros(reap)
        inputs = *map(self.copy.operand, below.arguments(node, below.root)), table
        inputs += tuple(self.copy.operand(node.inputs[index]) for index in below.entries.indices)
        parts = self.call(
            number, replace(node, attrs=node.attrs | {"callee": below.names[below.root]}), inputs, list(below.way.types)
        )
        self.tables[number] = table, Port(parts[0].node), parts

    def zeros(self, reap: Node) -> Port:
        writer, type_ = self.writer, reap.types[0]
        zero = writer.term(Const(np.zeros((), type_.dtype.numpy)))
        first = type_.shape[0]
        lengths: list[Size] = [first if isinstance(first, int) else writer.term(self.copy.operand(reap.inputs[1]))]
        lengths += [n for n in type_.shape[1:] if isinstance(n, int)]
        return writer.port(shaped("fill", zero, lengths).operand)

    def reap(self, number: int, node: Node) -> None:
        self.beside(node)
        self.copy.ports[Port(number)] = (
            gathered(self.writer, *self.tables[link_of(node)], bool(node.attrs["add"]))
            if link_of(node) in self.tables
            else self.zeros(node)
        )
