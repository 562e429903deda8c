"""Expose reads: a derivative with respect to a variable becomes one with respect to the tensors that read it.

A variable is read where it is used: in the graph itself, in branches, loops and functions. Before a derivative with
respect to it is outlined, each read in a branch or below a call moves to the region of the derivative, and its value is
handed on; then the reads are tensors like any other x. This keeps the program's meaning, since no such read follows an
assignment; if one does, it is refused.

Devices: a derivative keeps its own; of several that become one, it is the first one's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from undertow.errors import GraphError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.implied import param_node
from undertow.ir.names import in_scope
from undertow.ir.structure import ENTERS
from undertow.ir.walk import device_attr, entered_by, placed_like
from undertow.ops.op import find
from undertow.passes.markers.paths import DERIVATIVE, ancestors, is_inside, leaves_its_branch, parts_of
from undertow.types import Type


def expose_reads(library: Library) -> tuple[Library, Counter[str]]:
    """The library with derivatives with respect to tensors only, one output for each, one node for each list of ys."""
    marked = [graph for graph in library.functions.values() if any(node.op == DERIVATIVE for node in graph.nodes)]
    if not marked:
        return library, Counter()
    changing = _changing(library, marked)
    functions = {
        name: _Exposing(graph, changing).make()
        if graph in marked or any(entered in changing for entered in (name, *entered_by(graph)))
        else graph
        for name, graph in library.functions.items()
    }
    count = Counter({"graph with derivatives": len(marked), "variable handed over": sum(map(len, changing.values()))})
    return Library(functions, library.main), +count


# -- which functions take a variable's value as an argument ------------------------------------------------


def used_by(node: Node, op: str, functions: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """The variables that a node uses by `op` (`read` or `assign`), itself or through the graph that it enters."""
    if node.op in ENTERS:
        return functions[node.attrs.text(ENTERS[node.op])]
    return frozenset({node.attrs.text("variable")} if node.op == op else ())


def using(library: Library, op: str) -> dict[str, frozenset[str]]:
    """The variables that each function uses by `op`, itself or through the functions that it enters."""
    variables = dict.fromkeys(library.functions, frozenset[str]())
    is_growing = True
    while is_growing:
        is_growing = False
        for name in reversed(variables):
            used = variables[name].union(*(used_by(node, op, variables) for node in library.functions[name].nodes))
            is_growing |= used != variables[name]
            variables[name] = used
    return variables


def _changing(library: Library, marked: Iterable[FunctionGraph]) -> dict[str, dict[str, Node]]:
    """Functions below differentiated calls -> the variables that become their parameters, each with a read of it."""
    reads, assigns = using(library, "read"), using(library, "assign")
    every = (node for graph in library.functions.values() for node in graph.nodes)
    example = {node.attrs.text("variable"): node for node in every if node.op == "read"}
    changing: dict[str, dict[str, Node]] = {}
    for graph in marked:
        for derivative in graph.nodes:
            if derivative.op != DERIVATIVE:
                continue
            variables = frozenset(_variables(derivative))
            todo: list[str] = []
            for number in sorted(ancestors(graph.nodes, parts_of(derivative)[0])):
                node = graph.nodes[number]
                if node.op != "read" or node.region != derivative.region:
                    suspects = variables & used_by(node, "read", reads)
                    before = ancestors(graph.nodes, [Port(number)]) if suspects else ()
                    assigned = [used_by(graph.nodes[n], "assign", assigns) for n in before]
                    _check_order(suspects.intersection(frozenset().union(*assigned)), derivative)
                todo += [node.attrs.text(ENTERS[node.op])] if node.op in ENTERS else []
            while todo:
                name = todo.pop()
                if fresh := (variables & reads[name]) - changing.get(name, {}).keys():
                    changing.setdefault(name, {}).update({variable: example[variable] for variable in sorted(fresh)})
                    todo += entered_by(library.functions[name])
    return changing


def _check_order(assigned: frozenset[str], derivative: Node) -> None:
    """Refuse a read, below a call or in a branch, that an assignment may precede: which value it sees is undefined."""
    if assigned:
        raise GraphError(
            f"the gradient with respect to variable `{min(assigned)}` goes through a read of it in a function, loop "
            "or branch that follows an assignment",
            derivative.span,
            hint="read it outside with x = v.read_value(), pass x in, and take the gradient with respect to x",
        )


def _variables(node: Node) -> tuple[str, ...]:
    names = node.attrs["variables"]
    assert isinstance(names, tuple)
    return tuple(map(str, names))


def _named(node: Node) -> list[tuple[str, list[Port]]]:
    """What a derivative is with respect to: for each x a variable, or "", and tensors."""
    rest = iter(parts_of(node)[2])
    sizes = node.attrs.integers("sizes")
    return [
        (variable, [x for _, x in zip(range(size), rest, strict=False)])
        for size, variable in zip(sizes, _variables(node), strict=True)
    ]


# -- one graph ---------------------------------------------------------------------------------------------


class _Values(Copy):
    """A copy in which a value may be replaced while control edges still wait for the node that it came from."""

    def __init__(self, graph: FunctionGraph, draft: Draft) -> None:
        super().__init__(graph, draft)
        self.instead: dict[Operand, Port] = {}

    def operand(self, operand: Operand) -> Operand:
        return self.instead.get(operand) or super().operand(operand)


class _Exposing:
    """A graph whose derivatives are being rewritten. Regions and numbers are of the old graph, ports of the new."""

    def __init__(self, graph: FunctionGraph, changing: Mapping[str, Mapping[str, Node]]) -> None:
        self.graph = graph
        self.nodes = graph.nodes
        self.changing = changing
        self.draft = Draft(graph.kind, graph.regions[0].name)
        self.copy = _Values(graph, self.draft)
        self.brought: dict[Port, dict[int, Port]] = {}  # a value -> as it is seen in regions of the draft
        self.reads: dict[tuple[str, int, tuple[Port, ...]], Port] = {}  # one for each variable and place
        self.params: dict[str, Port] = {}  # variables whose values callers hand over
        self.markers = [number for number, node in enumerate(self.nodes) if node.op == DERIVATIVE]
        self.above = {n: ancestors(self.nodes, parts_of(self.nodes[n])[0]) for n in self.markers}
        # Reads that are an x themselves: another read of the same variable is another tensor.
        self.pinned = {x for n in self.markers for variable, xs in _named(self.nodes[n]) for x in xs if not variable}
        # (marker, variable) -> further values of the variable that the derivative is with respect to.
        self.added: dict[tuple[int, str], dict[Port, None]] = {}
        self.derivatives: dict[tuple[tuple[Operand, ...], int], int] = {}

    def make(self) -> FunctionGraph:
        graph, copy = self.graph, self.copy
        count = len(graph.params)  # the first nodes are the start and the parameters
        for number, node in enumerate(self.nodes):
            if node.op == DERIVATIVE:
                self._write_derivative(number, node)
                continue
            if node.op in ENTERS:
                taken = self.changing.get(node.attrs.text(ENTERS[node.op]), {})
                # New inputs go under ports that no old node has, since `copy.add` takes inputs of the old graph.
                values: dict[Operand, Port] = {
                    Port(-1, k): self._handed(*item, number) for k, item in enumerate(taken.items())
                }
                copy.instead.update(values)
                node = replace(node, inputs=(*node.inputs, *values))
            copy.add(number, node)
            if node.op == "read":
                self._replace_read(number, node)
            if number == count:
                self._add_params()
        params = (*(copy.ports[Port(param)].node for param in graph.params), *(p.node for p in self.params.values()))
        results = tuple(copy.instead.get(port, copy.ports[port]) for port in graph.results)
        return self.draft.freeze(graph, [Phase(params, results)], graph.carried)

    def _add_params(self) -> None:
        for index, (variable, read) in enumerate(
            self.changing.get(self.graph.name, {}).items(), len(self.graph.params)
        ):
            self.params[variable] = Port(self.draft.add(param_node(0, index, variable, read.types[0], None)))

    def _asking(self, variable: str, number: int) -> list[int]:
        """The derivatives with respect to a variable that a node leads to."""
        return [m for m in self.markers if number in self.above[m] and variable in _variables(self.nodes[m])]

    def _add(self, variable: str, value: Port, asking: Iterable[int]) -> None:
        for marker in asking:
            self.added.setdefault((marker, variable), {})[value] = None

    def _handed(self, variable: str, read: Node, number: int) -> Port:
        """A variable's value, for a call of a function that takes it as an argument."""
        call, asking = self.nodes[number], self._asking(variable, number)
        if variable in self.params:
            value = self.params[variable]
        elif asking:
            outermost = min(asking, key=lambda m: self.nodes[m].region)
            region = self.nodes[outermost].region
            if not is_inside(self.graph.regions, call.region, region):
                raise leaves_its_branch(self.nodes[outermost])
            value = self._read(variable, read, region, ())
        else:
            value = self._read(variable, read, call.region, call.controls)
        self._add(variable, value, asking)
        return self._bring(value, call.region)

    def _replace_read(self, number: int, node: Node) -> None:
        """Replace a read by the parameter, by a read in the derivative's region, or by an equal read."""
        variable = node.attrs.text("variable")
        asking = self._asking(variable, number)
        region = min((self.nodes[m].region for m in asking), default=node.region)
        if variable in self.params:
            value = self.params[variable]
        elif not asking:
            return
        elif region != node.region and is_inside(self.graph.regions, node.region, region):
            value = self._read(variable, node, region, ())
        else:  # the derivatives list it as an x already
            if Port(number) not in self.pinned:
                own = self.copy.ports[Port(number)]
                self.copy.instead[Port(number)] = self.reads.setdefault(self._key(variable, node), own)
            return
        self._add(variable, value, asking)
        self.copy.instead[Port(number)] = self._bring(value, node.region)

    def _key(self, variable: str, read: Node) -> tuple[str, int, tuple[Port, ...]]:
        """Reads with equal keys are one read. A pivot among the control edges adds nothing to the region."""
        waits = (self.copy.ports[port] for port in read.controls)
        return variable, self.copy.place(read.region), tuple(p for p in waits if not self.draft.is_pivot(p))

    def _read(self, variable: str, like: Node, region: int, controls: tuple[Port, ...]) -> Port:
        attrs = Attrs(**{name: value for name, value in like.attrs.items() if name != "device"})
        node = replace(
            like, name=in_scope(variable, self.graph.regions, region), attrs=attrs, controls=controls, region=region
        )
        key = self._key(variable, node)
        if key not in self.reads:
            self.copy.add(-2 - len(self.reads), node)
            self.reads[key] = Port(len(self.draft.nodes) - 1)
        return self.reads[key]

    def _bring(self, port: Port, to: int) -> Port:
        """A value as it is seen in a region."""
        seen = self.brought.setdefault(port, {self.draft.home(port): port})
        return self.draft.bring(seen, self.copy.place(to), self.draft.nodes[port.node].short_name)

    # -- derivatives ---------------------------------------------------------------------------------------

    def _write_derivative(self, number: int, node: Node) -> None:
        """One node for all derivatives with the same ys and cotangents; cotangents of several reads are added."""
        copy, draft = self.copy, self.draft
        ys, cotangents, _ = parts_of(node)
        wanted: list[list[Port]] = []
        for index, (variable, named) in enumerate(_named(node)):
            xs = [copy.instead.get(x, copy.ports[x]) for x in named]
            xs += [self._bring(value, node.region) for value in self.added.get((number, variable), {})]
            if not xs:  # nothing on the path reads the variable
                xs = [self._read(variable, _reading(variable, node.types[index]), node.region, ())]
            wanted.append(list(dict.fromkeys(xs)))
        leading = tuple(map(copy.operand, (*ys, *cotangents)))
        at = self.derivatives.get((leading, node.region))
        if at is None or any(x.node > at for xs in wanted for x in xs):
            region, attrs = copy.place(node.region), Attrs(ys=len(ys), **device_attr(node))
            at = draft.add(Node(DERIVATIVE, leading, (), node.name, region, attrs, (), node.span))
            self.derivatives[leading, node.region] = at
        for index, ports in enumerate(wanted):
            total = self._output(at, ports[0])
            for x in ports[1:]:
                terms = total, self._output(at, x)
                name = in_scope("sum", self.graph.regions, node.region)
                types = (draft.type_of(terms[1]),)
                both = Node("add", terms, types, name, copy.place(node.region), span=node.span)
                total = Port(draft.add(placed_like(both, node)))
            copy.ports[Port(number, index)] = total

    def _output(self, derivative: int, x: Port) -> Port:
        """The output of a derivative for an x; added if it is not there yet."""
        node = self.draft.nodes[derivative]
        xs = parts_of(node)[2]
        if x not in xs:
            types = (*node.types, self.draft.type_of(x).erased())
            self.draft.nodes[derivative] = replace(node, inputs=(*node.inputs, x), types=types)
        return Port(derivative, xs.index(x) if x in xs else len(xs))


def _reading(variable: str, type_: Type) -> Node:
    shape = tuple(d if isinstance(d, int) else None for d in type_.shape)
    attrs = Attrs(variable=variable, dtype=type_.dtype.name, shape=shape)
    return Node("read", (), find("read").type([], attrs), variable, attrs=attrs)
