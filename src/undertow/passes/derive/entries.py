"""Values that are the same in all activations below a differentiated call are passed once, to that call.

The call is the *entry* of all extended graphs below it, which are one group. An argument that each of them either hands
on unchanged or does not need is hoisted to the entry; its cotangent is the sum over all activations, collected at the
entry instead of being added up along the calls.
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
    """What the entries of one group are given: the hoisted parameters."""

    group: str
    params: tuple[Node, ...]  # copies of the root's, with types that suit all graphs of the group
    indices: tuple[int, ...]  # of these, among the root's parameters
    values: Mapping[Request, Mapping[int, int]]  # of each graph: parameter -> its place among the hoisted ones
    collects: frozenset[int]  # the places of those that want a cotangent

    def hoisted(self, request: Request) -> Mapping[int, int]:
        """The parameters that a graph reads from the entry, each with its place among the hoisted ones."""
        return self.values.get(request, {})


NO_ENTRIES = Entries("", (), (), {}, frozenset())


def find_entries(
    root: Request,
    activities: Mapping[Request, Activity],
    plain: Mapping[str, FunctionGraph],
    group: str,
    sparse: Collection[int] = (),
) -> Entries:
    """What can be hoisted below a differentiated call: arguments that are handed on.

    `sparse` arguments are hoisted even if they are not handed on: only an entry can collect rows.
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


def _common(a: Node, b: Node) -> Type:
    """The type of a value that is both parameters: a length that only one of them knows is known at run time."""
    joined = join(a.types[0], b.types[0])
    assert joined is not None
    return joined


def first_param(graph: FunctionGraph, operand: Operand) -> int | None:
    """The index of the first-phase parameter that a value is, in the body or in a branch; None if it is none."""
    source = origin(graph, operand)
    node = graph.nodes[source.node] if isinstance(source, Port) else None
    return node.attrs.integer("index") if node is not None and node.op == "param" and phase_of(node) == 0 else None
