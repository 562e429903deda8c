"""Statistics of workers, as a list that prints as a table."""

from __future__ import annotations

from undertow.cluster.links import size
from undertow.cluster.pool import WorkerStats

HEADS = ("worker", "where", "process", "starts", "tasks", "frames", "waves", "sent", "received", "waited")


class Rows(list[WorkerStats]):
    """One row for each worker.

    >>> print(Rows([WorkerStats(0, 7, "10.0.0.5", 4711, True, 1, 0, 3, 0, 1200, 40, 5600, 780, 0, 1.5)]))
    worker     where  process  starts  tasks  frames  waves    sent  received  waited
         0  10.0.0.5     4711       1      3   1,200     40  5.6 kB     780 B   1.5 s
    """

    def __str__(self) -> str:
        lines = [HEADS, *(cells(row) for row in self)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines
        )

    __repr__ = __str__


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
