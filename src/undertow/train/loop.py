"""The training loop: an iterator of events, which the caller may show, log, save, or stop.

A `State` is everything that one step passes to the next. The order of trees and the seed of dropout derive from the
recipe's seed and the step number, so a run resumed from a saved state gives the same bits as one that was
never interrupted.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import undertow as ut
from undertow.api.options import changed_limits
from undertow.data.forest import Forest
from undertow.errors import DataError, FrameLimit, RunError
from undertow.frontend.values import tree
from undertow.models.classifier import Params, TreeClassifier
from undertow.parallel.fleet import Alone, Fleet, Work
from undertow.parallel.replica import Replica, Rule
from undertow.parallel.shards import cut, mean_of, seed_of
from undertow.parallel.trainer import THREADS, pool_of
from undertow.tracebacks import boundary
from undertow.train.recipe import Recipe
from undertow.train.score import Model, Tally, judged, score

_DIVERGED = 1e30  # training does not recover from a larger loss, and soon overflows


@dataclass(frozen=True)
class Record:
    """The results of an epoch: a row of the log."""

    epoch: int
    steps: int
    rate: float
    train_loss: float
    train_accuracy: float
    dev_loss: float
    dev_accuracy: float
    dev_node_accuracy: float
    trees_per_second: float

    @property
    def quality(self) -> tuple[float, float]:
        """The higher, the better: accuracy on dev roots, then on dev nodes; without labels, minus the loss.

        So nodes decide if all roots have the same label, as those of parsed sentences (S).
        """
        if np.isnan(self.dev_accuracy):
            return -self.dev_loss, 0.0
        return self.dev_accuracy, 0.0 if np.isnan(self.dev_node_accuracy) else self.dev_node_accuracy


@dataclass(frozen=True)
class State:
    """The state of training. In `Step` events its arrays are only valid until the next step, which overwrites them."""

    params: Params
    optimizer: ut.optim.State
    step: int = 0  # updates so far
    done: int = 0  # batches finished in this epoch
    tally: Tally = Tally()  # of this epoch  # noqa: RUF009
    history: tuple[Record, ...] = ()
    best: Params | None = None  # the parameters of the epoch with the best dev score

    @property
    def epoch(self) -> int:
        """How many epochs are complete."""
        return len(self.history)

    @property
    def best_record(self) -> Record | None:
        """The epoch with the best dev score; the first if several are equal."""
        return max(self.history, key=lambda record: record.quality, default=None)

    def __repr__(self) -> str:
        count = sum(int(np.size(value)) for value in self.params.values())
        return f"<State: {self.epoch} epochs, {self.step} steps, {count:,} parameters>"


@dataclass(frozen=True)
class Step:
    """One update was made."""

    state: State
    batches: int  # of an epoch
    loss: float  # of this batch
    trees: int  # in this batch
    workers: int = 0  # that are there; 0 without a cluster


@dataclass(frozen=True)
class Epoch:
    """An epoch is complete, and the dev set was evaluated."""

    state: State
    record: Record
    is_best: bool


@boundary
def start(model: Model, recipe: Recipe, params: Params | None = None) -> State:
    """The state before the first step."""
    first = model.init(recipe.seed) if params is None else {name: np.array(value) for name, value in params.items()}
    return State(first, recipe.make_optimizer().init(first))


def fit(
    model: Model, train: Forest, dev: Forest, recipe: Recipe, state: State | None = None, cluster: Any = None
) -> Iterator[Step | Epoch]:
    """Train until the epochs or the patience run out; the last `Epoch` has the final state.

    The arrays of `state` are consumed. `with ut.options(...)` applies, e.g. to the number of threads. The workers of a
    `cluster` (of `ut.ray`) compute the gradients of the recipe's `shards`; the results are the same.
    """
    if not len(train) or not len(dev):
        raise DataError("training needs trees to train on and trees to evaluate on", hint="add trees to both")
    _check_alike(train, dev)
    for forest in (train, dev):
        model.check(forest)
        _check_labels(model, forest, recipe.at)
    state = start(model, recipe) if state is None else state
    work = _work(model, recipe, state, cluster)
    steps = -(-len(train) // recipe.batch)
    began, busy = time.perf_counter(), 0
    while state.epoch < recipe.epochs and not is_over(state, recipe):
        order = train.batches(recipe.batch, seed=seed_of(recipe.seed, state.epoch))
        for batch in itertools.islice(order, state.done, None):
            parts = cut((batch,), recipe.shards)
            weights = [part.items / len(batch) for part in parts]
            rate = recipe.rate_at(state.step, steps)
            rates = np.float32(rate), np.float32(rate * recipe.embed_rate)
            try:
                found = work.step(parts, weights, (recipe.seed, state.step, 1), rates)
            except FrameLimit as fault:
                fault.hint += f"; batches of fewer than {recipe.batch} trees need less: Recipe(batch=), or --batch"
                raise
            loss, hits = mean_of([loss for loss, _ in found], weights), np.sum([hits for _, hits in found], axis=0)
            _check_loss(loss, f"in step {state.step + 1} of epoch {state.epoch + 1}")
            params, memory = _held(work.replica, state)
            tally = state.tally.plus(model, batch, loss, hits)
            state = replace(
                state, params=params, optimizer=memory, step=state.step + 1, done=state.done + 1, tally=tally
            )
            busy += len(batch)
            yield Step(state, steps, float(loss), len(batch), work.workers)
        speed = busy / max(time.perf_counter() - began, 1e-9)
        on_train, on_dev = state.tally.score(), score(model, state.params, dev, recipe.at)
        _check_loss(on_dev.loss, f"of the dev trees after epoch {state.epoch + 1}")
        rate = recipe.rate_at(state.step - 1, steps)
        record = Record(state.epoch + 1, state.step, rate, on_train.loss, on_train.accuracy, *on_dev, speed)
        best = state.best_record
        is_best = best is None or record.quality > best.quality
        best_params = {name: value.copy() for name, value in state.params.items()} if is_best else state.best
        state = replace(state, done=0, tally=Tally(), history=(*state.history, record), best=best_params)
        yield Epoch(state, record, is_best)
        began, busy = time.perf_counter(), 0


def _work(model: Model, recipe: Recipe, state: State, cluster: Any) -> Work:
    """What makes the steps. Its replica has the arrays of the state, and writes over them."""
    names = list(state.params)
    embeddings = tuple(k for k, name in enumerate(names) if name.startswith("embed"))
    others = tuple(k for k in range(len(names)) if k not in embeddings)
    optimizer = recipe.make_optimizer()
    slow = embeddings if recipe.embed_rate != 1 else ()
    rule = Rule(optimizer, recipe.clip, recipe.l2, others, slow)
    slots = {slot: [values[name] for name in names] for slot, values in state.optimizer.slots.items()}
    replica = Replica([state.params[name] for name in names], slots, int(state.optimizer.step), state.step)
    slopes = ut.value_and_grad(judged(model, recipe.at), has_aux=True, sparse_rows=True)
    _, structure = tree.flatten(state.params)
    if cluster is None:
        return Alone(slopes, True, structure, replica, rule)
    options = {"threads": THREADS, **changed_limits()}
    return Fleet(pool_of(cluster), slopes, True, structure, replica, rule, options=options)


def _held(replica: Replica, state: State) -> tuple[Params, ut.optim.State]:
    """The parameters of a replica by name, and the state of the optimizer."""
    slots = {slot: dict(zip(state.params, values, strict=True)) for slot, values in replica.slots.items()}
    params = dict(zip(state.params, replica.params, strict=True))
    return params, ut.optim.State(np.int64(replica.updates), slots)


def _check_loss(loss: Any, where: str) -> None:
    if not abs(loss) <= _DIVERGED:
        raise RunError(
            f"training diverged: the loss is {loss:.4g} {where}",
            hint="lower the learning rate (--rate), or clip gradients more (--clip)",
        )


def _check_alike(train: Forest, dev: Forest) -> None:
    """Reject dev trees whose vocabulary or label names differ from the training trees'."""
    for name in ("vocabulary", "labels"):
        one, other = getattr(train, name), getattr(dev, name)
        if one is not None and other is not None and one != other:
            what = "words" if name == "vocabulary" else "labels"
            raise DataError(f"the dev trees have different {what}", hint=f"create them with {name}=train.{name}")


def _check_labels(model: Model, forest: Forest, at: str) -> None:
    """Reject trees without labels: all losses would be zero."""
    places = slice(None) if at == "nodes" else forest.roots
    if isinstance(model, TreeClassifier) and not (forest.label[places] >= 0).any():
        raise DataError(f"no {at.removesuffix('s')} has a label", hint="training trees and dev trees need labels")


def is_over(state: State, recipe: Recipe) -> bool:
    """Have `patience` epochs passed without improvement?"""
    best = state.best_record
    return recipe.patience is not None and best is not None and state.epoch - best.epoch >= recipe.patience
