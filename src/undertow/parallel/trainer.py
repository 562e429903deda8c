"""`ut.ray.DataParallel`: one loss, trained on all workers of a cluster as if it were on one machine."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from undertow.api import optim
from undertow.api.grad import value_and_grad
from undertow.api.options import changed_limits, settings
from undertow.api.params import is_leaf
from undertow.cluster.counts import count_of
from undertow.cluster.pool import Pool
from undertow.data.forest import Forest
from undertow.engines import outside
from undertow.errors import CaptureError, TypeMismatch, UndertowError, brief, kind_of
from undertow.frontend.values import tree
from undertow.frontend.values.operands import as_operand
from undertow.frontend.values.state import Variable
from undertow.parallel import checkpoint
from undertow.parallel.fleet import Fleet
from undertow.parallel.replica import Replica, Rule, check_optimizer
from undertow.parallel.shards import cut, mean_of
from undertow.tracebacks import guarded

FEWEST_SHARDS = 4
REDUCES = ("ring", "torch")
THREADS = 1  # of each worker, unless told otherwise: there is one for each processor


@guarded
class DataParallel:
    """Trains parameters on all workers of a cluster.

    with ut.ray.cluster(workers=2):
        trainer = ut.ray.DataParallel(loss, params, ut.optim.Adam(1e-3))
        for batch in forest.batches(256, seed=0):
            print(trainer.step(batch))
        params = trainer.params

    `loss(params, *batch)` gives a float: the mean over the items of the batch (or their sum, with `average=False`). A
    batch is cut into `shards` of about equally many nodes of trees, or rows of arrays; gradients are computed apart and
    added up in the order of shards, so that the bits depend on their number, and neither on that of workers nor on
    workers that are lost. It is a power of two, and at least 4, unless given. More workers than shards would idle.

    With `has_aux` the loss returns a pair, the float and anything else. `clip` is the largest norm of the gradients
    together. `retries`: how often a step may lose a worker, and be begun again. `seed`: of functions that draw random
    numbers. `reduce="torch"` adds up by torch.distributed where workers have PyTorch; bits then depend on the number of
    workers. Other keywords are options of the runs on workers, such as `memory` and `threads` (1).
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        params: Any,
        optimizer: optim.Optimizer,
        *,
        has_aux: bool = False,
        average: bool = True,
        shards: int | None = None,
        clip: float | None = None,
        seed: int = 0,
        state: optim.State | None = None,
        retries: int = 3,
        cluster: Any = None,
        reduce: str = "ring",
        **options: Any,
    ) -> None:
        check_optimizer(optimizer)
        if reduce not in REDUCES:
            raise UndertowError(f"unknown way to reduce: {brief(reduce)}", hint=f"choose from {', '.join(REDUCES)}")
        settings().with_(**options)  # refuses wrong ones here
        pool = pool_of(cluster)
        self._takes = names_of_batch(loss)
        self._optimizer = optimizer
        self._has_aux, self._average = bool(has_aux), bool(average)
        self._seed = int(seed)
        self._is_cut_by_user = shards is not None
        self.shards = usual_shards(pool.size) if shards is None else count_of("shards", shards)
        _, self._structure = tree.flatten(params, is_leaf)
        self._fleet = Fleet(
            pool,
            value_and_grad(loss, has_aux=self._has_aux, sparse_rows=True),
            self._has_aux,
            self._structure,
            Replica.of(params, optimizer, state),
            Rule(optimizer, clip),
            count_of("retries", retries, least=0),
            {"threads": THREADS, **changed_limits(), **options},
            reduce,
        )

    def step(self, *batch: Any, learning_rate: Any = None) -> Any:
        """Train on a batch: its loss, before the update; with `has_aux`, and a list of what came with it, by shard.

        Every item of the batch is in one shard. What all shards need whole is wrapped in `ut.shared`.
        """
        shards = cut(batch, self.shards)
        items = sum(shard.items for shard in shards)
        weights = [shard.items / items if self._average else 1.0 for shard in shards]
        seed, rates = (self._seed, self.steps, 1), (self._rate(learning_rate), None)
        try:
            found = self._fleet.step(shards, weights, seed, rates)
        except (CaptureError, TypeMismatch) as fault:  # of the loss, with a batch that it was not captured for
            fault.hint = f"{fault.hint}; {self._about(batch)}".removeprefix("; ")
            raise
        loss = mean_of([loss for loss, _ in found], weights)
        return (loss, [aux for _, aux in found]) if self._has_aux else loss

    def _about(self, batch: Sequence[Any]) -> str:
        """What the loss was given, and what it takes."""
        given = ", ".join(map(said, batch)) or "nothing"
        return f"`step` was given {given}; it takes what the loss takes after its parameters{self._takes}"

    def _rate(self, learning_rate: Any) -> Any:
        rate = self._optimizer.learning_rate if learning_rate is None else learning_rate
        if callable(rate) and not isinstance(rate, Variable):
            rate = rate(np.int64(self._fleet.replica.updates))
        if type(rate) is float:
            return rate
        number = np.asarray(as_operand(rate))
        if number.ndim:
            raise UndertowError(f"the learning rate is {brief(rate)}", hint="one number applies to all parameters")
        return number[()]

    @property
    def params(self) -> Any:
        """The parameters after the last step, copied."""
        return tree.unflatten(self._structure, [value.copy()[()] for value in self._fleet.replica.params])

    @property
    def state(self) -> optim.State:
        """What the optimizer remembers, copied."""
        replica = self._fleet.replica
        slots = {
            name: tree.unflatten(self._structure, [value.copy()[()] for value in values])
            for name, values in replica.slots.items()
        }
        return optim.State(np.int64(replica.updates), slots)

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return self._fleet.replica.step

    @property
    def again(self) -> int:
        """How often a step was begun again, because a worker was lost."""
        return self._fleet.again

    @property
    def workers(self) -> int:
        """How many workers are there now."""
        return self._fleet.workers

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write parameters, the state of the optimizer and the number of steps to a safetensors file, atomically."""
        params = tree.unflatten(self._structure, self._fleet.replica.params)
        checkpoint.write(path, self._fleet.replica, tree.paths(params, "params", is_leaf), self.shards, self._seed)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Go on from a file that `save` wrote, on any number of workers.

        The number of shards and the seed are those of the file, so training goes on with the same bits; `shards`, if
        it was given, stays.
        """
        params = tree.unflatten(self._structure, self._fleet.replica.params)
        paths = tree.paths(params, "params", is_leaf)
        replica, shards, self._seed = checkpoint.read(path, self._fleet.replica, paths)
        self._fleet.restore(replica)
        self.shards = self.shards if self._is_cut_by_user else shards

    def close(self) -> None:
        """Workers forget this trainer. So they do when the cluster ends."""
        self._fleet.close()

    def __repr__(self) -> str:
        return f"<DataParallel: {self.steps} steps, {self.shards} shards>"


