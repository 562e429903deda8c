"""Strictness: the parameters that a function is certain to need.

A function is *strict* in a parameter if every path to a result needs it. The greatest fixpoint over the library says
which: a path that never ends needs everything. (Mycroft 1980, with the two-point domain.)

>>> from undertow.ir.text import parse
>>> library = parse('''
... library 1 main=main
... main main(n: i64) -> (r)
...   r: i64 = call n callee="fac"
... function fac(n: i64) -> (r)
...   c: bool = less n, 2:i64
...   k: i64 = subtract n, 1:i64
...   f: i64 = call k callee="fac"
...   r: i64 = call c, n, f callee="ite"
... function ite(c: bool, a: i64, b: i64) -> (r)
...   branch if1 c
...   a.if: i64, i64 = switch c, a
...   b.if: i64, i64 = switch c, b
...   r: i64 = merge a.if#0, b.if#1
... ''')
>>> strictness = Strictness(library)
>>> strictness.needs["ite"], strictness.needs["fac"]  # bit i of a result: parameter i
([1], [1])
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from undertow.ir.budget import paced
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.ir.walk import callees_first, entered_by, fixpoint, port_regions, reachable, target_of
from undertow.ops.effects import acts, is_stateful


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
        fed = (graph.nodes[at] for graph in self.functions.values() for at in self.fed_calls(graph.nodes))
        asked = reachable(
            dict.fromkeys(node.attrs.text("callee") for node in fed), lambda name: entered_by(self.functions[name])
        )
        names = [name for group in order for name in group if name in asked]
        fixpoint(names, self._update, lambda name: [n for n in callers[name] if n in asked])

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

    # -- questions ---------------------------------------------------------------------------------------------

    def is_unbounded(self, node: Node) -> bool:
        """May it take long, or never end?"""
        return node.op in ENTERS and node.attrs.text(ENTERS[node.op]) in self.unbounded

    def slow(self, nodes: Sequence[Node]) -> tuple[set[int], list[int]]:
        """The nodes that are, or wait for, something that may not end; and the calls that take what such nodes give."""
        calls: list[int] = []
        marked: set[int] = set()
        for number, node in enumerate(nodes):
            is_fed = any(operand.node in marked for operand in node.inputs if isinstance(operand, Port))
            if is_fed and node.op == "call":
                calls.append(number)
            if is_fed or self.is_unbounded(node):
                marked.add(number)
        return marked, calls

    def fed_calls(self, nodes: Sequence[Node]) -> list[int]:
        """The calls with an argument that what may not end leads to."""
        return self.slow(nodes)[1]

    def is_needed(self, node: Node, results: Collection[int], position: int) -> bool:
        """Is a call, some of whose results are used, certain to need an argument?"""
        needs = self.needs[node.attrs.text("callee")]
        return any(needs[index] >> position & 1 for index in results or range(len(needs)))


def _is_raise(node: Node) -> bool:
    """Does it raise an error whenever it runs?"""
    return node.op == "raise" and isinstance(node.inputs[0], Const) and not node.inputs[0].value.all()
