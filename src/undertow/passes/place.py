"""Where operators run: the part of each node of a static graph, as `ut.device` says.

A node with a device is there. One without follows the body that it stands in. The body of a loop or map is where the
loop or map is; that of a function, where its calls are, if all are in one place, and otherwise where main is, in part
0. A call is at its device, or where the body is that it stands in; calls of a function by itself do not count. So each
device named has been named by the program, and no body is moved by the devices inside of it.

What reads or assigns variables, or prints, stays in part 0, which is the program itself. Checks are made where they
are: who makes one that fails says so, and the program has its message.

>>> from undertow.ir.text import parse
>>> graph = parse('''
... static 1 f
... inputs x
... fetches z
... main main ^start
...   start: ctl = start
...   x: f64 = input index=0
...   y: f64 = multiply x, 2.0:f64 device="worker:0"
...   z: f64 = add y, 1.0:f64
... ''')
>>> places_of(graph, ("", "worker:0"))
[0, 0, 1, 0]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from undertow.errors import GraphError
from undertow.ir.graph import Node, StaticGraph
from undertow.ir.structure import STARTS
from undertow.ir.walk import body_of, fixpoint, grouped, phase_of
from undertow.ops.effects import CHECKS, acts, is_stateful


def places_of(graph: StaticGraph, devices: Sequence[str]) -> list[int]:
    """The part of each node; part k is `devices[k]`."""
    parts = {name: number for number, name in enumerate(devices)}
    own = [_named(node, parts, devices) for node in graph.nodes]
    bodies = _bodies(graph, own)
    around = body_of(graph)
    places: list[int] = []
    for node, place in zip(graph.nodes, own, strict=True):
        if stays(node.op):
            places.append(0)
        else:
            places.append(bodies[around[node.region]] if place is None else place)
    return places


def device_names(workers: int) -> tuple[str, ...]:
    """The device of each part: that of part 0, which is main's, and those of the workers."""
    return ("", *(f"worker:{number}" for number in range(workers)))


def workers_named(graph: StaticGraph) -> int:
    """As many workers as the devices of a graph name: one more than the highest number."""
    named = {name for node in graph.nodes for name in str(node.attrs.get("device", "")).split(",")}
    numbers = [name.removeprefix("worker:") for name in named if name.startswith("worker:")]
    return 1 + max((int(number) for number in numbers if number.isdecimal()), default=-1)


def stays(op: str) -> bool:
    """Must an operator run where main does: because of variables, or since it acts on the world?"""
    return is_stateful(op) or (acts(op) and op not in CHECKS)


def _named(node: Node, parts: Mapping[str, int], devices: Sequence[str]) -> int | None:
    """The part that a node's own device names. Of replicas that nobody has made, it is the first."""
    device = node.attrs.get("device")
    if not isinstance(device, str):
        return None
    name = device.partition(",")[0]
    if not name:
        return 0
    if name not in parts:
        raise GraphError(
            f"{node.name} is placed on {name!r}, and there is no such worker",
            node.span,
            hint=f"there are {', '.join(filter(None, devices)) or 'none'}: name one of them, or have more workers",
        )
    return parts[name]


def _bodies(graph: StaticGraph, own: Sequence[int | None]) -> list[int]:
    """The part of each body, by its region."""
    around, sites = body_of(graph), graph.sites
    device = {
        node.attrs.integer("site"): own[number]
        for number, node in enumerate(graph.nodes)
        if node.op in STARTS and not phase_of(node)
    }
    function = _functions(graph, around)
    entering: dict[int, list[int]] = {}  # body -> the sites that count
    for number, site in enumerate(sites, 1):
        if site.kind != "call" or function[around[site.caller]] != site.callee:
            entering.setdefault(site.callee, []).append(number)
    entered = grouped(
        (around[sites[number - 1].caller], body) for body, numbers in entering.items() for number in numbers
    )
    places: dict[int, int] = {n: 0 for n, region in enumerate(graph.regions) if region.kind == "main"}

    def update(body: int) -> bool:
        if body not in entering:
            return False
        # Each body goes from unknown to one part, and from there at most to part 0: so this ends.
        known: set[int | None] = set()
        for number in entering[body]:
            named = device.get(number)
            known.add(places.get(around[sites[number - 1].caller]) if named is None else named)
        known.discard(None)
        before = places.get(body)
        if known:
            found = known.pop()
            places[body] = 0 if known or found is None else found
        return places.get(body) != before

    fixpoint(entering, update, lambda body: entered.get(body, ()))
    return [places.get(number, 0) for number in range(len(graph.regions))]


def _functions(graph: StaticGraph, around: Sequence[int]) -> list[int]:
    """The function, or main, that each body stands in: bodies of loops and maps stand in the one that enters them."""
    caller = {site.callee: around[site.caller] for site in graph.sites if site.kind != "call"}
    found: list[int] = []
    for number in range(len(graph.regions)):
        at = around[number]
        while at in caller:
            at = caller[at]
        found.append(at)
    return found
