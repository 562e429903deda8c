"""The driver's end of data-parallel training: steps on workers, or in this process, and the committed replica.

A step: each worker is sent its shards, computes their gradients, and takes part in a ring (`ring.py`); all make the
same update and report: their own sparse rows, and the last of the ring the sum of all that is dense. When all have
reported, the driver makes the update on its own replica: that is the commit. If a worker is lost before, the step is
abandoned everywhere, and begun again with the workers that are there, which get the committed state where they are
ahead of it. Which worker has which shards makes no difference to the bits, so the step gives what it would have given.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from undertow.api.function import Function
from undertow.cluster.frames import Buffer
from undertow.cluster.pool import Future, Pool
from undertow.cluster.tracks import DRIVER
from undertow.errors import UndertowError, WorkerLost
from undertow.frontend.values import tree
from undertow.parallel.memory import View, Where
from undertow.parallel.packing import Json, message, pack, read, unpack
from undertow.parallel.program import Saved, gradient
from undertow.parallel.replica import Replica, Rule
from undertow.parallel.service import PARTS, unpack_gradient
from undertow.parallel.shards import Shard, seed_of
from undertow.parallel.sums import add_up, weighted

Peer = tuple[int, int]
Found = list[tuple[Any, Any]]  # of each shard, the loss and what comes with it


class Work(Protocol):
    """Makes steps."""

    replica: Replica

    @property
    def workers(self) -> int:
        """How many workers are there; 0 if it is this process that works."""

    def step(
        self, shards: Sequence[Shard], weights: Sequence[float], seed: Sequence[int], rates: Sequence[Any]
    ) -> Found:
        """One step: the gradients of shards times their weights, and an update. The seed is derived from numbers."""


def seeds_of(shards: Sequence[Shard], seed: Sequence[int]) -> list[int]:
    """A seed for each shard; a batch that is not cut has that of the step."""
    if len(shards) == 1:
        return [seed_of(*seed)]
    return [seed_of(*seed, shard.number) for shard in shards]


class Alone:
    """Steps in this process. The bits are those of a fleet."""

    workers = 0

    def __init__(
        self,
        function: Function,
        has_aux: bool,
        structure: tree.Structure,
        replica: Replica,
        rule: Rule,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.replica = replica
        self._function, self._has_aux = function, has_aux
        self._structure, self._rule, self._options = structure, rule, options or {}

    def step(
        self, shards: Sequence[Shard], weights: Sequence[float], seed: Sequence[int], rates: Sequence[Any]
    ) -> Found:
        """One step."""
        found: Found = []
        leaves = []
        for shard, weight, its_seed in zip(shards, weights, seeds_of(shards, seed), strict=True):
            params = self.replica.params
            row = gradient(self._function, self._has_aux, self._structure, params, shard.args, its_seed, self._options)
            found.append((row.loss, row.aux))
            leaves.append(weighted(row.leaves, weight, len(shards) == 1))
        total = add_up(leaves)
        with uninterrupted():
            self.replica.update(self._rule, total, *rates)
        return found


class _Lost(Exception):
    """A worker was lost in a step."""

    def __init__(self, peer: Peer, error: WorkerLost) -> None:
        super().__init__(str(error))
        self.peer, self.error = peer, error


_LOCKS: WeakKeyDictionary[Pool, threading.Lock] = WeakKeyDictionary()  # streams of a pool must not overlap


class Fleet:
    """Steps on the workers of a pool."""

    def __init__(
        self,
        pool: Pool,
        function: Function,
        has_aux: bool,
        structure: tree.Structure,
        replica: Replica,
        rule: Rule,
        retries: int = 3,
        options: dict[str, Any] | None = None,
        reduce: str = "ring",
    ) -> None:
        self.pool = pool
        self.replica = replica
        self.again = 0  # steps that were begun again
        self._saved = Saved(function)
        self._has_aux, self._structure, self._rule = has_aux, structure, rule
        self._retries, self._options = retries, options or {}
        self._reduce = reduce
        self._turn = 0  # grows when an attempt fails
        self._job = pool.new_stream()
        self._steps: dict[Peer, int | None] = {}  # of the replica that a worker has; None if that is not known
        self._versions: dict[Peer, int] = {}  # of its function
        self._memories: dict[Peer, tuple[Where, View]] = {}  # of those on this machine
        self._lock = _LOCKS.setdefault(pool, threading.Lock())

    @property
    def workers(self) -> int:
        """How many workers are there now."""
        return len(self.pool.workers())

    def step(
        self, shards: Sequence[Shard], weights: Sequence[float], seed: Sequence[int], rates: Sequence[Any]
    ) -> Found:
        """One step, begun again when workers are lost; WorkerLost when that happens too often."""
        for shard in shards:
            self._saved.cover((tree.unflatten(self._structure, self.replica.params), *shard.args))
        orders = []
        for shard, weight, its_seed in zip(shards, weights, seeds_of(shards, seed), strict=True):
            args, parts = pack(shard.args)
            orders.append(({"args": args, "parts": len(parts), "seed": its_seed, "weight": weight}, parts))
        losses = 0
        began, number = self.pool.now(), self.replica.step + 1
        while True:
            try:
                with self._lock:
                    found = self._attempt(orders, rates)
                self.pool.track(DRIVER, f"step {number}", began, self.pool.now(), attempts=losses + 1)
                return found
            except _Lost as lost:
                losses += 1
                self.again += 1
                if losses > self._retries:
                    times = "once" if losses == 1 else f"{losses} times"
                    step = self.replica.step + 1
                    raise WorkerLost(
                        f"{lost.error.what}; step {step} was begun {times}, and each time a worker was lost",
                        hint="look into that worker's log; allow more `retries` if machines come and go",
                    ) from None

    def restore(self, replica: Replica) -> None:
        """Go on from this replica: workers get it with the next step."""
        self.replica = replica
        self._steps.clear()

    def close(self) -> None:
        """Workers need not keep anything for this trainer any more."""
        if self.pool.is_open:
            for worker, incarnation in self.pool.workers():
                end = message({"do": "end", "job": self._job})
                self.pool.call(worker, "train", end, incarnation)
        self._steps.clear()

    # ----------------------------------------------------------------------------------------------------------
    # An attempt

    def _attempt(self, orders: Sequence[tuple[Json, list[Buffer]]], rates: Sequence[Any]) -> Found:
        ring = self._ready()[: len(orders)]
        try:
            self._prepare(ring)
            stream = self.pool.new_stream()
            futures = {
                peer: self._call(peer, self._order(ring, place, stream, orders, rates), f"step {self.replica.step + 1}")
                for place, peer in enumerate(ring)
            }
            replies = self._results(futures, stream)
        except BaseException:
            self._steps.update(dict.fromkeys(ring))  # some may have made the update
            self._turn += 1
            raise
        found: Found = []
        reports = []
        for peer, reply in replies.items():
            header, parts = read(reply)
            found += [(loss, aux) for loss, aux in unpack(header["value"], parts[: header["held"]])]
            places = header.get("places")
            arrays = parts[header["held"] :] if places is None else self._memories[peer][1].at(places)
            reports.append((header["total"], arrays))
            self._track(peer[0], futures[peer], header["spent"])
        total = unpack_gradient(reports)
        with uninterrupted():
            self._steps.update(dict.fromkeys(ring))
            self.replica.update(self._rule, total, *rates)  # the commit
            self._steps.update(dict.fromkeys(ring, self.replica.step))
        return found

    def _track(self, worker: int, future: Future, spent: Sequence[float]) -> None:
        """What a worker has spent the time of a step on."""
        began, _ = future.span
        for name, seconds in zip(PARTS, spent, strict=True):
            self.pool.track(worker, name, began, began + seconds)
            began += seconds

    def _order(
        self,
        ring: Sequence[Peer],
        place: int,
        stream: int,
        orders: Sequence[tuple[Json, list[Buffer]]],
        rates: Sequence[Any],
    ) -> list[Buffer]:
        """What one worker is told to do: its shards are neighbours."""
        first, end = (at * len(orders) // len(ring) for at in (place, place + 1))
        header = {
            "do": "step",
            "job": self._job,
            "step": self.replica.step,
            "stream": stream,
            "ring": ring,
            "shards": [order for order, _ in orders[first:end]],
            "is_alone": len(orders) == 1,
            "rates": _header(list(rates)),
            "reduce": self._reduce,
            "turn": self._turn,
            "reports": place == len(ring) - 1,
            "before": self._memories[ring[place - 1]][0] if self._is_near(ring) else None,
        }
        return message(header, [part for _, parts in orders[first:end] for part in parts])

    def _ready(self) -> list[Peer]:
        """The workers that are there, one at least."""
        while True:
            if not self.pool.is_open:
                raise UndertowError("the cluster is closed", hint="train inside `with ut.ray.cluster() as c:`")
            peers = self.pool.workers()
            for gone in self._steps.keys() - set(peers):
                del self._steps[gone]
                self._memories.pop(gone, None)
            if peers:
                return peers
            self.pool.wait_for_workers(1)

    def _is_near(self, ring: Sequence[Peer]) -> bool:
        """Whether all of them are on this machine, and let each other see their memory."""
        return all(peer in self._memories for peer in ring)

    def _prepare(self, ring: Sequence[Peer]) -> None:
        """See to it that all have the function, and the committed replica."""
        doubtful = [peer for peer in ring if peer in self._steps and self._steps[peer] is None]
        where = message({"do": "where", "job": self._job})
        for peer, reply in self._results({peer: self._call(peer, where, "which step") for peer in doubtful}).items():
            self._steps[peer] = read(reply)[0]["step"]
        calls: dict[Peer, Future] = {}
        for peer in ring:
            if self._steps.get(peer) != self.replica.step:
                calls[peer] = self._call(peer, self._beginning(), "parameters")
            elif self._versions.get(peer) != self._saved.version:
                header = {"do": "function", "job": self._job}
                calls[peer] = self._call(peer, message(header, [self._saved.data]), "function")
        for peer, reply in self._results(calls).items():
            self._steps[peer] = self.replica.step
            self._versions[peer] = self._saved.version
            if reply and (where := read(reply)[0]["memory"]) is not None and peer not in self._memories:
                with suppress(OSError):
                    self._memories[peer] = where, View(where)

    def _beginning(self) -> list[Buffer]:
        arrays = self.replica.arrays()
        value, parts = pack(arrays)
        structure, _ = pack(tree.unflatten(self._structure, [0] * len(self.replica.params)))
        header = {
            "do": "begin",
            "job": self._job,
            "rule": self._rule.to_json(),
            "options": self._options,
            "has_aux": self._has_aux,
            "params": structure,
            "replica": self.replica.header(),
            "arrays": value["leaves"],
        }
        return message(header, [self._saved.data, *parts])

    def _call(self, peer: Peer, parts: list[Buffer], name: str) -> Future:
        return self.pool.call(peer[0], "train", parts, peer[1], name)

    def _results(self, futures: dict[Peer, Future], stream: int | None = None) -> dict[Peer, list[Buffer]]:
        """What all have given. If one fails, the others are told to abandon the step, and have ended it afterwards."""
        try:
            self.pool.wait(list(futures.values()))
        finally:
            if stream is not None and not all(future.done() and not future.failed() for future in futures.values()):
                for worker, incarnation in self.pool.workers():
                    if (worker, incarnation) in futures:
                        self.pool.call(worker, "abandon", str(stream).encode(), incarnation)
        errors = {peer: future.exception() for peer, future in futures.items()}
        there = self.pool.workers()
        for peer, error in errors.items():
            if isinstance(error, WorkerLost) and peer not in there:
                raise _Lost(peer, error)
        for error in errors.values():
            if error is not None and not isinstance(error, WorkerLost):
                raise error
        for peer, error in errors.items():
            if isinstance(error, WorkerLost):
                raise _Lost(peer, error)
        return {peer: future.result() for peer, future in futures.items()}


def _header(value: Any) -> Json:
    """A value without arrays, for a header: numbers with their dtypes."""
    header, parts = pack(value)
    assert not parts
    return header


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until the block is over: an update is made, or it is not."""
    waiting: list[Any] = []
    is_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if is_main else None
    if not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda number, frame: waiting.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for number, frame in waiting[:1]:
            before(number, frame)
