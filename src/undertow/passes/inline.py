"""Inline calls of functions that are not recursive: small ones everywhere, others where they are called once.

Callees come before callers, so what is inlined has its own calls inlined already. Sizes are bounded: that of a callee,
and that of the whole library, whatever the calls double up to. An inlined call is no activation any more, so
`simplify` inlines only when asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Const, FunctionGraph, Library, Node, Phase, Port
from undertow.ir.walk import node_phases

SMALL = 30  # nodes of a function that is inlined wherever it is called
GROWTH = 1000  # nodes that a library may gain on top of doubling


def inline_calls(library: Library) -> tuple[Library, Counter[str]]:
    """The library with calls inlined where that is small; functions that nobody calls any more stay, for `dead`."""
    graphs = dict(library.functions)
    order = _callees_first(library)
    recursive = {name for group in order for name in group if len(group) > 1 or name in _callees(graphs[name])}
    calls = Counter(name for graph in graphs.values() for name in _callees(graph))
    budget = sum(len(graph.nodes) for graph in graphs.values()) + GROWTH
    count: Counter[str] = Counter()
    for group in order:
        for name in group:
            graph, inlined = graphs[name], dict[int, FunctionGraph]()
            pivots = {port for region in graph.regions for port in region.starts}
            for number, node in enumerate(graph.nodes):
                callee = graphs[node.attrs.text("callee")] if node.op == "call" else None
                if callee is None or callee.name in recursive or not _is_plain(graph, pivots, node, callee):
                    continue
                if calls[callee.name] > 1:  # copied, not moved
                    if len(callee.nodes) > min(SMALL, budget):
                        continue
                    budget -= len(callee.nodes)
                    calls.update(_callees(callee))
                    calls[callee.name] -= 1
                inlined[number] = callee
            if inlined:
                graphs[name] = _replace_calls(graph, inlined)
                count["inlined call"] += len(inlined)
    return Library(graphs, library.main), count


def _callees(graph: FunctionGraph) -> list[str]:
    """The graphs that are entered: functions called, loops and maps."""
    names = (node.attrs.get("callee", node.attrs.get("body")) for node in graph.nodes if node.op in _ENTERS)
    return [name for name in names if isinstance(name, str)]


_ENTERS = ("call", "loop", "map")


def _callees_first(library: Library) -> list[list[str]]:
    """The strongly connected components of the call graph, callees before callers (Tarjan, without recursion)."""
    indices: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    is_on_stack: set[str] = set()
    groups: list[list[str]] = []
    for root in library.functions:
        if root in indices:
            continue
        path: list[tuple[str, Iterator[str]]] = []

        def enter(name: str, path: list[tuple[str, Iterator[str]]] = path) -> None:
            indices[name] = low[name] = len(indices)
            stack.append(name)
            is_on_stack.add(name)
            path.append((name, iter(_callees(library.functions[name]))))

        enter(root)
        while path:
            name, rest = path[-1]
            for callee in rest:
                if callee not in indices:
                    enter(callee)
                    break
                if callee in is_on_stack:
                    low[name] = min(low[name], indices[callee])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == indices[name]:
                    at = stack.index(name)
                    groups.append(stack[at:])
                    is_on_stack.difference_update(stack[at:])
                    del stack[at:]
    return groups


def _is_plain(graph: FunctionGraph, pivots: set[Port], node: Node, callee: FunctionGraph) -> bool:
    """Can a call be replaced by the body? Not with several phases, order of its own, or types that would change."""
    return (
        len(callee.phases) == 1
        and set(node.controls) <= pivots
        and [graph.type_of(operand) for operand in node.inputs] == [callee.nodes[p].types[0] for p in callee.params]
        and list(node.types) == [callee.type_of(port) for port in callee.results]
    )


def _replace_calls(graph: FunctionGraph, inlined: dict[int, FunctionGraph]) -> FunctionGraph:
    """The graph with the bodies of callees in place of some calls."""
    copy = Copy(graph, Draft(graph.kind, graph.regions[0].name))
    phases_of = node_phases(graph)
    for number, node in enumerate(graph.nodes):
        if number in inlined:
            _put_body(copy, number, inlined[number], phases_of[number])
        else:
            copy.add(number, node)
    phases = [
        Phase(tuple(copy.ports[Port(p)].node for p in phase.params), tuple(copy.ports[r] for r in phase.results))
        for phase in graph.phases
    ]
    return copy.draft.freeze(graph, phases, graph.carried)


def _put_body(outer: Copy, number: int, callee: FunctionGraph, phase: int) -> None:
    """Put a body where a call was: arguments for parameters, the pivot of the place for its start."""
    call, draft = outer.graph.nodes[number], outer.draft
    region = outer.place(call.region)
    pivot = draft.make_pivot(region, phase)
    inner = Copy(callee, draft, region, call.name.replace("/", ".") + ".")
    inner.ports[callee.regions[0].starts[0]] = pivot
    for param, operand in zip(callee.params, call.inputs, strict=True):
        if isinstance(operand, Const):  # a predicate or result must be a port; where it need not be, `rewrite` sees it
            name = f"{call.name}.{callee.nodes[param].name}"
            gate = Node("identity", (operand,), (operand.type,), name, region, controls=(pivot,), span=call.span)
            inner.ports[Port(param)] = Port(draft.add(gate))
        else:
            inner.ports[Port(param)] = outer.ports[operand]
    for at, node in enumerate(callee.nodes):
        if node.op not in ("start", "param"):
            short = node.name.rpartition("/")[2]
            name = f"{call.name}.{short}" if node.region == 0 else f"{inner.prefix}{node.name}"
            inner.add(at, replace(node, name=name))
    for index, result in enumerate(callee.results):
        outer.ports[Port(number, index)] = inner.ports[result]
