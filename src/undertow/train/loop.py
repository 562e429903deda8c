"""The training loop: an iterator of events, which the caller may show, log, save, or stop.

A `State` is everything that one step passes to the next. The order of trees and the seed of dropout derive from the
recipe's seed and the step number, so a run resumed from a saved state gives the same bits as one that was
never interrupted.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import undertow as ut
from undertow.data.forest import Forest
from undertow.errors import DataError, FrameLimit, RunError
from undertow.models.classifier import Params, TreeClassifier
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


def fit(model: Model, train: Forest, dev: Forest, recipe: Recipe, state: State | None = None) -> Iterator[Step | Epoch]:
    """Train until the epochs or the patience run out; the last `Epoch` has the final state.

    The arrays of `state` are consumed. `with ut.options(...)` applies, e.g. to the number of threads.
    """
    if not len(train) or not len(dev):
        raise DataError("training needs trees to train on and trees to evaluate on", hint="add trees to both")
    _check_alike(train, dev)
    for forest in (train, dev):
        model.check(forest)
        _check_labels(model, forest, recipe.at)
    state = start(model, recipe) if state is None else state
    optimizer = recipe.make_optimizer()
    slopes = ut.value_and_grad(judged(model, recipe.at), has_aux=True, sparse_rows=True)
    steps = -(-len(train) // recipe.batch)
    began, busy = time.perf_counter(), 0
    while state.epoch < recipe.epochs and not is_over(state, recipe):
        order = train.batches(recipe.batch, seed=hash_of(recipe.seed, state.epoch))
        for batch in itertools.islice(order, state.done, None):
            try:
                (loss, hits), grads = slopes.run(state.params, batch, seed=hash_of(recipe.seed, state.step, 1))
            except FrameLimit as fault:
                fault.hint += f"; batches of fewer than {recipe.batch} trees need less: Recipe(batch=), or --batch"
                raise
            _check_loss(loss, f"in step {state.step + 1} of epoch {state.epoch + 1}")
            with np.errstate(all="ignore"):  # an overflow here shows in the next loss
                grads = _pulled(grads, state.params, recipe.l2)
                if recipe.clip is not None:
                    grads = ut.optim.clip_by_norm(grads, recipe.clip)
                rate = recipe.rate_at(state.step, steps)
                params, memory = _updated(optimizer, grads, state, rate, recipe.embed_rate)
            tally = state.tally.plus(model, batch, loss, hits)
            state = replace(
                state, params=params, optimizer=memory, step=state.step + 1, done=state.done + 1, tally=tally
            )
            busy += len(batch)
            yield Step(state, steps, float(loss), len(batch))
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


def hash_of(*numbers: int) -> int:
    """A seed derived from all of these numbers, the same on every machine."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))


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


def _pulled(grads: Any, params: Params, l2: float) -> Any:
    if l2 == 0:
        return grads
    return {
        name: g + np.float32(l2) * params[name] if isinstance(g, np.ndarray) and not name.startswith("embed") else g
        for name, g in grads.items()
    }


def _updated(
    optimizer: ut.optim.Optimizer, grads: Any, state: State, rate: float, embed_rate: float
) -> tuple[Params, ut.optim.State]:
    """Parameters and optimizer state after a step; embeddings have their own rate."""
    if embed_rate == 1:
        return optimizer.update(grads, state.optimizer, state.params, np.float32(rate), donate=True)
    before, updates = state.optimizer, []
    embeddings = {name for name in state.params if name.startswith("embed")}
    for names, factor in ((embeddings, embed_rate), (state.params.keys() - embeddings, 1.0)):
        slots_of_part = ut.optim.State(before.step, {slot: _of(values, names) for slot, values in before.slots.items()})
        params = _of(state.params, names)
        updates.append(
            optimizer.update(_of(grads, names), slots_of_part, params, np.float32(rate * factor), donate=True)
        )
    (embedding_params, embedding_state), (other_params, other_state) = updates
    slots = {
        slot: {**values, **embedding_state.slots[slot], **other_state.slots[slot]}
        for slot, values in before.slots.items()
    }
    return {**state.params, **embedding_params, **other_params}, ut.optim.State(before.step + 1, slots)


def _of(values: Params, names: Collection[str]) -> Params:
    return {name: value for name, value in values.items() if name in names}
