"""Loop-invariant code motion: moves operators on hoisted values outward, to run once per entry or once per run.

Only an operator that can neither fault nor act moves, and only where no input can make the number of firings grow. So
it must be certain to fire below each entry: it stands in the body, not in a branch, of the one graph through which its
group is entered. (For shared values: of a graph that main is certain to run.) And the moved results must replace at
least as many values that nothing else then needs: where nothing recurs, handing over and reading one more value costs
more than the operator.

Devices: an operator keeps its own. One without gets that of the call before which it is put, or is where main is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from undertow.errors import UndertowError
from undertow.ir.draft import Copy
from undertow.ir.graph import Attrs, Const, FunctionGraph, Library, Node, Operand, Port
from undertow.ir.implied import param_node
from undertow.ir.structure import ENTERS
from undertow.ir.walk import callees_first, components, node_phases, placed_like, reachable, target_of
from undertow.ops.faults import may_fault
from undertow.ops.op import CATALOGUE, find
from undertow.types import Type

_Key = Hashable  # of a value: the index of what main shares, or the graph and number of a node


def move_operators(library: Library) -> tuple[Library, Counter[str]]:
    """The library with operators on hoisted values moved to the entries, and those on shared values to main."""
    count: Counter[str] = Counter()
    # Callees first: an operator moved next to an entry may stand in an outer recursion, and move on.
    for component in callees_first(library):
        group = library.functions[component[0]].group
        if group and any(_has_candidate(library.functions[name]) for name in component):
            library, moved = _move_to_entries(library, group)
            count["hoisted operator"] += moved
    library, moved = _move_to_main(library)
    count["shared operator"] += moved
    return library, +count


# --------------------------------------------------------------------------------------------------------------
# What can move


def _can_move(graph: FunctionGraph, node: Node, phase: int) -> bool:
    row = CATALOGUE.get(node.op)
    if row is None or row.effect or row.state or row.tagged or len(node.types) != 1 or node.region or phase:
        return False
    if not {graph.regions[0].starts[0]}.issuperset(node.controls):
        return False
    known = [operand.value if isinstance(operand, Const) else None for operand in node.inputs]
    return not may_fault(row, [graph.type_of(operand) for operand in node.inputs], node.attrs, known)


def _candidates(
    graph: FunctionGraph, keys: dict[Port, _Key], places: Collection[dict[_Key, Type]]
) -> Iterator[tuple[int, list[_Key]]]:
    """The operators all of whose operands are constants or have keys, with those keys. Their results get keys, too.

    `places`: for each place that the operators would move to, the types of the keyed values there.
    """
    phases = node_phases(graph) if keys else []
    for number, node in enumerate(graph.nodes) if keys else ():
        ports = [operand for operand in node.inputs if isinstance(operand, Port)]
        if not ports or not all(port in keys for port in ports) or not _can_move(graph, node, phases[number]):
            continue
        moved_types = [
            _still_fits(node, [t[keys[o]] if isinstance(o, Port) else o.type for o in node.inputs]) for t in places
        ]
        if None not in moved_types:
            keys[Port(number)] = graph.name, number
            for types, type_ in zip(places, moved_types, strict=True):
                assert type_ is not None
                types[graph.name, number] = type_
            yield number, [keys[port] for port in ports]


def _uses(graph: FunctionGraph) -> Counter[Port]:
    """How often each port is used, by nodes, branches and results."""
    uses: Counter[Port] = Counter(port for phase in graph.phases for port in phase.results)
    uses.update(region.pred for region in graph.regions if region.kind == "branch" and region.side and region.pred)
    for node in graph.nodes:
        uses.update(operand for operand in node.inputs if isinstance(operand, Port))
        uses.update(node.controls)
    return uses


def _still_fits(node: Node, operands: Sequence[Type]) -> Type | None:
    """The type of a node's output on these operands, if the users of its present type accept it."""
    try:
        type_ = find(node.op).type(operands, node.attrs)[0]
    except UndertowError:
        return None
    return type_ if node.types[0].accepts(type_) else None


