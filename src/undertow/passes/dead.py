"""Dead-code elimination: removes unused nodes, branches, arguments, results, loop variables and functions.

One fixpoint over the library marks what is live, from the results of main and the operators that act on the world. An
argument that recursive calls only use to compute itself is never marked. What is live is renumbered.

Devices: what stays is where it was.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace

from undertow.ir.budget import paced
from undertow.ir.draft import Copy
from undertow.ir.graph import Attrs, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.sparse import gradient_arguments, sparse_attr, sparse_of
from undertow.ir.structure import COLLECTED, COLLECTS, ENTERING
from undertow.ir.walk import arguments, entered_by, link_of, phase_of, reachable, target_of
from undertow.ops.effects import acts


def remove_dead(library: Library, effects: bool = True) -> tuple[Library, Counter[str]]:
    """The library without dead code, and counts of what was removed. `effects=False`: unused effects are dead, too."""
    live = _Liveness(library, effects)
    live.run()
    count: Counter[str] = Counter()
    if all(_is_all_live(body) for body in live.bodies.values()):
        return library, count
    functions = {name: _rebuild(live, body, count) for name, body in live.bodies.items() if body.is_entered}
    count["dead function"] += len(library.functions) - len(functions)
    return Library(functions, library.main), +count


# --------------------------------------------------------------------------------------------------------------
# Liveness


@dataclass(slots=True, eq=False)
class _Body:
    """What is live in one graph."""

    graph: FunctionGraph
    ports: set[Port] = field(default_factory=set)
    nodes: set[int] = field(default_factory=set)
    regions: set[int] = field(default_factory=lambda: {0})
    params: set[tuple[int, int]] = field(default_factory=set)  # (phase, index)
    results: set[tuple[int, int]] = field(default_factory=set)
    visits: list[list[tuple[_Body, Node]]] = field(default_factory=list)  # of each phase: the nodes that begin it
    resumes: dict[tuple[int, int], int] = field(default_factory=dict)  # (call, phase) -> its resume
    is_entered: bool = False
    kept_params: list[list[int]] = field(default_factory=list)  # of each phase; set by `finish`
    kept_results: list[list[int]] = field(default_factory=list)
    shared: set[int] = field(default_factory=set)  # of main
    kept_shared: list[int] = field(default_factory=list)

    def given(self, caller: _Body, node: Node) -> int:
        """How many arguments a call, resume, loop or map hands over; hoisted ones only from outside the group."""
        count = len(self.graph.phases[phase_of(node)].params)
        return count if node.op == "resume" else count - caller.graph.omitted(self.graph)

    def finish(self) -> None:
        """List what is kept. Main keeps its parameters, since the caller feeds them; a loop keeps its predicate."""
        for phase, visit in enumerate(self.graph.phases):
            params, results = range(len(visit.params)), range(len(visit.results))
            if self.graph.kind == "loop":
                self.kept_results.append([k for k in results if k == 0 or (0, k - 1) in self.params])
            else:
                self.kept_results.append([k for k in results if (phase, k) in self.results])
            is_main = self.graph.kind == "main"
            self.kept_params.append([k for k in params if is_main or (phase, k) in self.params])
        self.kept_shared = sorted(self.shared)


class _Liveness:
    """The fixpoint. Each port, node, parameter and result is marked at most once."""

    def __init__(self, library: Library, effects: bool) -> None:
        self.bodies = {name: _Body(graph) for name, graph in library.functions.items()}
        for body in self.bodies.values():
            body.visits = [[] for _ in body.graph.phases]
            resumes = ((number, node) for number, node in enumerate(body.graph.nodes) if node.op == "resume")
            body.resumes = {(link_of(node), phase_of(node)): number for number, node in resumes}
        self.main = self.bodies[library.main]
        self.groups: dict[str, list[_Body]] = {}
        for body in self.bodies.values():
            self.groups.setdefault(body.graph.group, []).append(body)
        self.acting = self.find_acting() if effects else ()
        self.todo: deque[tuple[_Body, Port]] = deque()
        self.effects: list[tuple[_Body, int]] = []  # nodes that act: not visited at once, as calls may nest deep

    def target(self, body: _Body, node: Node) -> _Body:
        """The body that a call, resume, loop or map enters."""
        return self.bodies[target_of(body.graph, node)]

    def find_acting(self) -> Container[str]:
        """The graphs that act on the world, in themselves or in what they enter."""
        callers: dict[str, list[str]] = {name: [] for name in self.bodies}
        for name, body in self.bodies.items():
            for target in entered_by(body.graph):
                callers[target].append(name)
        acting = [name for name, body in self.bodies.items() if any(acts(node.op) for node in body.graph.nodes)]
        return reachable(acting, callers.__getitem__)

    def run(self) -> None:
        self.enter(self.main)
        for index in range(len(self.main.graph.results)):
            self.need_result(self.main, 0, index)
        self.drain()
        lacking = True
        while lacking:
            lacking = False
            for body in self.bodies.values():
                if body.is_entered and body.graph.kind == "map" and (needed := self.lacking_length(body)) is not None:
                    lacking = True
                    self.need_param(body, 0, needed)
            self.drain()
        for body in self.bodies.values():
            body.finish()

    def lacking_length(self, body: _Body) -> int | None:
        """A mapped argument that has to stay, though no lane reads it: it tells how many lanes there are.

        Where types state their number, one of those that do stays: the types of what lanes give rely on it.
        """
        kept = [index for index in range(body.graph.carried) if (0, index) in body.params]
        for caller, node in body.visits[0]:
            types = [caller.graph.type_of(operand) for operand in node.inputs[: body.graph.carried]]
            stated = [index for index, type_ in enumerate(types) if type_.shape[0] is not None]
            if stated and not set(stated).intersection(kept):
                return stated[0]
        return None if kept else 0

    def drain(self) -> None:
        for body, port in paced(self.waiting()):
            node = body.graph.nodes[port.node]
            self.need_node(body, port.node)
            if node.op == "param":
                self.need_param(body, phase_of(node), node.attrs.integer("index"))
            elif node.op in ("call", "resume", "map"):
                self.need_result(self.target(body, node), phase_of(node), port.index)
            elif node.op == "loop":
                self.need_param(self.target(body, node), 0, port.index)
            elif node.op == "gradient":
                self.need_param(self.target(body, node), 0, gradient_arguments(node)[port.index])
            elif node.op == "shared":
                index = node.attrs.integer("index")
                self.main.shared.add(index)
                self.need(self.main, self.main.graph.shared[index])

    def waiting(self) -> Iterator[tuple[_Body, Port]]:
        while self.todo or self.effects:
            while self.effects:
                self.need_node(*self.effects.pop())
            if self.todo:
                yield self.todo.popleft()

    def need(self, body: _Body, operand: Operand) -> None:
        if isinstance(operand, Port) and operand not in body.ports:
            body.ports.add(operand)
            self.todo.append((body, operand))

    def need_node(self, body: _Body, number: int) -> None:
        if number in body.nodes:
            return
        body.nodes.add(number)
        node = body.graph.nodes[number]
        self.need_region(body, node.region)
        for control in node.controls:
            self.need(body, control)
        if node.op in ENTERING:
            self.need_visit(body, node)
        elif node.op == "gradient":
            self.need_gradient(body, node)
        else:
            if node.op in COLLECTS:
                self.need_entry(body, node.attrs.integer("index"))
            elif node.op in COLLECTED:
                self.need_entry(self.target(body, node), node.attrs.integer("index"))
            for operand in node.inputs:
                self.need(body, operand)

    def need_all(self, body: _Body, node: Node) -> None:
        """Keep everything a tangent node uses: what its tangent copy will need is unknown until `extend` writes it."""
        target = self.target(body, node)
        for index in range(len(target.graph.params)):
            self.need_param(target, 0, index)
        for index in range(len(target.graph.results)):
            self.need_result(target, 0, index)
        for operand in node.inputs[len(target.graph.params) :]:
            self.need(body, operand)

    def need_region(self, body: _Body, region: int) -> None:
        while region not in body.regions:
            body.regions.add(region)
            branch = body.graph.regions[region]
            assert branch.pred is not None and branch.parent is not None
            self.need(body, branch.pred)
            region = branch.parent

    def need_visit(self, body: _Body, node: Node) -> None:
        target, phase = self.target(body, node), phase_of(node)
        target.visits[phase].append((body, node))
        self.enter(target)
        if node.op == "resume":
            self.need(body, node.inputs[0])
            before = body.resumes.get((link_of(node), phase - 1))
            if before is not None:  # phases are visited in order
                self.need_node(body, before)
        if node.op == "tangent":
            self.need_all(body, node)
        operands, count = arguments(node), target.given(body, node)
        for at, index in list(target.params):
            if at == phase and index < count:
                self.need(body, operands[index])

    def need_entry(self, body: _Body, index: int) -> None:
        """The hoisted parameter that a collect adds to the cotangent of."""
        self.need_param(body, 0, len(body.graph.params) - body.graph.hoisted + index)

    def need_gradient(self, body: _Body, node: Node) -> None:
        """A gradient needs its cotangents and the results that they belong to."""
        target = self.target(body, node)
        for operand in node.inputs:
            self.need(body, operand)
        for index in node.attrs.integers("given"):
            self.need_result(target, 0, index)
            self.need(body, Port(link_of(node), index))

    def enter(self, body: _Body) -> None:
        """A body that runs: its effects are live, and so is a loop's predicate."""
        if body.is_entered:
            return
        body.is_entered = True
        if body.graph.kind == "loop":
            self.need(body, body.graph.results[0])
        if body.graph.name in self.acting:
            for number, node in enumerate(body.graph.nodes):
                enters = node.op in ENTERING
                if target_of(body.graph, node) in self.acting if enters else acts(node.op):
                    self.effects.append((body, number))

    def need_param(self, body: _Body, phase: int, index: int) -> None:
        """A parameter, and for a loop variable its next value; a hoisted one in all graphs of its group."""
        end = len(body.graph.params) - index  # counted from the end, the same in the whole group
        if phase == 0 and end <= body.graph.hoisted:
            for other in self.groups[body.graph.group]:
                self.mark_param(other, 0, len(other.graph.params) - end)
        else:
            self.mark_param(body, phase, index)

    def mark_param(self, body: _Body, phase: int, index: int) -> None:
        if (phase, index) in body.params:
            return
        body.params.add((phase, index))
        self.need(body, Port(body.graph.phases[phase].params[index]))
        for caller, node in body.visits[phase]:
            if index < body.given(caller, node):
                self.need(caller, arguments(node)[index])
        if body.graph.kind == "loop" and index < body.graph.carried:
            self.need(body, body.graph.results[1 + index])

    def need_result(self, body: _Body, phase: int, index: int) -> None:
        if (phase, index) not in body.results:
            body.results.add((phase, index))
            self.need(body, body.graph.phases[phase].results[index])


