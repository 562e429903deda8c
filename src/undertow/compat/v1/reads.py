"""Reads of variables that are differentiated, and updates: what a derivative with respect to a variable means.

A variable is read where it is used: in the graph itself, in branches, loops and functions. Before a derivative with
respect to it is outlined, each read in a branch or below a call becomes a read in the region of the derivative, whose
value is handed on; then the reads are tensors like any other x. That is the same program: nothing orders those reads
after an assignment, or it is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from undertow.compat.v1.outline import parts_of
from undertow.compat.v1.paths import DERIVATIVE, UPDATE, ancestors, is_inside, sources
from undertow.errors import GraphError
from undertow.frontend.trace.builder import START, Builder
from undertow.ir.graph import Attrs, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.structure import ENTERS
from undertow.ir.walk import entered_by
from undertow.ops.op import find
from undertow.types import Type


def expose_reads(library: Library) -> Library:
    """The library with derivatives that name tensors only, one output for each, and one node for each list of ys."""
    marked = [graph for graph in library.functions.values() if any(node.op == DERIVATIVE for node in graph.nodes)]
    if not marked:
        return library
    changing = _changing(library, marked)
    functions = {
        name: _Rewriting(graph, changing).make()
        if graph in marked or any(entered in changing for entered in (name, *entered_by(graph)))
        else graph
        for name, graph in library.functions.items()
    }
    return Library(functions, library.main)


# -- which functions take a variable's value as an argument ------------------------------------------------


def using(library: Library, op: str) -> dict[str, frozenset[str]]:
    """The variables that each function reads, or assigns, itself or through what it enters."""
    own = {
        name: frozenset(node.attrs.text("variable") for node in graph.nodes if node.op == op)
        for name, graph in library.functions.items()
    }
    entered = {name: set(entered_by(graph)) for name, graph in library.functions.items()}
    is_growing = True
    while is_growing:
        is_growing = False
        for name in reversed(own):
            found = own[name].union(*(own[callee] for callee in entered[name]))
            is_growing |= found != own[name]
            own[name] = found
    return own


def _changing(library: Library, marked: Iterable[FunctionGraph]) -> dict[str, dict[str, Node]]:
    """Functions below differentiated calls -> the variables that they read, which become parameters, with a read."""
    reads, assigns = using(library, "read"), using(library, "assign")
    example = {
        node.attrs.text("variable"): node
        for graph in library.functions.values()
        for node in graph.nodes
        if node.op == "read"
    }
    found: dict[str, dict[str, Node]] = {}
    for graph in marked:
        for node in graph.nodes:
            if node.op != DERIVATIVE:
                continue
            variables = {name for name in _variables(node) if name}
            needed = ancestors(graph.nodes, parts_of(node)[0])
            for number in sorted(needed):
                _check_order(graph, number, node, variables, needed, reads, assigns)
                inner = graph.nodes[number]
                todo = [inner.attrs.text(ENTERS[inner.op])] if inner.op in ENTERS else []
                seen: set[str] = set()
                while todo:
                    name = todo.pop()
                    if name in seen or not variables & reads[name]:
                        continue
                    seen.add(name)
                    for variable in sorted(variables & reads[name]):
                        found.setdefault(name, {})[variable] = example[variable]
                    todo += entered_by(library.functions[name])
    return found


def _check_order(
    graph: FunctionGraph,
    number: int,
    derivative: Node,
    variables: set[str],
    needed: set[int],
    reads: Mapping[str, frozenset[str]],
    assigns: Mapping[str, frozenset[str]],
) -> None:
    """Refuse a read below a call, or in a branch, that an assignment may come before: which value it sees is open."""
    node = graph.nodes[number]
    is_call = node.op in ENTERS
    if not is_call and (node.op != "read" or node.region == derivative.region):
        return
    hidden = reads[node.attrs.text(ENTERS[node.op])] if is_call else {node.attrs.text("variable")}
    suspects = variables & hidden
    if not suspects:
        return
    assigned: set[str] = set()
    for before in ancestors(graph.nodes, [Port(number)]):
        other = graph.nodes[before]
        if other.op == "assign":
            assigned.add(other.attrs.text("variable"))
        elif other.op in ENTERS:
            assigned |= assigns[other.attrs.text(ENTERS[other.op])]
    if suspects & assigned:
        name = min(suspects & assigned)
        raise GraphError(
            f"the gradient with respect to variable `{name}` goes through a read of it, in a function, loop or branch, "
            "that an assignment comes before",
            derivative.span,
            hint="read it outside, x = v.read_value(), hand x over, and take the gradient with respect to x",
        )


def _variables(node: Node) -> tuple[str, ...]:
    found = node.attrs["variables"]
    assert isinstance(found, tuple)
    return tuple(map(str, found))


def _named(node: Node) -> list[tuple[str, list[Port]]]:
    """What a derivative names: for each x the variable that it is, or "", and tensors."""
    rest = iter(parts_of(node)[2])
    sizes = node.attrs.integers("sizes")
    return [
        (variable, [x for _, x in zip(range(size), rest, strict=False)])
        for size, variable in zip(sizes, _variables(node), strict=True)
    ]


# -- one graph ---------------------------------------------------------------------------------------------


class _Rewriting:
    """A graph on its way to derivatives with respect to tensors."""

    def __init__(self, graph: FunctionGraph, changing: Mapping[str, Mapping[str, Node]]) -> None:
        self.graph = graph
        self.changing = changing
        self.builder = Builder.reopened(graph)
        self.instead: dict[Port, Port] = {}  # values that are replaced
        self.reads: dict[tuple[str, int, tuple[Port, ...]], Port] = {}  # one for each variable and place
        self.markers = [number for number, node in enumerate(graph.nodes) if node.op == DERIVATIVE]
        self.above = {n: ancestors(graph.nodes, parts_of(graph.nodes[n])[0]) for n in self.markers}
        # Reads that are an x themselves: others of the variable are not the same tensor.
        self.pinned = {x for n in self.markers for variable, xs in _named(graph.nodes[n]) for x in xs if not variable}
        # Values of variables that derivatives are taken with respect to, besides those that they name.
        self.added: dict[tuple[int, str], dict[Port, None]] = {}
        taken = changing.get(graph.name, {})
        self.params = {variable: self.builder.param(read.types[0], variable) for variable, read in taken.items()}

    def make(self) -> FunctionGraph:
        builder, graph = self.builder, self.graph
        for number, node in enumerate(graph.nodes):
            if node.op in ENTERS:
                values = self.changing.get(node.attrs.text(ENTERS[node.op]), {})
                given = [self._handed(variable, read, number) for variable, read in values.items()]
                builder.nodes[number] = replace(builder.nodes[number], inputs=(*node.inputs, *given))
            elif node.op == "read":
                self._replace_read(number, node)
        self._write_derivatives()
        gone = set(self.markers)
        for number, node in enumerate(builder.nodes):
            # What waits for a read still waits for that read; what waits for a derivative, for what stands for it.
            controls = tuple(self.instead[port] if port.node in gone else port for port in node.controls)
            builder.nodes[number] = replace(node, inputs=tuple(map(self._now, node.inputs)), controls=controls)
        results = [self.instead.get(port, port) for port in graph.results]
        kept = set(range(len(builder.nodes))) - gone
        return builder.finish_with(kept, builder.params, results, graph.carried)

    def _now(self, operand: Operand) -> Operand:
        return self.instead.get(operand, operand) if isinstance(operand, Port) else operand

    def _asking(self, variable: str, number: int) -> list[int]:
        """The derivatives with respect to a variable that a node leads to."""
        return [m for m in self.markers if number in self.above[m] and variable in _variables(self.graph.nodes[m])]

    def _add(self, variable: str, value: Port, asking: Iterable[int]) -> None:
        for marker in asking:
            seen = self.builder.use(value, self.graph.nodes[marker].region)
            self.added.setdefault((marker, variable), {})[seen] = None

    def _handed(self, variable: str, read: Node, number: int) -> Port:
        """A variable's value, for a call of a function that takes it."""
        call, asking = self.graph.nodes[number], self._asking(variable, number)
        if variable in self.params:
            value = self.params[variable]
        elif asking:
            value = self._read(variable, read, min(self.graph.nodes[m].region for m in asking), ())
        else:
            value = self._read(variable, read, call.region, call.controls)
        self._add(variable, value, asking)
        return self.builder.use(value, call.region)

    def _replace_read(self, number: int, node: Node) -> None:
        """A read of what is a parameter now; one in a branch; one that waits for the same as another."""
        variable = node.attrs.text("variable")
        asking = self._asking(variable, number)
        region = min((self.graph.nodes[m].region for m in asking), default=node.region)
        if variable in self.params:
            value = self.params[variable]
        elif not asking:
            return
        elif region != node.region and is_inside(self.graph.regions, node.region, region):
            value = self._read(variable, node, region, ())
        else:  # the derivatives name it
            if Port(number) not in self.pinned:
                value = self.reads.setdefault((variable, node.region, node.controls), Port(number))
                if value != Port(number):
                    self.instead[Port(number)] = value
            return
        self._add(variable, value, asking)
        self.instead[Port(number)] = self.builder.use(value, node.region)

    def _read(self, variable: str, like: Node, region: int, controls: tuple[Port, ...]) -> Port:
        waits = controls or (self.builder.use(START, region),)
        key = variable, region, waits
        if key not in self.reads:
            attrs = Attrs(**{name: value for name, value in like.attrs.items() if name != "device"})
            number = self.builder.add("read", (), like.types, attrs, like.span, variable, waits, region)
            self.reads[key] = Port(number)
        return self.reads[key]

    # -- derivatives ---------------------------------------------------------------------------------------

    def _write_derivatives(self) -> None:
        """One derivative for all with the same ys and cotangents; the gradient of several reads is their sum."""
        written: dict[tuple[tuple[Operand, ...], int], int] = {}
        for number in self.markers:
            node = self.builder.nodes[number]
            ys, cotangents, _ = parts_of(node)
            leading = tuple(map(self._now, (*ys, *cotangents)))
            key = leading, node.region
            if key not in written:
                attrs = Attrs(ys=len(ys))
                written[key] = self.builder.add(
                    DERIVATIVE, leading, (), attrs, node.span, _short(node), region=node.region
                )
            for index, (variable, named) in enumerate(_named(node)):
                xs = [self.instead.get(x, x) for x in named]
                xs += self.added.get((number, variable), {})
                if not xs:  # the functions that might have read it do not
                    xs = [self._read(variable, _reading(variable, node.types[index]), node.region, ())]
                outputs = [self._output(written[key], x) for x in dict.fromkeys(xs)]
                self.instead[Port(number, index)] = self._sum(outputs, node)

    def _output(self, derivative: int, x: Port) -> Port:
        """The cotangent of an x."""
        node = self.builder.nodes[derivative]
        xs = parts_of(node)[2]
        if x not in xs:
            types = (*node.types, self.builder.type_of(x).erased())
            self.builder.nodes[derivative] = replace(node, inputs=(*node.inputs, x), types=types)
        return Port(derivative, xs.index(x) if x in xs else len(xs))

    def _sum(self, ports: list[Port], like: Node) -> Port:
        total = ports[0]
        for port in ports[1:]:
            types = (self.builder.type_of(port),)
            number = self.builder.add("add", (total, port), types, span=like.span, name="sum", region=like.region)
            total = Port(number)
        return total


