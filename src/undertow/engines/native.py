"""What the engines of the C++ core share: rows of integers for kernels, the host that they call, what they say.

A graph goes to the core as rows of integers, the words that they name, and constants. What the core cannot say, since
it knows no names, is said here: errors with their tag traceback, and what acts on the world.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from undertow.engines import checks
from undertow.engines.contract import LateStats, Options, Stats
from undertow.errors import FrameLimit, InternalError, RunError
from undertow.ir.graph import Array, Attr, Const, Node, StaticGraph
from undertow.ir.trace import Tag
from undertow.ops.op import CATALOGUE
from undertow.types import DTYPES, Type, dtype_of

DTYPE_NUMBERS = {name: number for number, name in enumerate(("bool", "i32", "i64", "f32", "f64"))}
NO_SLOT = -(2**31)
NO_LIMIT = 2**62
_UNKNOWN = -1  # a length that only the run knows

assert set(DTYPE_NUMBERS) == set(DTYPES) - {"ctl"}


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Rows, the words that they name, and constants."""

    rows: npt.NDArray[np.int64]
    words: list[str]
    constants: list[Array]


def type_row(type_: Type) -> list[int]:
    """A dtype, a rank, and the lengths, -1 where only the run knows them."""
    dims = [n if isinstance(n, int) else _UNKNOWN for n in type_.shape]
    return [DTYPE_NUMBERS[type_.dtype.name], len(dims), *dims]


class Writer:
    """Writes what every plan has: words, constants, kernels."""

    def __init__(self, graph: StaticGraph) -> None:
        self.graph = graph
        self.words: dict[str, int] = {}
        self.constants: dict[Const, int] = {}
        self.kernels: list[list[int]] = []

    def encoded(self, head: list[int], rest: list[int]) -> Encoded:
        """A head, how many constants there are, the kernels, and the rest."""
        rows = [*head, len(self.constants), len(self.kernels)]
        for kernel in self.kernels:
            rows += kernel
        constants = [np.asarray(const.value, order="C") for const in self.constants]
        return Encoded(np.array(rows + rest, np.int64), list(self.words), constants)

    def word(self, text: str) -> int:
        return self.words.setdefault(text, len(self.words))

    def constant(self, value: Const) -> int:
        """As an operand: below zero."""
        return -1 - self.constants.setdefault(value, len(self.constants))

    def kernel(self, node: Node) -> int:
        """The number of a kernel for a node: its operator, attributes and types."""
        attrs = [(key, value) for key, value in node.attrs.items() if key != "device"]
        row = [self.word(node.op), len(attrs)]
        for key, value in attrs:
            row += [self.word(key), *self.attribute(value)]
        for types in ([self.graph.type_of(x) for x in node.inputs], node.types):
            row.append(len(types))
            for type_ in types:
                row += [DTYPE_NUMBERS[type_.dtype.name], type_.rank]
        self.kernels.append(row)
        return len(self.kernels) - 1

    def attribute(self, value: Attr) -> list[int]:
        """0: an integer, 1: a word, 2: a tuple of integers, in pairs of (is there, value); 3: nothing."""
        if isinstance(value, str):
            return [1, self.word(value)]
        if isinstance(value, tuple):
            row = [2, len(value)]
            for part in value:
                row += [0, 0] if part is None else [1, int(part)]  # type: ignore[arg-type]
            return row
        return [0, int(value)] if value is not None else [3, 0]


class Host:
    """Runs what acts on the world, and what has no kernel: one operator of one activation at a time."""

    def __init__(self, graph: StaticGraph, state: dict[str, Any]) -> None:
        self.graph = graph
        self.state = state
        self.node = 0

    def apply(self, number: int, values: list[Any]) -> list[Any]:
        self.node = number
        node = self.graph.nodes[number]
        row = CATALOGUE[node.op]
        plain = [checks.as_plain(value) for value in values]
        with np.errstate(all="ignore"):
            found = row.state(self.state, plain, node.attrs) if row.state else row.eval(plain, node.attrs)
        settled = (checks.settle(value, t.dtype, t.rank) for value, t in zip(found, node.types, strict=True))
        return [np.asarray(value, order="C") for value in settled]


def stats_of(graph: StaticGraph, engine: str, counted: dict[str, Any], seconds: float) -> Stats:
    """What the core has counted."""

    def fill(name: str) -> Any:
        if name == "per_node":
            return {node.name: count for node, count in zip(graph.nodes, counted["fired"], strict=True)}
        if name == "firings":
            return sum(counted["fired"])
        return tuple(counted["deepest"]) if name == "deepest_tag" else counted[name]

    return LateStats.make(fill, engine=engine, dead_firings=0, seconds=seconds)


def error_of(graph: StaticGraph, stopped: Any, options: Options) -> BaseException:
    """What to raise for a run that the core has stopped."""
    kind, number, labels, values, a, b, site = stopped.args
    tag: Tag = tuple(labels)
    span = graph.nodes[number].span if number >= 0 else None
    if site > 0:
        span = graph.sites[site - 1].span
    error: BaseException
    limits: dict[str, Callable[[], RunError]] = {
        "unequal_lanes": lambda: checks.unequal_lanes(a, b),
        "unequal_visits": lambda: checks.unequal_visits(a, b),
        "memory": lambda: checks.too_much_memory(a, options),
        "frames": lambda: checks.too_many_frames(options),
        "depth": lambda: checks.too_deep(options),
        "timeout": lambda: checks.too_long(options),
        "out_of_memory": lambda: FrameLimit("out of memory", hint="set `memory` to stop earlier"),
    }
    try:
        if kind == "fault":
            node = graph.nodes[number]
            with np.errstate(all="ignore"):
                CATALOGUE[node.op].eval([checks.as_plain(value) for value in values], node.attrs)
            return InternalError(f"{node.op} ({node.name}) failed in the core only", span)
        if kind == "not_finite":
            checks.check_finite(values[0], graph.nodes[number].op)
        if kind == "unequal_results":
            checks.stack_lanes(values, Type(dtype_of(values[0].dtype)))
        if kind not in limits:
            return InternalError(f"the core stopped: {kind}", span)
        error = limits[kind]()
    except RunError as raised:
        error = raised
    if isinstance(error, RunError):
        error.span = error.span or span
        error.calls = checks.calls_of(graph, tag)
    return error
