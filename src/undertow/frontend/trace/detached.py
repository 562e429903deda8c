"""Takes the reads of variables in finished graphs out of program order, or replaces them by arguments.

The block of a SubGraph runs once, before anyone knows what the program around it will do. So its reads are written in
program order, each with an order token that goes through all calls. When its graphs join a program, that is known:

- Where a gradient is taken with respect to a variable, its value is an argument of the gradient. Each graph that reads
  the variable, or enters one that does, takes the value as a further parameter.
- Reads of a variable that nothing assigns need no order. Tokens that nothing else needs go, so calls do not wait for
  each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from undertow.ir.draft import Copy
from undertow.ir.graph import Attrs, FunctionGraph, Node, Operand, Phase, Port
from undertow.ir.implied import param_node
from undertow.ir.structure import ENTERS
from undertow.ir.walk import entered_by, fixpoint, is_order_token, ports_of
from undertow.ops.op import find
from undertow.types import CTL, Type

_READS = ("read", "read_rows")
_ROUTES = ("start", "param", "switch", "merge")  # they lead order tokens on, and act on nothing


def detached(
    graphs: Mapping[str, FunctionGraph], handed: Collection[str], free: Collection[str]
) -> dict[str, FunctionGraph]:
    """The graphs, with the variables `handed` as parameters, in that order, and reads of those in `free` at any time.

    A graph that has an order token for nothing but these reads has none any more.
    """
    plan = _Plan(graphs, handed, free)
    return {name: _Detached(graph, plan).make() for name, graph in graphs.items()}


class _Plan:
    """For each graph: whether it needs its order token, and which variables it takes as parameters."""

    def __init__(self, graphs: Mapping[str, FunctionGraph], handed: Collection[str], free: Collection[str]) -> None:
        self.handed, self.free = handed, free
        self.acts = {name: any(map(self._is_action, _ordered(graph))) for name, graph in graphs.items()}
        self.takes: dict[str, dict[str, Type]] = {name: {} for name in graphs}
        callers: dict[str, list[str]] = {name: [] for name in graphs}
        for name, graph in graphs.items():
            for entered in entered_by(graph):
                callers[entered].append(name)
            for node in graph.nodes:
                if node.op in _READS and node.attrs.text("variable") in handed:
                    self.takes[name][node.attrs.text("variable")] = find("read").type([], node.attrs)[0]

        def update(name: str) -> bool:
            below = entered_by(graphs[name])
            acts = self.acts[name] or any(self.acts[entered] for entered in below)
            held = {key: type for entered in below for key, type in self.takes[entered].items()} | self.takes[name]
            takes = {key: held[key] for key in handed if key in held}
            is_news = (acts, takes) != (self.acts[name], self.takes[name])
            self.acts[name], self.takes[name] = acts, takes
            return is_news

        fixpoint(graphs, update, callers.__getitem__)

    def is_detached(self, node: Node) -> bool:
        return node.op in _READS and any(node.attrs["variable"] in names for names in (self.handed, self.free))

    def _is_action(self, node: Node) -> bool:
        return not (node.op in _ROUTES or node.op in ENTERS or self.is_detached(node))


def _ordered(graph: FunctionGraph) -> Iterator[Node]:
    """The nodes that give an order token, or wait for one."""
    for number, node in enumerate(graph.nodes):
        given = (Port(number, index) for index in range(len(node.types)))
        if any(is_order_token(graph, port) for port in (*given, *node.inputs, *node.controls)):
            yield node


class _Detached:
    """One graph."""

    def __init__(self, graph: FunctionGraph, plan: _Plan) -> None:
        self.graph = graph
        self.plan = plan
        self.copy = Copy(graph)
        self.seen: dict[str, dict[int, Port]] = {}  # variable -> the regions of the draft in which its value is

    def make(self) -> FunctionGraph:
        graph, copy = self.graph, self.copy
        has_order = self.plan.acts[graph.name]
        kept = [param for param in graph.params if has_order or graph.nodes[param].types[0] != CTL]
        for number, node in enumerate(graph.nodes):
            if node.op == "param":
                if number in kept:
                    copy.add(number, replace(node, attrs=Attrs(**{**node.attrs, "index": kept.index(number)})))
            elif not has_order and node.op in ("switch", "merge") and is_order_token(graph, Port(number)):
                continue
            elif self.plan.is_detached(node):
                self.read(number, node, has_order)
            elif node.op in ENTERS:
                self.enter(number, node, has_order)
            else:
                copy.add(number)
            if number == len(graph.params):  # the first nodes are the start and the parameters
                self.add_params(len(kept))
        params = [copy.port(Port(param)).node for param in kept]
        params += [seen[0].node for seen in self.seen.values()]
        results = [copy.port(port) for port in graph.results if has_order or not is_order_token(graph, port)]
        lost = [param for param in graph.params[: graph.carried] if param not in kept]
        return copy.draft.freeze(graph, [Phase(tuple(params), tuple(results))], graph.carried - len(lost))

    def add_params(self, count: int) -> None:
        for index, (variable, type_) in enumerate(self.plan.takes[self.graph.name].items(), count):
            self.seen[variable] = {0: Port(self.copy.draft.add(param_node(0, index, variable, type_, None)))}

    def value(self, variable: str, node: Node) -> Port:
        """The value of a variable, where a node needs it."""
        return self.copy.draft.bring(self.seen[variable], self.copy.place(node.region), variable)

    def tokens(self, node: Node) -> list[Port]:
        return [port for port in ports_of((*node.inputs, *node.controls)) if is_order_token(self.graph, port)]

    def without_order(self, node: Node) -> Node:
        inputs = tuple(operand for operand in node.inputs if not is_order_token(self.graph, operand))
        controls = tuple(port for port in node.controls if not is_order_token(self.graph, port))
        return replace(node, inputs=inputs, controls=controls)

    def pass_by(self, number: int, node: Node, has_order: bool) -> None:
        """What waited for this node waits for what it has waited for itself."""
        tokens = self.tokens(node)
        if has_order and tokens:
            self.copy.ports[Port(number, node.types.index(CTL))] = self.copy.ports[tokens[0]]

    def read(self, number: int, node: Node, has_order: bool) -> None:
        copy, variable = self.copy, node.attrs.text("variable")
        if variable in self.plan.free:
            copy.add(number, self.without_order(node))
        elif node.op == "read":
            copy.ports[Port(number)] = self.value(variable, node)
        else:
            inputs: tuple[Operand, ...] = (self.value(variable, node), *map(copy.operand, node.inputs))
            rows = replace(node, op="take", types=node.types[:1], attrs=Attrs(axis=0))
            copy.add_moved(number, self.without_order(replace(rows, inputs=())), inputs)
        self.pass_by(number, node, has_order)

    def enter(self, number: int, node: Node, has_order: bool) -> None:
        copy, callee = self.copy, node.attrs.text(ENTERS[node.op])
        outputs = list(range(len(node.types)))
        moved = node
        if not self.plan.acts[callee]:
            outputs = [index for index in outputs if node.types[index] != CTL]
            moved = replace(self.without_order(node), types=tuple(node.types[index] for index in outputs))
        inputs = list(map(copy.operand, moved.inputs))
        # The tangents of a `tangent` come after the arguments of its call.
        end = len(inputs) - len(node.attrs.integers("given") if node.op == "tangent" else ())
        inputs[end:end] = [self.value(variable, node) for variable in self.plan.takes[callee]]
        copy.add_moved(number, moved, tuple(inputs), outputs)
        if len(outputs) < len(node.types):
            self.pass_by(number, node, has_order)