def usual_shards(workers: int) -> int:
    """The number of shards, unless it is given: the same for one, two and four workers."""
    return max(FEWEST_SHARDS, 1 << (workers - 1).bit_length())


def names_of_batch(loss: Callable[..., Any]) -> str:
    """What a loss calls its batch, as a part of a message; "" if that is not known.

    >>> names_of_batch(lambda params, forest, *, table: 0.0)
    ': forest, table'
    """
    try:
        _, *names = map(str, inspect.signature(loss).parameters.values())
    except (TypeError, ValueError):
        return ""
    names = [name.partition(":")[0] for name in names if name != "*"]
    return f": {', '.join(names)}" if names else ""


def said(value: Any) -> str:
    """A part of a batch, for messages.

    >>> said(np.ones((3, 2))), said(5)
    ('an array float64[3, 2]', 'an int')
    """
    if isinstance(value, Forest):
        return f"a forest of {len(value.roots)} trees"
    if isinstance(value, np.ndarray):
        return f"an array {value.dtype}{list(value.shape)}"
    return kind_of(value)


def pool_of(cluster: Any) -> Pool:
    """The workers of a cluster; of the one around, if none is given."""
    pool = getattr(outside.current() if cluster is None else cluster, "pool", None)
    if pool is None:
        pool = outside.current() if cluster is None else cluster
    if not isinstance(pool, Pool):
        raise UndertowError(
            "there is no cluster to train on" if cluster is None else f"{brief(cluster)} is no cluster",
            hint="train inside `with ut.ray.cluster(workers=2):`, or pass cluster=",
        )
    return pool
