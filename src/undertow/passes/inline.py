"""Inline calls of functions that are not recursive: small ones everywhere, others where they are called once.

Callees come first, so what is inlined has its own calls inlined already. The size of a callee is bounded, and so is
the growth of the whole library. An inlined call is no longer an activation, so `simplify` inlines only when asked.

Devices: what has none of its own in the body gets that of the call.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from undertow.ir.draft import Copy
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Port
from undertow.ir.structure import LINKED, SOURCES
from undertow.ir.walk import callees_first, entered_by, placed_like

SMALL = 30  # nodes of a function that is inlined wherever it is called
GROWTH = 1000  # nodes that a library may gain on top of doubling


def inline_calls(library: Library) -> tuple[Library, Counter[str]]:
    """The library with calls inlined; functions that nobody calls any more are left to `dead`."""
    graphs = dict(library.functions)
    order = callees_first(library)
    recursive = {name for group in order for name in group if len(group) > 1 or name in entered_by(graphs[name])}
    calls = Counter(name for graph in graphs.values() for name in entered_by(graph))
    budget = sum(len(graph.nodes) for graph in graphs.values()) + GROWTH
    count: Counter[str] = Counter()
    for group in order:
        for name in group:
            graph, inlined = graphs[name], dict[int, FunctionGraph]()
            pivots = {port for region in graph.regions for port in region.starts}
            linked = _linked(graph)
            for number, node in enumerate(graph.nodes):
                callee = graphs[node.attrs.text("callee")] if node.op == "call" and number not in linked else None
                if callee is None or callee.name in recursive or not _is_plain(graph, pivots, node, callee):
                    continue
                if calls[callee.name] > 1:  # copied, not moved
                    if len(callee.nodes) > min(SMALL, budget):
                        continue
                    budget -= len(callee.nodes)
                    calls.update(entered_by(callee))
                    calls[callee.name] -= 1
                inlined[number] = callee
            if inlined:
                graphs[name] = _replace_calls(graph, inlined)
                count["inlined call"] += len(inlined)
    return Library(graphs, library.main), count


def _linked(graph: FunctionGraph) -> set[int]:
    """Calls that other nodes refer to, such as `resume` and `gradient`: these must stay calls."""
    links = (node.inputs[0] for node in graph.nodes if node.op in LINKED)
    return {link.node for link in links if isinstance(link, Port)}


def _is_plain(graph: FunctionGraph, pivots: set[Port], node: Node, callee: FunctionGraph) -> bool:
    """Can a call be replaced by the body? Not with several phases, an entry, control edges, a checkpoint, or types
    that differ from the callee's.
    """
    return (
        len(callee.phases) == 1
        and not callee.group
        and not node.attrs.get("checkpoint", False)
        and set(node.controls) <= pivots
        and [graph.type_of(operand) for operand in node.inputs] == [callee.nodes[p].types[0] for p in callee.params]
        and list(node.types) == [callee.type_of(port) for port in callee.results]
    )


def _replace_calls(graph: FunctionGraph, inlined: dict[int, FunctionGraph]) -> FunctionGraph:
    """The graph with the bodies of callees in place of some calls."""
    copy = Copy(graph)
    for number in range(len(graph.nodes)):
        if number in inlined:
            _put_body(copy, number, inlined[number])
        else:
            copy.add(number)
    return copy.freeze()


def _put_body(outer: Copy, number: int, callee: FunctionGraph) -> None:
    """Put a body where a call was: arguments replace parameters, the pivot of the call's region replaces its start."""
    call, draft = outer.graph.nodes[number], outer.draft
    region = outer.place(call.region)
    pivot = draft.make_pivot(region, outer.phases[number])
    inner = Copy(callee, draft, region, call.name.replace("/", ".") + ".")
    inner.ports[callee.regions[0].starts[0]] = pivot
    for param, operand in zip(callee.params, call.inputs, strict=True):
        if isinstance(operand, Const):  # a predicate or result must be a port; elsewhere `rewrite` removes the identity
            name = f"{call.name}.{callee.nodes[param].name}"
            gate = Node("identity", (operand,), (operand.type,), name, region, controls=(pivot,), span=call.span)
            gate = placed_like(gate, call)
            inner.ports[Port(param)] = Port(draft.add(gate))
        else:
            inner.ports[Port(param)] = outer.ports[operand]
    for at, node in enumerate(callee.nodes):
        if node.op not in SOURCES:
            short = node.name.rpartition("/")[2]
            name = f"{call.name}.{short}" if node.region == 0 else f"{inner.prefix}{node.name}"
            inner.add(at, replace(placed_like(node, call), name=name))
    for index, result in enumerate(callee.results):
        outer.ports[Port(number, index)] = inner.ports[result]
