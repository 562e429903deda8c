"""Checkpoints of `DataParallel`: a replica as one safetensors file, replaced atomically. Nothing in it is executed."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from undertow.api.archive import replacing
from undertow.errors import LoadError, brief
from undertow.parallel.replica import Replica

FORMAT = 1
_KEY = "undertow.parallel"


def write(path: str | os.PathLike[str], replica: Replica, names: Sequence[str], shards: int, seed: int) -> None:
    """Write a replica. `names` are those of its parameters."""
    arrays = dict(zip(names, replica.params, strict=True))
    for slot, values in replica.slots.items():
        arrays |= {f"{slot} {name}": value for name, value in zip(names, values, strict=True)}
    row = {"format": FORMAT, "step": replica.step, "updates": replica.updates, "shards": shards, "seed": seed}
    with replacing(path) as file:
        file.write(safetensors.numpy.save(arrays, {_KEY: json.dumps(row)}))


def read(path: str | os.PathLike[str], like: Replica, names: Sequence[str]) -> tuple[Replica, int, int]:
    """A replica of the same parameters and optimizer, the number of shards, and the seed."""
    with open(path, "rb"):
        pass  # a missing file, a folder, or one that may not be read is Python's error
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            row = json.loads((file.metadata() or {})[_KEY])
            arrays: dict[str, Any] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        counts = [row[name] for name in ("format", "step", "updates", "shards", "seed")]
        if any(type(count) is not int or count < 0 for count in counts) or row["shards"] < 1:
            raise ValueError("its counts are no counts")
    except Exception as fault:  # whatever safetensors and JSON say
        what = f"{os.fspath(path)!r} does not hold a checkpoint: {type(fault).__name__}: {fault}"
        raise LoadError(what, hint="trainer.save(path) writes such files") from None
    if row["format"] != FORMAT:
        raise LoadError(f"{os.fspath(path)!r} has format {row['format']}, but this version reads {FORMAT}")
    groups = {"": like.params} | {f"{slot} ": values for slot, values in like.slots.items()}
    wanted = {f"{group}{name}": x for group, of in groups.items() for name, x in zip(names, of, strict=True)}
    for name in wanted.keys() | arrays.keys():
        if name not in arrays or name not in wanted:
            which = "lacks" if name not in arrays else "has"
            raise LoadError(f"{os.fspath(path)!r} {which} {brief(name)}", hint=_HINT)
        if (arrays[name].shape, arrays[name].dtype) != (wanted[name].shape, wanted[name].dtype):
            raise LoadError(f"{os.fspath(path)!r} has another {brief(name)}", hint=_HINT)
    found = {group: [np.array(arrays[f"{group}{name}"]) for name in names] for group in groups}
    slots = {slot: found[f"{slot} "] for slot in like.slots}
    return Replica(found[""], slots, row["updates"], row["step"]), row["shards"], row["seed"]


_HINT = "it was written for other parameters, or another optimizer"
