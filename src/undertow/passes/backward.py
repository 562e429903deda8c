"""Write the extended graph of an ask: the forward body, then the gradient row of every active node, in reverse.

The phase that undoes forward phase p of P comes as phase 2 P - 1 - p of the same activation: it finds the forward
values in the frame and computes nothing twice. Switch and Merge are each other's gradient, on the same predicate; the
side that nobody used gets an explicit zero, live under its pivot. A call and its gradient are one site: a `call`, then
a `resume`.

Where arguments are *collected* (see `entries`), the cotangents of each use go to the entry, in the branch where the use
is; and each phase gives an order token when it and all below it have collected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from undertow.errors import CaptureError, Fault, Span
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import EMPTY, Attrs, Const, FunctionGraph, Node, Operand, Phase, Port
from undertow.ir.implied import param_node, start_name, start_node
from undertow.ir.structure import ENTERS
from undertow.ir.walk import node_phases, phase_attr, phase_of
from undertow.ops.gradient import Applied, NoGradient, Rows, dense
from undertow.ops.op import CATALOGUE, evaluate, find
from undertow.ops.term import Term, fitted, total, zeros_like
from undertow.passes.activity import Ask, Slice, arguments, link_of
from undertow.passes.entries import Entries
from undertow.passes.pieces import added
from undertow.types import CTL, Type

_SMALL = 16  # elements of a constant that is computed while the graph is written


class Pen:
    """Appends nodes to a draft, in the region and phase at hand: what gradient rows write with."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.region = 0
        self.phase = 0
        self.span: Span | None = None
        self.device: str = ""

    def type_of(self, operand: Operand) -> Type:
        return self.draft.type_of(operand)

    def write(self, op: str, operands: Sequence[Operand], attrs: Attrs) -> tuple[Operand, ...]:
        types = find(op).type([self.type_of(x) for x in operands], attrs)
        if all(isinstance(x, Const) for x in operands) and all(_is_small(t) for t in types):
            try:
                with np.errstate(all="ignore"):
                    values = evaluate(op, [x.value for x in operands if isinstance(x, Const)], attrs)
                return tuple(Const(np.asarray(v, t.dtype.numpy)) for v, t in zip(values, types, strict=True))
            except Fault:
                pass  # it happens where the program gets there
        if self.device:
            attrs = Attrs(**attrs, device=self.device)
        number = self.add(op, operands, types, attrs)
        return tuple(Port(number, k) for k in range(len(types)))

    def add(
        self,
        op: str,
        inputs: Sequence[Operand],
        types: tuple[Type, ...],
        attrs: Attrs = EMPTY,
        controls: tuple[Port, ...] = (),
        name: str = "",
    ) -> int:
        """A node that waits for the phase at hand: nothing is computed before it is needed.

        Switch and Merge compute nothing, so they go by their operands alone (and a Merge takes no control edges).
        """
        full = f"{name or 'd.' + op}"
        if self.region:
            full = f"{self.draft.regions[self.region].name}/{full}"
        node = Node(op, tuple(inputs), types, full, self.region, attrs, controls, self.span)
        is_triggered = bool(controls) or any(isinstance(x, Port) for x in inputs)
        is_early = self.draft.waits_for(node) < self.phase and op not in ("switch", "merge")
        if is_early or not is_triggered:
            pivot = self.draft.make_pivot(self.region, self.phase)
            node = replace(node, controls=(*controls, pivot))
        return self.draft.add(node)

    def term(self, operand: Operand) -> Term:
        return Term(self, operand)

    def port(self, operand: Operand) -> Port:
        """A token of the region at hand: a constant needs one that says when it is there."""
        if isinstance(operand, Port):
            return operand
        return Port(self.add("identity", (operand,), (operand.type,)))

    def zero(self, like: Port) -> Port:
        """A zero of the type of a value, live in the region at hand."""
        return self.port(zeros_like(self.term(like)).operand)

    def join(self, tokens: Sequence[Port]) -> Port:
        """One order token after all of these; the pivot where there are none."""
        if not tokens:
            return self.draft.make_pivot(self.region, self.phase)
        if len(tokens) == 1:
            return tokens[0]
        return Port(self.add("identity", tokens[:1], (CTL,), controls=tuple(tokens[1:]), name="d.done"))


def _is_small(type_: Type) -> bool:
    return type_.is_static and int(np.prod([n for n in type_.shape if isinstance(n, int)], dtype=np.int64)) <= _SMALL


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """What the writer of one extended graph is told."""

    ask: Ask
    graph: FunctionGraph
    name: str
    slice: Slice
    names: Mapping[Ask, str]  # of the extended graphs
    plain: Mapping[str, FunctionGraph]
    entries: Entries | None  # None: nothing is hoisted


