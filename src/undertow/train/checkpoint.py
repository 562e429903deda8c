"""Checkpoints: a model, its parameters and the state of its training in one safetensors file.

The file is replaced atomically, so it is always complete. Nothing in it is executed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

import undertow as ut
from undertow.api.archive import replacing
from undertow.data.vocabulary import Vocabulary
from undertow.errors import LoadError, UndertowError, brief
from undertow.ir.record import record_of
from undertow.models import MODELS, name_of
from undertow.models.classifier import Params
from undertow.tracebacks import boundary
from undertow.train.loop import Record, State
from undertow.train.recipe import Recipe
from undertow.train.score import Tally

FORMAT = 2  # format 1 described the training data in a sentence


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a file. `source` names the training data: the options data, trees and min_count."""

    model: Any  # a Model
    recipe: Recipe
    state: State
    vocabulary: Vocabulary | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    labels: Vocabulary | None = None  # the names of classes, if they have names
    inner_words: bool = False  # did inner nodes of the training trees have words? Then trees on the command line do

    @property
    def params(self) -> Params:
        """The best parameters so far."""
        return self.state.params if self.state.best is None else self.state.best


@boundary
def save(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically: the old file stays until the new one is complete."""
    state = checkpoint.state
    arrays = {f"params/{name}": value for name, value in state.params.items()}
    arrays |= {f"best/{name}": value for name, value in (state.best or {}).items()}
    for slot, held in state.optimizer.slots.items():
        arrays |= {f"slots/{slot}/{name}": value for name, value in held.items()}
    metadata = {
        "format": FORMAT,
        "model": name_of(checkpoint.model),
        "sizes": asdict(checkpoint.model),
        "recipe": asdict(checkpoint.recipe),
        "step": state.step,
        "done": state.done,
        "updates": int(state.optimizer.step),
        "tally": asdict(state.tally),
        "history": [asdict(record) for record in state.history],
        "vocabulary": None if checkpoint.vocabulary is None else asdict(checkpoint.vocabulary),
        "labels": None if checkpoint.labels is None else asdict(checkpoint.labels),
        "source": dict(checkpoint.source),
        "inner_words": checkpoint.inner_words,
    }
    packed = {name: np.array(arrays[name], order="C") for name in sorted(arrays)}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(safetensors.numpy.save(packed, {"undertow": json.dumps(metadata)}))


@boundary
def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a file written by `save`."""
    with open(path, "rb"):
        pass  # a missing file, a folder, or one that may not be read is Python's error
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = json.loads((file.metadata() or {})["undertow"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is not a mapping
        if metadata["format"] != FORMAT:
            raise LoadError(
                f"{os.fspath(path)!r} has format {brief(metadata['format'])}, but this version reads {FORMAT}",
                hint="use the version that wrote it, or train again",
            )
        return _unpacked(metadata, arrays)
    except LoadError:
        raise
    except Exception as fault:  # whatever JSON, safetensors, models and recipes say of what they cannot be made of
        what = fault.what if isinstance(fault, UndertowError) else f"{type(fault).__name__}: {fault}"
        raise LoadError(
            f"{os.fspath(path)!r} does not hold a checkpoint: {what}", hint="`undertow train` writes such files"
        ) from None


@dataclass(frozen=True)
class _Counts:
    """How far training had come."""

    step: int
    done: int
    updates: int
    inner_words: bool


def _vocabulary(held: Any) -> Vocabulary | None:
    if held is None:
        return None
    words, unknown = held["words"], held["unknown"]
    if type(words) is not list or any(type(word) is not str for word in words) or type(unknown) not in (str, NoneType):
        raise ValueError("its words must be strings")
    return Vocabulary(tuple(words), unknown)


def _unpacked(metadata: Any, arrays: dict[str, Any]) -> Checkpoint:
    kind: Any = MODELS[metadata["model"]]
    model, recipe = kind(**metadata["sizes"]), Recipe(**metadata["recipe"])
    counts = record_of(_Counts, {field.name: metadata[field.name] for field in fields(_Counts)})
    if min(counts.step, counts.done, counts.updates) < 0:
        raise ValueError("a number of steps is negative")
    groups = ["params", *(f"slots/{slot}" for slot in recipe.make_optimizer().slots)]
    groups += ["best"] if any(name.startswith("best/") for name in arrays) else []
    wanted = {f"{group}/{name}": shape for group in groups for name, shape in model.shapes().items()}
    if {name: value.shape for name, value in arrays.items()} != wanted:
        raise ValueError("its arrays do not fit its model")
    if any(value.dtype.kind != "f" for value in arrays.values()):
        raise ValueError("its arrays must hold floats")

    def below(start: str) -> dict[str, Any]:
        # In the order of `init`: sums over all gradients are taken in that order, and their bits depend on it.
        return {name: arrays[f"{start}/{name}"] for name in model.shapes()}

    slots = {slot: below(f"slots/{slot}") for slot in recipe.make_optimizer().slots}
    state = State(
        params=below("params"),
        optimizer=ut.optim.State(np.int64(counts.updates), slots),
        step=counts.step,
        done=counts.done,
        tally=record_of(Tally, metadata["tally"]),
        history=tuple(record_of(Record, record) for record in metadata["history"]),
        best=below("best") if "best" in groups else None,
    )
    vocabulary, labels = _vocabulary(metadata["vocabulary"]), _vocabulary(metadata["labels"])
    return Checkpoint(model, recipe, state, vocabulary, dict(metadata["source"]), labels, counts.inner_words)
