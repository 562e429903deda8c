"""Queries on a graph: where a port's tokens live, which phase a node waits for.

Every walk is a loop over a list; nothing here recurses, whatever the depth of the program.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from undertow.ir.budget import check, paced
from undertow.ir.graph import EMPTY, Attr, FunctionGraph, Graph, Library, Node, Operand, Port, StaticGraph
from undertow.ir.structure import BACK, ENTERS, INWARD, READS, SOURCES, STARTS
from undertow.types import CTL

_BATCH = 1024  # items between looks at the clock


def is_inward(node: Node, index: int) -> bool:
    """Does this output of a static node go into another frame? (Output 1 of a start token orders the way back.)"""
    return node.op in INWARD or (node.op in STARTS and index == 0)


def is_parameter(graph: Graph, node: Node) -> bool:
    """Is it a merge of what sites send? Such a one takes one token in each frame; others join the sides of a branch."""
    if node.op != "merge":
        return False
    first = next((port for port in node.inputs if port.__class__ is Port), None)  # of as many as there are sites
    return first is not None and is_inward(graph.nodes[first.node], first.index)


def ports_of(operands: Iterable[Operand]) -> list[Port]:
    """The operands that are ports."""
    return [operand for operand in operands if operand.__class__ is Port]


def awaited(node: Node) -> list[Port]:
    """The ports that a node waits for in its own frame: not values that come back, or down from an enclosing one."""
    operands = node.controls if node.op in BACK or node.op in READS else (*node.inputs, *node.controls)
    return [operand for operand in operands if operand.__class__ is Port]


def port_regions(graph: Graph) -> Callable[[Port], int]:
    """A function from a port to the region that its tokens are live in.

    That is the region of its node, except that an output of Switch belongs to the branch of that side.
    """
    branches = graph.branches()

    def region_of(port: Port) -> int:
        node = graph.nodes[port.node]
        if node.op != "switch":
            return node.region
        pred = node.inputs[0]
        assert isinstance(pred, Port)
        return branches[pred, node.region][port.index]

    return region_of


def origin(graph: Graph, operand: Operand) -> Operand:
    """What a value was before Switches led it into branches."""
    while isinstance(operand, Port) and graph.nodes[operand.node].op == "switch":
        operand = graph.nodes[operand.node].inputs[1]
    return operand


def is_order_token(graph: Graph, operand: Operand) -> bool:
    """Is it a token that says what has happened, and no pivot of a region?"""
    if not isinstance(operand, Port) or graph.type_of(operand) != CTL:
        return False
    before = origin(graph, operand)
    return isinstance(before, Port) and graph.nodes[before.node].op != "start"


def body_of(graph: Graph) -> list[int]:
    """The body of each region, whose frames it lives in: branches share the frames of their body."""
    owner: list[int] = []
    for number, region in enumerate(graph.regions):
        # A branch comes after its parent, so one pass in order is enough.
        owner.append(owner[region.parent] if region.kind == "branch" and region.parent is not None else number)
    return owner


Name = TypeVar("Name", bound=Hashable)
Item = TypeVar("Item")


def grouped(pairs: Iterable[tuple[Name, Item]]) -> dict[Name, list[Item]]:
    """Values grouped by key, in the order of their first appearance.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    groups: dict[Name, list[Item]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def components(names: Iterable[Name], edges: Callable[[Name], Iterable[Name]]) -> list[list[Name]]:
    """Strongly connected components; each comes after all that it leads to (Tarjan, no recursion).

    >>> components("abcd", {"a": "b", "b": "ca", "c": "", "d": "d"}.__getitem__)
    [['c'], ['a', 'b'], ['d']]
    """
    indices: dict[Name, int] = {}
    low: dict[Name, int] = {}
    positions: dict[Name, int] = {}  # on the stack
    stack: list[Name] = []
    is_on_stack: set[Name] = set()
    groups: list[list[Name]] = []
    for root in names:
        if root in indices:
            continue
        path: list[tuple[Name, Iterator[Name]]] = []

        def enter(name: Name, path: list[tuple[Name, Iterator[Name]]] = path) -> None:
            check()
            indices[name] = low[name] = len(indices)
            positions[name] = len(stack)
            stack.append(name)
            is_on_stack.add(name)
            path.append((name, iter(edges(name))))

        enter(root)
        while path:
            name, rest = path[-1]
            for other in rest:
                if other not in indices:
                    enter(other)
                    break
                if other in is_on_stack:
                    low[name] = min(low[name], indices[other])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[name])
                if low[name] == indices[name]:
                    at = positions[name]
                    groups.append(stack[at:])
                    is_on_stack.difference_update(stack[at:])
                    del stack[at:]
    return groups


def in_order(before: Mapping[Name, Iterable[Name]]) -> list[Name]:
    """Names in topological order, otherwise as given; those in or after a cycle are left out.

    >>> in_order({"d": "ba", "a": "", "b": "a", "loop": ["loop"]})
    ['a', 'b', 'd']
    """
    after = grouped((other, name) for name, others in before.items() for other in others)
    missing = {name: len([*others]) for name, others in before.items()}
    ready = [name for name in reversed([*before]) if not missing[name]]
    order: list[Name] = []
    while ready:
        if not len(order) % _BATCH:
            check()
        order.append(ready.pop())
        for name in after.get(order[-1], ()):
            missing[name] -= 1
            if not missing[name]:
                ready.append(name)
    return order


