"""What workers do in data-parallel training: a service that the driver calls (`fleet.py` has its other end).

A worker has *jobs*, one for each trainer: the gradient function, the rule of updates, a replica. Calls of `train` run
one after the other; `abandon` runs beside them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from undertow.api.function import Function
from undertow.cluster.frames import Buffer
from undertow.cluster.member import Member, Service
from undertow.cluster.parts import SERVICE, STOP
from undertow.cluster.stream import Stream
from undertow.errors import RunError, WorkerLost
from undertow.frontend.values import tree
from undertow.frontend.values.rows import IndexedRows
from undertow.parallel.memory import Memory, Passage, View, is_possible
from undertow.parallel.packing import array_of, message, pack, read, unpack
from undertow.parallel.part_service import PartService
from undertow.parallel.program import gradient, loaded
from undertow.parallel.replica import Replica, Rule
from undertow.parallel.ring import Messages, all_reduce
from undertow.parallel.sums import one_after_the_other, weighted
from undertow.parallel.torch_reduce import Groups

Json = Any

PARTS = ("gradients", "sums", "update")  # of a step; `spent` says how long each took
MOST_VIEWS = 16  # of neighbours that are no more, too


def services(member: Member) -> Mapping[str, Service]:
    """What the pool's workers import."""
    training, parts = Training(member), PartService(member)
    return {
        "train": training.serve,
        "abandon": training.abandon,
        SERVICE: parts.serve,
        STOP: parts.stop,
        "echo": list,
    }


@dataclass(eq=False)
class Job:
    """What a worker has of one trainer."""

    rule: Rule
    options: dict[str, Any]
    has_aux: bool
    structure: tree.Structure  # of the parameters
    replica: Replica
    function: Function
    is_whole: bool = True  # not in the middle of an update