def _short(node: Node) -> str:
    return node.name.rsplit("/", 1)[-1]


def _reading(variable: str, type_: Type) -> Node:
    shape = tuple(d if isinstance(d, int) else None for d in type_.shape)
    attrs = Attrs(variable=variable, dtype=type_.dtype.name, shape=shape)
    return Node("read", (), find("read").type([], attrs), variable, attrs=attrs)


# -- updates -----------------------------------------------------------------------------------------------


def order_updates(library: Library) -> Library:
    """The library in which optimizers update a variable after main has read it, unless control edges say otherwise."""
    main = library.functions[library.main]
    updates = [number for number, node in enumerate(main.nodes) if UPDATE in node.attrs]
    if not updates:
        return library
    reads = using(library, "read")
    readers: dict[str, set[Port]] = {}
    for number, node in enumerate(main.nodes):
        names = {node.attrs.text("variable")} if node.op == "read" else set()
        names |= reads[node.attrs.text(ENTERS[node.op])] if node.op in ENTERS else set()
        for name in names:
            readers.setdefault(name, set()).update(_seen_outside(main, number))
    builder = Builder.reopened(main)
    for number in updates:
        node = builder.nodes[number]
        attrs = Attrs(**{key: value for key, value in node.attrs.items() if key != UPDATE})
        later = _below(builder.nodes, number)
        before = sorted(port for port in readers.get(node.attrs.text("variable"), ()) if port.node not in later)
        controls = tuple(dict.fromkeys((*node.controls, *before)))
        builder.nodes[number] = replace(node, attrs=attrs, controls=controls)
    made = builder.finish_with(set(range(len(builder.nodes))), builder.params, main.results, main.carried)
    return Library({**library.functions, library.main: made}, library.main)


def _below(nodes: Sequence[Node], number: int) -> set[int]:
    """A node, and what comes after it. (Edges have been added, so the order of the nodes says nothing.)"""
    users: dict[int, list[int]] = {}
    for user, node in enumerate(nodes):
        for port in sources(node):
            users.setdefault(port.node, []).append(user)
    found, todo = {number}, [number]
    while todo:
        fresh = set(users.get(todo.pop(), ())) - found
        found |= fresh
        todo += fresh
    return found


def _seen_outside(main: FunctionGraph, number: int) -> list[Port]:
    """What is there, outside of branches, when a node has fired."""
    node = main.nodes[number]
    if node.region == 0:
        return [Port(number, index) for index in range(len(node.types))]
    below = _below(main.nodes, number)
    return [Port(n) for n in sorted(below) if main.nodes[n].op == "merge" and main.nodes[n].region == 0]
