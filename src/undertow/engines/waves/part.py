"""One part of a placed graph: its plan, made where the program is, and its runs, there or on a worker.

A worker has the plan as bytes and nothing else of the program: what it is told and what it replies are arrays and
numbers. Numbers of nodes and sites are those of the whole graph, so that errors and counts speak of that.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from undertow import _core
from undertow.engines import native
from undertow.engines.contract import Options
from undertow.engines.outside import Order
from undertow.engines.waves import WIDTH
from undertow.engines.waves.encode import encode
from undertow.engines.waves.plan_bytes import array_of, pack, pack_arrays, unpack, unpack_arrays, unpack_head
from undertow.errors import InternalError, WorkerLost
from undertow.ir.graph import Array
from undertow.ir.placed import Part
from undertow.plan.pipeline import make_part_plan
from undertow.plan.project import Whole, project
from undertow.types import DTYPES

LoadedPlan = _core.Plan
LARGE = 1 << 16  # bytes of a value that is worth comparing with what a worker has
_COUNTS = ("activations", "waves", "lanes", "peak_width", "peak_frames", "peak_bytes", "max_depth", "deepest_tag")
_SUMMED = ("waves", "lanes")
_UNREADABLE = "what a worker has sent cannot be read"  # so the core says it
Crossed = list[tuple[int, int, int, int]]  # by part: batches and bytes sent to it, batches and bytes taken from it


class Counted(NamedTuple):
    """What a part has counted in one run."""

    fired: npt.NDArray[np.int64]  # by node
    counts: dict[str, Any]
    seconds: dict[str, float]


class PartPlan:
    """A part made ready. Holds nothing of any run."""

    def __init__(self, part: Part, whole: Whole) -> None:
        self.part = part
        self.data = make_part_plan(project(whole, part), native.traits_of)
        numbers = {node.name: origin for node, origin in zip(part.graph.nodes, part.origins, strict=True)}
        self._encoded = encode(self.data, [node.name for node in whole.graph.nodes], numbers)
        fetched = [part.graph.type_of(port) for port in part.graph.fetches]
        self.gives = [t.dtype.name for t in fetched]

    @functools.cached_property
    def core(self) -> _core.Plan:
        """The plan, decoded."""
        return _core.decode(self._encoded.rows, self._encoded.words, self._encoded.constants)

    @functools.cached_property
    def shipped(self) -> tuple[bytes, bytes]:
        """What stands for the plan, and the plan as workers get it."""
        data = pack(self._encoded)
        return hashlib.sha256(data).digest(), data


def loaded(data: bytes) -> _core.Plan:
    """A plan that came as bytes; raises ValueError if it is none."""
    encoded = unpack(data)
    return _core.decode(encoded.rows, encoded.words, encoded.constants)


# --------------------------------------------------------------------------------------------------------------
# Messages


def order_for(plan: PartPlan, inputs: Sequence[Array], options: Options) -> Order:
    """What a worker needs to run a part once: a message, and the values of large inputs."""
    frames, max_depth, memory, timeout, check_finite, _ = native.limits_of(options)
    own = [np.asarray(inputs[index]) for index in plan.part.inputs]
    large = {k: np.ascontiguousarray(value) for k, value in enumerate(own) if value.nbytes >= LARGE}
    head = {
        "limits": [frames, max_depth, memory, None if timeout == float("inf") else timeout, check_finite],
        "threads": options.threads or 0,
        "timed": options.timed,
        "gives": plan.gives,
        "large": [[k, value.dtype.str, list(value.shape)] for k, value in large.items()],
    }
    message = pack_arrays(head, [value for k, value in enumerate(own) if k not in large])
    return [message, *(value.reshape(-1).view(np.uint8).data for value in large.values())]


def run_order(core: _core.Plan, order: Order, wire: _core.Wire) -> tuple[bytes, int, int]:
    """Run a part as the order says: the reply, and how many activations and waves it took.

    WorkerLost if the run was stopped, or another part is lost.
    """
    message, *values = order
    head, inputs = unpack_arrays(bytes(message), "a message for a part")
    for (place, dtype, shape), value in zip(head["large"], values, strict=True):
        inputs.insert(place, array_of(value, dtype, shape))
    frames, max_depth, memory, timeout, check_finite = head["limits"]
    limits = frames, max_depth, memory, float("inf") if timeout is None else timeout, check_finite
    before = wire.counts()
    try:
        with readable():
            fetched, counted = core.run(
                inputs,
                _refuse,
                [],
                WIDTH,
                *limits,
                threads=head["threads"] or _core.usable_cores(),
                timed=head["timed"],
                wire=wire,
            )
    except _core.WireLost as lost:
        raise WorkerLost(f"the connection to part {lost.args[0]} was lost") from None
    except _core.WireStopped:
        raise WorkerLost("the run was stopped") from None
    except _core.Stopped as stopped:
        kind, node, tag, values, a, b, site = stopped.args
        why = {"stopped": [kind, int(node), int(a), int(b), int(site)]}
        return pack_arrays(why, [np.asarray(tag, np.int64), *(np.asarray(value) for value in values)]), 0, 0
    found = counted_of(counted)
    said: dict[str, Any] = {
        "counts": found.counts,
        "seconds": found.seconds,
        "crossed": crossed_since(before, wire),
        "gives": head["gives"],
    }
    results = [
        np.zeros(0, np.bool_) if value is None else np.asarray(value, DTYPES[dtype].numpy)
        for value, dtype in zip(fetched, head["gives"], strict=True)
    ]
    reply = pack_arrays(said, [np.asarray(found.fired, np.int64), *results])
    return reply, counted.activations, counted.waves


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Tokens that make no sense are a fault of ours."""
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith(_UNREADABLE):  # what a program's own function has raised
            raise
        raise InternalError(str(error)) from None


