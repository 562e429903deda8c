"""A static graph as rows of integers: what the core decodes into a plan.

Names and attributes end here. Every value gets a slot of the region that it lives in; order tokens get none, since the
order of items says all that they say. `core/src/plan.cpp` reads just what is written here, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from undertow.engines import native
from undertow.engines.native import NO_SLOT, type_row
from undertow.engines.waves.items import BRANCH, CALL, COLLECT, COLLECTED, LOOP, MAP, OP, READ, Item, Items
from undertow.engines.waves.late import put_off as late_steps
from undertow.ir.graph import Const, Node, Operand, Port, StaticGraph
from undertow.ir.walk import components, phase_of
from undertow.ops.op import CATALOGUE
from undertow.types import CTL, Type

VERSION = 3
_KINDS = {"main": 0, "function": 1, "loop": 2, "map": 3, "branch": 4}
_NOTHING = Const(np.False_)
# Straight items and entered ones, as pairs of kind and number; from where on items wait, belong to the next phase; how.
_Stage = tuple[list[int], list[int], list[int]]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded(native.Encoded):
    """A plan, and what suits it: lockstep, or an agenda."""

    schedule: str


def encode(graph: StaticGraph, put_off: bool = True) -> Encoded:
    """Everything that the core must know of a graph; `put_off` says whether steps may wait for those of other waves."""
    return _Encoder(graph, put_off).run()


@dataclass(slots=True, eq=False)
class _Body:
    """What a body takes and gives, phase by phase: ports, without order tokens."""

    params: list[dict[int, Port]] = field(default_factory=list)  # by index
    results: list[dict[int, Port]] = field(default_factory=list)
    hoisted: int = 0  # values of its entry that it needs


class _Encoder(native.Writer):
    def __init__(self, graph: StaticGraph, put_off: bool) -> None:
        super().__init__(graph)
        self.items = Items(graph)
        self.rows: list[int] = []
        self.slots: dict[Port, int] = {}
        self.slot_types: list[list[Type]] = [[] for _ in graph.regions]
        self.groups = _groups(graph, self.items.owner)
        self.stages = late_steps(self.items, self.recursive()) if put_off else self.items.stages
        self.branch_numbers: dict[tuple[Port, int], int] = {}  # within the region
        self.site_numbers: dict[int, int] = {}  # of each site: within its region, among those of its kind
        self.counts = [[0, 0, 0, 0] for _ in graph.regions]  # branches, calls, loops, maps
        self.bodies = {
            number: _Body([{} for _ in range(count)], [{} for _ in range(count)])
            for number, (region, count) in enumerate(zip(graph.regions, self.items.phase_count, strict=True))
            if region.kind != "branch"
        }
        self.absorbed: set[int] = set()  # nodes that another item computes
        self.products = self.find_products()
        self.tables: dict[int, list[list[int]]] = {kind: [] for kind in range(8)}
        self.asks: dict[tuple[tuple[int, int], ...], int] = {}  # a number for each way of asking for later phases

    def run(self) -> Encoded:
        self.number_things()
        self.find_slots()
        self.find_needs()
        programs = [self.programs(number) for number in range(len(self.graph.regions))]
        out = self.rows
        for kind in range(8):
            out.append(len(self.tables[kind]))
            for row in self.tables[kind]:
                out += row
        out.append(len(self.graph.regions))
        for number, program in enumerate(programs):
            self.write_region(number, program)
        made = self.encoded([VERSION, len(self.graph.nodes), max(self.groups, default=0) + 1], out)
        return Encoded(made.rows, made.words, made.constants, self.schedule())

    def recursive(self) -> set[int]:
        """The bodies that are in a circle of calls."""
        sites = self.graph.sites
        circles = {self.groups[s.caller] for s in sites if self.groups[s.caller] == self.groups[s.callee]}
        return {owner for region, owner in enumerate(self.items.owner) if self.groups[region] in circles}

    def schedule(self) -> str:
        """Lockstep, unless recursive calls on arrays wait for each other: then it would make a wave for every path."""
        graph, items = self.graph, self.items
        has_arrays = {self.groups[r] for r, types in enumerate(self.slot_types) if any(t.rank for t in types)}
        calls: set[tuple[int, int]] = set()  # (region, group): a call into the group stands there
        for region in reversed(range(len(graph.regions))):
            for stage in items.stages.get((region, 0), []):
                here: set[int] = set()
                for item in stage.entered:
                    here |= self._groups_called(item, calls)
                own = self.groups[region]
                if own in here and own in has_arrays and (region, own) in calls:
                    return "agenda"
                calls |= {(region, group) for group in here}
        return "lockstep"

    def _groups_called(self, item: Item, calls: set[tuple[int, int]]) -> set[int]:
        """The groups that an item calls into, itself or in what stands inside of it."""
        if item.kind == CALL:
            return {self.groups[self.graph.sites[item.key[1] - 1].callee]}
        if item.kind == BRANCH:
            inside = self.items.pairs[Port(item.key[1], item.key[2]), item.region]
        else:
            inside = (self.graph.sites[item.key[1] - 1].callee,) * 2
        return {group for region, group in calls if region in inside}

    # -- numbers and slots ---------------------------------------------------------------------------------

    def number_things(self) -> None:
        for (pred, parent), _ in self.items.pairs.items():
            self.branch_numbers[pred, parent] = self.counts[parent][0]
            self.counts[parent][0] += 1
        for number, site in enumerate(self.graph.sites, 1):
            at = {"call": 1, "loop": 2, "map": 3}[site.kind]
            self.site_numbers[number] = self.counts[site.caller][at]
            self.counts[site.caller][at] += 1

    def find_slots(self) -> None:
        graph = self.graph
        used = {x for node in graph.nodes for x in node.inputs} | {r.pred for r in graph.regions} | set(graph.fetches)
        for number, node in enumerate(graph.nodes):
            if node.op in ("call", "enter", "next", "hoist", "call_start", "enter_start", "fan_start", "start"):
                continue
            for index, type_ in enumerate(node.types):
                port = Port(number, index)
                if type_ == CTL or (node.op == "switch" and port not in used):
                    continue
                region = node.region
                if node.op == "switch":
                    region = self.items.region_of(port)
                elif node.op == "fan":
                    region = graph.sites[node.attrs.integer("site") - 1].callee
                self.slots[port] = len(self.slot_types[region])
                self.slot_types[region].append(type_)
            self.note_ends(number, node)

    def find_needs(self) -> None:
        """How many values of its entry a body needs, to read or to collect, itself or in what it enters."""
        graph, owner = self.graph, self.items.owner
        makers = {node.attrs.integer("site") for node in graph.nodes if node.op == "hoist"}
        for node in graph.nodes:
            body = self.bodies[owner[node.region]]
            if node.op in ("collect", "collect_rows"):
                body.hoisted = max(body.hoisted, node.attrs.integer("index") + 1)
            elif node.op == "hoist_read" and isinstance(node.inputs[0], Port):
                maker = graph.nodes[node.inputs[0].node]
                if maker.op == "hoist":
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
        if node.types and node.types[0] == CTL:
            return
        if node.op == "input":
            self.bodies[0].params[0][node.attrs.integer("index")] = Port(number)
        elif node.op == "merge" and not self.items.is_branch_merge(node):
            maker = next(graph.nodes[x.node] for x in node.inputs if isinstance(x, Port))
            if maker.op == "call":
                phase, index = phase_of(maker), maker.attrs.integer("index")
                self.bodies[node.region].params[phase][index] = Port(number)
        elif node.op == "return":
            body = self.bodies[graph.sites[node.attrs.integer("site") - 1].callee]
            source = node.inputs[0]
            assert isinstance(source, Port)
            body.results[phase_of(node)][node.attrs.integer("index")] = source

    def slot(self, operand: Operand) -> int:
        """The number of an operand: of a slot, or below zero of a constant."""
        if isinstance(operand, Const):
            return self.constant(operand)
        return self.slots[operand]

    def find_products(self) -> dict[int, tuple[Operand, Operand]]:
        """Collects of a product that sums over rows, x.T @ g: those of all lanes become one product of matrices.

        An outer product of vectors is one, a row for each lane. It may have been given another shape, or transposed.
        """
        nodes = self.graph.nodes
        users: dict[int, int] = {}
        for node in nodes:
            for x in {x.node for x in (*node.inputs, *node.controls) if isinstance(x, Port)}:
                users[x] = users.get(x, 0) + 1
        found: dict[int, tuple[Operand, Operand]] = {}
        for number, node in enumerate(nodes):
            if node.op != "collect":
                continue
            path: list[int] = []  # from the collect to the product
            at = node.inputs[0]
            while (next_ := self.reshaped(at)) is not None:
                path.append(at.node)  # type: ignore[union-attr]
                at = next_
            is_turned = (turned := self.transposed(at)) is not None
            if turned is not None:
                path.append(at.node)  # type: ignore[union-attr]
                at = turned
            if not isinstance(at, Port) or (factors := self.factors(at)) is None:
                continue
            found[number] = factors[::-1] if is_turned else factors
            path.append(at.node)
            for step in path:
                if users[step] != 1:
                    break
                self.absorbed.add(step)
            else:
                for side, factor in zip(nodes[at.node].inputs, factors, strict=True):
                    if isinstance(side, Port) and side != factor and users[side.node] == 1:
                        self.absorbed.add(side.node)
        return found

    def reshaped(self, value: Operand) -> Operand | None:
        """What has the same elements as a value, in the same order; None where the value is not just reshaped."""
        if not isinstance(value, Port):
            return None
        node = self.graph.nodes[value.node]
        if node.op not in ("reshape", "expand_dims", "squeeze") or len(node.inputs) != 1:
            return None
        types = self.graph.type_of(node.inputs[0]), node.types[0]
        return node.inputs[0] if all(type_.is_static for type_ in types) else None

    def transposed(self, value: Operand) -> Operand | None:
        """The matrix that a value is the transpose of."""
        node = self.graph.nodes[value.node] if isinstance(value, Port) else None
        is_swap = node is not None and node.op == "transpose" and node.attrs["axes"] == (1, 0)
        return node.inputs[0] if node is not None and is_swap and node.types[0].is_static else None

    def factors(self, product: Port) -> tuple[Operand, Operand] | None:
        """X and g of a product x.T @ g; of an outer product the two vectors."""
        node = self.graph.nodes[product.node]
        if node.op != "matmul":
            return None
        left, right = node.inputs
        types = self.graph.type_of(left), self.graph.type_of(right)
        if not all(type_.is_static and type_.rank == 2 for type_ in types):
            return None
        if types[0].shape[1] == 1:
            sides = self.reshaped(left), self.reshaped(right)
            if all(side is not None and self.graph.type_of(side).rank == 1 for side in sides):
                return sides[0], sides[1]  # type: ignore[return-value]
        x = self.transposed(left)
        return None if x is None else (x, right)

    # -- programs ------------------------------------------------------------------------------------------

    def programs(self, region: int) -> list[list[_Stage]]:
        """For each program of a region its stages."""
        found = []
        for number in range(len(self.items.programs[region])):
            stages = []
            for stage in self.stages[region, number]:
                straight: list[int] = []
                ends: list[int] = []
                split = len(stage.late) - stage.ahead
                for items in (stage.straight, stage.late[:split], stage.late[split:]):
                    ends.append(len(straight) // 2)
                    straight += [x for item in items for x in self.written(item)]
                entered = [x for item in stage.entered for x in self.written(item)]
                stages.append((straight, entered, [*ends[1:], int(stage.late_kind)]))
            found.append(stages)
        return found

    def written(self, item: Item) -> list[int]:
        """Write an item into the table of its kind; its kind and number, or nothing where it only orders others."""
        row = _WRITERS[item.kind](self, item)
        if row is None:
            return []
        self.tables[item.kind].append(row)
        return [item.kind, len(self.tables[item.kind]) - 1]

    def write_op(self, item: Item) -> list[int] | None:
        number = item.key[1]
        node, op = self.graph.nodes[number], CATALOGUE[self.graph.nodes[number].op]
        is_effect = op.effect or op.state is not None
        if number in self.absorbed:
            return None
        if not is_effect and all(type_ == CTL for type_ in node.types):
            return None
        kernel = -1 if is_effect else self.kernel(node)
        inputs = [self.slot(x) for x in node.inputs]
        outputs = [self.slots.get(Port(number, k), NO_SLOT) for k in range(len(node.types))]
        return [number, kernel, int(is_effect), len(inputs), *inputs, len(outputs), *outputs]

    def write_branch(self, item: Item) -> list[int]:
        _, node, index, parent, phase, turn = item.key
        pred = Port(node, index)
        sides = self.items.pairs[pred, parent]
        visits = sorted(self.items.visits[pred, parent])
        number = visits.index((phase, turn))
        is_last = (phase, turn + 1) not in visits
        row = [self.branch_numbers[pred, parent], self.slots[pred], int(number == 0), int(is_last)]
        row += [*sides, number, number]
        for side in range(2):
            transfers = [
                (self.slot(self.graph.nodes[n].inputs[1]), self.slots[Port(n, side)])
                for n in item.nodes
                if self.graph.nodes[n].op == "switch" and Port(n, side) in self.slots
            ]
            row += _flat(transfers)
        merges = [
            (self.slots[Port(n)], *(self.slot(x) for x in self.graph.nodes[n].inputs))
            for n in item.nodes
            if self.graph.nodes[n].op == "merge" and Port(n) in self.slots
        ]
        return row + _flat(merges)

    def by_index(self, item: Item, op: str) -> list[tuple[int, int]]:
        """The nodes of an item with some operator, by their index."""
        nodes = self.graph.nodes
        return sorted((nodes[n].attrs.integer("index"), n) for n in item.nodes if nodes[n].op == op)

    def write_call(self, item: Item) -> list[int]:
        _, number, phase = item.key
        site, nodes = self.graph.sites[number - 1], self.graph.nodes
        body = self.bodies[site.callee]
        given = {index: nodes[n].inputs[0] for index, n in self.by_index(item, "call") if nodes[n].types[0] != CTL}
        arguments = [self.slot(given[index]) for index in sorted(body.params[phase])]
        hoists = [self.hoisted(nodes[n]) for _, n in self.by_index(item, "hoist")]
        taken = dict(self.by_index(item, "return"))
        results = [
            self.slots.get(Port(taken[index]), NO_SLOT) if index in taken else NO_SLOT
            for index in sorted(body.results[phase])
        ]
        visits = self.visits(CALL, number, item.region) if phase == 0 else []
        row = [number, self.site_numbers[number], phase, site.callee, self.groups[site.callee], int(bool(hoists))]
        row.append(self.asks.setdefault(self.items.asks(number), len(self.asks)))
        for part in (arguments, hoists, results, visits):
            row += [len(part), *part]
        return row

    def hoisted(self, hoist: Node) -> int:
        """What an entry is given; an order token has a place among these too, which nobody reads."""
        return self.slot(_NOTHING if hoist.types[0] == CTL else hoist.inputs[0])

    def visits(self, kind: int, site: int, region: int) -> list[int]:
        """How many phases of what a site enters are visited, by how many of the caller's are, from one on."""
        found = []
        for count in range(1, self.items.phase_count[self.items.owner[region]] + 1):
            phases = [
                item.key[2] + 1
                for phase in range(self.items.phase_count[self.items.owner[self.graph.sites[site - 1].callee]])
                if (item := self.items.items.get((kind, site, phase))) is not None and item.phase < count
            ]
            found.append(max(phases, default=0))
        return found

    def outers(self, item: Item) -> list[tuple[int, int]]:
        nodes = self.graph.nodes
        outers = [n for n in item.nodes if nodes[n].op == "outer" and nodes[n].types[0] != CTL]
        return [(self.slot(nodes[n].inputs[0]), self.slots[Port(n)]) for n in outers]

    def write_loop(self, item: Item) -> list[int]:
        number, nodes = item.key[1], self.graph.nodes
        body = self.graph.sites[number - 1].callee
        enters = {n: index for index, n in self.by_index(item, "enter") if nodes[n].types[0] != CTL}
        variables: list[tuple[int, int]] = []
        after: list[int] = []
        pred: Port | None = None
        for at, node in enumerate(nodes):
            if node.op != "merge" or node.region != body or node.types[0] == CTL or self.items.is_branch_merge(node):
                continue
            enter, back = sorted((x for x in node.inputs if isinstance(x, Port)), key=lambda x: x.node not in enters)
            variables.append((self.slot(nodes[enter.node].inputs[0]), self.slots[Port(at)]))
            after.append(self.slot(nodes[back.node].inputs[0]))
        exits = []
        for at in item.nodes:
            if nodes[at].op == "exit":
                source = nodes[at].inputs[0]
                assert isinstance(source, Port)
                switch = nodes[source.node]
                pred = switch.inputs[0] if isinstance(switch.inputs[0], Port) else pred
                if Port(at) in self.slots:
                    exits.append((self.slot(switch.inputs[1]), self.slots[Port(at)]))
        if pred is None:
            pred = self.loop_predicate(body)
        row = [number, self.site_numbers[number], body, self.branch_numbers[pred, body]]
        row += _flat(variables) + _flat(self.outers(item))
        return [*row, len(after), *after, *_flat(exits)]

    def loop_predicate(self, body: int) -> Port:
        """What decides whether a loop that gives nothing goes on: its next values stand in that branch."""
        for node in self.graph.nodes:
            if node.op == "next" and self.graph.regions[node.region].parent == body:
                pred = self.graph.regions[node.region].pred
                assert pred is not None
                return pred
        raise AssertionError("a loop without a way round")

    def write_map(self, item: Item) -> list[int]:
        _, number, phase = item.key
        site, nodes = self.graph.sites[number - 1], self.graph.nodes
        starts = [n for n in item.nodes if nodes[n].op == "fan_start"]
        counted = self.slot(nodes[starts[0]].inputs[0]) if phase == 0 else 0
        mapped = [
            (self.slot(nodes[n].inputs[0]), self.slots[Port(n)])
            for _, n in self.by_index(item, "fan")
            if Port(n) in self.slots
        ]
        results = [
            (self.slot(nodes[n].inputs[0]), self.slots[Port(n)])
            for _, n in self.by_index(item, "gather")
            if Port(n) in self.slots
        ]
        row = [number, self.site_numbers[number], phase, site.callee, counted]
        row += _flat(mapped) + _flat(self.outers(item)) + _flat(results)
        visits = self.visits(MAP, number, item.region) if phase == 0 else []
        return [*row, len(visits), *visits]

    def write_read(self, item: Item) -> list[int] | None:
        node = self.graph.nodes[item.key[1]]
        if node.types[0] == CTL:
            return None
        source = node.inputs[0]
        assert isinstance(source, Port)
        maker = self.graph.nodes[source.node]
        index = maker.attrs.integer("index") if maker.op == "hoist" else self.slots[source]
        return [self.slots[Port(item.key[1])], index, int(maker.op != "hoist")]

    def write_collect(self, item: Item) -> list[int]:
        node = self.graph.nodes[item.key[1]]
        if item.key[1] in self.products:
            x, g = map(self.slot, self.products[item.key[1]])
            return [item.key[1], node.attrs.integer("index"), 2, x, g]
        values = [self.slot(x) for x in node.inputs]
        return [item.key[1], node.attrs.integer("index"), len(values) - 1, values[0], values[-1]]

    def write_collected(self, item: Item) -> list[int]:
        number = item.key[1]
        node = self.graph.nodes[number]
        call = self.site_numbers[node.attrs.integer("site")]
        to = [self.slots.get(Port(number, k), NO_SLOT) for k in range(len(node.types))]
        return [call, node.attrs.integer("index"), self.slot(node.inputs[0]), to[0], to[1] if len(to) > 1 else NO_SLOT]

    # -- regions -------------------------------------------------------------------------------------------

    def write_region(self, number: int, program: list[list[_Stage]]) -> None:
        region, owner, out = self.graph.regions[number], self.items.owner[number], self.rows
        body = self.bodies[owner]
        out += [_KINDS[region.kind], owner, self.groups[owner], len(self.slot_types[number])]
        for type_ in self.slot_types[number]:
            out += type_row(type_)
        out += [*self.counts[number], body.hoisted]
        out.append(len(program))
        for stages in program:
            out.append(len(stages))
            for straight, entered, late in stages:
                out += [len(straight) // 2, *straight, len(entered) // 2, *entered, *late]
        if region.kind == "branch":
            out += [0, 0]
            return
        params = [[self.slots[found[index]] for index in sorted(found)] for found in body.params]
        results = [[self.slots[found[index]] for index in sorted(found)] for found in body.results]
        if number == 0:
            params = [[self.slots.get(Port(n), NO_SLOT) for n in self.graph.inputs]]
            results = [[self.slots.get(port, NO_SLOT) for port in self.graph.fetches]]
        for lists in (params, results):
            out.append(len(lists))
            for part in lists:
                out += [len(part), *part]


_WRITERS = {
    OP: _Encoder.write_op,
    BRANCH: _Encoder.write_branch,
    CALL: _Encoder.write_call,
    LOOP: _Encoder.write_loop,
    MAP: _Encoder.write_map,
    READ: _Encoder.write_read,
    COLLECT: _Encoder.write_collect,
    COLLECTED: _Encoder.write_collected,
}


def _flat(pairs: Sequence[tuple[int, ...]]) -> list[int]:
    return [len(pairs), *(x for pair in pairs for x in pair)]


def _groups(graph: StaticGraph, owner: Sequence[int]) -> list[int]:
    """A number for each region: equal for bodies that are recursive together, those that are called before others."""
    enters: dict[int, list[int]] = {}
    for site in graph.sites:
        enters.setdefault(owner[site.caller], []).append(site.callee)
    found = components(sorted(set(owner)), lambda body: enters.get(body, ()))
    group = {body: number for number, bodies in enumerate(found) for body in bodies}
    return [group[body] for body in owner]
