"""The builder: writes one function graph, node by node, for every API of Undertow.

The builder knows regions. A value that is used inside a branch is led there by a chain of Switch nodes,
written once per branch and value; a node without inputs is triggered by its region's pivot; a value that
belongs to an enclosing graph is lifted: it becomes a parameter of this one.

Passes write through `ir.draft` instead: their nodes stay, so a draft numbers and names them at once. What users
write may be undone (`rollback`) or renamed (`rename`) until the graph is finished.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from undertow.errors import CaptureError, InternalError, Span
from undertow.ir import budget
from undertow.ir.graph import EMPTY, Attrs, Const, FunctionGraph, Node, Operand, Phase, Port, Region
from undertow.ir.names import Names, in_scope
from undertow.ir.structure import SOURCES
from undertow.types import CTL, Type, bool_

START = Port(0)


def _renamed(node: Node, name: str) -> Node:
    # Not `replace`, which takes twice as long.
    return Node(node.op, node.inputs, node.types, name, node.region, node.attrs, node.controls, node.span)


NOTHING: Mapping[Port, Port] = {}
_BATCH = 256  # nodes that are paid for at once


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state of a builder that `rollback` returns to."""

    nodes: int
    regions: int
    region: int
    params: int
    effect: Port | None


@dataclass(slots=True, eq=False)
class Builder:
    """One graph under construction. New nodes are put into `region`."""

    name: str
    kind: str
    span: Span | None = None
    nodes: list[Node] = field(default_factory=list)
    regions: list[Region] = field(default_factory=list)
    region: int = 0
    params: list[int] = field(default_factory=list)
    effect: Port | None = None  # the last effect so far, in program order
    entry_effect: Port | None = None  # the order token before the first effect: a parameter, once one is needed
    is_open: bool = True
    is_block: bool = False  # written by the block of a SubGraph, which is plain Python
    context: Any = None  # of an API that writes at any time (compat.v1, SubGraph), not only during a capture
    controls: tuple[Port, ...] = ()  # control edges that every new node gets: `control_dependencies`
    scope: str = ""  # what names of new nodes begin with: "layer/"
    device: str | None = None  # of new nodes; "" is where main runs
    is_sorted: bool = True  # do operands come before the nodes that take them?
    key: Port | None = None  # the random key of this activation, in region 0
    body: Any = None  # of a loop or map: see control/body.py
    raised: tuple[str, type[Exception], Span | None] | None = None  # what Python raised first in a branch, and where
    parent: Builder | None = None  # of a loop or map: the graph around it
    carrier: Any = None  # of a loop that may carry further arrays: see interpret/loops.py
    draws: int = 0  # number of sites that have drawn from the key so far
    hands_key_on: bool = False  # it only wraps one call, which draws from the same key
    # Parameters whose arrays change in place: number -> (its name, what to write instead, the line).
    changed: dict[int, tuple[str, str, Span | None]] = field(default_factory=dict)
    lifted: dict[tuple[Builder, Port], Port] = field(default_factory=dict)  # outer value -> the parameter of this graph
    forced: list[tuple[int, list[Any]]] = field(default_factory=list)  # (node, merged value of a join), in order
    _through: dict[tuple[Port, int], Port] = field(default_factory=dict)  # (value, region) -> the Switch output there
    _homes: dict[Port, int] = field(default_factory=dict)  # outputs of Switch -> their branch
    _branches: dict[tuple[Port, int], int] = field(default_factory=dict)  # (predicate, region) -> its true side

    def __post_init__(self) -> None:
        self.regions.append(Region(self.kind, self.name, starts=(START,)))
        self.add("start", (), (CTL,), name="start")

    @classmethod
    def reopened(cls, graph: FunctionGraph) -> Builder:
        """A builder that continues a finished graph."""
        builder = cls(graph.name, graph.kind, graph.span, is_open=False)
        builder.nodes, builder.regions, builder.params = list(graph.nodes), list(graph.regions), list(graph.params)
        sides = graph.branches()
        for number, node in enumerate(graph.nodes):
            if node.op == "switch":
                pred = node.inputs[0]
                assert isinstance(pred, Port)
                for index, region in enumerate(sides[pred, node.region]):
                    builder._through[builder.origin(Port(number)), region] = Port(number, index)
                    builder._homes[Port(number, index)] = region
        builder._branches = {key: then for key, (then, _) in sides.items()}
        return builder

    # -- nodes ---------------------------------------------------------------------------------------------

    def add(
        self,
        op: str,
        inputs: Sequence[Operand],
        types: tuple[Type, ...],
        attrs: Attrs = EMPTY,
        span: Span | None = None,
        name: str = "",
        controls: tuple[Port, ...] = (),
        region: int | None = None,
    ) -> int:
        """Append a node to the current (or the given) region; its inputs must be visible there."""
        if not len(self.nodes) % _BATCH:
            budget.pay(_BATCH if self.nodes else 0)
        where = self.region if region is None else region
        is_scoped = region is None and op not in ("start", "param", "switch", "merge")
        if is_scoped and (self.controls or self.device is not None):
            controls += tuple(self.use(port) for port in self.controls)
            if self.device is not None:
                attrs = Attrs(**attrs, device=self.device)
        if not controls and op not in SOURCES and not any(i.__class__ is Port for i in inputs):
            controls = (self.use(START, where),)
        full = in_scope(
            self.scope + (name or op), self.regions, where
        )  # `finish` adds a number where several nodes have it
        self.nodes.append(Node(op, tuple(inputs), types, full, where, attrs, controls, span))
        return len(self.nodes) - 1

    def rename(self, port: Port, name: str) -> None:
        """Name the newest node after the variable that it was assigned to."""
        node = self.nodes[port.node]
        if port.node == len(self.nodes) - 1 and node.op != "param":
            self.nodes[port.node] = _renamed(node, in_scope(self.scope + name, self.regions, node.region))

    def param(self, type: Type, name: str) -> Port:
        """Append a parameter."""
        number = self.add("param", (), (type,), Attrs(index=len(self.params)), name=name, region=0)
        self.params.append(number)
        return Port(number)

    def gate(self, value: Const, span: Span | None = None, name: str = "") -> Port:
        """A constant as a token of the current region: live where the region is."""
        return Port(self.add("identity", (value,), (value.type,), span=span, name=name or "value"))

    def type_of(self, operand: Operand) -> Type:
        return operand.type if isinstance(operand, Const) else self.nodes[operand.node].types[operand.index]

    # -- regions -------------------------------------------------------------------------------------------

    def branch(self, pred: Port) -> tuple[int, int]:
        """Two regions below the current one: where `pred` is true, and where it is false.

        A second branch on the same value has the regions of the first: regions are identified by the predicate.
        """
        pred = self.use(pred)
        if self.type_of(pred) != Type(bool_):
            raise InternalError(f"a branch on {self.type_of(pred)}")
        if (pred, self.region) not in self._branches:
            number = self._branches[pred, self.region] = len(self.regions)
            for side, suffix in ((True, "then"), (False, "else")):
                self.regions.append(Region("branch", f"if{(number + 1) // 2}.{suffix}", self.region, pred, side))
        then = self._branches[pred, self.region]
        return then, then + 1

    def home(self, port: Port) -> int:
        """The region that a port's tokens are live in."""
        return self._homes.get(port, self.nodes[port.node].region)

    def origin(self, port: Port) -> Port:
        """The source of a port: itself, or the input of the Switches before it."""
        while self.nodes[port.node].op == "switch":
            given = self.nodes[port.node].inputs[1]
            assert isinstance(given, Port)
            port = given
        return port

    def use(self, port: Port, region: int | None = None) -> Port:
        """The port led into the current (or the given) region, through a Switch for each branch on the way."""
        at = self.region if region is None else region
        home = self.home(port)
        path: list[int] = []
        found = port if at == home else self._through.get((port, at))
        while found is None:
            parent = self.regions[at].parent
            if parent is None:
                raise CaptureError(
                    "a value computed inside a branch is used outside it",
                    hint="return it from the branch, or assign it to a variable in both branches",
                )
            path.append(at)
            at = parent
            found = port if at == home else self._through.get((port, at))
        if not path:
            return found
        origin = self.nodes[port.node]
        while path:
            inner = path.pop()
            pred = self.regions[inner].pred
            assert pred is not None
            types, name = (self.type_of(found),) * 2, f"{origin.short_name}.if"
            number = self.add("switch", (pred, found), types, EMPTY, origin.span, name, region=at)
            # A Switch has two outputs: the other branch may want the value too.
            then = inner if self.regions[inner].side else inner - 1
            for region_of_side, side in ((then, Port(number, 0)), (then + 1, Port(number, 1))):
                self._through[port, region_of_side] = side
                self._homes[side] = region_of_side
                if port == START:
                    self.regions[region_of_side] = replace(self.regions[region_of_side], starts=(side,))
            found, at = self._through[port, inner], inner
        return found

    # -- rollback and finish -------------------------------------------------------------------------------

    def checkpoint(self) -> Checkpoint:
        return Checkpoint(len(self.nodes), len(self.regions), self.region, len(self.params), self.effect)

    def rollback(self, mark: Checkpoint) -> None:
        """Undo what was written since the checkpoint."""
        del self.nodes[mark.nodes :], self.regions[mark.regions :], self.params[mark.params :]
        self.region, self.effect = mark.region, mark.effect
        self.lifted = {outer: inner for outer, inner in self.lifted.items() if inner.node < mark.nodes}
        if self.key is not None and self.key.node >= mark.nodes:
            self.key = None
        if self.entry_effect is not None and self.entry_effect.node >= mark.nodes:
            self.entry_effect = None
        for key, seen in list(self._through.items()):
            if seen.node >= mark.nodes or key[0].node >= mark.nodes or key[1] >= mark.regions:
                del self._through[key]
                self._homes.pop(seen, None)
        while self.forced and self.forced[-1][0] >= mark.nodes:
            self.forced.pop()[1].clear()  # to be merged again when read again
        self._branches = {key: then for key, then in self._branches.items() if then < mark.regions}
        for number, region in enumerate(self.regions):
            if any(start.node >= mark.nodes for start in region.starts):
                self.regions[number] = replace(region, starts=())

    def finish(self, results: Sequence[Port], carried: int = 0, dropped: frozenset[int] = frozenset()) -> FunctionGraph:
        """The finished graph, parameters first; `dropped` are parameters that nothing uses."""
        self.is_open = False
        self.params = [number for number in self.params if number not in dropped]
        first = [0, *self.params]
        taken = {*first, *dropped}
        order = first + [n for n in range(len(self.nodes)) if n not in taken]
        return self._graph(order, range(len(self.regions)), self.params, results, carried)

    def finished(self, port: Port) -> Port:
        """Where a port is in the graph that `finish` has made."""
        first = [0, *self.params]
        if port.node in first:
            return Port(first.index(port.node), port.index)
        return Port(port.node + sum(number > port.node for number in first), port.index)

    def used(self, results: Sequence[Port]) -> set[int]:
        """The nodes that others, or the results, read."""
        ports = [port for node in self.nodes for port in (*node.inputs, *node.controls) if isinstance(port, Port)]
        return {port.node for port in (*ports, *results)}

    def finish_with(
        self, kept: set[int], params: Sequence[int], results: Sequence[Port], carried: int
    ) -> FunctionGraph:
        """The finished graph of these nodes and parameters, in topological order."""
        self.is_open = False
        order = self._sorted(kept, [0, *params])
        return self._graph(order, range(len(self.regions)), params, results, carried)

    def _sorted(self, kept: set[int], first: list[int], fed: Mapping[Port, Port] = NOTHING) -> list[int]:
        """These nodes in topological order, after the first ones."""
        order = list(first)
        done = {n for n in range(len(self.nodes)) if n not in kept} | set(order) | set(self.params)
        for number in range(len(self.nodes)):
            stack = [number]
            while stack:
                node = self.nodes[stack[-1]]
                ports = (port for port in (*node.inputs, *node.controls) if isinstance(port, Port))
                missing = [n for p in ports if (n := fed.get(p, p).node) not in done] if stack[-1] not in done else []
                if missing:
                    stack.extend(reversed(missing))
                elif (ready := stack.pop()) not in done:
                    done.add(ready)
                    order.append(ready)
        return order

    def extract(self, results: Sequence[Port], fed: Mapping[Port, Port] = NOTHING) -> tuple[FunctionGraph, list[int]]:
        """The part of an unfinished graph that the results need, and its parameters.

        `fed`: values that are handed over instead of computed, with the parameters that replace them.
        """
        needed = {0}
        regions = {0}
        waiting = [fed.get(port, port).node for port in results]
        while waiting:
            number = waiting.pop()
            if number in needed:
                continue
            needed.add(number)
            node = self.nodes[number]
            waiting += [fed.get(port, port).node for port in (*node.inputs, *node.controls) if isinstance(port, Port)]
            homes = {self.home(port) for port in node.inputs if isinstance(port, Port)} | {node.region}
            while homes:
                region = homes.pop()
                entry = self.regions[region]
                if region not in regions and entry.parent is not None and entry.pred is not None:
                    regions |= {region, region + 1 if entry.side else region - 1}
                    waiting.append(fed.get(entry.pred, entry.pred).node)
                    homes.add(entry.parent)
        params = [p for p in self.params if p in needed]
        order = [0, *params, *sorted(needed - {0, *params})]
        if not self.is_sorted:
            order = self._sorted(needed, [0, *params], fed)
        return self._graph(order, sorted(regions), params, results, 0, fed), params

    def _graph(
        self,
        order: list[int],
        kept: Sequence[int],
        params: Sequence[int],
        results: Sequence[Port],
        carried: int,
        fed: Mapping[Port, Port] = NOTHING,
    ) -> FunctionGraph:
        """These nodes and regions, renumbered."""
        budget.pay(len(order) % _BATCH)
        place = {old: new for new, old in enumerate(order)}
        region_of = {old: new for new, old in enumerate(kept)}

        def moved(port: Port) -> Port:
            port = fed.get(port, port)
            return Port(place[port.node], port.index)

        nodes: list[Node] = []
        names = Names()
        # Most graphs stay as they are written: then ports and regions have their numbers already.
        is_same = not fed and all(map(operator.eq, order, count())) and all(map(operator.eq, kept, count()))
        for old in order:
            node = self.nodes[old]
            name = names.fresh(node.name)
            if is_same and node.op != "param":
                nodes.append(node if name == node.name else _renamed(node, name))
                continue
            inputs = tuple(i if isinstance(i, Const) else moved(i) for i in node.inputs)
            attrs = node.attrs
            if node.op == "param":
                attrs |= {"index": list(params).index(old)}
            controls = tuple(moved(c) for c in node.controls)
            nodes.append(Node(node.op, inputs, node.types, name, region_of[node.region], attrs, controls, node.span))
        regions = [
            replace(
                region,
                parent=None if region.parent is None else region_of[region.parent],
                pred=None if region.pred is None else moved(region.pred),
                starts=tuple(moved(s) for s in region.starts if s.node in place),
            )
            for region in (self.regions[old] for old in kept)
        ]
        phase = Phase(tuple(place[p] for p in params), tuple(moved(r) for r in results))
        return FunctionGraph(tuple(nodes), tuple(regions), self.name, self.kind, (phase,), carried, self.span)
