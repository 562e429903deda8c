"""Cut a static graph into parts, one for each worker: edges that cross become Send and Recv.

Values come from *owned* nodes: operators of the catalogue, where they are placed, and what comes back from branches and
bodies, where most of it is made. All that moves values between frames and into branches, their *routes*, has a copy in
every part that uses it. So has the choice of a replica: it depends on the tag alone, and every part makes it alike. So
an edge crosses only between an owned node and a copy of something in the same frame, and a token crosses under the tag
under which it was made.

Each part has its own copy of the state machine of every region that it works in: start tokens, calls, predicates,
switches. It makes exactly those tags of the whole graph under which it has something to do, and arms a Recv where the
Recv's region is live under a tag; the sender's copy of that region is live under the same tags. See docs/design/0028.

A sum over the activations below an entry is one sum in each part; where it is wanted, the sums are added in the order
of the parts. So an order token that only says that something has been added does not cross.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce

from undertow.ir.graph import Attrs, Const, Node, Operand, Port, Region, Site, StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.names import Names
from undertow.ir.placed import Edge, Part, Placed
from undertow.ir.structure import BACK, COLLECTED, COLLECTS, INWARD, SOURCES, STARTS, is_primitive
from undertow.ir.walk import grouped, is_inward, phase_of, ports_of
from undertow.ops.effects import acts, is_stateful
from undertow.ops.replicas import chosen_nodes
from undertow.types import CTL


def cut(graph: StaticGraph, places: Sequence[int], count: int) -> Placed:
    """The parts of a graph; `places` has the part of every node, of which only those of catalogue operators matter."""
    return _Cutter(graph, places, count).run()


# A value in one part: an output of a node of the whole graph, of which the part has a copy; a Recv of a port; the pivot
# of (region, phase); what an added node gives: (its number, 0); or, where sums are added up, the part's own share.
_Copy, _Recv, _Pivot, _Added, _Own = range(5)
Ref = tuple[int, int, int]
_JOINS = ("merge", *BACK)


class Owners:
    """Where values are made: the part that owns each node, if one does; which parts an order token speaks for."""

    def __init__(self, index: StaticIndex, places: Sequence[int]) -> None:
        self.index = index
        self.graph = index.graph
        self.placed = places
        self.chosen = chosen_nodes(self.graph)  # every part chooses for itself

    @cached_property
    def pivots(self) -> set[Port]:
        """Start tokens, wherever they have gone: every part makes its own."""
        found: set[Port] = set()
        users = grouped(
            (port, number)
            for number, node in enumerate(self.graph.nodes)
            for port in ports_of(node.inputs)
            if node.op in ("switch", "next") or (node.op == "merge" and self.begins(node))
        )
        todo = [Port(n) for n, node in self.index.of("start")]
        todo += [Port(n, i) for op in STARTS for n, node in self.index.of(op) for i in range(2)]
        for port in todo:  # it grows meanwhile
            if port in found:
                continue
            found.add(port)
            todo += [Port(n, i) for n in users.get(port, ()) for i in range(len(self.graph.nodes[n].types))]
        return found

    def begins(self, merge: Node) -> bool:
        """Is it the start of a body?"""
        return any(self.graph.nodes[port.node].op in STARTS for port in ports_of(merge.inputs))

    def is_owned(self, number: int) -> bool:
        """Has a node one owner, from which its values cross?"""
        node = self.graph.nodes[number]
        if is_primitive(node.op) or node.op in COLLECTED:
            return number not in self.chosen
        if node.op == "merge":
            return not (self.index.is_parameter(node) or self.is_of_replicas(node))
        return node.op in BACK

    def is_of_replicas(self, merge: Node) -> bool:
        """Does it take what the replica gives that was called? Whoever uses it knows which."""
        return any(self.is_choice(self.index.region_of(port)) for port in ports_of(merge.inputs))

    def is_choice(self, region: int) -> bool:
        """Is it a branch for a replica?"""
        pred = self.graph.regions[region].pred
        return pred is not None and pred.node in self.chosen

    @cached_property
    def part_of(self) -> list[int]:
        """The owner of each owned node. What joins values is where the first of them is made."""
        nodes = self.graph.nodes
        owners = [-1] * len(nodes)
        joins = [n for n, node in enumerate(nodes) if node.op in _JOINS and not self.index.is_parameter(node)]
        is_join = set(joins)
        for number in range(len(nodes)):
            if number not in is_join:
                owners[number] = self.placed[number]
        waiting = {number: [port.node for port in self.made_by(number)] for number in joins}
        users = grouped((maker, number) for number, makers in waiting.items() for maker in dict.fromkeys(makers))
        first: deque[int] = deque()  # joins of which the first maker has an owner
        other: deque[int] = deque()  # those of which another one has

        def tell(maker: int) -> None:
            for number in users.get(maker, ()):
                if number in waiting:
                    (first if waiting[number][0] == maker else other).append(number)

        for maker in users:
            if owners[maker] >= 0:
                tell(maker)
        while waiting:
            # A cycle through the first of all: take what is known of the others, or the part of main.
            number = first.popleft() if first else other.popleft() if other else next(iter(waiting))
            if number in waiting:
                makers = waiting.pop(number)
                owners[number] = next((owners[maker] for maker in makers if owners[maker] >= 0), 0)
                tell(number)
        return owners

    def made_by(self, number: int) -> list[Port]:
        """The owned ports that a join's values come from, behind switches and reads; last, what chooses between them.

        An exit gives what the iteration before made of its variable. Other parameters count as none.
        """
        node = self.graph.nodes[number]
        sources: list[Port | None] = []
        choices: list[Port | None] = []
        for port in ports_of(node.inputs):
            source = self.source(port)
            if source is not None and node.op == "exit":
                source = self.source(self.made_again(source))
            sources.append(source)
            pred = self.graph.regions[self.index.region_of(port)].pred
            choices.append(None if pred is None else self.source(pred))
        return [port for port in (*sources, *choices) if port is not None and self.is_owned(port.node)]

    def made_again(self, variable: Port) -> Operand:
        """What the next iteration of a loop has for a variable."""
        nodes = self.graph.nodes
        for port in ports_of(nodes[variable.node].inputs):
            if nodes[port.node].op == "next":
                return nodes[port.node].inputs[0]
        return variable

    def source(self, operand: Operand) -> Port | None:
        """What a value was before it was led into branches and bodies below."""
        nodes = self.graph.nodes
        while isinstance(operand, Port):
            node = nodes[operand.node]
            if node.op == "switch":
                operand = node.inputs[1]
            elif node.op == "outer":
                operand = node.inputs[0]
            else:
                return operand
        return None

    @cached_property
    def present(self) -> list[set[int]]:
        """By region: the parts that have operators in it, or in branches inside."""
        present: list[set[int]] = [set() for _ in self.graph.regions]
        for number, node in enumerate(self.graph.nodes):
            if is_primitive(node.op) and number not in self.chosen:
                present[node.region].add(self.placed[number])
        for number in reversed(range(len(present))):
            region = self.graph.regions[number]
            if region.kind == "branch" and region.parent is not None:
                present[region.parent] |= present[number]
        return present

    @cached_property
    def spoken_for(self) -> dict[Port, tuple[set[int], set[int]]]:
        """By port of an order token that is no pivot: the parts that have collected something, or acted, before it."""
        nodes = self.graph.nodes
        routes = ("identity", "switch", "outer", "next", *_JOINS, *INWARD)
        found: dict[Port, tuple[set[int], set[int]]] = {}
        users: dict[Port, list[Port]] = {}
        todo: deque[Port] = deque()
        for number, node in enumerate(nodes):
            for index, type_ in enumerate(node.types):
                port = Port(number, index)
                if type_ != CTL or port in self.pivots:
                    continue
                found[port] = set(), set()
                if node.op in COLLECTS:
                    found[port][0].add(self.placed[number])
                    todo.append(port)
                elif is_primitive(node.op) and node.op != "identity":
                    found[port][1].add(self.placed[number])
                    todo.append(port)
                elif node.op in routes:
                    for before in (*ports_of(node.inputs), *node.controls):
                        users.setdefault(before, []).append(port)
        # A join of values waits for operators, too: they have acted where they are.
        for before, after in users.items():
            source = self.source(before) if self.graph.type_of(before) != CTL else None
            if source is not None and self.is_owned(source.node):
                for port in after:
                    if nodes[port.node].op == "identity":
                        found[port][1].add(self.part_of[source.node])
                        todo.append(port)
        while todo:
            port = todo.popleft()
            for user in users.get(port, ()):
                if any(more - known for more, known in zip(found[port], found[user], strict=True)):
                    for more, known in zip(found[port], found[user], strict=True):
                        known |= more
                    todo.append(user)
        return found


class _Made:
    """A part that is being made."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.copies: dict[int, None] = {}  # nodes of the whole graph
        self.regions: set[int] = set()
        self.recvs: dict[Port, int] = {}  # edges
        self.sends: list[tuple[int, Port]] = []
        self.pivots: dict[tuple[int, int], None] = {}
        self.added: list[tuple[Node, tuple[Ref, ...]]] = []
        self.added_for: list[int] = []  # the `collected` that each of these helps to add up
        self.totals: dict[int, list[Ref]] = {}  # what stands for the outputs of a `collected`
        self.fetches: list[tuple[int, Port]] = []


