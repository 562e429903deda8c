"""Adds existing graphs to a library that is being captured.

A `Ready` is a function at one signature with all graphs that it needs. It is made from a library whose main graph
calls it: usually main only hands its parameters on, and the function is called directly; any other main graph becomes
a function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from undertow.frontend.syntax.annotations import Annotation
from undertow.frontend.trace.builder import START
from undertow.frontend.trace.detached import detached
from undertow.frontend.values.tree import Structure
from undertow.ir.graph import Attrs, Const, FunctionGraph, Port
from undertow.ir.structure import ENTERS, SOURCES
from undertow.ir.walk import entered_by, reachable
from undertow.ops.effects import variables_of
from undertow.types import CTL, Type

if TYPE_CHECKING:  # it imports this file
    from undertow.frontend.trace.library import Captured


@dataclass(frozen=True, slots=True, eq=False)
class Ready:
    """A function at one signature that needs no capture."""

    types: tuple[Type, ...]  # of the leaves of its arguments
    structures: tuple[Structure, ...]  # one per parameter
    results: Annotation
    callee: str
    hidden: tuple[str, ...]  # further arguments of a call: see Session.write_call
    graphs: Mapping[str, FunctionGraph]
    # Variables by their names in its graphs, and whether they are written.
    variables: Mapping[str, tuple[Any, bool]] = field(default_factory=dict)
    weak: tuple[bool, ...] | None = None  # which leaves of the arguments are Python numbers; None: whichever
    is_shared: bool = (
        False  # its graphs have globally unique names, so those that two such functions share are added once
    )

    def with_reads(self, handed: Collection[str], free: Collection[str]) -> Ready:
        """With variables that callers hand over, as further parameters, and reads of others at any time."""
        graphs = detached(self.graphs, handed, free)
        callee = graphs[self.callee]
        has_order = any(callee.nodes[param].types[0] == CTL for param in callee.params)
        hidden = tuple(what for what in self.hidden if what != "effect" or has_order)
        return replace(self, graphs=graphs, hidden=hidden, is_shared=self.is_shared and not handed)

    def grafted(
        self, fresh_name: Callable[[str], str], variables: Mapping[str, str]
    ) -> tuple[str, dict[str, FunctionGraph]]:
        """The function's name and all its graphs, under names that are free in the library."""
        names = {name: name if self.is_shared else fresh_name(name) for name in self.graphs}
        return names[self.callee], {names[n]: renamed(graph, names, variables) for n, graph in self.graphs.items()}


def make_ready(captured: Captured) -> Ready:
    """The function that a library's main graph calls, or main itself as a function."""
    library, types, count = captured.library, captured.types, captured.result_count
    main = library.functions[library.main]
    graphs = {name: graph for name, graph in library.functions.items() if name != library.main}
    results = Annotation(
        tuple(main.type_of(port) for port in main.results[:count]), captured.result, captured.weak_results
    )
    direct = _behind(main, len(types))
    if direct is not None:
        return Ready(types, captured.structures, results, *direct, graphs, weak=captured.weak)
    name = library.main
    graphs[name] = replace(
        main, kind="function", regions=(replace(main.regions[0], kind="function"), *main.regions[1:])
    )
    hidden = (*(("key",) if captured.needs_seed else ()), *(("order",) if len(main.results) > count else ()))
    return Ready(types, captured.structures, results, name, hidden, graphs, weak=captured.weak)


def _behind(main: FunctionGraph, count: int) -> tuple[str, tuple[str, ...]] | None:
    """The function that main calls with just its parameters, and the hidden arguments; None if main does more.

    Hidden arguments are an order token (main's start) and a key (the first drawn from main's seed).
    """
    body = [number for number, node in enumerate(main.nodes) if node.op not in SOURCES]
    if not body or main.nodes[body[-1]].op != "call" or main.nodes[body[-1]].controls not in ((), (START,)):
        return None
    call, params = main.nodes[body[-1]], [Port(param) for param in main.params]
    keys: list[Port] = []
    if len(params) == count + 1 and len(body) == 2:
        drawn = main.nodes[body[0]]
        if drawn.op == "fold_in" and drawn.inputs == (params[-1], Const(np.int64(1))):
            keys.append(Port(body[0]))
    rest = call.inputs[count:]
    hidden = tuple("effect" if given == START else "key" for given in rest)
    is_plain = (
        len(params) - count == len(body) - 1 == len(keys)
        and call.inputs[:count] == tuple(params[:count])
        and all(given == START or given in keys for given in rest)
        and len(set(rest)) == len(rest)
        and main.results == tuple(Port(body[-1], index) for index in range(len(call.types)))
        and call.types.count(CTL) == hidden.count("effect")
    )
    return (call.attrs.text("callee"), hidden) if is_plain else None


def renamed(
    graph: FunctionGraph, names: Mapping[str, str], variables: Mapping[str, str] = MappingProxyType({})
) -> FunctionGraph:
    """A graph with new names for itself, for the graphs that it enters, and for variables."""
    name = names[graph.name]
    nodes = []
    for node in graph.nodes:
        if "targets" in node.attrs:
            after_all = tuple(variables.get(name, name) for name in variables_of(node.attrs))
            node = replace(node, attrs=node.attrs | {"targets": after_all})
        key, known = ("variable", variables) if node.op not in ENTERS else (ENTERS[node.op], names)
        if key in node.attrs and (before := node.attrs.text(key)) != (after := known.get(before, before)):
            node = replace(node, attrs=Attrs(**{**node.attrs, key: after}))
        nodes.append(node)
    body = graph.regions[0]
    body = replace(body, name=name) if body.name == graph.name else body
    return replace(graph, nodes=tuple(nodes), regions=(body, *graph.regions[1:]), name=name)


def with_callees(graphs: Mapping[str, FunctionGraph], root: str) -> dict[str, FunctionGraph]:
    """A graph and all graphs that it enters, directly or not, as far as they exist."""
    names = reachable([root], lambda name: [entered for entered in entered_by(graphs[name]) if entered in graphs])
    return {name: graphs[name] for name in names}
