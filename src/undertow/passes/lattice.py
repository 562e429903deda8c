"""The lattice of constant propagation: unknown, one constant, varies.

It is optimistic, since recursive calls hand on what they were given: a variable is unknown until some source has a
value, has that value while all sources agree, and varies otherwise.

>>> propagate({("x",): [1, ("y",)], ("y",): [("x",)], ("z",): [("y",), 2]})
{('x',): 1, ('y',): 1, ('z',): VARIES}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from undertow.ir.walk import fixpoint


class Varies:
    """The bottom of the lattice: not one value."""

    def __repr__(self) -> str:
        return "VARIES"


VARIES = Varies()


def propagate(sources: Mapping[Any, Sequence[Any]]) -> dict[Any, Any]:
    """The value, or VARIES, of each variable with a known source. Sources are values, or other variables (tuples)."""
    known: dict[Any, Any] = {}
    users: dict[Any, list[Any]] = {}
    for variable, listed in sources.items():
        for source in listed:
            if isinstance(source, tuple):
                users.setdefault(source, []).append(variable)

    def update(variable: Any) -> bool:
        met: Any = None
        for source in sources[variable]:
            value = known.get(source) if isinstance(source, tuple) else source
            if value is not None and met is not None and value != met:
                met = VARIES
            elif met is None:
                met = value
        has_changed = met is not None and known.get(variable) != met
        if has_changed:
            known[variable] = met
        return has_changed

    fixpoint(sources, update, lambda variable: users.get(variable, ()))
    return known
