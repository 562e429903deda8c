"""A mutable function graph for passes: adds nodes in order, makes names unique, remembers pivots.

A pass walks an old graph, adds nodes to a draft, and freezes that. The draft knows where each port's tokens live and
which port is the pivot of which region, so a pass need not maintain `Region.starts`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from undertow.ir import budget
from undertow.ir.graph import Const, FunctionGraph, Node, Operand, Phase, Port, Region
from undertow.ir.names import Names, in_scope
from undertow.ir.structure import ENTERING, SOURCES
from undertow.ir.walk import node_phases, phase_of
from undertow.types import Type

_BATCH = 256  # nodes that are paid for at once: a second look at the clock for each would show


class Draft:
    """Nodes and regions so far. Add a node after what it uses, a branch after its predicate."""

    def __init__(self, kind: str, name: str) -> None:
        self.nodes: list[Node] = []
        self.phases: list[int] = []  # by node: the last phase that it waits for
        self.regions: list[Region] = [Region(kind, name)]
        self.pairs: dict[tuple[Operand, int], tuple[int, int]] = {}  # (predicate, parent) -> the two sides
        self._homes: dict[Port, int] = {}  # of outputs of Switch
        self._pivots: defaultdict[int, dict[int, Port]] = defaultdict(dict)  # phase -> region -> pivot
        self._starts: set[Port] = set()  # every pivot: a second Switch of one is one too
        self._names = Names()

    def add(self, node: Node) -> int:
        """Append a node, renamed if its name is taken; returns its number."""
        number = len(self.nodes)
        if not number % _BATCH and number:
            budget.pay(_BATCH)
        name = self._names.fresh(node.name)
        self.nodes.append(node if name == node.name else replace(node, name=name))
        self.phases.append(phase_of(node) if node.op in SOURCES else self.waits_for(node))
        if node.op == "start":
            self._starts.add(Port(number))
            self._pivots[phase_of(node)][0] = Port(number)
        elif node.op == "switch":
            pred, value = node.inputs
            for side, region in enumerate(self.pairs[pred, node.region]):
                self._homes[Port(number, side)] = region
                if value in self._starts:
                    self._starts.add(Port(number, side))
                    self._pivots[self.phases[number]].setdefault(region, Port(number, side))
        return number

    def waits_for(self, node: Node) -> int:
        """The last phase that the operands and control edges of a node wait for."""
        return max((self.phases[p.node] for p in (*node.inputs, *node.controls) if isinstance(p, Port)), default=0)

    def triggered(self, node: Node, phase: int, waits: bool = False) -> Node:
        """The node with a control edge from its pivot, if nothing would trigger it without that, or too early.

        A call in an earlier phase would also be made where its own phase is never visited; so it always `waits` for
        its phase.
        """
        is_triggered = bool(node.controls) or any(isinstance(operand, Port) for operand in node.inputs)
        is_early = (waits or node.op in ENTERING) and self.waits_for(node) < phase
        if node.op in SOURCES or (is_triggered and not is_early):
            return node
        return replace(node, controls=(*node.controls, self.make_pivot(node.region, phase)))

    def branch(self, pred: Port, parent: int, names: tuple[str, str]) -> tuple[int, int]:
        """Two new regions: where `pred` is true, and where it is false."""
        number = len(self.regions)
        for name, side in zip(names, (True, False), strict=True):
            self.regions.append(Region("branch", name, parent, pred, side))
        self.pairs[pred, parent] = number, number + 1
        return number, number + 1

    def type_of(self, operand: Operand) -> Type:
        return operand.type if isinstance(operand, Const) else self.nodes[operand.node].types[operand.index]

    def home(self, port: Port) -> int:
        """The region that a port's tokens are live in."""
        return self._homes.get(port, self.nodes[port.node].region)

    # -- pivots --------------------------------------------------------------------------------------------

    def is_pivot(self, port: Port) -> bool:
        return port in self._starts

    def pivot(self, region: int, phase: int = 0) -> Port | None:
        """The pivot of a region, if there is one so far."""
        return self._pivots[phase].get(region)

    def make_pivot(self, region: int, phase: int = 0) -> Port:
        """The pivot of a region, brought there where there is none."""
        return self.bring(self._pivots[phase], region, "start")

    def bring(self, seen: dict[int, Port], region: int, name: str) -> Port:
        """A value in a region, through a Switch for each branch on the way; `seen` is the value where it is already."""
        for inner in reversed(way_down(self.regions, region, seen)):
            pred, outer = self.regions[inner].pred, self.regions[inner].parent
            assert pred is not None and outer is not None
            types, full = (self.type_of(seen[outer]),) * 2, in_scope(f"{name}.if", self.regions, outer)
            span = self.nodes[pred.node].span
            switch = self.add(Node("switch", (pred, seen[outer]), types, full, outer, span=span))
            for index, side in enumerate(self.pairs[pred, outer]):
                seen.setdefault(side, Port(switch, index))
        return seen[region]

    # -- the end -------------------------------------------------------------------------------------------

    def freeze(
        self, old: FunctionGraph, phases: Iterable[Phase], carried: int, shared: Iterable[Port] = ()
    ) -> FunctionGraph:
        """The finished graph, with the name, group and span of `old`."""
        budget.pay(len(self.nodes) % _BATCH)
        starts: list[list[tuple[int, Port]]] = [[] for _ in self.regions]
        for phase, pivots in self._pivots.items():
            for region, port in pivots.items():
                starts[region].append((phase, port))
        regions = tuple(
            replace(region, starts=tuple(port for _, port in sorted(found)))
            for region, found in zip(self.regions, starts, strict=True)
        )
        return replace(
            old, nodes=tuple(self.nodes), regions=regions, phases=tuple(phases), carried=carried, shared=tuple(shared)
        )