class _Cutter:
    def __init__(self, graph: StaticGraph, places: Sequence[int], count: int) -> None:
        self.graph = graph
        self.nodes = graph.nodes
        self.index = StaticIndex(graph)
        self.owners = Owners(self.index, places)
        self.parts = [_Made(number) for number in range(count)]
        self.edges: list[Edge] = []
        self.todo: deque[Callable[[], object]] = deque()  # what a part is still to be given
        self.known: dict[tuple[int, Port], Ref | None] = {}
        self.adders: dict[tuple[int, int], list[int]] = {}  # (site, index) -> parts that collect for it
        for op in COLLECTS:
            for number, node in self.index.of(op):
                for site in self.index.entry_sites(node.region):
                    parts = self.adders.setdefault((site, node.attrs.integer("index")), [])
                    if places[number] not in parts:
                        parts.append(places[number])
        self.at_phase: dict[tuple[int, int], Port] = {}  # pivots of the whole graph
        for number, region in enumerate(graph.regions):
            for port in region.starts:
                self.at_phase[number, self.index.waits_for(port)] = port

    def run(self) -> Placed:
        for part in self.parts:
            self.copy(part, next(n for n, _ in self.index.of("start")))
            part.regions.add(0)
        for number, port in enumerate(self.graph.fetches):
            owner = self.owners.part_of[port.node] if self.owners.is_owned(port.node) else 0
            if self.find(self.parts[owner], port) is None:  # an order token, and nothing happens before it
                self.pivot(self.parts[owner], self.index.home(port), self.index.waits_for(port))
            self.parts[owner].fetches.append((number, port))
        for number, node in enumerate(self.nodes):
            if is_primitive(node.op) and (acts(node.op) or is_stateful(node.op)):
                self.copy(self.parts[self.owners.placed[number]], number)
        while self.todo:
            self.todo.popleft()()
        return Placed(tuple(_Finished(self, part).part for part in self.parts), tuple(self.edges))

    # -- what a part needs -------------------------------------------------------------------------------------

    def copy(self, part: _Made, number: int) -> None:
        """The part has a copy of this node."""
        if number not in part.copies:
            part.copies[number] = None
            self.todo.append(partial(self.complete, part, number))

    def complete(self, part: _Made, number: int) -> None:
        """Find what a copy needs."""
        node = self.nodes[number]
        self.enter(part, node.region)
        inputs = [self.find(part, port) for port in ports_of(node.inputs)]
        controls = [self.find(part, port) for port in node.controls]
        for port, ref in zip(ports_of(node.inputs), inputs, strict=True):
            if ref is None:  # an order token that says nothing here; see `_Finished.copied`
                self.pivot(part, self.index.home(port), self.index.waits_for(port))
        if self.needs_pivot(node, number, [ref is not None for ref in inputs], [ref is not None for ref in controls]):
            self.pivot(part, node.region, self.index.phases[number])
        if node.op in COLLECTS:
            for site in self.index.entry_sites(node.region):
                self.copy(part, self.index.hoists[site][node.attrs.integer("index")])
        if node.op in COLLECTED:
            self.copy(part, self.index.hoists[node.attrs.integer("site")][node.attrs.integer("index")])
        if node.op in STARTS:
            self.enter(part, self.index.site(node).callee)
        if "site" in node.attrs and node.op != "outer":
            for phase in range(phase_of(node) + 1):
                for start in self.index.starts.get((node.attrs.integer("site"), phase), ()):
                    self.copy(part, start)
        if node.op not in SOURCES:
            self.reach(part, node.region, self.index.phases[number])

    def needs_pivot(self, node: Node, number: int, inputs: Sequence[bool], controls: Sequence[bool]) -> bool:
        """Must a copy wait for its region's pivot, since nothing else makes it wait, or not for its phase?"""
        if node.op in SOURCES:
            return False
        return not any((*inputs, *controls)) or (self.index.phases[number] > 0 and not all(controls))

    def enter(self, part: _Made, number: int) -> None:
        """The part works in this region."""
        if number not in part.regions:
            part.regions.add(number)
            self.todo.append(partial(self.open, part, number))

    def open(self, part: _Made, number: int) -> None:
        """Find what a region needs: its start, or its predicate and the other side."""
        region = self.graph.regions[number]
        self.reach(part, number, 0)
        if region.parent is not None:
            self.enter(part, region.parent)
        if region.pred is not None and region.parent is not None:
            for side in self.index.branches[region.pred, region.parent]:
                self.enter(part, side)
            self.find(part, region.pred)

    def reach(self, part: _Made, region: int, phase: int) -> None:
        """The part works in these phases of a body, up to this one."""
        body = self.index.owner[region]
        for port in self.graph.regions[body].starts[: phase + 1]:
            self.find(part, port)

    def pivot(self, part: _Made, region: int, phase: int) -> Ref:
        """The pivot of a region in a part: that of the whole graph, or one led there."""
        way = region
        while (way, phase) not in self.at_phase:
            inside = self.graph.regions[way]
            assert inside.pred is not None and inside.parent is not None, "a body without a start"
            part.pivots.setdefault((way, phase))
            self.find(part, inside.pred)
            way = inside.parent
        self.find(part, self.at_phase[way, phase])
        return _Pivot, region, phase

    def find(self, part: _Made, port: Port) -> Ref | None:
        """A value in a part; None for an order token that says nothing there."""
        key = part.number, port
        if key not in self.known:
            self.known[key] = self.found(part, port)
        return self.known[key]

    def found(self, part: _Made, port: Port) -> Ref | None:
        node = self.nodes[port.node]
        if node.op in SOURCES or node.op in STARTS or is_inward(node, port.index) or port in self.owners.pivots:
            self.copy(part, port.node)
            return _Copy, *port
        self.enter(part, self.index.region_of(port))
        if port in self.owners.spoken_for:
            return self.order(part, port)
        if self.owners.is_owned(port.node):
            owner = self.owners.part_of[port.node]
            if owner != part.number:
                return self.cross(part, port, owner)
            if node.op not in COLLECTED:
                self.copy(part, port.node)
            elif port.node not in part.totals:
                part.totals[port.node] = []
                self.todo.append(partial(self.add_up, part, port.node))
            return _Copy, *port
        if node.op == "switch":
            source = self.owners.source(node.inputs[1])
            if source is not None and self.crosses(part, source):
                owner, region = self.owners.part_of[source.node], self.index.region_of(port)
                is_told = owner in self.owners.present[region] or owner == self.decides(region)
                if is_told or self.owners.is_choice(region):
                    return self.cross(part, port, owner)
        self.copy(part, port.node)
        return _Copy, *port

    def crosses(self, part: _Made, source: Port) -> bool:
        return self.owners.is_owned(source.node) and self.owners.part_of[source.node] != part.number

    def decides(self, region: int) -> int:
        """The part that makes the predicate of a branch; -1: any."""
        pred = self.graph.regions[region].pred
        source = None if pred is None else self.owners.source(pred)
        owned = source is not None and self.owners.is_owned(source.node)
        return self.owners.part_of[source.node] if owned and source is not None else -1

    def order(self, part: _Made, port: Port) -> Ref | None:
        """An order token."""
        adds, acted = self.owners.spoken_for[port]
        node = self.nodes[port.node]
        if node.op in COLLECTS:
            if self.owners.placed[port.node] != part.number:
                return None
        elif is_primitive(node.op) and node.op != "identity":
            if self.owners.placed[port.node] != part.number:
                return self.cross(part, port, self.owners.placed[port.node])
        elif part.number not in adds:
            owner = min(acted, default=None)
            if owner is None:
                return None
            if owner != part.number:
                return self.cross(part, port, owner)
        self.copy(part, port.node)
        return _Copy, *port

    def cross(self, part: _Made, port: Port, owner: int) -> Ref:
        """The part receives this value from its owner."""
        number = len(self.edges)
        part.recvs[port] = number
        self.edges.append(Edge(self.label(port), owner, part.number))
        source = self.parts[owner]
        source.sends.append((number, port))
        self.todo.append(partial(self.connect, source, part, port))
        return _Recv, *port

    def connect(self, source: _Made, part: _Made, port: Port) -> None:
        """Both ends of an edge: the value at one, and what arms the other."""
        region, phase = self.index.region_of(port), self.index.phases[port.node]
        self.find(source, port)
        self.enter(source, region)
        self.pivot(part, region, phase)
        self.reach(part, region, phase)

    def label(self, port: Port) -> str:
        node = self.nodes[port.node]
        return node.name if len(node.types) == 1 else f"{node.name}.{port.index}"

    def add_up(self, part: _Made, number: int) -> None:
        """The sums of other parts, for a `collected`."""
        node = self.nodes[number]
        key = node.attrs.integer("site"), node.attrs.integer("index")
        adders = sorted(self.adders.get(key, ())) or [part.number]
        totals: list[list[Ref]] = []
        for adder in adders:
            if adder == part.number:
                self.copy(part, number)
                totals.append([(_Own, number, index) for index in range(len(node.types))])
                continue
            source = self.parts[adder]
            self.copy(source, number)
            totals.append([])
            for index, type_ in enumerate(node.types):
                edge = len(self.edges)
                self.edges.append(Edge(f"{self.label(Port(number, index))}.{adder}", adder, part.number))
                source.sends.append((edge, Port(number, index)))
                attrs = Attrs(**{"edge": edge, "part": adder})
                recv = Node("recv", (), (type_,), f"{node.name}.from{adder}.{index}", node.region, attrs, (), node.span)
                pivot = self.pivot(part, node.region, self.index.phases[number])
                part.added.append((recv, (pivot,)))
                part.added_for.append(number)
                totals[-1].append((_Added, len(part.added) - 1, 0))
        shares = zip(*totals, strict=True)
        part.totals[number] = [self.sum_of(part, number, index, each) for index, each in enumerate(shares)]

    def sum_of(self, part: _Made, number: int, index: int, shares: Sequence[Ref]) -> Ref:
        """What parts have collected, one after the other: arrays are added, rows follow each other."""
        node = self.nodes[number]

        def add(op: str, attrs: Attrs, refs: tuple[Ref, ...]) -> Ref:
            type_ = node.types[index]
            part.added.append((replace(node, op=op, types=(type_,), attrs=attrs, controls=()), refs))
            part.added_for.append(number)
            return _Added, len(part.added) - 1, 0

        if len(shares) > 1 and node.op == "collected_rows":
            return add("concat", Attrs(axis=0), tuple(shares))
        return reduce(lambda total, share: add("add", Attrs(), (total, share)), shares)


