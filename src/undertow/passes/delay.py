"""Compute late arguments by need: where the callee uses them, and only then.

A call with a late argument (`ops/late.py` says which) gets a copy of its callee. What computes the argument
becomes part of the copy: it stands in the branch that uses the argument, and its free variables are parameters instead.
So `ite(n <= 1, 1, n * fac(n - 1))` calls a copy of `ite` that has `n` for a parameter and `n * fac(n - 1)` in a branch.
A copy that hands a late argument on is a caller like any other.

Nothing is computed twice: a late argument has one user, and what stands on both sides of a branch runs on one. If
several branches use it, it is computed before them, in one that is taken if any of them is (`ops/funnel.py`). A
function that hands on more than it was given would have copies without end: there the argument is not late. A result
that a call does not use is not computed either, if that saves work that may not end. An activation of the copy counts
as one of the callee.

Devices: what computes a late argument keeps its own; without one it follows the copy, which is where its call is.

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

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import cast

from undertow.ir.budget import check
from undertow.ir.draft import Copy
from undertow.ir.graph import FunctionGraph, Library, Phase, Port
from undertow.ir.implied import param_node
from undertow.ir.names import Names, in_scope
from undertow.ir.walk import entered_by, origin, ports_of, reachable
from undertow.ops.cones import Uses
from undertow.ops.late import LateCall, late_calls, may_have_late_calls
from undertow.ops.strictness import Strictness

_GENERATIONS = 3  # of copies that hand on no less than they were given; then it would go on for ever


def delay_arguments(library: Library) -> tuple[Library, Counter[str]]:
    """The library with late arguments computed by need, and how many there were."""
    delayed = delay(library)
    return delayed.library, delayed.count


@dataclass(frozen=True, slots=True)
class Delayed:
    """What the pass has done: the new library, how much that was, and to which calls of the old one."""

    library: Library
    count: Counter[str]
    calls: tuple[tuple[str, LateCall], ...]  # with the function that each stands in
    strictness: Strictness
    growing: frozenset[tuple[str, int]]  # parameters (function, index) that would have copies without end


def delay(library: Library) -> Delayed:
    """Compute late arguments by need; all that is known of them then."""
    strict: set[tuple[str, int]] = set()
    while True:
        work = _Pass(library, strict)
        try:
            changed, count = work.run()
        except _Growing as growing:
            strict |= growing.params
        else:
            return Delayed(changed, count, tuple(work.calls), work.strictness, frozenset(strict))


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
        self.count: Counter[str] = Counter()
        self.calls: list[tuple[str, LateCall]] = []  # of the functions that were there before

    def run(self) -> tuple[Library, Counter[str]]:
        todo = list(self.library.functions)
        for name in todo:  # it grows meanwhile
            check()
            before = len(self.copies)
            self._delay(name)
            todo += [*self.copies.values()][before:]
        if not self.count:
            return self.library, self.count
        needed = reachable([self.library.main], lambda name: entered_by(self.graphs[name]))
        graphs = {name: graph for name, graph in self.graphs.items() if name in needed}
        return Library(graphs, self.library.main), +self.count

    def _delay(self, name: str) -> None:
        """Replace calls in a graph by calls of copies."""
        graph = self.graphs[name]
        if not may_have_late_calls(self.strictness, graph):
            return
        uses = Uses(graph)
        for call in late_calls(self.strictness, uses):
            if name in self.library.functions:
                self.calls.append((name, call))
            kept = [operand for index, operand in enumerate(call.node.inputs) if index not in call.arguments]
            late = {"late": len(call.arguments)} if call.arguments else {}
            attrs = call.node.attrs | {"callee": self._copy_for(name, call), **late}
            uses.replace_call(
                call.number, replace(call.node, inputs=(*kept, *call.free), attrs=attrs), call.cone, call.results
            )
        if not uses.kept:
            return
        copy = Copy(uses.graph)
        for number in sorted(uses.live):
            node = uses.graph.nodes[number]
            copy.add(number, replace(node, types=uses.types(number)), uses.kept.get(number))
        # Copies are made of functions as they were captured, so that a copy has all the late calls that its callee has.
        self.graphs[name] = copy.freeze()

    def _copy_for(self, host: str, call: LateCall) -> str:
        """The name of the copy of a callee for a call."""
        key = call.key()
        if key not in self.copies:
            base = call.node.attrs.text("callee")
            descent = _Descent(base, len(call.cone), self.descents.get(host))
            self._check_growth(descent, call)
            name = self.names.fresh(base.split("~")[0])
            copy = _Body(call).write()
            regions = replace(copy.regions[0], name=name), *copy.regions[1:]
            self.copies[key] = name
            self.graphs[name] = replace(copy, name=name, regions=regions)
            self.descents[name] = descent
            self.strictness.add(self.graphs[name], base)
            self.count["late argument"] += len(call.arguments)
            self.count["result not needed"] += len(call.callee.results) - len(call.results)
        return self.copies[key]

    def _check_growth(self, descent: _Descent, call: LateCall) -> None:
        generations, at = 0, descent.host
        while at is not None:
            generations += at.base == descent.base and at.size <= descent.size
            at = at.host
        if generations >= _GENERATIONS and call.arguments:
            raise _Growing({(descent.base, index) for index in call.arguments})


class _Body:
    """The copy of a callee that computes late arguments where it uses them."""

    def __init__(self, call: LateCall) -> None:
        self.call, self.callee, self.host = call, call.callee, call.host
        self.copy = Copy(call.callee)
        self.draft = self.copy.draft
        # A port of the host -> region of the draft -> its value there.
        self.values: dict[Port, dict[int, Port]] = {}
        self.inner: dict[int, Copy] = {}  # by region of the callee
        self.made: set[tuple[int, int]] = set()  # (unit, region)

    def write(self) -> FunctionGraph:
        callee, call, copy = self.callee, self.call, self.copy
        copy.add(callee.regions[0].starts[0].node)
        params: list[int] = []
        for index, number in enumerate(callee.params):
            if index not in call.arguments:
                node = callee.nodes[number]
                params.append(copy.add(number, replace(node, attrs=node.attrs | {"index": len(params)})))
        for port in call.free:
            node = self.host.nodes[cast(Port, origin(self.host, port)).node]
            type_ = self.host.type_of(port)
            param = self.draft.add(param_node(0, len(params), node.short_name, type_, node.span))
            self.values[port] = {0: Port(param)}
            params.append(param)
        for number in sorted(call.entered.live):
            node = callee.nodes[number]
            if node.op in ("start", "param") or (node.op == "switch" and node.inputs[1] in call.values):
                continue
            self._open(node.region)
            for port in ports_of(node.inputs):
                if port in call.values:
                    self._bring(port)
            copy.add(number)
        results = [callee.results[index] for index in call.results]
        for port in results:
            if port in call.values:
                self._bring(port)
        return copy.freeze([Phase(tuple(params), tuple(map(copy.port, results)))])

    def _open(self, region: int) -> None:
        """Make a region in the draft; its predicate may be a late argument."""
        for at in reversed(self.call.entered.uses.path(region, 0)):
            pred = self.callee.regions[at].pred
            if pred is not None and pred in self.call.values and pred not in self.copy.ports:
                self._bring(pred)
        self.copy.place(region)

    def _bring(self, port: Port) -> None:
        """The value of a late argument where the callee uses it; what computes it is written on first use."""
        region = self.call.entered.uses.home(port)
        self._open(region)
        around = {0, *self.call.entered.uses.path(region, 0)}
        for unit, places in enumerate(self.call.places):
            for place in places:
                if place in around and (unit, place) not in self.made:
                    self.made.add((unit, place))
                    self._write_unit(unit, place)
        root = self.call.roots[self.call.values[port]]
        name = self.host.nodes[root.node].short_name
        self.copy.ports[port] = self.draft.bring(self.values[root], self.copy.place(region), name)

    def _write_unit(self, unit: int, place: int) -> None:
        call, host, draft = self.call, self.host, self.draft
        region = self.copy.place(place)
        if place not in self.inner:
            self.inner[place] = Copy(host, draft, prefix=f"{call.node.short_name}.")
            self.inner[place].places = {call.region: region}
        inner = self.inner[place]
        for number in call.units[unit]:
            node = host.nodes[number]
            for port in ports_of((*call.uses.preds(number, call.region), *node.inputs, *node.controls)):
                if port in inner.ports:
                    continue
                if port in self.values:
                    name = host.nodes[cast(Port, origin(host, port)).node].short_name
                    inner.ports[port] = draft.bring(self.values[port], region, name)
                else:
                    assert port in call.uses.pivots
                    inner.ports[port] = draft.make_pivot(inner.place(call.uses.home(port)))
            name = in_scope(node.short_name, draft.regions, inner.place(node.region))
            types, kept = call.uses.types(number), call.uses.kept.get(number)
            inner.add(number, replace(node, name=name, types=types), kept)
            if node.region == call.region and node.op != "switch":
                for index in range(len(node.types)) if kept is None else kept:
                    made = inner.ports[Port(number, index)]
                    self.values.setdefault(Port(number, index), {})[region] = made
