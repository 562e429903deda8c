"""The plan of the demand engine: for each value of a body, where its inputs are.

A body's frames have one *slot* for each output of its nodes, for each constant, and for each element that a map
hands to it. A row says how the value of a slot is computed: `needs` are the slots of the same frame that must be
known first, `source` is the slot whose value is forwarded, in this frame or in another, depending on the code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from undertow.engines.checks import GO, Value, as_plain
from undertow.engines.demand.index import FAR, MOVES, DemandIndex
from undertow.engines.frames import STATE, crosses_frames, kernel_of
from undertow.errors import GraphError
from undertow.ir.graph import Const, Node, Operand, Port, StaticGraph
from undertow.ir.structure import COLLECTED, COLLECTS, INWARD, STARTS
from undertow.ir.walk import is_inward, phase_of, ports_of
from undertow.types import CTL

NONE = object()  # a value that is not known yet
BUSY = object()  # a value that is being evaluated

# Codes of rows, besides kernels: computed from values in the same frame ...
FORWARD, SIGNAL, COUNT, FAN, INPUT = range(STATE + 1, 8)
# ... or from one more value, found at run time: the side that a branch takes, an argument, a result ...
BRANCH, PARAM, VARIABLE, OUTER, ELEMENT, RETURN, EXIT, GATHER = range(8, 16)

_LOCAL = {
    **dict.fromkeys(INWARD, FORWARD),
    **dict.fromkeys(STARTS, SIGNAL),
    **{"switch": FORWARD, "start": SIGNAL, "input": INPUT, "fan_start": COUNT, "fan": FAN},
}
_FAR = {op: {"call": RETURN, "loop": EXIT, "map": GATHER}.get(site, OUTER) for op, site in FAR.items()}


class Row(NamedTuple):
    """How the value of a slot is computed."""

    code: int
    number: int  # of the node in the graph
    tally: int  # where its firings are counted: the same, or -1 for a lane's read of the mapped array
    needs: tuple[int, ...]  # in reverse order of demand, as on a stack
    source: int
    extra: Any
    first: int  # slot of the node's first output


_CONSTANT = Row(SIGNAL, -1, -1, (), 0, None, 0)  # of slots that are filled when a frame begins


@dataclass(slots=True, eq=False)
class Layout:
    """The frames of one body."""

    region: int
    is_call: bool
    slots: list[Value] = field(default_factory=list)  # initial values: constants and plain order tokens
    rows: list[Row] = field(default_factory=list)  # by slot
    arrays: list[int] = field(default_factory=list)  # slots that may hold arrays
    cells: list[int] = field(default_factory=list)  # slots that hold the frames entered from here
    parts: list[int] = field(default_factory=list)  # slots that hold what a gather has taken so far
    variables: int = 0  # of a loop: number of those that iterations use
    pred: int = 0  # of a loop: slot of the predicate

    @property
    def cost(self) -> int:
        """Bytes of a frame: the object, its list, and a NumPy scalar in every other slot."""
        return 240 + 24 * len(self.slots)

    def slot(self, value: Value = NONE) -> int:
        self.slots.append(value)
        self.rows.append(_CONSTANT)
        return len(self.slots) - 1


@dataclass(slots=True, eq=False)
class SitePlan:
    """What rows need to know of a site."""

    number: int
    layout: Layout  # of the body that it enters
    cell: int  # slot of the caller: the callee's frame, a loop's latest iteration, or a map's lanes
    left: int  # slot of the caller: how many exits of a loop have not been demanded yet
    owed: int = 0  # number of results that may be demanded of a frame entered here
    exits: int = 0  # of a loop: number of exits that may be demanded


class Fetch(NamedTuple):
    """A result of a run: a slot of the main frame, live if each guard (a slot) has the given value."""

    slot: int
    guards: tuple[tuple[int, bool], ...]
    is_order: bool


class Plan:
    """A static graph as rows. Holds nothing of any run."""

    def __init__(self, graph: StaticGraph) -> None:
        read = next((node for node in graph.nodes if node.op in ("hoist_read", *COLLECTS, *COLLECTED)), None)
        if read is not None:
            message = f"{read.name} is hoisted, but the demand engine follows arguments through calls"
            raise GraphError(message, read.span, hint="flatten the library as it was before `hoist`")
        self.graph = graph
        self.index = index = DemandIndex(graph)
        self._layouts = {
            number: Layout(number, region.kind == "function")
            for number, region in enumerate(graph.regions)
            if region.kind != "branch"
        }
        self._sites: list[SitePlan] = []
        for number, site in enumerate(graph.sites, 1):
            caller = self._layouts[index.owner[site.caller]]
            caller.cells.append(caller.slot(None))
            left = caller.slot(0) if site.kind == "loop" else 0
            self._sites.append(SitePlan(number, self._layouts[site.callee], caller.cells[-1], left))
        self._first: list[int] = []
        self._elements: dict[Port, int] = {}  # fan -> slot of its element in the lanes
        self._lay_out()
        self._orders: dict[tuple[int, int], list[int]] = {}  # (site, phase) -> slots of its order tokens
        for visit, operators in index.visits.items():
            orders = (n for n in operators.arguments if graph.nodes[n].types[0] == CTL and not index.is_plain(Port(n)))
            self._orders[visit] = [self._first[n] for n in orders]
        for number, node in enumerate(graph.nodes):
            row, layout = self._row(number, node), self._layouts[index.bodies[number]]
            layout.rows[row.first : row.first + len(node.types)] = [row] * len(node.types)
        self.main = self._layouts[0]
        self.fetches = [self._fetch(port) for port in graph.fetches]

    # -- slots ---------------------------------------------------------------------------------------------

    def _lay_out(self) -> None:
        """Give every output a slot in its body, and a fan's element another in the lanes; count results."""
        index = self.index
        for number, node in enumerate(self.graph.nodes):
            layout = self._layouts[index.bodies[number]]
            self._first.append(len(layout.slots))
            for output, type_ in enumerate(node.types):
                slot = layout.slot(GO if index.is_plain(Port(number, output)) else NONE)
                if type_.shape or node.op == "fan":
                    layout.arrays.append(slot)
            if node.op in ("fan", "fan_start"):
                lanes = self._layouts[index.site(node).callee]
                code = OUTER if node.types[0] == CTL else ELEMENT
                slot = lanes.slot(GO if index.is_plain(Port(number)) else NONE)
                lanes.rows[slot] = Row(code, number, -1, (), self._first[number], None, slot)
                self._elements[Port(number)] = slot
                if node.op == "fan" and node.types[0].shape:
                    lanes.arrays.append(slot)
            if index.wanted[number] and not index.is_plain(Port(number)):
                if node.op in ("return", "gather"):
                    self._site(node).owed += 1
                elif node.op == "exit":
                    self._site(node).exits += 1
                elif node.op == "merge" and node.region in index.preds and number not in index.deciders:
                    layout.variables += number not in index.last_only

    def _site(self, node: Node) -> SitePlan:
        self.index.site(node)  # raises if there is none
        return self._sites[node.attrs.integer("site") - 1]

    def _slot(self, port: Port) -> int:
        """The slot of an output in the frames of its node."""
        return self._first[port.node] + port.index

    def _near(self, operand: Operand, node: Node, body: int) -> int:
        """The slot of an operand of `node` in the frames of `body`."""
        if isinstance(operand, Const):
            return self._layouts[body].slot(as_plain(operand.value))
        maker = self.graph.nodes[operand.node]
        is_sent = is_inward(maker, operand.index)
        if self.index.lands(operand) != body or (is_sent and operand not in self._elements):
            raise crosses_frames("an edge", maker, node)
        return self._elements.get(operand, self._slot(operand))

    def _fetch(self, port: Port) -> Fetch:
        guards = tuple((self._slot(pred), side) for pred, side in self.index.guards(port))
        return Fetch(self._slot(port), guards, self.graph.type_of(port) == CTL)

    # -- rows ----------------------------------------------------------------------------------------------

    def _row(self, number: int, node: Node) -> Row:
        if node.op == "merge":
            return self._merge(number, node)
        body = self.index.bodies[number]
        # Control edges are demanded before inputs.
        needs = [self._near(port, node, body) for port in node.controls if not self.index.is_plain(port)]
        if node.op in _FAR and ports_of(node.inputs):
            return self._far(number, node, needs)
        inputs = tuple(self._near(operand, node, body) for operand in node.inputs)
        code, source = _LOCAL.get(node.op), 0
        extra: Any = None
        if node.op not in MOVES and node.op != "input":
            code, parts = kernel_of(node)
            extra = (inputs, *parts)
            needs += inputs
        elif code == INPUT:
            source = self.graph.inputs.index(number)
        elif code == COUNT:
            extra = phase_of(node)
        elif code == FAN:
            count = self._slot(self.index.counts[node.attrs.integer("site")])
            needs.append(count)
            if node.types[0] == CTL:
                code = FORWARD
            else:
                extra = count, "unequal_visits" if phase_of(node) else "unequal_lanes"
        if code is None:
            code = FORWARD  # a constant that is read from the parent's frame
        if code in (FORWARD, COUNT, FAN):
            # A side of a switch is demanded only if it was taken.
            source = inputs[-1]
            needs.append(source)
        return Row(code, number, number, _stacked(needs), source, extra, self._first[number])

    def _far(self, number: int, node: Node, needs: list[int]) -> Row:
        """The row of an operator that takes its value from another frame."""
        code, site = _FAR[node.op], self._site(node)
        extra: Any = site
        if code == OUTER:
            body = self.index.owner[self.graph.sites[site.number - 1].caller]
        else:
            body = site.layout.region
        source = self._near(node.inputs[0], node, body)
        if code in (RETURN, GATHER) and node.types[0] == CTL:
            # The control edges of a call come before anything inside it.
            needs += self._orders.get((site.number, phase_of(node)), ())
        if code == EXIT:
            site.layout.pred = self._near(self.index.deciders[number], node, body)
            extra = site, [(self._first[merge], lag) for merge, lag in self.index.eager.get(number, ())]
        elif code == GATHER:
            here = self._layouts[self.index.bodies[number]]
            count = self._slot(self.index.counts[site.number])
            here.parts.append(here.slot(None))
            extra = site, count, here.parts[-1], node.types[0]
            needs.append(count)
        return Row(code, number, number, _stacked(needs), source, extra, self._first[number])

    def _merge(self, number: int, node: Node) -> Row:
        ports = ports_of(node.inputs)
        first, body = self._first[number], self.index.bodies[number]
        if number in self.index.deciders:
            pred = self._near(self.index.deciders[number], node, body)
            then, other = (self._near(port, node, body) for port in ports)
            return Row(BRANCH, number, number, (pred,), pred, (then, other), first)
        makers = [self.graph.nodes[port.node] for port in ports]
        if "next" in (maker.op for maker in makers):
            enter, back = sorted(ports, key=lambda port: self.graph.nodes[port.node].op == "next")
            extra = self._slot(back), number not in self.index.last_only
            return Row(VARIABLE, number, number, (), self._slot(enter), extra, first)
        arguments = {maker.attrs.integer("site"): self._slot(p) for maker, p in zip(makers, ports, strict=True)}
        return Row(PARAM, number, number, (), 0, arguments, first)


def _stacked(slots: list[int]) -> tuple[int, ...]:
    return tuple(reversed(dict.fromkeys(slots)))
