"""Extend: adds derivatives to the graphs, in reverse mode as a second visit, in forward mode as a call of a copy.

A `gradient` node names a call of the same region, cotangents for some of its results (`given`) and the arguments whose
cotangents are `wanted`. The call becomes a call of the *extended* function, which has a backward phase for each
forward phase (`reverse`); the gradient becomes a `resume`. A `tangent` node becomes a call of the tangent copy of its
callee (`forward`). The plain functions stay, for calls that need no derivative.

Derivatives inside a differentiated function are replaced first, so the same machinery serves any order and both modes.
Only the outermost gradient collects (`entries`), if nothing takes its tangent; with `collect=False` none does, for
engines that have no entries.

Devices: what is written for an operator, call or gradient is where that is; zeros of a body's results follow the body.

>>> from undertow.ir.text import dump, parse
>>> library, report = extend(parse('''
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

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from undertow.errors import CaptureError
from undertow.ir.budget import check
from undertow.ir.custom import RULE, custom_parts, has_rule, rule_nodes
from undertow.ir.draft import Copy
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.names import Names
from undertow.ir.sparse import rows_types, sparse_of
from undertow.ir.walk import link_of, reachable, target_of
from undertow.ops.effects import variables_of
from undertow.ops.term import Size, Term, apply, constant, filled, fitted, shaped, sizes
from undertow.passes.derive.activity import Activity, Flows, Request, differentiable
from undertow.passes.derive.entries import NO_ENTRIES, Entries, find_entries
from undertow.passes.derive.forward import Forward
from undertow.passes.derive.reverse import Reverse, extended_call, write_resume
from undertow.passes.derive.writer import DerivativeWriter
from undertow.passes.loops import loops_to_calls
from undertow.passes.report import Report, size
from undertow.types import i64


def extend(library: Library, collect: bool = True) -> tuple[Library, Report]:
    """The library without `gradient` and `tangent` nodes, and a report."""
    before = size(library)
    count: Counter[str] = Counter()
    targets = {name: _differentiated(graph, "gradient", "tangent") for name, graph in library.functions.items()}
    inner = _below(library, [name for differentiated in targets.values() for name in differentiated])
    # Rules run after a function that is differentiated: what they differentiate is, where that is differentiated again.
    twice = _below(library, [other for name in inner for other in targets[name]])
    while any(targets.values()):
        check()
        name = _next(library, targets)
        if _differentiated(library.functions[name], "gradient"):
            is_last = name not in (twice if _is_in_rule(library.functions[name]) else inner)
            library = _extend_graph(library, name, collect and is_last, count)
        if _differentiated(library.functions[name], "tangent"):
            library = _call_copies(library, name, count)
        targets[name] = []
    library = _drop_rules(library, count)
    return library, Report(dict(count.most_common()), before, size(library), "extend")


def _drop_rules(library: Library, count: Counter[str]) -> Library:
    """The library without the user's own derivatives, where no derivative went through: the functions themselves."""
    functions = dict(library.functions)
    for name, graph in library.functions.items():
        if not has_rule(graph):
            continue
        rules, copy = rule_nodes(graph, *RULE), Copy(graph)
        for number, node in enumerate(graph.nodes):
            if node.op == "custom":
                for k, plain in enumerate(custom_parts(node).plain):
                    assert isinstance(plain, Port)
                    copy.ports[Port(number, k)] = copy.ports[plain]
            elif number not in rules:
                copy.add(number)
        functions[name] = copy.freeze()
        count["rule that is not needed"] += 1
    return Library(functions, library.main)


def _differentiated(graph: FunctionGraph, *ops: str) -> list[str]:
    """The graphs that the `gradient` or `tangent` nodes of a graph differentiate."""
    return [target_of(graph, node) for op in ops for node in graph.nodes if node.op == op]


def _is_in_rule(graph: FunctionGraph) -> bool:
    """Are all its gradients taken by a rule for reverse mode?"""
    rule = rule_nodes(graph, "cotangent")
    return all(number in rule for number, node in enumerate(graph.nodes) if node.op == "gradient")


def _below(library: Library, names: list[str]) -> dict[str, None]:
    return reachable(names, lambda name: differentiable(library.functions, name))


def _next(library: Library, targets: dict[str, list[str]]) -> str:
    """A graph whose derivatives can be replaced now: what it differentiates contains no derivatives any more."""
    waiting = [name for name, differentiated in targets.items() if differentiated]
    for name in waiting:
        if not any(targets.get(other) for other in _below(library, targets[name])):
            return name
    first = waiting[0]
    target, nodes = targets[first][0].split("~")[0], library.functions[first].nodes
    raise CaptureError(
        f"the derivative of `{target}` needs its own derivative, without end",
        next(node for node in nodes if node.op in ("gradient", "tangent")).span,
        hint="take the derivative outside the differentiated function",
    )


