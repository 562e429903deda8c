"""From a static graph to a plan whose programs have no order yet.

Every value gets a slot of the region that it lives in; order tokens get none: what they order is said in `after`, until
the order of items says it. Names of operators, attributes and types become kernels, numbered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from undertow.ir.graph import Attrs, Const, Node, Operand, Port, StaticGraph
from undertow.ir.walk import components, phase_of
from undertow.ops.op import CATALOGUE
from undertow.plan import plan as data
from undertow.plan.items import BRANCH, CALL, COLLECT, COLLECTED, LOOP, MAP, OP, READ, GraphItem, Items
from undertow.plan.plan import NO_SLOT, Exit, Kernel, Merge, Plan, Program, Region, Slot, Transfer
from undertow.types import CTL, Type

_NOTHING = Const(np.False_)
KernelKey = tuple[str, Attrs, tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]
_NO_SLOTS = {"call", "enter", "next", "hoist", "call_start", "enter_start", "fan_start", "start"}
_ENDS = {"input", "merge", "return"}
ORDERS_ONLY = -1  # instead of a kernel: an operator that makes nothing but order tokens


def lower(graph: StaticGraph) -> Plan:
    """What happens in a graph, region by region, in no order."""
    return _Lowering(graph).run()


@dataclass(slots=True, eq=False)
class _Body:
    """What a body takes and gives, phase by phase: ports, without order tokens."""

    params: list[dict[int, Port]] = field(default_factory=list)  # by index
    results: list[dict[int, Port]] = field(default_factory=list)
    hoisted: int = 0  # values of its entry that it needs


class _Lowering:
    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.items = Items(graph)
        self.kernels: dict[KernelKey, int] = {}
        self.constants: dict[Const, int] = {}
        self.slots: dict[Port, int] = {}
        self.slot_rows: list[list[Slot]] = [[] for _ in graph.regions]
        self.slot_names: list[set[str]] = [set() for _ in graph.regions]
        self.groups = _groups(graph, self.items.owner)
        self.branch_numbers: dict[tuple[Port, int], int] = {}  # within the region
        self.site_numbers: dict[int, int] = {}  # of each site: within its region, among those of its kind
        self.bodies = {
            number: _Body([{} for _ in range(count)], [{} for _ in range(count)])
            for number, (region, count) in enumerate(zip(graph.regions, self.items.phase_count, strict=True))
            if region.kind != "branch"
        }
        self.loop_merges: dict[int, list[int]] = {}  # of each loop's body: its variables

    def run(self) -> Plan:
        self.number_things()
        self.taken = self.find_taken()
        self.find_slots()
        self.find_needs()
        names = region_names(self.graph, self.items.owner)
        regions = tuple(self.region(number, names[number]) for number in range(len(self.graph.regions)))
        groups = (data.Group(),) * (max(self.groups, default=0) + 1)
        kernels = tuple(Kernel(*key, acts_on_world(key[0])) for key in self.kernels)
        return Plan(self.graph.name, tuple(self.constants), kernels, groups, regions)

    # -- numbers and slots ---------------------------------------------------------------------------------

    def number_things(self) -> None:
        counts = [[0, 0, 0, 0] for _ in self.graph.regions]  # branches, calls, loops, maps
        for pred, parent in self.items.pairs:
            self.branch_numbers[pred, parent] = counts[parent][0]
            counts[parent][0] += 1
        for number, site in enumerate(self.graph.sites, 1):
            at = {"call": 1, "loop": 2, "map": 3}[site.kind]
            self.site_numbers[number] = counts[site.caller][at]
            counts[site.caller][at] += 1

    def find_slots(self) -> None:
        nodes, items = self.graph.nodes, self.items
        for number, node in enumerate(nodes):
            op, region = node.op, node.region
            if op in _NO_SLOTS:
                continue
            if op == "switch":
                for index in (0, 1):
                    port = Port(number, index)
                    if port in self.taken and not is_order(node.types[index]):
                        self.add_slot(port, items.region_of(port), node)
                continue
            if op == "fan":
                region = self.graph.sites[node.attrs.integer("site") - 1].callee
            for index, type_ in enumerate(node.types):
                if not is_order(type_):
                    self.add_slot(Port(number, index), region, node)
            if op in _ENDS:
                self.note_ends(number, node)

    def find_taken(self) -> set[Port]:
        """The outputs of switches that somebody uses."""
        nodes = self.graph.nodes
        ports = [x for node in nodes for x in node.inputs if x.__class__ is Port]
        ports += [region.pred for region in self.graph.regions if region.pred is not None]
        ports += self.graph.fetches
        return {port for port in ports if nodes[port.node].op == "switch"}

    def add_slot(self, port: Port, region: int, node: Node) -> None:
        rows = self.slot_rows[region]
        self.slots[port] = len(rows)
        rows.append(Slot(self.slot_name(region, node, port.index), node.types[port.index]))

    def slot_name(self, region: int, node: Node, index: int) -> str:
        """The last part of the node's name; with a number, where another slot of the region has that name."""
        short = node.name.rpartition("/")[2] or node.name
        if node.op == "switch":
            short = short.removesuffix(".if")
        elif index:
            short = f"{short}.{index}"
        names, name, count = self.slot_names[region], short, 1
        while name in names:
            count += 1
            name = f"{short}~{count}"
        names.add(name)
        return name

    def find_needs(self) -> None:
        """How many values of its entry a body needs, to read or to collect, itself or in what it enters."""
        graph, owner = self.graph, self.items.owner
        makers = {node.attrs.integer("site") for node in graph.nodes if node.op == "hoist"}
        for node in graph.nodes:
            if node.op in ("collect", "collect_rows"):
                body = self.bodies[owner[node.region]]
                body.hoisted = max(body.hoisted, node.attrs.integer("index") + 1)
            elif node.op == "hoist_read" and isinstance(node.inputs[0], Port):
                maker = graph.nodes[node.inputs[0].node]
                if maker.op == "hoist":
                    body = self.bodies[owner[node.region]]
                    body.hoisted = max(body.hoisted, maker.attrs.integer("index") + 1)
        handed = [
            (self.bodies[owner[site.caller]], self.bodies[site.callee])
            for number, site in enumerate(graph.sites, 1)
            if number not in makers
        ]
        has_changed = True
        while has_changed:
            has_changed = False
            for above, below in handed:
                if above.hoisted < below.hoisted:
                    above.hoisted, has_changed = below.hoisted, True

    def note_ends(self, number: int, node: Node) -> None:
        """What a node has to do with the arguments and results of a body."""
        graph = self.graph
        if node.types and is_order(node.types[0]):
            return
        if node.op == "input":
            self.bodies[0].params[0][node.attrs.integer("index")] = Port(number)
        elif node.op == "merge" and not self.items.is_branch_merge(node):
            maker = next(graph.nodes[x.node] for x in node.inputs if isinstance(x, Port))
            if maker.op == "call":
                phase, index = phase_of(maker), maker.attrs.integer("index")
                self.bodies[node.region].params[phase][index] = Port(number)
            else:
                self.loop_merges.setdefault(node.region, []).append(number)
        elif node.op == "return":
            body = self.bodies[graph.sites[node.attrs.integer("site") - 1].callee]
            source = node.inputs[0]
            assert isinstance(source, Port)
            body.results[phase_of(node)][node.attrs.integer("index")] = source

    def slot(self, operand: Operand) -> int:
        """The number of an operand: of a slot, or below zero of a constant."""
        if isinstance(operand, Const):
            return ~self.constants.setdefault(operand, len(self.constants))
        return self.slots[operand]

    def kernel(self, node: Node) -> int:
        return self.kernels.setdefault(kernel_of(self.graph, node), len(self.kernels))

    # -- regions and programs ------------------------------------------------------------------------------

    def region(self, number: int, name: str) -> Region:
        region, owner = self.graph.regions[number], self.items.owner[number]
        body = self.bodies[owner]
        programs = tuple(self.program(number, n, phase) for n, (phase, _) in enumerate(self.items.programs[number]))
        params: Sequence[Sequence[int]] = ()
        results: Sequence[Sequence[int]] = ()
        if number == 0:
            params = [[self.slots.get(Port(n), NO_SLOT) for n in self.graph.inputs]]
            results = [[self.slots.get(port, NO_SLOT) for port in self.graph.fetches]]
        elif region.kind != "branch":
            params = [[self.slots[ports[index]] for index in sorted(ports)] for ports in body.params]
            results = [[self.slots[ports[index]] for index in sorted(ports)] for ports in body.results]
        return Region(
            name,
            region.kind,  # type: ignore[arg-type]
            owner,
            self.groups[owner],
            body.hoisted,
            tuple(self.slot_rows[number]),
            programs,
            tuple(map(tuple, params)),
            tuple(map(tuple, results)),
        )

    def program(self, region: int, number: int, phase: int) -> Program:
        items = self.items.of_region.get((region, number), [])
        place = {item.key: n for n, item in enumerate(items)}
        graph = self.graph
        after: set[tuple[int, int]] = set()
        for n, item in enumerate(items):
            waits = [port for port in item.needs if is_order(graph.nodes[port.node].types[port.index])]
            if not waits and not item.orders:
                continue
            for port in (*waits, *item.orders):
                before = place.get(self.items.producer(port) or (), n)
                if before != n:
                    after.add((before, n))
        written = tuple([_WRITERS[item.kind](self, item) for item in items])
        return Program(phase, (), written, tuple(sorted(after)))

    # -- items ---------------------------------------------------------------------------------------------

    def op(self, item: GraphItem) -> data.Op:
        number = item.key[1]
        node = self.graph.nodes[number]
        if all(map(is_order, node.types)) and not acts_on_world(node.op):
            return data.Op(node.name, ORDERS_ONLY, (), ())
        slots = self.slots
        outputs = tuple([slots.get(Port(number, k), NO_SLOT) for k in range(len(node.types))])
        return data.Op(node.name, self.kernel(node), tuple([self.slot(x) for x in node.inputs]), outputs)

    def branch(self, item: GraphItem) -> data.Branch:
        _, node, index, parent, phase, turn = item.key
        pred = Port(node, index)
        visits = sorted(self.items.visits[pred, parent])
        nodes = self.graph.nodes
        transfers = tuple(
            tuple(
                Transfer(self.slot(nodes[n].inputs[1]), self.slots[Port(n, side)])
                for n in item.nodes
                if nodes[n].op == "switch" and Port(n, side) in self.slots
            )
            for side in range(2)
        )
        merges = tuple(
            Merge(self.slots[Port(n)], tuple(self.slot(x) for x in nodes[n].inputs))  # type: ignore[arg-type]
            for n in item.nodes
            if nodes[n].op == "merge" and Port(n) in self.slots
        )
        return data.Branch(
            self.branch_numbers[pred, parent],
            self.slots[pred],
            visits.index((phase, turn)),
            (phase, turn + 1) not in visits,
            self.items.pairs[pred, parent],
            transfers,  # type: ignore[arg-type]
            merges,
        )

    def by_index(self, item: GraphItem, op: str) -> list[tuple[int, int]]:
        """The nodes of an item with some operator, by their index."""
        nodes = self.graph.nodes
        return sorted((nodes[n].attrs.integer("index"), n) for n in item.nodes if nodes[n].op == op)

    def call(self, item: GraphItem) -> data.Call:
        _, number, phase = item.key
        site, nodes = self.graph.sites[number - 1], self.graph.nodes
        body = self.bodies[site.callee]
        calls = self.by_index(item, "call")
        arguments = {index: nodes[n].inputs[0] for index, n in calls if nodes[n].types[0] != CTL}
        taken = dict(self.by_index(item, "return"))
        return data.Call(
            site=number,
            call=self.site_numbers[number],
            phase=phase,
            callees=(site.callee,),
            selector=NO_SLOT,
            resume_group=0,
            arguments=tuple(self.slot(arguments[index]) for index in sorted(body.params[phase])),
            hoists=tuple(self.hoisted(nodes[n]) for _, n in self.by_index(item, "hoist")),
            results=tuple(
                self.slots.get(Port(taken[index]), NO_SLOT) if index in taken else NO_SLOT
                for index in sorted(body.results[phase])
            ),
            visits=self.visits(CALL, number, item.region) if phase == 0 else (),
        )

    def hoisted(self, hoist: Node) -> int:
        """What an entry is given; an order token has a place among these too, which nobody reads."""
        return self.slot(_NOTHING if hoist.types[0] == CTL else hoist.inputs[0])

    def visits(self, kind: int, site: int, region: int) -> tuple[int, ...]:
        """How many phases of what a site enters are visited, by how many of the caller's are, from one on."""
        counts = []
        for count in range(1, self.items.phase_count[self.items.owner[region]] + 1):
            phases = [
                item.key[2] + 1
                for phase in range(self.items.phase_count[self.items.owner[self.graph.sites[site - 1].callee]])
                if (item := self.items.items.get((kind, site, phase))) is not None and item.phase < count
            ]
            counts.append(max(phases, default=0))
        return tuple(counts)

    def outers(self, item: GraphItem) -> tuple[Transfer, ...]:
        nodes = self.graph.nodes
        outers = [n for n in item.nodes if nodes[n].op == "outer" and nodes[n].types[0] != CTL]
        return tuple(Transfer(self.slot(nodes[n].inputs[0]), self.slots[Port(n)]) for n in outers)

    def loop(self, item: GraphItem) -> data.Loop:
        number, nodes = item.key[1], self.graph.nodes
        body = self.graph.sites[number - 1].callee
        enters = {n for index, n in self.by_index(item, "enter") if nodes[n].types[0] != CTL}
        variables: list[Transfer] = []
        after: list[int] = []
        pred: Port | None = None
        for at in self.loop_merges.get(body, ()):
            enter, back = sorted(_ports(nodes[at].inputs), key=lambda x: x.node not in enters)
            variables.append(Transfer(self.slot(nodes[enter.node].inputs[0]), self.slots[Port(at)]))
            after.append(self.slot(nodes[back.node].inputs[0]))
        exits = []
        for at in item.nodes:
            if nodes[at].op == "exit":
                source = nodes[at].inputs[0]
                assert isinstance(source, Port)
                switch = nodes[source.node]
                pred = switch.inputs[0] if isinstance(switch.inputs[0], Port) else pred
                if Port(at) in self.slots:
                    exits.append(Exit(self.slot(switch.inputs[1]), self.slots[Port(at)]))
        if pred is None:
            pred = self.loop_predicate(body)
        return data.Loop(
            number,
            self.site_numbers[number],
            body,
            self.branch_numbers[pred, body],
            tuple(variables),
            self.outers(item),
            tuple(after),
            tuple(exits),
        )

    def loop_predicate(self, body: int) -> Port:
        """What decides whether a loop that gives nothing goes on: its next values stand in that branch."""
        for node in self.graph.nodes:
            if node.op == "next" and self.graph.regions[node.region].parent == body:
                pred = self.graph.regions[node.region].pred
                assert pred is not None
                return pred
        raise AssertionError("a loop without a way round")

    def map(self, item: GraphItem) -> data.Map:
        _, number, phase = item.key
        site, nodes = self.graph.sites[number - 1], self.graph.nodes
        starts = [n for n in item.nodes if nodes[n].op == "fan_start"]
        return data.Map(
            number,
            self.site_numbers[number],
            phase,
            site.callee,
            self.slot(nodes[starts[0]].inputs[0]) if phase == 0 else 0,
            tuple(
                Transfer(self.slot(nodes[n].inputs[0]), self.slots[Port(n)])
                for _, n in self.by_index(item, "fan")
                if Port(n) in self.slots
            ),
            self.outers(item),
            tuple(
                Exit(self.slot(nodes[n].inputs[0]), self.slots[Port(n)])
                for _, n in self.by_index(item, "gather")
                if Port(n) in self.slots
            ),
            self.visits(MAP, number, item.region) if phase == 0 else (),
        )

    def read(self, item: GraphItem) -> data.Read:
        node = self.graph.nodes[item.key[1]]
        if node.types[0] == CTL:
            return data.Read(NO_SLOT, 0, False)
        source = node.inputs[0]
        assert isinstance(source, Port)
        maker = self.graph.nodes[source.node]
        index = maker.attrs.integer("index") if maker.op == "hoist" else self.slots[source]
        return data.Read(self.slots[Port(item.key[1])], index, maker.op != "hoist")

    def collect(self, item: GraphItem) -> data.Collect:
        node = self.graph.nodes[item.key[1]]
        values = tuple(self.slot(x) for x in node.inputs)
        return data.Collect(node.name, node.attrs.integer("index"), "whole" if len(values) == 1 else "rows", values)

    def collected(self, item: GraphItem) -> data.Collected:
        number = item.key[1]
        node = self.graph.nodes[number]
        slots = tuple(self.slots.get(Port(number, k), NO_SLOT) for k in range(len(node.types)))
        call = self.site_numbers[node.attrs.integer("site")]
        return data.Collected(call, node.attrs.integer("index"), self.slot(node.inputs[0]), slots)


