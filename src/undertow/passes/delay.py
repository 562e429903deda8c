"""Compute late arguments by need: where the callee uses them, and only then.

A call with a late argument (`ops/strictness.py` says which) gets a copy of its callee. What computes the argument
becomes part of the copy: it stands in the branch that uses the argument, and its free variables are parameters instead.
So `ite(n <= 1, 1, n * fac(n - 1))` calls a copy of `ite` that has `n` for a parameter and `n * fac(n - 1)` in a branch.
A copy that hands a late argument on is a caller like any other.

Nothing is computed twice: a late argument has one user, and what stands on both sides of a branch runs on one. If
several branches use it, it is computed before them. A function that hands on more than it was given would have copies
without end: there the argument is not late. A result that a call does not use is not computed either, if that saves
work that may not end. An activation of the copy counts as one of the callee.

>>> from undertow.ir.text import dump, parse
>>> library, count = delay_arguments(parse('''
... library 1 main=main
... main main(n: i64) -> (r)
...   l: i64 = call n callee="last"
...   c: bool = less n, 3:i64
...   r: i64 = call c, n, l callee="ite"
... function last(n: i64) -> (r)
...   c: bool = equal n, 0:i64
...   branch if1 c
...   n.if: i64, i64 = switch c, n
...   if1.else/k: i64 = subtract n.if#1, 1:i64
...   if1.else/l: i64 = call if1.else/k callee="last"
...   r: i64 = merge n.if#0, if1.else/l
... function ite(c: bool, a: i64, b: i64) -> (r)
...   branch if1 c
...   a.if: i64, i64 = switch c, a
...   b.if: i64, i64 = switch c, b
...   r: i64 = merge a.if#0, b.if#1
... '''))
>>> print(dump(Library({name: library.functions[name] for name in ("main", "ite~2")})), end="")
library 1 main=main
<BLANKLINE>
main main(n: i64) -> (r)
  c: bool = less n, 3:i64
  r: i64  = call c, n, n callee="ite~2" late=1
<BLANKLINE>
function ite~2(c: bool, a: i64, n: i64) -> (r)
  branch if1 c
  a.if: i64, i64 = switch c, a
  n.if: i64, i64 = switch c, n
  if1.else/l: i64 = call n.if#1 callee="last"
  r: i64         = merge a.if#0, if1.else/l
>>> count
Counter({'late argument': 1})
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from undertow.ir.budget import check
from undertow.ir.draft import Copy
from undertow.ir.graph import Const, FunctionGraph, Library, Operand, Phase, Port
from undertow.ir.implied import param_node
from undertow.ir.names import Names, in_scope
from undertow.ir.walk import components, entered_by, grouped, origin, reachable
from undertow.ops.strictness import LateCall, Strictness, Uses, live_nodes

_GENERATIONS = 3  # of copies that hand on no less than they were given; then it would go on for ever


def delay_arguments(library: Library) -> tuple[Library, Counter[str]]:
    """The library with late arguments computed by need, and how many there were."""
    strict: set[tuple[str, int]] = set()
    while True:
        try:
            return _Pass(library, strict).run()
        except _Growing as growing:
            strict |= growing.params


class _Growing(Exception):
    """Copies of a function would have copies without end."""

    def __init__(self, params: set[tuple[str, int]]) -> None:
        super().__init__()
        self.params = params


@dataclass(frozen=True, slots=True)
class _Descent:
    """From which function a copy was made, and in which graph its call stood."""

    base: str
    size: int  # of what became part of it
    host: _Descent | None


class _Pass:
    def __init__(self, library: Library, strict: set[tuple[str, int]]) -> None:
        self.library = library
        self.strictness = Strictness(library, strict)
        self.graphs = dict(library.functions)
        self.names = Names(library.functions, "~")
        self.copies: dict[Hashable, str] = {}
        self.descents: dict[str, _Descent] = {}
        self.todo = deque(library.functions)
        self.count: Counter[str] = Counter()

    def run(self) -> tuple[Library, Counter[str]]:
        while self.todo:
            check()
            name = self.todo.popleft()
            while calls := self._innermost(name):
                self._delay(name, calls)
        if not self.count:
            return self.library, self.count
        needed = reachable([self.library.main], lambda name: entered_by(self.graphs[name]))
        return Library(
            {name: self.graphs[name] for name in self.graphs if name in needed}, self.library.main
        ), self.count

    def _innermost(self, name: str) -> list[LateCall]:
        """The calls with late arguments that are not part of another one's late argument."""
        calls = list(self.strictness.late_calls(self.graphs[name]))
        numbers = {call.number for call in calls}
        return [call for call in calls if numbers.isdisjoint(call.nodes)]

    def _delay(self, name: str, calls: Sequence[LateCall]) -> None:
        """Replace calls by calls of copies."""
        host = self.graphs[name]
        uses = Uses(host)
        parts = {call.number: _Part(uses, call) for call in calls}
        callees = {number: self._copy_for(name, part) for number, part in parts.items()}
        moved = {number for call in calls for number in call.nodes}
        live = set(uses.live)
        copy = Copy(host)
        for number, node in enumerate(host.nodes):
            if number in parts:
                call, part = parts[number].call, parts[number]
                kept = [operand for at, operand in enumerate(node.inputs) if at not in call.arguments]
                node = replace(
                    node,
                    inputs=(*kept, *part.free),
                    types=tuple(node.types[index] for index in call.results),
                    attrs=node.attrs | {"callee": callees[number]} | _late(len(call.arguments)),
                )
                copy.add(number, node, call.results)
            elif number not in moved and number in live:
                copy.add(number)
        self.graphs[name] = self.strictness.functions[name] = copy.freeze()

    def _copy_for(self, host: str, part: _Part) -> str:
        """The name of the copy of a callee for a call."""
        base = part.node.attrs.text("callee")
        key = base, part.key
        if key not in self.copies:
            descent = _Descent(base, len(part.call.nodes), self.descents.get(host))
            self._check_growth(descent, part)
            name = self.names.fresh(base.split("~")[0])
            # As it was captured: the copy has all the late calls that the callee has.
            callee = self.library.functions[base]
            copy = replace(_Body(self.strictness, callee, part).write(), name=name)
            copy = replace(copy, regions=(replace(copy.regions[0], name=name), *copy.regions[1:]))
            self.copies[key] = name
            self.graphs[name] = copy
            self.descents[name] = descent
            self.strictness.add(copy, base)
            self.todo.append(name)
            self.count["late argument"] += len(part.call.arguments)
            self.count["result not needed"] += len(callee.results) - len(part.call.results)
            self.count = +self.count
        return self.copies[key]

    def _check_growth(self, descent: _Descent, part: _Part) -> None:
        generations, at = 0, descent.host
        while at is not None:
            generations += at.base == descent.base and at.size <= descent.size
            at = at.host
        if generations >= _GENERATIONS and part.call.arguments:
            raise _Growing({(descent.base, index) for index in part.call.arguments})


