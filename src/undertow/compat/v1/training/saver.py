"""`tf.train.Saver`: checkpoints, each a safetensors file of variables by name, and a text file that lists the newest.

`save(sess, "model.ckpt", 100)` writes `model.ckpt-100.safetensors`, and `checkpoint` beside it. A name without its
ending is what `restore` takes, as in TensorFlow 1, whose own files are of another format.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

from undertow.compat.v1.graph import Graph, get_default_graph
from undertow.compat.v1.place import here
from undertow.compat.v1.state import Variable, global_variables
from undertow.compat.v1.tensor import is_tensor_like
from undertow.errors import GraphError, LoadError, SaveError, TypeMismatch, brief
from undertow.ir.graph import Port
from undertow.tracebacks import boundaries

__all__ = [
    "CheckpointState", "Saver", "checkpoint_exists", "get_checkpoint_state", "latest_checkpoint", "list_variables",
    "load_variable",
]  # fmt: skip

_ENDING = ".safetensors"
_LOAD: Any = safetensors.numpy.load_file


@dataclass
class CheckpointState:
    """Which checkpoints a directory has."""

    model_checkpoint_path: str  # the newest
    all_model_checkpoint_paths: list[str] = field(default_factory=list)


class Saver:
    """Writes checkpoints of variables, and reads them back."""

    def __init__(
        self, var_list: Any = None, reshape: bool = False, sharded: bool = False, max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10_000.0, name: str | None = None, **_: Any,
    ) -> None:  # fmt: skip
        self._graph = get_default_graph()
        self._variables = None if var_list is None else _by_name(var_list)
        self._max_to_keep = max_to_keep or 0
        self._kept: list[str] = []
        if not self._chosen(self._graph):
            raise GraphError("there are no variables to save", here(), hint="make the Saver after the variables")

    def _chosen(self, graph: Graph) -> dict[str, Variable]:
        if self._variables is not None:
            return self._variables
        with graph.as_default():
            return _by_name(global_variables())

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints that this saver has written and not deleted, oldest first."""
        return list(self._kept)

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Checkpoints of earlier runs, which `max_to_keep` is to count."""
        self._kept = [str(path) for path in last_checkpoints]

    recover_last_checkpoints = set_last_checkpoints

    def save(
        self, sess: Any, save_path: str, global_step: Any = None, latest_filename: str | None = None,
        meta_graph_suffix: str = "meta", write_meta_graph: bool = True, write_state: bool = True,
    ) -> str:  # fmt: skip
        """Write the values that variables have in a session; returns the name for `restore`."""
        prefix = os.fspath(save_path)
        if not os.path.basename(prefix):
            raise SaveError(f"{prefix!r} is a directory", here(), hint='name a file: "./model.ckpt"')
        if global_step is not None:
            step = sess.run(global_step) if is_tensor_like(global_step) else global_step
            prefix = f"{prefix}-{int(step)}"
        variables = self._chosen(sess.graph)
        values = dict(zip(variables, sess.run(list(variables.values())), strict=True))
        arrays = {name: np.ascontiguousarray(value).reshape(np.shape(value)) for name, value in values.items()}
        _write(prefix + _ENDING, safetensors.numpy.save(arrays, {"format": "undertow.compat.v1"}))
        if prefix in self._kept:
            self._kept.remove(prefix)
        self._kept.append(prefix)
        while self._max_to_keep and len(self._kept) > self._max_to_keep:
            Path(self._kept.pop(0) + _ENDING).unlink(missing_ok=True)
        if write_state:
            self._write_state(os.path.dirname(prefix), latest_filename)
        return prefix

    def _write_state(self, directory: str, latest_filename: str | None) -> None:
        """The list of checkpoints, relative to its own directory, so that this may be moved."""
        rows = [("model_checkpoint_path", self._kept[-1])]
        rows += [("all_model_checkpoint_paths", path) for path in self._kept]
        text = "".join(f"{key}: {json.dumps(os.path.relpath(path, directory or '.'))}\n" for key, path in rows)
        _write(os.path.join(directory, latest_filename or "checkpoint"), text.encode())

    def restore(self, sess: Any, save_path: str | None) -> None:
        """Give variables the values of a checkpoint, in a session; others keep theirs."""
        if save_path is None:
            raise TypeMismatch(
                "there is no checkpoint to restore", here(), hint="test tf.train.latest_checkpoint(...) for None"
            )
        arrays = _read(os.fspath(save_path))
        variables = self._chosen(sess.graph)
        missing = [name for name in variables if name not in arrays]
        if missing:
            raise LoadError(
                f"the checkpoint {save_path!r} has no variable {missing[0]!r}",
                here(),
                hint=f"it has {', '.join(sorted(arrays)[:6])}; pass var_list= to the Saver to restore only some",
            )
        for name, variable in variables.items():
            found = arrays[name]
            if (
                found.dtype != variable.dtype.numpy
                or any(a is not None and a != b for a, b in zip(variable.shape, found.shape, strict=False))
                or found.ndim != len(variable.shape)
            ):
                raise LoadError(
                    f"{name!r} is {found.dtype.name}{list(found.shape)} in the checkpoint, not {variable.type}",
                    here(),
                    hint="build the graph that was saved, or leave the variable out: var_list=",
                )
        _assign(sess, [(variable, arrays[name]) for name, variable in variables.items()])


def _by_name(var_list: Any) -> dict[str, Variable]:
    """Variables by the names that they have in a file."""
    pairs = list(var_list.items()) if isinstance(var_list, Mapping) else [(None, v) for v in var_list]
    chosen: dict[str, Variable] = {}
    for name, variable in pairs:
        if not isinstance(variable, Variable):
            raise TypeMismatch(f"{brief(variable)} is not a variable", here(), hint="pass variables to tf.train.Saver")
        stem = variable.op.name if name is None else str(name)
        if stem in chosen:
            raise GraphError(f"two variables have the name {stem!r}", here(), hint="pass a dict of names")
        chosen[stem] = variable
    return chosen


def _assign(sess: Any, pairs: Sequence[tuple[Variable, Any]]) -> None:
    """Run the initializers with other values than the initial ones: in one run, where no two share an initial value."""
    waiting = list(pairs)
    while waiting:
        feeds: dict[Port, tuple[Variable, Any]] = {}
        later = []
        for variable, value in waiting:
            if variable.initial_value.port in feeds:
                later.append((variable, value))
            else:
                feeds[variable.initial_value.port] = variable, value
        sess.run([v.initializer for v, _ in feeds.values()], {v.initial_value: x for v, x in feeds.values()})
        waiting = later


# -- files -------------------------------------------------------------------------------------------------


def _write(path: str, data: bytes) -> None:
    """Write a file at once: whoever reads it finds the old one or the new one."""
    try:
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(path) or ".", delete=False) as file:
            file.write(data)
        os.replace(file.name, path)
    except OSError as fault:
        raise SaveError(
            f"{path!r} cannot be written: {fault.strerror}", here(), hint="make the directory first"
        ) from None


def _read(prefix: str) -> dict[str, Any]:
    """The arrays of a checkpoint."""
    path = prefix + _ENDING
    if not os.path.exists(path):
        if any(os.path.exists(prefix + ending) for ending in (".index", ".meta")) or os.path.isfile(prefix):
            raise LoadError(
                f"{prefix!r} is a checkpoint of TensorFlow, whose format is another",
                here(),
                hint="write its variables with np.savez in TensorFlow, and load them: v.load(value, sess)",
            )
        raise LoadError(
            f"there is no checkpoint {prefix!r}", here(), hint="tf.train.latest_checkpoint(...) names the newest"
        )
    try:
        arrays: dict[str, Any] = _LOAD(path)
    except Exception as fault:  # of safetensors
        raise LoadError(f"{path!r} is not a checkpoint: {fault}", here(), hint="write it with tf.train.Saver") from None
    return arrays


def get_checkpoint_state(checkpoint_dir: str, latest_filename: str | None = None) -> CheckpointState | None:
    """What the list of a directory says; None if there is none."""
    path = os.path.join(checkpoint_dir, latest_filename or "checkpoint")
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return None
    newest, every = None, []
    for line in lines:
        key, _, value = line.partition(": ")
        try:
            name = os.path.join(checkpoint_dir, json.loads(value))
        except ValueError:
            return None
        if key == "model_checkpoint_path":
            newest = name
        elif key == "all_model_checkpoint_paths":
            every.append(name)
    return None if newest is None else CheckpointState(newest, every)


def latest_checkpoint(checkpoint_dir: str, latest_filename: str | None = None) -> str | None:
    """The newest checkpoint of a directory, as `restore` takes it; None if there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    return state.model_checkpoint_path if state is not None and checkpoint_exists(state.model_checkpoint_path) else None


def checkpoint_exists(checkpoint_prefix: str) -> bool:
    """Is there a checkpoint of this name?"""
    return os.path.exists(checkpoint_prefix + _ENDING)


def list_variables(checkpoint_dir: str) -> list[tuple[str, list[int]]]:
    """The names and shapes of the variables of a checkpoint, or of the newest of a directory."""
    return [(name, list(value.shape)) for name, value in sorted(_read(_prefix(checkpoint_dir)).items())]


def load_variable(checkpoint_dir: str, name: str) -> Any:
    """The value of one variable of a checkpoint, or of the newest of a directory."""
    arrays = _read(_prefix(checkpoint_dir))
    if name not in arrays:
        raise LoadError(f"the checkpoint has no variable {name!r}", here(), hint=f"it has {', '.join(sorted(arrays))}")
    return arrays[name]


def _prefix(path: str) -> str:
    return (latest_checkpoint(path) or path) if os.path.isdir(path) else path


boundaries(globals(), __all__)
