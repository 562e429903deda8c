"""A static graph as rows of numbers, without names and attributes. Written by the planner, read by a run.

How deadness is counted: a dead token takes one off a node's count and adds DEAD to it, so a node with any dead
input is ready at a multiple of DEAD, and one with live inputs only at 0. A merge over branches is ready (at 0) with
its first live token, or (at DEAD) when all are dead; whatever comes later takes it below 0.

A frame ends when each node of its body has fired once: live, dead, or swallowing a dead token. In a frame whose
site visits only the first phases of its body, only the nodes of those count; frames are of that *kind*. A lane of a map
has no nodes for its parameters: there each token that comes in counts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from undertow.engines.checks import Value
from undertow.engines.frames import STATE
from undertow.ir.graph import StaticGraph
from undertow.ir.structure import BODIES, STATIC, Role

DEAD = 1 << 20
COUNT = DEAD - 1  # the part of `pend` that counts tokens

# What a row does when it fires, besides what kernels do. A forward hands its one value on: merge, return, exit, outer,
# hoist_read.
FORWARD, SWITCH, CALL, CALL_START, ENTER, ENTER_START, NEXT, INPUT = range(STATE + 1, STATE + 9)
FAN, FAN_START, GATHER, HOIST, COLLECT, COLLECTED, COLLECTED_ROWS = range(STATE + 9, STATE + 16)
_BY_SITE = {  # of a call, a loop, a map
    Role.START: (CALL_START, ENTER_START, FAN_START),
    Role.ARGUMENT: (CALL, ENTER, FAN),
    Role.BACK: (FORWARD, FORWARD, GATHER),
}
_BY_ROLE = {Role.SOURCE: INPUT, Role.SWITCH: SWITCH, Role.NEXT: NEXT, Role.HOIST: HOIST, Role.COLLECT: COLLECT}
_OTHERS = {"collected": COLLECTED, "collected_rows": COLLECTED_ROWS}
CODES = {
    op: _BY_SITE[row.role][[*BODIES].index(row.site)]
    if row.role in _BY_SITE
    else _BY_ROLE.get(row.role, _OTHERS.get(op, FORWARD))
    for op, row in STATIC.items()
}


class Out(NamedTuple):
    """Where a live token of a port goes. Pairs are (node, slot), numbered within a body; slot 0 is never read."""

    plain: tuple[tuple[int, int], ...]
    merges: tuple[tuple[int, int], ...]
    up: dict[int, tuple[tuple[int, int], ...]] | None  # by the site of the frame: into the parent's frame
    down: tuple[tuple[SitePlan, int], ...]  # the number of the invariant at a site
    lanes: tuple[tuple[int, int], ...]  # numbers of gathers, and the phase of each
    fetches: tuple[int, ...]
    shared: tuple[int, ...]  # numbers of what main shares
    weight: int  # slots that it is stored in, if it is an array; -1: none, but it is an array
    is_far: bool  # does any of down, lanes, fetches and shared exist?


NOWHERE = Out((), (), None, (), (), (), (), 0, True)  # everything has been delivered; see whether the run is over


class Quiet(NamedTuple):
    """Where a dead token of a port goes."""

    plain: tuple[int, ...]
    gates: tuple[int, ...]  # the way back: fires dead as soon as its control is dead
    merges: tuple[int, ...]
    up: dict[int, tuple[int, ...]] | None
    is_fetch: bool


class Row(NamedTuple):
    """What happens when a node fires."""

    code: int
    number: int  # of the node in the graph
    first: int  # slots[first:last] are its inputs
    last: int
    held: tuple[int, ...]  # those slots that may hold arrays
    outs: tuple[Out, ...]
    quiet: tuple[Quiet, ...]
    extra: Any  # what else the code needs: a kernel, a site, a type, the number of an input


@dataclass(slots=True, eq=False)
class Layout:
    """The frames of one body: what they look like when they begin."""

    nodes: list[int] = field(default_factory=list)
    pend: list[int] = field(default_factory=list)
    slots: list[Value] = field(default_factory=lambda: [None])
    rows: list[Row] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)  # cells of loops and maps
    reads: list[tuple[int, int, int]] = field(default_factory=list)  # (node, slot, number of what the entry is given)
    shared_reads: list[tuple[int, int, int]] = field(default_factory=list)  # (node, slot, number of what main shares)

    def cell(self) -> int:
        """A new slot that belongs to no node."""
        self.slots.append(None)
        return len(self.slots) - 1

    @property
    def cost(self) -> int:
        """Bytes of a frame: the object, its two lists, and a NumPy scalar in every other slot."""
        return 320 + 8 * len(self.pend) + 24 * len(self.slots)


@dataclass(slots=True, eq=False)
class SitePlan:
    """A site as rows see it."""

    number: int
    cell: int  # of the caller's frame: holds the callee's frame, or the context of a loop or map
    after: int = 0  # of a loop: the cell of an iteration's frame that holds the next one's
    outers: list[tuple[int, int]] = field(default_factory=list)  # (node, slot) in the body entered
    gathers: list[tuple[int, int, int]] = field(default_factory=list)  # (node, slot) in the caller, and the phase
    hoisted: int = 0  # values that it gives to the entry that it makes


@dataclass(slots=True, eq=False)
class Kind:
    """A body as visited in its first phases: all frames of a kind end after the same number of firings."""

    region: int
    visits: int  # how many phases
    layout: Layout
    left: int  # nodes that fire; of a lane, also tokens that come in
    unread: tuple[int, ...]  # slots of the other nodes that may hold arrays when the frame ends
    is_call: bool
    below: dict[int, Kind] = field(default_factory=dict)  # by site


@dataclass(frozen=True, slots=True, eq=False)
class NumberedGraph:
    """The whole plan. Never changes once it is made."""

    graph: StaticGraph
    phases: list[int]  # for each node, the last phase that it waits for
    main: Kind  # and below it every kind that a run can create
    first_ready: tuple[int, ...]  # nodes of main that wait for nothing
    shared: int = 0  # values that main shares with all frames
