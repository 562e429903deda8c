"""What a pass did: how often each rule was applied, and the number of nodes before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from undertow.ir.graph import Library


@dataclass(frozen=True, slots=True)
class Report:
    """What a pass did: how often each rule was applied, and the number of nodes before and after."""

    counts: Mapping[str, int] = field(default_factory=dict)
    before: int = 0
    after: int = 0
    name: str = "simplify"

    def __bool__(self) -> bool:
        """Has anything changed?"""
        return bool(self.counts)

    def __str__(self) -> str:
        lines = [f"{self.name}: {self.before} nodes -> {self.after}"]
        width = max((len(name) for name in self.counts), default=0)
        lines += [f"  {name:{width}} {count:5}" for name, count in self.counts.items()]
        return "\n".join(lines)


def size(library: Library) -> int:
    """How many nodes a library has."""
    return sum(len(graph.nodes) for graph in library.functions.values())
