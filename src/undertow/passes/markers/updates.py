"""Order updates: an optimizer's assignments come after the reads of the run, unless control edges say otherwise.

Devices: nothing moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, FunctionGraph, Library, Node, Phase, Port
from undertow.passes.markers.paths import UPDATE, in_order, sources
from undertow.passes.markers.reads import used_by, using


def order_updates(library: Library) -> tuple[Library, Counter[str]]:
    """The library with control edges from the reads of a variable in main to its updates, and the number of updates."""
    main = library.functions[library.main]
    updates = [number for number, node in enumerate(main.nodes) if UPDATE in node.attrs]
    if not updates:
        return library, Counter()
    reads = using(library, "read")
    readers: dict[str, set[Port]] = {}
    for number, node in enumerate(main.nodes):
        for name in used_by(node, "read", reads):
            readers.setdefault(name, set()).update(_seen_outside(main, number))
    nodes = list(main.nodes)
    for number in updates:
        node = nodes[number]
        attrs = Attrs(**{key: value for key, value in node.attrs.items() if key != UPDATE})
        later = _below(nodes, number)
        before = sorted(port for port in readers.get(node.attrs.text("variable"), ()) if port.node not in later)
        controls = tuple(dict.fromkeys((*node.controls, *before)))
        nodes[number] = replace(node, attrs=attrs, controls=controls)
    copy = Copy(main, Draft(main.kind, main.regions[0].name))
    for number in in_order(range(len(nodes)), lambda number: (port.node for port in sources(nodes[number]))):
        copy.add(number, nodes[number])
    params = tuple(copy.ports[Port(param)].node for param in main.params)
    phase = Phase(params, tuple(copy.ports[port] for port in main.results))
    ordered = copy.draft.freeze(main, [phase], main.carried)
    return Library({**library.functions, library.main: ordered}, library.main), Counter({"update": len(updates)})


def _below(nodes: Sequence[Node], number: int) -> set[int]:
    """A node and its descendants. (Added edges may have broken the topological order, so `descendants` won't do.)"""
    users: dict[int, list[int]] = {}
    for user, node in enumerate(nodes):
        for port in sources(node):
            users.setdefault(port.node, []).append(user)
    below, todo = {number}, [number]
    while todo:
        fresh = set(users.get(todo.pop(), ())) - below
        below |= fresh
        todo += fresh
    return below


def _seen_outside(main: FunctionGraph, number: int) -> list[Port]:
    """Ports outside branches that have a token once a node has fired."""
    node = main.nodes[number]
    if node.region == 0:
        return [Port(number, index) for index in range(len(node.types))]
    below = _below(main.nodes, number)
    return [Port(n) for n in sorted(below) if main.nodes[n].op == "merge" and main.nodes[n].region == 0]
