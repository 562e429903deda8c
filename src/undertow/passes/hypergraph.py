"""Divides weighted vertices among parts, so that little crosses between them: a multilevel partition of a hypergraph.

A *net* says who makes something and who needs it: each part with a vertex that needs it (a *pin*) receives from each
maker (a *source*) in another part, which costs the weight of the source. Vertices are merged along heavy nets until
few are left (coarsening); these are divided; on the way back, vertices are moved where that lowers the cost or evens
the work, the best next move first even if it is for the worse, and what did not help is taken back (Kernighan and Lin,
Fiduccia and Mattheyses). Near linear in the size of the nets. Ties go to the lower number, so equal questions have
equal answers. The first `count` vertices are anchors: each is the part of its number, and stays.

>>> nets = [Net({2: 9.0}, (3,)), Net({3: 1.0}, (4,)), Net({4: 9.0}, (5,))]
>>> divide([0.0, 0.0, 1.0, 1.0, 1.0, 1.0], nets, 2, [1.1])
[[0, 1, 0, 0, 1, 1]]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from undertow.ir.budget import check, paced

_WIDE = 32  # members of a net: wider ones are not followed when vertices are merged, nor when one of them has moved
_FEW = 24  # vertices for each part, below which nothing is merged any more
_PASSES = 4  # of moves, at each level
_PATIENCE = 48  # moves in a row that may be for the worse


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """What is made by some vertices, each with what one crossing of its own costs, and who needs it."""

    sources: Mapping[int, float]
    pins: tuple[int, ...]

    def members(self) -> set[int]:
        return {*self.sources, *self.pins}


def divide(work: Sequence[float], nets: Sequence[Net], count: int, slacks: Iterable[float]) -> list[list[int]]:
    """The part of each vertex, by slack: no part has more than that times its share of the work, if vertices allow."""
    share = sum(work) / count
    levels = [_Level(work, nets, count)]
    merged: list[list[int]] = []  # by level: the vertex of the next one that each became
    while len(levels[-1].work) > _FEW * count + count:
        names = _merge(levels[-1], share / 4)
        if max(names) + 1 > 0.9 * len(names):
            break
        merged.append(names)
        levels.append(_coarser(levels[-1], names))
    return [_divided(levels, merged, share, slack * share) for slack in slacks]


def _divided(levels: Sequence[_Level], merged: Sequence[Sequence[int]], share: float, limit: float) -> list[int]:
    """The best parts found for the last level, and from there back to the first."""
    top = levels[-1]
    starts = [_State(top, parts, limit) for parts in (_in_order(top, share), _grown(top, share), [0] * len(top.work))]
    for state in starts:
        state.pin_anchors()
        state.refine()
    parts = min(starts, key=lambda state: (round(state.excess(), 6), state.cost())).parts
    for level, names in zip(reversed(levels[:-1]), reversed(merged), strict=True):
        state = _State(level, [parts[name] for name in names], limit)
        state.refine()
        parts = state.parts
    return parts


def improve(work: Sequence[float], nets: Sequence[Net], count: int, slack: float, parts: Sequence[int]) -> list[int]:
    """The same, from some parts on, without merging."""
    state = _State(_Level(work, nets, count), list(parts), slack * sum(work) / count)
    state.pin_anchors()
    state.refine()
    return state.parts


class _Level:
    """Vertices and nets."""

    def __init__(self, work: Sequence[float], nets: Sequence[Net], count: int) -> None:
        self.work = work
        self.nets = nets
        self.count = count
        self.of: list[list[int]] = [[] for _ in work]  # the nets of each vertex
        for number, net in enumerate(paced(nets)):
            for vertex in sorted(net.members()):
                self.of[vertex].append(number)


# --------------------------------------------------------------------------------------------------------------
# Coarsening


def _merge(level: _Level, most: float) -> list[int]:
    """A smaller number for each vertex: pairs with much between them have the same. None gets more work than `most`."""
    partner = [-1] * len(level.work)
    sizes = [len(net.members()) for net in level.nets]
    totals = [sum(net.sources.values()) for net in level.nets]
    for vertex in paced(range(level.count, len(level.work))):
        if partner[vertex] >= 0:
            continue
        bonds: dict[int, float] = {}
        for number in level.of[vertex]:
            if sizes[number] <= _WIDE:
                for other in level.nets[number].members():
                    bonds[other] = bonds.get(other, 0.0) + totals[number] / (sizes[number] - 1)
        best, strongest = -1, 0.0
        for other in sorted(bonds):
            if other == vertex or other < level.count or partner[other] >= 0:
                continue
            if bonds[other] > strongest and level.work[vertex] + level.work[other] <= most:
                best, strongest = other, bonds[other]
        if best >= 0:
            partner[vertex], partner[best] = best, vertex
    names, count = list(range(level.count)), level.count
    for vertex in range(level.count, len(level.work)):
        if 0 <= partner[vertex] < vertex:
            names.append(names[partner[vertex]])
        else:
            names.append(count)
            count += 1
    return names


def _coarser(level: _Level, names: Sequence[int]) -> _Level:
    work = [0.0] * (max(names) + 1)
    for vertex, name in enumerate(names):
        work[name] += level.work[vertex]
    return _Level(work, joined(level.nets, names), level.count)


def joined(nets: Sequence[Net], names: Sequence[int]) -> list[Net]:
    """The nets between renamed vertices, those with the same pins as one; what is within one vertex costs nothing."""
    made: dict[tuple[int, ...], dict[int, float]] = {}
    for net in paced(nets):
        pins = tuple(sorted({names[pin] for pin in net.pins}))
        sources: dict[int, float] = {}
        for vertex, weight in net.sources.items():
            sources[names[vertex]] = sources.get(names[vertex], 0.0) + weight
        if len({*pins, *sources}) > 1:
            total = made.setdefault(pins, {})
            for vertex, weight in sources.items():
                total[vertex] = total.get(vertex, 0.0) + weight
    return [Net(sources, pins) for pins, sources in made.items()]


# --------------------------------------------------------------------------------------------------------------
# First parts


def _in_order(level: _Level, share: float) -> list[int]:
    """Parts that are runs of vertices, in the order of the program."""
    parts, done = list(range(level.count)), sum(level.work[: level.count])
    for vertex in range(level.count, len(level.work)):
        parts.append(min(int((done + level.work[vertex] / 2) / share) if share else 0, level.count - 1))
        done += level.work[vertex]
    return parts


def _grown(level: _Level, share: float) -> list[int]:
    """Parts that grow from the heaviest vertex that is left, each time by what has most to do with them."""
    parts = [-1] * len(level.work)
    heaviest = iter(sorted(range(level.count, len(parts)), key=lambda vertex: -level.work[vertex]))
    sizes = [len(net.members()) for net in level.nets]
    for part in range(level.count - 1, 0, -1):
        load, bonds = level.work[part], dict[int, float]()
        heap = [(0.0, part)]
        while load < share:
            if heap:
                _, vertex = heappop(heap)
            else:
                vertex = next((other for other in heaviest if parts[other] < 0), -1)
                if vertex < 0:
                    break
            if parts[vertex] >= 0 or (vertex < level.count and vertex != part):
                continue
            parts[vertex] = part
            if vertex != part:
                load += level.work[vertex]
            for number in level.of[vertex]:
                net = level.nets[number]
                if sizes[number] <= _WIDE:
                    for other in sorted(net.members()):
                        if parts[other] < 0 and other >= level.count:
                            bonds[other] = bonds.get(other, 0.0) + sum(net.sources.values()) / (sizes[number] - 1)
                            heappush(heap, (-bonds[other], other))
    return [max(part, 0) for part in parts]


# --------------------------------------------------------------------------------------------------------------
# Moves


class _State:
    """Parts of all vertices, and what follows from them."""

    def __init__(self, level: _Level, parts: list[int], limit: float) -> None:
        self.level = level
        self.parts = parts
        self.limit = limit
        self.loads: list[float] = []
        self.pins: list[list[int]] = []  # by net and part: how many pins
        self.made: list[list[float]] = []  # by net and part: the weight of the sources
        self.totals = [sum(net.sources.values()) for net in level.nets]
        self.is_pin = [frozenset(net.pins) for net in level.nets]
        self.sizes = [len(net.members()) for net in level.nets]
        self.count_all()

    def count_all(self) -> None:
        count = self.level.count
        self.loads = [0.0] * count
        for part, work in zip(self.parts, self.level.work, strict=True):
            self.loads[part] += work
        self.pins = [[0] * count for _ in self.level.nets]
        self.made = [[0.0] * count for _ in self.level.nets]
        for net, pins, made in zip(self.level.nets, self.pins, self.made, strict=True):
            for pin in net.pins:
                pins[self.parts[pin]] += 1
            for vertex, weight in net.sources.items():
                made[self.parts[vertex]] += weight

    def pin_anchors(self) -> None:
        self.parts[: self.level.count] = range(self.level.count)
        self.count_all()

    def cost(self) -> float:
        """What crosses."""
        return sum(
            total - made
            for total, pins, makers in zip(self.totals, self.pins, self.made, strict=True)
            for count, made in zip(pins, makers, strict=True)
            if count
        )

    def excess(self) -> float:
        """Work above the limit."""
        return sum(max(load - self.limit, 0.0) for load in self.loads)

    def change(self, vertex: int, to: int) -> float:
        """How much more crosses if a vertex moves."""
        before, more = self.parts[vertex], 0.0
        for number in self.level.of[vertex]:
            pins, made, total = self.pins[number], self.made[number], self.totals[number]
            weight, is_pin = self.level.nets[number].sources.get(vertex, 0.0), vertex in self.is_pin[number]
            if pins[before]:
                more -= total - made[before]
            if pins[to]:
                more -= total - made[to]
            if pins[before] - is_pin:
                more += total - made[before] + weight
            if pins[to] + is_pin:
                more += total - made[to] - weight
        return more

    def move(self, vertex: int, to: int) -> None:
        before, work = self.parts[vertex], self.level.work[vertex]
        for number in self.level.of[vertex]:
            if vertex in self.is_pin[number]:
                self.pins[number][before] -= 1
                self.pins[number][to] += 1
            weight = self.level.nets[number].sources.get(vertex, 0.0)
            self.made[number][before] -= weight
            self.made[number][to] += weight
        self.loads[before] -= work
        self.loads[to] += work
        self.parts[vertex] = to

    def best_move(self, vertex: int) -> tuple[float, int, int] | None:
        """The cheapest move of a vertex that keeps within the limit, or leaves a part that is above it."""
        before, work, best = self.parts[vertex], self.level.work[vertex], None
        for to in range(self.level.count):
            over = self.loads[before] > self.limit and self.loads[to] + work < self.loads[before]
            if to == before or not (over or self.loads[to] + work <= self.limit):
                continue
            found = self.change(vertex, to), vertex, to
            if best is None or found < best:
                best = found
        return best

    def is_at_edge(self, vertex: int) -> bool:
        """Does it have to do with several parts, or is its part too full?"""
        part = self.parts[vertex]
        if self.loads[part] > self.limit:
            return True
        for number in self.level.of[vertex]:
            if self.pins[number][part] < len(self.is_pin[number]) or self.made[number][part] < self.totals[number]:
                return True
        return False

    def refine(self) -> None:
        for _ in range(_PASSES):
            if not self.improve():
                return

    def improve(self) -> bool:
        """Each vertex moves at most once; what came after the best state is taken back. Is it better than before?"""
        heap = [
            found
            for vertex in paced(range(self.level.count, len(self.parts)))
            if self.is_at_edge(vertex) and (found := self.best_move(vertex))
        ]
        heapify(heap)
        moved: list[tuple[int, int]] = []  # vertices, with the part before
        has_moved = [False] * len(self.parts)
        start = best = (self.excess(), 0.0)
        cost, kept = 0.0, 0
        while heap and len(moved) - kept < _PATIENCE:
            known, vertex, _ = heappop(heap)
            if has_moved[vertex]:
                continue
            found = self.best_move(vertex)
            if found is None:
                continue
            if found[0] > known:  # others have moved since
                heappush(heap, found)
                continue
            more, _, to = found
            if not len(moved) % 256:
                check()
            moved.append((vertex, self.parts[vertex]))
            has_moved[vertex] = True
            self.move(vertex, to)
            cost += more
            here = (self.excess(), cost)
            if here[0] < best[0] - 1e-9 or (here[0] <= best[0] + 1e-9 and here[1] < best[1] - 1e-9):
                best, kept = here, len(moved)
            for number in self.level.of[vertex]:
                if self.sizes[number] <= _WIDE:
                    for other in sorted(self.level.nets[number].members()):
                        if other >= self.level.count and not has_moved[other]:
                            found = self.best_move(other)
                            if found is not None:
                                heappush(heap, found)
        for vertex, before in reversed(moved[kept:]):
            self.move(vertex, before)
        return best < start
