"""The structural operators, one row each: calls, switches, merges, loops, maps. The catalogue (`ops`) has all others.

Library graphs have calls, loops and maps as single nodes. In static graphs these are sites, and each of their operators
moves one value between frames: into a body, back from it, or down from an enclosing frame. The sets of names that the
rest of the package uses are derived from the rows.

>>> STATIC["gather"].role, STATIC["gather"].site
(<Role.BACK: 9>, 'map')
>>> sorted(STARTS)
['call_start', 'enter_start', 'fan_start']
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple


class Role(Enum):
    """The purpose of an operator."""

    SOURCE = auto()  # comes from outside: the start token, an input, a parameter
    SWITCH = auto()
    MERGE = auto()  # joins the sides of a branch; in static graphs also what sites send as one parameter
    ENTER = auto()  # library: enters another graph
    LINK = auto()  # library: continues what a call or map, its first input, has entered
    SHARED = auto()  # library: reads a value of the run
    START = auto()  # static: the start token of a site; output 0 is for the body, output 1 orders the way back
    ARGUMENT = auto()  # static: its value is for the body entered
    BACK = auto()  # static: its value comes from the body entered
    NEXT = auto()  # static: its value is for the next iteration
    HOIST = auto()  # static: its value is for all that runs below an entry
    READ = auto()  # static: its value comes from a frame around: the parent's, the entry's, main's
    COLLECT = auto()  # adds to a sum of the entry
    COLLECTED = auto()  # takes such a sum, where the entry was made
    RULE = auto()  # library: part of a derivative that the user wrote (custom.py)
    SOW = auto()  # library: gives a value to the collector around, at a place
    SEND = auto()  # static, of one part: its value is for another part
    RECV = auto()  # static, of one part: its value comes from another part, under the same tag


class Structural(NamedTuple):
    """An operator of libraries or of static graphs."""

    name: str
    role: Role
    inputs: int | None = None  # None: any number
    outputs: int | None = None
    integers: tuple[str, ...] = ()  # attributes that it must have
    site: str = ""  # the kind of its site: "call", "loop" or "map"; in a library, of the site that it becomes
    is_phased: bool = False  # may it say that it belongs to a later phase?
    enters: str = ""  # the attribute that names the graph entered

    @property
    def strings(self) -> tuple[str, ...]:
        """Attributes that it must have, too."""
        return (self.enters,) if self.enters else ()


def _table(*rows: Structural) -> dict[str, Structural]:
    return {row.name: row for row in rows}


_INDEX, _SITE, _BOTH, _EDGE = ("index",), ("site",), ("site", "index"), ("edge", "part")

LIBRARY = _table(
    Structural("start", Role.SOURCE, 0, 1, is_phased=True),
    Structural("param", Role.SOURCE, 0, 1, _INDEX, is_phased=True),
    Structural("switch", Role.SWITCH, 2, 2),
    Structural("merge", Role.MERGE, 2, 1),
    Structural("call", Role.ENTER, site="call", enters="callee"),
    Structural("loop", Role.ENTER, site="loop", enters="body"),
    Structural("map", Role.ENTER, site="map", enters="body"),
    # A call that also takes the tangents of the arguments `given`, and also returns those of the results `wanted`.
    Structural("tangent", Role.ENTER, site="call", enters="callee"),
    Structural("resume", Role.LINK, integers=("phase",), is_phased=True),
    Structural("gradient", Role.LINK),
    Structural("shared", Role.SHARED, 0, 1, _INDEX),
    Structural("collect", Role.COLLECT, 1, 1, _INDEX),
    Structural("collect_rows", Role.COLLECT, 2, 1, _INDEX),
    Structural("collected", Role.COLLECTED, 2, 1, _INDEX),
    Structural("collected_rows", Role.COLLECTED, 2, 2, _INDEX),
    Structural("primal", Role.RULE, 1, 1),
    Structural("direction", Role.RULE, 1, 1),
    Structural("cotangent", Role.RULE, 1, 1, _INDEX),
    Structural("custom", Role.RULE, integers=("arguments",)),
    # `sow place value`, and beside the call that is the collector: `reap call n`, the values by place (passes/reap.py).
    Structural("sow", Role.SOW, 2, 1),
    Structural("reap", Role.LINK, 2, 1),
)

STATIC = _table(
    Structural("start", Role.SOURCE, 0, 1),
    Structural("input", Role.SOURCE, 0, 1, _INDEX),
    Structural("switch", Role.SWITCH, 2, 2),
    Structural("merge", Role.MERGE, None, 1),
    Structural("call_start", Role.START, 0, 2, _SITE, "call", is_phased=True),
    Structural("call", Role.ARGUMENT, 1, 1, _BOTH, "call", is_phased=True),
    Structural("return", Role.BACK, 1, 1, _BOTH, "call", is_phased=True),
    Structural("enter_start", Role.START, 0, 2, _SITE, "loop"),
    Structural("enter", Role.ARGUMENT, 1, 1, _BOTH, "loop"),
    Structural("next", Role.NEXT, 1, 1, _SITE, "loop"),
    Structural("exit", Role.BACK, 1, 1, _BOTH, "loop"),
    Structural("fan_start", Role.START, 1, 2, _SITE, "map", is_phased=True),
    Structural("fan", Role.ARGUMENT, 1, 1, _BOTH, "map", is_phased=True),
    Structural("gather", Role.BACK, 1, 1, _BOTH, "map", is_phased=True),
    Structural("outer", Role.READ, 1, 1, _SITE),  # of a loop or a map
    Structural("hoist", Role.HOIST, 1, 1, _BOTH, "call"),
    Structural("hoist_read", Role.READ, None, 1),
    Structural("collect", Role.COLLECT, 1, 1, _INDEX),
    Structural("collect_rows", Role.COLLECT, 2, 1, _INDEX),
    Structural("collected", Role.COLLECTED, 1, 1, _BOTH),
    Structural("collected_rows", Role.COLLECTED, 1, 2, _BOTH),
    Structural("send", Role.SEND, 1, 1, _EDGE),
    Structural("recv", Role.RECV, 0, 1, _EDGE),
)

PRIMITIVE = Structural("", Role.SOURCE)  # what the form asks of an operator of the catalogue: nothing
BODIES = {"call": "function", "loop": "loop", "map": "map"}  # kind of a site -> kind of the body that it enters
BODY_KINDS = ("main", *BODIES.values())


def _sites(table: dict[str, Structural], *roles: Role) -> dict[str, str]:
    """The operators of some roles, each with the kind of its site."""
    return {row.name: row.site for row in table.values() if row.role in roles}


SOURCES = {**_sites(LIBRARY, Role.SOURCE), **_sites(STATIC, Role.SOURCE)}
STARTS = _sites(STATIC, Role.START)
ARGUMENTS = _sites(STATIC, Role.ARGUMENT, Role.HOIST)  # given when a site is entered
INWARD = {**ARGUMENTS, **_sites(STATIC, Role.NEXT)}  # what they emit is for another frame
BACK = _sites(STATIC, Role.BACK)
SITED = {**STARTS, **INWARD, **BACK}
READS = _sites(STATIC, Role.READ)
COLLECTS = _sites(STATIC, Role.COLLECT)
COLLECTED = _sites(STATIC, Role.COLLECTED)
ENTERS = {row.name: row.enters for row in LIBRARY.values() if row.enters}  # the attribute that names what is entered
ENTERING = {**_sites(LIBRARY, Role.ENTER), "resume": ""}
RULES = _sites(LIBRARY, Role.RULE)
SOWS = _sites(LIBRARY, Role.SOW)
LINKED = _sites(LIBRARY, Role.LINK, Role.COLLECTED)  # their first input is the call that they continue


def is_primitive(op: str) -> bool:
    """Is it an operator of the catalogue?"""
    return op not in LIBRARY and op not in STATIC
