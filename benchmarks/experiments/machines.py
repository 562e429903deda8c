"""Throughput of training on several workers: figure 10 of Jeong et al., with processes of this machine as workers.

A step's batch is cut into shards, which workers share; their gradients are summed along a ring. With more workers
than cores nothing is gained, so the processor time of a worker says what machines of their own could do.
"""

from __future__ import annotations

import os
import time

import common
import numpy as np
from rivals import networks, ours

import undertow as ut
from undertow.cluster.local import open_pool
from undertow.parallel.trainer import DataParallel

from .book import Book, Exhibit, Plot, shown
from .printed import JEONG

SERVICES = "undertow.parallel.service:services"
BATCH, SHARDS, STEPS = 256, 4, 4


def by_machines(book: Book) -> None:
    """Trees per second with one, two and four workers."""
    counts = (1, 2) if book.options.quick else (1, 2, 4)
    some = book.trees["train"][:BATCH]
    network, params = ours.network("treelstm", networks.init("treelstm", book.vocabulary))
    (forest,) = ours.pack(some)
    forest = forest[: len(some)]
    line, losses = [], {}
    for count in counts:
        with open_pool(count, SERVICES) as pool, ut.options(threads=1):
            optimizer = ut.optim.Adagrad(networks.RATE, epsilon=networks.EPSILON)
            trainer = DataParallel(network.total_loss(), params, optimizer, average=False, shards=SHARDS, cluster=pool)
            taken = []
            for _ in range(STEPS + 1):
                began = time.perf_counter()
                losses[count] = trainer.step(forest)
                taken.append(time.perf_counter() - began)
        if not np.allclose(losses[count], losses[1], rtol=1e-4):
            common.fail(f"the losses of {count} workers are others: {losses}")
        line.append((count, len(forest) / min(taken[1:])))
    rows = [[str(count), shown(speed), f"{speed / line[0][1]:.2f}"] for count, speed in line]
    book.show(
        "machines",
        Exhibit(
            f"TreeLSTM, training by data parallelism, {len(forest)} trees a step: trees per second on the clock",
            f"{JEONG}, figure 10",
            ["workers", "trees per second", "beside one"],
            rows,
            [
                f"Workers are processes of one thread on one machine of {os.cpu_count()} cores, which bound them.",
                "Figure 10 is a plot. The text: almost linear up to 8 machines of 36 cores.",
            ],
            [Plot("machines", "workers", "trees per second", {"training": {"static": line}})],
        ),
    )
