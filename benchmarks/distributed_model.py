"""A model of costs: how training on a million trees, their labels, and a search of 10^12 nodes grow to 1,024 workers.

It is fed with what `distributed.py` has measured on this machine (build/bench/distributed.json, or else the figures
below, of two cores of an AMD EPYC), and counts what the design sends, to whom, and what has to wait for what. For each
size it prints the largest of these costs, which is what bounds it, and how it would be with other designs (`CHANGES`).
What it says of two workers stands beside what was measured. Machines have eight processors, and 1.25 GB/s
between them. Usage: python benchmarks/distributed_model.py [--figures FILE]
"""

import argparse
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common

SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
MEASURED: dict[str, Any] = {
    "round_trip": 223e-6,  # seconds, to a worker and back
    "rate": 832e6,  # bytes a second, encrypted, which is what one end of a connection can do
    "driver": 29.0e-6,  # seconds of the driver for a message and its answer
    "node": 9.12e-9,  # seconds for a node of the search
    "training": {"1": 293e-6, "4": 348e-6, "16": 244e-6, "64": 261e-6, "256": 264e-6},  # for a tree, so many together
    "inference": {"1": 91.3e-6, "4": 106e-6, "16": 75.0e-6, "64": 78.1e-6, "256": 79.3e-6},
    "update": 0.6e-3,  # seconds, after 256 trees
    "rest": 6.8e-3,  # seconds of a step for all that is not counted: what one worker needs more than its parts
    "dense": 1_447_820,  # bytes of gradients that are no rows
    "rows": {"1": 7248, "4": 16912, "16": 14949, "64": 12080, "256": 9249},  # bytes that a tree adds, so many together
    "tree": 620.0,  # bytes of a tree
}
LINK = 1.25e9  # bytes a second between machines
PROCESSORS = 8  # of a machine
MEMORY = 4e9  # bytes a second between processes of one machine
PIECE, LEAST, MESSAGE = 1 << 19, 1 << 15, 1 << 16  # bytes of the ring's messages, as in parallel/ring.py
BEAT = 0.5  # seconds between two signs of life
KEY = 1e-3  # seconds of the driver until somebody's key is checked
PEER = 90  # bytes of a worker in the table that all workers have
TREES = 1_000_000
NODES = 1e12
BATCH = 256  # trees in a step; more workers than that idle
SHARE = 64  # trees of each worker in a step, where batches grow with workers
START = 2.0  # seconds until a worker's process is there

Costs = dict[str, float]  # seconds, by what they are spent on


def per_tree(costs: dict[str, Any], kind: str, together: float) -> float:
    """Seconds for a tree, or bytes, between the widths that were measured."""
    points = sorted((int(width), seconds) for width, seconds in costs[kind].items())
    at = math.log(max(together, 1))
    for (low, one), (high, other) in itertools.pairwise(points):
        if together <= high:
            part = (at - math.log(low)) / (math.log(high) - math.log(low))
            return float(one + part * (other - one))
    return float(points[-1][1])


# --------------------------------------------------------------------------------------------------------------
# A step of training


