"""The gradient of a loss as bytes that workers can load, and its run on one shard.

It goes as a saved function (`api/save.py`): graphs, which are checked when they are loaded, and no code.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from undertow.api.function import Function
from undertow.api.load import load
from undertow.api.params import is_leaf
from undertow.api.save import save
from undertow.errors import TypeMismatch
from undertow.frontend.values import tree


class Saved:
    """A function as bytes, saved again when arguments come that it was not captured for."""

    def __init__(self, function: Function) -> None:
        self.version = 0  # grows with each
        self.data = b""
        self._function = function
        self._known: dict[int, object] = {}  # what is saved, by its id

    def cover(self, args: Sequence[Any]) -> None:
        """See to it that the function can be run with these arguments."""
        function = self._function
        arguments = function.__undertow_arguments__(args, {})
        if arguments.converted is not None:
            raise TypeMismatch(
                "the batch holds objects, which workers cannot be sent",
                hint="make a forest of them: ut.data.from_nested(...)",
            )
        program = function.__undertow_program__(arguments)[0]
        if id(program) in self._known:
            return
        self._known[id(program)] = program
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "function")
            save(function, path)
            with open(path, "rb") as file:
                self.data = file.read()
        self.version += 1


def loaded(data: bytes) -> Function:
    """The function of these bytes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "function")
        with open(path, "wb") as file:
            file.write(data)
        return load(path)


@dataclass(frozen=True, slots=True)
class Gradient:
    """What a shard gives."""

    loss: Any
    aux: Any  # what the loss returns besides
    leaves: list[Any]  # one for each parameter: an array, sparse rows, or None
    activations: int
    waves: int


def gradient(
    function: Function,
    has_aux: bool,
    structure: tree.Structure,
    params: Sequence[Any],
    args: Sequence[Any],
    seed: int,
    options: dict[str, Any],
) -> Gradient:
    """The loss of a shard, and its gradient. Parameters come as leaves of that structure."""
    whole = tree.unflatten(structure, params)
    (value, grads), stats = function.run(whole, *args, stats=True, **{"timed": False, "seed": seed, **options})
    loss, aux = value if has_aux else (value, None)
    leaves = tree.along(structure, grads)
    if leaves is None:  # of a class that has been made anew
        leaves, _ = tree.flatten(grads, is_leaf)
    return Gradient(loss, aux, leaves, stats.activations, stats.waves)
