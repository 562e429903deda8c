"""Workers for `undertow train --workers N`: how many shards there are, the cluster, and what the user is told of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

import undertow as ut
from undertow.errors import WorkerLost
from undertow.parallel.trainer import usual_shards
from undertow.train.recipe import Recipe


def choose_shards(console: Console, held: int | None, typed: int | None, workers: int | None, before: Any) -> int:
    """The number of shards: as typed, as in the checkpoint if that has some, or what suits the workers."""
    shards = typed or held or Recipe.shards
    if typed is None and workers is not None and shards == 1:
        shards = usual_shards(workers)
    if workers is not None and workers > shards:
        console.print(f"Only {shards} of {workers} workers will be used: a batch has {shards} shards", markup=False)
    if before is not None and before.recipe.shards != shards:
        console.print(
            f"A batch now has {shards} shards, before {before.recipe.shards}: sums are rounded in another way",
            markup=False,
        )
    return shards


@contextlib.contextmanager
def training_cluster(console: Console, workers: int | None, trace: Path | None = None) -> Iterator[Any]:
    """A cluster of so many workers; None for none. Whoever is lost is told of, and so is at the end who did what.

    `trace` is a file for Perfetto.
    """
    if workers is None:
        yield None
        return
    opening = ut.ray.cluster(workers)
    console.print(f"Starting {workers} worker{'s' * (workers != 1)} ...", markup=False)
    with opening as cluster:
        pool = cluster.pool

        def tell(worker: int, incarnation: int, why: str) -> None:
            if pool.is_open:
                console.print(f"Worker {worker} was lost: {why}. It is started again", markup=False)

        pool.on_lost(tell)
        with contextlib.nullcontext() if trace is None else cluster.trace(trace):
            yield cluster
        console.print(f"\n{cluster.stats()}", markup=False)


def saved_if_lost(events: Iterable[Any], file: Path, checkpoint: Any) -> Iterator[Any]:
    """The same events. If workers are lost too often, the last step is saved: the state is that after it."""
    try:
        for event in events:
            checkpoint = replace(checkpoint, state=event.state)
            yield event
    except WorkerLost as fault:
        ut.train.save(file, checkpoint)
        fault.hint += f"; {checkpoint.state.step} steps are saved: --resume continues from there"
        raise