# --------------------------------------------------------------------------------------------------------------
# Rebuilding


def _is_all_live(body: _Body) -> bool:
    """Is there nothing to remove? (A graph with branches is rebuilt in any case: that also numbers them anew.)"""
    graph = body.graph
    if not body.is_entered or len(graph.regions) > 1 or len(body.kept_shared) < len(graph.shared):
        return False
    for phase, params, results in zip(graph.phases, body.kept_params, body.kept_results, strict=True):
        if len(params) < len(phase.params) or len(results) < len(phase.results):
            return False
    ops = [node.op for number, node in enumerate(graph.nodes) if number not in body.nodes]
    return all(op in ("start", "param") for op in ops) and not any(node.op == "gradient" for node in graph.nodes)


def _rebuild(live: _Liveness, body: _Body, count: Counter[str]) -> FunctionGraph:
    graph = body.graph
    copy = Copy(graph)
    ranks = [{index: rank for rank, index in enumerate(kept)} for kept in body.kept_params]
    for number, node in enumerate(graph.nodes):
        outputs = list(range(len(node.types)))
        if node.op == "param":
            rank, index = ranks[phase_of(node)], node.attrs.integer("index")
            if index not in rank:
                is_variable = graph.kind == "loop" and index < graph.carried
                count["dead loop variable" if is_variable else "dead argument"] += 1
                continue
            node = replace(node, attrs=node.attrs | {"index": rank[index]})
        elif node.op != "start" and number not in body.nodes:
            count["dead node"] += 1
            continue
        elif node.op == "tangent":
            pass  # `need_all` kept every parameter and result of its callee
        elif node.op in ENTERING:
            target, phase, operands = live.target(body, node), phase_of(node), arguments(node)
            outputs = target.kept_results[phase]
            if node.op == "loop":
                outputs = [index - 1 for index in outputs[1:]]
            link = node.inputs[: len(node.inputs) - len(operands)]
            handed = target.given(body, node)
            inputs = (*link, *(operands[index] for index in target.kept_params[phase] if index < handed))
            node = replace(node, inputs=inputs, types=tuple(node.types[index] for index in outputs))
        elif node.op == "gradient":
            target, belongs = live.target(body, node), gradient_arguments(node)
            wanted = dict.fromkeys(belongs[k] for k in outputs if Port(number, k) in body.ports)
            outputs = [k for k in outputs if belongs[k] in wanted]  # the indices and rows of a sparse one stay together
            sparse = tuple(target.kept_params[0].index(k) for k in sparse_of(node) if k in wanted)
            attrs = node.attrs.without("sparse") | {
                "given": tuple(target.kept_results[0].index(k) for k in node.attrs.integers("given")),
                "wanted": tuple(target.kept_params[0].index(k) for k in wanted),
                **sparse_attr(sparse),
            }
            node = replace(node, types=tuple(node.types[k] for k in outputs), attrs=attrs)
        elif node.op in COLLECTS or node.op in COLLECTED:
            is_outside = node.op in COLLECTED
            entered = (live.target(body, node) if is_outside else body).graph
            first, kept = len(entered.params) - entered.hoisted, live.bodies[entered.name].kept_params[0]
            index = kept.index(first + node.attrs.integer("index")) - sum(k < first for k in kept)
            node = replace(node, attrs=node.attrs | {"index": index})
        elif node.op == "shared":
            node = replace(node, attrs=Attrs(index=live.main.kept_shared.index(node.attrs.integer("index"))))
        copy.add(number, node, outputs)
    phases: list[Phase] = []
    for phase, visit in enumerate(graph.phases):
        kept = body.kept_results[phase]
        if graph.kind != "loop":  # a loop's results are its variables, counted above
            count["dead result"] += len(visit.results) - len(kept)
        params = tuple(copy.ports[Port(visit.params[index])].node for index in body.kept_params[phase])
        phases.append(Phase(params, tuple(copy.ports[visit.results[index]] for index in kept)))
    count["dead branch"] += (len(graph.regions) - len(copy.draft.regions)) // 2
    count["dead shared value"] += len(graph.shared) - len(body.kept_shared)
    carried = sum(index < graph.carried for index in body.kept_params[0])
    hoisted = sum(index >= len(graph.params) - graph.hoisted for index in body.kept_params[0])
    shared = (copy.ports[graph.shared[index]] for index in body.kept_shared)
    made = copy.freeze(phases, shared)
    return replace(made, carried=carried, hoisted=hoisted, group=graph.group if hoisted else "")
