"""Parts of a placed graph on threads of this process, and a network between them that delays and reorders batches."""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Sequence
from itertools import combinations

from tests.support.placed import homes_by_chance, type_rule

from undertow import _core
from undertow.engines import outside
from undertow.engines.contract import Options, Result, State, Stats
from undertow.engines.outside import HasEnded
from undertow.engines.waves.part import loaded, run_order
from undertow.engines.waves.placed import PlacedPlan, hosted_nodes
from undertow.errors import WorkerLost
from undertow.ir import spec
from undertow.ir.graph import StaticGraph
from undertow.passes.cut import cut

SMALL = 1 << 14  # a window that is soon used up


class Network:
    """Sockets between parts. With a seed, what comes is passed on in another order, a little later."""

    def __init__(self, parts: int, seed: int | None, window: int) -> None:
        ends: list[list[int]] = [[-1] * parts for _ in range(parts)]
        between: list[int] = []  # the two sides of each connection, one after the other
        for a, b in combinations(range(parts), 2):
            if seed is None:
                left, right = socket.socketpair()
                ends[a][b], ends[b][a] = left.detach(), right.detach()
                continue
            for end, other in ((a, b), (b, a)):
                left, right = socket.socketpair()
                ends[end][other] = left.detach()
                between.append(right.detach())
        self.stop = os.eventfd(0)
        self.wires = [_core.Wire(own, self.stop, window) for own in ends]
        self.relay: threading.Thread | None = None
        if between:
            self.chance = random.Random(seed)
            self.passing = _core.Wire(between, self.stop, window)
            self.relay = threading.Thread(target=self.run)
            self.relay.start()

    def run(self) -> None:
        held: list[tuple[int, bytes]] = []
        try:
            while True:
                held += self.passing.take(0.0005 if held else 0.05)
                while held and (len(held) > 20 or self.chance.random() < 0.7):
                    at = self.chance.randrange(len(held))
                    held[at], held[-1] = held[-1], held[at]
                    side, batch = held.pop()
                    self.passing.send(side ^ 1, batch)
                self.passing.flush()
        except (_core.WireStopped, _core.WireLost):
            pass

    def end(self) -> None:
        os.eventfd_write(self.stop, 1)

    def close(self) -> None:
        self.end()
        if self.relay is not None:
            self.relay.join()
            self.passing.close()
        for wire in self.wires:
            wire.close()
        os.close(self.stop)


class Run:
    """The other parts of one run, each on a thread."""

    def __init__(
        self,
        plans: Sequence[bytes],
        orders: Sequence[Sequence[bytes]],
        has_ended: HasEnded,
        seed: int | None,
        window: int,
    ) -> None:
        self.network = Network(len(plans) + 1, seed, window)
        self.wire = self.network.wires[0]
        self.has_ended = has_ended
        self.found: list[bytes | None] = [None] * len(plans)
        self.failed: list[BaseException] = []
        self.threads = [
            threading.Thread(target=self.run, args=(k, plan, order))
            for k, (plan, order) in enumerate(zip(plans, orders, strict=True))
        ]
        for thread in self.threads:
            thread.start()

    def run(self, number: int, plan: bytes, order: Sequence[bytes]) -> None:
        try:
            reply, _, _ = run_order(loaded(plan), order, self.network.wires[number + 1])
        except WorkerLost:
            return
        except BaseException as error:
            self.failed.append(error)
            self.network.end()
            return
        self.found[number] = reply
        if not self.has_ended(reply):
            self.network.end()

    def replies(self) -> list[bytes]:
        for thread in self.threads:
            thread.join()
        for error in self.failed:
            raise error
        stopped = [reply for reply in self.found if reply is not None and not self.has_ended(reply)]
        if stopped:
            return stopped[:1]
        if None in self.found:
            raise WorkerLost("a part was stopped")
        return [reply for reply in self.found if reply is not None]

    def close(self) -> None:
        self.network.end()
        for thread in self.threads:
            thread.join()
        self.network.close()


class Threads:
    """Workers that are threads."""

    retries = 0

    def __init__(self, workers: int, seed: int | None = None, window: int = SMALL) -> None:
        self.size = workers
        self.seed = seed
        self.window = window

    def link(self, key: bytes, plan: bytes) -> None:
        return None

    def parts(
        self, plans: Sequence[tuple[bytes, bytes]], orders: Sequence[Sequence[bytes]], has_ended: HasEnded
    ) -> Run:
        return Run([data for _, data in plans], orders, has_ended, self.seed, self.window)


class OnThreads:
    """A plan whose parts run on threads."""

    def __init__(self, plan: PlacedPlan, workers: Threads) -> None:
        self.plan = plan
        self.workers = workers

    def run(
        self, inputs: Sequence[Result], options: Options | None = None, state: State | None = None
    ) -> tuple[list[Result], Stats]:
        with outside.using(self.workers):
            return self.plan.run(inputs, options, state)


class InParts:
    """The core, of a graph that is cut at random."""

    is_lazy = False
    takes_hoisted = True
    forms_waves = False

    def __init__(self, seed: int, parts: int) -> None:
        self.name = f"parts-{seed}"
        self.seed = seed
        self.parts = parts

    def plan(self, graph: StaticGraph) -> OnThreads:
        chance = random.Random(self.seed)
        homes = homes_by_chance(graph, self.parts, chance)
        hosted = hosted_nodes(graph)
        homes = [0 if number in hosted else home for number, home in enumerate(homes)]
        placed = cut(graph, homes, self.parts)
        for part in placed.parts:
            spec.check(part.graph, type_rule)
        return OnThreads(PlacedPlan(graph, placed), Threads(self.parts - 1, self.seed))
