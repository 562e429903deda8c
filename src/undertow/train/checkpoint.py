"""Checkpoints: a model, its parameters and the state of its training in one safetensors file.

The file is replaced at once or not at all, so there is always a whole one. Nothing in it is ever run.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

import undertow as ut
from undertow.data.vocabulary import Vocabulary
from undertow.errors import LoadError
from undertow.models import MODELS, name_of
from undertow.models.classifier import Params
from undertow.train.loop import Record, State
from undertow.train.recipe import Recipe
from undertow.train.score import Model, Tally

FORMAT = 2  # 1 had what was trained on as a sentence


@dataclass(frozen=True)
class Checkpoint:
    """What a file holds. `source` is what was trained on: the options data, trees and min_count of the command."""

    model: Model
    recipe: Recipe
    state: State
    vocabulary: Vocabulary | None = None
    source: Mapping[str, Any] = field(default_factory=dict)
    labels: Vocabulary | None = None  # the names of classes, if they have names
    inner_words: bool = False  # had inner nodes words, too, in what was trained on? Then typed trees are read so

    @property
    def params(self) -> Params:
        """The best parameters there are."""
        return self.state.params if self.state.best is None else self.state.best


def save(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write a checkpoint. Until all of it is there, the file that was there before stays."""
    state = checkpoint.state
    arrays = {f"params/{name}": value for name, value in state.params.items()}
    arrays |= {f"best/{name}": value for name, value in (state.best or {}).items()}
    for slot, held in state.optimizer.slots.items():
        arrays |= {f"slots/{slot}/{name}": value for name, value in held.items()}
    told = {
        "format": FORMAT,
        "model": name_of(checkpoint.model),
        "sizes": asdict(checkpoint.model),
        "recipe": asdict(checkpoint.recipe),
        "step": state.step,
        "done": state.done,
        "updates": int(state.optimizer.step),
        "tally": asdict(state.tally),
        "history": [asdict(record) for record in state.history],
        "vocabulary": _told(checkpoint.vocabulary),
        "labels": _told(checkpoint.labels),
        "source": dict(checkpoint.source),
        "inner_words": checkpoint.inner_words,
    }
    packed = {name: np.array(arrays[name], order="C") for name in sorted(arrays)}
    data = safetensors.numpy.save(packed, {"undertow": json.dumps(told)})
    _replace(Path(path), data)


def load(path: str | os.PathLike[str]) -> Checkpoint:
    """Read what `save` wrote."""
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            told = json.loads((file.metadata() or {})["undertow"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
        if told["format"] != FORMAT:
            raise LoadError(
                f"{os.fspath(path)!r} has format {told['format']}, and this version knows {FORMAT}",
                hint="use the version that wrote it, or train anew",
            )
        return _unpacked(told, arrays)
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as fault:
        raise LoadError(
            f"{os.fspath(path)!r} does not hold a checkpoint: {fault}", hint="`undertow train` writes such files"
        ) from None


def _unpacked(told: Any, arrays: dict[str, Any]) -> Checkpoint:
    kind: Any = MODELS[told["model"]]
    model, recipe = kind(**told["sizes"]), Recipe(**told["recipe"])
    params = _below(arrays, "params/")
    if {name: value.shape for name, value in params.items()} != model.shapes():
        raise ValueError("its arrays are not those of its model")
    slots = {slot: _below(arrays, f"slots/{slot}/") for slot in recipe.make_optimizer().slots}
    state = State(
        params=_in_order(params, model),
        optimizer=ut.optim.State(np.int64(told["updates"]), {k: _in_order(v, model) for k, v in slots.items()}),
        step=int(told["step"]),
        done=int(told["done"]),
        tally=Tally(**told["tally"]),
        history=tuple(Record(**{f.name: record[f.name] for f in fields(Record)}) for record in told["history"]),
        best=_in_order(best, model) if (best := _below(arrays, "best/")) else None,
    )
    vocabulary, labels = _names(told["vocabulary"]), _names(told["labels"])
    return Checkpoint(model, recipe, state, vocabulary, dict(told["source"]), labels, bool(told["inner_words"]))


def _told(names: Vocabulary | None) -> Any:
    return None if names is None else {"words": list(names.words), "unknown": names.unknown}


def _names(told: Any) -> Vocabulary | None:
    return None if told is None else Vocabulary(tuple(told["words"]), told["unknown"])


def _below(arrays: dict[str, Any], start: str) -> dict[str, Any]:
    return {name.removeprefix(start): value for name, value in arrays.items() if name.startswith(start)}


def _in_order(values: dict[str, Any], model: Model) -> dict[str, Any]:
    """As `init` orders them: gradients, and so sums over all of them, come in that order."""
    return {name: values[name] for name in model.shapes()}


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