_WRITERS: dict[int, Callable[[_Lowering, GraphItem], data.Item]] = {
    OP: _Lowering.op,
    BRANCH: _Lowering.branch,
    CALL: _Lowering.call,
    LOOP: _Lowering.loop,
    MAP: _Lowering.map,
    READ: _Lowering.read,
    COLLECT: _Lowering.collect,
    COLLECTED: _Lowering.collected,
}


def kernel_of(graph: StaticGraph, node: Node) -> KernelKey:
    """The operator of a node, its attributes, and what a kernel knows of the types of its operands and results."""
    attrs = node.attrs
    if attrs and "device" in attrs:
        attrs = Attrs(**{key: value for key, value in attrs.items() if key != "device"})
    inputs = tuple([signature(graph.type_of(x)) for x in node.inputs])
    return node.op, attrs, inputs, tuple([signature(type_) for type_ in node.types])


def signature(type_: Type) -> tuple[str, int]:
    """All that a kernel knows of a type."""
    return type_.dtype.name, len(type_.shape)


def is_order(type_: Type) -> bool:
    """Is it an order token, which carries nothing?"""
    return type_.dtype is CTL.dtype


def acts_on_world(op: str) -> bool:
    """Does an operator print, assert, or read or write state?"""
    row = CATALOGUE[op]
    return row.effect or row.state is not None


def region_names(graph: StaticGraph, owner: Sequence[int]) -> list[str]:
    """Names of regions, that of a branch after its body: `fac/if1.else`; with a number where two would be equal."""
    names: list[str] = []
    taken: set[str] = set()
    for number, region in enumerate(graph.regions):
        name = region.name if owner[number] == number else f"{graph.regions[owner[number]].name}/{region.name}"
        if name in taken:
            name = f"{name}~{number}"
        taken.add(name)
        names.append(name)
    return names


def _ports(operands: Iterable[Operand]) -> list[Port]:
    return [operand for operand in operands if isinstance(operand, Port)]


def _groups(graph: StaticGraph, owner: Sequence[int]) -> list[int]:
    """A number for each region: equal for bodies that are recursive together, those that are called before others."""
    enters: dict[int, list[int]] = {}
    for site in graph.sites:
        enters.setdefault(owner[site.caller], []).append(site.callee)
    groups = components(sorted(set(owner)), lambda body: enters.get(body, ()))
    group = {body: number for number, bodies in enumerate(groups) for body in bodies}
    return [group[body] for body in owner]