class Training:
    """The jobs of a worker."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._jobs: dict[int, Job] = {}
        self._stream: Stream | None = None  # of the step at which this worker is
        self._abandoned = 0  # steps with streams up to this number
        self._memory = Memory() if is_possible() else None
        self._views: dict[str, View] = {}  # of the memory of others, by its name
        self._groups = Groups()

    def serve(self, parts: Sequence[Buffer]) -> list[Buffer]:
        """One call."""
        header, rest = read(parts)
        do = {"begin": self._begin, "function": self._function, "where": self._where, "step": self._step}
        if header["do"] == "end":
            self._jobs.pop(header["job"], None)
            return []
        return do[header["do"]](header, rest)

    def abandon(self, parts: Sequence[Buffer]) -> bytes:
        """Give up the step with this stream, or any before: whoever waits for others in it waits no more."""
        number = int(bytes(parts[0]))
        self._abandoned = max(self._abandoned, number)
        stream = self._stream
        if stream is not None and stream.number <= number:
            stream.close()
        return b""

    def _job(self, header: dict[str, Json]) -> Job:
        job = self._jobs.get(header["job"])
        if job is None:
            raise RunError(f"worker {self._member.worker} has no job {header['job']}")
        return job

    def _begin(self, header: dict[str, Json], parts: list[Buffer]) -> list[Buffer]:
        """A job, or its committed state after a step that was abandoned."""
        arrays = [array_of(part, row[0], row[1:]) for part, row in zip(parts[1:], header["arrays"], strict=True)]
        structure_of = unpack(header["params"], [])
        self._jobs[header["job"]] = Job(
            Rule.from_json(header["rule"]),
            header["options"],
            header["has_aux"],
            tree.flatten(structure_of)[1],
            Replica.from_arrays(header["replica"], arrays),
            loaded(bytes(parts[0])),
        )
        return message({"memory": None if self._memory is None else self._memory.where()})

    def _function(self, header: dict[str, Json], parts: list[Buffer]) -> list[Buffer]:
        self._job(header).function = loaded(bytes(parts[0]))
        return []

    def _where(self, header: dict[str, Json], parts: list[Buffer]) -> list[Buffer]:
        """After which step its replica is; -1 if nobody knows."""
        job = self._jobs.get(header["job"])
        return message({"step": job.replica.step if job is not None and job.is_whole else -1})

    # ----------------------------------------------------------------------------------------------------------
    # A step

    def _step(self, header: dict[str, Json], parts: list[Buffer]) -> list[Buffer]:
        """Gradients of the own shards, the sum of all, the update."""
        job, number = self._job(header), header["stream"]
        ring = [(worker, incarnation) for worker, incarnation in header["ring"]]
        if not job.is_whole or job.replica.step != header["step"]:
            raise RunError(f"worker {self._member.worker} is at step {job.replica.step}, not {header['step']}")
        stream = self._stream = self._member.stream(number, ring)
        memory = self._memory if header["before"] is not None else None  # of a worker on this machine
        times = [time.monotonic()]
        try:
            rows, leaves = self._gradients(job, header, iter(parts), number)
            times.append(time.monotonic())
            way: Messages = stream
            if memory is not None:
                memory.clear()
                way = Passage(stream, memory, self._view(header["before"]))
            place = ring.index(self._member.peer)
            if header["reduce"] == "torch":
                total = self._groups.all_reduce(stream, ring, place, header["turn"], self._host(), leaves)
            else:
                total = all_reduce(way, ring, place, leaves)
            self._check(number)
        finally:
            self._stream = None
            stream.close()
        times.append(time.monotonic())
        job.is_whole = False
        job.replica.update(job.rule, total, *unpack(header["rates"], []))
        job.is_whole = True
        times.append(time.monotonic())
        report, held = pack([[row.loss, row.aux] for row in rows])
        kinds, arrays = pack_gradient(total, own_rows(leaves), header["reports"])
        spent = [end - begin for begin, end in itertools.pairwise(times)]
        found = {"value": report, "held": len(held), "total": kinds, "spent": spent}
        if memory is not None:
            return message({**found, "places": memory.put(arrays)}, held)
        return message(found, [*held, *arrays])

    def _host(self) -> str:
        """By which name others reach this worker."""
        own = next(peer.address for peer in self._member.peers if (peer.worker, peer.incarnation) == self._member.peer)
        return own.partition("://")[2].rpartition(":")[0].strip("[]")

    def _view(self, where: Json) -> View:
        name = where[2]
        if name not in self._views:
            if len(self._views) >= MOST_VIEWS:
                self._views.clear()
            self._views[name] = View(where)
        return self._views[name]

    def _gradients(self, job: Job, header: dict[str, Json], parts: Any, number: int) -> tuple[list[Any], list[Any]]:
        rows, leaves = [], []
        for shard in header["shards"]:
            self._check(number)
            args = unpack(shard["args"], [next(parts) for _ in range(shard["parts"])])
            params, seed = job.replica.params, shard["seed"]
            found = gradient(job.function, job.has_aux, job.structure, params, args, seed, job.options)
            rows.append(found)
            leaves.append(weighted(found.leaves, shard["weight"], header["is_alone"]))
        self._member.count(sum(row.activations for row in rows), sum(row.waves for row in rows))
        return rows, leaves

    def _check(self, number: int) -> None:
        if number <= self._abandoned:
            raise WorkerLost(f"step with stream {number} was abandoned")


def own_rows(shards: Sequence[list[Any]]) -> list[Any]:
    """The sparse rows of the shards of one worker, and None for all that is not sparse."""
    return [
        one_after_the_other(leaves) if isinstance(leaves[0], IndexedRows) else None
        for leaves in zip(*shards, strict=True)
    ]


def pack_gradient(total: Sequence[Any], rows: Sequence[Any], has_dense: bool) -> tuple[Json, list[Buffer]]:
    """What a worker reports of the sum of all gradients: its own sparse rows, and all that is dense if it is to."""
    kinds: list[Json] = []
    parts: list[Buffer] = []
    for leaf, own in zip(total, rows, strict=True):
        if own is not None:
            value, held = pack([own.indices, own.rows])
            kinds.append({"rows": value, "shape": list(own.shape)})
        elif leaf is None or not has_dense:
            kinds.append(None)
            continue
        else:
            value, held = pack(leaf)
            kinds.append(value)
        parts += held
    return kinds, parts


def unpack_gradient(reports: Sequence[tuple[Json, Sequence[Buffer]]]) -> list[Any]:
    """The sum of all gradients, of what all workers have reported, in their order."""
    of_workers = []
    for kinds, parts in reports:
        rest = iter(parts)
        leaves: list[Any] = []
        for kind in kinds:
            if kind is None:
                leaves.append(None)
            elif "rows" in kind:
                indices, values = unpack(kind["rows"], rest)
                leaves.append(IndexedRows(indices, values, shape=tuple(kind["shape"])))
            else:
                leaves.append(unpack(kind, rest))
        of_workers.append(leaves)
    return [
        one_after_the_other(leaves) if isinstance(leaves[0], IndexedRows) else leaves[-1]
        for leaves in zip(*of_workers, strict=True)
    ]
