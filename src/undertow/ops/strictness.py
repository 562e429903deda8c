"""Strictness: the arguments that a function is certain to need, and those that a call may compute later, or never.

A function is *strict* in a parameter if every path to a result needs it. The greatest fixpoint over the library says
which: a path that never ends needs everything. (Mycroft 1980, with the two-point domain.)

An argument is *late* if its callee is not strict in it, and computing it may take long or never end: a recursive call
or a loop is part of that. What computes it must be pure, and must serve nothing else.

>>> from undertow.ir.text import parse
>>> library = parse('''
... library 1 main=main
... main main(n: i64) -> (r)
...   r: i64 = call n callee="fac"
... function fac(n: i64) -> (r)
...   c: bool = less n, 2:i64
...   k: i64 = subtract n, 1:i64
...   f: i64 = call k callee="fac"
...   m: i64 = multiply n, f
...   r: i64 = call c, 1:i64, m callee="ite"
... function ite(c: bool, a: i64, b: i64) -> (r)
...   branch if1 c
...   a.if: i64, i64 = switch c, a
...   b.if: i64, i64 = switch c, b
...   r: i64 = merge a.if#0, b.if#1
... ''')
>>> strictness = Strictness(library)
>>> strictness.needs["ite"], strictness.needs["fac"]  # bit i of a result: parameter i
([1], [1])
>>> (call,) = strictness.late_calls(library.functions["fac"])
>>> call.arguments, [library.functions["fac"].nodes[number].name for number in call.nodes]
((2,), ['k', 'f', 'm'])
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from undertow.ir.budget import paced
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.structure import ENTERS, LINKED
from undertow.ir.walk import (
    callees_first,
    entered_by,
    fixpoint,
    grouped,
    link_of,
    port_regions,
    ports_of,
    reachable,
    target_of,
)
from undertow.ops.effects import acts, is_pure, is_stateful
from undertow.types import CTL


@dataclass(frozen=True, slots=True)
class LateCall:
    """A call with late arguments."""

    number: int  # of the call
    arguments: tuple[int, ...]  # the indices of those that are late
    nodes: tuple[int, ...]  # what computes them and nothing else, in order
    results: tuple[int, ...]  # the indices of those that anything uses


class Strictness:
    """What the functions of a library need. Graphs may be added later, with `add`."""

    def __init__(self, library: Library, strict: Collection[tuple[str, int]] = ()) -> None:
        """`strict`: parameters (function, index) that count as needed."""
        self.functions = dict(library.functions)
        self.strict = strict
        callers: dict[str, list[str]] = {name: [] for name in self.functions}
        for name, graph in self.functions.items():
            for target in entered_by(graph):
                callers[target].append(name)
        self.impure = reachable(filter(self._is_impure, self.functions), callers.__getitem__)
        self.acting = reachable(filter(self._is_acting, self.functions), callers.__getitem__)
        order = callees_first(library)
        recursive = (name for group in order for name in group if len(group) > 1 or name in callers[name])
        loops = (name for name, graph in self.functions.items() if graph.kind == "loop")
        self.unbounded = reachable((*recursive, *loops), callers.__getitem__)  # they may not end
        # Of each function, a bit mask of parameters for each result. At first, all: a call that never ends.
        self.needs = {
            name: [(1 << len(graph.params)) - 1] * len(graph.results) for name, graph in self.functions.items()
        }
        if any(self._candidates(graph) for graph in self.functions.values()):
            names = [name for group in order for name in group if self.functions[name].kind == "function"]
            fixpoint(names, self._update, lambda name: [n for n in callers[name] if n in self.needs])

    def _is_impure(self, name: str) -> bool:
        return any(acts(node.op) or is_stateful(node.op) for node in self.functions[name].nodes)

    def _is_acting(self, name: str) -> bool:
        return any(acts(node.op) for node in self.functions[name].nodes)

    def add(self, graph: FunctionGraph, like: str) -> None:
        """Add a copy of a function whose late arguments have become part of it: what is left is strict."""
        self.functions[graph.name] = graph
        self.needs[graph.name] = [(1 << len(graph.params)) - 1] * len(graph.results)
        self.unbounded[graph.name] = None
        for names in (self.impure, self.acting):
            if like in names:
                names[graph.name] = None

    # -- what a function needs ---------------------------------------------------------------------------------

    def _update(self, name: str) -> bool:
        graph = self.functions[name]
        if graph.kind != "function" or len(graph.phases) > 1:
            return False
        masks = self._sweep(graph)
        always = sum(1 << index for function, index in self.strict if function == name)
        for number, node in enumerate(graph.nodes):
            if node.region == 0 and (acts(node.op) or (node.op in ENTERS and target_of(graph, node) in self.acting)):
                for index in range(len(node.types)):
                    always |= masks[Port(number, index)]
        before = self.needs[name]
        self.needs[name] = [always | masks[port] for port in graph.results]
        return self.needs[name] != before

    def _sweep(self, graph: FunctionGraph) -> dict[Port, int]:
        """Of each port, the parameters without which it never has a value."""
        masks: dict[Port, int] = {}
        home = port_regions(graph)
        failing = {node.region for node in graph.nodes if _is_raise(node)}

        def mask(operand: Operand) -> int:
            return 0 if isinstance(operand, Const) else masks[operand]

        for number, node in enumerate(paced(graph.nodes)):
            controls = 0
            for port in node.controls:
                controls |= masks[port]
            if node.op == "param":
                masks[Port(number)] = 1 << node.attrs.integer("index")
            elif node.op == "merge":
                # A side that raises an error has no value: it is as good as one that never ends.
                sides = [mask(side) for side in node.inputs if not (isinstance(side, Port) and home(side) in failing)]
                masks[Port(number)] = controls | (sides[0] & sides[-1] if sides else -1)
            elif node.op == "call":
                for index, needed in enumerate(self.needs[node.attrs.text("callee")]):
                    mask_ = controls
                    for position, operand in enumerate(node.inputs):
                        if needed >> position & 1:
                            mask_ |= mask(operand)
                    masks[Port(number, index)] = mask_
            else:
                for operand in node.inputs:
                    controls |= mask(operand)
                for index in range(len(node.types)):
                    masks[Port(number, index)] = controls
        return masks

    # -- late arguments ----------------------------------------------------------------------------------------

    def is_unbounded(self, graph: FunctionGraph, node: Node) -> bool:
        """May it take long, or never end?"""
        return node.op in ENTERS and node.attrs.text(ENTERS[node.op]) in self.unbounded

    def _candidates(self, graph: FunctionGraph) -> list[int]:
        """The calls with an argument that what may not end leads to."""
        calls: list[int] = []
        marked: set[int] = set()
        for number, node in enumerate(graph.nodes):
            is_fed = any(operand.node in marked for operand in node.inputs if isinstance(operand, Port))
            if is_fed and node.op == "call":
                calls.append(number)
            if is_fed or self.is_unbounded(graph, node):
                marked.add(number)
        return calls

    def is_needed(self, node: Node, results: Collection[int], position: int) -> bool:
        """Is a call, some of whose results are used, certain to need an argument?"""
        needs = self.needs[node.attrs.text("callee")]
        return any(needs[index] >> position & 1 for index in results or range(len(needs)))

    def late_calls(self, graph: FunctionGraph) -> Iterator[LateCall]:
        """The calls with late arguments, and those that do not use a result whose computation may not end."""
        fed, partial = set(self._candidates(graph)), set(self._partial(graph))
        if not fed and not partial:
            return
        uses = Uses(graph)
        for number in sorted(fed | partial):
            node = graph.nodes[number]
            callee = self.functions[node.attrs.text("callee")]
            if len(callee.phases) > 1 or callee.group or node.attrs.get("checkpoint", False) or number in uses.linked:
                continue
            results = uses.results(number)
            late = [
                position
                for position, operand in enumerate(node.inputs)
                if isinstance(operand, Port)
                and graph.type_of(operand) == callee.nodes[callee.params[position]].types[0]
                and not self.is_needed(node, results, position)
            ]
            nodes = Cone(self, uses, number, late).nodes if late else set()
            if any(self.is_unbounded(graph, graph.nodes[at]) for at in nodes):
                arguments = tuple(k for k in late if node.inputs[k].node in nodes)  # type: ignore[union-attr]
                yield LateCall(number, arguments, tuple(sorted(nodes)), results)
            elif number in partial and self._saves(callee, results):
                yield LateCall(number, (), (), results)

    def _partial(self, graph: FunctionGraph) -> list[int]:
        """The calls some of whose results nobody uses, and that may not end."""
        calls = {
            number: len(node.types)
            for number, node in enumerate(graph.nodes)
            if node.op == "call" and len(node.types) > 1 and self.is_unbounded(graph, node)
        }
        if not calls:
            return []
        used = {port for phase in graph.phases for port in phase.results} | {*graph.shared}
        for node in graph.nodes:
            used.update(port for port in (*node.inputs, *node.controls) if isinstance(port, Port))
        counts = Counter(port.node for port in used if port.node in calls)
        return [number for number, count in counts.items() if count < calls[number]]

    def _saves(self, callee: FunctionGraph, results: Collection[int]) -> bool:
        """Is there work that may not end, and that these results do not need?"""
        uses = Uses(callee)
        every = live_nodes(self, uses, range(len(callee.results)))
        unused = every - live_nodes(self, uses, results)
        return any(self.is_unbounded(callee, callee.nodes[number]) for number in unused)

    def is_movable(self, graph: FunctionGraph, uses: Uses, node: Node) -> bool:
        """May it run elsewhere, or not at all?"""
        if not all(port in uses.pivots for port in node.controls):
            return False
        if node.op in ("switch", "merge"):
            return True
        if any(graph.type_of(operand) == CTL for operand in node.inputs):
            return False
        if node.op in ENTERS or node.op == "gradient":
            return target_of(graph, node) not in self.impure
        return is_pure(node.op)


def _is_raise(node: Node) -> bool:
    """Does it raise an error whenever it runs?"""
    return node.op == "raise" and isinstance(node.inputs[0], Const) and not node.inputs[0].value.all()


class Uses:
    """Who uses what in a graph."""

    def __init__(self, graph: FunctionGraph) -> None:
        self.graph = graph
        self.home = port_regions(graph)
        self.branches = graph.branches()
        self.decided = grouped((pred.node, side) for (pred, _), sides in self.branches.items() for side in sides)
        self.pivots = _pivots(graph)
        listed = [port for phase in graph.phases for port in phase.results]
        self._listed = {*listed, *graph.shared}
        self.fixed = {port.node for port in self._listed}  # results of the graph
        self.live = self._live()
        self.of: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]  # (user, operand; -1: a control edge)
        for number in self.live:
            node = graph.nodes[number]
            for position, operand in enumerate(node.inputs):
                if isinstance(operand, Port):
                    self.of[operand.node].append((number, position))
            for port in node.controls:
                self.of[port.node].append((number, -1))
        links = [link_of(node) for node in graph.nodes if node.op in LINKED]
        self.linked = frozenset(links)
        self.standing = grouped((graph.nodes[number].region, number) for number in self.live)

    def _live(self) -> list[int]:
        """The nodes that something uses, or that are more than pure operators."""
        live = set(self.fixed)
        for number in reversed(range(len(self.graph.nodes))):  # users come first
            node = self.graph.nodes[number]
            if number in live or not (node.op in ("switch", "merge") or is_pure(node.op)):
                live.add(number)
                live.update(port.node for port in (*node.inputs, *node.controls) if isinstance(port, Port))
                live.update(
                    pred.node for region in self.path(node.region, 0) if (pred := self.graph.regions[region].pred)
                )
        return sorted(live)

    def results(self, number: int) -> tuple[int, ...]:
        """The outputs of a node that anything uses."""
        used = {port.index for port in self._listed if port.node == number}
        for user, position in self.of[number]:
            node = self.graph.nodes[user]
            used.update(port.index for port in node.controls if port.node == number)
            if position >= 0:
                operand = node.inputs[position]
                assert isinstance(operand, Port)
                used.add(operand.index)
        return tuple(sorted(used))

    def path(self, region: int, within: int) -> list[int]:
        """The regions from a region up to one around it; that one is left out."""
        path: list[int] = []
        at: int | None = region
        while at != within:
            assert at is not None
            path.append(at)
            at = self.graph.regions[at].parent
        return path

    def is_within(self, region: int, around: int) -> bool:
        at: int | None = region
        while at is not None and at != around:
            at = self.graph.regions[at].parent
        return at is not None


def _pivots(graph: FunctionGraph) -> set[Port]:
    """The start tokens, and what Switches make of them."""
    pivots: set[Port] = set()
    for number, node in enumerate(graph.nodes):
        if node.op == "start":
            pivots.add(Port(number))
        elif node.op == "switch" and node.inputs[1] in pivots:
            pivots |= {Port(number, 0), Port(number, 1)}
    return pivots


class Cone:
    """What computes the late arguments of a call and serves nothing else: `nodes`, by number.

    They stand in the region of the call, or in branches of it, and take from outside only what lives in that region.
    """

    def __init__(self, strictness: Strictness, uses: Uses, call: int, late: Collection[int]) -> None:
        self.graph, self.uses, self.call, self.late = uses.graph, uses, call, frozenset(late)
        self.region = self.graph.nodes[call].region
        self.nodes: set[int] = set()
        reached = sorted(self._reach(strictness), reverse=True)
        excluded: set[int] = set()
        while True:
            self.nodes = set()
            for number in reached:  # users come first
                if number not in excluded and self._serves_nothing_else(number):
                    self.nodes.add(number)
            wrong = {number for number in self.nodes if not self._is_whole(number)}
            if not wrong:
                return
            excluded |= wrong

    def _reach(self, strictness: Strictness) -> set[int]:
        """The movable nodes that lead to the late arguments."""
        graph = self.graph
        todo = [graph.nodes[self.call].inputs[position] for position in self.late]
        reached: set[int] = set()
        while todo:
            port = todo.pop()
            if not isinstance(port, Port) or port.node in reached:
                continue
            node = graph.nodes[port.node]
            if self.uses.is_within(node.region, self.region) and strictness.is_movable(graph, self.uses, node):
                reached.add(port.node)
                todo += [*node.inputs, *node.controls]
        return reached

    def _serves_nothing_else(self, number: int) -> bool:
        if number in self.uses.fixed:
            return False
        for user, position in self.uses.of[number]:
            if user not in self.nodes and not (user == self.call and position in self.late):
                return False
        regions = self.uses.decided.get(number, ())
        return all(at in self.nodes for region in regions for at in self.uses.standing.get(region, ()))

    def _is_whole(self, number: int) -> bool:
        """Does a node take from outside only what lives in the region of the call?"""
        graph, node = self.graph, self.graph.nodes[number]
        if node.op == "gradient" and link_of(node) not in self.nodes:
            return False
        for port in ports_of((*node.inputs, *node.controls)):
            is_outside = port.node not in self.nodes and port not in self.uses.pivots
            if is_outside and self.uses.home(port) != self.region:
                return False
        inner = node.region
        if node.op == "merge":
            sides = [self.uses.home(port) for port in node.inputs if isinstance(port, Port)]
            inner = sides[0]
        for region in self.uses.path(inner, self.region):
            pred = graph.regions[region].pred
            assert pred is not None
            if pred.node not in self.nodes and self.uses.home(pred) != self.region:
                return False
        return True


def live_nodes(strictness: Strictness, uses: Uses, results: Collection[int]) -> set[int]:
    """What some results of a function need, and what it does to the world."""
    graph = uses.graph
    todo = [graph.results[index].node for index in results]
    for number, node in enumerate(graph.nodes):
        if acts(node.op) or (node.op in ENTERS and target_of(graph, node) in strictness.acting):
            todo.append(number)
    live: set[int] = set()
    while todo:
        number = todo.pop()
        if number in live:
            continue
        live.add(number)
        node = graph.nodes[number]
        todo += [port.node for port in (*node.inputs, *node.controls) if isinstance(port, Port)]
        for region in uses.path(node.region, 0):
            pred = graph.regions[region].pred
            assert pred is not None
            todo.append(pred.node)
    return live
