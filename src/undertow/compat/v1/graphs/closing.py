"""Closure conversion: tensors from around a function, and random keys, as hidden arguments of its calls.

A call may be written before the function that it calls, so what that function captures is known only when a program is
put together. Then it is added: to the parameters of each graph through which a value must go, and to the operands of
the nodes that enter such graphs. Loops have theirs from the beginning, but for what the functions that they call need.

    s = tf.random_normal([])         main        s = ...;  y = call 3.0, s callee="F"
    F(x) = x * s               =>    F(x, s)     r = mul x, s
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from undertow.errors import GraphError, Span
from undertow.frontend.trace.builder import Builder
from undertow.ir.graph import EMPTY, Const, FunctionGraph, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.types import Type, i64

if TYPE_CHECKING:
    from undertow.compat.v1.graph import Graph

Outer = tuple[Builder, Port]  # a value of the graph around
Hidden = Outer | Literal["key"]
Needs = dict[str, dict[Hidden, None]]  # what each graph takes besides its arguments, in order
_KEY = Type(i64)


def hidden_of(builder: Builder) -> dict[Hidden, Port]:
    """What a function has captured, with its own parameter for it, in the order of these parameters."""
    taken: dict[Hidden, Port] = {outer: inner for outer, inner in builder.lifted.items()}  # noqa: C416 -- other keys
    if builder.key is not None:
        taken["key"] = builder.key
    return dict(sorted(taken.items(), key=lambda item: item[1].node))


def entered(graph: FunctionGraph | Builder) -> Iterable[tuple[int, str]]:
    """The nodes that enter other graphs, and those graphs."""
    for number, node in enumerate(graph.nodes):
        if node.op in ENTERS:
            yield number, node.attrs.text(ENTERS[node.op])


def needs_of(graph: Graph, names: Collection[str]) -> Needs:
    """What these graphs need besides their arguments: what they, and all that they enter, have captured."""
    graphs = graph.writer.graphs
    needs: Needs = {name: dict.fromkeys(graph.hidden.get(name, ())) for name in names}
    callers: dict[str, set[str]] = {}
    for name in names:
        for _, callee in entered(graphs[name]):
            callers.setdefault(callee, set()).add(name)
    waiting = list(names)
    while waiting:
        callee = waiting.pop()
        for name in callers.get(callee, ()):
            is_loop = graphs[name].kind != "function"
            more = [
                what
                for what in needs[callee]
                if what not in needs[name] and not (is_loop if what == "key" else what[0].name == name)
            ]
            if more:
                needs[name].update(dict.fromkeys(more))
                waiting.append(name)
    return needs


def may_draw(graph: Graph, callee: str) -> bool:
    """May a function need a random key? Yes, if some body is not known yet."""
    names = [callee]
    for name in names:
        # Traced early; if that fails, the program may not be complete yet, and a later attempt says what is wrong.
        with contextlib.suppress(Exception):
            graph.body_of(name)
        if name not in graph.writer.graphs or "key" in graph.hidden.get(name, ()):
            return True
        names += (below for _, below in entered(graph.writer.graphs[name]) if below not in names)
    return False


def captured_by(graph: Graph, callee: str, builder: Builder) -> list[Port]:
    """The values of a builder that a function, or what it calls, has captured; as far as their bodies are known."""
    key = callee, len(graph.writer.graphs)  # what is known grows with every body
    if key not in graph.captures:
        names = [callee]
        for name in names:
            body = graph.body_of(name)
            if body is not None:
                names += (below for _, below in entered(body) if below not in names)
        known = [name for name in names if name in graph.writer.graphs]
        key = callee, len(graph.writer.graphs)
        graph.captures[key] = list(needs_of(graph, known)[callee]) if callee in known else []
    return [what[1] for what in graph.captures[key] if what != "key" and what[0] is builder]


def close(graph: Graph, names: Collection[str]) -> bool:
    """Add hidden arguments to these graphs and to their calls, main's included. Was there a call in main to change?"""
    needs = needs_of(graph, names)
    for name in names:
        if name not in graph.closed:
            graph.closed.add(name)
            graph.writer.graphs[name] = _closed(graph, name, needs)
    return _close_main(graph, needs)


def _closed(graph: Graph, name: str, needs: Needs) -> FunctionGraph:
    """A graph with parameters for all that it needs, which it hands on."""
    before = graph.writer.graphs[name]
    own = graph.hidden.get(name, {})
    calls = [(number, callee) for number, callee in entered(before) if needs.get(callee)]
    if not calls and len(own) == len(needs[name]):
        return before
    builder = Builder.reopened(before)
    ports: dict[Hidden, Port] = dict(own)
    for what in needs[name]:
        if what not in own:
            kind = _KEY if what == "key" else what[0].type_of(what[1]).erased()
            called = "key" if what == "key" else what[0].nodes[what[1].node].short_name
            ports[what] = builder.param(kind, called)
    if "key" not in ports and name in graph.keys:
        inner = graph.keys[name]
        assert inner.key is not None
        ports["key"] = inner.finished(inner.key)

    def port_of(what: Hidden, _: Span | None) -> Port:
        return ports[what] if what in ports or what == "key" else what[0].finished(what[1])

    for number, callee in calls:
        _hand_on(builder, number, needs[callee], port_of)
    kept = set(range(len(builder.nodes)))
    return builder.finish_with(kept, builder.params, before.results, before.carried)


def _close_main(graph: Graph, needs: Needs) -> bool:
    main, changed = graph.main, False

    def port_of(what: Hidden, span: Span | None) -> Port:
        if what == "key":
            return graph.main_key()
        builder, port = what
        if builder is not main:
            node = builder.nodes[port.node]
            raise GraphError(
                f"a function that is called in the main graph uses the tensor `{node.name}`, which belongs to "
                f"`{builder.name}`",
                span,
                hint="pass it as an argument",
            )
        return port

    state = main.region, main.controls, main.device
    try:
        for number, callee in list(entered(main)):
            if needs.get(callee) and number not in graph.closed_calls:
                graph.closed_calls.add(number)
                main.controls, main.device, changed = (), None, True
                _hand_on(main, number, needs[callee], port_of)
    finally:
        main.region, main.controls, main.device = state
    return changed


def _hand_on(
    builder: Builder, number: int, needs: Mapping[Hidden, None], port_of: Callable[[Hidden, Span | None], Port]
) -> None:
    """Append to the operands of a node what the graph that it enters needs."""
    node = builder.nodes[number]
    builder.region = node.region
    more: list[Operand] = []
    for what in needs:
        port = builder.use(port_of(what, node.span))
        if what == "key":  # one of its own for each call
            site = Const(np.asarray(-number - 1))  # operations that draw count from 1
            port = Port(builder.add("fold_in", (port, site), (_KEY,), EMPTY, node.span, "key"))
        more.append(port)
    builder.nodes[number] = replace(node, inputs=(*node.inputs, *more))
    builder.is_sorted = False
