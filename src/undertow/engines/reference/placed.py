"""A placed graph on the reference engine: its parts, and tokens that cross between them, under their tags.

This is the definition of what a cut graph means. Every part is a run of its own. A token that crosses names its edge
and its tag, as a hash of the path of labels; dead tokens cross, too. Nothing is assumed of their order: `choose` picks
the next of those that are under way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from undertow.engines import checks
from undertow.engines.checks import Value
from undertow.engines.contract import Options, Result, State, Stats
from undertow.engines.reference.frame import NONE, Frame
from undertow.engines.reference.plan import number_graph
from undertow.engines.reference.report import deadlock
from undertow.engines.reference.rows import COUNT, DEAD, NumberedGraph
from undertow.engines.reference.run import Run
from undertow.errors import RunError
from undertow.ir.path import Path
from undertow.ir.placed import Part, Placed

Crossing = tuple[int, Path, Value]  # edge, tag, value


class PartRun(Run):
    """The run of one part."""

    def __init__(
        self,
        part: Part,
        rows: NumberedGraph,
        values: list[Value],
        options: Options,
        state: State | None,
        post: Callable[[Crossing], None],
    ) -> None:
        super().__init__(rows, values, options, None, state)
        self.part = part
        self.post = post
        self.open_frames: dict[Path, Frame] = {}  # those in which tokens may arrive
        self.early: dict[Path, list[Crossing]] = {}  # tokens whose frames have not begun

    def begin_run(self) -> None:
        """Start, and run as far as possible."""
        self.open(self.main)
        for at in self.rows.first_ready:
            self.push((self.main, at))
        self.loop(drain=True)

    def open(self, frame: Frame) -> Frame:
        super().open(frame)
        if frame.kind.layout.recvs:
            self.open_frames[frame.path] = frame
            for crossing in self.early.pop(frame.path, ()):
                self.take(frame, crossing)
        return frame

    def label(self, site: int) -> int:
        return self.part.sites[site - 1]

    def close(self, frame: Frame) -> None:
        super().close(frame)
        if frame.kind.layout.recvs:
            del self.open_frames[frame.path]

    def send(self, frame: Frame, edge: int, value: Value) -> None:
        self.post((edge, frame.path, value))

    def lacking(self) -> list[int]:
        """The fetches that have not arrived."""
        return [number for number, value in enumerate(self.results) if value is None]

    def receive(self, crossing: Crossing) -> None:
        """A token comes from another part."""
        frame = self.open_frames.get(crossing[1])
        if frame is None:
            self.early.setdefault(crossing[1], []).append(crossing)
            return
        self.take(frame, crossing)
        self.loop(drain=True)

    def take(self, frame: Frame, crossing: Crossing) -> None:
        """Give a token to its Recv."""
        edge, _, value = crossing
        at, slot = next((at, slot) for at, slot, known in frame.kind.layout.recvs if known == edge)
        if value is not NONE:
            self.put(frame, at, slot, value)
            return
        frame.pend[at] += DEAD - 1
        if not frame.pend[at] & COUNT:
            self.push((frame, at))


class PlacedPlan:
    """A placed graph made ready: all parts run in this process. `choose` picks the token that arrives next."""

    def __init__(self, placed: Placed, choose: Callable[[int], int]) -> None:
        self.placed = placed
        self.choose = choose
        self.rows = [number_graph(part.graph) for part in placed.parts]
        self.fired: list[int] = []  # in the last run, by part

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        """Run until nothing is left to do. `state` changes only if the run succeeds. Counts are those of part 0."""
        options = options or Options()
        under_way: list[Crossing] = []
        parts = [
            # Whatever reads or assigns variables is in part 0.
            PartRun(part, rows, self._values(part, inputs), options, None if number else state, under_way.append)
            for number, (part, rows) in enumerate(zip(self.placed.parts, self.rows, strict=True))
        ]
        began = time.perf_counter()
        with np.errstate(all="ignore"):
            for part in parts:
                part.begin_run()
            while under_way:
                number = self.choose(len(under_way))
                under_way[number], under_way[-1] = under_way[-1], under_way[number]
                crossing = under_way.pop()
                parts[self.placed.edges[crossing[0]].target].receive(crossing)
        if any(part.missing or part.early or part.live for part in parts):
            waiting = [deadlock(part.rows, part.live, part.lacking()).what for part in parts]
            raise RunError("\n".join(waiting), hint="the cut is wrong: every token that a Recv waits for must be sent")
        self.fired = [sum(part.fired[:-1]) for part in parts]
        if state is not None:
            state.update(parts[0].state)
        results = {n: value for part in parts for n, value in zip(part.part.fetches, part.results, strict=True)}
        stats = parts[0].stats("reference", time.perf_counter() - began)
        return [checks.own(results[number]) for number in range(len(results))], stats

    def _values(self, part: Part, inputs: Sequence[Result]) -> list[Value]:
        return checks.check_inputs(part.graph, [inputs[index] for index in part.inputs])
