"""Forward: tangents become part of the graphs. A `tangent` node becomes a call of the tangent copy of its callee.

The copy `f.jvp` of a function computes the tangent of each node right beside it, by the `tangent` row of its operator.
It takes the tangents of some arguments besides, and gives those of some results. There is one copy for each choice of
these, found by a worklist from the tangent nodes; `dependence` says which tangents a copy computes: none that is zero,
and none that nothing needs. Calls of which no tangent is needed stay calls of the function itself. Nothing is computed
twice, and effects happen once. A tangent node in a function that is differentiated itself goes first.

>>> from undertow.ir.text import dump, parse
>>> library, report = forward(parse('''
... library 1 main=main
... main main(x: f64, dx: f64) -> (y#0, y#1)
...   y: f64, f64 = tangent x, dx callee="square" given=[0] wanted=[0]
... function square(x: f64) -> (y)
...   y: f64 = multiply x, x
... '''))
>>> print(dump(library), end="")
library 1 main=main
<BLANKLINE>
main main(x: f64, dx: f64) -> (y#0, y#1)
  y: f64, f64 = call x, dx callee="square.jvp"
<BLANKLINE>
function square(x: f64) -> (y)
  y: f64 = multiply x, x
<BLANKLINE>
function square.jvp(x: f64, x.t: f64) -> (y, y.t_3)
  y: f64     = multiply x, x
  y.t: f64   = multiply x.t, x
  y.t_2: f64 = multiply x.t, x
  y.t_3: f64 = add y.t, y.t_2
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace

from undertow.errors import CaptureError, GraphError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, FunctionGraph, Library, Node, Phase, Port
from undertow.ir.walk import callees_first, node_phases
from undertow.passes.dependence import ASSIGNED, Dependence, Key
from undertow.passes.pushing import Writer, push
from undertow.passes.report import Report, size

MOST_NODES = 1_000_000  # of the whole library: each derivative of a derivative is a few times larger


def forward(library: Library) -> tuple[Library, Report]:
    """The library without tangent nodes, and what was done."""
    before = size(library)
    count: Counter[str] = Counter()
    for group in callees_first(library):
        for name in group:
            own = [node for node in tangents_of(library.functions[name]) if node.attrs.text("callee") in group]
            if own:
                raise endless_derivative(own[0].attrs.text("callee"), own[0])
            library = forward_graph(library, name, count)
    return library, Report(dict(count.most_common()), before, size(library), "forward")


def tangents_of(graph: FunctionGraph) -> list[Node]:
    """The tangent nodes of a graph."""
    return [node for node in graph.nodes if node.op == "tangent"]


def endless_derivative(name: str, node: Node) -> CaptureError:
    """A function whose value needs its own derivative needs the derivative of that, and so on."""
    return CaptureError(
        f"the derivative of `{name.split('~')[0]}` needs a derivative of itself: there is no end to it",
        node.span,
        hint="take the derivative outside of the function that is differentiated",
    )


def forward_graph(library: Library, name: str, count: Counter[str]) -> Library:
    """Replace the tangent nodes of one graph; what they differentiate has none. Copies come behind what there is."""
    work = _Forward(library, count)
    graph = library.functions[name]
    if not tangents_of(graph):
        return library
    work.functions[name] = work.without_tangents(graph)
    work.make_copies()
    return Library(work.functions, library.main)


class _Forward:
    """One graph's tangents: the graphs so far, with the copies that have been made and that are waiting."""

    def __init__(self, library: Library, count: Counter[str]) -> None:
        self.functions = dict(library.functions)
        self.dependence = Dependence(self.functions)
        self.names: dict[Key, str] = {}
        self.taken = set(library.functions)
        self.waiting: deque[Key] = deque()
        self.count = count
        self.nodes = size(library)

    def make_copies(self) -> None:
        while self.waiting:
            key = self.waiting.popleft()
            made = push(self.functions[key.name], key, self.names[key], self.dependence, self.copy_of)
            self.functions[made.name] = made
            self.nodes += len(made.nodes)
            if self.nodes > MOST_NODES:
                raise GraphError(
                    f"the tangents of `{key.name}` make more than {MOST_NODES:,} nodes",
                    self.functions[key.name].span,
                    hint="take a derivative of lower order",
                )

    def copy_of(self, key: Key) -> str:
        """The name of a copy, which is made later if it is not there."""
        if key not in self.names:
            stem = name = f"{key.name}.jvp"
            number = 1
            while name in self.taken:
                number += 1
                name = f"{stem}~{number}"
            self.taken.add(name)
            self.names[key] = name
            self.waiting.append(key)
            self.count["tangent copy"] += 1
        return self.names[key]

    def without_tangents(self, graph: FunctionGraph) -> FunctionGraph:
        """A graph with calls of copies in place of its tangent nodes."""
        copy = Copy(graph, Draft(graph.kind, graph.regions[0].name))
        phases_of = node_phases(graph) if len(graph.phases) > 1 else [0] * len(graph.nodes)
        for number, node in enumerate(graph.nodes):
            if node.op == "tangent":
                self.call_copy(copy, number, node, phases_of[number])
            else:
                copy.add(number, node, phase=phases_of[number])
        phases = [
            Phase(tuple(copy.ports[Port(p)].node for p in phase.params), tuple(copy.ports[r] for r in phase.results))
            for phase in graph.phases
        ]
        return copy.draft.freeze(graph, phases, graph.carried, (copy.ports[port] for port in graph.shared))

    def call_copy(self, copy: Copy, number: int, node: Node, phase: int) -> None:
        """A call in place of a tangent node; the tangents of results that depend on nothing given are zero."""
        name = node.attrs.text("callee")
        callee, relation = self.functions[name], self.dependence.relation(name)
        given, wanted = node.attrs.integers("given"), node.attrs.integers("wanted")
        count, results = len(callee.params), len(callee.results)
        takes = [index in given for index in range(count)]
        mask = sum(1 << index for index in given)
        if relation[ASSIGNED] & mask:
            assign = self.dependence.assigns[name]
            raise CaptureError(
                f"variable `{assign.attrs.text('variable')}` is assigned a value that has a tangent, and read: "
                f"a variable has none, so the derivative of `{name.split('~')[0]}` would be wrong",
                assign.span,
                hint="hand the value on as an argument or a result",
            )
        moving = {(0, index) for index in wanted if relation[0, index] & mask}
        attrs = {key: value for key, value in node.attrs.items() if key not in ("given", "wanted")}
        inputs, types, outputs = node.inputs[:count], node.types[:results], list(range(results))
        if moving:
            key = self.dependence.key(name, moving, takes)
            attrs["callee"] = self.copy_of(key)
            inputs += tuple(node.inputs[count + given.index(index)] for _, index in key.given)
            outputs += [results + wanted.index(index) for _, index in key.wanted]
            types = tuple(node.types[index] for index in outputs)
        copy.add(number, replace(node, op="call", inputs=inputs, types=types, attrs=Attrs(**attrs)), outputs, phase)
        writer = Writer(copy.draft)
        for at, index in enumerate(wanted):
            if (0, index) not in moving:
                writer.beside(node, copy.place(node.region), phase)
                copy.ports[Port(number, results + at)] = writer.zero(copy.ports[Port(number, index)])
