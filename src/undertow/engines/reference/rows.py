"""A static graph as rows of numbers, without names and attributes. Written by the planner, read by a run.

How deadness is counted: a dead token subtracts one from a node's count and adds DEAD, so a node with a dead input is
ready at a positive multiple of DEAD, and one with live inputs only at 0. A merge over branches is ready (at 0) with
its first live token, or (at DEAD) when all are dead; later tokens take its count below 0.

A frame ends when each node of its body has fired once: live, dead, or swallowing a dead token. If its site visits only
the first phases of its body, only the nodes of these count; that is the *kind* of a frame. A lane of a map has no nodes
for its parameters: instead, each token that comes in counts.
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

# Codes of rows, besides kernels. FORWARD is for nodes that forward one value: merge, return, exit, outer, hoist_read,
# recv.
FORWARD, SWITCH, CALL, CALL_START, ENTER, ENTER_START, NEXT, INPUT = range(STATE + 1, STATE + 9)
FAN, FAN_START, GATHER, HOIST, COLLECT, COLLECTED, COLLECTED_ROWS, SEND, TAGGED = range(STATE + 9, STATE + 18)
_BY_SITE = {  # for a call, a loop, a map
    Role.START: (CALL_START, ENTER_START, FAN_START),
    Role.ARGUMENT: (CALL, ENTER, FAN),
    Role.BACK: (FORWARD, FORWARD, GATHER),
}
_BY_ROLE = {
    Role.SOURCE: INPUT, Role.SWITCH: SWITCH, Role.NEXT: NEXT, Role.HOIST: HOIST, Role.COLLECT: COLLECT, Role.SEND: SEND,
}  # fmt: skip
_OTHERS = {"collected": COLLECTED, "collected_rows": COLLECTED_ROWS}
CODES = {
    op: _BY_SITE[row.role][[*BODIES].index(row.site)]
    if row.role in _BY_SITE
    else _BY_ROLE.get(row.role, _OTHERS.get(op, FORWARD))
    for op, row in STATIC.items()
}


class Out(NamedTuple):
    """The targets of a live token of a port. Pairs are (node, slot), numbered within a body; slot 0 is never read."""

    plain: tuple[tuple[int, int], ...]
    merges: tuple[tuple[int, int], ...]
    up: dict[int, tuple[tuple[int, int], ...]] | None  # in the parent's frame, by the site of this one
    down: tuple[tuple[SitePlan, int], ...]  # (site, number of the invariant)
    lanes: tuple[tuple[int, int], ...]  # (number of the gather, phase)
    fetches: tuple[int, ...]
    shared: tuple[int, ...]  # numbers of what main shares
    weight: int  # if it is an array: the number of slots that store it, or -1 for none
    is_far: bool  # has it any of down, lanes, fetches and shared?


NOWHERE = Out((), (), None, (), (), (), (), 0, True)  # everything has been delivered; check whether the run has ended


class Quiet(NamedTuple):
    """The targets of a dead token of a port."""

    plain: tuple[int, ...]
    gates: tuple[int, ...]  # Return, Exit and Gather nodes: they fire dead as soon as their control edge is dead
    merges: tuple[int, ...]
    up: dict[int, tuple[int, ...]] | None
    is_fetch: bool


class Row(NamedTuple):
    """What a node does when it fires."""

    code: int
    number: int  # of the node in the graph
    first: int  # slots[first:last] are its inputs
    last: int
    held: tuple[int, ...]  # those of its slots that may hold arrays
    outs: tuple[Out, ...]
    quiet: tuple[Quiet, ...]
    extra: Any  # for the code: a kernel, a site, a type, the number of an input


@dataclass(slots=True, eq=False)
class Layout:
    """The initial state of the frames of one body."""

    nodes: list[int] = field(default_factory=list)
    pend: list[int] = field(default_factory=list)
    slots: list[Value] = field(default_factory=lambda: [None])
    rows: list[Row] = field(default_factory=list)
    contexts: list[int] = field(default_factory=list)  # cells of loops and maps
    reads: list[tuple[int, int, int]] = field(default_factory=list)  # (node, slot, index of the entry's argument)
    shared_reads: list[tuple[int, int, int]] = field(default_factory=list)  # (node, slot, index of the shared value)
    recvs: list[tuple[int, int, int]] = field(default_factory=list)  # (node, slot, edge)

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
    """What rows need to know of a site."""

    number: int
    cell: int  # slot of the caller: the callee's frame, or the context of a loop or map
    after: int = 0  # of a loop: slot of an iteration's frame that holds the next one's
    outers: list[tuple[int, int]] = field(default_factory=list)  # (node, slot) in the entered body
    gathers: list[tuple[int, int, int]] = field(default_factory=list)  # (node, slot, phase) in the caller
    hoisted: int = 0  # number of arguments of the entry that it makes


@dataclass(slots=True, eq=False)
class Kind:
    """A body with the number of its phases that are visited: all frames of a kind end after equally many firings."""

    region: int
    visits: int  # number of phases
    layout: Layout
    left: int  # number of nodes that fire; in a lane, also of tokens that come in
    unread: tuple[int, ...]  # slots of the other nodes that may hold arrays when the frame ends
    is_call: bool
    below: dict[int, Kind] = field(default_factory=dict)  # by site


@dataclass(frozen=True, slots=True, eq=False)
class NumberedGraph:
    """The whole plan; immutable."""

    graph: StaticGraph
    phases: list[int]  # for each node, the last phase that it waits for
    main: Kind  # with every kind below it that a run can create
    first_ready: tuple[int, ...]  # nodes of main that wait for nothing
    shared: int = 0  # number of values that main shares with all frames
    has_paths: bool = False  # does anything need the tags of frames as hashes?
