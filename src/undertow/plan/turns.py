"""Turns: how often a branch is entered in one phase, and what happens in it each time.

Branches on one predicate are one branch. So a value may leave it, be used outside, and the result come in again: then
the branch is entered again, in another *turn*, with what it computed in the turn before.

    if p: x = f(a)          turn 0 of the branch on p
    y = x + 1
    if p: z = g(y)          turn 1 of the same branch

Two branches may also wait for different parts of each other. Where whole branches wait in a cycle, each is divided:
the turn of an element is the largest number of exits from branches of the cycle on a path to it. That is rare: most
graphs are only checked.

A branch is also divided where a call in it would wait for a value that the call does not need, and that comes from
another call:

    if p: best = max(best, f(a))    turn 0: f(a); turn 1: max
    if q: best = max(best, f(b))    the same, so both calls are made at once
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import TypeVar

from undertow.ir.graph import Port, StaticGraph

Pair = tuple[Port, int]  # a branch: its predicate and its enclosing region


@dataclass(slots=True, eq=False)
class Element:
    """An item of a region that is not a branch; or a switch or merge at the boundary of one."""

    region: int
    phase: int
    end_of: Pair | None = None
    leaves: bool = False  # it is a merge: a value leaves the branch
    blocks: bool = False  # it is a call, or a loop or map that makes calls
    needs: list[Element] = field(default_factory=list)
    turn: int = 0  # of the enclosing branch, or the one that it starts or ends


class Turns:
    """Divides branches into turns; afterwards every element has its turn."""

    def __init__(self, graph: StaticGraph, elements: Sequence[Element]) -> None:
        self.graph = graph
        self.elements = elements
        self.around: dict[tuple[Pair, int, int], int] = {}  # (branch, phase, turn) -> the turn of the enclosing branch
        standing: dict[tuple[int, int], list[Element]] = {}
        for element in elements:
            standing.setdefault((element.region, element.phase), []).append(element)
        calling = self._calling()
        for region, phase in sorted(standing):  # outer regions come before inner ones
            here = standing[region, phase]
            if not any(element.end_of for element in here):
                continue  # no branch stands here
            cyclic = [
                name
                for turn in sorted({element.turn for element in here})
                for name in self._cyclic([element for element in here if element.turn == turn])
            ]
            if cyclic:
                self._divide(region, phase, {name for name in cyclic if isinstance(name, tuple)})
            elif calling[region, phase] > 1 and any(_calls(element, calling) for element in here):
                self._separate_calls(region, phase, calling)

    def outer(self, pair: Pair, phase: int, turn: int) -> int:
        """The turn of the region around a branch in which a turn of the branch happens."""
        inherited = turn if self.graph.regions[pair[1]].kind == "branch" else 0
        return self.around.get((pair, phase, turn), inherited)

    def _cyclic(self, standing: Sequence[Element]) -> set[Pair | Element]:
        """The items in dependence cycles if each branch is one item, which waits for all its inputs."""
        here = set(standing)
        before: dict[Pair | Element, set[Pair | Element]] = {}
        for element in standing:
            name = element.end_of or element
            waits = before.setdefault(name, set())
            if not element.leaves:
                waits |= {needed.end_of or needed for needed in element.needs if needed in here}
        return _in_cycles(before)

    def _divide(self, region: int, phase: int, pairs: set[Pair]) -> None:
        """Divide branches of a region that wait for each other."""
        members = self._members(region, phase)
        depth = _count(members, lambda element: element.leaves and element.end_of in pairs and element.region == region)
        self._number(phase, {pair: _inside(members, pair) for pair in pairs}, depth)

    def _separate_calls(self, region: int, phase: int, calling: Mapping[object, int]) -> None:
        """Divide branches of a region that wait for calls which the calls in them do not need."""
        members = self._members(region, phase)
        rounds = _count(members, lambda element: element.blocks)
        pairs = {element.end_of for element in members if element.region == region and _calls(element, calling)}
        for pair in pairs:
            assert pair is not None
            inside = _inside(members, pair)
            begins = sorted({rounds[e] for e in inside if e.end_of == pair and e.region == region and not e.leaves})
            calls = {bisect_right(begins, rounds[element]) for element in inside if element.blocks}
            cuts = sorted(begins[at] for at in calls if at < len(begins))
            if cuts:
                self._number(phase, {pair: inside}, {e: bisect_right(cuts, rounds[e]) for e in inside})

    def _calling(self) -> Counter[object]:
        """How many calls a branch makes in a phase, and how many items of a region are or contain calls."""
        calling: Counter[object] = Counter()
        for element in self.elements:
            if not element.blocks:
                continue
            at: int | None = element.region
            is_new = True
            while at is not None:
                row = self.graph.regions[at]
                calling[at, element.phase] += is_new
                if row.kind != "branch" or row.pred is None or row.parent is None:
                    break
                is_new = not calling[row.pred, row.parent, element.phase]
                calling[row.pred, row.parent, element.phase] += 1
                at = row.parent
        return calling

    def _members(self, region: int, phase: int) -> dict[Element, Pair | None]:
        """The elements of a region in a phase, with the branch that each belongs to."""
        members = {element: self._branch_in(region, element) for element in self.elements if element.phase == phase}
        return {element: pair for element, pair in members.items() if pair is not None or element.region == region}

    def _number(self, phase: int, branches: Mapping[Pair, list[Element]], depth: Mapping[Element, int]) -> None:
        """Number the turns of branches, by the depth of what happens in them."""
        for pair, inside in branches.items():
            places = sorted({(element.turn, depth[element]) for element in inside})
            number = {place: turn for turn, place in enumerate(places)}
            for (outer_turn, _), turn in number.items():
                self.around[pair, phase, turn] = outer_turn
            for element in inside:
                element.turn = number[element.turn, depth[element]]

    def _branch_in(self, region: int, element: Element) -> Pair | None:
        """The branch in a region that an element belongs to, however deep inside."""
        if element.region == region:
            return element.end_of
        at: int | None = element.region
        while at is not None and at > region:
            row = self.graph.regions[at]
            if row.parent == region:
                return (row.pred, region) if row.kind == "branch" and row.pred is not None else None
            at = row.parent if row.kind == "branch" else None
        return None


def _calls(element: Element, calling: Mapping[object, int]) -> bool:
    """Is it at the boundary of a branch that makes calls?"""
    return element.end_of is not None and (*element.end_of, element.phase) in calling


def _inside(members: Mapping[Element, Pair | None], pair: Pair) -> list[Element]:
    return [element for element, branch in members.items() if branch == pair]


def _count(members: Collection[Element], counts: Callable[[Element], bool]) -> dict[Element, int]:
    """For each element, the largest number of elements that count on a path to it."""
    depth: dict[Element, int] = {}
    order = TopologicalSorter({e: [n for n in e.needs if n in members] for e in members})
    for element in order.static_order():
        depth[element] = max(
            (depth[needed] + counts(needed) for needed in element.needs if needed in members), default=0
        )
    return depth


T = TypeVar("T")


def _in_cycles(before: Mapping[T, set[T]]) -> set[T]:
    """The nodes on, or between, cycles: those left after removing what waits for nothing, from both ends."""
    edges = before
    for _ in range(2):
        sorter, left = TopologicalSorter(edges), set(edges)
        with suppress(CycleError):
            sorter.prepare()
        while ready := sorter.get_ready():  # until only cycles are left
            left.difference_update(ready)
            sorter.done(*ready)
        turned: dict[T, set[T]] = {name: set() for name in left}
        for name in left:
            for needed in edges[name] & left:
                turned[needed].add(name)
        edges = turned
    return set(edges)
