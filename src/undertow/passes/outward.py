"""Move operators outward, with the hoisted values that they work on: computed once an entry, or once a run.

Only an operator that cannot fault or act moves, and only where firings cannot become more, whatever the input. So it
must be sure to fire below each entry: it stands in the body, not in a branch, of the one graph by which its group is
entered. (For shared values: of a graph that main is sure to run.) And its result must take the place of a value that
then nobody else needs: one more value to hand over and read costs more than the operator, where nothing recurs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from undertow.errors import UndertowError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.implied import param_node
from undertow.ir.walk import ENTERS, callees_first, node_phases
from undertow.ops.faults import may_fault
from undertow.ops.op import CATALOGUE, find
from undertow.types import Type


def move_outward(library: Library) -> tuple[Library, Counter[str]]:
    """The library with operators on hoisted values moved to the entries, and those on shared values to main."""
    count: Counter[str] = Counter()
    # Callees first: what moves next to an entry may stand in a recursion itself, and move on.
    for component in callees_first(library):
        group = library.functions[component[0]].group
        if group:
            library, moved = _move_to_entries(library, group)
            count["hoisted operator"] += moved
    library, moved = _move_to_main(library)
    count["shared operator"] += moved
    return library, +count


# --------------------------------------------------------------------------------------------------------------
# What can move


def _can_move(graph: FunctionGraph, node: Node, phase: int) -> bool:
    row = CATALOGUE.get(node.op)
    if row is None or row.effect or row.state is not None or len(node.types) != 1 or node.region or phase:
        return False
    if not {graph.regions[0].starts[0]}.issuperset(node.controls):
        return False
    known = [operand.value if isinstance(operand, Const) else None for operand in node.inputs]
    return not may_fault(row, [graph.type_of(operand) for operand in node.inputs], node.attrs, known)


def _uses(graph: FunctionGraph) -> Counter[Port]:
    """How often each port is used, by nodes, branches and results."""
    uses: Counter[Port] = Counter(port for phase in graph.phases for port in phase.results)
    uses.update(region.pred for region in graph.regions if region.kind == "branch" and region.side and region.pred)
    for node in graph.nodes:
        uses.update(operand for operand in node.inputs if isinstance(operand, Port))
        uses.update(node.controls)
    return uses


def _still_fits(node: Node, operands: Sequence[Type]) -> Type | None:
    """The type of a node's output where it would stand, if the users of the one that it has accept that."""
    try:
        type_ = find(node.op).type(operands, node.attrs)[0]
    except UndertowError:
        return None
    return type_ if node.types[0].accepts(type_) else None


def _as_moved(node: Node, name: str, inputs: tuple[Operand, ...], type_: Type, region: int) -> Node:
    return replace(node, name=name, inputs=inputs, types=(type_,), region=region, controls=())


# --------------------------------------------------------------------------------------------------------------
# To the entries


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """What moves out of a graph, in order, and which of it is then hoisted."""

    target: FunctionGraph
    nodes: list[int]
    given: list[int]  # those of the nodes whose results are still needed inside
    types: dict[tuple[str, int], dict[Port, Type]]  # by calling graph and call: the types that these have there


def _entries(library: Library, group: str) -> Iterator[tuple[FunctionGraph, int, str]]:
    for graph in library.functions.values():
        if graph.group == group:
            continue
        for number, node in enumerate(graph.nodes):
            if node.op == "call" and library.functions[node.attrs.text("callee")].group == group:
                yield graph, number, node.attrs.text("callee")


def _move_to_entries(library: Library, group: str) -> tuple[Library, int]:
    entries = list(_entries(library, group))
    targets = {target for _, _, target in entries}
    if len(targets) != 1:
        return library, 0
    move = _choose(library, library.functions[targets.pop()], entries)
    if not move.nodes:
        return library, 0
    calls: dict[str, list[int]] = {}
    for graph, number, _ in entries:
        calls.setdefault(graph.name, []).append(number)
    functions = dict(library.functions)
    for name, graph in library.functions.items():
        if graph.group == group or name in calls:
            functions[name] = _rebuild(graph, move, set(calls.get(name, ())))
    return Library(functions, library.main), len(move.nodes)