class _Finished:
    """The graph of a part, of all that it was found to need."""

    def __init__(self, cutter: _Cutter, made: _Made) -> None:
        self.cutter = cutter
        self.made = made
        self.names = Names(node.name for node in cutter.nodes)
        self.regions = {old: new for new, old in enumerate(sorted(made.regions))}
        kept = {
            cutter.nodes[n].attrs.integer("site") for op in STARTS for n, _ in cutter.index.of(op) if n in made.copies
        }
        self.sites = {old: new for new, old in enumerate(sorted(kept), 1)}
        self.inputs = sorted(
            cutter.nodes[n].attrs.integer("index") for n, _ in cutter.index.of("input") if n in made.copies
        )
        self.made_nodes: list[Node] = []
        self.lay_out()
        self.part = self.finish()

    def lay_out(self) -> None:
        """Give every node its number: copies in their order, each followed by what sends it; Recvs; added nodes."""
        made, cutter = self.made, self.cutter
        number = 0
        self.copies: dict[int, int] = {}
        self.recvs: dict[Port, int] = {}
        self.sends: list[tuple[int, int, Port]] = []
        sends = grouped((port.node, (edge, port)) for edge, port in made.sends)
        recvs = grouped((port.node, port) for port in made.recvs)
        pivots = grouped((self.switch_of(*key)[0].node, key) for key in made.pivots)
        self.pivots: dict[tuple[int, int], Port] = {}
        for old in range(len(cutter.nodes)):
            for port in recvs.get(old, ()):
                self.recvs[port] = number
                number += 1
            if old in made.copies:
                self.copies[old] = number
                number += 1
            for edge, port in sends.get(old, ()):
                self.sends.append((number, edge, port))
                number += 1
            for region, phase in pivots.get(old, ()):
                if (region, phase) in self.pivots:
                    continue
                both = cutter.index.branches[self.switch_of(region, phase)]
                self.pivots.update({(side, phase): Port(number, at) for at, side in enumerate(both)})
                number += 1
        self.first_added = number

    def switch_of(self, region: int, phase: int) -> tuple[Port, int]:
        """The predicate and region of the switch that leads a pivot into a branch."""
        inside = self.cutter.graph.regions[region]
        assert inside.pred is not None and inside.parent is not None
        return inside.pred, inside.parent

    def local(self, ref: Ref) -> Port:
        kind, first, second = ref
        if kind == _Copy:
            totals = self.made.totals.get(first)
            return self.local(totals[second]) if totals else Port(self.copies[first], second)
        if kind == _Own:
            return Port(self.copies[first], second)
        if kind == _Recv:
            return Port(self.recvs[Port(first, second)])
        if kind == _Added:
            return Port(self.first_added + first)
        return self.pivot(first, second)

    def pivot(self, region: int, phase: int) -> Port:
        known = self.cutter.at_phase.get((region, phase))
        return self.pivots[region, phase] if known is None else self.copy_of(known)

    def copy_of(self, port: Port) -> Port:
        return Port(self.copies[port.node], port.index)

    def find(self, port: Port) -> Port | None:
        ref = self.cutter.known.get((self.made.number, port))
        return None if ref is None else self.local(ref)

    def finish(self) -> Part:
        made, cutter, graph = self.made, self.cutter, self.cutter.graph
        nodes: dict[int, Node] = {}
        for old, new in self.copies.items():
            nodes[new] = self.copied(old)
        for port, new in self.recvs.items():
            edge = cutter.edges[made.recvs[port]]
            region, phase = cutter.index.region_of(port), cutter.index.phases[port.node]
            attrs = Attrs(**{"edge": made.recvs[port], "part": edge.source})
            nodes[new] = Node(
                "recv", (), (graph.type_of(port),), self.names.fresh(f"{cutter.label(port)}.from{edge.source}"),
                self.regions[region], attrs, (self.pivot(region, phase),), graph.nodes[port.node].span,
            )  # fmt: skip
        for new, number, port in self.sends:
            edge = cutter.edges[number]
            local = self.own(port)
            attrs = Attrs(**{"edge": number, "part": edge.target})
            nodes[new] = Node(
                "send", (local,), (CTL,), self.names.fresh(f"{cutter.label(port)}.to{edge.target}"),
                self.regions[cutter.index.region_of(port)], attrs, (), graph.nodes[port.node].span,
            )  # fmt: skip
        for (region, phase), port in self.pivots.items():
            if port.index == 0:
                pred, parent = self.switch_of(region, phase)
                name = self.names.fresh(f"{graph.regions[region].name}.start{phase}")
                span = graph.nodes[pred.node].span
                inputs = self.wanted(pred), self.pivot(parent, phase)
                nodes[port.node] = Node("switch", inputs, (CTL, CTL), name, self.regions[parent], span=span)
        for place, (node, refs) in enumerate(made.added):
            ports = tuple(self.local(ref) for ref in refs)
            name, region = self.names.fresh(node.name), self.regions[node.region]
            node = replace(node, name=name, region=region)
            is_recv = node.op == "recv"
            nodes[self.first_added + place] = replace(node, controls=ports) if is_recv else replace(node, inputs=ports)
        fetches = tuple(self.or_pivot(port) for _, port in made.fetches)
        whole = StaticGraph(
            tuple(nodes[number] for number in range(len(nodes))),
            tuple(self.region(old) for old in self.regions),
            f"{graph.name}.{made.number}",
            tuple(self.site(old) for old in self.sites),
            tuple(self.copies[graph.inputs[index]] for index in self.inputs),
            fetches,
        )
        return Part(
            whole,
            self.origins(),
            tuple(self.regions),
            tuple(self.sites),
            tuple(self.inputs),
            tuple(number for number, _ in made.fetches),
        )

    def origins(self) -> tuple[int, ...]:
        """The node of the whole graph that each node stands for; of a pivot, the predicate by which it is switched."""
        found = {new: old for old, new in self.copies.items()}
        found.update((new, port.node) for port, new in self.recvs.items())
        found.update((new, port.node) for new, _, port in self.sends)
        found.update((port.node, self.switch_of(*key)[0].node) for key, port in self.pivots.items())
        found.update((self.first_added + k, total) for k, total in enumerate(self.made.added_for))
        return tuple(found[number] for number in range(len(found)))

    def own(self, port: Port) -> Port:
        """What a Send takes: of a sum that another part adds up, this part's own."""
        is_sum = self.cutter.nodes[port.node].op in COLLECTED
        if is_sum and self.cutter.owners.part_of[port.node] != self.made.number:
            return self.copy_of(port)
        return self.wanted(port)

    def wanted(self, port: Port) -> Port:
        local = self.find(port)
        assert local is not None, "an order token that says nothing"
        return local

    def or_pivot(self, port: Port) -> Port:
        """A value; for an order token that says nothing here, the start of its region."""
        index = self.cutter.index
        return self.find(port) or self.pivot(index.home(port), index.waits_for(port))

    def copied(self, old: int) -> Node:
        """A copy of a node of the whole graph. Order tokens that say nothing here are left out."""
        node = self.cutter.nodes[old]
        found = [self.find(port) for port in node.controls]
        controls = tuple(port for port in found if port is not None)
        attrs = node.attrs
        if "site" in attrs:
            attrs = attrs | {"site": self.sites[attrs.integer("site")]}
        if node.op == "input":
            attrs = attrs | {"index": self.inputs.index(attrs.integer("index"))}
        inputs: list[Operand] = []
        for operand in node.inputs:
            if isinstance(operand, Const):
                inputs.append(operand)
                continue
            inputs.append(self.or_pivot(operand))  # there is something else to wait for, or nothing
        given = [True for _ in ports_of(inputs)]
        if self.cutter.needs_pivot(node, old, given, [port is not None for port in found]):
            controls = (*controls, self.pivot(node.region, self.cutter.index.phases[old]))
        return replace(node, inputs=tuple(inputs), controls=controls, attrs=attrs, region=self.regions[node.region])

    def region(self, old: int) -> Region:
        region = self.cutter.graph.regions[old]
        starts = [
            (phase, self.pivot(old, phase))
            for phase in range(self.cutter.index.phase_count[self.cutter.index.owner[old]])
            if (old, phase) in self.pivots or self.has(self.cutter.at_phase.get((old, phase)))
        ]
        return replace(
            region,
            parent=None if region.parent is None else self.regions[region.parent],
            pred=None if region.pred is None else self.find(region.pred),
            starts=tuple(port for _, port in starts),
        )

    def has(self, port: Port | None) -> bool:
        return port is not None and port.node in self.copies

    def site(self, old: int) -> Site:
        site = self.cutter.graph.sites[old - 1]
        return replace(site, caller=self.regions[site.caller], callee=self.regions[site.callee])