def write_backward(order: Order) -> FunctionGraph:
    """The extended graph."""
    return _Backward(order).make()


class _Backward:
    """One extended graph in the making."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self.graph = graph = order.graph
        self.visits = order.ask.visits
        self.draft = Draft(graph.kind, order.name)
        self.copy = Copy(graph, self.draft)
        self.pen = Pen(self.draft)
        self.phases = node_phases(graph)
        self.found: dict[Port, Term] = {}  # cotangents so far, of ports of the plain graph
        self.origins: dict[Port, int] = {}  # ports of the plain graph -> the hoisted value that they are
        self.tokens: dict[int, list[Port]] = {}  # of each region: what says that something was collected there
        self.hoisted = {} if order.entries is None else order.entries.values[order.ask]

    def make(self) -> FunctionGraph:
        phases = self.write_forward()
        for phase in reversed(range(self.visits)):
            phases.append(self.write_phase(phase))
        made = self.draft.freeze(self.graph, phases, self.graph.carried)
        made = replace(made, name=self.order.name)
        if self.order.entries is not None:
            made = replace(made, group=self.order.entries.group, hoisted=len(self.order.entries.params))
        return made

    # -- forwards ------------------------------------------------------------------------------------------

    def write_forward(self) -> list[Phase]:
        graph, copy = self.graph, self.copy
        start = graph.regions[0].starts[0].node
        copy.add(start, graph.nodes[start])
        kept = [index for index in range(len(graph.params)) if index not in self.hoisted]
        for new, index in enumerate(kept):
            param = graph.params[index]
            copy.add(param, replace(graph.nodes[param], attrs=Attrs(index=new)))
        first = [copy.ports[Port(graph.params[index])].node for index in kept]
        if self.order.entries is not None:
            for param_of_root in self.order.entries.params:
                first.append(self.draft.add(replace(param_of_root, attrs=Attrs(index=len(first)))))
            for index, position in self.hoisted.items():
                own, given = Port(graph.params[index]), self.pen.term(Port(first[len(kept) + position]))
                self.at(0, graph.nodes[own.node])
                copy.ports[own] = self.pen.port(fitted(given, graph.type_of(own)).operand)
                self.origins[own] = position
        done = {start, *graph.params}
        for number, node in enumerate(graph.nodes):
            if number in done or self.phases[number] >= self.visits:
                continue
            if node.op == "switch" and node.inputs[1] in self.origins:
                position = self.origins[node.inputs[1]]  # type: ignore[index]
                self.origins[Port(number, 0)] = self.origins[Port(number, 1)] = position
            elif node.op in ENTERS and number in self.order.slice.asks and not is_checkpoint(node):
                node = self.extended_call(node, self.order.slice.asks[number])
            copy.add(number, node, phase=self.phases[number])
        phases = [Phase(tuple(first), tuple(copy.ports[port] for port in graph.results))]
        for visit in graph.phases[1 : self.visits]:
            params = tuple(copy.ports[Port(param)].node for param in visit.params)
            phases.append(Phase(params, tuple(copy.ports[port] for port in visit.results)))
        return phases

    def extended_call(self, node: Node, ask: Ask) -> Node:
        """A call, or map, of the extended graph: without what that reads from the entry."""
        entries = self.order.entries
        gone = {} if entries is None else entries.values[ask]
        inputs = tuple(x for index, x in enumerate(node.inputs) if index not in gone)
        attrs = {name: value for name, value in node.attrs.items() if name != "checkpoint"}
        attrs[ENTERS[node.op]] = self.order.names[ask]
        return replace(node, inputs=inputs, attrs=Attrs(**attrs))

    # -- backwards -----------------------------------------------------------------------------------------

    def write_phase(self, phase: int) -> Phase:
        """Undo what the nodes of a forward phase did."""
        graph, draft, pen = self.graph, self.draft, self.pen
        number = 2 * self.visits - 1 - phase
        draft.add(start_node(number, start_name(number), graph.span))
        pen.phase = number
        params: list[int] = []
        for rank, index in enumerate(self.order.ask.given[phase]):
            result = graph.phases[phase].results[index]
            name = "d." + graph.nodes[result.node].name.rsplit("/", 1)[-1]
            node = param_node(number, rank, name, graph.type_of(result), graph.nodes[result.node].span)
            params.append(draft.add(node))
            self.at(0, graph.nodes[result.node])
            self.give(result, pen.term(Port(params[-1])))
        for at in reversed(range(len(graph.nodes))):
            if self.phases[at] == phase:
                self.undo(at, graph.nodes[at])
        results: list[Port] = []
        for index in self.order.ask.wanted[phase]:
            if phase == 0 and index in self.hoisted:
                continue
            param = Port(graph.phases[phase].params[index])
            self.at(0, graph.nodes[param.node])
            cotangent = self.found.get(param)
            type_ = graph.type_of(param)
            results.append(
                pen.zero(self.copy.ports[param]) if cotangent is None else pen.port(fitted(cotangent, type_).operand)
            )
        if self.order.entries is not None and self.order.entries.collects:
            results.append(self.all_tokens())
        return Phase(tuple(params), tuple(results))

    def at(self, region: int, node: Node) -> None:
        """Write on behalf of a node."""
        self.pen.region, self.pen.span = region, node.span
        device = node.attrs.get("device", "")
        self.pen.device = device if isinstance(device, str) else ""

    def give(self, port: Operand, cotangent: Term | Rows) -> None:
        """A contribution to the cotangent of a value; written where the value is used."""
        if not isinstance(port, Port) or port not in self.order.slice.active:
            return
        if port in self.origins:
            self.collect(self.origins[port], cotangent, self.copy.ports[port])
            return
        part = dense(cotangent, self.pen.term(self.copy.ports[port]))
        self.found[port] = added(self.draft, self.found[port], part) if port in self.found else part

    def collect(self, position: int, cotangent: Term | Rows, like: Port) -> None:
        entries, pen = self.order.entries, self.pen
        assert entries is not None
        if position not in entries.collects:
            return
        attrs = Attrs(index=position)
        if isinstance(cotangent, Rows):
            inputs = (pen.port(cotangent.indices.operand), pen.port(cotangent.rows.operand))
            token = pen.add("collect_rows", inputs, (CTL,), attrs, name="d.collect_rows")
        else:
            value = fitted(cotangent, self.draft.type_of(like)).operand
            token = pen.add("collect", (pen.port(value),), (CTL,), attrs, name="d.collect")
        self.tokens.setdefault(pen.region, []).append(Port(token))

    def all_tokens(self) -> Port:
        """The order token that says that all of this phase, in all branches, has been collected."""
        pen = self.pen
        pen.span, pen.device = self.graph.span, ""
        for then in reversed(range(1, len(self.draft.regions), 2)):
            if then not in self.tokens and then + 1 not in self.tokens:
                continue
            sides: list[Port] = []
            for region in (then, then + 1):
                pen.region = region
                sides.append(pen.join(self.tokens.pop(region, [])))
            parent = self.draft.regions[then].parent
            assert parent is not None
            pen.region = parent
            token = pen.add("merge", sides, (CTL,), name="d.done")
            self.tokens.setdefault(parent, []).append(Port(token))
        pen.region = 0
        return pen.join(self.tokens.pop(0, []))

    def undo(self, number: int, node: Node) -> None:
        if node.op in ENTERS or node.op == "resume":
            call = link_of(node) if node.op == "resume" else number
            if call in self.order.slice.asks:
                self.at(self.copy.place(node.region), node)
                self.undo_visit(number, node, call, self.order.slice.asks[call])
            return
        cotangents = tuple(self.found.pop(Port(number, k), None) for k in range(len(node.types)))
        if node.op in ("start", "param"):
            for k, cotangent in enumerate(cotangents):
                if cotangent is not None:
                    self.found[Port(number, k)] = cotangent  # it is what is asked for
            return
        if all(cotangent is None for cotangent in cotangents):
            return
        self.at(self.copy.place(node.region), node)
        if node.op == "switch":
            self.undo_switch(number, node, cotangents)
        elif node.op == "merge":
            self.undo_merge(node, cotangents[0])
        else:
            self.undo_primitive(number, node, cotangents)

    def undo_switch(self, number: int, node: Node, cotangents: tuple[Term | None, ...]) -> None:
        """Its gradient is a Merge."""
        value = node.inputs[1]
        if value not in self.order.slice.active:
            return
        region, type_ = self.pen.region, node.types[0]
        sides: list[Port] = []
        for index, cotangent in enumerate(cotangents):
            inner = self.copy.ports[Port(number, index)]
            self.pen.region = self.draft.home(inner)
            if cotangent is None:
                sides.append(self.pen.zero(inner))
            else:
                sides.append(self.pen.port(fitted(cotangent, type_).operand))
        self.pen.region = region
        self.give(value, self.pen.term(Port(self.pen.add("merge", sides, (type_,)))))

    def undo_merge(self, node: Node, cotangent: Term | None) -> None:
        """Its gradient is a Switch, on the predicate of the branch that it ends."""
        assert cotangent is not None
        first = node.inputs[0]
        assert isinstance(first, Port)
        region = self.draft.home(self.copy.ports[first])
        pred = self.draft.regions[region].pred
        assert pred is not None
        operand = cotangent.operand
        type_ = self.pen.type_of(operand)
        switch = self.pen.add("switch", (pred, operand), (type_, type_))
        for index, side in enumerate(node.inputs):
            assert isinstance(side, Port)
            self.pen.region = self.draft.home(self.copy.ports[side])
            self.give(side, self.pen.term(Port(switch, index)))

    def undo_primitive(self, number: int, node: Node, cotangents: tuple[Term | None, ...]) -> None:
        pen, active = self.pen, self.order.slice.active
        wanted = tuple(x in active for x in node.inputs)
        if not any(wanted):
            return
        row = CATALOGUE[node.op].grad
        if row is None or isinstance(row, NoGradient):
            raise no_row(node, row)
        attrs = Attrs(**{name: value for name, value in node.attrs.items() if name != "device"})
        x = tuple(pen.term(self.copy.operand(operand)) for operand in node.inputs)
        y = tuple(pen.term(self.copy.ports[Port(number, k)]) for k in range(len(node.types)))
        parts = row(Applied(node.op, x, y, attrs, wanted), cotangents)
        for operand, part in zip(node.inputs, parts, strict=True):
            if part is not None:
                self.give(operand, part)

    def undo_visit(self, number: int, node: Node, call: int, ask: Ask) -> None:
        """Go back into what a call, map or resume visited."""
        pen, phase = self.pen, phase_of(node)
        plain = self.order.plain[ask.graph]
        entries = self.order.entries
        first = self.graph.nodes[call]
        back = 2 * ask.visits - 1 - phase
        cotangents = [self.found.pop(Port(number, k), None) for k in range(len(node.types))]
        is_map = first.op == "map"
        inputs: list[Operand] = []
        for index in ask.given[phase]:
            cotangent = cotangents[index]
            if cotangent is None:
                cotangent = pen.term(pen.zero(self.copy.ports[Port(number, index)]))
            # What the callee gives may be of a narrower type than what the call says.
            type_ = plain.type_of(plain.phases[phase].results[index])
            lanes = node.types[index].shape[:1] if is_map else ()
            inputs.append(fitted(cotangent, type_.with_shape((*lanes, *type_.shape))).operand)
        link = self.call_again(first, ask, inputs) if is_checkpoint(first) else self.copy.ports[Port(call, 0)]
        gone = entries.values[ask] if entries is not None and phase == 0 else {}
        wanted = [index for index in ask.wanted[phase] if index not in gone]
        lanes = pen.type_of(self.copy.operand(first.inputs[0])).shape[:1] if is_map else ()
        types = []
        for index in wanted:
            type_ = plain.nodes[plain.phases[phase].params[index]].types[0]
            types.append(type_.with_shape((*lanes, *type_.shape)))
        if entries is not None and entries.collects:
            types.append(CTL)
        name = f"d.{first.name.rsplit('/', 1)[-1]}"
        resume = pen.add("resume", (link, *inputs), tuple(types), Attrs(**phase_attr(back)), name=name)
        for at, index in enumerate(wanted):
            found = pen.term(Port(resume, at))
            if is_map and phase == 0 and index >= plain.carried:
                found = total(found, (0,))  # every lane had it
            self.give(arguments(node)[index], found)
        if entries is not None and entries.collects:
            self.tokens.setdefault(pen.region, []).append(Port(resume, len(wanted)))

    def call_again(self, node: Node, ask: Ask, cotangents: Sequence[Operand]) -> Port:
        """A call whose forward values were not kept, made again: not before its cotangents are there.

        Otherwise all such calls of a run would be made at once, and keep what they compute at once.
        """
        made = self.extended_call(node, ask)
        inputs = tuple(map(self.copy.operand, made.inputs))
        name = f"d.{node.name.rsplit('/', 1)[-1]}.again"
        after = tuple(dict.fromkeys(x for x in cotangents if isinstance(x, Port)))
        return Port(self.pen.add("call", inputs, node.types, made.attrs, after, name))


def is_checkpoint(node: Node) -> bool:
    """Is it a call whose forward values are to be computed again, not kept?"""
    return bool(node.attrs.get("checkpoint", False))


def no_row(node: Node, row: NoGradient | None) -> CaptureError:
    reason = row.reason if row is not None else ""
    return CaptureError(
        f"`{node.op}` has no gradient{': ' + reason if reason else ''}",
        node.span,
        hint="ut.stop_gradient(x) takes x out of the derivative; or compute it with operators that have one",
    )
