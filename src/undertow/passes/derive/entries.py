"""Values that are the same in all activations below a differentiated call are passed once, to that call.

The call is the *entry* of all extended graphs below it, which are one group. An argument that each of them hands on
unchanged, or does not need, loses its tag; its cotangent is the sum over all activations, collected at the entry
instead of being added up along the calls.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from undertow.ir.graph import FunctionGraph, Node, Operand, Port
from undertow.ir.walk import origin, phase_of
from undertow.passes.derive.activity import Activity, Request
from undertow.passes.lattice import VARIES, Varies, propagate
from undertow.types import Type, join


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
    sources: dict[tuple[Request, int], list[object]] = {(root, k): [k] for k in range(len(plain[root.graph].params))}
    for request, activity in activities.items():
        for call, target in activity.requests.items():
            for index in range(len(plain[target.graph].params)):
                is_mapped = index < plain[target.graph].carried
                operand = plain[request.graph].nodes[call].inputs[index]
                source = None if is_mapped else first_param(plain[request.graph], operand)
                sources.setdefault((target, index), []).append(VARIES if source is None else (request, source))
    known: dict[tuple[Request, int], int | Varies] = propagate(sources)
    handed: set[int] = {k for k in sparse if k in root.params[0]}
    handed |= {k for k in range(len(plain[root.graph].params)) if len(sources[root, k]) > 1}
    handed |= {k for (request, _), k in known.items() if request != root and not isinstance(k, Varies)}
    indices = tuple(k for k in sorted(handed) if known[root, k] == k)
    if not indices:
        return NO_ENTRIES
    place = {k: at for at, k in enumerate(indices)}
    values: dict[Request, dict[int, int]] = {request: {} for request in activities}
    for (request, index), k in known.items():
        if not isinstance(k, Varies) and k in place:
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


def first_param(graph: FunctionGraph, operand: Operand) -> int | None:
    """The index of the parameter of the first phase that a value is, in the body or in a branch; None: it is none."""
    found = origin(graph, operand)
    node = graph.nodes[found.node] if isinstance(found, Port) else None
    return node.attrs.integer("index") if node is not None and node.op == "param" and phase_of(node) == 0 else None
