"""Checks and messages that all engines share: inputs, kernel results, limits, tag tracebacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from undertow.engines.contract import MAX_DEPTH, Options, Result
from undertow.errors import (
    Call,
    Calls,
    Fault,
    FrameLimit,
    InternalError,
    RecursionLimit,
    RunError,
    Timeout,
    TypeMismatch,
)
from undertow.ir.graph import StaticGraph
from undertow.ir.trace import Tag
from undertow.types import CTL, DType, type_of

Value = Any  # a NumPy scalar or array of the declared type

GO = np.True_  # what a live order token carries

# --------------------------------------------------------------------------------------------------------------
# Values


def as_plain(array: Value) -> Value:
    """The value as a NumPy scalar if it has no dimensions: arithmetic on those is much faster than on 0-d arrays."""
    return array if array.ndim else array[()]


def check_inputs(graph: StaticGraph, inputs: Sequence[Result]) -> list[Value]:
    """The inputs of a run as values of the types that the graph declares."""
    wanted = [graph.nodes[number] for number in graph.inputs]
    if len(inputs) != len(wanted):
        raise TypeMismatch(f"{graph.name or 'the graph'} takes {len(wanted)} inputs, but {len(inputs)} are given")
    values: list[Value] = []
    for value, node in zip(inputs, wanted, strict=True):
        array = np.asarray(value)
        if node.types[0] == CTL:
            values.append(GO)
        elif not node.types[0].accepts(type_of(array)):
            raise TypeMismatch(f"{node.name} must be {node.types[0]}, not {type_of(array)}", node.span)
        else:
            values.append(as_plain(array))
    return values


def own(value: Value) -> Value:
    """A result as an array that nothing else references: it may be an input, a constant, or a view of one."""
    return np.array(value) if isinstance(value, np.ndarray) else value


def conform(value: Value, dtype: DType, rank: int) -> Value:
    """A kernel's result as a value of the declared type."""
    if dtype.kind == "ctl":
        return GO
    array = np.asarray(value)
    if array.dtype != dtype.numpy:
        array = array.astype(dtype.numpy)
    if array.ndim != rank:
        raise InternalError(f"a kernel returned {array.ndim} dimensions, but {rank} are declared")
    return array if rank else array[()]


def check_finite(value: Value, op: str) -> None:
    if value.dtype.kind in "fc" and not np.isfinite(value).all():
        what = "nan" if np.isnan(value).any() else "inf"
        raise Fault(f"{op} returned {what}", hint="run without check_finite to allow it", kind=FloatingPointError)


# --------------------------------------------------------------------------------------------------------------
# Reasons to stop a run, by their names in the core: error class, message, hint

_ASK = (
    "is a base case ever reached? If calls are meant to nest so deep, say how deep: f.run(..., max_depth=20_000_000), "
    "or None for any depth"
)
STOPS: dict[str, tuple[type[RunError], str, str]] = {
    "unequal_lanes": (
        Fault,
        "a map cannot run over arrays of {0} and {1} elements",
        "mapped arrays must have the same first dimension",
    ),
    "unequal_visits": (
        Fault,
        "a map of {0} lanes is resumed with an array of {1} elements",
        "an argument of a later phase must have one element for each lane of the first",
    ),
    "frames": (
        FrameLimit,
        "more than frames={options.frames} frames are alive at once",
        "raise `frames`, or make sure that every path reaches a base case",
    ),
    "depth": (
        RecursionLimit,
        "calls nest deeper than max_depth={options.max_depth}",
        "make sure that every path reaches a base case, or raise `max_depth`",
    ),
    "unasked_depth": (
        RecursionLimit,
        "calls nest more than {options.max_depth:,} deep",
        _ASK,
    ),
    "unasked_in_python": (
        RecursionLimit,
        "calls nest more than {0:,} deep, on an engine that is written in Python",
        _ASK,
    ),
    "unasked_bytes": (
        RecursionLimit,
        "calls nest {1:,} deep, and take {0:,} bytes so far",
        _ASK,
    ),
    "memory": (
        FrameLimit,
        "frames and the arrays in them take {0:,} bytes, more than memory={options.memory:,}",
        "raise `memory`, or process less data at once",
    ),
    "out_of_memory": (FrameLimit, "out of memory", "set `memory` to limit the run"),
    "timeout": (Timeout, "the run took longer than {options.timeout} s", "raise `timeout`"),
}


def stopped(why: str, options: Options, *numbers: int) -> RunError:
    """The error to raise for a reason in `STOPS`."""
    if why == "depth" and options.max_depth == MAX_DEPTH:
        why = "unasked_bytes" if numbers and numbers[0] else "unasked_depth"
    error, message, hint = STOPS[why]
    what = message.format(*numbers, options=options)
    return Fault(what, hint=hint, kind=ValueError) if error is Fault else error(what, hint=hint)


# --------------------------------------------------------------------------------------------------------------
# Tag tracebacks


def function_of(graph: StaticGraph, region: int) -> str:
    """The name of the function that encloses a region, skipping loops and maps."""
    while (parent := graph.regions[region].parent) is not None:
        region = parent
    return graph.regions[region].name


def calls_of(graph: StaticGraph, tag: Tag | np.ndarray) -> Calls:
    """The tag traceback: the call of each label, outermost first. Tags from the core are arrays of pairs."""

    def call_of(number: int, index: int) -> Call:
        site = graph.sites[number - 1]
        which = {"call": "", "loop": f" iteration {index}", "map": f" lane {index}"}[site.kind]
        return Call(f"@{number}{which}", site.span, function_of(graph, site.caller))

    if isinstance(tag, tuple):
        pairs = [label if isinstance(label, tuple) else (label, -1) for label in tag]
        tag = np.array(pairs, np.int64).reshape(-1, 2)
    return Calls(tag, call_of)
