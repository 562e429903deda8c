"""What stays the same in all activations below a differentiated call: it is given once, to that call.

The call is the *entry* of all extended graphs below it, which are one group. An argument that each of them hands on
unchanged, or does not need, loses its tag; its cotangent is the sum over all activations, collected at the entry
instead of being added up along the calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from undertow.ir.graph import FunctionGraph, Node, Operand, Port
from undertow.ir.walk import phase_of
from undertow.passes.derive.activity import Activity, Request
from undertow.types import Type, join

_CHANGES = -1


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """One group: what its entries are given."""

    group: str
    params: tuple[Node, ...]  # the hoisted parameters, as the root has them, of a type that suits all graphs
    indices: tuple[int, ...]  # of these, among the root's
    values: Mapping[Request, Mapping[int, int]]  # of each graph: parameter -> its place among the hoisted ones
    collects: frozenset[int]  # the places of those that want a cotangent

    def hoisted(self, request: Request) -> Mapping[int, int]:
        """The parameters of a graph that it reads from the entry, each with its place among what that is given."""
        return self.values.get(request, {})


NO_ENTRIES = Entries("", (), (), {}, frozenset())


def find_entries(
    root: Request,
    activities: Mapping[Request, Activity],
    plain: Mapping[str, FunctionGraph],
    group: str,
    sparse: Collection[int] = (),
) -> Entries:
    """What can be hoisted below a differentiated call; nothing where nothing is handed on at all.

    The arguments of it that are `sparse` are hoisted even if they are not handed on: rows come only from an entry.
    """
    known: dict[tuple[Request, int], int] = {(root, k): k for k in range(len(plain[root.graph].params))}
    origins = {request: _origins(plain[request.graph]) for request in activities}
    edges = [
        (request, target, index, plain[request.graph].nodes[call].inputs[index])
        for request, activity in activities.items()
        for call, target in activity.requests.items()
        for index in range(len(plain[target.graph].params))
    ]
    has_changed = True
    while has_changed:
        has_changed = False
        for request, target, index, operand in edges:
            is_mapped = index < plain[target.graph].carried
            source = None if is_mapped else origins[request].get(operand)
            value = _CHANGES if source is None else known.get((request, source))
            if value is None:
                continue
            before = known.get((target, index), value)
            after = value if before == value else _CHANGES
            if known.get((target, index)) != after:
                known[target, index] = after
                has_changed = True
    handed = {k for k in sparse if k in root.params[0]}
    handed |= {k for (request, index), k in known.items() if k != _CHANGES and (request, index) != (root, k)}
    handed |= {k for request, target, index, operand in edges if target == root and (k := known[root, index]) == index}
    indices = tuple(k for k in sorted(handed) if known[root, k] == k)
    if not indices:
        return NO_ENTRIES
    place = {k: at for at, k in enumerate(indices)}
    values: dict[Request, dict[int, int]] = {request: {} for request in activities}
    for (request, index), k in known.items():
        if k in place:
            values[request][index] = place[k]
    graph = plain[root.graph]
    params = [replace(graph.nodes[graph.params[k]], region=0) for k in indices]
    for request, hoisted in values.items():
        for index, at in hoisted.items():
            own = plain[request.graph]
            params[at] = replace(params[at], types=(_common(params[at], own.nodes[own.params[index]]),))
    collects = frozenset(place[k] for k in root.params[0] if k in place)
    return Entries(group, tuple(params), indices, values, collects)


def _common(one: Node, other: Node) -> Type:
    """The type of a value that is two parameters: a length that only one of them knows is known at run time."""
    found = join(one.types[0], other.types[0])
    assert found is not None
    return found


def _origins(graph: FunctionGraph) -> dict[Operand, int]:
    """The ports that are a parameter of the first phase, in the body or handed into a branch."""
    found: dict[Operand, int] = {}
    for number, node in enumerate(graph.nodes):
        if node.op == "param" and phase_of(node) == 0:
            found[Port(number)] = node.attrs.integer("index")
        elif node.op == "switch" and node.inputs[1] in found:
            found[Port(number, 0)] = found[Port(number, 1)] = found[node.inputs[1]]
    return found
