"""Write the extended graph of a request: the forward body, then the gradient row of every active node, in reverse.

The phase that undoes forward phase p of P comes as phase 2 P - 1 - p of the same activation: it finds the forward
values in the frame and computes nothing twice. Switch and Merge are each other's gradient, on the same predicate; the
unused side gets an explicit zero, live under its pivot. A call and its gradient are one site: a `call`, then a
`resume`.

Where arguments are *collected* (see `entries`), the cotangent of each use goes to the entry, from the branch where the
use is; and each phase gives an order token when it and all calls below it have collected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from undertow.ir.custom import custom_parts, rule_nodes
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, FunctionGraph, Node, Operand, Phase, Port
from undertow.ir.implied import param_node, start_name, start_node
from undertow.ir.structure import ENTERING, ENTERS, RULES, SOURCES
from undertow.ir.walk import arguments, link_of, phase_attr, phase_of
from undertow.ops.gradient import NoGradient, RowCotangent, dense
from undertow.ops.op import CATALOGUE
from undertow.ops.term import Term, fitted, total
from undertow.passes.derive.activity import Activity, Request
from undertow.passes.derive.entries import Entries, first_param
from undertow.passes.derive.pieces import added
from undertow.passes.derive.writer import DerivativeWriter, joined_up, no_row
from undertow.types import CTL, Shape, Type


@dataclass(eq=False)
class Reverse:
    """One extended graph in the making."""

    request: Request
    activity: Activity
    names: Mapping[Request, str]  # of all extended graphs
    plain: Mapping[str, FunctionGraph]
    entries: Entries

    def __post_init__(self) -> None:
        self.graph = self.plain[self.request.graph]
        self.draft = Draft(self.graph.kind, self.names[self.request])
        self.copy = Copy(self.graph, self.draft)
        self.writer = DerivativeWriter(self.draft)
        self.cotangents: dict[Port, Term] = {}  # sums so far, by port of the plain graph
        self.tokens: dict[int, list[Port]] = {}  # by region: order tokens of what has been collected there
        self.hoisted = self.entries.hoisted(self.request)
        self.late = rule_nodes(self.graph, "cotangent")  # of the user's own derivatives, for reverse mode

    def make(self) -> FunctionGraph:
        phases = self.write_forward()
        phases += [self.write_phase(phase) for phase in reversed(range(self.request.visits))]
        entries, name = self.entries, self.names[self.request]
        return replace(self.copy.freeze(phases), name=name, group=entries.group, hoisted=len(entries.params))

    # -- forwards ------------------------------------------------------------------------------------------

    def write_forward(self) -> list[Phase]:
        graph, copy = self.graph, self.copy
        start = graph.regions[0].starts[0].node
        copy.add(start)
        kept = [param for index, param in enumerate(graph.params) if index not in self.hoisted]
        first = [copy.add(param, replace(graph.nodes[param], attrs=Attrs(index=k))) for k, param in enumerate(kept)]
        for param_of_root in self.entries.params:
            first.append(self.draft.add(replace(param_of_root, attrs=Attrs(index=len(first)))))
        for index, position in self.hoisted.items():
            own, hoisted = Port(graph.params[index]), self.writer.term(Port(first[len(kept) + position]))
            self.writer.beside(graph.nodes[own.node], 0)
            copy.ports[own] = self.writer.port(fitted(hoisted, graph.type_of(own)).operand)
        done = {start, *graph.params, *self.late}
        for number, node in enumerate(graph.nodes):
            if number in done or copy.phases[number] >= self.request.visits:
                continue
            if node.op in ENTERS and number in self.activity.requests and not is_checkpoint(node):
                node = extended_call(node, self.activity.requests[number], self.names, self.entries)
            if node.op in RULES:
                self.take_rule(number, node)
            else:
                copy.add(number, node)
        phases = [copy.phase(number) for number in range(self.request.visits)]
        return [replace(phases[0], params=tuple(first)), *phases[1:]]

    def take_rule(self, number: int, node: Node) -> None:
        """The user's own derivative: the results of the rule replace those of the function."""
        if node.op == "custom":
            for k, ruled in enumerate(custom_parts(node).ruled):
                assert isinstance(ruled, Port)
                self.copy.ports[Port(number, k)] = self.copy.ports[ruled]
        else:
            (x,) = node.inputs
            self.writer.beside(node, self.copy.place(node.region))
            port = self.writer.port(self.copy.operand(x))
            self.copy.ports[Port(number)] = self.writer.zero(port) if node.op == "direction" else port

    # -- backwards -----------------------------------------------------------------------------------------

    def write_phase(self, phase: int) -> Phase:
        """Undo what the nodes of a forward phase did."""
        graph, draft, writer = self.graph, self.draft, self.writer
        number = 2 * self.request.visits - 1 - phase
        draft.add(start_node(number, start_name(number), graph.span))
        writer.phase = number
        params: list[int] = []
        for rank, index in enumerate(self.request.results[phase]):
            result = graph.phases[phase].results[index]
            name = "d." + graph.nodes[result.node].short_name
            node = param_node(number, rank, name, graph.type_of(result), graph.nodes[result.node].span)
            params.append(draft.add(node))
            self.writer.beside(graph.nodes[result.node], 0)
            self.give(result, writer.term(Port(params[-1])))
        for at in reversed(range(len(graph.nodes))):
            if self.copy.phases[at] == phase:
                self.undo(at, graph.nodes[at])
        results: list[Port] = []
        for index in self.request.params[phase]:
            if phase == 0 and index in self.hoisted:
                continue
            param = Port(graph.phases[phase].params[index])
            self.writer.beside(graph.nodes[param.node], 0)
            results.append(self.token(self.cotangents.get(param), self.copy.ports[param], graph.type_of(param)))
        if self.entries.collects:
            results.append(self.all_tokens())
        return Phase(tuple(params), tuple(results))

    def token(self, cotangent: Term | None, like: Port, type_: Type) -> Port:
        """A cotangent, or zero, of a given type, live in the current region."""
        return self.writer.zero(like) if cotangent is None else self.writer.port(fitted(cotangent, type_).operand)

    def give(self, port: Operand, cotangent: Term | RowCotangent) -> None:
        """Add a contribution to the cotangent of a value; it is written where the value is used."""
        if not isinstance(port, Port) or port not in self.activity.ports:
            return
        param = first_param(self.graph, port) if self.hoisted else None
        if param is not None and param in self.hoisted:
            self.collect(self.hoisted[param], cotangent, self.copy.ports[port])
            return
        part = dense(cotangent, self.writer.term(self.copy.ports[port]))
        self.cotangents[port] = added(self.draft, self.cotangents[port], part) if port in self.cotangents else part

    def collect(self, position: int, cotangent: Term | RowCotangent, like: Port) -> None:
        writer = self.writer
        if position not in self.entries.collects:
            return
        attrs = Attrs(index=position)
        if isinstance(cotangent, RowCotangent):
            inputs = (writer.port(cotangent.indices.operand), writer.port(cotangent.rows.operand))
            token = writer.add("collect_rows", inputs, (CTL,), attrs, name="d.collect_rows")
        else:
            value = fitted(cotangent, self.draft.type_of(like)).operand
            token = writer.add("collect", (writer.port(value),), (CTL,), attrs, name="d.collect")
        self.tokens.setdefault(writer.region, []).append(Port(token))

    def all_tokens(self) -> Port:
        """The order token after everything that this phase collects, in all branches."""
        writer = self.writer
        writer.span, writer.device = self.graph.span, None

        def merge(*sides: Port) -> Port:
            return Port(writer.add("merge", sides, (CTL,), name="d.done"))

        return joined_up(writer, self.tokens, writer.join, merge)

    def undo(self, number: int, node: Node) -> None:
        if node.op in ENTERING:
            call = link_of(node) if node.op == "resume" else number
            if call in self.activity.requests:
                self.writer.beside(node, self.copy.place(node.region))
                self.undo_visit(number, node, call, self.activity.requests[call])
            return
        cotangents = tuple(self.cotangents.pop(Port(number, k), None) for k in range(len(node.types)))
        if node.op in SOURCES:
            for k, cotangent in enumerate(cotangents):
                if cotangent is not None:
                    self.cotangents[Port(number, k)] = cotangent  # a result of the phase
            return
        if all(cotangent is None for cotangent in cotangents):
            return
        self.writer.beside(node, self.copy.place(node.region))
        if node.op == "switch":
            self.undo_switch(number, node, cotangents)
        elif node.op == "merge":
            self.undo_merge(node, cotangents[0])
        elif node.op == "custom":
            self.undo_custom(number, node, cotangents)
        elif node.op == "direction":
            assert cotangents[0] is not None
            self.give(node.inputs[0], cotangents[0])
        else:
            self.undo_primitive(number, node, cotangents)

    def undo_switch(self, number: int, node: Node, cotangents: tuple[Term | None, ...]) -> None:
        """Its gradient is a Merge."""
        value = node.inputs[1]
        if value not in self.activity.ports:
            return
        region, type_ = self.writer.region, node.types[0]
        sides: list[Port] = []
        for index, cotangent in enumerate(cotangents):
            inner = self.copy.ports[Port(number, index)]
            self.writer.region = self.draft.home(inner)
            sides.append(self.token(cotangent, inner, type_))
        self.writer.region = region
        self.give(value, self.writer.term(Port(self.writer.add("merge", sides, (type_,)))))

    def undo_merge(self, node: Node, cotangent: Term | None) -> None:
        """Its gradient is a Switch, on the predicate of the branch that it ends."""
        assert cotangent is not None
        first = node.inputs[0]
        assert isinstance(first, Port)
        region = self.draft.home(self.copy.ports[first])
        pred = self.draft.regions[region].pred
        assert pred is not None
        operand = cotangent.operand
        type_ = self.writer.type_of(operand)
        switch = self.writer.add("switch", (pred, operand), (type_, type_))
        for index, side in enumerate(node.inputs):
            assert isinstance(side, Port)
            self.writer.region = self.draft.home(self.copy.ports[side])
            self.give(side, self.writer.term(Port(switch, index)))

    def undo_custom(self, number: int, node: Node, cotangents: tuple[Term | None, ...]) -> None:
        """Call what the user wrote for reverse mode; a rule for forward mode is a call like any other."""
        parts = custom_parts(node)
        if not parts.is_reverse:
            slopes = iter(parts.slopes)
            for type_, cotangent in zip(node.types, cotangents, strict=True):
                slope = next(slopes) if type_.dtype.is_inexact else None
                if slope is not None and cotangent is not None:
                    self.give(slope, cotangent)
            return
        region = self.writer.region
        for at in sorted(self.late):
            rule = self.graph.nodes[at]
            self.writer.beside(rule, self.copy.place(rule.region))
            if rule.op == "cotangent":
                index = rule.attrs.integer("index")
                like = self.copy.ports[Port(number, index)]
                self.copy.ports[Port(at)] = self.token(cotangents[index], like, node.types[index])
            else:
                self.copy.add(at)
        self.writer.region = region
        for argument, slope in zip(parts.arguments, parts.slopes, strict=True):
            self.give(argument, self.writer.term(self.copy.operand(slope)))

    def undo_primitive(self, number: int, node: Node, cotangents: tuple[Term | None, ...]) -> None:
        wanted = tuple(x in self.activity.ports for x in node.inputs)
        if not any(wanted):
            return
        row = CATALOGUE[node.op].grad
        if isinstance(row, NoGradient):
            hint = "ut.stop_gradient(x) excludes x from the derivative; or use operators that have one"
            raise no_row("gradient", node, row, hint)
        parts = row(self.writer.applied(self.copy, number, wanted), cotangents)
        for operand, part in zip(node.inputs, parts, strict=True):
            if part is not None:
                self.give(operand, part)

    def undo_visit(self, number: int, node: Node, call: int, request: Request) -> None:
        """Go back into what a call, map or resume visited."""
        writer, phase = self.writer, phase_of(node)
        plain = self.plain[request.graph]
        first = self.graph.nodes[call]
        cotangents = [self.cotangents.pop(Port(number, k), None) for k in range(len(node.types))]
        is_map = first.op == "map"
        inputs: list[Operand] = []
        for index in request.results[phase]:
            cotangent = cotangents[index]
            if cotangent is None:
                cotangent = writer.term(writer.zero(self.copy.ports[Port(number, index)]))
            # A result of the callee may have a narrower type than the call's output.
            type_ = plain.type_of(plain.phases[phase].results[index])
            lanes = node.types[index].shape[:1] if is_map else ()
            inputs.append(fitted(cotangent, type_.with_shape((*lanes, *type_.shape))).operand)
        link = self.call_again(first, request, inputs) if is_checkpoint(first) else self.copy.ports[Port(call, 0)]
        lanes = writer.type_of(self.copy.operand(first.inputs[0])).shape[:1] if is_map else ()
        resume, wanted = write_resume(writer, request, phase, plain, self.entries, first, (link, *inputs), lanes)
        for at, index in enumerate(wanted):
            cotangent = writer.term(Port(resume, at))
            if is_map and phase == 0 and index >= plain.carried:
                cotangent = total(cotangent, (0,))  # an invariant: every lane used it
            self.give(arguments(node)[index], cotangent)
        if self.entries.collects:
            self.tokens.setdefault(writer.region, []).append(Port(resume, len(wanted)))

    def call_again(self, node: Node, request: Request, cotangents: Sequence[Operand]) -> Port:
        """Repeat a checkpointed call, whose forward values were not kept, once its cotangents are there.

        Without this wait a run would repeat all such calls at once, and hold all their values at once.
        """
        again = extended_call(node, request, self.names, self.entries)
        inputs = tuple(map(self.copy.operand, again.inputs))
        name = f"d.{node.name.rsplit('/', 1)[-1]}.again"
        after = tuple(dict.fromkeys(x for x in cotangents if isinstance(x, Port)))
        return Port(self.writer.add("call", inputs, node.types, again.attrs, after, name))