def _worth_moving(candidates: dict[_Key, list[_Key]], uses: Mapping[_Key, int]) -> set[_Key]:
    """The candidates (result -> operands) whose move does not increase the number of values to be read.

    Operators that share operands move together if that pays, else one by one.
    """
    users: dict[_Key, list[_Key]] = {}
    for result, operands in candidates.items():
        for operand in operands:
            users.setdefault(operand, []).append(result)
    together = components(candidates, lambda key: (*candidates.get(key, ()), *users.get(key, ())))
    order = {result: number for number, result in enumerate(candidates)}
    moved: set[_Key] = set()
    for part in together:
        results = sorted((key for key in part if key in order), key=order.__getitem__)
        left = Counter({key: uses[key] for result in results for key in (result, *candidates[result])})
        before = sum(key not in candidates for key in left)
        for result in results:
            left.subtract(candidates[result])
        if sum(count > 0 for count in left.values()) <= before:
            moved.update(results)
            continue
        left = Counter({key: uses[key] for key in left})
        known = {key for key in left if key not in candidates}
        for result in results:
            operands = candidates[result]
            if known.issuperset(operands) and any(left[key] == operands.count(key) for key in operands):
                left.subtract(operands)
                known.add(result)
                moved.add(result)
    return moved


def _as_moved(node: Node, name: str, inputs: tuple[Operand, ...], type_: Type, region: int) -> Node:
    return replace(node, name=name, inputs=inputs, types=(type_,), region=region, controls=())


# --------------------------------------------------------------------------------------------------------------
# To the entries


@dataclass(frozen=True, slots=True, eq=False)
class _Move:
    """The nodes that move out of a graph."""

    target: FunctionGraph
    nodes: list[int]  # in order
    hoisted: list[int]  # those of the nodes whose results are still needed inside
    types: dict[tuple[str, int], dict[_Key, Type]]  # of values at each entry, by calling graph and call


def _entries(library: Library, group: str) -> Iterator[tuple[FunctionGraph, int, str]]:
    for graph in library.functions.values():
        if graph.group == group:
            continue
        for number, node in enumerate(graph.nodes):
            if node.op == "call" and library.functions[node.attrs.text("callee")].group == group:
                yield graph, number, node.attrs.text("callee")


def _has_candidate(graph: FunctionGraph) -> bool:
    """Is there an operator on hoisted values alone? A quick look, since most groups have none."""
    hoisted = {Port(param) for param in graph.params[len(graph.params) - graph.hoisted :]}
    for node in graph.nodes:
        ports = {operand for operand in node.inputs if isinstance(operand, Port)}
        if ports and ports <= hoisted and node.region == 0 and node.op in CATALOGUE:
            return True
    return False


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
    total: dict[_Key, int] = {}  # uses of hoisted values
    types: dict[tuple[str, int], dict[_Key, Type]] = {(graph.name, number): {} for graph, number, _ in entries}
    keys: dict[Port, _Key] = {}
    for end in range(target.hoisted, 0, -1):
        key = keys[Port(target.params[-end])] = target.name, target.params[-end]
        total[key] = sum(uses[graph.name][Port(graph.params[-end])] for graph in group)
        for graph, number, _ in entries:
            types[graph.name, number][key] = graph.type_of(graph.nodes[number].inputs[len(target.params) - end])
    candidates: dict[_Key, list[_Key]] = {}
    for number, operands in _candidates(target, keys, types.values()):
        total[target.name, number] = uses[target.name][Port(number)]
        candidates[target.name, number] = operands
    chosen = _worth_moving(candidates, total)
    moved = [number for number in range(len(target.nodes)) if (target.name, number) in chosen]
    inside = Counter(key for result in chosen for key in candidates[result])
    hoisted = [k for k in moved if total[target.name, k] > inside[target.name, k]]
    return _Move(target, moved, hoisted, types)


def _rebuild(graph: FunctionGraph, move: _Move, calls: set[int]) -> FunctionGraph:
    """A graph of the group with the new hoisted parameters, or a caller with the moved nodes before its calls."""
    copy = Copy(graph)
    is_inside, is_target = graph.group == move.target.group, graph is move.target
    start = graph.regions[0].starts[0].node
    for number in (start, *graph.params):
        copy.add(number)
    made: list[int] = []
    if is_inside:
        for index, number in enumerate(move.hoisted, len(graph.params)):
            node = move.target.nodes[number]
            made.append(copy.draft.add(param_node(0, index, node.name, node.types[0], node.span)))
            if is_target:
                copy.ports[Port(number)] = Port(made[-1])
    done = {start, *graph.params, *(move.nodes if is_target else ())}
    for number in range(len(graph.nodes)):
        if number in calls:
            _put_before(copy, number, move)
        elif number not in done:
            copy.add(number)
    phases = [copy.phase(number) for number in range(len(graph.phases))]
    phases[0] = replace(phases[0], params=(*phases[0].params, *made))
    return replace(copy.freeze(phases), hoisted=graph.hoisted + len(made))


