"""Static graphs of captured functions, and arguments in the form in which plans take them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from undertow.api.options import settings
from undertow.ir.graph import StaticGraph
from undertow.passes.flatten import flatten
from undertow.passes.pipeline import make_library


def captured(function: Any, *args: Any) -> StaticGraph:
    """As captured: nothing is simplified away."""
    return flatten(function.library(*args))


def optimized(function: Any, *args: Any) -> StaticGraph:
    """As engines get it: simplified and hoisted."""
    return flatten(make_library(function.library(*args), True, True))


def graphs(function: Any, args: Sequence[Any]) -> Iterator[StaticGraph]:
    """Both that an engine may be given: simplified, and not."""
    library = function.library(*args)
    for is_simple in (True, False):
        yield flatten(make_library(library, True, is_simple), function.__name__)


def inputs_of(function: Any, args: Sequence[Any], by: str = "call", seed: int = 7) -> list[Any]:
    """The inputs of the main graph of a call or map: leaves of the arguments, values read outside, a seed."""
    if by == "map":
        arguments, mapped = function._map_arguments(args)
    else:
        arguments, mapped = function.__undertow_arguments__(args, {}), None
    program, leaves = function.__undertow_program__(arguments, mapped)
    return [np.asarray(value, order="C") for value in program.inputs(leaves, settings().with_(seed=seed))]


def plain(args: Sequence[Any]) -> list[Any]:
    """NumPy scalars and arrays."""
    return [np.asarray(value)[()] for value in args]
