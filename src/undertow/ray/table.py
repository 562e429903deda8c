"""Statistics of workers, and the ways to them, as lists that print as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from undertow.cluster.links import size
from undertow.cluster.pool import WorkerStats
from undertow.cluster.probe import Way

HEADS = ("worker", "where", "process", "starts", "tasks", "frames", "waves", "sent", "received", "waited")
WAY_HEADS = ("worker", "where", "there and back", "per second")


class Rows(list[WorkerStats]):
    """One row for each worker.

    >>> print(Rows([WorkerStats(0, 7, "10.0.0.5", 4711, True, 1, 0, 3, 0, 1200, 40, 5600, 780, 0, 1.5)]))
    worker     where  process  starts  tasks  frames  waves    sent  received  waited
         0  10.0.0.5     4711       1      3   1,200     40  5.6 kB     780 B   1.5 s
    """

    def __str__(self) -> str:
        return table(HEADS, map(cells, self))

    __repr__ = __str__


class Ways(list[Way]):
    """The way to each worker.

    >>> print(Ways([Way(0, "10.0.0.5", 0.000312, 412e6)]))
    worker     where  there and back  per second
         0  10.0.0.5         0.31 ms    412.0 MB
    """

    def __str__(self) -> str:
        rows = ((str(way.worker), way.place, f"{way.seconds * 1e3:.2f} ms", size(int(way.rate))) for way in self)
        return table(WAY_HEADS, rows)

    __repr__ = __str__


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns that end at the right."""
    lines = [heads, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def cells(row: WorkerStats) -> tuple[str, ...]:
    """What the table shows of a worker."""
    return (
        str(row.worker),
        row.place if row.is_ready else "not there",
        str(row.process),
        str(row.starts),
        f"{row.tasks:,}",
        f"{row.activations:,}",
        f"{row.waves:,}",
        size(row.sent),
        size(row.received),
        f"{row.waited:.1f} s",
    )
