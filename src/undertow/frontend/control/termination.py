"""Rejects functions that can never return because every path makes a recursive call.

A region finishes if everything that it always does finishes: each call, the header of each loop, and at
least one side of each branch. The least fixpoint over the library says which functions can finish at all. What computes
a late argument is not always done.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from undertow.errors import CaptureError
from undertow.ir.custom import RULE, has_rule, rule_nodes
from undertow.ir.graph import FunctionGraph, Library, Node
from undertow.ir.structure import ENTERS
from undertow.ops.cones import Uses
from undertow.ops.late import late_calls
from undertow.ops.strictness import Strictness


def refuse_endless(library: Library) -> None:
    """Raise an error if some function has no base case; it shows the cycle of calls."""
    blocked = _blocked(library, {})
    if blocked:
        strictness = Strictness(library)
        late = {
            name: {number for call in late_calls(strictness, Uses(library.functions[name])) for number in call.cone}
            for name in blocked
        }
        if any(late.values()):
            blocked = _blocked(library, late)
    for name in library.functions:
        if name in blocked:
            raise _endless(name, blocked, library)


def _blocked(library: Library, late: Mapping[str, Collection[int]]) -> dict[str, Node]:
    """The functions that cannot finish, each with a call that never returns. `late`: nodes that need not run."""
    finishing: set[str] = set()
    blocked: dict[str, Node] = {}
    waiting = True
    while waiting:
        waiting = False
        # Callees come after their callers: in reverse, one round is enough for a chain of calls.
        for name, graph in reversed(list(library.functions.items())):
            if name not in finishing:
                stuck = _stuck(graph, finishing, late.get(name, ()))
                if stuck is None:
                    finishing.add(name)
                    blocked.pop(name, None)
                    waiting = True
                else:
                    blocked[name] = stuck
    return blocked


def _stuck(graph: FunctionGraph, finishing: set[str], late: Collection[int]) -> Node | None:
    """A call that this body always makes and that never returns; None if the body can finish."""
    stuck: list[Node | None] = [None] * len(graph.regions)
    rules = rule_nodes(graph, *RULE) if has_rule(graph) else ()  # what a derivative takes instead of the function
    for number, node in enumerate(graph.nodes):
        if number in late or number in rules:
            continue
        # A map may have no lanes.
        target = node.attrs.get(ENTERS[node.op]) if node.op in ENTERS and node.op != "map" else None
        if target is not None and target not in finishing and stuck[node.region] is None:
            stuck[node.region] = node
    if graph.kind == "loop":
        # The body of a loop may run zero times: only what the condition needs counts.
        return stuck[0]
    # Inner regions have higher numbers than those around them.
    branches = sorted(graph.branches().items(), key=lambda item: -min(item[1]))
    for (_, parent), (then, other) in branches:
        if stuck[then] is not None and stuck[other] is not None and stuck[parent] is None:
            stuck[parent] = stuck[then]
    return stuck[0]


def _endless(name: str, blocked: dict[str, Node], library: Library) -> CaptureError:
    chain: list[Node] = []
    seen: list[str] = []
    at = name
    while at not in seen and at in blocked:
        seen.append(at)
        chain.append(blocked[at])
        at = str(blocked[at].attrs.get("callee", blocked[at].attrs.get("body")))
    cycle = chain[seen.index(at) :] if at in seen else chain
    names = [*seen[seen.index(at) :], at] if at in seen else [*seen, at]
    # The user knows functions, not the graphs of their loops nor the numbers of specialisations.
    shown = [n.split("~")[0] for n in names if n == at or library.functions[n].kind == "function"]
    return CaptureError(
        f"no path through `{shown[0]}` returns without calling it again: {' -> '.join(f'`{n}`' for n in shown)}",
        cycle[0].span if cycle else None,
        hint="add a base case: test for it first, and `return` there without a recursive call",
    )