def reachable(names: Iterable[Name], edges: Callable[[Name], Iterable[Name]]) -> dict[Name, None]:
    """These names and all that edges lead to, in the order of discovery.

    >>> list(reachable("a", {"a": "bc", "b": "", "c": "da", "d": ""}.__getitem__))
    ['a', 'b', 'c', 'd']
    """
    reached = dict.fromkeys(names)
    todo = list(reached)
    for name in todo:  # it grows meanwhile
        check()
        for other in edges(name):
            if other not in reached:
                reached[other] = None
                todo.append(other)
    return reached


def fixpoint(names: Iterable[Name], update: Callable[[Name], bool], users: Callable[[Name], Iterable[Name]]) -> None:
    """Update each name, then again the users of those that changed, until nothing changes (a worklist).

    >>> least = {"a": 3, "b": 1, "c": 2}
    >>> edges = {"a": "b", "b": "c", "c": ""}  # who has at least as much
    >>> def update(name: str) -> bool:
    ...     before = least[name]
    ...     least[name] = max([before, *(least[other] for other in edges if name in edges[other])])
    ...     return least[name] > before
    >>> fixpoint("cba", update, edges.__getitem__)
    >>> least
    {'a': 3, 'b': 3, 'c': 3}
    """
    waiting = OrderedDict.fromkeys(names)
    while waiting:
        check()
        name, _ = waiting.popitem(last=False)
        if update(name):
            waiting.update(dict.fromkeys(users(name)))


# --------------------------------------------------------------------------------------------------------------
# Libraries


def link_of(node: Node) -> int:
    """The call or map that a resume or gradient continues."""
    port = node.inputs[0]
    assert isinstance(port, Port)
    return port.node


def arguments(node: Node) -> tuple[Operand, ...]:
    """The arguments of a call, loop, map or resume."""
    return node.inputs[1:] if node.op == "resume" else node.inputs


def target_of(graph: FunctionGraph, node: Node) -> str:
    """The name of the graph that a call, loop, map or tangent enters, or that a resume or gradient continues."""
    entering = node if node.op in ENTERS else graph.nodes[link_of(node)]
    return entering.attrs.text(ENTERS[entering.op])


def entered_by(graph: FunctionGraph) -> list[str]:
    """The names of the graphs that a graph enters by calls, loops and maps, with repetitions."""
    return [node.attrs.text(ENTERS[node.op]) for node in graph.nodes if node.op in ENTERS]


def callees_first(library: Library) -> list[list[str]]:
    """The strongly connected components of the call graph, callees before callers."""
    return components(library.functions, lambda name: entered_by(library.functions[name]))


def bodies_last(graphs: Mapping[str, FunctionGraph]) -> list[str]:
    """The names of graphs, bodies of loops and maps after the graphs that enter them."""
    bodies = {
        name: [node.attrs.text("body") for node in graph.nodes if node.op in ("loop", "map")]
        for name, graph in graphs.items()
    }
    outer = [name for name, graph in graphs.items() if graph.kind in ("main", "function")]
    return [*reachable(outer, bodies.__getitem__)]


# --------------------------------------------------------------------------------------------------------------
# Phases


def phase_of(node: Node) -> int:
    """The phase that a start, param, resume or sited operator belongs to; phase 0 has no attribute."""
    return node.attrs.integer("phase") if "phase" in node.attrs else 0


def phase_attr(phase: int) -> dict[str, int]:
    """The inverse of `phase_of`: keywords for Attrs."""
    return {"phase": phase} if phase else {}


def device_attr(node: Node) -> dict[str, Attr]:
    """Where a node is placed, if something says so: keywords for Attrs."""
    return {"device": node.attrs["device"]} if "device" in node.attrs else {}


def placed_like(node: Node, like: Node) -> Node:
    """The node, and if it has no device of its own, where `like` is. (Switch and Merge compute nothing.)"""
    if "device" in node.attrs or "device" not in like.attrs or node.op in ("switch", "merge"):
        return node
    return replace(node, attrs=node.attrs | device_attr(like))


def node_phases(graph: Graph) -> list[int]:
    """For each node, the last phase of its own frame that it waits for.

    Every site visits phases in order, so a frame that is visited in its first v phases fires exactly the nodes with a
    phase below v. Values from other frames do not count: a Return waits for what its start token waits for.
    """
    is_static = isinstance(graph, StaticGraph)
    if not any("phase" in node.attrs for node in graph.nodes if node.attrs is not EMPTY):
        return [0] * len(graph.nodes)
    phases = [phase_of(node) if node.op in SOURCES else 0 for node in graph.nodes]
    if not is_static and not any(phases):
        return phases
    users: list[list[int]] = [[] for _ in graph.nodes]  # in the same frame
    for number, node in enumerate(paced(graph.nodes)):
        # `awaited`, inlined: it would be called for every node.
        for port in node.controls if node.op in BACK or node.op in READS else (*node.inputs, *node.controls):
            if port.__class__ is not Port:
                continue
            maker = graph.nodes[port.node]
            if is_static and is_inward(maker, port.index):
                # A parameter of a lane is not a node, so one node may take several, of several phases.
                phases[number] = max(phases[number], phase_of(maker))
            else:
                users[port.node].append(number)
    # The latest first, so that every node is reached once.
    for source in sorted((n for n, phase in enumerate(phases) if phase), key=lambda n: -phases[n]):
        todo = [source]
        while todo:
            at = todo.pop()
            for user in users[at]:
                if phases[user] < phases[at]:
                    phases[user] = phases[at]
                    todo.append(user)
    return phases