class Copy:
    """A copy of a graph into a draft: maps its regions and ports to those of the draft. Branches are added on demand.

    By default the draft is a new one: the pass adds the nodes that it keeps, and freezes it.
    """

    def __init__(self, graph: FunctionGraph, draft: Draft | None = None, region: int = 0, prefix: str = "") -> None:
        self.graph = graph
        self.draft = Draft(graph.kind, graph.regions[0].name) if draft is None else draft
        self.prefix = prefix  # of the names of branches
        self.ports: dict[Port, Port] = {}
        self.places = {0: region}
        self.branches = graph.branches()
        # By old node: the last phase that it waits for.
        self.phases = node_phases(graph) if len(graph.phases) > 1 else [0] * len(graph.nodes)

    def operand(self, operand: Operand) -> Operand:
        return operand if isinstance(operand, Const) else self.ports[operand]

    def port(self, port: Port) -> Port:
        return self.ports[port]

    def place(self, region: int) -> int:
        """Where a region went."""
        path = way_down(self.graph.regions, region, self.places)
        while path:
            self.open(path.pop())
        return self.places[region]

    def open(self, number: int) -> None:
        """Add both sides of a branch; the enclosing region must exist."""
        region = self.graph.regions[number]
        assert region.pred is not None and region.parent is not None
        sides = self.branches[region.pred, region.parent]
        names = tuple(self.prefix + self.graph.regions[side].name for side in sides)
        key = self.ports[region.pred], self.places[region.parent]
        made = self.draft.pairs.get(key) or self.draft.branch(*key, (names[0], names[1]))
        self.places.update(zip(sides, made, strict=True))

    def add(self, number: int, node: Node | None = None, outputs: Iterable[int] | None = None) -> int:
        """Add a node, as it is or as changed by the caller; `outputs` are the old outputs it keeps. Its new number."""
        if node is None:
            node = self.graph.nodes[number]
        return self.add_moved(number, node, tuple(map(self.operand, node.inputs)), outputs)

    def add_moved(
        self, number: int, node: Node, inputs: tuple[Operand, ...], outputs: Iterable[int] | None = None
    ) -> int:
        """Add a node with inputs that are already operands of the draft."""
        if node.op == "switch":
            pred = self.graph.nodes[number].inputs[0]
            assert isinstance(pred, Port)
            self.place(self.branches[pred, node.region][0])
        controls = tuple(self.ports[port] for port in node.controls)
        # Not `replace`, which takes twice as long: every node of every pass comes here.
        moved = Node(node.op, inputs, node.types, node.name, self.place(node.region), node.attrs, controls, node.span)
        new = self.draft.add(self.draft.triggered(moved, self.phases[number]))
        for index, old in enumerate(range(len(node.types)) if outputs is None else outputs):
            self.ports[Port(number, old)] = Port(new, index)
        return new

    def phase(self, number: int) -> Phase:
        """The draft's parameters and results for a phase of the old graph."""
        phase = self.graph.phases[number]
        return Phase(tuple(self.port(Port(p)).node for p in phase.params), tuple(map(self.port, phase.results)))

    def freeze(self, phases: Iterable[Phase] | None = None, shared: Iterable[Port] | None = None) -> FunctionGraph:
        """The finished graph; `phases` and `shared` default to those of the old one."""
        if phases is None:
            phases = [self.phase(number) for number in range(len(self.graph.phases))]
        if shared is None:
            shared = tuple(map(self.port, self.graph.shared))
        return self.draft.freeze(self.graph, phases, self.graph.carried, shared)


def way_down(regions: Sequence[Region], region: int, known: Container[int]) -> list[int]:
    """The regions from a region up to the first known one, that one left out; the last is to be entered first."""
    path: list[int] = []
    while region not in known:
        path.append(region)
        parent = regions[region].parent
        assert parent is not None, "a body without a start, or a value that is used outside its branch"
        region = parent
    return path