def _late(arguments: int) -> dict[str, int]:
    return {"late": arguments} if arguments else {}


class _Part:
    """What computes the late arguments of a call: units in order, and the free variables.

    A unit is a node, or all that a branch is made of.
    """

    def __init__(self, uses: Uses, call: LateCall) -> None:
        self.uses, self.call, self.host = uses, call, uses.graph
        self.node = self.host.nodes[call.number]
        self.region = self.node.region
        self.within = frozenset(call.nodes)
        self.roots: dict[int, Port] = {}
        for index in call.arguments:
            operand = self.node.inputs[index]
            assert isinstance(operand, Port)
            self.roots[index] = operand
        self.units = self._order()
        self.free = list(dict.fromkeys(port for unit in self.units for port in self._taken(unit)))
        self.key = self._key()

    def _order(self) -> list[list[int]]:
        """The units, dependencies first; the order depends only on what leads to what."""
        members = grouped((self._branch_of(number), number) for number in self.call.nodes)

        def before(unit: Hashable) -> list[Hashable]:
            nodes = (self.host.nodes[number] for number in members[unit])
            ports = (port for node in nodes for port in (*node.inputs, *node.controls))
            return [self._branch_of(p.node) for p in ports if isinstance(p, Port) and p.node in self.within]

        roots = [self._branch_of(port.node) for port in self.roots.values()]
        return [sorted(n for unit in units for n in members[unit]) for units in components(roots, before)]

    def _branch_of(self, number: int) -> Hashable:
        """The outermost branch that a node is part of, or itself."""
        node, inner = self.host.nodes[number], self.host.nodes[number].region
        if node.op == "merge":
            side = node.inputs[0]
            assert isinstance(side, Port)
            inner = self.uses.home(side)
        elif node.op == "switch" and inner == self.region:
            return node.inputs[0], inner
        path = self.uses.path(inner, self.region)
        return (self.host.regions[path[-1]].pred, self.region) if path else number

    def _taken(self, unit: Sequence[int]) -> list[Port]:
        """What a unit takes from outside."""
        ports: list[Operand] = []
        for number in unit:
            node = self.host.nodes[number]
            ports += [*node.inputs, *self.preds(number)]
        outside = (port for port in ports if isinstance(port, Port) and port.node not in self.within)
        return [port for port in outside if port not in self.uses.pivots]

    def preds(self, number: int) -> list[Port]:
        """The predicates of the branches within the part that a node needs, the outermost first."""
        node = self.host.nodes[number]
        inner = node.region
        if node.op == "merge":
            side = node.inputs[0]
            assert isinstance(side, Port)
            inner = self.uses.home(side)
        path = self.uses.path(inner, self.region)
        return [pred for region in reversed(path) if (pred := self.host.regions[region].pred) is not None]

    def _key(self) -> Hashable:
        """Equal for parts that compute the same from their free variables."""
        ranks = {number: rank for rank, number in enumerate(number for unit in self.units for number in unit)}
        free = {port: index for index, port in enumerate(self.free)}
        regions: dict[int, int] = {self.region: 0}
        listed: list[Hashable] = []

        def name(operand: Operand) -> Hashable:
            if isinstance(operand, Const):
                return operand
            if operand.node in ranks:
                return "inside", ranks[operand.node], operand.index
            return ("free", free[operand]) if operand in free else ("pivot", place(self.uses.home(operand)))

        def place(region: int) -> int:
            for at in reversed(self.uses.path(region, self.region)):
                if at not in regions:
                    found = self.host.regions[at]
                    assert found.pred is not None and found.parent is not None
                    listed.append((name(found.pred), found.side, regions[found.parent]))
                    regions[at] = len(regions)
            return regions[region]

        for number in ranks:
            node = self.host.nodes[number]
            operands = tuple(map(name, node.inputs)), tuple(map(name, node.controls))
            listed.append((node.op, node.attrs, node.types, place(node.region), *operands, node.span))
        roots = tuple((index, name(port)) for index, port in self.roots.items())
        types = tuple(self.host.type_of(port) for port in self.free)
        return self.call.results, roots, types, tuple(listed)


