"""From a static graph to a plan whose programs have no order yet.

Every value gets a slot of the region that it lives in. Order tokens get none: they become pairs in `after`, which
`order` turns into the order of items. Operators with their attributes and types become numbered kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from undertow.errors import GraphError
from undertow.ir.budget import paced
from undertow.ir.graph import Attrs, Const, Node, Operand, Port, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.names import Names
from undertow.ir.structure import COLLECTS, INWARD, STARTS
from undertow.ir.walk import components, phase_of, ports_of
from undertow.ops.effects import is_tagged
from undertow.ops.op import CATALOGUE
from undertow.plan import plan as data
from undertow.plan.items import (
    BRANCH,
    CALL,
    COLLECT,
    COLLECTED,
    LOOP,
    MAP,
    OP,
    READ,
    RECV,
    SEND,
    GivenTurns,
    GraphItem,
    Items,
)
from undertow.plan.plan import NO_SLOT, Exit, Kernel, Merge, Plan, Program, Region, Slot, Transfer
from undertow.types import CTL, Type

_NOTHING = Const(np.False_)
KernelKey = tuple[str, Attrs, tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]
_NO_SLOTS = {*INWARD, *STARTS, "start"} - {"fan"}  # a fan's value has a slot, in the lanes
_ENDS = {"input", "merge", "return"}
ORDERS_ONLY = -1  # in place of a kernel: an operator whose results are all order tokens


def lower(graph: StaticGraph) -> Plan:
    """The plan of a graph, region by region, with unordered items."""
    return Lowering(graph).run()


@dataclass(slots=True, eq=False)
class _Body:
    """The parameters and results of a body, by phase: ports, without order tokens."""

    params: list[dict[int, Port]] = field(default_factory=list)  # by index
    results: list[dict[int, Port]] = field(default_factory=list)
    hoisted: int = 0  # number of values of its entry that it needs


class Lowering:
    """A plan in the making. Of a part, turns are given, and the labels of its sites are those of the whole graph.

    Only parts, and the whole that they are parts of, may make choices by tags.
    """

    def __init__(
        self,
        graph: StaticGraph,
        turns: GivenTurns | None = None,
        labels: Sequence[int] = (),
        has_tags: bool = False,
    ) -> None:
        self.graph = graph
        self.has_tags = has_tags
        self.index = StaticIndex(graph)
        self.items = Items(self.index, turns)
        self.labels = labels or range(1, len(graph.sites) + 1)
        self.kernels: dict[KernelKey, int] = {}
        self.known_kernels: dict[tuple[object, ...], int] = {}  # by operator, and the identity of its types
        self.constants: dict[Const, int] = {}
        self.slots: dict[Port, int] = {}
        self.slot_rows: list[list[Slot]] = [[] for _ in graph.regions]
        self.slot_names = [Names(separator="~") for _ in graph.regions]
        self.groups = _groups(graph, self.index.owner)
        self.branch_numbers: dict[tuple[Port, int], int] = {}  # within the region
        self.site_numbers: dict[int, int] = {}  # site -> its number among those of its kind in its region
        self.bodies = {
            number: _Body([{} for _ in range(count)], [{} for _ in range(count)])
            for number, (region, count) in enumerate(zip(graph.regions, self.index.phase_count, strict=True))
            if region.kind != "branch"
        }
        self.loop_merges: dict[int, list[int]] = {}  # loop body -> the merges of its variables

    def run(self) -> Plan:
        self.number_things()
        self.taken = self.find_taken()
        self.find_slots()
        self.find_needs()
        names = region_names(self.graph, self.index.owner)
        regions = tuple(self.region(number, names[number]) for number in range(len(self.graph.regions)))
        groups = (data.Group(),) * (max(self.groups, default=0) + 1)
        kernels = tuple(Kernel(*key, acts_on_world(key[0])) for key in self.kernels)
        return Plan(self.graph.name, tuple(self.constants), kernels, groups, regions)

    # -- numbers and slots ---------------------------------------------------------------------------------

    def number_things(self) -> None:
        counts: Counter[tuple[int, str]] = Counter()  # by region and kind
        for pred, parent in self.index.branches:
            self.branch_numbers[pred, parent] = counts[parent, "branch"]
            counts[parent, "branch"] += 1
        for number, site in enumerate(self.graph.sites, 1):
            self.site_numbers[number] = counts[site.caller, site.kind]
            counts[site.caller, site.kind] += 1

    def find_slots(self) -> None:
        for number, node in enumerate(paced(self.graph.nodes)):
            op, region = node.op, node.region
            if op in _NO_SLOTS:
                continue
            if op == "switch":
                for index in (0, 1):
                    port = Port(number, index)
                    if port in self.taken and not is_order(node.types[index]):
                        self.add_slot(port, self.index.region_of(port), node)
                continue
            if op == "fan":
                region = self.index.site(node).callee
            for index, type_ in enumerate(node.types):
                if not is_order(type_):
                    self.add_slot(Port(number, index), region, node)
            if op in _ENDS:
                self.note_ends(number, node)

    def find_taken(self) -> set[Port]:
        """The outputs of switches that are used."""
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
        """The last part of the node's name, with a number if another slot of the region has that name."""
        short = node.name.rpartition("/")[2] or node.name
        if node.op == "switch":
            short = short.removesuffix(".if")
        elif index:
            short = f"{short}.{index}"
        return self.slot_names[region].fresh(short)

    def find_needs(self) -> None:
        """Find how many values of its entry each body reads or collects, itself or in what it enters."""
        graph, owner, nodes = self.graph, self.index.owner, self.index.nodes
        uses = [(node, node) for op in COLLECTS for _, node in self.index.of(op)]
        uses += [(node, nodes[ports_of(node.inputs)[0].node]) for _, node in self.index.of("hoist_read")]
        for node, maker in uses:
            if maker.op == "hoist" or maker is node:
                body = self.bodies[owner[node.region]]
                body.hoisted = max(body.hoisted, maker.attrs.integer("index") + 1)
        handed = [
            (self.bodies[owner[site.caller]], self.bodies[site.callee])
            for number, site in enumerate(graph.sites, 1)
            if number not in self.index.hoists
        ]
        has_changed = True
        while has_changed:
            has_changed = False
            for above, below in handed:
                if above.hoisted < below.hoisted:
                    above.hoisted, has_changed = below.hoisted, True

    def note_ends(self, number: int, node: Node) -> None:
        """Note the parameter, loop variable or result of a body that a node is."""
        graph = self.graph
        if node.types and is_order(node.types[0]):
            return
        if node.op == "input":
            self.bodies[0].params[0][node.attrs.integer("index")] = Port(number)
        elif node.op == "merge" and not self.items.is_branch_merge(node):
            maker = graph.nodes[ports_of(node.inputs)[0].node]
            if maker.op == "call":
                phase, index = phase_of(maker), maker.attrs.integer("index")
                self.bodies[node.region].params[phase][index] = Port(number)
            else:
                self.loop_merges.setdefault(node.region, []).append(number)
        elif node.op == "return":
            body = self.bodies[self.index.site(node).callee]
            source = node.inputs[0]
            assert isinstance(source, Port)
            body.results[phase_of(node)][node.attrs.integer("index")] = source

    def slot(self, operand: Operand) -> int:
        """The operand's number in the plan: of a slot, or below zero of a constant."""
        if isinstance(operand, Const):
            return ~self.constants.setdefault(operand, len(self.constants))
        return self.slots[operand]

    def kernel(self, node: Node) -> int:
        # Most nodes have their types and attributes in common with others: as the same objects, which the graph holds.
        type_of = self.graph.type_of
        known = node.op, id(node.attrs), *[id(type_of(x)) for x in node.inputs], *[id(t) for t in node.types]
        number = self.known_kernels.get(known)
        if number is None:
            number = self.kernels.setdefault(kernel_of(self.graph, node), len(self.kernels))
            self.known_kernels[known] = number
        return number

    # -- regions and programs ------------------------------------------------------------------------------

    def region(self, number: int, name: str) -> Region:
        region, owner = self.graph.regions[number], self.index.owner[number]
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
        kind: Any = region.kind
        own = name, kind, owner, self.groups[owner], body.hoisted
        ends = tuple(map(tuple, params)), tuple(map(tuple, results))
        return Region(*own, tuple(self.slot_rows[number]), programs, *ends)

    def program(self, region: int, number: int, phase: int) -> Program:
        items = self.items.of_region.get((region, number), [])
        place = {item.key: n for n, item in enumerate(items)}
        graph = self.graph
        after: set[tuple[int, int]] = set()
        for n, item in enumerate(paced(items)):
            waits = [port for port in item.needs if is_order(graph.nodes[port.node].types[port.index])]
            if not waits and not item.orders:
                continue
            for port in (*waits, *item.orders):
                before = place.get(self.items.producer(port) or (), n)
                if before != n:
                    after.add((before, n))
        written = tuple([_WRITERS[item.kind](self, item) for item in paced(items)])
        return Program(phase, (), written, tuple(sorted(after)))

    # -- items ---------------------------------------------------------------------------------------------

    def op(self, item: GraphItem) -> data.Op | data.Replica:
        number = item.key[1]
        node = self.graph.nodes[number]
        if is_tagged(node.op):
            if not self.has_tags:
                raise GraphError(f"{node.op} is for placed graphs: without parts, frames have no tags", node.span)
            return data.Replica(self.slots[Port(number)], node.attrs.integer("count"), node.attrs.integer("salt"))
        if all(map(is_order, node.types)) and not acts_on_world(node.op):
            return data.Op(node.name, ORDERS_ONLY, (), ())
        slots = self.slots
        outputs = tuple([slots.get((number, k), NO_SLOT) for k in range(len(node.types))])  # type: ignore[call-overload]
        inputs = tuple([slots[x] if x.__class__ is Port else self.slot(x) for x in node.inputs])
        return data.Op(node.name, self.kernel(node), inputs, outputs)

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
        number, visit = self.branch_numbers[pred, parent], visits.index((phase, turn))
        is_last, sides = (phase, turn + 1) not in visits, self.index.branches[pred, parent]
        return data.Branch(number, self.slots[pred], visit, is_last, sides, transfers, merges)  # type: ignore[arg-type]

    def by_index(self, numbers: Sequence[int], op: str = "") -> list[tuple[int, int]]:
        """(index, node) of the nodes with operator `op`, or of all, sorted."""
        nodes = self.graph.nodes
        return sorted((nodes[n].attrs.integer("index"), n) for n in numbers if not op or nodes[n].op == op)

    def call(self, item: GraphItem) -> data.Call:
        _, number, phase = item.key
        visit, nodes = self.index.visits[number, phase], self.graph.nodes
        callee = self.graph.sites[number - 1].callee
        calls = self.by_index(visit.arguments, "call")
        arguments = {index: nodes[n].inputs[0] for index, n in calls if nodes[n].types[0] != CTL}
        taken = dict(self.by_index(visit.backs))
        return data.Call(
            site=self.labels[number - 1],
            call=self.site_numbers[number],
            phase=phase,
            callees=(callee,),
            selector=NO_SLOT,
            resume_group=0,
            arguments=tuple(self.slot(arguments[index]) for index in sorted(self.bodies[callee].params[phase])),
            hoists=self.hoists(self.by_index(visit.arguments, "hoist")),
            results=tuple(
                self.slots.get(Port(taken[index]), NO_SLOT) if index in taken else NO_SLOT
                for index in sorted(self.bodies[callee].results[phase])
            ),
            visits=tuple(self.index.visited(number)) if phase == 0 else (),
        )

    def hoists(self, given: Sequence[tuple[int, int]]) -> tuple[int, ...]:
        """The arguments of the entry that a call makes, from the first. A part of a graph may lack some."""
        known = {index: self.hoisted(self.graph.nodes[n]) for index, n in given}
        return tuple(known[k] if k in known else self.slot(_NOTHING) for k in range(max(known, default=-1) + 1))

    def hoisted(self, hoist: Node) -> int:
        """An argument of an entry. An order token has a place among these, too, which is never read."""
        return self.slot(_NOTHING if hoist.types[0] == CTL else hoist.inputs[0])

    def outers(self, site: int) -> tuple[Transfer, ...]:
        nodes = self.graph.nodes
        outers = (n for n in self.index.outers.get(site, ()) if nodes[n].types[0] != CTL)
        return tuple(Transfer(self.slot(nodes[n].inputs[0]), self.slots[Port(n)]) for n in outers)

    def loop(self, item: GraphItem) -> data.Loop:
        number, nodes = item.key[1], self.graph.nodes
        body = self.graph.sites[number - 1].callee
        variables: list[Transfer] = []
        after: list[int] = []
        for at in self.loop_merges.get(body, ()):
            enter, back = sorted(ports_of(nodes[at].inputs), key=lambda x: nodes[x.node].op == "next")
            variables.append(Transfer(self.slot(nodes[enter.node].inputs[0]), self.slots[Port(at)]))
            after.append(self.slot(nodes[back.node].inputs[0]))
        exits = []
        for at in self.index.visits[number, 0].backs:
            (source,) = ports_of(nodes[at].inputs)
            if Port(at) in self.slots:
                exits.append(Exit(self.slot(nodes[source.node].inputs[1]), self.slots[Port(at)]))
        # Next values are in the branch that continues the loop.
        pred = self.graph.regions[nodes[self.index.nexts[number][0]].region].pred
        assert pred is not None
        own = self.labels[number - 1], self.site_numbers[number], body, self.branch_numbers[pred, body]
        return data.Loop(*own, tuple(variables), self.outers(number), tuple(after), tuple(exits))

    def map(self, item: GraphItem) -> data.Map:
        _, number, phase = item.key
        visit, nodes = self.index.visits[number, phase], self.graph.nodes

        def pairs(numbers: Sequence[int]) -> list[tuple[int, int]]:
            taken = (n for _, n in self.by_index(numbers) if Port(n) in self.slots)
            return [(self.slot(nodes[n].inputs[0]), self.slots[Port(n)]) for n in taken]

        own = self.labels[number - 1], self.site_numbers[number], phase, self.graph.sites[number - 1].callee
        mapped = tuple(Transfer(*pair) for pair in pairs(visit.arguments))
        results = tuple(Exit(*pair) for pair in pairs(visit.backs))
        if phase:
            return data.Map(*own, 0, mapped, (), results, ())
        counted = self.slot(nodes[visit.start].inputs[0])
        return data.Map(*own, counted, mapped, self.outers(number), results, tuple(self.index.visited(number)))

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

    def send(self, item: GraphItem) -> data.Send:
        node = self.graph.nodes[item.key[1]]
        (source,) = node.inputs
        value = NO_SLOT if is_order(self.graph.type_of(source)) else self.slot(source)
        return data.Send(node.attrs.integer("edge"), node.attrs.integer("part"), value)

    def recv(self, item: GraphItem) -> data.Recv:
        number = item.key[1]
        node = self.graph.nodes[number]
        to = self.slots.get(Port(number), NO_SLOT)
        return data.Recv(node.attrs.integer("edge"), node.attrs.integer("part"), to)