def step(costs: dict[str, Any], workers: int, batch: int, is_changed: bool = False) -> Costs:
    """What the parts of a step take. On one machine, gradients go through shared memory."""
    shards = max(4, 1 << (workers - 1).bit_length())
    used = min(workers, shards, batch)
    held = math.ceil(shards / workers)
    trees = batch / shards
    is_near = workers <= PROCESSORS
    rate = MEMORY if is_near else min(costs["rate"], LINK)
    hop = costs["round_trip"] / 2
    rows = batch * per_tree(costs, "rows", trees)  # each once for a shard
    size = min(PIECE, max(LEAST, math.isqrt(2 * costs["dense"] * MESSAGE // max(2 * used - 3, 1))))
    pieces = math.ceil(costs["dense"] / size)
    piece = min(costs["dense"], size) / rate
    if is_changed:  # the sums of shards in a balanced tree; each row to the worker that has it
        chain = 2 * math.log2(max(used, 2)) * (hop + piece) + 2 * pieces * piece
        around = 2 * rows / used / rate + 2 * hop
        report, update = 0.0, costs["update"] / used * batch / 256
        orders = math.ceil(used / PROCESSORS) * costs["driver"]
    else:
        chain = (2 * used - 3) * (hop + piece) + 2 * (pieces - 1) * piece if used > 1 else 0.0
        around = (used - 1) / used * rows / rate + (used - 1) * hop if used > 1 else 0.0
        report, update = (costs["dense"] + rows) / rate, 2 * costs["update"] * batch / 256
        orders = used * costs["driver"] + batch * costs["tree"] / costs["rate"]
    return {
        "gradients": held * trees * per_tree(costs, "training", trees),
        "orders": orders + hop,
        "sum, from worker to worker": chain,
        "rows, from worker to worker": around,
        "reports to the driver": report + hop,
        "updates": update,
        "packing and copying": costs["rest"],
    }


# --------------------------------------------------------------------------------------------------------------
# Runs that are shared out


def share(costs: dict[str, Any], workers: int, work: float, task: float, reply: float, messages: float = 1) -> Costs:
    """Work of so many seconds in tasks of so many. `messages`: pairs that pass the driver for each task."""
    tasks = work / task
    beats = min(2 * workers / BEAT * costs["driver"] / 2, 0.99)  # the part of the driver that signs of life take
    pair = messages * costs["driver"] + reply / costs["rate"]
    waves = math.ceil(tasks / workers)
    return {
        "work": work / workers,
        "the driver": tasks * pair / (1 - beats),
        "the last tasks": (waves - tasks / workers) * task + task / 2 + math.log2(workers) * 2 * costs["round_trip"],
    }


def spread(costs: dict[str, Any], workers: int, size: float) -> float:
    """Seconds until a value is on all machines, each of which hands it on."""
    machines = math.ceil(workers / PROCESSORS)
    return size / costs["rate"] + math.ceil(math.log2(machines)) * size / LINK if machines > 1 else size / costs["rate"]


def start(costs: dict[str, Any], workers: int) -> Costs:
    """From nothing to workers that know each other: each gets a table of all, with the first call."""
    return {
        "processes": START,
        "keys, and tables of who is there": workers * KEY + PEER * workers**2 / costs["rate"],
    }


# --------------------------------------------------------------------------------------------------------------
# What is printed


def row(workers: int, one: float, costs: Costs, together: Callable[[Costs], float], better: float) -> list[str]:
    """A size: time, speed-up, efficiency, and the largest cost that is not the work itself."""
    seconds = together(costs)
    names = list(costs)
    bound = max(names[1:], key=costs.__getitem__)
    bound = f"{bound} ({common.seconds(costs[bound])})" if costs[bound] > 0.1 * seconds else "nothing but the work"
    return [
        f"{workers:,}",
        common.seconds(seconds),
        f"{one / seconds:,.0f}",
        f"{100 * one / seconds / workers:.0f}%",
        bound,
        f"{100 * one / better / workers:.0f}%",
    ]


HEADS = ["workers", "time", "times one", "efficiency", "what bounds it", "efficiency with the changes"]


def total(costs: Costs) -> float:
    return sum(costs.values())


def overlapped(costs: Costs) -> float:
    """Workers work while the driver sends."""
    return max(costs["work"], costs["the driver"]) + costs["the last tasks"] + costs.get("the forest, to machines", 0.0)


Pair = tuple[float, Costs, float]  # the work's seconds, the costs, and the time with the changes


def training(costs: dict[str, Any], workers: int, batch: int) -> Pair:
    """An epoch."""
    steps = TREES / batch
    one = TREES * per_tree(costs, "training", 256) + TREES / 256 * costs["update"]
    parts = {name: seconds * steps for name, seconds in step(costs, workers, batch).items()}
    return one, parts, total(step(costs, workers, batch, True)) * steps


def labels(costs: dict[str, Any], workers: int, task: float) -> Pair:
    """Of all trees, by one f.map."""
    seconds = per_tree(costs, "inference", 256)
    work = TREES * seconds
    parts = share(costs, workers, work, task, reply=task / seconds * 24)
    parts["the forest, to machines"] = spread(costs, workers, TREES * costs["tree"])
    longer = long_enough(costs, workers, work, task)
    return work, parts, overlapped(share(costs, workers, work, longer, reply=longer / seconds * 24))


def search(costs: dict[str, Any], workers: int, task: float) -> Pair:
    """One call, which is spread by workers that give away what they have not begun."""
    work = NODES * costs["node"]
    parts = share(costs, workers, work, task, reply=8, messages=2)
    longer = long_enough(costs, workers, work, task)
    return work, parts, overlapped(share(costs, workers, work, longer, reply=8, messages=1 / PROCESSORS))


def long_enough(costs: dict[str, Any], workers: int, work: float, task: float) -> float:
    """Tasks that leave the driver time, but not so long that workers wait for the last."""
    return min(max(task, 2 * workers * costs["driver"]), max(task, work / workers / 8))


KINDS: dict[str, Callable[[dict[str, Any], int], Pair]] = {
    f"Training, an epoch of {TREES:,} trees, {BATCH} in a step": lambda costs, workers: training(costs, workers, BATCH),
    f"The same, {SHARE} trees in a step for each worker": lambda costs, workers: training(
        costs, workers, SHARE * workers
    ),
    f"Labels of {TREES:,} trees, in tasks of 1 ms": lambda costs, workers: labels(costs, workers, 1e-3),
    f"Labels of {TREES:,} trees, in tasks of 10 ms": lambda costs, workers: labels(costs, workers, 10e-3),
    "A search of 10^12 nodes, in tasks of 1 ms": lambda costs, workers: search(costs, workers, 1e-3),
    "A search of 10^12 nodes, in tasks of 10 ms": lambda costs, workers: search(costs, workers, 10e-3),
    "A search of 10^12 nodes, in tasks of 100 ms": lambda costs, workers: search(costs, workers, 100e-3),
}


def time_of(parts: Costs) -> float:
    """Of all parts together."""
    return overlapped(parts) if "work" in parts else total(parts)


def print_kinds(costs: dict[str, Any]) -> None:
    """A table for each."""
    for title, kind in KINDS.items():
        rows = []
        for workers in SIZES:
            one, parts, better = kind(costs, workers)
            rows.append(row(workers, one, parts, time_of, better))
        common.table(title, HEADS, rows)


def print_limits(costs: dict[str, Any]) -> None:
    """With how many workers half of their time is work, of the sizes 1, 2, 4 ..."""
    rows = []
    for title, kind in KINDS.items():
        found = ["1", "1"]
        for workers in (1 << k for k in range(1, 17)):
            one, parts, better = kind(costs, workers)
            for place, seconds in enumerate((time_of(parts), better)):
                if one / seconds / workers >= 0.5:
                    found[place] = f"{workers:,}"
        rows.append([title, *found])
    common.table("So many workers have half of their time for work", ["", "as it is", "with the changes"], rows)


def print_start(costs: dict[str, Any]) -> None:
    """How long it takes until all are there, and what signs of life cost."""
    rows = []
    for workers in SIZES:
        parts = start(costs, workers)
        beats = 2 * workers / BEAT * costs["driver"] / 2
        rows.append(
            [
                f"{workers:,}",
                *(common.seconds(seconds) for seconds in parts.values()),
                f"{100 * beats:.1f}%",
            ]
        )
    heads = ["workers", "processes", "keys and tables", "of the driver, for signs of life"]
    common.table("Beginning, and staying alive", heads, rows)


def print_check(costs: dict[str, Any], figures: dict[str, Any]) -> None:
    """What the model says of what was measured. Of one worker it is told."""
    steps = figures.get("steps")
    if steps is None:
        return
    costs["rest"] = 0.0
    costs["rest"] = max(0.0, steps["1"] - total(step(costs, 1, steps["trees"])))
    said, was = total(step(costs, 2, steps["trees"])), steps["2"]
    print(
        f"A step on {steps['trees']} trees takes {common.seconds(steps['1'])} with one worker, and "
        f"{common.seconds(was)} with two; the model says {common.seconds(said)} ({100 * (said / was - 1):+.0f} %).\n"
    )


CHANGES = """\
What would lift these bounds, in the order in which they come:
- training: let each row of a table belong to one worker; keep no parameters at the driver; add shards up in a balanced
  tree, whose bits do not depend on workers, too; send numbers of trees to one process of each machine
- f.map: make tasks longer, as the driver's time asks; let machines read the forest from a file
- the search: make tasks longer; let workers hand them to each other without the driver"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", type=Path, default=common.ROOT / "build" / "bench" / "distributed.json")
    options = parser.parse_args()
    figures = json.loads(options.figures.read_text()) if options.figures.exists() else {}
    costs = figures.get("costs", MEASURED)
    print("Measured on this machine." if "costs" in figures else "Measured on two cores of an AMD EPYC.")
    print_check(costs, figures)
    print_kinds(costs)
    print_limits(costs)
    print_start(costs)
    print(CHANGES)


if __name__ == "__main__":
    main()