def _check_assigned(flows: Flows, name: str, params: tuple[int, ...], reason: str, hint: str = "") -> None:
    """Refuse a derivative whose path goes through a variable."""
    assigned = flows.bodies[name].assigned
    for node in (assigned[index] for index in params if index in assigned):
        (variable, *_) = variables_of(node.attrs)
        hint = f"pass the value as an argument or a result{hint}"
        raise CaptureError(f"variable `{variable}` is assigned a value {reason}", node.span, hint=hint)


# --------------------------------------------------------------------------------------------------------------
# Reverse mode


class _Extended(NamedTuple):
    """What a differentiated call becomes."""

    name: str
    request: Request
    entries: Entries


def _extend_graph(library: Library, name: str, collect: bool, count: Counter[str]) -> Library:
    """Replace the gradients in one graph."""
    below = _below(library, _differentiated(library.functions[name], "gradient"))
    if any(library.functions[other].kind == "loop" for other in below):
        library = loops_to_calls(library, below)
    graph, functions = library.functions[name], dict(library.functions)
    flows = Flows(functions, _differentiated(graph, "gradient"))
    known: dict[tuple[Request, tuple[int, ...]], _Extended] = {}
    done: dict[int, _Extended] = {}  # by differentiated call
    for node in graph.nodes:
        if node.op == "gradient":
            target, wanted = target_of(graph, node), node.attrs.integers("wanted")
            reason = f"on the path of the derivative of `{target}`, and read: variables carry no derivatives, so it"
            hint = "; or assign ut.stop_gradient(x) to exclude it from the derivative"
            _check_assigned(flows, target, wanted, f"{reason} would be wrong", hint)
            request = flows.request(target, wanted, node.attrs.integers("given"))
            if request is not None:
                key = request, sparse_of(node)
                if key not in known:
                    known[key] = _write(flows, *key, functions, collect, count)
                done[link_of(node)] = known[key]
    functions[name] = _rebuild(graph, done, functions)
    return Library(functions, library.main)


def _write(
    flows: Flows,
    root: Request,
    sparse: tuple[int, ...],
    functions: dict[str, FunctionGraph],
    collect: bool,
    count: Counter[str],
) -> _Extended:
    """Write the extended graphs of a request and of all requests that follow from it."""
    activities: dict[Request, Activity] = {}
    names: dict[Request, str] = {}
    taken = Names(functions, "~")
    todo = [root]
    while todo:
        request = todo.pop()
        if request not in activities:
            activities[request] = flows.activity(request)
            names[request] = taken.fresh(f"{request.graph}.grad")
            todo += activities[request].requests.values()
    plain = {name: body.graph for name, body in flows.bodies.items()}
    entries = find_entries(root, activities, plain, names[root], sparse) if collect else NO_ENTRIES
    for request, name in names.items():
        functions[name] = Reverse(request, activities[request], names, plain, entries).make()
    count["extended graph"] += len(names)
    if entries is not NO_ENTRIES:
        count["collected argument"] += len(entries.collects)
    return _Extended(names[root], root, entries)


def _rebuild(graph: FunctionGraph, done: dict[int, _Extended], functions: dict[str, FunctionGraph]) -> FunctionGraph:
    """The graph with its gradients replaced."""
    copy = Copy(graph)
    writer = DerivativeWriter(copy.draft)
    for number, node in enumerate(graph.nodes):
        if node.op == "gradient":
            writer.beside(node, copy.place(node.region), copy.phases[number])
            outputs = _write_gradient(node, copy, writer, done.get(link_of(node)), functions)
            copy.ports.update({Port(number, k): port for k, port in enumerate(outputs)})
            continue
        if number in done:
            name, request, entries = done[number]
            node = extended_call(node, request, {request: name}, entries, is_entry=True)
        copy.add(number, node)
    return copy.freeze()


def _write_gradient(
    node: Node, copy: Copy, writer: DerivativeWriter, extended: _Extended | None, functions: Mapping[str, FunctionGraph]
) -> list[Port]:
    """Replace a gradient: the cotangent of each wanted argument as a port, or as two (indices, rows) if sparse."""
    call = link_of(node)
    differentiated = copy.graph.nodes[call]
    wanted, sparse = node.attrs.integers("wanted"), sparse_of(node)
    arguments = [copy.operand(differentiated.inputs[index]) for index in wanted]
    if extended is None:
        nothing = [port for k, x in zip(wanted, arguments, strict=True) for port in _zero(writer, x, k in sparse)]
        return _typed(writer, nothing, node)
    _, request, entries = extended
    plain = functions[request.graph]
    of_result = dict(zip(node.attrs.integers("given"), node.inputs[1:], strict=True))
    cotangents: list[Operand] = [
        fitted(writer.term(copy.operand(of_result[index])), plain.type_of(plain.results[index])).operand
        for index in request.results[0]
    ]
    hoisted, link = entries.hoisted(request), copy.ports[Port(call, 0)]
    resume, resumed = write_resume(writer, request, 0, plain, entries, differentiated, (link, *cotangents))
    ports: list[Port] = []
    for index, x in zip(wanted, arguments, strict=True):
        is_sparse = index in sparse
        if index in resumed:
            whole = Port(resume, resumed.index(index))
            if is_sparse:  # all rows: their indices are made at run time, not stored, as a table may be large
                ports.append(writer.port(apply("arange", 0, _length(writer, sizes(writer.term(whole))[0]), 1).operand))
            ports.append(whole)
        elif hoisted.get(index) in entries.collects:
            type_ = entries.params[hoisted[index]].types[0]
            op, outputs = ("collected_rows", rows_types(type_)) if is_sparse else ("collected", (type_,))
            collected = writer.add(op, (link, x), outputs, Attrs(index=hoisted[index]), (Port(resume, len(resumed)),))
            ports += [Port(collected, k) for k in range(len(outputs))]
        else:
            ports += _zero(writer, x, is_sparse)
    return _typed(writer, ports, node)