_WRITERS: dict[int, Callable[[Lowering, GraphItem], data.Item]] = {
    OP: Lowering.op,
    BRANCH: Lowering.branch,
    CALL: Lowering.call,
    LOOP: Lowering.loop,
    MAP: Lowering.map,
    READ: Lowering.read,
    COLLECT: Lowering.collect,
    COLLECTED: Lowering.collected,
    SEND: Lowering.send,
    RECV: Lowering.recv,
}


def kernel_of(graph: StaticGraph, node: Node) -> KernelKey:
    """The operator of a node, its attributes, and the dtypes and ranks of its operands and results."""
    attrs = node.attrs
    if attrs and "device" in attrs:
        attrs = Attrs(**{key: value for key, value in attrs.items() if key != "device"})
    inputs = tuple([signature(graph.type_of(x)) for x in node.inputs])
    return node.op, attrs, inputs, tuple([signature(type_) for type_ in node.types])


def signature(type_: Type) -> tuple[str, int]:
    """The part of a type that selects a kernel: dtype and rank."""
    return type_.dtype.name, len(type_.shape)


def is_order(type_: Type) -> bool:
    """Is it the type of order tokens, which carry no data?"""
    return type_.dtype is CTL.dtype


def acts_on_world(op: str) -> bool:
    """Does an operator print, assert, or read or write state?"""
    row = CATALOGUE[op]
    return row.effect or row.state is not None


def region_names(graph: StaticGraph, owner: Sequence[int]) -> list[str]:
    """Unique names of regions; a branch is prefixed by its body: `fac/if1.else`."""
    names: list[str] = []
    taken: set[str] = set()
    for number, region in enumerate(graph.regions):
        name = region.name if owner[number] == number else f"{graph.regions[owner[number]].name}/{region.name}"
        if name in taken:
            name = f"{name}~{number}"
        taken.add(name)
        names.append(name)
    return names


def _groups(graph: StaticGraph, owner: Sequence[int]) -> list[int]:
    """The group of each region: bodies that are recursive together share one; callees have smaller numbers."""
    enters: dict[int, list[int]] = {}
    for site in graph.sites:
        enters.setdefault(owner[site.caller], []).append(site.callee)
    groups = components(sorted(set(owner)), lambda body: enters.get(body, ()))
    group = {body: number for number, bodies in enumerate(groups) for body in bodies}
    return [group[body] for body in owner]
