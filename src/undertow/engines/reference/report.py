"""The message of a deadlock: which nodes wait for what."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from undertow.engines.reference.frame import Frame
from undertow.engines.reference.rows import COUNT, NumberedGraph
from undertow.errors import RunError
from undertow.ir.trace import show_tag

_SHOWN = 10  # waiting nodes


def deadlock(rows: NumberedGraph, frames: Iterable[Frame], missing: Iterable[int]) -> RunError:
    """The error when nothing can fire and a fetch is missing: which nodes wait, those with some tokens first."""
    nodes = rows.graph.nodes
    names = ", ".join(nodes[rows.graph.fetches[number].node].name for number in missing)
    lines = [f"deadlock: no node can fire, but {names} has not arrived. Waiting:"]
    count = 0

    def waiting() -> Iterator[tuple[bool, int, int, int, int, Frame]]:
        nonlocal count
        for frame in frames:
            layout = frame.kind.layout
            for number, now, full in zip(layout.nodes, frame.pend, layout.pend, strict=True):
                left = now & COUNT
                if now > 0 and left and rows.phases[number] < frame.kind.visits:
                    count += 1
                    yield left == full, frame.number, number, full - left, full, frame

    # Choose before formatting: a tag is as long as the recursion is deep.
    for _, _, number, arrived, full, frame in heapq.nsmallest(_SHOWN, waiting()):
        lines.append(f"  {nodes[number].name} under {show_tag(frame.tag())}: {arrived} of {full} tokens")
    if count > _SHOWN:
        lines.append(f"  ... and {count - _SHOWN} more")
    return RunError("\n".join(lines), hint="the graph is not valid: make sure that every input is produced")
