"""Outline: the path of a derivative becomes a function, called once, with a `gradient` beside the call.

A `derivative` node (see `paths`) stands in the middle of a graph, but the library differentiates calls. So the nodes
between xs and ys move into a function of their own: its parameters are the values they use from outside, including the
xs; its results are the values used outside, including the ys. The call replaces the nodes, so the gradient uses the
same values as everybody else: nothing runs twice, and effects happen once. docs/design/0007 says why the nodes can be
moved, and when a part is computed a second time instead. Devices: what moves keeps its own; the gradient is where the
derivative was, and the call has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from undertow.errors import GraphError
from undertow.ir.draft import Copy, Draft
from undertow.ir.graph import Attrs, FunctionGraph, Library, Node, Operand, Phase, Port
from undertow.ir.implied import param_node, start_node
from undertow.ir.names import Names, in_scope
from undertow.ir.structure import ENTERS
from undertow.ir.walk import device_attr, entered_by
from undertow.ops.effects import assigns, variables_of
from undertow.ops.op import CATALOGUE
from undertow.passes.markers.paths import (
    DERIVATIVE,
    ancestors,
    descendants,
    in_order,
    is_inside,
    leaves_its_branch,
    parts_of,
    sources,
)

_CALL, _GRADIENT = -1, -2  # stand for the new nodes among node numbers


def outline_derivatives(library: Library) -> tuple[Library, Counter[str]]:
    """The library with a call and a `gradient` for every derivative, and the number of new functions."""
    functions = dict(library.functions)
    taken = Names(functions, "~")
    todo = list(functions)
    while todo:
        name = todo.pop()
        while any(node.op == DERIVATIVE for node in functions[name].nodes):
            scene = _Scene(functions[name], Library(functions, library.main))
            way, in_place = _choose(scene)
            functions[name], outlined = _write(scene, way, in_place, taken.fresh(f"{name}.differentiated"))
            functions[outlined.name] = outlined
            todo.append(outlined.name)  # derivatives of higher order have moved into it
    return Library(functions, library.main), +Counter({"outlined function": len(functions) - len(library.functions)})


# --------------------------------------------------------------------------------------------------------------
# Derivatives of one graph


@dataclass(eq=False)
class _Way:
    """A derivative of ys with respect to xs: a `derivative` node, or some of its xs."""

    scene: _Scene
    ys: tuple[Port, ...]
    cotangents: tuple[Operand, ...]
    wanted: dict[Port, Port]  # x -> the output of the node that is its cotangent
    node: Node
    path: set[int] = field(init=False)
    whole: set[int] = field(init=False)  # the path, and what must move with it

    def __post_init__(self) -> None:
        self.path = self.scene.path(self.wanted, self.ys)
        self.whole = self.scene.closed(self.path, self.node.region)

    @cached_property
    def is_acting(self) -> bool:
        return self.scene.is_acting(self.whole)

    def inner_xs(self) -> list[Port]:
        """The xs that are computed by the nodes that would move."""
        return [x for x in self.wanted if x.node in self.whole]

    def is_circular(self) -> bool:
        """Would the nodes that move need their own derivative?"""
        return any(output.node in self.whole for output in self.wanted.values())

    def is_entangled(self) -> bool:
        """Is an x computed on the path of a derivative that this one goes through? Then no copy can separate them."""
        nodes, region = self.scene.nodes, self.node.region
        inner = [nodes[n] for n in self.whole if nodes[n].op == DERIVATIVE and nodes[n].region == region]
        paths = [self.scene.path(xs, ys) for ys, _, xs in map(parts_of, inner)]
        return any(x.node in path for x in self.wanted for path in paths)

    def part(self, xs: Iterable[Port]) -> _Way:
        return _Way(self.scene, self.ys, self.cotangents, {x: self.wanted[x] for x in xs}, self.node)

    def is_in_the_way_of(self, other: _Way) -> bool:
        """Would moving the other one take away nodes of this one?"""
        nodes = self.scene.nodes
        both = {n for n in self.whole & other.whole if nodes[n].op != "switch"}  # Switches can be copied
        return bool(both) or any(x.node in other.whole for x in self.wanted)


class _Scene:
    """A graph with derivatives, and analyses of it."""

    def __init__(self, graph: FunctionGraph, library: Library) -> None:
        self.graph = graph
        self.library = library
        self.nodes = graph.nodes
        self.gradients = {
            node.inputs[0].node: number
            for number, node in enumerate(self.nodes)
            if node.op == "gradient" and isinstance(node.inputs[0], Port)
        }
        # Outermost first: derivatives in branches come in a later round.
        self.region = min(node.region for node in self.nodes if node.op == DERIVATIVE)

    def ways(self) -> list[_Way]:
        """The derivatives of the outermost region that has any."""
        ways: list[_Way] = []
        for number, node in enumerate(self.nodes):
            if node.op == DERIVATIVE and node.region == self.region:
                ys, cotangents, xs = parts_of(node)
                ways.append(_Way(self, ys, cotangents, {x: Port(number, k) for k, x in enumerate(xs)}, node))
        return ways

    def path(self, xs: Iterable[Port], ys: Iterable[Port]) -> set[int]:
        return descendants(self.nodes, set(xs)) & ancestors(self.nodes, ys)

    def closed(self, path: set[int], region: int) -> set[int]:
        """What moves with a path: whole branches, paths of derivatives on it, and all nodes in between."""
        moving = set(path)
        while True:
            grown = set(moving)
            for unit in self.units.get(region, ()):
                if not unit.isdisjoint(grown):
                    grown |= unit
                    ports = (port for number in unit for port in sources(self.nodes[number]))
                    grown |= {p.node for p in ports if self.nodes[p.node].op == "switch"}
            for number in sorted(grown):
                node = self.nodes[number]
                if node.op == DERIVATIVE and node.region == region:
                    ys, _, xs = parts_of(node)
                    grown |= self.path(xs, ys)
            below = descendants(self.nodes, (), grown)
            above = ancestors(self.nodes, [port for number in grown for port in sources(self.nodes[number])])
            grown |= below & above
            if grown == moving:
                return moving
            moving = grown

    @cached_property
    def units(self) -> dict[int, list[set[int]]]:
        """For each region, its conditionals: the nodes of both branches, with the Merges that end them.

        Conditionals on one predicate share regions, but no nodes except Switches, and those may be copied.
        """
        regions = self.graph.regions
        units: dict[int, list[set[int]]] = {}
        for parent in {parent for _, parent in self.graph.branches()}:
            inside = {r for r in range(len(regions)) if r != parent and is_inside(regions, r, parent)}
            together: dict[int, set[int]] = {}
            for number, node in enumerate(self.nodes):
                is_end = node.op == "merge" and node.region == parent
                if node.region not in inside and not is_end:
                    continue
                joined = {number}
                for port in sources(node):
                    joined |= together.get(port.node, set()) if port.node not in joined else set()
                together.update(dict.fromkeys(joined, joined))
            units[parent] = list({id(unit): unit for unit in together.values()}.values())
        return units

    def shared_switches(self, whole: set[int], region: int) -> set[int]:
        """The Switches among moving nodes that other nodes need, too: they are copied."""
        outside = (node for number, node in enumerate(self.nodes) if number not in whole)
        used = {port.node for node in outside for port in sources(node)}
        return {n for n in whole & used if self.nodes[n].op == "switch" and self.nodes[n].region == region}

    def is_acting(self, numbers: Iterable[int]) -> bool:
        """Would it matter if these nodes ran twice: do they print, assign, or read what the run assigns?"""
        entered = [self.nodes[n].attrs.text(ENTERS[self.nodes[n].op]) for n in numbers if self.nodes[n].op in ENTERS]
        seen = set(entered)
        bodies: list[Sequence[Node]] = [[self.nodes[n] for n in numbers]]
        while entered:
            graph = self.library.functions[entered.pop()]
            bodies.append(graph.nodes)
            fresh = set(entered_by(graph)) - seen
            seen |= fresh
            entered += fresh
        return any(self._acts(node) for body in bodies for node in body)

    def _acts(self, node: Node) -> bool:
        if node.op == "read":
            return not self.assigned.isdisjoint(variables_of(node.attrs))
        return node.op in CATALOGUE and CATALOGUE[node.op].effect

    @cached_property
    def assigned(self) -> set[str]:
        nodes = (node for graph in self.library.functions.values() for node in graph.nodes)
        return {name for node in nodes if assigns(node.op) for name in variables_of(node.attrs)}

    def tears(self, numbers: set[int]) -> bool:
        """Would a call and its gradient be torn apart?"""
        return any((call in numbers) != (gradient in numbers) for call, gradient in self.gradients.items())


def _choose(scene: _Scene) -> tuple[_Way, bool]:
    """The derivative to write next, and whether its nodes move. Those that must be copied come first."""
    ways: list[_Way] = []
    for way in scene.ways():
        inner = set(way.inner_xs())
        outer = [x for x in way.wanted if x not in inner]
        ways += [way] if not inner else [way.part(xs) for xs in (outer, *([x] for x in inner)) if xs]
    ways.sort(key=lambda way: (way.is_acting, len(way.whole)), reverse=True)
    moved: list[_Way] = []
    for way in ways:
        if any(output.node in other.whole for other in moved for output in way.wanted.values()):
            continue  # this derivative moves with the other one
        is_free = not way.inner_xs() and not way.is_circular() and not scene.tears(way.whole)
        if is_free and not any(way.is_in_the_way_of(other) or other.is_in_the_way_of(way) for other in moved):
            moved.append(way)
        elif way.is_entangled():
            raise GraphError(
                "a gradient of a gradient is taken with respect to a tensor inside the path of the first",
                way.node.span,
                hint="take it with respect to the inputs of that tensor",
            )
        elif way.is_acting:
            raise GraphError(
                "several gradients share a part of the graph that cannot be computed twice: it prints, "
                "assigns, or reads what is assigned",
                way.node.span,
                hint="fetch them in separate runs, or use one tf.gradients with respect to tensors that do not "
                "depend on one another",
            )
        else:
            return way, False
    return moved[0], True


# --------------------------------------------------------------------------------------------------------------
# Writing


def _write(scene: _Scene, way: _Way, in_place: bool, name: str) -> tuple[FunctionGraph, FunctionGraph]:
    """The graph with the call and the gradient, and the outlined function."""
    regions, region = scene.graph.regions, way.node.region
    if not all(is_inside(regions, scene.nodes[number].region, region) for number in way.whole):
        raise leaves_its_branch(way.node)
    whole = way.whole if in_place else way.whole & ancestors(scene.nodes, way.ys)
    moved = whole - scene.shared_switches(whole, region) if in_place else set()
    exports = list(dict.fromkeys([*way.ys, *_exported(scene, moved)]))
    body, taken = _body(scene, way, whole, exports, name)
    ready = dict.fromkeys(way.wanted.values(), _GRADIENT)

    def item_of(port: Port) -> int:
        if port.node in moved:
            return _CALL
        return ready.get(port, port.node)

    def needs(item: int) -> Iterator[int]:
        if item == _CALL:
            return (item_of(port) for port in taken)
        if item == _GRADIENT:
            return iter([_CALL, *(item_of(x) for x in way.cotangents if isinstance(x, Port))])
        return (item_of(port) for port in sources(_rest(scene.nodes[item], item, ready)))

    graph = scene.graph
    draft = Draft(graph.kind, graph.regions[0].name)
    copy = Copy(graph, draft)
    call = gradient = -1
    for item in in_order([*(n for n in range(len(scene.nodes)) if n not in moved), _GRADIENT], needs):
        if item == _CALL:
            types = tuple(graph.type_of(port).erased() for port in exports)
            inputs = tuple(copy.ports[port] for port in taken)
            node = Node(
                "call", inputs, types, "differentiated", copy.place(region), Attrs(callee=name), span=way.node.span
            )
            call = draft.add(draft.triggered(node, 0))
            copy.ports.update({x: Port(call, k) for k, x in enumerate(exports) if x.node in moved})
        elif item == _GRADIENT:
            gradient = draft.add(_gradient(scene, way, call, copy, taken))
            copy.ports.update({output: Port(gradient, k) for k, output in enumerate(way.wanted.values())})
        else:
            node = scene.nodes[item]
            kept = [k for k in range(len(node.types)) if Port(item, k) not in ready]
            if kept or node.op != DERIVATIVE:
                copy.add(item, _rest(node, item, ready), kept)
    phase = Phase(
        tuple(copy.ports[Port(param)].node for param in graph.params), tuple(copy.ports[port] for port in graph.results)
    )
    return draft.freeze(graph, [phase], graph.carried), body


def _rest(node: Node, number: int, ready: dict[Port, int]) -> Node:
    """A derivative without the outputs that are ready; any other node as it is."""
    if node.op != DERIVATIVE:
        return node
    ys, cotangents, xs = parts_of(node)
    kept = [k for k in range(len(node.types)) if Port(number, k) not in ready]
    inputs = (*ys, *cotangents, *(xs[k] for k in kept))
    return replace(node, inputs=inputs if kept else (), types=tuple(node.types[k] for k in kept))


def _exported(scene: _Scene, moved: set[int]) -> list[Port]:
    """The outputs of moving nodes that other nodes use."""
    used = [port for n, node in enumerate(scene.nodes) if n not in moved for port in sources(node)]
    return sorted({port for port in (*used, *scene.graph.results) if port.node in moved})


def _body(
    scene: _Scene, way: _Way, whole: set[int], results: Sequence[Port], name: str
) -> tuple[FunctionGraph, list[Port]]:
    """The function, and the arguments of its call: the xs first."""
    graph, region = scene.graph, way.node.region
    taken = list(way.wanted)
    pivots = set(graph.regions[region].starts)
    moving = sorted(whole)
    for port in (*(p for number in moving for p in sources(scene.nodes[number])), *results):
        if port.node not in whole and port not in pivots and port not in taken:
            taken.append(port)
    draft = Draft("function", name)
    copy = Copy(graph, draft)
    copy.places = {region: 0}
    start = Port(draft.add(start_node(0, "start", way.node.span)))
    copy.ports.update(dict.fromkeys(pivots, start))
    params = []
    for index, port in enumerate(taken):
        maker = scene.nodes[port.node]
        node = param_node(0, index, maker.short_name, graph.type_of(port).erased(), maker.span)
        params.append(draft.add(node))
        copy.ports[port] = Port(params[-1])
    varied = {x: copy.ports[x] for x in way.wanted}
    prefix = in_scope("", graph.regions, region)
    for number in moving:
        node = scene.nodes[number]
        copy.add(number, replace(node, name=node.name.removeprefix(prefix)))
        copy.ports.update(varied)  # an x that is recomputed here is still read from its parameter
    phase = Phase(tuple(params), tuple(copy.ports[port] for port in results))
    empty = FunctionGraph((), (), name, "function", span=way.node.span)
    return draft.freeze(empty, [phase], 0), taken


def _gradient(scene: _Scene, way: _Way, call: int, copy: Copy, taken: Sequence[Port]) -> Node:
    given = tuple(range(len(way.ys)))  # the ys are the first results
    wanted = tuple(taken.index(x) for x in way.wanted)
    types = tuple(scene.graph.type_of(x).erased() for x in way.wanted)
    inputs = (Port(call), *map(copy.operand, way.cotangents))
    attrs = Attrs(given=given, wanted=wanted, **device_attr(way.node))
    return Node("gradient", inputs, types, way.node.name, copy.place(way.node.region), attrs, (), way.node.span)
