"""The fault that Python would have reached first, where several activations of a run fail.

Engines run activations side by side, so which fault they meet first is theirs to choose. After a fault the program runs
once more, one node at a time in program order: always the ready node that stands first in the text of the outermost
activation, there in that of the call that it makes, and so on. Nothing is assigned, and no line printed twice.

That costs Python's time, and memory for the paths of activations. Both are bounded: beyond that, the engine's fault
stands.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.engines.checks import check_inputs
from undertow.engines.contract import Options, Result, State
from undertow.engines.reference import ReferencePlan
from undertow.engines.reference.frame import Frame
from undertow.engines.reference.frames import Ready
from undertow.engines.reference.run import Run
from undertow.errors import Fault, UndertowError
from undertow.ir.graph import StaticGraph
from undertow.ir.structure import ARGUMENTS, STARTS
from undertow.ir.walk import phase_of
from undertow.ops.debug import printing

_MOST_LABELS = 2_000_000  # of all paths together: a second or two

Path = tuple[int, ...]


class _GiveUp(Exception):
    """The search would take too long."""


class _ProgramOrder:
    """The nodes that can fire, in program order."""

    def __init__(self, graph: StaticGraph) -> None:
        # By site, the last node that hands something over: a call begins when its arguments are there.
        self._sites: dict[Any, int] = {}
        for number, node in enumerate(graph.nodes):
            if (node.op in STARTS or node.op in ARGUMENTS) and phase_of(node) == 0:
                self._sites[node.attrs["site"]] = number
        self._heap: list[tuple[Path, int, Frame, int]] = []
        self._paths: dict[int, tuple[Frame, Path]] = {}
        self._pushed = 0
        self._labels = 0

    def __len__(self) -> int:
        return len(self._heap)

    def append(self, ready: Ready) -> None:
        frame, at = ready
        path = (*self._path(frame), frame.rows[at].number)
        self._pushed += 1
        self._spend(path)
        heapq.heappush(self._heap, (path, self._pushed, frame, at))

    def popleft(self) -> Ready:
        _, _, frame, at = heapq.heappop(self._heap)
        return frame, at

    def _path(self, frame: Frame) -> Path:
        """The call, iteration or lane of each activation around it: its node in the text, and its number."""
        chain: list[Frame] = []
        above: Frame | None = frame
        while above is not None and id(above) not in self._paths:
            chain.append(above)
            above = above.parent
        path: Path = () if above is None else self._paths[id(above)][1]
        for below in reversed(chain):
            if below.parent is not None:
                path = (*path, self._sites[below.site], below.index)
            self._spend(path)
            self._paths[id(below)] = below, path  # which keeps the frame, so that no other takes its id
        return path

    def _spend(self, path: Path) -> None:
        self._labels += len(path)
        if self._labels > _MOST_LABELS:
            raise _GiveUp


def first_fault(
    plan: ReferencePlan, inputs: Sequence[Result], limits: Options, state: State | None, given: Fault, printed: int
) -> Fault:
    """The first fault in program order; the given one if the search finds none.

    The failed run has printed so many lines. Those that come after them, and before the fault, are printed now.
    """
    order: Any = _ProgramOrder(plan.graph)
    options = Options(check_finite=limits.check_finite, memory=limits.memory)
    try:
        with printing(skipped=printed), np.errstate(all="ignore"):
            values = check_inputs(plan.graph, inputs)
            Run(plan.rows, values, options, None, dict(state or {}), (order, order.popleft)).execute()
    except Fault as fault:
        return fault
    except (_GiveUp, UndertowError):
        return given
    return given
