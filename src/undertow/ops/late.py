"""Late arguments: those that a call need not compute before its callee runs.

An argument is late if its callee is not strict in it, and computing it may take long or never end: a recursive call or
a loop is part of it. What computes it must be pure, must serve nothing else (`cones.py`), and must have a
place in a branch of the callee, or none at all.

>>> from undertow.ir.text import parse
>>> library = parse('''
... library 1 main=main
... main main(n: i64) -> (r)
...   r: i64 = call n callee="fac"
... function fac(n: i64) -> (r)
...   c: bool = less n, 2:i64
...   k: i64 = subtract n, 1:i64
...   f: i64 = call k callee="fac"
...   m: i64 = multiply n, f
...   r: i64 = call c, 1:i64, m callee="ite"
... function ite(c: bool, a: i64, b: i64) -> (r)
...   branch if1 c
...   a.if: i64, i64 = switch c, a
...   b.if: i64, i64 = switch c, b
...   r: i64 = merge a.if#0, b.if#1
... ''')
>>> fac = library.functions["fac"]
>>> (call,) = late_calls(Strictness(library), Uses(fac))
>>> call.arguments, [[fac.nodes[number].name for number in unit] for unit in call.units], call.places
((2,), [['k'], ['f'], ['m']], [[2], [2], [2]])
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from undertow.ir.graph import Const, FunctionGraph, Operand, Port
from undertow.ir.walk import components, grouped, origin, ports_of
from undertow.ops.cones import Cone, Uses, needed_nodes
from undertow.ops.effects import is_pure
from undertow.ops.funnel import Way, funneled
from undertow.ops.strictness import Strictness

_MOST_WAYS = 8  # to branches that use an argument: more would cost more to tell apart


def may_have_late_calls(strictness: Strictness, graph: FunctionGraph) -> bool:
    """A quick test."""
    is_unbounded = strictness.is_unbounded
    several = any(node.op == "call" and len(node.types) > 1 and is_unbounded(node) for node in graph.nodes)
    return several or bool(strictness.fed_calls(graph.nodes))


def late_calls(strictness: Strictness, uses: Uses) -> Iterator[LateCall]:
    """The calls with late arguments, and those that do not use a result whose computation may not end.

    Between two of them, the last one may be replaced.
    """
    nodes = uses.graph.nodes
    slow, calls = strictness.slow(nodes)
    fed, partial = set(calls), set(_partial_calls(strictness, uses))
    entered: dict[tuple[str, tuple[int, ...]], Entered] = {}
    for number in sorted(fed | partial):
        node, results = nodes[number], uses.results(number)
        callee = strictness.functions[node.attrs.text("callee")]
        if len(callee.phases) > 1 or callee.group or node.attrs.get("checkpoint", False) or number in uses.linked:
            continue
        if not results:
            continue
        key = callee.name, results
        if key not in entered:
            entered[key] = Entered(strictness, callee, results)
        at = entered[key]
        call = None
        if number in fed:
            arguments = _may_be_late(strictness, uses, number, at)
            call = _late_call(strictness, uses, number, at, arguments)
            missed = [
                index
                for index in arguments
                if (call is None or index not in call.roots)
                and not slow.isdisjoint(port.node for port in ports_of((node.inputs[index],)))
            ]
            if (other := at.funneled(strictness, missed)) is not None:
                call = _late_call(strictness, uses, number, other, arguments) or call
        if call is None and number in partial and _saves(strictness, callee, results):
            call = LateCall(uses, number, at, frozenset())
        if call is not None:
            yield call


def _may_be_late(strictness: Strictness, uses: Uses, number: int, entered: Entered) -> list[int]:
    """The arguments of a call that its callee may not need."""
    node, callee = uses.graph.nodes[number], entered.graph
    return [
        position
        for position, operand in enumerate(node.inputs)
        if isinstance(operand, Port)
        and uses.graph.type_of(operand) == callee.nodes[callee.params[position]].types[0]
        and not strictness.is_needed(node, entered.results, position)
    ]


def _late_call(
    strictness: Strictness, uses: Uses, number: int, entered: Entered, arguments: Collection[int]
) -> LateCall | None:
    cone = frozenset(Cone(strictness, uses, number, arguments, entered.places_for).nodes if arguments else ())
    while any(strictness.is_unbounded(uses.graph.nodes[at]) for at in cone):
        call = LateCall(uses, number, entered, cone)
        # What the callee would compute first of all may as well be computed before the call.
        early = {at for unit, is_first in zip(call.units, call.are_first, strict=True) if is_first for at in unit}
        if not early:
            return call
        cone -= early
    return None


def _partial_calls(strictness: Strictness, uses: Uses) -> list[int]:
    """The calls some of whose results nobody uses, and that may not end."""
    counts = {
        number: len(node.types)
        for number, node in enumerate(uses.graph.nodes)
        if node.op == "call" and len(node.types) > 1 and strictness.is_unbounded(node) and number in uses.live
    }
    return [number for number, count in counts.items() if len(uses.results(number)) < count]


def _saves(strictness: Strictness, callee: FunctionGraph, results: Sequence[int]) -> bool:
    """Is there work that may not end, and that these results do not need?"""
    every = needed_nodes(strictness, callee, range(len(callee.results)))
    unused = every - needed_nodes(strictness, callee, results)
    return any(strictness.is_unbounded(callee.nodes[number]) for number in unused)


class Entered:
    """A function that calls enter, some of its results being used: where it uses its parameters."""

    def __init__(self, strictness: Strictness, graph: FunctionGraph, results: tuple[int, ...]) -> None:
        self.graph, self.results, self.uses = graph, results, Uses(graph)
        self.live = needed_nodes(strictness, graph, results)
        self.params = {
            Port(number): index for index, number in enumerate(graph.params)
        }  # and what Switches make of them
        self.certain: list[set[int]] = [set() for _ in graph.params]  # regions that use each parameter
        self.possible: list[set[int]] = [set() for _ in graph.params]  # regions with calls that may or may not need it
        self._below: list[list[tuple[int, int]]] = [[] for _ in graph.regions]
        for (_, parent), sides in self.uses.branches.items():
            self._below[parent].append(sides)
        for number in sorted(self.live):
            node = graph.nodes[number]
            if node.op == "switch" and isinstance(node.inputs[1], Port) and node.inputs[1] in self.params:
                self.params |= dict.fromkeys((Port(number, 0), Port(number, 1)), self.params[node.inputs[1]])
                continue
            of_call = self.uses.results(number) if node.op == "call" else ()
            for position, operand in enumerate(node.inputs):
                if isinstance(operand, Port) and operand in self.params:
                    is_certain = node.op != "call" or strictness.is_needed(node, of_call, position)
                    users = self.certain if is_certain else self.possible
                    users[self.params[operand]].add(self.uses.home(operand))
        ends = [graph.results[index] for index in results]
        for port in (*ends, *(region.pred for region in graph.regions if region.pred)):
            if port in self.params:
                self.certain[self.params[port]].add(self.uses.home(port))
        sinks = self._sinks(strictness, {port.node for port in ends})
        self._handed_to = [sinks.get(number) for number in graph.params]

    def _sinks(self, strictness: Strictness, ends: Collection[int]) -> dict[int, int]:
        """Parameters and operators of the body itself that only one call gets to see, and may not need: which call."""
        sinks: dict[int, int] = {}
        for number in sorted(self.live - {*ends, *self.uses.decided}, reverse=True):
            node = self.graph.nodes[number]
            if node.region != 0 or not (node.op == "param" or is_pure(node.op)):
                continue
            calls: set[int | None] = set()
            for user, position in self.uses.of[number]:
                if user not in self.live:
                    continue
                other = self.graph.nodes[user]
                if other.op == "call" and position >= 0 and other.region == 0:
                    is_needed = strictness.is_needed(other, self.uses.results(user), position)
                    calls.add(None if is_needed else user)
                else:
                    calls.add(sinks.get(user) if position >= 0 else None)
            if len(calls) == 1 and (call := next(iter(calls))) is not None:
                sinks[number] = call
        return sinks

    def _lowest(self, certain: Collection[int], possible: Collection[int]) -> list[int]:
        """Where to compute a value that these regions use: as far down as it is never computed twice."""
        count = len(self.graph.regions)
        is_certain = [region in certain for region in range(count)]
        places: list[list[int]] = [[] for _ in range(count)]
        for region in reversed(range(count)):  # inner regions have higher numbers
            is_certain[region] |= any(is_certain[yes] and is_certain[no] for yes, no in self._below[region])
            using = [pair for pair in self._below[region] if places[pair[0]] or places[pair[1]]]
            if is_certain[region] or region in possible or len(using) > 1:
                places[region] = [region]
            elif using:
                places[region] = [*places[using[0][0]], *places[using[0][1]]]
        return places[0]

    def funneled(self, strictness: Strictness, arguments: Collection[int]) -> Entered | None:
        """The same, of a graph that uses those of the arguments in one branch that it uses in several."""
        users = {index: ways for index in arguments if (ways := self._ways(index))}
        graph = funneled(self.graph, users) if users else None
        return None if graph is None else Entered(strictness, graph, self.results)

    def _ways(self, argument: int) -> list[Way]:
        """How to get to the branches that use an argument; none if there is but one, or the body itself uses it.

        A predicate that is computed in a branch is left out: then the way leads to the branch around.
        """
        regions = self.certain[argument] | self.possible[argument]
        if 0 in regions or len(regions) < 2:
            return []
        ways: list[Way] = []
        for region in sorted(regions):
            way: list[tuple[Port, bool]] = []
            for at in reversed(self.uses.path(region, 0)):
                branch = self.graph.regions[at]
                pred = None if branch.pred is None else origin(self.graph, branch.pred)
                if not isinstance(pred, Port) or self.uses.home(pred) != 0:
                    break
                way.append((pred, bool(branch.side)))
            if way not in ways:
                ways.append(way)
        return ways if 1 < len(ways) <= _MOST_WAYS else []

    def places_for(self, arguments: Collection[int], others: Collection[int]) -> list[int]:
        """The same, for a value that is some of the arguments, and is used in other places besides.

        A place is a region; or ~n, if the value is for call number n of the body alone, where it may be late again.
        """
        calls = {~place if place < 0 else None for place in others} | {self._handed_to[at] for at in arguments}
        if len(calls) == 1 and (call := next(iter(calls))) is not None:
            return [~call]
        certain = {region_of(place) for place in others}.union(*(self.certain[index] for index in arguments))
        return self._lowest(certain, set[int]().union(*(self.possible[index] for index in arguments)))


def region_of(place: int) -> int:
    """The region of the callee that a place is, or is in."""
    return max(place, 0)


class LateCall:
    """A call, what computes its late arguments, and where in the callee that would stand.

    A unit is a node of the cone, or all that a branch is made of.
    """

    def __init__(self, uses: Uses, number: int, entered: Entered, cone: frozenset[int]) -> None:
        self.uses, self.host, self.number, self.entered = uses, uses.graph, number, entered
        self.callee, self.results = entered.graph, entered.results
        self.node = self.host.nodes[number]
        self.region = self.node.region
        self.cone = cone
        self.roots = {
            index: operand
            for index, operand in enumerate(self.node.inputs)
            if isinstance(operand, Port) and operand.node in cone
        }
        self.arguments = tuple(self.roots)  # the indices of those that are late
        self.units = self._order()
        taken = (port for unit in self.units for number in unit for port in self._taken(number))
        self.free = list(dict.fromkeys(taken))  # the free variables of the cone
        # Ports of the callee that have the value of a late argument -> its index.
        self.values = {port: index for port, index in entered.params.items() if index in self.roots}
        places = self._places()
        self.are_first = [at == [0] for at in places]  # of each unit: would the callee begin with it?
        # Of each unit: the call in the callee that it is for, if it is for nothing else.
        self.handed_to = [~at[0] if at and at[0] < 0 else None for at in places]
        # Of each unit, regions of the callee, of which at most one runs.
        self.places = [list(map(region_of, at)) for at in places]

    # -- in the caller -----------------------------------------------------------------------------------------

    def _order(self) -> list[list[int]]:
        """The units, dependencies first; the order depends only on what leads to what."""
        members = grouped((self._unit(number), number) for number in sorted(self.cone))

        def before(unit: Hashable) -> list[Hashable]:
            nodes = (self.host.nodes[number] for number in members[unit])
            ports = (port for node in nodes for port in ports_of((*node.inputs, *node.controls)))
            return [self._unit(port.node) for port in ports if port.node in self.cone]

        roots = [self._unit(port.node) for port in self.roots.values()]
        return [sorted(n for unit in units for n in members[unit]) for units in components(roots, before)]

    def _unit(self, number: int) -> Hashable:
        """The outermost branch that a node is part of, or itself."""
        node = self.host.nodes[number]
        if node.op == "switch" and node.region == self.region:
            return node.inputs[0], self.region
        preds = self.uses.preds(number, self.region)
        return (preds[0], self.region) if preds else number

    def _taken(self, number: int) -> list[Port]:
        """What a node takes from outside."""
        ports = ports_of((*self.host.nodes[number].inputs, *self.uses.preds(number, self.region)))
        return [port for port in ports if port.node not in self.cone and port not in self.uses.pivots]

    def _places(self) -> list[list[int]]:
        arguments = grouped((port.node, index) for index, port in self.roots.items())
        users: dict[int, set[int]] = {}  # node of the cone -> where those stand that use it
        places: list[list[int]] = []
        for unit in reversed(self.units):
            of = [index for number in unit for index in arguments.get(number, ())]
            places.append(self.entered.places_for(of, set[int]().union(*(users.get(number, ()) for number in unit))))
            for number in unit:
                node = self.host.nodes[number]
                preds = self.uses.preds(number, self.region)
                for port in ports_of((*node.inputs, *node.controls, *preds)):
                    users.setdefault(port.node, set()).update(places[-1])
        return places[::-1]

    def key(self) -> Hashable:
        """Equal for calls of the same function whose cones compute the same from their free variables."""
        ranks = {number: rank for rank, number in enumerate(number for unit in self.units for number in unit)}
        free = {port: index for index, port in enumerate(self.free)}
        regions: dict[int, int] = {self.region: 0}
        listed: list[Hashable] = []

        def name(operand: Operand) -> Hashable:
            if isinstance(operand, Const):
                return operand
            if operand.node in ranks:
                kept = self.uses.kept.get(operand.node)
                index = operand.index if kept is None else kept.index(operand.index)
                return "inside", ranks[operand.node], index
            return ("free", free[operand]) if operand in free else ("pivot", place(self.uses.home(operand)))

        def place(region: int) -> int:
            for at in reversed(self.uses.path(region, self.region)):
                if at not in regions:
                    branch = self.host.regions[at]
                    assert branch.pred is not None and branch.parent is not None
                    listed.append((name(branch.pred), branch.side, regions[branch.parent]))
                    regions[at] = len(regions)
            return regions[region]

        for number in ranks:
            node = self.host.nodes[number]
            operands = tuple(map(name, node.inputs)), tuple(map(name, node.controls))
            listed.append((node.op, node.attrs, self.uses.types(number), place(node.region), *operands, node.span))
        roots = tuple((index, name(port)) for index, port in self.roots.items())
        types = tuple(self.host.type_of(port) for port in self.free)
        return self.callee.name, self.results, roots, types, tuple(listed)