def _choose(library: Library, target: FunctionGraph, entries: list[tuple[FunctionGraph, int, str]]) -> _Move:
    group = [graph for graph in library.functions.values() if graph.group == target.group]
    uses = {graph.name: _uses(graph) for graph in group}
    left: dict[Port, int] = {}  # uses of what is hoisted
    types: dict[tuple[str, int], dict[Port, Type]] = {(graph.name, number): {} for graph, number, _ in entries}
    for end in range(target.hoisted, 0, -1):
        port = Port(target.params[-end])
        left[port] = sum(uses[graph.name][Port(graph.params[-end])] for graph in group)
        for graph, number, _ in entries:
            types[graph.name, number][port] = graph.type_of(graph.nodes[number].inputs[len(target.params) - end])
    moved: list[int] = []
    phases = node_phases(target)
    for number, node in enumerate(target.nodes):
        ports = [operand for operand in node.inputs if isinstance(operand, Port)]
        if not ports or not all(port in left for port in ports) or not _can_move(target, node, phases[number]):
            continue
        after = {port: left[port] - ports.count(port) for port in ports}
        if 0 not in after.values():
            continue
        found = {
            key: _still_fits(node, [known[o] if isinstance(o, Port) else o.type for o in node.inputs])
            for key, known in types.items()
        }
        if None in found.values():
            continue
        left.update(after)
        left[Port(number)] = uses[target.name][Port(number)]
        for key, type_ in found.items():
            assert type_ is not None
            types[key][Port(number)] = type_
        moved.append(number)
    return _Move(target, moved, [number for number in moved if left[Port(number)]], types)


def _rebuild(graph: FunctionGraph, move: _Move, calls: set[int]) -> FunctionGraph:
    """A graph of the group with new hoisted parameters, or one that enters it with what moves before its calls."""
    copy = Copy(graph, Draft(graph.kind, graph.regions[0].name))
    phases_of = node_phases(graph) if len(graph.phases) > 1 else [0] * len(graph.nodes)
    is_inside, is_target = graph.group == move.target.group, graph is move.target
    start = graph.regions[0].starts[0].node
    params = list(graph.params)
    for number in (start, *graph.params):
        copy.add(number, graph.nodes[number])
    made: list[int] = []
    if is_inside:
        for index, number in enumerate(move.given, len(params)):
            node = move.target.nodes[number]
            made.append(copy.draft.add(param_node(0, index, node.name, node.types[0], node.span)))
            if is_target:
                copy.ports[Port(number)] = Port(made[-1])
    done = {start, *params, *(move.nodes if is_target else ())}
    for number, node in enumerate(graph.nodes):
        if number in done:
            continue
        if number in calls:
            _put_before(copy, number, move, phases_of[number])
        else:
            copy.add(number, node, phase=phases_of[number])
    phases: list[Phase] = []
    for phase, visit in enumerate(graph.phases):
        numbers = [copy.ports[Port(param)].node for param in visit.params]
        results = tuple(copy.ports[port] for port in visit.results)
        phases.append(Phase((*numbers, *([] if phase else made)), results))
    result = copy.draft.freeze(graph, phases, graph.carried, (copy.ports[port] for port in graph.shared))
    return replace(result, hoisted=graph.hoisted + len(made))


def _put_before(copy: Copy, number: int, move: _Move, phase: int) -> None:
    """What moves, where a call enters the group; then the call, which hands over the results."""
    call, draft = copy.graph.nodes[number], copy.draft
    region = copy.place(call.region)
    values: dict[Port, Operand] = {
        Port(param): copy.operand(operand) for param, operand in zip(move.target.params, call.inputs, strict=True)
    }
    types = move.types[copy.graph.name, number]
    for at in move.nodes:
        node = move.target.nodes[at]
        inputs = tuple(values[o] if isinstance(o, Port) else o for o in node.inputs)
        made = _as_moved(node, f"{call.name}.{node.name}", inputs, types[Port(at)], region)
        if draft.waits_for(made) < phase or not any(isinstance(operand, Port) for operand in inputs):
            made = replace(made, controls=(draft.make_pivot(region, phase),))
        values[Port(at)] = Port(draft.add(made))
    copy.add(number, call, phase=phase)
    new = copy.ports[Port(number)].node if call.types else len(draft.nodes) - 1
    given = tuple(values[Port(at)] for at in move.given)
    draft.nodes[new] = replace(draft.nodes[new], inputs=(*draft.nodes[new].inputs, *given))