def _zero(writer: DerivativeWriter, like: Operand, is_sparse: bool) -> list[Port]:
    if not is_sparse:
        return [writer.zero(writer.port(like))]
    x = writer.term(like)
    none, rows = constant(np.zeros(0), x, i64), filled(0, [0, *sizes(x)[1:]], x)
    return [writer.port(none.operand), writer.port(rows.operand)]


def _length(writer: DerivativeWriter, n: Size) -> Term:
    """A length as a term, even if it is static."""
    return n if isinstance(n, Term) else writer.term(Const(np.asarray(n, np.int64)))


def _typed(writer: DerivativeWriter, ports: list[Port], node: Node) -> list[Port]:
    """The same values, reshaped to the types of the node that they replace: its users were written for these."""
    typed: list[Port] = []
    for port, type_ in zip(ports, node.types, strict=True):
        x = writer.term(port)
        if x.type != type_:
            lengths = [
                a if isinstance(a, int) else _length(writer, b) for a, b in zip(type_.shape, sizes(x), strict=True)
            ]
            x = shaped("reshape", x, lengths)
        typed.append(writer.port(x.operand))
    return typed


# --------------------------------------------------------------------------------------------------------------
# Forward mode


def _call_copies(library: Library, name: str, count: Counter[str]) -> Library:
    """Replace the tangents in one graph by calls of tangent copies, which are appended to the library."""
    graph, functions = library.functions[name], dict(library.functions)
    flows = Flows(functions, _differentiated(graph, "tangent"), reading=functions)
    taken = Names(functions, "~")
    names: dict[Request, str] = {}

    def copy_of(request: Request) -> str:
        """The name of a tangent copy; one that is missing is queued."""
        missing = ((),) * (len(functions[request.graph].phases) - request.visits)
        request = Request(request.graph, request.params + missing, request.results + missing)
        if request not in names:
            names[request] = taken.fresh(f"{request.graph}.jvp")
            waiting.append(request)
        return names[request]

    waiting: list[Request] = []
    copy = Copy(graph)
    for number, node in enumerate(graph.nodes):
        if node.op == "tangent":
            _call_copy(copy, number, node, flows, copy_of)
        else:
            copy.add(number)
    functions[name] = copy.freeze()
    for request in waiting:  # it grows meanwhile
        tangent = Forward(functions, request, names[request], flows.activity(request), copy_of).make()
        functions[tangent.name] = tangent
    count["tangent copy"] += len(names)
    return Library(functions, library.main)


def _call_copy(copy: Copy, number: int, node: Node, flows: Flows, copy_of: Callable[[Request], str]) -> None:
    """Replace a tangent node by a call; results that depend on no given tangent have the tangent zero."""
    name = node.attrs.text("callee")
    callee = flows.functions[name]
    given, wanted = node.attrs.integers("given"), node.attrs.integers("wanted")
    reason = f"that has a tangent, and read: variables carry no tangents, so the derivative of `{name.split('~')[0]}`"
    _check_assigned(flows, name, given, f"{reason} would be wrong")
    request = flows.request(name, given, wanted)
    count, results = len(callee.params), len(callee.results)
    attrs, inputs, outputs = node.attrs.without("given", "wanted"), node.inputs[:count], list(range(results))
    useful: tuple[int, ...] = ()
    if request is not None:
        (useful,) = request.results
        attrs |= {"callee": copy_of(request)}
        inputs += tuple(node.inputs[count + given.index(index)] for index in request.params[0])
        outputs += [results + wanted.index(index) for index in useful]
    types = tuple(node.types[index] for index in outputs)
    copy.add(number, replace(node, op="call", inputs=inputs, types=types, attrs=attrs), outputs)
    writer = DerivativeWriter(copy.draft, waits=False)
    for at, index in enumerate(wanted):
        if index not in useful:
            writer.beside(node, copy.place(node.region), copy.phases[number], f"{node.name}.t")
            copy.ports[Port(number, results + at)] = writer.zero(copy.ports[Port(number, index)])
