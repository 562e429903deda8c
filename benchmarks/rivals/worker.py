"""A rival in a process of its own: it waits for its turn, does one epoch, and tells how long each batch took.

`python -m rivals.worker MODULE FOLDER [VARIANT]` in `benchmarks/`: a line of JSON in, a line of JSON out.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import forests

FEW = 6  # batches of an epoch


def timed(work: Callable[[list[forests.Tree]], Any], batches: list[list[forests.Tree]]) -> dict[str, list[float]]:
    """Seconds of each batch, of the processor and on the clock.

    Those of the processor are never more than those on the clock: a thread that waits for another may be busy with it.
    """
    processor, clock = [], []
    for batch in batches:
        began, ticked = time.perf_counter(), time.process_time()
        work(batch)
        used, took = time.process_time() - ticked, time.perf_counter() - began
        processor.append(min(used, took))
        clock.append(took)
    return {"processor": processor, "clock": clock}


class Worker:
    """The commands of the parent; each returns what its line of JSON says."""

    def __init__(self, module: str, folder: Path, variant: str) -> None:
        self.folder, self.variant = folder, variant
        self.module = importlib.import_module(f"rivals.{module}")
        self.trees = forests.restore(folder / "trees.npz")
        self.rival: Any = None

    def hello(self) -> dict[str, Any]:
        return {"version": self.module.VERSION}

    def start(self, model: str) -> dict[str, Any]:
        """A fresh rival for a model."""
        self.rival = None  # what is no longer needed goes first
        with np.load(self.folder / f"{model}.npz") as params:
            self.rival = self.module.make(model, dict(params), self.variant)
        return {}

    def loss(self, count: int) -> dict[str, Any]:
        return {"loss": float(self.rival.loss(self.trees["train"][:count]))}

    def steps(self, count: int, batch: int) -> dict[str, Any]:
        """Some steps of training, untimed; the sum of their losses."""
        first = forests.batches(self.trees["train"], batch)[:count]
        return {"loss": float(sum(self.rival.train(trees) for trees in first))}

    def epoch(self, work: str, batch: int, trees: str) -> dict[str, Any]:
        """Seconds of each batch. Few large ones are done several times, or all would begin with cold caches."""
        found = self.trees[trees]
        parts = forests.batches(found, batch)
        rounds = [timed(getattr(self.rival, work), parts) for _ in range(max(1, FEW // len(parts)))]
        best = {kind: np.min([times[kind] for times in rounds], axis=0).tolist() for kind in rounds[0]}
        return {"trees": len(found), **best}

    def learn(self, batch: int, trees: str, seed: int) -> dict[str, Any]:
        """Once through all trees in an order of this seed; seconds, and the sum of the losses."""
        found = self.trees[trees]
        order = np.random.default_rng(seed).permutation(len(found))
        parts = forests.batches([found[k] for k in order], batch)
        losses: list[float] = []
        times = timed(lambda part: losses.append(float(self.rival.train(part))), parts)
        return {"loss": sum(losses), **{kind: sum(seconds) for kind, seconds in times.items()}}

    def answers(self, batch: int, trees: str) -> dict[str, Any]:
        found = [self.rival.infer(part) for part in forests.batches(self.trees[trees], batch)]
        return {"answers": [int(value) for part in found for value in part]}

    def kinds(self, work: str, batch: int, trees: str) -> dict[str, Any]:
        """Seconds of an epoch by kind of step, where a rival knows them."""
        total: Counter[str] = Counter()
        for part in forests.batches(self.trees[trees], batch):
            total.update(self.rival.kinds(work, part))
        return dict(total)

    def peak(self, batch: int) -> dict[str, Any]:
        trees = self.trees["train"][:batch]
        return {"bytes": self.rival.peak(trees), "nodes": sum(len(tree.word) for tree in trees)}


def main() -> None:
    module, folder, *variant = sys.argv[1:]
    if hasattr(os, "sched_setaffinity"):  # one thread is one core: no framework uses others behind its own back
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    # What frameworks print goes to stderr: stdout is for answers.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        worker = Worker(module, Path(folder), "".join(variant))
    except ImportError as fault:
        print(json.dumps({"missing": f"{fault.name or fault} is not installed"}), file=out, flush=True)
        return
    print(json.dumps(worker.hello()), file=out, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = getattr(worker, command.pop("do"))(**command)
        except Exception as fault:
            answer = {"failed": f"{type(fault).__name__}: {fault}".splitlines()[0]}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