class _Body:
    """The copy of a callee that computes late arguments where it uses them."""

    def __init__(self, strictness: Strictness, callee: FunctionGraph, part: _Part) -> None:
        self.callee, self.part = callee, part
        self.uses = Uses(callee)
        self.live = live_nodes(strictness, self.uses, part.call.results)
        self.copy = Copy(callee)
        self.draft = self.copy.draft
        self.lazy: dict[Port, int] = {}  # ports of the callee that have the value of a late argument -> its index
        params = {callee.params[index]: index for index in part.call.arguments}
        for number in sorted(self.live | params.keys()):
            node = callee.nodes[number]
            if number in params:
                self.lazy[Port(number)] = params[number]
            elif node.op == "switch" and node.inputs[1] in self.lazy:
                index = self.lazy[node.inputs[1]]  # type: ignore[index]
                self.lazy |= {Port(number, 0): index, Port(number, 1): index}
        self.places = self._find_places(strictness)
        # A port of the host -> region of the draft -> its value there.
        self.values: dict[Port, dict[int, Port]] = {}
        self.inner: dict[int, Copy] = {}  # by region of the callee
        self.made: set[tuple[int, int]] = set()  # (unit, region)

    # -- where -------------------------------------------------------------------------------------------------

    def _find_places(self, strictness: Strictness) -> list[list[int]]:
        """The regions of the callee in which each unit stands; at most one of them runs."""
        needed: dict[Port, tuple[set[int], set[int]]] = {}  # root -> regions that use it: for certain; perhaps
        roots = self.part.roots

        def use(port: Port, is_certain: bool) -> None:
            certain, possible = needed.setdefault(roots[self.lazy[port]], (set(), set()))
            (certain if is_certain else possible).add(self.uses.home(port))

        for number in self.live:
            node = self.callee.nodes[number]
            if Port(number) in self.lazy and node.op == "switch":
                continue
            results = self.uses.results(number) if node.op == "call" else ()
            for position, operand in enumerate(node.inputs):
                if operand in self.lazy:
                    is_certain = node.op != "call" or strictness.is_needed(node, results, position)
                    use(operand, is_certain)  # type: ignore[arg-type]
        for index in self.part.call.results:
            if self.callee.results[index] in self.lazy:
                use(self.callee.results[index], True)
        for region in self.callee.regions:
            if region.pred in self.lazy:
                use(region.pred, True)
        places: list[list[int]] = []
        of_ports: dict[int, list[int]] = {}  # node of the host -> where its users stand
        for unit in reversed(self.part.units):
            certain, possible = set[int](), set[int]()
            for number in unit:
                certain.update(of_ports.get(number, ()))
                for root, (strictly, perhaps) in needed.items():
                    if root.node == number:
                        certain |= strictly
                        possible |= perhaps
            places.append(self._lowest(certain, possible))
            for number in unit:
                node = self.part.host.nodes[number]
                for port in (*node.inputs, *node.controls, *self.part.preds(number)):
                    if isinstance(port, Port):
                        of_ports.setdefault(port.node, []).extend(places[-1])
        return places[::-1]

    def _lowest(self, certain: set[int], possible: set[int]) -> list[int]:
        """Where to compute a value that these regions use: as far down as it is never computed twice."""
        count = len(self.callee.regions)
        below: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        for (_, parent), sides in self.uses.branches.items():
            below[parent].append(sides)
        is_certain = [region in certain for region in range(count)]
        places: list[list[int]] = [[] for _ in range(count)]
        for region in reversed(range(count)):  # inner regions have higher numbers
            is_certain[region] |= any(is_certain[yes] and is_certain[no] for yes, no in below[region])
            using = [pair for pair in below[region] if places[pair[0]] or places[pair[1]]]
            if is_certain[region] or region in possible or len(using) > 1:
                places[region] = [region]
            elif using:
                places[region] = [*places[using[0][0]], *places[using[0][1]]]
        return places[0]

    # -- writing -----------------------------------------------------------------------------------------------

    def write(self) -> FunctionGraph:
        callee, part, copy = self.callee, self.part, self.copy
        copy.add(callee.regions[0].starts[0].node)
        params: list[int] = []
        for index, number in enumerate(callee.params):
            if index not in part.call.arguments:
                node = callee.nodes[number]
                params.append(copy.add(number, replace(node, attrs=node.attrs | {"index": len(params)})))
        for port in part.free:
            node = part.host.nodes[cast(Port, origin(part.host, port)).node]
            type_ = part.host.type_of(port)
            param = self.draft.add(param_node(0, len(params), node.short_name, type_, node.span))
            self.values[port] = {0: Port(param)}
            params.append(param)
        for number in sorted(self.live):
            node = callee.nodes[number]
            if node.op in ("start", "param") or (node.op == "switch" and node.inputs[1] in self.lazy):
                continue
            self._open(node.region)
            for operand in node.inputs:
                if operand in self.lazy:
                    self._bring(operand)  # type: ignore[arg-type]
            copy.add(number)
        results = [callee.results[index] for index in part.call.results]
        for port in results:
            if port in self.lazy:
                self._bring(port)
        return copy.freeze([Phase(tuple(params), tuple(map(copy.port, results)))])

    def _open(self, region: int) -> None:
        """Make the region in the draft; its predicate may be a late argument."""
        for at in reversed(self.uses.path(region, 0)):
            pred = self.callee.regions[at].pred
            if pred is not None and pred in self.lazy and pred not in self.copy.ports:
                self._bring(pred)
        self.copy.place(region)

    def _bring(self, port: Port) -> None:
        """The value of a late argument where the callee uses it; what computes it is written on first use."""
        region = self.uses.home(port)
        self._open(region)
        around = {0, *self.uses.path(region, 0)}
        for unit, places in enumerate(self.places):
            for place in places:
                if place in around and (unit, place) not in self.made:
                    self.made.add((unit, place))
                    self._write_unit(unit, place)
        root = self.part.roots[self.lazy[port]]
        name = self.part.host.nodes[root.node].short_name
        self.copy.ports[port] = self.draft.bring(self.values[root], self.copy.place(region), name)

    def _write_unit(self, unit: int, place: int) -> None:
        part, host, draft = self.part, self.part.host, self.draft
        region = self.copy.place(place)
        if place not in self.inner:
            self.inner[place] = Copy(host, draft, prefix=f"{part.node.short_name}.")
            self.inner[place].places = {part.region: region}
        inner = self.inner[place]
        for number in part.units[unit]:
            node = host.nodes[number]
            for port in (*part.preds(number), *node.inputs, *node.controls):
                if not isinstance(port, Port) or port in inner.ports:
                    continue
                if port in self.values:
                    name = host.nodes[cast(Port, origin(host, port)).node].short_name
                    inner.ports[port] = draft.bring(self.values[port], region, name)
                else:
                    assert port in part.uses.pivots
                    inner.ports[port] = draft.make_pivot(inner.place(part.uses.home(port)))
            name = in_scope(node.short_name, draft.regions, inner.place(node.region))
            inner.add(number, replace(node, name=name))
            for index in range(len(node.types)):
                made = inner.ports[Port(number, index)]
                if node.region == part.region and node.op != "switch":
                    self.values.setdefault(Port(number, index), {})[region] = made