def extended_call(
    node: Node, request: Request, names: Mapping[Request, str], entries: Entries, is_entry: bool = False
) -> Node:
    """A call or map of the extended graph. Only one that makes an entry hands over the hoisted arguments."""
    hoisted = entries.hoisted(request)
    inputs = [x for index, x in enumerate(node.inputs) if index not in hoisted]
    inputs += [node.inputs[index] for index in entries.indices if is_entry]
    attrs = node.attrs.without("checkpoint") | {ENTERS[node.op]: names[request]}
    return replace(node, inputs=tuple(inputs), attrs=attrs)


def write_resume(
    writer: DerivativeWriter,
    request: Request,
    phase: int,
    plain: FunctionGraph,
    entries: Entries,
    call: Node,
    inputs: tuple[Operand, ...],
    lanes: Shape = (),
) -> tuple[int, list[int]]:
    """Resume a call, or the lanes of a map, to undo one phase. Also the arguments whose cotangents that gives."""
    hoisted = {} if phase else entries.hoisted(request)
    wanted = [index for index in request.params[phase] if index not in hoisted]
    params = plain.phases[phase].params
    types = [plain.nodes[params[index]].types[0] for index in wanted]
    types = [type_.with_shape((*lanes, *type_.shape)) for type_ in types] + [CTL] * bool(entries.collects)
    attrs = Attrs(**phase_attr(2 * request.visits - 1 - phase))
    return writer.add("resume", inputs, tuple(types), attrs, name=f"d.{call.name.rsplit('/', 1)[-1]}"), wanted


def is_checkpoint(node: Node) -> bool:
    """Is it a call whose forward values are recomputed, not kept?"""
    return bool(node.attrs.get("checkpoint", False))