# --------------------------------------------------------------------------------------------------------------
# To main


def _certain(library: Library) -> Iterator[FunctionGraph]:
    """The graphs that every run runs: those that main, or another such graph, enters in its body."""
    seen, todo = {library.main}, [library.main]
    while todo:
        graph = library.functions[todo.pop()]
        if graph.name != library.main:
            yield graph
        phases = node_phases(graph)
        for number, node in enumerate(graph.nodes):
            if node.op not in ENTERS or node.region or phases[number]:
                continue
            name = node.attrs.text(ENTERS[node.op])
            if name not in seen and (node.op != "map" or _has_lanes(graph, node, library.functions[name].carried)):
                seen.add(name)
                todo.append(name)


def _has_lanes(graph: FunctionGraph, node: Node, carried: int) -> bool:
    sizes = [graph.type_of(operand).shape[0] for operand in node.inputs[:carried]]
    return any(isinstance(dim, int) and dim > 0 for dim in sizes)


def _move_to_main(library: Library) -> tuple[Library, int]:
    main = library.functions[library.main]
    copy = Copy(main, Draft(main.kind, main.regions[0].name))
    for number, node in enumerate(main.nodes):
        copy.add(number, node, phase=0)
    draft = copy.draft
    shared = [copy.ports[port] for port in main.shared]
    uses = {name: _uses(graph) for name, graph in library.functions.items()}
    left: Counter[int] = Counter()
    for name, graph in library.functions.items():
        for number, node in enumerate(graph.nodes):
            if node.op == "shared":
                left[node.attrs.integer("index")] += uses[name][Port(number)]
    functions = dict(library.functions)
    moved = 0
    for graph in _certain(library):
        reads = {Port(k): n.attrs.integer("index") for k, n in enumerate(graph.nodes) if n.op == "shared"}
        phases = node_phases(graph) if reads else []
        became: dict[int, int] = {}  # node -> number of the shared value that it is now
        for number, node in enumerate(graph.nodes) if reads else ():
            ports = [operand for operand in node.inputs if isinstance(operand, Port)]
            if not ports or not all(port in reads for port in ports) or not _can_move(graph, node, phases[number]):
                continue
            after = Counter(left)
            after.subtract(reads[port] for port in ports)
            if all(after[reads[port]] for port in ports):
                continue
            inputs = tuple(shared[reads[o]] if isinstance(o, Port) else o for o in node.inputs)
            type_ = _still_fits(node, [draft.type_of(operand) for operand in inputs])
            if type_ is None:
                continue
            left = after
            index = len(shared)
            shared.append(Port(draft.add(_as_moved(node, f"{graph.name}.{node.name}", inputs, type_, 0))))
            left[index] = uses[graph.name][Port(number)]
            reads[Port(number)] = became[number] = index
            moved += 1
        if became:
            functions[graph.name] = _read_instead(graph, became)
    if not moved:
        return library, 0
    phases_of_main = [
        Phase(tuple(copy.ports[Port(p)].node for p in phase.params), tuple(copy.ports[r] for r in phase.results))
        for phase in main.phases
    ]
    functions[main.name] = draft.freeze(main, phases_of_main, main.carried, shared)
    return Library(functions, library.main), moved


def _read_instead(graph: FunctionGraph, became: dict[int, int]) -> FunctionGraph:
    """The graph with some nodes reading what main has computed; what nobody reads any more, `dead` removes."""
    start = graph.regions[0].starts[0]
    nodes = list(graph.nodes)
    for number, index in became.items():
        nodes[number] = replace(nodes[number], op="shared", inputs=(), attrs=Attrs(index=index), controls=(start,))
    return replace(graph, nodes=tuple(nodes))
