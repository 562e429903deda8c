"""Extend: replace every `gradient` of a call by a second visit to the same activation.

A `gradient` node names a call of the same region, cotangents for some of its results (`given`) and the arguments whose
cotangents are `wanted`. The call becomes a call of the *extended* function, which has a backward phase for each
forward phase; the gradient becomes a `resume`. Plain functions stay beside the extended ones: what needs no gradient
calls those.

Derivatives inside of what is differentiated are replaced first, tangents (`forward`) too, so those of any order and of
both modes are the same machinery. Only the outermost gradient collects (`entries`), if nothing takes its tangent;
`collect=False` leaves that out altogether, for engines that know no entries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from undertow.errors import CaptureError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.sparse import rows_types, sparse_of
from undertow.ir.structure import ENTERS
from undertow.ir.walk import entered_by, node_phases, phase_attr
from undertow.ops.term import Size, Term, apply, constant, filled, fitted, shaped, sizes
from undertow.passes.activity import Activity, Ask, Slice, link_of
from undertow.passes.backward import Order, Pen, write_backward
from undertow.passes.entries import Entries, find_entries
from undertow.passes.forward import endless_derivative, forward_graph, tangents_of
from undertow.passes.loops import loops_to_calls
from undertow.passes.report import Report, size
from undertow.types import CTL, i64


def extend(library: Library, collect: bool = True) -> tuple[Library, Report]:
    """The library without `gradient` and `tangent` nodes, and what was done."""
    before = size(library)
    count: Counter[str] = Counter()
    targets = {name: _derived(graph) for name, graph in library.functions.items()}
    inner = reachable(library, (target for found in targets.values() for target in found))
    while any(targets.values()):
        name = _next(library, targets)
        if _targets(library.functions[name]):
            library = _extend_graph(library, name, collect and name not in inner, count)
        library = forward_graph(library, name, count)
        targets[name] = []
    return library, Report(dict(count.most_common()), before, size(library), "extend")


def _targets(graph: FunctionGraph) -> list[str]:
    """What a graph takes the gradient of."""
    return [graph.nodes[link_of(node)].attrs.text("callee") for node in graph.nodes if node.op == "gradient"]


def _derived(graph: FunctionGraph) -> list[str]:
    """What a graph takes a derivative of, backwards or forwards."""
    return _targets(graph) + [node.attrs.text("callee") for node in tangents_of(graph)]


def reachable(library: Library, names: Iterable[str]) -> list[str]:
    """These graphs and all that they enter, in the order of the library."""
    todo = list(names)
    found = set(todo)
    while todo:
        for name in entered_by(library.functions[todo.pop()]):
            if name not in found:
                found.add(name)
                todo.append(name)
    return [name for name in library.functions if name in found]


def _next(library: Library, targets: dict[str, list[str]]) -> str:
    """A graph whose derivatives can be replaced now: there are none left in what it differentiates."""
    waiting = [name for name, found in targets.items() if found]
    for name in waiting:
        below = reachable(library, targets[name])
        if not any(targets.get(other) for other in below):
            return name
    graph = library.functions[waiting[0]]
    node = next(node for node in graph.nodes if node.op in ("gradient", "tangent"))
    raise endless_derivative(targets[graph.name][0], node)


@dataclass(frozen=True, slots=True, eq=False)
class _Extended:
    """What a differentiated call becomes."""

    name: str
    ask: Ask
    entries: Entries | None


def _extend_graph(library: Library, name: str, collect: bool, count: Counter[str]) -> Library:
    """Replace the gradients in one graph."""
    graph = library.functions[name]
    roots = _targets(graph)
    below = reachable(library, roots)
    if any(library.functions[other].kind == "loop" for other in below):
        library = loops_to_calls(library, below)
        below = reachable(library, roots)
        graph = library.functions[name]
    activity = Activity(library, below)
    functions = dict(library.functions)
    known: dict[tuple[Ask, tuple[int, ...]], _Extended] = {}
    done: dict[int, _Extended] = {}  # of each call that is differentiated
    for node in graph.nodes:
        if node.op == "gradient":
            call = link_of(node)
            ask = _root(activity, graph.nodes[call], node)
            if ask is not None:
                key = ask, sparse_of(node)
                if key not in known:
                    known[key] = _write(activity, *key, functions, collect, count)
                done[call] = known[key]
    functions[name] = _rebuild(graph, done, functions)
    return Library(functions, library.main)


def _root(activity: Activity, call: Node, node: Node) -> Ask | None:
    """What is asked of a differentiated call, as far as it depends on anything; None where it does not."""
    target = call.attrs.text("callee")
    body = activity.bodies[target]
    flows = body.flows
    given, wanted = node.attrs.integers("given"), node.attrs.integers("wanted")
    for index in wanted:
        if (0, index) in body.assigned:
            raise _assigned(target, body.assigned[0, index])
    useful = tuple(j for j in given if any((0, i) in flows[0, j] for i in wanted))
    varied = tuple(i for i in wanted if any((0, i) in flows[0, j] for j in useful))
    return Ask(target, (useful,), (varied,)) if varied else None


def _assigned(target: str, assign: Node) -> CaptureError:
    variable = assign.attrs.text("variable")
    return CaptureError(
        f"variable `{variable}` is assigned a value that the derivative of `{target}` goes through, and read: "
        "a variable hands no derivative on, so it would be wrong",
        assign.span,
        hint="hand the value on as an argument or a result; or assign ut.stop_gradient(x), to leave it out of the "
        "derivative",
    )


def _write(
    activity: Activity,
    root: Ask,
    sparse: tuple[int, ...],
    functions: dict[str, FunctionGraph],
    collect: bool,
    count: Counter[str],
) -> _Extended:
    """Write the extended graphs of an ask, and of all that it asks for."""
    slices: dict[Ask, Slice] = {}
    names: dict[Ask, str] = {}
    todo = [root]
    while todo:
        ask = todo.pop()
        if ask not in slices:
            slices[ask] = activity.slice(ask)
            names[ask] = _fresh(f"{ask.graph}.grad", functions, names)
            todo += slices[ask].asks.values()
    plain = {name: body.graph for name, body in activity.bodies.items()}
    entries = find_entries(root, slices, plain, names[root], sparse) if collect else None
    for ask, name in names.items():
        functions[name] = write_backward(Order(ask, plain[ask.graph], name, slices[ask], names, plain, entries))
        count["extended graph"] += 1
    if entries is not None:
        count["collected argument"] += len(entries.collects)
    return _Extended(names[root], root, entries)


def _fresh(name: str, functions: dict[str, FunctionGraph], names: dict[Ask, str]) -> str:
    taken, fresh, number = set(names.values()), name, 1
    while fresh in functions or fresh in taken:
        number += 1
        fresh = f"{name}~{number}"
    return fresh


def _rebuild(graph: FunctionGraph, done: dict[int, _Extended], functions: dict[str, FunctionGraph]) -> FunctionGraph:
    """The graph with its gradients replaced."""
    draft = Draft(graph.kind, graph.regions[0].name)
    copy, pen = Copy(graph, draft), Pen(draft)
    phases_of = node_phases(graph)
    for number, node in enumerate(graph.nodes):
        if node.op == "gradient":
            pen.region, pen.span, pen.phase = copy.place(node.region), node.span, phases_of[number]
            outputs = _write_gradient(graph, node, copy, pen, done.get(link_of(node)), functions)
            copy.ports.update({Port(number, k): port for k, port in enumerate(outputs)})
            continue
        if number in done:
            extended = done[number]
            hoisted = () if extended.entries is None else extended.entries.indices
            gone = {} if extended.entries is None else extended.entries.values[extended.ask]
            inputs = [x for index, x in enumerate(node.inputs) if index not in gone]
            inputs += [node.inputs[index] for index in hoisted]
            attrs = {key: value for key, value in node.attrs.items() if key != "checkpoint"}
            attrs[ENTERS[node.op]] = extended.name
            node = replace(node, inputs=tuple(inputs), attrs=Attrs(**attrs))
        copy.add(number, node, phase=phases_of[number])
    phases = [
        Phase(
            tuple(copy.ports[Port(param)].node for param in visit.params),
            tuple(copy.ports[port] for port in visit.results),
        )
        for visit in graph.phases
    ]
    shared = tuple(copy.ports[port] for port in graph.shared)
    return draft.freeze(graph, phases, graph.carried, shared)


def _write_gradient(
    graph: FunctionGraph,
    node: Node,
    copy: Copy,
    pen: Pen,
    extended: _Extended | None,
    functions: dict[str, FunctionGraph],
) -> list[Port]:
    """What stands where a gradient was: a port for each argument that wants a cotangent, two where it is rows."""
    call = link_of(node)
    wanted, sparse = node.attrs.integers("wanted"), sparse_of(node)
    arguments = [copy.operand(graph.nodes[call].inputs[index]) for index in wanted]
    if extended is None:
        nothing = [port for k, x in zip(wanted, arguments, strict=True) for port in _zero(pen, x, k in sparse)]
        return _typed(pen, nothing, node)
    ask, entries = extended.ask, extended.entries
    given = dict(zip(node.attrs.integers("given"), node.inputs[1:], strict=True))
    results = functions[ask.graph].results
    cotangents: list[Operand] = [
        fitted(pen.term(copy.operand(given[index])), functions[ask.graph].type_of(results[index])).operand
        for index in ask.given[0]
    ]
    gone = {} if entries is None else entries.values[ask]
    asked = [index for index in ask.wanted[0] if index not in gone]
    plain = functions[ask.graph]
    types = tuple(plain.nodes[plain.params[index]].types[0] for index in asked)
    is_collecting = entries is not None and bool(entries.collects)
    link = copy.ports[Port(call, 0)]
    name = f"d.{graph.nodes[call].name.rsplit('/', 1)[-1]}"
    types_and_token = (*types, CTL) if is_collecting else types
    resume = pen.add("resume", (link, *cotangents), types_and_token, Attrs(**phase_attr(1)), name=name)
    found: list[Port] = []
    for index, x in zip(wanted, arguments, strict=True):
        is_sparse = index in sparse
        if index in asked:
            whole = Port(resume, asked.index(index))
            if is_sparse:  # every row, counted when it runs: a table may be large
                found.append(pen.port(apply("arange", 0, _length(pen, sizes(pen.term(whole))[0]), 1).operand))
            found.append(whole)
        elif entries is not None and index in gone and gone[index] in entries.collects:
            held = entries.params[gone[index]].types[0]
            op, outputs = ("collected_rows", rows_types(held)) if is_sparse else ("collected", (held,))
            collected = pen.add(op, (link, x), outputs, Attrs(index=gone[index]), (Port(resume, len(asked)),))
            found += [Port(collected, k) for k in range(len(outputs))]
        else:
            found += _zero(pen, x, is_sparse)
    return _typed(pen, found, node)


def _zero(pen: Pen, like: Operand, is_sparse: bool) -> list[Port]:
    if not is_sparse:
        return [pen.zero(pen.port(like))]
    x = pen.term(like)
    none, rows = constant(np.zeros(0), x, i64), filled(0, [0, *sizes(x)[1:]], x)
    return [pen.port(none.operand), pen.port(rows.operand)]


def _length(pen: Pen, n: Size) -> Term:
    """A length as a value, even if it is known."""
    return n if isinstance(n, Term) else pen.term(Const(np.asarray(n, np.int64)))


def _typed(pen: Pen, ports: list[Port], node: Node) -> list[Port]:
    """The same values, of the types that a node has: what uses them was written for these."""
    found: list[Port] = []
    for port, type_ in zip(ports, node.types, strict=True):
        x = pen.term(port)
        if x.type != type_:
            lengths = [a if isinstance(a, int) else _length(pen, b) for a, b in zip(type_.shape, sizes(x), strict=True)]
            x = shaped("reshape", x, lengths)
        found.append(pen.port(x.operand))
    return found
