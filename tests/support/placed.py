"""Engines that run a graph in parts: a random placement, tokens that arrive in a random order."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

from undertow.engines.reference.placed import PlacedPlan
from undertow.ir import spec
from undertow.ir.graph import Node, StaticGraph
from undertow.ops.effects import is_stateful
from undertow.ops.op import find
from undertow.passes.cut import cut
from undertow.passes.place import device_names, places_of
from undertow.types import Type


def type_rule(node: Node, types: Sequence[Type]) -> tuple[Type, ...]:
    return find(node.op).type(types, node.attrs)


def homes_by_chance(graph: StaticGraph, count: int, chance: random.Random) -> list[int]:
    """A part for every node; variables are in one."""
    keep = chance.choice((0.0, 0.5, 0.9))  # how often a node is where the one before it is
    homes = [0]
    for _ in graph.nodes[1:]:
        homes.append(homes[-1] if chance.random() < keep else chance.randrange(count))
    return [0 if is_stateful(node.op) else home for node, home in zip(graph.nodes, homes, strict=True)]


class Placed:
    """The reference engine, of a cut graph."""

    is_lazy = False
    takes_hoisted = True
    forms_waves = False

    def __init__(self, seed: int, parts: int) -> None:
        self.name = f"placed-{seed}"
        self.seed = seed
        self.parts = parts

    def homes(self, graph: StaticGraph, chance: random.Random) -> list[int]:
        return homes_by_chance(graph, self.parts, chance)

    def plan(self, graph: StaticGraph) -> PlacedPlan:
        chance = random.Random(self.seed)
        placed = cut(graph, self.homes(graph, chance), self.parts)
        for part in placed.parts:
            spec.check(part.graph, type_rule)
        choose: Callable[[int], int] = chance.randrange
        return PlacedPlan(placed, choose)


class PlacedByDevice(Placed):
    """The same, with its parts where the program says, or the attributes of a library."""

    def __init__(self, seed: int, workers: int, forms_waves: bool = False) -> None:
        super().__init__(seed, workers + 1)
        self.forms_waves = forms_waves
        self.name = f"devices-{seed}-{forms_waves}"
        self.last: PlacedPlan | None = None

    def homes(self, graph: StaticGraph, chance: random.Random) -> list[int]:
        return places_of(graph, device_names(self.parts - 1))

    def plan(self, graph: StaticGraph) -> PlacedPlan:
        self.last = super().plan(graph)
        return self.last