def crossed_since(before: Crossed, wire: _core.Wire) -> Crossed:
    """What has crossed by a wire since it had these counts."""
    return [(a - p, b - q, c - r, d - s) for (a, b, c, d), (p, q, r, s) in zip(wire.counts(), before, strict=True)]


def has_ended(reply: bytes) -> bool:
    """Has a part come to its end, or has it stopped?"""
    return "stopped" not in unpack_head(reply)


def read_reply(reply: bytes) -> tuple[list[Array | None], Counted, Crossed]:
    """The results of a part, what it has counted, and what has crossed. Raises Stopped as the core did there."""
    head, arrays = unpack_arrays(reply)
    if "stopped" in head:
        kind, node, a, b, site = head["stopped"]
        tag, *values = arrays
        raise _core.Stopped(kind, node, tag, values, a, b, site)
    fired, *results = arrays
    own = [None if dtype == "ctl" else value for value, dtype in zip(results, head["gives"], strict=True)]
    counted = Counted(np.asarray(fired, np.int64), head["counts"], head["seconds"])
    return own, counted, [(a, b, c, d) for a, b, c, d in head["crossed"]]


def _refuse(node: int, operands: list[Any]) -> list[Any]:
    raise InternalError(f"node {node} needs the host, and that is in part 0")


# --------------------------------------------------------------------------------------------------------------
# Counts


def counted_of(stats: _core.RunStats) -> Counted:
    """What a run in the core has counted."""
    counts = {name: getattr(stats, name) for name in _COUNTS if name != "deepest_tag"}
    deepest = [label if isinstance(label, int) else list(label) for label in stats.deepest]
    return Counted(np.asarray(stats.fired, np.int64), {**counts, "deepest_tag": deepest}, dict(stats.step_seconds))


class PlacedCounts:
    """The counts of all parts together, as those of one run.

    Each part has copies of the calls that it takes part in, so activations, depths and frames are those of the part
    that has most.
    """

    def __init__(self, parts: Sequence[Counted], crossed: Sequence[Crossed]) -> None:
        self.counted = parts
        self.parts = len(parts)
        self.crossed = sum(sent for rows in crossed for _, sent, _, _ in rows)  # bytes
        self.fired = sum(part.fired for part in parts)
        deepest = max(parts, key=lambda part: part.counts["max_depth"]).counts
        self.deepest = tuple(label if isinstance(label, int) else tuple(label) for label in deepest["deepest_tag"])
        self.step_seconds: dict[str, float] = {}
        for part in parts:
            for name, seconds in part.seconds.items():
                self.step_seconds[name] = self.step_seconds.get(name, 0.0) + seconds

    def __getattr__(self, name: str) -> Any:
        if name == "firings":
            return int(np.sum(self.fired))
        if name == "mean_width":
            return self.lanes / self.waves if self.waves else 0.0
        if name not in _COUNTS:
            raise AttributeError(name)
        values = [part.counts[name] for part in self.counted]
        return sum(values) if name in _SUMMED else max(values)