def _put_before(copy: Copy, number: int, move: _Move) -> None:
    """Write the moved nodes, then the call that enters the group and hands over their results."""
    call, draft = copy.graph.nodes[number], copy.draft
    region = copy.place(call.region)
    values: dict[Port, Operand] = {
        Port(param): copy.operand(operand) for param, operand in zip(move.target.params, call.inputs, strict=True)
    }
    types = move.types[copy.graph.name, number]
    for at in move.nodes:
        node = move.target.nodes[at]
        inputs = tuple(values[o] if isinstance(o, Port) else o for o in node.inputs)
        made = _as_moved(node, f"{call.name}.{node.name}", inputs, types[move.target.name, at], region)
        made = placed_like(made, call)
        values[Port(at)] = Port(draft.add(draft.triggered(made, copy.phases[number], waits=True)))
    new = copy.add(number)
    results = tuple(values[Port(at)] for at in move.hoisted)
    draft.nodes[new] = replace(draft.nodes[new], inputs=(*draft.nodes[new].inputs, *results))


# --------------------------------------------------------------------------------------------------------------
# To main


def _certain(library: Library) -> list[FunctionGraph]:
    """The graphs that every run enters: from the body, not a branch, of main or of another certain graph."""

    def entered(name: str) -> Iterator[str]:
        graph = library.functions[name]
        phases = node_phases(graph)
        for number, node in enumerate(graph.nodes):
            if node.op in ENTERS and not node.region and not phases[number]:
                target = target_of(graph, node)
                if node.op != "map" or _has_lanes(graph, node, library.functions[target].carried):
                    yield target

    return [library.functions[name] for name in reachable([library.main], entered) if name != library.main]


def _has_lanes(graph: FunctionGraph, node: Node, carried: int) -> bool:
    sizes = [graph.type_of(operand).shape[0] for operand in node.inputs[:carried]]
    return any(isinstance(dim, int) and dim > 0 for dim in sizes)


def _move_to_main(library: Library) -> tuple[Library, int]:
    main = library.functions[library.main]
    uses = {name: _uses(graph) for name, graph in library.functions.items()}
    total: Counter[_Key] = Counter()
    for name, graph in library.functions.items():
        for number, node in enumerate(graph.nodes):
            if node.op == "shared":
                total[node.attrs.integer("index")] += uses[name][Port(number)]
    types: dict[_Key, Type] = {index: main.type_of(port) for index, port in enumerate(main.shared)}
    candidates: dict[_Key, list[_Key]] = {}
    nodes: dict[_Key, tuple[FunctionGraph, int, list[_Key | Const]]] = {}  # with operands
    for graph in _certain(library) if main.shared else ():
        keys: dict[Port, _Key] = {
            Port(k): node.attrs.integer("index") for k, node in enumerate(graph.nodes) if node.op == "shared"
        }
        for number, operands in _candidates(graph, keys, [types]):
            total[graph.name, number] = uses[graph.name][Port(number)]
            candidates[graph.name, number] = operands
            inputs = graph.nodes[number].inputs
            nodes[graph.name, number] = graph, number, [keys[x] if isinstance(x, Port) else x for x in inputs]
    chosen = _worth_moving(candidates, total)
    if not chosen:
        return library, 0
    copy = Copy(main)
    for number in range(len(main.nodes)):
        copy.add(number)
    shared = [copy.ports[port] for port in main.shared]
    values: dict[_Key, Port] = dict(enumerate(shared))
    became: dict[str, dict[int, int]] = {}  # by graph: node -> index of the shared value that replaces it
    for key, (graph, number, works_on) in nodes.items():
        if key in chosen:
            ports = tuple(x if isinstance(x, Const) else values[x] for x in works_on)
            made = _as_moved(graph.nodes[number], f"{graph.name}.{graph.nodes[number].name}", ports, types[key], 0)
            values[key] = Port(copy.draft.add(made))
            became.setdefault(graph.name, {})[number] = len(shared)
            shared.append(values[key])
    functions = {
        name: _read_instead(graph, became[name]) if name in became else graph
        for name, graph in library.functions.items()
    }
    functions[main.name] = copy.freeze(shared=shared)
    return Library(functions, library.main), len(chosen)


def _read_instead(graph: FunctionGraph, became: dict[int, int]) -> FunctionGraph:
    """The graph with some nodes replaced by reads of shared values; `dead` removes their unused operands."""
    start = graph.regions[0].starts[0]
    nodes = list(graph.nodes)
    for number, index in became.items():
        nodes[number] = replace(nodes[number], op="shared", inputs=(), attrs=Attrs(index=index), controls=(start,))
    return replace(graph, nodes=tuple(nodes))
