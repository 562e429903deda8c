"""Schedulers: which of the nodes that are ready fires next. Any order gives the same results."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from undertow.engines.contract import Options
from undertow.engines.reference.frame import Frame
from undertow.engines.reference.frames import Pool, Ready
from undertow.ir.graph import StaticGraph
from undertow.ir.index import StaticIndex
from undertow.ir.longest_path import nodes_ahead

Scheduler = tuple[Pool, Callable[[], Ready]]  # a pool, and the function that takes what fires next out of it


def scheduler_of(options: Options, graph: StaticGraph) -> Scheduler:
    """The scheduler that options name."""
    if options.scheduler in ("fifo", None):
        queue: deque[Ready] = deque()
        return queue, queue.popleft
    if options.scheduler == "depth":
        ranked = Ranked(lambda frame, at: frame.depth)
        return ranked, ranked.pop
    if options.scheduler == "longest_path":
        ranked = Ranked(_LongestPath(graph))
        return ranked, ranked.pop
    stack: list[Ready] = []
    if options.scheduler == "lifo":
        return stack, stack.pop
    chance = random.Random(options.schedule_seed or 0).random

    def pop() -> Ready:
        at = int(chance() * len(stack))
        stack[at], stack[-1] = stack[-1], stack[at]
        return stack.pop()

    return stack, pop


class Ranked:
    """A pool that gives the node of the highest priority; of equal ones, the latest."""

    def __init__(self, priority: Callable[[Frame, int], int]) -> None:
        self.priority = priority
        self.heap: list[tuple[int, int, Ready]] = []
        self.count = 0

    def append(self, ready: Ready) -> None:
        self.count += 1
        heappush(self.heap, (-self.priority(*ready), -self.count, ready))

    def pop(self) -> Ready:
        return heappop(self.heap)[2]

    def __len__(self) -> int:
        return len(self.heap)


class _LongestPath:
    """How many nodes follow a node on the longest path, to the end of its frame, and from there to that of the run."""

    def __init__(self, graph: StaticGraph) -> None:
        index = StaticIndex(graph)
        self.ahead = nodes_ahead(index)
        self.after = [0] * (len(graph.sites) + 1)  # by site: what follows its start token in the caller
        for (site, _), (start, *_) in index.starts.items():
            self.after[site] = max(self.after[site], self.ahead[start])

    def __call__(self, frame: Frame, at: int) -> int:
        if frame.ahead < 0:  # its parent's is known: a node there has made it
            frame.ahead = 0 if frame.parent is None else frame.parent.ahead + self.after[frame.site]
        return frame.ahead + self.ahead[frame.rows[at].number]
