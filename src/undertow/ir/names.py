"""Names of nodes and graphs: within a region, and fresh ones. A name that is taken gets a numeric suffix.

>>> names = Names(["f"])
>>> [names.fresh("f"), names.fresh("f"), names.fresh("g")]
['f_2', 'f_3', 'g']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from undertow.ir.graph import Region


def in_scope(name: str, regions: Sequence[Region], region: int) -> str:
    """A name with that of the branch before it that its node stands in."""
    return name if region == 0 else f"{regions[region].name}/{name}"


class Names:
    """The names that are taken. Numbers are appended after `_` for nodes, after `~` for graphs and variables."""

    def __init__(self, taken: Iterable[str] = (), separator: str = "_") -> None:
        self._counts = dict.fromkeys(taken, 1)  # name -> the last number appended to it
        self._separator = separator

    def __contains__(self, name: str) -> bool:
        return name in self._counts

    def fresh(self, name: str) -> str:
        """The name itself, or with the next free number; it is then taken."""
        fresh = name
        while fresh in self._counts:
            self._counts[name] += 1
            fresh = f"{name}{self._separator}{self._counts[name]}"
        self._counts[fresh] = 1
        return fresh
